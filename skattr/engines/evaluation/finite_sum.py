"""Rows of data on any model: the finite sum Σ_r w_r f(x_j, z_{r,-j}) itself.

Exact. One call of the model on the background for each distinct own value (equal values share it),
so the value of a row never depends on the other explained rows, to the last bit. Weights may depend
on the own value; rows of weight 0 are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skattr import frames
from skattr._files.storage import PicklableTable
from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Rows, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.distinct import FEWER, at_distinct
from skattr.measures.base import Measure
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import Pieces

ROW_BLOCK = 65_536  # background rows in one call of the model
SMALLER = "a smaller background, "
MANY_ROWS = 1_000_000  # evaluations of single rows that are said to take long


@dataclass(eq=False)
class RowSum:
    """The sum of f over the background, and the rows themselves where they are needed again."""

    total: np.ndarray  # (k,) Σ_r w_r f(z_r)
    weights: np.ndarray  # (n,)
    kept: PicklableTable | None  # the background, or None if nothing is pinned
    given: RowWeights | None = None  # weights that depend on the own value


class FiniteSum(Engine):
    """Evaluates the model on the background, once for each distinct own value."""

    name = "finite_sum"
    kind = Pieces
    views = ("rows", "bins")
    gives = "exact, one model call per distinct value"

    @override
    def cost(self, pieces: Pieces, measure: Measure) -> str:
        if measure.depends == "nothing":
            return "fit: one evaluation per row"
        which = "the rows that have weight" if "bins" in measure.views else "the whole background"
        return f"explain: one evaluation of {which} for each distinct own value"

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Attributions, options: RunOptions
    ) -> RowSum:
        """Evaluate the background; keep a copy of it if own values are to be put into it."""
        given = None
        if "bins" in measure.views:
            background, given = measure.bins()
            pinned = True
        else:
            background, pinned = measure.rows()
        total = _weighted_sum(pieces.output, background.X, background.weights)
        kept = PicklableTable(frames.copy(background.X)) if pinned else None
        return RowSum(total, background.weights.copy(), kept, given)

    @override
    def merge(self, a: RowSum, b: RowSum) -> RowSum:
        kept = None
        if a.kept is not None and b.kept is not None:
            kept = PicklableTable(frames.concatenate([a.kept.X, b.kept.X]))
        return RowSum(a.total + b.total, np.concatenate([a.weights, b.weights]), kept)

    @override
    def mean(self, pieces: Pieces, state: RowSum) -> Estimate:
        return Estimate(state.total / state.weights.sum())

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
        value = partial(_pinned_mean, pieces.output, state)
        each = f", each one call of the model on {_rows_a_call(state)}; {SMALLER}"
        values = at_distinct(value, rows.X, attributions, chosen, options, each=each)
        return Integral(Estimate(values))

    @override
    def outlook(self, state: RowSum, attributions: Attributions) -> str:
        """Say how many calls of the model it takes to explain the background itself."""
        if state.kept is None:
            return ""
        kinds = [len(frames.distinct_rows(state.kept.X, columns)[0]) for columns in attributions]
        rows = _rows_a_call(state)
        text = f"to explain the background takes {sum(kinds):,} calls of the model on {rows}"
        long = sum(kinds) * len(state.weights) > MANY_ROWS
        return f"{text}; {SMALLER}{FEWER}" if long else text


def _rows_a_call(state: RowSum) -> str:
    return f"{'up to ' if state.given is not None else ''}{len(state.weights):,} background rows"


def _pinned_mean(f: Callable, state: RowSum, x: Any, columns: tuple[int, ...]) -> np.ndarray:
    """Return Σ_r w_r f(x_own, z_r) / Σ_r w_r, x one row."""
    assert state.kept is not None
    Z, weights = state.kept.X, state.weights
    if state.given is not None:
        weights = state.given.given(columns, state.given.bins_of(x, columns)[:, 0])
        rows = np.flatnonzero(weights)
        Z, weights = frames.take_rows(Z, rows), weights[rows]
    total = _weighted_sum(f, Z, weights, lambda Z: frames.pin(Z, x, columns))
    return total / weights.sum()


def _weighted_sum(
    f: Callable, X: Any, weights: np.ndarray, change: Callable = lambda Z: Z
) -> np.ndarray:
    """Return Σ_r w_r f(z_r), (k,), in fixed blocks of rows."""
    total: Any = 0.0
    for start in range(0, len(weights), ROW_BLOCK):
        block = slice(start, start + ROW_BLOCK)
        values = f(change(frames.take_rows(X, block)))
        total = total + (weights[block, None] * values).sum(axis=0)
    return total
