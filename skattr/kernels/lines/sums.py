"""Sums of piecewise linear functions, from a middle outward, with kinks and jumps in order.

There are N kinks of functions that belong to one of S kinds each, and a table that says how much a
kind counts in the middle and behind each of E edges: there the sum jumps. Sums of
values and slopes are compensated, so that rounding does not grow with the number of changes.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.compiled import inlined, kernel
from skattr.kernels.lines.keys import as_key, row_of
from skattr.kernels.lines.vectors import number


class Segments(NamedTuple):
    """A piecewise linear function: segment i lies between knots i - 1 and i."""

    knots: np.ndarray  # (M,)
    values: np.ndarray  # (M, k)
    slopes: np.ndarray  # (M + 1, k)


class Totals(NamedTuple):
    """Values and slopes of functions, each a number and what rounding took away from it."""

    value: np.ndarray  # (2, S, k)
    slope: np.ndarray  # (2, S, k)
    at: np.ndarray  # (S,) where they are


@inlined
def _plus(total, i, o, x):
    """Add x to total[:, i, o], a number and what rounding took away from it."""
    before = total[0, i, o]
    after = before + x
    part = after - before
    total[0, i, o] = after
    total[1, i, o] += (before - (after - part)) + (x - part)


@inlined
def _weighted(table, row, total, out):
    """Fill out with the sum of all kinds, weighted by a row of the table."""
    for o in range(out.shape[2]):
        out[0, 0, o] = out[1, 0, o] = 0.0
        for i in range(table.shape[1]):
            if table[row, i] != 0.0:
                _plus(out, 0, o, table[row, i] * (total[0, i, o] + total[1, i, o]))


@inlined
def _move(values, slopes, i, distance):
    for o in range(values.shape[2]):
        _plus(values, i, o, (slopes[0, i, o] + slopes[1, i, o]) * distance)


@inlined
def _write(segments, center, side, n, distance, value, slope):
    """Write down the n-th knot to one side of the center, and the slope behind it."""
    knot = center + side * n
    segments.knots[knot] = side * distance
    behind = knot + 1 if side > 0 else knot
    for o in range(value.shape[2]):
        segments.values[knot, o] = value[0, 0, o] + value[1, 0, o]
        segments.slopes[behind, o] = side * (slope[0, 0, o] + slope[1, 0, o])


def sweep(positions, rise, kind, split, side, edges, table, value, slope, segments, center, ends):
    """Sum up from the middle to one side; return how many knots were written there.

    Kinks at `positions`, in order, with the `rise` (N, k) of the slope; `split` of them are left of
    the middle. `edges` are distances from the middle in order, `value` and `slope` (S, k) those of
    the kinds in the middle, as seen in this direction. The middle is knot `center`. An edge writes
    two knots, before and behind its jump, `ends` gets the number of the first. Kinks that count for
    nothing where they are write none.
    """
    S, k = value.shape
    kinds = Totals(*np.zeros((2, 2, S, k)), np.zeros(S))
    kinds.value[0], kinds.slope[0] = value, slope
    whole = Totals(*np.zeros((2, 2, 1, k)), np.zeros(1))
    return _sweep(
        positions, rise, kind, split, side, edges, table, segments, center, ends, kinds, whole
    )


@kernel
def _sweep(positions, rise, kind, split, side, edges, table, segments, center, ends, kinds, whole):
    V, R, at = kinds
    v, r, _ = whole
    S, k = V.shape[1], V.shape[2]
    _weighted(table, 0, V, v)
    _weighted(table, 0, R, r)
    _write(segments, center, side, 0, 0.0, v, r)
    n, here, edge = 0, 0.0, 0
    first, count = (split, len(positions) - split) if side > 0 else (split - 1, split)
    for j in range(count + 1):
        at_kink = first + side * j
        kink = abs(positions[at_kink]) if j < count else np.inf
        while edge < len(edges) and edges[edge] <= kink:
            _move(v, r, 0, edges[edge] - here)
            here = edges[edge]
            _write(segments, center, side, n + 1, here, v, r)
            ends[edge] = n + 1
            for i in range(S):
                _move(V, R, i, here - at[i])
                at[i] = here
            edge += 1
            _weighted(table, edge, V, v)
            _weighted(table, edge, R, r)
            _write(segments, center, side, n + 2, here, v, r)
            n += 2
        if j == count:
            break
        i = kind[at_kink]
        share = table[edge, i]
        if share != 0.0:
            _move(v, r, 0, kink - here)
            here = kink
            for o in range(k):
                _plus(r, 0, o, share * rise[at_kink, o])
            n += 1
            _write(segments, center, side, n, here, v, r)
        if len(edges):
            _move(V, R, i, kink - at[i])
            at[i] = kink
            for o in range(k):
                _plus(R, i, o, rise[at_kink, o])
    return n


@kernel
def sweep_one_kind(knots, values, slopes, center, side, value, slope):
    """Do the same for one kind that counts 1 everywhere, several times as fast.

    The knots are there, and where the slopes behind them will be their rises are.
    """
    n = len(knots) - 1 - center if side > 0 else center
    behind = 1 if side > 0 else 0
    for o in range(len(value)):
        v, r, here = value[o], side * slope[o], 0.0
        lost_v = lost_r = 0.0  # what rounding took away
        values[center, o], slopes[center + behind, o] = v, slope[o]
        for j in range(1, n + 1):
            knot = center + side * j
            kink = abs(knots[knot])
            x = (r + lost_r) * (kink - here)
            here = kink
            after = v + x
            part = after - v
            lost_v += (v - (after - part)) + (x - part)
            v = after
            x = slopes[knot + behind, o]
            after = r + x
            part = after - r
            lost_r += (r - (after - part)) + (x - part)
            r = after
            values[knot, o] = v + lost_v
            slopes[knot + behind, o] = side * (r + lost_r)


def label(table, keys, bits):
    """Fill in keys of a table's first column; return how many have the sign of -0."""
    return _label(table.view(np.int64), keys, bits)


@kernel
def _label(words, keys, bits):
    n_negative = 0
    for i in range(len(keys)):
        keys[i] = as_key(words[i, 0], i, bits)
        n_negative += words[i, 0] < 0
    return n_negative


@kernel
def settle(table, keys, bits, first, others):
    """Fill in the first column of a table and the others in order of the first, given sorted keys.

    Keys become the numbers of the rows. They are almost in order: what is not is moved. Returns
    False if that takes too long.
    """
    patience, wide = 8 * len(keys), table.shape[1]
    for j in range(len(keys)):
        row, to = row_of(keys[j], bits), j
        value = number(table, row * wide)
        while to > 0 and first[to - 1] > value:
            keys[to], first[to] = keys[to - 1], first[to - 1]
            for o in range(wide - 1):
                others[to, o] = others[to - 1, o]
            to -= 1
            patience -= 1
        if patience < 0:
            return False
        keys[to], first[to] = row, value
        for o in range(1, wide):
            others[to, o - 1] = number(table, row * wide + o)
    return True
