"""The inputs of a model behind a sparse table."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skattr.pieces.parts import Front
from skattr.pieces.preprocessing.pipeline import CHUNK


def fill_absent(table: Any, absent: float) -> np.ndarray:
    """Return a sparse table as an array, its absent entries filled with a number."""
    if absent == 0:
        return table.toarray()
    entries = table.tocoo()
    result = np.full(table.shape, absent)
    result[entries.row, entries.col] = entries.data
    return result


class SparseInputs:
    """The inputs of a wide sparse table, (n, m), made one at a time: `inputs[:, i]`.

    A front treats each column by itself, and one-hot columns hold few distinct numbers: the front
    gets a table of these instead of the dense table.
    """

    def __init__(self, front: Front, table: Any) -> None:
        table = sparse.csc_array(table)
        table.sum_duplicates()
        n, p = table.shape
        column = np.repeat(np.arange(p), np.diff(table.indptr))
        order = np.lexsort((table.data, column))
        values, column = table.data[order], column[order]
        new = np.ones(len(values), bool)
        new[1:] = (column[1:] != column[:-1]) | (values[1:] != values[:-1])
        counts = np.bincount(column[new], minlength=p)  # of distinct numbers
        first = np.cumsum(counts) - counts
        self.n = n
        self.rows, self.start = table.indices, table.indptr
        self.number = np.empty(len(values), np.intp)  # of each entry, among those of its column
        self.number[order] = np.cumsum(new) - 1 - first[column]
        self.columns = front.columns
        sizes = counts[front.columns]
        self.first = np.cumsum(sizes) - sizes  # where the numbers of each input start
        self.absent = self._fill(front, values[new], first, counts)

    def _fill(
        self, front: Front, values: np.ndarray, first: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """Send the distinct numbers of all columns through the front; return the absent inputs."""
        dtype = values.dtype if front.absent == 0 else np.float64
        size = max(1, CHUNK // max(1, len(counts)))
        depth = counts[front.columns]
        deepest = int(counts.max(initial=0)) + 1
        for start in range(0, deepest, size):  # row 0 is absent everywhere
            rows = np.arange(start, min(start + size, deepest))
            table = np.full((len(rows), len(counts)), front.absent, dtype)
            for i, row in enumerate(rows):
                there = np.flatnonzero((counts >= row) & (row > 0))
                table[i, there] = values[first[there] + row - 1]
            inputs = front.inputs(table)
            if start == 0:
                absent = inputs[0].copy()
                self.numbers = np.empty(depth.sum(), inputs.dtype)
            for i, row in enumerate(rows):
                there = np.flatnonzero((depth >= row) & (row > 0))
                self.numbers[self.first[there] + row - 1] = inputs[i, there]
        return absent

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, at: tuple[slice, int]) -> np.ndarray:
        _, i = at
        column = self.columns[i]
        entries = slice(self.start[column], self.start[column + 1])
        result = np.full(self.n, self.absent[i])
        result[self.rows[entries]] = self.numbers[self.first[i] + self.number[entries]]
        return result
