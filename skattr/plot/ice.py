"""`ice`: the predictions of single rows as functions of one column, and their mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr._utils.messages import brief
from skattr.curves import Curves
from skattr.plot import drawing
from skattr.plot.columns import on_axis
from skattr.plot.curve_levels import name_levels
from skattr.plot.selection import check_count

SIZE = (6.0, 4.0)  # inches
MOST_LEVELS = 10  # colours of a column of levels


def ice(
    curves: Curves,
    *,
    output: Any = None,
    centered: bool = False,
    color: Any = None,
    max_rows: int = 100,
    ax: Any = None,
) -> Any:
    """Draw the prediction of each row as a function of one column (ICE), and the mean on top.

    Steps are drawn with their jumps. If there are more rows than `max_rows`, rows at equal
    distances are drawn, which the label says; the mean is that of all rows.

    Parameters
    ----------
    curves : Curves
        From `MeasureExplainer.ice`.
    output : str or int, optional
        One of several outputs; required if there are several.
    centered : bool, default=False
        Whether each curve starts at 0, which shows where rows differ in more than their level.
    color : label or int, optional
        Another column of the rows, which colours the lines.
    max_rows : int, default=100
        The most rows that are drawn.
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
    >>> ax = skattr.plot.ice(explainer.ice(X, "bmi"), color="s5")
    >>> print(ax.get_xlabel())
    bmi
    100 of 442 rows drawn
    """
    if not isinstance(curves, Curves):
        raise TypeError(f"ice draws Curves, from explainer.ice(X, feature), got {brief(curves)}")
    check_count("max_rows", max_rows)
    if output is not None:
        curves = curves.select(output)
    if len(curves.output_names) > 1:
        names = list(curves.output_names)
        raise ValueError(f"there are several outputs: choose output= from {names}")
    panels = drawing.Panels.of(ax, curves.output_names, SIZE, SIZE)
    (axes,) = panels.axes
    x, labels = _positions(curves)
    values = curves(x if labels is None else labels)  # (n, m)
    if labels is not None:
        labels, values = _arranged(curves, labels, values)
    if centered:
        values = values - values[:, :1]
    chosen = drawing.evenly_spaced(len(curves), max_rows)
    at = np.arange(values.shape[1]) if labels is not None else x
    colours, mappable, legend = _colours(curves, color, chosen)
    drawn = "steps-pre" if curves.kind == "steps" else "default"
    for i, colour in zip(chosen, colours, strict=True):
        axes.plot(at, values[i], color=colour, lw=0.8, alpha=0.5, drawstyle=drawn, zorder=1)
    mean = axes.plot(at, values.mean(axis=0), color=drawing.ink(), lw=2.4, drawstyle=drawn)
    drawing.legend(axes, [*legend, (mean[0], "mean of all rows")])
    if mappable is not None:
        drawing.colorbar([axes], mappable, label=drawing.shorten(color))
    count = drawing.rows_drawn(len(chosen), len(curves)) or drawing.rows(len(curves))
    label = f"{drawing.shorten(curves.feature)}\n{count}"
    if labels is None:
        drawing.label_x(axes, label)
    else:
        name_levels(axes, [drawing.raw_text(level, 24) for level in labels], np.ones(len(labels)))
        axes.set_xlabel(label, **drawing.LITERAL)
    what = "change of the prediction" if centered else "prediction"
    label = drawing.value_label(False, curves.scale, curves.output_names[0], what)
    drawing.label_y(axes, label.removesuffix(" · prediction"))
    return panels.result()


def _positions(curves: Curves) -> tuple[np.ndarray, list | None]:
    """Return the numbers at which curves are drawn, or the levels."""
    if curves.kind == "levels":
        return np.empty(0), list(curves.levels or [])
    frame = curves.tables()[0][0]
    if curves.kind == "steps":
        ends = frame["upper"][np.isfinite(frame["upper"])].to_numpy(float)
        if not len(ends):
            return np.array([0.0, 1.0]), None
        beyond = 0.05 * max(float(np.ptp(ends)), 1e-9 + abs(float(ends[0])) * 0.1)
        return np.concatenate([[ends[0] - beyond], ends, [ends[-1] + beyond]]), None
    if curves.kind == "linear":
        knots = np.concatenate([table["x"].to_numpy(float) for table, _ in curves.tables()])
        low, high = curves.span or (np.nanmin(knots), np.nanmax(knots))
        inside = np.unique(knots[(knots > low) & (knots < high)])
        inside = inside[drawing.evenly_spaced(len(inside), 500)] if len(inside) else inside
        return np.concatenate([[low], inside, [high]]), None
    x = frame["x"]
    if x.dtype.kind not in "biuf":
        return np.empty(0), x.dropna().tolist()
    numbers = x.to_numpy(float)
    return numbers[np.isfinite(numbers)], None


def _arranged(curves: Curves, levels: list, values: np.ndarray) -> tuple[list, np.ndarray]:
    """Return levels and values (n, m) in their order or, if they have none, by the mean."""
    k = position(curves.feature, frames.labels(curves.data), "feature")
    order = frames.level_order(curves.data, k)
    if order is not None:
        place = {level: p for p, level in enumerate(order)}
        at = sorted(range(len(levels)), key=lambda p: place.get(levels[p], len(place)))
    elif on_axis(levels):
        at = sorted(range(len(levels)), key=levels.__getitem__)
    else:
        at = np.argsort(-values.mean(axis=0), kind="stable").tolist()
    return [levels[p] for p in at], values[:, at]


def _colours(curves: Curves, color: Any, chosen: np.ndarray) -> tuple[list, Any, list]:
    """Return a colour per row drawn, what a colour bar shows, and entries of the legend."""
    if color is None:
        return [drawing.colour(0)] * len(chosen), None, []
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.lines import Line2D

    k = position(color, frames.labels(curves.data), "color")
    column = frames.column(curves.data, k)
    if frames.is_number(curves.data, k):
        numbers = frames.to_float(column)[chosen]
        finite = numbers[np.isfinite(numbers)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        mappable = ScalarMappable(Normalize(low, high), colormaps["viridis"])
        grey = (0.6, 0.6, 0.6, 1.0)
        return [mappable.to_rgba(v) if np.isfinite(v) else grey for v in numbers], mappable, []
    items = frames.to_list(column)
    values = ["missing" if frames.is_missing(v) else drawing.raw_text(v, 24) for v in items]
    levels = sorted(set(values))
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"color: column {color!r} has {len(levels)} levels; at most {MOST_LEVELS} can be told "
            "apart"
        )
    colours = dict(zip(levels, drawing.colours_of(len(levels)), strict=True))
    legend = [(Line2D([], [], color=colours[v]), f"{drawing.shorten(color)} = {v}") for v in levels]
    return [colours[values[i]] for i in chosen], None, legend
