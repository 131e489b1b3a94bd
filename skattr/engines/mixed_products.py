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
from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.product_sums import at_rows, mean_factors, multiply
from skattr.measures.base import Measure
from skattr.measures.bins import as_numbers
from skattr.measures.mixture import Mixture
from skattr.pieces import Pieces, Products


@dataclass(eq=False)
class State:
    """The weights of the terms in each component."""

    mixture: Mixture
    names: list
    others: np.ndarray  # (C, M, g)


class MixedProducts(Engine):
    """The own factors of each row, and the products of the others in each component."""

    name = "mixed_products"
    needs = (Products, "mixture")
    knows_mean = False

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        reason = super().refuses(pieces, term)
        if reason is None and isinstance(pieces, Products):
            bent = [name for k, name in enumerate(pieces.names) if not pieces.is_affine(k)]
            if bent:
                return f"column {bent[0]!r} is not known to enter by an affine function"
        return reason

    def cost(self, pieces: Products, term: Measure) -> str:
        """Say what it costs."""
        return f"fit: {pieces.n_terms:,} products for each component; explain: as many per value"

    def prepare(self, pieces: Products, term: Any, own: Own, jobs: Jobs) -> State:
        """Multiply the means of the factors."""
        mixture, names, components = term.mixture()
        found = [multiply(pieces, mean_factors(pieces, laws), own)[1] for laws in components]
        return State(mixture, names, np.array(found))

    def mean(self, pieces: Products, state: State) -> None:
        """Leave the mean over the background to an engine for rows."""
        return None

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the sums of the own factors in each component, mixed."""
        k, n_components = pieces.n_outputs, len(state.others)
        result = np.zeros((len(X), len(chosen), k))
        ones = np.ones((1, pieces.n_terms))
        found = []
        for a in chosen:
            t = [as_numbers(frames.column(X, i), state.names[i]) for i in own[a]]
            shares = state.mixture.shares(np.stack(t, axis=1), list(own[a]))
            weights = [others[:, a, None] * pieces.coefficients for others in state.others]
            found.append((pieces.sides((own[a],)), np.concatenate(weights, axis=1), shares))

        def fill(rows: slice, inputs: list) -> None:
            for place, (side, coefficients, shares) in enumerate(found):
                parts = pieces.add_up(inputs, side, ones, coefficients)  # (n, C · k)
                for c in range(n_components):
                    result[rows, place] += shares[rows, c, None] * parts[:, c * k : (c + 1) * k]

        at_rows(pieces, X, sorted({i for a in chosen for i in own[a]}), fill, jobs)
        return pieces.constant + result
