"""Piecewise linear curves: the kinks of many functions summed up in order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from skattr.curves.linear import PiecewiseLinear
from skattr.kernels.lines.sums import Segments, label, settle, sweep, sweep_one_kind
from skattr.measures.learned.bins import Bins

PIECE = 2**21  # numbers of several curves that stand in one piece of memory


@dataclass(eq=False)
class Shares:
    """How much the rows count for a column: share of row r at t = weight_r table[bin of t, kind_r].

    `edges` are the raw numbers between the bins of t, `bins` those bins, if there is more than one.
    """

    weight: np.ndarray  # (n,)
    kind: np.ndarray  # (n,)
    table: np.ndarray  # (E + 1, kinds)
    edges: np.ndarray  # (E,)
    bins: Bins | None = None


class Shelf:
    """Room for the numbers of curves, in pieces that hold many: large ones come in large pages.

    A piece lives as long as any of its curves; those of one fit live and go together.
    """

    def __init__(self, expected: int) -> None:
        self.piece = min(expected, PIECE)
        self.left = np.empty(0)

    def take(self, *shape: int) -> np.ndarray:
        """Return room that nobody else has."""
        size = math.prod(shape)
        if size > len(self.left):
            self.left = np.empty(max(size, self.piece))
        taken, self.left = self.left[:size], self.left[size:]
        return taken.reshape(shape)


def sum_up(
    table: np.ndarray,
    counts: np.ndarray,
    shares: Shares,
    value: np.ndarray,
    slope: np.ndarray,
    edges: np.ndarray,
    shelf: Shelf,
) -> PiecewiseLinear:
    """Sum the knots of all rows up, to the right and to the left of the middle.

    `table` has the knots of one row behind those of the other (kernels/lines/buffers.py), `counts`
    how many each has; `value` and `slope` (kinds, k) are those in the middle, `edges` distances.
    """
    if shares.bins is None:
        return _sum_one_kind(table, value[0], slope[0], shelf)
    k = value.shape[1]
    keys, split, bits = _labelled(table)
    place, rise = np.empty(len(table)), np.empty((len(table), k))
    _put_in_order(table, keys, bits, slice(split), place[:split], rise[:split])
    _put_in_order(table, keys, bits, slice(split, None), place[split:], rise[split:])
    kind = shares.kind.repeat(counts)[keys]
    b0 = int(np.searchsorted(edges, 0.0, side="left"))  # the middle's bin
    size = 1 + len(place) + 2 * len(edges)
    segments = Segments(np.empty(size), np.empty((size, k)), np.empty((size + 1, k)))
    center = split + 2 * b0

    def half(side: int, edges: np.ndarray, table: np.ndarray) -> tuple[int, np.ndarray]:
        ends = np.empty(len(edges), np.int64)
        n = sweep(
            place, rise, kind, split, side, np.ascontiguousarray(edges),
            np.ascontiguousarray(table), value, side * slope, segments, center, ends,
        )  # fmt: skip
        return n, ends

    right, up = half(1, edges[b0:], shares.table[b0:])
    left, down = half(-1, -edges[:b0][::-1], shares.table[: b0 + 1][::-1])
    begin, end = center - left, center + right + 1
    found = Segments(
        segments.knots[begin:end], segments.values[begin:end], segments.slopes[begin : end + 1]
    )
    if end - begin < size:
        found = Segments(*(array.copy() for array in found))
    first = np.zeros(len(edges) + 1, np.int64)
    last = np.full(len(edges) + 1, end - begin)
    last[b0:-1], first[b0 + 1 :] = left + up, left + up + 2
    first[1 : b0 + 1], last[:b0] = (left - down + 1)[::-1], (left - down - 1)[::-1]
    curve = PiecewiseLinear(None, 0.0, 0.0, *found, left, shares.bins)
    return replace(curve, first=first, last=last) if len(edges) else curve


def _sum_one_kind(
    table: np.ndarray, value: np.ndarray, slope: np.ndarray, shelf: Shelf
) -> PiecewiseLinear:
    """Sum up knots that count 1 everywhere."""
    keys, split, bits = _labelled(table)
    size, k = 1 + len(keys), len(value)
    places, values, slopes = shelf.take(size), shelf.take(size, k), shelf.take(size + 1, k)
    places[split] = 0.0
    _put_in_order(table, keys, bits, slice(split), places[:split], slopes[:split])
    behind = slice(split, None)
    _put_in_order(table, keys, bits, behind, places[split + 1 :], slopes[split + 2 :])
    for side in (1, -1):
        sweep_one_kind(places, values, slopes, split, side, value, slope)
    return PiecewiseLinear(None, 0.0, 0.0, places, values, slopes, split)


def _labelled(table: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return sorted keys of the first column of a table, how many are left of 0, and bits of rows.

    Rows are almost in order then: keys have lost some bits of what they are made of.
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
    """Fill in the columns of some rows of a table in order; keys become the numbers of rows."""
    if not settle(table, keys[part], bits, first, others):
        place = table[:, 0]
        keys[part] = np.lexsort([~np.signbit(place), place])[part]  # -0 is left of 0
        settle(table, keys[part], bits, first, others)
