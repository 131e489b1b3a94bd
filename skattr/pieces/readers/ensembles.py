"""Bagging and Voting: weighted means of members that other readers read."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, VotingClassifier, VotingRegressor

from skattr.pieces import readers
from skattr.pieces.base import Unreadable, unwrap
from skattr.pieces.parts import Trees
from skattr.pieces.preprocessing.rules import Subset

BAGGING = (BaggingClassifier, BaggingRegressor)
VOTING = (VotingClassifier, VotingRegressor)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which all members are sums of parts, and the ensemble is their mean."""
    if not isinstance(estimator, BAGGING + VOTING):
        return ()
    common = set.intersection(*(set(readers.scales(unwrap(m))) for m in estimator.estimators_))
    if is_classifier(estimator):
        # a vote has no decision function; a hard vote is not a mean
        mean_of = ["proba", "raw"] if isinstance(estimator, BAGGING) else ["proba"]
        if isinstance(estimator, VotingClassifier) and estimator.voting == "hard":
            return ()
    else:
        # a mean has no link: its prediction is raw
        return ("predict", "raw") if "predict" in common else ()
    return tuple(scale for scale in mean_of if scale in common)


def why_not(estimator: Any) -> str | None:
    """Return why a mean of members is not a sum of pieces."""
    if not isinstance(estimator, BAGGING + VOTING):
        return None
    name = type(estimator).__name__
    if isinstance(estimator, VotingClassifier) and estimator.voting == "hard":
        return f"{name} counts votes, which is not a mean"
    wanted = "proba" if is_classifier(estimator) else "predict"
    members = [unwrap(member) for member in estimator.estimators_]
    member = next((m for m in members if wanted not in readers.scales(m)), members[0])
    return f"a member of {name}: {readers.why_none(member, wanted)}"


def read(estimator: Any, scale: str) -> list:
    """Read all members, each with its weight."""
    scale = scale if is_classifier(estimator) else "predict"
    if isinstance(estimator, BAGGING):
        return _bagging(estimator, scale)
    weights = np.ones(len(estimator.estimators_))
    if estimator.weights is not None:
        weights = np.array(estimator._weights_not_none, float)
    return [
        part.scaled(weight / weights.sum())
        for member, weight in zip(estimator.estimators_, weights, strict=True)
        for part in readers.read(unwrap(member), scale)
    ]


def _bagging(estimator: Any, scale: str) -> list:
    parts = []
    shared: dict = {}
    n_members = len(estimator.estimators_)
    for member, subset in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
        features = np.asarray(subset)
        step = shared.setdefault(features.tobytes(), Subset(estimator, features))
        for part in readers.read(unwrap(member), scale):
            if is_classifier(estimator) and len(member.classes_) < len(estimator.classes_):
                if scale != "proba":
                    raise Unreadable("a member of the bag has not seen all classes")
                part = part.at_outputs(member.classes_.astype(int), len(estimator.classes_))
            # members that see the same columns in the same way share one front, unless they have
            # encoders or other steps of their own
            if isinstance(part, Trees) and not part.levels and not part.steps:
                changes = tuple(part.front.changes(c) for c in range(len(part.front.columns)))
                key = (features.tobytes(), type(part.front), part.front.takes_missing, changes)
                part.front = shared.setdefault(key, part.front)
            parts.append(part.behind(step).scaled(1 / n_members))
    return parts
