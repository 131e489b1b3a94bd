"""Sums of products: the factors of column j at x, the mean of the product of the others.

    f = b + Σ_m c_m ∏_k φ_mk(y_k):   phi_j(x) = b + Σ_m c_m W_mj ∏_{k in j} φ_mk(x_k)
    rows:      W_mj = Σ_r w_r ∏_{k not in j} φ_mk(z_rk) / Σ_r w_r
    products:  W_mj = ∏_{k not in j} ∫ φ_mk dν_k

Exact. W costs O(rows · terms · columns), once; sums over rows and laws add up over batches. A value
costs O(terms), whatever the number of rows. Means of bumps under a uniform law are differences of
erf if the column enters the model by an affine function, else quadrature up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.laws import as_means, merge_components, why_inexact
from skattr.engines.products.product_sums import (
    add_rows,
    at_rows,
    mean_factor,
    mean_factors,
    multiply,
    value,
)
from skattr.measures.base import Measure
from skattr.pieces import Products


@dataclass(eq=False)
class TermWeights:
    """The weights of terms: sums over rows, or products of means under laws."""

    attributions: Sequence  # the pinned ones
    totals: np.ndarray | None = None  # (M,) over all columns
    others: np.ndarray | None = None  # (M, g) over those outside each attribution
    weight: float = 1.0
    components: list | None = None  # (π_c, one law per column, as `laws.mean` takes it)


class ProductTerms(Engine):
    """The mean of the other columns' factors of each term, and the factors of each row."""

    name = "products"
    kind = Products
    views = ("rows", "factors")
    gives = "exact; groups"
    needs_partition = True

    @override
    def objection(self, pieces: Products, measure: Measure) -> str | None:
        return why_inexact(measure, lambda law, k: mean_factor(pieces, law, k))

    @override
    def cost(self, pieces: Products, measure: Measure) -> str:
        once = f"fit: {pieces.n_terms:,} products per row"
        return once if measure.depends == "nothing" else f"{once}; explain: as many bumps per value"

    @override
    def prepare(
        self, pieces: Products, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> TermWeights:
        if "rows" in measure.views:
            background, pinned = measure.rows()
            totals = np.zeros(pieces.n_terms)
            others = np.zeros((pieces.n_terms, len(attributions) if pinned else 0, 1))
            for block, inputs in pieces.in_blocks(background.X):
                weights = background.weights[block]
                add_rows(pieces, inputs, weights, attributions, (totals, others), options)
            weight = float(background.weights.sum())
            return TermWeights(attributions if pinned else (), totals, others[:, :, 0], weight)
        components, pinned = measure.factors()
        means = [(share, [as_means(law, pieces) for law in laws]) for share, laws in components]
        return TermWeights(attributions if pinned else (), components=means)

    @override
    def merge(self, a: TermWeights, b: TermWeights) -> TermWeights:
        if a.components is None or b.components is None:
            assert a.totals is not None and a.others is not None
            return TermWeights(
                a.attributions, a.totals + b.totals, a.others + b.others, a.weight + b.weight
            )
        return TermWeights(a.attributions, components=merge_components(a.components, b.components))

    @override
    def finish(self, pieces: Products, state: TermWeights, options: RunOptions) -> TermWeights:
        if state.components is None:
            return state
        totals = np.zeros(pieces.n_terms)
        others = np.zeros((pieces.n_terms, len(state.attributions)))
        for share, laws in state.components:
            every, outside = multiply(pieces, mean_factors(pieces, laws), state.attributions)
            totals += share * every
            others += share * outside
        return replace(state, totals=totals, others=others)

    @override
    def mean(self, pieces: Products, state: TermWeights) -> Estimate:
        assert state.totals is not None
        return Estimate(value(pieces, state.totals / state.weight))

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        result, coefficients = request.zeros(pieces.n_outputs), pieces.coefficients
        tables = [state.others[None, :, a] / state.weight for a in request.chosen]
        sides = [pieces.sides((columns,)) for columns in request.columns]

        def fill(block: slice, inputs: list) -> None:
            for i, (table, side) in enumerate(zip(tables, sides, strict=True)):
                result[block, i] = pieces.add_up(inputs, side, table, coefficients)

        at_rows(pieces, request, fill)
        return Integral(Estimate(pieces.constant + result))
