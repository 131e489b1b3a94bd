"""The attribution of two columns together: a heat map, or one line per level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import maximum_filter

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.curves import Surface
from skattr.plot import drawing
from skattr.plot.curve_levels import name_levels, name_levels_upwards
from skattr.plot.selection import output_positions
from skattr.plot.surface_axes import SurfaceAxis, surface_axis
from skattr.plot.ticks import keep_apart, numbers, write_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 6  # levels that are lines instead of stripes of colour
DRAWN = 1000  # rows of the data that are drawn
COARSE = 20  # parts of each axis by which it is judged whether rows are near


def surface(
    surface: Surface,
    *,
    data: Any = None,
    interaction: bool = False,
    output: Any = None,
    centered: bool = True,
    lines: bool | None = None,
    ax: Any = None,
) -> Any:
    """Draw the attribution of two columns as a function of both.

    Two columns of numbers, or of many levels, are a heat map, with the rows of the data as points;
    parts of the picture without rows nearby are shaded. If one column has few levels, it is one
    line per level over the other column. Several outputs have one panel each.

    Parameters
    ----------
    surface : Surface
        What to draw, from `MeasureExplainer.surface`.
    data : DataFrame or array (n, d), optional
        The raw data. It sets the range of the axes, and its rows are drawn.
    interaction : bool, default False
        Whether to draw only what the columns do together beyond each alone.
    output : str or int, optional
        The output, by name or position; all of them by default.
    centered : bool, default True
        Whether to subtract the offset.
    lines : bool, optional
        Whether to draw lines or a heat map; by default lines if a column has at most six levels.
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
    >>> ax = skattr.plot.surface(explainer.surface("bmi", "s5"), data=X)
    >>> ax.get_ylabel()
    's5'
    """
    if not isinstance(surface, Surface):
        raise TypeError(
            "surface must be a Surface, which explainer.surface(a, b) returns; got "
            f"{brief(surface)}"
        )
    drawn = surface.interaction() if interaction else surface
    outputs = output_positions(surface.output_names, output)
    x, y = (
        surface_axis(curve, None if data is None else _column(data, curve.feature))
        for curve in surface.curves
    )
    values = drawn.grid(x.raw, y.raw).reshape(len(x.raw), len(y.raw), -1)  # (m_x, m_y, k)
    values = values - drawn.offset if centered else values
    what = "interaction" if interaction else "{}"
    labels = [
        drawing.value_label(centered, surface.scale, surface.output_names[o], what) for o in outputs
    ]
    few = [axis.names is not None and len(axis.names) <= FEW for axis in (x, y)]
    as_lines = lines if lines is not None else any(few) and not all(few)
    if as_lines and x.names is None and y.names is None:
        raise ValueError("lines=True needs a column of levels, and both columns are numbers")
    panels = drawing.Panels.of(
        ax, [surface.output_names[o] for o in outputs], (6.6, 4.6), (4.8, 4.2)
    )
    for axes, o, label in zip(panels.axes, outputs, labels, strict=True):
        if as_lines:
            by_y = few[1] or x.names is None
            table = values[:, :, o] if by_y else values[:, :, o].T
            _draw_lines(axes, *((x, y) if by_y else (y, x)), table, label)
        else:
            _draw_heat(axes, x, y, values[:, :, o], label)
    return panels.result()


def _column(data: Any, feature: Any) -> Any:
    """Return a column of a table, by its label."""
    labels = frames.labels(data) if np.ndim(data) == 2 else []
    if feature not in labels:
        raise ValueError(f"data must be a table with the column {feature!r}, got {brief(data)}")
    return frames.column(data, labels.index(feature))


def _draw_heat(ax: Axes, x: SurfaceAxis, y: SurfaceAxis, values: np.ndarray, label: str) -> None:
    """Draw values (m_x, m_y) as colours, with points and shades of the data."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("signed", [*drawing.NEGATIVE_TO_POSITIVE])
    top = float(np.abs(values).max()) or 1.0
    for part_x, edges_x in _parts(x):
        for part_y, edges_y in _parts(y):
            mesh = ax.pcolormesh(
                edges_x, edges_y, values[part_x, part_y].T, cmap=colours, vmin=-top, vmax=top,
                rasterized=True,
            )  # fmt: skip
    drawing.colorbar([ax], mesh, format=numbers()).set_label(label, **drawing.LITERAL)
    note = ""
    if x.column is not None and y.column is not None:
        note = _draw_rows(ax, x, y)
    ax.set_xlim(*x.ends)
    ax.set_ylim(*y.ends)
    _write_axes(ax, x, y, note)


def _parts(axis: SurfaceAxis) -> list[tuple[slice, np.ndarray]]:
    """Return the cells that touch, and that of missing numbers, each with its edges."""
    parts = [(slice(0, axis.n_cells), axis.edges)]
    if axis.missing is not None:
        parts.append((slice(axis.n_cells, axis.n_cells + 1), np.array(axis.missing)))
    return parts


def _draw_rows(ax: Axes, x: SurfaceAxis, y: SurfaceAxis) -> str:
    """Draw rows of the data as points, shade where none are near, and say so."""
    at_x, at_y = x.places(), y.places()
    here = np.isfinite(at_x) & np.isfinite(at_y)
    at_x, at_y = at_x[here], at_y[here]
    _shade_empty(ax, x, y, at_x, at_y)
    some = drawing.evenly_spaced(len(at_x), DRAWN)
    rng = np.random.default_rng(0)
    spread = [
        rng.uniform(-0.25, 0.25, len(some)) if axis.names is not None else 0.0 for axis in (x, y)
    ]
    ax.scatter(at_x[some] + spread[0], at_y[some] + spread[1], s=5, color="black", alpha=0.35,
               linewidths=0, rasterized=True)  # fmt: skip
    drawn = drawing.rows_drawn(len(some), len(here)) or drawing.rows(len(here))
    return f"{drawn}; shaded: no rows near"


def _shade_empty(
    ax: Axes, x: SurfaceAxis, y: SurfaceAxis, at_x: np.ndarray, at_y: np.ndarray
) -> None:
    """Shade the parts of the picture in which there are no rows, nor in parts next to them."""
    for _, edges_x in _parts(x):
        for _, edges_y in _parts(y):
            fine = [_coarse(axis, edges) for axis, edges in ((x, edges_x), (y, edges_y))]
            counts = np.histogram2d(at_x, at_y, bins=fine)[0]
            # neighbours count on an axis of numbers, not on one of levels
            reach = [3 if axis.names is None else 1 for axis in (x, y)]
            near = maximum_filter(counts, size=reach, mode="constant") > 0
            empty = np.ma.masked_where(near, np.ones_like(counts))
            ax.pcolormesh(*fine, empty.T, cmap="Greys", vmin=0, vmax=1, alpha=0.4, linewidth=0,
                          rasterized=True, edgecolors="none")  # fmt: skip


def _coarse(axis: SurfaceAxis, edges: np.ndarray) -> np.ndarray:
    """Return the ends of the parts in which rows count as near."""
    if axis.names is not None or len(edges) <= COARSE:
        return edges
    return np.linspace(edges[0], edges[-1], COARSE + 1)


def _write_axes(ax: Axes, x: SurfaceAxis, y: SurfaceAxis, note: str) -> None:
    """Write the labels and ticks of both axes, and a note below."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel(f"{x.label}\n{note}" if note else x.label, **drawing.LITERAL)
    ax.set_ylabel(y.label, **drawing.LITERAL)
    if x.names is not None:
        name_levels(ax, x.names, x.weights())
    if y.names is not None:
        name_levels_upwards(ax, y.names, y.weights())
    for axis, tick in ((x, ax.xaxis), (y, ax.yaxis)):
        if axis.names is None and not axis.dates:
            write_numbers(tick, years=True)
            if axis.whole:
                tick.set_major_locator(MaxNLocator("auto", integer=True))
            if axis is x:
                keep_apart(ax)
        if axis.missing is not None:
            _name_missing(ax, axis, vertical=axis is y)
    if x.dates:
        drawing.date_ticks(ax, 6)
    if y.dates:
        ax.yaxis_date()
    drawing.hide_spines(ax, "top", "right")


def _name_missing(ax: Axes, axis: SurfaceAxis, vertical: bool) -> None:
    assert axis.missing is not None
    at = float(np.mean(axis.missing))
    where = (0, at) if vertical else (at, 1)  # they would meet at the upper right
    transform = ax.get_yaxis_transform() if vertical else ax.get_xaxis_transform()
    ax.annotate("missing", where, (2, 0) if vertical else (0, -2), xycoords=transform,
                textcoords="offset points", ha="left" if vertical else "center",
                va="center" if vertical else "top", rotation=0 if vertical else 90,
                fontsize="x-small")  # fmt: skip


def _draw_lines(
    ax: Axes, x: SurfaceAxis, levels: SurfaceAxis, values: np.ndarray, label: str
) -> None:
    """Draw one line per level over the other column, values (m_x, n_levels)."""
    assert levels.names is not None
    drawing.zero_line(ax, vertical=False)
    entries = []
    colours = drawing.colours_of(len(levels.names))
    n = x.n_cells
    for p, (name, colour) in enumerate(zip(levels.names, colours, strict=True)):
        drawn: Any
        if x.names is None:
            style = {"color": colour, "linewidth": 1.6}
            if x.steps:
                drawn = ax.stairs(values[:n, p], x.edges, baseline=None, **style)
            else:
                (drawn,) = ax.plot((x.edges[:-1] + x.edges[1:]) / 2, values[:n, p], **style)
            if x.missing is not None:
                ax.plot(np.mean(x.missing), values[n, p], "o", color=colour, markersize=5)
        else:
            (drawn,) = ax.plot(np.arange(n), values[:, p], "o", color=colour, markersize=6)
        entries.append((drawn, f"{drawing.shorten(levels.feature, 20)} = {name}"))
    ax.set_xlim(*x.ends)
    ax.set_xlabel(x.label, **drawing.LITERAL)
    if x.names is not None:
        name_levels(ax, x.names, x.weights())
    if x.names is None and not x.dates:
        drawing.label_x(ax, f"{drawing.shorten(x.feature)}{x.unit}", years=True)
    if x.dates:
        ax.xaxis_date()
        drawing.date_ticks(ax, 6)
    if x.missing is not None:
        _name_missing(ax, x, vertical=False)
    drawing.label_y(ax, label)
    drawing.hide_spines(ax, "top", "right")
    drawing.legend(ax, entries)
