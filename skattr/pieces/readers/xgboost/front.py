"""What XGBoost does to X before it compares."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._typing import override
from skattr.pieces.parts import Front


class BoosterFront(Front):
    """XGBoost's checks of X, its numbers for categories and the cast to float32."""

    takes_missing = True
    takes_infinite = True
    dtype = np.dtype(np.float32)
    absent = np.nan

    def __init__(self, learner: dict, names: dict, n_codes: dict, missing: np.float32) -> None:
        self.columns = np.arange(int(learner["learner_model_param"]["num_feature"]))
        self.labels = list(learner["feature_names"])
        self.names = names  # column → its categories
        self.n_codes = n_codes  # column → how many numbers of categories are told apart
        self.missing = missing  # a value that means missing, besides NaN

    @override
    def changes(self, c: int) -> tuple:
        if np.isnan(self.missing) or c in self.names or c in self.n_codes:
            return ()
        return ("missing", float(self.missing))

    @override
    def inputs(self, X: Any) -> np.ndarray:
        labels = frames.labels(X) if len(X.shape) == 2 else []
        if len(labels) != len(self.columns):
            raise ValueError(
                f"X has shape {X.shape}, but XGBoost was fitted on {len(self.columns)} columns"
            )
        with np.errstate(over="ignore"):
            values = self._frame(X, labels) if frames.is_frame(X) else self._array(X)
        values[values == self.missing] = np.nan
        for c, n in self.n_codes.items():
            codes = values[:, c]
            if (np.isfinite(codes) & (codes != np.trunc(codes))).any():
                raise ValueError(f"column {labels[c]!r}: categories must be whole numbers")
            codes[(codes < 0) | (codes >= n)] = n
        return values

    def _array(self, X: Any) -> np.ndarray:
        X = np.asarray(X)
        if X.dtype.kind not in "biufO":
            raise ValueError(f"XGBoost does not accept arrays of type {X.dtype}")
        if self.names:
            c = next(iter(self.names))
            raise ValueError(
                f"column {self.labels[c]!r} has categories with names, which an array does not "
                "have: pass a data frame"
            )
        return X.astype(np.float32)

    def _frame(self, X: Any, labels: list) -> np.ndarray:
        names = [" ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in labels]
        if self.labels and names != self.labels:
            raise ValueError(f"feature_names mismatch: XGBoost has {self.labels}, X has {names}")
        values = np.empty((len(X), len(labels)), np.float32, order="F")
        for c, label in enumerate(labels):
            column = frames.column(X, c)
            if _is_categorical(column) != (c in self.names):
                wanted = "categories" if c in self.names else "numbers"
                raise ValueError(f"column {label!r} must hold {wanted}, got type {column.dtype}")
            if c in self.names:
                values[:, c] = _level_numbers(column, self.names[c], label)
            else:
                values[:, c] = _numbers(column, label)
        return values


def _is_categorical(column: Any) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype | nw.Categorical | nw.Enum)


def _numbers(column: Any, label: Any) -> np.ndarray:
    """Return a column of a frame as XGBoost casts it: integers directly to float32."""
    dtype = column.dtype
    if isinstance(column, nw.Series):
        if not (dtype.is_integer() or dtype.is_float() or dtype == nw.Boolean):
            raise ValueError(f"column {label!r} is of type {dtype}, which XGBoost does not accept")
        return (column.to_numpy() if not column.null_count() else frames.to_float(column)).astype(
            np.float32
        )
    if not (pd.api.types.is_any_real_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
        raise ValueError(f"column {label!r} is of type {dtype}, which XGBoost does not accept")
    return column.to_numpy(dtype=np.float32, na_value=np.nan)


def _level_numbers(column: Any, names: np.ndarray, label: Any) -> np.ndarray:
    """Return the model's numbers of a column's categories, whatever their order in X.

    XGBoost does not refuse all categories that it does not know, but takes most of them for others.
    """
    number_of = {name: i for i, name in enumerate(names.tolist())}
    if isinstance(column, nw.Series):
        levels = pd.Index(column.cast(nw.String).to_list(), dtype=object)
        codes = np.where(levels.isna(), -1, np.arange(len(levels)))
        levels = levels.where(~levels.isna(), names[0])
    else:
        levels, codes = column.cat.categories, column.cat.codes.to_numpy()
    if len(levels) == 0 or (names.dtype.kind != "O" and levels.dtype != names.dtype):
        raise ValueError(
            f"column {label!r} has categories of type {levels.dtype}; XGBoost has {names.dtype}"
        )
    unknown = [level for level in levels if level not in number_of]
    if unknown:
        raise ValueError(
            f"column {label!r} has categories that XGBoost does not know: {unknown[:5]}; "
            f"it knows {names.tolist()[:20]}"
        )
    numbers = np.array([number_of[level] for level in levels], np.float32)
    return np.where(codes < 0, np.float32(np.nan), numbers[codes])
