"""Errors that name the column which a fitted step or the model refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from skattr._inputs import frames


@contextmanager
def refusals(X: Any, row: Any, inputs: Callable, behind_steps: bool) -> Iterator[None]:
    """Turn an error of a fitted step or of the model into one that names the column.

    `inputs` refuses rows as the model does, `row` is one that it accepts.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        hint = _refused_column(X, row, inputs) if behind_steps else frames.unusual(X)
        raise ValueError(f"the model refuses X: {error}{hint}") from error


def _refused_column(X: Any, row: Any, inputs: Callable) -> str:
    """Name the first column that the fitted steps refuse, by bisection."""
    names = frames.labels(row)
    columns = list(range(len(names)))
    while len(columns) > 1:
        half = columns[: len(columns) // 2]
        columns = half if _refused(X, row, inputs, half) else columns[len(half) :]
    if not _refused(X, row, inputs, columns):
        return ""
    return (
        f" (column {names[columns[0]]!r}: drop such rows, or let the step that prepares it accept "
        "them, as handle_unknown and SimpleImputer do)"
    )


def _refused(X: Any, row: Any, inputs: Callable, columns: list[int]) -> bool:
    """Tell whether the distinct values of some columns of X are refused."""
    values = {k: frames.column(X, k) for k in columns}
    firsts = {k: frames.distinct(column)[0] for k, column in values.items()}
    n = max(map(len, firsts.values()))
    rows = {k: frames.take_values(values[k], np.resize(first, n)) for k, first in firsts.items()}
    try:
        inputs(frames.with_columns(row, rows))
    except (TypeError, ValueError):
        return True
    return False
