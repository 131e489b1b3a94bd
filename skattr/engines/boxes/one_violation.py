"""Rows of data on boxes: one pass over the background, allowing one violated attribution.

Exact curves of all attributions, O(boxes · depth · rows / 64) (docs/mathematics.md, section 3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines import backgrounds
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_sums import BoxSums, add_trees, owners
from skattr.engines.boxes.fold_sums import FoldSums, FoldWalk
from skattr.engines.estimates import Estimate
from skattr.kernels.boxes import one_violation
from skattr.kernels.boxes.fold_sums import index_folds
from skattr.kernels.boxes.layout import Sums
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
        pinned_ones = attributions if pinned else ()
        folds, sums = None, None
        if pinned and measure.by_rows == "mean":
            folds = FoldSums.empty(pieces, owners(attributions, grid), options.folds)
        for start in range(0, len(weights), ROW_BLOCK):
            block = slice(start, start + ROW_BLOCK)
            some, weight = np.ascontiguousarray(codes[:, block]), weights[block]
            equal = bool((weight == weight[0]).all())
            if folds is not None:
                total = sums if equal else None
                total = _add_folds(pieces, attributions, some, weight, options, block, folds, total)
            if folds is not None and equal:
                sums = total
            else:  # sums of weights depend on the order of rows
                rows = one_violation.index_rows(some, weight, pieces.grid.offset)
                sums = add_trees(pieces, pinned_ones, one_violation.walk, rows, options, sums)
        assert sums is not None
        return BoxSums(*sums, float(weights.sum()), grid.offset, folds)

    @override
    def merge(self, a: BoxSums, b: BoxSums) -> BoxSums:
        return a + b

    @override
    def sums_by_fold(self, state: BoxSums) -> FoldSums | None:
        return state.folds

    @override
    def drop_folds(self, state: BoxSums) -> None:
        state.folds = None

    @override
    def mean(self, pieces: Boxes, state: BoxSums) -> Estimate:
        return Estimate(state.mean(pieces))

    @override
    def curves(self, pieces: Boxes, state: BoxSums, attributions: Attributions) -> Curves:
        return state.curves(pieces, attributions)

    @override
    def compact(self, state: BoxSums) -> BoxSums:
        return replace(state, jumps=state.jumps[:0].copy(), folds=None)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        return Integral(Estimate(state.integrate(pieces, request)))


def _add_folds(
    pieces: Boxes,
    attributions: Attributions,
    codes: np.ndarray,
    weights: np.ndarray,
    options: RunOptions,
    block: slice,
    folds: FoldSums,
    sums: Sums | None,
) -> Sums:
    """Add a block of rows to the sums of all folds, and to those of all rows."""
    assert options.folds is not None
    of_rows, n = options.folds.of_rows[block], len(folds.weights)
    rows, all_rows = index_folds(codes, weights, pieces.grid.offset, of_rows, n)
    walk = FoldWalk(pieces, all_rows, folds, options.n_jobs)
    sums = add_trees(pieces, attributions, walk, rows, options, sums)
    walk.finish(np.bincount(of_rows, weights, n))
    return sums
