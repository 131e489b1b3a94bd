"""Push rows down all trees, each with one column moved to a lower and to an upper code.

At a split on column k, a row and the row with another code of k mostly go the same way. Where they
do not, the moved row leaves the path: it goes down the other side by itself, and what the tree adds
to it is compared with what it adds to the row. So the two moves of all columns cost one descent of
the row, and a part of a descent for each of them that a tree tells apart from the row.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.layout import COLUMN, LEFT, RIGHT, goes_left
from skattr.kernels.compiled import inlined, kernel


class Moves(NamedTuple):
    """Rows, the codes to which each column is moved, and the sums that the kernel adds to."""

    codes: np.ndarray  # (n, d)
    targets: np.ndarray  # (n, d, 2) the lower and the upper code; the row's own: no move
    fit: np.ndarray  # (n, k) the sum of the boxes at each row
    changes: np.ndarray  # (n, d, 2, k) the sum at the moved row, less that at the row


class Buffers(NamedTuple):
    """Buffers of the kernel."""

    left_at: np.ndarray  # (d, 2) the descent in which a moved row left the path last
    gone: np.ndarray  # (2 · d, 2) column and side of the moves that have left the path


def add_moves(table, trees, moves):
    """Add the boxes of some trees that have splits."""
    d = moves.codes.shape[1]
    _add_moves(table, trees, moves, Buffers(np.zeros((d, 2), np.int64), np.empty((2 * d, 2), int)))


@inlined
def _box(nodes, sets, is_set, node, codes, r, moved, code):
    """Return the box below a node in which a row is, with one column at another code."""
    k = nodes[node, COLUMN]
    while k >= 0:
        here = code if k == moved else codes[r, k]
        node = nodes[node, RIGHT - goes_left(nodes, node, sets, is_set, here)]
        k = nodes[node, COLUMN]
    return nodes[node, LEFT]


@kernel
def _add_moves(table, trees, moves, buffers):
    nodes, roots, values, sets, _, is_set, _ = table
    codes, targets, fit, changes = moves
    left_at, gone = buffers
    width = values.shape[1]
    descent = np.int64(0)
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        for r in range(codes.shape[0]):
            descent += 1
            n_gone = np.int64(0)
            node = roots[t, 0]
            k = nodes[node, COLUMN]
            while k >= 0:
                left = goes_left(nodes, node, sets, is_set, codes[r, k])
                lower = goes_left(nodes, node, sets, is_set, targets[r, k, 0])
                upper = goes_left(nodes, node, sets, is_set, targets[r, k, 1])
                if (lower != left) | (upper != left):
                    start = nodes[node, LEFT + left]
                    for side in range(2):
                        # it goes the same way, or left the path further up
                        if (upper if side else lower) == left or left_at[k, side] == descent:
                            continue
                        left_at[k, side] = descent
                        gone[n_gone, 0] = k
                        gone[n_gone, 1] = side
                        n_gone += 1
                        code = targets[r, k, side]
                        box = _box(nodes, sets, is_set, start, codes, r, k, code)
                        for o in range(width):
                            changes[r, k, side, output + o] += values[box, o]
                node = nodes[node, RIGHT - left]
                k = nodes[node, COLUMN]
            box = nodes[node, LEFT]
            for o in range(width):
                x = values[box, o]
                fit[r, output + o] += x
                for q in range(n_gone):
                    changes[r, gone[q, 0], gone[q, 1], output + o] -= x
