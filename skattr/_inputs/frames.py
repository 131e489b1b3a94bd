"""Columns of a table, read and written in one way: pandas, polars, another frame, or an array.

pandas is used as itself, because narwhals wants unique names of type str; every other frame goes
through narwhals, never through pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skattr._inputs.values import as_objects, is_missing, settle

NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def is_frame(X: Any) -> bool:
    """Tell whether X is an eager data frame."""
    if isinstance(X, np.ndarray):  # narwhals is slow to tell
        return False
    return isinstance(X, pd.DataFrame) or nw.dependencies.is_into_dataframe(X)


def _frame(X: Any) -> nw.DataFrame:
    return nw.from_native(X, eager_only=True)


def labels(X: Any) -> list:
    """Return the names of the columns: those of a frame, x0, x1, … for an array."""
    if isinstance(X, pd.DataFrame):
        return list(X.columns)
    if is_frame(X):
        return list(_frame(X).columns)
    return [f"x{k}" for k in range(X.shape[1])]


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows, given as a slice (no copy where possible) or an array of positions."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    if is_frame(X):
        return _frame(X)[rows, :].to_native()
    return X[rows]


def _is_other_frame(X: Any) -> bool:
    return is_frame(X) and not isinstance(X, pd.DataFrame)


def copy(X: Any) -> Any:
    """Return a copy of a table that may be written to."""
    return _frame(X).clone().to_native() if _is_other_frame(X) else X.copy()


def some_rows(X: Any) -> Iterator:
    """Yield up to 32 rows spread over X, those with the fewest missing values first."""
    positions = np.unique(np.linspace(0, len(X) - 1, 32).astype(int))
    some = take_rows(X, positions)
    columns = [to_list(column(some, k)) for k in range(len(labels(X)))]
    missing = [sum(map(is_missing, row)) for row in zip(*columns, strict=True)]
    for i in np.argsort(missing, kind="stable").tolist():
        yield take_rows(some, slice(i, i + 1))


def as_table(X: Any, name: str = "X") -> Any:
    """Return a frame as it is, and anything else as an array (n, d); refuse what has no rows."""
    table = X if is_frame(X) else np.asarray(X)
    if len(table.shape) != 2 or 0 in table.shape:
        what = type(X).__name__ if table.ndim == 0 else f"an array of shape {table.shape}"
        raise ValueError(f"{name} must be a DataFrame or an array (n, d) with rows, got {what}")
    if getattr(getattr(table, "dtype", None), "kind", "") == "c":
        raise ValueError(f"{name} must hold real numbers, got complex ones")
    return table


def shifted(X: Any, moved: np.ndarray) -> Any:
    """Return X and below it copies in which some columns are moved on by one row.

    `moved` (m, d) says which columns these are in each copy.
    """
    n = len(X)
    blocks = np.tile(np.arange(n), (len(moved) + 1, 1))
    result = take_rows(X, blocks.ravel())
    columns = []
    for k, here in enumerate(moved.T):
        order = blocks.copy()
        order[1:][here] = np.roll(np.arange(n), 1)
        columns.append(take_values(column(X, k), order.ravel()))
    if isinstance(X, pd.DataFrame):
        result = result.reset_index(drop=True)
        for k, values in enumerate(columns):
            _put(result, k, values)
        return result
    if is_frame(X):
        return _frame(result).with_columns(*columns).to_native()
    return np.stack(columns, axis=1)


def mixed(X: Any, at: np.ndarray) -> Any:
    """Return rows whose column k is that of the rows `at[:, k]` of X; at is (n, d)."""
    if isinstance(X, pd.DataFrame):
        result = X.iloc[at[:, 0]].reset_index(drop=True)
        for k in range(1, X.shape[1]):
            _put(result, k, X.iloc[:, k].iloc[at[:, k]])
        return result
    if is_frame(X):
        columns = [take_values(column(X, k), rows) for k, rows in enumerate(at.T)]
        return _frame(take_rows(X, at[:, 0])).with_columns(*columns).to_native()
    return X[at, np.arange(X.shape[1])]


def reorder(X: Any, names: list) -> Any:
    """Return the columns of a frame in another order."""
    if isinstance(X, pd.DataFrame):
        # by position: pyarrow's labels hold no lone surrogates
        positions: dict[Any, list[int]] = {}
        for k, name in enumerate(labels(X)):
            positions.setdefault(name, []).append(k)
        return X.iloc[:, [k for name in names for k in positions[name]]]
    return _frame(X).select(names).to_native()


def column(X: Any, k: int) -> Any:
    """Return column k: a pandas Series, a narwhals Series, or an array."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, k]
    if is_frame(X):
        frame = _frame(X)
        return frame[frame.columns[k]]
    return X[:, k]


def take_columns(X: Any, columns: list[int]) -> Any:
    """Return a table of some columns."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, columns]
    return _frame(X)[:, columns].to_native() if is_frame(X) else X[:, columns]


def order_of(values: Any) -> np.ndarray:
    """Return the positions that sort a column, missing values last; unsorted if it has no order."""
    array = to_array(values)
    if array.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in array], bool)
        rows = np.flatnonzero(~missing)
        with suppress(TypeError):
            rows = np.array(sorted(rows, key=lambda i: array[i]), np.intp)
        return np.concatenate([rows, np.flatnonzero(missing)])
    return np.argsort(array, kind="stable")


def take_values(values: Any, rows: np.ndarray) -> Any:
    """Return some values of a column."""
    return values.iloc[rows] if isinstance(values, pd.Series) else values[rows]


def is_level(X: Any, k: int) -> bool:
    """Tell whether a column holds levels (categories, booleans, strings), not numbers."""
    values = column(X, k)
    if isinstance(values, nw.Series):
        return not (values.dtype.is_numeric() or values.dtype.is_temporal())
    kind = values.dtype
    if kind.kind in "iuf":
        return False
    if kind.kind == "O" and not isinstance(
        kind, pd.CategoricalDtype | pd.StringDtype
    ):  # its values decide
        return pd.api.types.infer_dtype(values, skipna=True) not in NUMBERS
    return not pd.api.types.is_any_real_numeric_dtype(kind) and not (
        pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind)
    )


def is_boolean(X: Any, k: int) -> bool:
    """Tell whether a column holds True and False, and maybe missing values; no categories."""
    values = column(X, k)
    if isinstance(values, nw.Series):
        return values.dtype == nw.Boolean
    kind = values.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return False
    if kind.kind == "O":
        return pd.api.types.infer_dtype(values, skipna=True) == "boolean"
    return kind.kind == "b"


def level_order(X: Any, k: int) -> tuple | None:
    """Return the levels of a boolean or an ordered category in their order; None for others."""
    values = column(X, k)
    if is_boolean(X, k):
        return (False, True)
    if isinstance(values, nw.Series):
        return tuple(values.cat.get_categories()) if values.dtype == nw.Enum else None
    kind = values.dtype
    ordered = isinstance(kind, pd.CategoricalDtype) and kind.ordered
    return tuple(kind.categories) if ordered else None


def as_categories(X: Any, k: int, levels: list) -> list:
    """Return levels as the categories of the column that they equal: encoders keep True as 1.0."""
    kind = column(X, k).dtype
    if not isinstance(kind, pd.CategoricalDtype):
        return levels
    categories = {category: category for category in kind.categories.tolist()}
    return [categories.get(level, level) for level in levels]


def is_number(X: Any, k: int) -> bool:
    """Tell whether a column holds numbers: neither levels nor dates."""
    values = column(X, k)
    if isinstance(values, nw.Series):
        return values.dtype.is_numeric()
    return not is_level(X, k) and values.dtype.kind not in "mM"


def is_date(X: Any, k: int) -> bool:
    """Tell whether a column holds dates or durations."""
    return not is_level(X, k) and not is_number(X, k)


def to_array(values: Any) -> np.ndarray:
    """Return a column as a numpy array."""
    if isinstance(values, nw.Series):
        return values.to_numpy()
    return np.asarray(values)


def to_list(values: Any) -> list:
    """Return a column as a list of Python's own values."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "biufO":
            return values.tolist()
        return pd.Series(values).to_list()  # of dates it makes pandas' own
    return values.to_list()


def values_of(levels: Any) -> list:
    """Return levels that an encoder keeps as Python's own values; dates as pandas has them."""
    array = np.asarray(levels)
    return list(pd.Series(array)) if array.dtype.kind in "mM" else array.tolist()


def to_float(values: Any) -> np.ndarray:
    """Return a numeric column as float64, NaN where it is missing."""
    if isinstance(values, pd.Series):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(values, nw.Series):
        return values.cast(nw.Float64).to_numpy()
    return np.asarray(values, dtype=np.float64)


def as_column(values: list) -> pd.Series:
    """Return Python's own values as a column; strings and None stay what they are."""
    column = pd.Series(as_objects(values), dtype=object)
    keep = any(value is None or isinstance(value, str) for value in values)
    return column if keep else column.infer_objects()


def inferred(values: Any) -> pd.Series:
    """Return values as a column of the dtype that pandas infers, or of objects.

    Strings with lone surrogates stay objects: those of pyarrow cannot hold them.
    """
    if hasattr(values, "dtype") and values.dtype != object:
        return pd.Series(values)
    column = pd.Series(values, dtype=object)
    try:
        return column.infer_objects()
    except UnicodeEncodeError:
        return column


def as_index(names: Iterable[Any]) -> pd.Index:
    """Return labels, each of which may be a tuple or hold lone surrogates, as an index."""
    names = list(names)
    try:
        return pd.Index(names, tupleize_cols=False)
    except UnicodeEncodeError:
        return pd.Index(names, dtype=object, tupleize_cols=False)


def any_missing(values: Any) -> bool:
    """Tell whether a column has missing values."""
    array = values if isinstance(values, pd.Series) else to_array(values)
    return bool(pd.isna(array).any())


def distinct_levels(values: Any) -> list:
    """Return the distinct values of a column that are not missing, in order of appearance."""
    if isinstance(values, pd.Series):
        return list(values.dropna().unique())
    array = to_array(values)
    if array.dtype.kind in "mM":  # `tolist` would make integers of nanoseconds
        return list(pd.Series(array).dropna().unique())
    return [v for v in dict.fromkeys(array.tolist()) if not is_missing(v)]


def _identity(values: Any) -> np.ndarray:
    """Return one integer per value, equal only where values are identical, type included."""
    array = to_array(values)
    if array.dtype.kind == "f" and array.itemsize in (2, 4, 8):  # by bits: 0.0 is not -0.0
        bits = np.ascontiguousarray(array).view(f"i{array.itemsize}")
        return np.unique(bits, return_inverse=True)[1]
    if array.dtype.kind in "biufmM":
        return np.unique(array, return_inverse=True)[1]
    seen: dict = {}
    return np.array([seen.setdefault((type(v), repr(v)), len(seen)) for v in array], dtype=np.int64)


def distinct_rows(X: Any, columns: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each distinct kind in some columns, and the kind of every row."""
    keys = np.stack([_identity(column(X, k)) for k in columns], axis=1)
    _, first, kind = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, kind.reshape(-1)


def _put(X: pd.DataFrame, k: int, values: pd.Series) -> None:
    """Set a column by position, ignoring the index and keeping the dtype of the new values."""
    X.isetitem(k, pd.Series(values.array, index=X.index, dtype=values.dtype))


def pin(Z: Any, x: Any, columns: tuple[int, ...]) -> Any:
    """Return a copy of Z with some columns set to their values in x, which is one row."""
    rows = np.zeros(len(Z), np.intp)
    values = {k: settle(column(x, k), column(Z, k)) for k in columns}
    return set_columns(copy(Z), {k: take_values(value, rows) for k, value in values.items()})


def set_columns(X: Any, columns: dict[int, Any]) -> Any:
    """Return X with some columns set to settled values."""
    if isinstance(X, pd.DataFrame):
        X = X.copy(deep=False)
        for k, values in columns.items():
            _put(X, k, values)
        return X
    if is_frame(X):
        return _frame(X).with_columns(*columns.values()).to_native()
    X = X.astype(np.result_type(X.dtype, *(values.dtype for values in columns.values())))
    for k, values in columns.items():
        X[:, k] = values
    return X


def concatenate(frames: list) -> Any:
    """Stack frames or arrays of the same columns; categories are joined, in order of appearance."""
    if isinstance(frames[0], pd.DataFrame):
        return pd.concat(_with_joined_categories(frames), ignore_index=True)
    if is_frame(frames[0]):
        first = _frame(frames[0])
        return nw.concat([first, *(_frame(_alike(X, frames[0])) for X in frames[1:])]).to_native()
    return np.concatenate(frames)


def _with_joined_categories(frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Return frames whose columns of categories have the same ones."""
    result = [X.copy(deep=False) for X in frames]
    for k in range(frames[0].shape[1]):
        dtypes = [X.dtypes.iloc[k] for X in frames]
        if all(isinstance(dtype, pd.CategoricalDtype) for dtype in dtypes):
            every = list(dict.fromkeys(v for dtype in dtypes for v in dtype.categories))
            joined = pd.CategoricalDtype(every, all(dtype.ordered for dtype in dtypes))
            for X in result:
                _put(X, k, X.iloc[:, k].astype(joined))
    return result


def _alike(X: Any, first: Any) -> Any:
    """Return a frame with the dtypes of another, which must hold its values."""
    X = settled(X, first)
    for k in wider(X, first):
        a, b = column(first, k), column(X, k)
        raise ValueError(
            f"column {a.name!r} holds {a.dtype} in one batch and {b.dtype} in another: give all "
            "batches with the same dtypes"
        )
    return X


def sorted_values(values: Any) -> np.ndarray:
    """Return the distinct values of a column that are not missing, sorted where they can be."""
    if isinstance(dtype := getattr(values, "dtype", None), np.dtype) and dtype in FLOATS:
        numbers = np.unique(to_array(values).astype(float))  # NaN comes last
        return numbers[: np.searchsorted(numbers, np.nan)]
    distinct = distinct_levels(values)
    try:
        distinct = sorted(distinct)
    except TypeError:  # no order between them
        pass
    column = inferred(as_objects(distinct))
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":  # pandas 2 infers nanoseconds
        column = column.astype(dtype)
    return column.to_numpy()


def with_columns(row: Any, columns: dict[int, Any]) -> Any:
    """Repeat one row, with some columns set to values, all of the same length."""
    n = len(next(iter(columns.values())))
    rows = take_rows(row, np.zeros(n, np.intp))
    if isinstance(row, pd.DataFrame):
        rows = rows.reset_index(drop=True)
    return set_columns(rows, {k: settle(values, column(row, k)) for k, values in columns.items()})


def settled(X: Any, row: Any) -> Any:
    """Return X with the dtypes of a row of the background, wherever these hold its values."""
    if is_frame(X) and is_frame(row) and type(X) is not type(row):  # of another library
        return with_columns(row, {k: column(X, k) for k in range(len(labels(X)))})
    other = wider(X, row)
    columns = {k: settle(column(X, k), column(row, k)) for k in other}
    if not other:
        return X
    return set_columns(X if is_frame(X) else np.empty(X.shape, row.dtype), columns)


def wider(X: Any, row: Any) -> list[int]:
    """Return the columns of X whose dtypes differ from those of a row of the background."""
    if is_frame(X) != is_frame(row):
        return []
    if isinstance(X, np.ndarray):
        return [] if X.dtype == row.dtype else list(range(X.shape[1]))
    return [k for k in range(len(labels(X))) if not _same_dtype(column(X, k), column(row, k))]


def _same_dtype(values: Any, like: Any) -> bool:
    if type(values) is not type(like) or values.dtype != like.dtype:
        return False
    if isinstance(values.dtype, pd.CategoricalDtype):  # equal in any order
        return values.dtype.categories.equals(like.dtype.categories)
    return True


def replaced(X: Any, columns: dict[int, np.ndarray]) -> Any:
    """Return a copy of X with some columns set to arrays of numbers."""
    if isinstance(X, pd.DataFrame):
        X = X.copy()
        for k, values in columns.items():
            X.isetitem(k, values)
        return X
    if is_frame(X):
        frame = _frame(X)
        new = [
            nw.new_series(frame.columns[k], values, backend=frame.implementation)
            for k, values in columns.items()
        ]
        return frame.with_columns(*new).to_native()
    X = X.astype(np.result_type(X.dtype, np.float64))
    for k, values in columns.items():
        X[:, k] = values
    return X


def distinct(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each distinct level, and the number of the level of every row."""
    numpy = not isinstance(values, pd.Series) or isinstance(values.dtype, np.dtype)
    array = to_array(values) if numpy else values.array
    if (
        numpy
        and array.dtype.kind == "O"
        and pd.api.types.infer_dtype(array, skipna=False) != "string"
    ):
        kind = _identity(array)  # some models tell 1, 1.0 and True apart, and None and NaN
    else:
        kind = pd.factorize(array, use_na_sentinel=False)[0]
    first = np.full(kind.max(initial=-1) + 1, -1)
    first[kind[::-1]] = np.arange(len(kind))[::-1]
    return first, kind


def unusual(X: Any, words: bool = True) -> str:
    """Name the columns that a model may refuse, and why, as the end of an error message.

    Without `words`, columns of words are taken to be welcome.
    """
    remarks = []
    for k, name in enumerate(labels(X)):
        if words and is_date(X, k):
            remarks.append(f"column {name!r} holds dates or durations")
            continue
        try:
            values = to_float(column(X, k))
        except Exception:  # each library has errors of its own
            if words:
                remarks.append(f"column {name!r} holds values that are not numbers")
            continue
        missing = np.isnan(values)
        size = np.abs(values[~missing])
        if missing.any():
            remarks.append(f"column {name!r} has missing values")
        if np.isinf(size).any():
            remarks.append(f"column {name!r} has infinite values")
        elif (size > np.finfo(np.float32).max).any():
            remarks.append(f"column {name!r} has values beyond float32")
    return f" ({'; '.join(remarks)})" if remarks else ""
