"""The weights of rows given a value: π_r(t) = ω_r κ[bin of t, bin of row r].

See docs/mathematics.md, section 7.

κ compares the normal scores of the mid-ranks of bins. On the ranks themselves a window in the tails
is too wide, as values lie far apart there; scores halve the error, and are as invariant.

A family of tables κ has one parameter, how local it is. It is chosen by leave-one-out error on
indicator functions of the other columns, never on f. κ is linear in the rows, so that its diagonal
is enough to leave a row out:

    prediction without row r = (Σ_s κ_{Bs} S_s - κ_{BB} ω_r y_r) / (1 - κ_{BB} ω_r),  B its bin,

S_s the sum of ω y over bin s. Its squared error, summed over rows and indicators y, is made of sums
over bins, Σ_y S_B S_s among them: O(bins³) per candidate, for any number of rows and indicators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from skattr.measures.learned.bins import Bins, score

BANDWIDTHS = (*np.geomspace(0.04, 6.0, 24).tolist(), np.inf)  # on the scale of normal scores
SHARES = (*np.geomspace(0.01, 0.9, 20).tolist(), 1.0)  # of the rows, for nearest neighbours
SMOOTHINGS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
APART = 1e3  # the distance of levels that differ, and of missing, for groups
FLAT = 1e-12  # the variance of scores below which no slope is learned
EQUAL = 1e-10  # errors that differ by less, relative to all there is to predict
ALONE = 1e-9  # share of the weight below which no other row is left


class NoWeightError(ValueError):
    """Raised if the weights of rows have no positive sum, given some value of a column.

    Parameters
    ----------
    name : label
        The column.
    estimator : str
        How the law was learned.
    """

    def __init__(self, name: Any, estimator: str) -> None:
        super().__init__(name, estimator)

    def __str__(self) -> str:
        name, estimator = self.args
        return (
            f"Conditional({estimator!r}): given {name!r}, the weights of all rows do not have a "
            "positive sum, as the law was learned from other rows; use Conditional('kernel'), "
            "whose weights are never negative"
        )


class Masses(NamedTuple):
    """Sums over the rows of each bin of a column; "missing" and "any other" are the last bins."""

    weight: np.ndarray  # (n + 2,) the sum of ω
    square: np.ndarray  # (n + 2,) the sum of (ω / weight)²

    @classmethod
    def of(cls, rows: np.ndarray, weight: np.ndarray, n: int) -> Masses:
        """Return the sums over rows, given the bin and the weight of each."""
        total = np.bincount(rows, weight, n + 2)
        # relative to the bin, so that no square of a small weight is 0
        return cls(total, np.bincount(rows, (weight / total[rows]) ** 2, n + 2))

    def merge(self, other: Masses) -> Masses:
        """Return the sums over the rows of both."""
        weight = self.weight + other.weight
        some = np.where(weight > 0, weight, 1.0)
        a, b = self.weight / some, other.weight / some
        return Masses(weight, self.square * a**2 + other.square * b**2)


class Totals(NamedTuple):
    """Sums over the rows of each bin of a column, from which its weights are learned."""

    masses: Masses
    ones: np.ndarray  # (n,) Σ_y S_s, S the sum of ω y over a bin, y indicators of other columns
    products: np.ndarray  # (n, n) Σ_y S_s S_s'


@dataclass(eq=False)
class Weights:
    """The weights of one column: a learned law, and tables that depend on the masses of all rows.

    The first axis of tables is the bin of t, (n + 2,), the second the bin of a row, (n + 2,). They
    are None before `settle`.
    """

    bins: Bins
    local: float  # the bandwidth, the share of nearest rows, or λ
    mass: np.ndarray  # (n,) of the bins of the rows from which the law was learned
    norm: Any = None  # (n + 2,) the normaliser: the sum of ω κ over all rows, κ as in `raw_table`
    table: Any = None  # κ of rows whose weights sum to 1, which includes the normaliser
    support: Any = None  # (n + 2,) the effective number of rows, (Σ π)² / Σ π²
    kernel: Any = None  # for groups: not normalised, never negative
    distance: Any = None  # for groups: in bandwidths, to find the nearest if no row has weight


def scores(weight: np.ndarray) -> np.ndarray:
    """Return the normal scores of the mid-ranks of bins."""
    return score((np.cumsum(weight) - weight / 2) / weight.sum())


def kernel(positions: np.ndarray, weight: np.ndarray, bandwidth: float) -> tuple:
    """Return K(u) = max(1 - u², 0) and u, the distances in bandwidths."""
    with np.errstate(over="ignore"):  # of tiny bandwidths
        u = np.abs(positions[:, None] - positions) / bandwidth
        return np.maximum(1 - u**2, 0.0), u


def nearest(positions: np.ndarray, weight: np.ndarray, share: float) -> tuple:
    """Return 1 on the nearest bins that have a share of the weight together, and u."""
    gap = np.abs(positions[:, None] - positions)
    order = np.argsort(gap, axis=1, kind="stable")
    mass = np.cumsum(weight[order], axis=1)
    enough = np.argmax(mass >= share * weight.sum() * (1 - 1e-12), axis=1)
    radius = np.take_along_axis(gap, order, 1)[np.arange(len(positions)), enough]
    u = gap / np.maximum(radius, 1e-300)[:, None]
    return (gap <= radius[:, None] * (1 + 1e-9)).astype(float), u


def match(positions: np.ndarray, weight: np.ndarray, smoothing: float) -> tuple:
    """Return 1 on the same level and λ on all others, and how far they are."""
    same = np.eye(len(positions))
    return smoothing + (1 - smoothing) * same, APART * (1 - same)


def normalized(table: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return a table whose weights sum to 1 for each bin of t."""
    return table / (table @ weight)[:, None]


def tilted(table: np.ndarray, positions: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weights of a local linear fit with the kernel weights of `table`."""
    gap = positions - positions[:, None]
    mass, first, second = (((table * gap**p) @ weight)[:, None] for p in range(3))
    sloped = second / mass - (first / mass) ** 2 > FLAT
    return table * np.where(sloped, second - first * gap, 1.0)


def leave_one_out(table: np.ndarray, totals: Totals, ordered: bool) -> float:
    """Return the squared error of predicting each row's indicators from all other rows."""
    n = len(table)
    weight, square = (sums[:n] for sums in totals.masses)
    # a row of a bin weighs Σ ω² / Σ ω in the mean
    room = 1 - np.diag(table) * weight * square
    alone = np.flatnonzero(room <= ALONE)
    if len(alone):
        table = table.copy()
        table[alone] = _without(alone, weight, ordered)
        room[alone] = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        fitted = table @ totals.products
        errors = totals.ones - 2 * np.diag(fitted) + weight * (fitted * table).sum(axis=1)
        return float((errors / room**2).sum())


def _without(alone: np.ndarray, weight: np.ndarray, ordered: bool) -> np.ndarray:
    """Return the weights of neighbouring bins, or of all other levels, where no row has weight."""
    bins = np.arange(len(weight))
    apart = np.abs(bins - alone[:, None])
    return normalized(((apart == 1) if ordered else (apart > 0)).astype(float), weight)


def _family(bins: Bins, estimator: str) -> tuple[Callable, tuple]:
    """Return a family of tables, and the candidates of its parameter."""
    if not bins.ordered:
        return match, SMOOTHINGS
    return (nearest, SHARES) if estimator == "knn" else (kernel, BANDWIDTHS)


def learn(bins: Bins, totals: Totals, estimator: str, local: float | None) -> Weights:
    """Return the law of a column; `local` is learned if it is None."""
    mass = totals.masses.weight[: bins.n]
    _, candidates = _family(bins, estimator)
    if not bins.ordered:
        local = None  # λ is always learned
    if bins.n == 1 or (local is None and not totals.ones.any()):
        local = candidates[-1]
    if local is None:
        laws = (Weights(bins, c, mass) for c in candidates)
        tables = (normalized(_inner(law, estimator), mass) for law in laws)
        errors = np.array([leave_one_out(table, totals, bins.ordered) for table in tables])
        errors[~np.isfinite(errors)] = np.inf  # weights whose squares overflow
        good = errors <= errors.min() + EQUAL * totals.ones.sum()
        local = float(candidates[np.flatnonzero(good)[-1]])  # the least local of the best
    return Weights(bins, local, mass)


def _inner(column: Weights, estimator: str) -> np.ndarray:
    """Return κ of a law up to the normaliser of each bin of t, without the last bins, (n, n)."""
    positions, mass = scores(column.mass), column.mass
    family, _ = _family(column.bins, estimator)
    table = family(positions, mass, column.local)[0]
    if column.bins.ordered and estimator == "local_linear" and np.isfinite(column.local):
        return tilted(table, positions, mass)
    return table


def raw_table(column: Weights, estimator: str) -> np.ndarray:
    """Return κ of a law up to the normaliser of each bin of t, (n + 2, n + 2).

    "missing" selects the rows where the column is missing, "any other" all rows. A row in the bin
    "any other", whose value the law does not know, has the weight of another level.
    """
    return _complete(_inner(column, estimator), 0.0, _unknown(column), 0.0, 1.0)


def settle(column: Weights, masses: Masses, estimator: str, joint: bool) -> Weights:
    """Return a column with its tables, given the masses of all rows.

    `joint` adds what groups need.
    """
    some = masses.weight[-2] > 0
    table = _without_missing(raw_table(column, estimator), some)
    norm = table @ masses.weight
    if not (norm > 0).all():
        raise NoWeightError(column.bins.name, estimator)
    table *= (masses.weight.sum() / norm)[:, None]
    share = masses.weight / masses.weight.sum()
    support = 1 / ((table * share) ** 2 @ masses.square)
    column = replace(column, norm=norm, table=table, support=support)
    if not joint:
        return column
    family, _ = _family(column.bins, estimator)
    factor, distance = family(scores(column.mass), column.mass, column.local)
    kernel = _complete(factor, 0.0, _unknown(column), 0.0, 1.0)
    distance = _complete(distance, APART, APART, APART, 0.0)
    return replace(
        column,
        kernel=_without_missing(kernel, some),
        distance=_without_missing(distance, some),
    )


def _unknown(column: Weights) -> float:
    """Return the weight of rows whose value the law does not know; every number is in a bin."""
    return 0.0 if column.bins.ordered else column.local


def _complete(
    inner: np.ndarray, missing: float, other: float, beside: float, same: float
) -> np.ndarray:
    """Add the bins "missing" and "any other" to a table.

    `missing` and `other` are the entries of rows in these bins, `beside` those of t missing and
    rows that are not, `same` those of t missing and such rows, and of any other t.
    """
    n = len(inner)
    result = np.full((n + 2, n + 2), same)
    result[:n, :n] = inner
    result[:n, n], result[:n, n + 1] = missing, other
    result[n] = beside
    result[n, n] = same
    return result


def _without_missing(table: np.ndarray, some: bool) -> np.ndarray:
    """Return a table in which a missing t is "any other" t, unless some rows are missing too."""
    if not some:
        table[-2] = table[-1]
    return table


def joint(
    columns: list[Weights], at: np.ndarray, rows: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return the weights of rows for a group: the product of its members' kernels, normalised.

    at (g,) are the bins of t, rows (g, n) those of the rows. If no row has weight, because no row
    is near such a combination, the nearest rows get it.
    """
    result = weight.copy()
    for column, b, s in zip(columns, at, rows, strict=True):
        result *= column.kernel[b][s]
    if not result.any():
        far = sum(column.distance[b][s] for column, b, s in zip(columns, at, rows, strict=True))
        result = weight * (far <= np.min(far) * (1 + 1e-9))
    return result / result.sum()
