"""Bars of importance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._numbers import MINUS, formatter
from skattr.explanation import Explanation
from skattr.plot import drawing

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

    An error bar is one standard error of that mean, over rows; with approximate values their own
    standard errors are part of it. The bars of several classes are stacked; number and error bar
    are then those of the sum. Outputs that have no common unit, such as a price and a share, have
    one panel each.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    output : str or int, optional
        The output, by name or position; all of them by default.
    max_features : int, default 20
        Columns with a bar of their own; the importance of all others is summed up in one last bar.
    centered : bool, default True
        Whether to take the offset off.
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
    ones = drawing.check(explanation, output, max_features)
    sizes = [np.abs(drawing.values_of(one, centered)) for one in ones]  # of each output (n, g)
    ranking = drawing.Ranking.of(drawing.mean_sizes(sizes, explanation.scale), max_features)
    names = ranking.names(explanation)
    together = drawing.comparable(explanation.scale, np.array([size.mean() for size in sizes]))
    parts = [[*range(len(ones))]] if together else [[o] for o in range(len(ones))]

    height = drawing.height_of(len(names)) + 0.3 * (len(ones) > 1)
    titles = [""] if together else [one.output_names[0] for one in ones]
    panels = drawing.Panels.of(ax, titles, (6.4, height), (4.4, height), names)
    width = panels.width(names)
    for axes, outer, part in zip(panels.axes, panels.outer, parts, strict=True):
        drawn = [ones[o] for o in part]
        _draw(axes, drawn, [sizes[o] for o in part], ranking, centered, width)
        drawing.name_rows(axes, names, outer)
        drawing.bare(axes, "top", "right")
        of = drawn[0].output_names[0] if len(drawn) == 1 else None
        drawing.label_x(axes, drawing.value_label(centered, explanation.scale, of, "mean of |{}|"))
    return panels.result()


def _draw(
    ax: Axes,
    ones: list[Explanation],
    sizes: list[np.ndarray],
    ranking: drawing.Ranking,
    centered: bool,
    width: float,
) -> None:
    """Draw the bars of one output or, stacked, of several; there are so many points for them."""
    errors = [drawing.errors_of(one, centered) for one in ones]
    known = [error for error in errors if error is not None]
    whole = np.sum(known, axis=0) if known else None
    total, error = drawing.mean_and_error(np.sum(sizes, axis=0), whole, ranking)
    places = np.arange(len(total))
    if len(ones) == 1:
        colours = [drawing.BLUE] * len(ranking.first) + [drawing.GREY] * (len(ranking.rest) > 0)
        ax.barh(places, total, height=0.7, color=colours)
    else:
        means = [ranking.columns(size).mean(axis=0) for size in sizes]
        _stack(ax, means, tuple(one.output_names[0] for one in ones))
    draw_errors(ax, total, error, places)
    _write_sizes(ax, total, error, width)


def _stack(ax: Axes, means: list[np.ndarray], names: tuple[str, ...]) -> None:
    """Draw the bars of several outputs one after the other, and say which is which."""
    left, entries = np.zeros(len(means[0])), []
    for mean, name, colour in zip(means, names, drawing.colours_of(len(names)), strict=True):
        bars = ax.barh(np.arange(len(mean)), mean, left=left, height=0.7, color=colour)
        entries.append((bars, drawing.shorten(name)))
        left = left + mean
    above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    drawing.legend(ax, entries, ncols=min(len(entries), 5), **above)


def draw_errors(ax: Axes, mean: np.ndarray, error: np.ndarray, places: np.ndarray) -> None:
    """Draw error bars, where there is an error."""
    some = error > 0
    if some.any():
        ax.errorbar(mean[some], places[some], xerr=error[some], fmt="none",
                    ecolor=drawing.ink(), elinewidth=1.0, capsize=2.5)  # fmt: skip


def _write_sizes(ax: Axes, mean: np.ndarray, error: np.ndarray, width: float) -> None:
    """Write the numbers behind bars that begin at 0, and leave room for them in so many points."""
    write = formatter(mean, minus=MINUS)
    texts = [write(size) for size in mean]
    for place, (end, text) in enumerate(zip(mean + error, texts, strict=True)):
        ax.annotate(text, (end, place), (4, 0), textcoords="offset points", va="center",
                    fontsize="small")  # fmt: skip
    room = drawing.text_width(max(map(len, texts)), drawing.font_points("small")) + 6
    ax.set_xlim(0, float((mean + error).max() or 1.0) / (1 - min(room / width, 0.5)))
