"""f as a sum of pieces of different kinds, such as trees and linear models in one vote."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.pieces.additive import Additive, Linear
from skattr.pieces.base import Pieces
from skattr.pieces.boxes import Boxes
from skattr.pieces.outputs import Output


class Sum(Pieces):
    """f = Σ_i f_i; each addend is integrated by an engine of its own, as integrals are linear."""

    def __init__(self, parts: list, output: Output, row: Any) -> None:
        super().__init__(output, row)
        linear = [part for part in parts if isinstance(part, Linear)]
        trees = [part for part in parts if not isinstance(part, Linear)]
        self.boxes = Boxes(trees, output, row)
        self.additive = Additive(linear, output, row)

    @property
    def addends(self) -> tuple[Boxes, Additive]:
        """The pieces whose sum this is."""
        return self.boxes, self.additive

    @property
    def levels(self) -> np.ndarray:
        """Whether a column holds levels to one of the addends, (d,)."""
        return self.boxes.levels | self.additive.levels

    def without_table(self) -> list[int]:
        """Return the columns that are numbers to the additive part."""
        return self.additive.without_table()

    def level_values(self, k: int) -> list | None:
        """Return what a column of levels may hold."""
        return self.additive.level_values(k)

    def name_levels(self, X: Any) -> None:
        """Learn from X the names of levels that the model keeps no names of."""
        self.boxes.name_levels(X)

    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the sum of what was read."""
        values, rounding = zip(*(addend.reading(rows) for addend in self.addends), strict=True)
        return sum(values), sum(rounding)

    def preprocessings(self) -> list:
        """Return the steps of all addends."""
        return [steps for addend in self.addends for steps in addend.preprocessings()]

    def describe(self) -> str:
        """Say what the addends are."""
        return " and ".join(addend.describe() for addend in self.addends)
