"""Values computed once for each distinct own value, so that no other row moves their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np

from skattr import frames
from skattr.engines.base import Jobs, Own
from skattr.parallel import in_workers


def at_distinct(
    value: Callable[[Any, tuple], Any], X: Any, own: Own, chosen: list[int], jobs: Jobs,
    by_row: bool = False,
) -> np.ndarray:  # fmt: skip
    """Return value(x, columns) of some attributions at all rows, (n, len(chosen), …).

    x is a table of one row. Rows that agree in the own columns share a value; in all columns,
    `by_row`.
    """
    every = tuple(range(len(frames.labels(X))))
    found = []
    for place, a in enumerate(chosen):
        first, kind = frames.distinct_rows(X, every if by_row else own[a])
        rows = (frames.take_rows(X, slice(i, i + 1)) for i in first.tolist())
        tasks = (joblib.delayed(value)(x, own[a]) for x in rows)
        title = f"attribution {place + 1} of {len(chosen)}" if jobs.verbose else None
        values = in_workers(tasks, len(first), jobs.n_jobs, title)
        found.append(np.array(list(values))[kind])
    return np.stack(found, axis=1)
