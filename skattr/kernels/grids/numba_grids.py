"""Tensor grids: the points of blocks of cells, and the increments of functions over cells."""

from typing import NamedTuple

import numpy as np

from skattr.kernels.compiled import inlined, kernel


class Lists(NamedTuple):
    """Lists of numbers, one per axis, in one array."""

    sizes: np.ndarray  # (d,)
    offset: np.ndarray  # (d,) where each starts
    numbers: np.ndarray


def as_lists(arrays):
    """Concatenate arrays of numbers to Lists."""
    sizes = np.array([len(array) for array in arrays], np.int64)
    offset = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return Lists(sizes, offset, np.concatenate(arrays).astype(np.float64))


def _indices(number, sizes):
    """Return the indices of a point of a product of lists in each list."""
    indices = np.empty(len(sizes), np.int64)
    for k in range(len(sizes) - 1, -1, -1):
        number, indices[k] = divmod(number, int(sizes[k]))
    return indices


@inlined
def _advance(indices, sizes):
    """Go to the next point, without a division."""
    k = sizes.shape[0] - 1
    indices[k] += 1
    while k > 0 and indices[k] == sizes[k]:
        indices[k] = 0
        k -= 1
        indices[k] += 1


def fill_points(start, lists, out):
    """Fill points (n, d): number `start` and those behind it, of the product of d lists.

    The last list runs fastest.
    """
    _fill_points(lists, out, _indices(start, lists.sizes))


@kernel
def _fill_points(lists, out, indices):
    sizes, offset, numbers = lists
    n, d = out.shape
    for i in range(n):
        for k in range(d):
            out[i, k] = numbers[offset[k] + indices[k]]
        _advance(indices, sizes)


def fill_products(start, lists, out):
    """Fill the products (n,) of the coordinates of the points of `fill_points`."""
    _fill_products(lists, out, _indices(start, lists.sizes))


@kernel
def _fill_products(lists, out, indices):
    sizes, offset, numbers = lists
    n, d = out.shape[0], sizes.shape[0]
    for i in range(n):
        value = 1.0
        for k in range(d - 1, -1, -1):
            value *= numbers[offset[k] + indices[k]]
        out[i] = value
        _advance(indices, sizes)


@kernel
def fill_columns(start, lists, out):
    """Fill out (d, n) with what `fill_points` would fill its transpose with."""
    sizes, offset, numbers = lists
    d, n = out.shape
    inner = 1  # how often a number is repeated
    for k in range(d - 1, -1, -1):
        position = start // inner % sizes[k]
        run = inner - start % inner
        i = 0
        while i < n:
            if inner == 1:
                size = sizes[k] - position if sizes[k] - position < n - i else n - i
                for q in range(size):
                    out[k, i + q] = numbers[offset[k] + position + q]
                i += size
                position = 0
            else:
                number = numbers[offset[k] + position]
                size = run if run < n - i else n - i
                for q in range(size):
                    out[k, i + q] = number
                i += size
                run = inner
                position += 1
                if position == sizes[k]:
                    position = 0
        inner *= sizes[k]


def fill_weighted(start, lists, weights, filled, points, shares):
    """Append the cells of nonzero weight, from number `start` on, until the arrays are full.

    weights (n,) are those of all points of a product of d lists; points (m, d) and shares (m,) have
    `filled` rows so far. Returns the first cell that was not visited, and the number of filled
    rows.
    """
    return _fill_weighted(
        start, lists, weights, filled, points, shares, _indices(start, lists.sizes)
    )


@kernel
def _fill_weighted(start, lists, weights, filled, points, shares, indices):
    sizes, offset, numbers = lists
    last = sizes.shape[0] - 1
    while start < weights.shape[0] and filled < shares.shape[0]:
        run = sizes[last] - indices[last]
        if run > shares.shape[0] - filled:
            run = shares.shape[0] - filled
        for q in range(run):
            weight = weights[start + q]
            if weight != 0.0:
                for k in range(last):
                    points[filled, k] = numbers[offset[k] + indices[k]]
                points[filled, last] = numbers[offset[last] + indices[last] + q]
                shares[filled] = weight
                filled += 1
        start += run
        indices[last] += run - 1
        _advance(indices, sizes)
    return start, filled


def difference(values, spare, sizes):
    """Turn the values at vertices, flat, into increments over cells; returns them.

    sizes (d,): the numbers of vertices. An axis of one vertex is unchanged. One axis after the
    other, from one array to the other of the same length: + at the upper corner.
    """
    outer, inner = 1, int(np.prod(sizes))
    for n in sizes.tolist():
        inner //= n
        if n > 1:
            whole = values[: outer * n * inner].reshape(outer, n, inner)
            cells = spare[: outer * (n - 1) * inner].reshape(outer, n - 1, inner)
            np.subtract(whole[:, 1:], whole[:, :-1], out=cells)
            values, spare = spare, values
            n -= 1
        outer *= n
    return values[:outer]
