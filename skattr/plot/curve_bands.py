"""Bands around curves, such as the spread over refitted models; the legend says what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skattr._intervals import NO_ERROR, OF_BACKGROUND, half_width
from skattr._utils.messages import brief
from skattr.curves import Curve
from skattr.metrics.bands import Band
from skattr.metrics.stability import Stability
from skattr.plot import drawing
from skattr.plot.curve_lines import Line, line_of, offset_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BETWEEN = 201  # even places between the knots of a line, whose band is not linear
MANY = 1500  # intervals of a band of steps that are drawn: more are joined


@dataclass
class BandLines:
    """The lower and the upper end of a band, with the same places, and what it is."""

    low: Line
    high: Line
    words: str

    @property
    def sides(self) -> tuple[Line, Line]:
        """Both ends."""
        return self.low, self.high

    def ends_of(self, line: Line) -> np.ndarray:
        """Return all ends that are drawn with a line."""
        special = [
            side.special[name] for side in (self.low, self.high) for name in self._special(line)
        ]
        return np.concatenate([self.low.values, self.high.values, special])

    def _special(self, line: Line) -> list[drawing.NoLevel]:
        return [name for name in line.special if name in self.low.special]

    def special(self, line: Line) -> dict[drawing.NoLevel, tuple[float, float]]:
        """Return the ends at missing values and at any other level, where the line has them."""
        return {
            name: (self.low.special[name], self.high.special[name]) for name in self._special(line)
        }


def as_bands(
    band: Any, curves: list[Curve], outputs: list[int], centered: bool
) -> list[list[BandLines | None]]:
    """Return for each output the band of each curve, or None."""
    if band is None:
        return [[None] * len(curves) for _ in outputs]
    bands = list(band) if isinstance(band, list | tuple) else [band]
    if isinstance(band, str):
        bands *= len(curves)
    if len(bands) != len(curves):
        raise ValueError(
            f"band must have one entry per curve, a band or None, got {len(curves)} curves, but "
            f"{len(bands)} entr{'ies' if len(bands) != 1 else 'y'}"
        )
    pairs = list(zip(bands, curves, strict=True))
    return [
        [None if one is None else _lines(one, curve, o, centered) for one, curve in pairs]
        for o in outputs
    ]


def _lines(band: Any, curve: Curve, o: int, centered: bool) -> BandLines:
    """Return the band of output o of a curve."""
    if isinstance(band, Stability):
        band = band.curve(curve.feature)
    if isinstance(band, Band):
        places, low, high = _of_models(band, curve, o, centered)
        words = band.interval_name
    elif isinstance(band, str) and band == "background":
        places, low, high = _of_background(curve, o, centered)
        words = OF_BACKGROUND
    elif isinstance(band, Mapping) and len(band) == 1:
        ((key, table),) = band.items()
        places, words = curve.to_frame(), drawing.shorten(key, 60)
        low, high = (end - offset_of(curve, o, centered) for end in _ends(table, curve, o))
    else:
        raise TypeError(
            "band must be 'background', a Stability, a Band, or a dict of one table, "
            "{'what it is': table}, because a picture has to say which error it shows; got "
            f"{brief(band)}"
        )
    return BandLines(line_of(places, low, curve, None), line_of(places, high, curve, None), words)


def _of_background(
    curve: Curve, o: int, centered: bool
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return a table of places, and the ends of the interval from the rows of the background."""
    if not curve.n_folds:
        raise ValueError(f"band='background': {NO_ERROR}")
    frame = curve.to_frame()
    if curve.kind == "linear":
        x = frame["x"].dropna().to_numpy()
        first, last = (x[0], x[-1]) if curve.span is None else curve.span
        x = np.unique(np.concatenate([x, np.linspace(first, last, BETWEEN)]))
        low, high = curve.select(o).interval(x, centered=centered)
        return pd.DataFrame({"x": x}), low, high
    value = frame.iloc[:, frame.shape[1] - len(curve.output_names) + o].to_numpy(float)
    value = value - offset_of(curve, o, centered)
    width = half_width(curve.table_errors(centered)[:, o], curve.n_folds, None, 0.95)
    known = ~np.isnan(width)
    return frame[known], (value - width)[known], (value + width)[known]


def _of_models(
    band: Band, curve: Curve, o: int, centered: bool
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return the table of several models, and its ends."""
    name = curve.output_names[o]
    if band.feature != curve.feature or name not in band.output_names:
        raise ValueError(
            f"band must be of the same column and outputs as the curve, got a band of "
            f"{band.feature!r}, {band.output_names}, for a curve of {curve.feature!r}, "
            f"{curve.output_names}"
        )
    frame = band.select(name).to_frame(centered=centered)
    return frame, frame["low"].to_numpy(), frame["high"].to_numpy()


def _ends(table: Any, curve: Curve, o: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of output o that a user gave, one pair for each line of the curve."""
    lines, k = len(curve.to_frame()), len(curve.output_names)
    if isinstance(table, pd.DataFrame):
        if not {"low", "high"} <= {*table.columns}:
            raise ValueError(
                f"the table of band must have the columns low and high, got {brief(list(table))}"
            )
        table = table[["low", "high"]].to_numpy(float)
    array = np.asarray(table, float)
    if array.shape not in ((lines, 2), (lines, 2, k)) or (array.ndim == 2 and k > 1):
        wanted = f"({lines}, 2)" if k == 1 else f"({lines}, 2, {k})"
        raise ValueError(
            f"the table of band must have low and high for each of the {lines} lines of "
            f"curve.to_frame(), shape {wanted}, got shape {array.shape}"
        )
    low, high = array[:, 0], array[:, 1]
    if array.ndim == 3:
        low, high = low[:, o], high[:, o]
    if not (low <= high).all():
        raise ValueError("the table of band must have low <= high and no missing numbers")
    return low, high


def draw_bands(
    ax: Axes, bands: Sequence[BandLines | None], lines: list[Line], levels: list | None
) -> list[tuple]:
    """Draw the bands of curves, on an axis of numbers or around the bars of levels.

    Return the entries of a legend.
    """
    entries = []
    for i, (band, line) in enumerate(zip(bands, lines, strict=True)):
        if band is None:
            continue
        if levels is None:
            drawn = _fill(ax, band, drawing.colour(i))
            for low, high in band.special(line).values():
                _bar_at_the_end(ax, low, high, drawing.colour(i))
        else:
            drawn = _error_bars(ax, band, line, levels, i, len(lines))
        words = band.words if line.label is None else f"{line.label}: {band.words}"
        entries.append((drawn, words))
    return entries


def _fill(ax: Axes, band: BandLines, colour: str) -> Any:
    """Fill the area of a band between the ends of the axis."""
    low, high, x = band.low.values, band.high.values, band.low.x
    style: dict[str, Any] = {"color": colour, "alpha": 0.22, "linewidth": 0, "zorder": 1.2}
    if band.low.kind == "points":
        return ax.vlines(x, low, high, color=colour, alpha=0.4, linewidth=1.2, zorder=1.2)
    if band.low.kind == "line":
        return ax.fill_between(x, low, high, **style)
    if len(low) > MANY:  # the widest of neighbours
        starts = np.unique(np.linspace(0, len(low), MANY, endpoint=False).astype(int))
        low, high = np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)
        x = np.append(x[starts], x[-1])
    edges = np.clip(x, *ax.get_xlim())
    return ax.fill_between(
        np.repeat(edges, 2)[1:-1], np.repeat(low, 2), np.repeat(high, 2), **style
    )


def _bar_at_the_end(ax: Axes, low: float, high: float, colour: str) -> None:
    """Draw an error bar at the right end of the axes, where the value at missing ones is named."""
    ax.plot([0.995, 0.995], [low, high], color=colour, linewidth=4, alpha=0.4,
            transform=ax.get_yaxis_transform(), solid_capstyle="butt")  # fmt: skip


def _error_bars(ax: Axes, band: BandLines, line: Line, levels: list, i: int, n: int) -> Any:
    """Draw error bars on the bars of curve i of n."""
    low = dict(zip(band.low.x, band.low.values, strict=True)) | band.low.special
    high = dict(zip(band.high.x, band.high.values, strict=True)) | band.high.special
    own = {*line.x, *line.special}
    places = [p for p, level in enumerate(levels) if level in own and level in low]
    middle = np.array(places) + (i - (n - 1) / 2) * 0.8 / n
    ends = np.array([(low[levels[p]], high[levels[p]]) for p in places]).reshape(-1, 2)
    return ax.vlines(middle, ends[:, 0], ends[:, 1], color=drawing.ink(), linewidth=1.2, zorder=3)
