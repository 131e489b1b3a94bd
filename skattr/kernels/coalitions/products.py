"""Differences that players make to coalitions, over all boxes, under products of laws.

As in walk.py, with the mass m_k of the conditions of player k in place of background rows. To
player j an explained row adds, with e_k = 0 for the players k that it fails and 1 for the others,

    v ∫ (e_j - m_j) ∏_{k ≠ j} (p e_k + (1 - p) m_k) dP(p),

a polynomial in p that nodes integrate exactly (docs/mathematics.md, section 11). A pair of players
j and k gets the factors (e_j - m_j) (e_k - m_k), and the product is over the others. Rows that fail
the same players share these sums: a box costs its rows, and players · nodes, or pairs · nodes, for
each set of failed players.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.box_products import mass_on_path
from skattr.kernels.boxes.layout import COLUMN, LEFT, go_down, new_path, next_turn, start_walk
from skattr.kernels.coalitions.walk import advance
from skattr.kernels.compiled import called, kernel

SLOTS = 4096  # sets of failed players whose sums are remembered within a box, at most
LEAST = 64  # and at least
NUMBERS = 2**20  # sums that are remembered, if that is more than LEAST sets


class Players(NamedTuple):
    """The players on a path, their masses, and the explained rows that fail them."""

    failed: np.ndarray  # (levels, n) as bits
    ids: np.ndarray  # (1, 0) there are no lists of rows: all go down
    mass: np.ndarray  # (d,) of each column's codes on the path
    saved_mass: np.ndarray  # (levels,) the mass of the level's column above it
    columns: np.ndarray  # (levels,)
    new_column: np.ndarray  # (levels,) whether a level's column has no split above it
    new_player: np.ndarray  # (levels,) the same for its player
    on_path: np.ndarray  # (d,) number of splits on a column
    bit_of: np.ndarray  # (g,) the bit of a player on the path, or -1
    players: np.ndarray  # (levels,) the player of each bit
    factor: np.ndarray  # (levels,) the mass of each bit's player
    before: np.ndarray  # (levels,) products of the terms before each bit
    terms: np.ndarray  # (levels,) the terms themselves
    after: np.ndarray  # (levels,) products of those after each bit
    bits: np.ndarray  # (64,)


class Memory(NamedTuple):
    """Sums of sets of failed players in the box at hand."""

    sets: np.ndarray  # (slots,) a power of two of them
    box: np.ndarray  # (slots,) the box that they belong to
    sums: np.ndarray  # (slots, …) one number per player or pair of players


def add_differences(table, trees, owner, quadrature, cumulated, codes, out):
    """Add the values of all players at rows to out, (n, g, k).

    `quadrature` has nodes in p and their weights. `cumulated` (n_codes,) has for each column the
    mass of code 0, then the running mass of the others. codes (d, n) are of the explained rows.
    """
    g = out.shape[1]
    _add(table, trees, owner, quadrature, cumulated, codes, g, table.depth + 2, None, out)


def add_pair_differences(table, trees, owner, quadrature, cumulated, codes, columns, most, out):
    """Add the second differences of pairs of players at rows to out, (n, pairs, k).

    columns (g, g) are the positions of the pairs in `out`, -1 for those that are not computed.
    Boxes have up to `most` players.
    """
    g, n_pairs = len(columns), max(most * (most - 1) // 2, 1)
    _add(table, trees, owner, quadrature, cumulated, codes, g, n_pairs, columns, out)


def _add(table, trees, owner, quadrature, cumulated, codes, g, width, columns, out):
    """Add the values of g players, or of pairs, up to `width` of them in a box."""
    (d, n), levels = codes.shape, table.depth + 2
    players = Players(
        np.zeros((levels, n), np.uint64), np.zeros((1, 0), np.int32), np.ones(d), np.zeros(levels),
        np.zeros(levels, np.int32), np.zeros(levels, np.bool_), np.zeros(levels, np.bool_),
        np.zeros(d, np.int32), np.full(g, -1, np.int64), np.zeros(levels, np.int64),
        np.ones(levels), np.ones(levels), np.ones(levels), np.ones(levels),
        np.uint64(1) << np.arange(64, dtype=np.uint64),
    )  # fmt: skip
    slots = SLOTS
    while slots > LEAST and slots * width > NUMBERS:
        slots //= 2
    memory = Memory(
        np.zeros(slots, np.uint64), np.full(slots, -1, np.int64), np.zeros((slots, width))
    )
    _add_differences(
        table, trees, owner, *quadrature, cumulated, codes, out, new_path(table), players, memory,
        columns,
    )  # fmt: skip


@called
def _sum_up(f, n_bits, nodes_p, weights_p, factor, before, sums, slot):
    """Fill the sums of the players for rows that fail the players f."""
    for j in range(n_bits):
        sums[slot, j] = 0.0
    for q in range(nodes_p.shape[0]):
        p = nodes_p[q]
        product = 1.0
        for j in range(n_bits):
            before[j] = product
            met = ((f >> np.uint64(j)) & np.uint64(1)) == 0
            product *= (p if met else 0.0) + (1.0 - p) * factor[j]
        after = weights_p[q]
        for j in range(n_bits - 1, -1, -1):
            met = ((f >> np.uint64(j)) & np.uint64(1)) == 0
            sums[slot, j] += ((1.0 if met else 0.0) - factor[j]) * (before[j] * after)
            after *= (p if met else 0.0) + (1.0 - p) * factor[j]


@called
def _sum_up_pairs(f, n_bits, nodes_p, weights_p, factor, before, terms, after, sums, slot):
    """Fill the sums of pairs for rows that fail the players f; those of j < k at k(k - 1)/2 + j."""
    for c in range(n_bits * (n_bits - 1) // 2):
        sums[slot, c] = 0.0
    for q in range(nodes_p.shape[0]):
        p = nodes_p[q]
        product = 1.0
        for j in range(n_bits):
            met = ((f >> np.uint64(j)) & np.uint64(1)) == 0
            before[j] = product
            terms[j] = (p if met else 0.0) + (1.0 - p) * factor[j]
            product *= terms[j]
        product = weights_p[q]
        for j in range(n_bits - 1, -1, -1):
            after[j] = product
            product *= terms[j]
        for k in range(n_bits):
            between = after[k]
            for j in range(k - 1, -1, -1):
                sums[slot, k * (k - 1) // 2 + j] += before[j] * between
                between *= terms[j]
    for k in range(n_bits):
        k_met = ((f >> np.uint64(k)) & np.uint64(1)) == 0
        own = (1.0 if k_met else 0.0) - factor[k]
        for j in range(k):
            met = ((f >> np.uint64(j)) & np.uint64(1)) == 0
            sums[slot, k * (k - 1) // 2 + j] *= own * ((1.0 if met else 0.0) - factor[j])


@kernel
def _add_differences(
    table, trees, owner, nodes_p, weights_p, cumulated, codes, out, path, path_players, memory,
    columns_of_pairs,
):  # fmt: skip
    nodes, roots, values, sets, offset, is_set, _ = table
    node_at, turn, interval, allowed, saved, saved_allowed = path
    (
        failed, ids, mass, saved_mass, columns, new_column, new_player, on_path, bit_of, players,
        factor, before, terms, after, bits,
    ) = path_players  # fmt: skip
    known, known_box, sums = memory
    n = codes.shape[1]
    none = bits[0] ^ bits[0]
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        n_bits = np.int64(0)
        level = start_walk(roots[t, 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            k = nodes[node, COLUMN]
            g = owner[k]
            now = next_turn(
                nodes, sets, offset, is_set,
                node_at, turn, interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 1:
                saved_mass[level] = mass[k]
                columns[level] = k
                new_column[level] = on_path[k] == 0
                on_path[k] += 1
                new_player[level] = bit_of[g] < 0
                if new_player[level]:
                    bit_of[g] = n_bits
                    players[n_bits] = g
                    n_bits += 1
            elif now == 3:
                mass[k] = saved_mass[level]
                on_path[k] -= 1
                if new_player[level]:
                    bit_of[g] = -1
                    n_bits -= 1
                level -= 1
                continue
            child = nodes[node, now]
            mass[k] = mass_on_path(k, offset, is_set, interval, allowed, cumulated)
            advance(
                nodes, node, now, sets, is_set, codes, failed, ids, n, True, 0, level,
                bits[bit_of[g]], none,
            )  # fmt: skip
            if nodes[child, COLUMN] >= 0:
                level = go_down(child, node_at, turn, level)
                continue
            box = nodes[child, LEFT]
            for j in range(n_bits):
                factor[j] = 1.0
            for s in range(level + 1):
                if new_column[s]:
                    factor[bit_of[owner[columns[s]]]] *= mass[columns[s]]
            for r in range(n):
                f = failed[level + 1, r]
                slot = np.int64((f ^ (f >> np.uint64(12))) & np.uint64(known.shape[0] - 1))
                if known_box[slot] != box or known[slot] != f:
                    known_box[slot] = box
                    known[slot] = f
                    if columns_of_pairs is None:
                        _sum_up(f, n_bits, nodes_p, weights_p, factor, before, sums, slot)
                    else:
                        _sum_up_pairs(
                            f, n_bits, nodes_p, weights_p, factor, before, terms, after, sums, slot
                        )
                if columns_of_pairs is None:
                    for j in range(n_bits):
                        for o in range(values.shape[1]):
                            out[r, players[j], output + o] += sums[slot, j] * values[box, o]
                else:
                    for c in range(1, n_bits):
                        for j in range(c):
                            at = columns_of_pairs[players[j], players[c]]
                            if at >= 0:
                                total = sums[slot, c * (c - 1) // 2 + j]
                                for o in range(values.shape[1]):
                                    out[r, at, output + o] += total * values[box, o]
