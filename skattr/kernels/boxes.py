"""The table of nodes, the box along a path, and the sums that all kernels on boxes share.

Tuples of arrays end at the kernel's door: inside, numba counts references for each of their
members at each call, which costs more than the work. For the same reason each kernel has the
descent itself (left, right, back) written out.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

COLUMN, LEFT, RIGHT, SPLIT, MISSING = range(5)  # the columns of Table.nodes
LOW, HIGH, ADMITS = range(3)  # the rows of a path's interval


class Table(NamedTuple):
    """Trees over codes; `skattr.pieces.Boxes` makes it."""

    # (n_nodes, 5): raw column of the split, or -1 at a box; left child, or number of the box;
    # right child; last code that goes left, or where the split's set starts in `sets`; whether
    # code 0 goes left. A child stands behind its parent.
    nodes: np.ndarray
    roots: np.ndarray  # (n_trees, 2): node, first output that the tree adds to
    values: np.ndarray  # (n_boxes, width)
    sets: np.ndarray  # flat: for each set one byte a code, 1 if it goes left
    offset: np.ndarray  # (d + 1,) where the codes of a column start in flat arrays
    is_set: np.ndarray  # (d,) whether the codes of a column have no order
    depth: int


class Owners(NamedTuple):
    """Which attribution a column belongs to, and what an attribution is."""

    owner: np.ndarray  # (d,) attribution, or -1
    single: np.ndarray  # (g,) the column of an attribution that is one column, or -1
    group: np.ndarray  # (g,) the row of `box_weights` of an attribution that is a group, or -1


class Sums(NamedTuple):
    """What the kernels add to.

    The curve of attribution j is total + constant_j + its jumps, cumulated where codes have an
    order; the missing code and columns without order are not cumulated.
    """

    jumps: np.ndarray  # (n_codes, k)
    constant: np.ndarray  # (g, k)
    total: np.ndarray  # (k,)
    box_weights: np.ndarray  # (n_groups + 1, n_boxes): A_b, then W_b of each group; or no rows


@njit(cache=True, nogil=True)
def whole(offset, is_set, levels):
    """Return the box of a root, which is everything, and room for what to bring back.

    interval (3, d): first and last code of an ordered column, whether code 0 is in; allowed
    (n_codes,): bytes, for columns without order; and both for each level above.
    """
    d = is_set.shape[0]
    interval = np.ones((3, d), np.int32)
    widest = 0
    for k in range(d):
        n_codes = offset[k + 1] - offset[k]
        interval[HIGH, k] = n_codes - 1
        if is_set[k]:
            widest = max(widest, n_codes)
    allowed = np.ones(offset[d] if widest > 0 else 0, np.uint8)
    return interval, np.zeros((levels, 2), np.int32), allowed, np.zeros((levels, widest), np.uint8)


@njit(cache=True, nogil=True, inline="always")
def go_left(nodes, node, sets, offset, is_set, interval, saved, allowed, saved_allowed, level):
    """Narrow the box to the left child's."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    if is_set[k]:
        base = offset[k]
        for c in range(offset[k + 1] - base):
            saved_allowed[level, c] = allowed[base + c]
            allowed[base + c] &= sets[split + c]
    else:
        saved[level, 0] = interval[HIGH, k]
        saved[level, 1] = interval[ADMITS, k]
        interval[HIGH, k] = min(interval[HIGH, k], split)
        interval[ADMITS, k] &= nodes[node, MISSING]


@njit(cache=True, nogil=True, inline="always")
def go_right(nodes, node, sets, offset, is_set, interval, saved, allowed, saved_allowed, level):
    """Take the left child's box back, and narrow to the right child's."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    if is_set[k]:
        base = offset[k]
        for c in range(offset[k + 1] - base):
            allowed[base + c] = saved_allowed[level, c] & (1 - sets[split + c])
    else:
        interval[HIGH, k] = saved[level, 0]
        saved[level, 0] = interval[LOW, k]
        interval[LOW, k] = max(interval[LOW, k], split + 1)
        interval[ADMITS, k] = saved[level, 1] & (1 - nodes[node, MISSING])


@njit(cache=True, nogil=True, inline="always")
def go_back(nodes, node, offset, is_set, interval, saved, allowed, saved_allowed, level):
    """Take the right child's box back."""
    k = nodes[node, COLUMN]
    if is_set[k]:
        base = offset[k]
        for c in range(offset[k + 1] - base):
            allowed[base + c] = saved_allowed[level, c]
    else:
        interval[LOW, k] = saved[level, 0]
        interval[ADMITS, k] = saved[level, 1]


@njit(cache=True, nogil=True, inline="always")
def add_total(values, box, output, weight, total, box_weights):
    """Count a box with its weight, as far as no attribution has a condition in it."""
    for o in range(values.shape[1]):
        total[output + o] += values[box, o] * weight
    for q in range(box_weights.shape[0]):
        box_weights[q, box] += weight


@njit(cache=True, nogil=True, inline="always")
def add_own(
    values, box, output, weight, j, except_j,
    offset, is_set, interval, allowed, single, group, jumps, constant, box_weights,
):  # fmt: skip
    """Count a box with the weight that it has for attribution j, which has a condition in it.

    `weight` is what `add_total` counted, `except_j` the weight but for the conditions on j.
    """
    k = single[j]
    if k < 0:
        box_weights[group[j], box] += except_j - weight
        return
    width = values.shape[1]
    for o in range(width):
        constant[j, output + o] -= values[box, o] * weight
    if except_j == 0.0:
        return
    base = offset[k]
    end = offset[k + 1]
    if is_set[k]:
        for c in range(base, end):
            if allowed[c]:
                for o in range(width):
                    jumps[c, output + o] += values[box, o] * except_j
        return
    low = base + interval[LOW, k]
    high = base + interval[HIGH, k]
    for o in range(width):
        x = values[box, o] * except_j
        if low <= high:
            jumps[low, output + o] += x
            if high + 1 < end:
                jumps[high + 1, output + o] -= x
        if interval[ADMITS, k]:
            jumps[base, output + o] += x
