"""DuckDB: a relation is read as a stream of record batches, and the result is a relation again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from skattr.distributed.arrow_streams import Again, ArrowStream, check_types
from skattr.distributed.source import ROWS_AT_ONCE
from skattr.distributed.work import Explaining


class DuckDBRelation(ArrowStream):
    """A DuckDBPyRelation."""

    def _schema(self) -> pa.Schema:
        return self.frame.limit(0).to_arrow_table().schema

    def labels(self) -> list[Any]:
        """Return the columns."""
        return list(self.frame.columns) if self.columns is None else self.columns

    def select(self, columns: list[Any]) -> DuckDBRelation:
        """Return some columns."""
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        return DuckDBRelation(self.frame.project(", ".join(quoted)))

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield record batches as DuckDB computes them."""
        yield from self.frame.to_arrow_reader(ROWS_AT_ONCE)

    def map(self, work: Explaining, keep: list[Any]) -> Any:
        """Return a relation of a connection of its own, which reads this one when it is read."""
        check_types(self._schema(), work.columns.inputs)
        read = super().map
        return duckdb.connect().from_arrow(Again(lambda: read(work, keep)))
