"""The figures, panels and tables of a report, for each output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skattr._utils.numbers import decimals, formatter, small
from skattr.explanation import Explanation
from skattr.report import figures
from skattr.report.settings import Settings
from skattr.report.tables import Column
from skattr.report.words import shown


def table_data(
    explanation: Explanation,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    labels: list[str],
    settings: Settings,
) -> dict[str, Any]:
    """Return the data of the table and of the row picker: the rows, and the values per output."""
    part = explanation[rows]
    outputs = []
    for name in part.output_names[: settings.max_outputs]:
        one = part.select(name)
        values = one.values[:, top]
        prediction = one.predictions
        error = None if one.std_error is None else one.std_error[:, top]
        places = decimals(one.values)
        outputs.append(
            {
                "name": shown(name),
                "decimals": places,
                "base": _rounded(one.base_value, places),
                "values": _rounded(values, places),
                "rest": _rounded(one.values.sum(axis=1) - values.sum(axis=1), places),
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


def _rounded(values: Any, places: int) -> Any:
    """Return numbers for JSON: six digits, more if decimals need them; None if not finite."""
    if np.ndim(values) > 0:
        return [_rounded(value, places) for value in values]
    if not np.isfinite(values):
        return None
    six = float(f"{values:.6g}")
    return six if places < 0 or abs(six) < 10.0 ** (6 - places) else round(float(values), places)


def output_parts(
    explanation: Explanation,
    o: int,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    labels: list[str],
    settings: Settings,
) -> dict[str, Any]:
    """Return the figures and panels of output o."""
    name = explanation.output_names[o]
    one = explanation.select(name)
    safe = shown(name)
    drawn = one if settings.include_data else figures.without_data(one)
    drawn = replace(drawn, feature_names=tuple(c.name for c in columns), output_names=(safe,))
    importance, beeswarm = figures.overview(drawn, settings.max_features, safe)
    size = np.abs(one.values).mean(axis=0)
    write = formatter(size)
    return {
        "name": safe,
        "importance": importance,
        "beeswarm": beeswarm,
        "ranking": [
            (columns[j].name, write(size[j]), _share(size, j))
            for j in np.argsort(-size, kind="stable")[: settings.max_features]  # as in the figure
        ],
        "panels": [_panel(one, o, j, columns[j], size, settings) for j in top],
        # names of bars hold raw values; the table has all numbers
        "waterfalls": _waterfalls(drawn, rows, labels, safe) if settings.include_data else [],
    }


def _share(size: np.ndarray, j: int) -> str:
    return f"{size[j] / size.sum():.1%}" if size.sum() > 0 else "–"


def _panel(
    one: Explanation, o: int, j: int, column: Column, size: np.ndarray, settings: Settings
) -> dict[str, Any]:
    curve, reason = column.curve_of(o), column.reason
    values = one.values[:, j]
    support = None if one.support is None else one.support[:, j]
    write = formatter(values)
    picture = figures.panel(
        curve, column, values, support, shown(one.output_names[0]), settings.include_data
    )
    if picture is None and not reason:
        reason = (
            "The curve shows values of the data, so it is left out: include_data=False."
            if not settings.include_data
            else "The column has too many levels to draw."
        )
    numbers = [
        ("importance", f"{formatter(size)(size[j])} ({_share(size, j)} of all)"),
        ("centred values", f"{write(values.min())} to {write(values.max())}"),
    ]
    if one.std_error is not None:
        numbers.append(("largest standard error", small(one.std_error[:, j].max())))
    if support is not None:
        numbers.append(("least support", f"{support.min():.1f} rows"))
    if curve is not None:
        numbers.append(("curve", _kind_in_words(curve)))
    heading, lines = column.table(values) if settings.include_data else (("", ""), [])
    return {
        "name": column.name,
        "picture": picture,
        "reason": reason,
        "numbers": numbers + column.facts(settings.include_data),
        "heading": heading,
        "lines": lines,
    }


def _kind_in_words(curve: Any) -> str:
    if curve.kind == "function":
        return "a function, evaluated at the rows explained"
    return f"{curve.kind}, {len(curve.to_frame()):,} of them"


def _waterfalls(
    drawn: Explanation, rows: np.ndarray, labels: list[str], output: str
) -> list[figures.Picture]:
    """Return the waterfalls of the rows shown with the lowest, median and highest prediction."""
    part = drawn[rows]
    height = part.values.sum(axis=1) if part.predictions is None else part.predictions
    order = np.argsort(height, kind="stable")
    picked = dict.fromkeys(int(order[i]) for i in (0, len(order) // 2, -1))
    return [figures.waterfall(part, row, labels[row], output) for row in picked]
