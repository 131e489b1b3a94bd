"""Which types a .skops file may hold without being asked about, and what is checked of them.

skops trusts scikit-learn's public estimators and numpy's ufuncs itself. A file may build any type
that is trusted with any arguments, so a type is listed here only if that runs no code but the
library's own, and writes nothing: numbers, settings, and containers of them. Functions and classes
of the user's, bound methods, scorers and search trees (k-nearest neighbours) are not listed.

Boosting libraries parse their own models. scikit-learn walks its trees without looking where a
child or a column is, so `check_model` looks at that before a model is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

TRUSTED = (
    "catboost.core.CatBoost",
    "catboost.core.CatBoostClassifier",
    "catboost.core.CatBoostRanker",
    "catboost.core.CatBoostRegressor",
    "collections.OrderedDict",
    "functools.partial",  # only of check_array, see check_model
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMModel",
    "lightgbm.sklearn.LGBMRanker",
    "lightgbm.sklearn.LGBMRegressor",
    "numpy.dtype",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.gaussian_process.kernels.Sum",
    "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBModel",
    "xgboost.sklearn.XGBRanker",
    "xgboost.sklearn.XGBRegressor",
    "xgboost.sklearn.XGBRFClassifier",
    "xgboost.sklearn.XGBRFRegressor",
)


def check_model(model: Any, allowed: list[str]) -> None:
    """Refuse a loaded model whose trees point outside of themselves, or that holds a function.

    `allowed` are the names that the user trusts.
    """
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.tree._tree import Tree
    from sklearn.utils.validation import check_array

    for part, width in _parts(model):
        if isinstance(part, Tree):
            inner = part.children_left != -1
            _check_tree(part.children_left, part.children_right, inner, part.feature, width)
        elif isinstance(part, TreePredictor):
            nodes, sets = part.nodes, len(part.raw_left_cat_bitsets)
            inner = nodes["is_leaf"] == 0
            _check_tree(nodes["left"], nodes["right"], inner, nodes["feature_idx"], width)
            by_set = inner & (nodes["is_categorical"] != 0)
            if (nodes["bitset_idx"][by_set] >= sets).any():
                raise ValueError("a tree points to a set of categories that is not there")
        elif isinstance(part, partial) and part.func is not check_array:
            if "functools.partial" not in allowed:
                raise ValueError(
                    f"it holds a functools.partial of {part.func!r}; if you know it, add "
                    "--trust functools.partial"
                )


def _check_tree(
    left: np.ndarray, right: np.ndarray, inner: np.ndarray, feature: np.ndarray, width: int
) -> None:
    """Refuse a tree unless each node but the first is one's child, below it, and columns exist."""
    parents = np.flatnonzero(inner)
    children = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    below = (children > np.concatenate([parents, parents])).all()
    if not below or not np.array_equal(np.sort(children), np.arange(1, len(left))):
        raise ValueError("the nodes of a tree do not make a tree")
    columns = feature[inner].astype(np.int64)
    if (columns < 0).any() or (columns >= width).any():
        raise ValueError(f"a tree asks for a column beyond the {width} that the model takes")


def _parts(model: Any) -> Iterator[tuple[Any, int]]:
    """Yield all objects inside a model, with the number of columns of the table they are given."""
    from sklearn.ensemble import BaseEnsemble
    from sklearn.tree import BaseDecisionTree

    stack: list[tuple[Any, int, bool]] = [(model, 0, False)]
    seen: dict[tuple[int, int], Any] = {}  # keeps the objects, so that no number is used twice
    while stack:
        part, width, in_ensemble = stack.pop()
        own = {} if isinstance(part, type) else getattr(part, "__dict__", {})
        if "n_features_in_" in own:
            columns = int(own["n_features_in_"])
            # members of an ensemble do not check again what they are given
            shared = in_ensemble and isinstance(part, BaseDecisionTree)
            width = min(width, columns) if shared else columns
            subsets = own.get("estimators_features_")
            if subsets is not None:
                width = min(map(len, subsets), default=0)
            in_ensemble = isinstance(part, BaseEnsemble)
        if (id(part), width) in seen:
            continue
        seen[id(part), width] = part
        yield part, width
        inside = [*own.values()]
        if isinstance(part, dict):
            inside += part.values()
        elif isinstance(part, list | tuple | set):
            inside += part
        elif isinstance(part, np.ndarray) and part.dtype == object:
            inside += part.ravel().tolist()
        elif isinstance(part, partial):
            inside += [part.func, *part.args, *part.keywords.values()]
        stack += [
            (item, width, in_ensemble)
            for item in inside
            if not isinstance(item, str | int | float | None)
        ]
