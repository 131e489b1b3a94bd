"""Positivity of Stieltjes integrands: complete monotonicity, tested on random boxes."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np

from skattr.axioms.table import Finding, Witness
from skattr.measures.signed.decomposition import Decomposition
from skattr.measures.written import as_point

BOXES = 256  # per feature and point
SUBSETS = 1024  # of columns, at most


def completely_monotone(written: Decomposition, points: list, positive: Finding) -> Finding:
    """Tell whether Δ_u(g; a, b) ≥ 0 for all boxes [a, b] and sets u of columns.

    A box with a negative increment disproves it; without one it is not decided. Other measures than
    Stieltjes integrals have the distribution function μ([l, y]), completely monotone iff μ ≥ 0.
    """
    integrands = [(c, term) for c, term in written.terms if "increments" in term.views]
    if not integrands:
        return positive
    if len(written.terms) > 1:
        return Finding(None)
    coefficient, term = integrands[0]
    for row, x in enumerate(points):
        for columns in written.attributions:
            lowest = _negative(coefficient, term, as_point(x), columns)
            if lowest is not None:
                low, high, u, value = lowest
                name = written.numbers.names[columns[0]]
                words = (
                    f"{name}, point {row}: the increment over columns {list(u)} of the box "
                    f"{_short(low)} to {_short(high)} is {value:.4g}"
                )
                return Finding(False, -value, Witness(name, row, None, value, words))
    return Finding(None)


def _negative(coefficient: float, term: Any, x: np.ndarray, columns: tuple) -> tuple | None:
    """Return the box and columns of the lowest increment, and this, if it is negative."""
    sides = term.sides_
    d = len(sides)
    rng = np.random.default_rng(0)
    a, b = np.sort(rng.random((2, BOXES, d)), axis=0)
    low, high = (sides[:, 0] * (1 - u) + sides[:, 1] * u for u in (a, b))
    low[: BOXES // 2] = sides[:, 0]  # boxes from the corner see atoms on lower faces
    sizes = range(d + 1)
    subsets = list(chain.from_iterable(combinations(range(d), size) for size in sizes))
    if len(subsets) > SUBSETS:
        subsets = [(), *((k,) for k in range(d))]
    lowest = None
    for u in subsets:
        total, scale = np.zeros(BOXES), np.zeros(BOXES)
        for v in chain.from_iterable(combinations(u, size) for size in range(len(u) + 1)):
            y = low.copy()
            up = [k for k in u if k not in v]
            y[:, up] = high[:, up]
            values = np.asarray(term.at(y, x.copy(), columns))
            values = coefficient * (values.prod(axis=-1) if term.product else values)
            total += (-1) ** len(v) * values
            scale += np.abs(values)
        worst = int(np.argmin(total))
        if total[worst] < -1e-9 * scale[worst] and (lowest is None or total[worst] < lowest[3]):
            lowest = low[worst], high[worst], u, float(total[worst])
    return lowest


def _short(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{v:.3g}" for v in point) + ")"
