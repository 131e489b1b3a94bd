"""Values of curves at rows; rows that lie off a curve are integrated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skattr._inputs import frames
from skattr.curves.base import ColumnFunction
from skattr.engines.base import Integral, Rows


def look_up(
    curve: ColumnFunction, rows: Rows, k: int, integrate: Callable[[Rows], Integral]
) -> np.ndarray:
    """Return the values of a curve of column k at rows, (n, n_outputs).

    `integrate` returns one attribution at rows that lie off the curve.
    """
    codes = None if rows.codes is None else rows.codes[k]
    result, off = curve.at(codes, frames.column(rows.X, k))
    if len(off):
        result[off] = integrate(rows.take(off)).values.value[:, 0]
    return result
