"""What if: the curves of the columns shown, as tables that the page evaluates by itself.

A stored curve is one of

- "steps": ends x and values, value i for x[i - 1] < t <= x[i];
- "linear": knots x and values, straight between them and beyond;
- "levels": texts and values, missing and unknown levels among them.

Values are centred. Each table is checked: it gives the values of the rows shown.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.numbers import fixed
from skattr.explanation import Explanation
from skattr.pieces import Additive
from skattr.report.settings import Settings
from skattr.report.tables import Column
from skattr.report.words import shown_value

BYTES = 120_000  # of all curves; those of the most important columns come first
CLOSE = 1e-9  # relative difference between a table and the values of the rows

NO_CURVE = "the attribution of this column depends on other columns, too"
EVALUATED = "the model has to be evaluated, which a page cannot do"
TOO_LONG = f"the curves of more important columns fill the {BYTES // 1000} kB that a page may hold"


def what_if(
    explainer: Any,
    explanation: Explanation,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    places: list[int],
    settings: Settings,
) -> dict[str, Any] | None:
    """Return the stored curves of the columns shown; None without data, whose values they tell."""
    if not settings.include_data:
        return None
    sums = isinstance(explainer.pieces_, Additive) and _adds_up(explanation)
    stored, room = [], BYTES
    for j, column in zip(top, columns, strict=True):
        table = _stored(explainer, explanation, column, rows, j, places)
        size = len(json.dumps(table))
        if "kind" in table and size > room:
            table = {"why": TOO_LONG}
        room -= size if "kind" in table else 0
        if sums and table.get("kind") == "linear":
            table["own"] = [_number(t) for t in frames.to_float(column.parts[0].iloc[rows])]
        stored.append(table)
    predictions = None
    if sums:
        assert explanation.predictions is not None
        part = explanation.predictions[rows].reshape(len(rows), -1)
        predictions = part.T[: len(places)].tolist()
    return {"columns": stored, "predictions": predictions}


def _adds_up(explanation: Explanation) -> bool:
    return explanation.predictions is not None and explanation.adds_up()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _stored(
    explainer: Any,
    explanation: Explanation,
    column: Column,
    rows: np.ndarray,
    j: int,
    places: list[int],
) -> dict[str, Any]:
    """Return the table of one column, or {"why": the reason why there is none}."""
    curve = column.curve
    if curve is None or curve.offset is None:
        return {"why": NO_CURVE}
    k = len(places)
    data = column.parts[0].iloc[rows]
    if curve.kind == "levels":
        table, values = _levels(curve)
    elif data.dtype.kind not in "iuf":
        return {"why": EVALUATED}
    else:
        found = _numbers(explainer, column, curve)
        if found is None:
            return {"why": EVALUATED}
        table, values = found
        own = frames.to_float(data)
        wanted = explanation.values[rows, j].reshape(len(rows), -1)
        got = evaluate(table, values - curve.offset, own)
        there = np.isfinite(own)
        size = np.abs(explanation.values).max() + np.abs(curve.offset).max()
        if (np.abs(got - wanted)[there] > CLOSE * size).any():
            return {"why": EVALUATED}
        table |= {"whole": data.dtype.kind in "iu", "single": data.dtype == np.float32}
        inside = frames.to_float(column.parts[0])
        inside = inside[np.isfinite(inside)]
        if not len(inside):
            return {"why": "all its values are missing"}
        table |= {"low": float(inside.min()), "high": float(inside.max())}
    centred = (values - curve.offset)[:, :k]
    texts = [[_short(v, places[o]) for v in centred[:, o]] for o in range(k)]
    if table.pop("with_missing", False):  # the last value is that at missing
        return {**table, "values": [v[:-1] for v in texts], "missing": [v[-1] for v in texts]}
    return {**table, "values": texts}


def _levels(curve: Any) -> tuple[dict[str, Any], np.ndarray]:
    frame = curve.to_frame()
    kinds = zip(frame["level"], frame["kind"], strict=True)
    names = [shown_value(level) if kind == "level" else str(level) for level, kind in kinds]
    return {"kind": "levels", "levels": names}, _values(frame, curve)


def _values(frame: Any, curve: Any) -> np.ndarray:
    return np.asarray(frame.iloc[:, -len(curve.output_names) :].to_numpy(float))


def _numbers(
    explainer: Any, column: Column, curve: Any
) -> tuple[dict[str, Any], np.ndarray] | None:
    """Return the table of a curve of numbers, and its values, that at missing last."""
    if curve.kind == "function":
        return _affine(explainer, column, curve)
    frame = curve.to_frame()
    values = _values(frame, curve)
    if curve.kind == "linear":
        missing = frame["x"].isna().to_numpy()
        table = {"kind": "linear", "x": frame["x"].to_numpy(float)[~missing].tolist()}
        values = np.vstack([values[~missing], values[missing]])
        return {**table, "with_missing": bool(missing.any())}, values
    missing = (frame["closed"] == "missing").to_numpy()
    inside = ~missing & (frame["closed"] != "both").to_numpy()  # without the value at -inf
    ends, steps = frame["upper"].to_numpy(float)[inside], values[inside]
    last = np.append((np.diff(steps, axis=0) != 0).any(axis=1), True)  # of steps of equal value
    table = {"kind": "steps", "x": ends[last][:-1].tolist(), "with_missing": bool(missing.any())}
    return table, np.vstack([steps[last], values[missing]])


def _affine(explainer: Any, column: Column, curve: Any) -> tuple[dict[str, Any], np.ndarray] | None:
    """Return two points of the curve of a column that enters a sum as a straight line."""
    pieces = explainer.pieces_
    k = explainer.column_names_.index(column.label)
    x = frames.to_float(column.parts[0])
    x = np.unique(x[np.isfinite(x)])
    if not isinstance(pieces, Additive) or not pieces.is_affine(k) or len(x) < 2:
        return None
    ends = x[[0, -1]]
    values = curve(ends.astype(column.parts[0].dtype)).reshape(2, -1)
    with_missing = False
    with suppress(ValueError, TypeError):  # the model may not accept missing values
        values = np.vstack([values, curve(np.array([np.nan])).reshape(1, -1)])
        with_missing = True
    return {"kind": "linear", "x": ends.tolist(), "with_missing": with_missing}, values


def evaluate(table: dict[str, Any], values: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return what the page computes from a table of numbers, (n, k)."""
    x = np.asarray(table["x"], float)
    at = np.searchsorted(x, t, side="left")
    if table["kind"] == "steps":
        return values[at]
    right = np.clip(at, 1, len(x) - 1)
    left = right - 1
    part = ((t - x[left]) / (x[right] - x[left]))[:, None]
    straight = values[left] + (values[right] - values[left]) * part
    on = (at < len(x)) & (x[np.minimum(at, len(x) - 1)] == t)
    return np.where(on[:, None], values[np.minimum(at, len(x) - 1)], straight)


def _short(value: float, places: int) -> float:
    """Return a number in nine digits, or in full if it would be printed differently."""
    nine = float(f"{value:.9g}")
    return nine if fixed(nine, places) == fixed(value, places) else float(value)
