"""The boxes of trees as pairs of attributions see them: which pairs meet in a box, and its sides.

The attributions on the path of a box are ranked in the order of their first conditions. The weights
of its pairs stand one after the other: those of the second attribution with the first, of the third
with the first and the second, and so on.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import n_words
from skattr.kernels.boxes.layout import (
    ADMITS,
    COLUMN,
    HIGH,
    LEFT,
    LOW,
    go_down,
    new_path,
    next_turn,
    start_walk,
)
from skattr.kernels.compiled import inlined, kernel


class Members(NamedTuple):
    """The attributions that are paired, and their columns."""

    owner: np.ndarray  # (d,) the attribution of each column, or -1 if it is in no pair
    column: np.ndarray  # (g,) the column of an attribution that has sides, or -1
    pair: np.ndarray  # (g, g) the number of each pair, symmetric, or -1


class Weights(NamedTuple):
    """The weights of the boxes: of all conditions, and without those on one or two attributions."""

    singles: np.ndarray  # (n_boxes, g + 1) E_bj, which is A_b where j has no condition; last, A_b
    both: np.ndarray  # (n_entries,) E_bjk of the pairs of each box
    start: np.ndarray  # (n_boxes + 1,) where the pairs of a box start in `both`


class Sides(NamedTuple):
    """The codes of each box in the columns of attributions: an interval and code 0, or a set."""

    interval: np.ndarray  # (n_boxes, g, 3) first and last code, whether code 0 is in
    allowed: np.ndarray  # (n_boxes, words) sets of codes of columns without order
    word: np.ndarray  # (g + 1,) where the set of an attribution starts in `allowed`
    output: np.ndarray  # (n_boxes,) the first output that a box adds to


class Ranks(NamedTuple):
    """The attributions on a path, in the order of their first conditions."""

    on_path: np.ndarray  # (g,) number of splits on an attribution
    rank: np.ndarray  # (g,)
    listed: np.ndarray  # (g,) the attributions by rank


def new_ranks(members):
    """Return the ranks at a root."""
    g = len(members.column)
    return Ranks(np.zeros(g, np.int32), np.zeros(g, np.int32), np.zeros(g + 1, np.int32))


@inlined
def enter(a, n, on_path, rank, listed):
    """Count a split on attribution a; return the number of attributions on the path."""
    if a < 0:
        return n
    if on_path[a] == 0:
        rank[a] = n
        listed[n] = a
        n += 1
    on_path[a] += 1
    return n


@inlined
def leave(a, n, on_path):
    """Forget the last split on attribution a; return the number of attributions on the path."""
    if a < 0:
        return n
    on_path[a] -= 1
    return n - (on_path[a] == 0)


@inlined
def place(rank, a, b):
    """Return the place of a pair among those of its box."""
    low = rank[a]
    high = rank[b]
    if low > high:
        low, high = high, low
    return high * (high - 1) // 2 + low


def new_sides(table, members):
    """Return the arrays of the sides of all boxes."""
    g, n_boxes = len(members.column), len(table.values)
    n_codes = np.diff(table.offset)
    words = [
        -(-int(n_codes[k]) // 64) if k >= 0 and table.is_set[k] else 0
        for k in members.column.tolist()
    ]
    word = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    return Sides(
        np.zeros((n_boxes, g, 3), np.int32),
        np.zeros((n_boxes, int(word[-1])), np.uint64),
        word,
        np.zeros(n_boxes, np.int32),
    )


def fill_boxes(table, members):
    """Return the sides of all boxes, and where the pairs of a box and the boxes of a pair start.

    The latter are (n_boxes + 1,) and (n_pairs + 1,).
    """
    n_pairs = int(members.pair.max(initial=-1)) + 1
    sides = new_sides(table, members)
    sizes, counts = np.zeros(len(table.values), np.int64), np.zeros(n_pairs, np.int64)
    _fill_sides(table, members, sides, sizes, counts, new_path(table), new_ranks(members))
    return sides, *(np.concatenate([[0], np.cumsum(each)]) for each in (sizes, counts))


def by_pair(table, members, first, weights):
    """Return the boxes of the first pair, of the second one, …, and their weights E_bjk."""
    box, both = np.zeros(first[-1], np.int32), np.zeros(first[-1])
    path = new_path(table)
    _list_pairs(
        table, members, weights, first[:-1].copy(), box, both, path.node_at, path.turn,
        new_ranks(members),
    )  # fmt: skip
    return box, both


@kernel
def _fill_sides(table, members, sides, sizes, counts, path, ranks):
    nodes, roots, _, sets, offset, is_set, _ = table
    owner, column, pair = members
    intervals, members_of, word, output = sides
    node_at, turn, interval, allowed, saved, saved_allowed = path
    on_path, rank, listed = ranks
    for t in range(roots.shape[0]):
        n = np.int64(0)
        level = start_walk(roots[t, 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            if nodes[node, COLUMN] < 0:
                box = nodes[node, LEFT]
                output[box] = roots[t, 1]
                sizes[box] = n * (n - 1) // 2
                for i in range(n):
                    a = listed[i]
                    for j in range(i):
                        p = pair[a, listed[j]]
                        if p >= 0:
                            counts[p] += 1
                    k = column[a]
                    if k < 0:
                        continue
                    if is_set[k]:
                        for w in range(n_words(offset[k + 1] - offset[k])):
                            members_of[box, word[a] + w] = allowed[k, w]
                    else:
                        intervals[box, a, LOW] = interval[LOW, k]
                        intervals[box, a, HIGH] = interval[HIGH, k]
                        intervals[box, a, ADMITS] = interval[ADMITS, k]
                level -= 1
                continue
            a = owner[nodes[node, COLUMN]]
            now = next_turn(
                nodes, sets, offset, is_set,
                node_at, turn, interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 1:
                n = enter(a, n, on_path, rank, listed)
            if now == 3:
                n = leave(a, n, on_path)
                level -= 1
                continue
            level = go_down(nodes[node, now], node_at, turn, level)


@kernel
def _list_pairs(table, members, weights, cursor, box_of, weight_of, node_at, turn, ranks):
    nodes, roots, _, _, _, _, _ = table
    _, both, start = weights
    owner, _, pair = members
    on_path, rank, listed = ranks
    for t in range(roots.shape[0]):
        n = np.int64(0)
        level = start_walk(roots[t, 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            if nodes[node, COLUMN] < 0:
                box = nodes[node, LEFT]
                for i in range(n):
                    for j in range(i):
                        p = pair[listed[i], listed[j]]
                        if p >= 0:
                            box_of[cursor[p]] = box
                            weight_of[cursor[p]] = both[start[box] + i * (i - 1) // 2 + j]
                            cursor[p] += 1
                level -= 1
                continue
            a = owner[nodes[node, COLUMN]]
            turn[level] += 1
            now = turn[level]
            if now == 1:
                n = enter(a, n, on_path, rank, listed)
            if now == 3:
                n = leave(a, n, on_path)
                level -= 1
                continue
            level = go_down(nodes[node, now], node_at, turn, level)
