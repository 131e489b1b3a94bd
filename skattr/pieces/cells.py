"""What a model can tell apart in each raw column, and the numbers (codes) of it.

The rank of an input is 0 if it is missing, else 1 + the number of edges below it. Readers store
each edge as the largest float64 that the model still sends left, so that comparing in float64 is
right for every library (MATH.md, section 7). The ranks of all inputs that come from one raw column
are the signature of its value, and each signature has a code: that is a cell. Code 0 is missing.

Cells are enumerated from the fitted model and steps (enumeration.py). A column for which this is
impossible is open: its cells are those met (`Grid.meet`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
class Cells:
    """The cells of one raw column.

    `ordered`: ranks never fall from code 1 on, so that what goes left at a split is 1, 2, … up to
    some code. `edges`: those of a number that reaches the model as it is. `labels`: (level, code)
    for a column of levels.
    """

    inputs: list[Input]
    signatures: np.ndarray  # (n_codes, n_inputs) ranks
    edges: np.ndarray | None = None
    labels: list | None = None
    open: bool = False
    ordered: bool = field(init=False)
    takes_missing: bool = True
    takes_infinite: bool = True
    dtype: Any = np.float64  # of the number
    partition: tuple | None = None  # ends of intervals on the raw scale, and their codes

    def __post_init__(self) -> None:
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
            and self.signatures[0, 0] <= 0
        )

    def codes_of(self, ranks: np.ndarray, new: dict | None, name: Any) -> np.ndarray:
        """Return the codes of signatures (m, n_inputs); those that are new get the next numbers."""
        if not self.inputs:
            return np.ones(len(ranks), np.int32)
        known = {row.tobytes(): code for code, row in reversed(list(enumerate(self.signatures)))}
        rows, which = np.unique(ranks, axis=0, return_inverse=True)
        codes = np.empty(len(rows), np.int32)
        for i, row in enumerate(rows):
            code = known.get(row.tobytes())
            if code is None and new is not None:
                code = new.setdefault(row.tobytes(), self.n_codes + len(new))
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
