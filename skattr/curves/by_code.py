"""Functions of a column's code alone: constants and step functions, levels among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skattr import frames
from skattr.curves.base import ON_IT, ColumnFunction
from skattr.pieces import Grid


class Constant(ColumnFunction):
    """One value, whatever the column holds: a step function without a jump.

    Parameters
    ----------
    values : array (1, k)
    """

    kind = "steps"
    of_numbers = False  # whatever is asked has the same value

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __mul__(self, factor: float) -> Constant:
        return Constant(self.values * factor)

    __rmul__ = __mul__

    def __add__(self, other: Constant | ByCode) -> Constant | ByCode:
        return other.with_values(self.values + other.values)

    def with_values(self, values: np.ndarray) -> Constant:
        """Return the function with other values."""
        return Constant(values)

    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the constant."""
        return self.values.repeat(len(values), axis=0), ON_IT

    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return one step."""
        step = {"lower": [-np.inf], "upper": [np.inf], "closed": ["right"]}
        return pd.DataFrame(step), self.values


class ByCode(ColumnFunction):
    """Values by code.

    Parameters
    ----------
    grid : Grid
        The cells of the model.
    k : int
        The column.
    values : array (n_codes, n_outputs)
    """

    def __init__(self, grid: Grid, k: int, values: np.ndarray) -> None:
        self.grid = grid
        self.k = k
        self.values = values

    def __mul__(self, factor: float) -> ByCode:
        return self.with_values(self.values * factor)

    __rmul__ = __mul__

    def __add__(self, other: Constant | ByCode) -> ByCode:
        return self.with_values(self.values + other.values)

    def with_values(self, values: np.ndarray) -> ByCode:
        """Return the function with other values."""
        return ByCode(self.grid, self.k, values)

    @property
    def kind(self) -> str:
        """Steps or levels."""
        return "steps" if self.grid.cells[self.k].labels is None else "levels"

    @property
    def of_numbers(self) -> bool:
        """Whether the column holds numbers."""
        return self.kind == "steps" and frames.is_number(self.grid.row.X, self.k)

    def encode(self, values: Any) -> np.ndarray:
        """Return the codes of raw values, cast as the model casts them."""
        return self.grid.encode_values(self.k, values)

    def warn_of_rounding(self, values: Any) -> None:
        """Warn if a float32 background does not hold the values."""
        self.grid.warn_of_rounding({self.k: values})

    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """Look the codes up."""
        return self.values[codes], ON_IT

    @property
    def has_table(self) -> bool:
        """Whether the cells are levels, or ranges of raw values."""
        return self.kind == "levels" or self.grid.partition(self.k) is not None

    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return labels and values of all codes."""
        described = self.grid.describe_cells(self.k)
        assert described is not None
        labels, codes = described
        return labels, self.values[codes]
