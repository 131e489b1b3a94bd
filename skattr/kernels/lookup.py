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
