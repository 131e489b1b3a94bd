"""One row: what each column adds to, or takes from, its prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skattr.explanation import ROUNDING, Explanation, raw_values
from skattr.messages import brief
from skattr.plot import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class Sums:
    """prediction = start + Σ contributions + gap."""

    start: float
    contributions: np.ndarray
    prediction: float | None

    @property
    def gap(self) -> float:
        """What no column accounts for."""
        assert self.prediction is not None
        return self.prediction - self.start - float(self.contributions.sum())

    @property
    def complete(self) -> bool:
        """Whether the contributions add up to the prediction, up to rounding."""
        if self.prediction is None:
            return False
        sizes = abs(self.start) + abs(self.prediction) + float(np.abs(self.contributions).sum())
        return abs(self.gap) <= ROUNDING * sizes


def waterfall(
    explanation: Explanation,
    row: Any = None,
    *,
    output: Any = None,
    max_features: int = 12,
    centered: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the values of one row as bars, the largest on top.

    Where the values add up to the prediction, each bar begins where the one above ends, and they
    lead from the offset (the mean of f, where the measure has none) to the prediction. Most
    measures make no such promise: then all bars begin at 0. What is left between the prediction
    and the sum is a line of its own, if the explanation has predictions: "interactions" of main
    effects, else "not explained by single columns".

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    row : int or label, optional
        The row: an int is its position, anything else its label in the index of X. It may be left
        out if there is one row only, as in `waterfall(explanation[3])`.
    output : str or int, optional
        The output, by name or position; needed if there are several.
    max_features : int, default 12
        Columns with a bar of their own; the values of all others are added up in one bar.
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
    >>> from sklearn.linear_model import LinearRegression
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> explainer = skattr.MeasureExplainer(LinearRegression().fit(X, y)).fit(X)
    >>> ax = skattr.plot.waterfall(explainer.explain(X), 0)
    >>> ax.get_title()
    'prediction 206.1 = 152.1 + 53.98 attributed'
    """
    explanation = drawing.check(explanation, output, max_features)
    one = _one_row(explanation, row)
    values = drawing.values_of(one, centered)
    ranking = drawing.Ranking.of(np.abs(values[0]), max_features)
    prediction = None if one.predictions is None else float(one.predictions[0])
    sums = Sums(_start(one, centered), ranking.columns(values)[0], prediction)
    error = drawing.errors_of(one, centered)
    if error is not None:
        error = np.sqrt(ranking.columns(error**2)[0])
    names = _names(one, ranking)

    ax = drawing.new_axes(ax, 7.2, drawing.height_of(len(names) + 1) + 0.3)
    _draw_bars(ax, sums, error, len(ranking.first))
    if prediction is not None:
        names.append(one.remainder_name)
    drawing.name_rows(ax, names)
    drawing.bare(ax, "top", "right", "left")
    _draw_words(ax, sums, one, centered)
    return ax


def _one_row(explanation: Explanation, row: Any) -> Explanation:
    """Return the row that is drawn."""
    if row is None:
        one = explanation
    else:
        one = explanation[[row] if isinstance(row, tuple) else row]  # a tuple is a label here
    if len(one) != 1:
        got = f"{len(one)} rows" if row is None else f"row={brief(row)}, {len(one)} rows"
        raise ValueError(
            f"a waterfall shows one row, got {got}: choose it by position or label, "
            "waterfall(explanation, 0)"
        )
    return one


def _start(one: Explanation, centered: bool) -> float:
    """Return where the sum begins: at what was taken off each value, if anything was."""
    # A measure without mass has no offset, and its values are about the mean of f.
    if np.ndim(one.offset) or one.offset == 0.0:
        return float(one.base_value)
    return float(one.offset) if centered else 0.0


def _names(one: Explanation, ranking: drawing.Ranking) -> list[str]:
    """Return the names with the raw values; of a group the number of its columns."""
    raw = raw_values(one.data, one.columns)[0]
    names = ranking.names(one)
    for line, j in enumerate(ranking.first):
        n_columns = len(one.columns[j])
        if n_columns == 1:
            names[line] += f" = {drawing.raw_text(raw[j])}"
        else:
            names[line] += f" ({n_columns} columns)"
    return names


def _draw_bars(ax: Axes, sums: Sums, error: np.ndarray | None, n_own: int) -> None:
    """Draw the contributions, and the gap; one after the other only where they add up."""
    sizes = sums.contributions
    if sums.prediction is not None:
        sizes = np.append(sizes, 0.0 if sums.complete else sums.gap)
    places = np.arange(len(sizes))
    left = np.zeros(len(sizes))
    if sums.complete:
        left = sums.start + np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    ends = left + sizes
    colours = [drawing.ORANGE if size > 0 else drawing.BLUE for size in sizes]
    for line in range(n_own, len(sizes)):  # the others together, and the gap
        colours[line] = drawing.GREY
    bars = ax.barh(places, sizes, left=left, height=0.68, color=colours)
    if sums.prediction is not None:
        bars[-1].set(hatch="////", facecolor="none", edgecolor=drawing.GREY)
    if sums.complete:
        ax.vlines(ends[:-1], places[:-1] + 0.34, places[1:] - 0.34, color=drawing.GREY,
                  linewidth=0.8)  # fmt: skip
    reach = np.zeros(len(sizes))
    if error is not None:
        reach[: len(error)] = error
        ax.errorbar(ends[: len(error)], places[: len(error)], xerr=error, fmt="none",
                    ecolor=drawing.ink(), elinewidth=1.0, capsize=2.5)  # fmt: skip
    for place, size, end, more in zip(places, sizes, ends, reach, strict=True):
        side = -1 if size < 0 else 1
        ax.annotate(drawing.number(size, sign=size != 0), (end + side * more, place), (4 * side, 0),
                    textcoords="offset points", va="center", fontsize="small",
                    ha="left" if side > 0 else "right")  # fmt: skip
    low = float(min(left.min(), (ends - reach).min()))
    high = float(max(left.max(), (ends + reach).max()))
    room = _room(ax, sizes)
    below, above = (room if side.any() else 0.04 for side in (sizes < 0, sizes >= 0))
    width = ((high - low) or abs(high) or 1.0) / (1 - below - above)
    ax.set_xlim(low - below * width, high + above * width)


def _room(ax: Axes, sizes: np.ndarray) -> float:
    """Return the part of the axes that the longest number takes; names may take a fifth."""
    from matplotlib.font_manager import FontProperties

    letters = max(len(drawing.number(size, sign=True)) for size in sizes)
    points = 0.62 * letters * FontProperties(size="small").get_size_in_points() + 6
    have = 0.8 * ax.get_window_extent().width / ax.figure.dpi * 72
    return min(points / max(have, 1.0), 0.35)


def _draw_words(ax: Axes, sums: Sums, one: Explanation, centered: bool) -> None:
    """Draw the lines of reference, the sum, and the label of the axis."""
    total = float(sums.contributions.sum())
    label = drawing.value_label(centered, one.scale, one.output_names[0])
    if sums.complete:
        assert sums.prediction is not None
        for place in (sums.start, sums.prediction):
            ax.axvline(place, color=drawing.GREY, linewidth=0.8, linestyle=":", zorder=0.5)
        label += f"\nfrom {drawing.number(sums.start)} to the prediction"
    else:
        drawing.zero_line(ax)
    if sums.prediction is not None:
        parts = [f"prediction {drawing.number(sums.prediction)} = {drawing.number(sums.start)}",
                 f"{_added(total)} attributed"]  # fmt: skip
        if not sums.complete:  # which is too long for one line
            parts.append(f"\n{_added(sums.gap)} {one.remainder_name}")
        ax.set_title(" ".join(parts).replace(" \n", "\n"), fontsize="medium", **drawing.LITERAL)
    drawing.label_x(ax, label)


def _added(value: float) -> str:
    return f"{'+' if value >= 0 else '−'} {drawing.number(abs(value))}"
