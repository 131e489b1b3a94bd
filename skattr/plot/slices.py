"""Slices: mean values or importance of groups of rows, side by side, with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._utils.messages import brief
from skattr.explanation import Explanation
from skattr.metrics.slices import Slices, means_over_rows, name_of
from skattr.plot import drawing
from skattr.plot.selection import Selection, check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WHAT = {
    "mean": ("mean_value", "mean_row_error", "mean of {}"),
    "importance": ("importance", "importance_row_error", "mean of |{}|"),
}
ERROR = "± 1 standard error over the rows of a slice"


def slices(
    explanation: Explanation,
    by: Any,
    *,
    bins: Any = None,
    what: str = "mean",
    output: Any = None,
    max_features: int = 10,
    max_slices: int = 8,
    ax: Any = None,
) -> Any:
    """Draw the mean values of groups of rows side by side: what columns add for whom.

    One point per column and slice, with an error bar of one standard error over the rows of the
    slice; a slice of one row has none. The numbers are those of `skattr.metrics.by_slice`.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    by, bins
        The slices, as in `skattr.metrics.by_slice`.
    what : {"mean", "importance"}, default "mean"
        The mean of values, which says in which direction a column moves the predictions of a
        slice, or the mean of their size.
    output : str or int, optional
        The output, by name or position; all of them by default.
    max_features : int, default 10
        The number of columns drawn, the most important ones of all rows.
    max_slices : int, default 8
        The number of slices drawn, the largest ones; the legend says how many are left out.
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
    >>> ax = skattr.plot.slices(explanation, "age", bins=2, max_features=3)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['bmi', 's5', 's3']
    """
    if what not in WHAT:
        raise ValueError(f"what must be one of {[*WHAT]}, got {brief(what)}")
    check_count("max_slices", max_slices)
    selection = Selection.of(explanation, output, max_features, centered=True)
    groups = list(Slices.of(explanation, by, bins))
    shown = _largest([len(rows) for _, _, rows in groups], max_slices)
    names = selection.names[: len(selection.ranking.first)]

    height = max(0.9 + len(names) * (0.18 + 0.1 * len(shown)), 2.6)
    panels = drawing.Panels.of(ax, selection.outputs, (8.2, height), (4.6, height), names)
    column, error, words = WHAT[what]
    for o, axes in enumerate(panels.axes):
        values = selection.values[o][:, selection.ranking.first]
        entries = []
        for i, g in enumerate(shown):
            label, kind, rows = groups[g]
            numbers = means_over_rows(values[rows])
            places = np.arange(len(names)) + ((i + 0.5) / len(shown) - 0.5) * 0.8
            drawn = _draw(axes, numbers[column], numbers[error], places, _colour(kind, i, shown))
            entries.append((drawn, _words(label, kind, len(rows))))
        _separate(axes, len(names))
        drawing.name_rows(axes, names, panels.outer[o])
        axes.set_ylim(len(names) - 0.5, -0.5)
        drawing.zero_line(axes)
        drawing.hide_spines(axes, "top", "right")
        drawing.label_x(axes, selection.label([o], words))
    title = drawing.shorten(name_of(explanation, by))
    _legend(panels.axes[-1], entries, title, len(groups) - len(shown))
    panels.share("x", selection.scale)
    return panels.result()


def _largest(sizes: list[int], most: int) -> list[int]:
    """Return the positions of the largest slices, in their order."""
    return np.sort(np.argsort(-np.array(sizes), kind="stable")[:most]).tolist()


def _draw(
    ax: Axes, numbers: np.ndarray, errors: np.ndarray, places: np.ndarray, colour: Any
) -> Any:
    """Draw the points of one slice, with error bars where there are some."""
    bars = np.where(np.isnan(errors), 0.0, errors)
    return ax.errorbar(numbers, places, xerr=bars, fmt="o", color=colour, markersize=4.5,
                       elinewidth=1.2, capsize=0)  # fmt: skip


def _colour(kind: str, i: int, shown: list[int]) -> Any:
    """Return the colour of a slice: by its place among intervals, grey where it is missing."""
    if kind == "missing":
        return drawing.GREY
    if kind == "level":
        return drawing.colours_of(len(shown))[i]
    from matplotlib import colormaps

    return colormaps["viridis"](0.9 * i / max(len(shown) - 1, 1))


def _words(label: Any, kind: str, n: int) -> str:
    """Return a slice in words, with its number of rows."""
    if kind == "missing":
        return f"missing, {drawing.rows(n)}"
    if kind == "level":
        return f"{drawing.raw_text(label)}, {drawing.rows(n)}"
    left, right = (drawing.raw_text(end) for end in (label.left, label.right))
    if label.left == label.right:
        return f"{left}, {drawing.rows(n)}"
    return f"{'[' if label.closed == 'both' else '('}{left}, {right}], {drawing.rows(n)}"


def _separate(ax: Axes, n: int) -> None:
    """Draw a line between columns."""
    for place in range(1, n):
        ax.axhline(place - 0.5, color=drawing.GREY, linewidth=0.4, alpha=0.5, zorder=0.4)


def _legend(ax: Axes, entries: list[tuple[Any, str]], title: str, left_out: int) -> None:
    """Name the slices, the error bars, and what is not drawn."""
    from matplotlib.lines import Line2D

    said = [(Line2D([], [], color=drawing.ink(), linewidth=1.2), ERROR)]
    if left_out:
        words = f"{left_out} smaller slice{'s are' if left_out > 1 else ' is'} not drawn"
        said.append((Line2D([], [], linestyle=""), words))
    drawing.legend(ax, entries + said, loc="upper left", bbox_to_anchor=(1, 1))
    legend = ax.get_legend()
    if title and legend is not None:
        legend.set_title(title)
        legend.get_title().set(fontsize="small", **drawing.LITERAL)
