"""Rows of one part of a frame, brought to the columns and dtypes of the background.

Parts of one frame may differ in dtype: a column of integers is float where some are missing, and of
objects where all are. `frames.settled` does what is possible without changing a value; what is left
of another kind is refused with the name of the column.
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.checks import realign
from skattr._utils.messages import brief
from skattr.solution.read_model import ReadModel


def align(table: Any, model: ReadModel) -> Any:
    """Return rows with the order and the dtypes of the background's columns."""
    if not model.named:
        return np.column_stack(
            [frames.to_float(frames.column(table, k)) for k in range(len(frames.labels(table)))]
        )
    table = realign(table, model.names)
    if _has_dtypes_of(table, model.row.X):
        return table
    table = model.as_background(_without_objects(table, model.row.X))
    for k, name in enumerate(model.names):
        _check_kind(frames.column(table, k), model.row.X, k, name)
    return table


def _has_dtypes_of(table: Any, row: Any) -> bool:
    """Tell at once whether all dtypes are those of the background, and none of objects."""
    if not isinstance(table, pd.DataFrame) or not isinstance(row, pd.DataFrame):
        return False
    kinds = list(table.dtypes)
    known = [isinstance(kind, np.dtype) and kind != np.dtype(object) for kind in kinds]
    return all(known) and kinds == list(row.dtypes)


def _without_objects(table: Any, row: Any) -> Any:
    """Return a pandas frame whose objects are numbers where those of the background are."""
    if not isinstance(table, pd.DataFrame):
        return table
    other = {}
    for k in range(table.shape[1]):
        column = table.iloc[:, k]
        if not frames.is_number(row, k) or pd.api.types.is_any_real_numeric_dtype(column.dtype):
            continue
        if column.isna().all():
            other[k] = np.full(len(column), np.nan)
        elif column.dtype == object and _holds_numbers(column):
            other[k] = pd.to_numeric(column, errors="coerce")
    return frames.replaced(table, other) if other else table


def _holds_numbers(column: pd.Series) -> bool:
    """Tell whether a column of objects holds numbers and missing values only."""
    return pd.api.types.infer_dtype(column, skipna=True) in frames.NUMBERS


def untyped_columns(table: Any) -> list[Any]:
    """Return the names of columns that hold nothing and whose dtype says nothing."""
    if not isinstance(table, pd.DataFrame):
        if not frames.is_frame(table):
            return []
        kinds = nw.from_native(table, eager_only=True).schema
        return [name for name, kind in kinds.items() if kind in (nw.Unknown, nw.Object)]
    names = [name for name, kind in table.dtypes.items() if kind == np.dtype(object)]
    return [name for name in names if table[name].isna().all()]


def with_types(table: Any, other: Any) -> Any:
    """Return a part of a frame whose untyped columns have the dtypes of another part."""
    if not isinstance(table, pd.DataFrame) or not isinstance(other, pd.DataFrame):
        return table
    untyped = set(untyped_columns(other))
    table = table.copy(deep=False)
    for name in untyped_columns(table):
        if name in other and name not in untyped:
            kind = other[name].dtype
            number = pd.api.types.is_any_real_numeric_dtype(kind)  # integers cannot be missing
            table[name] = table[name].astype(np.float64 if number else kind)
    return table


def _check_kind(column: Any, row: Any, k: int, name: Any) -> None:
    """Refuse text among numbers."""
    if not frames.is_number(row, k):
        return
    if isinstance(column, nw.Series):
        fits = column.dtype.is_numeric() or column.dtype in (nw.Boolean, nw.Unknown)
        fits = fits or column.is_null().all()
    else:
        fits = pd.api.types.is_any_real_numeric_dtype(column.dtype) or column.dtype.kind == "b"
        fits = fits or (column.dtype == object and _holds_numbers(pd.Series(column)))
    if not fits:
        values = [v for v in frames.to_list(column) if not frames.is_missing(v)]
        raise ValueError(
            f"column {name!r} holds {column.dtype} values such as {brief(values[0])}, and numbers "
            "in the background: convert the column of the whole frame first"
        )
