"""Tensor grids: the points of blocks of cells, and the increments of functions over cells."""

from typing import NamedTuple

import numpy as np
from numba import njit


class Lists(NamedTuple):
    """Lists of numbers, one an axis, one behind the other."""

    sizes: np.ndarray  # (d,)
    offset: np.ndarray  # (d,) where each starts
    numbers: np.ndarray


def as_lists(arrays):
    """Put arrays of numbers one behind the other."""
    sizes = np.array([len(array) for array in arrays], np.int64)
    offset = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return Lists(sizes, offset, np.concatenate(arrays).astype(np.float64))


@njit(cache=True, nogil=True)
def _places(number, sizes):
    """Return where a point of a product of lists stands in each of them."""
    places = np.empty(sizes.shape[0], np.int64)
    for k in range(sizes.shape[0] - 1, -1, -1):
        places[k] = number % sizes[k]
        number //= sizes[k]
    return places


@njit(cache=True, nogil=True)
def _advance(places, sizes):
    """Go to the next point: cheaper than to divide for each of them."""
    k = sizes.shape[0] - 1
    places[k] += 1
    while k > 0 and places[k] == sizes[k]:
        places[k] = 0
        k -= 1
        places[k] += 1


@njit(cache=True, nogil=True)
def fill_points(start, lists, out):
    """Fill points (n, d): number `start` and those behind it, of the product of d lists.

    The last list runs fastest.
    """
    sizes, offset, numbers = lists
    n, d = out.shape
    places = _places(start, sizes)
    for i in range(n):
        for k in range(d):
            out[i, k] = numbers[offset[k] + places[k]]
        _advance(places, sizes)


@njit(cache=True, nogil=True)
def fill_products(start, lists, out):
    """Fill the products (n,) of the entries that `fill_points` would put side by side."""
    sizes, offset, numbers = lists
    n, d = out.shape[0], sizes.shape[0]
    places = _places(start, sizes)
    for i in range(n):
        value = 1.0
        for k in range(d - 1, -1, -1):
            value *= numbers[offset[k] + places[k]]
        out[i] = value
        _advance(places, sizes)


@njit(cache=True, nogil=True)
def fill_columns(start, lists, out):
    """Fill out (d, n) with what `fill_points` would fill its transpose with."""
    sizes, offset, numbers = lists
    d, n = out.shape
    inner = 1  # how often a number is repeated
    for k in range(d - 1, -1, -1):
        numbers_k = numbers[offset[k] : offset[k] + sizes[k]]
        place = start // inner % sizes[k]
        run = inner - start % inner
        i = 0
        while i < n:
            if inner == 1:
                part = numbers_k[place:]
                to = out[k, i : i + part.shape[0]]
                for q in range(to.shape[0]):
                    to[q] = part[q]
                i += part.shape[0]
                place = 0
            else:
                out[k, i : i + run] = numbers_k[place]
                i += run
                run = inner
                place += 1
                if place == sizes[k]:
                    place = 0
        inner *= sizes[k]


@njit(cache=True, nogil=True)
def fill_weighted(start, lists, weights, filled, points, shares):
    """Append the cells that have weight, number `start` and those behind it, while there is room.

    weights (n,) are those of all points of a product of d lists; points (m, d) and shares (m,) have
    `filled` rows so far. Returns the first cell that was not looked at, and how many rows are
    filled.
    """
    sizes, offset, numbers = lists
    last = sizes.shape[0] - 1
    places = _places(start, sizes)
    point = np.empty(last)
    while start < weights.shape[0] and filled < shares.shape[0]:
        for k in range(last):
            point[k] = numbers[offset[k] + places[k]]
        line = numbers[offset[last] + places[last] : offset[last] + sizes[last]]
        run = min(line.shape[0], shares.shape[0] - filled)
        some = weights[start : start + run]
        room, share = points[filled : filled + run], shares[filled : filled + run]
        found = 0
        for q in range(run):
            if some[q] != 0.0:
                for k in range(last):
                    room[found, k] = point[k]
                room[found, last] = line[q]
                share[found] = some[q]
                found += 1
        filled += found
        start += run
        places[last] += run - 1
        _advance(places, sizes)
    return start, filled


@njit(cache=True, nogil=True)
def difference(values, spare, sizes):
    """Turn the values at vertices, flat, into increments over cells; returns them.

    sizes (d,): the numbers of vertices. An axis of one vertex stays as it is. One axis after the
    other, from one array to the other, which is as long: + at the upper corner in every dimension.
    """
    outer, inner = 1, 1
    for k in range(sizes.shape[0]):
        inner *= sizes[k]
    for k in range(sizes.shape[0]):
        n = sizes[k]
        inner //= n
        if n > 1:
            size = (n - 1) * inner
            for o in range(outer):
                low = values[o * n * inner : (o * n + n - 1) * inner]
                high = values[(o * n + 1) * inner : (o + 1) * n * inner]
                to = spare[o * size : (o + 1) * size]
                for q in range(size):
                    to[q] = high[q] - low[q]
            values, spare = spare, values
            n -= 1
        outer *= n
    return values[:outer]
