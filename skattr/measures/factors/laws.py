"""One-dimensional laws: the factors of product measures.

Laws know nothing of models: their masses by code and the means of a model's terms are in
`engines/laws.py`. `Interval` and `Normal` have `bump(A, c)`, the mean of exp(-A (u - c)²) in closed
form, where u is the number on the scale on which the raw numbers `ends()` are -1 and 1. All but
`Normal` have `sampled()`, for models that can only be evaluated, which returns a law with

- `quantile(u)`: values of the column from uniform numbers (m,);
- `nodes(points, rule)`: values and weights of a quadrature rule, or all values;
- `n_atoms`: the number of values, or None if there are infinitely many;
- `merge(other)`: the law of two batches of the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.measures.background import Background
from skattr.measures.factors import bumps
from skattr.measures.factors.quadrature import rule_on


@dataclass(eq=False)
class Empirical:
    """P_k: the values of the background in column k, including missing ones."""

    background: Background
    k: int

    def sampled(self) -> Values:
        """Return the distinct values and their weights."""
        return Values.of(frames.take_columns(self.background.X, [self.k]), self.background.weights)


@dataclass(eq=False)
class Values:
    """Distinct values of a column, sorted where they have an order, and their weights."""

    kept: PicklableTable  # a table of one column
    weights: np.ndarray

    @classmethod
    def of(cls, table: Any, weights: np.ndarray) -> Values:
        """Join equal values of a table of one column."""
        first, kind = frames.distinct_rows(table, (0,))
        total = np.bincount(kind, weights=weights, minlength=len(first))
        order = frames.order_of(frames.take_values(frames.column(table, 0), first))
        return cls(PicklableTable(frames.take_rows(table, first[order])), total[order])

    @property
    def n_atoms(self) -> int:
        """The number of values."""
        return len(self.weights)

    def quantile(self, u: np.ndarray) -> Any:
        """Return the values where the distribution function reaches u."""
        levels = np.cumsum(self.weights)
        rows = np.searchsorted(levels[:-1], u * levels[-1], side="right")
        return frames.take_values(frames.column(self.kept.X, 0), rows)

    def nodes(self, points: int, rule: str) -> tuple[Any, np.ndarray]:
        """Return all values and their shares."""
        return frames.column(self.kept.X, 0), self.weights / self.weights.sum()

    def merge(self, other: Values) -> Values:
        """Join the values of two batches."""
        table = self.kept + other.kept
        return Values.of(table.X, np.concatenate([self.weights, other.weights]))


@dataclass(eq=False)
class Interval:
    """The uniform law on [low, high]; a point if they are equal."""

    low: float
    high: float
    name: Any
    fixed: bool = False  # by the user: batches do not widen it

    def sampled(self) -> Interval:
        """Return itself."""
        return self

    @property
    def n_atoms(self) -> int | None:
        """1 if it is a point."""
        return 1 if self.low == self.high else None

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """Return low (1 - u) + high u."""
        self.check()
        return self.low * (1 - u) + self.high * u

    def nodes(self, points: int, rule: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes and weights of the rule."""
        self.check()
        if self.low == self.high:
            return np.array([self.low]), np.ones(1)
        at, weights = rule_on(points, rule)
        return self.quantile(at), weights

    def ends(self) -> np.ndarray:
        """Return low and high."""
        self.check()
        return np.array([self.low, self.high])

    def bump(self, square: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Return the mean of exp(-A (u - c)²)."""
        return bumps.uniform(square, center)

    def check(self) -> None:
        """Raise if the interval is empty or infinite."""
        if not (isfinite(self.low) and isfinite(self.high)):
            got = "no value" if self.low > self.high else "infinite values"
            raise ValueError(
                f"column {self.name!r} must have finite values in the background for a uniform "
                f"law, got {got}; give domain={{{self.name!r}: (low, high)}}"
            )

    def merge(self, other: Interval) -> Interval:
        """Return the interval that holds both, unless the user fixed it."""
        if self.fixed:
            return self
        return Interval(min(self.low, other.low), max(self.high, other.high), self.name)


@dataclass(eq=False)
class Normal:
    """N(mean, scale²); a point if the scale is 0."""

    mean: float
    scale: float
    name: Any

    def ends(self) -> np.ndarray:
        """Return the numbers one standard deviation from the mean."""
        return np.array([self.mean - self.scale, self.mean + self.scale])

    def bump(self, square: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Return the mean of exp(-A (u - c)²)."""
        return bumps.normal(square, center)


@dataclass(eq=False)
class Levels:
    """Equal weight on the levels of a column."""

    levels: list
    name: Any

    def sampled(self) -> Levels:
        """Return itself."""
        return self

    @property
    def n_atoms(self) -> int:
        """The number of levels."""
        return len(self.levels)

    def quantile(self, u: np.ndarray) -> Any:
        """Return the level whose equal part of the unit interval holds u."""
        rows = np.minimum((u * len(self.levels)).astype(np.intp), len(self.levels) - 1)
        return frames.take_values(self.column(), rows)

    def nodes(self, points: int, rule: str) -> tuple[Any, np.ndarray]:
        """Return all levels, equally weighted."""
        return self.column(), np.full(len(self.levels), 1 / len(self.levels))

    def column(self) -> Any:
        """Return the levels as a column."""
        if not self.levels:
            raise ValueError(f"column {self.name!r} has no level in the background")
        return frames.as_column(self.levels)

    def merge(self, other: Levels) -> Levels:
        """Join the levels of two batches."""
        return Levels(list(dict.fromkeys([*self.levels, *other.levels])), self.name)


def uniform_law(background: Background, k: int, domain: dict) -> Interval | Levels:
    """Return the uniform law of a column: on its side of the domain, or on its levels."""
    name = background.names[k]
    if not background.levels[k] and not frames.is_number(background.X, k):
        raise ValueError(
            f"column {name!r} holds dates or durations, and uniform laws need numbers: give the "
            "model a number (such as days) in their place, or use ProductMarginal()"
        )
    if background.levels[k]:
        if k in domain:
            raise ValueError(f"domain must name columns of numbers, but {name!r} holds levels")
        return Levels(frames.distinct_levels(background.column(k)), name)
    if k in domain:
        low, high = domain[k]
        return Interval(low, high, name, fixed=True)
    values = frames.to_float(background.column(k))
    values = values[~np.isnan(values)]
    if len(values) == 0:  # another batch may have some
        return Interval(np.inf, -np.inf, name)
    return Interval(float(values.min()), float(values.max()), name)
