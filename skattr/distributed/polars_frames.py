"""polars: a LazyFrame is collected in batches, and the result is a LazyFrame."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import polars as pl

from skattr.distributed.source import ROWS_AT_ONCE, LocalSource, with_kept
from skattr.distributed.work import Explaining


class PolarsFrame(LocalSource):
    """A polars.LazyFrame."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self.frame = frame

    def labels(self) -> list[Any]:
        """Return the names of the schema."""
        return self.frame.collect_schema().names()

    def select(self, columns: list[Any]) -> PolarsFrame:
        """Return some columns."""
        return PolarsFrame(self.frame.select(columns))

    def head(self, n: int) -> Any:
        """Return the first rows."""
        return self.frame.head(n).collect()

    def batches(self) -> Iterator[pl.DataFrame]:
        """Yield frames as polars computes them."""
        if hasattr(self.frame, "collect_batches"):  # since polars 1.34
            yield from self.frame.collect_batches(chunk_size=ROWS_AT_ONCE)
        else:
            yield from self.frame.collect(engine="streaming").iter_slices(ROWS_AT_ONCE)

    def map(self, work: Explaining, keep: list[Any]) -> pl.LazyFrame:
        """Return a LazyFrame; the streaming engine explains in batches."""
        schema = self.frame.collect_schema()
        numbers = count()

        def explain(table: pl.DataFrame) -> pl.DataFrame:
            return with_kept(table, keep, work.of_rows(table, next(numbers)))

        declared = {name: schema[name] for name in keep}
        declared |= dict.fromkeys(work.columns.names, pl.Float64())
        return self.frame.map_batches(explain, schema=declared, streamable=True)
