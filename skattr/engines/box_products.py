"""Products of one-dimensional laws on boxes: the product of the masses of a box's sides.

Exact curves of all attributions, O(boxes · depth), whatever the number of rows (MATH.md,
section 3). The laws add up over batches; the sums over boxes are made from them.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.box_sums import BoxSums, add_trees
from skattr.engines.exact_laws import why_inexact
from skattr.kernels import box_products
from skattr.measures.base import Measure
from skattr.pieces import Boxes, Grid, Pieces


def sum_products(boxes: Boxes, own: Own, masses: list[np.ndarray], jobs: Jobs) -> BoxSums:
    """Return the sums over boxes for one product, given the mass of each code of each column."""
    # code 0 stands apart, the others as running sums: an interval is a difference
    cumulated = np.concatenate([np.concatenate([m[:1], np.cumsum(m[1:])]) for m in masses])
    sums = add_trees(boxes, own, box_products.walk, cumulated, jobs)
    return BoxSums(*sums, 1.0, boxes.grid.offset)


@dataclass(eq=False)
class Laws:
    """A mixture of products, coded, and the sums over boxes that follow from it."""

    components: list  # (π_c, one coded law a column)
    own: Own  # the attributions that are pinned
    grid: Grid  # which knows the cells of the background
    sums: BoxSums | None = None


class BoxProducts(Engine):
    """Sums over boxes of the products of the masses of their sides, but for one attribution."""

    name = "box_products"
    needs = (Boxes, "factors")

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        reason = super().refuses(pieces, term)
        if reason is not None or not isinstance(pieces, Boxes):
            return reason
        grid = pieces.grid
        return why_inexact(term, lambda law, k: law.masses(term.background_.seen(grid)[0], k))

    def cost(self, pieces: Boxes, term: Measure) -> str:
        """Say what it costs."""
        return (
            f"fit: one product for each of {pieces.n_boxes:,} boxes; explain: one lookup per value"
        )

    def prepare(self, pieces: Boxes, term: Measure, own: Own, jobs: Jobs) -> Laws:
        """Keep what the laws know of each code."""
        components, pinned = term.factors()
        grid, _ = term.background_.seen(pieces.grid, jobs.n_jobs)
        coded = [(share, [law.coded(pieces.grid) for law in laws]) for share, laws in components]
        return Laws(coded, own if pinned else (), grid)

    def merge(self, a: Laws, b: Laws) -> Laws:
        """Join the laws."""
        joined = [
            (share, [one.merge(other) for one, other in zip(laws, more, strict=True)])
            for (share, laws), (_, more) in zip(a.components, b.components, strict=True)
        ]
        return Laws(joined, a.own, a.grid)

    def finish(self, pieces: Boxes, state: Laws, jobs: Jobs) -> Laws:
        """Sum over the boxes."""
        parts = []
        pieces = pieces.on(state.grid)
        for share, laws in state.components:
            masses = [law.masses(pieces.grid, k) for k, law in enumerate(laws)]
            parts.append(sum_products(pieces, state.own, masses, jobs).scaled(share))
        return Laws(state.components, state.own, state.grid, functools.reduce(operator.add, parts))

    def mean(self, pieces: Boxes, state: Laws) -> np.ndarray:
        """Return the integral of f against the product itself."""
        assert state.sums is not None
        return state.sums.mean(pieces)

    def tables(self, pieces: Boxes, state: Laws, own: Own) -> list[np.ndarray | None]:
        """Return the curves of single columns."""
        assert state.sums is not None
        return state.sums.tables(pieces, own)

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the values of groups and of open columns."""
        return state.sums.integrate(pieces, codes, own, chosen)
