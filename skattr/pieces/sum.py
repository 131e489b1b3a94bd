"""f as a sum of pieces of different kinds, such as trees and linear models in one vote."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._typing import override
from skattr.pieces.additive import Additive
from skattr.pieces.base import Pieces
from skattr.pieces.boxes import Boxes
from skattr.pieces.columnwise import Columnwise
from skattr.pieces.outputs import Output
from skattr.pieces.parts import Bumps, Linear, Net, Part, Trees
from skattr.pieces.products import Products
from skattr.pieces.relu import ReluNetwork

KINDS: dict[type[Part], Any] = {Trees: Boxes, Linear: Additive, Bumps: Products, Net: ReluNetwork}


def by_kind(parts: list[Part]) -> list[tuple[Any, list[Part]]]:
    """Return the kinds of pieces that parts make up, each with its parts."""
    groups = [(KINDS[kind], [p for p in parts if isinstance(p, kind)]) for kind in KINDS]
    return [(pieces, some) for pieces, some in groups if some]


class Sum(Pieces):
    """f = Σ_i f_i; an engine is chosen for each addend, as integrals are linear."""

    def __init__(self, addends: list[Pieces], output: Output, row: Any) -> None:
        super().__init__(output, row)
        self._addends = tuple(addends)
        self._columnwise = [addend for addend in addends if isinstance(addend, Columnwise)]

    @property
    @override
    def addends(self) -> tuple[Pieces, ...]:
        return self._addends

    @property
    @override
    def levels(self) -> np.ndarray:
        """Whether one of the addends treats each column as levels, (d,)."""
        return np.any([known for a in self.addends if (known := a.levels) is not None], axis=0)

    @override
    def without_table(self) -> list[int]:
        """Return the columns that are numbers to an addend without cells."""
        return sorted({k for addend in self._columnwise for k in addend.without_table()})

    @override
    def level_values(self, k: int) -> tuple[list, list, list] | None:
        """Return the values of a column that is one of levels to all addends without cells."""
        values = [addend.level_values(k) for addend in self._columnwise]
        return None if any(levels is None for levels in values) else values[0]

    @override
    def name_levels(self, X: Any) -> None:
        for addend in self.addends:
            addend.name_levels(X)

    @override
    def reading(self, rows: Any) -> tuple[Any, Any]:
        readings = [addend.reading(rows) for addend in self.addends]
        values, rounding = zip(*(pair for pair in readings if pair is not None), strict=True)
        return sum(values), sum(rounding)

    @override
    def cancellation(self, rows: Any) -> str | None:
        found = (addend.cancellation(rows) for addend in self.addends)
        return next((words for words in found if words is not None), None)

    @override
    def preprocessings(self) -> list:
        return [steps for addend in self.addends for steps in addend.preprocessings()]

    @override
    def describe(self) -> str:
        return " and ".join(addend.describe() for addend in self.addends)
