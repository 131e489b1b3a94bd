"""Push all background rows down all trees, allowing them to disagree in two attributions.

For a box b let A_b be the rows that meet every condition, E_{b,j} those that meet every condition
except perhaps those on j, and E_{b,jk} those that meet every condition except perhaps those on j
and k. All are sets of rows, kept as bits (one_violation.py). Going to a child that asks for rows in
S, at a split on attribution g,

    A ← A ∩ S,   E_j ← E_j ∩ S,   E_jk ← E_jk ∩ S    for j, k ≠ g
    E_g ← E_g,   E_gk ← E_gk        (A and E_k, if g had no condition so far)

A node costs (1 + p + p (p - 1) / 2) · rows / 64 word operations, p the attributions on the path.
Only pairs that were asked for have sets. A subtree that no row reaches is left out.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import ALL, WORD, ZERO, restrict, weigh
from skattr.kernels.boxes.layout import COLUMN, LEFT, go_down, start_walk
from skattr.kernels.boxes.one_violation import fill_side
from skattr.kernels.boxes.pair_layout import enter, leave, new_ranks, place
from skattr.kernels.compiled import inlined, kernel


class PairSets(NamedTuple):
    """The rows at each level of the path: in slot 0 the set A, in the others the sets E."""

    stack: np.ndarray  # (levels, n_slots, words)
    side: np.ndarray  # (levels + 1, words) the rows that each split sends left; behind it, all
    which: np.ndarray  # (levels, n_slots, 2) the attributions of the sets E, -1 for none
    n_sets: np.ndarray  # (levels,)
    node_at: np.ndarray  # (levels,)
    turn: np.ndarray  # (levels,)


def new_pair_sets(table, members, n):
    """Return the sets at a root, where all of n rows are in A."""
    levels = table.depth + 2
    most = min(len(members.column), table.depth + 1)
    asked = members.pair >= 0
    n_slots = 1 + most + min(int(asked.sum()) // 2, most * (most - 1) // 2)
    stack = np.zeros((levels, n_slots, -(-n // WORD)), np.uint64)
    stack[0, 0] = ALL
    if n % WORD:
        stack[0, 0, -1] = (1 << n % WORD) - 1
    side = np.full((levels + 1, stack.shape[2]), ALL, np.uint64)
    which = np.full((levels, n_slots, 2), -1, np.int32)
    return PairSets(
        stack, side, which, np.ones(levels, np.int32), np.zeros(levels, np.int32),
        np.zeros(levels, np.int8),
    )  # fmt: skip


def walk(table, trees, members, rows, weights):
    """Add the weights of one block of rows to the boxes of some trees that have splits."""
    sets = new_pair_sets(table, members, rows.codes.shape[1])
    _walk(table, trees, members, rows, weights, sets, new_ranks(members))


@inlined
def _add(box, a, b, some, weight, singles, both, start, rank):
    """Add the weight of a set of rows to a box."""
    if b >= 0:
        both[start[box] + place(rank, a, b)] += some
    elif a >= 0:
        singles[box, a] += some - weight
    else:
        for j in range(singles.shape[1]):
            singles[box, j] += some


@kernel
def _walk(table, trees, members, rows, weights_of, row_sets, ranks):
    nodes, roots, _, sets, offset, is_set, _ = table
    owner, _, pair = members
    _, order, start, prefixes, missing, weights, equal = rows
    singles, both, first = weights_of
    stack, side, which, n_sets, node_at, turn = row_sets
    on_path, rank, listed = ranks
    everything = side.shape[0] - 1
    for i in range(trees.shape[0]):
        n_path = np.int64(0)
        level = start_walk(roots[trees[i], 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            turn[level] += 1
            now = turn[level]
            g = owner[nodes[node, COLUMN]]
            if now == 1:
                fill_side(
                    nodes, node, sets, offset, is_set,
                    order, start, prefixes, missing, side, level,
                )  # fmt: skip
                n_path = enter(g, n_path, on_path, rank, listed)
            if now == 3:
                n_path = leave(g, n_path, on_path)
                level -= 1
                continue
            child = nodes[node, now]
            inner = nodes[child, COLUMN] >= 0
            box = nodes[child, LEFT]
            n = n_sets[level]
            is_new = g >= 0 and on_path[g] == 1
            count = np.int64(0)
            any_row = False
            weight = 0.0
            # the sets there are; then, at the first condition on g, E_g from A and E_gk from E_k
            for s in range(2 * n if is_new else n):
                slot = s if s < n else s - n
                a = which[level, slot, 0]
                b = which[level, slot, 1]
                if s >= n:
                    if b >= 0 or (a >= 0 and pair[a, g] < 0):
                        continue
                    if a < 0:
                        a = g
                    else:
                        b = g
                free = g >= 0 and (a == g or b == g)
                row = everything if free else level
                flip = ALL if now == 2 and not free else ZERO
                if inner:
                    kept = restrict(stack, level, slot, side, row, flip, count)
                    any_row |= kept
                    if kept or s == 0:
                        which[level + 1, count, 0] = a
                        which[level + 1, count, 1] = b
                        count += 1
                    continue
                some = weigh(stack, level, slot, side, row, flip, weights, equal)
                if s == 0:
                    weight = some
                _add(box, a, b, some, weight, singles, both, first, rank)
            if any_row:
                n_sets[level + 1] = count
                level = go_down(child, node_at, turn, level)
