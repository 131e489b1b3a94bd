"""Removal on a link of boxes: the link of the steps of each row, averaged over a column's codes.

f(x) - Σ_c p_c link(g(c, x_{-j})), p the law of the codes of column j. Each explained row is a step
function of one column (boxes/row_steps.py). Groups, and columns whose cells are not known in
advance, are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.boxes.replaced_columns import (
    columns_of_known_cells,
    evaluate_others,
    laws_of_codes,
)
from skattr.engines.boxes.row_steps import StepsOfRows, passes
from skattr.engines.estimates import Estimate
from skattr.engines.linked.linked_boxes import without_boxes
from skattr.measures.base import Measure
from skattr.pieces import Linked


@dataclass(eq=False)
class Laws:
    """The share of each code of each column, and the measure for what is evaluated."""

    laws: list[np.ndarray]  # (n_codes,) each
    measure: Measure


class LinkedRemoval(Engine):
    """Applies the link to the steps of every explained row."""

    name = "linked_removal"
    kind = Linked
    views = ("replaced",)
    gives = "exact, behind a link; groups by evaluation"
    how_exact = "exact, behind a link"
    computes_mean = False

    @override
    def objection(self, pieces: Linked, measure: Measure) -> str | None:
        return without_boxes(pieces)

    @override
    def cost(self, pieces: Linked, measure: Measure) -> str:
        return (
            "explain: one pass of the rows down all trees, and the link of each row and cell; for "
            "a group one evaluation per background row"
        )

    @override
    def prepare(
        self, pieces: Linked, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Laws:
        grid = pieces.inner.grid
        return Laws(laws_of_codes(measure.replaced().background, grid, options.n_jobs)[1], measure)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        codes = request.rows.codes
        assert codes is not None
        result = request.zeros(pieces.n_outputs)
        known = columns_of_known_cells(request, pieces.grid)
        for some in passes(pieces.inner, sorted(set(known.values()))):
            steps = StepsOfRows(pieces.inner, some)
            size = steps.block_size()

            def run(start: int, steps: StepsOfRows = steps, size: int = size) -> dict:
                fit, columns = steps.of(codes[:, start : start + size])
                predictions = pieces.link(fit)
                return {
                    k: predictions - _mean(pieces, state.laws[k], values) for k, values in columns
                }

            starts = range(0, len(request.X), size)
            blocks = in_order(run, starts, request.options.n_jobs)
            for start, block in zip(starts, blocks, strict=True):
                for i, k in known.items():
                    if k in block:
                        result[start : start + size, i] = block[k].T
        evaluate_others(pieces, state.measure, request, known, result)
        return Integral(Estimate(result))


def _mean(pieces: Linked, law: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Return the mean of the link of margins (m, codes, n) over the law of the codes, (k, n)."""
    present = np.flatnonzero(law)
    values = pieces.link(margins[:, present]).swapaxes(1, 2) * law[present]
    # codes on the last axis of memory: the order of additions does not depend on the other rows
    return np.ascontiguousarray(values).sum(axis=-1)
