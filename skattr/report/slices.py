"""The section on slices: how groups of rows differ in importance and in mean effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._utils.numbers import count, decimals, fixed, formatter, raw
from skattr.explanation import Explanation
from skattr.metrics import by_slice
from skattr.report.settings import Settings
from skattr.report.shapes import with_unit
from skattr.report.words import shown, shown_value

COLUMNS = 8  # attributions shown, the most important ones
MOST = 30  # slices shown, the largest ones


@dataclass(frozen=True)
class SliceTables:
    """Names of columns, and for each slice its name, its rows, importances and mean values."""

    columns: list[str]
    lines: list[tuple[str, str, list[str], list[str]]]
    more: int  # slices that are not shown
    sentence: str


def find_slices(explanation: Explanation, settings: Settings) -> pd.DataFrame | None:
    """Return the table of slices; None if none were asked for, or their names are data."""
    if settings.slices is None or not settings.include_data:
        return None
    return by_slice(explanation, settings.slices)


def slice_tables(found: pd.DataFrame, output: str, by: Any, unit: str) -> SliceTables:
    """Return the tables of one output."""
    part = found[found["output"] == output]
    groups = [group for _, group in part.groupby(_key(part), sort=False)]
    names = list(groups[0]["feature"])[:COLUMNS]
    most = sorted(range(len(groups)), key=lambda i: -int(groups[i]["rows"].iloc[0]))[:MOST]
    write = formatter(part["importance"])
    places = decimals(part["mean_value"])
    lines = []
    for i in sorted(most):
        first = groups[i].iloc[0]
        head = groups[i][:COLUMNS]
        lines.append(
            (
                _name(first["slice"], first["kind"]),
                count(int(first["rows"])),
                [write(v) for v in head["importance"]],
                [
                    fixed(value, places, sign=True) + _error(error, places)
                    for value, error in zip(head["mean_value"], head["mean_row_error"], strict=True)
                ],
            )
        )
    return SliceTables(
        [shown(name) for name in names],
        lines,
        len(groups) - len(lines),
        _sentence(groups, names, by, unit, places),
    )


def _key(part: pd.DataFrame) -> np.ndarray:
    """Return the number of the slice of each line: lines of a slice follow each other."""
    first = part["feature"].iloc[0]
    starts = np.array([name is first or name == first for name in part["feature"]])
    return np.cumsum(starts)


def _name(label: Any, kind: str) -> str:
    if kind == "missing":
        return "missing"
    if isinstance(label, pd.Interval):
        return f"{raw(label.left, 6)} to {raw(label.right, 6)}"
    return shown_value(label)


def _error(error: float, places: int) -> str:
    return "" if np.isnan(error) else f" ± {fixed(2 * error, places)}"


def _sentence(groups: list[pd.DataFrame], names: list[Any], by: Any, unit: str, places: int) -> str:
    """Return which column differs most between slices, other than that of the slices itself."""
    means = np.array([group["mean_value"].to_numpy()[: len(names)] for group in groups])
    spread = np.ptp(means, axis=0)
    spread[[j for j, name in enumerate(names) if name == by]] = 0
    j = int(np.argmax(spread))
    if len(groups) < 2 or not spread[j] > 0:
        return f"Apart from {shown(by)} itself, the mean effects are the same in all slices."
    ends = []
    for i in (int(np.argmin(means[:, j])), int(np.argmax(means[:, j]))):
        line = groups[i].iloc[j]
        value = fixed(means[i, j], places, sign=True) + _error(line["mean_row_error"], places)
        n = "1 row" if line["rows"] == 1 else f"{count(int(line['rows']))} rows"
        ends.append(f"{with_unit(value, unit)} ({_name(line['slice'], line['kind'])}, {n})")
    return (
        f"Apart from {shown(by)} itself, {shown(names[j])} differs most: its mean effect goes from "
        f"{ends[0]} to {ends[1]}."
    )
