"""Hybrids of two rows: the columns of a coalition from the explained row, the others from another.

f(x_S, z_-S) for many coalitions S and rows z, in few calls of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override

ROW_BLOCK = 32_768  # hybrids in one call of the model
KEPT = 2**21  # values of hybrids that are kept, so that none is evaluated twice


@dataclass(eq=False)
class Hybrids:
    """The values of f at hybrids of one explained row x and the rows of a table."""

    f: Callable[[Any], np.ndarray]
    rows: Any  # a table; x is its last row
    player: np.ndarray  # (d,) the player that each column belongs to

    def evaluated(self, asked: int) -> int:
        """Return how many of the hybrids that were asked for have been evaluated: all of them."""
        return asked

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


class RememberedHybrids(Hybrids):
    """Hybrids of few rows and players, each of which is evaluated once."""

    def __init__(self, hybrids: Hybrids, n_players: int, n_outputs: int) -> None:
        super().__init__(hybrids.f, hybrids.rows, hybrids.player)
        size = len(hybrids.rows) << n_players
        self.bits = 1 << np.arange(n_players)
        self.is_known = np.zeros(size, bool)
        self.values = np.empty((size, n_outputs))
        self.count = 0

    @override
    def evaluated(self, asked: int) -> int:
        return self.count

    @override
    def at(self, z: np.ndarray, members: np.ndarray) -> np.ndarray:
        keys = (members @ self.bits) * len(self.rows) + z
        new, first = np.unique(keys, return_index=True)
        is_new = ~self.is_known[new]
        new, first = new[is_new], first[is_new]
        if len(new):
            self.values[new] = super().at(z[first], members[first])
            self.is_known[new] = True
            self.count += len(new)
        return self.values[keys]


def remembered(hybrids: Hybrids, n_players: int, n_outputs: int) -> Hybrids:
    """Return hybrids that are evaluated once, or the same ones if there are too many to keep."""
    few = n_players < 32 and (len(hybrids.rows) << n_players) * n_outputs <= KEPT
    return RememberedHybrids(hybrids, n_players, n_outputs) if few else hybrids
