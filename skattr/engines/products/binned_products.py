"""Sums of products and rows weighted by the bin of x_j: the weights of terms given the bin.

    phi_j(x) = b + Σ_m c_m W_mj(B) ∏_{k in j} φ_mk(x_k),   B the bin of x_j
    W_mj(B) = Σ_s κ_Bs Σ_{r in bin s} ω_r ∏_{k not in j} φ_mk(z_rk)

Exact. O(rows · terms · columns) and one matrix product per column; a value costs O(terms). For a
group W is summed over the rows for each distinct combination of bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Rows, RunOptions
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
    tables: list[np.ndarray | None]  # (bins of t, M), None for a group
    inputs: list[np.ndarray] | None  # of all parts and rows, if there is a group


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
        kappa = [None if k is None else weights.columns[k].table for k in single]
        most = max((table.shape[1] for table in kappa if table is not None), default=1)
        totals, others = (
            np.zeros(pieces.n_terms),
            np.zeros((pieces.n_terms, len(attributions), most)),
        )
        kept: list[list[np.ndarray]] | None = [] if None in single else None
        for block, inputs in pieces.in_blocks(background.X):
            row_bins = np.ascontiguousarray(bins[:, block])
            sums = totals, others
            add_rows(pieces, inputs, weights.weight[block], attributions, sums, options, row_bins)
            if kept is not None:
                kept.append(inputs)
        tables = [
            None if table is None else table @ others[:, a, : table.shape[1]].T
            for a, table in enumerate(kappa)
        ]
        whole = None if kept is None else [np.concatenate(p) for p in zip(*kept, strict=True)]
        return BinnedTermWeights(weights.released(), totals, tables, whole)

    @override
    def mean(self, pieces: Products, state: BinnedTermWeights) -> Estimate:
        return Estimate(value(pieces, state.totals))

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
        coefficients = pieces.coefficients
        weights = [
            _weights(pieces, state, X, attributions[a], state.tables[a], options) for a in chosen
        ]
        sides = [pieces.sides((attributions[a],)) for a in chosen]

        def fill(block: slice, inputs: list) -> None:
            for i, ((table, which), side) in enumerate(zip(weights, sides, strict=True)):
                result[block, i] = pieces.add_up(inputs, side, table, coefficients, which[block])

        at_rows(pieces, X, sorted({k for a in chosen for k in attributions[a]}), fill, options)
        return Integral(Estimate(pieces.constant + result))


def _weights(
    pieces: Products,
    state: BinnedTermWeights,
    X: Any,
    columns: tuple,
    table: np.ndarray | None,
    options: RunOptions,
) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct weights of terms, (kinds, M), and the kind of each row of X."""
    bins = state.weights.bins_of(X, columns)
    if table is not None:
        return table, bins[0].astype(np.int64)
    assert state.inputs is not None
    kinds, kind = np.unique(bins, axis=1, return_inverse=True)
    rest = tuple(k for k in range(len(pieces.names)) if k not in columns)
    result = np.zeros((kinds.shape[1], pieces.n_terms))
    nothing = np.zeros((pieces.n_terms, 0, 1))
    for weights, at in zip(result, kinds.T, strict=True):
        shares = state.weights.given(columns, at)
        add_rows(pieces, state.inputs, shares, (rest,), (weights, nothing), options)
    return result, kind.reshape(-1).astype(np.int64)
