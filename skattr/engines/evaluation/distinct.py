"""Values computed once for each distinct explained value, independent of all other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np

from skattr._inputs import frames
from skattr._utils.parallel import in_workers
from skattr._utils.progress import Progress
from skattr.engines.base import Request

FEWER = "fewer rows to explain or features=[…] make it faster"
FEWER_ROWS = "fewer rows to explain or a smaller background make it faster"


def distinct_values(request: Request, by_row: bool = False) -> list[tuple[tuple, tuple]]:
    """Return for each attribution its columns, and the distinct rows of X as (first, kind).

    Rows that agree in these columns share a value or, if `by_row`, rows that agree in all columns.
    """
    every = tuple(range(len(frames.labels(request.X))))
    return [
        (columns, frames.distinct_rows(request.X, every if by_row else columns))
        for columns in request.columns
    ]


def at_distinct(
    value: Callable[[Any, tuple], Any], request: Request, by_row: bool = False, each: str = "; "
) -> np.ndarray:
    """Return value(x, columns) of all attributions and rows, (n, g, …); x is a table of one row.

    `each` describes the cost of a value, in the line above the bar.
    """
    X, options = request.X, request.options
    distinct = distinct_values(request, by_row)
    total = sum(len(first) for _, (first, _) in distinct)
    hint = f"{total:,} values to compute{each}{FEWER}"
    by_attribution = []
    with Progress(options.verbose, total, "values", hint) as bar:
        for columns, (first, kind) in distinct:
            rows = (frames.take_rows(X, slice(i, i + 1)) for i in first.tolist())
            tasks = (joblib.delayed(value)(x, columns) for x in rows)
            name = in_words(frames.labels(X), columns)
            values = []
            for result in in_workers(tasks, options.n_jobs):
                values.append(result)
                bar.step(name)
            by_attribution.append(np.array(values)[kind])
    return np.stack(by_attribution, axis=1)


def at_distinct_rows(value: Callable[[Any], np.ndarray], request: Request, each: str) -> np.ndarray:
    """Return value(x) at all rows, (n, …); x is a table of one row. Equal rows share a value."""
    X, options = request.X, request.options
    first, kind = frames.distinct_rows(X, tuple(range(len(frames.labels(X)))))
    hint = f"{len(first):,} rows to explain, {each}; {FEWER_ROWS}"
    with Progress(options.verbose, len(first), "rows", hint) as bar:
        rows = (frames.take_rows(X, slice(i, i + 1)) for i in first.tolist())
        tasks = (joblib.delayed(value)(x) for x in rows)
        values = []
        for result in in_workers(tasks, options.n_jobs):
            values.append(result)
            bar.step("coalitions")
    return np.array(values)[kind]


def in_words(labels: list, columns: tuple[int, ...]) -> str:
    """Return the name of a column, or the names of the first columns of a group."""
    names = ", ".join(str(labels[k]) for k in columns[:3])
    names = names if len(names) <= 40 else names[:39] + "…"
    return names if len(columns) <= 3 else f"{names} and {len(columns) - 3} more"
