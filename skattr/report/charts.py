"""What the pictures of the page need besides the curves: positions on an axis, and row counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.report.figures import axis_places
from skattr.report.settings import Settings
from skattr.report.tables import Column
from skattr.report.what_if import in_two_digits

BINS = 30  # of a histogram
ERRORS = 16  # points of a line whose errors are shown
INTEGERS = 60  # that are counted one by one at most


def charts(
    columns: list[Column], rows: np.ndarray, stored: dict[str, Any] | None, settings: Settings
) -> list[dict[str, Any]] | None:
    """Return for each column shown what its picture needs; None without data.

    Counts are of all rows explained, `places` of the rows shown. `order` are the positions of the
    stored levels that the rows have, in the order of their bars; that of the first `ranks` is their
    own. `band` has twice the errors from
    the background of bars, or of a line at some places, for each output; those of steps are stored
    with the curve.
    """
    if not settings.include_data or stored is None:
        return None
    return [
        _levels(column, table) if column.is_level else _numbers(column, rows, table)
        for column, table in zip(columns, stored["columns"], strict=True)
    ]


def _levels(column: Column, table: dict[str, Any]) -> dict[str, Any]:
    chart: dict[str, Any] = {"kind": "group" if column.is_group else "level", "unit": ""}
    if column.is_group or table.get("kind") != "levels":
        return chart
    counts = column.level_counts()
    stored = {name: k for k, name in enumerate(table["levels"])}
    there = [k for name, k in stored.items() if counts.get(name)]
    ordered = column.curve is not None and column.curve.order is not None
    special = {"missing", "any other", "missing (None)", "missing (NaN)"}
    names, values = table["levels"], table["values"][0]
    there.sort(key=lambda k: (names[k] in special, k if ordered else -values[k]))
    chart |= {"order": there, "counts": [counts[names[k]] for k in there]}
    if ordered:
        chart["ranks"] = sum(names[k] not in special for k in there)
    return chart | _level_errors(column, there)


def _numbers(column: Column, rows: np.ndarray, table: dict[str, Any]) -> dict[str, Any]:
    part = column.parts[0]
    x, dates = axis_places(part)
    kind = part.dtype.kind
    there = x[np.isfinite(x)]
    chart: dict[str, Any] = {
        "kind": "date" if dates else "number",
        "unit": column.unit,
        "whole": kind in "iu",
    }
    if kind == "m" and not column.unit:
        chart["unit"] = "s"
    if not len(there):
        return chart | {"kind": "empty"}
    low, high = float(there.min()), float(there.max())
    bins = BINS
    if kind in "iu" and high - low < INTEGERS:
        low, high = low - 0.5, high + 0.5
        bins = int(high - low)
    high = high if high > low else low + 1  # one value has an axis, too
    counts = np.histogram(there, bins, (low, high))[0]
    chart |= {"low": low, "high": high, "counts": counts.tolist()}
    chart["missing"] = int(column.missing.sum())
    if kind in "mM":
        shown = x[rows]
        chart["places"] = [round(float(v), 6) if np.isfinite(v) else None for v in shown]
    elif table.get("kind") == "linear":
        grid = np.linspace(there.min(), there.max(), ERRORS)
        chart |= _errors(column, np.array([float(f"{x:.6g}") for x in grid]))
    return chart


def _errors(column: Column, x: np.ndarray) -> dict[str, Any]:
    """Return the errors of a line from its background, at some numbers; {} if there are none."""
    assert column.curve is not None
    errors = column.curve.background_error(x.astype(column.parts[0].dtype), centered=True)
    return {} if errors is None else _band(x, errors.reshape(len(x), -1))


def _level_errors(column: Column, order: list[int]) -> dict[str, Any]:
    """Return the same of bars, at their places; "any other" has none."""
    assert column.curve is not None
    if not column.curve.n_folds or not order:
        return {}
    return _band(np.arange(len(order)), column.curve.table_errors(True)[order])


def _band(places: np.ndarray, errors: np.ndarray) -> dict[str, Any]:
    there = np.isfinite(errors).all(axis=1)
    widths = in_two_digits(2 * errors[there]).tolist()
    return {"band": [[x, *e] for x, e in zip(places[there].tolist(), widths, strict=True)]}
