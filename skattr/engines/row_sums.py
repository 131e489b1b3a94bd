"""Sums of f over the rows of the background, and the engines that keep the rows to pin columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.engines.backgrounds import merge_weights, settle_weights
from skattr.engines.base import Engine, RunOptions
from skattr.engines.estimates import Estimate
from skattr.measures.learned.row_weights import RowWeights


@dataclass(eq=False)
class RowSum:
    """The sum of f over the background, and what is kept of its rows; `+` joins two batches."""

    total: np.ndarray  # (k,) Σ_r w_r f(z_r)
    weights: np.ndarray  # (n,)
    rows: Any  # what `+` joins; None if no column is pinned
    row_weights: RowWeights | None  # if weights depend on the explained value

    def __add__(self, other: RowSum) -> RowSum:
        rows = None
        if self.rows is not None and other.rows is not None:
            rows = self.rows + other.rows
        weights = np.concatenate([self.weights, other.weights])
        return RowSum(self.total + other.total, weights, rows, merge_weights(self, other))


class SumsOverRows(Engine):
    """The base of engines whose state is a `RowSum`."""

    views = ("rows", "bins")

    @override
    def merge(self, a: RowSum, b: RowSum) -> RowSum:
        return a + b

    @override
    def finish(self, pieces: Any, state: RowSum, options: RunOptions) -> RowSum:
        return settle_weights(state)

    @override
    def mean(self, pieces: Any, state: RowSum) -> Estimate:
        return Estimate(state.total / state.weights.sum())
