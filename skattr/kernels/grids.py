"""Tensor grids: the points of blocks of cells, and the increments of functions over cells."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange


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


@njit(cache=True, nogil=True, parallel=True)
def fill_points(start, lists, out):
    """Fill points (n, d): number `start` and those behind it, of the product of d lists.

    The last list runs fastest.
    """
    sizes, offset, numbers = lists
    n, d = out.shape
    for i in prange(n):
        rest = start + i
        for k in range(d - 1, -1, -1):
            out[i, k] = numbers[offset[k] + rest % sizes[k]]
            rest //= sizes[k]


@njit(cache=True, nogil=True, parallel=True)
def fill_products(start, lists, out):
    """Fill the products (n,) of the entries that `fill_points` would put side by side."""
    sizes, offset, numbers = lists
    for i in prange(out.shape[0]):
        rest = start + i
        value = 1.0
        for k in range(sizes.shape[0] - 1, -1, -1):
            value *= numbers[offset[k] + rest % sizes[k]]
            rest //= sizes[k]
        out[i] = value


@njit(cache=True, nogil=True)
def difference(values, sizes):
    """Turn the values at vertices, flat, into increments over cells; returns how many there are.

    sizes (d,): the numbers of vertices. An axis of one vertex stays as it is. Works in place, one
    axis after the other: + at the upper corner in every dimension.
    """
    total = 1
    for k in range(sizes.shape[0]):
        total *= sizes[k]
    inner = 1
    for k in range(sizes.shape[0] - 1, -1, -1):
        n = sizes[k]
        outer = total // (n * inner)
        if n > 1:
            for o in range(outer):
                for i in range(n - 1):
                    to = (o * (n - 1) + i) * inner
                    at = (o * n + i) * inner
                    for q in range(inner):
                        values[to + q] = values[at + inner + q] - values[at + q]
            total = outer * (n - 1) * inner
            n -= 1
        inner *= n
    return total
