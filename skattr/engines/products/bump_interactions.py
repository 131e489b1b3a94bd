"""Interaction indices of sums of products (docs/mathematics.md, section 11).

    f = b + Σ_m c_m ∏_k φ_mk(y_k),   K_mj = ∏_{k in j} φ_mk:
    I_jl(x) = Σ_m c_m ∫ E[(K_mj(x) - K_mj(Z)) (K_ml(x) - K_ml(Z)) ∏_{i≠j,l} (p K_mi(x)
              + (1-p) K_mi(Z))] dP(p)

As `BumpCoalitions`: exact, from the worths of all coalitions or at nodes in p, whichever costs
less. Players of different parts of the model do not interact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Pairs
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.products.bump_coalitions import BumpCoalitions, Games, for_each_part
from skattr.engines.products.coalition_sums import PAIRS, Players
from skattr.pieces import Products


class BumpInteractions(Engine):
    """Second differences of pairs of players, for the products of each explained row."""

    name = "bump_interactions"
    kind = Products
    views = ("pairs of coalitions of rows", "pairs of coalitions of factors")
    gives = "exact; groups"

    @override
    def objection(self, pieces: Products, measure: Any) -> str | None:
        return BumpCoalitions().objection(pieces, measure.pairs().measure)

    @override
    def cost(self, pieces: Products, measure: Any) -> str:
        return BumpCoalitions().cost(pieces, measure.pairs().measure)

    @override
    def prepare(
        self, pieces: Products, measure: Any, attributions: Any, options: RunOptions
    ) -> Games:
        inner = measure.pairs().measure
        return BumpCoalitions().prepare(pieces, inner, attributions.singles, options)

    @override
    def finish(self, pieces: Products, state: Games, options: RunOptions) -> Games:
        return BumpCoalitions().finish(pieces, state, options)

    @override
    def mean(self, pieces: Products, state: Games) -> Estimate:
        return BumpCoalitions().mean(pieces, state)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        pairs = request.attributions
        assert isinstance(pairs, Pairs)
        positions = {pairs.members[a]: i for i, a in enumerate(request.chosen)}
        result = request.zeros(pieces.n_outputs)

        def add(block: slice, players: Players, values: np.ndarray) -> None:
            groups = players.attributions
            members = [(groups[a], groups[b]) for b in range(len(groups)) for a in range(b)]
            asked = [i for i, pair in enumerate(members) if pair in positions]
            result[block, [positions[members[i]] for i in asked]] += values[:, asked]

        for_each_part(pieces, state, request, PAIRS, add)
        return Integral(Estimate(result / state.weight))
