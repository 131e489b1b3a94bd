"""f as a link of sums of pieces: probabilities of boosting, predictions of log-link models."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.pieces.base import Pieces, Unreadable
from skattr.pieces.links import Link
from skattr.pieces.outputs import Output


class Margins(Output):
    """The margins of an estimator, which need not have a method for them: evaluated as read."""

    def __init__(self, output: Output, names: list[str]) -> None:
        super().__init__(output.estimator, output.method, output.scale, None, names)
        self.pieces: Pieces | None = None

    def __call__(self, X: Any) -> np.ndarray:
        """Return the margins at X, (n, m)."""
        read = self.pieces.reading(X) if self.pieces is not None else None
        assert read is not None
        return read[0]


class Linked(Pieces):
    """A known function of the margins of inner pieces, f(x) = link(g(x)).

    Parameters
    ----------
    inner : Pieces
        g, the margins: one output per margin.
    link : Link
        The function of all margins that the model applies.
    output, row
        As in `Pieces`.
    """

    def __init__(self, inner: Pieces, link: Link, output: Output, row: Any) -> None:
        super().__init__(output, row)
        self.inner = inner
        self.link = link.select(output.columns)
        k = len(self.link(np.zeros((inner.n_outputs, 1))))
        if k != self.n_outputs:
            raise Unreadable(
                f"{link.name} of {inner.n_outputs} margins returns {k} numbers, the model "
                f"{self.n_outputs}"
            )

    @property
    def grid(self) -> Any:
        """The grid of the inner pieces."""
        return self.inner.grid

    @property
    @override
    def before_link(self) -> Pieces:
        return self.inner

    @override
    def linked(self, margins: np.ndarray) -> np.ndarray:
        return self.link(margins)

    @override
    def outputs(self, margins: np.ndarray) -> np.ndarray:
        return self.link(margins.T.copy()).T

    @override
    def meet(self, X: Any) -> tuple[Pieces, np.ndarray | None]:
        inner, codes = self.inner.meet(X)
        if inner is self.inner:
            return self, codes
        met = copy(self)
        met.inner = inner
        return met, codes

    @override
    def name_levels(self, X: Any) -> None:
        self.inner.name_levels(X)

    @property
    @override
    def levels(self) -> np.ndarray | None:
        return self.inner.levels

    @override
    def without_table(self) -> list[int]:
        return self.inner.without_table()

    @override
    def level_values(self, k: int) -> tuple[list, list, list] | None:
        return self.inner.level_values(k)

    @override
    def reading(self, rows: Any) -> tuple[Any, Any] | None:
        """Return the link of what was read, and how far rounding of the margins may move it.

        The margins are moved by their rounding errors, one after the other, to both sides. A model
        may also compute the link itself in float32.
        """
        read = self.inner.reading(rows)
        if read is None:
            return None
        margins, rounding = read
        rounding = np.broadcast_to(rounding, margins.shape)
        values = self.outputs(margins)
        bound = 1e-8 + 1e-6 * np.abs(values)
        for o in range(margins.shape[1]):
            moves = []
            for sign in (-1.0, 1.0):
                moved = margins.copy()
                moved[:, o] += sign * rounding[:, o]
                moves.append(np.abs(self.outputs(moved) - values))
            bound += 2 * np.maximum(*moves)
        return values, bound

    @override
    def cancellation(self, rows: Any) -> str | None:
        return self.inner.cancellation(rows)

    @override
    def preprocessings(self) -> list:
        return self.inner.preprocessings()

    @override
    def describe(self) -> str:
        return f"{self.inner.describe()}, behind a link: {self.link.name}"
