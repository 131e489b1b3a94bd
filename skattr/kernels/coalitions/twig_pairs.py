"""Pairs of players in the boxes of a twig (twigs.py), and in boxes of many players.

For a box, an explained row that fails the players B, and background rows that fail the sets A of
players, disjoint from B, the second difference of players j and k adds

    + v Σ_A w_A ∫ p^(|A|-2) (1 - p)^|B| dP(p)       over A with both in A,   if neither is in B,
    - v Σ_A w_A ∫ p^(|A|-1) (1 - p)^(|B|-1) dP(p)   over A with k in A,      if only j is in B,
    + v Σ_A w_A ∫ p^|A| (1 - p)^(|B|-2) dP(p)       over all A,              if both are in B,

so that all terms of a pair have one sign, and nothing cancels. The first sums are a matrix, the
second ones a vector and the third one is a number, the same for all pairs in B.

The pairs of up to 16 players are the rows of a triangle: row k has the players j < k, as one vector
of eight numbers if k < 8 and two if not. What is right of the diagonal is not used.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import ONE, ZERO, popcount, trailing_zeros
from skattr.kernels.coalitions.twigs import failed_in_box, list_keys, list_sets, list_splits
from skattr.kernels.compiled import called, inlined
from skattr.kernels.lines.vectors import load, spread, store, times, times_plus


class Pairs(NamedTuple):
    """The pairs of players that are asked for, and buffers."""

    columns: np.ndarray  # (g, g) the position of each pair in the output, -1 if not asked for
    cells: np.ndarray  # (pairs, 2) the asked pairs of a twig: cells of the triangle, and positions
    cross: np.ndarray  # (64,) sums of pairs of which one is in B
    matrix: np.ndarray  # (64, 64) sums of pairs of which none is in B
    totals: np.ndarray  # (keys, …) the values of the asked pairs of each key


def new_pairs(columns, n_keys, width, most):
    """Return buffers for values of up to n_keys keys; columns (g, g) has asked positions."""
    return Pairs(
        columns, np.zeros((most * (most - 1) // 2 + 1, 2), np.int64), np.zeros(64),
        np.zeros((64, 64)), np.zeros((n_keys, max(width, 1))),
    )  # fmt: skip


@inlined
def first_cell(k):
    """Return the cell of the triangle where the row of player k begins."""
    return 8 * (k - 1) if k < 8 else 16 * k - 72


def triangle_size(n_players):
    """Return the number of cells of the pairs of up to 16 players."""
    return max(8, 8 * (n_players - 1) if n_players <= 8 else 16 * n_players - 72)


@called
def _sum_up(f, n, moments, weight, listed, n_listed, numbers, cross, sums, at):
    """Fill the sums of all pairs for a set f of failed players; return whether there are any."""
    free = ((np.int64(1) << n) - 1) & ~f
    b = np.int64(popcount(np.uint64(f)))
    subsets = np.int64(1) << (n - b)
    here = at * sums.shape[1]
    none = spread(0.0)
    for c in range(0, first_cell(n), 8):
        store(sums, here + c, none)
    low, high = none, none
    both = 0.0
    some = False
    listing = n_listed < subsets
    s = np.int64(0)
    for i in range(n_listed if listing else subsets):
        if listing:
            s = listed[i]
            if s & f:
                continue
        w = weight[s]
        if w != 0.0:
            some = True
            a = np.int64(popcount(np.uint64(s)))
            if b:
                if b > 1:
                    both += w * moments[a, b - 2]
                if a:
                    one = spread(w * moments[a - 1, b - 1])
                    low = times_plus(one, load(numbers, 8 * (s & 255)), low)
                    if n > 8:
                        high = times_plus(one, load(numbers, 8 * (s >> 8)), high)
            if a > 1:
                two = spread(w * moments[a - 2, b])
                left = times(two, load(numbers, 8 * (s & 255)))
                rest = np.uint64(s & (s - 1))  # nothing is left of the diagonal of the lowest
                while rest != ZERO:
                    k = np.int64(trailing_zeros(rest))
                    row = here + first_cell(k)
                    store(sums, row, times_plus(spread(1.0), left, load(sums, row)))
                    if k > 8:
                        right = load(numbers, 8 * (s >> 8))
                        store(sums, row + 8, times_plus(two, right, load(sums, row + 8)))
                    rest &= rest - ONE
        s = (s - free) & free
    if some and b:
        _fill_failed(f, n, both, low, high, numbers, cross, sums, here)
    return some


@inlined
def _fill_failed(f, n, both, low, high, numbers, cross, sums, here):
    """Fill the sums of the pairs of which one or both are in f."""
    minus = spread(-1.0)
    low, high = times(minus, low), times(minus, high)
    store(cross, 0, low)
    store(cross, 8, high)
    left, right = load(numbers, 8 * (f & 255)), load(numbers, 8 * (f >> 8))
    for k in range(1, n):
        row = here + first_cell(k)
        if (f >> k) & 1:
            store(sums, row, times_plus(spread(both), left, low))
            if k > 8:
                store(sums, row + 8, times_plus(spread(both), right, high))
        else:
            store(sums, row, times_plus(spread(cross[k]), left, load(sums, row)))
            if k > 8:
                store(sums, row + 8, times_plus(spread(cross[k]), right, load(sums, row + 8)))


@inlined
def _list_cells(columns, players, n_players, cells):
    """List the asked pairs of a twig, and return how many there are."""
    n = np.int64(0)
    for k in range(1, n_players):
        for j in range(k):
            column = columns[players[j], players[k]]
            if column >= 0:
                cells[n, 0], cells[n, 1] = first_cell(k) + j, column
                n += 1
    return n


@called
def add_pairs_of_twig(
    nodes, root, values, node_sets, is_set, owner, output, n_bits, bit_of, players,
    moments, weights, out, n_outputs, dense, level,
    z_codes, z_failed, z_ids, nz, lz, x_codes, x_failed, x_ids, nx, lx,
    twig, marks, tables, pairs,
):  # fmt: skip
    """Add the boxes of a twig to the values of pairs at the explained rows."""
    todo, twig_nodes, above, bit, boxes, key_of, z_keys, z_weights, x_keys, sums = twig
    mark, mark_words, pages, page_words = marks
    key_weights, key_places, set_weights, set_places, listed, asked, set_sums, numbers = tables
    columns, cells, cross, _, totals = pairs
    width = values.shape[1]
    n_splits, n_players = list_splits(
        nodes, root, owner, n_bits, bit_of, players, todo, twig_nodes, above, bit, boxes
    )
    n_cells = _list_cells(columns, players, n_players, cells)
    if n_cells == 0:
        return
    n_z, n_x = list_keys(
        nodes, twig_nodes, n_splits, node_sets, is_set, n_bits, weights, level,
        z_codes, z_failed, z_ids, nz, lz, x_codes, x_failed, x_ids, nx, lx,
        key_of, z_keys, z_weights, x_keys, key_weights, key_places,
        mark, mark_words, pages, page_words,
    )  # fmt: skip
    size = first_cell(n_players)
    none = spread(0.0)
    for i in range(n_x):
        for c in range(0, width * size, 8):
            store(sums, i * sums.shape[1] + c, none)
    for box in range(n_splits + 1):
        n_listed = list_sets(
            n_z, z_keys, z_weights, n_bits, n_players, box, boxes, above, bit,
            set_weights, mark, mark_words, pages, page_words, listed,
        )  # fmt: skip
        n_asked = np.int64(0)
        for i in range(n_x):
            f = failed_in_box(x_keys[i], n_bits, box, boxes, above, bit)
            at = np.int64(set_places[f])
            if at == -1:
                asked[n_asked] = f
                n_asked += 1
                at = n_asked - 1
                if not _sum_up(
                    f, n_players, moments, set_weights, listed, n_listed, numbers, cross,
                    set_sums, at,
                ):  # fmt: skip
                    at = -2
                set_places[f] = at
            if at < 0:
                continue
            key_places[x_keys[i]] = i
            for o in range(width):
                v = spread(values[boxes[box, 0], o])
                here = i * sums.shape[1] + o * size
                for c in range(0, size, 8):
                    part = load(set_sums, at * set_sums.shape[1] + c)
                    store(sums, here + c, times_plus(v, part, load(sums, here + c)))
        for i in range(n_asked):
            set_places[asked[i]] = -1
        for i in range(n_listed):
            set_weights[listed[i]] = 0.0
    if dense:
        for i in range(n_x):
            if key_places[x_keys[i]] >= 0:
                for c in range(0, totals.shape[1], 8):
                    store(totals, i * totals.shape[1] + c, none)
                for c in range(n_cells):
                    for o in range(width):
                        column = cells[c, 1] * n_outputs + output + o
                        totals[i, column] = sums[i, o * size + cells[c, 0]]
    one = spread(1.0)
    for i in range(nx):
        at = np.int64(key_places[key_of[i]])
        if at < 0:
            continue
        row = i if lx < 0 else np.int64(x_ids[lx, i])
        if dense:
            for c in range(0, totals.shape[1], 8):
                here = row * totals.shape[1] + c
                part = load(totals, at * totals.shape[1] + c)
                store(out, here, times_plus(one, part, load(out, here)))
        else:
            for c in range(n_cells):
                for o in range(width):
                    out[row, cells[c, 1] * n_outputs + output + o] += sums[
                        at, o * size + cells[c, 0]
                    ]
    for i in range(n_x):
        key_places[x_keys[i]] = -1


@called
def add_pairs_of_box(
    players, n_bits, values, box, output, moments, weights,
    z_failed, z_ids, nz, lz, x_failed, x_ids, nx, lx, level, n_outputs, pairs, out,
):  # fmt: skip
    """Add a box of many players: sum over pairs of rows, in the order of the background."""
    columns, _, cross, matrix, _ = pairs
    for r in range(nx):
        f = np.uint64(x_failed[level, r])
        b = np.int64(popcount(f))
        both = 0.0
        some = False
        for q in range(nz):
            s = np.uint64(z_failed[level, q])
            if s & f:
                continue
            if not some:
                some = True
                for j in range(n_bits):
                    cross[j] = 0.0
                    for k in range(j):
                        matrix[j, k] = 0.0
            w = weights[q if lz < 0 else z_ids[lz, q]]
            a = np.int64(popcount(s))
            one = w * moments[a - 1, b - 1] if a > 0 and b > 0 else 0.0
            two = w * moments[a - 2, b] if a > 1 else 0.0
            if b > 1:
                both += w * moments[a, b - 2]
            while s != ZERO:
                j = np.int64(trailing_zeros(s))
                cross[j] += one
                s &= s - ONE
                rest = s
                while rest != ZERO:
                    matrix[np.int64(trailing_zeros(rest)), j] += two
                    rest &= rest - ONE
        if not some:
            continue
        row = r if lx < 0 else np.int64(x_ids[lx, r])
        for k in range(1, n_bits):
            k_failed = (f >> np.uint64(k)) & ONE != ZERO
            for j in range(k):
                column = columns[players[j], players[k]]
                if column < 0:
                    continue
                j_failed = (f >> np.uint64(j)) & ONE != ZERO
                if k_failed != j_failed:
                    total = -cross[j if k_failed else k]
                else:
                    total = both if k_failed else matrix[k, j]
                for o in range(values.shape[1]):
                    out[row, column * n_outputs + output + o] += total * values[box, o]
