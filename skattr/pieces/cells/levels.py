"""Levels and missing values of raw columns, and how they are named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames

OTHER = "any other"  # the label of all levels that the model does not know
MISSING = "missing"
MISSING_VALUES = (None, np.nan)  # those that a column of objects tells apart


@dataclass(frozen=True)
class UnnamedLevel:
    """A level of which the model keeps a number, but not the raw value."""

    number: Any


def level_frame(rows: list[tuple]) -> pd.DataFrame:
    """Return rows of (level, kind, …) as the columns `level, kind`."""
    return pd.DataFrame({
        "level": pd.Series([row[0] for row in rows], dtype=object),
        "kind": pd.Series([row[1] for row in rows], dtype=object),
    })  # fmt: skip


def missing_rows(pairs: list[tuple]) -> list[tuple]:
    """Return (label, kind, content) from pairs (missing value, content).

    The label tells None and NaN apart if both are there.
    """
    if len(pairs) > 1:
        names = {True: f"{MISSING} (None)", False: f"{MISSING} (NaN)"}
        return [(names[value is None], MISSING, content) for value, content in pairs]
    return [(MISSING, MISSING, content) for _, content in pairs]


def unknown_level(levels: list) -> Any:
    """Return a value that is not one of the levels, or None if every value is."""
    kinds = set(map(type, levels))
    if kinds == {bool}:
        return None
    if kinds and kinds <= {int, bool}:
        return max(levels) + 1
    if kinds and kinds <= {int, float, bool}:
        return max(max(levels) + 1.0, float(np.nextafter(max(levels), np.inf)))
    if kinds == {pd.Timestamp}:
        return max(levels) + pd.Timedelta(days=1)
    name = OTHER
    while name in levels:
        name += "."
    return name


def few_levels(X: Any, columns: Iterable[int]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the columns of levels whose distinct values are few enough to look up.

    Each comes with the first row of each distinct value, and the number of each row's value.
    """
    distinct = {k: frames.distinct(frames.column(X, k)) for k in columns if frames.is_level(X, k)}
    return {k: (first, kind) for k, (first, kind) in distinct.items() if len(first) <= len(X) // 2}
