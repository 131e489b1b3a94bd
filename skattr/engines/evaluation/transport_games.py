"""The games of explained rows against laws that make points of uniform numbers.

v_x(S) = ∫ f(T_S(u, x)) du,   v_x(∅) = E f(X) over the background

A point is a vector u of uniform numbers, which every coalition turns into a point of its own law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.attributions import Attributions
from skattr.engines.backgrounds import find_moments
from skattr.engines.evaluation.coalition_designs import distinct_coalitions
from skattr.engines.evaluation.hybrids import ROW_BLOCK
from skattr.engines.evaluation.product_games import power_of_two, sobol_points
from skattr.engines.evaluation.row_games import Drawn
from skattr.measures.views import HasTransport
from skattr.pieces import Pieces

FIRST = 32  # points of a replicate in the first round


@dataclass(eq=False)
class TransportGame:
    """An inner measure that makes points, and the mean of f over its background."""

    semivalue: Any
    measure: HasTransport
    base: np.ndarray  # (k,)

    @classmethod
    def of(cls, pieces: Pieces, measure: Any, semivalue: Any) -> TransportGame:
        """Evaluate f on the background of an inner measure."""
        return cls(semivalue, measure, find_moments(measure.background_, pieces).mean)

    def mean(self) -> np.ndarray:
        """Return the mean of f over the background, (k,)."""
        return self.base

    def finished(self) -> TransportGame:
        """Return the game once all batches are added."""
        return self

    def start(self, f: Any, players: Attributions, x: Any) -> TransportPlay:
        """Return the game of x, a table of one row."""
        return TransportPlay(self, f, players, x)

    def first(self, most: int) -> int:
        """Return the number of points in the first round, `most` at most."""
        return power_of_two(min(most, FIRST))


class TransportPlay:
    """The game of one explained row; a replicate has quasi-random points."""

    def __init__(self, game: TransportGame, f: Any, players: Attributions, x: Any) -> None:
        self.measure, self.mean = game.measure, game.base
        self.f, self.players, self.x = f, players, x
        self.full = f(x)[0]  # (k,)

    def evaluated(self, asked: int) -> int:
        """Return the number of evaluations so far, given that of those that were asked for."""
        return asked

    def next(self, most: int, done: int) -> int:
        """Return the number of points of another round, given those that are done."""
        return power_of_two(most)

    def draw(self, m: int, rngs: list[np.random.Generator]) -> Drawn:
        """Return m scrambled Sobol points of each replicate.

        The worths without players are moved so that their mean in a replicate is that of f over
        the background. The law of the measure may have another mean: the difference belongs to all
        players alike, and each is the first equally often.
        """
        u = sobol_points(self.measure.n_uniforms, m, rngs)
        no_players = np.zeros((len(u), len(self.players)), bool)
        none = self._at(u, no_players).reshape(len(rngs), m, -1)
        none = (none + (self.mean - none.mean(axis=1))[:, None]).reshape(len(u), -1)

        def at(points: np.ndarray, members: np.ndarray) -> np.ndarray:
            _, L, g = members.shape
            flat, repeated = members.reshape(-1, g), np.repeat(points, L)
            values = np.empty((len(flat), len(self.full)))
            empty, whole = ~flat.any(axis=1), flat.all(axis=1)
            values[empty], values[whole] = none[repeated[empty]], self.full
            rest = ~(empty | whole)
            values[rest] = self._at(u[repeated[rest]], flat[rest])
            return values.reshape(*members.shape[:2], -1)

        return Drawn(np.full(len(u), 1 / m), none, at)

    def _at(self, u: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return f, (M, k), at the points that coalitions (M, g) make of u (M, n_uniforms)."""
        result = np.empty((len(u), len(self.full)))
        if not len(u):
            return result
        distinct = distinct_coalitions(members)
        tables, factors = [], []
        for coalition, at in zip(distinct.members, distinct.positions, strict=True):
            players = np.flatnonzero(coalition).tolist()
            columns = tuple(sorted(k for p in players for k in self.players[p]))
            table, weights = self.measure.transport(u[at], self.x, columns)
            tables.append(table)
            factors.append(np.ones(len(at)) if weights is None else weights)
        values = self._values(frames.concatenate(tables))
        result[np.concatenate(distinct.positions)] = np.concatenate(factors)[:, None] * values
        return result

    def _values(self, points: Any) -> np.ndarray:
        blocks = range(0, len(points), ROW_BLOCK)
        return np.concatenate(
            [self.f(frames.take_rows(points, slice(i, i + ROW_BLOCK))) for i in blocks]
        )
