"""A seeded sample of the rows of a large table, of bounded size."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

MOST = 100_000  # rows


def sample_rows(
    chunks: Iterable[pd.DataFrame], most: int | None = None
) -> tuple[pd.DataFrame, int]:
    """Return all rows, or a uniform sample in the same order if there are more, and their number.

    Each row has a random number, and the rows with the smallest ones are kept.
    """
    rng = np.random.default_rng(0)
    parts: list[pd.DataFrame] = []
    order = np.empty(0)
    n_rows = 0
    for chunk in chunks:
        n_rows += len(chunk)
        parts.append(chunk)
        order = np.concatenate([order, rng.random(len(chunk))])
        if len(order) > MOST:
            kept = np.sort(np.argsort(order, kind="stable")[:MOST])
            parts, order = [pd.concat(parts).iloc[kept]], order[kept]
    return pd.concat(parts) if len(parts) > 1 else parts[0], n_rows
