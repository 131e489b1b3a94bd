"""What LightGBM does to X before it compares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array

from skattr._inputs import frames
from skattr._typing import override
from skattr.pieces.parts import Front

TINY = float(np.float32(1e-35))  # any |x| <= TINY is 0.0


def is_wrapper(estimator: Any) -> bool:
    """Tell a scikit-learn estimator from a Booster."""
    return hasattr(estimator, "get_params")


class LightGBMFront(Front):
    """What LightGBM does to X before it compares.

    `categories` holds the levels of the columns that had pandas' category type in training, `codes`
    the integers of the levels of a column, `whole` the columns of levels that the model also
    compares as numbers, and `zero_is_missing` tells for which columns 0.0 means missing.
    """

    takes_missing = True
    takes_infinite = True

    def __init__(self, estimator: Any, n_columns: int, categories: dict[int, list] | None) -> None:
        self.estimator = estimator
        self.columns = np.arange(n_columns)
        self.categories = categories
        self.codes: dict[int, np.ndarray] = {}
        self.whole: set[int] = set()
        self.zero_is_missing = np.zeros(n_columns, bool)

    @override
    def changes(self, c: int) -> tuple:
        return ("zero is missing",) if self.zero_is_missing[c] else ()

    @override
    def inputs(self, X: Any) -> np.ndarray:
        values = self._frame(X) if frames.is_frame(X) else self._array(X)
        if values.shape[1] != len(self.columns):
            raise ValueError(
                f"X has {values.shape[1]} columns, but LightGBM was trained on {len(self.columns)}"
            )
        if self.codes or self.zero_is_missing.any():
            values = values.copy()
        for c, codes in self.codes.items():
            values[:, c] = self._levels(values[:, c], codes, c, X)
        for c in np.flatnonzero(self.zero_is_missing).tolist():
            values[np.abs(values[:, c]) <= TINY, c] = np.nan
        return values

    def _array(self, X: Any) -> np.ndarray:
        if is_wrapper(self.estimator):  # the check of the scikit-learn interface
            X = check_array(X, ensure_all_finite=False)
        values = np.asarray(X)
        if values.ndim != 2:
            raise ValueError(f"X must have two dimensions, got shape {values.shape}")
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float32)  # also integers
        return values.astype(np.float64, copy=False)

    def _frame(self, X: Any) -> np.ndarray:
        names = frames.labels(X)
        pandas = isinstance(X, pd.DataFrame)
        if pandas:
            self._check_categories(X)
        values = np.empty((len(X), len(names)), order="F")
        for k, name in enumerate(names):
            column = frames.column(X, k)
            if pandas and isinstance(column.dtype, pd.CategoricalDtype):
                wanted = None if self.categories is None else self.categories[k]
                values[:, k] = _codes(column, wanted)
            elif _is_number(column.dtype):
                values[:, k] = frames.to_float(column)
            else:
                raise ValueError(f"column {name!r}: LightGBM does not accept {column.dtype}")
        return values

    def _check_categories(self, X: pd.DataFrame) -> None:
        """Refuse category columns other than in training: LightGBM tells them by their order.

        A model that was not trained on a frame uses each column's own codes.
        """
        if self.categories is None:
            return
        in_X = {k for k, kind in enumerate(X.dtypes) if isinstance(kind, pd.CategoricalDtype)}
        for k in sorted(in_X ^ set(self.categories)):
            name = X.columns[k] if k < X.shape[1] else k
            now, then = ("is", "numbers") if k in in_X else ("is not", "categories")
            raise ValueError(
                f"column {name!r} {now} of type category, where the model seems to have {then}"
            )

    def _levels(self, values: np.ndarray, codes: np.ndarray, c: int, X: Any) -> np.ndarray:
        """Return the numbers of the levels, NaN where there is none."""
        if not len(codes):  # a category column that was empty in training
            return np.full(len(values), np.nan)
        with np.errstate(invalid="ignore"):
            whole = np.trunc(values)
        number = np.searchsorted(codes, whole).clip(max=len(codes) - 1)
        known = codes[number] == whole
        wrong = ~np.isnan(values) & ~(known & (whole == values))
        if c in self.whole and wrong.any():
            name, value = frames.labels(X)[c], values[wrong][0]
            raise ValueError(f"column {name!r}: {value} is not the number of a category")
        return np.where(known, number, np.nan)


def _codes(column: pd.Series, categories: list | None) -> np.ndarray:
    """Return the codes of a category column, NaN for missing and unknown levels."""
    if categories is not None and list(column.cat.categories) != categories:
        column = column.cat.set_categories(categories)
    codes = column.cat.codes.to_numpy(np.float64)
    return np.where(codes < 0, np.nan, codes)


def _is_number(dtype: Any) -> bool:
    """Tell whether LightGBM accepts columns of a type of pandas or narwhals."""
    kind = getattr(dtype, "type", None)
    if kind is None:
        return dtype.is_integer() or dtype.is_float() or str(dtype) == "Boolean"
    return issubclass(kind, np.integer | np.floating | np.bool_) and not issubclass(
        kind, np.timedelta64 | np.longdouble
    )
