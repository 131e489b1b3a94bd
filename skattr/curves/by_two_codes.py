"""Functions of the codes of two columns: interactions on boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._typing import override
from skattr.curves.base import NO_ROWS, PairFunction
from skattr.kernels.boxes.rectangles import Axis, Rectangles, at_cells, at_points
from skattr.pieces import Grid


class ByTwoCodes(PairFunction):
    """A sum of rectangles over the codes of two columns.

    Parameters
    ----------
    grid : Grid
        The cells of the model.
    columns : (int, int)
        Both columns.
    attributions : (int, int)
        Their numbers in `rectangles`.
    rectangles : Rectangles
    weight : float
        What the sums are divided by.
    """

    def __init__(
        self,
        grid: Grid,
        columns: tuple[int, int],
        attributions: tuple[int, int],
        rectangles: Rectangles,
        weight: float,
    ) -> None:
        self.grid = grid
        self.columns = columns
        self.rectangles = rectangles
        self.weight = weight
        self.first, self.second = (
            Axis(a, grid.cells[k].n_codes, not grid.cells[k].ordered)
            for k, a in zip(columns, attributions, strict=True)
        )

    @override
    def at_rows(
        self, codes: np.ndarray | None, X: Any, columns: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        assert codes is not None
        return self._at(*(codes[k] for k in self.columns)), NO_ROWS

    @override
    def evaluate(self, first: Any, second: Any) -> np.ndarray:
        return self._at(*self._codes(first, second))

    @override
    def on_grid(self, first: Any, second: Any) -> np.ndarray:
        return self.on_cells(*self._codes(first, second))

    @override
    def on_cells(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return at_cells(self.rectangles, self.first, self.second, first, second) / self.weight

    def _at(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return at_points(self.rectangles, self.first, self.second, first, second) / self.weight

    def _codes(self, *values: Any) -> list[np.ndarray]:
        return [
            self.grid.encode_values(k, each) for k, each in zip(self.columns, values, strict=True)
        ]
