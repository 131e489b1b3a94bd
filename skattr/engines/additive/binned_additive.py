"""Additive models and rows weighted by the bin of x_j: sums by bin (MATH.md, section 5).

    phi_j(x) = c + Σ_{i in j} h_i(x_i) + Σ_r π_r(x) Σ_{i not in j} h_i(z_ri)

The last sum depends on the bin of x_j alone: one table per column, O(rows · columns) in all. For a
group it is computed for each distinct combination of bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Rows, RunOptions
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import Additive


@dataclass(eq=False)
class OtherTerms:
    """The sums of the terms of the other columns, by bin of x_j or, for groups, by row."""

    weights: RowWeights
    mean: np.ndarray  # (k,)
    tables: list[np.ndarray]  # (bins of t, k), or (n, k) for a group


class BinnedAdditive(Engine):
    """The terms of each explained row, and the means of the others given its bins."""

    name = "binned_additive"
    kind = Additive
    views = ("bins",)
    gives = "exact; groups row by row"

    @override
    def cost(self, pieces: Additive, measure: Measure) -> str:
        return (
            "fit: one evaluation per row; explain: one term and one lookup per value, for a group "
            "one sum over the background"
        )

    @override
    def prepare(
        self, pieces: Additive, measure: Any, attributions: Attributions, options: RunOptions
    ) -> OtherTerms:
        background, weights = measure.bins()
        n, k = len(background), pieces.n_outputs
        columns = list(range(len(background.names)))
        others = [np.empty((n, k)) for _ in attributions]
        total = np.zeros(k)
        for block, terms in pieces.in_blocks(background.X, columns):
            before, behind = np.cumsum(terms, axis=1), np.cumsum(terms[:, ::-1], axis=1)[:, ::-1]
            total += weights.weight[block] @ before[:, -1]
            for rest, a in zip(others, attributions, strict=True):
                first, last = a[0], a[-1]  # sums, no differences: nothing cancels
                inside = [k for k in range(first + 1, last) if k not in a]
                rest[block] = terms[:, inside].sum(axis=1)
                if first > 0:
                    rest[block] += before[:, first - 1]
                if last + 1 < len(columns):
                    rest[block] += behind[:, last + 1]
        tables = [
            _by_bin(rest, weights, a[0]) if len(a) == 1 else rest
            for rest, a in zip(others, attributions, strict=True)
        ]
        return OtherTerms(weights.released(), pieces.constant + total, tables)

    @override
    def mean(self, pieces: Additive, state: OtherTerms) -> Estimate:
        return Estimate(state.mean)

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
        X = rows.X
        result = np.empty((len(X), len(chosen), pieces.n_outputs))
        for i, a in enumerate(chosen):
            bins = state.weights.bins_of(X, attributions[a])
            if len(attributions[a]) == 1:
                result[:, i] = state.tables[a][bins[0]]
                continue
            kinds, kind = np.unique(bins, axis=1, return_inverse=True)
            sums = [state.weights.given(attributions[a], at) @ state.tables[a] for at in kinds.T]
            result[:, i] = np.array(sums)[kind.reshape(-1)]
        columns = sorted({k for a in chosen for k in attributions[a]})
        position = {k: i for i, k in enumerate(columns)}
        for block, terms in pieces.in_blocks(X, columns):
            for i, a in enumerate(chosen):
                for k in attributions[a]:
                    result[block, i] += terms[:, position[k]]
        return Integral(Estimate(pieces.constant + result))


def _by_bin(values: np.ndarray, weights: RowWeights, k: int) -> np.ndarray:
    """Return Σ_r π_r values_r for each bin of column k, (bins of t, n_outputs)."""
    assert weights.rows is not None
    table, rows = weights.columns[k].table, weights.rows[k]
    sums = [np.bincount(rows, weights.weight * column, table.shape[1]) for column in values.T]
    return table @ np.stack(sums, axis=1)
