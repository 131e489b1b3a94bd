"""Weights of background rows given the values of a column or a group of columns.

The law (bins and bandwidths) is learned once. Given the law, batches of rows add up: sums over rows
by bin, and the masses of bins, by which weights are normalised at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
from threadpoolctl import threadpool_limits

from skattr._inputs import frames
from skattr.attributions import Attributions
from skattr.measures.background import Background
from skattr.measures.learned.bins import Bins, heaviest, make_bins
from skattr.measures.learned.weights import (
    Masses,
    Totals,
    Weights,
    joint,
    learn,
    raw_table,
    settle,
)

INDICATORS = 10  # parts of each other column, on which weights are scored
SCORED = 100  # other columns on which weights are scored, at most


@dataclass(eq=False)
class RowWeights:
    """The law of each column, learned once, and rows with their bins, which add up given the law.

    Tables of the columns follow from the law and from the masses of all rows: they are there after
    `settled`.
    """

    columns: list[Weights]
    masses: list[Masses]
    rows: np.ndarray | None  # (d, n) the bin of each row
    weight: np.ndarray  # (n,)
    scale: float  # the weight of the rows from which the law was learned
    joint: bool  # whether weights are also given the values of several columns
    estimator: str

    def on(self, background: Background) -> RowWeights:
        """Return the same law with the rows of a batch of the background."""
        bins = [column.bins.of(background.column(k)) for k, column in enumerate(self.columns)]
        law = [Weights(column.bins, column.local, column.mass) for column in self.columns]
        rows, weight = np.stack(bins).astype(np.int32), background.weights / self.scale
        masses = [
            Masses.of(at, weight, column.bins.n) for at, column in zip(rows, law, strict=True)
        ]
        return replace(self, columns=law, masses=masses, rows=rows, weight=weight)

    def merge(self, other: RowWeights) -> RowWeights:
        """Return the rows of two batches."""
        masses = [a.merge(b) for a, b in zip(self.masses, other.masses, strict=True)]
        rows = None
        if self.rows is not None and other.rows is not None:
            rows = np.concatenate([self.rows, other.rows], axis=1)
        weight = np.concatenate([self.weight, other.weight])
        return replace(self, masses=masses, rows=rows, weight=weight)

    def settled(self) -> RowWeights:
        """Return weights that sum to 1, with the tables of all columns, once all rows are there."""
        total = self.total
        with threadpool_limits(1):
            columns = [
                settle(column, masses, self.estimator, self.joint)
                for column, masses in zip(self.columns, self.masses, strict=True)
            ]
        masses = [Masses(each.weight / total, each.square) for each in self.masses]
        return replace(
            self,
            columns=columns,
            masses=masses,
            weight=self.weight / total,
            scale=self.scale * total,
        )

    @property
    def total(self) -> float:
        """The weight of all rows, in units of `scale`."""
        return float(self.masses[0].weight.sum())

    def raw_table(self, k: int) -> np.ndarray:
        """Return κ of a column up to the normaliser of each bin of t; see weights.py."""
        return raw_table(self.columns[k], self.estimator)

    def without_rows(self) -> RowWeights:
        """Return the law and the masses."""
        return replace(self, rows=None, weight=np.zeros(0))

    def released(self) -> RowWeights:
        """Return what is needed without the background: rows and tables for groups only."""
        if self.joint:
            return self
        columns = [replace(column, table=None) for column in self.columns]
        return replace(self.without_rows(), columns=columns)

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

    def of_coalitions(self) -> RowWeights:
        """Return the law and the rows for the values of any set of columns."""
        return replace(self, joint=True)

    def take(self, order: np.ndarray) -> RowWeights:
        """Return the rows in another order."""
        assert self.rows is not None
        return replace(
            self, rows=np.ascontiguousarray(self.rows[:, order]), weight=self.weight[order]
        )

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
    """Learn the weights of rows given each column, scored on columns outside its group.

    `local` is the bandwidth, learned if None. `n_neighbors` replaces it by a number of rows, of
    those where the column is present.
    """
    d = len(background.names)
    made = [make_bins(background, k, n_bins) for k in range(d)]
    rows = np.stack([row_bins for _, row_bins in made]).astype(np.int32)
    scale = float(background.weights.sum())
    weight = background.weights / scale
    parts = [_parts(bins, row_bins, weight) for bins, row_bins in made]
    codes = np.ascontiguousarray(np.stack([code for code, _ in parts], axis=1))
    group = {k: columns for columns in attributions for k in columns}
    together = isinstance(attributions, Attributions) and attributions.together
    # the same columns whatever their order
    drawn = sorted(range(d), key=lambda k: crc32(repr(background.names[k]).encode()))
    columns, masses = [], []
    with threadpool_limits(1):  # tables are too small for threads
        for k, (bins, row_bins) in enumerate(made):
            if n_neighbors is not None:
                local = min(1.0, n_neighbors / np.count_nonzero(row_bins < bins.n))
            others = sorted([i for i in drawn if i not in group[k]][:SCORED])
            ordered = [parts[i][1] for i in others]
            totals = _totals(bins, rows[k], weight, codes[:, others], ordered)
            columns.append(learn(bins, totals, estimator, local))
            masses.append(totals.masses)
    joint = together or any(len(members) > 1 for members in attributions)
    return RowWeights(columns, masses, rows, weight, scale, joint, estimator).settled()


def _totals(
    bins: Bins, rows: np.ndarray, weight: np.ndarray, codes: np.ndarray, cumulate: list[bool]
) -> Totals:
    """Return the totals of each bin; codes (n, n_others) are parts of other columns."""
    n = bins.n
    offset = rows * (INDICATORS + 1)
    size = (n + 1) * (INDICATORS + 1)
    counts = [np.bincount(offset + code, weight, size) for code in codes.T]
    sums = [count.reshape(n + 1, -1)[:n] for count in counts]
    indicators = [_indicators(each, ordered) for each, ordered in zip(sums, cumulate, strict=True)]
    S = np.concatenate([np.zeros((n, 0)), *indicators], axis=1)
    return Totals(Masses.of(rows, weight, n), S.sum(axis=1), S @ S.T)


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
