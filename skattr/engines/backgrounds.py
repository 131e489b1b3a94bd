"""Results over a background that engines share: computed once for all measures and terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skattr._inputs import frames
from skattr.measures.background import Background
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import Additive, Grid, Pieces

ROW_BLOCK = 65_536  # rows in one call of the model


class Moments(NamedTuple):
    """Weight, mean, variance and largest absolute value of f over rows, (k,) but for the weight."""

    weight: float
    mean: np.ndarray
    variance: np.ndarray
    largest: np.ndarray

    def merge(self, other: Moments) -> Moments:
        """Add a batch."""
        weight = self.weight + other.weight
        a, b = self.weight / weight, other.weight / weight
        between = a * b * (self.mean - other.mean) ** 2
        return Moments(
            weight,
            a * self.mean + b * other.mean,
            a * self.variance + b * other.variance + between,
            np.maximum(self.largest, other.largest),
        )

    def spread(self) -> np.ndarray:
        """Return the standard deviation, (k,), 1 where f does not vary."""
        spread = np.sqrt(self.variance)
        return np.where(spread > 16 * np.finfo(float).eps * self.largest, spread, 1.0)


def encode(background: Background, grid: Grid, n_jobs: int | None = 1) -> tuple[Grid, np.ndarray]:
    """Return a grid that has the cells of all rows, and their codes, (d, n)."""
    return background.remember("codes", grid, lambda: grid.meet(background.X, n_jobs))


def sum_terms(background: Background, pieces: Additive) -> np.ndarray:
    """Return the weighted sums of the terms of an additive model, (d, k)."""
    return background.remember(
        "sums", pieces, lambda: pieces.sums(background.X, background.weights)
    )


def find_moments(background: Background, pieces: Pieces) -> Moments:
    """Return the moments of f over a background."""
    return background.remember("moments", pieces, lambda: _moments(background, pieces))


def rows_or_bins(measure: Any) -> tuple[Background, RowWeights | None, bool]:
    """Return the background, its weights by bin if there are any, and if columns are pinned."""
    if "bins" in measure.views:
        return *measure.bins(), True
    background, pinned = measure.rows()
    return background, None, pinned


def merge_weights(a: Any, b: Any) -> RowWeights | None:
    """Return the weights of the rows of two states, None if they do not depend on x."""
    if a.row_weights is None or b.row_weights is None:
        return None
    return a.row_weights.merge(b.row_weights)


def settle_weights(state: Any) -> Any:
    """Return a state whose weights are those of the rows of all batches."""
    if state.row_weights is None:
        return state
    return replace(state, row_weights=state.row_weights.settled())


def _moments(background: Background, pieces: Pieces) -> Moments:
    starts = range(0, len(background), ROW_BLOCK)
    blocks = [frames.take_rows(background.X, slice(i, i + ROW_BLOCK)) for i in starts]
    values = np.concatenate([pieces.predict(block) for block in blocks])
    weight = background.weights.sum()
    share = (background.weights / weight)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # `Solution` refuses what overflows
        mean = (share * values).sum(axis=0)
        variance = (share * (values - mean) ** 2).sum(axis=0)
    return Moments(float(weight), mean, variance, np.abs(values).max(axis=0))
