"""The measure of every box under a product of one-dimensional measures of any sign and mass.

A box weighs ∏_i m_i over all columns, m_i the mass of its codes in column i: of all codes where it
has no condition. Signed masses may cancel on a path and not below it, so that a path is left only
where nothing has mass, by the masses' absolute values.
"""

import numpy as np

from skattr.kernels.boxes.box_products import mass_on_path
from skattr.kernels.boxes.layout import (
    COLUMN,
    LEFT,
    add_total,
    go_down,
    new_path,
    next_turn,
    start_walk,
)
from skattr.kernels.compiled import kernel


def walk(table, trees, owners, cumulated, sums):
    """Add all boxes of some trees that have splits.

    cumulated (2, n_codes): for each column the mass of code 0, then the running mass of the others;
    and the same of absolute values.
    """
    mass = np.empty(len(table.is_set))
    saved_mass = np.empty(table.depth + 2)
    _walk(table, trees, cumulated, sums, new_path(table), mass, saved_mass)


@kernel
def _walk(table, trees, cumulated, sums, path, mass, saved_mass):
    nodes, roots, values, sets, offset, is_set, _ = table
    _, _, total, box_weights = sums
    node_at, turn, interval, allowed, saved, saved_allowed = path
    mass_of, size_of = cumulated[0], cumulated[1]
    for k in range(mass.shape[0]):  # of each column's codes on the path
        mass[k] = mass_on_path(k, offset, is_set, interval, allowed, mass_of)
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
            elif now == 3:
                mass[k] = saved_mass[level]
                level -= 1
                continue
            child = nodes[node, now]
            if mass_on_path(k, offset, is_set, interval, allowed, size_of) == 0.0:
                continue
            mass[k] = mass_on_path(k, offset, is_set, interval, allowed, mass_of)
            if nodes[child, COLUMN] >= 0:
                level = go_down(child, node_at, turn, level)
                continue
            weight = 1.0
            for c in range(mass.shape[0]):
                weight *= mass[c]
            add_total(values, nodes[child, LEFT], output, weight, total, box_weights)
