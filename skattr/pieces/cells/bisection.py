"""Bisection over floating-point numbers: where a function of one number jumps, to the last bit.

`rank` maps an array of numbers to integers, 0 where it is not defined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rank = Callable[[np.ndarray], np.ndarray]
PROBES = 257  # points at which a function that is not proved monotone is checked
TINY = 5e-324  # the least positive number: some steps accept positive numbers only
LIMITS = (np.finfo(np.float64).max, 1e100, 1e30, 1e15, 1e9, 1e6)


def jumps(rank: Rank, low: float, high: float) -> np.ndarray:
    """Return the largest numbers below each jump of a monotone function on [low, high]."""
    ends = rank(np.array([low, high]))
    bounds = np.arange(min(ends), max(ends))  # a jump from <= bound to > bound, or back
    below = np.full(len(bounds), _key(np.array([low]))[0])
    above = np.full(len(bounds), _key(np.array([high]))[0])
    rising = ends[0] <= ends[1]
    while (below + 1 < above).any():
        middle = below // 2 + above // 2 + (below % 2 + above % 2) // 2
        left = (rank(_unkey(middle)) <= bounds) == rising
        below = np.where(left, middle, below)
        above = np.where(left, above, middle)
    return np.unique(_unkey(below))


def _key(values: np.ndarray) -> np.ndarray:
    """Return the ranks of floats among all floats."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, -(bits & np.iinfo(np.int64).max), bits)


def _unkey(keys: np.ndarray) -> np.ndarray:
    """Return the floats of these ranks."""
    bits = np.where(keys < 0, -keys | np.iinfo(np.int64).min, keys)
    return bits.view(np.float64)


def between(ends: np.ndarray) -> np.ndarray:
    """Return a point of each interval between ends; intervals are closed on the right."""
    inside = ends[1:].copy()
    if np.isinf(inside[-1]):
        with np.errstate(over="ignore"):  # above the largest number is inf itself
            inside[-1] = 0.0 if np.isinf(ends[-2]) else np.nextafter(ends[-2], np.inf)
    return inside


def last_rounded(cuts: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Return the largest float64 numbers whose float32 (or float16) is still <= each cut."""
    with np.errstate(over="ignore"):
        low = cuts.astype(kind)
        low = np.where(low > cuts, np.nextafter(low, kind.type(-np.inf)), low)
        high = np.nextafter(low, kind.type(np.inf))
        middle = low + (high.astype(np.float64) - low) / 2  # or one below: ties go to the even one
        goes = middle.astype(kind) <= low
    last = np.where(goes, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(cuts) & np.isfinite(high), last, cuts)


def monotone_ends(rank: Rank, accepted: Rank, start: float) -> np.ndarray:
    """Return the ends of the intervals on which a function is constant.

    The function must be monotone; a ValueError says that it was seen not to be. Where it is not
    defined, as the logarithm of negative numbers, there is no interval. The search for a point
    where it is defined begins at `start`. `accepted` is the same function, but also 0 beside such
    numbers where its value is refused, as the logarithm of 0 may be.
    """
    low, high = reach(rank, start)
    tried = (start, 1.0, 1e3, 1e6, -1.0, -1e3, -1e6)
    defined = [x for x in tried if low <= x <= high and rank(np.array([x]))[0]]
    if not defined:
        raise ValueError("there is no number to start from")
    start = defined[0]
    valid = rank(np.array([low, high])) > 0
    if not valid[0]:
        low = np.nextafter(jumps(lambda v: np.minimum(accepted(v), 1), low, start)[0], np.inf)
    if not valid[1]:
        high = jumps(lambda v: np.minimum(accepted(v), 1), start, high)[0]
    cuts = jumps(rank, low, high)
    spread = np.concatenate([np.linspace(-1, 1, PROBES) * size for size in (1, 1e3, 1e6)])
    inner = np.linspace(cuts[0], cuts[-1], PROBES) if len(cuts) else np.empty(0)
    points = np.sort(np.concatenate([spread, inner, cuts, np.nextafter(cuts, np.inf)]))
    seen = rank(points[(points >= low) & (points <= high)])
    steps = np.diff(seen)
    if not seen.all() or ((steps < 0).any() and (steps > 0).any()):
        raise ValueError("the function is not monotone")
    first = -np.inf if valid[0] and low < 0 else np.nextafter(low, -np.inf)
    return np.r_[first, cuts, np.inf if valid[1] else high]


def reach(rank: Rank, start: float) -> tuple[float, float]:
    """Return the least and the largest of the numbers to try that are not refused."""
    low = next((-limit for limit in (*LIMITS, -TINY) if _is_accepted(rank, -limit)), start)
    return low, next((limit for limit in LIMITS if _is_accepted(rank, limit)), start)


def _is_accepted(rank: Rank, x: float) -> bool:
    try:
        rank(np.array([x]))
    except (TypeError, ValueError):
        return False
    return True
