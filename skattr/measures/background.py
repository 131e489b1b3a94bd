"""The data that a measure is learned from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from skattr._inputs import frames


class Background:
    """Rows with positive weights, and a cache of what engines compute from them.

    `levels` (d,) tells which columns hold levels rather than numbers: by their dtype, or because
    the estimator declares them categorical.
    """

    def __init__(self, X: Any, weights: np.ndarray, levels: np.ndarray | None = None) -> None:
        self.X, self.weights = drop_zero_weights(X, weights)
        self.names = frames.labels(X)
        self.levels = np.array([frames.is_level(X, k) for k in range(len(self.names))], bool)
        if levels is not None:
            self.levels |= levels
        self._memory: dict[str, tuple] = {}

    def __len__(self) -> int:
        return len(self.weights)

    def take(self, rows: np.ndarray) -> Background:
        """Return some of the rows."""
        return Background(frames.take_rows(self.X, rows), self.weights[rows], self.levels)

    def column(self, k: int) -> Any:
        """Return the values of column k."""
        return frames.column(self.X, k)

    def remember(self, what: str, key: object, compute: Callable[[], Any]) -> Any:
        """Return compute(), cached until `what` is asked for with another `key`."""
        if what not in self._memory or self._memory[what][0] is not key:
            self._memory[what] = (key, compute())
        return self._memory[what][1]


def as_background(X: Any, sample_weight: Any = None) -> Background:
    """Return X as a Background; a Background is returned as it is."""
    if isinstance(X, Background):
        return X
    X = frames.as_table(X, "the background")
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    return Background(X, check_weights(weights, len(X)))


def read_weights(sample_weight: Any, X: Any) -> np.ndarray:
    """Return the weights of the rows of X, 1 if there are none.

    They are a copy: states may keep them, and users may change theirs.
    """
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
    return check_weights(weights, len(X))


def drop_zero_weights(X: Any, weights: np.ndarray) -> tuple[Any, np.ndarray]:
    """Drop rows of weight 0: neither measures nor models see them."""
    counts = weights > 0
    if counts.all():
        return X, weights
    return frames.take_rows(X, np.flatnonzero(counts)), weights[counts]


def check_weights(weights: np.ndarray, n: int) -> np.ndarray:
    """Raise if weights are not those of a measure."""
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight must be finite, got missing or infinite values")
    if (weights < 0).any():
        raise ValueError("sample_weight must be at least 0, got negative values")
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise ValueError("sample_weight must have a finite sum; scale the weights")
    if not (weights > 0).any():
        raise ValueError("sample_weight must be positive for some row, got only zeros")
    return weights
