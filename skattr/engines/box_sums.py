"""What the two engines on boxes share: sums over boxes, and the curves that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skattr.engines.base import Jobs, Own
from skattr.kernels.boxes import Owners, Sums
from skattr.kernels.group_values import add_group
from skattr.parallel import in_order
from skattr.pieces import Boxes

TREE_BLOCKS = 16  # fixed, so that the order of additions never depends on n_jobs


@dataclass(eq=False)
class BoxSums:
    """Sums over boxes and their total weight; adding two of them joins two batches."""

    jumps: np.ndarray  # (n_codes, k), see kernels.boxes.Sums
    constant: np.ndarray  # (g, k)
    total: np.ndarray  # (k,)
    box_weights: np.ndarray  # (n_groups + 1, n_boxes), or none without groups
    weight: float

    def __add__(self, other: BoxSums) -> BoxSums:
        return BoxSums(
            self.jumps + other.jumps,
            self.constant + other.constant,
            self.total + other.total,
            self.box_weights + other.box_weights,
            self.weight + other.weight,
        )

    def scaled(self, share: float) -> BoxSums:
        """Return the sums of a component that has a share of the whole."""
        return BoxSums(
            self.jumps * share,
            self.constant * share,
            self.total * share,
            self.box_weights * share,
            self.weight * share,
        )

    def mean(self, boxes: Boxes) -> np.ndarray:
        """Return the integral of f where no attribution is left out."""
        return boxes.constant + self.total / self.weight

    def tables(self, boxes: Boxes, own: Own) -> list[np.ndarray | None]:
        """Return the curve of each attribution that is one column, by code."""
        mean = self.mean(boxes)
        tables: list[np.ndarray | None] = []
        for j, columns in enumerate(own):
            if len(columns) > 1:
                tables.append(None)
                continue
            cells = boxes.grid.cells[columns[0]]
            start, end = boxes.grid.offset[columns[0] : columns[0] + 2]
            table = self.jumps[start:end].copy()
            if cells.ordered:
                np.cumsum(table[1:], axis=0, out=table[1:])
            # in this order a column that the model ignores gets the mean to the last bit
            tables.append(mean + (table + self.constant[j]) / self.weight)
        return tables

    def integrate(self, boxes: Boxes, codes: np.ndarray, own: Own, chosen: list) -> np.ndarray:
        """Return the values of groups."""
        result = np.zeros((len(chosen), codes.shape[1], boxes.n_outputs))
        group = owners(own, len(codes)).group
        for out, a in zip(result, chosen, strict=True):
            in_group = np.zeros(len(codes), np.bool_)
            in_group[list(own[a])] = True
            weights = self.box_weights[group[a]]
            add_group(boxes.table, in_group, weights, self.box_weights[0], codes, out)
        return self.mean(boxes) + result.transpose(1, 0, 2) / self.weight


def owners(own: Own, n_columns: int) -> Owners:
    """Return which attribution each column belongs to."""
    owner = np.full(n_columns, -1, np.int32)
    single = np.full(len(own), -1, np.int32)
    group = np.full(len(own), -1, np.int32)
    for j, columns in enumerate(own):
        owner[list(columns)] = j
        if len(columns) == 1:
            single[j] = columns[0]
    is_group = single < 0
    group[is_group] = 1 + np.arange(is_group.sum())  # row 0 is the weight of all conditions
    return Owners(owner, single, group)


def add_trees(
    boxes: Boxes, own: Own, walk: Callable, data: object, jobs: Jobs, sums: Sums | None = None
) -> Sums:
    """Run a kernel over all trees, in fixed blocks, and add the blocks up in order."""
    n_groups = sum(len(columns) > 1 for columns in own)
    n_weights = n_groups + 1 if n_groups else 0
    k = boxes.n_outputs
    n_codes = boxes.grid.offset[-1] if own else 0
    who = owners(own, len(boxes.grid.cells))

    def empty() -> Sums:
        return Sums(
            np.zeros((n_codes, k)),
            np.zeros((len(own), k)),
            np.zeros(k),
            np.zeros((n_weights, boxes.n_boxes)),
        )

    def run(trees: np.ndarray) -> Sums:
        part = empty()
        walk(boxes.table, trees, who, data, part)
        return part

    blocks = np.array_split(np.arange(len(boxes.table.roots)), TREE_BLOCKS)
    total = empty() if sums is None else sums
    for part in in_order(run, [trees for trees in blocks if len(trees)], jobs.n_jobs):
        for whole, piece in zip(total, part, strict=True):
            whole += piece
    return total
