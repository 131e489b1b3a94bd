"""Σ_r π_r f(x_j, z_r,-j) over boxes, for any weights of rows: lists of rows go down the trees.

At a split on a column of j all rows follow x, at others each its own code; O(rows · depth)
per tree.
"""

import numpy as np

from skattr.kernels.boxes.layout import COLUMN, LEFT, RIGHT, goes_left, split_rows
from skattr.kernels.compiled import kernel


def add_pinned(table, pinned, codes, x, rows, weights, out):
    """Add to out (k,) the sum over some rows of codes (d, n), pinned columns at the codes x (d,).

    rows is reordered; weights (n,) are by row.
    """
    todo = np.empty((2 * table.depth + 4, 3), np.int64)  # node, first and last row
    _add_pinned(table, pinned, codes, x, rows, weights, out, todo)


@kernel
def _add_pinned(table, pinned, codes, x, rows, weights, out, todo):
    nodes, roots, values, sets, _, is_set, _ = table
    for t in range(roots.shape[0]):
        output = roots[t, 1]
        top = 0
        todo[0, 0], todo[0, 1], todo[0, 2] = roots[t, 0], 0, rows.shape[0]
        while top >= 0:
            node, begin, end = todo[top, 0], todo[top, 1], todo[top, 2]
            top -= 1
            k = nodes[node, COLUMN]
            if k < 0:
                box = nodes[node, LEFT]
                weight = 0.0
                for i in range(begin, end):
                    weight += weights[rows[i]]
                for o in range(values.shape[1]):
                    out[output + o] += values[box, o] * weight
                continue
            if pinned[k]:
                middle = end if goes_left(nodes, node, sets, is_set, x[k]) else begin
            else:
                middle = split_rows(nodes, node, sets, is_set, codes, rows, begin, end)
            if middle < end:
                top += 1
                todo[top, 0], todo[top, 1], todo[top, 2] = nodes[node, RIGHT], middle, end
            if middle > begin:
                top += 1
                todo[top, 0], todo[top, 1], todo[top, 2] = nodes[node, LEFT], begin, middle
