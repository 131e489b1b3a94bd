"""Spark: partitions travel as Arrow; states are merged by groups on the executors.

Only methods of DataFrames are used, no RDDs, so that Spark Connect serves as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StructField, StructType

from skattr.distributed.arrow_streams import joined, result_batches, result_schema, to_pandas
from skattr.distributed.shipping import Shipped, dumps, loads
from skattr.distributed.source import Source, merge_pairwise
from skattr.distributed.work import Explaining, Work

STATES = "part int, state binary"
STATE_SCHEMA = pa.schema([("part", pa.int32()), ("state", pa.binary())])
GROUPS = (64, 1)  # groups of states that are merged, level by level


class SparkFrame(Source):
    """A pyspark.sql.DataFrame, classic or of Spark Connect."""

    remote = True

    def __init__(self, frame: Any) -> None:
        if frame.isStreaming:
            raise TypeError(
                "a streaming DataFrame has no end: fit on a table, and explain inside foreachBatch"
            )
        self.frame = frame

    def labels(self) -> list[Any]:
        """Return the columns."""
        return list(self.frame.columns)

    def select(self, columns: list[Any]) -> SparkFrame:
        """Return some columns."""
        return SparkFrame(self.frame.select(*(self.frame[_quoted(name)] for name in columns)))

    def head(self, n: int) -> Any:
        """Return the first rows."""
        return _rows(self.frame.limit(n).toArrow())

    def reduce(self, work: Work) -> Any:
        """Merge the states of partitions in two levels of groups."""
        shipped = self._shipped(work)
        states = self.frame.mapInArrow(_prepare(shipped), STATES)
        for groups in GROUPS:
            key = (F.col("part") % groups).alias("group")
            states = states.groupBy(key).applyInArrow(_merge(shipped), STATES)
        rows = states.collect()
        return loads(bytes(rows[0]["state"])) if rows else None

    def map(self, work: Explaining, keep: list[Any]) -> Any:
        """Return a Spark DataFrame with the columns to keep."""
        fields = {field.name: field for field in self.frame.schema}
        new = [StructField(name, DoubleType(), False) for name in work.columns.names]
        schema = StructType([*(fields[name] for name in keep), *new])
        return self.frame.mapInArrow(_explain(self._shipped(work), keep), schema)

    def _shipped(self, work: Any) -> Callable[[], Shipped]:
        """Return a function that returns the work on executors, by a broadcast if there is one."""
        shipped = Shipped(work)
        session = self.frame.sparkSession
        if "connect" in type(session).__module__:
            return lambda: shipped
        broadcast = session.sparkContext.broadcast(shipped)
        return lambda: broadcast.value


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _rows(table: pa.Table) -> Any:
    """Return a table as pandas; times are those of the session's time zone, as in `toPandas`."""
    for k, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            table = table.set_column(k, field.name, pc.local_timestamp(table.column(k)))
    return to_pandas(table)


def _number() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _prepare(shipped: Callable[[], Shipped]) -> Callable[..., Iterator[pa.RecordBatch]]:
    def prepare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work, number = shipped().get(), _number()
        tables = enumerate(joined(batches))
        parts = (work.of_rows(_rows(table), number, block) for block, table in tables)
        state = merge_pairwise(parts, work.merge)
        if state is not None:
            yield pa.record_batch([[number], [dumps(state)]], schema=STATE_SCHEMA)

    return prepare


def _merge(shipped: Callable[[], Shipped]) -> Callable[..., pa.Table]:
    def merge(key: tuple[pa.Scalar, ...], states: pa.Table) -> pa.Table:
        content = (loads(state.as_py()) for state in states.column("state"))
        whole = merge_pairwise(content, shipped().get().merge)
        return pa.table([[key[0].as_py()], [dumps(whole)]], schema=STATE_SCHEMA)

    return merge


def _explain(
    shipped: Callable[[], Shipped], keep: list[Any]
) -> Callable[..., Iterator[pa.RecordBatch]]:
    def explain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work, number = shipped().get(), _number()
        for table in joined(batches):
            columns = work.of_rows(_rows(table.select(work.columns.inputs)), number)
            yield from result_batches(table, columns, keep, result_schema(table.schema, work, keep))

    return explain
