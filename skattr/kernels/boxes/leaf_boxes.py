"""The boxes of trees, as ranges of codes."""

from skattr.kernels.boxes.layout import (
    COLUMN,
    HIGH,
    LEFT,
    LOW,
    go_down,
    new_path,
    next_turn,
    start_walk,
)
from skattr.kernels.compiled import kernel


def fill_boxes(table, low, high, output):
    """Fill the first and last code of each box in each column, (n_boxes, d), and its output.

    Every column's codes must have an order. A box that admits only missing has low > high.
    """
    _fill_boxes(table, low, high, output, new_path(table))


@kernel
def _fill_boxes(table, low, high, output, path):
    nodes, roots, _, sets, offset, is_set, _ = table
    node_at, turn, interval, allowed, saved, saved_allowed = path
    for t in range(roots.shape[0]):
        level = start_walk(roots[t, 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            if nodes[node, COLUMN] < 0:
                box = nodes[node, LEFT]
                output[box] = roots[t, 1]
                for k in range(low.shape[1]):
                    low[box, k] = interval[LOW, k]
                    high[box, k] = interval[HIGH, k]
                level -= 1
                continue
            now = next_turn(
                nodes, sets, offset, is_set,
                node_at, turn, interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 3:
                level -= 1
                continue
            level = go_down(nodes[node, now], node_at, turn, level)
