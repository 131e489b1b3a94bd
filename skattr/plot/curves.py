"""The attribution of one column as a function of its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skattr.curves import Curve
from skattr.plot import drawing
from skattr.plot.columns import Column, as_column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THIN = 30  # effective rows below which a value is not to be trusted
DENSE = 1000  # points of a line that is bent more often
BEYOND = 0.05  # how far the outer steps are drawn, where data does not tell
STRIP = 0.11  # height of the strip of data, of the axes
TICKS = 40  # names of levels that can be read next to each other


@dataclass
class Line:
    """One curve to draw."""

    label: str | None
    kind: str  # "steps", "line" or "levels"
    x: Any  # the edges of steps (m + 1,), the points of a line (m,), or a list of m levels
    values: np.ndarray  # (m,)
    missing: float | None  # the value where the column is missing
    dates: bool = False
    unit: str = ""


def curve(
    curves: Curve | Sequence[Curve] | Mapping[Any, Curve],
    *,
    data: Any = None,
    support: Any = None,
    output: Any = None,
    centered: bool | None = None,
    labels: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the attribution of a column as a function of its value, with all its jumps.

    Steps are drawn with their jumps where they are, levels as bars, other functions as a line
    through their points. What a missing value gets is a dashed line. The outer steps reach 5 %
    beyond the others, and as far as the data.

    Parameters
    ----------
    curves : Curve, list of Curve, or dict from a label to a Curve
        What to draw: curves of one column, such as those of several measures.
    data : array or Series (n,), optional
        The raw column, to draw how its values are distributed below.
    support : array (n,), optional
        The effective number of rows behind the value at each entry of data, a column of
        `Explanation.support`. Where it is below 30 the background is shaded.
    output : str or int, optional
        The output, by name or position; needed if there are several.
    centered : bool, optional
        Whether to take the offset off; by default where the curves know it.
    labels : list, optional
        What to call the curves.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    >>> explainer = skattr.MeasureExplainer(tree).fit(X)
    >>> ax = skattr.plot.curve(explainer.curve("bmi"), data=X["bmi"])
    >>> print(ax.get_xlabel())
    bmi
    442 rows
    """
    given, names = _as_list(curves, labels)
    if centered is None:
        centered = all(one.offset is not None for one in given)
    lines = [_line(one, name, output, centered) for one, name in zip(given, names, strict=True)]
    levels = {line.kind == "levels" for line in lines}
    if len(levels) > 1 or len({line.dates for line in lines}) > 1:
        kinds = ", ".join(line.kind + " of dates" * line.dates for line in lines)
        raise ValueError(f"curves of different kinds share no axis: {kinds}")
    column = None
    if data is not None:
        column = as_column(data, given[0].feature, levels == {True}, lines[0].dates)
    elif support is not None:
        raise ValueError("support needs data: the values that it belongs to")
    thin = _thin(support, column)

    draw = _draw_levels if levels == {True} else _draw_numbers
    ax = drawing.new_axes(ax, 6.4, 4.0)
    entries = draw(ax, lines, column, thin)
    _limit(ax, lines, column, centered or levels == {True})
    _write(ax, given, lines[0].unit, column, output, centered)
    if entries:
        drawing.legend(ax, entries)
    return ax


# What is given ---------------------------------------------------------------------------------


def _as_list(curves: Any, labels: Any) -> tuple[list[Curve], list[str | None]]:
    """Return the curves and what to call them; None for a single one without a label."""
    if isinstance(curves, Mapping):
        labels = list(curves) if labels is None else labels
        curves = list(curves.values())
    given = [curves] if isinstance(curves, Curve) else list(curves)
    wrong = [type(one).__name__ for one in given if not isinstance(one, Curve)]
    if wrong or not given:
        raise TypeError(f"curves must be a Curve, or a list or dict of them; got {wrong or 'none'}")
    if labels is None:
        labels = [f"curve {i + 1}" for i in range(len(given))] if len(given) > 1 else [None]
    if isinstance(labels, str) or len(labels) != len(given):
        raise ValueError(f"there are {len(given)} curves, but labels={labels!r}")
    features = list(dict.fromkeys(str(one.feature) for one in given))
    if len(features) > 1:
        raise ValueError(f"curves of one column are drawn together, not of {features}")
    return given, [None if label is None else drawing.shorten(label, 60) for label in labels]


def _place(names: tuple[str, ...], output: Any) -> int:
    """Return the position of an output, by name or, where none has that name, by position."""
    if output is None and len(names) > 1:
        raise ValueError(drawing.which_output(names))
    if output is None:
        return 0
    if str(output) in names:
        return names.index(str(output))
    if isinstance(output, int | np.integer) and -len(names) <= output < len(names):
        return int(output) % len(names)
    raise ValueError(f"There is no output {output!r}; the outputs are {str(names)[1:-1]}.")


def _line(one: Curve, label: str | None, output: Any, centered: bool) -> Line:
    """Return a curve as what is drawn of it."""
    place = _place(one.output_names, output)
    frame = one.to_frame()
    values = frame.iloc[:, frame.shape[1] - len(one.output_names) + place].to_numpy(float)
    if centered:
        if one.offset is None:
            raise ValueError(f"{one!r} does not know its offset: centered=True is not possible")
        values = values - one.offset[place]
    if one.kind == "levels":
        levels = [
            level if kind == "level" else drawing.NoLevel(level)
            for level, kind in zip(frame["level"], frame["kind"], strict=True)
        ]
        return Line(label, "levels", levels, values, None)
    if one.kind == "steps":
        inside = (frame["closed"] != "missing").to_numpy()
        gone = values[~inside]
        ends = frame.loc[inside, ["lower", "upper"]].to_numpy()
        x, values = np.append(ends[:, 0], ends[-1:, 1]), values[inside]
    else:
        inside = frame["x"].notna().to_numpy()
        gone = values[~inside]
        x, values = frame["x"][inside], values[inside]
        if one.span is not None:
            x, values = _within(x.to_numpy(float), values, *one.span)
    read = as_column(x, one.feature)
    missing = float(gone[0]) if len(gone) else None
    if read.levels is not None:
        return Line(label, "levels", read.levels, values, missing)
    kind = "steps" if one.kind == "steps" else "line"
    return Line(label, kind, read.numbers, values, missing, read.dates, read.unit)


def _within(
    x: np.ndarray, values: np.ndarray, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return a piecewise linear curve near the data: all knots there or, if many, a dense grid."""
    beyond = BEYOND * (high - low)
    ends = np.array([low - beyond, high + beyond])
    inside = (x > ends[0]) & (x < ends[1])
    places = np.concatenate([ends[:1], x[inside], ends[1:]])
    if len(places) > DENSE:
        places = np.linspace(ends[0], ends[1], DENSE)
        return places, np.interp(places, x, values)
    first, last = np.interp(ends, x, values)
    return places, np.concatenate([[first], values[inside], [last]])


def _thin(support: Any, column: Column | None) -> np.ndarray | None:
    """Return for each row of data whether few rows are behind its value, or None if nowhere."""
    if support is None or column is None:
        return None
    support = np.asarray(support, float)
    if support.shape != (len(column),):
        raise ValueError(f"support has shape {support.shape}, but data has {len(column)} values")
    thin = support < THIN
    return thin if thin.any() else None


# Numbers and dates -----------------------------------------------------------------------------


def _draw_numbers(
    ax: Axes, lines: list[Line], column: Column | None, thin: np.ndarray | None
) -> list[tuple]:
    """Draw steps and lines, with the data below; return the entries of a legend."""
    low, high = _range(lines, column)
    entries: list[tuple] = []
    for i, line in enumerate(lines):
        colour = _colour(i)
        if line.kind == "steps":
            # a conditional curve has values of its own at single numbers: points, not steps
            point = np.nextafter(line.x[:-1], np.inf) == line.x[1:]
            edges = np.clip(np.append(line.x[:-1][~point], line.x[-1]), low, high)
            drawn: Any = ax.stairs(
                line.values[~point], edges, baseline=None, color=colour, linewidth=1.6
            )
            if point.any():
                ax.plot(line.x[1:][point], line.values[point], "o", color=colour, markersize=5)
        else:
            marker = "o" if len(line.x) <= 30 else ""
            (drawn,) = ax.plot(line.x, line.values, marker=marker, markersize=3.5, color=colour,
                               linewidth=1.6)  # fmt: skip
        entries += [(drawn, line.label)] if line.label is not None else []
        if line.missing is not None and (column is None or column.missing.any()):
            above = i % 2 == 0  # of two close lines both words are read
            ax.axhline(line.missing, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
            ax.annotate(
                "missing",
                (1, line.missing),
                (-2, 2 if above else -2),
                xycoords=ax.get_yaxis_transform(),
                textcoords="offset points",
                ha="right",
                va="bottom" if above else "top",
                color=colour,
                fontsize="small",
            )
    if column is not None:
        inside = column.numbers[np.isfinite(column.numbers)]
        heights, edges = np.histogram(inside, bins=min(48, 4 + len(inside)), range=(low, high))
        ax.stairs(heights / max(heights.max(), 1) * STRIP, edges, fill=True, color=drawing.GREY,
                  alpha=0.55, transform=ax.get_xaxis_transform(), linewidth=0)  # fmt: skip
        if thin is not None:
            entries += _shade(ax, _runs(column.numbers, thin, low, high))
    if lines[0].dates:
        ax.xaxis_date()
        from matplotlib.dates import ConciseDateFormatter

        ax.xaxis.set_major_formatter(ConciseDateFormatter(ax.xaxis.get_major_locator()))
    ax.set_xlim(low, high)
    return entries


def _range(lines: list[Line], column: Column | None) -> tuple[float, float]:
    """Return the ends of the axis: of all points, 5 % beyond all steps, and of the data."""
    ends = np.concatenate([line.x for line in lines])
    ends = ends[np.isfinite(ends)]
    data = np.array([]) if column is None else column.numbers[np.isfinite(column.numbers)]
    if len(ends) and any(line.kind == "steps" for line in lines):
        beyond = BEYOND * float(np.ptp(ends))
        ends = np.append(ends, [ends.min() - beyond, ends.max() + beyond])
    ends = np.concatenate([ends, data])
    if not len(ends):
        return 0.0, 1.0
    low, high = float(ends.min()), float(ends.max())
    if high - low <= 1e-12 * abs(low):
        around = 0.05 * abs(low) or 1.0
        return low - around, high + around
    return low, high


def _runs(x: np.ndarray, thin: np.ndarray, low: float, high: float) -> list[tuple[float, float]]:
    """Return (begin, width) where neighbouring values are thin, up to halfway to the next value."""
    there = np.isfinite(x)
    distinct, where = np.unique(x[there], return_inverse=True)
    few = np.zeros(len(distinct), bool)
    few[where[thin[there]]] = True
    borders = np.concatenate([[low], (distinct[:-1] + distinct[1:]) / 2, [high]])
    turns = np.flatnonzero(np.diff(np.concatenate([[False], few, [False]]).astype(int)))
    return [(borders[a], borders[b] - borders[a]) for a, b in turns.reshape(-1, 2)]


def _shade(ax: Axes, runs: list[tuple[float, float]]) -> list[tuple]:
    """Shade (begin, width) where few rows are behind a value."""
    if not runs:
        return []
    shade = ax.broken_barh(runs, (0, 1), transform=ax.get_xaxis_transform(), linewidth=0,
                           facecolor=drawing.AMBER, alpha=0.22, zorder=0.4)  # fmt: skip
    return [(shade, f"fewer than {THIN} rows behind")]


def _colour(i: int) -> str:
    return drawing.PALETTE[i % len(drawing.PALETTE)]


# Levels ----------------------------------------------------------------------------------------


def _draw_levels(
    ax: Axes, lines: list[Line], column: Column | None, thin: np.ndarray | None
) -> list[tuple]:
    """Draw a bar for each level and curve, with the data below; return what a legend says."""
    tables = [dict(zip(line.x, line.values, strict=True)) for line in lines]
    for table, line in zip(tables, lines, strict=True):
        if line.missing is not None:
            table.setdefault(drawing.NoLevel("missing"), line.missing)
    levels = list(dict.fromkeys(level for table in tables for level in table))
    width = 0.8 / len(lines)
    entries: list[tuple] = []
    for i, (table, line) in enumerate(zip(tables, lines, strict=True)):
        places = [p for p, level in enumerate(levels) if level in table]
        middle = np.array(places) + (i - (len(lines) - 1) / 2) * width
        drawn = ax.bar(middle, [table[levels[p]] for p in places], width * 0.94, color=_colour(i))
        entries += [(drawn, line.label)] if line.label is not None else []
    if column is not None:
        where = column.among(levels)  # (n,) positions, -1 for what has no bar
        counts = np.bincount(where[where >= 0], minlength=len(levels))
        ax.bar(np.arange(len(levels)), counts / max(counts.max(), 1) * STRIP, 0.8, alpha=0.55,
               color=drawing.GREY, transform=ax.get_xaxis_transform())  # fmt: skip
        if thin is not None:
            few = np.unique(where[thin & (where >= 0)])
            entries += _shade(ax, [(place - 0.5, 1.0) for place in few])
    step = -(-len(levels) // TICKS)
    names = [drawing.raw_text(level) for level in levels][::step]
    longest = max(map(len, names)) * len(names)
    turn = 0 if longest <= 60 else 40 if len(names) <= 15 else 90
    ax.set_xticks(np.arange(0, len(levels), step), names, rotation=turn,
                  ha="right" if turn == 40 else "center", **drawing.LITERAL)  # fmt: skip
    ax.set_xlim(-0.6, len(levels) - 0.4)
    return entries


# Words and limits ------------------------------------------------------------------------------


def _limit(ax: Axes, lines: list[Line], column: Column | None, from_zero: bool) -> None:
    """Set the limits of values, with room for the strip, and draw the zero line."""
    ends = [line.missing for line in lines if line.missing is not None]
    values = np.concatenate([*(line.values for line in lines), ends, [0.0] * from_zero])
    low, high = float(values.min()), float(values.max())
    size = high - low
    if size <= 1e-12 * abs(high):  # a constant stands in the middle
        size = abs(high) * 0.2 or 2.0
        low, high = low - size / 2, high + size / 2
    below = 0.08 if column is None else 0.08 + STRIP * 1.6
    ax.set_ylim(low - below * size, high + 0.08 * size)
    drawing.zero_line(ax, vertical=False)


def _write(
    ax: Axes,
    given: list[Curve],
    unit: str,
    column: Column | None,
    output: Any,
    centered: bool,
) -> None:
    """Write the labels of the axes."""
    label = drawing.shorten(given[0].feature) + unit
    if column is not None:
        label += f"\n{column.describe()}"
    drawing.label_x(ax, label)
    units = {(one.scale, one.output_names[_place(one.output_names, output)]) for one in given}
    words = "attribution, centred" if centered else "attribution"
    if len(units) == 1:
        words = drawing.value_label(centered, *units.pop())
    ax.set_ylabel(words, **drawing.LITERAL)
    drawing.bare(ax, "top", "right")
