"""Summaries of the background's columns, which curves present."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.pieces import Pieces
from skattr.solution.read_model import ReadModel
from skattr.solution.terms import Term


def columns_without_table(model: ReadModel, terms: list[Term]) -> list[int]:
    """Return the columns whose curves are shown at the values of the background."""
    columns = range(len(model.names))
    if any(term.engine.kind is Pieces or term.engine.smooth for term in terms):
        return list(columns)
    dates = {k for k in columns if frames.is_date(model.row.X, k)}
    return sorted(dates | set(model.pieces.without_table()))


class SeenColumns:
    """The number of rows, columns with missing values, and distinct values of some columns.

    All of it adds up over batches of the background.

    Attributes
    ----------
    n_rows : int
    points : dict
        Position of a column → its distinct values, sorted, if the curve has no table.
    with_missing : set of int
        The columns that have missing values.
    levels : dict
        Position of a column → its levels, if the model does not keep their names.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.points: dict[int, np.ndarray] = {}
        self.with_missing: set[int] = set()
        self.levels: dict[int, list[Any]] = {}

    def add(self, X: Any, columns: Iterable[int], anonymous: Iterable[int]) -> None:
        """Add a batch of the background; keep the distinct values of some columns."""
        self.n_rows += len(X)
        for k in columns:
            self._add_points(k, frames.sorted_values(frames.column(X, k)))
        for k in anonymous:
            self._add_levels(k, frames.distinct_levels(frames.column(X, k)))
        n_columns = len(frames.labels(X))
        self.with_missing |= {
            k for k in range(n_columns) if frames.any_missing(frames.column(X, k))
        }

    def _add_points(self, k: int, values: np.ndarray) -> None:
        if k in self.points:
            values = frames.sorted_values(np.concatenate([self.points[k], values]))
        self.points[k] = values

    def _add_levels(self, k: int, levels: list[Any]) -> None:
        self.levels[k] = list(dict.fromkeys([*self.levels.get(k, ()), *levels]))

    def merge(self, other: SeenColumns) -> SeenColumns:
        """Return what was seen in both."""
        both = SeenColumns()
        both.n_rows = self.n_rows + other.n_rows
        both.with_missing = self.with_missing | other.with_missing
        both.points, both.levels = dict(self.points), dict(self.levels)
        for k, values in other.points.items():
            both._add_points(k, values)
        for k, levels in other.levels.items():
            both._add_levels(k, levels)
        return both

    def span(self, k: int) -> tuple[float, float] | None:
        """Return the range of the finite values of a column of numbers, if it has any."""
        points = frames.to_float(self.points[k])
        points = points[np.isfinite(points)]
        return (float(points.min()), float(points.max())) if len(points) else None

    def ranges(self, model: ReadModel) -> dict[Any, tuple[float, float]]:
        """Return the ranges of columns of numbers whose values are kept, by label."""
        spans = {k: self.span(k) for k in self.points if frames.is_number(model.row.X, k)}
        return {model.names[k]: span for k, span in spans.items() if span is not None}
