"""A curve as points, steps or levels that can be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr.curves import Curve
from skattr.plot import drawing
from skattr.plot.columns import MISSING, OTHER, Column, as_column, on_axis

DENSE = 1000  # points that stand for a line with more knots
BEYOND = 0.05  # how far the outer steps are drawn, where data does not tell
FEW = 12  # levels that are numbers or dates and still bars: more are points on an axis


@dataclass
class Line:
    """One output of a curve, as it is drawn."""

    label: str | None
    kind: str  # "steps", "line", "points" or "levels"
    x: Any  # the edges of steps (m + 1,), the points of a line (m,), or a list of m levels
    values: np.ndarray  # (m,)
    special: dict[drawing.NoLevel, float]  # the values at missing ones, and at any other level
    dates: bool = False
    unit: str = ""

    @property
    def has_no_jump(self) -> bool:
        """Whether this is one step from end to end, which may be of numbers or of dates."""
        return self.kind == "steps" and not np.isfinite(self.x).any()

    def follow(self, column: Column) -> None:
        """Have the kind of a column's data, for a line that has no jump."""
        self.dates = column.dates
        if column.levels is not None:
            there = [x for x, m in zip(column.levels, column.missing, strict=True) if not m]
            self.kind, self.x = "levels", list(dict.fromkeys(there))
            self.special = {MISSING: self.values[0]}
            self.values = self.values.repeat(len(self.x))

    @property
    def all_values(self) -> np.ndarray:
        """All values that may be drawn."""
        return np.append(self.values, [*self.special.values()])


def as_line(curve: Curve, label: str | None, o: int, centered: bool) -> Line:
    """Return output o of a curve as it is drawn."""
    frame = curve.to_frame()
    values = frame.iloc[:, frame.shape[1] - len(curve.output_names) + o].to_numpy(float)
    return line_of(frame, values - offset_of(curve, o, centered), curve, label)


def offset_of(curve: Curve, o: int, centered: bool) -> float:
    """Return what is subtracted from the values of output o."""
    if not centered:
        return 0.0
    if curve.offset is None:
        raise ValueError(f"{curve!r} does not know its offset: draw it with centered=False")
    return float(curve.offset[o])


def line_of(frame: pd.DataFrame, values: np.ndarray, curve: Curve, label: str | None) -> Line:
    """Return values at the lines of a table, which has the columns of `Curve.to_frame`."""
    if "level" in frame:
        return _level_line(curve, label, frame, values)
    if "closed" in frame:
        inside = (frame["closed"] != "missing").to_numpy()
        missing = values[~inside]
        ends = frame.loc[inside, ["lower", "upper"]].to_numpy()
        x, values = np.append(ends[:, 0], ends[-1:, 1]), values[inside]
    else:
        inside = frame["x"].notna().to_numpy()
        missing = values[~inside]
        x, values = frame["x"][inside], values[inside]
        if curve.span is not None:
            x, values = _within(x.to_numpy(float), values, *curve.span)
    column = as_column(x, curve.feature)
    special = {MISSING: float(missing[0])} if len(missing) else {}
    if column.levels is not None:
        return Line(label, "levels", column.levels, values, special)
    kind = "steps" if "closed" in frame else "line"
    return Line(label, kind, column.numbers, values, special, column.dates, column.unit)


def _level_line(curve: Curve, label: str | None, frame: pd.DataFrame, values: np.ndarray) -> Line:
    """Return levels as bars or, if they are many numbers or dates, as points on an axis."""
    is_level = (frame["kind"] == "level").to_numpy()
    names = frame["level"].to_list()
    special = {drawing.NoLevel(names[i]): float(values[i]) for i in np.flatnonzero(~is_level)}
    levels, values = [names[i] for i in np.flatnonzero(is_level)], values[is_level]
    if len(levels) <= FEW or not on_axis(levels):
        return Line(label, "levels", levels, values, special)
    column = as_column(frames.inferred(levels), curve.feature)
    order = np.argsort(column.numbers, kind="stable")
    x, values = column.numbers[order], values[order]
    return Line(label, "points", x, values, special, column.dates, column.unit)


def drop_unknown(sets: list[list[Line]], curves: list[Curve], column: Column | None) -> None:
    """Drop "missing" and "any other" unless the data or, without data, the background has them."""
    for lines in sets:
        for line, curve in zip(lines, curves, strict=True):
            line.special = {
                name: value
                for name, value in line.special.items()
                if _is_known(name, line, curve, column)
            }


def _is_known(name: drawing.NoLevel, line: Line, curve: Curve, column: Column | None) -> bool:
    """Tell whether the data or, without data, the background has such values."""
    if name == OTHER:
        return column is None or _has_other(line, column)
    return curve.missing_seen is not False if column is None else column.has(name)


def _has_other(line: Line, column: Column) -> bool:
    """Tell whether the data has a level that the curve does not have."""
    if column.levels is None:
        there = column.numbers[~column.missing]
        return line.kind == "points" and not np.isin(there, line.x).all()
    return bool((column.among(line.x)[~column.missing] < 0).any())


def _within(
    x: np.ndarray, values: np.ndarray, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return a piecewise linear curve near the data: its knots or, if they are many, a grid."""
    beyond = BEYOND * (high - low)
    ends = np.array([low - beyond, high + beyond])
    inside = (x > ends[0]) & (x < ends[1])
    places = np.concatenate([ends[:1], x[inside], ends[1:]])
    if len(places) > DENSE:
        places = np.linspace(ends[0], ends[1], DENSE)
        return places, np.interp(places, x, values)
    first, last = np.interp(ends, x, values)
    return places, np.concatenate([[first], values[inside], [last]])
