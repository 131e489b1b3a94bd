"""Differences that players make to coalitions, over all boxes, explained and background rows.

A player is an attribution; its condition in a box is that of all its columns together. For a box,
an explained row x and a background row z let B be the players whose conditions x fails, A those
that z fails. A row that is x in the columns of a coalition and z elsewhere lies in the box if and
only if the coalition has all of A and none of B. So a pair matters only if A and B are disjoint,
and then adds to player j

    v w ∫ p^(|A|-1) (1 - p)^|B| dP(p)  for j in A,   - v w ∫ p^|A| (1 - p)^(|B|-1) dP(p)  for j in B

with v the value of the box and w the weight of z (docs/mathematics.md, sections 3 and 11). They are
added up in set_values.py. Pairs of players get second differences (twig_pairs.py).

Rows go down each tree with their sets of failed players as bits. A twig is a subtree so small that
these bits and the outcomes of its splits fit in a short key: rows are counted and looked up by key,
and the boxes of the twig see keys, not rows (twigs.py). Above larger subtrees, rows that are
disjoint from no row of the other side are dropped: this is what makes deep trees fast.

The value of a row never depends on the other explained rows, to the last bit. Weights are whole
numbers, so that sums of them are exact in any order; which boxes are a twig depends on the tree and
the number of background rows; and a row or set that is dropped would have added 0.
"""

import numpy as np

from skattr.kernels.boxes.bits import ZERO
from skattr.kernels.boxes.layout import COLUMN, LEFT, MISSING, RIGHT, SPLIT, goes_left
from skattr.kernels.coalitions.buffers import WINDOW
from skattr.kernels.coalitions.pending_sums import add_pending
from skattr.kernels.coalitions.short_lists import advance_short, keep_short
from skattr.kernels.coalitions.twig_pairs import add_pairs_of_box, add_pairs_of_twig
from skattr.kernels.coalitions.twig_values import add_box, add_twig, is_sparse, rows_are_cheaper
from skattr.kernels.coalitions.twigs import WIDE, count_keys, list_splits
from skattr.kernels.compiled import called, kernel

MOST = 64  # players in a box, the bits of a word
ENOUGH = 12  # boxes in a subtree from which on rows are dropped above it
FEWER = 0.75  # rows are dropped if fewer than this share stay
FEW = 8  # explained rows that are compared with background rows one by one
FEW_PAIRS = 1024  # pairs of rows that are


def count_boxes(table):
    """Return the number of boxes below each node, (n_nodes,)."""
    counts = np.ones(len(table.nodes), np.int32)
    _count_boxes(table.nodes, counts)
    return counts


@kernel
def _count_boxes(nodes, counts):
    for node in range(nodes.shape[0] - 1, -1, -1):  # a child comes after its parent
        if nodes[node, COLUMN] >= 0:
            counts[node] = counts[nodes[node, LEFT]] + counts[nodes[node, RIGHT]]


def most_players(table, owner):
    """Return the largest number of players in a box."""
    nodes, roots = table.nodes, table.roots
    most = np.zeros(1, np.int64)
    todo = np.zeros((table.depth + 2, 2), np.int32)
    _most_players(nodes, roots, owner, np.zeros(owner.max(initial=0) + 1, np.int32), todo, most)
    return int(most[0])


@kernel
def _most_players(nodes, roots, owner, on_path, todo, most):
    for t in range(roots.shape[0]):
        level = np.int64(0)
        n = 0
        todo[0, 0] = roots[t, 0]
        todo[0, 1] = 0
        while level >= 0:
            node = todo[level, 0]
            k = nodes[node, COLUMN]
            if k < 0:
                level -= 1
                continue
            g = owner[k]
            todo[level, 1] += 1
            now = todo[level, 1]
            if now == 1:
                n += on_path[g] == 0
                on_path[g] += 1
                if n > most[0]:
                    most[0] = n
            elif now == 3:
                on_path[g] -= 1
                n -= on_path[g] == 0
                level -= 1
                continue
            level += 1
            todo[level, 0] = nodes[node, now]
            todo[level, 1] = 0


def add_differences(table, blocks, owner, counts, moments, rates, weights, buffers, out):
    """Add the values of all players, or of pairs of them, at rows to out, block by block.

    Parameters
    ----------
    table : Table
    blocks : list of arrays of int
        The trees to add, which have splits. Those of a block are summed up first.
    owner : array (d,)
        The player of each column.
    counts : array (n_nodes,)
        The number of boxes below each node.
    moments : array (D + 1, D + 1)
        ∫ p^a (1 - p)^b dP(p) divided by the sum of the weights, D at least the number of players
        in a box.
    rates : array
        From `rates_of_sizes`.
    weights : array (m,)
        Those of the background rows, whole numbers whose sum is below 2^53.
    buffers : Buffers
        From `new_buffers` for players, from `new_pair_buffers` for pairs.
    out : array (n, g, k) or (n, pairs, k)
    """
    values, *others = buffers
    trees, ends = np.concatenate(blocks), np.cumsum([len(block) for block in blocks])
    total = out.reshape(len(out), -1)
    _add_differences(
        table, trees, ends, owner, counts, moments, rates, weights, total, values, out.shape[2],
        *others,
    )  # fmt: skip


@called
def _add_block(values, total):
    """Add the values of a block of trees to the total, and set them to 0."""
    for i in range(total.shape[0]):
        for c in range(total.shape[1]):
            total[i, c] += values[i, c]
            values[i, c] = 0.0


@called
def advance(nodes, node, now, sets, is_set, codes, failed, ids, n, whole, lists, level, bit, none):
    """Fill the failed sets of all rows at a child: those at the node, and the split's player."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    left = now == 1
    if is_set[k]:
        for i in range(n):
            row = i if whole else ids[lists, i]
            goes = goes_left(nodes, node, sets, is_set, codes[k, row])
            failed[level + 1, i] = failed[level, i] | (none if goes == left else bit)
        return
    low = np.int32(1 - nodes[node, MISSING])
    if whole:
        for i in range(n):
            goes = (codes[k, i] >= low) & (codes[k, i] <= split)
            failed[level + 1, i] = failed[level, i] | (none if goes == left else bit)
    else:
        for i in range(n):
            c = codes[k, ids[lists, i]]
            goes = (c >= low) & (c <= split)
            failed[level + 1, i] = failed[level, i] | (none if goes == left else bit)


@called
def _mark(failed, level, n, window, marks, mark_words):
    """Mark the sets that occur, then all that contain one of them."""
    size = window + 1
    n_words = (size + 7) // 8
    for w in range(n_words):
        mark_words[w] = ZERO
    for i in range(n):
        marks[np.int64(failed[level, i]) & window] = 1
    step = 1
    while step < size:
        if step < 8:
            for start in range(0, size, 2 * step):
                for s in range(start, start + step):
                    marks[s + step] |= marks[s]
        else:
            for start in range(0, n_words, step // 4):
                for s in range(start, start + step // 8):
                    mark_words[s + step // 8] |= mark_words[s]
        step *= 2


@called
def _keep(failed, ids, n, lists, level, window, marks, n_rows, list_of, least):
    """Drop the rows that are disjoint from no marked set, if many are; return how many stay."""
    kept = np.int64(0)
    for i in range(n):
        kept += marks[~np.int64(failed[level, i]) & window]
    n_rows[level] = n
    list_of[level] = lists
    if kept >= least * n:
        return kept
    kept = 0
    for i in range(n):
        f = failed[level, i]
        if marks[~np.int64(f) & window]:
            ids[level, kept] = ids[lists, i] if lists >= 0 else i
            failed[level, kept] = f
            kept += 1
    n_rows[level] = kept
    list_of[level] = level
    return kept


@kernel
def _add_differences(
    table, trees, ends, owner, counts, moments, factors, weights, total, out, n_outputs, key_bits,
    most_keys, dense, bits, steps, twig, marks, tables, background, explained, set_sums, pending,
    pairs,
):  # fmt: skip
    nodes, roots, values, sets, _, is_set, _ = table
    node_at, turn, is_first, bit_of, players = steps
    z_codes, z_failed, z_ids, z_n, z_list, z_marks, z_words = background
    x_codes, x_failed, x_ids, x_n, x_list, x_marks, x_words = explained
    todo, twig_nodes, above, bit, twig_boxes, _, _, _, _, _ = twig
    none = bits[0] ^ bits[0]
    block = np.int64(0)
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        n_bits = np.int64(0)
        level = np.int64(0)
        node_at[0] = roots[t, 0]
        turn[0] = 0
        while level >= 0:
            node = node_at[level]
            nz, lz = z_n[level], z_list[level]
            nx, lx = x_n[level], x_list[level]
            is_box = nodes[node, COLUMN] < 0
            small = is_box or (turn[level] == 0 and n_bits + counts[node] - 1 <= key_bits)
            if pairs is None:
                sparse = is_sparse(n_bits, weights.shape[0])
                if is_box and (sparse or rows_are_cheaper(n_bits, nz, nx)):
                    add_pending(out, pending)
                    add_box(
                        nodes, node, values, output, n_bits, players, moments, factors, weights,
                        out, n_outputs, level, z_failed, z_ids, nz, lz, x_failed, x_ids, nx, lx,
                        tables.bytes_as_numbers, set_sums, sparse,
                    )  # fmt: skip
                    level -= 1
                    continue
                if small:
                    n_splits, n_players = list_splits(
                        nodes, node, owner, n_bits, bit_of, players, todo, twig_nodes, above, bit,
                        twig_boxes,
                    )  # fmt: skip
                    if is_box or count_keys(n_bits, n_splits, n_players, bit) <= most_keys:
                        add_twig(
                            nodes, node, values, sets, is_set, owner, output, n_bits, n_splits,
                            n_players, players, factors, weights, out, n_outputs, dense, level,
                            z_codes, z_failed, z_ids, nz, lz, x_codes, x_failed, x_ids, nx, lx,
                            twig, tables, set_sums, pending,
                        )  # fmt: skip
                        level -= 1
                        continue
            elif is_box and n_bits > WIDE:
                add_pairs_of_box(
                    players, n_bits, values, nodes[node, LEFT], output, moments, weights,
                    z_failed, z_ids, nz, lz, x_failed, x_ids, nx, lx, level, n_outputs,
                    pairs, out,
                )  # fmt: skip
                level -= 1
                continue
            elif small:
                add_pairs_of_twig(
                    nodes, node, values, sets, is_set, owner, output, n_bits, bit_of, players,
                    moments, weights, out, n_outputs, dense, level,
                    z_codes, z_failed, z_ids, nz, lz, x_codes, x_failed, x_ids, nx, lx,
                    twig, marks, tables, pairs,
                )  # fmt: skip
                level -= 1
                continue
            g = owner[nodes[node, COLUMN]]
            turn[level] += 1
            now = turn[level]
            if now == 1:
                is_first[level] = bit_of[g] < 0
                if is_first[level]:
                    bit_of[g] = n_bits
                    players[n_bits] = g
                    n_bits += 1
            elif now == 3:
                if is_first[level]:
                    bit_of[g] = -1
                    n_bits -= 1
                level -= 1
                continue
            child = nodes[node, now]
            one = bits[bit_of[g]]
            below = level + 1
            advance(
                nodes, node, now, sets, is_set, x_codes, x_failed, x_ids, nx, lx < 0, lx,
                level, one, none,
            )  # fmt: skip
            x_n[below], x_list[below] = nx, lx
            if nx <= FEW or nx * nz <= FEW_PAIRS:
                kept = advance_short(
                    nodes, node, now, sets, is_set, z_codes, z_failed, z_ids, nz, lz, level, one,
                    none, x_failed, nx, z_n, z_list,
                )  # fmt: skip
                if kept == 0:
                    continue
                if nx > 1:
                    keep_short(x_failed, x_ids, nx, lx, below, z_failed, kept, none, x_n, x_list)
                level = below
                node_at[level] = child
                turn[level] = 0
                continue
            advance(
                nodes, node, now, sets, is_set, z_codes, z_failed, z_ids, nz, lz < 0, lz,
                level, one, none,
            )  # fmt: skip
            z_n[below], z_list[below] = nz, lz
            if counts[child] >= ENOUGH and np.int64(1) << min(n_bits, MOST - 2) > nx:
                window = (np.int64(1) << min(n_bits, WINDOW)) - 1
                while window > 2 * nx:
                    window >>= 1
                _mark(z_failed, below, nz, window, z_marks, z_words)
                kept = _keep(x_failed, x_ids, nx, lx, below, window, z_marks, x_n, x_list, FEWER)
                if kept == 0:
                    continue
                _mark(x_failed, below, x_n[below], window, x_marks, x_words)
                _keep(z_failed, z_ids, nz, lz, below, window, x_marks, z_n, z_list, FEWER)
            level = below
            node_at[level] = child
            turn[level] = 0
        if i + 1 == ends[block]:
            if pairs is None:
                add_pending(out, pending)
            _add_block(out, total)
            block += 1
