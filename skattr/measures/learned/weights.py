"""The weights of rows given a value: π_r(t) = ω_r κ[bin of t, bin of row r] (MATH.md, section 7).

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
from dataclasses import dataclass
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


class Totals(NamedTuple):
    """Sums over the rows of each bin of a column."""

    weight: np.ndarray  # (n + 1,) the sum of ω, "missing" last
    square: np.ndarray  # (n + 1,) the sum of (ω / weight)²
    ones: np.ndarray  # (n,) Σ_y S_s, S the sum of ω y over a bin, y indicators of other columns
    products: np.ndarray  # (n, n) Σ_y S_s S_s'


@dataclass(eq=False)
class Weights:
    """The learned weights of one column.

    The first axis of tables is the bin of t, (n + 2,), the second the bin of a row, (n + 1,).
    """

    bins: Bins
    local: float  # the bandwidth, the share of nearest rows, or λ
    support: np.ndarray  # (n + 2,) the effective number of rows, (Σ π)² / Σ π²
    table: Any  # κ, which includes the normaliser
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
    """Return the weights of a local linear fit with the kernel weights of `table`, normalised."""
    gap = positions - positions[:, None]
    mass, first, second = (((table * gap**p) @ weight)[:, None] for p in range(3))
    sloped = second / mass - (first / mass) ** 2 > FLAT
    return normalized(table * np.where(sloped, second - first * gap, 1.0), weight)


def leave_one_out(table: np.ndarray, totals: Totals, ordered: bool) -> float:
    """Return the squared error of predicting each row's indicators from all other rows."""
    weight = totals.weight[:-1]
    # a row of a bin weighs Σ ω² / Σ ω in the mean
    room = 1 - np.diag(table) * weight * totals.square[:-1]
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


def learn(
    bins: Bins, totals: Totals, estimator: str, local: float | None, grouped: bool
) -> Weights:
    """Return the weights of a column; `local` is learned if it is None."""
    weight = totals.weight[:-1]
    positions = scores(weight)
    family: Callable = match
    candidates: tuple = SMOOTHINGS
    if bins.ordered:
        family = nearest if estimator == "knn" else kernel
        candidates = SHARES if estimator == "knn" else BANDWIDTHS
    else:
        local = None  # λ is always learned

    def table_of(local: float) -> np.ndarray:
        table = family(positions, weight, local)[0]
        if bins.ordered and estimator == "local_linear" and np.isfinite(local):
            return tilted(table, positions, weight)
        return normalized(table, weight)

    if bins.n == 1 or (local is None and not totals.ones.any()):
        local = candidates[-1]
    if local is None:
        errors = np.array([leave_one_out(table_of(c), totals, bins.ordered) for c in candidates])
        errors[~np.isfinite(errors)] = np.inf  # weights whose squares overflow
        good = errors <= errors.min() + EQUAL * totals.ones.sum()
        local = float(candidates[np.flatnonzero(good)[-1]])  # the least local of the best
    any_row, n = 1 / totals.weight.sum(), bins.n
    missing = 1 / totals.weight[n] if totals.weight[n] > 0 else any_row
    table = _complete(table_of(local), totals, 0.0, missing, any_row)
    result = Weights(bins, local, 1 / ((table * totals.weight) ** 2 @ totals.square), table)
    if grouped:
        factor, distance = family(positions, weight, local)
        result.kernel = _complete(factor, totals, 0.0, 1.0, 1.0)
        result.distance = _complete(distance, totals, APART, 0.0, 0.0)
    return result


def _complete(
    inner: np.ndarray, totals: Totals, beside: float, missing: float, other: float
) -> np.ndarray:
    """Add the bins "missing" and "any other" to a table."""
    n = len(inner)
    result = np.full((n + 2, n + 1), beside)
    result[:n, :n] = inner
    if totals.weight[n] > 0:
        result[n, n] = missing
    else:
        result[n] = other
    result[n + 1] = other
    return result


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
