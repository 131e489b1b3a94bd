"""Rows × columns as colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh

from skattr.explanation import Explanation
from skattr.plot import drawing

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
    ax: Axes | None = None,
) -> Axes:
    """Draw the values as colours: a line for each column of X, the rows of X from left to right.

    Rows are ordered by prediction or, without predictions, along the first principal axis of the
    values. Colours are centred at 0; the largest hundredth of values shares the last colour.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    output : str or int, optional
        The output, by name or position; needed if there are several.
    max_features : int, default 30
        Columns with a line of their own; the values of all others are added up in one last line.
    max_rows : int, default 500
        Rows drawn: of more, an evenly spaced part of the ordered rows, and the axis says so.
    centered : bool, default True
        Whether to take the offset off.
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
    >>> skattr.plot.heatmap(explanation, max_rows=100).get_xlabel()
    '100 of 442 rows drawn, ordered by prediction'
    """
    explanation = drawing.check(explanation, output, max_features)
    drawing.check_count("max_rows", max_rows)
    values = drawing.values_of(explanation, centered)
    ranking = drawing.Ranking.of(np.abs(values).mean(axis=0), max_features)
    if explanation.predictions is None:
        key, words = _principal(values), "the first principal axis"
    else:
        key, words = explanation.predictions, "prediction"
    order = np.argsort(key, kind="stable")
    drawn = order[drawing.even(len(order), max_rows)]
    colours = ranking.columns(values)[drawn].T  # (m, n)
    names = ranking.names(explanation)

    ax = drawing.new_axes(ax, 7.6, max(drawing.height_of(len(names)), 3.2))
    label = drawing.value_label(centered, explanation.scale, explanation.output_names[0])
    _draw(ax, colours, np.abs(colours[: len(ranking.first)]), label)
    drawing.name_rows(ax, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xticks([])
    drawing.bare(ax, "top", "right", "left", "bottom")
    rows = drawing.rows_drawn(len(drawn), len(values)) or drawing.rows(len(values))
    ax.set_xlabel(f"{rows}, ordered by {words}", **drawing.LITERAL)
    return ax


def _principal(values: np.ndarray) -> np.ndarray:
    """Return the place of each row on the first principal axis, its largest part positive."""
    gram = values.T @ values  # (g, g): small, however many rows
    last = len(gram) - 1
    axis = eigh(gram, subset_by_index=[last, last])[1][:, 0]
    return values @ (axis * (np.sign(axis[np.abs(axis).argmax()]) or 1.0))


def _draw(ax: Axes, colours: np.ndarray, sizes: np.ndarray, label: str) -> None:
    """Draw the colours, (m, n), on a scale for the sizes of single columns."""
    from matplotlib.colors import LinearSegmentedColormap

    most = float(np.abs(colours).max())
    top = float(np.quantile(sizes, FULL)) or most or 1.0
    cmap = LinearSegmentedColormap.from_list(
        "negative to positive", [drawing.BLUE, "#F7F7F7", drawing.ORANGE]
    )
    image = ax.imshow(colours, cmap=cmap, vmin=-top, vmax=top, aspect="auto",
                      interpolation="nearest")  # fmt: skip
    extend = "both" if most > top else "neither"
    bar = ax.figure.colorbar(image, ax=ax, aspect=30, pad=0.02, extend=extend)
    bar.set_label(label, **drawing.LITERAL)
    bar.outline.set_visible(False)
