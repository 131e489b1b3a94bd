"""A mixture of products whose shares depend on the own value, on sums of products.

    phi_j(x) = b + Σ_c π_c(x_j) Σ_m c_m W_mjc ∏_{k in j} φ_mk(x_k)
    W_mjc = ∏_{k not in j} ∫ φ_mk dν_ck

Exact: the mean of exp(-A (u - c)²) under a normal law is in closed form. It needs columns that
enter the model by an affine function. O(components · terms · columns) once, whatever the number of
rows; O(components + terms) a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr import frames
from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Rows, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.products.product_sums import at_rows, mean_factors, multiply
from skattr.measures.base import Measure
from skattr.measures.learned.bins import as_numbers
from skattr.measures.learned.mixture import Mixture
from skattr.pieces import Products


@dataclass(eq=False)
class State:
    """The weights of the terms in each component."""

    mixture: Mixture
    names: list
    others: np.ndarray  # (C, M, g)


class MixedProducts(Engine):
    """The own factors of each row, and the products of the others in each component."""

    name = "mixed_products"
    kind = Products
    views = ("mixture",)
    gives = "exact, if all columns are affine; groups"
    needs_partition = True
    knows_mean = False

    @override
    def objection(self, pieces: Products, measure: Measure) -> str | None:
        bent = [name for k, name in enumerate(pieces.names) if not pieces.is_affine(k)]
        return f"column {bent[0]!r} is not known to enter by an affine function" if bent else None

    @override
    def cost(self, pieces: Products, measure: Measure) -> str:
        return f"fit: {pieces.n_terms:,} products per component; explain: as many bumps per value"

    @override
    def prepare(
        self, pieces: Products, measure: Any, attributions: Attributions, options: RunOptions
    ) -> State:
        mixture, names, components = measure.mixture()
        found = [
            multiply(pieces, mean_factors(pieces, laws), attributions)[1] for laws in components
        ]
        return State(mixture, names, np.array(found))

    @override
    def integrate(
        self,
        pieces: Any,
        state: Any,
        rows: Rows,
        attributions: Attributions,
        chosen: list[int],
        options: RunOptions,
    ) -> Integral:
        k, n_components = pieces.n_outputs, len(state.others)
        X = rows.X
        result = np.zeros((len(X), len(chosen), k))
        ones = np.ones((1, pieces.n_terms))
        mixed = []
        for a in chosen:
            t = [as_numbers(frames.column(X, i), state.names[i]) for i in attributions[a]]
            shares = state.mixture.shares(np.stack(t, axis=1), list(attributions[a]))
            weights = [others[:, a, None] * pieces.coefficients for others in state.others]
            mixed.append(
                (pieces.sides((attributions[a],)), np.concatenate(weights, axis=1), shares)
            )

        def fill(block: slice, inputs: list) -> None:
            for i, (side, coefficients, shares) in enumerate(mixed):
                parts = pieces.add_up(inputs, side, ones, coefficients)  # (n, C · k)
                for c in range(n_components):
                    result[block, i] += shares[block, c, None] * parts[:, c * k : (c + 1) * k]

        at_rows(pieces, X, sorted({i for a in chosen for i in attributions[a]}), fill, options)
        return Integral(Estimate(pieces.constant + result))
