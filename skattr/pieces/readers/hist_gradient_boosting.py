"""scikit-learn's HistGradientBoosting.

It compares in float64, `x <= threshold`; missing goes where the node says. With categorical columns
it runs its own encoder, so its inputs have another order than the raw columns; a category that it
does not know counts as missing. It is a sum of boxes on the scale of its raw prediction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils._missing import is_scalar_nan

from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.links import EXP, Link
from skattr.pieces.parts import Front, Trees
from skattr.pieces.readers.sklearn_trees import link_of_loss


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    if isinstance(estimator, HistGradientBoostingClassifier):
        return ("raw",)
    if isinstance(estimator, HistGradientBoostingRegressor):
        identity = type(estimator._loss.link).__name__ == "IdentityLink"
        return ("predict", "raw") if identity else ("raw",)
    return ()


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link from the raw prediction to probabilities, or to a regressor's prediction."""
    if isinstance(estimator, HistGradientBoostingClassifier) and scale == "proba":
        return "raw", link_of_loss(estimator._loss)
    if isinstance(estimator, HistGradientBoostingRegressor) and scale == "predict":
        name = type(estimator._loss.link).__name__
        if name == "LogLink":
            return "raw", EXP
        raise Unreadable(f"scikit-learn's {name} is not known here")
    return None


def has_margin(estimator: Any) -> bool:
    """Tell whether no public method returns the estimator's margin: that of a regressor."""
    return isinstance(estimator, HistGradientBoostingRegressor)


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the raw prediction."""
    return estimator._raw_predict(X)


def n_outputs(estimator: Any, X: Any) -> int | None:
    """Return the number of margins; hundreds of trees would be called to predict one row."""
    if not scales(estimator):
        return None
    estimator._preprocess_X(X, reset=False)
    return int(estimator.n_trees_per_iteration_)


class HistFront(Front):
    """The estimator's own preprocessing."""

    takes_missing = True
    takes_infinite = True

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        categorical = estimator.is_categorical_
        if categorical is None:
            self.columns = np.arange(estimator.n_features_in_)
        else:
            self.columns = np.argsort(~np.asarray(categorical), kind="stable")

    @override
    def inputs(self, X: Any) -> np.ndarray:
        plain = type(X) is np.ndarray and X.dtype == np.float64
        if plain and self.estimator.is_categorical_ is None:
            return X  # an array as the trees take it
        return self.estimator._preprocess_X(X, reset=False)


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read a fitted HistGradientBoosting."""
    try:
        return [_read(estimator)]
    except (AttributeError, ValueError, KeyError) as error:
        raise Unreadable(
            f"scikit-learn {sklearn.__version__}'s HistGradientBoosting is not known here ({error})"
        ) from error


def _read(estimator: Any) -> Trees:
    predictors = [tree for stage in estimator._predictors for tree in stage]
    k = estimator.n_trees_per_iteration_
    sizes = np.array([len(tree.nodes) for tree in predictors])
    roots = np.cumsum(sizes) - sizes
    # as bytes: numpy copies records field by field
    nodes = np.frombuffer(b"".join(tree.nodes for tree in predictors), predictors[0].nodes.dtype)
    shift = np.repeat(roots, sizes)
    leaf = nodes["is_leaf"].astype(bool)
    part = Trees(
        front=HistFront(estimator),
        roots=roots,
        outputs=np.tile(np.arange(k), len(estimator._predictors)),
        column=np.where(leaf, -1, nodes["feature_idx"]),
        left=nodes["left"] + shift,
        right=nodes["right"] + shift,
        edge=np.where(leaf | (nodes["is_categorical"] == 1), np.nan, nodes["num_threshold"]),
        missing_left=nodes["missing_go_to_left"],
        values=nodes["value"][leaf][:, None],
        constant=estimator._baseline_prediction[0].astype(np.float64),
        depth=int(nodes["depth"].max()),
    )
    if estimator.is_categorical_ is not None:
        _add_levels(part, estimator, predictors, nodes, sizes)
    return part


def _add_levels(
    part: Trees, estimator: Any, predictors: list, nodes: np.ndarray, sizes: np.ndarray
) -> None:
    """Read the category sets, which are bit sets over the encoder's numbers."""
    n_sets = np.array([len(tree.raw_left_cat_bitsets) for tree in predictors])
    shift = np.repeat(np.cumsum(n_sets) - n_sets, sizes)
    is_set = nodes["is_categorical"] == 1
    part.members = np.where(is_set, nodes["bitset_idx"] + shift, -1)
    words = np.concatenate([tree.raw_left_cat_bitsets.reshape(-1, 8) for tree in predictors])
    part.sets = _bits(words)
    known, position = estimator._bin_mapper.make_known_categories_bitsets()
    encoder = estimator._preprocessor.named_transformers_["encoder"]
    for c, categories in enumerate(encoder.categories_):
        # NaN is missing, but None is a category like any other
        part.levels[c] = [v for v in categories.tolist() if not is_scalar_nan(v)]
        part.known[c] = _bits(known[position[c]][None])[0, : len(part.levels[c])].astype(bool)


def _bits(words: np.ndarray) -> np.ndarray:
    """Return bit sets (m, 8) of uint32 as bytes (m, 256)."""
    little = np.ascontiguousarray(words, dtype="<u4").view(np.uint8).reshape(len(words), 32)
    return np.unpackbits(little, axis=1, bitorder="little")
