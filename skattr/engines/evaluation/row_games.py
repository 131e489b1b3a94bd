"""The games of explained rows against rows of data: the worth of a coalition is a mean over rows.

v_x(S) = Σ_r w_r f(x_S, z_{r,-S}) / Σ_r w_r
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.attributions import Attributions
from skattr.engines.evaluation.hybrids import Hybrids, remembered
from skattr.measures.background import Background
from skattr.pieces import Pieces

ROW_BLOCK = 65_536  # background rows in one call of the model
FIRST = 32  # points of a replicate in the first round, if not all rows can be used


@dataclass(eq=False)
class RowGame:
    """A copy of the background with the values of f there, sorted by these."""

    semivalue: Any
    background: PicklableTable
    weights: np.ndarray  # (n,) not normalised
    values: np.ndarray  # (n, k)

    @classmethod
    def of(cls, pieces: Pieces, measure: Any, semivalue: Any) -> RowGame:
        """Evaluate f on the background of an inner measure."""
        background, _ = measure.rows()
        return cls.sorted(pieces, background, semivalue)[0]

    @classmethod
    def sorted(
        cls, pieces: Pieces, background: Background, semivalue: Any
    ) -> tuple[RowGame, np.ndarray]:
        """Evaluate f on a background; return the game, and the order of the rows in it, (n,)."""
        X, n = background.X, len(background)
        blocks = [frames.take_rows(X, slice(i, i + ROW_BLOCK)) for i in range(0, n, ROW_BLOCK)]
        values = np.concatenate([pieces.predict(block) for block in blocks])
        game = cls(semivalue, PicklableTable(frames.copy(X)), background.weights, values)
        order = game._order()
        return game._take(order), order

    def _order(self) -> np.ndarray:
        """Return an order by the values of f: neighbours are alike, and any order gives it."""
        return np.lexsort([self.weights, *_sort_keys(self.background.X), *self.values.T[::-1]])

    def _take(self, order: np.ndarray) -> RowGame:
        X = PicklableTable(frames.take_rows(self.background.X, order))
        return replace(self, background=X, weights=self.weights[order], values=self.values[order])

    def merge(self, other: RowGame) -> RowGame:
        """Return the game of two batches of the background."""
        return self.joined(other)[0]

    def joined(self, other: RowGame) -> tuple[RowGame, np.ndarray]:
        """Return the game of two batches, and the order of the rows of both in it, (n,)."""
        X = frames.concatenate([self.background.X, other.background.X])
        weights = np.concatenate([self.weights, other.weights])
        values = np.concatenate([self.values, other.values])
        game = replace(self, background=PicklableTable(X), weights=weights, values=values)
        order = game._order()
        return game._take(order), order

    def finished(self) -> RowGame:
        """Return the game once all batches are added."""
        return self

    @property
    def n_rows(self) -> int:
        """The number of background rows."""
        return len(self.weights)

    def mean(self) -> np.ndarray:
        """Return the mean of f over the background, (k,)."""
        with np.errstate(over="ignore", invalid="ignore"):  # `Solution` refuses what overflows
            return (self.weights[:, None] * self.values).sum(axis=0) / self.weights.sum()

    def start(self, f: Any, players: Attributions, x: Any) -> RowPlay:
        """Return the game of x, a table of one row."""
        return RowPlay(self, self.hybrids(f, players, x), len(players))

    def hybrids(self, f: Any, players: Attributions, x: Any) -> Hybrids:
        """Return hybrids of the rows and x, a table of one row."""
        return Hybrids.of(f, self.background.X, x, players)

    def first(self, most: int) -> int:
        """Return the number of points in the first round: all rows, or some, `most` at most."""
        n = self.n_rows
        return n if most >= n else min(most, FIRST)


class Drawn(NamedTuple):
    """The points of some replicates, one after the other."""

    shares: np.ndarray  # (m,) the weights of points, which sum to 1 in a replicate
    none: np.ndarray  # (m, k) the worths of the coalition without players
    at: Callable[[np.ndarray, np.ndarray], np.ndarray]  # (points, coalitions (m, L, g)) → (m, L, k)


@dataclass(eq=False)
class RowPlay:
    """The game of one explained row; a point is a background row."""

    game: RowGame
    hybrids: Hybrids
    n_players: int

    def __post_init__(self) -> None:
        self.full, self.mean = self.hybrids.x(), self.game.mean()  # (k,) f(x), and v without x
        self.shares = self.game.weights / self.game.weights.sum()

    def worths(self, members: np.ndarray) -> np.ndarray:
        """Return the worths of coalitions (m, g), (m, k)."""
        m, n = len(members), self.game.n_rows
        values = self.hybrids.at(np.tile(np.arange(n), m), np.repeat(members, n, axis=0))
        return (self.shares[:, None] * values.reshape(m, n, -1)).sum(axis=1)

    @cached_property
    def sampled(self) -> Hybrids:
        """The hybrids of sampled coalitions, which may meet again."""
        return remembered(self.hybrids, self.n_players, len(self.full))

    def evaluated(self, asked: int) -> int:
        """Return the number of evaluations so far, given that of those that were asked for."""
        return self.sampled.evaluated(asked)

    def next(self, most: int, done: int) -> int:
        """Return the number of points of another round, given those that are done.

        Once all rows were used, they are used equally often.
        """
        n = self.game.n_rows
        return most // n * n if done >= n else most

    def draw(self, m: int, rngs: list[np.random.Generator]) -> Drawn:
        """Return m points of each replicate: all rows equally often, or some, evenly spread."""
        n = self.game.n_rows
        if m % n == 0:
            rows = np.tile(np.arange(n), m // n * len(rngs))
            shares = self.shares[rows] * (n / m)
        else:
            starts = np.array([rng.random() for rng in rngs])
            uniforms = ((np.arange(m) + starts[:, None]) / m).ravel()
            drawn = np.searchsorted(np.cumsum(self.shares), uniforms, side="right")
            rows, shares = np.minimum(drawn, n - 1), np.full(m * len(rngs), 1 / m)

        def at(points: np.ndarray, members: np.ndarray) -> np.ndarray:
            return self.sampled.at_points(rows[points], members)

        return Drawn(shares, self.game.values[rows], at)


def _sort_keys(X: Any) -> list[np.ndarray]:
    """Return the columns as arrays that can be sorted."""
    columns = []
    for k in range(len(frames.labels(X))):
        values = frames.column(X, k)
        if frames.is_number(X, k):
            columns.append(frames.to_float(values))
        else:
            columns.append(np.array([str(value) for value in frames.to_list(values)]))
    return columns
