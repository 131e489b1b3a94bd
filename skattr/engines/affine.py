"""Affine models: the value at the centre of the measure (MATH.md, section 5).

    f = b + Σ_i w_i y_i:  ∫ f dμ_{j,x} = f(n), n = ∫ y dμ_{j,x} the first moments, mass 1

Exact. O(columns) for each value, whatever the law of the columns together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr import frames
from skattr.engines.base import Engine, Jobs, Own
from skattr.measures.base import Measure
from skattr.pieces import Additive, Pieces

ROW_BLOCK = 65_536  # rows whose centres are there at a time


class AffineMeans(Engine):
    """Evaluates an affine model at the centres of the measure."""

    name = "affine"
    needs = (Additive, "centers")
    knows_mean = False

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        if isinstance(pieces, Additive) and "centers" in term.views:
            bent = [name for k, name in enumerate(pieces.names) if not pieces.is_affine(k)]
            return f"the term of column {bent[0]!r} is not known to be affine" if bent else None
        return super().refuses(pieces, term)

    def cost(self, pieces: Additive, term: Measure) -> str:
        """Say what it costs."""
        return "explain: one evaluation per value"

    def prepare(self, pieces: Additive, term: Measure, own: Own, jobs: Jobs) -> Measure:
        """Keep the measure, which knows its centres."""
        return term

    def mean(self, pieces: Additive, state: Measure) -> None:
        """Leave the mean of the reference to another engine."""
        return None

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the model's values at the centres of all rows and attributions."""
        result = np.empty((len(X), len(chosen), pieces.n_outputs))
        for start in range(0, len(X), ROW_BLOCK):
            rows = frames.take_rows(X, slice(start, start + ROW_BLOCK))
            for place, a in enumerate(chosen):
                centers = state.centers(rows, own[a])
                for block, terms in pieces.in_blocks(centers, list(range(len(pieces.names)))):
                    # one column after the other: a row's bits do not depend on the rows around it
                    total = sum(terms.transpose(1, 0, 2), pieces.constant)
                    result[start + block.start : start + block.stop, place] = total
        return result
