"""The regions of a ReLU network of two columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._utils.numbers import count
from skattr.pieces import ReluNetwork
from skattr.plot import drawing
from skattr.plot.selection import check_count, output_positions
from skattr.plot.ticks import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def regions(
    network: Any, domain: Any = None, *, output: Any = None, max_regions: int = 20_000,
    ax: Any = None,
) -> Any:  # fmt: skip
    """Draw the polygons on which a network of two columns is affine, coloured by its output.

    Colours change linearly inside a polygon, as the output does: nothing is evaluated on a grid.
    Several outputs have one panel each.

    Parameters
    ----------
    network : ReluNetwork or MeasureExplainer
        The network, or the fitted explainer of one.
    domain : array (2, 2) or dict, optional
        The box: low and high of each raw column, or {column: (low, high)}. By default the range of
        an explainer's background, if the explainer has kept it.
    output : str or int, optional
        The output, by name or position; all of them by default.
    max_regions : int, default 20_000
        The largest number of regions that is drawn; more raise an error.
    ax : matplotlib Axes, optional
        Where to draw, one Axes for each output drawn; a new figure by default.

    Returns
    -------
    Axes, or array of Axes if there are several outputs

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.neural_network import MLPRegressor
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> net = MLPRegressor(hidden_layer_sizes=4, tol=1e3, random_state=0)
    >>> explainer = skattr.MeasureExplainer(net).fit(X[["bmi", "bp"]], y)
    >>> ax = skattr.plot.regions(explainer, {"bmi": (-0.1, 0.1), "bp": (-0.1, 0.1)})
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('bmi', 'bp')
    """
    ranges = getattr(network, "column_ranges_", {})
    network = getattr(network, "pieces_", network)
    if not isinstance(network, ReluNetwork):
        what = network.describe() if hasattr(network, "describe") else type(network).__name__
        raise TypeError(f"network must be a ReluNetwork or the explainer of one, got {what}")
    if len(network.names) != 2:
        raise ValueError(f"the network must have two columns, got {network.names}")
    outputs = list(network.output.names)
    chosen = output_positions(outputs, output)
    check_count("max_regions", max_regions)
    if domain is None:
        if not set(network.names) <= set(ranges):
            first = network.names[0]
            raise ValueError(f"domain: give the box to draw, {{{first!r}: (low, high), …}}")
        domain = [ranges[name] for name in network.names]
    polygons, values = _polygons(network, domain, max_regions)
    titles = [outputs[o] for o in chosen]
    panels = drawing.Panels.of(ax, titles, (6.0, 4.8), (4.4, 3.8))
    for axes, o in zip(panels.axes, chosen, strict=True):
        _draw(axes, polygons, [each[:, o] for each in values], drawing.shorten(outputs[o]))
        drawing.label_x(axes, drawing.shorten(network.names[0]), years=True)
        drawing.label_y(axes, drawing.shorten(network.names[1]), years=True)
    return panels.result()


def _polygons(network: ReluNetwork, domain: Any, most: int) -> tuple[list, list]:
    """Return the corners of each region in order, and the outputs there, (m, k)."""
    polygons: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for a, b, corners, _ in network.regions(domain):
        if len(corners) < 3:
            raise ValueError("domain must have low < high in both columns: its sides have a width")
        if len(polygons) == most:
            raise ValueError(
                f"there are more than max_regions={most} regions; raise it or take a smaller box"
            )
        away = (corners - corners.mean(axis=0)) / np.ptp(corners, axis=0)
        order = np.argsort(np.arctan2(away[:, 1], away[:, 0]))
        polygons.append(corners[order])
        values.append(polygons[-1] @ a.T + b)
    return polygons, values


def _draw(ax: Axes, polygons: list, values: list, label: str) -> None:
    from matplotlib.collections import PolyCollection

    sizes = np.array([len(polygon) for polygon in polygons])
    starts = np.cumsum(sizes) - sizes
    fans = [
        np.column_stack(
            [np.full(n - 2, start), start + np.arange(1, n - 1), start + np.arange(2, n)]
        )
        for start, n in zip(starts, sizes, strict=True)
    ]
    x, y = np.concatenate(polygons).T
    mesh = ax.tripcolor(x, y, np.concatenate(values), triangles=np.concatenate(fans),
                        shading="gouraud", cmap="cividis", rasterized=True)  # fmt: skip
    edges = PolyCollection(polygons, facecolors="none", edgecolors="white", linewidths=0.5)
    ax.add_collection(edges)
    ax.set_xlim(x.min(), x.max())
    ax.set_ylim(y.min(), y.max())
    bar = drawing.colorbar([ax], mesh, format=numbers())
    bar.set_label(f"{label}, {count(len(polygons))} regions", **drawing.LITERAL)
