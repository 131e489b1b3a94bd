"""Push rows down all trees, each with one column replaced by a law of its codes.

On the path of a row, the first split on column k is where the row with a random code of k may leave
it: from there on it goes both ways at splits on k, and as the row does at all others. A box that it
reaches counts with the mass of the codes that lead there, which depends on the node of the last
split on k alone: the masses of both sides of all splits are computed once.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.box_products import mass_on_path
from skattr.kernels.boxes.layout import (
    COLUMN,
    LEFT,
    RIGHT,
    go_down,
    goes_left,
    new_path,
    next_turn,
    start_walk,
)
from skattr.kernels.compiled import kernel


def side_masses(table, trees, cumulated):
    """Return the mass of the codes of a split's column that reach each side, (n_nodes, 2).

    cumulated (n_codes,): for each column the mass of code 0, then the running mass of the others.
    """
    masses = np.zeros((len(table.nodes), 2))
    _fill_masses(table, trees, cumulated, masses, new_path(table))
    return masses


@kernel
def _fill_masses(table, trees, cumulated, masses, path):
    nodes, roots, _, sets, offset, is_set, _ = table
    node_at, turn, interval, allowed, saved, saved_allowed = path
    for i in range(trees.shape[0]):
        level = start_walk(roots[trees[i], 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            now = next_turn(
                nodes, sets, offset, is_set,
                node_at, turn, interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 3:
                level -= 1
                continue
            k = nodes[node, COLUMN]
            masses[node, now - 1] = mass_on_path(k, offset, is_set, interval, allowed, cumulated)
            child = nodes[node, now]
            if nodes[child, COLUMN] >= 0:
                level = go_down(child, node_at, turn, level)


class Buffers(NamedTuple):
    """Buffers of the kernel."""

    met_at: np.ndarray  # (d,) the descent in which a column was met last
    met: np.ndarray  # (d,) the columns met on the path
    todo: np.ndarray  # (depth + 2,) nodes to go on from
    mass: np.ndarray  # (depth + 2,) the mass that goes there


def subtract_replaced(table, trees, masses, wanted, codes, out):
    """Add f at each row less its mean with column k replaced, for wanted columns.

    Parameters
    ----------
    table, trees
        The trees that have splits.
    masses : array (n_nodes, 2)
        Those of `side_masses`.
    wanted : array (d,) of bool
    codes : array (n, d)
        The rows.
    out : array (n, d, k)
        What is added to.
    """
    d, levels = codes.shape[1], table.depth + 2
    buffers = Buffers(
        np.zeros(d, np.int64), np.empty(d, np.int64), np.empty(levels, np.int64), np.empty(levels)
    )
    _subtract_replaced(table, trees, masses, wanted, codes, out, buffers)


@kernel
def _subtract_replaced(table, trees, masses, wanted, codes, out, buffers):
    nodes, roots, values, sets, _, is_set, _ = table
    met_at, met, todo, mass = buffers
    width = values.shape[1]
    descent = np.int64(0)
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        for r in range(codes.shape[0]):
            descent += 1
            n_met = np.int64(0)
            node = roots[t, 0]
            while nodes[node, COLUMN] >= 0:
                k = nodes[node, COLUMN]
                if wanted[k] and met_at[k] != descent:
                    met_at[k] = descent
                    met[n_met] = k
                    n_met += 1
                    top = np.int64(0)
                    todo[0] = node
                    mass[0] = 1.0
                    while top >= 0:
                        at = todo[top]
                        share = mass[top]
                        top -= 1
                        while nodes[at, COLUMN] >= 0:
                            c = nodes[at, COLUMN]
                            if c != k:
                                left = goes_left(nodes, at, sets, is_set, codes[r, c])
                                at = nodes[at, LEFT if left else RIGHT]
                                continue
                            if masses[at, 1] != 0.0:
                                top += 1
                                todo[top] = nodes[at, RIGHT]
                                mass[top] = masses[at, 1]
                            share = masses[at, 0]
                            at = nodes[at, LEFT]
                            if share == 0.0:
                                break
                        if share == 0.0:
                            continue
                        box = nodes[at, LEFT]
                        for o in range(width):
                            out[r, k, output + o] -= share * values[box, o]
                left = goes_left(nodes, node, sets, is_set, codes[r, k])
                node = nodes[node, LEFT if left else RIGHT]
            box = nodes[node, LEFT]
            for o in range(width):
                for q in range(n_met):
                    out[r, met[q], output + o] += values[box, o]
