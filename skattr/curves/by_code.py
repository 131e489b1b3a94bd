"""Functions of a column's code alone: constants and step functions, levels among them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._typing import override
from skattr.curves.base import NO_ROWS, ColumnFunction
from skattr.pieces import Grid


class CodeFunction(ColumnFunction):
    """A constant or a function of a column's code: the sum of both is one of them."""

    values: np.ndarray  # (1, k) or (n_codes, k)

    @abstractmethod
    def with_values(self, values: np.ndarray) -> CodeFunction:
        """Return the function with other values."""

    def __mul__(self, factor: float) -> CodeFunction:
        return self.with_values(self.values * factor)

    __rmul__ = __mul__

    def __add__(self, other: CodeFunction) -> CodeFunction:
        return self.with_values(self.values + other.values)

    @override
    def added_to(self, base: CodeFunction, factor: float) -> CodeFunction:
        return base + factor * self


class Constant(CodeFunction):
    """A constant: a step function without jumps.

    Parameters
    ----------
    values : array (1, k)
    """

    kind = "steps"
    of_numbers = False  # all values are accepted

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @override
    def with_values(self, values: np.ndarray) -> Constant:
        return Constant(values)

    @override
    def __add__(self, other: CodeFunction) -> CodeFunction:
        return other.with_values(self.values + other.values)

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.values.repeat(len(values), axis=0), NO_ROWS

    @override
    def at_rows(
        self, codes: np.ndarray | None, X: Any, columns: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.at(None, X)  # of any number of columns

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        step = {"lower": [-np.inf], "upper": [np.inf], "closed": ["right"]}
        return pd.DataFrame(step), self.values


class ByCode(CodeFunction):
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

    @override
    def with_values(self, values: np.ndarray) -> ByCode:
        return ByCode(self.grid, self.k, values)

    @property
    @override
    def kind(self) -> str:
        return "steps" if self.grid.cells[self.k].labels is None else "levels"

    @property
    @override
    def of_numbers(self) -> bool:
        return self.kind == "steps" and frames.is_number(self.grid.row.X, self.k)

    @override
    def encode(self, values: Any) -> np.ndarray:
        return self.grid.encode_values(self.k, values)

    @override
    def warn_of_rounding(self, values: Any) -> None:
        self.grid.warn_of_rounding({self.k: values})

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.values[codes], NO_ROWS

    @property
    @override
    def has_table(self) -> bool:
        return self.kind == "levels" or self.grid.partition(self.k) is not None

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        described = self.grid.describe_cells(self.k)
        assert described is not None
        labels, codes = described
        return labels, self.values[codes]
