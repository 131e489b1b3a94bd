"""Curves of levels: one bar for each level and curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skattr.plot import drawing
from skattr.plot.columns import OTHER, Column, on_axis
from skattr.plot.curve_lines import Line
from skattr.plot.curve_strip import STRIP, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NARROWEST = 6.5  # points: the smallest font for names of levels


def arranged(lines: list[Line], order: tuple | None, column: Column | None) -> list:
    """Return the levels from left to right: in their order or, if they have none, by size.

    "missing" and "any other" come last.
    """
    sizes: dict[Any, float] = {}
    for line in lines:
        for level, value in zip(line.x, line.values, strict=True):
            sizes.setdefault(level, value)
    order = order if order is not None or column is None else column.order
    if order is not None:
        position = {level: p for p, level in enumerate(order)}
        levels = sorted(sizes, key=lambda level: position.get(level, len(position)))
    elif on_axis([*sizes]):
        levels = sorted(sizes)
    else:
        levels = sorted(sizes, key=lambda level: -sizes[level])
    special = dict.fromkeys(name for line in lines for name in line.special)
    return [*levels, *sorted(special, key=lambda name: name == OTHER)]


def draw_levels(
    ax: Axes, lines: list[Line], levels: list, column: Column | None, thin: np.ndarray | None
) -> list[tuple]:
    """Draw a bar for each level and curve above the data; return the entries of a legend."""
    width = 0.8 / len(lines)
    entries: list[tuple] = []
    weights = np.zeros(len(levels))  # the names of the largest are written first
    for i, line in enumerate(lines):
        table = dict(zip(line.x, line.values, strict=True)) | line.special
        places = [p for p, level in enumerate(levels) if level in table]
        middle = np.array(places) + (i - (len(lines) - 1) / 2) * width
        heights = np.array([table[levels[p]] for p in places])
        drawn = ax.bar(middle, heights, width * 0.94, color=drawing.colour(i))
        weights[places] = np.maximum(weights[places], np.abs(heights))
        entries += [(drawn, line.label)] if line.label is not None else []
    if column is not None:
        where = column.among(levels)  # (n,) positions, -1 for values without a bar
        counts = np.bincount(where[where >= 0], minlength=len(levels))
        weights *= counts
        ax.bar(np.arange(len(levels)), counts / max(counts.max(), 1) * STRIP, 0.8, alpha=0.55,
               color=drawing.GREY, transform=ax.get_xaxis_transform())  # fmt: skip
        if thin is not None:
            few = np.unique(where[thin & (where >= 0)])
            entries += shade(ax, [(position - 0.5, 1.0) for position in few])
    ax.set_xlim(-0.6, len(levels) - 0.4)
    name_levels(ax, [drawing.raw_text(level, 24) for level in levels], weights)
    return entries


def name_levels(ax: Axes, names: list[str], weights: np.ndarray) -> None:
    """Write the names of levels as large as fits; of too many, those of the largest weights."""
    from matplotlib import rcParams

    points = drawing.font_points(rcParams["xtick.labelsize"])
    room = 0.85 * drawing.width_in_points(ax) / len(names)  # for each name
    longest = drawing.text_width(max(map(len, names)) + 1, points)
    if longest <= room:
        turn, size, at = 0, points, np.arange(len(names))
    elif len(names) <= 15 and 1.6 * points <= room:
        turn, size, at = 40, points, np.arange(len(names))
    else:
        turn, size = 90, min(points, max(room / 1.1, NARROWEST))
        at = _apart(weights, 1.1 * size / room)
    ax.set_xticks(at, [names[p] for p in at], rotation=turn, fontsize=size,
                  ha="right" if turn == 40 else "center",
                  rotation_mode="anchor" if turn == 40 else "default",
                  **drawing.LITERAL)  # fmt: skip


def name_levels_upwards(ax: Axes, names: list[str], weights: np.ndarray) -> None:
    """Write the same on the y axis, where names lie one above the other."""
    from matplotlib import rcParams

    points = drawing.font_points(rcParams["ytick.labelsize"])
    room = 0.85 * drawing.height_in_points(ax) / len(names)
    size = min(points, max(room / 1.1, NARROWEST))
    at = _apart(weights, 1.1 * size / room)
    ax.set_yticks(at, [names[p] for p in at], fontsize=size, **drawing.LITERAL)


def _apart(weights: np.ndarray, distance: float) -> np.ndarray:
    """Choose positions that are at least a distance apart, the largest weights first."""
    if distance <= 1:
        return np.arange(len(weights))
    free = np.ones(len(weights), bool)
    chosen = []
    for p in np.argsort(-weights, kind="stable"):
        if free[p]:
            chosen.append(p)
            free[max(0, p - int(np.ceil(distance)) + 1) : p + int(np.ceil(distance))] = False
    return np.sort(chosen)
