"""The cells of one raw column: what a model can tell apart in it.

The rank of an input is 0 if it is missing, else 1 + the number of edges below it. Readers store
each edge as the largest float64 that the model still sends left, so that comparing in float64 is
right for every library (docs/mathematics.md, section 7). The ranks of all inputs that come from one
raw column are the signature of its value. A cell is the set of values with one signature, and its
number is the code of these values. Code 0 is missing.

Cells are enumerated from the fitted model and steps (enumeration.py). A column for which this is
impossible is open: its cells are those of the rows met so far (`Grid.meet`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.kernels import lookup
from skattr.pieces.cells.bisection import last_rounded
from skattr.pieces.preprocessing.routes import Input

INTEGERS = (np.int64, np.uint64)  # the types that float64 rounds


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


def _counted(n: int) -> np.ndarray:
    """Return the ranks 0, 1, …, n - 1 of one input, (n, 1)."""
    return np.arange(n, dtype=np.int32)[:, None]


def _packed(edges: np.ndarray) -> np.ndarray:
    """Return edges as the float32 below them, if the model compares in float32: half the bytes."""
    with np.errstate(over="ignore"):
        low = edges.astype(np.float32)
        low = np.where(low > edges, np.nextafter(low, np.float32(-np.inf)), low)
    return low if np.array_equal(_unpacked(low), edges) else edges


def _unpacked(edges: np.ndarray) -> np.ndarray:
    """Return edges as `_packed` took them: the largest float64 that are rounded to a float32."""
    if edges.dtype != np.float32:
        return edges
    with np.errstate(over="ignore", invalid="ignore"):  # infinite edges stay what they are
        return last_rounded(edges.astype(np.float64), edges.dtype)


@dataclass(eq=False)
class Cells:
    """The cells of one raw column.

    `ordered`: ranks never fall from code 1 on, so that the codes that go left at a split are 1, 2,
    … up to some code. `open`: the cells cannot be enumerated. `edges`: the edges of a number that
    reaches the model unchanged. `labels`: (level, code) for a column of levels.
    """

    inputs: list[Input]
    signatures: np.ndarray | Ranks  # (n_codes, n_inputs) ranks
    edges: np.ndarray | None = None
    labels: list | None = None
    open: bool = False
    ordered: bool = field(init=False)
    takes_missing: bool = True
    takes_infinite: bool = True
    dtype: Any = np.float64  # of the number
    partition: tuple | None = None  # ends of intervals on the raw scale, and their codes
    anonymous: bool = False  # whether labels are only what data named: the model keeps no names

    def __post_init__(self) -> None:
        if isinstance(self.signatures, Ranks):  # of levels behind one-hot columns
            self.ordered = False
            return
        rows = self.signatures[1:]
        sets = any(source.n_levels for source in self.inputs)
        rises = bool((rows > 0).all() and (np.diff(rows, axis=0) >= 0).all())
        self.ordered = rises and not sets and not self.open

    def __getstate__(self) -> dict[str, Any]:
        """Return the state; ranks that count 0, 1, 2, … are kept as their number.

        The edges of a plain number are those of its input, and kept once.
        """
        state, ranks = dict(vars(self)), self.signatures
        if self.inputs and self.edges is self.inputs[0].edges:
            state["edges"] = "of the input"
        state["inputs"] = [replace(each, edges=_packed(each.edges)) for each in self.inputs]
        if isinstance(ranks, np.ndarray) and np.array_equal(ranks, _counted(len(ranks))):
            state["signatures"] = len(ranks)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        ranks = state["signatures"]
        vars(self).update(state, signatures=_counted(ranks) if isinstance(ranks, int) else ranks)
        self.inputs = [replace(each, edges=_unpacked(each.edges)) for each in self.inputs]
        if isinstance(self.edges, str):
            self.edges = self.inputs[0].edges

    @property
    def n_codes(self) -> int:
        """Number of codes, missing included."""
        return len(self.signatures)

    @property
    def plain(self) -> bool:
        """Whether codes are the ranks of one input."""
        return (
            len(self.inputs) == 1
            and self.ordered
            and self.n_codes == len(self.inputs[0].edges) + 2
            and isinstance(self.signatures, np.ndarray)
            and self.signatures[0, 0] <= 0
        )

    @property
    def all_named(self) -> bool:
        """Whether each level that the model knows has a label."""
        named = {code for _, code in self.labels or []}
        return not self.anonymous or named >= set(range(1, self.n_codes))

    def ranks_by_input(self) -> Iterator[np.ndarray]:
        """Yield the ranks of each input by code, (n_codes,)."""
        if isinstance(self.signatures, Ranks):
            return self.signatures.columns()
        return iter(self.signatures.T)

    def codes_of(self, ranks: np.ndarray | Ranks, new: dict | None, name: Any) -> np.ndarray:
        """Return the codes of signatures (m, n_inputs).

        With a dict `new`, unknown signatures get the next codes, and are added to it.
        """
        if isinstance(self.signatures, Ranks):
            assert isinstance(ranks, Ranks)
            names, keys = self.signatures.keys(), np.array(ranks.keys(), object)
            rows, which = np.unique(keys, return_inverse=True)
        else:
            assert isinstance(ranks, np.ndarray)
            names = [row.tobytes() for row in self.signatures]
            distinct, which = np.unique(ranks, axis=0, return_inverse=True)
            rows = np.array([row.tobytes() for row in distinct], object)
        known = dict(zip(reversed(names), reversed(range(len(names))), strict=True))
        codes = np.empty(len(rows), np.int32)
        for i, row in enumerate(rows):
            code = known.get(row)
            if code is None and new is not None:
                code = new.setdefault(row, self.n_codes + len(new))
            if code is None:
                raise ValueError(
                    f"column {name!r}: a value lies in a cell that was not enumerated from the "
                    "fitted steps; numbers as float64, and levels of one type, avoid this"
                )
            codes[i] = code
        return codes[which.reshape(-1)]

    def encode_numbers(self, values: Any, name: Any) -> np.ndarray:
        """Return the codes of raw numbers that reach the model unchanged."""
        try:
            numbers = frames.to_float(values)
            if getattr(values, "dtype", None) in INTEGERS:  # rounded once, as the model does
                numbers = np.asarray(values).astype(self.dtype).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {name!r} must hold numbers: {error}") from error
        if not self.takes_infinite:  # and casts to float32
            with np.errstate(over="ignore"):
                if np.isinf(numbers.astype(np.float32)).any():
                    raise ValueError(
                        f"column {name!r}: the model does not accept infinite values, nor values "
                        "beyond float32"
                    )
        codes = np.empty(len(numbers), np.int32)
        lookup.rank(numbers, self.edges, codes)
        if not self.takes_missing and not codes.all():
            raise ValueError(f"column {name!r}: the model does not accept missing values")
        return codes
