"""Pairs on boxes, under products of laws: products of the masses of a box's sides.

Exact, O(boxes · pairs on a path · columns), whatever the number of rows (docs/mathematics.md,
section 11).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.engines.backgrounds import encode
from skattr.engines.base import RunOptions
from skattr.engines.boxes.box_products import cumulated
from skattr.engines.boxes.box_sums import tree_blocks
from skattr.engines.boxes.pair_sums import PairBoxes, PairSums
from skattr.engines.boxes.two_violations import BoxPairs
from skattr.engines.laws import as_masses, masses, why_inexact
from skattr.kernels.boxes import pair_products
from skattr.pieces import Boxes


class PairProducts(BoxPairs):
    """Sums over boxes of the products of their sides' masses, leaving out two attributions."""

    name = "pair_products"
    views = ("pairs of factors",)

    @override
    def objection(self, pieces: Boxes, measure: Any) -> str | None:
        inner = measure.pairs().measure
        if inner.depends == "attribution":
            return f"the laws of {inner!r} depend on the attribution"
        return why_inexact(
            inner, lambda law, k: masses(law, encode(inner.background_, pieces.grid)[0], k)
        )

    @override
    def cost(self, pieces: Boxes, measure: Any) -> str:
        return (
            f"first call: one product per box ({pieces.n_boxes:,}) and pair; then one sweep over "
            "the boxes of a pair"
        )

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Any, options: RunOptions
    ) -> PairSums:
        inner = measure.pairs().measure
        components, _ = inner.factors()
        grid, _ = encode(inner.background_, pieces.grid, options.n_jobs)
        boxes = pieces.on(grid)
        pair_boxes = PairBoxes.of(boxes, attributions)
        sums = pair_boxes.no_weights(boxes)
        for share, laws in components:
            sides = [
                masses(as_masses(law, pieces.grid), boxes.grid, k) for k, law in enumerate(laws)
            ]
            running = cumulated(sides)

            def walk(trees: np.ndarray, share: float = share, running: Any = running) -> None:
                pair_products.walk(boxes.table, trees, pair_boxes.members, running, share, sums)

            deque(in_order(walk, tree_blocks(boxes), options.n_jobs), maxlen=0)
        return pair_boxes.sums(boxes, sums, 1.0)
