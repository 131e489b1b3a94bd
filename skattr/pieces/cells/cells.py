"""The cells of one raw column: what a model can tell apart in it.

The rank of an input is 0 if it is missing, else 1 + the number of edges below it. Readers store
each edge as the largest float64 that the model still sends left, so that comparing in float64 is
right for every library (MATH.md, section 7). The ranks of all inputs that come from one raw column
are the signature of its value. A cell is the set of values with one signature, and its number is
the code of these values. Code 0 is missing.

Cells are enumerated from the fitted model and steps (enumeration.py). A column for which this is
impossible is open: its cells are those of the rows met so far (`Grid.meet`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skattr import frames
from skattr.kernels import lookup
from skattr.pieces.cells.signatures import Ranks
from skattr.pieces.preprocessing.routes import Input

INTEGERS = (np.int64, np.uint64)  # the types that float64 rounds


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
