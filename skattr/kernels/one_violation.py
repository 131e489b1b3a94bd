"""Push all background rows down all trees, allowing them to disagree in one attribution.

For a box b and an attribution j let A_b be the rows that meet every condition of b, and E_{b,j}
those that meet every condition except perhaps those on j. The weight of b in the partial
dependence of j is the weight of E_{b,j} where the explained value meets the conditions on j, else 0
(MATH.md, section 3). Both are sets of rows, kept as bits: going to a child that asks for rows in S,

    A ← A ∩ S,   E_j ← E_j ∩ S for j ≠ g,   E_g ← E_g  (A, if g had no condition so far)

where g owns the split. So a node costs (attributions on the path + 1) · rows / 64 word operations,
and a subtree that no row reaches is left out. The set S of an ordered split is a prefix of the rows
sorted by code: the nearest of the stored prefixes, plus or minus a few rows.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skattr.kernels.bits import ALL, ONE, ZERO, restrict, weigh
from skattr.kernels.boxes import (
    COLUMN,
    LEFT,
    MISSING,
    RIGHT,
    SPLIT,
    add_own,
    add_total,
    go_back,
    go_left,
    go_right,
    whole,
)

STRIDE = 256  # rows between two stored prefixes


class Rows(NamedTuple):
    """A block of background rows, sorted by code in each column."""

    codes: np.ndarray  # (d, n)
    order: np.ndarray  # (d, n) rows by code
    start: np.ndarray  # (n_codes,) number of rows with at most that code
    prefixes: np.ndarray  # (d, n // STRIDE + 1, words) the first 0, STRIDE, 2 STRIDE, … rows
    missing: np.ndarray  # (d, words) the rows of code 0
    weights: np.ndarray  # (n,)
    equal: bool  # whether all weights are the same


def index_rows(codes, weights, offset):
    """Return the Rows of a block."""
    d, n = codes.shape
    n_words = (n + 63) // 64
    rows = Rows(
        codes,
        np.empty((d, n), np.int32),
        np.empty(offset[-1], np.int32),
        np.zeros((d, n // STRIDE + 1, n_words), np.uint64),
        np.zeros((d, n_words), np.uint64),
        weights,
        bool((weights == weights[0]).all()),
    )
    _index(codes, offset, rows.order, rows.start, rows.prefixes, rows.missing)
    return rows


@njit(cache=True, nogil=True)
def _index(codes, offset, order, start, prefixes, missing):
    d, n = codes.shape
    for k in range(d):
        base = offset[k]
        for c in range(base, offset[k + 1]):
            start[c] = 0
        for r in range(n):
            start[base + codes[k, r]] += 1
        before = 0
        for c in range(base, offset[k + 1]):  # the place of the next row of a code ...
            here = start[c]
            start[c] = before
            before += here
        for r in range(n):  # ... which ends as the number of rows up to it
            place = base + codes[k, r]
            order[k, start[place]] = r
            start[place] += 1
        for i in range(start[base]):
            missing[k, order[k, i] >> 6] |= ONE << np.uint64(order[k, i] & 63)
        for p in range(1, prefixes.shape[1]):
            prefixes[k, p] = prefixes[k, p - 1]
            for i in range((p - 1) * STRIDE, p * STRIDE):
                prefixes[k, p, order[k, i] >> 6] |= ONE << np.uint64(order[k, i] & 63)


@njit(cache=True, nogil=True, inline="always")
def fill_side(nodes, node, sets, offset, is_set, order, start, prefixes, missing, side, level):
    """Fill side with the rows that a split sends left."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    base = offset[k]
    if is_set[k]:
        n_left = 0
        for c in range(offset[k + 1] - base):
            if sets[split + c]:
                n_left += start[base + c] - (start[base + c - 1] if c > 0 else 0)
        # the rows of the smaller side are written down, those of the other are what is left
        fewer = np.uint8(1 if 2 * n_left <= order.shape[1] else 0)
        rest = ZERO if fewer else ALL
        for w in range(side.shape[1]):
            side[level, w] = rest
        for c in range(offset[k + 1] - base):
            if sets[split + c] == fewer:
                for i in range(start[base + c - 1] if c > 0 else 0, start[base + c]):
                    side[level, order[k, i] >> 6] ^= ONE << np.uint64(order[k, i] & 63)
        return
    end = start[base + split]
    nearest = min((end + STRIDE // 2) // STRIDE, prefixes.shape[1] - 1)
    for w in range(side.shape[1]):
        side[level, w] = prefixes[k, nearest, w]
    at = nearest * STRIDE
    for i in range(min(at, end), max(at, end)):  # rows to add, or rows to take out
        side[level, order[k, i] >> 6] ^= ONE << np.uint64(order[k, i] & 63)
    if start[base] > 0 and not nodes[node, MISSING]:
        for w in range(side.shape[1]):
            side[level, w] &= ~missing[k, w]


@njit(cache=True, nogil=True)
def walk(table, trees, owners, rows, sums):
    """Add the contributions of one block of rows to the boxes of some trees."""
    nodes, roots, values, sets, offset, is_set, depth = table
    owner, single, group = owners
    codes, order, start, prefixes, missing, weights, equal = rows
    jumps, constant, total, box_weights = sums
    n = codes.shape[1]
    n_words = missing.shape[1]
    levels = depth + 2
    # the rows at each level of the path: in slot 0 the set A, in the others the sets E
    n_slots = min(single.shape[0], depth + 1) + 1
    stack = np.zeros((levels, n_slots, n_words), np.uint64)
    active = np.zeros((levels, n_slots), np.int32)  # the attributions of the sets E
    n_sets = np.ones(levels, np.int32)
    side = np.zeros((levels, n_words), np.uint64)
    everything = np.full((levels, n_words), ALL, np.uint64)
    node_at = np.zeros(levels, np.int32)
    phase = np.zeros(levels, np.int8)
    interval, saved, allowed, saved_allowed = whole(offset, is_set, levels)
    for r in range(n):
        stack[0, 0, r >> 6] |= ONE << np.uint64(r & 63)
    for t in trees:
        output = roots[t, 1]
        level = 0
        node_at[0] = roots[t, 0]
        phase[0] = 0
        if nodes[roots[t, 0], COLUMN] < 0:  # a tree that is one box
            weight = weigh(stack, 0, 0, everything, ZERO, weights, equal)
            add_total(values, nodes[roots[t, 0], LEFT], output, weight, total, box_weights)
            continue
        while level >= 0:
            node = node_at[level]
            g = owner[nodes[node, COLUMN]]
            phase[level] += 1
            if phase[level] == 1:
                fill_side(
                    nodes, node, sets, offset, is_set,
                    order, start, prefixes, missing, side, level,
                )  # fmt: skip
                go_left(
                    nodes, node, sets, offset, is_set,
                    interval, saved, allowed, saved_allowed, level,
                )  # fmt: skip
                child = nodes[node, LEFT]
                flip = ZERO
            elif phase[level] == 2:
                go_right(
                    nodes, node, sets, offset, is_set,
                    interval, saved, allowed, saved_allowed, level,
                )  # fmt: skip
                child = nodes[node, RIGHT]
                flip = ALL
            else:
                go_back(nodes, node, offset, is_set, interval, saved, allowed, saved_allowed, level)
                level -= 1
                continue
            mine = -1  # the slot of E_g; if it was dropped as empty, A is empty too, so E_g is A
            for s in range(1, n_sets[level]):
                if active[level, s] == g:
                    mine = s
            if nodes[child, COLUMN] >= 0:
                any_row = restrict(stack, level, 0, side, flip, 0)
                count = 1
                for s in range(1, n_sets[level]):
                    if s == mine:
                        kept = restrict(stack, level, s, everything, ZERO, count)
                    else:
                        kept = restrict(stack, level, s, side, flip, count)
                    if kept:
                        active[level + 1, count] = active[level, s]
                        count += 1
                if mine < 0 <= g and restrict(stack, level, 0, everything, ZERO, count):
                    active[level + 1, count] = g
                    count += 1
                if any_row or count > 1:
                    level += 1
                    n_sets[level] = count
                    node_at[level] = child
                    phase[level] = 0
                continue
            box = nodes[child, LEFT]
            weight = weigh(stack, level, 0, side, flip, weights, equal)
            add_total(values, box, output, weight, total, box_weights)
            for s in range(1, n_sets[level] + 1):
                if s < n_sets[level]:
                    j = active[level, s]
                    if s == mine:
                        except_j = weigh(stack, level, s, everything, ZERO, weights, equal)
                    else:
                        except_j = weigh(stack, level, s, side, flip, weights, equal)
                elif mine < 0 <= g:  # its first condition: E_g is A
                    j = g
                    except_j = weigh(stack, level, 0, everything, ZERO, weights, equal)
                else:
                    break
                add_own(
                    values, box, output, weight, j, except_j, offset, is_set,
                    interval, allowed, single, group, jumps, constant, box_weights,
                )  # fmt: skip
