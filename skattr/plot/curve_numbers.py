"""Curves on an axis of numbers or dates: steps, lines and points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skattr.plot import drawing
from skattr.plot.columns import Column
from skattr.plot.curve_lines import BEYOND, Line
from skattr.plot.curve_strip import STRIP, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY = 100  # points on an axis from which on they are drawn small


def draw_numbers(
    ax: Axes, lines: list[Line], column: Column | None, thin: np.ndarray | None
) -> list[tuple]:
    """Draw steps, lines and points above the data; return the entries of a legend."""
    low, high = _range(lines, column)
    entries: list[tuple] = []
    for i, line in enumerate(lines):
        width = 1.6 + 1.2 * (len(lines) - 1 - i)  # a line below another is wider, so it is seen
        drawn = _draw_line(ax, line, (low, high), drawing.colour(i), width)
        entries += [(drawn, line.label)] if line.label is not None else []
        _draw_special(ax, line, drawing.colour(i), above=i % 2 == 0)
    if column is not None:
        draw_histogram(ax, column.numbers[np.isfinite(column.numbers)], low, high)
        if thin is not None:
            entries += shade(ax, _runs(column.numbers, thin, low, high))
    if lines[0].dates:
        ax.xaxis_date()
        drawing.date_ticks(ax, max(3, min(8, int(drawing.width_in_points(ax) / 45))))
    ax.set_xlim(low, high)
    return entries


def draw_histogram(ax: Axes, numbers: np.ndarray, low: float, high: float) -> None:
    """Draw the distribution of numbers as a strip at the bottom."""
    heights, edges = np.histogram(numbers, bins=min(48, 4 + len(numbers)), range=(low, high))
    ax.stairs(heights / max(heights.max(), 1) * STRIP, edges, fill=True, color=drawing.GREY,
              alpha=0.55, transform=ax.get_xaxis_transform(), linewidth=0)  # fmt: skip


def _draw_line(ax: Axes, line: Line, ends: tuple[float, float], colour: str, width: float) -> Any:
    """Draw one curve between the ends of the axis; return the artist for a legend."""
    drawn: Any
    if line.kind == "steps":
        # a conditional curve may have values at single numbers: points, not steps
        point = np.nextafter(line.x[:-1], np.inf) == line.x[1:]
        edges = np.clip(np.append(line.x[:-1][~point], line.x[-1]), *ends)
        drawn = ax.stairs(line.values[~point], edges, baseline=None, color=colour, linewidth=width)
        if point.any():
            ax.plot(line.x[1:][point], line.values[point], "o", color=colour, markersize=5)
    elif line.kind == "points":
        size = (3.5 if len(line.x) <= MANY else 2.0) + width - 1.6
        (drawn,) = ax.plot(line.x, line.values, "o", color=colour, markersize=size,
                           markeredgewidth=0)  # fmt: skip
    else:
        marker = "o" if len(line.x) <= 30 else ""
        (drawn,) = ax.plot(line.x, line.values, marker=marker, markersize=3.5, color=colour,
                           linewidth=width)  # fmt: skip
    return drawn


def _draw_special(ax: Axes, line: Line, colour: str, above: bool) -> None:
    """Draw the values at "missing" and "any other" as dashed lines, named above or below."""
    for name, value in line.special.items():
        ax.axhline(value, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
        ax.annotate(
            drawing.raw_text(name),
            (1, value),
            (-2, 2 if above else -2),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="bottom" if above else "top",
            color=colour,
            fontsize="small",
        )


def _range(lines: list[Line], column: Column | None) -> tuple[float, float]:
    """Return the ends of the axis: those of points and data, and 5 % beyond the steps.

    Steps far beyond the data are left out: some boosters end at twice the largest value.
    """
    ends = np.concatenate([line.x for line in lines])
    ends = ends[np.isfinite(ends)]
    data = np.array([]) if column is None else column.numbers[np.isfinite(column.numbers)]
    if len(ends) and any(line.kind == "steps" for line in lines):
        beyond = BEYOND * float(np.ptp(ends))
        ends = np.append(ends, [ends.min() - beyond, ends.max() + beyond])
        if len(data) and np.ptp(data) > 0:
            whole = column is not None and column.whole  # their bars are drawn in full
            near = 0.5 if whole else BEYOND * float(np.ptp(data))
            near_ends = np.array([data.min() - near, data.max() + near])
            ends = np.append(ends.clip(*near_ends), near_ends if whole else [])
    ends = np.concatenate([ends, data])
    if not len(ends):
        return 0.0, 1.0
    low, high = float(ends.min()), float(ends.max())
    if high - low <= 1e-12 * abs(low):
        around = 0.05 * abs(low) or 1.0
        return low - around, high + around
    return low, high


def _runs(x: np.ndarray, thin: np.ndarray, low: float, high: float) -> list[tuple[float, float]]:
    """Return (begin, width) of the intervals in which values are thin.

    An interval ends halfway to the next value that is not.
    """
    there = np.isfinite(x)
    distinct, where = np.unique(x[there], return_inverse=True)
    few = np.zeros(len(distinct), bool)
    few[where[thin[there]]] = True
    borders = np.concatenate([[low], (distinct[:-1] + distinct[1:]) / 2, [high]])
    turns = np.flatnonzero(np.diff(np.concatenate([[False], few, [False]]).astype(int)))
    return [(borders[a], borders[b] - borders[a]) for a, b in turns.reshape(-1, 2)]
