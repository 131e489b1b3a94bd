"""Piecewise linear curves: sums of many functions, from their sorted kinks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from skattr.curves.linear import PiecewiseLinear
from skattr.kernels.lines.sums import Segments, label, settle, sweep, sweep_one_kind
from skattr.measures.learned.bins import Bins

ARENA_BLOCK = 2**21  # numbers in one block of memory, which several curves share


@dataclass(eq=False)
class Shares:
    """The weights of rows for a column: that of row r at t is weight_r table[bin of t, kind_r].

    `edges` are the raw numbers between the bins of t, `bins` those bins, if there is more than one.
    """

    weight: np.ndarray  # (n,)
    kind: np.ndarray  # (n,)
    table: np.ndarray  # (E + 1, kinds)
    edges: np.ndarray  # (E,)
    bins: Bins | None = None


class Arena:
    """Allocates the arrays of curves from large blocks, which the system backs by large pages.

    A block is freed with the last of its curves; the curves of one fit are freed together.
    """

    def __init__(self, expected: int) -> None:
        self.block = min(expected, ARENA_BLOCK)
        self.left = np.empty(0)

    def take(self, *shape: int) -> np.ndarray:
        """Return an uninitialised array that no other curve shares."""
        size = math.prod(shape)
        if size > len(self.left):
            self.left = np.empty(max(size, self.block))
        taken, self.left = self.left[:size], self.left[size:]
        return taken.reshape(shape)


def sum_up(
    table: np.ndarray,
    counts: np.ndarray,
    shares: Shares,
    value: np.ndarray,
    slope: np.ndarray,
    edges: np.ndarray,
    arena: Arena,
) -> PiecewiseLinear:
    """Sum up the knots of all rows, to the right and to the left of the middle.

    `table` has the knots of all rows, one row after the other (kernels/lines/buffers.py), `counts`
    their number per row; `value` and `slope` (kinds, k) are those at the middle, `edges` the
    distances of the edges from the middle.
    """
    if shares.bins is None:
        return sum_one_kind(table, value[0], slope[0], arena)
    k = value.shape[1]
    keys, split, bits = _labelled(table)
    knots, rise = np.empty(len(table)), np.empty((len(table), k))
    _put_in_order(table, keys, bits, slice(split), knots[:split], rise[:split])
    _put_in_order(table, keys, bits, slice(split, None), knots[split:], rise[split:])
    kind = shares.kind.repeat(counts)[keys]
    b0 = int(np.searchsorted(edges, 0.0, side="left"))  # the middle's bin
    size = 1 + len(knots) + 2 * len(edges)
    segments = Segments(np.empty(size), np.empty((size, k)), np.empty((size + 1, k)))
    center = split + 2 * b0

    def half(side: int, edges: np.ndarray, table: np.ndarray) -> tuple[int, np.ndarray]:
        ends = np.empty(len(edges), np.int64)
        n = sweep(
            knots, rise, kind, split, side, np.ascontiguousarray(edges),
            np.ascontiguousarray(table), value, side * slope, segments, center, ends,
        )  # fmt: skip
        return n, ends

    right, up = half(1, edges[b0:], shares.table[b0:])
    left, down = half(-1, -edges[:b0][::-1], shares.table[: b0 + 1][::-1])
    begin, end = center - left, center + right + 1
    filled = Segments(
        segments.knots[begin:end], segments.values[begin:end], segments.slopes[begin : end + 1]
    )
    if end - begin < size:
        filled = Segments(*(array.copy() for array in filled))
    first = np.zeros(len(edges) + 1, np.int64)
    last = np.full(len(edges) + 1, end - begin)
    last[b0:-1], first[b0 + 1 :] = left + up, left + up + 2
    first[1 : b0 + 1], last[:b0] = (left - down + 1)[::-1], (left - down - 1)[::-1]
    curve = PiecewiseLinear(None, 0.0, 0.0, *filled, left, shares.bins)
    return replace(curve, first=first, last=last) if len(edges) else curve


def sum_one_kind(
    table: np.ndarray, value: np.ndarray, slope: np.ndarray, arena: Arena
) -> PiecewiseLinear:
    """Sum up knots of rows that all have the same weight everywhere."""
    keys, split, bits = _labelled(table)
    size, k = 1 + len(keys), len(value)
    knots, values, slopes = arena.take(size), arena.take(size, k), arena.take(size + 1, k)
    knots[split] = 0.0
    _put_in_order(table, keys, bits, slice(split), knots[:split], slopes[:split])
    right = slice(split, None)
    _put_in_order(table, keys, bits, right, knots[split + 1 :], slopes[split + 2 :])
    for side in (1, -1):
        sweep_one_kind(knots, values, slopes, split, side, value, slope)
    return PiecewiseLinear(None, 0.0, 0.0, knots, values, slopes, split)


def _labelled(table: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return sorted keys of a table's first column, how many are left of 0, bits of row numbers.

    The order is almost that of the column: keys drop its last bits to hold row numbers.
    """
    bits = max(len(table) - 1, 1).bit_length()
    keys = np.empty(len(table), np.int64)
    split = label(table, keys, bits)
    keys.sort()
    return keys, split, bits


def _put_in_order(
    table: np.ndarray,
    keys: np.ndarray,
    bits: int,
    part: slice,
    first: np.ndarray,
    others: np.ndarray,
) -> None:
    """Fill in the columns of some rows of a table in order; keys become row numbers."""
    if not settle(table, keys[part], bits, first, others):
        knots = table[:, 0]
        keys[part] = np.lexsort([~np.signbit(knots), knots])[part]  # -0 is left of 0
        settle(table, keys[part], bits, first, others)
