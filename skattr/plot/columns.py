"""A raw column as it is drawn: numbers, dates as numbers, or levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr.plot import drawing

# rows of a curve's table that are not levels
MISSING, OTHER = drawing.NoLevel("missing"), drawing.NoLevel("any other")
NONE, NAN = drawing.NoLevel("missing (None)"), drawing.NoLevel("missing (NaN)")
_ON_AXIS = {"integer", "floating", "mixed-integer-float", "datetime", "datetime64", "timedelta",
            "timedelta64"}  # fmt: skip
_DAY = pd.Timedelta(days=1)


WHOLE = 25  # whole numbers that are told apart on an axis


@dataclass
class Column:
    """The n values of a column: either numbers or levels."""

    numbers: np.ndarray  # (n,), NaN where missing; dates as matplotlib counts them
    missing: np.ndarray  # (n,)
    levels: list | None = None  # (n,)
    dates: bool = False
    unit: str = ""
    order: tuple | None = None  # of ordered categories

    def __len__(self) -> int:
        return len(self.missing)

    def describe(self) -> str:
        """Return the number of rows, and which part is missing, in words."""
        words = drawing.rows(len(self))
        if not self.missing.any():
            return words
        share = 100 * self.missing.mean()
        return f"{words}, {'< 0.1' if share < 0.1 else f'{share:.1f}'} % missing"

    @property
    def whole(self) -> bool:
        """Whether it holds few whole numbers, such as those of rooms."""
        if self.levels is not None or self.dates:
            return False
        x = np.unique(self.numbers[np.isfinite(self.numbers)])
        return 0 < len(x) <= WHOLE and bool((x == np.round(x)).all()) and np.ptp(x) < WHOLE

    def has(self, name: drawing.NoLevel) -> bool:
        """Tell whether values are missing; NONE and NAN ask for that kind of missing value."""
        if self.levels is None or name == MISSING:
            return bool(self.missing.any())
        missing = [self.levels[i] for i in np.flatnonzero(self.missing)]
        return any((value is None) == (name == NONE) for value in missing)

    def among(self, levels: list) -> np.ndarray:
        """Return the position of each value among the levels of a curve, -1 if it has none."""
        assert self.levels is not None
        position = {level: p for p, level in enumerate(levels)}
        other, absent = position.get(OTHER, -1), position.get(MISSING, -1)
        none, nan = position.get(NONE, absent), position.get(NAN, absent)
        return np.array([
            (none if level is None else nan) if missing else position.get(level, other)
            for level, missing in zip(self.levels, self.missing, strict=True)
        ], dtype=np.intp)  # fmt: skip


def as_column(values: Any, name: Any, levels: bool | None = None, dates: bool = False) -> Column:
    """Read a column, as levels or dates if the curve is one of these; None: as it looks."""
    if np.ndim(values) != 1:
        raise ValueError(f"data of {name!r} must be one column, got shape {np.shape(values)}")
    items = values.to_list() if hasattr(values, "to_list") else list(values)
    if not isinstance(values, np.ndarray | pd.Series):
        values = items
    series = frames.inferred(values).reset_index(drop=True)
    missing = series.isna().to_numpy(bool)
    if levels or (levels is None and _is_level(series)):
        kind = series.dtype
        ordered = isinstance(kind, pd.CategoricalDtype) and kind.ordered
        order = tuple(kind.categories) if ordered else None
        if pd.api.types.infer_dtype(series, skipna=True) == "boolean":
            order = (False, True)
        return Column(np.array([]), missing, items, order=order)  # a Series may turn None into NaN
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        from matplotlib.dates import date2num

        wall = series.dt.tz_localize(None).to_numpy("M8[us]")
        numbers = np.full(len(series), np.nan)
        numbers[~missing] = date2num(wall[~missing])
        return _of_kind(Column(numbers, missing, dates=True), levels, dates, name)
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        return Column((series / _DAY).to_numpy(float), missing, unit=" (days)")
    try:
        numbers = series.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"data of {name!r} must be numbers, as its curve is: {error}") from error
    return _of_kind(Column(numbers, missing), levels, dates, name)


def on_axis(levels: list) -> bool:
    """Tell whether levels are numbers or dates, which have an axis; booleans have none."""
    return pd.api.types.infer_dtype(np.fromiter(levels, object, len(levels))) in _ON_AXIS


def _of_kind(column: Column, levels: bool | None, dates: bool, name: Any) -> Column:
    if levels is not None and column.dates != dates and not column.missing.all():
        kinds = {False: "numbers", True: "dates"}
        raise ValueError(f"data of {name!r} holds {kinds[column.dates]}, its curve {kinds[dates]}")
    return column


def _is_level(series: pd.Series) -> bool:
    """Tell whether values are neither numbers nor dates."""
    kind = series.dtype
    on_axis = pd.api.types.is_any_real_numeric_dtype(kind) or kind.kind in "mM"
    return not on_axis
