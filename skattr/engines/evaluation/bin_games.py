"""The games of explained rows against rows whose weights depend on the coalition's values.

v_x(S) = Σ_r π_r(x_S) f(x_S, z_{r,-S})

A point of a sampled game is a uniform number u: every coalition takes the row at which its weights,
in the order of f, add up to u. Coalitions of similar weights then take similar rows. Where weights
are negative ("local_linear"), rows are drawn by their absolute values and counted with their signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skattr.attributions import Attributions
from skattr.engines.evaluation.coalition_designs import distinct_coalitions
from skattr.engines.evaluation.hybrids import Hybrids, remembered
from skattr.engines.evaluation.row_games import Drawn, RowGame
from skattr.measures.learned.coalition_weights import CoalitionWeights
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import Pieces

FIRST = 32  # points of a replicate in the first round
BLOCK = 2**21  # weights of rows in one block


@dataclass(eq=False)
class BinGame:
    """The background in the order of f, and its learned weights in the same order."""

    rows: RowGame
    given: RowWeights

    @classmethod
    def of(cls, pieces: Pieces, measure: Any, semivalue: Any) -> BinGame:
        """Evaluate f on the background of an inner measure."""
        background, learned = measure.bins()
        rows, order = RowGame.sorted(pieces, background, semivalue)
        return cls(rows, learned.of_coalitions().take(order))

    def merge(self, other: BinGame) -> BinGame:
        """Return the game of two batches of the background."""
        rows, order = self.rows.joined(other.rows)
        return BinGame(rows, self.given.merge(other.given).take(order))

    def finished(self) -> BinGame:
        """Return the game once all batches are added."""
        return BinGame(self.rows, self.given.settled())

    @property
    def semivalue(self) -> Any:
        """The law of p."""
        return self.rows.semivalue

    @property
    def n_rows(self) -> int:
        """The number of background rows."""
        return self.rows.n_rows

    def mean(self) -> np.ndarray:
        """Return the mean of f over the background, (k,)."""
        return self.rows.mean()

    def start(self, f: Any, players: Attributions, x: Any) -> BinPlay:
        """Return the game of x, a table of one row."""
        given = CoalitionWeights.of(self.given, players, x)
        return BinPlay(self.rows, self.rows.hybrids(f, players, x), given, len(players))

    def first(self, most: int) -> int:
        """Return the number of points in the first round, `most` at most."""
        return min(most, FIRST)


@dataclass(eq=False)
class BinPlay:
    """The game of one explained row."""

    rows: RowGame
    hybrids: Hybrids
    given: CoalitionWeights
    n_players: int

    def __post_init__(self) -> None:
        self.full, self.mean = self.hybrids.x(), self.rows.mean()  # (k,) f(x), and v without x

    def worths(self, members: np.ndarray) -> np.ndarray:
        """Return the worths of coalitions (m, g), (m, k); rows without weight are left out."""
        weights = self.given.given(members)
        coalition, row = np.nonzero(weights)
        values = weights[coalition, row][:, None] * self.hybrids.at(row, members[coalition])
        starts = np.searchsorted(coalition, np.arange(len(members)))
        return np.add.reduceat(values, starts, axis=0)

    @cached_property
    def sampled(self) -> Hybrids:
        """The hybrids of sampled coalitions, which may meet again."""
        return remembered(self.hybrids, self.n_players, len(self.full))

    def evaluated(self, asked: int) -> int:
        """Return the number of evaluations so far, given that of those that were asked for."""
        return self.sampled.evaluated(asked)

    def next(self, most: int, done: int) -> int:
        """Return the number of points of another round."""
        return most

    def draw(self, m: int, rngs: list[np.random.Generator]) -> Drawn:
        """Return m points of each replicate, evenly spread."""
        starts = np.array([rng.random() for rng in rngs])
        u = ((np.arange(m) + starts[:, None]) / m).ravel()
        none, _ = self._rows(np.zeros((len(u), len(self.given.kernels)), bool), u)

        def at(points: np.ndarray, members: np.ndarray) -> np.ndarray:
            m, L, g = members.shape
            flat = members.reshape(-1, g)
            rows, factors = self._rows(flat, np.repeat(u[points], L))
            return (factors[:, None] * self.sampled.at(rows, flat)).reshape(m, L, -1)

        return Drawn(np.full(len(u), 1 / m), self.rows.values[none], at)

    def _rows(self, members: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that coalitions (M, g) take at numbers u (M,), and factors of f there."""
        rows, factors = np.empty(len(u), np.intp), np.empty(len(u))
        distinct = distinct_coalitions(members)
        step = max(1, BLOCK // self.rows.n_rows)
        for start in range(0, len(distinct.members), step):
            some = slice(start, start + step)
            weights = self.given.given(distinct.members[some])
            upto = np.cumsum(np.abs(weights), axis=1)
            for weight, sums, at in zip(weights, upto, distinct.positions[some], strict=True):
                # never beyond the last row with weight, whatever the rounding
                target = np.minimum(u[at] * sums[-1], np.nextafter(sums[-1], 0.0))
                rows[at] = np.searchsorted(sums, target, side="right")
                factors[at] = np.sign(weight[rows[at]]) * sums[-1]
        return rows, factors
