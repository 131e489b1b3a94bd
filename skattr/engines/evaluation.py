"""Finite atoms on any model: Σ_a weights[j, a] f(points_a). Exact; one evaluation an atom."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.engines.base import Engine, Jobs, Own
from skattr.measures.base import Measure
from skattr.pieces import Pieces


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

    def integrate(self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, a: int,
                  jobs: Jobs) -> np.ndarray:  # fmt: skip
        """Return the weighted sum over the atoms."""
        points, weights, row = state.atoms(X, own)
        result = np.zeros((len(X), pieces.n_outputs))
        np.add.at(result, row, weights[a][:, None] * pieces.predict(points))
        return result
