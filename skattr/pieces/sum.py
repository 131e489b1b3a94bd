"""f as a sum of pieces of different kinds, such as trees and linear models in one vote."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.pieces.additive import Additive, Linear
from skattr.pieces.base import Pieces
from skattr.pieces.boxes import Boxes, Trees
from skattr.pieces.columnwise import Columnwise
from skattr.pieces.outputs import Output
from skattr.pieces.products import Bumps, Products
from skattr.pieces.relu import Net, ReluNetwork

KINDS: dict[type, type[Pieces]] = {
    Trees: Boxes,
    Linear: Additive,
    Bumps: Products,
    Net: ReluNetwork,
}


def by_kind(parts: list) -> list[tuple[Any, list]]:
    """Return the kinds of pieces that parts make, each with its parts."""
    found = [(KINDS[kind], [p for p in parts if isinstance(p, kind)]) for kind in KINDS]
    return [(pieces, own) for pieces, own in found if own]


class Sum(Pieces):
    """f = Σ_i f_i; each addend is integrated by an engine of its own, as integrals are linear."""

    def __init__(self, addends: list[Pieces], output: Output, row: Any) -> None:
        super().__init__(output, row)
        self._addends = tuple(addends)
        self._smooth = [addend for addend in addends if isinstance(addend, Columnwise)]

    @property
    def addends(self) -> tuple[Pieces, ...]:
        """The pieces whose sum this is."""
        return self._addends

    @property
    def levels(self) -> np.ndarray:
        """Whether a column holds levels to one of the addends, (d,)."""
        return np.any([known for a in self.addends if (known := a.levels) is not None], axis=0)

    def without_table(self) -> list[int]:
        """Return the columns that are numbers to a part that has no cells."""
        return sorted({k for addend in self._smooth for k in addend.without_table()})

    def level_values(self, k: int) -> tuple[list, list, list] | None:
        """Return what a column of levels may hold, if it has levels to all parts without cells."""
        found = [addend.level_values(k) for addend in self._smooth]
        return None if any(levels is None for levels in found) else found[0]

    def name_levels(self, X: Any) -> None:
        """Learn from X the names of levels that the model keeps no names of."""
        for addend in self.addends:
            addend.name_levels(X)

    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the sum of what was read."""
        found = [addend.reading(rows) for addend in self.addends]
        values, rounding = zip(*(pair for pair in found if pair is not None), strict=True)
        return sum(values), sum(rounding)

    def preprocessings(self) -> list:
        """Return the steps of all addends."""
        return [steps for addend in self.addends for steps in addend.preprocessings()]

    def describe(self) -> str:
        """Say what the addends are."""
        return " and ".join(addend.describe() for addend in self.addends)
