"""Values as colours, rows × columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh

from skattr.explanation import Explanation
from skattr.plot import drawing
from skattr.plot.selection import Selection, check_count
from skattr.plot.ticks import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FULL = 0.99  # the quantile of |value| with the last colour: one outlier would pale the rest


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
    Several outputs have one panel each, with the same columns, and with one scale of colours if
    they have one unit.

    Parameters
    ----------
    explanation, output, centered, ax
        As in `bar`.
    max_features : int, default 30
        The number of columns with a line each; the others share one last line, their sum.
    max_rows : int, default 500
        Rows drawn. Of more, an evenly spaced part of the ordered rows is drawn, and the axis says
        so.

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
    selection = Selection.of(explanation, output, max_features, centered)
    check_count("max_rows", max_rows)
    names, ranking = selection.names, selection.ranking
    drawn, colours = [], []  # rows (n,) and values (m, n), one per output
    for one, values in zip(selection.explanations, selection.values, strict=True):
        drawn.append(_rows(one, values, max_rows))
        colours.append(ranking.columns(values)[drawn[-1]].T)

    height = max(drawing.height_of(len(names)), 3.2)
    outputs = selection.outputs
    panels = drawing.Panels.of(ax, outputs, (7.6, height), (3.8, height + 0.3), names)
    for part in selection.sharing([np.abs(each).max() for each in colours]):
        beside = [panels.axes[o] for o in part]
        image, extend = _draw(beside, [colours[o] for o in part], len(ranking.first))
        bar = drawing.colorbar(beside, image, extend=extend, extendfrac=0.02, format=numbers())
        bar.set_label(selection.label(part), **drawing.LITERAL)
    n = len(explanation)
    for axes, outer, rows in zip(panels.axes, panels.outer, drawn, strict=True):
        drawing.name_rows(axes, names, outer)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xticks([])
        drawing.hide_spines(axes, "top", "right", "left", "bottom")
        shown = drawing.rows_drawn(len(rows), n) or drawing.rows(n)
        between = ", " if len(outputs) == 1 else "\n"
        order = "the first principal axis" if explanation.predictions is None else "prediction"
        axes.set_xlabel(f"{shown}{between}ordered by {order}", **drawing.LITERAL)
    return panels.result()


def _rows(one: Explanation, values: np.ndarray, max_rows: int) -> np.ndarray:
    """Return the rows to draw of one output, in their order."""
    key = _principal(values) if one.predictions is None else one.predictions
    order = np.argsort(key, kind="stable")
    return order[drawing.evenly_spaced(len(order), max_rows)]


def _principal(values: np.ndarray) -> np.ndarray:
    """Return the coordinate of each row along the first principal axis of the values.

    The largest component of the axis is positive.
    """
    gram = values.T @ values  # (g, g): small, however many rows
    last = len(gram) - 1
    axis = eigh(gram, subset_by_index=[last, last])[1][:, 0]
    return values @ (axis * (np.sign(axis[np.abs(axis).argmax()]) or 1.0))


def _draw(axes: list[Axes], colours: list[np.ndarray], n_columns: int) -> tuple[Any, str]:
    """Draw arrays (m, n) with one scale of colours, which suits the values of single columns.

    Returns an image, and at which ends values go beyond the scale.
    """
    from matplotlib.colors import LinearSegmentedColormap

    most = max(float(np.abs(each).max()) for each in colours)
    sizes = np.concatenate([np.abs(each[:n_columns]).ravel() for each in colours])
    top = float(np.quantile(sizes, FULL)) or most or 1.0
    cmap = LinearSegmentedColormap.from_list(
        "negative to positive", [*drawing.NEGATIVE_TO_POSITIVE]
    )
    for ax, each in zip(axes, colours, strict=True):
        image = ax.imshow(each, cmap=cmap, vmin=-top, vmax=top, aspect="auto",
                          interpolation="nearest")  # fmt: skip
    return image, "both" if most > top else "neither"
