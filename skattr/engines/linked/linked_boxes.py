"""Rows of data on a link of boxes: Σ_r w_r link(f(t, z_{r,-j})), with all its jumps.

Every row is a step function of one column (boxes/row_steps.py); the link is applied to its steps,
and the weighted mean over the rows is a step function too, exact with every jump. Weights may
depend on the bin of t. O(boxes · depth · rows / 64) + O(rows · codes). Groups, and columns whose
cells are not known in advance, are evaluated row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction
from skattr.curves.by_bin import ByCodeAndBin
from skattr.curves.by_code import ByCode
from skattr.engines import backgrounds
from skattr.engines.backgrounds import merge_weights, rows_or_bins, settle_weights
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.boxes.row_steps import StepsOfRows, passes
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.finite_sum import FiniteSum
from skattr.engines.row_sums import RowSum
from skattr.measures.base import Measure
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import Boxes, Linked


@dataclass(eq=False)
class LinkedSums:
    """Sums over rows of the link, not normalised; `rest` is for groups and open columns."""

    total: np.ndarray  # (k,)
    weight: float
    # position of a column → (k, n_codes), or (k, n_codes, bins of rows) if weights have bins
    sums: dict[int, np.ndarray]
    row_weights: RowWeights | None
    rest: RowSum | None


def without_boxes(pieces: Linked) -> str | None:
    """Return why an engine for boxes behind a link cannot serve pieces, None if it can."""
    if isinstance(pieces.inner, Boxes):
        return None
    return f"it needs Boxes behind the link, the model is {pieces.describe()}"


class LinkedBoxes(Engine):
    """Applies the link to the steps of every background row, and sums them up."""

    name = "linked_boxes"
    kind = Linked
    views = ("rows", "bins")
    gives = "exact curves, behind a link; groups row by row"
    how_exact = "exact, behind a link"

    @override
    def objection(self, pieces: Linked, measure: Measure) -> str | None:
        return without_boxes(pieces)

    @override
    def cost(self, pieces: Linked, measure: Measure) -> str:
        return (
            "fit: one pass of the background down all trees, and the link of each row and cell; "
            "explain: one lookup per value, for a group one evaluation of the background"
        )

    @override
    def prepare(
        self, pieces: Linked, measure: Any, attributions: Attributions, options: RunOptions
    ) -> LinkedSums:
        background, row_weights, pinned = rows_or_bins(measure)
        grid, codes = backgrounds.encode(background, pieces.inner.grid, options.n_jobs)
        assert isinstance(pieces.inner, Boxes)
        boxes = pieces.inner.on(grid)
        single = [c[0] for c in attributions if len(c) == 1 and not grid.cells[c[0]].open]
        columns = sorted(set(single)) if pinned else []
        rest = None
        if pinned and len(single) < len(attributions):
            rest = FiniteSum().prepare(pieces, measure, attributions, options)
        total: Any = 0.0
        sums: dict[int, np.ndarray] = {}
        for some in passes(boxes, columns):
            steps = StepsOfRows(boxes, some)
            total, more = _sum_rows(pieces, steps, codes, background.weights, row_weights, options)
            sums |= more
        if row_weights is not None:  # the tables of columns are enough for curves
            row_weights = row_weights.without_rows()
        return LinkedSums(total, float(background.weights.sum()), sums, row_weights, rest)

    @override
    def merge(self, a: LinkedSums, b: LinkedSums) -> LinkedSums:
        rest = None
        if a.rest is not None and b.rest is not None:
            rest = FiniteSum().merge(a.rest, b.rest)
        return LinkedSums(
            a.total + b.total,
            a.weight + b.weight,
            {k: a.sums[k] + b.sums[k] for k in a.sums},
            merge_weights(a, b),
            rest,
        )

    @override
    def finish(self, pieces: Linked, state: LinkedSums, options: RunOptions) -> LinkedSums:
        rest = None if state.rest is None else settle_weights(state.rest)
        return replace(settle_weights(state), rest=rest)

    @override
    def mean(self, pieces: Linked, state: LinkedSums) -> Estimate:
        return Estimate(state.total / state.weight)

    @override
    def curves(self, pieces: Linked, state: LinkedSums, attributions: Attributions) -> Curves:
        return [
            self._curve(pieces, state, c[0]) if len(c) == 1 and c[0] in state.sums else None
            for c in attributions
        ]

    def _curve(self, pieces: Linked, state: LinkedSums, k: int) -> ColumnFunction:
        sums = state.sums[k]
        if state.row_weights is None:
            return ByCode(pieces.grid, k, np.ascontiguousarray(sums.T) / state.weight)
        column = state.row_weights.columns[k]
        values = sums @ column.table.T / state.weight  # (k, n_codes, bins of t)
        return ByCodeAndBin(column.bins, np.ascontiguousarray(values.transpose(1, 2, 0)))

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        return FiniteSum().integrate(pieces, state.rest, request)


def _sum_rows(
    pieces: Linked,
    steps: StepsOfRows,
    codes: np.ndarray,
    weights: np.ndarray,
    row_weights: RowWeights | None,
    options: RunOptions,
) -> tuple[Any, dict[int, np.ndarray]]:
    """Sum the link of the steps of all rows up, in fixed blocks, added up in order."""
    size = steps.block_size()

    def run(start: int) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        block = slice(start, start + size)
        fit, columns = steps.of(codes[:, block])
        share = weights[block]
        total = (pieces.link(fit) * share).sum(axis=-1)
        return total, dict(_linked(pieces, columns, share, row_weights, block))

    total: Any = 0.0
    sums: dict[int, Any] = {}
    for part, more in in_order(run, range(0, len(weights), size), options.n_jobs):
        total = total + part
        for k, values in more.items():
            sums[k] = sums[k] + values if k in sums else values
    return total, sums


def _linked(
    pieces: Linked,
    columns: Iterator[tuple[int, np.ndarray]],
    share: np.ndarray,
    row_weights: RowWeights | None,
    block: slice,
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the sums over a block of rows of each column, by code, and by bin of rows if any."""
    for k, margins in columns:
        values = pieces.link(margins)
        values = values * share
        if row_weights is None:
            yield k, values.sum(axis=-1)
            continue
        assert row_weights.rows is not None
        bins = row_weights.rows[k][block]
        order = np.argsort(bins, kind="stable")
        kinds, first = np.unique(bins[order], return_index=True)
        sums = np.zeros((*values.shape[:-1], row_weights.columns[k].bins.n + 2))
        sums[..., kinds] = np.add.reduceat(values[..., order], first, axis=-1)
        yield k, sums
