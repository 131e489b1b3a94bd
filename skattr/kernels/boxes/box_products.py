"""The measure of every box under a product of one-dimensional laws, leaving out one attribution.

With m_i the mass of the box's codes in column i, a box weighs ∏_{i ≠ j} m_i for attribution j where
the explained value meets the conditions on j, and ∏ m_i in total: prefix and suffix products over
the columns on the path, no division (docs/mathematics.md, section 3). A box costs its number of
columns.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import ONE, ZERO, drop_run, end_of_run, lowest, n_words
from skattr.kernels.boxes.layout import (
    ADMITS,
    COLUMN,
    HIGH,
    LEFT,
    LOW,
    add_own,
    add_total,
    go_down,
    new_path,
    next_turn,
    start_walk,
)
from skattr.kernels.compiled import inlined, kernel


@inlined
def mass_on_path(k, offset, is_set, interval, allowed, cumulated):
    """Return the mass of the path's codes in column k."""
    base = offset[k]
    mass = 0.0
    if is_set[k]:
        for w in range(n_words(offset[k + 1] - base)):
            word = allowed[k, w]
            if w == 0:
                mass += cumulated[base] * (word & ONE)
                word &= ~ONE
            while word != ZERO:  # a run of ones is an interval of codes
                first = base + 64 * w + lowest(word)
                before = cumulated[first - 1] if first > base + 1 else 0.0
                mass += cumulated[base + 64 * w + end_of_run(word) - 1] - before
                word = drop_run(word)
        return mass
    low = interval[LOW, k]
    if low <= interval[HIGH, k]:
        before = cumulated[base + low - 1] if low > 1 else 0.0
        mass = cumulated[base + interval[HIGH, k]] - before
    if interval[ADMITS, k]:
        mass += cumulated[base]
    return mass


@inlined
def _gather(owner, columns, first, level, mass, stamp, now, factor, used):
    """Multiply the masses on the path into a factor per attribution, and one for all others.

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


class Masses(NamedTuple):
    """The masses on a path."""

    of_column: np.ndarray  # (d,) of each column's codes on the path
    saved: np.ndarray  # (levels,) the mass of the level's column above it
    columns: np.ndarray  # (levels,)
    is_first: np.ndarray  # (levels,) whether a level's column has no split above
    on_path: np.ndarray  # (d,) number of splits on a column
    factor: np.ndarray  # (g + 1,) of each attribution; last, of columns that belong to none
    used: np.ndarray  # (levels,) attributions on the path
    after: np.ndarray  # (levels,) products of the factors from one on
    stamp: np.ndarray  # (g,) when an attribution was met last


def walk(table, trees, owners, cumulated, sums):
    """Add all boxes of some trees that have splits.

    cumulated (n_codes,): for each column the mass of code 0, then the running mass of the others.
    """
    d, g, levels = len(table.is_set), len(owners.single), table.depth + 2
    masses = Masses(
        np.ones(d), np.zeros(levels), np.zeros(levels, np.int32), np.zeros(levels, np.bool_),
        np.zeros(d, np.int32), np.ones(g + 1), np.zeros(levels, np.int32), np.zeros(levels),
        np.zeros(g, np.int64),
    )  # fmt: skip
    _walk(table, trees, owners, cumulated, sums, new_path(table), masses)


@kernel
def _walk(table, trees, owners, cumulated, sums, path, masses):
    nodes, roots, values, sets, offset, is_set, _ = table
    owner, single, group = owners
    jumps, constant, total, box_weights = sums
    node_at, turn, interval, allowed, saved, saved_allowed = path
    mass, saved_mass, columns, is_first, on_path, factor, used, after, stamp = masses
    none = single.shape[0]
    time = 0
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        level = start_walk(roots[t, 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            k = nodes[node, COLUMN]
            now = next_turn(
                nodes, sets, offset, is_set,
                node_at, turn, interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 1:
                saved_mass[level] = mass[k]
                columns[level] = k
                is_first[level] = on_path[k] == 0
                on_path[k] += 1
            elif now == 3:
                mass[k] = saved_mass[level]
                on_path[k] -= 1
                level -= 1
                continue
            child = nodes[node, now]
            mass[k] = mass_on_path(k, offset, is_set, interval, allowed, cumulated)
            time += 1
            n_used = _gather(owner, columns, is_first, level, mass, stamp, time, factor, used)
            if n_used < 0:
                continue
            if nodes[child, COLUMN] >= 0:
                level = go_down(child, node_at, turn, level)
                continue
            box = nodes[child, LEFT]
            after[n_used] = factor[none]
            for u in range(n_used - 1, -1, -1):
                after[u] = after[u + 1] * factor[used[u]]
            weight = after[0]
            add_total(values, box, output, weight, total, box_weights)
            before = 1.0
            for u in range(n_used):
                j = used[u]
                add_own(
                    values, box, output, weight, j, before * after[u + 1], offset, is_set,
                    interval, allowed, single, group, jumps, constant, box_weights,
                )  # fmt: skip
                before *= factor[j]
