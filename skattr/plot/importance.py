"""Bars of importance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
    ax: Axes | None = None,
) -> Axes:
    """Draw the importance of columns, the mean over rows of |value|, with error bars.

    An error bar is one standard error of that mean, over rows; with approximate values their own
    standard errors are part of it.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    output : str or int, optional
        The output, by name or position; needed if there are several.
    max_features : int, default 20
        Columns with a bar of their own; the importance of all others is summed up in one last bar.
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
    >>> ax = skattr.plot.bar(explanation, max_features=4)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['bmi', 's5', 's3', 'age', '6 other columns']
    """
    explanation = drawing.check(explanation, output, max_features)
    values = drawing.values_of(explanation, centered)
    ranking = drawing.Ranking.of(np.abs(values).mean(axis=0), max_features)
    errors = drawing.errors_of(explanation, centered)
    mean, error = drawing.mean_and_error(values, errors, ranking)
    names = ranking.names(explanation)

    ax = drawing.new_axes(ax, 6.4, drawing.height_of(len(names)))
    places = np.arange(len(names))
    colours = [drawing.BLUE] * len(ranking.first) + [drawing.GREY] * (len(ranking.rest) > 0)
    ax.barh(places, mean, height=0.7, color=colours)
    draw_errors(ax, mean, error, places)
    for place, size, more in zip(places, mean, error, strict=True):
        ax.annotate(drawing.number(size), (size + more, place), (4, 0),
                    textcoords="offset points", va="center", fontsize="small")  # fmt: skip
    ax.set_xlim(0, float((mean + error).max() or 1.0) * 1.14)  # room for the numbers
    drawing.name_rows(ax, names)
    drawing.bare(ax, "top", "right")
    label = drawing.value_label(
        centered, explanation.scale, explanation.output_names[0], "mean of |{}|"
    )
    drawing.label_x(ax, label)
    return ax


def draw_errors(ax: Axes, mean: np.ndarray, error: np.ndarray, places: np.ndarray) -> None:
    """Draw error bars, where there is an error."""
    some = error > 0
    if some.any():
        ax.errorbar(mean[some], places[some], xerr=error[some], fmt="none",
                    ecolor=drawing.ink(), elinewidth=1.0, capsize=2.5)  # fmt: skip
