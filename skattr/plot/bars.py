"""Importance as bars: the mean of |value| over rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._intervals import OF_BACKGROUND, jackknife_interval
from skattr._utils.messages import brief
from skattr._utils.numbers import MINUS, formatter
from skattr.explanation import Explanation
from skattr.metrics.spread import Spread
from skattr.metrics.stability import Stability
from skattr.plot import drawing
from skattr.plot.selection import Ranking, Selection, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bar(
    explanation: Explanation,
    *,
    output: Any = None,
    max_features: int = 20,
    centered: bool = True,
    interval: str | Stability | None = None,
    ax: Any = None,
) -> Any:
    """Draw the importance of columns, the mean over rows of |value|, with error bars.

    An error bar is one standard error of that mean over rows; it includes the standard errors of
    approximate values. With `interval` it is an interval from the rows of the background, or of
    importances over several models, instead. The legend says which it is. The bars of several
    classes are stacked, and the number and the error bar are those of their sum. Outputs without a
    common unit, such as a price and a share, have one panel each.

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
    interval : "background" or Stability, optional
        "background" is the 95 % interval of `explanation.importance(error=True)`. Otherwise the
        result of `skattr.metrics.stability`, for the same columns and outputs.
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
    around = None if interval is None else _as_interval(interval, explanation, centered)
    names = selection.names
    parts = selection.sharing([size.mean() for size in sizes])

    height = drawing.height_of(len(names)) + 0.3 * (1 + (len(sizes) > 1))
    titles = [""] if len(parts) == 1 else selection.outputs
    panels = drawing.Panels.of(ax, titles, (6.4, height), (4.4, height), names)
    width = panels.width(names)
    for axes, outer, part in zip(panels.axes, panels.outer, parts, strict=True):
        _draw(axes, selection, part, [sizes[o] for o in part], width, around)
        drawing.name_rows(axes, names, outer)
        drawing.hide_spines(axes, "top", "right")
        drawing.label_x(axes, selection.label(part, "mean of |{}|"))
    return panels.result()


def _draw(
    ax: Axes,
    selection: Selection,
    outputs: list[int],
    sizes: list[np.ndarray],
    width: float,
    interval: _Interval | None,
) -> None:
    """Draw the bars of one output or, stacked, of several, on axes of a width in points."""
    ranking = selection.ranking
    errors = [selection.errors(o) for o in outputs]
    known = [error for error in errors if error is not None]
    std_error = np.sum(known, axis=0) if known else None
    total, error = mean_and_error(np.sum(sizes, axis=0), std_error, ranking)
    places = np.arange(len(total))
    entries = []
    if len(outputs) == 1:
        colours = [drawing.BLUE] * len(ranking.first) + [drawing.GREY] * (len(ranking.rest) > 0)
        ax.barh(places, total, height=0.7, color=colours)
    else:
        means = [ranking.columns(size).mean(axis=0) for size in sizes]
        entries = _stack(ax, means, [selection.outputs[o] for o in outputs])
    words = error_in_words(bool(known))
    low, high = total - error, total + error
    if interval is not None:
        names = [selection.outputs[o] for o in outputs]
        low, high, words = *interval.of(total, ranking, names), interval.words
    entries += draw_errors(ax, low, high, places, words)
    if entries:
        longest = max(len(name) for _, name in entries)
        room = drawing.text_width(longest, drawing.font_points("small")) + 36  # with its handle
        drawing.legend(ax, entries, ncols=max(1, min(len(entries), 5, int(width / room))),
                       loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)  # fmt: skip
    _write_sizes(ax, total, np.maximum(high, total), width)


def _stack(ax: Axes, means: list[np.ndarray], names: list[str]) -> list[tuple]:
    """Draw the bars of several outputs one after the other; return the entries of a legend."""
    left, entries = np.zeros(len(means[0])), []
    for mean, name, colour in zip(means, names, drawing.colours_of(len(names)), strict=True):
        bars = ax.barh(np.arange(len(mean)), mean, left=left, height=0.7, color=colour)
        entries.append((bars, drawing.shorten(name)))
        left = left + mean
    return entries


@dataclass
class _Interval:
    """Intervals of sums of importances, and what they are."""

    importances: np.ndarray  # (m, g, k), of m models or without one of m folds
    outputs: tuple[str, ...]
    words: str
    ends: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # of bars, and (m, …)

    def of(
        self, total: np.ndarray, ranking: Ranking, outputs: list[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends for the bars, added up over outputs."""
        chosen = [self.outputs.index(name) for name in outputs]
        return self.ends(total, ranking.columns(self.importances[:, :, chosen].sum(axis=2)))


def _as_interval(interval: Any, explanation: Explanation, centered: bool) -> _Interval:
    is_background = isinstance(interval, str) and interval == "background"
    if not is_background and not isinstance(interval, Stability):
        raise TypeError(
            "interval must be 'background' or a Stability, which skattr.metrics.stability "
            f"returns; got {brief(interval)}"
        )
    if not centered:
        raise ValueError("interval is one of centred values: draw it with centered=True")
    if is_background:
        explanation.importance(error=True)  # or raise
        by_fold = explanation.importance_by_fold
        assert by_fold is not None
        by_fold = by_fold.reshape(*by_fold.shape[:2], -1)
        return _Interval(by_fold, explanation.output_names, OF_BACKGROUND, jackknife_interval)
    for name in ("feature_names", "output_names"):
        a, b = getattr(explanation, name), getattr(interval, name)
        if a != b and not (name == "output_names" and {*a} <= {*b}):
            raise ValueError(
                f"interval must have the {name} of the explanation, {brief(a)}, got {brief(b)}"
            )
    rule = Spread(interval.ratio, interval.level)

    def ends(total: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        summary = rule.of(sizes)
        return summary.low, summary.high

    importances = interval.importances.reshape(*interval.importances.shape[:2], -1)
    return _Interval(importances, tuple(interval.output_names), interval.interval_name, ends)


def error_in_words(approximate: bool) -> str:
    """Say which error the bars of importance have."""
    words = "± 1 standard error over rows"
    return f"{words}, and of the approximation" if approximate else words


def draw_errors(
    ax: Axes, low: np.ndarray, high: np.ndarray, places: np.ndarray, words: str
) -> list[tuple]:
    """Draw error bars that have a length; return the entry of a legend, if there are any."""
    long = high > low
    if not long.any():
        return []
    middle, half = (low + high)[long] / 2, (high - low)[long] / 2
    drawn = ax.errorbar(middle, places[long], xerr=half, fmt="none", ecolor=drawing.ink(),
                        elinewidth=1.0, capsize=2.5)  # fmt: skip
    return [(drawn, words)]


def _write_sizes(ax: Axes, mean: np.ndarray, ends: np.ndarray, width: float) -> None:
    """Write numbers next to bars that begin at 0, on axes of a width in points."""
    write = formatter(mean, minus=MINUS)
    texts = [write(size) for size in mean]
    for place, (end, text) in enumerate(zip(ends, texts, strict=True)):
        ax.annotate(text, (end, place), (4, 0), textcoords="offset points", va="center",
                    fontsize="small")  # fmt: skip
    room = drawing.text_width(max(map(len, texts)), drawing.font_points("small")) + 6
    ax.set_xlim(0, float(ends.max() or 1.0) / (1 - min(room / width, 0.5)))
