"""The rows and the columns of a report: labels, raw values, and numbers about each column."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._selection import positions
from skattr._utils.numbers import count, formatter
from skattr.curves import Curve
from skattr.explanation import Explanation
from skattr.report.words import shown, shown_value

LEVELS = 12  # levels of a column that its panel lists


def spread_rows(n: int, max_rows: int) -> np.ndarray:
    """Return the positions of at most max_rows rows, spread evenly over n."""
    return np.unique(np.linspace(0, n - 1, min(n, max_rows)).astype(np.intp))


def row_labels(explained: Any, rows: np.ndarray, include_data: bool) -> list[str]:
    """Return the index labels of some explained rows; without data their positions."""
    data = explained.explanation.data
    if include_data and isinstance(data, pd.DataFrame):
        return [shown_value(label) for label in data.index[rows].to_flat_index()]
    return [str(row) for row in explained.positions[rows].tolist()]


class Column:
    """The raw values and the values of one attribution, and its curve or why it has none."""

    def __init__(
        self, explanation: Explanation, j: int, unit: str = "", description: str = ""
    ) -> None:
        self.name = shown(explanation.feature_names[j])
        self.unit = unit
        self.description = description
        columns = positions(explanation.data, explanation.columns[j : j + 1])[0]
        self.label = explanation.feature_names[j]
        self.parts = [_series(explanation.data, k) for k in columns]
        self.values = explanation.values[:, j]  # (n,) or (n, k)
        self.group = [shown(label) for label in explanation.columns[j]]
        self.is_group = len(columns) > 1
        self.curve: Curve | None = None
        self.reason = ""
        self.is_level = self.is_group or frames.is_level(explanation.data, columns[0])

    @property
    def quoted(self) -> str:
        """The name as a part of a sentence: in quotes if it has spaces."""
        return f"“{self.name}”" if " " in self.name else self.name

    @cached_property
    def missing(self) -> np.ndarray:
        """Which rows lack a value, (n,)."""
        return np.any([part.isna() for part in self.parts], axis=0)

    def find_curve(self, explainer: Any, drawn: bool) -> None:
        """Ask the explainer for the curve of all outputs; compute its table once if it is drawn."""
        if self.is_group:
            self.reason = "A group of columns has no curve: it is a function of several values."
            return
        try:
            curve = explainer.curve(self.label)
        except ValueError:
            self.reason = "The measure depends on the whole row, so there is no curve."
            return
        if drawn and curve.kind != "function":  # a function would evaluate the model again
            curve.to_frame()  # kept for the curves of all outputs
        self.curve = curve

    def curve_of(self, o: int) -> Curve | None:
        """Return the curve of one output."""
        curve = self.curve
        if curve is None or curve.kind == "function" or len(curve.output_names) == 1:
            return curve
        return curve.select(o)

    def levels(self) -> set | None:
        """Return the levels that the model tells apart, or None if they are not known."""
        levels = None if self.curve is None else self.curve.levels
        return None if levels is None else set(levels)

    def texts(self, rows: np.ndarray) -> list[str]:
        """Return the raw values of some rows as text."""
        parts = [[shown_value(v) for v in part.iloc[rows].to_list()] for part in self.parts]
        return (
            parts[0] if not self.is_group else [", ".join(row) for row in zip(*parts, strict=True)]
        )

    def facts(self, include_data: bool) -> list[tuple[str, str]]:
        """Return a few numbers about the raw values."""
        if self.is_group:
            return [
                ("columns", ", ".join(self.group)),
                ("rows with a missing value", count(self.missing.sum())),
            ]
        column = self.parts[0]
        lines = [
            ("kind", "levels" if self.is_level else _kind(column)),
            ("missing", f"{count(self.missing.sum())} of {count(len(column))} rows"),
        ]
        if include_data:
            values = _as_keys(column) if self.is_level else column
            lines.append(("distinct values", count(values.nunique())))
        return lines

    def table(self, values: np.ndarray) -> tuple[tuple[str, str], list[tuple[str, str, str]]]:
        """Return two headings, and (raw value, rows, attribution) at levels or quartiles."""
        write = formatter(values)
        if self.is_group:
            return ("", ""), []
        if self.is_level:
            return ("level", "rows"), self._levels(values, write)
        return ("value", "in the data"), self._quartiles(values, write)

    def level_means(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the names of the levels of the rows, "missing" among them, and mean values."""
        names, counts, means = self._counted(values)
        there = counts > 0
        return np.array(names, object)[there], means[there]

    def level_counts(self) -> dict[str, int]:
        """Return the number of rows of each level of the rows, "missing" among them."""
        names, counts, _ = self._counted(np.zeros(len(self.parts[0])))
        return dict(zip(names, counts.tolist(), strict=True))

    def _counted(self, values: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
        codes, levels = pd.factorize(_as_keys(self.parts[0]))
        names = [*map(shown_value, levels), "missing"]  # whose code is -1, the last
        codes = np.where(codes < 0, len(levels), codes)
        counts = np.bincount(codes, minlength=len(names))
        return names, counts, np.bincount(codes, values, len(names)) / np.maximum(counts, 1)

    def _levels(self, values: np.ndarray, write: Any) -> list[tuple[str, str, str]]:
        names, counts, means = self._counted(values)
        order = [c for c in np.argsort(-counts, kind="stable") if counts[c]]
        lines = [(names[c], count(counts[c]), write(means[c])) for c in order[:LEVELS]]
        if len(order) > LEVELS:
            rest = counts[order[LEVELS:]].sum()
            lines.append((f"{count(len(order) - LEVELS)} more levels", count(rest), ""))
        return lines

    def _quartiles(self, values: np.ndarray, write: Any) -> list[tuple[str, str, str]]:
        column = self.parts[0]
        there = np.flatnonzero(~self.missing)
        lines = []
        if len(there):
            order = there[np.argsort(column.iloc[there].to_numpy(), kind="stable")]
            names = ("minimum", "first quartile", "median", "third quartile", "maximum")
            for name, part in zip(names, np.linspace(0, 1, 5), strict=True):
                row = order[round(part * (len(order) - 1))]
                lines.append((shown_value(column.iloc[row]), name, write(float(values[row]))))
        if self.missing.any():
            mean = float(values[self.missing].mean())
            lines.append(("missing", f"{count(self.missing.sum())} rows", write(mean)))
        return lines


def _series(data: Any, k: int) -> pd.Series:
    column = frames.column(data, k)
    if isinstance(column, pd.Series):
        return column
    return frames.inferred(frames.to_array(column))


def _as_keys(column: pd.Series) -> pd.Series:
    """Return a column as one that can be counted: an unhashable value counts as its text."""
    column = column.astype(object).reset_index(drop=True)
    try:
        column.nunique()
    except TypeError:
        return column.map(str, na_action="ignore")
    return column


def _kind(column: pd.Series) -> str:
    return "dates" if column.dtype.kind in "mM" else "numbers"
