"""Frames that are not in memory, as `fit` and `explain` see them.

A source has named columns, and rows in parts: partitions on a cluster, or batches that are read one
after the other in this process. `reduce` maps a function over the parts and merges the results,
`map` returns a frame of the same kind, which computes nothing before it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import narwhals.stable.v2 as nw
import pandas as pd

from skattr._inputs import frames
from skattr.distributed.work import Explaining, Work, table_of

ROWS_AT_ONCE = 2**17  # rows that are prepared or explained together, which bounds memory


class Source(ABC):
    """A frame of one kind.

    Attributes
    ----------
    part : str
        What its parts are called in errors.
    remote : bool
        Whether other processes work on the parts, so that what they need must pickle.
    again : bool
        Whether the rows can be read more than once.
    """

    part = "partition"
    remote = False
    again = True

    @abstractmethod
    def labels(self) -> list[Any]:
        """Return the names of the columns; no row is computed if the kind of frame knows them."""

    @abstractmethod
    def select(self, columns: list[Any]) -> Source:
        """Return the source with some columns only."""

    @abstractmethod
    def head(self, n: int) -> Any:
        """Return up to n of the first rows as a table in memory, with no rows if there are none."""

    @abstractmethod
    def reduce(self, work: Work) -> Any:
        """Return what `work` computes of all parts, merged; None if there are no rows."""

    @abstractmethod
    def map(self, work: Explaining, keep: list[Any]) -> Any:
        """Return the frame of the columns to keep and of what `work` computes, lazily."""


class LocalSource(Source):
    """A frame whose batches are read one after the other in this process."""

    part = "batch"

    @abstractmethod
    def batches(self) -> Iterator[Any]:
        """Yield tables of rows."""

    def head(self, n: int) -> Any:
        """Return up to n rows of the first batch that has any."""
        table: Any = None
        for table in self.batches():
            if len(table):
                break
        return None if table is None else frames.take_rows(table, slice(n))

    def reduce(self, work: Work) -> Any:
        """Fold the batches as they come."""
        parts = (work.of_rows(table, i) for i, table in enumerate(self.batches()) if len(table))
        return merge_pairwise(parts, work.merge)


def check_names(labels: list[Any], what: str) -> None:
    """Refuse columns of equal names."""
    double = sorted({str(name) for name in labels if labels.count(name) > 1})
    if double:
        raise ValueError(f"the columns {double} occur in {what} more than once; rename them")


def merge_pairwise(parts: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge parts as they come, two of about equal size at a time; None stands for no rows."""
    stack: list[tuple[int, Any]] = []
    for part in parts:
        if part is None:
            continue
        size = 1
        while stack and stack[-1][0] == size:
            part = merge(stack.pop()[1], part)
            size *= 2
        stack.append((size, part))
    whole = None
    for _, part in reversed(stack):
        whole = part if whole is None else merge(part, whole)
    return whole


def with_kept(table: Any, keep: list[Any], columns: dict[str, Any]) -> Any:
    """Return the columns to keep and computed ones as a frame like `table`, with its index."""
    if isinstance(table, pd.DataFrame):
        result = table.loc[:, keep].copy()
        values = pd.DataFrame(columns, index=table.index)
        return pd.concat([result, values], axis=1) if keep else values
    frame = nw.from_native(table, eager_only=True)
    new = [
        nw.new_series(name, values, nw.Float64(), backend=frame.implementation)
        for name, values in columns.items()
    ]
    kept = [frame[name] for name in keep]
    return table_of([*kept, *new], frame.implementation)
