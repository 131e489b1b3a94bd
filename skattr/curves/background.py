"""Errors of a curve from a finite background, at values and at the lines of its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames

BEYOND = 1e-3  # how far behind the last jump its step is read, relative to it or absolutely


@dataclass(eq=False)
class BackgroundErrors:
    """Standard errors of a curve from a finite background.

    Parameters
    ----------
    at : function
        (centered, values) → errors (n, k).
    n_folds : int
        The number of folds that they come from.
    example : array or column (1,)
        A value of the column.
    """

    at: Callable[[bool, Any], np.ndarray]
    n_folds: int
    example: Any
    _of_table: dict[bool, np.ndarray] = field(default_factory=dict)

    def of_table(self, centered: bool, frame: pd.DataFrame) -> np.ndarray:
        """Return the errors at the lines of `Curve.to_frame`, (m, k), which are kept.

        They are NaN for "any other" level.
        """
        if centered not in self._of_table:
            known = np.ones(len(frame), bool)
            if "kind" in frame:
                known = (frame["kind"] != "other").to_numpy()
            known_errors = self.at(centered, values_in(frame[known], self.example))
            errors = np.full((len(frame), known_errors.shape[1]), np.nan)
            errors[known] = known_errors
            self._of_table[centered] = errors
        return self._of_table[centered]


def values_in(frame: pd.DataFrame, example: Any) -> Any:
    """Return one value of the column at each line of a table, which has those of `Curve.to_frame`.

    `example` is a value of the column, for steps without an end.
    """
    if "kind" in frame:
        return frames.as_column([
            level if kind == "level" else (None if level == "missing (None)" else np.nan)
            for level, kind in zip(frame["level"], frame["kind"], strict=True)
        ])  # fmt: skip
    if "x" in frame:
        x = frame["x"]
        if x.dtype.kind == "f":  # the second of two lines at a jump begins behind it
            return x.mask(x.duplicated() & x.notna(), np.nextafter(x, np.inf)).to_numpy()
        return x.to_numpy()
    lower, upper = frame["lower"], frame["upper"]
    missing = (frame["closed"] == "missing").to_numpy()
    ends = ~missing & ((upper == np.inf) if upper.dtype.kind == "f" else upper.isna()).to_numpy()
    begins = (lower[ends] > -np.inf) if lower.dtype.kind == "f" else lower[ends].notna()
    if ends.any() and not begins.all():  # one step from end to end
        value = frames.to_array(example)[0]
        return frames.as_column([np.nan if gone else value for gone in missing])
    upper = upper.copy()
    if lower.dtype.kind == "f":
        upper[ends] = lower[ends] + BEYOND * np.maximum(lower[ends].abs(), 1.0)
        return _held(upper.to_numpy(), frames.to_array(example).dtype)
    upper[ends] = lower[ends] + pd.Timedelta(days=1)
    return upper.to_numpy()


def _held(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return numbers that a column of floats holds, the next ones below where it is narrow."""
    if dtype not in (np.float32, np.float16):
        return x
    near = x.astype(dtype)
    return np.where(near > x, np.nextafter(near, dtype.type(-np.inf)), near)
