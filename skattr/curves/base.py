"""The interface of functions of one or two columns, which engines return.

`Curve` presents functions of one column, `Surface` those of two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames

NO_ROWS = np.empty(0, np.intp)


class Function(ABC):
    """The attributions of rows as a function of some of their columns, for all outputs.

    Attributes
    ----------
    partial : bool
        Whether values may lie off the curve and must be integrated: because of rounding in the
        steps in front of the model they may have codes that no values near them have.
    """

    partial = False

    def added_to(self, base: Any, factor: float) -> Any:
        """Return base + factor · self if both are functions of codes (`by_code`), else None."""
        return None

    @abstractmethod
    def at_rows(
        self, codes: np.ndarray | None, X: Any, columns: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate the function at the rows of a table.

        Parameters
        ----------
        codes : array (d, n) or None
            The codes of the rows, if the model has a grid of cells.
        X : table (n, d)
            The rows.
        columns : tuple of int
            The columns of the attribution.

        Returns
        -------
        result : array (n, k)
        off : array of int
            The rows that lie off the curve; their results are not valid.
        """


class PairFunction(Function):
    """phi_jk as a function of the raw values of two columns, for all outputs."""

    @abstractmethod
    def evaluate(self, first: Any, second: Any) -> np.ndarray:
        """Return the function at raw values of both columns, of equal length, (n, k)."""

    @abstractmethod
    def on_grid(self, first: Any, second: Any) -> np.ndarray:
        """Return the function at all combinations of raw values, (m_a, m_b, k)."""

    @abstractmethod
    def on_cells(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the function at all combinations of codes, (m_a, m_b, k)."""


class ColumnFunction(Function):
    """phi_j as a function of the raw value of column j, for all outputs."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the table holds: "steps", "linear", "levels" or "function"."""

    @property
    def of_numbers(self) -> bool:
        """Whether it takes only numbers."""
        return self.kind == "linear"

    @abstractmethod
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate the function at raw values.

        Parameters
        ----------
        codes : array (n,) or None
            The codes of the values, if the model has a grid of cells.
        values : array or column (n,)
            The raw values.

        Returns
        -------
        result : array (n, k)
        off : array of int
            The rows that lie off the curve; their results are not valid.
        """

    def at_rows(
        self, codes: np.ndarray | None, X: Any, columns: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate the function at the rows of a table."""
        (k,) = columns
        return self.at(None if codes is None else codes[k], frames.column(X, k))

    def encode(self, values: Any) -> np.ndarray | None:
        """Return the codes of raw values, (n,), or None if there are no cells."""
        return None

    def warn_of_rounding(self, values: Any) -> None:
        """Warn if values are rounded to the dtype of the background."""
        return None

    def evaluate(self, values: Any) -> np.ndarray:
        """Encode raw values and evaluate the function, (n, k); no value may lie off the curve."""
        return self.at(self.encode(values), values)[0]

    @property
    def has_table(self) -> bool:
        """Whether `table` describes the whole function."""
        return True

    @abstractmethod
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the function as a frame and values (m, k), if `has_table`.

        The columns of the frame depend on the kind: see `Curve.to_frame`.
        """

    def levels(self) -> list[Any] | None:
        """Return the levels that the model distinguishes, or None for a function of numbers."""
        if self.kind != "levels":
            return None
        frame, _ = self.table()
        return list(frame["level"][frame["kind"] == "level"])
