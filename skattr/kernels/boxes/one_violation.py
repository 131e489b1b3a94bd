"""Push all background rows down all trees, allowing them to disagree in one attribution.

For a box b and an attribution j let A_b be the rows that meet every condition of b, and E_{b,j}
those that meet every condition except perhaps those on j. The weight of b in the partial dependence
of j is the weight of E_{b,j} where the explained value meets the conditions on j, else 0
(docs/mathematics.md, section 3). Both are sets of rows, kept as bits: going to a child that asks
for rows in S,

    A ← A ∩ S,   E_j ← E_j ∩ S for j ≠ g,   E_g ← E_g  (A, if g had no condition so far)

where g is the attribution of the split.
A node costs (attributions on the path + 1) · rows / 64 word operations,
and a subtree that no row reaches is left out. The set S of an ordered split is a prefix of the rows
sorted by code: the nearest of the stored prefixes, plus or minus a few rows.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import (
    ALL,
    ONE,
    WORD,
    ZERO,
    as_words,
    drop_run,
    end_of_run,
    lowest,
    n_words,
    restrict,
    tail,
    weigh,
)
from skattr.kernels.boxes.layout import (
    COLUMN,
    LEFT,
    MISSING,
    SPLIT,
    add_own,
    add_total,
    narrow,
    new_path,
)
from skattr.kernels.compiled import inlined, kernel
from skattr.kernels.lines.vectors import aligned_zeros

STRIDE = 256  # rows between two stored prefixes


class IndexedRows(NamedTuple):
    """A block of background rows, sorted by code in each column."""

    codes: np.ndarray  # (d, n)
    order: np.ndarray  # (d · n,) the rows of column 0 by code, then those of column 1, …
    start: np.ndarray  # (n_codes + 1,) where in `order` the rows of a code begin
    prefixes: np.ndarray  # (d, n // STRIDE + 1, words) the first 0, STRIDE, 2 STRIDE, … rows
    missing: np.ndarray  # (d, words) the rows of code 0
    weights: np.ndarray  # (n,)
    equal: bool  # whether all weights are the same


class Sets(NamedTuple):
    """The rows at each level of the path: in slot 0 the set A, in the others the sets E."""

    stack: np.ndarray  # (levels, n_slots, words)
    side: np.ndarray  # (levels + 1, words) the rows that each split sends left; behind it, all
    active: np.ndarray  # (levels, n_slots + 1) the attributions of the sets E
    n_sets: np.ndarray  # (levels,)


def index_rows(codes, weights, offset, places=None, n_places=0):
    """Return the IndexedRows of a block; places (n,), if any, are those of the rows in sets."""
    d, n = codes.shape
    start = np.zeros(offset[-1] + 1, np.int64)
    order = np.empty((d, n), np.int32)
    for k in range(d):
        few = offset[k + 1] - offset[k] <= 2**16  # small integers sort fast
        column = codes[k].astype(np.uint16) if few else codes[k]
        start[offset[k] + 1 : offset[k + 1] + 1] = np.bincount(
            codes[k], minlength=offset[k + 1] - offset[k]
        )
        order[k] = np.argsort(column, kind="stable")
    equal = bool((weights == weights[0]).all())
    missing = codes == 0
    if places is not None:
        order = places.astype(np.int32)[order]
        placed, missing = missing, np.zeros((d, n_places), np.bool_)
        missing[:, places] = placed
        rows, weights = weights, np.zeros(n_places)
        weights[places] = rows
        if equal:
            weights[0] = rows[0]  # the weight of every row
    return IndexedRows(
        codes,
        order.ravel(),
        np.cumsum(start),
        _prefixes(order, missing.shape[1]),
        as_words(missing),
        weights,
        equal,
    )


def _prefixes(order, n_places):
    """Return the sets of the first 0, STRIDE, 2 STRIDE, … rows of each column's order."""
    d, n = order.shape
    n_strides, n_words = n // STRIDE, -(-n_places // WORD)
    prefixes = np.zeros((d, n_strides + 1, n_words), np.uint64)
    order = order[:, : n_strides * STRIDE]
    first_word = np.arange(1, n_strides + 1).repeat(STRIDE) * n_words  # of the set a row is new in
    bits = ONE << np.arange(WORD, dtype=np.uint64)
    for k in range(d):  # bits of different rows add up to their union
        words = first_word + (order[k] >> 6)
        np.add.at(prefixes[k].reshape(-1), words, bits.take(order[k] & 63))
    for i in range(2, n_strides + 1):
        np.bitwise_or(prefixes[:, i - 1], prefixes[:, i], out=prefixes[:, i])
    return prefixes


@inlined
def fill_side(nodes, node, sets, offset, is_set, order, start, prefixes, missing, side, level):
    """Fill side with the rows that a split sends left: rows that are stored, and a few others."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    base = offset[k]
    begin = start[base]
    n_codes = offset[k + 1] - base
    unordered = is_set[k] != 0
    nearest = low = high = n_left = 0
    rest = dropped = ZERO
    if unordered:
        for w in range(n_words(n_codes)):
            word = sets[split + w]
            while word != ZERO:
                first = base + 64 * w
                n_left += start[first + end_of_run(word)] - start[first + lowest(word)]
                word = drop_run(word)
    else:
        end = start[base + split + 1] - begin
        nearest = (end + STRIDE // 2) // STRIDE
        if nearest == prefixes.shape[1]:
            nearest -= 1
        low = begin + nearest * STRIDE
        high = begin + end
        if low > high:  # rows to take out, not to add
            low, high = high, low
        if not nodes[node, MISSING]:
            dropped = ALL
            if low < start[base + 1]:
                low = start[base + 1]
    # of a set, the rows of the smaller side are written down, those of the other are what is left
    if 2 * n_left > start[offset[k + 1]] - begin:
        rest = ALL
    for w in range(side.shape[1]):
        side[level, w] = (prefixes[k, nearest, w] ^ rest) & ~(missing[k, w] & dropped)
    for w in range(n_words(n_codes) if unordered else 1):
        word = (sets[split + w] ^ rest) & tail(n_codes, w) if unordered else ONE
        while word != ZERO:
            if unordered:
                low = start[base + 64 * w + lowest(word)]
                high = start[base + 64 * w + end_of_run(word)]
            for i in range(low, high):
                side[level, order[i] >> 6] ^= ONE << np.uint64(order[i] & 63)
            word = drop_run(word)


@inlined
def slot_of(active, level, n, g):
    """Return the slot of E_g, n if it is A, or -1 if the column of a split has no attribution.

    It is A before the first condition on g; where it was dropped as empty, A is empty too.
    """
    slot = n if g >= 0 else -1
    for s in range(1, n):
        if active[level, s] == g:
            slot = s
    return slot


@inlined
def restrict_sets(stack, side, active, level, n, own_slot, g, turn):
    """Fill the sets of the level below, for a child that has splits; return how many, 0 if empty.

    `own_slot` is the slot of E_g, which a split on g leaves as it is; the others are restricted.
    """
    count = np.int64(0)
    any_row = False
    for s in range(n + (own_slot == n)):
        slot = s if s < n else 0  # the first condition on g: E_g is A
        free = s == own_slot  # the split puts no condition on these rows
        row = side.shape[0] - 1 if free else level
        flip = ALL if turn == 2 and not free else ZERO
        kept = restrict(stack, level, slot, side, row, flip, count)
        any_row |= kept
        if kept or s == 0:
            active[level + 1, count] = active[level, s] if s < n else g
            count += 1
    return count if any_row else np.int64(0)


def new_sets(table, owners, n, all_rows=None):
    """Return the sets at a root, where all of n rows are in A, in the first places by default."""
    all_rows = as_words(np.ones(n, np.bool_)) if all_rows is None else all_rows
    levels = table.depth + 2
    n_slots = min(len(owners.single), table.depth + 1) + 1
    stack = aligned_zeros(levels, n_slots, len(all_rows)).view(np.uint64)
    stack[0, 0] = all_rows
    side = aligned_zeros(levels + 1, len(all_rows)).view(np.uint64)
    side[:] = ALL
    return Sets(stack, side, np.zeros((levels, n_slots + 1), np.int32), np.ones(levels, np.int32))


def walk(table, trees, owners, rows, sums):
    """Add the contributions of one block of rows to the boxes of some trees that have splits."""
    sets = new_sets(table, owners, rows.codes.shape[1])
    _walk(table, trees, owners, rows, sums, new_path(table), sets)


@kernel
def _walk(table, trees, owners, rows, sums, path, row_sets):
    nodes, roots, values, sets, offset, is_set, _ = table
    owner, single, group = owners
    _, order, start, prefixes, missing, weights, equal = rows
    jumps, constant, total, box_weights = sums
    node_at, turn, interval, allowed, saved, saved_allowed = path
    stack, side, active, n_sets = row_sets
    everything = side.shape[0] - 1
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        # written out: with layout's start_walk, next_turn and go_down `fit` of an unlimited forest
        # took 3 to 6 % longer, and the first `fit` on a machine 0.1 s of 2.1 s
        level = np.int64(0)  # for a literal 0 numba compiles all below once more
        node_at[0] = roots[t, 0]
        turn[0] = 0
        while level >= 0:
            node = node_at[level]
            turn[level] += 1
            now = turn[level]
            if now == 1:
                fill_side(
                    nodes, node, sets, offset, is_set,
                    order, start, prefixes, missing, side, level,
                )  # fmt: skip
            narrow(
                nodes, node, now, sets, offset, is_set,
                interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 3:
                level -= 1
                continue
            child = nodes[node, now]
            g = owner[nodes[node, COLUMN]]
            n = n_sets[level]
            own_slot = slot_of(active, level, n, g)
            if nodes[child, COLUMN] >= 0:
                count = restrict_sets(stack, side, active, level, n, own_slot, g, now)
                if count > 0:
                    level += 1
                    n_sets[level] = count
                    node_at[level] = child
                    turn[level] = 0
                continue
            weight = 0.0
            for s in range(n + (own_slot == n)):
                slot = s if s < n else 0  # the first condition on g: E_g is A
                j = active[level, s] if s < n else g
                free = s == own_slot  # the split puts no condition on these rows
                row = everything if free else level
                flip = ALL if now == 2 and not free else ZERO
                some = weigh(stack, level, slot, side, row, flip, weights, equal)
                if s == 0:
                    weight = some
                    add_total(values, nodes[child, LEFT], output, weight, total, box_weights)
                else:
                    add_own(
                        values, nodes[child, LEFT], output, weight, j, some, offset, is_set,
                        interval, allowed, single, group, jumps, constant, box_weights,
                    )  # fmt: skip
