"""One column of a surface as an axis: cells of numbers or dates, or levels, and missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr.curves import Curve
from skattr.plot import drawing
from skattr.plot.columns import MISSING, Column, as_column
from skattr.plot.curve_levels import arranged
from skattr.plot.curve_lines import BEYOND, Line, as_line, drop_unknown

CELLS = 120  # of numbers; of a step function with more jumps, the value in the middle of each
EVALUATED = 24  # cells of a function that calls the model
GAP = 0.03  # between numbers and "missing", as a part of the axis
WIDE = 0.06  # the width of "missing"
MARGIN = 0.015  # beyond the lowest and the highest number, whose rows are drawn on their cells


@dataclass
class SurfaceAxis:
    """The cells of one column, in the order of the axis."""

    feature: Any
    raw: Any  # (m,) a value in each cell, as `Surface.grid` takes them
    edges: np.ndarray  # (m + 1,) of cells that touch
    names: list[str] | None  # of levels, at 0, 1, …; None for numbers
    steps: bool = True  # whether a cell has one value; else the values are those of their middles
    dates: bool = False
    unit: str = ""
    missing: tuple[float, float] | None = None  # the ends of the cell of missing numbers
    column: Column | None = None  # the data

    @property
    def whole(self) -> bool:
        """Whether the rows of the data have whole numbers, few enough to be told apart."""
        return self.column is not None and self.column.whole

    @property
    def n_cells(self) -> int:
        """The number of cells without that of missing numbers."""
        return len(self.edges) - 1

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the axis."""
        last = self.edges[-1] if self.missing is None else self.missing[1]
        return float(self.edges[0]), float(last)

    def places(self) -> np.ndarray:
        """Return where the rows of the data stand on the axis, (n,)."""
        assert self.column is not None
        if self.names is not None:
            texts = [drawing.raw_text(level, 24) for level in self.column.levels or ()]
            position = {name: p for p, name in enumerate(self.names)}
            at = np.array([position.get(text, np.nan) for text in texts], float)
            at[self.column.missing] = position.get("missing", np.nan)
            return at
        beside = np.nan if self.missing is None else np.mean(self.missing)
        return np.where(self.column.missing, beside, self.column.numbers)

    @property
    def label(self) -> str:
        """The label of the axis."""
        return f"{drawing.shorten(self.feature)}{self.unit}"

    def weights(self) -> np.ndarray:
        """Return how many rows have each level, which counts where not all names fit."""
        assert self.names is not None
        if self.column is None:
            return np.ones(len(self.names))
        places = self.places()
        places = places[np.isfinite(places)].astype(int)
        return np.bincount(places, minlength=len(self.names)).astype(float)


def surface_axis(curve: Curve, data: Any) -> SurfaceAxis:
    """Return the axis of a column, over the range of the data or of the curve."""
    lines = [as_line(curve, None, 0, centered=False)]
    column = None
    if data is not None:
        column = as_column(data, curve.feature, lines[0].kind == "levels", lines[0].dates)
    drop_unknown([lines], [curve], column)
    line = lines[0]
    if line.kind == "levels":
        return _of_levels(curve, line, column)
    return _of_numbers(curve, line, column)


def _of_levels(curve: Curve, line: Line, column: Column | None) -> SurfaceAxis:
    levels = arranged([line], curve.order, column)
    if column is not None:  # a level that no row has tells nothing about this data
        seen = set(column.among(levels).tolist())
        levels = [level for p, level in enumerate(levels) if p in seen] or levels
    names = [drawing.raw_text(level, 24) for level in levels]
    raw = [None if isinstance(level, drawing.NoLevel) else level for level in levels]
    known = [level for level in raw if level is not None]
    levels_only = [i for i, level in enumerate(levels) if level in known or level == MISSING]
    raw = [raw[i] for i in levels_only]
    names = [names[i] for i in levels_only]
    edges = np.arange(len(raw) + 1) - 0.5
    return SurfaceAxis(curve.feature, frames.as_column(raw), edges, names, column=column)


def _of_numbers(curve: Curve, line: Line, column: Column | None) -> SurfaceAxis:
    low, high = _range(curve, line, column)
    inner = line.x[np.isfinite(line.x) & (line.x > low) & (line.x < high)]
    steps = line.kind == "steps" and len(inner) < CELLS
    n_cells = EVALUATED if curve.kind == "function" else CELLS
    edges = np.unique([low, *inner, high]) if steps else np.linspace(low, high, n_cells + 1)
    middle: Any = (edges[:-1] + edges[1:]) / 2
    if line.kind == "points":  # the model knows these values, and may refuse others
        middle = np.unique(line.x[np.isfinite(line.x)])
        middle = middle[np.unique(np.linspace(0, len(middle) - 1, n_cells).astype(int))]
        between = (middle[:-1] + middle[1:]) / 2
        edges = np.array([min(low, middle[0]), *between, max(high, middle[-1])])
    if line.kind != "line":
        margin = 0.5 if column is not None and column.whole else MARGIN * (high - low)
        edges[[0, -1]] += margin * np.array([-1, 1])
    missing = None
    if MISSING in line.special:
        begin = edges[-1] + GAP * (high - low)
        missing = (begin, begin + WIDE * (high - low))
    raw: Any = middle
    if line.dates:
        from matplotlib.dates import num2date

        raw = pd.Series([day.replace(tzinfo=None) for day in num2date(middle)])
        raw = raw.astype("datetime64[us]")
    elif line.unit:
        raw = pd.Series(pd.to_timedelta(middle, unit="D"))
    if missing is not None:
        raw = pd.concat([pd.Series(raw), pd.Series([None])], ignore_index=True).astype(
            pd.Series(raw).dtype
        )
    return SurfaceAxis(
        curve.feature, raw, edges, None, line.kind != "line", line.dates, line.unit, missing,
        column,
    )  # fmt: skip


def _range(curve: Curve, line: Line, column: Column | None) -> tuple[float, float]:
    """Return the range of the data, of the background, or of the jumps and a little beyond."""
    there = np.array([]) if column is None else column.numbers[np.isfinite(column.numbers)]
    if not len(there) and curve.span is not None:
        there = np.asarray(curve.span, float)
    if not len(there):
        there = line.x[np.isfinite(line.x)]
        beyond = BEYOND * (float(np.ptp(there)) if len(there) else 0.0)
        there = np.array([there.min() - beyond, there.max() + beyond]) if len(there) else there
    low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
