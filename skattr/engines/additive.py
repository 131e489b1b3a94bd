"""Additive models: the own terms at x, the means of the others (MATH.md, section 5).

    phi_j(x) = c + Σ_{i in j} h_i(x_i) + Σ_{i not in j} E h_i = E f + Σ_{i in j} (h_i(x_i) - E h_i)

Exact for every measure with one-dimensional marginals, whatever the law of the columns together:
only E h_i is needed, O(rows · columns) for data. The sums behind it add up over batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.exact_laws import why_inexact
from skattr.measures.base import Measure
from skattr.measures.laws import Total
from skattr.pieces import Additive, Pieces


@dataclass(eq=False)
class Means:
    """What the laws say of the term of each column, and the means that follow from it."""

    components: list  # (π_c, one summed law a column)
    means: np.ndarray | None = None  # (d, k)


class AdditiveTerms(Engine):
    """Means of the terms of all columns, and the own terms of each row."""

    name = "additive"
    needs = (Additive, "rows")

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        if isinstance(pieces, Additive) and "factors" in term.views:
            return why_inexact(term, lambda law, k: law.mean(pieces, k))
        return super().refuses(pieces, term)

    def cost(self, pieces: Additive, term: Measure) -> str:
        """Say what it costs."""
        return "fit: one evaluation of each row; explain: one term per value"

    def prepare(self, pieces: Additive, term: Measure, own: Own, jobs: Jobs) -> Means:
        """Sum the terms over the background, or keep the laws."""
        if "rows" in term.views:
            background, _ = term.rows()
            weight = float(background.weights.sum())
            return Means([(1.0, [Total(total, weight) for total in background.summed(pieces)])])
        components, _ = term.factors()
        return Means([(share, [law.summed(pieces) for law in laws]) for share, laws in components])

    def merge(self, a: Means, b: Means) -> Means:
        """Join the laws."""
        return Means(
            [
                (share, [one.merge(other) for one, other in zip(laws, more, strict=True)])
                for (share, laws), (_, more) in zip(a.components, b.components, strict=True)
            ]
        )

    def finish(self, pieces: Additive, state: Means, jobs: Jobs) -> Means:
        """Make the means."""
        means = [
            share * np.array([law.mean(pieces, k) for k, law in enumerate(laws)])
            for share, laws in state.components
        ]
        return replace(state, means=np.sum(means, axis=0))

    def mean(self, pieces: Additive, state: Means) -> np.ndarray:
        """Return the integral of f where nothing is pinned."""
        assert state.means is not None
        return pieces.constant + state.means.sum(axis=0)

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the mean of f, and what the own terms are more than their means."""
        mean = self.mean(pieces, state)
        result = np.zeros((len(X), len(chosen), pieces.n_outputs))
        columns = sorted({k for a in chosen for k in own[a]})
        place = {k: i for i, k in enumerate(columns)}
        for block, terms in pieces.in_blocks(X, columns):
            terms -= state.means[columns]
            for i, a in enumerate(chosen):
                for k in own[a]:
                    result[block, i] += terms[:, place[k]]
        return mean + result  # in this order a column without a term gets the mean to the last bit
