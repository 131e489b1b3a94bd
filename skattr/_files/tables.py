"""Tables of the command: CSV and Parquet files, read as what model and background hold.

A CSV file has no types. The background's are those that pandas would infer, except where an
encoder of the model knows better: levels that it learned as text stay text ("01" is not 1, and
"None" is not missing if it is a level). The data are then read as the background: each cell becomes
a value of the kind that the background holds, or is named with its row and column, and values go
into the background's dtype as they do everywhere (`values.settle`).

Columns that pandas' parser finds to hold numbers, or True and False, are taken from it; all others
are read as text and parsed here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skattr._inputs.frames import NUMBERS
from skattr._inputs.values import EXACT, held, settle

PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MISSING = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
           "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip
ZONE = r"(?:Z|[+-]\d{2}:?\d{2})\s*$"  # at the end of a time
BOOLEANS = {"True": True, "TRUE": True, "true": True,
            "False": False, "FALSE": False, "false": False}  # fmt: skip
# before pandas 3.1 its parser rounds the last digit wrongly unless told not to
PRECISION: dict = {"float_precision": "round_trip"} if PANDAS < (3, 1) else {}
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

    def is_right(name: Any, dtype: np.dtype) -> bool:
        known = levels.get(name)
        return known is None or (isinstance(known, np.ndarray) and known.dtype.kind in "biuf")

    table = _read(path, index, names, is_right)
    if _is_csv(path):
        for name in table.frame:
            table.frame[name] = _inferred(table.frame[name], levels.get(name), path)
    return table


def read_data(path: str, index: str | None, levels: dict, background: pd.DataFrame) -> Table:
    """Return the rows to explain, read as the background's dtypes.

    Raises a ValueError with the row and the column of a cell that does not fit.
    """

    def is_right(name: Any, dtype: np.dtype) -> bool:
        like = background[name].dtype
        if dtype == np.bool_:
            return like == np.bool_
        return like in (np.float64, np.int64)

    table = _read(path, index, list(background.columns), is_right)
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


def _read(path: str, index: str | None, names: Any, is_right: Callable) -> Table:
    """Return a file's columns that are wanted.

    Those of a CSV file are text, but for columns of numbers or booleans where `is_right(name,
    dtype)`.
    """
    notes: list[str] = []
    if _is_csv(path):
        wanted = [*names] if isinstance(names, list) else []
        wanted += [] if index is None else [index]

        def takes(name: Any, dtype: np.dtype) -> bool:
            unwanted = isinstance(names, list) and name not in names
            return name != index and (unwanted or is_right(name, dtype))

        frame = _read_csv(path, wanted, notes, takes)
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


def _read_csv(path: str, wanted: list, notes: list[str], takes: Callable) -> pd.DataFrame:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = [line for _, line in zip(range(100), file, strict=False)]
        if not lines:
            raise ValueError("the file is empty")
        separator = _separator(lines, wanted)
        header, width = _header(lines, separator, wanted)
        numbers = pd.DataFrame()
        if separator != ";":  # there may be decimal commas
            found = _parse(path, separator, width, na_values=list(MISSING), **PRECISION)
            numbers = found[[k for k, name in enumerate(header) if _is_clean(found[k])
                             and takes(name, found[k].dtype)]]  # fmt: skip
        rest = [k for k in range(width) if k not in numbers]
        some = rest if len(rest) < width else None
        cells = _parse(path, separator, width, na_filter=False, dtype=str, usecols=some)
        if (cells[range(len(header), width)] != "").any(axis=None):
            raise ValueError(f"the first line names {len(header)} columns, a row has {width}")
        both = pd.concat([numbers, cells], axis=1) if len(numbers.columns) else cells
        frame = both[range(len(header))].set_axis(header, axis=1)
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


def _parse(path: str, separator: str, width: int, **options: Any) -> pd.DataFrame:
    """Return the columns of a CSV file, by position; rows are checked if all are asked for."""
    with open(path, "rb") as file:
        return pd.read_csv(
            file, sep=separator, keep_default_na=False, index_col=False, header=0,
            names=range(width), encoding="utf-8-sig", low_memory=False, **options,
        )  # fmt: skip


def _is_clean(column: pd.Series) -> bool:
    """Tell whether the parser found booleans, or numbers none of which it may have rounded."""
    if column.dtype == np.float64:
        return column.notna().any() and not (column[np.isfinite(column)].abs() >= EXACT).any()
    return column.dtype in (np.int64, np.bool_)


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


def _inferred(cells: pd.Series, levels: Any, path: str) -> pd.Series:
    """Return a column of a CSV file as what an encoder knows it to be, or as what it looks like."""
    if not pd.api.types.is_string_dtype(cells.dtype):
        return cells
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

    What is not of the same kind raises a ValueError with the row and the column. Numbers that the
    dtype cannot hold (a fraction or a missing value among integers) stay numbers, and levels that
    are new stay levels: what they mean is the model's to say.
    """
    levels = like
    if isinstance(like.dtype, pd.CategoricalDtype):
        levels = pd.Series(like.dtype.categories)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    kind = _kind(levels)
    if kind == "nothing" or (column.dtype == like.dtype and _kind(column) in (kind, "nothing")):
        return column
    given = column[column.notna()].infer_objects()
    if kind not in WORDS or _kind(given) not in (kind, "text", "nothing"):
        raise ValueError(_misfit(given, 0, kind, path))
    if kind != "text" and _kind(given) == "text":
        given = _parsed(given, levels, kind, path)
    values = _with_gaps(given, column, levels, kind, path)
    fitting, fits = held(values.reset_index(drop=True), like.dtype)  # by value: text has no dtype
    settled = fitting if fits.all() else settle(values, like)
    return settled.set_axis(column.index).rename(column.name)


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


def _with_gaps(
    given: pd.Series, column: pd.Series, like: pd.Series, kind: str, path: str
) -> pd.Series:
    """Return the values that are given in their places, and what is missing in the others."""
    if kind == "date" and len(given):
        zones = [getattr(dtype, "tz", None) is None for dtype in (given.dtype, like.dtype)]
        if zones[0] != zones[1]:
            raise ValueError(f"{_misfit(given, 0, 'date', path)}: one of them has a time zone")
    if len(given) == len(column):
        return given
    there = column.notna().to_numpy()
    if kind == "number" and like.dtype != object:
        whole = given.dtype.kind in "iu"
        if whole and isinstance(like.dtype, pd.api.extensions.ExtensionDtype):
            cells = pd.Series(pd.NA, index=range(len(column)), dtype="Int64")
            cells[there] = given.to_numpy()
            return cells
        far = np.flatnonzero(whole & (given.abs() > EXACT))
        if len(far):
            raise ValueError(
                f"{_misfit(given, int(far[0]), 'number', path)}: beyond 2**53, and the column has "
                "missing values"
            )
        numbers = np.full(len(column), np.nan)
        numbers[there] = given
        return pd.Series(numbers)
    gaps = like[like.isna()]
    objects = np.full(len(column), gaps.iloc[0] if len(gaps) else np.nan, dtype=object)
    objects[there] = given.to_list()
    cells = pd.Series(objects, dtype=object)
    return cells.astype(given.dtype) if kind in ("date", "duration") and len(given) else cells


INFERRED = {
    "boolean": "boolean",
    "string": "text",
    "empty": "nothing",
    "datetime": "date",
    "datetime64": "date",
    "timedelta": "duration",
    "timedelta64": "duration",
} | {name: "number" for name in NUMBERS if name != "empty"}
