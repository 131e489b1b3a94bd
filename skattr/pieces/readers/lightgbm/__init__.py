"""LightGBM: its scikit-learn estimators and its Booster.

It compares in float64, `x <= threshold`, and takes any |x| <= 1e-35 for 0.0. What a node does with
NaN depends on the missing type of its column: none (NaN is 0.0), zero (0.0 and NaN are missing) or
nan. At a split on categories it casts x to an integer, towards zero; values that are not in the
set, NaN and negative ones included, go right. A random forest (`average_output`) is the mean of its
trees, and so is its margin here, though LightGBM's raw_score is their sum.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Trees
from skattr.pieces.readers.lightgbm.front import is_wrapper
from skattr.pieces.readers.lightgbm.text import flagged_columns, parse
from skattr.pieces.readers.lightgbm.trees import TreeFields

# the objectives without a link, unless `sqrt` follows; "" is an objective of the user's own
PLAIN = {
    "",
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "quantile",
    "mape",
    "lambdarank",
    "rank_xendcg",
}


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    kinds = {(kind.__module__, kind.__name__) for kind in type(estimator).__mro__}
    wrapper = ("lightgbm.sklearn", "LGBMModel") in kinds
    remote = any(module == "lightgbm.dask" for module, _ in kinds)
    if remote or not (wrapper or ("lightgbm.basic", "Booster") in kinds):
        return ()
    if ("lightgbm.sklearn", "LGBMClassifier") in kinds:
        return ("raw",)
    name, *options = _header(estimator).get("objective", "").split() or [""]
    return ("predict", "raw") if name in PLAIN and "sqrt" not in options else ("raw",)


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return LightGBM's prediction before the link, (n,) or (n, k); for a forest, the mean."""
    if sparse.issparse(X):
        X = sparse.csr_matrix(X)  # LightGBM copies a sparse array, with a warning
    result = estimator.predict(X, raw_score=True)
    head = _header(estimator)
    if "average_output" in head:
        booster = _booster(estimator)
        n_iterations = booster.num_trees() // int(head["num_tree_per_iteration"])
        best = booster.best_iteration
        result = result / (min(best, n_iterations) if best > 0 else n_iterations)
    return result


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read a fitted estimator or a Booster, up to its best iteration as `predict` does."""
    if is_wrapper(estimator) and estimator.get_params().get("pred_early_stop"):
        raise Unreadable("with pred_early_stop LightGBM skips trees, which ones depends on the row")
    text = _booster(estimator).model_to_string()
    head, fields = parse(text)
    if head.get("version") != "v4":
        raise _unknown(head, "only v4 is")
    if "1" in fields.get("is_linear", []):
        raise Unreadable("linear_tree=True: the leaves of LightGBM are linear, not constant")
    if not fields:
        raise Unreadable("the LightGBM model has no trees")
    try:
        flagged = flagged_columns(text)
        return [TreeFields(estimator, _booster(estimator), head, fields, flagged).trees()]
    except (KeyError, ValueError, IndexError) as error:
        raise _unknown(head, repr(error)) from error


def _unknown(head: dict[str, str], reason: str) -> Unreadable:
    return Unreadable(
        f"the model format {head.get('version')} of lightgbm {version('lightgbm')} is not known "
        f"here ({reason})"
    )


def _booster(estimator: Any) -> Any:
    return estimator.booster_ if is_wrapper(estimator) else estimator


def _header(estimator: Any) -> dict[str, str]:
    return parse(_booster(estimator).model_to_string(num_iteration=1))[0]
