"""Rows × columns as colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh

from skattr.explanation import Explanation
from skattr.plot import drawing
from skattr.plot.ticks import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FULL = 0.99  # the part of values that have a colour of their own: one outlier would pale the rest


def heatmap(
    explanation: Explanation,
    *,
    output: Any = None,
    max_features: int = 30,
    max_rows: int = 500,
    centered: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the values as colours: a line for each column of X, the rows of X from left to right.

    Rows are ordered by prediction or, without predictions, along the first principal axis of the
    values. Colours are centred at 0; the largest hundredth of values shares the last colour.
    Several outputs have one panel each, with one scale of colours if they have one unit.
    Several outputs have one panel each, with the same columns and colours.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    output : str or int, optional
        The output, by name or position; all of them by default.
    max_features : int, default 30
        Columns with a line of their own; the values of all others are added up in one last line.
    max_rows : int, default 500
        Rows drawn: of more, an evenly spaced part of the ordered rows, and the axis says so.
    centered : bool, default True
        Whether to take the offset off.
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
    >>> explanation = skattr.MeasureExplainer(tree).fit(X).explain(X)
    >>> skattr.plot.heatmap(explanation, max_rows=100).get_xlabel()
    '100 of 442 rows drawn, ordered by prediction'
    """
    ones = drawing.check(explanation, output, max_features)
    drawing.check_count("max_rows", max_rows)
    values = [drawing.values_of(one, centered) for one in ones]
    ranking = drawing.Ranking.of(drawing.mean_sizes(values, explanation.scale), max_features)
    names = ranking.names(explanation)
    drawn = [_rows(one, v, max_rows) for one, v in zip(ones, values, strict=True)]
    colours = [ranking.columns(v)[rows].T for v, rows in zip(values, drawn, strict=True)]  # (m, n)

    height = max(drawing.height_of(len(names)), 3.2)
    outputs = [one.output_names[0] for one in ones]
    panels = drawing.Panels.of(ax, outputs, (7.6, height), (3.8, height + 0.3), names)
    most = np.array([np.abs(each).max() for each in colours])
    together = drawing.comparable(explanation.scale, most)
    for part in [[*range(len(ones))]] if together else [[o] for o in range(len(ones))]:
        beside = [panels.axes[o] for o in part]
        image, extend = _draw(beside, [colours[o] for o in part], len(ranking.first))
        bar = drawing.colorbar(beside, image, extend=extend, extendfrac=0.02, format=numbers())
        of = outputs[part[0]] if len(part) == 1 else None
        bar.set_label(drawing.value_label(centered, explanation.scale, of), **drawing.LITERAL)
    for axes, outer, rows in zip(panels.axes, panels.outer, drawn, strict=True):
        drawing.name_rows(axes, names, outer)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xticks([])
        drawing.bare(axes, "top", "right", "left", "bottom")
        some = drawing.rows_drawn(len(rows), len(values[0])) or drawing.rows(len(values[0]))
        first = ", " if len(ones) == 1 else "\n"
        order = "the first principal axis" if ones[0].predictions is None else "prediction"
        axes.set_xlabel(f"{some}{first}ordered by {order}", **drawing.LITERAL)
    return panels.result()


def _rows(one: Explanation, values: np.ndarray, max_rows: int) -> np.ndarray:
    """Return the rows to draw of one output, in their order."""
    key = _principal(values) if one.predictions is None else one.predictions
    order = np.argsort(key, kind="stable")
    return order[drawing.even(len(order), max_rows)]


def _principal(values: np.ndarray) -> np.ndarray:
    """Return the place of each row on the first principal axis, its largest part positive."""
    gram = values.T @ values  # (g, g): small, however many rows
    last = len(gram) - 1
    axis = eigh(gram, subset_by_index=[last, last])[1][:, 0]
    return values @ (axis * (np.sign(axis[np.abs(axis).argmax()]) or 1.0))


def _draw(axes: list[Axes], colours: list[np.ndarray], n_own: int) -> tuple[Any, str]:
    """Draw the colours, (m, n), on one scale for the sizes of single columns.

    Returns an image, and to which sides values go beyond the scale.
    """
    from matplotlib.colors import LinearSegmentedColormap

    most = max(float(np.abs(each).max()) for each in colours)
    sizes = np.concatenate([np.abs(each[:n_own]).ravel() for each in colours])
    top = float(np.quantile(sizes, FULL)) or most or 1.0
    cmap = LinearSegmentedColormap.from_list(
        "negative to positive", [*drawing.NEGATIVE_TO_POSITIVE]
    )
    for ax, each in zip(axes, colours, strict=True):
        image = ax.imshow(each, cmap=cmap, vmin=-top, vmax=top, aspect="auto",
                          interpolation="nearest")  # fmt: skip
    return image, "both" if most > top else "neither"
