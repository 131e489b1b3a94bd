"""scikit-learn's trees, forests and GradientBoosting.

They cast x to float32 and compare `x <= threshold` with a threshold that stays float64. Trees of
classifiers hold probabilities, so a forest is a sum of boxes on the scale of probabilities;
GradientBoosting is a sum of boxes on the scale of its margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import validate_data

from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.links import BINARY, LOGISTIC, SOFTMAX, Link, TwoClasses, scaled
from skattr.pieces.parts import Front, Trees

FORESTS = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)
BOOSTING = (GradientBoostingClassifier, GradientBoostingRegressor)
LOSSES: dict[str, Link] = {
    "HalfBinomialLoss": BINARY,
    "HalfMultinomialLoss": SOFTMAX,
    "ExponentialLoss": TwoClasses(scaled(LOGISTIC, 2.0)),
}


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    if isinstance(estimator, (BaseDecisionTree, *FORESTS)):
        return ("proba",) if is_classifier(estimator) else ("predict", "raw")
    if isinstance(estimator, BOOSTING):
        return ("raw",) if is_classifier(estimator) else ("predict", "raw")
    return ()


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link from the margins of GradientBoosting to its probabilities."""
    if isinstance(estimator, GradientBoostingClassifier) and scale == "proba":
        return "raw", link_of_loss(estimator._loss)
    return None


def link_of_loss(loss: Any) -> Link:
    """Return the link from raw predictions to probabilities of one of scikit-learn's losses."""
    name = type(loss).__name__
    if name not in LOSSES:
        raise Unreadable(f"the link of scikit-learn's loss {name} is not known here")
    return LOSSES[name]


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read a tree, a forest or GradientBoosting."""
    if isinstance(estimator, BOOSTING):
        return [_boosting(estimator)]
    trees = [estimator] if isinstance(estimator, BaseDecisionTree) else estimator.estimators_
    return [_concatenate(trees, TreeFront(estimator), 1 / len(trees), is_classifier(estimator))]


class TreeFront(Front):
    """The checks and the cast to float32 that these estimators make."""

    dtype = np.dtype(np.float32)

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.columns = np.arange(estimator.n_features_in_)
        tree = estimator if isinstance(estimator, BaseDecisionTree) else estimator.estimators_[0]
        self.takes_missing = not isinstance(estimator, BOOSTING) and bool(
            tree.__sklearn_tags__().input_tags.allow_nan
        )

    @override
    def inputs(self, X: Any) -> np.ndarray:
        missing = "allow-nan" if self.takes_missing else True
        return validate_data(
            self.estimator, X, dtype=np.float32, reset=False, ensure_all_finite=missing
        )


def last_left(threshold: np.ndarray) -> np.ndarray:
    """Return the largest float64 whose float32 is still <= threshold.

    It is the midpoint of two neighbouring float32, or one unit below (ties go to the even one).
    Numbers beyond the largest float32 do not matter: these models refuse them.
    """
    limit = np.finfo(np.float32).max
    finite = np.isfinite(threshold)
    wanted = np.clip(np.where(finite, threshold, 0.0), -limit, limit)
    low = wanted.astype(np.float32) + np.float32(0.0)  # -0.0 is 0.0
    low = np.where(low > wanted, _neighbour(low, -1), low)
    high = np.where(low < limit, _neighbour(low, 1), low)
    middle = low + (high.astype(np.float64) - low) / 2
    goes = middle.astype(np.float32) <= low
    return np.where(finite, np.where(goes, middle, _neighbour(middle, -1)), threshold)


def _neighbour(values: np.ndarray, step: int) -> np.ndarray:
    """Return the next floating-point numbers above (1) or below (-1), by counting bits."""
    whole = np.dtype(f"i{values.itemsize}")
    size = np.iinfo(whole).max  # a mask of all bits but the sign
    bits = values.view(whole)
    rank = np.where(bits < 0, -(bits & size), bits) + whole.type(step)
    return np.where(rank < 0, -rank | ~size, rank).astype(whole).view(values.dtype)


def _concatenate(trees: list, front: TreeFront, factor: float, proba: bool) -> Trees:
    """Put several fitted trees with the same outputs into one table."""
    inner = [tree.tree_ for tree in trees]
    try:
        columns = [
            (t.children_left, t.children_right, t.feature, t.threshold, t.missing_go_to_left)
            for t in inner
        ]
        values = [_leaf_values(tree, proba) for tree in trees]
    except AttributeError as error:
        raise Unreadable(
            f"the trees of scikit-learn {sklearn.__version__} are not known here ({error})"
        ) from error
    sizes = np.array([t.node_count for t in inner])
    roots = np.cumsum(sizes) - sizes
    left, right, feature, threshold, missing = map(np.concatenate, zip(*columns, strict=True))
    leaf = left < 0
    shift = np.repeat(roots, sizes)
    edge = np.zeros(len(leaf))
    edge[~leaf] = last_left(threshold[~leaf])
    all_values = np.concatenate(values) * factor
    return Trees(
        front=front,
        roots=roots,
        outputs=np.zeros(len(roots), np.int64),
        column=np.where(leaf, -1, feature),
        left=left + shift,
        right=right + shift,
        edge=edge,
        missing_left=missing.astype(np.uint8),
        values=all_values,
        constant=np.zeros(all_values.shape[1]),
        depth=max(t.max_depth for t in inner),
    )


def _leaf_values(tree: Any, proba: bool) -> np.ndarray:
    """Return the values of the leaves: all targets, or all classes of all targets."""
    values = tree.tree_.value[tree.tree_.children_left < 0]  # (n_leaves, n_targets, n_classes)
    if not proba:
        return values[:, :, 0]
    n_classes = np.atleast_1d(tree.n_classes_)
    return np.concatenate([values[:, i, :n] for i, n in enumerate(n_classes)], axis=1)


def _boosting(estimator: Any) -> Trees:
    init = estimator.init_
    if not (isinstance(init, DummyClassifier | DummyRegressor) or init == "zero"):
        raise Unreadable(
            f"{type(estimator).__name__} starts from {type(init).__name__}, which is not a constant"
        )
    n_stages, k = estimator.estimators_.shape
    trees = list(estimator.estimators_.ravel())
    part = _concatenate(trees, TreeFront(estimator), estimator.learning_rate, False)
    one_row = np.zeros((1, estimator.n_features_in_), np.float32)
    part.constant = estimator._raw_predict_init(one_row)[0]
    part.outputs = np.tile(np.arange(k), n_stages)
    return part
