"""CSV files as text: the separator, the header, and decimal commas.

Columns that pandas' parser finds to hold numbers, or True and False, are taken from it; all others
are read as text, and parsed in cells.py.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from skattr._files.cells import MISSING
from skattr._inputs.values import EXACT

PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
NUMBER = r"\s*[+-]?\d+(?:{0}\d+)?(?:[eE][+-]?\d+)?\s*"
# before pandas 3.1 its parser rounds the last digit wrongly unless told not to
PRECISION: dict = {"float_precision": "round_trip"} if PANDAS < (3, 1) else {}


def read_csv(path: str, wanted: list, notes: list[str], is_parsed: Callable) -> pd.DataFrame:
    """Return a CSV file as text, except columns of numbers or booleans.

    Parameters
    ----------
    path : str
        The file.
    wanted : list
        Names that the header must have.
    notes : list of str
        Remarks on the format, which are appended.
    is_parsed : callable
        (name, dtype) → bool, whether a column of numbers or booleans is taken from pandas' parser.
    """
    with _named_errors(path):
        header, width, separator = _layout(path, wanted)
        numbers = pd.DataFrame()
        if separator != ";":  # there may be decimal commas
            with open(path, "rb") as file:
                table = _parse(file, separator, width, na_values=list(MISSING), **PRECISION)
            numbers = table[[k for k, name in enumerate(header) if _is_clean(table[k])
                             and is_parsed(name, table[k].dtype)]]  # fmt: skip
        rest = [k for k in range(width) if k not in numbers]
        some = rest if len(rest) < width else None
        with open(path, "rb") as file:
            cells = _parse(file, separator, width, na_filter=False, dtype=str, usecols=some)
        _check_width(cells, header, width)
        both = pd.concat([numbers, cells], axis=1) if len(numbers.columns) else cells
        frame = both[range(len(header))].set_axis(header, axis=1)
    if separator != ",":
        notes.append(f"columns are separated by {SEPARATORS[separator]}")
    if separator == ";" and _has_decimal_commas(frame):
        notes.append("numbers have decimal commas")
        return frame.apply(_with_points)
    return frame


def csv_chunks(
    path: str, wanted: list, rows: int, is_parsed: Callable, only: list | None = None
) -> Iterator[pd.DataFrame]:
    """Yield chunks of a CSV file as `read_csv` returns it, or only some columns of it.

    Whether semicolons come with decimal commas is found by the first chunk.
    """
    with _named_errors(path):
        header, width, separator = _layout(path, wanted)
        columns = None if only is None else [header.index(name) for name in only]
        commas: bool | None = None if separator == ";" else False
        options: dict = {"chunksize": rows, "usecols": columns}
        with open(path, "rb") as first, open(path, "rb") as second:
            text = _parse(first, separator, width, na_filter=False, dtype=str, **options)
            parsed = _parse(
                second, separator, width, na_values=list(MISSING), **options, **PRECISION
            )
            for cells, table in zip(text, parsed, strict=True):
                if columns is None:
                    _check_width(cells, header, width)
                    cells, table = cells[range(len(header))], table[range(len(header))]
                labels = [header[k] for k in cells]
                for k, name in zip(cells, labels, strict=True):
                    if separator != ";" and _is_clean(table[k]) and is_parsed(name, table[k].dtype):
                        cells = _with_column(cells, k, table[k])
                frame = cells.set_axis(labels, axis=1).reset_index(drop=True)
                commas = _has_decimal_commas(frame) if commas is None else commas
                yield frame.apply(_with_points) if commas else frame


def _with_column(frame: pd.DataFrame, k: int, column: pd.Series) -> pd.DataFrame:
    frame = frame.copy(deep=False)
    frame[k] = column
    return frame


def _check_width(cells: pd.DataFrame, header: list[str], width: int) -> None:
    if (cells[range(len(header), width)] != "").any(axis=None):
        raise ValueError(f"the first line names {len(header)} columns, a row has {width}")


def _layout(path: str, wanted: list) -> tuple[list[str], int, str]:
    """Return the names of the columns, their number in the rows, and the separator."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        lines = [line for _, line in zip(range(100), file, strict=False)]
    if not lines:
        raise ValueError("the file is empty")
    separator = _separator(lines, wanted)
    return *_header(lines, separator, wanted), separator


@contextmanager
def _named_errors(path: str) -> Iterator[None]:
    """Name the file in errors."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: this is not UTF-8 text ({error.reason})") from error
    except (ValueError, csv.Error) as error:  # pandas' ParserError is one
        raise ValueError(f"{path}: {error}") from error


def _parse(file: BinaryIO, separator: str, width: int, **options: Any) -> Any:
    """Return the columns of a CSV file, by position; rows are checked if all are asked for."""
    return pd.read_csv(  # of an open file: given a name, pandas may fetch it
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
        raise ValueError(f"the columns {double} occur in it more than once")
    return header, max(map(len, [header, *rows]))


def _separator(lines: list[str], wanted: list) -> str:
    """Return the separator that yields the wanted names, else the one that yields most names."""
    headers = {s: next(csv.reader(lines, delimiter=s), []) for s in SEPARATORS}
    for separator, header in headers.items():
        if wanted and set(wanted) <= set(header):
            return separator
    return max(headers, key=lambda separator: len(headers[separator]))


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
