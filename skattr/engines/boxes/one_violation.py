"""Rows of data on boxes: one pass over the background, allowing one violated attribution.

Exact curves of all attributions, O(boxes · depth · rows / 64) (MATH.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction
from skattr.engines import backgrounds
from skattr.engines.base import Engine, Integral, Rows, RunOptions
from skattr.engines.boxes.box_sums import BoxSums, add_trees
from skattr.engines.estimates import Estimate
from skattr.kernels.boxes import one_violation
from skattr.measures.base import Measure
from skattr.pieces import Boxes

ROW_BLOCK = 32_768  # rows that go down the trees together: more do not fit in the cache


class OneViolation(Engine):
    """Sums over boxes of the rows that meet all conditions but those on one attribution."""

    name = "one_violation"
    kind = Boxes
    views = ("rows",)
    gives = "exact curves; groups"
    needs_partition = True

    @override
    def cost(self, pieces: Boxes, measure: Measure) -> str:
        return "fit: one pass of the background down all trees; explain: one lookup per value"

    @override
    def prepare(
        self, pieces: Boxes, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> BoxSums:
        background, pinned = measure.rows()
        grid, codes = backgrounds.encode(background, pieces.grid, options.n_jobs)
        pieces = pieces.on(grid)
        weights = background.weights
        sums = None
        for start in range(0, len(weights), ROW_BLOCK):
            block = slice(start, start + ROW_BLOCK)
            rows = one_violation.index_rows(
                np.ascontiguousarray(codes[:, block]), weights[block], pieces.grid.offset
            )
            sums = add_trees(
                pieces, attributions if pinned else (), one_violation.walk, rows, options, sums
            )
        assert sums is not None
        return BoxSums(*sums, float(weights.sum()), grid.offset)

    @override
    def merge(self, a: BoxSums, b: BoxSums) -> BoxSums:
        return a + b

    @override
    def mean(self, pieces: Boxes, state: BoxSums) -> Estimate:
        return Estimate(state.mean(pieces))

    @override
    def curves(
        self, pieces: Boxes, state: BoxSums, attributions: Attributions
    ) -> Sequence[ColumnFunction | None]:
        return state.curves(pieces, attributions)

    @override
    def integrate(
        self,
        pieces: Any,
        state: Any,
        rows: Rows,
        attributions: Attributions,
        chosen: list[int],
        options: RunOptions,
    ) -> Integral:
        return Integral(Estimate(state.integrate(pieces, rows.codes, attributions, chosen)))
