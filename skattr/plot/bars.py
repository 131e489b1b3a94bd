"""Importance as bars: the mean of |value| over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._utils.numbers import MINUS, formatter
from skattr.explanation import Explanation
from skattr.plot import drawing
from skattr.plot.selection import Selection, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bar(
    explanation: Explanation,
    *,
    output: Any = None,
    max_features: int = 20,
    centered: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the importance of columns, the mean over rows of |value|, with error bars.

    An error bar is one standard error of that mean over rows; it includes the standard errors of
    approximate values. The bars of several classes are stacked, and the number and the error bar
    are those of their sum. Outputs without a common unit, such as a price and a share, have one
    panel each.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    output : str or int, optional
        The output, by name or position; all of them by default.
    max_features : int, default 20
        The number of columns with a bar each; the others share one last bar, their sum.
    centered : bool, default True
        Whether to subtract the offset.
    ax : matplotlib Axes, optional
        Where to draw, one Axes for each panel; a new figure by default.

    Returns
    -------
    Axes, or array of Axes if there are several panels

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    >>> explanation = skattr.MeasureExplainer(tree).fit(X).explain(X)
    >>> ax = skattr.plot.bar(explanation, max_features=4)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['bmi', 's5', 's3', 'age', '6 other columns']
    """
    selection = Selection.of(explanation, output, max_features, centered)
    sizes = [np.abs(values) for values in selection.values]  # one (n, g) per output
    names = selection.names
    parts = selection.sharing([size.mean() for size in sizes])

    height = drawing.height_of(len(names)) + 0.3 * (len(sizes) > 1)
    titles = [""] if len(parts) == 1 else selection.outputs
    panels = drawing.Panels.of(ax, titles, (6.4, height), (4.4, height), names)
    width = panels.width(names)
    for axes, outer, part in zip(panels.axes, panels.outer, parts, strict=True):
        _draw(axes, selection, part, [sizes[o] for o in part], width)
        drawing.name_rows(axes, names, outer)
        drawing.hide_spines(axes, "top", "right")
        drawing.label_x(axes, selection.label(part, "mean of |{}|"))
    return panels.result()


def _draw(
    ax: Axes, selection: Selection, outputs: list[int], sizes: list[np.ndarray], width: float
) -> None:
    """Draw the bars of one output or, stacked, of several, on axes of a width in points."""
    ranking = selection.ranking
    errors = [selection.errors(o) for o in outputs]
    known = [error for error in errors if error is not None]
    std_error = np.sum(known, axis=0) if known else None
    total, error = mean_and_error(np.sum(sizes, axis=0), std_error, ranking)
    places = np.arange(len(total))
    if len(outputs) == 1:
        colours = [drawing.BLUE] * len(ranking.first) + [drawing.GREY] * (len(ranking.rest) > 0)
        ax.barh(places, total, height=0.7, color=colours)
    else:
        means = [ranking.columns(size).mean(axis=0) for size in sizes]
        _stack(ax, means, [selection.outputs[o] for o in outputs])
    draw_errors(ax, total, error, places)
    _write_sizes(ax, total, error, width)


def _stack(ax: Axes, means: list[np.ndarray], names: list[str]) -> None:
    """Draw the bars of several outputs one after the other, with a legend."""
    left, entries = np.zeros(len(means[0])), []
    for mean, name, colour in zip(means, names, drawing.colours_of(len(names)), strict=True):
        bars = ax.barh(np.arange(len(mean)), mean, left=left, height=0.7, color=colour)
        entries.append((bars, drawing.shorten(name)))
        left = left + mean
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    drawing.legend(ax, entries, ncols=min(len(entries), 5), **above)


def draw_errors(ax: Axes, mean: np.ndarray, error: np.ndarray, places: np.ndarray) -> None:
    """Draw error bars where the error is positive."""
    positive = error > 0
    if positive.any():
        ax.errorbar(mean[positive], places[positive], xerr=error[positive], fmt="none",
                    ecolor=drawing.ink(), elinewidth=1.0, capsize=2.5)  # fmt: skip


def _write_sizes(ax: Axes, mean: np.ndarray, error: np.ndarray, width: float) -> None:
    """Write numbers next to bars that begin at 0, on axes of a width in points."""
    write = formatter(mean, minus=MINUS)
    texts = [write(size) for size in mean]
    for place, (end, text) in enumerate(zip(mean + error, texts, strict=True)):
        ax.annotate(text, (end, place), (4, 0), textcoords="offset points", va="center",
                    fontsize="small")  # fmt: skip
    room = drawing.text_width(max(map(len, texts)), drawing.font_points("small")) + 6
    ax.set_xlim(0, float((mean + error).max() or 1.0) / (1 - min(room / width, 0.5)))
