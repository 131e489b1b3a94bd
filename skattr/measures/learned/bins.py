"""Bins of a column: the values that a conditional measure learned from rows distinguishes.

Numbers are cut at data values, so that a strictly increasing function of the column changes
nothing: bin b holds e_{b-1} < t <= e_b, the outer bins are unbounded (docs/mathematics.md, section
7). Cuts are even on the scale of normal scores of ranks: bins in the tails hold fewer rows. Levels,
and numbers if there are few, have a bin each. After these n bins, n is "missing" and n + 1 is "any
other", which has no rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from skattr._inputs import frames
from skattr.kernels import lookup
from skattr.measures.background import Background

TEMPER = 0.02  # of the mass at either end: keeps scores finite, and tails from being isolated
FEW = 10  # distinct numbers up to which each has a bin


@dataclass(eq=False)
class Bins:
    """The bins of one column."""

    name: Any
    n: int  # without "missing" and "any other"
    edges: np.ndarray | None = None  # (n - 1,) of a column of numbers,
    points: np.ndarray | None = None  # (n,) or the numbers themselves, if they are few;
    levels: list | None = None  # else the levels,
    numbers: np.ndarray | None = None  # and the bin of each

    @property
    def ordered(self) -> bool:
        """Whether neighbouring bins hold neighbouring numbers."""
        return self.edges is not None

    def of(self, values: Any) -> np.ndarray:
        """Return the bin of each value of a column."""
        if self.levels is not None:
            return self._of_levels(values)
        numbers = as_numbers(values, self.name)
        if self.points is not None:
            nearest = np.minimum(np.searchsorted(self.points, numbers), self.n - 1)
            other = np.where(np.isnan(numbers), self.n, self.n + 1)
            return np.where(self.points[nearest] == numbers, nearest, other)
        ranks = np.empty(len(numbers), np.int32)
        lookup.rank(numbers, self.edges, ranks)
        return np.where(ranks == 0, self.n, ranks - 1)  # rank 0 is missing

    def _of_levels(self, values: Any) -> np.ndarray:
        assert self.levels is not None and self.numbers is not None
        known = dict(zip(self.levels, self.numbers.tolist(), strict=True))
        first, kind = frames.distinct(values)
        bins = [
            self.n if frames.is_missing(value) else known.get(value, self.n + 1)
            for value in frames.to_list(frames.take_values(values, first))
        ]
        return np.array(bins, np.int64)[kind]

    def told_apart(self) -> list:
        """Return the values whose bin holds no range of numbers, but them or several levels."""
        if self.levels is not None:
            return self.levels
        return [] if self.points is None else self.points.tolist()

    def cuts(self) -> np.ndarray:
        """Return numbers c so that the bin of t only depends on which c are below t."""
        if self.edges is not None:
            return self.edges
        assert self.points is not None
        return np.union1d(self.points, np.nextafter(self.points, -np.inf))


def score(rank: Any) -> Any:
    """Return the normal score of a rank between 0 and 1."""
    return ndtri(TEMPER + (1 - 2 * TEMPER) * rank)


def rank_of(scores: np.ndarray) -> np.ndarray:
    """Return the ranks that have these normal scores."""
    return (ndtr(scores) - TEMPER) / (1 - 2 * TEMPER)


def as_numbers(values: Any, name: Any) -> np.ndarray:
    """Return a column of numbers or dates as float64, NaN where it is missing."""
    try:
        if isinstance(getattr(values, "dtype", None), pd.DatetimeTZDtype):
            values = values.dt.tz_convert(None)
        array = frames.to_array(values)
        if array.dtype.kind in "mM":  # in one unit, whatever that of the column
            micro = array.astype(f"{array.dtype.kind}8[us]")
            return np.where(np.isnat(array), np.nan, micro.astype(np.int64))
        return frames.to_float(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} must hold numbers: {error}") from error


def make_bins(background: Background, k: int, n_bins: int) -> tuple[Bins, np.ndarray]:
    """Return the bins of a column, and the bin of each row; raise if all values are missing.

    The most frequent levels have a bin each; if there are more than `n_bins`, the others share one.
    """
    name, values, weights = background.names[k], background.column(k), background.weights
    numbers = None if background.levels[k] else as_numbers(values, name)
    if numbers is not None:
        distinct = np.unique(numbers[~np.isnan(numbers)])
        _check_not_empty(name, distinct)
        if len(distinct) > FEW:
            bins = _cut(name, numbers, weights, distinct, n_bins)
        else:
            bins = Bins(name, len(distinct), points=distinct)
        return bins, bins.of(values)
    # in an order that does not depend on that of the rows
    levels = sorted(frames.distinct_levels(values), key=lambda v: (type(v).__name__, str(v)))
    _check_not_empty(name, levels)
    bins = Bins(name, len(levels), levels=levels, numbers=np.arange(len(levels)))
    rows = bins.of(values)
    if len(levels) <= n_bins:
        return bins, rows
    heavy = heaviest(np.bincount(rows, weights, len(levels))[: len(levels)])
    numbers = np.full(len(levels), n_bins - 1)
    numbers[heavy[: n_bins - 1]] = np.arange(n_bins - 1)
    bins = Bins(name, n_bins, levels=levels, numbers=numbers)
    return bins, bins.of(values)


def heaviest(mass: np.ndarray) -> np.ndarray:
    """Return the order of masses, the largest first; those equal up to rounding stay in order."""
    return np.argsort(-np.round(mass / mass.sum(), 9), kind="stable")


def _check_not_empty(name: Any, distinct: Any) -> None:
    if len(distinct) == 0:
        raise ValueError(
            f"column {name!r} is missing in every row of the background: nothing can be learned "
            "given its value; leave the column out, or use PartialDependence()"
        )


def _cut(
    name: Any, numbers: np.ndarray, weights: np.ndarray, distinct: np.ndarray, n_bins: int
) -> Bins:
    """Return bins between values that are about evenly spread on the scale of normal scores."""
    edges = distinct[:-1]
    if len(distinct) > n_bins:
        order = np.lexsort((weights, numbers))[: np.count_nonzero(~np.isnan(numbers))]
        mass = np.cumsum(weights[order])
        evenly = np.linspace(score(0.0), score(1.0), n_bins + 1)[1:-1]
        shares = rank_of(evenly) * mass[-1] * (1 - 1e-9)  # so that rounding does not add a row
        edges = np.unique(numbers[order][np.searchsorted(mass, shares, side="left")])
        edges = edges[edges < distinct[-1]]
    return Bins(name, len(edges) + 1, edges=edges)
