"""Summaries of the background's columns, which curves present."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from skattr._inputs import frames


class SeenColumns:
    """The number of rows, columns with missing values, and distinct values of some columns.

    Attributes
    ----------
    n_rows : int
    points : dict
        Position of a column → its distinct values, sorted, if the curve has no table.
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
