"""Every value a point, coloured by what the column holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from skattr import frames
from skattr.explanation import Explanation, positions
from skattr.plot import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 120  # values that are closer than this part of the axis stand on each other
WIDEST = 0.38  # of the distance between two columns
SIZES: dict[str, Any] = {"marker": "o", "linewidths": 0.7, "rasterized": True}


def beeswarm(
    explanation: Explanation,
    *,
    output: Any = None,
    max_features: int = 20,
    centered: bool = True,
    max_points: int = 5000,
    ax: Axes | None = None,
) -> Axes:
    """Draw every value as a point, one line a column, the most important column on top.

    Numbers, dates, booleans and ordered categories are coloured by their rank in the column,
    categories without order and groups are grey, and missing ones are hollow.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    output : str or int, optional
        The output, by name or position; needed if there are several.
    max_features : int, default 20
        Columns with a line of their own; the values of all others are added up in one last line.
    centered : bool, default True
        Whether to take the offset off.
    max_points : int, default 5000
        Points drawn in a line. Of more rows an evenly spaced part is drawn, and the axis says so.
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
    >>> explanation = skattr.MeasureExplainer(tree).fit(X).explain(X)
    >>> ax = skattr.plot.beeswarm(explanation, max_points=200)
    >>> print(ax.get_xlabel())
    attribution, centred · prediction
    200 of 442 rows drawn
    """
    explanation = drawing.check(explanation, output, max_features)
    drawing.check_count("max_points", max_points)
    values = drawing.values_of(explanation, centered)
    ranking = drawing.Ranking.of(np.abs(values).mean(axis=0), max_features)
    rows = drawing.even(len(values), max_points)
    points = ranking.columns(values)[rows]  # (n, m)
    colours = np.full(points.shape, np.nan)  # rank in the column
    missing = np.zeros(points.shape, bool)
    places = positions(explanation.data, explanation.columns)
    for line, j in enumerate(ranking.first):
        if len(places[j]) == 1:
            rank, gone = ranks(explanation.data, places[j][0])
            colours[:, line], missing[:, line] = rank[rows], gone[rows]

    names = ranking.names(explanation)
    ax = drawing.new_axes(ax, 7.2, drawing.height_of(len(names)) + 0.3)
    drawing.zero_line(ax)
    heights = np.column_stack([stack(x, points.min(), points.max()) for x in points.T])
    heights += np.arange(len(names))
    _scatter(ax, points, heights, colours, missing)
    drawing.name_rows(ax, names)
    drawing.bare(ax, "top", "right", "left")
    label = drawing.value_label(centered, explanation.scale, explanation.output_names[0])
    some = drawing.rows_drawn(len(rows), len(values))
    drawing.label_x(ax, f"{label}\n{some}" if some else label)
    return ax


def ranks(data: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rank of each value in its column, 0 to 1 (NaN if there is no order), and gaps."""
    column = frames.column(data, k)
    if frames.is_number(data, k):
        keys: Any = frames.to_float(column)
        missing = np.isnan(keys)
    else:
        values = pd.Series(frames.to_list(column), dtype=object)
        missing = values.isna().to_numpy(bool)
        keys = _keys(column, values)
    result = np.full(len(missing), np.nan)
    there = ~missing
    if keys is not None and there.any():
        rank = rankdata(keys[there])
        result[there] = (rank - 1) / (len(rank) - 1) if len(rank) > 1 else 0.5
    return result, missing


def _keys(column: Any, values: pd.Series) -> np.ndarray | None:
    """Return numbers that sort the values as they sort themselves, or None."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.cat.codes) if column.dtype.ordered else None
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind == "boolean":
        return values.to_numpy() == np.True_
    if kind in ("datetime", "datetime64", "date", "timedelta", "timedelta64"):
        return pd.factorize(values.infer_objects(), sort=True)[0]
    return None


def stack(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return heights around 0 that keep close values apart: those of a bin alternate up and down.

    The fullest bin of a line is as wide as a line may be, so a line shows the density.
    """
    bins = np.floor((x - low) / ((high - low) or 1.0) * BINS).astype(int)
    order = np.argsort(bins, kind="stable")
    sorted_bins = bins[order]
    first = np.searchsorted(sorted_bins, sorted_bins)  # where the bin of each begins
    level = np.empty(len(x))
    level[order] = np.arange(len(x)) - first
    signed = np.ceil(level / 2) * np.where(level % 2 == 0, 1, -1)
    return signed * min(0.09, WIDEST / max(np.abs(signed).max(), 1))


def _scatter(ax: Axes, x: np.ndarray, y: np.ndarray, rank: np.ndarray, gone: np.ndarray) -> None:
    """Draw the points: neutral ones first, so that coloured ones are seen."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap

    size = 16 if len(x) <= 1000 else 9
    ordered = ~np.isnan(rank)
    plain = ~ordered & ~gone
    neutral = []
    if plain.any():
        dots = ax.scatter(x[plain], y[plain], s=size, color=drawing.GREY, **SIZES)
        neutral.append((dots, "no order"))
    if gone.any():
        rings = ax.scatter(x[gone], y[gone], s=size, facecolors="none", edgecolors=drawing.GREY,
                           **SIZES)  # fmt: skip
        neutral.append((rings, "missing"))
    if neutral:  # above the axes: "best" would look at every point
        above: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
        drawing.legend(ax, neutral, ncols=2, borderaxespad=0, **above)
    if not ordered.any():
        return
    from matplotlib import colormaps

    # without its ends: the yellow of plasma is not seen on white
    cmap = ListedColormap(colormaps["plasma"](np.linspace(0.02, 0.86, 256)), "low to high")
    ax.scatter(x[ordered], y[ordered], s=size, c=rank[ordered], cmap=cmap, vmin=0, vmax=1, **SIZES)
    scale = ScalarMappable(cmap=cmap)
    bar = ax.figure.colorbar(scale, ax=ax, aspect=40, pad=0.02, ticks=[0, 1])
    bar.ax.set_yticklabels(["low", "high"])
    bar.set_label("rank in the column", labelpad=-12)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
