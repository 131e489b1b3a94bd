"""What is remembered of the background's columns, to show curves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from skattr import frames


class SeenColumns:
    """Distinct values of some columns, which columns miss values, and the number of rows.

    Attributes
    ----------
    n_rows : int
    points : dict
        Position of a column → its distinct values, sorted, where a curve has no table of its own.
    with_missing : set of int
        The columns that have missing values.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.points: dict[int, np.ndarray] = {}
        self.with_missing: set[int] = set()

    def add(self, X: Any, columns: Iterable[int]) -> None:
        """Add a batch of the background; keep the distinct values of some columns."""
        self.n_rows += len(X)
        for k in columns:
            values = frames.sorted_values(frames.column(X, k))
            if k in self.points:
                values = frames.sorted_values(np.concatenate([self.points[k], values]))
            self.points[k] = values
        n_columns = len(frames.labels(X))
        self.with_missing |= {
            k for k in range(n_columns) if frames.any_missing(frames.column(X, k))
        }

    def span(self, k: int) -> tuple[float, float] | None:
        """Return the range of the finite values of a column of numbers, if it has any."""
        points = frames.to_float(self.points[k])
        points = points[np.isfinite(points)]
        return (float(points.min()), float(points.max())) if len(points) else None
