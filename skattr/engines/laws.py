"""One-dimensional laws on the cells and terms of a model: masses by code, means of terms.

Engines keep summaries of laws that add up over batches with `merge`: `as_masses` returns the one
that `masses` needs, `as_means` the one that `mean` needs. Laws in closed form are kept unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

import numpy as np
from scipy.special import ndtr

from skattr.engines import backgrounds
from skattr.measures.base import Measure
from skattr.measures.factors.laws import Empirical, Interval, Levels, Normal
from skattr.measures.factors.quadrature import mean_on
from skattr.pieces import Grid


class Inexact(ValueError):
    """Raised when a law cannot be integrated exactly behind the fitted steps of a model."""


@dataclass(eq=False)
class Counts:
    """The weights of the codes of a column, not normalised."""

    weights: np.ndarray

    def merge(self, other: Counts) -> Counts:
        """Add a batch."""
        return Counts(self.weights + other.weights)


@dataclass(eq=False)
class Total:
    """The weighted sum of a column's term, (k,), and the weight."""

    total: np.ndarray
    weight: float

    def merge(self, other: Total) -> Total:
        """Add a batch."""
        return Total(self.total + other.total, self.weight + other.weight)


def merge_components(a: list, b: list) -> list:
    """Join the laws of two batches of a mixture of products, [(π_c, one law per column)]."""
    return [
        (share, [one.merge(other) for one, other in zip(laws, more, strict=True)])
        for (share, laws), (_, more) in zip(a, b, strict=True)
    ]


@singledispatch
def as_masses(law: Any, grid: Grid) -> Any:
    """Return a law, or its summary that `masses` takes and batches can merge."""
    return law


@as_masses.register
def _count_codes(law: Empirical, grid: Grid) -> Counts:
    grid, codes = backgrounds.encode(law.background, grid)
    n_codes = grid.cells[law.k].n_codes
    return Counts(np.bincount(codes[law.k], weights=law.background.weights, minlength=n_codes))


@singledispatch
def masses(law: Any, grid: Grid, k: int) -> np.ndarray:
    """Return the mass of each code of column k, missing (code 0) first."""
    raise TypeError(f"masses by code are not known for {type(law).__name__}")


@masses.register
def _masses_of_counts(law: Counts, grid: Grid, k: int) -> np.ndarray:
    return law.weights / law.weights.sum()


@masses.register
def _masses_of_interval(law: Interval, grid: Grid, k: int) -> np.ndarray:
    """Return lengths over high - low."""
    law.check()
    if law.low == law.high:
        return _mass_of_point(law.low, grid, k)
    partition = grid.partition(k)
    if partition is None or not partition[0][0] <= law.low <= law.high <= partition[0][-1]:
        raise _not_ranges(law.name, "uniform")
    ends, codes = partition
    low, high = law.low / 2, law.high / 2  # so that the range does not overflow
    below = np.clip((ends / 2 - low) / (high - low), 0.0, 1.0)
    return np.bincount(codes, weights=np.diff(below), minlength=grid.cells[k].n_codes)


@masses.register
def _masses_of_normal(law: Normal, grid: Grid, k: int) -> np.ndarray:
    """Return differences of Φ, or of 1 - Φ right of the mean."""
    if law.scale == 0:
        return _mass_of_point(law.mean, grid, k)
    partition = grid.partition(k)
    if partition is None or np.isfinite(partition[0][[0, -1]]).any():
        raise _not_ranges(law.name, "normal")
    ends, codes = partition
    with np.errstate(over="ignore"):
        z = (ends - law.mean) / law.scale
    left, right = z[:-1], z[1:]
    beyond = left > 0
    mass = ndtr(np.where(beyond, -left, right)) - ndtr(np.where(beyond, -right, left))
    return np.bincount(codes, weights=mass, minlength=grid.cells[k].n_codes)


@masses.register
def _masses_of_levels(law: Levels, grid: Grid, k: int) -> np.ndarray:
    codes = grid.encode_values(k, law.column())
    return np.bincount(codes, minlength=grid.cells[k].n_codes) / len(law.levels)


def _mass_of_point(value: float, grid: Grid, k: int) -> np.ndarray:
    codes = grid.encode_values(k, np.array([value]))
    return np.bincount(codes, minlength=grid.cells[k].n_codes).astype(float)


def _not_ranges(name: Any, law: str) -> Inexact:
    return Inexact(
        f"column {name!r}: the fitted steps in front of the model do not turn ranges of it into "
        f"ranges, so that the {law} law on it is not known exactly"
    )


@singledispatch
def as_means(law: Any, pieces: Any) -> Any:
    """Return a law, or its summary that `mean` takes; pieces are additive or sums of products."""
    return law


@as_means.register
def _sum_term(law: Empirical, pieces: Any) -> Total:
    total = backgrounds.sum_terms(law.background, pieces)[law.k]
    return Total(total, float(law.background.weights.sum()))


@singledispatch
def mean(law: Any, pieces: Any, k: int) -> np.ndarray:
    """Return the mean of the model's term of column k."""
    raise TypeError(f"the mean is not known for {type(law).__name__}")


@mean.register
def _mean_of_total(law: Total, pieces: Any, k: int) -> np.ndarray:
    return law.total / law.weight


@mean.register
def _mean_of_interval(law: Interval, pieces: Any, k: int) -> np.ndarray:
    law.check()
    if law.low == law.high:
        return pieces.at_values(k, np.array([law.low]))[0]
    try:
        if not pieces.is_known(k):
            raise ArithmeticError("the fitted steps in front of the model are not known functions")
        return mean_on(partial(pieces.at_values, k), law.low, law.high, pieces.cuts(k))
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
        kind = Inexact if isinstance(error, ArithmeticError) else ValueError
        raise kind(
            f"column {law.name!r}: the mean of its term over the range {law.low} to {law.high} "
            f"is not known exactly ({error})"
        ) from error


@mean.register
def _mean_of_levels(law: Levels, pieces: Any, k: int) -> np.ndarray:
    return pieces.at_values(k, law.column()).mean(axis=0)


def why_inexact(measure: Measure, integrate: Callable[[Any, int], Any]) -> str | None:
    """Return why `integrate(law, k)` fails for a uniform law of a measure, or None.

    A measure that depends on the attribution alone has its laws in its members. A measure that has
    released the background was checked before.
    """
    if not measure.flat or measure.background_ is None:
        return None
    if measure.depends == "attribution":
        (measure,) = measure.members((tuple(range(len(measure.background_.names))),))
    try:
        for _, laws in measure.factors()[0]:
            for k, law in enumerate(laws):
                integrate(law, k)
    except Inexact as reason:
        return str(reason)
    return None
