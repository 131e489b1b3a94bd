"""Mixtures of products whose shares depend on x_j, on sums of products.

    phi_j(x) = b + Σ_c π_c(x_j) Σ_m c_m W_mjc ∏_{k in j} φ_mk(x_k)
    W_mjc = ∏_{k not in j} ∫ φ_mk dν_ck

Exact: the mean of exp(-A (u - c)²) under a normal law has a closed form. All columns must enter the
model by affine functions. O(components · terms · columns) once, whatever the number of rows;
O(components + terms) per value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.products.product_sums import at_rows, mean_factors, multiply
from skattr.measures.base import Measure
from skattr.measures.learned.bins import as_numbers
from skattr.measures.learned.mixture import Mixture
from skattr.pieces import Products


@dataclass(eq=False)
class ComponentWeights:
    """The weights of the terms in each component."""

    mixture: Mixture
    names: list
    others: np.ndarray  # (C, M, g)


class MixedProducts(Engine):
    """The factors of each explained row, and the products of the others by component."""

    name = "mixed_products"
    kind = Products
    views = ("mixture",)
    gives = "exact, if all columns are affine; groups"
    needs_partition = True
    computes_mean = False

    @override
    def objection(self, pieces: Products, measure: Measure) -> str | None:
        curved = [name for k, name in enumerate(pieces.names) if not pieces.is_affine(k)]
        if curved:
            return f"column {curved[0]!r} is not known to enter by an affine function"
        return None

    @override
    def cost(self, pieces: Products, measure: Measure) -> str:
        return f"fit: {pieces.n_terms:,} products per component; explain: as many bumps per value"

    @override
    def prepare(
        self, pieces: Products, measure: Any, attributions: Attributions, options: RunOptions
    ) -> ComponentWeights:
        mixture, names, components = measure.mixture()
        others = [
            multiply(pieces, mean_factors(pieces, laws), attributions)[1] for laws in components
        ]
        return ComponentWeights(mixture, names, np.array(others))

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        k, n_components = pieces.n_outputs, len(state.others)
        result, ones = request.zeros(k), np.ones((1, pieces.n_terms))
        mixed = []
        for a, columns in zip(request.chosen, request.columns, strict=True):
            t = [as_numbers(frames.column(request.X, i), state.names[i]) for i in columns]
            shares = state.mixture.shares(np.stack(t, axis=1), list(columns))
            weights = [others[:, a, None] * pieces.coefficients for others in state.others]
            mixed.append((pieces.sides((columns,)), np.concatenate(weights, axis=1), shares))

        def fill(block: slice, inputs: list) -> None:
            for i, (side, coefficients, shares) in enumerate(mixed):
                parts = pieces.add_up(inputs, side, ones, coefficients)  # (n, C · k)
                for c in range(n_components):
                    result[block, i] += shares[block, c, None] * parts[:, c * k : (c + 1) * k]

        at_rows(pieces, request, fill)
        return Integral(Estimate(pieces.constant + result))
