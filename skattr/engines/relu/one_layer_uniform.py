"""Products of uniform laws on networks with one hidden layer (docs/mathematics.md, section 4).

    phi_j(x) = b + Σ_u v_u E act(c_u(t) + Σ_k a_uk U_k),  U_k uniform on (-1, 1)

Only the law of each unit's sum matters. Its mean is a series, truncated where a bound on the rest
is far below 1e-10: it counts as exact, and the bound is the certificate. Any number of columns;
O(units · (columns + values)) times the length of the series, about 20 to 1000, per attribution.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.relu.first_layer import (
    FirstLayer,
    UniformLaws,
    uniform_laws,
    why_not_shallow,
    why_not_uniform,
)
from skattr.kernels.cells import relu_means
from skattr.measures.base import Measure
from skattr.measures.learned.gaussian import by_row
from skattr.pieces import ReluNetwork

ROW_BLOCK = 4096  # values whose units are in memory at a time


class OneLayerUniform(Engine):
    """The means of all units, each a sum of independent uniform numbers."""

    name = "one_layer_uniform"
    kind = ReluNetwork
    views = ("factors",)
    always_finishes = False
    gives = "exact, if uniform and one hidden layer; groups"
    smooth = True

    @override
    def objection(self, pieces: ReluNetwork, measure: Measure) -> str | None:
        return why_not_shallow(pieces) or why_not_uniform(pieces, measure)

    @override
    def cost(self, pieces: ReluNetwork, measure: Measure) -> str:
        return "fit: one series per unit; explain: the same for each value"

    @override
    def certificate(self, state: UniformLaws) -> str:
        assert state.certificate is not None
        error = state.certificate["quadrature_error"]
        return f"series are cut at {error:.1e} of the network's range"

    @override
    def prepare(
        self, pieces: ReluNetwork, measure: Any, attributions: Attributions, options: RunOptions
    ) -> UniformLaws:
        return uniform_laws(pieces, measure, attributions, self, options)

    @override
    def merge(self, a: UniformLaws, b: UniformLaws) -> UniformLaws:
        return a.merge(b)

    @override
    def finish(self, pieces: ReluNetwork, state: UniformLaws, options: RunOptions) -> UniformLaws:
        first = FirstLayer(pieces)
        mean, error = _values(first, state, (), np.zeros((1, len(first.bias))), options)
        return replace(state, mean=mean[0], certificate={"quadrature_error": error})

    @override
    def mean(self, pieces: ReluNetwork, state: UniformLaws) -> Estimate:
        assert state.mean is not None
        return Estimate(state.mean)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        X, first = request.X, FirstLayer(pieces)
        result, worst = request.zeros(pieces.n_outputs), 0.0
        for i, columns in enumerate(request.columns):
            distinct, kind = frames.distinct_rows(X, columns)
            added = first.at_rows(frames.take_rows(X, distinct), columns)
            values, error = _values(first, state, columns, added, request.options)
            worst = max(worst, error)
            result[:, i] = values[kind]
        return Integral(Estimate(result), certificate={"quadrature_error": worst})


def _values(
    first: FirstLayer,
    state: UniformLaws,
    columns: tuple[int, ...],
    added: np.ndarray,
    options: RunOptions,
) -> tuple[np.ndarray, float]:
    """Return the means of f, (n, k), and a bound on the error.

    `added` (n, m) is what the pinned columns add to the units.
    """
    slope, weight, bias = first.rest()
    total, error = np.zeros((len(added), len(bias))), 0.0
    for share, laws in state.components:
        for box in first.uniforms(laws, columns):
            sides = np.ascontiguousarray(box.slopes)
            kinked = np.flatnonzero(slope != 1.0)

            def mean(
                rows: slice, box: Any = box, sides: Any = sides, kinked: Any = kinked
            ) -> tuple:
                z = box.constant + added[rows]
                active = slope * z
                errors = np.zeros(len(slope))
                for u in kinked:
                    positive = np.empty(len(z))
                    errors[u] = relu_means.uniform_means(
                        np.ascontiguousarray(z[:, u]), sides[u], positive
                    )
                    active[:, u] += (1.0 - slope[u]) * positive
                return by_row(active, weight.T), np.abs(weight * (1.0 - slope)) @ errors

            blocks = [slice(i, i + ROW_BLOCK) for i in range(0, len(added), ROW_BLOCK)]
            results = list(in_order(mean, blocks, options.n_jobs))
            total += share * box.share * np.concatenate([values for values, _ in results])
            sizes = np.abs(weight) @ np.abs(sides).sum(axis=1)
            error = max(error, float((results[0][1] / np.where(sizes > 0, sizes, 1.0)).max()))
    return total + bias, error
