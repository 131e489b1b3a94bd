"""Products of uniform laws on networks with one hidden layer (MATH.md, section 4).

    phi_j(x) = b + Σ_u v_u E act(c_u(t) + Σ_k a_uk U_k),  U_k uniform on (-1, 1)

Only the law of each unit's sum matters. Its mean is a series that is cut where a bound on the rest
is far below 1e-10: it counts as exact, and the bound is the certificate. Any number of columns;
O(units · (columns + values)) times the length of the series, about 20 to 1000, for an attribution.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skattr import frames
from skattr.engines.base import Engine, Jobs, Own, certify
from skattr.engines.first_layer import FirstLayer, Laws, is_shallow, refuses_laws, uniform_laws
from skattr.kernels.cells import relu_means
from skattr.measures.base import Measure
from skattr.measures.gaussian import by_row
from skattr.parallel import in_order
from skattr.pieces import Pieces, ReluNetwork

ROW_BLOCK = 4096  # values whose units are there at a time


class OneLayerUniform(Engine):
    """The means of all units, each a sum of independent uniform numbers."""

    name = "one_layer_uniform"
    needs = (ReluNetwork, "factors")
    smooth = True

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        reason = super().refuses(pieces, term)
        if reason is None and isinstance(pieces, ReluNetwork):
            reason = is_shallow(pieces) or refuses_laws(pieces, term)
        return reason

    def cost(self, pieces: ReluNetwork, term: Measure) -> str:
        """Say what it costs."""
        return "fit: a series for each unit; explain: the same for each attribution"

    def certificate(self, state: Laws) -> str:
        """Say how far the series may be off."""
        assert state.certificate is not None
        error = state.certificate["quadrature_error"]
        return f"series are cut at {error:.1e} of the network's range"

    def prepare(self, pieces: ReluNetwork, term: Any, own: Own, jobs: Jobs) -> Laws:
        """Keep the laws."""
        return uniform_laws(pieces, term, own, self, jobs)

    def merge(self, a: Laws, b: Laws) -> Laws:
        """Join the laws."""
        return a.merge(b)

    def finish(self, pieces: ReluNetwork, state: Laws, jobs: Jobs) -> Laws:
        """Integrate over the whole domain."""
        first = FirstLayer(pieces)
        mean, error = _values(first, state, (), np.zeros((1, len(first.bias))), jobs)
        return replace(state, mean=mean[0], certificate={"quadrature_error": error})

    def mean(self, pieces: ReluNetwork, state: Laws) -> np.ndarray:
        """Return the integral of f where nothing is pinned."""
        assert state.mean is not None
        return state.mean

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the means at the own values."""
        first = FirstLayer(pieces)
        result = np.empty((len(X), len(chosen), pieces.n_outputs))
        for place, a in enumerate(chosen):
            rows, kind = frames.distinct_rows(X, own[a])
            added = first.at_rows(frames.take_rows(X, rows), own[a])
            values, error = _values(first, state, own[a], added, jobs)
            certify(jobs, {"quadrature_error": error})
            result[:, place] = values[kind]
        return result


def _values(
    first: FirstLayer, state: Laws, columns: tuple[int, ...], added: np.ndarray, jobs: Jobs
) -> tuple[np.ndarray, float]:
    """Return f where the own columns add this to the units, (n, k), and a bound on the error."""
    slope, weight, bias = first.rest()
    total, error = np.zeros((len(added), len(bias))), 0.0
    for share, laws in state.components:
        for box in first.uniforms(laws, columns):
            sides = np.ascontiguousarray(box.slopes)
            bent = np.flatnonzero(slope != 1.0)

            def mean(rows: slice, box: Any = box, sides: Any = sides, bent: Any = bent) -> tuple:
                z = box.constant + added[rows]
                active = slope * z
                errors = np.zeros(len(slope))
                for u in bent:
                    positive = np.empty(len(z))
                    errors[u] = relu_means.uniform_means(
                        np.ascontiguousarray(z[:, u]), sides[u], positive
                    )
                    active[:, u] += (1.0 - slope[u]) * positive
                return by_row(active, weight.T), np.abs(weight * (1.0 - slope)) @ errors

            blocks = [slice(i, i + ROW_BLOCK) for i in range(0, len(added), ROW_BLOCK)]
            found = list(in_order(mean, blocks, jobs.n_jobs))
            total += share * box.share * np.concatenate([values for values, _ in found])
            sizes = np.abs(weight) @ np.abs(sides).sum(axis=1)
            error = max(error, float((found[0][1] / np.where(sizes > 0, sizes, 1.0)).max()))
    return total + bias, error
