"""Sums of f over the rows of the background, and what is kept of the rows to pin columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.engines.backgrounds import merge_weights
from skattr.engines.estimates import Estimate
from skattr.measures.learned.row_weights import RowWeights


@dataclass(eq=False)
class RowSum:
    """The sum of f over the background, and what is kept of its rows if columns are pinned."""

    total: np.ndarray  # (k,) Σ_r w_r f(z_r)
    weights: np.ndarray  # (n,)
    rows: Any  # None if no column is pinned
    row_weights: RowWeights | None  # if weights depend on the explained value

    def merge(self, other: RowSum, join: Callable[[Any, Any], Any]) -> RowSum:
        """Return the sum of both batches; `join` returns the rows of both."""
        rows = None
        if self.rows is not None and other.rows is not None:
            rows = join(self.rows, other.rows)
        weights = np.concatenate([self.weights, other.weights])
        return RowSum(self.total + other.total, weights, rows, merge_weights(self, other))

    def mean(self) -> Estimate:
        """Return the mean of f, (k,)."""
        return Estimate(self.total / self.weights.sum())
