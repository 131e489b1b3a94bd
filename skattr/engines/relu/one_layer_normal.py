"""Normal laws and their mixtures on networks with one hidden layer.

See docs/mathematics.md, section 4.

    phi_j(x) = b + Σ_u v_u Σ_c π_c(t) E act(N(m_uc(t), s_uc²))
    E max(0, N(m, s²)) = m Φ(m/s) + s φ(m/s)

Given X_j = t each unit is, in each component, a normal number whose mean is affine in t and whose
variance does not depend on t. A missing x_j stays missing, and is not conditioned on. Exact in any
number of columns. O(components · columns² · units) once per attribution; a value costs
O(components · units).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.relu.first_layer import FirstLayer, why_not_shallow
from skattr.kernels.cells import relu_means
from skattr.measures.base import Measure
from skattr.measures.learned.bins import as_numbers
from skattr.pieces import ReluNetwork

ROW_BLOCK = 4096


class UnitLaws(NamedTuple):
    """The normal laws of all units in each component, given the values t of some columns.

    Means are constants + slopes · (t - centers).
    """

    constants: np.ndarray  # (C, m)
    centers: np.ndarray  # (C, n_own)
    slopes: np.ndarray  # (C, m, n_own)
    scales: np.ndarray  # (C, m) standard deviations


@dataclass(eq=False)
class ConditionalUnits:
    """The joint law, and the laws of units given each attribution."""

    family: Any
    names: list
    unit_laws: list[UnitLaws]


class OneLayerNormal(Engine):
    """Closed forms for a hidden layer of units that are normal given x_j."""

    name = "one_layer_normal"
    kind = ReluNetwork
    views = ("normals",)
    gives = "exact, if one hidden layer; groups"
    computes_mean = False
    smooth = True

    @override
    def objection(self, pieces: ReluNetwork, measure: Measure) -> str | None:
        first = FirstLayer(pieces)
        bent = [name for k, name in enumerate(pieces.names) if not first.is_affine(k)]
        reason = f"column {bent[0]!r} is not known to enter by an affine function" if bent else None
        return why_not_shallow(pieces) or reason

    @override
    def cost(self, pieces: ReluNetwork, measure: Measure) -> str:
        return "explain: one normal law per unit and component for each value"

    @override
    def prepare(
        self, pieces: ReluNetwork, measure: Any, attributions: Attributions, options: RunOptions
    ) -> ConditionalUnits:
        family, names = measure.normals()
        first = FirstLayer(pieces)
        return ConditionalUnits(
            family, names, [_unit_laws(first, family, columns) for columns in attributions]
        )

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        X, options = request.X, request.options
        result, first = request.zeros(pieces.n_outputs), FirstLayer(pieces)
        for i, (a, columns) in enumerate(zip(request.chosen, request.columns, strict=True)):
            t = np.stack([as_numbers(frames.column(X, k), state.names[k]) for k in columns], axis=1)
            gone = np.isnan(t)
            whole = np.flatnonzero(~gone.any(axis=1))
            values = np.empty((len(X), pieces.n_outputs))
            values[whole] = _means(
                first, state.family, columns, t[whole], state.unit_laws[a], options
            )
            for kind in np.unique(gone[gone.any(axis=1)], axis=0):
                some = np.flatnonzero((gone == kind).all(axis=1))
                known = tuple(k for k, missing in zip(columns, kind, strict=True) if not missing)
                absent = tuple(k for k, missing in zip(columns, kind, strict=True) if missing)
                added = first.at_rows(frames.take_rows(X, some[:1]), absent)[0]
                laws = _unit_laws(first, state.family, known, absent)
                laws = laws._replace(constants=laws.constants + added)
                values[some] = _means(first, state.family, known, t[some][:, ~kind], laws, options)
            result[:, i] = values
        return Integral(Estimate(result))


def _unit_laws(
    first: FirstLayer, family: Any, columns: tuple[int, ...], absent: tuple[int, ...] = ()
) -> UnitLaws:
    """Return the laws of units given some columns, without the columns that are missing."""
    present = [k for k in range(len(first.network.names)) if k not in absent]
    weights = np.zeros((len(first.bias), len(first.network.names)))  # (m, d)
    for k in present:
        weights[:, k] = first.slope(k)
    centers, slopes, scales = family.linear(weights, list(columns))
    constants = first.bias + sum(first.at(k, centers[:, k]) for k in present)
    at = np.ascontiguousarray(centers[:, list(columns)])
    return UnitLaws(np.ascontiguousarray(constants), at, slopes, scales)


def _means(
    first: FirstLayer,
    family: Any,
    columns: tuple[int, ...],
    t: np.ndarray,
    laws: UnitLaws,
    options: RunOptions,
) -> np.ndarray:
    """Return the means of f given values t of some columns, (n, k)."""
    slope, weight, bias = first.rest()
    out = np.zeros((len(t), len(bias)))
    shares = family.shares(t, list(columns))

    def fill(rows: slice) -> None:
        relu_means.add_normal(t[rows], shares[rows], *laws, slope, weight, out[rows])

    blocks = [slice(i, i + ROW_BLOCK) for i in range(0, len(t), ROW_BLOCK)]
    list(in_order(fill, blocks, options.n_jobs))
    return bias + out
