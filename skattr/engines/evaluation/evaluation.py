"""Finite atoms on any model: Σ_a weights[j, a] f(points_a). Exact; one evaluation per atom.

The atoms of a block of rows are evaluated in one call: to the last bit, values are those of the
model's `predict` on the whole block (matrix products may round differently for single rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.progress import Progress
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.pieces import Pieces

ROW_BLOCK = 65_536  # rows whose atoms are evaluated together


class Evaluation(Engine):
    """Evaluates the model at the atoms of each explained row."""

    name = "evaluation"
    kind = Pieces
    views = ("atoms",)
    gives = "exact, one evaluation per atom"
    computes_mean = False

    @override
    def cost(self, pieces: Pieces, measure: Measure) -> str:
        return "explain: one evaluation per atom of a row"

    @override
    def prepare(
        self, pieces: Pieces, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> Measure:
        return measure

    @override
    def merge(self, a: Measure, b: Measure) -> Measure:
        """Return either state: atoms do not depend on the background."""
        return a

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        X, result = request.X, request.zeros(pieces.n_outputs)
        step = getattr(state, "rows_at_once", ROW_BLOCK)
        with Progress(request.options.verbose, len(X), "rows") as bar:
            for start in range(0, len(X), step):
                block = slice(start, start + step)
                some = frames.take_rows(X, block)
                points, weights, row = state.atoms(some, request.attributions)
                values = pieces.predict(points)
                for i, a in enumerate(request.chosen):
                    np.add.at(result[block, i], row, weights[a][:, None] * values)
                bar.step("atoms", len(result[block]))
        return Integral(Estimate(result))
