"""From values to codes, and from codes to the values of curves."""

import numpy as np

from skattr.kernels.compiled import kernel

TILE = 1024  # values that are looked for together, in the nearest cache


def rank(values, edges, codes):
    """Fill codes with 0 where a value is missing, else 1 + the number of edges below it."""
    # one type of each array, so that the kernel is compiled once
    _rank(np.ascontiguousarray(values, np.float64), np.ascontiguousarray(edges, np.float64), codes)


@kernel
def _rank(values, edges, codes):
    none, one = np.int32(0), np.int32(1)
    for begin in range(0, values.shape[0], TILE):
        some, low = values[begin : begin + TILE], codes[begin : begin + TILE]
        n = some.shape[0]
        for i in range(n):
            low[i] = none
        length = edges.shape[0]
        while length > 0:  # a step for all values: no branch depends on one, nor waits for the last
            half = np.int32((length + 1) >> 1)
            for i in range(n):
                at = low[i]
                below = edges[np.uint64(at + half - one)] < some[i]
                low[i] = at + (half if below else none)
            length -= half
        for i in range(n):
            low[i] = low[i] + one if some[i] == some[i] else none


def look_up(codes: np.ndarray, columns: np.ndarray, curve: np.ndarray, out: np.ndarray) -> None:
    """Fill out[:, a] with the values of curve a at the codes of its column.

    columns (2, g): the column of each curve, -1 to skip it, and its start in curve (n_codes, k),
    which has all curves one after the other and may be of a narrower type; out (n, g, k).
    """
    has_codes = columns[0] >= 0
    if not has_codes.all():
        some = np.empty((len(out), has_codes.sum(), out.shape[2]))
        if some.shape[1]:
            look_up(codes, columns[:, has_codes], curve, some)
        out[:, has_codes] = some
        return
    at = codes[columns[0]] + columns[1][:, None]
    if curve.dtype != out.dtype:
        out[:] = curve.take(at.T, axis=0)
        return
    curve.take(at.T, axis=0, out=out, mode="clip")  # every other mode would fill a copy of `out`
