"""Links of several members: calibrated classifiers, means of boosters, transformed targets.

Each member is a link of margins (no link is one too). The margins of all members stand side by
side, and one link of all of them makes what the estimator predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.multiclass import OneVsRestClassifier, _ConstantPredictor
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from skattr._typing import override
from skattr.pieces import readers
from skattr.pieces.base import Unreadable, unwrap
from skattr.pieces.links import (
    IDENTITY,
    Chain,
    Function,
    Link,
    Normalised,
    Placed,
    SideBySide,
    TwoClasses,
    WeightedSum,
)
from skattr.pieces.preprocessing.rules import Subset
from skattr.pieces.readers.composites import scaler

Members = list[tuple[slice, Link]]
ROUNDING = 1e-12  # probabilities that are 0 but for rounding
PREDICT = ("predict", "raw")  # the scales of regressors without a link of their own


def scales(estimator: Any) -> tuple[str, ...]:
    """Return (): these estimators are not sums of parts."""
    return ()


def read_linked(estimator: Any, scale: str) -> tuple[list, Link] | None:
    """Read the margins of all members, and the link of all of them."""
    for kind, (of_scales, read) in READ.items():
        if isinstance(estimator, kind) and scale in of_scales:
            return read(estimator)
    return None


def _side_by_side(members: Sequence[tuple[list, Link | None]]) -> tuple[list, Members]:
    """Put the margins of members side by side; return them, and the place of each member."""
    sizes = [len(parts[0].constant) for parts, _ in members]
    ends = np.cumsum(sizes)
    slices = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    parts = [
        part.at_outputs(range(of.start, of.stop), ends[-1])
        for (some, _), of in zip(members, slices, strict=True)
        for part in some
    ]
    links = [IDENTITY if link is None else link for _, link in members]
    return parts, list(zip(slices, links, strict=True))


# -- means ---------------------------------------------------------------------------------------


def _vote(estimator: Any) -> tuple[list, Link] | None:
    scale = "predict"
    if isinstance(estimator, VotingClassifier):
        if estimator.voting == "hard":
            return None
        scale = "proba"
    weights = np.ones(len(estimator.estimators_))
    if estimator.weights is not None:
        weights = np.array(estimator._weights_not_none, float)
    members = [readers.read_linked(unwrap(member), scale) for member in estimator.estimators_]
    parts, placed = _side_by_side(members)
    return parts, WeightedSum(placed, (weights / weights.sum()).tolist())


def _bag(estimator: Any) -> tuple[list, Link]:
    classifies = isinstance(estimator, BaggingClassifier)
    members = []
    for member, subset in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
        parts, link = readers.read_linked(unwrap(member), "proba" if classifies else "predict")
        if classifies and len(member.classes_) < len(estimator.classes_):
            positions = member.classes_.astype(int).tolist()
            link = Placed(link or IDENTITY, positions, len(estimator.classes_))
        step = Subset(estimator, np.asarray(subset))
        members.append(([part.behind(step) for part in parts], link))
    parts, placed = _side_by_side(members)
    return parts, WeightedSum(placed, [1 / len(members)] * len(members))


# -- members side by side ------------------------------------------------------------------------


def _targets(estimator: Any) -> tuple[list, Link]:
    scale = "proba" if isinstance(estimator, MultiOutputClassifier) else "predict"
    members = [readers.read_linked(unwrap(member), scale) for member in estimator.estimators_]
    parts, placed = _side_by_side(members)
    return parts, SideBySide(placed)


def _against_the_rest(estimator: OneVsRestClassifier) -> tuple[list, Link]:
    members = []
    for member in estimator.estimators_:
        if isinstance(member, _ConstantPredictor):
            raise Unreadable("a member of OneVsRestClassifier is a constant")
        parts, link = readers.read_linked(unwrap(member), "proba")
        if link is None and len(estimator.estimators_) > 1 and not estimator.multilabel_:
            raise Unreadable(
                "OneVsRestClassifier divides probabilities by their sum, which may be 0 here"
            )
        members.append((parts, (link or IDENTITY).select([1])))
    parts, placed = _side_by_side(members)
    sides: Link = SideBySide(placed)
    if len(members) == 1:
        return parts, TwoClasses(sides)
    return parts, sides if estimator.multilabel_ else Normalised(sides)


# -- calibration ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Calibrated(Link):
    """One calibrator per class, each a function of one number, made to shares that sum to 1."""

    calibrators: list[Callable[[np.ndarray], np.ndarray]]
    positions: list[int]  # the class of each calibrator
    n_classes: int
    label: str

    @property
    @override
    def name(self) -> str:
        return self.label

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        result = np.zeros((self.n_classes, *margins.shape[1:]))
        for k, margin, calibrator in zip(self.positions, margins, self.calibrators, strict=True):
            result[k] = calibrator(margin.ravel()).reshape(margin.shape)
        if self.n_classes == 2:
            result[0] = 1.0 - result[1]
        else:
            total = result.sum(axis=0)
            equal = np.full_like(result, 1 / self.n_classes)
            # margins are sums, so that what isotonic calibrators map to 0 may be off by rounding;
            # sigmoids are never 0, and their shares count however small they are
            least = ROUNDING if self.label.startswith("isotonic") else 0.0
            result = np.divide(result, total, out=equal, where=total > least)
        return np.minimum(result, 1.0)


def _calibrated(estimator: CalibratedClassifierCV) -> tuple[list, Link]:
    members = [_calibrated_member(member) for member in estimator.calibrated_classifiers_]
    parts, placed = _side_by_side(members)
    return parts, WeightedSum(placed, [1 / len(members)] * len(members))


def _calibrated_member(member: Any) -> tuple[list, Link]:
    classes, inner = member.classes, unwrap(member.estimator)
    decides = hasattr(member.estimator, "decision_function")
    parts, link = readers.read_linked(inner, "raw" if decides else "proba")
    link = link or IDENTITY
    if member.method == "temperature":
        return parts, Chain(link, Function("temperature", _by_rows(member.calibrators[0].predict)))
    if not decides and len(classes) == 2:
        link = link.select([1])
    positions = np.searchsorted(classes, inner.classes_).tolist()
    if len(classes) == 2:
        positions = [1]
    functions = [calibrator.predict for calibrator in member.calibrators]
    name = f"{'isotonic' if member.method == 'isotonic' else 'sigmoid'} calibration"
    calibrated = Calibrated(functions, positions, len(classes), name)
    return parts, calibrated if link is IDENTITY else Chain(link, calibrated)


def _by_rows(function: Callable) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function of a table (n, m) as one of margins (m, …)."""

    def of_margins(margins: np.ndarray) -> np.ndarray:
        table = np.asarray(function(margins.reshape(len(margins), -1).T))
        return table.reshape(table.shape[0], -1).T.reshape(-1, *margins.shape[1:])

    return of_margins


# -- targets and stacks --------------------------------------------------------------------------


def _transformed_target(estimator: TransformedTargetRegressor) -> tuple[list, Link] | None:
    """Read the regressor, behind the inverse of the target's transform.

    Only transforms that are known to work number by number are links.
    """
    transformer = unwrap(estimator.transformer_)
    steps = [transformer]
    if isinstance(transformer, Pipeline):
        steps = [unwrap(step) for _, step in transformer.steps]
    if not all(map(_works_by_number, steps)):
        return None
    parts, link = readers.read_linked(unwrap(estimator.regressor_), "predict")
    name = f"the inverse of {type(transformer).__name__}"
    if isinstance(transformer, FunctionTransformer) and transformer.inverse_func is not None:
        name = transformer.inverse_func.__name__
    back = Function(name, _by_rows(transformer.inverse_transform))
    return parts, back if link is None else Chain(link, back)


def _works_by_number(step: Any) -> bool:
    if isinstance(step, FunctionTransformer):
        return step.inverse_func is None or isinstance(step.inverse_func, np.ufunc)
    return isinstance(step, PowerTransformer | QuantileTransformer) or (
        scaler(step, "inverse_func") is not None
    )


def _stack(estimator: StackingClassifier) -> tuple[list, Link] | None:
    """Read the decision function of a stack, behind the link of its final estimator."""
    if "raw" not in readers.scales(estimator):
        return None
    final = unwrap(estimator.final_estimator_)
    final = unwrap(final.steps[-1][1]) if isinstance(final, Pipeline) else final
    pair = readers.link(final, "proba")
    return None if pair is None else (readers.read(estimator, "raw"), pair[1])


READ: dict[Any, tuple[tuple[str, ...], Callable]] = {
    VotingClassifier: (("proba",), _vote),
    VotingRegressor: (PREDICT, _vote),
    BaggingClassifier: (("proba",), _bag),
    BaggingRegressor: (PREDICT, _bag),
    MultiOutputClassifier: (("proba",), _targets),
    MultiOutputRegressor: (PREDICT, _targets),
    OneVsRestClassifier: (("proba",), _against_the_rest),
    CalibratedClassifierCV: (("proba",), _calibrated),
    TransformedTargetRegressor: (PREDICT, _transformed_target),
    StackingClassifier: (("proba",), _stack),
}
