"""What if: the curves of the columns shown, as tables that the page evaluates by itself.

A stored curve is one of

- "steps": ends x and values, value i for x[i - 1] < t <= x[i];
- "linear": knots x and values, straight between them and beyond;
- "levels": texts and values, missing and unknown levels among them.

Values are centred. Each table is checked: it gives the values of the rows shown.

Steps are many (thousands in a forest), so they are packed. Values are whole multiples of a unit,
each written as its difference from the one before; steps that are printed alike are one. The unit
is so small that all digits that the page prints are those of `explain`, as long as the curves fit
into BYTES; above that it grows, which the page says. Ends are the bytes of doubles or, where
comparing in single precision is the same (as forests do), of single numbers.

Knots are many, too (those of a small network are ten thousand), and are stored in full as long as
they fit. Above that, only those are kept which the others need to be no more than half a unit away.
"""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.numbers import fixed, in_units
from skattr.explanation import Explanation
from skattr.pieces import Additive
from skattr.report.settings import Settings
from skattr.report.tables import Column
from skattr.report.words import shown_value

BYTES = 150_000  # of all curves; those of the most important columns come first
CLOSE = 1e-9  # relative difference between a table and the values of the rows
UNITS = [  # of steps: decimals beyond those that are printed, and how many of the last one
    (6, 1),  # enough for predictions, which are sums
    (2, 1),
    (1, 1),
    (0, 1),
    (0, 2),
    (0, 5),
    (0, 10),
    (0, 20),
    (0, 50),
]

NO_CURVE = "the attribution of this column depends on other columns, too"
EVALUATED = "the model has to be evaluated, which a page cannot do"
NOT_A_SUM = "the model is not a sum of these curves"
ROUNDED = "the curves are rounded"
TOO_LONG = f"its curve does not fit into the {BYTES // 1000} kB that the curves of a page may fill"


def what_if(
    explainer: Any,
    explanation: Explanation,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    places: list[int],
    settings: Settings,
) -> dict[str, Any] | None:
    """Return the stored curves of the columns shown; None without data: they show its values."""
    if not settings.include_data:
        return None
    sums = additive = isinstance(explainer.pieces_, Additive) and _adds_up(explanation)
    curves = [
        _stored(explainer, explanation, column, rows, j, places)
        for j, column in zip(top, columns, strict=True)
    ]
    for more, times in UNITS if sums else UNITS[1:]:
        tables = [each.packed(places, more, times) for each in curves]
        sizes = [len(json.dumps(table)) for table in tables]
        if sum(sizes) <= BYTES:
            break
    in_steps = any("units" in table for table in tables)
    thinned = any(table.pop("thinned", False) for table in tables)
    rounded = thinned or (times > 1 and in_steps)
    sums = sums and not thinned and (more == UNITS[0][0] or not in_steps)
    stored, room = [], BYTES
    for table, size, column in zip(tables, sizes, columns, strict=True):
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
    return {
        "columns": stored,
        "predictions": predictions,
        "why": ROUNDED if additive else NOT_A_SUM,
        # half a unit, and half a decimal by which it is printed
        "within": [fixed(-(-(times + 1) // 2) * 10.0**-p, p) for p in places] if rounded else None,
    }


def _adds_up(explanation: Explanation) -> bool:
    return explanation.predictions is not None and explanation.adds_up()


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class Stored:
    """The table of one column, its centred values, and twice their errors from the background."""

    table: dict[str, Any]
    values: np.ndarray  # (m, k)
    errors: np.ndarray | None = None  # (m, k), of steps only

    def packed(self, places: list[int], more: int, times: int) -> dict[str, Any]:
        """Return what the page holds: values in `more` decimals, `times` the last one."""
        if "kind" not in self.table:
            return self.table
        table = dict(self.table)
        values = self.values
        if table.pop("with_missing", False):  # the last value is that at missing
            table["missing"] = [short(v, p) for v, p in zip(values[-1], places, strict=True)]
            values = values[:-1]
        if table["kind"] == "linear" and more == 0 and min(places) >= 0:
            kept = needed_knots(table["x"], values, times / 2 * 10.0 ** -np.array(places, float))
            if len(kept) < len(values):
                table["x"], values, table["thinned"] = table["x"][kept], values[kept], True
        if table["kind"] != "steps" or min(places) < 0:
            if table["kind"] == "steps":
                table["x"], table["single"] = as_bytes(table["x"], table["single"])
            elif table["kind"] == "linear":
                table["x"] = table["x"].tolist()
            listed = [
                [short(v, p) for v in column]
                for column, p in zip(values.T.tolist(), places, strict=True)
            ]
            return {**table, "values": listed, **self._told_errors(np.arange(len(values)))}
        units = [in_units(v, p, more) for v, p in zip(values.T, places, strict=True)]
        if times > 1:
            units = [np.rint(unit / times).astype(np.int64) for unit in units]
        same = [*units, *([] if self.errors is None else self.errors.T)]
        last = np.append(np.any([np.diff(each) != 0 for each in same], axis=0), True)
        kept = np.flatnonzero(last)
        table["x"], table["single"] = as_bytes(table["x"][kept[:-1]], table["single"])
        return {
            **table,
            "units": [[times, p + more] for p in places],
            "values": [np.diff(unit[kept], prepend=0).tolist() for unit in units],
            **self._told_errors(kept),
        }

    def _told_errors(self, kept: np.ndarray) -> dict[str, Any]:
        """Return runs of errors: how many, and the error."""
        if self.errors is None:
            return {}
        errors_of_steps = []
        for errors in self.errors[kept].T:
            ends = np.append(np.flatnonzero(np.diff(errors)), len(errors) - 1)
            runs = np.diff(ends, prepend=-1)
            pairs = zip(runs.tolist(), errors[ends].tolist(), strict=True)
            errors_of_steps.append([n for pair in pairs for n in pair])
        return {"errors": errors_of_steps}


def needed_knots(x: np.ndarray, values: np.ndarray, off: np.ndarray) -> np.ndarray:
    """Return the positions of knots between which a line is nowhere further off than that.

    Each round adds, between any two knots kept, the one that is furthest off (Ramer 1972; Douglas
    and Peucker 1973). The first and last two stay, so that the line goes on beyond them as before.
    Values are (n, k), and `off` is (k,).
    """
    n = len(x)
    kept = np.unique(np.clip([0, 1, n - 2, n - 1], 0, n - 1))
    while len(kept) < n:
        lines = [np.interp(x, x[kept], v[kept]) for v in values.T]
        gap = (np.abs(values - np.stack(lines, axis=1)) / off).max(axis=1)
        starts = kept[:-1]
        worst = np.maximum.reduceat(gap, starts)
        segment = np.searchsorted(kept, np.arange(n), side="right") - 1
        worst = np.append(worst, np.inf)  # of the last knot, which is kept
        more = np.flatnonzero((gap > 1) & (gap == worst[segment]))
        if not len(more):
            break
        kept = np.union1d(kept, more)
    return kept


def as_bytes(x: np.ndarray, single: bool) -> tuple[str, bool]:
    """Return ends as base64, and whether they are to be compared in single precision."""
    with np.errstate(over="ignore"):
        low = x.astype(np.float32)
        low = np.where(low > x, np.nextafter(low, np.float32(-np.inf)), low)
        high = np.nextafter(low, np.float32(np.inf)).astype(float)
    middle = low.astype(float) + (high - low.astype(float)) / 2
    # the largest double that is rounded to `low`: the middle if that is rounded to even
    ends = np.where(middle.astype(np.float32) == low, middle, np.nextafter(middle, -np.inf))
    single = single or bool((ends == x).all())
    stored = low.astype("<f4") if single else x.astype("<f8")
    return base64.b64encode(stored.tobytes()).decode("ascii"), single


def _stored(
    explainer: Any,
    explanation: Explanation,
    column: Column,
    rows: np.ndarray,
    j: int,
    places: list[int],
) -> Stored:
    """Return what is stored of one column: {"why": the reason} where it cannot be."""
    curve = column.curve
    if curve is None or curve.offset is None:
        return _not(NO_CURVE)
    k = len(places)
    data = column.parts[0].iloc[rows]
    if curve.kind == "levels":
        table, values = _levels(curve, column)
        return Stored(table, (values - curve.offset)[:, :k])
    stored = _numbers(explainer, column, curve) if data.dtype.kind in "iuf" else None
    if stored is None:
        return _not(EVALUATED)
    table, values, errors = stored
    raw = frames.to_float(data)
    wanted = explanation.values[rows, j].reshape(len(rows), -1)
    got = evaluate(table, values - curve.offset, raw)
    there = np.isfinite(raw)
    size = np.abs(explanation.values).max() + np.abs(curve.offset).max()
    if (np.abs(got - wanted)[there] > CLOSE * size).any():
        return _not(EVALUATED)
    table |= {"whole": data.dtype.kind in "iu", "single": data.dtype == np.float32}
    inside = frames.to_float(column.parts[0])
    inside = inside[np.isfinite(inside)]
    if not len(inside):
        return _not("all its values are missing")
    table |= {"low": float(inside.min()), "high": float(inside.max())}
    return Stored(table, (values - curve.offset)[:, :k], None if errors is None else errors[:, :k])


def _not(why: str) -> Stored:
    return Stored({"why": why}, np.empty((0, 0)))


def _levels(curve: Any, column: Column) -> tuple[dict[str, Any], np.ndarray]:
    frame = curve.to_frame()
    kinds = zip(frame["level"], frame["kind"], strict=True)
    names = [shown_value(level) if kind == "level" else str(level) for level, kind in kinds]
    gone = frames.to_list(column.parts[0][column.missing])
    if "missing" not in names and len({value is None for value in gone}) == 1:  # one of None, NaN
        own = f"missing ({'None' if gone[0] is None else 'NaN'})"
        names = ["missing" if name == own else name for name in names]  # as rows are told
    return {"kind": "levels", "levels": names}, _values(frame, curve)


def _values(frame: Any, curve: Any) -> np.ndarray:
    return np.asarray(frame.iloc[:, -len(curve.output_names) :].to_numpy(float))


def _numbers(
    explainer: Any, column: Column, curve: Any
) -> tuple[dict[str, Any], np.ndarray, np.ndarray | None] | None:
    """Return the table of a curve of numbers, its values, that at missing last, and errors."""
    if curve.kind == "function":
        return _affine(explainer, column, curve)
    frame = curve.to_frame()
    values = _values(frame, curve)
    if curve.kind == "linear":
        missing = frame["x"].isna().to_numpy()
        table = {"kind": "linear", "x": frame["x"].to_numpy(float)[~missing]}
        values = np.vstack([values[~missing], values[missing]])
        return {**table, "with_missing": bool(missing.any())}, values, None
    missing = (frame["closed"] == "missing").to_numpy()
    inside = ~missing & (frame["closed"] != "both").to_numpy()  # without the value at -inf
    ends, steps = frame["upper"].to_numpy(float)[inside], values[inside]
    errors = None if curve.n_folds == 0 else in_two_digits(2 * curve.table_errors(True)[inside])
    table = {"kind": "steps", "x": ends[:-1], "with_missing": bool(missing.any())}
    return table, np.vstack([steps, values[missing]]), errors


def in_two_digits(errors: np.ndarray) -> np.ndarray:
    """Return errors as the page prints them."""
    return np.array([float(f"{error:.1e}") for error in errors.ravel()]).reshape(errors.shape)


def _affine(
    explainer: Any, column: Column, curve: Any
) -> tuple[dict[str, Any], np.ndarray, None] | None:
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
    return {"kind": "linear", "x": ends, "with_missing": with_missing}, values, None


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


def short(value: float, places: int, digits: int = 9) -> float:
    """Return a number in some digits, or in full if it would be printed differently."""
    few = float(f"{value:.{digits}g}")
    return few if fixed(few, places) == fixed(value, places) else float(value)
