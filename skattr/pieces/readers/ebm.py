"""interpret's explainable boosting machines without interactions.

They are sums of functions of one column each: on the scale of their prediction if the link is the
identity, else before the link.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.links import BINARY, EXP, SOFTMAX, Link
from skattr.pieces.parts import Front, Linear
from skattr.pieces.preprocessing.tracks import Kind, Track

LINKS: dict[str, Link] = {"logit": BINARY, "mlogit": SOFTMAX, "log": EXP}
NAMES = ("ExplainableBoostingRegressor", "ExplainableBoostingClassifier")


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which the model is a sum of its terms."""
    if not _is_ebm(estimator):
        return ()
    return ("predict", "raw") if estimator.link_ == "identity" else ("raw",)


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link of the model."""
    if not _is_ebm(estimator):
        return None
    final = "proba" if hasattr(estimator, "predict_proba") else "predict"
    if scale != final:
        return None
    if estimator.link_ not in LINKS:
        raise Unreadable(f"interpret's link {estimator.link_!r} is not known here")
    return "raw", LINKS[estimator.link_]


def _is_ebm(estimator: Any) -> bool:
    return any(
        kind.__module__.startswith("interpret.") and kind.__name__ in NAMES
        for kind in type(estimator).__mro__
    )


def read(estimator: Any, scale: str) -> list[Linear]:
    """Read the terms: for each output they are inputs, which are added up."""
    pairs = [
        name
        for name, columns in zip(estimator.term_names_, estimator.term_features_, strict=True)
        if len(columns) > 1
    ]
    if pairs:
        raise Unreadable(
            f"{type(estimator).__name__} has terms of several columns, {', '.join(pairs)}; fit it "
            "with interactions=0"
        )
    constant = np.atleast_1d(np.asarray(estimator.intercept_, np.float64))
    k = len(constant)
    coefficients = np.tile(np.eye(k), len(estimator.term_features_))
    return [Linear(TermsFront(estimator, k), constant, coefficients)]


def has_margin(estimator: Any) -> bool:
    """Tell whether this is a regressor behind a link."""
    return _is_ebm(estimator) and not hasattr(estimator, "decision_function")


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the prediction before the link."""
    return estimator.eval_terms(X).sum(axis=1) + estimator.intercept_


class TermsFront(Front):
    """The terms of the model, as the model evaluates them: for each output an input."""

    def __init__(self, estimator: Any, k: int) -> None:
        self.estimator = estimator
        self.columns = np.repeat([columns[0] for columns in estimator.term_features_], k)

    @override
    def inputs(self, X: Any) -> np.ndarray:
        return self.estimator.eval_terms(X).reshape(len(X), -1)

    @override
    def track(self, c: int, track: Track) -> Track:
        """Return the track behind the model's own cuts or levels."""
        bins = self.estimator.bins_[self.columns[c]][0]
        if isinstance(bins, dict):
            return track.discretized(Kind.LEVELS, list(bins))
        return track.discretized(Kind.CUTS, np.nextafter(bins, -np.inf).tolist())
