"""The values of a column nearest to a row's own at which its prediction meets a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.curves.row_curves import RowCurve

Condition = Callable[[np.ndarray], np.ndarray]  # values (m, k) → whether they meet it, (m,)


class NewValue(NamedTuple):
    """A value that meets a condition, the prediction there, and the share of the background."""

    to: Any
    after: np.ndarray  # (k,)
    share: float


@dataclass(eq=False)
class Column:
    """The type, the background's values and the bounds of a column."""

    dtype: np.dtype | None  # of numbers
    numbers: np.ndarray | None  # the background's numbers, NaN where missing
    weight: np.ndarray  # their weights, which sum to 1
    levels: dict[Any, float]  # share of each level
    low: float
    high: float
    of_dates: bool = False

    @classmethod
    def of(
        cls,
        k: int,
        row: Any,
        background: PicklableTable | None,
        weights: np.ndarray | None,
        bounds: tuple[float, float] | None,
    ) -> Column:
        """Learn a column; without a background shares are NaN."""
        low, high = bounds or (-np.inf, np.inf)
        dtype, of_dates = None, frames.is_date(row, k)
        if frames.is_number(row, k):
            dtype = frames.to_array(frames.column(row, k)).dtype
        if background is None or weights is None:
            return cls(dtype, None, np.empty(0), {}, low, high, of_dates)
        values, share = frames.column(background.X, k), weights / weights.sum()
        if dtype is None:
            levels: dict[Any, float] = {}
            for value, one in zip(frames.to_list(values), share.tolist(), strict=True):
                key = None if frames.is_missing(value) else value
                levels[key] = levels.get(key, 0.0) + one
            return cls(None, np.empty(0), np.empty(0), levels, low, high, of_dates)
        numbers = frames.to_float(values)
        levels = {None: float(share[np.isnan(numbers)].sum())}
        return cls(dtype, numbers, share, levels, low, high)

    def share_of(self, value: Any) -> float:
        """Return the share of the background that has a value."""
        if self.numbers is None:
            return np.nan
        if frames.is_missing(value):
            return self.levels.get(None, 0.0)
        if self.dtype is None:
            return self.levels.get(value, 0.0)
        return self.between(np.nextafter(float(value), -np.inf), float(value))

    @property
    def middle(self) -> float:
        """The median of the background's numbers, one of them; 0 if there are none."""
        numbers = np.empty(0) if self.numbers is None else self.numbers
        there = np.sort(numbers[np.isfinite(numbers)])
        return float(there[len(there) // 2]) if len(there) else 0.0

    def between(self, lower: float, upper: float) -> float:
        """Return the share of the background with lower < value <= upper."""
        if self.numbers is None:
            return np.nan
        above = (self.numbers > lower) | (lower == -np.inf)
        return float(self.weight[above & (self.numbers <= upper)].sum())

    def clip_cells(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest number of cells lower < x <= upper of the column's type.

        A cell without such a number, or outside the bounds, has a least number above the largest.
        """
        if self.dtype is not None and self.dtype.kind in "iu":
            least, largest = np.floor(lower) + 1.0, np.floor(upper)
            low, high = np.ceil(self.low), np.floor(self.high)
        elif self.dtype == np.float32:
            least = lower.astype(np.float32)
            least = np.where(least > lower, least, np.nextafter(least, np.float32(np.inf)))
            largest = upper.astype(np.float32)
            largest = np.where(largest > upper, np.nextafter(largest, np.float32(-np.inf)), largest)
            low, high = self.low, self.high
        else:
            least, largest = np.nextafter(lower, np.inf), upper
            low, high = self.low, self.high
        least = np.where(lower == -np.inf, -np.inf, least.astype(np.float64))
        return np.maximum(least, low), np.minimum(largest.astype(np.float64), high)


def nearest_level(curve: RowCurve, column: Column, value: Any, meets: Condition) -> list[NewValue]:
    """Return the levels that meet a condition, by share.

    Those of the background that the model does not know are all alike to it.
    """
    frame, values = curve.table()
    is_met, kinds = meets(values), frame["kind"].to_numpy()
    known = kinds == "level"
    chosen = is_met & known
    levels = [
        NewValue(level, values[i], column.share_of(level))
        for i, level in zip(np.flatnonzero(chosen), frame["level"][chosen], strict=True)
    ]
    names = set(frame["level"][known])
    for i in np.flatnonzero(is_met & (kinds == "other")):
        others = [name for name in column.levels if name is not None and name not in names]
        levels += [
            NewValue(name, values[i], share) for name in others if (share := column.levels[name])
        ]
    return sorted(levels, key=lambda each: -each.share if each.share == each.share else 0.0)


def nearest_seen(curve: RowCurve, column: Column, value: Any, meets: Condition) -> list[NewValue]:
    """Return the texts of the background that meet a condition, by share.

    A model that is evaluated does not tell which levels it knows.
    """
    frame, values = curve.table()
    levels = [
        NewValue(level, after, column.share_of(level))
        for level, after, is_met in zip(frame["x"], values, meets(values), strict=True)
        if is_met and not frames.is_missing(level)
    ]
    return sorted(levels, key=lambda each: -each.share if each.share == each.share else 0.0)


def nearest_date(curve: RowCurve, column: Column, value: Any, meets: Condition) -> list[NewValue]:
    """Return the nearest date of the background that meets a condition.

    From missing, it is the most common one.
    """
    frame, values = curve.table()
    dates = frame["x"]
    rows = np.flatnonzero(meets(values) & dates.notna().to_numpy())
    if not len(rows):
        return []
    candidates = [dates.iloc[i] for i in rows]
    shares = [column.share_of(date) for date in candidates]
    if frames.is_missing(value):
        best = int(np.argmax(shares))
    else:
        best = int(np.argmin([abs(date - value) for date in candidates]))
    return [NewValue(candidates[best], values[rows[best]], shares[best])]


def nearest_number(curve: RowCurve, column: Column, value: Any, meets: Condition) -> list[NewValue]:
    """Return the nearest number that meets a condition, or missing if only that meets it."""
    if curve.kind == "steps":
        lower, upper, values, missing = _step_cells(curve)
    else:
        lower, upper, values, missing = _line_cells(curve, column, value, meets)
    start = np.nan if frames.is_missing(value) else float(value)
    least, largest = column.clip_cells(lower, upper)
    is_met = meets(values) & (least <= largest)
    if not is_met.any():
        if missing is not None and meets(missing[None])[0]:
            return [NewValue(np.nan, missing, column.levels.get(None, np.nan))]
        return []
    if np.isnan(start):  # from missing: the most common stretch
        shares = [
            column.between(lower[i], upper[i]) if is_met[i] else -1.0 for i in range(len(is_met))
        ]
        best = int(np.argmax(shares))
        ends = [end for end in (least[best], largest[best]) if np.isfinite(end)]
        to = ends[0] if ends else column.middle
    else:
        nearest = np.clip(start, least, largest)
        best = int(np.argmin(np.where(is_met, np.abs(nearest - start), np.inf)))
        to = nearest[best]
    first, last = best, best  # the stretch of cells that meet it
    while first > 0 and is_met[first - 1] and upper[first - 1] == lower[first]:
        first -= 1
    while last + 1 < len(is_met) and is_met[last + 1] and upper[last] == lower[last + 1]:
        last += 1
    whole = column.dtype is not None and column.dtype.kind in "iu"
    share = column.between(lower[first], upper[last])
    value = int(to) if whole else float(to)
    return [NewValue(value, curve([value])[0], share)]


def _step_cells(curve: RowCurve) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return lower, upper and value of all steps, and the value at missing, if there is one."""
    frame, values = curve.table()
    lower, upper = (frame[name].to_numpy(float) for name in ("lower", "upper"))
    missing = np.isnan(lower)
    steps = ~missing
    return lower[steps], upper[steps], values[steps], values[missing][0] if missing.any() else None


def _line_cells(
    curve: RowCurve, column: Column, value: Any, meets: Condition
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the stretches of numbers where a condition holds, as cells.

    A piecewise linear function is asked at its knots, and where two outputs cross, another one at
    the values of the background; where the condition changes between two of these, the first number
    that meets it is found by halving.
    """
    frame, values = curve.table()
    x = frame["x"].to_numpy(float)
    missing = values[np.isnan(x)][0] if np.isnan(x).any() else None
    x = np.unique(np.concatenate([x[np.isfinite(x)], _more_points(curve, column, value)]))
    if curve.kind == "linear" and values.shape[1] > 1:
        x = np.union1d(x, _crossings(x, curve(x)))
    is_met = meets(curve(x)) if len(x) else np.empty(0, bool)
    changes = np.flatnonzero(is_met[1:] != is_met[:-1])
    ends = [_halved(curve, meets, x[i], x[i + 1], bool(is_met[i])) for i in changes]
    starts = [end for i, end in zip(changes, ends, strict=True) if is_met[i + 1]]
    stops = [end for i, end in zip(changes, ends, strict=True) if is_met[i]]
    straight = curve.kind == "linear"  # beyond its last knots
    if len(x) and is_met[0]:
        starts.insert(0, -np.inf if straight else x[0])
    if len(x) and is_met[-1]:
        stops.append(np.inf if straight else x[-1])
    lower, upper = np.nextafter(np.array(starts), -np.inf), np.array(stops, float)
    inside = np.clip(0.0, np.array(starts, float), upper)
    return lower, upper, curve(inside) if len(inside) else values[:0], missing


def _more_points(curve: RowCurve, column: Column, value: Any) -> np.ndarray:
    """Return the row's own number, the bounds, and numbers far out along a straight end."""
    points = [column.low, column.high]
    if not frames.is_missing(value):
        points.append(float(value))
    if curve.kind == "linear":
        points += [side * 10.0**power for side in (-1, 1) for power in (3, 6, 9, 12, 15)]
    return np.array([point for point in points if np.isfinite(point)])


def _crossings(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return where two outputs cross between neighbouring x, and points between crossings."""
    points = [x]
    for c in range(values.shape[1]):
        for j in range(c):
            gap = values[:, c] - values[:, j]
            at = np.flatnonzero(gap[1:] * gap[:-1] < 0)
            points.append(x[at] + (x[at + 1] - x[at]) * gap[at] / (gap[at] - gap[at + 1]))
    every = np.unique(np.concatenate(points))
    return np.concatenate([every, (every[1:] + every[:-1]) / 2])


def _halved(curve: RowCurve, meets: Condition, low: float, high: float, at_low: bool) -> float:
    """Return the number next to where a condition changes between two numbers, that meets it."""
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return low if at_low else high
        if bool(meets(curve(np.array([middle])))[0]) == at_low:
            low = middle
        else:
            high = middle
