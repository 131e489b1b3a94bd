"""Sums of products and rows weighted by the bin of x_j: the weights of terms given the bin.

    phi_j(x) = b + Σ_m c_m W_mj(B) ∏_{k in j} φ_mk(x_k),   B the bin of x_j
    W_mj(B) = Σ_s κ_Bs Σ_{r in bin s} ω_r ∏_{k not in j} φ_mk(z_rk)

Exact. O(rows · terms · columns) and one matrix product per column; a value costs O(terms). For a
group W is summed over the rows for each distinct combination of bins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.products.product_sums import add_rows, at_rows, value
from skattr.measures.base import Measure
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import Products


@dataclass(eq=False)
class BinnedTermWeights:
    """The weights of terms by bin of x_j, and for groups the inputs of the rows."""

    weights: RowWeights
    totals: np.ndarray  # (M,)
    # (bins of rows, M), once all batches are added (bins of t, M), None for a group
    tables: list[np.ndarray | None]
    inputs: list[np.ndarray] | None  # of all parts and rows, if there is a group
    columns: list[int | None]  # of each attribution, None for a group


class BinnedProducts(Engine):
    """The factors of each explained row, and the products of the others given its bins."""

    name = "binned_products"
    kind = Products
    views = ("bins",)
    gives = "exact; groups row by row"
    needs_partition = True

    @override
    def cost(self, pieces: Products, measure: Measure) -> str:
        return (
            f"fit: {pieces.n_terms:,} products per row; explain: as many bumps per value, for a "
            "group as many products per row"
        )

    @override
    def prepare(
        self, pieces: Products, measure: Any, attributions: Attributions, options: RunOptions
    ) -> BinnedTermWeights:
        background, weights = measure.bins()
        single = [columns[0] if len(columns) == 1 else None for columns in attributions]
        bins = np.stack(
            [np.zeros(len(background), np.int32) if k is None else weights.rows[k] for k in single]
        )
        n_bins = [1 if k is None else weights.columns[k].bins.n + 2 for k in single]
        totals, others = (
            np.zeros(pieces.n_terms),
            np.zeros((pieces.n_terms, len(attributions), max(n_bins))),
        )
        kept: list[list[np.ndarray]] | None = [] if None in single else None
        for block, inputs in pieces.in_blocks(background.X):
            row_bins = np.ascontiguousarray(bins[:, block])
            sums = totals, others
            add_rows(pieces, inputs, weights.weight[block], attributions, sums, options, row_bins)
            if kept is not None:
                kept.append(inputs)
        tables = [
            None if k is None else np.ascontiguousarray(others[:, a, :n].T)
            for a, (k, n) in enumerate(zip(single, n_bins, strict=True))
        ]
        whole = None if kept is None else [np.concatenate(p) for p in zip(*kept, strict=True)]
        if not weights.joint:
            weights = weights.without_rows()
        return BinnedTermWeights(weights, totals, tables, whole, single)

    @override
    def merge(self, a: BinnedTermWeights, b: BinnedTermWeights) -> BinnedTermWeights:
        tables = [
            None if one is None or other is None else one + other
            for one, other in zip(a.tables, b.tables, strict=True)
        ]
        inputs = None
        if a.inputs is not None and b.inputs is not None:
            inputs = [np.concatenate(pair) for pair in zip(a.inputs, b.inputs, strict=True)]
        weights = a.weights.merge(b.weights)
        return BinnedTermWeights(weights, a.totals + b.totals, tables, inputs, a.columns)

    @override
    def finish(
        self, pieces: Products, state: BinnedTermWeights, options: RunOptions
    ) -> BinnedTermWeights:
        weights, total = state.weights.settled(), state.weights.total
        tables = [
            None if table is None or k is None else weights.columns[k].table @ (table / total)
            for table, k in zip(state.tables, state.columns, strict=True)
        ]
        totals = state.totals / total
        return replace(state, weights=weights.released(), totals=totals, tables=tables)

    @override
    def mean(self, pieces: Products, state: BinnedTermWeights) -> Estimate:
        return Estimate(value(pieces, state.totals))

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        result, coefficients = request.zeros(pieces.n_outputs), pieces.coefficients
        weights = [_weights(pieces, state, request, a) for a in request.chosen]
        sides = [pieces.sides((columns,)) for columns in request.columns]

        def fill(block: slice, inputs: list) -> None:
            for i, ((table, which), side) in enumerate(zip(weights, sides, strict=True)):
                result[block, i] = pieces.add_up(inputs, side, table, coefficients, which[block])

        at_rows(pieces, request, fill)
        return Integral(Estimate(pieces.constant + result))


def _weights(
    pieces: Products, state: BinnedTermWeights, request: Request, a: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct weights of terms, (kinds, M), and the kind of each row."""
    columns, table = request.attributions[a], state.tables[a]
    bins = state.weights.bins_of(request.X, columns)
    if table is not None:
        return table, bins[0].astype(np.int64)
    assert state.inputs is not None
    kinds, kind = np.unique(bins, axis=1, return_inverse=True)
    rest = tuple(k for k in range(len(pieces.names)) if k not in columns)
    result = np.zeros((kinds.shape[1], pieces.n_terms))
    nothing = np.zeros((pieces.n_terms, 0, 1))
    for weights, at in zip(result, kinds.T, strict=True):
        shares = state.weights.given(columns, at)
        add_rows(pieces, state.inputs, shares, (rest,), (weights, nothing), request.options)
    return result, kind.reshape(-1).astype(np.int64)
