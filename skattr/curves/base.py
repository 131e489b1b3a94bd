"""The interface of functions of one column, which engines return and `Curve` shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pandas as pd

ON_IT = np.empty(0, np.intp)  # no row lies off a curve


class ColumnFunction(ABC):
    """phi_j as a function of the raw value of column j, for all outputs.

    Attributes
    ----------
    partial : bool
        Whether some values may lie off it, and have to be integrated: rounding in the steps in
        front of the model may lead to a code that no other value near it has.
    """

    partial = False

    @property
    @abstractmethod
    def kind(self) -> str:
        """What a table of it shows: "steps", "linear", "levels" or "function"."""

    @property
    def of_numbers(self) -> bool:
        """Whether its values must be numbers."""
        return self.kind == "linear"

    @abstractmethod
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        """Evaluate it at raw values.

        Parameters
        ----------
        codes : array (n,) or None
            The codes of the values, where the model has a grid of cells.
        values : array or column (n,)
            The values as the user holds them.

        Returns
        -------
        result : array (n, k)
        off : array of int
            The rows that lie off it; their result is not to be used.
        """

    def encode(self, values: Any) -> np.ndarray | None:
        """Return the codes of raw values, (n,), or None where there are no cells."""
        return None

    def warn_of_rounding(self, values: Any) -> None:
        """Warn if the background's dtype does not hold values, so that they are rounded to it."""
        return None

    def evaluate(self, values: Any) -> np.ndarray:
        """Evaluate it at raw values, (n, k), encoding them first; no value may lie off it."""
        return self.at(self.encode(values), values)[0]

    @property
    def has_table(self) -> bool:
        """Whether `table` shows all there is to know."""
        return True

    @abstractmethod
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the function as a frame and values (m, k), if `has_table`.

        The columns of the frame depend on the kind: see `Curve.to_frame`.
        """

    def levels(self) -> list[Any] | None:
        """Return the levels that the model tells apart, or None for a function of numbers."""
        if self.kind != "levels":
            return None
        frame, _ = self.table()
        return list(frame["level"][frame["kind"] == "level"])
