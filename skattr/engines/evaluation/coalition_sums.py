"""Values of players from sampled coalitions, for one explained row, in independent replicates.

Shapley values are means over permutations: a player gets what it adds to those before it. Each
permutation is used with its reverse, and has a point z (a background row) of its own: permutations
shared by all rows would have the error of few permutations. A replicate uses every row equally
often, and gives every player each position equally often. f(z) and f(x) are known, so that a point
takes 2 (g - 1) evaluations for all g players together. Games of at most pairs have no error.

Banzhaf values: random coalitions and their complements, each with all that differ by one player,
2 (g + 1) evaluations per point.

If a replicate cannot use all rows, its values add up to f(x) less the mean of f over those it uses.
The difference to the mean over all rows is shared out as the values vary with f(z): the shares are
regression coefficients, which add up to 1, learned from the other replicates, so that the mean of
what is added is 0. A player that the model ignores gets none of it. Points of products of laws have
no mean to add up to but that of the replicate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skattr.engines.base import RunOptions
from skattr.engines.estimates import standard_error
from skattr.engines.evaluation.coalition_designs import (
    Design,
    chains,
    flips,
    half_coalitions,
    latin_positions,
)

MORE = 1.2  # evaluations of the next round, relative to those that should be enough
REPEATED = 4  # evaluations that are asked for, most of them known, per one that is allowed
LARGEST = 1e6  # excess of an error over the allowed one, beyond which max_evals is used at once
FLAT = 1e-12  # variance relative to squares, below which there is no slope
BLOCK = 2**24  # numbers that describe the coalitions of one block


def point_cost(permutes: bool, n_players: int) -> int:
    """Return the number of coalitions to evaluate for a point."""
    return 2 * (n_players - 1 if permutes else n_players + 1)


def until_small(
    add: Callable[[int], np.ndarray], play: Any, each: int, first: int, options: RunOptions
) -> np.ndarray:
    """Add rounds of points until errors are small twice in a row; return replicates, (R, …).

    add(m) adds m points to every replicate and returns the replicates. A point of all replicates
    asks for `each` evaluations; the first round has `first` points. What a game of few rows and
    players asks for again is known, and takes nothing from `max_evals`.
    """
    m, count, small = first, 0, False
    assert options.error is not None
    while m:
        result = add(m)
        count += m
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = float(np.max(standard_error(result) / options.error))
        before, small = small, excess <= 1
        if (small and before) or np.isnan(excess):  # an infinite value stays infinite
            break
        asked = count * each
        goal = asked * max(2.0, MORE * min(excess, LARGEST) ** 2)
        left = min(options.max_evals - play.evaluated(asked), REPEATED * options.max_evals - asked)
        m = play.next(int(min(goal - asked, left)) // each, count)
    return result


class CoalitionSums:
    """The values of g players in a game.

    Parameters
    ----------
    play : RowPlay, BinPlay, ProductPlay or TransportPlay
        The game of one explained row.
    permutes : bool
        Whether players join one by one; else each belongs to a coalition with probability 1/2.
    n_players : int
        The number of players, g.
    replicates : int
        The number of replicates, R.
    options : RunOptions
        Options of the run.
    """

    def __init__(
        self, play: Any, permutes: bool, n_players: int, replicates: int, options: RunOptions
    ) -> None:
        self.play, self.permutes, self.options = play, permutes, options
        self.g, self.replicates = n_players, replicates
        self.round, self.count = 0, 0
        shape = (replicates, n_players, len(play.full))
        self.sums = np.zeros(shape)
        # sums of t, t², and t times the values, t the mean of f less f(z)
        self.t, self.squares = np.zeros((2, replicates, 1, len(play.full)))
        self.products = np.zeros(shape)

    def values(self, first: int) -> np.ndarray:
        """Return replicates, (R, g, k), of which the first round has `first` points each."""
        each = max(1, self.replicates * point_cost(self.permutes, self.g))
        return until_small(self._add, self.play, each, first, self.options)

    def _add(self, m: int) -> np.ndarray:
        """Add m points to every replicate, and return the replicates of the values."""
        R, g = self.replicates, self.g
        rngs = [np.random.default_rng([self.options.seed, self.round, r]) for r in range(R)]
        drawn = self.play.draw(m, rngs)
        step = max(1, BLOCK // (2 * m * (g + 1) * g))
        for start in range(0, R, step):
            some = slice(start, min(start + step, R))
            points = np.arange(some.start * m, some.stop * m)
            values = np.zeros((len(points), g, len(self.play.full)))
            for design in self._designs(m, rngs[some]):
                values += design.differences(self._worths(drawn, points, design)) / 2
            shape = (some.stop - some.start, m, -1, values.shape[2])
            weights = (m * drawn.shares[points]).reshape(*shape[:2], 1, 1)
            values = values.reshape(shape)
            self.sums[some] += (weights * values).sum(axis=1)
            if self.play.mean is None:
                continue
            t = (self.play.mean - drawn.none[points]).reshape(shape)
            self.t[some] += (weights * t).sum(axis=1)
            self.squares[some] += (weights * t * t).sum(axis=1)
            self.products[some] += (weights * t * values).sum(axis=1)
        self.count += m
        self.round += 1
        return self._means()

    def _designs(self, m: int, rngs: list[np.random.Generator]) -> tuple[Design, Design]:
        """Return a design for m points of some replicates, and that of the complements."""
        g = self.g
        if self.permutes:
            positions = np.concatenate([latin_positions(m, g, rng) for rng in rngs])
            return chains(positions), chains(g - 1 - positions)
        members = np.concatenate([half_coalitions(m, g, rng) for rng in rngs])
        return flips(members), flips(~members)

    def _worths(self, drawn: Any, points: np.ndarray, design: Design) -> np.ndarray:
        """Return the worths of all coalitions of a design, (m, L, k)."""
        if not self.permutes:
            return drawn.at(points, design.members)
        worths = np.empty((*design.members.shape[:2], len(self.play.full)))
        worths[:, 0], worths[:, -1] = drawn.none[points], self.play.full
        if self.g > 1:
            worths[:, 1:-1] = drawn.at(points, design.members[:, 1:-1])
        return worths

    def _means(self) -> np.ndarray:
        """Return the replicates of the values, (R, g, k), which add up if players join."""
        result = self.sums / self.count
        if not self.permutes or self.play.mean is None:
            return result
        missing = self.play.full - self.play.mean - result.sum(axis=1)
        return result + self._slopes() * missing[:, None]

    def _slopes(self) -> np.ndarray:
        """Return the slopes of values on f(x) - f(z) in all other replicates, (R, g, k)."""
        n = self.count * (self.replicates - 1)
        t, squares, sums, products = (
            (each.sum(axis=0) - each) / n
            for each in (self.t, self.squares, self.sums, self.products)
        )
        variance = squares - t * t
        varies = variance > FLAT * squares
        safe = np.where(varies, variance, 1.0)
        return np.where(varies, (products - t * sums) / safe, 1 / self.g)
