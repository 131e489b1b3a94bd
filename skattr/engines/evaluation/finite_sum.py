"""Rows of data on any model: the finite sum Σ_r w_r f(x_j, z_{r,-j}) itself.

Exact. One call of the model on the background for each distinct explained value, so that the value
of a row does not depend on the other explained rows, to the last bit. Weights may depend on the
explained value; rows of weight 0 are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.backgrounds import rows_or_bins
from skattr.engines.base import Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.distinct import FEWER, at_distinct
from skattr.engines.row_sums import RowSum, SumsOverRows
from skattr.measures.base import Measure
from skattr.pieces import Pieces

ROW_BLOCK = 65_536  # background rows in one call of the model
SMALLER = "a smaller background, "
MANY_ROWS = 1_000_000  # evaluations of single rows beyond which `outlook` has a hint


class FiniteSum(SumsOverRows):
    """Evaluates the model on the background, once for each distinct explained value."""

    name = "finite_sum"
    kind = Pieces
    gives = "exact, one model call per distinct value"

    @override
    def cost(self, pieces: Pieces, measure: Measure) -> str:
        if measure.depends == "nothing":
            return "fit: one evaluation per row"
        rows = "the rows that have weight" if "bins" in measure.views else "the whole background"
        return f"explain: one evaluation of {rows} for each distinct explained value"

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Attributions, options: RunOptions
    ) -> RowSum:
        background, row_weights, pinned = rows_or_bins(measure)
        total = _weighted_sum(pieces.output, background.X, background.weights)
        copy = PicklableTable(frames.copy(background.X)) if pinned else None
        return RowSum(total, background.weights.copy(), copy, row_weights)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        value = partial(_pinned_mean, pieces.output, state)
        each = f", each one call of the model on {_rows_per_call(state)}; {SMALLER}"
        return Integral(Estimate(at_distinct(value, request, each=each)))

    @override
    def outlook(self, state: RowSum, attributions: Attributions) -> str:
        if state.rows is None:
            return ""
        kinds = [len(frames.distinct_rows(state.rows.X, columns)[0]) for columns in attributions]
        rows = _rows_per_call(state)
        text = f"explaining the background takes {sum(kinds):,} calls of the model on {rows}"
        long = sum(kinds) * len(state.weights) > MANY_ROWS
        return f"{text}; {SMALLER}{FEWER}" if long else text


def _rows_per_call(state: RowSum) -> str:
    return (
        f"{'up to ' if state.row_weights is not None else ''}{len(state.weights):,} background rows"
    )


def _pinned_mean(f: Callable, state: RowSum, x: Any, columns: tuple[int, ...]) -> np.ndarray:
    """Return Σ_r w_r f(x_j, z_{r,-j}) / Σ_r w_r, x a table of one row."""
    assert state.rows is not None
    Z, weights = state.rows.X, state.weights
    if state.row_weights is not None:
        weights = state.row_weights.given(columns, state.row_weights.bins_of(x, columns)[:, 0])
        rows = np.flatnonzero(weights)
        Z, weights = frames.take_rows(Z, rows), weights[rows]
    total = _weighted_sum(f, Z, weights, lambda Z: frames.pin(Z, x, columns))
    return total / weights.sum()


def _weighted_sum(
    f: Callable, X: Any, weights: np.ndarray, transform: Callable = lambda Z: Z
) -> np.ndarray:
    """Return Σ_r w_r f(z_r), (k,), in fixed blocks of rows."""
    total: Any = 0.0
    for start in range(0, len(weights), ROW_BLOCK):
        block = slice(start, start + ROW_BLOCK)
        values = f(transform(frames.take_rows(X, block)))
        with np.errstate(over="ignore", invalid="ignore"):  # `Solution` refuses what overflows
            total = total + (weights[block, None] * values).sum(axis=0)
    return total
