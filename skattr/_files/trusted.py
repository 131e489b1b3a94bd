"""The types that a .skops file may hold without --trust, and how a file is checked.

skops trusts scikit-learn's public estimators and numpy's ufuncs itself. A file may build any type
that is trusted with any attributes, so a type is listed here only if that runs no code but the
library's own, and writes nothing: numbers, settings, and containers of them. Functions and classes
of the user's, bound methods, scorers and search trees (k-nearest neighbours) are not listed. A type
may come only the way that skops writes it (`check_file`, before anything is built): as an object
with attributes, say, but not as a call of its constructor.

Boosting libraries parse their own models. Compiled code of scikit-learn and scipy does not look
where a child, a column or a knot is, so `intact.py` looks at that before a model is used.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any
from zipfile import ZipFile

import numpy as np

# skops' way to write it → names
TRUSTED = {
    "DictNode": ("collections.OrderedDict", "sklearn.utils._bunch.Bunch"),
    "DTypeNode": ("numpy.dtype",),
    "FunctionNode": (
        "scipy._lib.array_api_compat.numpy._aliases.asarray",
        "sklearn.utils.validation.check_array",
    ),
    "ObjectNode": (
        "catboost.core.CatBoost",
        "catboost.core.CatBoostClassifier",
        "catboost.core.CatBoostRanker",
        "catboost.core.CatBoostRegressor",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMModel",
        "lightgbm.sklearn.LGBMRanker",
        "lightgbm.sklearn.LGBMRegressor",
        "scipy.interpolate._bsplines._BSpline",
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
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBModel",
        "xgboost.sklearn.XGBRanker",
        "xgboost.sklearn.XGBRegressor",
        "xgboost.sklearn.XGBRFClassifier",
        "xgboost.sklearn.XGBRFRegressor",
    ),
    "PartialNode": ("functools.partial",),  # only of check_array, see _files/intact.py
    "SparseMatrixNode": (
        "scipy.sparse._csc.csc_array",
        "scipy.sparse._csc.csc_matrix",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
    ),
    "TreeNode": ("sklearn.tree._tree.Tree",),
    "TypeNode": ("collections.OrderedDict",),
}
NAMES = frozenset(name for names in TRUSTED.values() for name in names)


def check_file(path: str, allowed: list[str]) -> None:
    """Refuse a .skops file that builds a trusted type in another way than skops does.

    `allowed` are the names that the user trusts.
    """
    with ZipFile(path) as archive:
        schema = json.loads(archive.read("schema.json"))
        exact: dict[Any, dict] = {}  # arguments of calls, by the number that stands for them
        for state in _states(schema):
            loader, name = state["__loader__"], f"{state['__module__']}.{state['__class__']}"
            if name in NAMES and name not in TRUSTED.get(loader, ()) and name not in allowed:
                raise ValueError(f"it builds {name} by {loader}, which skops does not do")
            arguments = []
            if loader == "DictNode":  # keys are made by calls of their types
                arguments = [state["key_types"], *_contents(state["key_types"], "ListNode")]
                _check_loaders(arguments[1:], ["TypeNode"] * len(arguments[1:]))
            elif loader == "TreeNode":
                arguments = [state["__reduce__"]["args"]]
                arguments += _contents(arguments[0], "TupleNode")
                _check_tree_arguments(arguments[1:], archive)
            exact |= {state.get("__id__"): state for state in arguments}
    # skops returns the object that it has built under the same number, and ignores this one
    for state in _states(schema):
        if exact.get(number := state.get("__id__"), state) != state and number is not None:
            raise ValueError("one number stands for two objects")


def _states(schema: Any) -> Iterator[dict]:
    """Yield the descriptions of all objects in a file."""
    stack = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                yield item
            stack += item.values()
        elif isinstance(item, list):
            stack += item


def _contents(state: dict, loader: str) -> list[dict]:
    _check_loaders([state], [loader])
    return state["content"]


def _check_loaders(states: list[dict], loaders: list[str]) -> None:
    if [state["__loader__"] for state in states] != loaders:
        raise ValueError("an argument is not what skops writes")


def _check_tree_arguments(states: list[dict], archive: ZipFile) -> None:
    """Refuse arguments of scikit-learn's Tree that it would read beyond the end."""
    _check_loaders(states, ["JsonNode", "NdArrayNode", "JsonNode"])
    columns, outputs = (json.loads(states[k]["content"]) for k in (0, 2))
    classes = np.load(io.BytesIO(archive.read(states[1]["file"])), allow_pickle=False)
    whole = type(columns) is int and type(outputs) is int and classes.dtype.kind == "i"
    if not whole or outputs < 1 or classes.shape != (outputs,) or classes.min() < 1:
        raise ValueError("a tree does not say how many classes its outputs have")
