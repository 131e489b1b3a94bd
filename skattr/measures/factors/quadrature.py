"""The mean of a function of one number over an interval, to rounding.

Gauss-Legendre on panels. A panel is done when the sum of its halves agrees with it; else it is
halved. Smooth functions take a few rounds; kinks and jumps are bisected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
AGREE = 1e-13  # of the largest value, for each panel
ROUNDS = 64
PANELS = 128  # at first, so that narrow features are not missed
PANEL = 32  # nodes per panel of a rule
MOST = 4096  # panels of a round: functions with a few kinks and jumps have fewer


@lru_cache(maxsize=64)
def rule_on(points: int, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the read-only nodes and weights of a rule on [0, 1].

    Gauss-Legendre with many points is made of panels.
    """
    if rule != "gauss":
        shift = 0.0 if rule == "left" else 0.5
        result = (np.arange(points) + shift) / points, np.full(points, 1 / points)
    else:
        sizes = [len(part) for part in np.array_split(np.arange(points), -(-points // PANEL))]
        ends = np.cumsum([0, *sizes]) / points
        panels = [np.polynomial.legendre.leggauss(size) for size in sizes]
        widths = np.repeat(np.diff(ends), sizes)
        nodes = (
            np.repeat(ends[:-1], sizes) + widths * (np.concatenate([n for n, _ in panels]) + 1) / 2
        )
        result = nodes, widths * np.concatenate([w for _, w in panels]) / 2
    for array in result:
        array.flags.writeable = False
    return result


def mean_on(function: Callable, low: float, high: float, cuts: np.ndarray) -> np.ndarray:
    """Return the mean of a function, numbers (m,) → (m, k), on [low, high].

    `cuts` are numbers where it may jump. ArithmeticError if the panels do not come to agree.
    """
    inner = cuts[(low < cuts) & (cuts < high)]
    steps = np.linspace(0.0, 1.0, PANELS + 1)
    ends = np.unique(np.concatenate([low * (1 - steps) + high * steps, inner]))  # never overflows
    left, right = ends[:-1], ends[1:]
    whole, size = _integrals(function, left, right, low, high)
    total = np.zeros(whole.shape[1])
    for _ in range(ROUNDS):
        middle = left / 2 + right / 2
        halves, largest = _integrals(function, np.r_[left, middle], np.r_[middle, right], low, high)
        size = np.maximum(size, largest)
        first, second = np.split(halves, 2)
        done = (np.abs(first + second - whole) <= AGREE * size).all(axis=1)
        total += (first + second)[done].sum(axis=0)
        if done.all():
            return total
        if (~done).sum() > MOST:
            break
        left, right = np.r_[left[~done], middle[~done]], np.r_[middle[~done], right[~done]]
        whole = np.r_[first[~done], second[~done]]
    raise ArithmeticError("the integral does not settle")


def _integrals(
    function: Callable, left: np.ndarray, right: np.ndarray, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the integrals over panels, (n_panels, k), as shares of [low, high], and max |f|."""
    share = (right / 2 - left / 2) / (high / 2 - low / 2)
    points = left[:, None] + (NODES + 1) * (right / 2 - left / 2)[:, None]
    values = function(points.ravel()).reshape(*points.shape, -1)
    if not np.isfinite(values).all():
        raise ArithmeticError("the function is not finite")
    return share[:, None] * np.einsum("n,pnk->pk", WEIGHTS / 2, values), np.abs(values).max((0, 1))
