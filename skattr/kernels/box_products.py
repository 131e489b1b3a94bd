"""The measure of every box under a product of one-dimensional laws, leaving out one attribution.

With m_i the mass of the box's codes in column i, a box weighs ∏_{i ≠ j} m_i for attribution j where
the explained value meets the conditions on j, and ∏ m_i in total: prefix and suffix products over
the columns on the path, no division (MATH.md, section 3). A box costs its number of columns.
"""

import numpy as np
from numba import njit

from skattr.kernels.boxes import (
    ADMITS,
    COLUMN,
    HIGH,
    LEFT,
    LOW,
    RIGHT,
    add_own,
    add_total,
    go_back,
    go_left,
    go_right,
    whole,
)


@njit(cache=True, nogil=True, inline="always")
def mass_on_path(k, offset, is_set, interval, allowed, cumulated):
    """Return the mass of the path's codes in column k."""
    base = offset[k]
    mass = 0.0
    if is_set[k]:
        for c in range(base, offset[k + 1]):
            if allowed[c]:
                mass += cumulated[c] - (cumulated[c - 1] if c > base + 1 else 0.0)
        return mass
    low = interval[LOW, k]
    if low <= interval[HIGH, k]:
        before = cumulated[base + low - 1] if low > 1 else 0.0
        mass = cumulated[base + interval[HIGH, k]] - before
    if interval[ADMITS, k]:
        mass += cumulated[base]
    return mass


@njit(cache=True, nogil=True, inline="always")
def _gather(owner, columns, first, level, mass, stamp, now, factor, used):
    """Multiply the masses on the path into one factor an attribution, those of none last.

    Returns the number of attributions used, or -1 if the path weighs 0 whatever is left out.
    """
    none = factor.shape[0] - 1
    factor[none] = 1.0
    n_used = 0
    for s in range(level + 1):
        if not first[s]:
            continue
        k = columns[s]
        a = owner[k]
        if a < 0:
            factor[none] *= mass[k]
        elif stamp[a] == now:
            factor[a] *= mass[k]
        else:
            stamp[a] = now
            factor[a] = mass[k]
            used[n_used] = a
            n_used += 1
    n_zero = 2 if factor[none] == 0.0 else 0
    for i in range(n_used):
        n_zero += factor[used[i]] == 0.0
    return n_used if n_zero < 2 else -1


@njit(cache=True, nogil=True)
def walk(table, trees, owners, cumulated, sums):
    """Add all boxes of some trees.

    cumulated (n_codes,): for each column the mass of code 0, then the running mass of the others.
    """
    nodes, roots, values, sets, offset, is_set, depth = table
    owner, single, group = owners
    jumps, constant, total, box_weights = sums
    d = is_set.shape[0]
    none = single.shape[0]
    levels = depth + 2
    mass = np.ones(d)  # of each column's codes on the path
    saved_mass = np.zeros(levels)
    columns = np.zeros(levels, np.int32)
    first = np.zeros(levels, np.bool_)  # whether a level's column has no split above
    on_path = np.zeros(d, np.int32)
    factor = np.ones(none + 1)
    used = np.zeros(levels, np.int32)
    after = np.zeros(levels)
    stamp = np.zeros(none, np.int64)
    now = 0
    node_at = np.zeros(levels, np.int32)
    phase = np.zeros(levels, np.int8)
    interval, saved, allowed, saved_allowed = whole(offset, is_set, levels)
    for t in trees:
        output = roots[t, 1]
        level = 0
        node_at[0] = roots[t, 0]
        phase[0] = 0
        if nodes[roots[t, 0], COLUMN] < 0:  # a tree that is one box
            add_total(values, nodes[roots[t, 0], LEFT], output, 1.0, total, box_weights)
            continue
        while level >= 0:
            node = node_at[level]
            k = nodes[node, COLUMN]
            phase[level] += 1
            if phase[level] == 1:
                go_left(
                    nodes, node, sets, offset, is_set,
                    interval, saved, allowed, saved_allowed, level,
                )  # fmt: skip
                saved_mass[level] = mass[k]
                columns[level] = k
                first[level] = on_path[k] == 0
                on_path[k] += 1
                child = nodes[node, LEFT]
            elif phase[level] == 2:
                go_right(
                    nodes, node, sets, offset, is_set,
                    interval, saved, allowed, saved_allowed, level,
                )  # fmt: skip
                child = nodes[node, RIGHT]
            else:
                go_back(nodes, node, offset, is_set, interval, saved, allowed, saved_allowed, level)
                mass[k] = saved_mass[level]
                on_path[k] -= 1
                level -= 1
                continue
            mass[k] = mass_on_path(k, offset, is_set, interval, allowed, cumulated)
            now += 1
            n_used = _gather(owner, columns, first, level, mass, stamp, now, factor, used)
            if n_used < 0:
                continue
            if nodes[child, COLUMN] >= 0:
                level += 1
                node_at[level] = child
                phase[level] = 0
                continue
            box = nodes[child, LEFT]
            after[n_used] = factor[none]
            for i in range(n_used - 1, -1, -1):
                after[i] = after[i + 1] * factor[used[i]]
            weight = after[0]
            add_total(values, box, output, weight, total, box_weights)
            before = 1.0
            for i in range(n_used):
                j = used[i]
                add_own(
                    values, box, output, weight, j, before * after[i + 1], offset, is_set,
                    interval, allowed, single, group, jumps, constant, box_weights,
                )  # fmt: skip
                before *= factor[j]
