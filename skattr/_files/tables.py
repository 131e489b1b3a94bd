"""Tables of the command line: CSV and Parquet files, read as the model and the background need.

A CSV file has no types. The background gets those that pandas would infer, except where an encoder
of the model knows better: levels that it learned as text stay text ("01" is not 1, and "None" is
not missing if it is a level). The data are read as the background's types (cells.py): a cell that
does not fit is named with its row and column.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skattr._files.cells import empty_to_none, inferred, kind_of, read_as
from skattr._files.csv_files import read_csv


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
        The columns that the model takes, by name, or their number if it does not know names.
    levels : dict
        Column → the levels that an encoder of the model knows, as in `known_levels`.
    """

    def may_be_parsed(name: Any, dtype: np.dtype) -> bool:
        known = levels.get(name)
        return known is None or (isinstance(known, np.ndarray) and known.dtype.kind in "biuf")

    table = _read(path, index, names, may_be_parsed)
    if is_csv(path):
        for name in table.frame:
            table.frame[name] = inferred(table.frame[name], levels.get(name), path)
    return table


def read_data(path: str, index: str | None, levels: dict, background: pd.DataFrame) -> Table:
    """Return the rows to explain, read as the background's dtypes.

    Raises a ValueError with the row and the column of a cell that does not fit.
    """

    def may_be_parsed(name: Any, dtype: np.dtype) -> bool:
        like = background[name].dtype
        return like == np.bool_ if dtype == np.bool_ else like in (np.float64, np.int64)

    table = _read(path, index, list(background.columns), may_be_parsed)
    for name in table.frame:
        column, like = table.frame[name], background[name]
        if is_csv(path) and kind_of(like) == "nothing":  # no value in the background
            table.frame[name] = inferred(column, levels.get(name), path)
        else:
            cells = empty_to_none(column, levels.get(name)) if is_csv(path) else column
            table.frame[name] = read_as(cells, like, path)
    return table


def is_csv(path: str) -> bool:
    """Tell whether a file is a CSV file, by its name."""
    return Path(path).suffix.lower() == ".csv"


def _read(path: str, index: str | None, names: Any, may_be_parsed: Callable) -> Table:
    """Return the columns of a file that the model takes.

    Columns of a CSV file are text, except those of numbers or booleans for which
    `may_be_parsed(name, dtype)` is true.
    """
    notes: list[str] = []
    if is_csv(path):
        wanted = [*names] if isinstance(names, list) else []
        wanted += [] if index is None else [index]

        def is_parsed(name: Any, dtype: np.dtype) -> bool:
            unwanted = isinstance(names, list) and name not in names
            return name != index and (unwanted or may_be_parsed(name, dtype))

        frame = read_csv(path, wanted, notes, is_parsed)
    else:
        frame = _read_parquet(path)
    if frame.empty:
        raise ValueError(f"{path} has no rows")
    integers = index in frame and row_names(pd.Index(frame[index])).dtype.kind == "i"
    return select(frame, path, index, names, 0, integers)._replace(notes=notes)


def select(
    frame: pd.DataFrame, path: str, index: str | None, names: Any, start: int, integers: bool
) -> Table:
    """Return the columns of a chunk of a file that the model takes.

    Rows are named by the index, of integers if all names are, or numbered from `start`.
    """
    if index is not None and index in frame:
        frame = frame.set_index(index)
        if is_csv(path):
            frame.index = pd.Index(row_names(frame.index) if integers else frame.index, name=index)
    elif index is not None and index != frame.index.name:
        raise ValueError(f"{path} has no column {index!r} for the index; it has {_some(frame)}")
    elif is_csv(path):
        frame.index = pd.RangeIndex(start, start + len(frame))
    if not isinstance(names, list):
        if names is not None and names != frame.shape[1]:
            raise ValueError(
                f"{path} has {frame.shape[1]} columns, the model takes {names} and does not know "
                "their names: leave the others out of the file"
            )
        return Table(frame, [], [])
    spaced = {str(name).replace(" ", "_"): name for name in frame}  # lightgbm replaces spaces
    names = [name if name in frame else spaced.get(name, name) for name in names]
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(
            f"{path} lacks the columns {missing} that the model was fitted on; it has "
            f"{_some(frame)}"
        )
    ignored = [name for name in frame.columns if name not in set(names)]
    return Table(frame[names].copy(), ignored, [])


def _some(frame: pd.DataFrame) -> str:
    names = [repr(name) for name in frame.columns[:20]]
    return ", ".join(names) + (" …" if frame.shape[1] > 20 else "")


def row_names(index: pd.Index) -> pd.Index:
    """Return names of rows as integers if that changes no character, else as text."""
    numbers = pd.to_numeric(pd.Series(index), errors="coerce")
    if numbers.dtype.kind == "i" and [str(n) for n in numbers] == list(index):
        return pd.Index(numbers.to_numpy())
    return index


def _read_parquet(path: str) -> pd.DataFrame:
    content = io.BytesIO(Path(path).read_bytes())  # given a name, pandas may fetch it
    try:
        return pd.read_parquet(content)
    except Exception as error:  # of pyarrow's, of any kind
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from error
