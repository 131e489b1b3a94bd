"""Tables that are too large to be read at once: chunks of CSV and Parquet files.

A file of up to `WHOLE` bytes is one chunk, read as tables.py does. Chunks of larger ones are read
in the same way, so that every value is the same; a first pass over a background finds the types
that a CSV file does not have. Rows keep their names: those of the index, or their numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._files.cells import empty_to_none, inferred, kind_of, read_as
from skattr._files.csv_files import csv_chunks
from skattr._files.tables import Table, is_csv, read_background, read_data, row_names, select

WHOLE = 2**25  # bytes of a file that is read at once
ROWS = 2**16  # rows of a chunk


def is_large(path: str) -> bool:
    """Tell whether a file is read in chunks."""
    return os.path.getsize(path) > WHOLE


@dataclass
class LargeTable:
    """The chunks of a large file, as frames with the columns that the model takes.

    Parameters
    ----------
    path : str
        A CSV or Parquet file.
    index : str or None
        The column with the names of the rows.
    names : list, int or None
        The columns that the model takes, as in `read_background`.
    levels : dict
        Column → the levels that an encoder of the model knows.
    like : DataFrame, optional
        The background, or some rows of it: the dtypes as which columns are read.
    """

    path: str
    index: str | None
    names: Any
    levels: dict
    like: pd.DataFrame | None = None

    def __iter__(self) -> Iterator[pd.DataFrame]:
        for table in self.tables():
            yield table.frame

    def tables(self) -> Iterator[Table]:
        """Yield chunks with the names of the columns that are left out."""
        assert self.like is not None
        start, some = 0, False
        for chunk in self._raw():
            some = True
            table = select(chunk, self.path, self.index, self.names, start, self._integers)
            start += len(chunk)
            for name in table.frame:
                table.frame[name] = self._typed(table.frame[name], self.like[name])
            yield table
        if not some:
            raise ValueError(f"{self.path} has no rows")

    def _typed(self, column: pd.Series, like: pd.Series) -> pd.Series:
        if is_csv(self.path) and kind_of(like) == "nothing":
            return inferred(column, self.levels.get(column.name), self.path)
        known = self.levels.get(column.name)
        return read_as(
            empty_to_none(column, known) if is_csv(self.path) else column, like, self.path
        )

    def _raw(self) -> Iterator[pd.DataFrame]:
        """Yield all columns of chunks; those of a CSV file are numbers, booleans or text."""
        if not is_csv(self.path):
            yield from _parquet_chunks(self.path)
            return
        wanted = [*self.names] if isinstance(self.names, list) else []
        wanted += [] if self.index is None else [self.index]
        yield from csv_chunks(self.path, wanted, ROWS, self._may_be_parsed)

    def _may_be_parsed(self, name: Any, dtype: np.dtype) -> bool:
        """Tell whether numbers or booleans may be taken from pandas' parser."""
        if name == self.index:
            return False
        if self.like is not None:
            known: Any = self.like[name].dtype if name in self.like else np.dtype(np.float64)
            return known == np.bool_ if dtype == np.bool_ else known in (np.float64, np.int64)
        levels = self.levels.get(name)
        return levels is None or (isinstance(levels, np.ndarray) and levels.dtype.kind in "biuf")

    @property
    def _integers(self) -> bool:
        """Whether the names of all rows are integers; found by a pass over that column."""
        if self.index is None or not is_csv(self.path):
            return False
        if not hasattr(self, "_all_integers"):
            chunks = csv_chunks(self.path, [self.index], ROWS, lambda *_: False, [self.index])
            self._all_integers = all(
                row_names(pd.Index(chunk[self.index])).dtype.kind == "i" for chunk in chunks
            )
        return self._all_integers

    def typed(self) -> LargeTable:
        """Return a background with the dtypes of all its rows, found by a pass if it is CSV."""
        like: dict[Any, pd.Series] = {}
        for chunk in self._raw():
            table = select(chunk, self.path, self.index, self.names, 0, False)
            for name in table.frame:
                column = table.frame[name]
                if is_csv(self.path):
                    column = inferred(column, self.levels.get(name), self.path)
                like[name] = _common(like[name], column) if name in like else column[:1000]
            if not is_csv(self.path):  # its types are those of all rows
                break
        if not like:
            raise ValueError(f"{self.path} has no rows")
        rows = min(len(column) for column in like.values())
        columns = {name: column[:rows].reset_index(drop=True) for name, column in like.items()}
        return LargeTable(self.path, self.index, self.names, self.levels, pd.DataFrame(columns))


def _common(known: pd.Series, column: pd.Series) -> pd.Series:
    """Return a column of the kind of two chunks of a CSV file: what both are, or else text."""
    kinds = kind_of(known), kind_of(column)
    if "nothing" in kinds:
        return column[:1000] if kinds[0] == "nothing" else known
    if kinds[0] == kinds[1]:
        wider = kinds[0] == "number" and known.dtype.kind == "i" and column.dtype.kind == "f"
        return known.astype(np.float64) if wider else known
    return known.astype("str")


def _parquet_chunks(path: str) -> Iterator[pd.DataFrame]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as file:
            content = pq.ParquetFile(file, pre_buffer=False, buffer_size=2**20)
            start = 0
            for batch in content.iter_batches(ROWS):
                frame = pa.Table.from_batches([batch]).to_pandas()
                if isinstance(frame.index, pd.RangeIndex):
                    step = frame.index.step
                    first = frame.index.start + start * step
                    index = pd.RangeIndex(first, first + len(frame) * step, step)
                    frame.index = index.rename(frame.index.name)
                start += len(frame)
                yield frame
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from error


def read_or_stream_background(path: str, index: str | None, names: Any, levels: dict) -> Any:
    """Return the background as a `Table`, or as a `LargeTable` if the file is large."""
    if not is_large(path):
        return read_background(path, index, names, levels)
    return LargeTable(path, index, names, levels).typed()


def data_chunks(
    path: str, index: str | None, levels: dict, background: pd.DataFrame
) -> Iterator[Table]:
    """Yield the rows to explain, read as the background's dtypes; a small file is one chunk."""
    if not is_large(path):
        yield read_data(path, index, levels, background)
        return
    yield from LargeTable(path, index, list(background.columns), levels, background).tables()
