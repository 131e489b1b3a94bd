"""Hybrids of two rows: the columns of a coalition from the explained row, the others from another.

f(x_S, z_-S) for many coalitions S and rows z, in few calls of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames

ROW_BLOCK = 32_768  # hybrids in one call of the model


@dataclass(eq=False)
class Hybrids:
    """The values of f at hybrids of one explained row x and the rows of a table."""

    f: Callable[[Any], np.ndarray]
    rows: Any  # a table; x is its last row
    player: np.ndarray  # (d,) the player that each column belongs to

    @classmethod
    def of(
        cls, f: Callable[[Any], np.ndarray], Z: Any, x: Any, players: Sequence[tuple[int, ...]]
    ) -> Hybrids:
        """Prepare hybrids of the rows of Z and x, a table of one row; players share out columns."""
        player = np.empty(len(frames.labels(x)), np.intp)
        for j, columns in enumerate(players):
            player[list(columns)] = j
        return cls(f, frames.concatenate([Z, x]), player)

    def x(self) -> np.ndarray:
        """Return f(x), (k,)."""
        n = len(self.rows)
        return self.f(frames.take_rows(self.rows, slice(n - 1, n)))[0]

    def at(self, z: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return f, (m, k), at hybrids: z (m,) are positions of rows, members (m, g) the players.

        The columns of members are those of x.
        """
        last = len(self.rows) - 1
        values = []
        for start in range(0, len(z), ROW_BLOCK):
            block = slice(start, start + ROW_BLOCK)
            at = np.where(members[block][:, self.player], last, z[block, None])
            values.append(self.f(frames.mixed(self.rows, at)))
        return np.concatenate(values)

    def at_points(self, z: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return f, (m, L, k), for lists of coalitions (m, L, g), one list for each row z (m,)."""
        m, L, g = members.shape
        return self.at(np.repeat(z, L), members.reshape(-1, g)).reshape(m, L, -1)
