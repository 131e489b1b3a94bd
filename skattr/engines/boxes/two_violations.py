"""Pairs on boxes, against rows of data: one pass, allowing two violated attributions.

Exact, all pairs at once, O(boxes · pairs on a path · rows / 64) (docs/mathematics.md, section 11).
Pairs of columns are looked up: O(boxes of the pair + rows) for a block of rows.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.engines import backgrounds
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_sums import tree_blocks
from skattr.engines.boxes.meeting_pairs import certified_zeros
from skattr.engines.boxes.pair_sums import PairBoxes, PairSums
from skattr.engines.estimates import Estimate
from skattr.kernels.boxes import two_violations
from skattr.kernels.boxes.one_violation import index_rows
from skattr.pieces import Boxes

ROW_BLOCK = 16_384  # rows that go down the trees together: more do not fit in the cache


class BoxPairs(Engine):
    """What engines of pairs on boxes share; subclasses fill the weights in `prepare`."""

    kind = Boxes
    gives = "exact surfaces; groups"

    @override
    def mean(self, pieces: Boxes, state: PairSums) -> Estimate:
        return Estimate(state.mean(pieces))

    @override
    def curves(self, pieces: Boxes, state: PairSums, attributions: Any) -> Curves:
        return state.functions(pieces, attributions)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        return Integral(Estimate(state.integrate(pieces, request)))

    @override
    def certificate(self, state: PairSums) -> str:
        return certified_zeros(state.n_zeros(), len(state.first) - 1)


class TwoViolations(BoxPairs):
    """Sums over boxes of the rows that meet all conditions but those on two attributions."""

    name = "two_violations"
    views = ("pairs of rows",)

    @override
    def cost(self, pieces: Boxes, measure: Any) -> str:
        return (
            "first call: one pass of the background down all trees; then one sweep over the boxes "
            "of a pair"
        )

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Any, options: RunOptions
    ) -> PairSums:
        background, _ = measure.pairs().measure.rows()
        grid, codes = backgrounds.encode(background, pieces.grid, options.n_jobs)
        boxes = pieces.on(grid)
        pair_boxes = PairBoxes.of(boxes, attributions)
        sums = pair_boxes.no_weights(boxes)
        for start in range(0, len(background), ROW_BLOCK):
            block = slice(start, start + ROW_BLOCK)
            rows = index_rows(
                np.ascontiguousarray(codes[:, block]), background.weights[block], boxes.grid.offset
            )

            def walk(trees: np.ndarray, rows: Any = rows) -> None:
                two_violations.walk(boxes.table, trees, pair_boxes.members, rows, sums)

            deque(in_order(walk, tree_blocks(boxes), options.n_jobs), maxlen=0)
        return pair_boxes.sums(boxes, sums, float(background.weights.sum()))
