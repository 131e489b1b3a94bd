"""Second differences of pairs of players from sampled coalitions, for one explained row.

Players join a random coalition T with probability p. If a pair of players leaves T, the others are
a coalition S to which each belongs with probability p; so v(T), and the worths of T with one or
both of the pair changing sides, give

    v(S ∪ jk) - v(S ∪ j) - v(S ∪ k) + v(S) = ± (v(T) - v(T △ j) - v(T △ k) + v(T △ jk)),

with the sign + if both or none belong to T. All pairs share T and the changes of one player, so
that a point with g players takes 1 + g + g (g - 1) / 2 evaluations for all pairs together. Each T
is used with its complement, and has a point z (a background row) of its own: games of at most three
players at a time have no error but that of the points. For Shapley values p is spread evenly over
[0, 1] within a replicate, for Banzhaf values it is 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.engines.base import RunOptions
from skattr.engines.evaluation.coalition_sums import BLOCK, until_small


class PairDesign:
    """The coalitions that tell about some pairs of g players, given one coalition of each point."""

    def __init__(self, g: int, pairs: list[tuple[int, int]]) -> None:
        players = sorted({player for pair in pairs for player in pair})
        self.pairs = np.array(pairs, int).reshape(-1, 2)
        self.changed = np.zeros((1 + len(players) + len(pairs), g), bool)  # those that change sides
        for at, player in enumerate(players):
            self.changed[1 + at, player] = True
        for at, pair in enumerate(pairs):
            self.changed[1 + len(players) + at, list(pair)] = True
        self.one, self.other = 1 + np.searchsorted(players, self.pairs.T)
        self.both = 1 + len(players) + np.arange(len(pairs))

    @property
    def cost(self) -> int:
        """The number of coalitions to evaluate for a point, with their complements."""
        return 2 * len(self.changed)

    def coalitions(self, members: np.ndarray) -> np.ndarray:
        """Return the coalitions, (m, L, g), given the first one of each point, (m, g)."""
        return members[:, None, :] ^ self.changed

    def differences(self, members: np.ndarray, worths: np.ndarray) -> np.ndarray:
        """Return the second differences of the pairs, (m, pairs, k), given worths (m, L, k)."""
        one, other = (members[:, each] for each in self.pairs.T)
        sums = worths[:, :1] - worths[:, self.one] - worths[:, self.other] + worths[:, self.both]
        return np.where(one == other, 1.0, -1.0)[:, :, None] * sums


class PairSums:
    """The values of some pairs of g players in a game.

    Parameters
    ----------
    play : the game of one explained row
        As `CoalitionSums` takes it.
    p : float or None
        The probability with which players join, or None if it is uniform on [0, 1].
    n_players : int
        The number of players, g.
    design : PairDesign
        The pairs.
    replicates : int
        The number of replicates, R.
    options : RunOptions
        Options of the run.
    """

    def __init__(
        self,
        play: Any,
        p: float | None,
        n_players: int,
        design: PairDesign,
        replicates: int,
        options: RunOptions,
    ) -> None:
        self.play, self.p, self.g, self.design = play, p, n_players, design
        self.replicates, self.options = replicates, options
        self.round, self.count = 0, 0
        self.sums = np.zeros((replicates, len(design.pairs), len(play.full)))

    def values(self, first: int) -> np.ndarray:
        """Return replicates, (R, pairs, k), of which the first round has `first` points each."""
        each = self.replicates * self.design.cost
        return until_small(self._add, self.play, each, first, self.options)

    def _add(self, m: int) -> np.ndarray:
        """Add m points to every replicate, and return the replicates of the values."""
        R, g, design = self.replicates, self.g, self.design
        rngs = [np.random.default_rng([self.options.seed, self.round, r]) for r in range(R)]
        drawn = self.play.draw(m, rngs)
        step = max(1, BLOCK // (m * design.cost * g))
        for start in range(0, R, step):
            some = slice(start, min(start + step, R))
            points = np.arange(some.start * m, some.stop * m)
            members = np.concatenate([self._members(m, rng) for rng in rngs[some]])
            weights = (m * drawn.shares[points])[:, None, None]
            values = np.zeros((len(points), *self.sums.shape[1:]))
            for side in (members, ~members):
                worths = drawn.at(points, design.coalitions(side))
                values += weights * design.differences(side, worths) / 2
            self.sums[some] += values.reshape(-1, m, *values.shape[1:]).sum(axis=1)
        self.count += m
        self.round += 1
        return self.sums / self.count

    def _members(self, m: int, rng: np.random.Generator) -> np.ndarray:
        """Return m random coalitions, (m, g)."""
        p = self.p if self.p is not None else (rng.permutation(m) + rng.random(m))[:, None] / m
        return rng.random((m, self.g)) < p
