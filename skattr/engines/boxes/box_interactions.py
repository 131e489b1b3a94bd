"""Interaction indices on boxes, against rows of data (docs/mathematics.md, section 11).

As `BoxCoalitions`: explained and background rows go down the trees together, as sets of the
conditions that they fail. Exact. Only players that have conditions in the same box interact; all
other pairs are exactly 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Pairs
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_coalitions import (
    BoxCoalitions,
    CodedRows,
    against_rows,
    on_grid,
    too_many_columns,
)
from skattr.engines.boxes.meeting_pairs import zeros_of
from skattr.engines.estimates import Estimate
from skattr.kernels.coalitions.buffers import new_pair_buffers
from skattr.pieces import Boxes


class BoxInteractions(Engine):
    """Second differences of pairs of players, by sets of failed conditions."""

    name = "box_interactions"
    kind = Boxes
    views = ("pairs of coalitions of rows",)
    gives = "exact; groups"
    computes_mean = False

    @override
    def objection(self, pieces: Boxes, measure: Any) -> str | None:
        return too_many_columns(pieces)

    @override
    def cost(self, pieces: Boxes, measure: Any) -> str:
        return BoxCoalitions().cost(pieces, measure.pairs().measure)

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Any, options: RunOptions
    ) -> CodedRows:
        inner = measure.pairs().measure
        state = BoxCoalitions().prepare(pieces, inner, attributions.singles, options)
        return replace(state, zeros=zeros_of(pieces, attributions))

    @override
    def certificate(self, state: CodedRows) -> str:
        return state.zeros

    @override
    def finish(self, pieces: Boxes, state: CodedRows, options: RunOptions) -> CodedRows:
        return BoxCoalitions().finish(pieces, state, options)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        boxes, codes = on_grid(pieces, state.grid, request)
        pairs = request.attributions
        assert isinstance(pairs, Pairs)
        columns = positions_of_pairs(pairs, request.chosen)
        shape = len(request.chosen), boxes.n_outputs
        buffers = partial(new_pair_buffers, columns=columns)
        return Integral(Estimate(against_rows(boxes, state, codes, request, shape, buffers)))


def positions_of_pairs(pairs: Pairs, chosen: Any) -> np.ndarray:
    """Return the position of each pair of players among the chosen pairs, or -1, (g, g)."""
    g = len(pairs.singles)
    positions = np.full((g, g), -1, np.int64)
    for position, a in enumerate(chosen):
        j, k = pairs.members[a]
        positions[j, k] = positions[k, j] = position
    return positions
