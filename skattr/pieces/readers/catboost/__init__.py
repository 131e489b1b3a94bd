"""CatBoost: regressors, classifiers, rankers and plain models.

A row goes right at a split if float32(x) > border or, at a split on a category, if it has that
category; missing numbers go to the side of the column's `nan_mode`, left where training saw none.
A model keeps only hashes of its categories, so the library itself is asked which one a raw value
is: a second model, the probe, has one tree per category, which returns its number. All sums are in
float64. Learned statistics of categories, texts and embeddings are not boxes.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Trees
from skattr.pieces.readers.catboost.front import import_catboost, refusals
from skattr.pieces.readers.catboost.trees import read_trees


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    kinds = {
        kind.__name__
        for kind in type(estimator).__mro__
        if kind.__module__.partition(".")[0] == "catboost"
    }
    if "CatBoost" not in kinds:
        return ()
    if "CatBoostClassifier" in kinds:
        return ("raw",)
    # only some regressors have a link: plain models and rankers predict the sum of their trees
    if "CatBoostRegressor" in kinds and estimator._get_default_prediction_type() != "RawFormulaVal":
        return ("raw",)
    return ("predict", "raw")


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the sum of the trees, (n,) or (n, k)."""
    library = import_catboost()
    with refusals(X):
        return library.CatBoost.predict(estimator, X, prediction_type="RawFormulaVal")


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read all trees that the model has kept."""
    library = import_catboost()
    exported = _export(estimator)
    try:
        return [read_trees(estimator, exported)]
    except (KeyError, TypeError, IndexError, ValueError, library.CatBoostError) as error:
        raise Unreadable(
            f"the JSON format of catboost {library.__version__} is not known here ({error!r})"
        ) from error


def _export(estimator: Any) -> dict:
    """Return the model as CatBoost's JSON, which holds borders and leaves to the last bit."""
    library = import_catboost()
    for kind in ("text", "embedding"):
        features: list = getattr(estimator, f"get_{kind}_feature_indices", list)()
        if features:
            names = [estimator.feature_names_[k] for k in features]
            raise Unreadable(f"catboost's {kind} features {names} are not boxes")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        try:
            estimator.save_model(str(path), format="json")
        except library.CatBoostError as error:  # such as borders at infinity
            raise Unreadable(
                f"catboost {library.__version__} cannot write the model as JSON: {error}"
            ) from error
        return json.loads(path.read_bytes())
