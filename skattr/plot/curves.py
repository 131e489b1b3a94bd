"""The attribution of one column as a function of its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skattr import frames
from skattr.curves import Curve
from skattr.messages import brief
from skattr.plot import drawing
from skattr.plot.columns import MISSING, OTHER, Column, as_column, on_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THIN = 30  # effective rows below which a value is not to be trusted
DENSE = 1000  # points of a line that is bent more often
BEYOND = 0.05  # how far the outer steps are drawn, where data does not tell
STRIP = 0.11  # height of the strip of data, of the axes
MANY = 100  # points on an axis that are drawn small
FEW = 12  # levels that are numbers or dates and still bars: more are points on an axis
NARROWEST = 6.5  # points of the smallest names of levels


@dataclass
class Line:
    """One curve to draw."""

    label: str | None
    kind: str  # "steps", "line", "points" or "levels"
    x: Any  # the edges of steps (m + 1,), the points of a line (m,), or a list of m levels
    values: np.ndarray  # (m,)
    special: dict[
        drawing.NoLevel, float
    ]  # the values where the column is missing, and at any other level
    dates: bool = False
    unit: str = ""

    @property
    def all_values(self) -> np.ndarray:
        """All values that may be drawn."""
        return np.append(self.values, [*self.special.values()])


def curve(
    curves: Curve | Sequence[Curve] | Mapping[Any, Curve],
    *,
    data: Any = None,
    support: Any = None,
    output: Any = None,
    centered: bool | None = None,
    labels: Sequence[Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the attribution of a column as a function of its value, with all its jumps.

    Steps are drawn with their jumps where they are, levels as bars, other functions as a line
    through their points; many levels that are numbers or dates are points on their axis. Levels
    stand in their order or, if they have none, by size. "missing" and "any other" are drawn where
    the data has such rows; without data, where the background does or the model says what they
    get. The outer steps reach 5 % beyond the others, and as far as the data. Several outputs have
    one panel each.

    Parameters
    ----------
    curves : Curve, list of Curve, or dict from a label to a Curve
        What to draw: curves of one column, such as those of several measures.
    data : DataFrame or array (n, d), or one column (n,), optional
        The raw data, to draw how the values of the column are distributed below. Of a table the
        column is taken that the curves belong to.
    support : array (n,), optional
        The effective number of rows behind the value at each entry of data, a column of
        `Explanation.support`. Where it is below 30 the background is shaded.
    output : str or int, optional
        The output, by name or position; all of them by default.
    centered : bool, optional
        Whether to take the offset off; by default where the curves know it.
    labels : list, optional
        What to call the curves; their measures in words by default.
    ax : matplotlib Axes, optional
        Where to draw, one Axes for each output drawn; a new figure by default.

    Returns
    -------
    Axes, or array of Axes if there are several outputs

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    >>> explainer = skattr.MeasureExplainer(tree).fit(X)
    >>> ax = skattr.plot.curve(explainer.curve("bmi"), data=X)
    >>> print(ax.get_xlabel())
    bmi
    442 rows
    """
    given, names = _as_list(curves, labels)
    if centered is None:
        centered = all(one.offset is not None for one in given)
    outputs = _outputs(given, output)
    sets = [[_line(one, name, o, centered) for one, name in zip(given, names, strict=True)]
            for o in outputs]  # fmt: skip
    lines = sets[0]
    levels = {line.kind == "levels" for line in lines}
    if len(levels) > 1 or len({line.dates for line in lines}) > 1:
        kinds = ", ".join(line.kind + " of dates" * line.dates for line in lines)
        raise ValueError(f"curves of different kinds share no axis: {kinds}")
    column = None
    if data is not None:
        data = _own_column(data, given[0].feature)
        column = as_column(data, given[0].feature, levels == {True}, lines[0].dates)
    elif support is not None:
        raise ValueError("support needs data: the values that it belongs to")
    thin = _thin(support, column)
    _drop_unknown(sets, given, column)
    order = _arranged(lines, given[0].order, column) if levels == {True} else None

    wide = 0.0 if order is None else 1.3 + 0.135 * len(order)
    size, panel = (min(max(6.4, wide), 14.0), 4.0), (min(max(4.4, wide), 6.4), 4.0)
    panels = drawing.Panels.of(ax, [given[0].output_names[o] for o in outputs], size, panel)
    for drawn, axes, o in zip(sets, panels.axes, outputs, strict=True):
        if order is None:
            entries = _draw_numbers(axes, drawn, column, thin)
        else:
            entries = _draw_levels(axes, drawn, order, column, thin)
        _limit(axes, drawn, column, centered or order is not None)
        _write(axes, given, lines[0].unit, column, o, centered)
        if entries and o == outputs[-1]:
            drawing.legend(axes, entries)
    panels.share("y", given[0].scale)
    return panels.result()


# What is given ---------------------------------------------------------------------------------


def _as_list(curves: Any, labels: Any) -> tuple[list[Curve], list[str | None]]:
    """Return the curves and what to call them; None for a single one without a label."""
    if isinstance(curves, Mapping):
        labels = list(curves) if labels is None else labels
        curves = list(curves.values())
    several = np.iterable(curves) and not isinstance(curves, str)
    given = list(curves) if several else [curves]
    wrong = [brief(one) for one in given if not isinstance(one, Curve)]
    if wrong or not given:
        raise TypeError(
            "curves must be a Curve, such as explainer.curve('name'), or a list or dict of them; "
            f"got {wrong[0] if wrong else brief(curves)}"
        )
    if labels is None:
        labels = _default_labels(given)
    if isinstance(labels, str) or len(labels) != len(given):
        raise ValueError(f"there are {len(given)} curves, but labels={labels!r}")
    features = list(dict.fromkeys(str(one.feature) for one in given))
    if len(features) > 1:
        raise ValueError(f"curves of one column are drawn together, not of {features}")
    return given, [None if label is None else drawing.shorten(label, 60) for label in labels]


def _own_column(data: Any, feature: Any) -> Any:
    """Return the column of a feature, if the data is a table."""
    if not frames.is_frame(data) and len(getattr(data, "shape", ())) != 2:
        return data
    names = frames.labels(data)
    if feature not in names:
        raise ValueError(f"data has no column {feature!r}; it has {brief(names)}")
    return frames.column(data, names.index(feature))


def _default_labels(given: list[Curve]) -> Sequence[str | None]:
    """Return the measures in words, if they tell the curves apart."""
    if len(given) == 1:
        return [None]
    measures = [one.measure_name for one in given]
    if all(measures) and len({*measures}) == len(measures):
        return measures
    return [f"curve {i + 1}" for i in range(len(given))]


def _outputs(given: list[Curve], output: Any) -> list[int]:
    """Return the positions of the outputs to draw, which all curves have."""
    names = given[0].output_names
    for one in given:
        if one.output_names != names:
            raise ValueError(
                f"curves of the same outputs are drawn together, not of {names} and "
                f"{one.output_names}"
            )
    if output is None:
        return list(range(len(names)))
    if str(output) in names:
        return [names.index(str(output))]
    if isinstance(output, int | np.integer) and -len(names) <= output < len(names):
        return [int(output) % len(names)]
    raise ValueError(f"there is no output {brief(output)}; there are {brief(list(names))}")


def _line(one: Curve, label: str | None, o: int, centered: bool) -> Line:
    """Return one output of a curve as what is drawn of it."""
    frame = one.to_frame()
    values = frame.iloc[:, frame.shape[1] - len(one.output_names) + o].to_numpy(float)
    if centered:
        if one.offset is None:
            raise ValueError(f"{one!r} does not know its offset: centered=True is not possible")
        values = values - one.offset[o]
    if one.kind == "levels":
        return _level_line(one, label, frame, values)
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
    special = {MISSING: float(gone[0])} if len(gone) else {}
    if read.levels is not None:
        return Line(label, "levels", read.levels, values, special)
    kind = "steps" if one.kind == "steps" else "line"
    return Line(label, kind, read.numbers, values, special, read.dates, read.unit)


def _level_line(one: Curve, label: str | None, frame: pd.DataFrame, values: np.ndarray) -> Line:
    """Return the bars of levels; of many levels that are numbers or dates, points on an axis."""
    own = (frame["kind"] == "level").to_numpy()
    names = frame["level"].to_list()
    special = {drawing.NoLevel(names[i]): float(values[i]) for i in np.flatnonzero(~own)}
    levels, values = [names[i] for i in np.flatnonzero(own)], values[own]
    if len(levels) <= FEW or not on_axis(levels):
        return Line(label, "levels", levels, values, special)
    read = as_column(pd.Series(levels, dtype=object).infer_objects(), one.feature)
    order = np.argsort(read.numbers, kind="stable")
    x, values = read.numbers[order], values[order]
    return Line(label, "points", x, values, special, read.dates, read.unit)


def _drop_unknown(sets: list[list[Line]], given: list[Curve], column: Column | None) -> None:
    """Keep "missing" and "any other" only where rows or, without them, the background know them."""
    for lines in sets:
        for line, one in zip(lines, given, strict=True):
            line.special = {
                name: value
                for name, value in line.special.items()
                if _is_known(name, line, one, column)
            }


def _is_known(name: drawing.NoLevel, line: Line, one: Curve, column: Column | None) -> bool:
    """Tell whether rows or, without them, the background know "missing" or "any other"."""
    if name == OTHER:
        return column is None or _has_other(line, column)
    return one.missing_seen is not False if column is None else column.has(name)


def _has_other(line: Line, column: Column) -> bool:
    """Tell whether rows have a level that is none of the curve's."""
    if column.levels is None:
        there = column.numbers[~column.missing]
        return line.kind == "points" and not np.isin(there, line.x).all()
    return bool((column.among(line.x)[~column.missing] < 0).any())


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
        width = 1.6 + 1.2 * (len(lines) - 1 - i)  # a line that lies on another leaves its edges
        if line.kind == "steps":
            # a conditional curve has values of its own at single numbers: points, not steps
            point = np.nextafter(line.x[:-1], np.inf) == line.x[1:]
            edges = np.clip(np.append(line.x[:-1][~point], line.x[-1]), low, high)
            drawn: Any = ax.stairs(
                line.values[~point], edges, baseline=None, color=colour, linewidth=width
            )
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
        entries += [(drawn, line.label)] if line.label is not None else []
        for name, value in line.special.items():
            above = i % 2 == 0  # of two close lines both words are read
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
    if column is not None:
        inside = column.numbers[np.isfinite(column.numbers)]
        heights, edges = np.histogram(inside, bins=min(48, 4 + len(inside)), range=(low, high))
        ax.stairs(heights / max(heights.max(), 1) * STRIP, edges, fill=True, color=drawing.GREY,
                  alpha=0.55, transform=ax.get_xaxis_transform(), linewidth=0)  # fmt: skip
        if thin is not None:
            entries += _shade(ax, _runs(column.numbers, thin, low, high))
    if lines[0].dates:
        ax.xaxis_date()
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        most = max(3, min(8, int(drawing.width_in_points(ax) / 45)))  # as many as have room
        locator = AutoDateLocator(minticks=2, maxticks=most)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
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


def _arranged(lines: list[Line], order: tuple | None, column: Column | None) -> list:
    """Return the levels from left to right: in their order or, if they have none, by size.

    "missing" and "any other" stand last.
    """
    sizes: dict[Any, float] = {}
    for line in lines:
        for level, value in zip(line.x, line.values, strict=True):
            sizes.setdefault(level, value)
    order = order if order is not None or column is None else column.order
    if order is not None:
        place = {level: p for p, level in enumerate(order)}
        levels = sorted(sizes, key=lambda level: place.get(level, len(place)))
    elif on_axis([*sizes]):
        levels = sorted(sizes)
    else:
        levels = sorted(sizes, key=lambda level: -sizes[level])
    special = dict.fromkeys(name for line in lines for name in line.special)
    return [*levels, *sorted(special, key=lambda name: name == OTHER)]


def _draw_levels(
    ax: Axes, lines: list[Line], levels: list, column: Column | None, thin: np.ndarray | None
) -> list[tuple]:
    """Draw a bar for each level and curve, with the data below; return what a legend says."""
    width = 0.8 / len(lines)
    entries: list[tuple] = []
    weights = np.zeros(len(levels))  # how much a level matters, for its name
    for i, line in enumerate(lines):
        table = dict(zip(line.x, line.values, strict=True)) | line.special
        places = [p for p, level in enumerate(levels) if level in table]
        middle = np.array(places) + (i - (len(lines) - 1) / 2) * width
        heights = np.array([table[levels[p]] for p in places])
        drawn = ax.bar(middle, heights, width * 0.94, color=_colour(i))
        weights[places] = np.maximum(weights[places], np.abs(heights))
        entries += [(drawn, line.label)] if line.label is not None else []
    if column is not None:
        where = column.among(levels)  # (n,) positions, -1 for what has no bar
        counts = np.bincount(where[where >= 0], minlength=len(levels))
        weights *= counts
        ax.bar(np.arange(len(levels)), counts / max(counts.max(), 1) * STRIP, 0.8, alpha=0.55,
               color=drawing.GREY, transform=ax.get_xaxis_transform())  # fmt: skip
        if thin is not None:
            few = np.unique(where[thin & (where >= 0)])
            entries += _shade(ax, [(place - 0.5, 1.0) for place in few])
    ax.set_xlim(-0.6, len(levels) - 0.4)
    _name_levels(ax, [drawing.raw_text(level, 24) for level in levels], weights)
    return entries


def _name_levels(ax: Axes, names: list[str], weights: np.ndarray) -> None:
    """Write the names of levels as large as there is room; of too many those that matter most."""
    from matplotlib import rcParams

    points = drawing.font_points(rcParams["xtick.labelsize"])
    room = 0.85 * drawing.width_in_points(ax) / len(names)  # of each
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


def _apart(weights: np.ndarray, distance: float) -> np.ndarray:
    """Return positions that are at least a distance apart, those of the largest weights first."""
    if distance <= 1:
        return np.arange(len(weights))
    free = np.ones(len(weights), bool)
    chosen = []
    for p in np.argsort(-weights, kind="stable"):
        if free[p]:
            chosen.append(p)
            free[max(0, p - int(np.ceil(distance)) + 1) : p + int(np.ceil(distance))] = False
    return np.sort(chosen)


# Words and limits ------------------------------------------------------------------------------


def _limit(ax: Axes, lines: list[Line], column: Column | None, from_zero: bool) -> None:
    """Set the limits of values, with room for the strip, and draw the zero line."""
    values = np.concatenate([*(line.all_values for line in lines), [0.0] * from_zero])
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
    o: int,
    centered: bool,
) -> None:
    """Write the labels of the axes."""
    label = drawing.shorten(given[0].feature) + unit
    if column is not None:
        label += f"\n{column.describe()}"
    drawing.label_x(ax, label, years=True)
    units = {(one.scale, one.output_names[o]) for one in given}
    words = "attribution, centred" if centered else "attribution"
    if len(units) == 1:
        words = drawing.value_label(centered, *units.pop())
    drawing.label_y(ax, words)
    drawing.bare(ax, "top", "right")
