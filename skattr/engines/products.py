"""Sums of products: the own factors at x, the mean of the product of the others.

    f = b + Σ_m c_m ∏_k φ_mk(y_k):   phi_j(x) = b + Σ_m c_m W_mj ∏_{k in j} φ_mk(x_k)
    rows:      W_mj = Σ_r w_r ∏_{k not in j} φ_mk(z_rk) / Σ_r w_r
    products:  W_mj = ∏_{k not in j} ∫ φ_mk dν_k

Exact. W costs O(rows · terms · columns), once; sums over rows and laws add up over batches. A value
costs O(terms), whatever the number of rows. Under a uniform law the means of bumps are differences
of erf where the column enters the model by an affine function, else quadrature to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.exact_laws import why_inexact
from skattr.engines.product_sums import (
    add_rows,
    at_rows,
    mean_factor,
    mean_factors,
    multiply,
    value,
)
from skattr.measures.base import Measure
from skattr.pieces import Pieces, Products


@dataclass(eq=False)
class Weights:
    """The sums over rows, or the laws and the products that follow from them."""

    own: Own  # the attributions that are pinned
    totals: np.ndarray | None = None  # (M,) over all columns
    others: np.ndarray | None = None  # (M, g) over those outside each attribution
    weight: float = 1.0
    components: list | None = None  # (π_c, one summed law a column)


class ProductTerms(Engine):
    """The weight of each term but for the own factors, and the own factors of each row."""

    name = "products"
    needs = (Products, "rows")

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        if isinstance(pieces, Products) and "factors" in term.views:
            return why_inexact(term, lambda law, k: mean_factor(pieces, law, k))
        return super().refuses(pieces, term)

    def cost(self, pieces: Products, term: Measure) -> str:
        """Say what it costs."""
        once = f"fit: {pieces.n_terms:,} products of each row"
        return once if term.depends == "nothing" else f"{once}; explain: as many per value"

    def prepare(self, pieces: Products, term: Measure, own: Own, jobs: Jobs) -> Weights:
        """Sum the products over the background, or keep the laws."""
        if "rows" in term.views:
            background, pinned = term.rows()
            totals = np.zeros(pieces.n_terms)
            others = np.zeros((pieces.n_terms, len(own) if pinned else 0, 1))
            for block, inputs in pieces.in_blocks(background.X):
                weights = background.weights[block]
                add_rows(pieces, inputs, weights, own, (totals, others), jobs)
            weight = float(background.weights.sum())
            return Weights(own if pinned else (), totals, others[:, :, 0], weight)
        components, pinned = term.factors()
        summed = [(share, [law.summed(pieces) for law in laws]) for share, laws in components]
        return Weights(own if pinned else (), components=summed)

    def merge(self, a: Weights, b: Weights) -> Weights:
        """Add the sums, or join the laws."""
        if a.components is None or b.components is None:
            assert a.totals is not None and a.others is not None
            return Weights(a.own, a.totals + b.totals, a.others + b.others, a.weight + b.weight)
        joined = [
            (share, [one.merge(other) for one, other in zip(laws, more, strict=True)])
            for (share, laws), (_, more) in zip(a.components, b.components, strict=True)
        ]
        return Weights(a.own, components=joined)

    def finish(self, pieces: Products, state: Weights, jobs: Jobs) -> Weights:
        """Multiply the means of the factors."""
        if state.components is None:
            return state
        totals = np.zeros(pieces.n_terms)
        others = np.zeros((pieces.n_terms, len(state.own)))
        for share, laws in state.components:
            every, outside = multiply(pieces, mean_factors(pieces, laws), state.own)
            totals += share * every
            others += share * outside
        return replace(state, totals=totals, others=others)

    def mean(self, pieces: Products, state: Weights) -> np.ndarray:
        """Return the integral of f where nothing is pinned."""
        assert state.totals is not None
        return value(pieces, state.totals / state.weight)

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the sums of the own factors, weighted by the others."""
        result = np.empty((len(X), len(chosen), pieces.n_outputs))
        coefficients = pieces.coefficients
        tables = [state.others[None, :, a] / state.weight for a in chosen]
        sides = [pieces.sides((own[a],)) for a in chosen]

        def fill(rows: slice, inputs: list) -> None:
            for place, (table, side) in enumerate(zip(tables, sides, strict=True)):
                result[rows, place] = pieces.add_up(inputs, side, table, coefficients)

        at_rows(pieces, X, sorted({k for a in chosen for k in own[a]}), fill, jobs)
        return pieces.constant + result
