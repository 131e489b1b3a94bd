"""Piecewise linear functions of a column of numbers: ReLU networks along lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._typing import override
from skattr.curves.base import NO_ROWS, ColumnFunction
from skattr.measures.learned.bins import Bins, as_numbers


@dataclass(eq=False)
class PiecewiseLinear(ColumnFunction):
    """A piecewise linear function of a raw number x, in u = (x - origin) - middle.

    Segment i lies left of knot i. Up to the knot of the middle its value is anchored at knot i,
    behind it at knot i - 1. A knot at a jump occurs twice. Bin b has the segments first[b] to
    last[b].
    """

    name: Any
    origin: float
    middle: float
    knots: np.ndarray  # (M,) u
    values: np.ndarray  # (M, k)
    slopes: np.ndarray  # (M + 1, k)
    center: int  # the knot of the middle
    bins: Bins | None = None
    first: np.ndarray | None = None
    last: np.ndarray | None = None
    points: np.ndarray | None = None  # (n, k) values at single numbers that have a bin each
    special: np.ndarray | None = None  # (3, k) at missing, -inf and inf, NaN if not accepted

    @property
    @override
    def kind(self) -> str:
        return "linear"

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        x = as_numbers(values, self.name)
        u = (x - self.origin) - self.middle
        order = np.argsort(u)  # searching sorted numbers takes half the time
        segment = np.empty(len(u), np.int64)
        segment[order] = np.searchsorted(self.knots, u[order], side="left")
        if self.first is not None:
            assert self.bins is not None and self.last is not None
            bins = np.minimum(self.bins.of(values), self.bins.n - 1)  # missing is handled below
            segment = np.clip(segment, self.first[bins], self.last[bins])
        start = np.where(segment <= self.center, segment, segment - 1)
        with np.errstate(invalid="ignore"):
            result = self.values[start] + self.slopes[segment] * (u - self.knots[start])[:, None]
        if self.points is not None:
            assert self.bins is not None
            bins = self.bins.of(values)
            single = bins < self.bins.n
            result[single] = self.points[bins[single]]
        self._put_special(x, result)
        return result, NO_ROWS

    def _put_special(self, x: np.ndarray, result: np.ndarray) -> None:
        """Fill in the results of missing and infinite values, or raise as the model does."""
        for i, (what, where) in enumerate(
            (("missing", np.isnan(x)), ("infinite", x == -np.inf), ("infinite", x == np.inf))
        ):
            if where.any():
                assert self.special is not None
                if np.isnan(self.special[i]).any():
                    raise ValueError(f"column {self.name!r}: the model accepts no {what} values")
                result[where] = self.special[i]

    def breaks(self) -> np.ndarray:
        """Return the raw numbers between which the function is affine."""
        breaks = [self.origin + (self.middle + self.knots)]
        if self.bins is not None:
            cuts = self.bins.cuts()
            breaks += [cuts, np.nextafter(cuts, np.inf)]
        return np.unique(np.concatenate(breaks))

    def missing(self) -> np.ndarray | None:
        """Return the value at missing, (k,), or None if the model does not accept it."""
        assert self.special is not None
        return None if np.isnan(self.special[0]).any() else self.special[0]

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        return SumOfLines(np.zeros(self.values.shape[1]), [(1.0, self)]).table()


class SumOfLines(ColumnFunction):
    """A constant and multiples of piecewise linear functions.

    Parameters
    ----------
    constant : array (k,)
    parts : list of (float, PiecewiseLinear)
    """

    kind = "linear"

    def __init__(self, constant: np.ndarray, parts: list[tuple[float, PiecewiseLinear]]) -> None:
        self.constant = constant
        self.parts = parts

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        result = self.constant
        for coefficient, part in self.parts:  # in the order of the terms: the bits of `explain`
            result = result + coefficient * part.at(None, values)[0]
        return result, NO_ROWS

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        x = np.unique(np.concatenate([part.breaks() for _, part in self.parts]))
        beyond = max(float(x[-1] - x[0]), abs(float(x[0])) * 1e-6, 1.0)
        x = np.concatenate([[x[0] - beyond], x, [x[-1] + beyond]])
        values = self.evaluate(x)
        missing = [
            coefficient * value
            for coefficient, part in self.parts
            if (value := part.missing()) is not None
        ]
        if len(missing) == len(self.parts):
            x, values = np.append(x, np.nan), np.vstack([values, self.constant + sum(missing)])
        return pd.DataFrame({"x": x}), values
