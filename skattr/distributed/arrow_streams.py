"""Arrow: datasets, readers and streams of record batches, which become pandas frames.

Dictionaries become categories, decimals become float64, dates datetimes; a column of integers is
float64 in a batch where some are missing (see alignment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from skattr.distributed.source import ROWS_AT_ONCE, LocalSource
from skattr.distributed.work import Explaining


class ArrowStream(LocalSource):
    """A Dataset, a RecordBatchReader, or an object with `__arrow_c_stream__`."""

    def __init__(self, frame: Any, columns: list[Any] | None = None) -> None:
        self.frame, self.columns = frame, columns
        self.again = not isinstance(frame, pa.RecordBatchReader)
        self._first: list[pa.RecordBatch] = []  # read from a reader, and not yet used

    def _schema(self) -> pa.Schema:
        if isinstance(self.frame, ds.Dataset | pa.RecordBatchReader | pa.Table | pa.RecordBatch):
            return self.frame.schema
        return pa.RecordBatchReader.from_stream(self.frame).schema

    def labels(self) -> list[Any]:
        """Return the names of the schema."""
        return list(self._schema().names) if self.columns is None else self.columns

    def select(self, columns: list[Any]) -> ArrowStream:
        """Return some columns."""
        return ArrowStream(self.frame, columns)

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield record batches with the chosen columns."""
        columns = self.labels()
        if isinstance(self.frame, ds.Dataset):
            yield from self.frame.to_batches(columns=columns)
            return
        first, self._first = self._first, []
        reader = self.frame
        if not isinstance(reader, pa.RecordBatchReader):
            reader = pa.RecordBatchReader.from_stream(reader)
        for batch in _chained(first, reader):
            yield batch.select(columns)

    def head(self, n: int) -> Any:
        """Return the first rows; those of a reader are kept for the pass over all rows."""
        if self.again:
            return super().head(n)
        batch = pa.RecordBatch.from_pylist([], schema=self.frame.schema)
        for batch in self.frame:
            self._first.append(batch)
            if batch.num_rows:
                break
        return to_pandas(pa.Table.from_batches([batch.slice(0, n)]).select(self.labels()))

    def batches(self) -> Iterator[pd.DataFrame]:
        """Yield pandas frames of about equal size."""
        for table in joined(self.record_batches()):
            yield to_pandas(table)

    def map(self, work: Explaining, keep: list[Any]) -> pa.RecordBatchReader:
        """Return a RecordBatchReader, which reads and explains as it is read."""
        schema = self._schema()
        check_types(schema, work.columns.inputs)
        result = result_schema(schema, work, keep)
        batches = explained(joined(self.record_batches()), work, keep, result)
        return pa.RecordBatchReader.from_batches(result, batches)


class Again:
    """A stream of record batches that starts anew whenever it is read."""

    def __init__(self, reader: Callable[[], pa.RecordBatchReader]) -> None:
        self.reader = reader

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


def _chained(first: list[pa.RecordBatch], reader: Any) -> Iterator[pa.RecordBatch]:
    while first:
        yield first.pop(0)
    yield from reader


def joined(batches: Iterator[pa.RecordBatch], rows: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """Yield tables of at most `rows` rows, made of batches that may be small or large."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, rows - size)
            batch = batch.slice(part.num_rows)
            waiting.append(part)
            size += part.num_rows
            if size == rows:
                yield pa.Table.from_batches(waiting)
                waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def result_schema(schema: pa.Schema, work: Explaining, keep: list[Any]) -> pa.Schema:
    """Return the schema of a result."""
    fields = [schema.field(name) for name in keep]
    return pa.schema([*fields, *(pa.field(name, pa.float64()) for name in work.columns.names)])


def explained(
    tables: Iterator[pa.Table], work: Explaining, keep: list[Any], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a result."""
    for number, table in enumerate(tables):
        columns = work.of_rows(to_pandas(table.select(work.columns.inputs)), number)
        yield from result_batches(table, columns, keep, schema)


def result_batches(
    table: pa.Table, columns: dict[str, Any], keep: list[Any], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the columns to keep and computed ones as record batches."""
    arrays = [*(table.column(name) for name in keep), *map(pa.array, columns.values())]
    yield from pa.Table.from_arrays(arrays, schema=schema).to_batches()


def check_types(schema: pa.Schema, columns: list[Any]) -> None:
    """Refuse columns that no model takes, by name."""
    for name in columns:
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise TypeError(
                f"column {name!r} holds {kind}, and a model takes numbers, text, booleans, dates "
                "or categories: unnest or drop it"
            )


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a table as pandas, with dtypes that follow from the types."""
    check_types(table.schema, table.schema.names)
    for k, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            new = pa.field(field.name, pa.float64())
            table = table.set_column(k, new, table.column(k).cast(pa.float64()))
    # without pandas' metadata, by which a column that a model takes would become the index
    return table.unify_dictionaries().to_pandas(date_as_object=False, ignore_metadata=True)
