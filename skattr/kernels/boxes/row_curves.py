"""Push rows down all trees, each with one column free: the sum of the boxes as steps, row by row.

The sets A and E_j are those of one_violation.py: rows that meet every condition of a box, and rows
that meet every condition except perhaps those on column j. Here a box does not add a weight to sums
over rows but its value to every single row of E_j, between the first and the last code of j in the
box (docs/mathematics.md, section 3). Rows stand on the last axis, side by side, so that a box
writes into few cache lines.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import ALL, ONE, ZERO, flip_to_fewer, lowest, n_words, tail
from skattr.kernels.boxes.layout import ADMITS, COLUMN, HIGH, LEFT, LOW, narrow, new_path
from skattr.kernels.boxes.one_violation import fill_side, new_sets, restrict_sets, slot_of
from skattr.kernels.compiled import inlined, kernel


class RowSteps(NamedTuple):
    """What the kernel adds to; k outputs, g columns, n rows.

    The steps of column j in row r are fit + own_j + its jumps, cumulated where codes have an order.
    """

    fit: np.ndarray  # (k, 1, n) the sum of the boxes that a row is in
    own: np.ndarray  # (k, g, n) less those with conditions on column j
    jumps: np.ndarray  # (k, codes of the g columns + 1, n); the last one is for jumps behind them
    first: np.ndarray  # (g,) where the codes of each column start in `jumps`


def walk(table, trees, owners, rows, steps):
    """Add the boxes of some trees that have splits; each attribution is one column."""
    sets = new_sets(table, owners, rows.codes.shape[1])
    _walk(table, trees, owners.owner, owners.single, rows, steps, new_path(table), sets)


@inlined
def _add(stack, level, slot, side, row, flip, target, at, output, values, box, sign):
    """Add a box to the rows of a set ∩ side[row], at one place of the target."""
    for w in range(stack.shape[2]):
        word = stack[level, slot, w] & (side[row, w] ^ flip)
        while word != ZERO:
            r = 64 * w + lowest(word)
            word &= word - ONE
            for o in range(values.shape[1]):
                target[output + o, at, r] += sign * values[box, o]


@inlined
def _add_between(stack, level, slot, side, row, flip, jumps, low, behind, output, values, box):
    """Add a box to the rows of a set ∩ side[row], from a code up to another one."""
    for w in range(stack.shape[2]):
        word = stack[level, slot, w] & (side[row, w] ^ flip)
        while word != ZERO:
            r = 64 * w + lowest(word)
            word &= word - ONE
            for o in range(values.shape[1]):
                jumps[output + o, low, r] += values[box, o]
                jumps[output + o, behind, r] -= values[box, o]


@kernel
def _walk(table, trees, owner, single, rows, steps, path, row_sets):
    nodes, roots, values, sets, offset, is_set, _ = table
    _, order, start, prefixes, missing, _, _ = rows
    fit, own, jumps, first = steps
    node_at, turn, interval, allowed, saved, saved_allowed = path
    stack, side, active, n_sets = row_sets
    everything = side.shape[0] - 1
    last = jumps.shape[1] - 1
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        # written out as in one_violation.py, where the cost of sharing it is noted
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
            box = nodes[child, LEFT]
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
            # the rows of A, which the split restricts
            all_flip = ALL if now == 2 else ZERO
            for s in range(n + (own_slot == n)):
                slot = s if s < n else 0  # the first condition on g: E_g is A
                j = active[level, s] if s < n else g
                free = s == own_slot  # the split puts no condition on these rows
                row = everything if free else level
                flip = all_flip if not free else ZERO
                if s == 0:
                    _add(stack, level, 0, side, row, flip, fit, 0, output, values, box, 1.0)
                    continue
                _add(stack, level, 0, side, level, all_flip, own, j, output, values, box, -1.0)
                k = single[j]
                base = first[j]
                n_codes = offset[k + 1] - offset[k]
                if is_set[k]:
                    fewer = flip_to_fewer(allowed, k, n_codes)
                    sign = 1.0
                    if fewer != ZERO:  # add to all codes, and subtract from those not in the box
                        sign = -1.0
                        _add(stack, level, slot, side, row, flip, own, j, output, values, box, 1.0)
                    for w in range(n_words(n_codes)):
                        word = (allowed[k, w] ^ fewer) & tail(n_codes, w)
                        while word != ZERO:
                            c = base + 64 * w + lowest(word)
                            word &= word - ONE
                            _add(
                                stack, level, slot, side, row, flip, jumps, c, output, values,
                                box, sign,
                            )  # fmt: skip
                    continue
                low = interval[LOW, k]
                high = interval[HIGH, k]
                if low <= high:
                    behind = base + high + 1 if high + 1 < n_codes else last
                    _add_between(
                        stack, level, slot, side, row, flip, jumps, base + low, behind, output,
                        values, box,
                    )  # fmt: skip
                if interval[ADMITS, k]:
                    _add(stack, level, slot, side, row, flip, jumps, base, output, values, box, 1.0)
