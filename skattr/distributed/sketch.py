"""What measures that do not add up need of all rows: ranges of columns, and a seeded sample.

Both merge. Each row gets a random number, seeded by the number of its part, and the rows with the
smallest ones are the sample: a uniform one, whatever the parts, and all rows if there are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.distributed.alignment import with_types


@dataclass(eq=False)
class Sketch:
    """Ranges of the columns of numbers, and a sample of at most `size` rows with their weights."""

    size: int
    n_rows: int
    ranges: np.ndarray  # (d, 2) low and high, inf and -inf where there are no numbers
    sample: PicklableTable
    weights: np.ndarray
    order: np.ndarray  # (n,) random numbers, sorted

    @classmethod
    def of(cls, X: Any, weights: np.ndarray, size: int, seed: tuple[int, ...]) -> Sketch:
        """Return the sketch of one part."""
        rows = np.flatnonzero(weights > 0)
        order = np.random.default_rng(seed).random(len(rows))
        chosen = np.argsort(order, kind="stable")[:size]
        sample = frames.copy(frames.take_rows(X, rows[chosen]))
        ranges = np.array([_range(X, k, rows) for k in range(len(frames.labels(X)))])
        weights = weights[rows[chosen]]
        return cls(size, len(rows), ranges, PicklableTable(sample), weights, order[chosen])

    def merge(self, other: Sketch) -> Sketch:
        """Return the sketch of both parts."""
        one, two = self.sample.X, other.sample.X
        table = frames.concatenate([with_types(one, two), with_types(two, one)])
        order = np.concatenate([self.order, other.order])
        weights = np.concatenate([self.weights, other.weights])
        chosen = np.argsort(order, kind="stable")[: self.size]
        low = np.minimum(self.ranges[:, 0], other.ranges[:, 0])
        high = np.maximum(self.ranges[:, 1], other.ranges[:, 1])
        return Sketch(
            self.size,
            self.n_rows + other.n_rows,
            np.stack([low, high], axis=1),
            PicklableTable(frames.take_rows(table, chosen)),
            weights[chosen],
            order[chosen],
        )

    def domain(self) -> dict[int, tuple[float, float]]:
        """Return position of a column → its range, where it is finite."""
        finite = np.isfinite(self.ranges).all(axis=1)
        return {int(k): tuple(self.ranges[k].tolist()) for k in np.flatnonzero(finite)}


def _range(X: Any, k: int, rows: np.ndarray) -> tuple[float, float]:
    if not frames.is_number(X, k):
        return np.inf, -np.inf
    values = frames.to_float(frames.column(X, k))[rows]
    values = values[~np.isnan(values)]
    return (float(values.min()), float(values.max())) if len(values) else (np.inf, -np.inf)
