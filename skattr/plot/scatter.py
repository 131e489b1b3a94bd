"""The values of one column against the column, coloured by another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr._selection import positions
from skattr.explanation import Explanation
from skattr.plot import drawing
from skattr.plot.columns import Column, as_column
from skattr.plot.curve_levels import name_levels
from skattr.plot.curve_numbers import draw_histogram
from skattr.plot.partners import strongest_in_pairs, strongest_in_values
from skattr.plot.selection import check_count, check_explanation, output_positions
from skattr.plot.swarm import SIZES, draw_colorbar, low_to_high, ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

JITTER = 0.18  # how far the points of a level are spread around its place
NAMED = 6  # levels of a column without order that have a colour of their own


def scatter(
    explanation: Explanation,
    feature: Any,
    *,
    color: Any = "auto",
    pairs: Explanation | None = None,
    output: Any = None,
    centered: bool = True,
    max_points: int = 5000,
    ax: Any = None,
) -> Any:
    """Draw the values of a column against the column, one point per row.

    Where values depend on the whole row, as Shapley values do, rows with the same own value differ:
    the colour shows the column that explains these differences best. Numbers, dates, booleans and
    ordered categories are coloured by their rank. Of a column without order, the most common levels
    have one colour each. Missing values of the column stand at the right end. Several outputs have
    one panel each.

    Parameters
    ----------
    explanation : Explanation
        What to draw.
    feature : label or int
        The column, by name or, if no column has that name, by position.
    color : label, int, "auto" or None, default "auto"
        The column that colours the points. "auto" is the one with which the column interacts most:
        exactly if `pairs` is given, else the one that explains most of the differences between
        values of rows whose own values are close. None: one colour.
    pairs : Explanation, optional
        An explanation of pairs, from `MeasureExplainer.explain_pairs`, by which "auto" chooses.
    output, centered, ax
        As in `bar`.
    max_points : int, default 5000
        Points drawn. Of more rows an evenly spaced part is drawn, and the axis says so.

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
    >>> explanation = skattr.MeasureExplainer(tree, "shapley").fit(X).explain(X)
    >>> ax = skattr.plot.scatter(explanation, "bmi", color="s5")
    >>> print(ax.get_xlabel())
    bmi
    442 rows
    """
    check_explanation(explanation)
    check_count("max_points", max_points)
    j, k = _one_column(explanation, feature)
    outputs = output_positions(explanation.output_names, output)
    ones = [explanation.select(explanation.output_names[o]) for o in outputs]
    values = [one.values[:, j] - _offset(one, j) * centered for one in ones]
    partner = _partner(explanation, j, k, color, pairs, values)
    rows = drawing.evenly_spaced(len(explanation), max_points)
    column = as_column(frames.column(explanation.data, k), explanation.feature_names[j])
    x, names = _places(column)

    names_of = [explanation.output_names[o] for o in outputs]
    panels = drawing.Panels.of(ax, names_of, (6.8, 4.2), (4.6, 4.0))
    some = drawing.rows_drawn(len(rows), len(explanation)) or column.describe()
    label = drawing.shorten(explanation.feature_names[j])
    colour = _Colour.of(explanation, partner, rows)
    for o, axes in enumerate(panels.axes):
        drawing.zero_line(axes, vertical=False)
        entries = colour.draw(axes, x[rows], values[o][rows])
        _draw_axis(axes, column, x, names)
        drawing.hide_spines(axes, "top", "right")
        if names is None and not column.dates:
            drawing.label_x(axes, f"{label}{column.unit}\n{some}", years=True)
        else:
            axes.set_xlabel(f"{label}\n{some}", **drawing.LITERAL)
        scale = explanation.scale
        drawing.label_y(axes, drawing.value_label(centered, scale, names_of[o]))
        if entries and o == len(outputs) - 1:
            drawing.legend_above(axes, entries, len(outputs) > 1)
    panels.share("y", explanation.scale)
    if colour.ordered:
        draw_colorbar(panels, colour.name)
    return panels.result()


def _one_column(explanation: Explanation, feature: Any) -> tuple[int, int]:
    """Return the position of an attribution of one column, and that of the column in the data."""
    j = position(feature, list(explanation.feature_names), "scatter", "attribution")
    columns = positions(explanation.data, explanation.columns)[j]
    if len(columns) > 1:
        raise ValueError(
            f"scatter: {feature!r} has {len(columns)} columns, "
            f"{list(explanation.columns[j])}, and a picture has one axis for them; draw an "
            "attribution of one column"
        )
    return j, columns[0]


def _offset(one: Explanation, j: int) -> Any:
    """Return what centring subtracts from the values of an attribution, () or (n,)."""
    offset = np.asarray(one.offset)
    return offset[:, j] if offset.ndim == 2 else offset


def _partner(
    explanation: Explanation,
    j: int,
    k: int,
    color: Any,
    pairs: Explanation | None,
    values: list[np.ndarray],
) -> int | None:
    """Return the position in the data of the column that colours points, or None."""
    if color is None:
        return None
    labels = frames.labels(explanation.data)
    if not isinstance(color, str) or color != "auto" or "auto" in labels:
        return position(color, labels, "color", "column")
    if pairs is not None:
        return strongest_in_pairs(pairs, explanation.feature_names[j], explanation)
    return strongest_in_values(explanation.data, k, np.column_stack(values))


def _places(column: Column) -> tuple[np.ndarray, list[str] | None]:
    """Return where points stand on the x axis, and the names of levels if they are places.

    Missing values of numbers stand at the right end, missing levels are the last place.
    """
    if column.levels is None:
        there = column.numbers[np.isfinite(column.numbers)]
        low, high = (there.min(), there.max()) if len(there) else (0.0, 1.0)
        beside = high + 0.08 * ((high - low) or 1.0)
        return np.where(column.missing, beside, column.numbers), None
    texts = np.array([
        "missing" if missing else drawing.raw_text(level, 24)
        for level, missing in zip(column.levels, column.missing, strict=True)
    ], dtype=object)  # fmt: skip
    order = [drawing.raw_text(level, 24) for level in column.order or ()]
    counts = pd.Series(texts).value_counts()
    names = sorted(counts.index, key=lambda text: (
        text == "missing", order.index(text) if text in order else len(order), -counts[text],
    ))  # fmt: skip
    place = {name: p for p, name in enumerate(names)}
    spread = np.random.default_rng(0).uniform(-JITTER, JITTER, len(texts))
    return np.array([place[text] for text in texts]) + spread, names


def _draw_axis(ax: Axes, column: Column, x: np.ndarray, names: list[str] | None) -> None:
    """Draw the distribution of numbers below the points, and the names of levels."""
    if names is not None:
        name_levels(ax, names, np.bincount(np.rint(x).astype(int), minlength=len(names)))
        return
    there = column.numbers[np.isfinite(column.numbers)]
    if len(there):
        draw_histogram(ax, there, float(there.min()), float(there.max()))
    if column.missing.any():
        at = float(x[column.missing][0])
        ax.axvline(at, color=drawing.GREY, linewidth=0.6, linestyle=":", zorder=0.4)
        ax.annotate("missing", (at, 0), (0, 2), xycoords=ax.get_xaxis_transform(), rotation=90,
                    textcoords="offset points", ha="right", va="bottom", fontsize="x-small",
                    color=drawing.ink())  # fmt: skip
    if column.dates:
        ax.xaxis_date()
        drawing.date_ticks(ax, max(3, min(8, int(drawing.width_in_points(ax) / 45))))


class _Colour:
    """The colours of points: ranks of a column with order, the common levels of one without."""

    def __init__(self, name: str, rank: np.ndarray, missing: np.ndarray, levels: Any) -> None:
        self.name, self.rank, self.missing, self.levels = name, rank, missing, levels
        self.ordered = not np.isnan(rank).all()

    @classmethod
    def of(cls, explanation: Explanation, k: int | None, rows: np.ndarray) -> _Colour:
        """Read the column that colours points; None: one colour."""
        n = len(rows)
        if k is None:
            return cls("", np.full(n, np.nan), np.zeros(n, bool), None)
        name = drawing.shorten(frames.labels(explanation.data)[k])
        rank, missing = ranks(explanation.data, k)
        levels = None
        if np.isnan(rank).all() and not missing.all():
            values = frames.to_list(frames.column(explanation.data, k))
            levels = np.array([drawing.raw_text(values[i], 24) for i in rows], dtype=object)
        return cls(name, rank[rows], missing[rows], levels)

    def draw(self, ax: Axes, x: np.ndarray, y: np.ndarray) -> list[tuple]:
        """Draw the points; return the entries of a legend."""
        size = 16 if len(x) <= 1000 else 9
        entries: list[tuple] = []
        drawn = self.missing.copy()
        if self.missing.any():
            rings = ax.scatter(x[drawn], y[drawn], s=size, facecolors="none",
                               edgecolors=drawing.GREY, **SIZES)  # fmt: skip
            entries.append((rings, f"{self.name} missing"))
        if self.levels is not None:
            common = pd.Series(self.levels[~self.missing]).value_counts().index[:NAMED]
            for level, colour in zip(common, drawing.colours_of(len(common)), strict=True):
                here = (self.levels == level) & ~self.missing
                dots = ax.scatter(x[here], y[here], s=size, color=colour, **SIZES)
                entries.append((dots, f"{self.name} = {level}"))
                drawn |= here
        rest = ~drawn & np.isnan(self.rank)
        if rest.any():
            plain = drawing.BLUE if self.levels is None else drawing.GREY
            dots = ax.scatter(x[rest], y[rest], s=size, color=plain, **SIZES)
            entries += [(dots, "other levels")] if self.levels is not None else []
        ordered = ~np.isnan(self.rank)
        if ordered.any():
            ax.scatter(x[ordered], y[ordered], s=size, c=self.rank[ordered], cmap=low_to_high(),
                       vmin=0, vmax=1, **SIZES)  # fmt: skip
        return entries
