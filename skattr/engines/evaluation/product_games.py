"""The games of explained rows against products of laws: a point is drawn from the laws.

v_x(S) = ∫ f(x_S, z_-S) dν(z),   ν = ⊗_i ν_i
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import qmc

from skattr.attributions import Attributions
from skattr.engines.evaluation.hybrids import Hybrids
from skattr.engines.evaluation.row_games import Drawn
from skattr.measures.factors.points import ProductPoints
from skattr.pieces import Pieces

FIRST = 32  # points of a replicate in the first round


@dataclass(eq=False)
class ProductGame:
    """The laws of all columns."""

    semivalue: Any
    points: ProductPoints

    @classmethod
    def of(cls, pieces: Pieces, measure: Any, semivalue: Any) -> ProductGame:
        """Return the laws of an inner measure."""
        return cls(semivalue, ProductPoints.of(measure))

    def merge(self, other: ProductGame) -> ProductGame:
        """Return the game of two batches of the background."""
        return ProductGame(self.semivalue, self.points.merge(other.points))

    def mean(self) -> None:
        """Return None: the mean of f is not known."""

    def finished(self) -> ProductGame:
        """Return the game once all batches are added."""
        return self

    def start(self, f: Any, players: Attributions, x: Any) -> ProductPlay:
        """Return the game of x, a table of one row."""
        return ProductPlay(self.points, f, players, x)

    def first(self, most: int) -> int:
        """Return the number of points in the first round, `most` at most."""
        return power_of_two(min(most, FIRST))


class ProductPlay:
    """The game of one explained row; a replicate has quasi-random points."""

    mean = None

    def __init__(self, points: ProductPoints, f: Any, players: Attributions, x: Any) -> None:
        self.points, self.f, self.players, self.x = points, f, players, x
        self.full = f(x)[0]  # (k,)

    def evaluated(self, asked: int) -> int:
        """Return the number of evaluations so far, given that of those that were asked for."""
        return asked

    def next(self, most: int, done: int) -> int:
        """Return the number of points of another round, given those that are done."""
        return power_of_two(most)

    def draw(self, m: int, rngs: list[np.random.Generator]) -> Drawn:
        """Return m scrambled Sobol points of each replicate."""
        Z = self.points.transport(sobol_points(self.points.n_uniforms, m, rngs))
        hybrids = Hybrids.of(self.f, Z, self.x, self.players)
        n = m * len(rngs)
        none = hybrids.at(np.arange(n), np.zeros((n, len(self.players)), bool))
        return Drawn(np.full(n, 1 / m), none, hybrids.at_points)


def sobol_points(d: int, m: int, rngs: list[np.random.Generator]) -> np.ndarray:
    """Return m scrambled Sobol points in [0, 1)^d of each replicate, one after the other."""
    return np.concatenate([qmc.Sobol(d, seed=rng).random(m) for rng in rngs])


def power_of_two(most: int) -> int:
    """Return the largest power of two up to a number, 0 if there is none."""
    return 1 << (most.bit_length() - 1) if most else 0
