"""Interaction indices on any model, from sampled coalitions (pair_sums.py).

Approximate, with standard errors, as `SampledCoalitions`: independent replicates, the same for all
explained rows, and more points until the errors are small enough twice in a row, separately for
each distinct row. Evaluations are shared by all pairs that are asked for.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions, Pairs
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.distinct import at_distinct_rows
from skattr.engines.evaluation.pair_sums import PairDesign, PairSums
from skattr.engines.evaluation.sampled_coalitions import (
    SampledCoalitions,
    check_replicates,
    points_within,
)
from skattr.measures.views import of_pairs
from skattr.pieces import Pieces


class SampledInteractions(Engine):
    """Means of second differences over sampled coalitions, with standard errors.

    Parameters
    ----------
    replicates : int, default=16
        Number of independent replicates.
    """

    name = "sampled_interactions"
    kind = Pieces
    views = tuple(map(of_pairs, SampledCoalitions.views))
    gives = "approximate, with standard errors"
    exact = False

    def __init__(self, replicates: int = 16) -> None:
        self.replicates = replicates

    @override
    def objection(self, pieces: Pieces, measure: Any) -> str | None:
        return SampledCoalitions().objection(pieces, measure.pairs().measure)

    @override
    def has_mean(self, measure: Any) -> bool:
        return SampledCoalitions().has_mean(measure.measure)

    @override
    def cost(self, pieces: Pieces, measure: Any) -> str:
        return f"explain: {self.replicates} replicates of sampled coalitions for each distinct row"

    @override
    def evaluations(self, states: list[Any], options: RunOptions) -> str:
        return SampledCoalitions().evaluations(states, options)

    @override
    def prepare(self, pieces: Pieces, measure: Any, attributions: Any, options: RunOptions) -> Any:
        check_replicates(self, self.replicates)
        design = PairDesign(len(attributions.singles), list(attributions.members))
        self._points(design, options)
        inner = measure.pairs().measure
        singles = SampledCoalitions(self.replicates)
        return singles.prepare(pieces, inner, attributions.singles, options)

    @override
    def finish(self, pieces: Pieces, state: Any, options: RunOptions) -> Any:
        return state.finished()

    @override
    def mean(self, pieces: Pieces, state: Any) -> Estimate | None:
        return SampledCoalitions().mean(pieces, state)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        pairs = request.attributions
        assert isinstance(pairs, Pairs)
        design = PairDesign(len(pairs.singles), [pairs.members[a] for a in request.chosen])
        value = partial(self._values, pieces.output, state, pairs.singles, design, request.options)
        each = (
            f"each {self.replicates} replicates of sampled coalitions, to a standard error of "
            f"tol={request.options.tol:g}"
        )
        replicates = at_distinct_rows(value, request, each)
        return Integral(Estimate.sampled(np.moveaxis(replicates, 1, 0)))

    def _values(
        self,
        f: Any,
        game: Any,
        players: Attributions,
        design: PairDesign,
        options: RunOptions,
        x: Any,
    ) -> np.ndarray:
        """Return replicates of the values of all pairs at x, a table of one row: (R, pairs, k)."""
        play = game.start(f, players, x)
        sums = PairSums(play, game.semivalue.p, len(players), design, self.replicates, options)
        return sums.values(game.first(self._points(design, options)))

    def _points(self, design: PairDesign, options: RunOptions) -> int:
        """Return the number of points of a replicate within max_evals."""
        what = f"{len(design.pairs)} pairs of players"
        return points_within(self, self.replicates, design.cost, what, options)
