"""The table of nodes, the box along a path, and the sums that all kernels on boxes share.

Kernels take tuples of arrays and unpack them first: numba would count references for each of their
members at each inner call, which costs more than the work.

A walk with a box along its path is a loop: `start_walk` at a root, then `next_turn` at the node of
the current level (left, right, back), and `go_down` to a child that is worth it; the sets of rows
along the path are those of one_violation.py (`fill_side`, `slot_of`, `restrict_sets`). Kernels that
send single rows or lists of rows down share `goes_left` and `split_rows`.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import (
    ALL,
    ONE,
    ZERO,
    as_words,
    flip_to_fewer,
    has,
    lowest,
    n_words,
    tail,
)
from skattr.kernels.compiled import inlined

COLUMN, LEFT, RIGHT, SPLIT, MISSING = range(5)  # the columns of Table.nodes
LOW, HIGH, ADMITS = range(3)  # the rows of a path's interval


class Table(NamedTuple):
    """Trees over codes; `skattr.pieces.Boxes` makes it."""

    # (n_nodes, 5): raw column of the split, or -1 at a box; left child, or number of the box;
    # right child; last code that goes left, or the first word of the split's set in `sets`; whether
    # code 0 goes left. A child comes after its parent.
    nodes: np.ndarray
    roots: np.ndarray  # (n_trees, 2): node, first output that the tree adds to
    values: np.ndarray  # (n_boxes, width)
    sets: np.ndarray  # flat words: for each set one bit per code, 1 if it goes left
    offset: np.ndarray  # (d + 1,) where the codes of a column start in flat arrays
    is_set: np.ndarray  # (d,) whether the codes of a column have no order
    depth: int


class Owners(NamedTuple):
    """The attribution of each column, and the column or group of each attribution."""

    owner: np.ndarray  # (d,) attribution, or -1
    single: np.ndarray  # (g,) the column of an attribution that is one column, or -1
    group: np.ndarray  # (g,) the row of `box_weights` of an attribution that is a group, or -1


class Sums(NamedTuple):
    """The sums that the kernels add to.

    The curve of attribution j is total + constant_j + its jumps, cumulated where codes have an
    order; the missing code and columns without order are not cumulated.
    """

    jumps: np.ndarray  # (n_codes, k)
    constant: np.ndarray  # (g, k)
    total: np.ndarray  # (k,)
    box_weights: np.ndarray  # (n_groups + 1, n_boxes): A_b, then W_b of each group; or no rows


class Path(NamedTuple):
    """The position of a walk down a tree, and the box of the codes that reach it."""

    node_at: np.ndarray  # (levels,)
    turn: np.ndarray  # (levels,) 0 above a node, 1 in its left child, 2 in its right one
    interval: np.ndarray  # (3, d) first and last code of an ordered column, whether code 0 is in
    allowed: np.ndarray  # (d, words) the codes of a column without order, as bits
    saved: np.ndarray  # (levels, 3) the interval of each level's column above it
    saved_allowed: np.ndarray  # (levels, words) the same for columns without order


def new_path(table):
    """Return a path at a root, whose box has all codes."""
    offset, is_set, levels = table.offset, table.is_set, table.depth + 2
    n_codes = np.diff(offset)
    widest = int(n_codes[is_set != 0].max(initial=0))
    allowed = as_words(np.arange(widest) < n_codes[:, None])
    interval = np.ones((3, len(is_set)), np.int32)
    interval[HIGH] = n_codes - 1
    return Path(
        np.zeros(levels, np.int32),
        np.zeros(levels, np.int8),
        interval,
        allowed,
        np.zeros((levels, 3), np.int32),
        np.zeros((levels, allowed.shape[1]), np.uint64),
    )


@inlined
def start_walk(root, node_at, turn):
    """Put the path at a root; return its level."""
    node_at[0] = root
    turn[0] = 0
    return np.int64(0)  # for a literal 0 numba compiles the loop of the caller once more


@inlined
def go_down(child, node_at, turn, level):
    """Put the path at a child of its node; return the child's level."""
    node_at[level + 1] = child
    turn[level + 1] = 0
    return level + 1


@inlined
def next_turn(
    nodes, sets, offset, is_set, node_at, turn, interval, allowed, saved, saved_allowed, level
):
    """Return 1 and make the box that of the left child, then 2 and the right one, then 3.

    After 3 the box is that of the node again.
    """
    turn[level] += 1
    now = turn[level]
    narrow(
        nodes, node_at[level], now, sets, offset, is_set,
        interval, allowed, saved, saved_allowed, level,
    )  # fmt: skip
    return now


@inlined
def narrow(nodes, node, turn, sets, offset, is_set, interval, allowed, saved, saved_allowed, level):
    """Set the box to that of the left child (turn 1), the right one (2), the node again (3)."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    if is_set[k]:
        flip = ALL if turn == 2 else ZERO
        every = ALL if turn == 3 else ZERO
        for w in range(n_words(offset[k + 1] - offset[k])):
            if turn == 1:
                saved_allowed[level, w] = allowed[k, w]
            allowed[k, w] = saved_allowed[level, w] & ((sets[split + w] ^ flip) | every)
        return
    if turn == 1:
        for i in range(3):
            saved[level, i] = interval[i, k]
    low, high, admits = saved[level, LOW], saved[level, HIGH], saved[level, ADMITS]
    if turn == 1:
        high = split if split < high else high
        admits &= nodes[node, MISSING]
    elif turn == 2:
        low = split + 1 if split >= low else low
        admits &= 1 - nodes[node, MISSING]
    interval[LOW, k] = low
    interval[HIGH, k] = high
    interval[ADMITS, k] = admits


@inlined
def goes_left(nodes, node, sets, is_set, code):
    """Tell whether a code of the column of a split goes left."""
    split = nodes[node, SPLIT]
    if is_set[nodes[node, COLUMN]]:
        return has(sets, split, code)
    if code == 0:
        return nodes[node, MISSING] == 1
    return code <= split


@inlined
def split_rows(nodes, node, sets, is_set, codes, rows, begin, end):
    """Move the rows that go left to the front of the list; return where the others begin."""
    k = nodes[node, COLUMN]
    middle = begin
    for i in range(begin, end):
        r = rows[i]
        if goes_left(nodes, node, sets, is_set, codes[k, r]):
            rows[i] = rows[middle]
            rows[middle] = r
            middle += 1
    return middle


@inlined
def add_total(values, box, output, weight, total, box_weights):
    """Count a box with its weight, for attributions without conditions in it."""
    for o in range(values.shape[1]):
        total[output + o] += values[box, o] * weight
    for q in range(box_weights.shape[0]):
        box_weights[q, box] += weight


@inlined
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
        flip = flip_to_fewer(allowed, k, end - base)
        sign = except_j
        if flip != ZERO:  # add to all codes, and subtract from those that are not in the box
            sign = -except_j
            for o in range(width):
                constant[j, output + o] += values[box, o] * except_j
        for w in range(n_words(end - base)):
            word = (allowed[k, w] ^ flip) & tail(end - base, w)
            while word != ZERO:
                c = base + 64 * w + lowest(word)
                word &= word - ONE
                for o in range(width):
                    jumps[c, output + o] += values[box, o] * sign
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
