"""The interface of errors from the background, and the jackknife over folds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from skattr.engines import Request
from skattr.pieces import Pieces
from skattr.solution.values import Values

Pair = tuple[np.ndarray, np.ndarray]  # of values, and of centred values


class FoldErrors(ABC):
    """How values move when a fold of the background is deleted, and the errors made of it.

    Attributes
    ----------
    n : int
        The number of folds that have rows.
    """

    n: int

    @abstractmethod
    def errors(self, pieces: Pieces | None, request: Request, values: Values) -> Pair:
        """Return the standard errors of values and of centred values, (n, g, k).

        Parameters
        ----------
        pieces : Pieces, or None if nothing is integrated
        request : Request
            Rows and attributions.
        values : Values
            Their values.
        """

    @abstractmethod
    def centered_deviations(
        self, pieces: Pieces | None, request: Request, values: Values
    ) -> Iterator[np.ndarray]:
        """Yield for each fold how centred values move without it, (n, g, k)."""

    def restore(self, again: Callable[[], Any]) -> None:
        """Have the sums by fold that `centered_deviations` needs computed again, if need be."""
        return None


def jackknife(deviations: Iterable[Pair], n: int) -> Pair:
    """Return the standard errors of values and centred values that move so without each fold.

    Deviations are differences from the values of all rows, so that their squares do not cancel.
    """
    sums: Any = [0.0, 0.0]
    squares: Any = [0.0, 0.0]
    for pair in deviations:
        for i, deviation in enumerate(pair):
            sums[i] = sums[i] + deviation
            squares[i] = squares[i] + deviation**2
    first, second = (
        np.sqrt(np.maximum(square - total**2 / n, 0.0) * ((n - 1) / n))
        for total, square in zip(sums, squares, strict=True)
    )
    return first, second
