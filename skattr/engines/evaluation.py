"""Finite atoms on any model: Σ_a weights[j, a] f(points_a). Exact; one evaluation an atom.

The atoms of a block of rows are evaluated together, so a row's value is to the last bit what the
model's own `predict` makes of it in that company (matrix products may round differently there).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr import frames
from skattr.engines.base import Engine, Jobs, Own
from skattr.measures.base import Measure
from skattr.pieces import Pieces
from skattr.progress import Progress

ROW_BLOCK = 65_536  # rows whose atoms are evaluated together


class Evaluation(Engine):
    """Evaluates the model at the atoms of each explained row."""

    name = "evaluation"
    needs = (Pieces, "atoms")
    knows_mean = False

    def cost(self, pieces: Pieces, term: Measure) -> str:
        """Say what it costs."""
        return "explain: one evaluation for each atom of a row"

    def prepare(self, pieces: Pieces, term: Measure, own: Own, jobs: Jobs) -> Measure:
        """Keep the measure, which makes the atoms."""
        return term

    def merge(self, a: Measure, b: Measure) -> Measure:
        """Keep either: atoms do not depend on the background."""
        return a

    def mean(self, pieces: Pieces, state: Measure) -> None:
        """Leave the mean over the background to an engine for rows."""
        return None

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the weighted sums over the atoms, which all attributions share."""
        result = np.zeros((len(X), len(chosen), pieces.n_outputs))
        step = getattr(state, "rows_at_once", ROW_BLOCK)
        with Progress(jobs.verbose, len(X), "rows") as bar:
            for start in range(0, len(X), step):
                block = slice(start, start + step)
                points, weights, row = state.atoms(frames.take_rows(X, block), own)
                values = pieces.predict(points)
                for place, a in enumerate(chosen):
                    np.add.at(result[block, place], row, weights[a][:, None] * values)
                bar.step("atoms", len(result[block]))
        return result
