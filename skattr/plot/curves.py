"""`curve`: the attribution of one column as a function of its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.messages import brief, check_flag
from skattr.curves import Curve
from skattr.plot import drawing
from skattr.plot.columns import Column, as_column
from skattr.plot.curve_bands import BandLines, as_bands, draw_bands
from skattr.plot.curve_levels import arranged, draw_levels
from skattr.plot.curve_lines import Line, as_line, drop_unknown
from skattr.plot.curve_numbers import draw_numbers
from skattr.plot.curve_strip import STRIP, THIN
from skattr.plot.selection import output_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curve(
    curves: Curve | Sequence[Curve] | Mapping[Any, Curve],
    *,
    data: Any = None,
    support: Any = None,
    output: Any = None,
    centered: bool | None = None,
    labels: Sequence[Any] | None = None,
    band: Any = None,
    ax: Any = None,
) -> Any:
    """Draw the attribution of a column as a function of its value, with all its jumps.

    Steps are drawn with their jumps, levels as bars, and other functions as a line through their
    points; many levels that are numbers or dates are points on an axis. Levels are in their
    order or, if they have none, by size. "missing" and "any other" are drawn if the data has such
    values; without data, if the background has missing values or the curve has a value for any
    other level. The outer steps reach 5 % beyond the others, and as far as the data. Several
    outputs have one panel each.

    Parameters
    ----------
    curves : Curve, list of Curve, or dict from a label to a Curve
        The curves to draw, all of one column, such as those of several measures.
    data : DataFrame or array (n, d), or one column (n,), optional
        The raw data, whose distribution is drawn below the curves. From a table, the column of
        the curves is taken.
    support : array (n,), optional
        The effective number of rows behind the value at each entry of data, a column of
        `Explanation.support`. Where it is below 30 the background is shaded.
    output : str or int, optional
        The output, by name or position; all of them by default.
    centered : bool, optional
        Whether to subtract the offset; by default if all curves know it.
    labels : list, optional
        The names of the curves; their measures in words by default.
    band : "background", Stability, Band, or dict from words to a table, optional
        A band around the curve: "background" is its 95 % interval from the rows of the background,
        see `Curve.interval`; a Stability is the result of `skattr.metrics.stability`; or {"what it
        is": table}, where the table has the columns `low` and `high` (or is an array (p, 2), or
        (p, 2, k) for several outputs), one line for each line of `curve.to_frame()`. The legend
        says what it is. For several curves, "background" or a list with one entry or None for each.
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
    >>> explainer = skattr.MeasureExplainer(tree).fit(X)
    >>> ax = skattr.plot.curve(explainer.curve("bmi"), data=X)
    >>> print(ax.get_xlabel())
    bmi
    442 rows
    """
    all_curves, names = _as_list(curves, labels)
    if centered is None:
        centered = all(one.offset is not None for one in all_curves)
    check_flag("centered", centered)
    outputs = _outputs(all_curves, output)
    sets = [
        [as_line(one, name, o, centered) for one, name in zip(all_curves, names, strict=True)]
        for o in outputs
    ]
    bands = as_bands(band, all_curves, outputs, centered)
    lines = sets[0]
    column = None
    if data is not None:
        data = _column_of(data, all_curves[0].feature)
        if all(line.has_no_jump for line in lines):  # the model ignores the column
            looks = as_column(data, all_curves[0].feature)
            ends = [side for some in bands for band in some if band for side in band.sides]
            for line in (*chain(*sets), *ends):
                line.follow(looks)
        column = as_column(data, all_curves[0].feature, _are_of_levels(lines), lines[0].dates)
    elif support is not None:
        raise ValueError("support needs data: pass the values that it belongs to as data=")
    of_levels = _are_of_levels(lines)
    thin = _thin(support, column)
    drop_unknown(sets, all_curves, column)
    order = arranged(lines, all_curves[0].order, column) if of_levels else None

    wide = 0.0 if order is None else 1.3 + 0.135 * len(order)
    size, panel = (min(max(6.4, wide), 14.0), 4.0), (min(max(4.4, wide), 6.4), 4.0)
    panels = drawing.Panels.of(ax, [all_curves[0].output_names[o] for o in outputs], size, panel)
    for drawn, around, axes, o in zip(sets, bands, panels.axes, outputs, strict=True):
        if order is None:
            entries = draw_numbers(axes, drawn, column, thin)
        else:
            entries = draw_levels(axes, drawn, order, column, thin)
        entries += draw_bands(axes, around, drawn, order)
        _limit(axes, drawn, around, column, centered or order is not None)
        _write(axes, all_curves, lines[0].unit, column, o, centered)
        if entries and o == outputs[-1]:
            if order is not None and band is not None:  # error bars may be anywhere
                drawing.legend_above(axes, entries, len(outputs) > 1)
            else:
                drawing.legend(axes, entries)
    panels.share("y", all_curves[0].scale)
    return panels.result()


def _are_of_levels(lines: Sequence[Any]) -> bool:
    """Return whether curves are functions of levels, or raise if they are of several kinds."""
    levels = {line.kind == "levels" for line in lines}
    if len(levels) > 1 or len({line.dates for line in lines}) > 1:
        kinds = ", ".join(line.kind + " of dates" * line.dates for line in lines)
        raise ValueError(f"all curves must be of the same kind, got {kinds}; draw them one by one")
    return levels == {True}


def _as_list(curves: Any, labels: Any) -> tuple[list[Curve], list[str | None]]:
    """Return the curves and their labels; None for a single one without a label."""
    if isinstance(curves, Mapping):
        labels = list(curves) if labels is None else labels
        curves = list(curves.values())
    several = np.iterable(curves) and not isinstance(curves, str)
    all_curves = list(curves) if several else [curves]
    wrong = [brief(one) for one in all_curves if not isinstance(one, Curve)]
    if wrong or not all_curves:
        raise TypeError(
            "curves must be a Curve, such as explainer.curve('name'), or a list or dict of them; "
            f"got {wrong[0] if wrong else brief(curves)}"
        )
    if labels is None:
        labels = _default_labels(all_curves)
    if isinstance(labels, str) or len(labels) != len(all_curves):
        raise ValueError(
            f"labels must have one name per curve, got {len(all_curves)} curves, but "
            f"labels={labels!r}"
        )
    features = list(dict.fromkeys(str(one.feature) for one in all_curves))
    if len(features) > 1:
        raise ValueError(f"all curves must be of one column, got {features}")
    return all_curves, [None if label is None else drawing.shorten(label, 60) for label in labels]


def _column_of(data: Any, feature: Any) -> Any:
    """Return the column of a feature from a table, and anything else as it is."""
    if not frames.is_frame(data) and len(getattr(data, "shape", ())) != 2:
        return data
    names = frames.labels(data)
    if feature not in names:
        raise ValueError(f"data has no column {feature!r}; it has {brief(names)}")
    return frames.column(data, names.index(feature))


def _default_labels(all_curves: list[Curve]) -> Sequence[str | None]:
    """Return the names of the measures or, where some are equal, numbers."""
    if len(all_curves) == 1:
        return [None]
    measures = [one.measure_name for one in all_curves]
    if all(measures) and len({*measures}) == len(measures):
        return measures
    return [f"curve {i + 1}" for i in range(len(all_curves))]


def _outputs(all_curves: list[Curve], output: Any) -> list[int]:
    """Return the positions of the outputs to draw, which all curves have."""
    names = all_curves[0].output_names
    for one in all_curves:
        if one.output_names != names:
            raise ValueError(
                f"all curves must be of the same outputs, got {names} and {one.output_names}"
            )
    return output_positions(names, output)


def _thin(support: Any, column: Column | None) -> np.ndarray | None:
    """Return which values of the data have few rows behind them, (n,), or None if none has."""
    if support is None or column is None:
        return None
    support = np.asarray(support, float)
    if support.shape != (len(column),):
        raise ValueError(
            f"support must have one number per value of data: support has shape {support.shape}, "
            f"but data has {len(column)} values"
        )
    thin = support < THIN
    return thin if thin.any() else None


def _limit(
    ax: Axes,
    lines: list[Line],
    bands: Sequence[BandLines | None],
    column: Column | None,
    from_zero: bool,
) -> None:
    """Set the limits of the values, with room for the strip of data, and draw the zero line."""
    ends = [band.ends_of(line) for band, line in zip(bands, lines, strict=True) if band]
    values = np.concatenate([*(line.all_values for line in lines), *ends, [0.0] * from_zero])
    low, high = float(values.min()), float(values.max())
    size = high - low
    if size <= 1e-12 * abs(high):  # a constant is drawn in the middle
        size = abs(high) * 0.2 or 2.0
        low, high = low - size / 2, high + size / 2
    below = 0.08 if column is None else 0.08 + STRIP * 1.6
    ax.set_ylim(low - below * size, high + 0.08 * size)
    drawing.zero_line(ax, vertical=False)


def _write(
    ax: Axes,
    all_curves: list[Curve],
    unit: str,
    column: Column | None,
    o: int,
    centered: bool,
) -> None:
    """Write the labels of the axes."""
    label = drawing.shorten(all_curves[0].feature) + unit
    if column is not None:
        label += f"\n{column.describe()}"
    drawing.label_x(ax, label, years=True)
    units = {(one.scale, one.output_names[o]) for one in all_curves}
    words = "attribution, centred" if centered else "attribution"
    if len(units) == 1:
        words = drawing.value_label(centered, *units.pop())
    drawing.label_y(ax, words)
    drawing.hide_spines(ax, "top", "right")
