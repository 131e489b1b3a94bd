"""The values of one row as bars: what each column adds to the prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._selection import raw_values
from skattr._utils.messages import brief
from skattr._utils.numbers import MINUS, decimals, fixed
from skattr.explanation import ROUNDING, Explanation
from skattr.plot import drawing
from skattr.plot.selection import Ranking, Selection, check_explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class Sums:
    """The terms of prediction = start + Σ contributions + gap."""

    start: float
    contributions: np.ndarray
    prediction: float | None
    places: int = 0  # decimals of all numbers, so that what is written adds up
    with_gap: bool = True  # whether the gap has a bar, if there is a prediction

    def text(self, value: float, sign: bool = False) -> str:
        """Return a number with the decimals that the contributions need."""
        return fixed(value, self.places, sign=sign, minus=MINUS)

    @property
    def sizes(self) -> np.ndarray:
        """The contributions and, if it has a bar, the gap."""
        if self.prediction is None or not self.with_gap:
            return self.contributions
        return np.append(self.contributions, 0.0 if self.complete else self.gap)

    @property
    def gap(self) -> float:
        """The part of the prediction that no column accounts for."""
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
    ax: Any = None,
) -> Any:
    """Draw the values of one row as bars, the largest on top.

    Where the values add up to the prediction, each bar begins where the one above ends, and they
    lead from the offset (the mean of f if the measure has none) to the prediction. Most measures
    do not promise this: then all bars begin at 0 and, if the explanation has predictions, the
    difference between the prediction and the sum has a line of its own: "interactions" of main
    effects, else "not explained by single columns". Several outputs have one panel each, with the
    columns in the same order. Pairs come on top of single columns, which share one bar.

    Parameters
    ----------
    explanation, output, centered, ax
        As in `bar`.
    row : int or label, optional
        The row: an int is its position, anything else its label in the index of X. It is not
        needed if there is only one row, as in `waterfall(explanation[3])`.
    max_features : int, default 12
        The number of columns with a bar each; the others share one bar, their sum.

    Returns
    -------
    Axes, or array of Axes if there are several outputs

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> explainer = skattr.MeasureExplainer(LinearRegression().fit(X, y)).fit(X)
    >>> ax = skattr.plot.waterfall(explainer.explain(X), 0)
    >>> ax.get_title()
    'prediction 206.12 = 152.13 + 53.98 attributed'
    """
    selection = Selection.of(_one_row(explanation, row), output, max_features, centered)
    ranking = selection.ranking
    names = _names(selection.explanations[0], ranking)
    all_sums = _sums(selection)
    if explanation.predictions is not None and all_sums[0].with_gap:
        names.append(explanation.remainder_name)

    height = drawing.height_of(len(names)) + 0.6
    panels = drawing.Panels.of(ax, selection.outputs, (7.2, height), (4.4, height + 0.3), names)
    width = panels.width(names)
    extents = []
    for o, (sums, axes) in enumerate(zip(all_sums, panels.axes, strict=True)):
        error = selection.errors(o)
        if error is not None:
            error = np.sqrt(ranking.columns(error**2)[0])
            error = np.append(error, _of_singles(selection.explanations[o])[1])
        extents.append(_draw_bars(axes, sums, error, len(ranking.first), width))
        drawing.name_rows(axes, names, panels.outer[o])
        drawing.hide_spines(axes, "top", "right", "left")
    _set_limits(panels.axes, extents, selection.scale)
    for o, (sums, axes) in enumerate(zip(all_sums, panels.axes, strict=True)):
        _draw_words(axes, sums, selection.explanations[o], width)
        drawing.label_x(axes, selection.label([o]))
    return panels.result()


def _sums(selection: Selection) -> list[Sums]:
    """Return the sum of each output; all have the same decimals if they have one unit."""
    result = []
    for one, values in zip(selection.explanations, selection.values, strict=True):
        prediction = None if one.predictions is None else float(one.predictions[0])
        contributions = selection.ranking.columns(values)[0]
        contributions = np.append(contributions, _of_singles(one)[0])
        result.append(Sums(_start(one, selection.centered), contributions, prediction))
    with_gap = not all(sums.complete for sums in result)
    for sums in result:
        sums.with_gap = with_gap
    for part in selection.sharing([np.abs(sums.sizes).max() for sums in result]):
        places = decimals(np.concatenate([result[o].sizes for o in part]))
        for o in part:
            result[o].places = places
    return result


def _of_singles(one: Explanation) -> tuple[list[float], list[float]]:
    """Return the sum of single values that come with pairs, and its error; nothing without pairs.

    Pairs of coalitions are parts of the single values, so that only the rest of these is left.
    """
    if one.singles is None:
        return [], []
    singles = one.singles.centered()
    total, variance = float(singles.values.sum()), 0.0
    for part in (singles, one) if one.shared else (singles,):
        variance += 0.0 if part.std_error is None else float((part.std_error**2).sum())
    return [total - float(one.values.sum()) if one.shared else total], [variance**0.5]


def _one_row(explanation: Explanation, row: Any) -> Explanation:
    """Return the explanation of the row that is drawn."""
    check_explanation(explanation)
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
    """Return where the sum begins: at the offset that was subtracted, or at the mean of f."""
    # a measure without mass has no offset: its values are relative to the mean of f
    if np.ndim(one.offset) or one.offset == 0.0:
        return float(one.start)
    return float(one.offset) if centered else 0.0


def _names(one: Explanation, ranking: Ranking) -> list[str]:
    """Return the names with the raw values, or with the number of columns of a group."""
    raw = raw_values(one.data, one.columns)[0]
    names = ranking.names(one)
    for line, j in enumerate(ranking.first):
        n_columns = len(one.columns[j])
        if n_columns == 1:
            names[line] += f" = {drawing.raw_text(raw[j])}"
        elif one.singles is None:
            names[line] += f" ({n_columns} columns)"
    if one.singles is None:
        return names
    g = len(one.singles.feature_names)
    others = one.shared and len(one.feature_names) < g * (g - 1) // 2
    return [*names, "single columns and other pairs" if others else "single columns"]


def _draw_bars(
    ax: Axes, sums: Sums, error: np.ndarray | None, n_columns: int, width: float
) -> tuple[float, float, float, float]:
    """Draw the contributions and the gap on axes of a width in points.

    Each bar begins where the one above ends only if they add up. Returns the lowest and the highest
    value, and which parts of the axis the numbers need on the left and on the right.
    """
    sizes = sums.sizes
    places = np.arange(len(sizes))
    left = np.zeros(len(sizes))
    if sums.complete:
        left = sums.start + np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    ends = left + sizes
    colours = [drawing.ORANGE if size > 0 else drawing.BLUE for size in sizes]
    for line in range(n_columns, len(sizes)):  # the other columns, and the gap
        colours[line] = drawing.GREY
    bars = ax.barh(places, sizes, left=left, height=0.68, color=colours)
    if sums.prediction is not None and sums.with_gap:
        bars[-1].set(hatch="////", facecolor="none", edgecolor=drawing.GREY)
    if sums.complete:
        ax.vlines(ends[:-1], places[:-1] + 0.34, places[1:] - 0.34, color=drawing.GREY,
                  linewidth=0.8)  # fmt: skip
    reach = np.zeros(len(sizes))
    if error is not None:
        reach[: len(error)] = error
        ax.errorbar(ends[: len(error)], places[: len(error)], xerr=error, fmt="none",
                    ecolor=drawing.ink(), elinewidth=1.0, capsize=2.5)  # fmt: skip
    texts = [sums.text(size, sign=True) for size in sizes]
    for place, size, end, more, text in zip(places, sizes, ends, reach, texts, strict=True):
        side = -1 if size < 0 else 1
        ax.annotate(text, (end + side * more, place), (4 * side, 0), textcoords="offset points",
                    va="center", fontsize="small", ha="left" if side > 0 else "right")  # fmt: skip
    low = float(min(left.min(), (ends - reach).min()))
    high = float(max(left.max(), (ends + reach).max()))
    points = drawing.text_width(max(map(len, texts)), drawing.font_points("small")) + 6
    room = min(points / width, 0.4)
    below, above = (room if side.any() else 0.04 for side in (sizes < 0, sizes >= 0))
    return low, high, below, above


def _set_limits(axes: list[Axes], extents: list[tuple], scale: str) -> None:
    """Set the limits of values: the same for all panels if they can be compared."""
    ends = np.array(extents)  # (k, 4)
    if drawing.comparable(scale, ends[:, 1] - ends[:, 0]):
        ends[:, 0], ends[:, 1:] = ends[:, 0].min(), ends[:, 1:].max(axis=0)
    for ax, (low, high, below, above) in zip(axes, ends.tolist(), strict=True):
        span = ((high - low) or abs(high) or 1.0) / (1 - below - above)
        ax.set_xlim(low - below * span, high + above * span)


def _draw_words(ax: Axes, sums: Sums, one: Explanation, width: float) -> None:
    """Draw the lines of reference, and the sum as a title on axes of a width in points."""
    if sums.complete:
        assert sums.prediction is not None
        mean = "mean prediction" if sums.start == one.base_value else "reference"
        _mark(ax, (sums.start, sums.prediction), (mean, "prediction"), sums.text)
    else:
        drawing.zero_line(ax)
    if sums.prediction is not None:
        total = float(sums.contributions.sum())
        parts = [f"prediction {sums.text(sums.prediction)}", f"= {sums.text(sums.start)}",
                 f"{_added(total, sums)} attributed"]  # fmt: skip
        if not sums.complete:
            parts.append(f"{_added(sums.gap, sums)} {one.remainder_name}")
        above = [ax.get_title()] if ax.get_title() else []  # the output, of several
        room = 3.4 * drawing.font_points("small") if sums.complete else 6.0  # for the marks
        title = "\n".join([*above, *_lines(parts, width)])
        ax.set_title(title, fontsize="medium", pad=room, **drawing.LITERAL)


def _mark(ax: Axes, at: tuple[float, float], names: tuple[str, str], text: Any) -> None:
    """Draw lines where a sum begins and ends, with names and numbers above them."""
    low, high = ax.get_xlim()
    far = abs(at[1] - at[0]) > 0.35 * (high - low)
    for value, other, name in zip(at, at[::-1], names, strict=True):
        ax.axvline(value, color=drawing.GREY, linewidth=0.8, linestyle=":", zorder=0.5)
        side = "center" if far else "right" if (value, name) < (other, names[0]) else "left"
        ax.annotate(f"{name}\n{text(value)}", (value, 1), (0, 2), ha=side, va="bottom",
                    xycoords=ax.get_xaxis_transform(), textcoords="offset points",
                    fontsize="small", color=drawing.ink())  # fmt: skip


def _lines(parts: list[str], width: float) -> list[str]:
    """Return the parts of a sum in as few lines as fit into a width in points."""
    points = drawing.font_points("medium")
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]} {part}" if lines else part
        if lines and drawing.text_width(len(joined), points) <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def _added(value: float, sums: Sums) -> str:
    return f"{'+' if value >= 0 else MINUS} {sums.text(abs(value))}"
