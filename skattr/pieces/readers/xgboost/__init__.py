"""XGBoost: the estimators of its scikit-learn interface, and its own Booster.

It casts x to float32 and goes left if `x < threshold`; missing goes where the node says. A split on
categories sends those of its set right and all others left. It is a sum of boxes on the scale of
its margin, before the link, which it adds up in float32. A Booster is read with all its trees, as
its `inplace_predict` uses them; the estimators stop at the best iteration.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from skattr import frames
from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Trees
from skattr.pieces.readers.xgboost.trees import read_trees
from skattr.pieces.readers.xgboost.ubjson import Parser

# the objectives whose prediction is the margin, all rankings among them
NO_LINK = (
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "binary:logitraw",
    "rank:",
)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    kinds = [kind for kind in type(estimator).__mro__ if kind.__module__.startswith("xgboost.")]
    names = {kind.__name__ for kind in kinds}
    if not names & {"XGBModel", "Booster"} or any("dask" in kind.__module__ for kind in kinds):
        return ()
    objective = json.loads(_booster(estimator).save_config())["learner"]["objective"]["name"]
    if "XGBClassifier" in names or not objective.startswith(NO_LINK):
        return ("raw",)
    return ("predict", "raw")


def _booster(estimator: Any) -> Any:
    return estimator.get_booster() if hasattr(estimator, "get_booster") else estimator


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return XGBoost's own margin, (n,) or (n, k)."""
    return _call(estimator, X, raw=True)


def predict(estimator: Any, X: Any) -> np.ndarray:
    """Return XGBoost's own prediction."""
    return _call(estimator, X, raw=False)


def _call(estimator: Any, X: Any, raw: bool) -> np.ndarray:
    """Return XGBoost's own prediction; a Booster takes X itself, not a DMatrix."""
    if hasattr(estimator, "get_booster"):
        return estimator.predict(X, output_margin=raw)
    if json.loads(estimator.save_config())["learner"]["gradient_booster"]["name"] != "gblinear":
        try:
            return estimator.inplace_predict(X, predict_type="margin" if raw else "value")
        except TypeError:  # a container that only a DMatrix accepts
            pass
    import xgboost

    types = None if frames.is_frame(X) else estimator.feature_types
    matrix = xgboost.DMatrix(X, feature_types=types, enable_categorical=True)
    return estimator.predict(matrix, output_margin=raw, validate_features=frames.is_frame(X))


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read a fitted estimator or a Booster."""
    version = None
    try:
        saved = Parser(bytes(_booster(estimator).save_raw("ubj"))).value()
        version = ".".join(map(str, saved["version"]))
        return [read_trees(estimator, _booster(estimator), saved)]
    except (KeyError, IndexError, TypeError, ValueError, struct.error) as error:
        raise Unreadable(
            f"the format (ubj) of XGBoost {version or 'of this version'} is not known here "
            f"({type(error).__name__}: {error})"
        ) from error
