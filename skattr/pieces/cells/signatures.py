"""Signatures of cells, kept sparse: rows of ranks that differ from a base row in few inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np


@dataclass(eq=False)
class Ranks:
    """Rows of ranks, (n, m), kept as their differences from a base row.

    Behind L one-hot columns any two of L levels differ in two inputs, so that all their signatures
    take O(L) numbers.
    """

    base: np.ndarray  # (m,)
    start: np.ndarray  # (n + 1,) where the entries of each row start
    entries: np.ndarray  # (entries, 2) input and rank, row by row

    @classmethod
    def of(cls, columns: Iterable[np.ndarray], base: np.ndarray, n: int) -> Ranks:
        """Return n rows of ranks from columns, the ranks of one input each."""
        rows, entries = [np.empty(0, np.intp)], [np.empty((0, 2), np.int32)]
        for s, ranks in enumerate(columns):
            row = np.flatnonzero(ranks != base[s])
            rows.append(row)
            entries.append(np.stack([np.full(len(row), s), ranks[row]], axis=1).astype(np.int32))
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
        return cls(base, start, np.concatenate(entries)[order])

    @classmethod
    def joined(cls, parts: list[Ranks]) -> Ranks:
        """Concatenate the rows of parts with the same base."""
        sizes = np.concatenate([np.diff(part.start) for part in parts])
        entries = np.concatenate([part.entries for part in parts])
        return cls(parts[0].base, np.concatenate([[0], np.cumsum(sizes)]), entries)

    def __len__(self) -> int:
        return len(self.start) - 1

    def take(self, rows: Any) -> Ranks:
        """Return some rows, by number."""
        parts = [self.entries[self.start[i] : self.start[i + 1]] for i in rows]
        start = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return Ranks(self.base, start, np.concatenate([self.entries[:0], *parts]))

    def keys(self) -> list[bytes]:
        """Return a key for each row, the same for equal rows only."""
        return [self.entries[a:b].tobytes() for a, b in pairwise(self.start.tolist())]

    def columns(self) -> Iterator[np.ndarray]:
        """Yield the ranks of each input, (n,)."""
        row = np.repeat(np.arange(len(self)), np.diff(self.start))
        order = np.argsort(self.entries[:, 0], kind="stable")
        ends = np.searchsorted(self.entries[order, 0], np.arange(len(self.base) + 1))
        for rank, (a, b) in zip(self.base, pairwise(ends.tolist()), strict=True):
            column = np.full(len(self), rank, np.int32)
            column[row[order[a:b]]] = self.entries[order[a:b], 1]
            yield column

    def dense(self) -> np.ndarray:
        """Return all ranks, (n, m)."""
        result = np.tile(self.base, (len(self), 1)).astype(np.int32)
        row = np.repeat(np.arange(len(self)), np.diff(self.start))
        result[row, self.entries[:, 0]] = self.entries[:, 1]
        return result
