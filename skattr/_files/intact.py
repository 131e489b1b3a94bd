"""Checks of a model from a .skops file, made before compiled code uses it.

skops sets attributes without asking the constructor, and compiled code of scikit-learn and scipy
does not look at them again: a child beyond the last node is read from whatever lies there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline
from scipy.sparse import sparray, spmatrix
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaseEnsemble
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils.validation import check_array


def check_model(model: Any, allowed: list[str]) -> None:
    """Refuse a loaded model whose parts point outside of themselves, or that holds a function.

    `allowed` are the names that the user trusts.
    """
    parts = list(_parts(model))
    for part, width in parts:
        _check_attributes(part)
        for kind, check in CHECKS:
            if isinstance(part, kind):
                check(part, width)
        if isinstance(part, partial) and part.func is not check_array:
            if "functools.partial" not in allowed:
                raise ValueError(
                    f"it holds a functools.partial of {part.func!r}; if you know it, add "
                    "--trust functools.partial"
                )
    for part, _ in parts:  # after all parts inside them have been checked
        if isinstance(part, BaseHistGradientBoosting):
            _check_histograms(part)
        elif isinstance(part, BaseGradientBoosting):
            _check_stages(part)


def _check_attributes(part: Any) -> None:
    attributes = _attributes(part)
    if not isinstance(part, np.ndarray):  # masks have the name of a method
        if any(callable(getattr(type(part), name, None)) for name in attributes):
            raise ValueError(f"an attribute replaces a method of {type(part).__name__}")
    if type(part).__module__ == BSpline.__module__:  # in scipy 1.18 another type does the work
        _check_spline(part.t, part.c, part.k)


def _attributes(part: Any) -> dict:
    # what classes and modules hold is code, not state; scipy 1.18's splines hold modules
    return {} if isinstance(part, type | ModuleType) else getattr(part, "__dict__", {})


def _parts(model: Any) -> Iterator[tuple[Any, int]]:
    """Yield all objects inside a model, each with the number of columns of the table it gets."""
    stack: list[tuple[Any, int, bool]] = [(model, 0, False)]
    seen: dict[tuple[int, int], Any] = {}  # keeps the objects, so that no number is used twice
    while stack:
        part, width, in_ensemble = stack.pop()
        attributes = _attributes(part)
        if attributes and not isinstance(part, TreePredictor):
            # an object without n_features_in_ does not check the number of columns either
            columns = attributes.get("n_features_in_", 0)
            columns = int(columns) if isinstance(columns, int | np.integer) else 0
            # trees in an ensemble do not check their input again
            shared = in_ensemble and isinstance(part, BaseDecisionTree)
            width = min(width, columns) if shared else columns
            subsets = attributes.get("estimators_features_")
            if subsets is not None:
                width = min(map(len, subsets), default=0)
            in_ensemble = isinstance(part, BaseEnsemble)
        if (id(part), width) in seen:
            continue
        seen[id(part), width] = part
        yield part, width
        stack += [
            (item, width, in_ensemble)
            for item in _inside(part, attributes)
            if not isinstance(item, str | int | float | None)
        ]


def _inside(part: Any, attributes: dict) -> list:
    inside = [*attributes.values()]
    if isinstance(part, dict):
        inside += part.values()
    elif isinstance(part, list | tuple | set):
        inside += part
    elif isinstance(part, np.ndarray) and part.dtype == object:
        inside += part.ravel().tolist()
    elif isinstance(part, partial):
        inside += [part.func, *part.args, *part.keywords.values()]
    return inside


# Trees -------------------------------------------------------------------------------------------


def _check_tree_of_nodes(tree: Tree, width: int) -> None:
    if not 0 < tree.node_count <= tree.capacity:
        raise ValueError("a tree has no nodes, or more than there are")
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    _check_tree(left, right, inner, tree.feature, min(width, tree.n_features))
    depth = np.zeros(len(left), dtype=np.int64)
    for i in np.flatnonzero(inner):  # a parent comes before its children
        depth[left[i]] = depth[right[i]] = depth[i] + 1
    if depth.max() > tree.max_depth:
        raise ValueError("a tree is deeper than it says")


def _check_predictor(tree: TreePredictor, width: int) -> None:
    nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
    if nodes.dtype != PREDICTOR_RECORD_DTYPE or nodes.ndim != 1 or len(nodes) == 0:
        raise ValueError("the nodes of a tree do not make a tree")
    inner = nodes["is_leaf"] == 0
    _check_tree(nodes["left"], nodes["right"], inner, nodes["feature_idx"], width)
    if sets.dtype != np.uint32 or sets.ndim != 2 or sets.shape[1] != 8:
        raise ValueError("the sets of categories of a tree are not sets of 256 bits")
    by_set = inner & (nodes["is_categorical"] != 0)
    if (nodes["bitset_idx"][by_set] >= len(sets)).any():
        raise ValueError("a tree points to a set of categories that is not there")


def _check_tree(
    left: np.ndarray, right: np.ndarray, inner: np.ndarray, feature: np.ndarray, width: int
) -> None:
    """Refuse a tree unless every node but the first has a parent before it, and columns exist."""
    parents = np.flatnonzero(inner)
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    below = (children > np.concatenate([parents, parents])).all()
    if not below or not np.array_equal(np.sort(children), np.arange(1, len(left))):
        raise ValueError("the nodes of a tree do not make a tree")
    columns = feature[inner].astype(np.int64)
    if (columns < 0).any() or (columns >= width).any():
        raise ValueError(f"a tree asks for a column beyond the {width} that the model takes")


def _check_stages(model: BaseGradientBoosting) -> None:
    """Refuse boosting with more trees per stage than there are outputs to add them to."""
    stages = getattr(model, "estimators_", None)
    if stages is None:  # not fitted, such as the estimator of a search
        return
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))
    if stages.ndim != 2 or start.shape != (1, stages.shape[1]):
        raise ValueError("a stage of trees does not have one tree for each output")


def _check_histograms(model: BaseHistGradientBoosting) -> None:
    """Refuse boosting whose trees would get another table than the one they know."""
    if not hasattr(model, "_predictors"):  # not fitted
        return
    if getattr(model, "_in_fit", False):
        raise ValueError("its fit has not come to an end")
    by_set = {
        int(column)
        for tree in (tree for stage in model._predictors for tree in stage)
        for column in tree.nodes["feature_idx"][tree.nodes["is_categorical"] != 0]
    }
    known = np.asarray(model._bin_mapper.is_categorical_)
    if known.shape != (model.n_features_in_,) or not all(known[column] for column in by_set):
        raise ValueError("a tree asks for categories of a column that has none")
    if model._preprocessor is not None:
        _check_preprocessor(model._preprocessor, model)


def _check_preprocessor(steps: Any, model: BaseHistGradientBoosting) -> None:
    """Refuse a preprocessor of HistGradientBoosting that is not the one it makes itself."""
    right = type(steps) is ColumnTransformer and [
        (name, type(step)) for name, step, _ in steps.transformers_[:2]
    ] == [("encoder", OrdinalEncoder), ("numerical", FunctionTransformer)]
    if not right or not isinstance(steps.transformers_[1][1].func, partial):
        raise ValueError("it encodes categories in another way than HistGradientBoosting")
    width = model.n_features_in_
    names = getattr(steps, "feature_names_in_", range(width))
    row = pd.DataFrame(np.zeros((1, width)), columns=list(names), dtype=object)
    if np.shape(steps.transform(row)) != (1, width):
        raise ValueError("it encodes categories in another way than HistGradientBoosting")


# Others ------------------------------------------------------------------------------------------


def _check_spline(knots: Any, coefficients: Any, degree: Any) -> None:
    made = BSpline(knots, coefficients, degree)  # raises a ValueError itself
    for array, checked in ((knots, made.t), (coefficients, made.c)):
        if not isinstance(array, np.ndarray) or array.dtype != checked.dtype:
            raise ValueError("the knots and coefficients of a spline are not arrays of numbers")


def _check_machine(model: BaseLibSVM, width: int) -> None:
    """Refuse a support vector machine whose arrays do not fit together."""
    if not hasattr(model, "support_"):  # not fitted
        return
    n, classes = len(model.support_), len(model._n_support)
    pairs = classes * (classes - 1) // 2
    is_classifier = model._impl in ("c_svc", "nu_svc")
    fits = (
        classes >= 2
        and model._dual_coef_.shape == ((classes - 1 if is_classifier else 1), n)
        and np.size(model._intercept_) == (pairs if is_classifier else 1)
        and {np.size(model._probA), np.size(model._probB)} <= {0, pairs}
        and (model.kernel == "precomputed" or model.support_vectors_.shape[0] == n)
        and (not is_classifier or ((model._n_support >= 0).all() and model._n_support.sum() == n))
    )
    if not fits:
        raise ValueError("the arrays of a support vector machine do not fit together")


def _check_sparse(matrix: Any, width: int) -> None:
    if matrix.format not in ("csr", "csc"):
        raise ValueError(f"it holds a sparse matrix of the format {matrix.format}")
    matrix.check_format(full_check=True)  # raises a ValueError itself


CHECKS: tuple[tuple[type, Callable[[Any, int], None]], ...] = (
    (Tree, _check_tree_of_nodes),
    (TreePredictor, _check_predictor),
    (BaseLibSVM, _check_machine),
    (spmatrix, _check_sparse),
    (sparray, _check_sparse),
)
