"""One-dimensional laws: the factors of product measures.

Laws know nothing of models: their masses by code and the means of a model's terms are in
`engines/laws.py`. Laws of numbers know the mean of exp(-A (u - c)²) in closed form, `bump(A, c)`, u
the number on a scale on which the raw numbers `ends()` are -1 and 1. For models that can only be
evaluated there is `sampled()`: it knows `quantile(u)`, values of the column from uniform numbers,
and `nodes(points, rule)`, values and weights; `n_atoms` is how many values it has, or None.
Laws that are learned from a background add up over batches with `merge`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from skattr import frames
from skattr.measures.background import Background
from skattr.measures.factors import bumps
from skattr.measures.factors.quadrature import rule_on
from skattr.storage import PicklableTable


@dataclass(eq=False)
class Empirical:
    """P_k: the background's own values, missing ones too."""

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
        """How many values there are."""
        return len(self.weights)

    def quantile(self, u: np.ndarray) -> Any:
        """Return the values at some levels of the distribution function."""
        levels = np.cumsum(self.weights)
        rows = np.searchsorted(levels[:-1], u * levels[-1], side="right")
        return frames.take_values(frames.column(self.kept.X, 0), rows)

    def nodes(self, points: int, rule: str) -> tuple[Any, np.ndarray]:
        """Return all values and their shares."""
        return frames.column(self.kept.X, 0), self.weights / self.weights.sum()

    def merge(self, other: Values) -> Values:
        """Add a batch."""
        table = frames.concatenate([self.kept.X, other.kept.X])
        return Values.of(table, np.concatenate([self.weights, other.weights]))


@dataclass(eq=False)
class Interval:
    """The uniform law on [low, high]; a point if they are equal."""

    low: float
    high: float
    name: Any
    given: bool = False  # by the user, so that batches do not widen it

    def sampled(self) -> Interval:
        """Return itself: it is small."""
        return self

    @property
    def n_atoms(self) -> int | None:
        """1 if it is a point."""
        return 1 if self.low == self.high else None

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """Return numbers between low and high."""
        self.check()
        return self.low * (1 - u) + self.high * u

    def nodes(self, points: int, rule: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes and weights of a quadrature rule."""
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
            has = "no value" if self.low > self.high else "infinite values"
            raise ValueError(
                f"column {self.name!r} has {has} in the background, so that nothing is uniform on "
                f"its range; give domain={{{self.name!r}: (low, high)}}"
            )

    def merge(self, other: Interval) -> Interval:
        """Widen the interval to a batch's."""
        if self.given:
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
        """Return itself: it is small."""
        return self

    @property
    def n_atoms(self) -> int:
        """How many levels there are."""
        return len(self.levels)

    def quantile(self, u: np.ndarray) -> Any:
        """Return levels, each for an equal part of the unit interval."""
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
        """Join a batch's levels."""
        return Levels(list(dict.fromkeys([*self.levels, *other.levels])), self.name)


def uniform_law(background: Background, k: int, domain: dict) -> Interval | Levels:
    """Return the uniform law of a column: on its side of the domain, or on its levels."""
    name = background.names[k]
    if background.levels[k]:
        if k in domain:
            raise ValueError(f"domain names column {name!r}, which has levels, not a range")
        return Levels(frames.distinct_levels(background.column(k)), name)
    if k in domain:
        low, high = domain[k]
        return Interval(low, high, name, given=True)
    values = frames.to_float(background.column(k))
    values = values[~np.isnan(values)]
    if len(values) == 0:  # another batch may have some
        return Interval(np.inf, -np.inf, name)
    return Interval(float(values.min()), float(values.max()), name)
