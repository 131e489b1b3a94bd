"""The column that a column interacts with most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._selection import positions
from skattr.explanation import Explanation
from skattr.plot.swarm import ranks

WINDOW = 20  # rows at least whose own values count as close
WINDOWS = 20  # at most


def strongest_in_pairs(pairs: Explanation, name: Any, explanation: Explanation) -> int | None:
    """Return the column whose pair with a column has the largest mean |value|, None if all are 0.

    The position is that in the data of `explanation`.
    """
    sizes: dict[int, float] = {}
    single = {
        label: columns[0]
        for label, columns in zip(
            explanation.feature_names,
            positions(explanation.data, explanation.columns),
            strict=True,
        )
        if len(columns) == 1
    }
    mean = np.abs(pairs.values).mean(axis=0).reshape(len(pairs.feature_names), -1).mean(axis=1)
    for pair, size in zip(pairs.feature_names, mean, strict=True):
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(
                f"pairs must be an explanation of pairs, from explain_pairs, got one of {pair!r}"
            )
        other = pair[1] if pair[0] == name else pair[0] if pair[1] == name else None
        if other in single:
            sizes[single[other]] = float(size)
    best = max(sizes, key=lambda k: sizes[k], default=None)
    return None if best is None or sizes[best] == 0 else best


def strongest_in_values(data: Any, k: int, values: np.ndarray) -> int | None:
    """Return the column that explains most of the values of rows whose own values are close.

    Rows are sorted by the own value and cut into windows. In each, what a straight line in the own
    rank leaves of the values, (n, outputs), is compared with every other column: with its rank, or
    with its levels. What as many random levels would explain does not count. None if no column
    explains anything.
    """
    own, _ = _numbers(data, k)
    order = np.lexsort([np.arange(len(own)), own])
    n_windows = max(1, min(WINDOWS, len(own) // WINDOW))
    others = [i for i in range(len(frames.labels(data))) if i != k]
    keys = {i: _numbers(data, i) for i in others}
    explained = dict.fromkeys(others, 0.0)
    for rows in np.array_split(order, n_windows):
        left = _residuals(own[rows], values[rows])
        for i, (numbers, ordered) in keys.items():
            part = numbers[rows]
            free = 1 if ordered else len(np.unique(part)) - 1
            room = len(rows) - 1 - free
            rest = float(((_residuals if ordered else _within)(part, left) ** 2).sum())
            if room > 0:
                explained[i] += float((left**2).sum()) - rest * (1 + free / room)
    spread = float(((values - values.mean(axis=0)) ** 2).sum())
    best = max(explained, key=lambda i: explained[i], default=None)
    return None if best is None or explained[best] <= 1e-20 * spread else best


def _numbers(data: Any, k: int) -> tuple[np.ndarray, bool]:
    """Return a column as numbers, and whether they have an order; missing values come last."""
    rank, _ = ranks(data, k)
    if not np.isnan(rank).all():
        return np.where(np.isnan(rank), 2.0, rank), True
    values = pd.Series(frames.to_list(frames.column(data, k)), dtype=object)
    return pd.factorize(values.map(str))[0].astype(float), False


def _residuals(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y, (n, outputs), without its mean and its slope on x."""
    x, y = x - x.mean(), y - y.mean(axis=0)
    square = float(x @ x)
    return y - np.outer(x, x @ y) / square if square > 0 else y


def _within(codes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return y, (n, outputs), without the mean of its level."""
    _, level = np.unique(codes, return_inverse=True)
    sums = np.zeros((level.max() + 1, y.shape[1]))
    np.add.at(sums, level, y)
    return y - (sums / np.bincount(level)[:, None])[level]
