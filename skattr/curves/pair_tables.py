"""The part of a surface that belongs to both columns, as `Surface` asks for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._typing import override
from skattr.curves.base import PairFunction

# the labels of the cells of a column, their codes, and the curve of the column there, (m, k)
ColumnTable = tuple[pd.DataFrame, np.ndarray, np.ndarray]


class PairTable(ABC):
    """phi_jk as a function of raw values of two columns, for all outputs."""

    @abstractmethod
    def evaluate(self, first: Any, second: Any) -> np.ndarray:
        """Return the values at points, (m, k)."""

    @abstractmethod
    def on_grid(self, first: Any, second: Any) -> np.ndarray:
        """Return the values at all combinations, (m_a, m_b, k)."""

    def tables(self) -> tuple[ColumnTable, ColumnTable] | None:
        """Return the cells of both columns, or None if they are not known."""
        return None

    @abstractmethod
    def on_cells(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the values at all combinations of codes, (m_a, m_b, k), if there are tables."""


class SumOfPairs(PairTable):
    """constant + Σ coefficient · function.

    Parameters
    ----------
    constant : array (k,)
    parts : list of (float, PairFunction)
    swapped : bool
        Whether the first column of the surface is the second one of the functions.
    tables : callable
        → the cells of both columns, or None.
    """

    def __init__(
        self,
        constant: np.ndarray,
        parts: list[tuple[float, PairFunction]],
        swapped: bool,
        tables: Callable[[], tuple[ColumnTable, ColumnTable] | None],
    ) -> None:
        self.constant = constant
        self.parts = parts
        self.swapped = swapped
        self._tables = tables

    @override
    def evaluate(self, first: Any, second: Any) -> np.ndarray:
        total = np.tile(self.constant, (len(first), 1))
        both = (second, first) if self.swapped else (first, second)
        for coefficient, part in self.parts:
            total += coefficient * part.evaluate(*both)
        return total

    @override
    def on_grid(self, first: Any, second: Any) -> np.ndarray:
        return self._added("on_grid", first, second)

    @override
    def on_cells(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return self._added("on_cells", first, second)

    def _added(self, method: str, first: Any, second: Any) -> np.ndarray:
        total = np.tile(self.constant, (len(first), len(second), 1))
        for coefficient, part in self.parts:
            if self.swapped:
                values = getattr(part, method)(second, first).transpose(1, 0, 2)
            else:
                values = getattr(part, method)(first, second)
            total += coefficient * values
        return total

    @override
    def tables(self) -> tuple[ColumnTable, ColumnTable] | None:
        return self._tables()


class EvaluatedPair(PairTable):
    """A function of two columns that is evaluated when it is called.

    Parameters
    ----------
    function : callable
        Raw values of both columns → attributions (n, k).
    """

    def __init__(self, function: Callable[[Any, Any], np.ndarray]) -> None:
        self.function = function

    @override
    def evaluate(self, first: Any, second: Any) -> np.ndarray:
        return self.function(first, second)

    @override
    def on_grid(self, first: Any, second: Any) -> np.ndarray:
        m_a, m_b = len(first), len(second)
        values = self.function(
            frames.take_values(first, np.repeat(np.arange(m_a), m_b)),
            frames.take_values(second, np.tile(np.arange(m_b), m_a)),
        )
        return values.reshape(m_a, m_b, -1)

    @override
    def on_cells(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Raise: there are no tables."""
        raise NotImplementedError
