"""What CatBoost does to X before it compares."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._typing import override
from skattr.pieces.parts import Front

CATEGORY = "OneHotFeature"  # the type of a split on a category


def library() -> Any:
    """Return catboost, or say how to install it."""
    try:
        import catboost
    except ImportError as error:
        raise ImportError("CatBoost models need pip install 'skattr[boosters]'") from error
    return catboost


@contextmanager
def refusals(X: Any) -> Iterator[None]:
    """Turn CatBoost's errors about X, of many types, into a ValueError that names the column."""
    try:
        yield
    except Exception as error:
        match = re.search(r"feature_idx=(\d+)", str(error))
        name = f"column {frames.labels(X)[int(match[1])]!r}: " if match else ""
        raise ValueError(f"{name}CatBoost refuses X: {error}") from error


class CatFront(Front):
    """CatBoost's own containers, and a model, the probe, that returns the numbers of categories.

    The inputs are the columns that some split uses, first numbers, then categories.
    """

    takes_missing = True  # as numbers; `inputs` refuses missing categories, as the library does
    takes_infinite = True
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        estimator: Any,
        info: dict,
        numeric: np.ndarray,
        categorical: np.ndarray,
        hashes: list[np.ndarray],
    ) -> None:
        kinds = [info.get("float_features", []), info.get("categorical_features", [])]
        flat = [{f["feature_index"]: f["flat_feature_index"] for f in kind} for kind in kinds]
        self.estimator = estimator
        self.numeric = np.array([flat[0][f] for f in numeric], np.intp)
        self.columns = np.append(self.numeric, [flat[1][f] for f in categorical]).astype(np.intp)
        self.categorical = sorted(flat[1].values())  # also those that no split uses
        # empty for a model that was fitted on an array
        self.names = {f["flat_feature_index"]: f["feature_id"] for kind in kinds for f in kind}
        self.probe = _probe(info, categorical, hashes) if hashes else None

    @override
    def inputs(self, X: Any) -> np.ndarray:
        Pool = library().Pool
        self._check(X)
        with refusals(X):
            pool = Pool(X, cat_features=self.categorical)
            levels = self._level_numbers(pool)
            if not len(self.numeric):
                return levels
            if self.categorical:  # a container with categories does not show its numbers
                table = X.tocsr() if hasattr(X, "tocsr") else X
                floats = Pool(frames.take_columns(table, self.numeric.tolist())).get_features()
            else:
                floats = pool.get_features()[:, self.numeric]
            return np.append(floats, levels, axis=1)

    def _level_numbers(self, pool: Any) -> np.ndarray:
        """Return the number of each category, NaN for one that is not known."""
        predict = library().CatBoost.predict
        if self.probe is None:
            predict(self.estimator, pool, ntree_end=1)  # only for its checks of names and widths
            return np.empty((pool.num_row(), 0), np.float32)
        numbers = predict(self.probe, pool).reshape(pool.num_row(), -1).astype(np.float32)
        return np.where(numbers > 0, numbers - 1, np.float32(np.nan))

    def _check(self, X: Any) -> None:
        """Refuse columns in another order, and missing categories, which may end the process."""
        if not frames.is_frame(X):
            return
        labels = [str(name) for name in frames.labels(X)]
        for k in self.columns:
            name = self.names[k]
            if name and name in labels and labels.index(name) != k:
                raise ValueError(
                    f"column {name!r} is number {labels.index(name)} of X, but number {k} of the "
                    "model: bring the columns into the model's order"
                )
        for k in self.categorical:
            values = frames.column(X, k) if k < len(labels) else pd.Series()
            # checked here, because a polars Categorical with a null ends the process
            missing = values.is_null() if isinstance(values, nw.Series) else values.isna()
            if missing.any():
                raise ValueError(
                    f"column {labels[k]!r} has missing values, which CatBoost does not accept as "
                    "categories; give them a name"
                )


def _probe(info: dict, categorical: np.ndarray, hashes: list[np.ndarray]) -> Any:
    """Return a model with one output per column of categories: 1 + number, 0 if not known.

    It has the features of the model, so that it accepts and refuses the same X.
    """
    width = len(hashes)
    trees: list[dict] = []
    for o, (feature, known) in enumerate(zip(categorical.tolist(), hashes, strict=True)):
        for number, category in enumerate(known.tolist()):
            split = {
                "split_type": CATEGORY,
                "split_index": len(trees),
                "cat_feature_index": feature,
                "value": category,
            }
            leaves = np.zeros((2, width))
            leaves[1, o] = number + 1
            trees.append(
                {"splits": [split], "leaf_values": leaves.ravel().tolist(), "leaf_weights": [0, 0]}
            )
    of_feature = dict(zip(categorical.tolist(), hashes, strict=True))
    features = {
        "float_features": [{**f, "borders": []} for f in info.get("float_features", [])],
        "categorical_features": [
            {**f, "values": np.asarray(of_feature.get(f["feature_index"], [])).tolist()}
            for f in info["categorical_features"]
        ],
    }
    model = {
        "features_info": features,
        "model_info": {},
        "oblivious_trees": trees,
        "scale_and_bias": [1, [0.0] * width],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probe.json")
        path.write_text(json.dumps(model))
        return library().CatBoost().load_model(str(path), format="json")
