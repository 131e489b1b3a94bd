"""Sampled coalitions on any model, of rows of data, products of laws or conditional laws.

Approximate. Independent replicates, the same for all explained rows, give a standard error for each
value, and evaluations are shared by all players. More are made until the errors are small enough
twice in a row, separately for each distinct row, so that no value depends on the other rows.
`coalition_sums.py` has the algorithm. The Shapley values of every replicate add up to f(x) less the
mean of f over the background, or over the points that it draws from products of laws.
"""

from __future__ import annotations

import numbers
from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.bin_games import BinGame
from skattr.engines.evaluation.coalition_sums import CoalitionSums, point_cost
from skattr.engines.evaluation.distinct import at_distinct_rows
from skattr.engines.evaluation.product_games import ProductGame
from skattr.engines.evaluation.row_games import RowGame
from skattr.engines.evaluation.transport_games import TransportGame
from skattr.measures.base import Measure
from skattr.pieces import Pieces

Game = RowGame | BinGame | ProductGame | TransportGame
GAMES: dict[str, Any] = {
    "coalitions of rows": RowGame,
    "coalitions of bins": BinGame,
    "coalitions of factors": ProductGame,
    "coalitions of transport": TransportGame,
}


class SampledCoalitions(Engine):
    """Means over sampled coalitions, with standard errors.

    Parameters
    ----------
    replicates : int, default=16
        Number of independent replicates.
    """

    name = "sampled_coalitions"
    kind = Pieces
    views = tuple(GAMES)
    gives = "approximate, with standard errors"
    exact = False
    needs_partition = True

    def __init__(self, replicates: int = 16) -> None:
        self.replicates = replicates

    @override
    def has_mean(self, measure: Measure) -> bool:
        return "coalitions of factors" not in measure.views

    @override
    def cost(self, pieces: Pieces, measure: Any) -> str:
        return f"explain: {self.replicates} replicates of sampled coalitions for each distinct row"

    @override
    def evaluations(self, states: list[Any], options: RunOptions) -> str:
        return f"up to {options.max_evals:,} evaluations per row, shared by all its values"

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Game:
        inner, semivalue = measure.coalitions()
        kind = next(game for view, game in GAMES.items() if view in measure.views)
        game = kind.of(pieces, inner, semivalue)
        self._first(game, len(attributions), options)
        return game

    @override
    def merge(self, a: Any, b: Any) -> Game:
        return a.merge(b)

    @override
    def finish(self, pieces: Pieces, state: Game, options: RunOptions) -> Game:
        return state.finished()

    @override
    def mean(self, pieces: Pieces, state: Game) -> Estimate | None:
        mean = state.mean()
        return None if mean is None else Estimate(mean)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        value = partial(self._values, pieces.output, state, request.attributions, request.options)
        each = (
            f"each {self.replicates} replicates of sampled coalitions, to a standard error of "
            f"tol={request.options.tol:g}"
        )
        replicates = at_distinct_rows(value, request, each)[:, :, list(request.chosen)]
        return Integral(Estimate.sampled(np.moveaxis(replicates, 1, 0)))

    def _values(
        self, f: Any, game: Game, players: Attributions, options: RunOptions, x: Any
    ) -> np.ndarray:
        """Return replicates of the values of all players at x, a table of one row: (R, g, k)."""
        g = len(players)
        play = game.start(f, players, x)
        sums = CoalitionSums(play, game.semivalue.p is None, g, self.replicates, options)
        return sums.values(self._first(game, g, options))

    def _first(self, game: Game, n_players: int, options: RunOptions) -> int:
        """Return the number of points of a replicate in the first round."""
        check_replicates(self, self.replicates)
        each = max(1, point_cost(game.semivalue.p is None, n_players))
        what = f"{n_players} players"
        return game.first(points_within(self, self.replicates, each, what, options))


def check_replicates(engine: Engine, replicates: Any) -> None:
    """Raise if there are not at least two replicates."""
    if not isinstance(replicates, numbers.Integral) or replicates < 2:
        raise ValueError(
            f"{type(engine).__name__}(replicates={replicates!r}): replicates must be an integer of "
            "at least 2, as the error is computed from their differences"
        )


def points_within(
    engine: Engine, replicates: int, each: int, what: str, options: RunOptions
) -> int:
    """Return the number of points of a replicate within max_evals, `each` evaluations per point."""
    if options.max_evals < replicates * each:
        raise ValueError(
            f"max_evals={options.max_evals!r} is too small for {engine.name}: {replicates} "
            f"replicates of {each:,} evaluations each, for {what}, need {replicates * each:,}"
        )
    return int(options.max_evals // (replicates * each))
