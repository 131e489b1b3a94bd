"""Interaction indices on boxes, under products of one-dimensional laws.

See docs/mathematics.md, section 11.

As `ProductCoalitions`, with one polynomial in p of degree D - 2 for each pair of the D players of a
box. Exact, without rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Pairs
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_coalitions import on_grid
from skattr.engines.boxes.box_interactions import positions_of_pairs
from skattr.engines.boxes.meeting_pairs import zeros_of
from skattr.engines.boxes.product_coalitions import CodedLaws, ProductCoalitions, against_laws
from skattr.engines.estimates import Estimate
from skattr.kernels.coalitions import products
from skattr.pieces import Boxes


class ProductInteractions(Engine):
    """Second differences of pairs of players, from the masses of the sides of boxes."""

    name = "product_interactions"
    kind = Boxes
    views = ("pairs of coalitions of factors",)
    gives = "exact; groups"
    computes_mean = False

    @override
    def objection(self, pieces: Boxes, measure: Any) -> str | None:
        return ProductCoalitions().objection(pieces, measure.pairs().measure)

    @override
    def cost(self, pieces: Boxes, measure: Any) -> str:
        return ProductCoalitions().cost(pieces, measure.pairs().measure)

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Any, options: RunOptions
    ) -> CodedLaws:
        inner = measure.pairs().measure
        state = ProductCoalitions().prepare(pieces, inner, attributions.singles, options)
        return replace(state, zeros=zeros_of(pieces, attributions))

    @override
    def certificate(self, state: CodedLaws) -> str:
        return state.zeros

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        boxes, codes = on_grid(pieces, state.grid, request)
        pairs = request.attributions
        assert isinstance(pairs, Pairs)
        plan = state.plan(boxes)
        nodes = state.semivalue.nodes(max(plan.n_players - 2, 0))
        columns = positions_of_pairs(pairs, request.chosen)
        shape = len(request.chosen), boxes.n_outputs

        def add(trees: np.ndarray, running: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
            products.add_pair_differences(
                plan.table, trees, plan.owner, nodes, running, rows, columns, plan.n_players, out
            )

        return Integral(Estimate(against_laws(boxes, state, codes, request, shape, add)))
