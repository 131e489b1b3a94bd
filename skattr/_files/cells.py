"""Cells of a file as values of a dtype: those that the model knows, or the background's.

Each cell becomes a value of the kind that the background holds, or is named with its row and
column; values go into the background's dtype as they do everywhere (`values.settle`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs.frames import NUMBERS
from skattr._inputs.values import EXACT, held, settle

MISSING = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
           "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip
ZONE = r"(?:Z|[+-]\d{2}:?\d{2})\s*$"  # at the end of a time
BOOLEANS = {"True": True, "TRUE": True, "true": True,
            "False": False, "FALSE": False, "false": False}  # fmt: skip
KINDS = {  # kind → how an error message calls a value of it
    "boolean": "True or False",
    "number": "a number",
    "date": "a date (such as 2024-03-31)",
    "duration": "a duration",
    "text": "text",
}
INFERRED = {  # what pandas infers → kind
    "boolean": "boolean",
    "string": "text",
    "empty": "nothing",
    "datetime": "date",
    "datetime64": "date",
    "timedelta": "duration",
    "timedelta64": "duration",
} | {name: "number" for name in NUMBERS if name != "empty"}


def empty_to_none(cells: pd.Series, levels: Any) -> pd.Series:
    """Return the cells of a CSV file with None where text is missing."""
    if not pd.api.types.is_string_dtype(cells.dtype):
        return cells
    if isinstance(levels, pd.CategoricalDtype):
        levels = levels.categories
    known = set() if levels is None else {level for level in levels if isinstance(level, str)}
    cells = cells.astype(object)
    return cells.where(~cells.isin([word for word in MISSING if word not in known]), None)


def _are_text(levels: np.ndarray) -> bool:
    return levels.dtype.kind == "U" or any(isinstance(level, str) for level in levels)


def inferred(cells: pd.Series, levels: Any, path: str) -> pd.Series:
    """Return a column of a CSV file as what an encoder knows it to be, or as what it looks like."""
    if not pd.api.types.is_string_dtype(cells.dtype):
        return cells
    cells = empty_to_none(cells, levels)
    filled = cells.dropna()
    numbers = pd.to_numeric(filled, errors="coerce")
    like = pd.Series([""])  # text
    if isinstance(levels, pd.CategoricalDtype):
        like = pd.Series(levels.categories.astype(levels))
    elif levels is not None and levels.dtype.kind in "mM":
        like = pd.Series(levels)
    elif levels is not None and _are_text(levels):
        pass
    elif len(filled) and filled.isin(BOOLEANS).all():
        like = pd.Series([True, False])
    elif not numbers.isna().any():
        like = numbers if len(numbers) else pd.Series([0.0])
    return read_as(cells, like, path)


def read_as(column: pd.Series, like: pd.Series, path: str) -> pd.Series:
    """Return a column as the dtype of another one; text is parsed.

    What is not of the same kind raises a ValueError with the row and the column. Numbers that the
    dtype cannot hold (a fraction or a missing value among integers) stay numbers, and levels that
    are new stay levels: what they mean is the model's to say.
    """
    levels = like
    if isinstance(like.dtype, pd.CategoricalDtype):
        levels = pd.Series(like.dtype.categories)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    kind = kind_of(levels)
    settled = column.dtype == like.dtype and kind_of(column) in (kind, "nothing")
    gaps = column.dtype == object and column.hasnans  # None or NaN, as in the other column
    if kind == "nothing" or (settled and not gaps):
        return column
    filled = column[column.notna()].infer_objects()
    if kind not in KINDS or kind_of(filled) not in (kind, "text", "nothing"):
        raise ValueError(_misfit(filled, 0, kind, path))
    if kind != "text" and kind_of(filled) == "text":
        filled = _parsed(filled, levels, kind, path)
    values = _with_gaps(filled, column, levels, kind, path)
    fitting, fits = held(values.reset_index(drop=True), like.dtype)  # by value: text has no dtype
    result = fitting if fits.all() else settle(values, like)
    return result.set_axis(column.index).rename(column.name)


def kind_of(column: pd.Series) -> str:
    """Return what a column holds; "nothing" where all is missing and the dtype does not tell."""
    dtype = column.dtype
    if dtype == np.dtype(object):
        inferred = pd.api.types.infer_dtype(column, skipna=True)
        return INFERRED.get(inferred, f"of type {inferred!r}")
    if pd.api.types.is_bool_dtype(dtype):
        return "boolean"
    if pd.api.types.is_any_real_numeric_dtype(dtype):
        return "number" if column.notna().any() else "nothing"
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return "date"
    if pd.api.types.is_timedelta64_dtype(dtype):
        return "duration"
    return "text" if pd.api.types.is_string_dtype(dtype) else f"of type {str(dtype)!r}"


def _parsed(cells: pd.Series, like: pd.Series, kind: str, path: str) -> pd.Series:
    """Return text, none of it missing, as values of a kind."""
    cells = cells.astype(object)
    if kind == "boolean":
        values = cells.map(BOOLEANS)
    elif kind == "number":
        values = pd.to_numeric(cells, errors="coerce")
    elif kind == "duration":
        values = pd.to_timedelta(cells, errors="coerce")
    else:
        zone = getattr(like.dtype, "tz", None) is not None
        values = pd.to_datetime(cells, errors="coerce", format="ISO8601", utc=True)
        values = values.where(cells.str.contains(ZONE) == zone)
        values = values if zone else values.dt.tz_localize(None)
    wrong = np.flatnonzero(values.isna())
    if len(wrong):
        raise ValueError(_misfit(cells, int(wrong[0]), kind, path))
    if kind == "number" and values.dtype.kind == "f":
        dtype = like.dtype if str(like.dtype) in ("float16", "float32") else np.float64
        exact = [float(cell) for cell in cells]  # rounded to the nearest, unlike to_numeric's
        return pd.Series(exact, index=cells.index, name=cells.name).astype(dtype)
    return values


def _misfit(column: pd.Series, i: int, kind: str, path: str) -> str:
    value = column.iloc[i]
    text = repr(value.item() if isinstance(value, np.generic) else value)
    row = repr(column.index[i].item() if hasattr(column.index[i], "item") else column.index[i])
    return (
        f"{path}: row {row}, column {column.name!r}: {text[:100]} is not {KINDS.get(kind, kind)}, "
        "as this column is in the background"
    )


def _with_gaps(
    filled: pd.Series, column: pd.Series, like: pd.Series, kind: str, path: str
) -> pd.Series:
    """Return a column of the filled values in their places, and missing values in the others."""
    if kind == "date" and len(filled):
        zones = [getattr(dtype, "tz", None) is None for dtype in (filled.dtype, like.dtype)]
        if zones[0] != zones[1]:
            raise ValueError(f"{_misfit(filled, 0, 'date', path)}: one of them has a time zone")
    if len(filled) == len(column):
        return filled
    there = column.notna().to_numpy()
    if kind == "number" and like.dtype != object:
        whole = filled.dtype.kind in "iu"
        if whole and isinstance(like.dtype, pd.api.extensions.ExtensionDtype):
            cells = pd.Series(pd.NA, index=range(len(column)), dtype="Int64")
            cells[there] = filled.to_numpy()
            return cells
        far = np.flatnonzero(whole & (filled.abs() > EXACT))
        if len(far):
            raise ValueError(
                f"{_misfit(filled, int(far[0]), 'number', path)}: beyond 2**53, and the column has "
                "missing values"
            )
        numbers = np.full(len(column), np.nan)
        numbers[there] = filled
        return pd.Series(numbers)
    gaps = like[like.isna()]
    objects = np.full(len(column), gaps.iloc[0] if len(gaps) else np.nan, dtype=object)
    objects[there] = filled.to_list()
    cells = pd.Series(objects, dtype=object)
    return cells.astype(filled.dtype) if kind in ("date", "duration") and len(filled) else cells
