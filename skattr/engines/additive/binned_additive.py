"""Additive models and rows weighted by the bin of x_j: sums by bin.

See docs/mathematics.md, section 5.

    phi_j(x) = c + Σ_{i in j} h_i(x_i) + Σ_r π_r(x) Σ_{i not in j} h_i(z_ri)

The last sum depends on the bin of x_j alone: one table per column, O(rows · columns) in all. For a
group it is computed for each distinct combination of bins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import Additive


@dataclass(eq=False)
class OtherTerms:
    """The sums of the terms of the other columns, by bin of x_j or, for groups, by row."""

    weights: RowWeights
    total: np.ndarray  # (k,) Σ_r ω_r f(z_r), without the constant of f
    # (bins of rows, k), once all batches are added (bins of t, k), or (n, k) for a group
    tables: list[np.ndarray]
    columns: list[int | None]  # of each attribution, None for a group


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
        single = [a[0] if len(a) == 1 else None for a in attributions]
        tables = [
            rest if k is None else _by_bin(rest, weights, k)
            for rest, k in zip(others, single, strict=True)
        ]
        kept = weights if weights.joint else weights.without_rows()
        return OtherTerms(kept, total, tables, single)

    @override
    def merge(self, a: OtherTerms, b: OtherTerms) -> OtherTerms:
        tables = [
            np.concatenate([one, other]) if k is None else one + other
            for one, other, k in zip(a.tables, b.tables, a.columns, strict=True)
        ]
        weights = a.weights.merge(b.weights)
        return replace(b, weights=weights, total=a.total + b.total, tables=tables)

    @override
    def finish(self, pieces: Additive, state: OtherTerms, options: RunOptions) -> OtherTerms:
        weights, total = state.weights.settled(), state.weights.total
        tables = [
            table if k is None else weights.columns[k].table @ (table / total)
            for table, k in zip(state.tables, state.columns, strict=True)
        ]
        return replace(state, weights=weights.released(), total=state.total / total, tables=tables)

    @override
    def mean(self, pieces: Additive, state: OtherTerms) -> Estimate:
        return Estimate(pieces.constant + state.total)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        result, columns = request.zeros(pieces.n_outputs), request.all_columns
        tables = [state.tables[a] for a in request.chosen]
        for i, (members, table) in enumerate(zip(request.columns, tables, strict=True)):
            bins = state.weights.bins_of(request.X, members)
            if len(members) == 1:
                result[:, i] = table[bins[0]]
                continue
            kinds, kind = np.unique(bins, axis=1, return_inverse=True)
            sums = [state.weights.given(members, at) @ table for at in kinds.T]
            result[:, i] = np.array(sums)[kind.reshape(-1)]
        position = {k: i for i, k in enumerate(columns)}
        for block, terms in pieces.in_blocks(request.X, columns):
            for i, members in enumerate(request.columns):
                for k in members:
                    result[block, i] += terms[:, position[k]]
        return Integral(Estimate(pieces.constant + result))


def _by_bin(values: np.ndarray, weights: RowWeights, k: int) -> np.ndarray:
    """Return Σ_r ω_r values_r over the rows of each bin of column k, (bins of rows, n_outputs)."""
    assert weights.rows is not None
    rows, n = weights.rows[k], weights.columns[k].bins.n + 2
    return np.stack([np.bincount(rows, weights.weight * each, n) for each in values.T], axis=1)
