"""The figures, panels and tables of a report, for each output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from skattr._utils.numbers import count, decimals, formatter, in_units, percent, small
from skattr.explanation import Explanation
from skattr.report import figures
from skattr.report.how_sure import Intervals, how_sure
from skattr.report.rows import ExplainedRows
from skattr.report.settings import Settings
from skattr.report.shapes import with_unit
from skattr.report.summary import explains
from skattr.report.tables import Column
from skattr.report.what_if import short
from skattr.report.words import shown


def table_data(
    explanation: Explanation,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    labels: list[str],
    settings: Settings,
    shapley: Explanation | None,
) -> dict[str, Any]:
    """Return the data of the table and of the row picker: the rows, and the values per output."""
    part = explanation[rows]
    outputs = []
    for name in part.output_names[: settings.max_outputs]:
        one = part.select(name)
        prediction = one.predictions
        error = None if one.std_error is None else one.std_error[:, top]
        places = decimals(one.values)
        outputs.append(
            {
                "name": shown(name),
                "what": explains(one),
                "decimals": places,
                **_values(one, top, places, _rounded),
                "shapley": None
                if shapley is None
                else _values(shapley.select(name), top, places, _shortened),
                "prediction": None if prediction is None else _rounded(prediction, places),
                "error": None if error is None else _rounded(error, places),
            }
        )
    texts = [column.texts(rows) for column in columns] if settings.include_data else None
    return {
        "rows": labels,
        "features": [column.name for column in columns],
        "more": len(explanation.feature_names) - len(columns),
        "remainder": explanation.remainder_name,
        "data": None if texts is None else [list(row) for row in zip(*texts, strict=True)],
        "outputs": outputs,
    }


def _values(
    one: Explanation, top: np.ndarray, places: int, write: Callable[..., Any]
) -> dict[str, Any]:
    """Return what rows begin with, the values of some columns, and the sum of the others."""
    values = one.values[:, top]
    return {
        "base": write(np.asarray(one.start), places),
        "values": write(values, places),
        "rest": write(one.values.sum(axis=1) - values.sum(axis=1), places)
        if len(top) < one.values.shape[1]
        else [0] * len(values),
    }


def _rounded(values: Any, places: int) -> Any:
    """Return numbers for JSON: six digits, more if decimals need them; None if not finite."""
    if np.ndim(values) > 0:
        return [_rounded(value, places) for value in np.asarray(values)]
    return short(float(values), places, 6) if np.isfinite(values) else None


def _shortened(values: np.ndarray, places: int) -> Any:
    """Return numbers for JSON with two decimals more than are printed."""
    if places < 0:
        return _rounded(values, places)
    units = in_units(np.ravel(values), places, 2)
    return (units / 10.0 ** (places + 2)).reshape(np.shape(values)).tolist()


def output_parts(
    explained: ExplainedRows,
    o: int,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    labels: list[str],
    settings: Settings,
    shapley: Explanation | None,
    n_background: int,
) -> dict[str, Any]:
    """Return the figures and panels of output o."""
    name = explained.explanation.output_names[o]
    one = explained.explanation.select(name)
    safe = shown(name)

    def to_draw(part: Explanation) -> Explanation:
        part = part if settings.include_data else figures.without_data(part)
        return replace(part, feature_names=tuple(c.name for c in columns), output_names=(safe,))

    drawn = to_draw(one)
    in_rows = drawn[rows] if shapley is None else to_draw(shapley.select(name))
    importance, beeswarm = figures.overview(
        to_draw(explained.importance().select(name)), drawn, safe, settings
    )
    size = explained.size if explained.size.ndim == 1 else explained.size[:, o]
    write = formatter(size)
    intervals = Intervals.of(explained, o)
    return {
        "name": safe,
        "importance": importance,
        "beeswarm": beeswarm,
        "ranking": [
            (
                columns[j].name,
                write(size[j]),
                _share(size, j),
                "" if intervals is None else intervals.importance(j),
            )
            for j in np.argsort(-size, kind="stable")[: settings.max_features]  # as in the figure
        ],
        "interactions": None,
        "comparison": None,
        "slices": None,
        "how_sure": []
        if intervals is None
        else how_sure(intervals, columns, top, n_background, settings.output_unit),
        "panels": [_panel(one, o, j, columns[j], size, settings, intervals) for j in top],
        # names of bars hold raw values; the table has all numbers
        "waterfalls": _waterfalls(in_rows, labels, safe, settings) if settings.include_data else [],
    }


def _share(size: np.ndarray, j: int) -> str:
    return percent(size[j] / size.sum(), 1) if size.sum() > 0 else "–"


def _panel(
    one: Explanation,
    o: int,
    j: int,
    column: Column,
    size: np.ndarray,
    settings: Settings,
    intervals: Intervals | None,
) -> dict[str, Any]:
    curve, reason = column.curve_of(o), column.reason
    values = one.values[:, j]
    support = None if one.support is None else one.support[:, j]
    write = formatter(values)
    picture = figures.panel(curve, column, values, support, shown(one.output_names[0]), settings)
    if figures.is_flat(curve, column):
        reason = "The value is the same for all levels."
    elif picture is None and not reason:
        reason = (
            "The curve shows values of the data, so it is left out: include_data=False."
            if not settings.include_data
            else "The column has too many levels to draw."
        )
    unit = settings.output_unit
    numbers = [
        ("importance", f"{with_unit(formatter(size)(size[j]), unit)} ({_share(size, j)} of all)"),
        ("centred values", with_unit(f"{write(values.min())} to {write(values.max())}", unit)),
    ]
    if intervals is not None:
        numbers.append(("95 % interval", intervals.about(j, unit)))
    if one.std_error is not None:
        numbers.append(("largest standard error", small(one.std_error[:, j].max())))
    if support is not None:
        numbers.append(("least support", f"{support.min():.1f} rows"))
    if curve is not None:
        numbers.append(("curve", _kind_in_words(curve, column, settings)))
    heading, lines = column.table(values) if settings.include_data else (("", ""), [])
    return {
        "name": column.name,
        "unit": column.unit,
        "description": column.description,
        "picture": picture,
        "reason": reason,
        "numbers": numbers + column.facts(settings.include_data),
        "heading": heading,
        "lines": lines,
    }


def _kind_in_words(curve: Any, column: Column, settings: Settings) -> str:
    if not settings.include_data:
        return f"{curve.kind}, read at round numbers" if curve.kind == "steps" else curve.kind
    if curve.kind == "function":
        return "a function, evaluated at the rows explained"
    frame = curve.to_frame()
    if curve.kind == "linear":
        return f"straight between {count(frame['x'].notna().sum())} knots"
    there = frame["kind"] == "level" if curve.kind == "levels" else frame["closed"] != "missing"
    if curve.kind == "levels" and not column.is_level:  # of dates, or of encoded numbers
        return f"known at {count(there.sum())} values"
    return f"{count(there.sum())} {curve.kind}"


def _waterfalls(
    part: Explanation, labels: list[str], output: str, settings: Settings
) -> list[figures.Picture]:
    """Return the waterfalls of the rows shown with the lowest, median and highest prediction."""
    height = part.values.sum(axis=1) if part.predictions is None else part.predictions
    order = np.argsort(height, kind="stable")
    picked = dict.fromkeys(int(order[i]) for i in (0, len(order) // 2, -1))
    return [figures.waterfall(part, row, labels[row], output, settings) for row in picked]
