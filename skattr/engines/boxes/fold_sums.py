"""Sums over boxes for each fold of the background: they cost little beside the sums of all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skattr.engines.base import RowFolds
from skattr.kernels.boxes import fold_sums
from skattr.kernels.boxes.fold_sums import ByFold
from skattr.kernels.boxes.layout import COLUMN, SPLIT, Owners, Sums
from skattr.kernels.lines.vectors import WIDTH, aligned_zeros
from skattr.pieces import Boxes

MAX_SUMS = 2**25  # numbers in the sums of all folds: 256 MB


@dataclass(eq=False)
class FoldSums:
    """`BoxSums` for each fold, which the last axis counts; `+` joins two batches.

    G is a multiple of eight: the last folds may have no rows.
    """

    jumps: np.ndarray  # (n_codes, k, G)
    constant: np.ndarray  # (g, k, G)
    total: np.ndarray  # (k, G)
    weights: np.ndarray  # (G,)

    @classmethod
    def empty(cls, boxes: Boxes, owners: Owners, folds: RowFolds | None) -> FoldSums | None:
        """Return sums that are 0, or None without folds, with groups, or if they are too large."""
        if folds is None or (owners.single < 0).any():
            return None
        shape = boxes.n_outputs, -(-folds.n // WIDTH) * WIDTH
        n_codes = int(boxes.grid.offset[-1])
        if n_codes * math.prod(shape) > MAX_SUMS:
            return None
        return cls(
            aligned_zeros(n_codes, *shape),
            aligned_zeros(len(owners.single), *shape),
            aligned_zeros(*shape),
            np.zeros(shape[1]),
        )

    def __add__(self, other: FoldSums) -> FoldSums:
        return FoldSums(
            self.jumps + other.jumps,
            self.constant + other.constant,
            self.total + other.total,
            self.weights + other.weights,
        )

    @property
    def n(self) -> int:
        """The number of folds that have rows."""
        return int((self.weights > 0).sum())


class FoldWalk:
    """Walks down trees with a block of rows, and adds to the sums of all folds in a fixed order.

    Parameters
    ----------
    boxes : Boxes
    all_rows : array of words
        The places of all rows in sets, see `kernels.boxes.fold_sums.index_folds`.
    sums : FoldSums
        The sums that are added to.
    n_jobs : int, optional
        With several workers, each keeps what it adds, until `finish`.
    """

    def __init__(
        self, boxes: Boxes, all_rows: np.ndarray, sums: FoldSums, n_jobs: int | None
    ) -> None:
        nodes, offset, is_set = boxes.table.nodes, boxes.table.offset, boxes.table.is_set
        self.all_rows, self.sums, self.offset, self.is_set = all_rows, sums, offset, is_set
        self.alone = effective_n_jobs(n_jobs) == 1
        self.nodes, self.roots = nodes, np.append(boxes.table.roots[:, 0], len(nodes))
        sizes = np.where(is_set != 0, np.diff(offset), 0)
        self.level_start = np.cumsum(sizes) - sizes
        self.level_codes = np.flatnonzero(np.repeat(is_set != 0, np.diff(offset)))
        self.parts: dict[int, tuple[ByFold, np.ndarray, np.ndarray, np.ndarray]] = {}

    def __call__(
        self, table: Any, trees: np.ndarray, owners: Owners, rows: Any, sums: Sums
    ) -> None:
        """Add some trees to the sums of all rows, and keep the sums by fold."""
        jumps, where, codes = self.sums.jumps, np.zeros(0, np.int64), np.zeros(0, np.int64)
        k, n_folds = self.sums.total.shape
        if not self.alone:
            start, end = self.roots[trees[0]], self.roots[trees[-1] + 1]
            codes, where = self._places(start, end)
            jumps = aligned_zeros(len(codes), k, n_folds)
        part = ByFold(
            jumps,
            where,
            aligned_zeros(len(self.level_codes), k, n_folds),
            self.level_start,
            aligned_zeros(*self.sums.constant.shape),
            aligned_zeros(1, k, n_folds),
        )
        ends = fold_sums.walk(table, trees, owners, rows, self.all_rows, sums, part)
        kept = part._replace(jumps=jumps[: len(codes)])  # none if they are added already
        self.parts[int(trees[0])] = kept, codes, *ends

    def _places(self, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes that begin behind the splits of some nodes, and which of them is whose.

        A worker has a row for each of these codes, and the kernel asks for it by node.
        """
        column, split = self.nodes[start:end, COLUMN], self.nodes[start:end, SPLIT]
        code = self.offset[column] + split + 1
        ordered = (column >= 0) & (self.is_set[column] == 0) & (code < self.offset[column + 1])
        where = np.full(len(self.nodes), -1)
        where[start:end][ordered] = np.arange(ordered.sum())
        return code[ordered], where

    def finish(self, weights: np.ndarray) -> None:
        """Add what was kept to the sums by fold; weights (G,) are those of the rows."""
        sums, begin = self.sums, self.offset[:-1]
        sums.weights += weights
        for _, (part, codes, first, missing) in sorted(self.parts.items()):
            fold_sums.add_rows(part.jumps, codes, sums.jumps)
            some = np.diff(self.offset) > 1  # columns that have more than the missing code
            sums.jumps[begin[some] + 1] += first[some]
            sums.jumps[begin] += missing
            sums.jumps[self.level_codes] += part.levels
            sums.constant += part.constant
            sums.total += part.total[0]
