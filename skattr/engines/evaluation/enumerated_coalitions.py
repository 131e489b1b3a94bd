"""Coalitions of few players on any model: the worths of all coalitions, of rows of data.

    v_x(S) = Σ_r w_r(x_S) f(x_S, z_{r,-S}),   phi_j = Σ_S π_{|S|} (v_x(S ∪ j) - v_x(S))

Exact. 2^g - 2 coalitions times the background rows are evaluated for each explained row (rows of
weight 0 are left out), in calls of their own: the values of a row do not depend on other explained
rows, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.bin_games import BinGame
from skattr.engines.evaluation.coalition_values import (
    coefficients,
    members_of,
    weights_of_sizes,
)
from skattr.engines.evaluation.distinct import at_distinct_rows
from skattr.engines.evaluation.hybrids import ROW_BLOCK
from skattr.engines.evaluation.row_games import RowGame
from skattr.pieces import Pieces

Game = RowGame | BinGame
GAMES: dict[str, Any] = {"coalitions of rows": RowGame, "coalitions of bins": BinGame}


class EnumeratedCoalitions(Engine):
    """Evaluates the model at all hybrids of an explained row and the background."""

    name = "enumerated_coalitions"
    kind = Pieces
    views = tuple(GAMES)
    gives = "exact, if there are few players; groups"
    needs_partition = True
    counts_rows = True

    @override
    def why_not_preferred(self, pieces: Pieces, measure: Any, options: RunOptions) -> str | None:
        n_rows = options.n_rows or len(measure.coalitions().measure.background_)
        return too_many(measure.n_players_, n_rows, options.for_exact_sums())

    @override
    def cost(self, pieces: Pieces, measure: Any) -> str:
        g = measure.n_players_
        return f"explain: {2**g - 2:,} evaluations of the background for each distinct row"

    @override
    def outlook(self, state: Game, attributions: Attributions) -> str:
        n, g = state.n_rows, len(attributions)
        return f"explaining the background takes {n * n * (2**g - 2):,} evaluations of the model"

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Game:
        inner, semivalue = measure.coalitions()
        n_rows = options.n_rows or len(inner.background_)
        reason = too_many(len(attributions), n_rows, options)
        if reason is not None:
            raise ValueError(f"{self.name} cannot integrate {measure!r}: {reason}")
        game = next(game for view, game in GAMES.items() if view in measure.views)
        return game.of(pieces, inner, semivalue)

    @override
    def merge(self, a: Any, b: Any) -> Game:
        return a.merge(b)

    @override
    def finish(self, pieces: Pieces, state: Game, options: RunOptions) -> Game:
        return state.finished()

    @override
    def mean(self, pieces: Pieces, state: Game) -> Estimate:
        return Estimate(state.mean())

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        each = f"each {2 ** len(request.attributions) - 2:,} × {state.n_rows:,} evaluations"
        value = partial(_values, pieces.output, state, request.attributions)
        values = at_distinct_rows(value, request, each)
        return Integral(Estimate(values[:, list(request.chosen)]))


def too_many(n_players: int, n_rows: int, options: RunOptions) -> str | None:
    """Return why not all coalitions can be evaluated, and what would help, or None."""
    size = (2**n_players - 2) * n_rows
    if size <= options.max_evals:
        return None
    players = int(np.log2(options.max_evals / n_rows + 2))
    fewer = int(options.max_evals // (2**n_players - 2))
    ways = [f"groups= that make at most {players} players" if players > 1 else "",
            f"at most {fewer} background rows" if fewer else "", f"max_evals={size:_}"]  # fmt: skip
    return (
        f"{n_players} players have {2**n_players - 2:,} coalitions, which take {size:,} "
        f"evaluations with {n_rows:,} background rows, max_evals is {options.max_evals:,}; exact "
        f"with {' or '.join(way for way in ways if way)}"
    )


def _values(f: Any, game: Game, players: Attributions, x: Any) -> np.ndarray:
    """Return the values of all players at x, a table of one row: (g, k)."""
    weights = weights_of_sizes(game.semivalue, len(players))
    return weighted_worths(f, game, players, partial(coefficients, weights=weights), x)


def weighted_worths(
    f: Any,
    game: Game,
    players: Attributions,
    coefficients: Callable[[np.ndarray], np.ndarray],
    x: Any,
) -> np.ndarray:
    """Return the worths of all coalitions at x times coefficients (coalitions, values), summed up.

    The coefficients of a value add up to 0.
    """
    g = len(players)
    # worths are taken relative to the mean, so that large values do not cancel
    play = game.start(f, players, x)
    values = coefficients(np.ones((1, g), bool)).T * (play.full - play.mean)
    step = max(1, ROW_BLOCK // game.n_rows)
    for start in range(1, 2**g - 1, step):
        members = members_of(np.arange(start, min(start + step, 2**g - 1)), g)
        values = values + coefficients(members).T @ (play.worths(members) - play.mean)
    return values
