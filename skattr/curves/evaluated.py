"""Functions of a column that are evaluated on demand, and columns of booleans."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._typing import override
from skattr.curves.base import NO_ROWS, ColumnFunction
from skattr.pieces.cells import OTHER, level_frame, missing_rows


class Evaluated(ColumnFunction):
    """A function that is evaluated when it is called.

    Parameters
    ----------
    function : callable
        Raw values → attributions (n, k).
    points : array or column
        The values in its table.
    """

    kind = "function"

    def __init__(self, function: Callable[..., Any], points: Any) -> None:
        self.function = function
        self.points = points

    @property
    @override
    def of_numbers(self) -> bool:
        return self.points.dtype.kind in "iuf"

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.function(values), NO_ROWS

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        return pd.DataFrame({"x": frames.inferred(self.points)}), self.function(self.points)


class EvaluatedLevels(ColumnFunction):
    """A function of levels that is evaluated when it is called.

    Parameters
    ----------
    function : callable
        Raw values → attributions (n, k).
    known : list
        The levels that the model distinguishes.
    missing : list
        The missing values to try: None, NaN.
    other : list
        A level that the model does not know, or an empty list.
    """

    kind = "levels"

    def __init__(
        self, function: Callable[..., Any], known: list[Any], missing: list[Any], other: list[Any]
    ) -> None:
        self.function = function
        self.known = known
        self.missing = missing
        self.other = other

    @override
    def levels(self) -> list[Any]:
        return self.known

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.function(values), NO_ROWS

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown categories are intended here
            levels, missing, other = self._evaluated()
        if len(missing) == 2 and np.array_equal(missing[0][1], missing[1][1], equal_nan=True):
            missing = missing[:1]
        rows = [
            *((level, "level", value) for level, value in levels),
            *missing_rows(missing),
            *((OTHER, "other", value) for _, value in other),
        ]
        return level_frame(rows), np.array([value for *_, value in rows]).reshape(len(rows), -1)

    def _evaluated(
        self,
    ) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return (value, attribution) of levels, missing and another level, in one call if it can.

        A library may not accept them all in one column, and may refuse some of them.
        """
        parts = [self.known, *([missing] for missing in self.missing), self.other]
        pairs: list[list[tuple[Any, ...]]] = []
        with suppress(TypeError, ValueError):
            together = [value for part in parts for value in part]
            values = iter(self.function(frames.as_column(together)))
            pairs = [[(value, next(values)) for value in part] for part in parts]
        levels, *missing, other = pairs or [self._accepted(part) for part in parts]
        return levels, [pair for part in missing for pair in part], other

    def _accepted(self, values: list[Any]) -> list[tuple[Any, ...]]:
        """Return (value, attribution) of the values that the model accepts."""
        if not values:
            return []
        with suppress(ValueError):
            return list(zip(values, self.function(frames.as_column(values)), strict=True))
        if len(values) == 1:
            return []
        return [pair for value in values for pair in self._accepted([value])]


class Booleans(ColumnFunction):
    """A function of a column of booleans: two levels, and missing if the function has it.

    Parameters
    ----------
    function : ColumnFunction
        The function of the column, of any kind.
    """

    kind = "levels"

    def __init__(self, function: ColumnFunction) -> None:
        self.function = function

    @override
    def encode(self, values: Any) -> np.ndarray | None:
        return self.function.encode(values)

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.function.at(codes, values)

    @override
    def warn_of_rounding(self, values: Any) -> None:
        self.function.warn_of_rounding(values)

    @override
    def evaluate(self, values: Any) -> np.ndarray:
        return self.function.evaluate(values)

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        rows: list[tuple[Any, str]] = [(False, "level"), (True, "level")]
        values = self.evaluate(pd.Series([False, True]))
        if self.function.kind == "function":  # whose table has only values of the background
            with suppress(ValueError):
                values = np.vstack([values, self.evaluate(frames.as_column([None]))])
                rows.append(("missing", "missing"))
            return level_frame(rows), values
        frame, known = self.function.table()
        missing = _is_missing(frame)
        names = frame["level"][missing] if "level" in frame else ["missing"] * missing.sum()
        rows += [(name, "missing") for name in names]
        return level_frame(rows), np.vstack([values, known[missing]])


def _is_missing(frame: pd.DataFrame) -> np.ndarray:
    """Return which rows of a table are those of missing values."""
    if "x" in frame:
        return np.asarray(frame["x"].isna())
    return np.asarray(frame["closed" if "closed" in frame else "kind"] == "missing")
