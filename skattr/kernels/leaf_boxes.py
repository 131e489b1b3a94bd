"""The boxes of trees, as ranges of codes."""

import numpy as np
from numba import njit

from skattr.kernels.boxes import COLUMN, HIGH, LEFT, LOW, RIGHT, go_back, go_left, go_right, whole


@njit(cache=True, nogil=True)
def fill_boxes(table, low, high, output):
    """Fill the first and last code of each box in each column, (n_boxes, d), and its output.

    Every column's codes must have an order. A box that admits only missing has low > high.
    """
    nodes, roots, _values, sets, offset, is_set, depth = table
    d = is_set.shape[0]
    levels = depth + 2
    node_at = np.zeros(levels, np.int32)
    phase = np.zeros(levels, np.int8)
    interval, saved, allowed, saved_allowed = whole(offset, is_set, levels)
    for t in range(roots.shape[0]):
        level = 0
        node_at[0] = roots[t, 0]
        phase[0] = 0
        if nodes[roots[t, 0], COLUMN] < 0:  # a tree that is one box
            box = nodes[roots[t, 0], LEFT]
            output[box] = roots[t, 1]
            for k in range(d):
                low[box, k] = interval[LOW, k]
                high[box, k] = interval[HIGH, k]
            continue
        while level >= 0:
            node = node_at[level]
            phase[level] += 1
            if phase[level] == 1:
                go_left(
                    nodes, node, sets, offset, is_set,
                    interval, saved, allowed, saved_allowed, level,
                )  # fmt: skip
                child = nodes[node, LEFT]
            elif phase[level] == 2:
                go_right(
                    nodes, node, sets, offset, is_set,
                    interval, saved, allowed, saved_allowed, level,
                )  # fmt: skip
                child = nodes[node, RIGHT]
            else:
                go_back(nodes, node, offset, is_set, interval, saved, allowed, saved_allowed, level)
                level -= 1
                continue
            if nodes[child, COLUMN] >= 0:
                level += 1
                node_at[level] = child
                phase[level] = 0
                continue
            box = nodes[child, LEFT]
            output[box] = roots[t, 1]
            for k in range(d):
                low[box, k] = interval[LOW, k]
                high[box, k] = interval[HIGH, k]
