"""One-dimensional laws: the factors of product measures.

What an engine keeps of a law is small and adds up over batches with `merge`: `coded(grid)` knows
the mass of each code of a column, `masses(grid, k)`, code 0 (missing) first; `summed(pieces)` the
means of a column's terms in an additive model or in a sum of products, `mean(pieces, k)`. Laws of
numbers know them in closed form where the column enters as exp(-A (u - c)²), `bump(A, c)`, u the
number on a scale on which the raw numbers `ends()` are -1 and 1. For models that can only be
evaluated there is `sampled()`: it knows `quantile(u)`, values of the column from uniform numbers,
and `nodes(points, rule)`, values and weights; `n_atoms` is how many values it has, or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
from scipy.special import ndtr

from skattr import frames
from skattr.measures import bumps
from skattr.measures.background import Background
from skattr.measures.quadrature import mean_on, rule_on
from skattr.storage import Kept


class Inexact(ValueError):
    """Raised when a law cannot be integrated exactly behind the fitted steps of a model."""


@dataclass(eq=False)
class Empirical:
    """P_k: the background's own values, missing ones too."""

    background: Background
    k: int

    def coded(self, grid: Any) -> Counts:
        """Return the weight of each code."""
        grid, codes = self.background.seen(grid)
        codes, n_codes = codes[self.k], grid.cells[self.k].n_codes
        return Counts(np.bincount(codes, weights=self.background.weights, minlength=n_codes))

    def summed(self, pieces: Any) -> Total:
        """Return the sum of the column's term."""
        return Total(self.background.summed(pieces)[self.k], float(self.background.weights.sum()))

    def sampled(self) -> Values:
        """Return the distinct values and their weights."""
        return Values.of(frames.take_columns(self.background.X, [self.k]), self.background.weights)


@dataclass(eq=False)
class Values:
    """Distinct values of a column, sorted where they have an order, and their weights."""

    kept: Kept  # a table of one column
    weights: np.ndarray

    @classmethod
    def of(cls, table: Any, weights: np.ndarray) -> Values:
        """Join equal values of a table of one column."""
        first, kind = frames.distinct_rows(table, (0,))
        total = np.bincount(kind, weights=weights, minlength=len(first))
        order = frames.order_of(frames.take_values(frames.column(table, 0), first))
        return cls(Kept(frames.take_rows(table, first[order])), total[order])

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
class Counts:
    """The weights of the codes of a column, not normalised."""

    weights: np.ndarray

    def masses(self, grid: Any, k: int) -> np.ndarray:
        """Return the mass of each code."""
        return self.weights / self.weights.sum()

    def merge(self, other: Counts) -> Counts:
        """Add a batch."""
        return Counts(self.weights + other.weights)


@dataclass(eq=False)
class Total:
    """The weighted sum of a function, and the weight."""

    total: np.ndarray  # (k,)
    weight: float

    def mean(self, pieces: Any, k: int) -> np.ndarray:
        """Return the mean."""
        return self.total / self.weight

    def merge(self, other: Total) -> Total:
        """Add a batch."""
        return Total(self.total + other.total, self.weight + other.weight)


@dataclass(eq=False)
class Interval:
    """The uniform law on [low, high]; a point if they are equal."""

    low: float
    high: float
    name: Any
    given: bool = False  # by the user, so that batches do not widen it

    def coded(self, grid: Any) -> Interval:
        """Return itself: it is small."""
        return self

    def masses(self, grid: Any, k: int) -> np.ndarray:
        """Return the mass of each code: lengths over high - low."""
        self._check()
        n_codes = grid.cells[k].n_codes
        if self.low == self.high:
            codes = grid.encode_values(k, np.array([self.low]))
            return np.bincount(codes, minlength=n_codes).astype(float)
        partition = grid.partition(k)
        if partition is None or not partition[0][0] <= self.low <= self.high <= partition[0][-1]:
            raise _not_ranges(self.name, "uniform")
        ends, codes = partition
        low, high = self.low / 2, self.high / 2  # so that the range does not overflow
        below = np.clip((ends / 2 - low) / (high - low), 0.0, 1.0)
        return np.bincount(codes, weights=np.diff(below), minlength=n_codes)

    def summed(self, pieces: Any) -> Interval:
        """Return itself: it is small."""
        return self

    def mean(self, pieces: Any, k: int) -> np.ndarray:
        """Return the mean of a column's term."""
        self._check()
        if self.low == self.high:
            return pieces.at_values(k, np.array([self.low]))[0]
        try:
            if not pieces.is_known(k):
                raise ArithmeticError("nothing is known of the function in front of it")
            return mean_on(partial(pieces.at_values, k), self.low, self.high, pieces.cuts(k))
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            kind = Inexact if isinstance(error, ArithmeticError) else ValueError
            raise kind(
                f"column {self.name!r}: the mean over the range {self.low} to {self.high} of what "
                f"the model makes of it is not known exactly ({error})"
            ) from error

    def sampled(self) -> Interval:
        """Return itself: it is small."""
        return self

    @property
    def n_atoms(self) -> int | None:
        """1 if it is a point."""
        return 1 if self.low == self.high else None

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """Return numbers between low and high."""
        self._check()
        return self.low * (1 - u) + self.high * u

    def nodes(self, points: int, rule: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes and weights of a quadrature rule."""
        self._check()
        if self.low == self.high:
            return np.array([self.low]), np.ones(1)
        at, weights = rule_on(points, rule)
        return self.quantile(at), weights

    def ends(self) -> np.ndarray:
        """Return low and high."""
        self._check()
        return np.array([self.low, self.high])

    def bump(self, square: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Return the mean of exp(-A (u - c)²)."""
        return bumps.uniform(square, center)

    def _check(self) -> None:
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

    def coded(self, grid: Any) -> Normal:
        """Return itself: it is small."""
        return self

    def masses(self, grid: Any, k: int) -> np.ndarray:
        """Return the mass of each code: differences of Φ, or of 1 - Φ right of the mean."""
        n_codes = grid.cells[k].n_codes
        if self.scale == 0:
            codes = grid.encode_values(k, np.array([self.mean]))
            return np.bincount(codes, minlength=n_codes).astype(float)
        partition = grid.partition(k)
        if partition is None or np.isfinite(partition[0][[0, -1]]).any():
            raise _not_ranges(self.name, "normal")
        ends, codes = partition
        with np.errstate(over="ignore"):
            z = (ends - self.mean) / self.scale
        left, right = z[:-1], z[1:]
        beyond = left > 0
        mass = ndtr(np.where(beyond, -left, right)) - ndtr(np.where(beyond, -right, left))
        return np.bincount(codes, weights=mass, minlength=n_codes)

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

    def coded(self, grid: Any) -> Levels:
        """Return itself: it is small."""
        return self

    def masses(self, grid: Any, k: int) -> np.ndarray:
        """Return the mass of each code."""
        codes = grid.encode_values(k, self._column())
        return np.bincount(codes, minlength=grid.cells[k].n_codes) / len(self.levels)

    def summed(self, pieces: Any) -> Levels:
        """Return itself: it is small."""
        return self

    def mean(self, pieces: Any, k: int) -> np.ndarray:
        """Return the mean of a column's term."""
        return pieces.at_values(k, self._column()).mean(axis=0)

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
        return frames.take_values(self._column(), rows)

    def nodes(self, points: int, rule: str) -> tuple[Any, np.ndarray]:
        """Return all levels, equally weighted."""
        return self._column(), np.full(len(self.levels), 1 / len(self.levels))

    def _column(self) -> Any:
        if not self.levels:
            raise ValueError(f"column {self.name!r} has no level in the background")
        return frames.as_column(self.levels)

    def merge(self, other: Levels) -> Levels:
        """Join a batch's levels."""
        return Levels(list(dict.fromkeys([*self.levels, *other.levels])), self.name)


def _not_ranges(name: Any, law: str) -> Inexact:
    return Inexact(
        f"column {name!r}: the fitted steps in front of the model do not turn ranges of it into "
        f"ranges, so that the {law} law on it is not known exactly"
    )


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
