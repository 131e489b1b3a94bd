"""Additive models: the terms of column j at x, the means of the others.

See docs/mathematics.md, section 5.

    phi_j(x) = c + Σ_{i in j} h_i(x_i) + Σ_{i not in j} E h_i = E f + Σ_{i in j} (h_i(x_i) - E h_i)

Exact for every measure with one-dimensional marginals, whatever the law of the columns together:
only E h_i is needed, O(rows · columns) for data. The sums behind it add up over batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines import backgrounds, laws
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.laws import why_inexact
from skattr.measures.base import Measure
from skattr.pieces import Additive


@dataclass(eq=False)
class TermMeans:
    """The laws of a mixture, summarised, and the means of all terms under it."""

    components: list  # (π_c, one law per column, as `laws.mean` takes it)
    means: np.ndarray | None = None  # (d, k)


class AdditiveTerms(Engine):
    """Means of the terms of all columns, and the terms of each explained row."""

    name = "additive"
    kind = Additive
    views = ("rows", "factors")
    gives = "exact; groups"
    row_by_row = True

    @override
    def objection(self, pieces: Additive, measure: Measure) -> str | None:
        return why_inexact(measure, lambda law, k: laws.mean(law, pieces, k))

    @override
    def cost(self, pieces: Additive, measure: Measure) -> str:
        return "fit: one evaluation per row; explain: one term per value"

    @override
    def prepare(
        self, pieces: Additive, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> TermMeans:
        if "rows" in measure.views:
            background, _ = measure.rows()
            weight = float(background.weights.sum())
            sums = backgrounds.sum_terms(background, pieces)
            return TermMeans([(1.0, [laws.Total(total, weight) for total in sums])])
        components, _ = measure.factors()
        return TermMeans(
            [(share, [laws.as_means(law, pieces) for law in each]) for share, each in components]
        )

    @override
    def merge(self, a: TermMeans, b: TermMeans) -> TermMeans:
        return TermMeans(laws.merge_components(a.components, b.components))

    @override
    def finish(self, pieces: Additive, state: TermMeans, options: RunOptions) -> TermMeans:
        means = [
            share * np.array([laws.mean(law, pieces, k) for k, law in enumerate(each)])
            for share, each in state.components
        ]
        return replace(state, means=np.sum(means, axis=0))

    @override
    def mean(self, pieces: Additive, state: TermMeans) -> Estimate:
        assert state.means is not None
        return Estimate(pieces.constant + state.means.sum(axis=0))

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        mean = self.mean(pieces, state).value
        # in this order a column without a term gets the mean to the last bit
        return Integral(Estimate(mean + centered_terms(pieces, state, request)))


def centered_terms(pieces: Additive, state: TermMeans, request: Request) -> np.ndarray:
    """Return Σ_{i in j} (h_i(x_i) - E h_i) for each chosen attribution j, (n, g, k)."""
    assert state.means is not None
    result, columns = request.zeros(pieces.n_outputs), request.all_columns
    position = {k: i for i, k in enumerate(columns)}
    for block, terms in pieces.in_blocks(request.X, columns):
        terms -= state.means[columns]
        for i, members in enumerate(request.columns):
            for k in members:
                result[block, i] += terms[:, position[k]]
    return result
