"""Values computed once for each distinct explained value, independent of all other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np

from skattr._inputs import frames
from skattr._utils.parallel import in_workers
from skattr._utils.progress import Progress
from skattr.attributions import Attributions
from skattr.engines.base import RunOptions

FEWER = "fewer rows to explain or features=[…] make it faster"


def at_distinct(
    value: Callable[[Any, tuple], Any],
    X: Any,
    attributions: Attributions,
    chosen: list[int],
    options: RunOptions,
    by_row: bool = False,
    each: str = "; ",
) -> np.ndarray:
    """Return value(x, columns) of some attributions at all rows, (n, len(chosen), …).

    x is a table of one row. Rows that agree in these columns share a value or, if `by_row`, rows
    that agree in all columns. `each` describes the cost of a value, in the line above the bar.
    """
    labels = frames.labels(X)
    every = tuple(range(len(labels)))
    kinds = [frames.distinct_rows(X, every if by_row else attributions[a]) for a in chosen]
    total = sum(len(first) for first, _ in kinds)
    hint = f"{total:,} values to compute{each}{FEWER}"
    by_attribution = []
    with Progress(options.verbose, total, "values", hint) as bar:
        for a, (first, kind) in zip(chosen, kinds, strict=True):
            rows = (frames.take_rows(X, slice(i, i + 1)) for i in first.tolist())
            tasks = (joblib.delayed(value)(x, attributions[a]) for x in rows)
            name = in_words(labels, attributions[a])
            values = []
            for result in in_workers(tasks, options.n_jobs):
                values.append(result)
                bar.step(name)
            by_attribution.append(np.array(values)[kind])
    return np.stack(by_attribution, axis=1)


def in_words(labels: list, columns: tuple[int, ...]) -> str:
    """Return the name of a column, or the names of the first columns of a group."""
    names = ", ".join(str(labels[k]) for k in columns[:3])
    names = names if len(names) <= 40 else names[:39] + "…"
    return names if len(columns) <= 3 else f"{names} and {len(columns) - 3} more"
