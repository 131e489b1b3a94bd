"""Values of players in the boxes of a twig (twigs.py), or in one box of many players.

In a twig, boxes are summed up for the keys that occur, then each row gets the sums of its key. In a
box that few rows reach, or that has more players than there are sets of them in tables, rows are
gone through one by one. Both give the same bits (set_values.py).
"""

import numpy as np

from skattr.kernels.boxes.bits import lowest, popcount
from skattr.kernels.boxes.layout import LEFT
from skattr.kernels.coalitions.pending_sums import add_pending, add_to_rows, reserve
from skattr.kernels.coalitions.set_values import (
    WIDE,
    add_disjoint,
    fill_members,
    fill_values,
    list_disjoint,
    n_sizes,
    sum_disjoint,
)
from skattr.kernels.coalitions.twigs import fill_keys, list_background_keys, number_keys
from skattr.kernels.compiled import called, inlined
from skattr.kernels.lines.vectors import load, number, put, spread, store, times_plus

SPARSE = 2  # sets of players per background row from which on a box has no tables
SEVERAL = 4  # sets from which on it pays to know which sets do not have a player
PER_SET = 60  # the cost of a set if disjoint sets are listed
PER_PAIR = 0.6  # and that of a pair of sets
PER_ROW = 8  # the cost of a row whose key is counted or looked up


@inlined
def cost_of_all(n_players):
    """Return the cost of `fill_values`, about the number of cycles."""
    return (np.int64(1) << n_players) * (2 * n_players + 6) * (n_sizes(n_players) // 8)


@inlined
def is_sparse(n_players, m):
    """Tell whether a box has so many players that tables never pay for m background rows."""
    return n_players >= WIDE or (1 << n_players) > SPARSE * m


@inlined
def rows_are_cheaper(n_players, nz, nx):
    """Tell whether a box of its own costs less row by row."""
    by_keys = cost_of_all(n_players) + PER_ROW * (nz + nx)
    return nx * (PER_SET + PER_PAIR * nz) < by_keys


@inlined
def list_path(box, boxes, above, bit, n_bits, local, path):
    """List the splits above a box, and number its players; return how many there are of both.

    `path` has the place of a split in keys, the outcome that leads to the box, and the player's bit
    in the sets of this box; `local` the players' bits in the twig.
    """
    n = np.int64(0)
    n_players = n_bits
    s, outcome = boxes[box, 1], boxes[box, 2]
    while s >= 0:
        j = lowest(np.uint64(bit[s]))
        if j >= n_bits:
            at = n_bits
            while at < n_players and local[at] != j:
                at += 1
            local[at] = j
            n_players = max(n_players, at + 1)
            j = at
        path[n, 0], path[n, 1], path[n, 2] = n_bits + s, outcome, np.int64(1) << j
        n += 1
        outcome = above[s, 1]
        s = above[s, 0]
    return n, n_players


@inlined
def fill_sets(keys, n, n_bits, path, n_path, set_of):
    """Fill the players whose conditions in a box keys fail."""
    mask = (np.int64(1) << n_bits) - 1
    for i in range(n):
        set_of[i] = np.uint64(keys[i] & mask)
    for p in range(n_path):
        shift, outcome, one = path[p, 0], path[p, 1], path[p, 2]
        for i in range(n):
            set_of[i] |= np.uint64(one & -(((keys[i] >> shift) & 1) ^ outcome))


@inlined
def _add_of_sets(x_sets, n, every, set_values, v, sums, first, stride, lanes):
    """Add v times the values of their sets to the sums of n keys."""
    if lanes == 16:
        for i in range(n):
            at = 16 * (every ^ np.int64(x_sets[i]))
            here = i * stride + first
            low = times_plus(v, load(set_values, at), load(sums, here))
            high = times_plus(v, load(set_values, at + 8), load(sums, here + 8))
            store(sums, here, low)
            store(sums, here + 8, high)
        return
    for i in range(n):
        at = 8 * (every ^ np.int64(x_sets[i]))
        here = i * stride + first
        store(sums, here, times_plus(v, load(set_values, at), load(sums, here)))


@called
def add_twig(
    nodes, root, values, node_sets, is_set, owner, output, n_bits, n_splits, n_players, players,
    factors, weights, out, n_outputs, dense, level,
    z_codes, z_failed, z_ids, nz, lz, x_codes, x_failed, x_ids, nx, lx,
    twig, tables, sets, pending,
):  # fmt: skip
    """Add the boxes of a twig to the values of the explained rows."""
    _, twig_nodes, above, bit, boxes, key_of, z_keys, z_weights, x_keys, key_sums = twig
    key_weights, key_places, _, _, _, _, _, numbers = tables
    pending_sums, places, used = pending
    z_sets, _, x_sets, members, member_words, disjoint, disjoint_words = sets[:7]
    sizes, rates, set_values, row_sizes, row_values, local, path, lane_of, mask, _ = sets[7:]
    width = values.shape[1]
    n_z = list_background_keys(
        nodes, twig_nodes, n_splits, node_sets, is_set, n_bits, weights, level,
        z_codes, z_failed, z_ids, nz, lz, key_of, z_keys, z_weights, key_weights, key_places,
    )  # fmt: skip
    fill_keys(
        nodes, twig_nodes, n_splits, node_sets, is_set, n_bits,
        x_codes, x_failed, x_ids, nx, lx, level, key_of,
    )  # fmt: skip
    n_x = number_keys(key_of, nx, key_places, x_keys)
    first = reserve(out, pending, n_x) if dense else 0
    direct = dense and width == 1 and out.shape[1] <= 16
    lanes = out.shape[1] if direct else n_sizes(n_players - 1)
    sums = pending_sums if direct else key_sums
    begin = first if direct else 0
    none = spread(0.0)
    stride = sums.shape[1]
    for i in range(n_x):
        for c in range(0, width * lanes, 8):
            store(sums, (begin + i) * stride + c, none)
    by_members = n_x >= SEVERAL
    for j in range(n_bits):
        local[j] = j
    for box in range(n_splits + 1):
        n_path, n_own = list_path(box, boxes, above, bit, n_bits, local, path)
        fill_sets(z_keys, n_z, n_bits, path, n_path, z_sets)
        fill_sets(x_keys, n_x, n_bits, path, n_path, x_sets)
        for j in range(n_own):
            lane_of[j] = players[local[j]] * n_outputs + output if direct else local[j]
        if cost_of_all(n_own) < n_x * (PER_SET + PER_PAIR * n_z):
            step = n_sizes(n_own)
            for i in range(n_z):
                at = np.int64(z_sets[i]) * step + np.int64(popcount(z_sets[i]))
                put(sizes, at, number(sizes, at) + number(z_weights, i))
            for j in range(n_own):
                mask[lane_of[j]] = 1.0
            fill_values(n_own, factors, sizes, rates, lane_of, mask, lanes, set_values)
            for j in range(n_own):
                mask[lane_of[j]] = 0.0
            every = (np.int64(1) << n_own) - 1
            for o in range(width):
                v = spread(values[boxes[box, 0], o])
                at = begin * stride + o * lanes
                _add_of_sets(x_sets, n_x, every, set_values, v, sums, at, stride, lanes)
            continue
        if by_members:
            fill_members(n_own, n_z, z_sets, members)
        for i in range(n_x):
            if list_disjoint(
                x_sets[i], n_z, z_sets, members, member_words, by_members, disjoint, disjoint_words
            ):
                sum_disjoint(
                    x_sets[i], n_own, n_z, z_sets, z_weights, disjoint, factors, row_sizes,
                    numbers, row_values, 0,
                )  # fmt: skip
                for o in range(width):
                    v = values[boxes[box, 0], o]
                    for j in range(n_own):
                        lane = o * lanes + lane_of[j]
                        total = sums[begin + i, lane]
                        sums[begin + i, lane] = times_plus(v, row_values[j], total)
    if dense and not direct:
        size = pending_sums.shape[1]
        for i in range(first, first + n_x):
            for c in range(i * size, i * size + size, 8):
                store(pending_sums, c, none)
            for o in range(width):
                for j in range(n_players):
                    column = players[j] * n_outputs + output + o
                    pending_sums[i, column] = sums[i - first, o * lanes + j]
    if dense and lx < 0:
        twig_before = used[0]
        begin = np.int32(first)
        for i in range(nx):
            places[twig_before, i] = begin + key_of[i]
        used[0] += 1
        used[1] += n_x
        return
    add_pending(out, pending)
    if dense:
        add_to_rows(out, pending_sums, first, key_of, x_ids[lx], nx)
        return
    for i in range(nx):
        row = i if lx < 0 else np.int64(x_ids[lx, i])
        at = np.int64(key_of[i])
        for j in range(n_players):
            for o in range(width):
                column = players[j] * n_outputs + output + o
                out[row, column] += sums[at, o * lanes + j]


@inlined  # few rows in deep trees would wait for its many arguments
def add_box(
    nodes, node, values, output, n_players, players, moments, factors, weights, out, n_outputs,
    level, z_failed, z_ids, nz, lz, x_failed, x_ids, nx, lx, numbers, sets, sparse,
):  # fmt: skip
    """Add a box to the values of the explained rows, row by row."""
    z_sets, z_weights, _, members, member_words, disjoint, disjoint_words = sets[:7]
    _, _, _, row_sizes, row_values, _, _, _, _, columns = sets[7:]
    for j in range(n_players):
        columns[j] = players[j] * n_outputs + output
    box = nodes[node, LEFT]
    for i in range(nz):
        z_sets[i] = np.uint64(z_failed[level, i])
        z_weights[i] = weights[i if lz < 0 else np.int64(z_ids[lz, i])]
    by_members = nx >= SEVERAL
    if by_members:
        fill_members(n_players, nz, z_sets, members)
    for i in range(nx):
        f = np.uint64(x_failed[level, i])
        if not list_disjoint(
            f, nz, z_sets, members, member_words, by_members, disjoint, disjoint_words
        ):
            continue
        if sparse:
            add_disjoint(
                f, n_players, nz, z_sets, z_weights, disjoint, moments, numbers, row_values
            )
        else:
            sum_disjoint(
                f, n_players, nz, z_sets, z_weights, disjoint, factors, row_sizes, numbers,
                row_values, 0,
            )  # fmt: skip
        row = (i if lx < 0 else np.int64(x_ids[lx, i])) * out.shape[1]
        for o in range(values.shape[1]):
            v = values[box, o]
            for j in range(n_players):
                at = row + columns[j] + o
                put(out, at, number(out, at) + number(row_values, j) * v)
