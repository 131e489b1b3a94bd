"""Interaction indices of few players on any model: the worths of all coalitions.

    I_jk = Σ_S π_{|S|} (v_x(S ∪ jk) - v_x(S ∪ j) - v_x(S ∪ k) + v_x(S))

Exact. The same evaluations as those of `EnumeratedCoalitions`, shared by all pairs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions, Pairs
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.coalition_values import pair_coefficients, weights_of_pairs
from skattr.engines.evaluation.distinct import at_distinct_rows
from skattr.engines.evaluation.enumerated_coalitions import EnumeratedCoalitions, weighted_worths
from skattr.measures.views import of_pairs
from skattr.pieces import Pieces

_SINGLES = EnumeratedCoalitions()


class EnumeratedInteractions(Engine):
    """Evaluates the model at all hybrids of an explained row and the background."""

    name = "enumerated_interactions"
    kind = Pieces
    views = tuple(map(of_pairs, _SINGLES.views))
    gives = "exact, if there are few players; groups"

    @override
    def objection(self, pieces: Pieces, measure: Any) -> str | None:
        return _SINGLES.objection(pieces, measure.pairs().measure)

    @override
    def why_not_preferred(self, pieces: Pieces, measure: Any, options: RunOptions) -> str | None:
        return _SINGLES.why_not_preferred(pieces, measure.pairs().measure, options)

    @override
    def has_mean(self, measure: Any) -> bool:
        return _SINGLES.has_mean(measure.measure)

    @override
    def cost(self, pieces: Pieces, measure: Any) -> str:
        return _SINGLES.cost(pieces, measure.pairs().measure)

    @override
    def outlook(self, state: Any, attributions: Attributions) -> str:
        assert isinstance(attributions, Pairs)
        return _SINGLES.outlook(state, attributions.singles)

    @override
    def prepare(self, pieces: Pieces, measure: Any, attributions: Any, options: RunOptions) -> Any:
        return _SINGLES.prepare(pieces, measure.pairs().measure, attributions.singles, options)

    @override
    def finish(self, pieces: Pieces, state: Any, options: RunOptions) -> Any:
        return state.finished()

    @override
    def mean(self, pieces: Pieces, state: Any) -> Estimate | None:
        return _SINGLES.mean(pieces, state)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        pairs = request.attributions
        assert isinstance(pairs, Pairs)
        members = [pairs.members[a] for a in request.chosen]
        value = partial(_values, pieces.output, state, pairs.singles, members)
        each = f"each the worths of {2 ** len(pairs.singles):,} coalitions"
        return Integral(Estimate(at_distinct_rows(value, request, each)))


def _values(
    f: Any, game: Any, players: Attributions, pairs: list[tuple[int, int]], x: Any
) -> np.ndarray:
    """Return the values of pairs at x, a table of one row: (pairs, k)."""
    weights = weights_of_pairs(game.semivalue, len(players))
    coefficients = partial(pair_coefficients, pairs=pairs, weights=weights)
    return weighted_worths(f, game, players, coefficients, x)
