"""Sums of piecewise linear functions, from a middle outward, with kinks and jumps in order.

There are N kinks of functions that belong to one of S kinds each, and a table that says how much a
kind counts in the middle and behind each of E edges: there the sum jumps. All is counted from the
middle, in one direction. Values and slopes are summed with what rounding takes away, so that many
small changes lose no more than a few.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _plus(total, i, o, x):
    """Add x to total[:, i, o], a number and what rounding took away from it."""
    before = total[0, i, o]
    after = before + x
    big, small = (before, x) if abs(before) >= abs(x) else (x, before)
    total[0, i, o] = after
    total[1, i, o] += (big - after) + small


@njit(cache=True, nogil=True)
def _weighted(row, total, out):
    """Fill out with the sum of all kinds, weighted by a row of the table."""
    for o in range(out.shape[2]):
        out[0, 0, o] = out[1, 0, o] = 0.0
        for i in range(len(row)):
            if row[i] != 0.0:
                _plus(out, 0, o, row[i] * (total[0, i, o] + total[1, i, o]))


@njit(cache=True, nogil=True)
def _move(values, slopes, i, distance):
    for o in range(values.shape[2]):
        _plus(values, i, o, (slopes[0, i, o] + slopes[1, i, o]) * distance)


@njit(cache=True, nogil=True)
def _write(where, place, value, slope, places, values, slopes):
    """Write down where the sum is, and its slope from there on."""
    places[where] = place
    for o in range(value.shape[2]):
        values[where, o] = value[0, 0, o] + value[1, 0, o]
        slopes[where, o] = slope[0, 0, o] + slope[1, 0, o]


@njit(cache=True, nogil=True)
def sweep(kinks, rises, kinds, edges, table, value, slope, places, values, slopes, ends):
    """Sum up from the middle outward; return how many places were written.

    `value` and `slope` (S, k) are those of the kinds in the middle, `kinks` and `edges` are sorted.
    The middle is place 0. An edge writes two places, before and behind its jump, `ends` gets the
    first of them. Kinks that count for nothing where they are write none.
    """
    S, k = value.shape
    V, R = np.zeros((2, S, k)), np.zeros((2, S, k))  # of the kinds, R the slopes
    V[0], R[0] = value, slope
    at = np.zeros(S)  # how far the kinds are
    v, r = np.zeros((2, 1, k)), np.zeros((2, 1, k))  # of the sum
    _weighted(table[0], V, v)
    _weighted(table[0], R, r)
    _write(0, 0.0, v, r, places, values, slopes)
    n, here, edge = 1, 0.0, 0
    for j in range(len(kinks) + 1):
        kink = kinks[j] if j < len(kinks) else np.inf
        while edge < len(edges) and edges[edge] <= kink:
            _move(v, r, 0, edges[edge] - here)
            here = edges[edge]
            ends[edge] = n
            _write(n, here, v, r, places, values, slopes)
            for i in range(S):
                _move(V, R, i, here - at[i])
                at[i] = here
            edge += 1
            _weighted(table[edge], V, v)
            _weighted(table[edge], R, r)
            _write(n + 1, here, v, r, places, values, slopes)
            n += 2
        if j == len(kinks):
            break
        i = kinds[j]
        share = table[edge, i]
        if share != 0.0:
            _move(v, r, 0, kink - here)
            here = kink
            for o in range(k):
                _plus(r, 0, o, share * rises[j, o])
            _write(n, here, v, r, places, values, slopes)
            n += 1
        if len(edges):
            _move(V, R, i, kink - at[i])
            at[i] = kink
            for o in range(k):
                _plus(R, i, o, rises[j, o])
    return n
