"""Weights of background rows given the values of a column or a group of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skattr._inputs import frames
from skattr.measures.background import Background
from skattr.measures.learned.bins import Bins, heaviest, make_bins
from skattr.measures.learned.weights import Totals, Weights, joint, learn

INDICATORS = 10  # parts of each other column, on which weights are scored


@dataclass(eq=False)
class RowWeights:
    """The learned weights of each column, and the bins of all rows."""

    columns: list[Weights]
    rows: np.ndarray | None  # (d, n) the bin of each row
    weight: np.ndarray  # (n,)
    attributions: Sequence[tuple[int, ...]]

    def released(self) -> RowWeights:
        """Return what is needed without the background: rows and tables for groups only."""
        if any(len(columns) > 1 for columns in self.attributions):
            return self
        columns = [replace(column, table=None) for column in self.columns]
        return replace(self, columns=columns, rows=None, weight=np.zeros(0))

    def bins_of(self, X: Any, columns: tuple[int, ...]) -> np.ndarray:
        """Return the bins of the rows of X in some columns, (len(columns), n)."""
        return np.stack([self.columns[k].bins.of(frames.column(X, k)) for k in columns])

    def given(self, columns: tuple[int, ...], at: np.ndarray) -> np.ndarray:
        """Return the weights of all rows, (n,), which sum to 1, given the bins of some columns."""
        assert self.rows is not None
        if len(columns) == 1:
            k = columns[0]
            return self.weight * self.columns[k].table[at[0]][self.rows[k]]
        members = [self.columns[k] for k in columns]
        return joint(members, at, self.rows[list(columns)], self.weight)

    def support(self, X: Any, columns: tuple[int, ...]) -> np.ndarray:
        """Return the effective number of rows behind each row of X."""
        bins = self.bins_of(X, columns)
        if len(columns) == 1:
            return self.columns[columns[0]].support[bins[0]]
        kinds, kind = np.unique(bins, axis=1, return_inverse=True)
        sizes = [1 / (self.given(columns, at) ** 2).sum() for at in kinds.T]
        return np.array(sizes)[kind.reshape(-1)]


def learn_rows(
    background: Background,
    attributions: Sequence[tuple[int, ...]],
    estimator: str,
    local: float | None,
    n_bins: int,
    n_neighbors: int | None,
) -> RowWeights:
    """Learn the weights of rows given each column, scored on the columns outside its group.

    `local` is the bandwidth, learned if None. `n_neighbors` replaces it by a number of rows, of
    those where the column is present.
    """
    d = len(background.names)
    made = [make_bins(background, k, n_bins) for k in range(d)]
    rows = np.stack([row_bins for _, row_bins in made]).astype(np.int32)
    weight = background.weights / background.weights.sum()
    parts = [_parts(bins, row_bins, weight) for bins, row_bins in made]
    codes = np.ascontiguousarray(np.stack([code for code, _ in parts], axis=1))
    group = {k: columns for columns in attributions for k in columns}
    columns = []
    with threadpool_limits(1):  # tables are so small that threads would wait for each other
        for k, (bins, row_bins) in enumerate(made):
            if n_neighbors is not None:
                local = min(1.0, n_neighbors / np.count_nonzero(row_bins < bins.n))
            others = [i for i in range(d) if i not in group[k]]
            ordered = [parts[i][1] for i in others]
            totals = _totals(bins, rows[k], weight, codes[:, others], ordered)
            columns.append(learn(bins, totals, estimator, local, len(group[k]) > 1))
    return RowWeights(columns, rows, weight, attributions)


def _totals(
    bins: Bins, rows: np.ndarray, weight: np.ndarray, codes: np.ndarray, cumulate: list[bool]
) -> Totals:
    """Return the totals of each bin; codes (n, n_others) are parts of other columns."""
    n = bins.n
    place = rows * (INDICATORS + 1)
    size = (n + 1) * (INDICATORS + 1)
    counts = [np.bincount(place + code, weight, size) for code in codes.T]
    total = np.bincount(rows, weight, n + 1)
    # relative to the bin, so that no square of a small weight is 0
    square = np.bincount(rows, (weight / total[rows]) ** 2, n + 1)
    sums = [count.reshape(n + 1, -1)[:n] for count in counts]
    indicators = [_indicators(each, ordered) for each, ordered in zip(sums, cumulate, strict=True)]
    S = np.concatenate([np.zeros((n, 0)), *indicators], axis=1)
    return Totals(total, square, S.sum(axis=1), S @ S.T)


def _indicators(sums: np.ndarray, cumulate: bool) -> np.ndarray:
    """Return the sums of 1[X <= cut] and 1[missing], or of 1[X = level], that are ever 1."""
    present = np.cumsum(sums[:, :-2], axis=1) if cumulate else sums[:, :-1]
    indicators = np.concatenate([present, sums[:, -1:]], axis=1)
    return indicators[:, indicators.any(axis=0)]


def _parts(bins: Bins, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the part of each row, missing last, and whether parts are ordered."""
    mass = np.bincount(rows, weight, bins.n + 1)[: bins.n]
    if bins.ordered:
        before = np.cumsum(mass) - mass / 2
        # a rank that is a tenth but for rounding is that tenth
        part = (before / mass.sum() * INDICATORS + 1e-9).astype(int)
    else:
        part = np.full(bins.n, INDICATORS - 1)
        heavy = heaviest(mass)[:INDICATORS]
        part[heavy] = np.arange(len(heavy))
    return np.append(part, INDICATORS).astype(np.uint8)[rows], bins.ordered
