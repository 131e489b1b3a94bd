"""Sums over boxes, and the curves and values that engines on boxes compute from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.curves.by_code import ByCode
from skattr.engines.base import Request, RunOptions
from skattr.engines.boxes.fold_sums import FoldSums
from skattr.kernels.boxes.group_values import add_group
from skattr.kernels.boxes.layout import COLUMN, Owners, Sums
from skattr.pieces import Boxes, Grid

TREE_BLOCKS = 16  # fixed, so that the order of additions never depends on n_jobs


@dataclass(eq=False)
class BoxSums:
    """Sums over boxes and their total weight; `+` joins two batches."""

    jumps: np.ndarray  # (n_codes, k), see kernels.boxes.Sums
    constant: np.ndarray  # (g, k)
    total: np.ndarray  # (k,)
    box_weights: np.ndarray  # (n_groups + 1, n_boxes), without rows if there are no groups
    weight: float
    offset: np.ndarray  # (d + 1,) where the codes of a column start in `jumps`
    folds: FoldSums | None = None  # the same for each fold of the background

    def __add__(self, other: BoxSums) -> BoxSums:
        folds = None
        if self.folds is not None and other.folds is not None:
            folds = self.folds + other.folds
        return BoxSums(
            self.jumps + other.jumps,
            self.constant + other.constant,
            self.total + other.total,
            self.box_weights + other.box_weights,
            self.weight + other.weight,
            self.offset,
            folds,
        )

    def scaled(self, share: float) -> BoxSums:
        """Return the sums times the share of a component."""
        return BoxSums(
            self.jumps * share,
            self.constant * share,
            self.total * share,
            self.box_weights * share,
            self.weight * share,
            self.offset,
        )

    def mean(self, boxes: Boxes) -> np.ndarray:
        """Return the integral of f with no attribution pinned."""
        return boxes.constant + self.total / self.weight

    def curves(self, boxes: Boxes, attributions: Attributions) -> list[ByCode | None]:
        """Return the curve of each attribution of one column, None for groups and open columns."""
        mean = self.mean(boxes)
        curves: list[ByCode | None] = []
        for j, columns in enumerate(attributions):
            k = columns[0]
            cells = boxes.grid.cells[k]
            if len(columns) > 1 or cells.open:
                curves.append(None)
                continue
            start, end = self.offset[k : k + 2]
            values = self.jumps[start:end].copy()
            if cells.ordered:
                np.cumsum(values[1:], axis=0, out=values[1:])
            # in this order a column that the model ignores gets the mean to the last bit
            values = mean + (values + self.constant[j]) / self.weight
            curves.append(ByCode(boxes.grid, k, values))
        return curves

    def integrate(self, boxes: Boxes, request: Request) -> np.ndarray:
        """Return the values of groups and of open columns, (n, g, k)."""
        codes = request.rows.codes
        assert codes is not None
        result = request.zeros(boxes.n_outputs)
        group = owners(request.attributions, boxes.grid).group[request.chosen]
        for i, columns in enumerate(request.columns):
            members = list(columns)
            in_group = np.zeros(len(codes), np.bool_)
            in_group[members] = True
            # rows that agree in the group share one descent
            _, first, kind = np.unique(
                codes[members], axis=1, return_index=True, return_inverse=True
            )
            some = np.ascontiguousarray(codes[:, first])
            out = np.zeros((len(first), boxes.n_outputs))
            weights = self.box_weights[group[i]]
            add_group(boxes.table, in_group, weights, self.box_weights[0], some, out)
            result[:, i] = out[kind.reshape(-1)]
        return self.mean(boxes) + result / self.weight


def owners(attributions: Sequence[tuple[int, ...]], grid: Grid) -> Owners:
    """Return the attribution that each column belongs to; an open column counts as a group."""
    owner = np.full(len(grid.cells), -1, np.int32)
    single = np.full(len(attributions), -1, np.int32)
    group = np.full(len(attributions), -1, np.int32)
    for j, columns in enumerate(attributions):
        owner[list(columns)] = j
        if len(columns) == 1 and not grid.cells[columns[0]].open:
            single[j] = columns[0]
    is_group = single < 0
    group[is_group] = 1 + np.arange(is_group.sum())  # row 0 is the weight of all conditions
    return Owners(owner, single, group)


def tree_blocks(boxes: Boxes) -> list[np.ndarray]:
    """Return the numbers of all trees that have splits, in blocks that run in parallel.

    The value of a tree without splits is part of the constant.
    """
    nodes, roots = boxes.table.nodes, boxes.table.roots
    blocks = np.array_split(np.flatnonzero(nodes[roots[:, 0], COLUMN] >= 0), TREE_BLOCKS)
    return [trees for trees in blocks if len(trees)]


def add_trees(
    boxes: Boxes,
    attributions: Sequence[tuple[int, ...]],
    walk: Callable,
    data: object,
    options: RunOptions,
    sums: Sums | None = None,
) -> Sums:
    """Run a kernel over all trees in fixed blocks, added up in order."""
    column_owners = owners(attributions, boxes.grid)
    n_groups = int((column_owners.group > 0).sum())
    n_weights = n_groups + 1 if n_groups else 0
    k = boxes.n_outputs
    n_codes = boxes.grid.offset[-1] if attributions else 0

    def empty() -> Sums:
        return Sums(
            np.zeros((n_codes, k)),
            np.zeros((len(attributions), k)),
            np.zeros(k),
            np.zeros((n_weights, boxes.n_boxes)),
        )

    def run(trees: np.ndarray) -> Sums:
        part = empty()
        walk(boxes.table, trees, column_owners, data, part)
        return part

    total = empty() if sums is None else sums
    for part in in_order(run, tree_blocks(boxes), options.n_jobs):
        for whole, piece in zip(total, part, strict=True):
            whole += piece
    return total
