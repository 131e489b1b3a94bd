"""The data that a measure is learned from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skattr import frames

ROW_BLOCK = 65_536  # rows in one call of the model


class Background:
    """Rows and their positive weights; codes are made once for all measures.

    `levels` (d,) says which columns hold levels rather than numbers: by their dtype, or because the
    estimator itself declares them categorical.
    """

    def __init__(self, X: Any, weights: np.ndarray, levels: np.ndarray | None = None) -> None:
        self.X, self.weights = that_count(X, weights)
        self.names = frames.labels(X)
        self.levels = np.array([frames.is_level(X, k) for k in range(len(self.names))], bool)
        if levels is not None:
            self.levels |= levels
        self._encoded: tuple | None = None
        self._summed: tuple | None = None
        self._moments: tuple | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def column(self, k: int) -> Any:
        """Return the values of column k."""
        return frames.column(self.X, k)

    def seen(self, grid: Any, n_jobs: int | None = 1) -> tuple[Any, np.ndarray]:
        """Return a grid that knows the cells of all rows, and their codes, (d, n)."""
        if self._encoded is None or self._encoded[0] is not grid:
            self._encoded = (grid, *grid.meet(self.X, n_jobs))
        return self._encoded[1:]

    def summed(self, pieces: Any) -> np.ndarray:
        """Return the weighted sums of the terms of an additive model, (d, k)."""
        if self._summed is None or self._summed[0] is not pieces:
            self._summed = (pieces, pieces.sums(self.X, self.weights))
        return self._summed[1]

    def moments(self, pieces: Any) -> Moments:
        """Return what the spread of f follows from."""
        if self._moments is None or self._moments[0] is not pieces:
            starts = range(0, len(self), ROW_BLOCK)
            blocks = [frames.take_rows(self.X, slice(i, i + ROW_BLOCK)) for i in starts]
            values = np.concatenate([pieces.predict(block) for block in blocks])
            weight = self.weights.sum()
            share = (self.weights / weight)[:, None]
            mean = (share * values).sum(axis=0)
            variance = (share * (values - mean) ** 2).sum(axis=0)
            found = Moments(float(weight), mean, variance, np.abs(values).max(axis=0))
            self._moments = (pieces, found)
        return self._moments[1]


class Moments(NamedTuple):
    """Weight, mean, variance and largest size of f over rows, (k,) each but for the weight."""

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


def as_background(X: Any, sample_weight: Any = None) -> Background:
    """Return X as a Background; the explainer's own is passed on as it is."""
    if isinstance(X, Background):
        return X
    X = frames.as_table(X, "the background")
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    return Background(X, check_weights(weights, len(X)))


def that_count(X: Any, weights: np.ndarray) -> tuple[Any, np.ndarray]:
    """Leave rows of weight 0 out: neither measures nor models see them."""
    counts = weights > 0
    if counts.all():
        return X, weights
    return frames.take_rows(X, np.flatnonzero(counts)), weights[counts]


def check_weights(weights: np.ndarray, n: int) -> np.ndarray:
    """Refuse weights that make no measure."""
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}, X has {n} rows")
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight has values that are missing or infinite")
    if (weights < 0).any():
        raise ValueError("sample_weight has negative values; weights are at least 0")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError("sample_weight has values whose sum is infinite; divide them")
    if not (weights > 0).any():
        raise ValueError("sample_weight is 0 for every row; some row must count")
    return weights
