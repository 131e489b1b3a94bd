"""Rows of data on boxes: one pass over the background that allows one disagreement.

Exact curves of all attributions, O(boxes · depth · rows / 64) (MATH.md, section 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.box_sums import BoxSums, add_trees
from skattr.kernels import one_violation
from skattr.measures.base import Measure
from skattr.pieces import Boxes

ROW_BLOCK = 32_768  # rows that go down the trees together: more of them outgrow the cache


class OneViolation(Engine):
    """Sums over boxes of the rows that meet all conditions but those on one attribution."""

    name = "one_violation"
    needs = (Boxes, "rows")

    def cost(self, pieces: Boxes, term: Measure) -> str:
        """Say what it costs."""
        return "fit: one pass of the background down all trees; explain: one lookup per value"

    def prepare(self, pieces: Boxes, term: Measure, own: Own, jobs: Jobs) -> BoxSums:
        """Push all rows down all trees."""
        background, pinned = term.rows()
        grid, codes = background.seen(pieces.grid, jobs.n_jobs)
        pieces = pieces.on(grid)
        weights = background.weights
        own = own if pinned else ()
        sums = None
        for start in range(0, len(weights), ROW_BLOCK):
            block = slice(start, start + ROW_BLOCK)
            rows = one_violation.index_rows(
                np.ascontiguousarray(codes[:, block]), weights[block], pieces.grid.offset
            )
            sums = add_trees(pieces, own, one_violation.walk, rows, jobs, sums)
        assert sums is not None
        return BoxSums(*sums, float(weights.sum()), grid.offset)

    def merge(self, a: BoxSums, b: BoxSums) -> BoxSums:
        """Add up."""
        return a + b

    def mean(self, pieces: Boxes, state: BoxSums) -> np.ndarray:
        """Return E f."""
        return state.mean(pieces)

    def tables(self, pieces: Boxes, state: BoxSums, own: Own) -> list[np.ndarray | None]:
        """Return the curves of single columns."""
        return state.tables(pieces, own)

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the values of groups and of open columns."""
        return state.integrate(pieces, codes, own, chosen)
