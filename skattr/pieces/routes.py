"""The ways from raw columns to the numbers that a model compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from skattr import frames
from skattr.kernels import lookup
from skattr.pieces.pipeline import CHUNK, Preprocessing
from skattr.pieces.steps import FREE, Track


class Front(Protocol):
    """The checks, casts and encoders of the model itself."""

    columns: np.ndarray  # (m,) the column of its table that each input comes from
    takes_missing: bool
    takes_infinite: bool
    dtype: np.dtype  # of the inputs
    absent: float  # what an absent entry of a sparse table means
    changes: np.ndarray  # (m,) whether a number is more than cast, such as 0 taken for missing

    def inputs(self, X: Any) -> np.ndarray:
        """Return what the model compares, (n, m), or refuse X as `predict` does."""


@dataclass(eq=False)
class Route:
    """The way from raw columns to the inputs of a part of the model."""

    steps: Preprocessing | None
    front: Front

    def inputs(self, X: Any, wanted: set | None = None, memo: dict | None = None) -> Any:
        """Return the inputs, (n, m); with `wanted` only those of some raw columns are right.

        They are an array, or SparseInputs, of which [:, i] is one.
        """
        if self.steps is not None:
            keep_sparse = self.front.absent != 0 or self.steps.is_wide
            X = self.steps.transform(X, wanted, keep_sparse, memo)
            if sparse.issparse(X):
                if self.steps.is_wide:
                    return SparseInputs(self.front, X)
                X = dense(X, self.front.absent)
        return self.front.inputs(X)

    def track(self, c: int) -> Track:
        """Return what input c is, as a function of a raw column, before the model's own encoder."""
        column = int(self.front.columns[c])
        track = Track(column) if self.steps is None else self.steps.tracks[column]
        return track.then(FREE) if self.changes(c) else track

    def changes(self, c: int) -> bool:
        """Tell whether single numbers are changed on the way, such as 0 taken for missing."""
        absent = self.steps is not None and self.steps.sparse and self.front.absent != 0
        return absent or bool(self.front.changes[c])


def dense(table: Any, absent: float) -> np.ndarray:
    """Return a sparse table with what its absent entries mean to the model."""
    if absent == 0:
        return table.toarray()
    entries = table.tocoo()
    result = np.full(table.shape, absent)
    result[entries.row, entries.col] = entries.data
    return result


class SparseInputs:
    """The inputs of a wide sparse table, (n, m), made one at a time: `inputs[:, i]`.

    A front treats each column by itself, and one-hot columns hold few distinct numbers: it is shown
    a table of these, one below the other, in place of the dense table.
    """

    def __init__(self, front: Front, table: Any) -> None:
        table = sparse.csc_array(table)
        table.sum_duplicates()
        n, p = table.shape
        column = np.repeat(np.arange(p), np.diff(table.indptr))
        order = np.lexsort((table.data, column))
        values, of = table.data[order], column[order]
        new = np.ones(len(values), bool)
        new[1:] = (of[1:] != of[:-1]) | (values[1:] != values[:-1])
        counts = np.bincount(of[new], minlength=p)  # of distinct numbers
        first = np.cumsum(counts) - counts
        self.n = n
        self.rows, self.start = table.indices, table.indptr
        self.number = np.empty(len(values), np.intp)  # of each entry, among those of its column
        self.number[order] = np.cumsum(new) - 1 - first[of]
        self.columns = front.columns
        sizes = counts[front.columns]
        self.place = np.cumsum(sizes) - sizes  # where the numbers of each input start
        self.absent = self._fill(front, values[new], first, counts)

    def _fill(
        self, front: Front, values: np.ndarray, first: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """Send the distinct numbers of all columns through the front; return the absent ones."""
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
            found = front.inputs(table)
            if start == 0:
                absent = found[0].copy()
                self.numbers = np.empty(depth.sum(), found.dtype)
            for i, row in enumerate(rows):
                there = np.flatnonzero((depth >= row) & (row > 0))
                self.numbers[self.place[there] + row - 1] = found[i, there]
        return absent

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, at: tuple[slice, int]) -> np.ndarray:
        _, i = at
        column = self.columns[i]
        entries = slice(self.start[column], self.start[column + 1])
        result = np.full(self.n, self.absent[i])
        result[self.rows[entries]] = self.numbers[self.place[i] + self.number[entries]]
        return result


@dataclass(eq=False)
class Input:
    """A number that the model asks for: compared with edges or, if `n_levels`, found in sets."""

    route: int
    place: int  # column of the route's inputs
    track: Track
    edges: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_levels: int = 0

    def rank(self, values: np.ndarray, out: np.ndarray) -> None:
        """Fill out with the ranks of values."""
        if self.n_levels:
            out[:] = np.where(np.isnan(values), -1, values).astype(np.int32) + 1
        else:
            lookup.rank(values, self.edges, out)


def few_levels(X: Any, columns: Iterable[int]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the columns of levels whose distinct values are few enough to look up."""
    found = {k: frames.distinct(frames.column(X, k)) for k in columns if frames.is_level(X, k)}
    return {k: v for k, v in found.items() if len(v[0]) <= len(X) // 2}


@contextmanager
def refusals(X: Any, row: Any, inputs: Callable, behind_steps: bool) -> Iterator[None]:
    """Turn what a fitted step or the model says of X into an error that names the column.

    `inputs` refuses rows as the model does, `row` is one that it takes.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        why = _blame(X, row, inputs) if behind_steps else frames.unusual(X)
        raise ValueError(f"the model refuses X: {error}{why}") from error


def _blame(X: Any, row: Any, inputs: Callable) -> str:
    """Name the first column that the fitted steps refuse, found by halving."""
    names = frames.labels(row)
    columns = list(range(len(names)))
    while len(columns) > 1:
        half = columns[: len(columns) // 2]
        columns = half if _refused(X, row, inputs, half) else columns[len(half) :]
    if not _refused(X, row, inputs, columns):
        return ""
    return (
        f" (column {names[columns[0]]!r}: leave such rows out, or let the step that prepares it "
        "take them, as handle_unknown and SimpleImputer do)"
    )


def _refused(X: Any, row: Any, inputs: Callable, columns: list[int]) -> bool:
    """Tell whether the distinct values of some columns of X are refused."""
    own = {k: frames.column(X, k) for k in columns}
    firsts = {k: frames.distinct(values)[0] for k, values in own.items()}
    n = max(map(len, firsts.values()))
    rows = {k: frames.take_values(own[k], np.resize(first, n)) for k, first in firsts.items()}
    try:
        inputs(frames.with_columns(row, rows))
    except (TypeError, ValueError):
        return True
    return False
