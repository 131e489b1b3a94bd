"""Step functions on round numbers, which reveal neither thresholds nor values of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skattr._typing import override
from skattr.curves.background import BackgroundErrors
from skattr.curves.base import NO_ROWS, ColumnFunction
from skattr.curves.curve import Curve

STEPS = 40  # the most steps on the range of a curve


class RoundedSteps(ColumnFunction):
    """A step function read at round numbers.

    The numbers are the centres of intervals of equal width, 1, 2 or 5 times a power of ten: each
    interval has the value of its centre. It does not tell where jumps are between two of these
    numbers, nor the values at other numbers.

    Parameters
    ----------
    ends : array (m + 1,)
        The ends of the steps, from -inf to inf.
    values : array (m, k)
    missing : array (k,), optional
        The value at missing.
    """

    kind = "steps"

    def __init__(self, ends: np.ndarray, values: np.ndarray, missing: np.ndarray | None) -> None:
        self.missing = missing
        edges = np.empty(0)
        jumps = ends[1:-1]
        if len(jumps):
            width, places = round_width(jumps[0], jumps[-1])
            first, last = np.floor(jumps[0] / width), np.ceil(jumps[-1] / width)
            edges = np.round(np.arange(first, last + 1) * width, places)
        inside = values[np.searchsorted(jumps, (edges[:-1] + edges[1:]) / 2, side="left")]
        values = np.concatenate([values[:1], inside, values[-1:]])[: len(edges) + 1]
        is_new = (np.diff(values, axis=0) != 0).any(axis=1)
        self.values = values[np.append(True, is_new)]
        self.ends = np.concatenate([[-np.inf], edges[is_new], [np.inf]])

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        values = np.asarray(values, float)
        result = self.values[np.searchsorted(self.ends[1:-1], values, side="left")]
        if self.missing is not None:
            result[np.isnan(values)] = self.missing
        return result, NO_ROWS

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        frame = pd.DataFrame({"lower": self.ends[:-1], "upper": self.ends[1:], "closed": "right"})
        if self.missing is None:
            return frame, self.values
        frame.loc[len(frame)] = [np.nan, np.nan, "missing"]
        return frame, np.concatenate([self.values, self.missing[None]])


def round_width(low: float, high: float) -> tuple[float, int]:
    """Return the width of at most `STEPS` intervals on a range, and its number of decimals.

    Examples
    --------
    >>> round_width(17.3, 101.9), round_width(0.0123, 0.0151)
    ((5.0, 0), (0.0001, 4))
    """
    size = high - low
    if size <= 1e-9 * abs(low):  # one number: it is given to about two digits
        size = abs(low) or 1.0
    power = int(np.floor(np.log10(size / STEPS)))
    factor = next((f for f in (1, 2, 5) if f * 10.0**power >= size / STEPS), 10)
    factor, power = (1, power + 1) if factor == 10 else (factor, power)
    return float(f"{factor}e{power}"), max(0, -power)


def rounded(curve: Curve) -> Curve:
    """Return a curve of steps as it is at round numbers, see `RoundedSteps`."""
    frame = curve.to_frame()
    is_missing = (frame["closed"] == "missing").to_numpy()
    inside = ~is_missing & (frame["closed"] != "both").to_numpy()  # without the value at -inf
    lower, upper = (frame.loc[inside, name].to_numpy() for name in ("lower", "upper"))
    ends = np.append(lower, upper[-1:])

    def at_round_numbers(values: np.ndarray) -> RoundedSteps:
        missing = values[is_missing][0] if is_missing.any() else None
        return RoundedSteps(ends, values[inside], missing)

    def errors(centered: bool, values: Any) -> np.ndarray:
        return at_round_numbers(curve.table_errors(centered)).evaluate(values)

    return Curve(
        curve.feature,
        curve.output_names,
        at_round_numbers(frame.iloc[:, -len(curve.output_names) :].to_numpy(float)),
        offset=curve.offset,
        scale=curve.scale,
        measure_name=curve.measure_name,
        missing_seen=curve.missing_seen,
        errors=BackgroundErrors(errors, curve.n_folds, np.zeros(1)) if curve.n_folds else None,
    )
