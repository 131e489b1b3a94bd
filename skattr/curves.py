"""Curve: the attribution of one column as a function of its value."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from skattr import frames
from skattr.pieces import Grid
from skattr.pieces.cells import MISSING, OTHER, between, level_frame, missing_rows


class Curve:
    """phi_j as a function of x_j alone; made by `MeasureExplainer.curve`.

    Attributes
    ----------
    feature : label
        The column.
    kind : {"steps", "linear", "levels", "function"}
        A step function with all its jumps; a piecewise linear function with all its knots; one
        value a level; or a function that is evaluated when called.
    output_names : tuple of str
        The outputs.
    offset : array (k,), or None
        What centring takes off, as in Explanation; None if it is not known.
    scale : str
        What the numbers are, as in Explanation.
    span : (float, float), or None
        The background's range, where a piecewise linear function is worth looking at.
    measure_name : str
        The measure in words, "" if it is not known.
    order : tuple, or None
        The levels of a boolean column or of ordered categories, in their order.
    missing_seen : bool, or None
        Whether the background has missing values in the column; None if it is not known.
    """

    def __init__(
        self,
        feature: Any,
        output_names: tuple[str, ...],
        table: Any,
        offset: np.ndarray | None = None,
        scale: str = "",
        span: tuple[float, float] | None = None,
        measure_name: str = "",
        order: tuple | None = None,
        missing_seen: bool | None = None,
    ) -> None:
        self.feature = feature
        self.output_names = output_names
        self._table = table
        self.offset = offset
        self.scale = scale
        self.span = span
        self.measure_name = measure_name
        self.order = order
        self.missing_seen = missing_seen

    @property
    def kind(self) -> str:
        """What the curve is."""
        return self._table.kind

    def __call__(self, values: Any) -> np.ndarray:
        """Return the attribution at some values, (m,), or (m, k) for several outputs."""
        if isinstance(values, str) or not np.iterable(values):
            values = [values]
        if not hasattr(values, "dtype"):  # a list may hold strings and None
            values = frames.as_column(values)
        if np.ndim(values) != 1:
            raise ValueError(
                f"column {self.feature!r}: values are one-dimensional, not of shape {values.shape}"
            )
        if self._table.of_numbers and getattr(values.dtype, "kind", "O") not in "biufmM":
            text = next((value for value in values if isinstance(value, str)), None)
            if text is not None:  # a model might read numbers from it
                raise ValueError(f"column {self.feature!r} wants numbers, got {text!r}")
        result = self._table.evaluate(values, self.feature)
        return result[:, 0] if len(self.output_names) == 1 else result

    def to_frame(self) -> pd.DataFrame:
        """Return the curve as a table.

        Steps have the columns `lower, upper, closed, value`, one row for lower < x <= upper (the
        first one holds -inf too, unless a row "both" says that it has a value of its own); linear
        curves `x, value` at all knots, with two rows where the value jumps (up to x it is the
        first) and three where a number has a value of its own, and one row beyond the knots on
        either side, from where it goes straight on; levels `level, kind, value`, among them
        booleans, whatever the model makes of them; a function `x, value` at the background's
        distinct values. Several outputs have one column `value_<output>` each.

        Missing (NaN among numbers) is a row of its own: `closed` is "missing", or `x` is NaN, or
        `kind` is "missing".
        The `kind` of a row of levels is "level", "missing" or "other", which stands for all levels
        that the model does not know; the `level` of the last two is only a name ("missing", "any
        other"), which a level may have too. Where the model tells None from NaN, there are the rows
        "missing (None)" and "missing (NaN)".
        """
        frame, values = self._table.rows()
        if len(self.output_names) == 1:
            return frame.assign(value=values[:, 0])
        columns = {f"value_{name}": values[:, o] for o, name in enumerate(self.output_names)}
        return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1)

    def __repr__(self) -> str:
        return f"<Curve of {self.feature!r}: {self.kind}>"


class CellTable:
    """Values by code."""

    def __init__(self, grid: Grid, k: int, values: np.ndarray) -> None:
        self.grid = grid
        self.k = k
        self.values = values  # (n_codes, k)

    @property
    def kind(self) -> str:
        """Steps or levels."""
        return "steps" if self.grid.cells[self.k].labels is None else "levels"

    @property
    def of_numbers(self) -> bool:
        """Whether the curve is one of numbers."""
        return self.kind == "steps" and frames.is_number(self.grid.row.X, self.k)

    def evaluate(self, values: Any, name: Any) -> np.ndarray:
        """Look the values up, casting as the model does."""
        return self.values[self.grid.encode_values(self.k, values)]

    def rows(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return labels and values of all codes."""
        described = self.grid.describe_cells(self.k)
        assert described is not None
        labels, codes = described
        return labels, self.values[codes]


class BinnedTable:
    """Values by code, and curves of conditional measures that look at codes and bins."""

    def __init__(
        self, cells: CellTable, curves: list, outputs: list[int], function: Callable
    ) -> None:
        self.cells = cells
        self.curves = curves  # (coefficient, curve)
        self.outputs = outputs
        self.function = function  # for values that are not on the curves

    @property
    def kind(self) -> str:
        """Steps or levels, which a column may have that the model takes for numbers or ignores."""
        levels = any(curve.bins.levels is not None for _, curve in self.curves)
        return "levels" if levels else self.cells.kind

    @property
    def of_numbers(self) -> bool:
        """Whether the curve is one of numbers."""
        return self.kind == "steps" and self.cells.of_numbers

    def evaluate(self, values: Any, name: Any) -> np.ndarray:
        """Look the values up, casting as the model does."""
        codes = self.cells.grid.encode_values(self.cells.k, values)
        result = self._sum(codes, [curve.bins.of(values) for _, curve in self.curves])
        gone = np.isnan(result[:, 0])
        return self.function(values) if gone.any() else result

    def _sum(self, codes: np.ndarray, bins: list) -> np.ndarray:
        result = self.cells.values[codes]
        for (coefficient, curve), found in zip(self.curves, bins, strict=True):
            result = result + coefficient * curve.at_bins(codes, found)[:, self.outputs]
        return result

    def rows(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return labels and values of all levels, or of all steps: jumps are where either has one.

        Levels that the model does not know may still be levels of the background.
        """
        grid, k = self.cells.grid, self.cells.k
        return self._level_rows(grid, k) if self.kind == "levels" else self._step_rows(grid, k)

    def _level_rows(self, grid: Grid, k: int) -> tuple[pd.DataFrame, np.ndarray]:
        pairs = list(grid.cells[k].labels or [])
        known = {level for level, _ in pairs}
        more = grid.levels_taken(k, [v for _, c in self.curves for v in c.bins.told_apart()])
        pairs += [(level, code) for level, code in more if level not in known]
        pairs = [(level, code) for level, code in pairs if not frames.is_missing(level)]
        levels = frames.as_column([level for level, _ in pairs])
        rest = grid.other_labels(k, levels.to_list())
        codes = np.array([code for *_, code in [*pairs, *rest]], int)
        bins = [
            np.append(c.bins.of(levels), [c.bins.n + (kind != MISSING) for _, kind, _ in rest])
            for _, c in self.curves
        ]
        frame = level_frame([*((level, "level") for level in levels), *rest])
        return frame, self._sum(codes, [found.astype(int) for found in bins])

    def _step_rows(self, grid: Grid, k: int) -> tuple[pd.DataFrame, np.ndarray]:
        partition = grid.partition(k)
        assert partition is not None
        ends = partition[0]
        cuts = np.concatenate([curve.bins.cuts() for _, curve in self.curves])
        ends = np.union1d(ends, cuts[(cuts > ends[0]) & (cuts < ends[-1])])
        frame = pd.DataFrame({"lower": ends[:-1], "upper": ends[1:], "closed": "right"})
        values = self.evaluate(between(ends), None)
        if -np.inf in cuts:  # a value of the background, with rows of its own behind it
            first = pd.DataFrame({"lower": [-np.inf], "upper": [-np.inf], "closed": ["both"]})
            frame = pd.concat([first, frame], ignore_index=True)
            values = np.concatenate([self.evaluate(np.array([-np.inf]), None), values])
        missing = grid.missing_code(k)
        if missing is not None:
            frame.loc[len(frame)] = [np.nan, np.nan, "missing"]
            gone = [np.array([curve.bins.n]) for _, curve in self.curves]
            values = np.concatenate([values, self._sum(np.array([missing]), gone)])
        return frame, values


class LinearTable:
    """A constant and piecewise linear curves."""

    kind = "linear"
    of_numbers = True

    def __init__(self, curves: list, constant: np.ndarray, outputs: list[int]) -> None:
        self.curves = curves  # (coefficient, curve)
        self.constant = constant  # of all outputs
        self.outputs = outputs

    def evaluate(self, values: Any, name: Any) -> np.ndarray:
        """Look the values up."""
        found = [coefficient * curve.at(None, values) for coefficient, curve in self.curves]
        return (self.constant + sum(found))[:, self.outputs]

    def rows(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return all knots, one place beyond them on either side, and missing."""
        x = np.unique(np.concatenate([curve.breaks() for _, curve in self.curves]))
        beyond = max(float(x[-1] - x[0]), abs(float(x[0])) * 1e-6, 1.0)
        x = np.concatenate([[x[0] - beyond], x, [x[-1] + beyond]])
        values = self.evaluate(x, None)
        gone = [(coefficient, curve.missing()) for coefficient, curve in self.curves]
        if all(missing is not None for _, missing in gone):
            missing = self.constant + sum(coefficient * value for coefficient, value in gone)
            x, values = np.append(x, np.nan), np.vstack([values, missing[self.outputs]])
        return pd.DataFrame({"x": x}), values


class ConstantTable:
    """One value, whatever the column holds: a step function without a jump."""

    kind = "steps"
    of_numbers = False  # all that there is has the same value

    def __init__(self, values: np.ndarray) -> None:
        self.values = values  # (k,)

    def evaluate(self, values: Any, name: Any) -> np.ndarray:
        """Return the constant."""
        return np.tile(self.values, (len(values), 1))

    def rows(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return one step."""
        step = {"lower": [-np.inf], "upper": [np.inf], "closed": ["right"]}
        return pd.DataFrame(step), self.values[None]


class LevelTable:
    """A function of levels, and what to try it at: levels, missing values, and another level."""

    kind = "levels"
    of_numbers = False

    def __init__(self, function: Callable, levels: list, missing: list, other: list) -> None:
        self.function = function
        self.levels = levels
        self.missing = missing
        self.other = other

    def evaluate(self, values: Any, name: Any) -> np.ndarray:
        """Call the function."""
        return self.function(values)

    def _at(self, values: list) -> list[tuple]:
        """Return the values that are not refused, with those of the function."""
        if not values:
            return []
        with suppress(ValueError):
            return list(zip(values, self.function(frames.as_column(values)), strict=True))
        return [] if len(values) == 1 else [pair for value in values for pair in self._at([value])]

    def _found(self) -> tuple[list[tuple], list[tuple], list[tuple]]:
        """Return the function at levels, missing and another level; at once, if none is refused."""
        parts = [self.levels, *([missing] for missing in self.missing), self.other]
        together = [value for part in parts for value in part]
        found: list[list[tuple]] = []
        with suppress(TypeError, ValueError):  # a library may not hold them in one column
            values = iter(self.function(frames.as_column(together)))
            found = [[(value, next(values)) for value in part] for part in parts]
        levels, *gone, other = found or [self._at(part) for part in parts]
        return levels, [pair for pairs in gone for pair in pairs], other

    def rows(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the function at all that it takes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of unknown categories, which are what is asked for
            known, gone, new = self._found()
        levels = [(level, "level", value) for level, value in known]
        other = [(OTHER, "other", value) for _, value in new]
        if len(gone) == 2 and np.array_equal(gone[0][1], gone[1][1], equal_nan=True):
            gone = gone[:1]
        rows = [*levels, *missing_rows(gone), *other]
        return level_frame(rows), np.array([value for *_, value in rows]).reshape(len(rows), -1)


class FunctionTable:
    """A function that is evaluated when called, and the points to show it at."""

    kind = "function"

    def __init__(self, function: Callable, points: Any) -> None:
        self.function = function
        self.points = points
        self.of_numbers = points.dtype.kind in "iuf"

    def evaluate(self, values: Any, name: Any) -> np.ndarray:
        """Call the function."""
        return self.function(values)

    def rows(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the function at the points."""
        return pd.DataFrame({"x": self.points}), self.function(self.points)


class BooleanTable:
    """The values at False and True, and where missing, of a table of any kind."""

    kind = "levels"
    of_numbers = False

    def __init__(self, table: Any) -> None:
        self.table = table

    def evaluate(self, values: Any, name: Any) -> np.ndarray:
        """Look the values up."""
        return self.table.evaluate(values, name)

    def rows(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return two levels, and missing where the table has it."""
        rows: list[tuple[Any, str]] = [(False, "level"), (True, "level")]
        values = self.evaluate(pd.Series([False, True]), None)
        if self.table.kind == "function":  # whose table is of what the background holds
            with suppress(ValueError):
                values = np.vstack([values, self.evaluate(frames.as_column([None]), None)])
                rows.append(("missing", "missing"))
            return level_frame(rows), values
        frame, found = self.table.rows()
        missing = _is_missing(frame)
        names = frame["level"][missing] if "level" in frame else ["missing"] * missing.sum()
        rows += [(name, "missing") for name in names]
        return level_frame(rows), np.vstack([values, found[missing]])


def _is_missing(frame: pd.DataFrame) -> np.ndarray:
    """Tell which rows of a table stand for a missing value."""
    if "x" in frame:
        return frame["x"].isna().to_numpy()
    return (frame["closed" if "closed" in frame else "kind"] == "missing").to_numpy()
