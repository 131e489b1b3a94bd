"""Normal laws and their mixtures on networks with one hidden layer (MATH.md, section 4).

    phi_j(x) = b + Σ_u v_u Σ_c π_c(t) E act(N(m_uc(t), s_uc²))
    E max(0, N(m, s²)) = m Φ(m/s) + s φ(m/s)

Given X_j = t each unit is, in each component, a normal number whose mean is affine in t and whose
variance does not depend on t. Exact in any number of columns. Once, O(components · columns² ·
units) for each attribution; a value costs O(components · units).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr import frames
from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.first_layer import FirstLayer, is_shallow
from skattr.kernels import relu_means
from skattr.measures.base import Measure
from skattr.measures.bins import as_numbers
from skattr.parallel import in_order
from skattr.pieces import Pieces, ReluNetwork

ROW_BLOCK = 4096


@dataclass(eq=False)
class State:
    """What each component says of the units, for each attribution."""

    family: Any
    names: list
    constants: np.ndarray  # (C, m) means of the units at the centers
    centers: np.ndarray  # (C, d)
    slopes: list[np.ndarray]  # (C, m, n_own) for each attribution
    scales: list[np.ndarray]  # (C, m)


class OneLayerNormal(Engine):
    """Closed forms for a hidden layer of units that are normal given the own value."""

    name = "one_layer_normal"
    needs = (ReluNetwork, "normals")
    knows_mean = False
    smooth = True

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        reason = super().refuses(pieces, term)
        if reason is None and isinstance(pieces, ReluNetwork):
            reason = is_shallow(pieces)
            bent = [name for k, name in enumerate(pieces.names) if k not in pieces.lines]
            if bent and reason is None:
                reason = f"column {bent[0]!r} is not known to enter by an affine function"
        return reason

    def cost(self, pieces: ReluNetwork, term: Measure) -> str:
        """Say what it costs."""
        return "explain: one normal law for each unit and component a value"

    def prepare(self, pieces: ReluNetwork, term: Any, own: Own, jobs: Jobs) -> State:
        """Find means and variances of all units given each attribution."""
        family, names = term.normals()
        first = FirstLayer(pieces)
        d = len(pieces.names)
        weights = np.stack([first.slope(k) for k in range(d)], axis=1)  # (m, d)
        found = [family.linear(weights, list(columns)) for columns in own]
        centers = found[0][0]
        constants = first.bias + sum(first.at(k, centers[:, k]) for k in range(d))
        return State(
            family, names, constants, centers, [f[1] for f in found], [f[2] for f in found]
        )

    def mean(self, pieces: ReluNetwork, state: State) -> None:
        """Leave the mean over the background to an engine for rows."""
        return None

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the means of the units, added up."""
        result = np.zeros((len(X), len(chosen), pieces.n_outputs))
        slope, weight, bias = FirstLayer(pieces).rest()
        for place, a in enumerate(chosen):
            t = np.stack([as_numbers(frames.column(X, k), state.names[k]) for k in own[a]], axis=1)
            shares = state.family.shares(t, list(own[a]))
            centers = np.ascontiguousarray(state.centers[:, own[a]])
            out = np.zeros((len(X), pieces.n_outputs))

            def fill(rows: slice, a: int = a, t: Any = t, shares: Any = shares,
                     centers: Any = centers, out: Any = out) -> None:  # fmt: skip
                relu_means.add_normal(
                    t[rows], shares[rows], state.constants, centers, state.slopes[a],
                    state.scales[a], slope, weight, out[rows],
                )  # fmt: skip

            blocks = [slice(i, i + ROW_BLOCK) for i in range(0, len(X), ROW_BLOCK)]
            list(in_order(fill, blocks, jobs.n_jobs))
            result[:, place] = bias + out
        return result
