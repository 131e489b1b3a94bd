"""Evaluate the attribution of a group: a sum over boxes whose weights are known.

phi_G(x) = Σ_b v_b W_b 1[x meets the conditions of b on G]. Lists of explained rows go down each
tree, both ways at splits on other columns; below the last split on G the sum over the subtree is
known. Trees without a split on G are left out, and the others are counted relative to their mean
Σ_b v_b A_b, so that the result is phi_G(x) − E f, and exactly 0 where f ignores G.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.layout import COLUMN, LEFT, RIGHT, split_rows
from skattr.kernels.compiled import inlined, kernel


@inlined
def _sum_subtrees(nodes, values, in_group, weights, subtree, asks):
    """Fill the sums of value · weight below each node, and whether a split on the group is there.

    A child comes after its parent in the table.
    """
    for node in range(nodes.shape[0] - 1, -1, -1):
        k = nodes[node, COLUMN]
        if k < 0:
            box = nodes[node, LEFT]
            for o in range(subtree.shape[1]):
                subtree[node, o] = values[box, o] * weights[box]
        else:
            left = nodes[node, LEFT]
            right = nodes[node, RIGHT]
            asks[node] = in_group[k] or asks[left] or asks[right]
            for o in range(subtree.shape[1]):
                subtree[node, o] = subtree[left, o] + subtree[right, o]


class Buffers(NamedTuple):
    """Buffers of `add_group`."""

    subtree: np.ndarray  # (n_nodes, k) the sum of value · weight below each node
    asks: np.ndarray  # (n_nodes,) whether a split on the group is there
    mean: np.ndarray  # (k,)
    rows: np.ndarray  # (n,)
    todo: np.ndarray  # (…, 3) node, first and last row


def add_group(table, in_group, weights, plain, codes, out):
    """Add to out (n, k) the value of a group at the rows of codes (d, n), less its mean.

    weights and plain (n_boxes,) are W_b and A_b.
    """
    n_nodes, width = len(table.nodes), table.values.shape[1]
    buffers = Buffers(
        np.zeros((n_nodes, width)), np.zeros(n_nodes, np.bool_), np.empty(width),
        np.arange(codes.shape[1]), np.empty((2 * table.depth + 4, 3), np.int64),
    )  # fmt: skip
    _add_group(table, in_group, weights, plain, codes, out, buffers)


@kernel
def _add_group(table, in_group, weights, plain, codes, out, buffers):
    nodes, roots, values, sets, _, is_set, _ = table
    subtree, asks, mean, rows, todo = buffers
    n, width = rows.shape[0], mean.shape[0]
    _sum_subtrees(nodes, values, in_group, weights, subtree, asks)
    for t in range(roots.shape[0]):
        root = roots[t, 0]
        output = roots[t, 1]
        if not asks[root]:
            continue
        for o in range(width):
            mean[o] = 0.0
        last = roots[t + 1, 0] if t + 1 < roots.shape[0] else nodes.shape[0]
        for node in range(root, last):
            if nodes[node, COLUMN] < 0:
                box = nodes[node, LEFT]
                for o in range(width):
                    mean[o] += values[box, o] * plain[box]
        for r in range(n):
            for o in range(width):
                out[r, output + o] -= mean[o]
        top = 0
        todo[0, 0], todo[0, 1], todo[0, 2] = root, 0, n
        while top >= 0:
            node, begin, end = todo[top, 0], todo[top, 1], todo[top, 2]
            top -= 1
            if begin == end:
                continue
            if not asks[node]:
                for i in range(begin, end):
                    for o in range(width):
                        out[rows[i], output + o] += subtree[node, o]
                continue
            middle_left = end
            middle_right = begin
            if in_group[nodes[node, COLUMN]]:
                middle_left = split_rows(nodes, node, sets, is_set, codes, rows, begin, end)
                middle_right = middle_left
            top += 1
            todo[top, 0], todo[top, 1], todo[top, 2] = nodes[node, RIGHT], middle_right, end
            top += 1
            todo[top, 0], todo[top, 1], todo[top, 2] = nodes[node, LEFT], begin, middle_left
