"""Products of one-dimensional laws on boxes: the product of the masses of a box's sides.

Exact curves of all attributions, O(boxes · depth), whatever the number of rows
(docs/mathematics.md, section 3). The laws add up over batches; `finish` computes the sums over
boxes from them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.backgrounds import encode
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_sums import BoxSums, add_trees
from skattr.engines.estimates import Estimate
from skattr.engines.laws import as_masses, masses, merge_components, why_inexact
from skattr.kernels.boxes import box_products
from skattr.measures.base import Measure
from skattr.pieces import Boxes, Grid


def sum_products(
    boxes: Boxes, attributions: Sequence, masses: list[np.ndarray], options: RunOptions
) -> BoxSums:
    """Return the sums over boxes for one product, given the mass of each code of each column."""
    sums = add_trees(boxes, attributions, box_products.walk, cumulated(masses), options)
    return BoxSums(*sums, 1.0, boxes.grid.offset)


def cumulated(masses: list[np.ndarray]) -> np.ndarray:
    """Return code 0 by itself, the others as running sums: an interval is a difference."""
    return np.concatenate([np.concatenate([m[:1], np.cumsum(m[1:])]) for m in masses])


@dataclass(eq=False)
class CodedMixture:
    """A mixture of products as masses by code, and its sums over boxes."""

    components: list  # (π_c, the masses of one law per column)
    attributions: Sequence  # the pinned ones
    grid: Grid  # with the cells of the background
    sums: BoxSums | None = None


class BoxProducts(Engine):
    """Sums over boxes of the products of their sides' masses, leaving out one attribution."""

    name = "box_products"
    kind = Boxes
    views = ("factors",)
    gives = "exact curves; groups"
    needs_partition = True

    @override
    def objection(self, pieces: Boxes, measure: Measure) -> str | None:
        return why_inexact(
            measure, lambda law, k: masses(law, encode(measure.background_, pieces.grid)[0], k)
        )

    @override
    def cost(self, pieces: Boxes, measure: Measure) -> str:
        return f"fit: one product per box ({pieces.n_boxes:,}); explain: one lookup per value"

    @override
    def prepare(
        self, pieces: Boxes, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> CodedMixture:
        components, pinned = measure.factors()
        grid, _ = encode(measure.background_, pieces.grid, options.n_jobs)
        coded = [
            (share, [as_masses(law, pieces.grid) for law in laws]) for share, laws in components
        ]
        return CodedMixture(coded, attributions if pinned else (), grid)

    @override
    def merge(self, a: CodedMixture, b: CodedMixture) -> CodedMixture:
        return CodedMixture(merge_components(a.components, b.components), a.attributions, a.grid)

    @override
    def finish(self, pieces: Boxes, state: CodedMixture, options: RunOptions) -> CodedMixture:
        parts = []
        pieces = pieces.on(state.grid)
        for share, laws in state.components:
            sides = [masses(law, pieces.grid, k) for k, law in enumerate(laws)]
            parts.append(sum_products(pieces, state.attributions, sides, options).scaled(share))
        return CodedMixture(
            state.components, state.attributions, state.grid, functools.reduce(operator.add, parts)
        )

    @override
    def mean(self, pieces: Boxes, state: CodedMixture) -> Estimate:
        assert state.sums is not None
        return Estimate(state.sums.mean(pieces))

    @override
    def curves(self, pieces: Boxes, state: CodedMixture, attributions: Attributions) -> Curves:
        assert state.sums is not None
        return state.sums.curves(pieces, attributions)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        return Integral(Estimate(state.sums.integrate(pieces, request)))
