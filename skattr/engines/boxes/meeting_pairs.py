"""Which pairs of attributions meet in a box: only they can interact."""

from __future__ import annotations

import numpy as np

from skattr.attributions import Pairs
from skattr.engines.boxes.box_sums import owners, tree_blocks
from skattr.kernels.boxes.layout import COLUMN, LEFT, RIGHT, Table
from skattr.pieces import Boxes


def certified_zeros(n_zeros: int, n: int) -> str:
    """Return in words how many of n pairs meet in no box."""
    if n_zeros == 0:
        return "no pair is certified to be 0: each has boxes with conditions on both"
    return f"{n_zeros:,} of {n:,} pairs are certified to be 0: no box has conditions on both"


def zeros_of(boxes: Boxes, pairs: Pairs) -> str:
    """Return in words how many of some pairs meet in no box."""
    owner = owners(pairs.singles, boxes.grid).owner
    meet = np.zeros((len(pairs.singles),) * 2, bool)
    for trees in tree_blocks(boxes):
        meet |= _meeting(boxes.table, trees, owner, len(meet))
    n_zeros = sum(not meet[pair] for pair in pairs.members)
    return certified_zeros(n_zeros, len(pairs.members))


def _meeting(table: Table, trees: np.ndarray, owner: np.ndarray, g: int) -> np.ndarray:
    """Return for each pair of attributions whether some path of these trees has both, (g, g).

    All trees go down together, one level after the other.
    """
    meet = np.zeros((g, g), bool)
    nodes = table.roots[trees, 0]
    on_path = np.zeros((len(nodes), g), bool)
    while len(nodes):
        column = table.nodes[nodes, COLUMN]
        ended = np.unique(on_path[column < 0], axis=0).astype(float)
        meet |= ended.T @ ended > 0
        nodes, on_path, column = nodes[column >= 0], on_path[column >= 0], column[column >= 0]
        on_path[np.arange(len(nodes)), owner[column]] = True
        nodes = np.concatenate([table.nodes[nodes, LEFT], table.nodes[nodes, RIGHT]])
        on_path = np.concatenate([on_path, on_path])
    return meet
