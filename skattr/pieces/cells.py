"""What a model can tell apart in each raw column, and the numbers (codes) of it.

The rank of an input is 0 if it is missing, else 1 + the number of edges below it. Readers store
each edge as the largest float64 that the model still sends left, so that comparing in float64 is
right for every library (MATH.md, section 7). The ranks of all inputs that come from one raw column
are the signature of its value, and each signature has a code: that is a cell. Code 0 is missing.

Cells are enumerated from the fitted model and steps (enumeration.py). A column for which this is
impossible is open: its cells are those met (`Grid.meet`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from skattr import frames
from skattr.kernels import lookup
from skattr.pieces.routes import Input

OTHER = "any other"  # the rows of a table of levels that are not levels
MISSING = "missing"
GONE = (None, np.nan)  # the missing values that a column of objects tells apart
INTEGERS = (np.int64, np.uint64)  # the types that float64 rounds


@dataclass(frozen=True)
class Nameless:
    """A level of which the model keeps a number, but not the raw value."""

    number: Any


@dataclass(eq=False)
class Ranks:
    """Rows of ranks, (n, m), kept as what differs from a base row.

    Behind L one-hot columns each of L levels differs from another one in two places, so that all
    their signatures take O(L) numbers.
    """

    base: np.ndarray  # (m,)
    start: np.ndarray  # (n + 1,) where the entries of each row start
    entries: np.ndarray  # (entries, 2) input and rank, row by row

    @classmethod
    def of(cls, columns: Iterable[np.ndarray], base: np.ndarray, n: int) -> Ranks:
        """Return n rows of ranks, given input by input."""
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
        """Put the rows of parts with one base one behind the other."""
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
        """Return for each row a name that equal rows share, and only they."""
        return [self.entries[a:b].tobytes() for a, b in pairwise(self.start.tolist())]

    def columns(self) -> Iterator[np.ndarray]:
        """Yield the ranks of each input in turn, (n,)."""
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


@dataclass(eq=False)
class Cells:
    """The cells of one raw column.

    `ordered`: ranks never fall from code 1 on, so that what goes left at a split is 1, 2, … up to
    some code. `edges`: those of a number that reaches the model as it is. `labels`: (level, code)
    for a column of levels.
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
        """Return the codes of signatures (m, n_inputs); those that are new get the next numbers."""
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
                    f"column {name!r}: a value lies in a cell that the fitted steps did not "
                    "announce; numbers as float64, and levels of one type, avoid this"
                )
            codes[i] = code
        return codes[which.reshape(-1)]

    def encode_numbers(self, values: Any, name: Any) -> np.ndarray:
        """Return the codes of raw numbers that reach the model as they are."""
        try:
            numbers = frames.to_float(values)
            if getattr(values, "dtype", None) in INTEGERS:  # rounded once, as the model does
                numbers = np.asarray(values).astype(self.dtype).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {name!r} wants numbers: {error}") from error
        if not self.takes_infinite:  # and casts to float32
            with np.errstate(over="ignore"):
                if np.isinf(numbers.astype(np.float32)).any():
                    raise ValueError(
                        f"column {name!r}: the model takes no infinite values, none beyond float32"
                    )
        codes = np.empty(len(numbers), np.int32)
        lookup.rank(numbers, self.edges, codes)
        if not self.takes_missing and not codes.all():
            raise ValueError(f"column {name!r}: the model takes no missing values")
        return codes


def missing_rows(found: list[tuple]) -> list[tuple]:
    """Return (label, kind, what) from (missing value, what): one row, if None and NaN are alike."""
    if len(found) > 1:
        names = {True: f"{MISSING} (None)", False: f"{MISSING} (NaN)"}
        return [(names[value is None], MISSING, what) for value, what in found]
    return [(MISSING, MISSING, what) for _, what in found]


def unknown_level(levels: list) -> Any:
    """Return a value that is none of the levels, or None if there can be no other."""
    kinds = set(map(type, levels))
    if kinds == {bool}:
        return None
    if kinds and kinds <= {int, bool}:
        return max(levels) + 1
    if kinds and kinds <= {int, float, bool}:
        return max(max(levels) + 1.0, float(np.nextafter(max(levels), np.inf)))
    if kinds == {pd.Timestamp}:
        return max(levels) + pd.Timedelta(days=1)
    name = OTHER
    while name in levels:
        name += "."
    return name
