"""Dask: partitions are prepared where they are, and merged in a tree; the index is kept."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd

from skattr.distributed.shipping import Shipped
from skattr.distributed.source import Source, with_kept
from skattr.distributed.work import Explaining, Work

AT_ONCE = 4  # states that one task merges


class DaskFrame(Source):
    """A dask.dataframe."""

    remote = True

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def labels(self) -> list[Any]:
        """Return the columns."""
        return list(self.frame.columns)

    def select(self, columns: list[Any]) -> DaskFrame:
        """Return some columns."""
        return DaskFrame(self.frame[columns])

    def head(self, n: int) -> Any:
        """Return rows of the first partition that has any; only these leave the workers."""
        rows = self.frame._meta
        for i in range(self.frame.npartitions):
            rows = self.frame.get_partition(i).head(n, npartitions=1, compute=False).compute()
            if len(rows):
                break
        return rows

    def reduce(self, work: Work) -> Any:
        """Merge the states of partitions in a tree of tasks."""
        shipped = dask.delayed(Shipped(work), traverse=False)
        prepare, merge = dask.delayed(_prepare), dask.delayed(_merge)
        parts = enumerate(self.frame.to_delayed())
        states = [prepare(shipped, part, number) for number, part in parts]
        while len(states) > 1:
            starts = range(0, len(states), AT_ONCE)
            states = [merge(shipped, states[start : start + AT_ONCE]) for start in starts]
        return states[0].compute()

    def map(self, work: Explaining, keep: list[Any]) -> Any:
        """Return a dask.dataframe with the same partitions and index."""
        shipped = dask.delayed(Shipped(work), traverse=False)
        explain = dask.delayed(_explain)
        parts = enumerate(self.frame.to_delayed())
        meta = self.frame._meta
        values = {name: pd.Series(dtype="float64", index=meta.index) for name in work.columns.names}
        return dd.from_delayed(
            [explain(shipped, part, number, keep) for number, part in parts],
            meta=pd.concat([meta[keep], pd.DataFrame(values, index=meta.index)], axis=1),
            divisions=self.frame.divisions,
            verify_meta=False,
        )


def _prepare(shipped: Shipped, table: Any, number: int) -> Any:
    return shipped.get().of_rows(table, number) if len(table) else None


def _merge(shipped: Shipped, states: list[Any]) -> Any:
    work, whole = shipped.get(), None
    for state in states:
        if state is not None:
            whole = state if whole is None else work.merge(whole, state)
    return whole


def _explain(shipped: Shipped, table: Any, number: int, keep: list[Any]) -> Any:
    return with_kept(table, keep, shipped.get().of_rows(table, number))
