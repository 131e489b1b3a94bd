"""Every value as a point, coloured by the value of the column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from skattr._inputs import frames
from skattr._selection import positions
from skattr.explanation import Explanation
from skattr.plot import drawing
from skattr.plot.selection import Selection, check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 120  # of the axis: values in the same bin are stacked
LINE, NAMED_LINE = 0.4, 0.5  # inches per column, and with names of levels below the points
WIDEST = 0.32  # how far points reach up and down, as a part of the distance between columns
SIZES: dict[str, Any] = {"marker": "o", "linewidths": 0.7, "rasterized": True}


def beeswarm(
    explanation: Explanation,
    *,
    output: Any = None,
    max_features: int = 20,
    centered: bool = True,
    max_points: int = 5000,
    ax: Any = None,
) -> Any:
    """Draw every value as a point, one line per column, the most important column on top.

    Numbers, dates, booleans and ordered categories are coloured by their rank in the column.
    Categories without order and groups are grey, with the names of the most common levels below
    their points where there is room, and missing ones are hollow. Several outputs have one panel
    each, with the same columns.

    Parameters
    ----------
    explanation, output, centered, ax
        As in `bar`.
    max_features : int, default 20
        The number of columns with a line each; the others share one last line, their sum.
    max_points : int, default 5000
        Points drawn per line. Of more rows an evenly spaced part is drawn, and the axis says so.

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
    >>> explanation = skattr.MeasureExplainer(tree).fit(X).explain(X)
    >>> ax = skattr.plot.beeswarm(explanation, max_points=200)
    >>> print(ax.get_xlabel())
    attribution, centred · prediction
    200 of 442 rows drawn
    """
    selection = Selection.of(explanation, output, max_features, centered)
    check_count("max_points", max_points)
    names, ranking = selection.names, selection.ranking
    rows = drawing.evenly_spaced(len(explanation), max_points)
    colours, missing, levels = _lines(explanation, ranking.first, rows, len(names))

    height = max(1.5 + (NAMED_LINE if levels else LINE) * len(names), 2.6)
    outputs = selection.outputs
    panels = drawing.Panels.of(ax, outputs, (7.2, height), (4.4, height + 0.3), names)
    some = drawing.rows_drawn(len(rows), len(explanation))
    for o, axes in enumerate(panels.axes):
        points = ranking.columns(selection.values[o])[rows]  # (n, m)
        drawing.zero_line(axes)
        heights = np.column_stack([stack(x, points.min(), points.max()) for x in points.T])
        entries = _scatter(axes, points, heights + np.arange(len(names)), colours, missing)
        drawing.name_rows(axes, names, panels.outer[o])
        if len(names) - 1 in levels:
            axes.set_ylim(len(names) - 0.1, -0.6)  # with room for the levels of the last line
        drawing.hide_spines(axes, "top", "right", "left")
        label = selection.label([o])
        drawing.label_x(axes, f"{label}\n{some}" if some else label)
        if entries and o == len(outputs) - 1:
            drawing.legend_above(axes, entries, len(outputs) > 1)
    panels.share("x", selection.scale)
    width = 0.9 * panels.width(names)  # beside the colours
    for axes, values in zip(panels.axes, selection.values, strict=True):
        room = (1 - 2 * WIDEST) * drawing.height_in_points(axes) / len(names)  # between lines
        if room > drawing.font_points("x-small") + 2:
            drawn = ranking.columns(values)[rows]
            for line, column in levels.items():
                _name_levels(axes, line, drawn[:, line], column, width)
    if not np.isnan(colours).all():
        draw_colorbar(panels, "value of the column")
    return panels.result()


def _lines(
    explanation: Explanation, columns: np.ndarray, rows: np.ndarray, n_lines: int
) -> tuple[np.ndarray, np.ndarray, dict[int, np.ndarray]]:
    """Return the rank of each raw value and whether it is missing, (n, n_lines).

    Also returns line → its levels, for columns of levels without order. Groups have neither.
    """
    rank = np.full((len(rows), n_lines), np.nan)
    missing = np.zeros(rank.shape, bool)
    levels: dict[int, np.ndarray] = {}
    raw_columns = positions(explanation.data, explanation.columns)
    for line, j in enumerate(columns):
        if len(raw_columns[j]) == 1:
            k = raw_columns[j][0]
            all_ranks, all_missing = ranks(explanation.data, k)
            rank[:, line], missing[:, line] = all_ranks[rows], all_missing[rows]
            if np.isnan(all_ranks).all() and not all_missing.all():
                values = frames.to_list(frames.column(explanation.data, k))
                levels[line] = np.fromiter(values, object, len(values))[rows]
    return rank, missing, levels


def ranks(data: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each value in its column, 0 to 1, and which are missing.

    Ranks are NaN where values are missing, and everywhere if they have no order.
    """
    column = frames.column(data, k)
    if frames.is_number(data, k):
        keys: Any = frames.to_float(column)
        missing = np.isnan(keys)
        keys = keys[~missing]
    else:
        values = pd.Series(frames.to_list(column), dtype=object)
        missing = values.isna().to_numpy(bool)
        keys = _keys(data, k, values[~missing])
    result = np.full(len(missing), np.nan)
    if keys is not None and len(keys):
        rank = rankdata(keys)
        spread = np.ptp(rank)  # the lowest is 0 and the highest 1, however many share it
        result[~missing] = (rank - rank.min()) / spread if spread else 0.5
    return result, missing


def _keys(data: Any, k: int, values: pd.Series) -> np.ndarray | None:
    """Return numbers in the order of the values, or None if the values have no order."""
    order = frames.level_order(data, k)
    if order is not None:
        position = {level: p for p, level in enumerate(order)}
        return np.array([position[value] for value in values])
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind in ("datetime", "datetime64", "date", "timedelta", "timedelta64"):
        return pd.factorize(frames.inferred(values), sort=True)[0]
    return None


def stack(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return heights around 0 at which points in the same bin do not overlap.

    Points of a bin alternate up and down, so that a line shows the density.
    """
    bins = np.floor((x - low) / ((high - low) or 1.0) * BINS).astype(int)
    order = np.argsort(bins, kind="stable")
    sorted_bins = bins[order]
    first = np.searchsorted(sorted_bins, sorted_bins)  # where each point's bin begins
    level = np.empty(len(x))
    level[order] = np.arange(len(x)) - first
    signed = np.ceil(level / 2) * np.where(level % 2 == 0, 1, -1)
    return signed * min(0.09, WIDEST / max(np.abs(signed).max(), 1))


def _scatter(
    ax: Axes, x: np.ndarray, y: np.ndarray, rank: np.ndarray, missing: np.ndarray
) -> list[tuple]:
    """Draw the points, coloured ones on top; return the entries of a legend."""
    size = 16 if len(x) <= 1000 else 9
    ordered = ~np.isnan(rank)
    plain = ~ordered & ~missing
    entries = []
    if plain.any():
        dots = ax.scatter(x[plain], y[plain], s=size, color=drawing.GREY, **SIZES)
        entries.append((dots, "no order"))
    if missing.any():
        rings = ax.scatter(x[missing], y[missing], s=size, facecolors="none",
                           edgecolors=drawing.GREY, **SIZES)  # fmt: skip
        entries.append((rings, "missing"))
    if ordered.any():
        ax.scatter(x[ordered], y[ordered], s=size, c=rank[ordered], cmap=low_to_high(), vmin=0,
                   vmax=1, **SIZES)  # fmt: skip
    return entries


def low_to_high() -> Any:
    """Return the colours of ranks."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # without its ends: the yellow of plasma cannot be seen on white
    return ListedColormap(colormaps["plasma"](np.linspace(0.02, 0.86, 256)), "low to high")


def draw_colorbar(panels: drawing.Panels, label: str) -> None:
    """Draw the colour bar of ranks, from low to high."""
    from matplotlib.cm import ScalarMappable

    colours = ScalarMappable(cmap=low_to_high())
    bar = drawing.colorbar(panels.axes, colours, aspect=40, ticks=[0, 1])
    bar.ax.set_yticklabels(["low", "high"])
    bar.set_label(label, labelpad=-12, **drawing.LITERAL)
    bar.ax.tick_params(length=0)


def _name_levels(ax: Axes, line: int, x: np.ndarray, levels: np.ndarray, width: float) -> None:
    """Write the names of the most common levels below their points, where there is room.

    A name is centred below its points or, where it does not fit, to one side. `width` is that of
    the axes, in points.
    """
    codes, names = pd.factorize(pd.Series(levels, dtype=object).map(drawing.raw_text))
    points = drawing.font_points("x-small")
    low, high = ax.get_xlim()
    wide = (high - low) / width  # of a point, in values
    taken: list[tuple[float, float]] = []
    for code in np.argsort(-np.bincount(codes), kind="stable"):
        if names[code] == "missing":
            continue
        middle = float(np.median(x[codes == code]))
        size = drawing.text_width(len(names[code]), points) * wide
        for side, begin in {"center": size / 2, "right": size, "left": 0.0}.items():
            left, right = middle - begin - 3 * wide, middle - begin + size + 3 * wide
            if low <= left and right <= high and all(right < a or left > b for a, b in taken):
                taken.append((left, right))
                ax.annotate(names[code], (middle, line + WIDEST), (0, -3), ha=side, va="top",
                            textcoords="offset points", fontsize="x-small", color=drawing.ink(),
                            **drawing.LITERAL)  # fmt: skip
                break
