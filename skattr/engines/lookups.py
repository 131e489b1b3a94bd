"""Values of curves at rows; rows that lie off a curve are integrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from skattr.curves.base import Function
from skattr.engines.base import Integral, Request


def look_up(
    curve: Function, request: Request, integrate: Callable[[Request], Integral]
) -> np.ndarray:
    """Return the values of the curve of one attribution at rows, (n, n_outputs).

    `integrate` is called for the rows that lie off the curve.
    """
    rows, (columns,) = request.rows, request.columns
    result, off = curve.at_rows(rows.codes, rows.X, columns)
    if len(off):
        result[off] = integrate(replace(request, rows=rows.take(off))).values.value[:, 0]
    return result
