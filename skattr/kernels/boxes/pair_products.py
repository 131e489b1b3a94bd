"""The measure of every box under a product of laws, leaving out one or two attributions.

With m_i the mass of the box's codes in the columns of attribution i, a box weighs ∏_{i ≠ j,k} m_i
without the conditions on j and k (docs/mathematics.md, sections 3 and 11). A box costs the number
of pairs on its path; there is no division.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.box_products import mass_on_path
from skattr.kernels.boxes.layout import (
    COLUMN,
    LEFT,
    go_down,
    new_path,
    next_turn,
    start_walk,
)
from skattr.kernels.boxes.pair_layout import enter, leave, new_ranks
from skattr.kernels.compiled import kernel


class PathMasses(NamedTuple):
    """The masses on a path."""

    of_column: np.ndarray  # (d,) of each column's codes on the path
    saved: np.ndarray  # (levels,) the mass of the level's column above it
    factor: np.ndarray  # (g + 1,) of each attribution; last, of columns that are in no pair
    before: np.ndarray  # (g + 1,) products of the factors before one on the path
    after: np.ndarray  # (g + 1,) products of the factors from one on


def walk(table, trees, members, cumulated, share, weights):
    """Add share times the weights of all boxes of some trees that have splits.

    cumulated (n_codes,): for each column the mass of code 0, then the running mass of the others.
    """
    d, g, levels = len(table.is_set), len(members.column), table.depth + 2
    masses = PathMasses(np.ones(d), np.zeros(levels), *np.ones((3, g + 1)))
    _walk(
        table, trees, members, cumulated, share, weights, new_path(table), new_ranks(members),
        masses,
    )  # fmt: skip


@kernel
def _walk(table, trees, members, cumulated, share, weights, path, ranks, masses):
    nodes, roots, _, sets, offset, is_set, _ = table
    owner, _, _ = members
    singles, both, first = weights
    node_at, turn, interval, allowed, saved, saved_allowed = path
    on_path, rank, listed = ranks
    mass, saved_mass, factor, before, after = masses
    none = singles.shape[1] - 1
    for i in range(trees.shape[0]):
        n = np.int64(0)
        level = start_walk(roots[trees[i], 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            if nodes[node, COLUMN] < 0:
                box = nodes[node, LEFT]
                for a in range(none + 1):
                    factor[a] = 1.0
                for k in range(owner.shape[0]):
                    factor[owner[k] if owner[k] >= 0 else none] *= mass[k]
                after[n] = factor[none] * share
                for r in range(n - 1, -1, -1):
                    after[r] = after[r + 1] * factor[listed[r]]
                for a in range(none + 1):
                    singles[box, a] += after[0]
                at = first[box]
                for r in range(n):
                    before[r + 1] = before[r] * factor[listed[r]]
                    singles[box, listed[r]] += before[r] * after[r + 1] - after[0]
                    product = after[r + 1]  # of the factors behind q, without r
                    for q in range(r - 1, -1, -1):
                        both[at + r * (r - 1) // 2 + q] += before[q] * product
                        product *= factor[listed[q]]
                level -= 1
                continue
            k = nodes[node, COLUMN]
            now = next_turn(
                nodes, sets, offset, is_set,
                node_at, turn, interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 1:
                saved_mass[level] = mass[k]
                n = enter(owner[k], n, on_path, rank, listed)
            if now == 3:
                mass[k] = saved_mass[level]
                n = leave(owner[k], n, on_path)
                level -= 1
                continue
            mass[k] = mass_on_path(k, offset, is_set, interval, allowed, cumulated)
            level = go_down(nodes[node, now], node_at, turn, level)
