"""Affine models: the value at the centre of the measure (docs/mathematics.md, section 5).

    f = b + Σ_i w_i y_i:  ∫ f dμ_{j,x} = f(n), n = ∫ y dμ_{j,x} the first moments, mass 1

Exact. O(columns) for each value, whatever the law of the columns together.
"""

from __future__ import annotations

from typing import Any

from skattr._inputs import frames
from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.pieces import Additive

ROW_BLOCK = 65_536  # rows whose centres are in memory at a time


class AffineMeans(Engine):
    """Evaluates an affine model at the centres of the measure."""

    name = "affine"
    kind = Additive
    views = ("centers",)
    gives = "exact, if all terms are affine; groups"
    computes_mean = False
    row_by_row = True

    @override
    def objection(self, pieces: Additive, measure: Measure) -> str | None:
        curved = [name for k, name in enumerate(pieces.names) if not pieces.is_affine(k)]
        return f"the term of column {curved[0]!r} is not known to be affine" if curved else None

    @override
    def cost(self, pieces: Additive, measure: Measure) -> str:
        return "explain: one evaluation per value"

    @override
    def prepare(
        self, pieces: Additive, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> Measure:
        return measure

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        result = request.zeros(pieces.n_outputs)
        for start in range(0, len(request.X), ROW_BLOCK):
            rows_of_block = frames.take_rows(request.X, slice(start, start + ROW_BLOCK))
            for i, columns in enumerate(request.columns):
                centers = state.centers(rows_of_block, columns)
                for block, terms in pieces.in_blocks(centers, list(range(len(pieces.names)))):
                    # column by column, so that a row's bits do not depend on the rows around it
                    total = sum(terms.transpose(1, 0, 2), pieces.constant)
                    result[start + block.start : start + block.stop, i] = total
        return Integral(Estimate(result))
