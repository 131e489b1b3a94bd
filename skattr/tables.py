"""Tables of the command: CSV and Parquet files, read as what model and background hold.

A CSV file has no types. The background's are those that pandas would infer, except where an
encoder of the model knows better: levels that it learned as text stay text ("01" is not 1, and
"None" is not missing if it is a level). The data are then read as the background: each cell becomes
a value of the background's dtype, or is named with its row and column.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skattr.frames import NUMBERS, distinct_levels

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MISSING = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
           "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip
ZONE = r"(?:Z|[+-]\d{2}:?\d{2})\s*$"  # at the end of a time
BOOLEANS = {"True": True, "TRUE": True, "true": True,
            "False": False, "FALSE": False, "false": False}  # fmt: skip
WHOLE = 2**53  # up to here float64 has all integers
WORDS = {
    "boolean": "True or False",
    "number": "a number",
    "date": "a date (such as 2024-03-31)",
    "duration": "a duration",
    "text": "text",
}


class Table(NamedTuple):
    """The columns of a file that the model takes, and the names of those that it does not."""

    frame: pd.DataFrame
    ignored: list
    notes: list[str]


def read_background(path: str, index: str | None, names: Any, levels: dict) -> Table:
    """Return the background.

    Parameters
    ----------
    path : str
        A CSV or Parquet file.
    index : str or None
        The column with the names of the rows.
    names : list, int or None
        The columns that the model takes, by name, or their number where it knows no names.
    levels : dict
        Column → the levels that an encoder of the model knows, as in `known_levels`.
    """
    table = _read(path, index, names)
    if _is_csv(path):
        for name in table.frame:
            table.frame[name] = _inferred(table.frame[name], levels.get(name), path)
    return table


def read_data(path: str, index: str | None, levels: dict, background: pd.DataFrame) -> Table:
    """Return the rows to explain, read as the background's dtypes.

    Raises a ValueError with the row and the column of a cell that does not fit.
    """
    table = _read(path, index, list(background.columns))
    for name in table.frame:
        column, like = table.frame[name], background[name]
        if _is_csv(path) and _kind(like) == "nothing":  # no value in the background would tell
            table.frame[name] = _inferred(column, levels.get(name), path)
        else:
            cells = _emptied(column, levels.get(name)) if _is_csv(path) else column
            table.frame[name] = read_as(cells, like, path)
    return table


# Files -------------------------------------------------------------------------------------------


def _is_csv(path: str) -> bool:
    return Path(path).suffix.lower() == ".csv"


def _read(path: str, index: str | None, names: Any) -> Table:
    """Return a file's columns that are wanted; those of a CSV file as text."""
    notes: list[str] = []
    if _is_csv(path):
        wanted = [*names] if isinstance(names, list) else []
        frame = _read_csv(path, wanted + ([] if index is None else [index]), notes)
    else:
        frame = _read_parquet(path)
    if frame.empty:
        raise ValueError(f"{path} has no rows")
    if index is not None and index in frame:
        frame = frame.set_index(index)
        if _is_csv(path):
            frame.index = pd.Index(_labels(frame.index), name=index)
    elif index is not None and index != frame.index.name:
        raise ValueError(f"{path} has no column {index!r} for the index; it has {_some(frame)}")
    if not isinstance(names, list):
        if names is not None and names != frame.shape[1]:
            raise ValueError(
                f"{path} has {frame.shape[1]} columns, the model takes {names} and does not know "
                "their names: leave the others out of the file"
            )
        return Table(frame, [], notes)
    spaced = {str(name).replace(" ", "_"): name for name in frame}  # lightgbm has no spaces
    names = [name if name in frame else spaced.get(name, name) for name in names]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{path} lacks the columns {missing} that the model was fitted on; it has "
            f"{_some(frame)}"
        )
    ignored = [name for name in frame.columns if name not in set(names)]
    return Table(frame[names].copy(), ignored, notes)


def _some(frame: pd.DataFrame) -> str:
    names = [repr(name) for name in frame.columns[:20]]
    return ", ".join(names) + (" …" if frame.shape[1] > 20 else "")


def _read_csv(path: str, wanted: list, notes: list[str]) -> pd.DataFrame:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [line for _, line in zip(range(100), file, strict=False)]
        if not lines:
            raise ValueError("the file is empty")
        separator = _separator(lines, wanted)
        header, width = _header(lines, separator, wanted)
        with open(path, "rb") as file:
            cells = pd.read_csv(
                file, sep=separator, dtype=str, keep_default_na=False, na_filter=False,
                index_col=False, header=0, names=range(width), encoding="utf-8-sig",
            )  # fmt: skip
        frame = cells.iloc[:, : len(header)].set_axis(header, axis=1)
        if (cells.iloc[:, len(header) :] != "").any(axis=None):
            raise ValueError(f"the first line names {len(header)} columns, a row has {width}")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: this is not UTF-8 text ({error.reason})") from error
    except (ValueError, csv.Error) as error:  # pandas' ParserError is one
        raise ValueError(f"{path}: {error}") from error
    if separator != ",":
        notes.append(f"columns are separated by {SEPARATORS[separator]}")
    if separator == ";" and _has_decimal_commas(frame):
        notes.append("numbers have decimal commas")
        return frame.apply(_with_points)
    return frame


def _header(lines: list[str], separator: str, wanted: list) -> tuple[list[str], int]:
    """Return the names of the columns, and how many a row has: one more may stand at its end."""
    header, *rows = csv.reader(lines, delimiter=separator)
    double = sorted({name for name in header if header.count(name) > 1 and name in wanted})
    if double:
        raise ValueError(f"the columns {double} stand in it more than once")
    return header, max(map(len, [header, *rows]))


def _separator(lines: list[str], wanted: list) -> str:
    """Return what separates columns: what gives the names that are wanted, else most names."""
    headers = {s: next(csv.reader(lines, delimiter=s), []) for s in SEPARATORS}
    for separator, header in headers.items():
        if wanted and set(wanted) <= set(header):
            return separator
    return max(headers, key=lambda separator: len(headers[separator]))


NUMBER = r"\s*[+-]?\d+(?:{0}\d+)?(?:[eE][+-]?\d+)?\s*"


def _has_decimal_commas(frame: pd.DataFrame) -> bool:
    """Tell whether columns of numbers have commas and none has points."""
    with_commas = [c for c in frame if _all_match(frame[c], NUMBER.format(","))]
    commas = any(frame[c].str.contains(",").any() for c in with_commas)
    points = (_all_match(frame[c], NUMBER.format(r"\.")) for c in frame if c not in with_commas)
    return commas and not any(points)


def _all_match(column: pd.Series, pattern: str) -> bool:
    cells = column[~column.isin(MISSING)]
    return len(cells) > 0 and bool(cells.str.fullmatch(pattern).all())


def _with_points(column: pd.Series) -> pd.Series:
    return column.str.replace(",", ".") if _all_match(column, NUMBER.format(",")) else column


def _labels(index: pd.Index) -> Any:
    """Return names of rows as integers where that changes no character, else as text."""
    numbers = pd.to_numeric(pd.Series(index), errors="coerce")
    if numbers.dtype.kind == "i" and [str(n) for n in numbers] == list(index):
        return numbers.to_numpy()
    return index


def _read_parquet(path: str) -> pd.DataFrame:
    content = io.BytesIO(Path(path).read_bytes())  # pandas may fetch what a name points to
    try:
        return parquet(lambda: pd.read_parquet(content))
    except ImportError:
        raise
    except Exception as error:  # of pyarrow's, of any kind
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from error


def parquet(call: Any) -> Any:
    """Call what reads or writes Parquet, and name what is missing for it."""
    try:
        return call()
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow") from error


# Types of the background -------------------------------------------------------------------------


def _emptied(cells: pd.Series, levels: Any) -> pd.Series:
    """Return the cells of a CSV file with None where they are missing."""
    if isinstance(levels, pd.CategoricalDtype):
        levels = levels.categories
    known = set() if levels is None else {level for level in levels if isinstance(level, str)}
    cells = cells.astype(object)
    return cells.where(~cells.isin([word for word in MISSING if word not in known]), None)


def _are_text(levels: np.ndarray) -> bool:
    return levels.dtype.kind == "U" or any(isinstance(level, str) for level in levels)


def _inferred(cells: pd.Series, levels: Any, path: str) -> pd.Series:
    """Return a column of a CSV file as what an encoder knows it to be, or as what it looks like."""
    cells = _emptied(cells, levels)
    given = cells.dropna()
    numbers = pd.to_numeric(given, errors="coerce")
    like = pd.Series([""])  # text
    if isinstance(levels, pd.CategoricalDtype):
        like = pd.Series(levels.categories.astype(levels))
    elif levels is not None and levels.dtype.kind in "mM":
        like = pd.Series(levels)
    elif levels is not None and _are_text(levels):
        pass
    elif len(given) and given.isin(BOOLEANS).all():
        like = pd.Series([True, False])
    elif not numbers.isna().any():
        like = numbers if len(numbers) else pd.Series([0.0])
    return read_as(cells, like, path)


# Values of the background's dtype ----------------------------------------------------------------


def read_as(column: pd.Series, like: pd.Series, path: str) -> pd.Series:
    """Return a column as the dtype of another one; text is parsed.

    What does not fit raises a ValueError with the row and the column. Numbers that the dtype cannot
    hold (a fraction or a missing value among integers) stay numbers, and levels that are new stay
    levels: what they mean is the model's to say.
    """
    if isinstance(like.dtype, pd.CategoricalDtype):
        return _as_category(column, like.dtype, path)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    kind = _kind(like)
    if column.dtype == like.dtype and _kind(column) in (kind, "nothing"):
        return column
    given = column[column.notna()].infer_objects()
    if kind == "nothing":  # the background has no value that would tell
        return column
    if kind not in READ or _kind(given) not in (kind, "text", "nothing"):
        raise ValueError(_misfit(given, 0, kind, path))
    if kind != "text" and _kind(given) == "text":
        given = _parsed(given, like, kind, path)
    return READ[kind](given, column, like, path)


def _kind(column: pd.Series) -> str:
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
        f"{path}: row {row}, column {column.name!r}: {text[:100]} is not {WORDS.get(kind, kind)}, "
        "as this column is in the background"
    )


def _as_category(column: pd.Series, dtype: pd.CategoricalDtype, path: str) -> pd.Series:
    """Return a column as categories; a level that is new comes after those of the background."""
    values = read_as(column, pd.Series(dtype.categories, name=column.name), path)
    new = [v for v in distinct_levels(values) if v not in dtype.categories]
    return values.astype(pd.CategoricalDtype([*dtype.categories, *new], dtype.ordered))


def _as_numbers(given: pd.Series, column: pd.Series, like: pd.Series, path: str) -> pd.Series:
    whole = given.dtype.kind in "iu"
    gaps = len(given) < len(column)
    if whole and gaps and not isinstance(like.dtype, pd.api.extensions.ExtensionDtype):
        far = np.flatnonzero(given.abs() > WHOLE)
        if len(far):
            raise ValueError(
                f"{_misfit(given, int(far[0]), 'number', path)}: beyond 2**53, and the column has "
                "missing values"
            )
    if like.dtype == object:
        return _placed(given.astype(object), column, _gap(like))
    plain = given.astype(np.float64) if not whole or gaps else given
    if not gaps:
        return _fitting(plain, like.dtype, plain)
    cells = np.full(len(column), np.nan)
    cells[column.notna().to_numpy()] = plain
    other = pd.Series(cells, index=column.index, name=column.name)
    if isinstance(like.dtype, np.dtype):
        return _fitting(other, like.dtype, other)
    return _fitting(_placed(given.astype(object), column, pd.NA), like.dtype, other)


def _as_booleans(given: pd.Series, column: pd.Series, like: pd.Series, path: str) -> pd.Series:
    objects = _placed(given.astype(object), column, _gap(like))
    if like.dtype == object or (len(given) < len(column) and like.dtype == bool):
        return objects
    return objects.astype(like.dtype)


def _as_dates(given: pd.Series, column: pd.Series, like: pd.Series, path: str) -> pd.Series:
    if (getattr(given.dtype, "tz", None) is None) != (getattr(like.dtype, "tz", None) is None):
        raise ValueError(f"{_misfit(given, 0, 'date', path)}: one of them has a time zone")
    whole = _placed(given, column, pd.NaT).astype(given.dtype)
    return _fitting(whole, like.dtype, whole)


def _as_durations(given: pd.Series, column: pd.Series, like: pd.Series, path: str) -> pd.Series:
    whole = _placed(given, column, pd.NaT).astype(given.dtype)
    return _fitting(whole, like.dtype, whole)


def _as_text(given: pd.Series, column: pd.Series, like: pd.Series, path: str) -> pd.Series:
    return _placed(given.astype(object), column, _gap(like)).astype(like.dtype)


def _placed(given: pd.Series, column: pd.Series, gap: Any) -> pd.Series:
    """Return the values of a column that are given, and a gap in the place of the others."""
    cells = np.full(len(column), gap, dtype=object)
    cells[column.notna().to_numpy()] = given.to_list()
    return pd.Series(cells, index=column.index, name=column.name, dtype=object)


def _gap(like: pd.Series) -> Any:
    """Return what is missing in a column, NaN where nothing is."""
    gaps = like[like.isna()]
    return gaps.iloc[0] if len(gaps) else np.nan


def _fitting(values: pd.Series, dtype: Any, other: pd.Series) -> pd.Series:
    """Return values as a dtype where that changes none of them, else another column."""
    try:
        typed = values.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return other
    there = other.notna()
    return typed if (typed[there] == other[there]).all() else other


INFERRED = {
    "boolean": "boolean",
    "string": "text",
    "empty": "nothing",
    "datetime": "date",
    "datetime64": "date",
    "timedelta": "duration",
    "timedelta64": "duration",
} | {name: "number" for name in NUMBERS if name != "empty"}
READ = {
    "boolean": _as_booleans,
    "number": _as_numbers,
    "date": _as_dates,
    "duration": _as_durations,
    "text": _as_text,
}
