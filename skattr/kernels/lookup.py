"""From values to codes, and from codes to the values of curves."""

import numpy as np

from skattr.kernels.compiled import kernel


def rank(values, edges, codes):
    """Fill codes with 0 where a value is missing, else 1 + the number of edges below it."""
    # one type of each array, so that the kernel is compiled once
    _rank(np.ascontiguousarray(values, np.float64), np.ascontiguousarray(edges, np.float64), codes)


@kernel
def _rank(values, edges, codes):
    n_edges = edges.shape[0]
    for i in range(values.shape[0]):
        value = values[i]
        if value != value:
            codes[i] = 0
            continue
        low = 0
        length = n_edges
        while length > 1:
            half = length >> 1
            low += half * (edges[low + half - 1] < value)
            length -= half
        if length == 1:
            low += edges[low] < value
        codes[i] = 1 + low


@kernel
def look_up(codes, columns, curve, out):
    """Fill out[i, a] with the value of curve a at the code of its column; columns -1 are left.

    curve is one flat array (n_codes, k), out (n, g, k); starts of columns are in `columns[1]`.
    """
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            k = columns[0, a]
            if k >= 0:
                at = columns[1, a] + codes[k, i]
                for o in range(out.shape[2]):
                    out[i, a, o] = curve[at, o]
