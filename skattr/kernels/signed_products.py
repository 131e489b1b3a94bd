"""The measure of every box under a product of one-dimensional measures of any sign and mass.

A box weighs ∏_i m_i over all columns, m_i the mass of its codes in column i: of all codes where it
has no condition. Signed masses may cancel on a path and not below it, so that a path is left only
where nothing has mass, by the masses' absolute values.
"""

import numpy as np
from numba import njit

from skattr.kernels.box_products import mass_on_path
from skattr.kernels.boxes import COLUMN, LEFT, RIGHT, add_total, go_back, go_left, go_right, whole


@njit(cache=True, nogil=True)
def walk(table, trees, owners, cumulated, sums):
    """Add all boxes of some trees.

    cumulated (2, n_codes): for each column the mass of code 0, then the running mass of the others;
    and the same of absolute values.
    """
    nodes, roots, values, sets, offset, is_set, depth = table
    _jumps, _constant, total, box_weights = sums
    mass_of, size_of = cumulated[0], cumulated[1]
    d = is_set.shape[0]
    levels = depth + 2
    node_at = np.zeros(levels, np.int32)
    phase = np.zeros(levels, np.int8)
    saved_mass = np.zeros(levels)
    interval, saved, allowed, saved_allowed = whole(offset, is_set, levels)
    mass = np.empty(d)  # of each column's codes on the path
    for k in range(d):
        mass[k] = mass_on_path(k, offset, is_set, interval, allowed, mass_of)
    for t in trees:
        output = roots[t, 1]
        level = 0
        node_at[0] = roots[t, 0]
        phase[0] = 0
        if nodes[roots[t, 0], COLUMN] < 0:  # a tree that is one box
            add_total(values, nodes[roots[t, 0], LEFT], output, mass.prod(), total, box_weights)
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
                level -= 1
                continue
            if mass_on_path(k, offset, is_set, interval, allowed, size_of) == 0.0:
                continue
            mass[k] = mass_on_path(k, offset, is_set, interval, allowed, mass_of)
            if nodes[child, COLUMN] >= 0:
                level += 1
                node_at[level] = child
                phase[level] = 0
                continue
            add_total(values, nodes[child, LEFT], output, mass.prod(), total, box_weights)
