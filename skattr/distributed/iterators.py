"""Any iterable of pandas or polars frames, such as the chunks of `pandas.read_csv`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pandas as pd

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.distributed.source import LocalSource, check_names, with_kept
from skattr.distributed.work import Explaining


class Frames(LocalSource):
    """Frames one after the other; a generator can be read once, a list again."""

    def __init__(self, iterable: Iterable[Any], columns: list[Any] | None = None) -> None:
        self.again = not isinstance(iterable, Iterator)
        self.iterable, self.columns = iterable, columns

    def labels(self) -> list[Any]:
        """Return the columns of the first frame, which is read."""
        if self.columns is not None:
            return self.columns
        iterator = iter(self.iterable)
        first = next(iterator, None)
        if first is None:
            raise ValueError("there are no frames to read: the iterable is empty")
        if not self.again:
            self.iterable = chain([first], iterator)
        _check(first, 0)
        return frames.labels(first)

    def select(self, columns: list[Any]) -> Frames:
        """Return some columns."""
        return Frames(self.iterable, columns)

    def batches(self) -> Iterator[Any]:
        """Yield the frames."""
        for number, table in enumerate(self.iterable):
            _check(table, number)
            check_names(frames.labels(table), f"{self.part} {number}")
            if self.columns is not None:
                missing = [name for name in self.columns if name not in frames.labels(table)]
                if missing:
                    raise ValueError(f"{self.part} {number}: the columns {missing} are missing")
                table = frames.reorder(table, self.columns)
            yield table

    def head(self, n: int) -> Any:
        """Return the first rows; frames that are read for it are kept for the pass over all."""
        if self.again:
            return super().head(n)
        read: list[Any] = []
        iterator = iter(self.iterable)
        for table in iterator:
            read.append(table)
            if len(table):
                break
        self.iterable = chain(read, iterator)
        chosen = Frames(read, self.columns)
        return chosen.head(n)

    def map(self, work: Explaining, keep: list[Any]) -> Iterator[Any]:
        """Yield frames of the same library with the same index, one for each."""
        for number, table in enumerate(self.batches()):
            yield with_kept(table, keep, work.of_rows(table, number))


def _check(table: Any, number: int) -> None:
    arrow = hasattr(table, "schema") and type(table).__module__.startswith("pyarrow")
    if arrow or not (isinstance(table, pd.DataFrame) or frames.is_frame(table)):
        words = "; of record batches, make a RecordBatchReader or a Dataset" if arrow else ""
        raise TypeError(
            f"batch {number}: an iterable must yield pandas or polars frames, got "
            f"{brief(table)}{words}"
        )
