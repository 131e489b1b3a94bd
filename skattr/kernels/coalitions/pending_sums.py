"""Sums of several twigs that are added to the values of rows together.

Values of thousands of rows do not fit in the nearest cache, and are read and written once for up to
four twigs. Each row still gets its sums one by one in the order of the twigs, so that its bits do
not depend on when they are added.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.compiled import called, inlined
from skattr.kernels.lines.vectors import load, spread, store, times_plus

TWIGS = 4
SUMS = 2048  # sums that wait, unless one twig has more


class Pending(NamedTuple):
    """Sums of twigs whose keys all rows have."""

    sums: np.ndarray  # (sums, values of a row)
    places: np.ndarray  # (TWIGS, n) the sums of each row
    used: np.ndarray  # (2,) the number of twigs, and of their sums; 0 when nothing waits


def most_sums(n):
    """Return the number of sums that there must be space for, for n rows."""
    return min(TWIGS * n, max(n, SUMS))


@inlined
def reserve(out, pending, n):
    """Return the place of the first of n new sums; add those that wait if there is no space."""
    sums, _, used = pending
    if used[0] == TWIGS or used[1] + n > sums.shape[0]:
        add_pending(out, pending)
    return used[1]


@called
def add_pending(out, pending):
    """Add what waits to the values of all rows."""
    sums, places, used = pending
    n_twigs, size = used[0], out.shape[1]
    used[0] = used[1] = 0
    if n_twigs == 0:
        return
    one = spread(1.0)
    if size == 16 and n_twigs == TWIGS:
        for i in range(out.shape[0]):
            low, high = load(out, 16 * i), load(out, 16 * i + 8)
            for t in range(TWIGS):
                at = 16 * np.int64(places[np.uint64(t), np.uint64(i)])
                low = times_plus(one, load(sums, at), low)
                high = times_plus(one, load(sums, at + 8), high)
            store(out, 16 * i, low)
            store(out, 16 * i + 8, high)
        return
    for i in range(out.shape[0]):
        for c in range(0, size, 8):
            total = load(out, size * i + c)
            for t in range(n_twigs):
                at = size * np.int64(places[np.uint64(t), np.uint64(i)]) + c
                total = times_plus(one, load(sums, at), total)
            store(out, size * i + c, total)


@inlined
def add_to_rows(out, sums, first, place_of, ids, n):
    """Add sums to the values of the listed rows, at once."""
    one, size = spread(1.0), out.shape[1]
    for i in range(n):
        row = size * np.int64(ids[i])
        at = size * (first + np.int64(place_of[i]))
        for c in range(0, size, 8):
            store(out, row + c, times_plus(one, load(sums, at + c), load(out, row + c)))
