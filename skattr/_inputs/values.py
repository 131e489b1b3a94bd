"""How values that a user gives become values of a column of the background.

A value is brought to the column's dtype where that dtype holds it exactly: 2.0 is an integer, "a" a
category, a date of another unit a date. Nothing is rounded, truncated or parsed. What the dtype
does not hold (2.6 or a missing value among integers, a new category) is kept as it is. `explain`,
`curve`, `Baseline` and files all come in through `settle`; what a cell of a file means is read
before (`_files/cells.py`).

Behind fitted steps, which compute in the background's dtype, a model of boxes tells apart only what
a column of float32 holds: other numbers are `rounded` to it there, with a warning.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

EXACT = 2**53  # up to here float64 holds all integers
NUMERIC = "biuf"  # kinds of numpy's dtypes of numbers


def is_missing(value: Any) -> bool:
    """Tell whether a single value is missing."""
    if isinstance(value, float):
        return value != value
    missing = pd.isna(value)
    return isinstance(missing, bool | np.bool_) and bool(missing)


def as_objects(values: Iterable) -> np.ndarray:
    """Return values as an array of objects, whatever they are."""
    values = list(values)
    result = np.empty(len(values), object)
    result[:] = values
    return result


def settle(values: Any, like: Any) -> Any:
    """Return values as a column of the kind of `like`: of its dtype, if that holds all of them.

    Otherwise they stay what they are: numbers of a wider dtype, objects, or levels of a category
    dtype that has the new ones too. Numbers of numpy's dtypes go by their dtype alone, so that no
    value depends on its company.

    Parameters
    ----------
    values : list, array, or Series of pandas, polars or narwhals
        The values.
    like : Series of pandas or narwhals, or array
        A column of the background.
    """
    if isinstance(like, nw.Series):
        return _settle_narwhals(values, like)
    series = as_series(values)
    if isinstance(like, np.ndarray):
        return _settle_array(series, like.dtype)
    dtype = like.dtype
    if _is_numpy_number(series.dtype) and _is_numpy_number(dtype):
        return series.astype(dtype) if np.can_cast(series.dtype, dtype) else series
    column, fits = held(series, dtype)
    if fits.all():
        return column
    if isinstance(dtype, pd.CategoricalDtype):
        unknown = [v for v in series[~fits] if not is_missing(v)]
        if not all(isinstance(v, Hashable) for v in unknown):
            return series  # no categories, which the model refuses
        more = list(dict.fromkeys(unknown))
        return series.astype(object).astype(
            pd.CategoricalDtype([*dtype.categories, *more], dtype.ordered)
        )
    kind = _numpy_kind(dtype)
    if kind is None or any(v is None or (kind.kind == "b" and is_missing(v)) for v in series):
        return series
    return series.infer_objects()


def settle_one(value: Any, like: Any, what: str) -> Any:
    """Return one value as a column of the kind of `like`, or refuse it naming `what` it is.

    A number, or a missing value, that a column of numbers or booleans does not hold is kept.
    """
    column = settle(as_objects([value]), like)
    if isinstance(like, np.ndarray):
        fits = column.dtype.kind == like.dtype.kind or like.dtype == object
    else:
        fits = column.dtype == like.dtype
    number = isinstance(value, Real | np.bool_) or is_missing(value)
    if fits or (number and _is_number(like.dtype)):
        return column
    raise ValueError(f"{what} must be one that the background's column holds, got {value!r}; "
                     f"the column holds {in_words(like)}")  # fmt: skip


def _is_number(dtype: Any) -> bool:
    """Tell whether a dtype of any library is one of numbers or booleans."""
    if isinstance(dtype, nw.dtypes.DType):
        return dtype.is_numeric() or dtype == nw.Boolean
    return _numpy_kind(dtype) is not None


def narrow_float(like: Any) -> np.dtype | None:
    """Return the dtype of a column of float32 or float16, None of any other column."""
    if isinstance(like.dtype, nw.dtypes.DType):
        return np.dtype("f4") if like.dtype == nw.Float32 else None
    kind = _numpy_kind(like.dtype)
    return kind if kind is not None and kind.kind == "f" and kind.itemsize < 8 else None


def rounded(values: Any, like: Any) -> Any:
    """Return numbers rounded to the dtype of a column of float32 or float16, else as they are."""
    kind = narrow_float(like)
    if kind is None:
        return values
    series = as_series(values)
    missing = series.isna().to_numpy(bool)
    numbers = _numbers(series, missing)
    if numbers is None:
        return values
    with np.errstate(over="ignore"):
        return np.where(missing, np.nan, numbers).astype(kind)


def is_held(values: Any, like: Any) -> bool:
    """Tell whether a column of float32 or float16 holds all of some numbers; others hold all."""
    kind = narrow_float(like)
    if kind is None:
        return True
    series = as_series(values)
    missing = series.isna().to_numpy(bool)
    numbers = _numbers(series, missing)
    return numbers is None or bool((missing | _fitting(numbers, kind)).all())


def in_words(column: Any) -> str:
    """Say what a column holds."""
    dtype = column.dtype
    if isinstance(dtype, nw.dtypes.DType):
        return f"{dtype} values"
    if isinstance(dtype, pd.CategoricalDtype):
        names = [repr(level) for level in dtype.categories.tolist()]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        return f"the categories {', '.join(names[:8])}{more}"
    return f"{dtype} values" if _takes_missing(dtype) else f"{dtype} values and no missing ones"


def number(value: Any, what: str) -> float:
    """Return a number as a float, or refuse what is not one or would be rounded."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ValueError(f"{what} must be a number, got {value!r}")
    if isinstance(value, int | np.integer) and not _exactly(int(value)):
        raise ValueError(f"{what} must be a number that float64 holds, got {value!r}")
    return float(value)


def as_series(values: Any) -> pd.Series:
    """Return values as a pandas Series without looking into objects."""
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    if isinstance(values, nw.Series):
        values = values.to_list()
    if isinstance(values, np.ndarray):
        objects = values.dtype.kind in "OUS"
        return pd.Series(values.astype(object) if objects else values,
                         dtype=object if objects else values.dtype)  # fmt: skip
    if isinstance(values, pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(values)
    return pd.Series(as_objects(values), dtype=object)


def held(series: pd.Series, dtype: Any) -> tuple[pd.Series, np.ndarray]:
    """Return values in a pandas dtype, and whether it holds them; where not, there is a filler."""
    if series.dtype == dtype and not isinstance(dtype, pd.CategoricalDtype):
        return series, np.ones(len(series), bool)
    if dtype == np.dtype(object):
        plain = series.astype(object)
        if series.dtype != object and series.isna().any():  # NA and NaT are strange among objects
            plain = plain.where(series.notna(), np.nan).astype(object)
        return plain, np.ones(len(series), bool)
    missing = series.isna().to_numpy(bool)
    if isinstance(dtype, pd.CategoricalDtype):
        codes = _places(series, dtype.categories)
        column = pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
        return column, missing | (codes >= 0)
    kind = _numpy_kind(dtype)
    numbers = _numbers(series, missing) if kind else None
    if kind and numbers is not None:
        fits = np.where(missing, _takes_missing(dtype), _fitting(numbers, kind))
        column = pd.Series(np.where(fits & ~missing, numbers, 0).astype(kind)).astype(dtype)
        return column.mask(missing & fits), fits
    return _one_by_one(series, missing, dtype)


def _one_by_one(series: pd.Series, missing: np.ndarray, dtype: Any) -> tuple[pd.Series, np.ndarray]:
    """Bring each distinct value to a dtype."""
    kinds, distinct = _factorized(series)
    held_values = [_one(value, dtype) for value in distinct]
    fits = np.array([value is not None for value in held_values] + [_takes_missing(dtype)], bool)
    filler = next((value for value in held_values if value is not None), None)
    values = [filler if value is None else value for value in held_values]
    if filler is None and not _takes_missing(dtype):
        return series, fits[kinds]
    # what is missing, or does not fit, is missing here
    column = pd.Series(pd.array([*values, None], dtype=dtype) if _takes_missing(dtype)
                       else pd.array(values, dtype=dtype))  # fmt: skip
    rows = np.where(kinds < 0, len(values) if _takes_missing(dtype) else 0, kinds)
    return column.iloc[rows].reset_index(drop=True), fits[kinds]


def _one(value: Any, dtype: Any) -> Any:
    """Return a value that is not missing as a dtype has it, or None if it does not hold it."""
    text = pd.api.types.is_string_dtype(dtype)
    if text or isinstance(value, str):
        return value if text and isinstance(value, str) else None
    if getattr(dtype, "kind", "") in ("m", "M"):
        of_kind = (datetime, np.datetime64) if dtype.kind == "M" else (timedelta, np.timedelta64)
        if not isinstance(value, of_kind):
            return None
    kind = _numpy_kind(dtype)
    if isinstance(value, int) and kind is not None and not _exactly(value):
        ends = np.iinfo(kind) if kind.kind in "iu" else None
        return value if ends is not None and ends.min <= value <= ends.max else None
    with suppress(Exception):  # each dtype has errors of its own
        one = pd.Series([value], dtype=dtype).iloc[0]
        return one if bool(one == value) else None
    return None


def _places(series: pd.Series, categories: pd.Index) -> np.ndarray:
    """Return the positions of values among categories, -1 for others and for missing ones."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        among = np.append(_places(pd.Series(series.cat.categories), categories), -1)
        return among[series.cat.codes.to_numpy()]
    kinds, distinct = _factorized(series)
    known = {category: position for position, category in enumerate(categories.tolist())}
    among = np.array([known.get(value, -1) for value in pd.Series(distinct).tolist()] + [-1], int)
    return among[kinds]


def _is_numpy_number(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in NUMERIC


def _numpy_kind(dtype: Any) -> np.dtype | None:
    """Return numpy's dtype of numbers or booleans that a dtype of any kind is, or None."""
    kind = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", None)
    return kind if isinstance(kind, np.dtype) and kind.kind in NUMERIC else None


def _takes_missing(dtype: Any) -> bool:
    return not isinstance(dtype, np.dtype) or dtype.kind in "fmMO"


def _numbers(series: pd.Series, missing: np.ndarray) -> np.ndarray | None:
    """Return numbers as an array, any where they are missing; None if they are not numbers."""
    kind = _numpy_kind(series.dtype)
    if kind is not None:
        there = series if isinstance(series.dtype, np.dtype) else series.fillna(kind.type(0))
        return np.where(missing, kind.type(0), there.to_numpy(dtype=kind))
    if series.dtype != object:
        return None
    there = series[~missing]
    if not all(isinstance(v, Real | np.bool_) for v in there):
        return None
    if not all(isinstance(v, float | np.floating) or _exactly(int(v)) for v in there):
        return None
    result = np.zeros(len(series))
    result[~missing] = [float(v) for v in there]
    return result if (result[~missing] == there.to_numpy()).all() else None


def _exactly(value: int) -> bool:
    return abs(value) <= EXACT or float(value) == value


def _fitting(numbers: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Tell which numbers a dtype holds exactly."""
    if np.can_cast(numbers.dtype, kind) and (numbers.dtype.kind == kind.kind or kind.kind != "f"):
        return np.ones(len(numbers), bool)
    with np.errstate(all="ignore"):
        if kind.kind == "b":
            return (numbers == 0) | (numbers == 1)
        if kind.kind in "iu" and numbers.dtype.kind == "f":
            ends = np.iinfo(kind)
            inside = (numbers >= float(ends.min)) & (numbers < float(ends.max) + 1.0)
            return inside & (numbers == np.floor(numbers))
        back = numbers.astype(kind)
        if kind.kind == "f" and numbers.dtype.kind in "iu":  # 2**63 - 1 would round up, and pass
            return (back == numbers) & (np.abs(back) < 2.0**63)
        return back == numbers


def _settle_array(series: pd.Series, dtype: np.dtype) -> np.ndarray:
    """Return values as an array for a table of one dtype."""
    if dtype.kind == "U":
        words = [isinstance(value, str) for value in series]
        return np.array(series.to_list(), str) if all(words) else series.to_numpy(object)
    if _is_numpy_number(series.dtype) and _is_numpy_number(dtype):
        return series.to_numpy(np.result_type(series.dtype, dtype))
    column, fits = held(series, dtype)
    if fits.all():
        return column.to_numpy()
    missing = series.isna().to_numpy(bool)
    numbers = _numbers(series, missing) if _is_numpy_number(dtype) else None
    return series.to_numpy() if numbers is None else np.where(missing, np.nan, numbers)


def _settle_narwhals(values: Any, like: nw.Series) -> nw.Series:
    """Return values as a column of another library's frame."""
    if not isinstance(values, nw.Series):
        with suppress(TypeError):
            values = nw.from_native(values, series_only=True)
    if isinstance(values, nw.Series) and values.implementation == like.implementation:
        if values.dtype == like.dtype:
            return values.alias(like.name)
    items = as_series(values).to_list()
    if not like.dtype.is_numeric():  # only numbers have NaN
        items = [None if is_missing(item) else item for item in items]
    make = nw.new_series
    with suppress(Exception):  # each library has errors of its own
        new = make(like.name, items, dtype=like.dtype, backend=like.implementation)
        if all(map(_same, new.to_list(), items)):
            return new
    if isinstance(values, nw.Series) and values.implementation == like.implementation:
        return values.alias(like.name)
    return make(like.name, items, backend=like.implementation)


def _same(a: Any, b: Any) -> bool:
    """Tell whether two values are equal, or both missing; a text is never a number."""
    if is_missing(a) or is_missing(b):
        return is_missing(a) and is_missing(b)
    return isinstance(a, str) == isinstance(b, str) and bool(a == b)


def _factorized(series: pd.Series) -> tuple[np.ndarray, Any]:
    """Return the number of each row's distinct value, and these values.

    What has no hash, such as a list, counts as Ellipsis, which no dtype holds.
    """
    plain = _plain_array(series)
    if plain.dtype == object and not all(isinstance(value, Hashable) for value in plain):
        plain = as_objects([v if isinstance(v, Hashable) else Ellipsis for v in plain])
    return pd.factorize(plain)


def _plain_array(series: pd.Series) -> Any:
    """Return the values of a column: an array of numpy for numbers and objects, else of pandas."""
    plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "biufcO"
    return series.to_numpy() if plain else series.array
