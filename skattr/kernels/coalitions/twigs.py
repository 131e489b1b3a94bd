"""The boxes of a twig, a subtree so small that all that matters of a row fits in a short key.

The key of a row has the players whose conditions it fails above the twig, then the outcomes of the
twig's splits, 1 if it goes right. From a key follows the set of players whose conditions it fails
in each box. So rows are looked at twice, once to count keys and once to add the sums of a key, and
boxes are summed up for keys.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import ONE, ZERO, lowest, trailing_zeros
from skattr.kernels.boxes.layout import COLUMN, LEFT, MISSING, SPLIT, goes_left
from skattr.kernels.compiled import inlined
from skattr.kernels.lines.vectors import load, nonzero, number, put, spread, store, times_plus

WIDE = 16  # bits of keys and of sets of players beyond which there are no tables of them
SIX = np.uint64(6)
TILE = 2048  # rows whose keys are filled together
SCANNED = 4  # keys per background row up to which the weights of all keys are looked at
LANES = 4  # parallel counts of a key: rows of the same key would wait for each other


class Twig(NamedTuple):
    """The splits and boxes of a twig, and the keys of rows that occur."""

    todo: np.ndarray  # (2 splits + 2, 3) nodes, the split above each, and its outcome there
    nodes: np.ndarray  # (splits + 1,) the node of each split
    above: np.ndarray  # (splits + 1, 2) the split above each split, -1 if none, and its outcome
    bit: np.ndarray  # (splits + 1,) the player of each split, as a bit
    boxes: np.ndarray  # (splits + 1, 3) each box, the split above it, and its outcome
    key_of: np.ndarray  # (n,) the key of each row, or its number
    z_keys: np.ndarray  # (n,) the keys of background rows
    z_weights: np.ndarray  # (n,) and their weights
    x_keys: np.ndarray  # (n,) the keys of explained rows
    sums: np.ndarray  # (n, …) and their values


class Marks(NamedTuple):
    """Which of many numbers occur: a byte for each, and a byte for each 64 of them."""

    bytes: np.ndarray  # (size,)
    words: np.ndarray  # the same memory, eight bytes at a time
    pages: np.ndarray  # (size / 64,)
    page_words: np.ndarray  # the same memory, eight bytes at a time


class Tables(NamedTuple):
    """Tables of all keys, and of all sets of players; weights are 0 when they are not in use."""

    key_weights: np.ndarray  # (LANES · size,) of background rows
    key_places: np.ndarray  # (size,) the row of `Twig.sums`, or -1
    set_weights: np.ndarray  # (size,) of background rows that fail exactly these players
    set_places: np.ndarray  # (size,) the row of `set_sums`, or -1
    listed: np.ndarray  # (size,) the sets that background rows fail, ascending
    asked: np.ndarray  # (n,) the sets that have a row in `set_sums`
    set_sums: np.ndarray  # (n, …) the values of the players if an explained row fails a set
    bytes_as_numbers: np.ndarray  # (256, 8)


def new_twig(n_splits, n_explained, n, width):
    """Return the buffers of a twig with up to n rows on each side."""
    m = n_splits + 1
    return Twig(
        np.zeros((2 * m, 3), np.int64), np.zeros(m, np.int64), np.zeros((m, 2), np.int64),
        np.zeros(m, np.int64), np.zeros((m, 3), np.int64),
        np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.int64),
        np.zeros((n_explained, width)),
    )  # fmt: skip


def new_marks(size):
    """Return marks of the numbers below `size`."""
    size = max(size, 512)
    marks, pages = np.zeros(size, np.uint8), np.zeros(size // 64, np.uint8)
    return Marks(marks, marks.view(np.uint64), pages, pages.view(np.uint64))


def new_tables(size, n, width):
    """Return tables of keys and sets below `size`, of which up to n explained rows are asked."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return Tables(
        np.zeros(LANES * size), np.full(size, -1, np.int32), np.zeros(size),
        np.full(size, -1, np.int32), np.zeros(size, np.int64), np.zeros(n, np.int64),
        np.zeros((n, width)), bits.astype(float),
    )  # fmt: skip


@inlined
def list_marked(size, marks, mark_words, pages, page_words, listed):
    """List the marked numbers below `size` in ascending order, unmark them, return how many."""
    n = np.int64(0)
    for v in range((size + 511) >> 9):
        if page_words[v] == ZERO:
            continue
        for page in range(8 * v, 8 * v + 8):
            if pages[page] == 0:
                continue
            for w in range(8 * page, 8 * page + 8):
                word = mark_words[w]
                while word != ZERO:
                    listed[n] = 8 * w + (np.int64(trailing_zeros(word)) >> 3)
                    n += 1
                    word &= word - ONE
                mark_words[w] = ZERO
        page_words[v] = ZERO
    return n


@inlined
def fill_keys(
    nodes, twig_nodes, n_splits, sets, is_set, n_bits,
    codes, failed, ids, n, lists, level, key_of,
):  # fmt: skip
    """Fill the keys of rows; a tile of them stays in the nearest cache for all splits."""
    for begin in range(0, n, TILE):
        end = min(begin + TILE, n)
        keys, above = key_of[begin:end], failed[level, begin:end]
        for i in range(end - begin):
            keys[i] = above[i]
        for s in range(n_splits):
            node = twig_nodes[s]
            k = nodes[node, COLUMN]
            one = np.int32(1 << (n_bits + s))
            none = np.int32(0)
            if is_set[k]:
                for i in range(end - begin):
                    row = begin + i if lists < 0 else np.int64(ids[lists, begin + i])
                    goes = goes_left(nodes, node, sets, is_set, codes[k, row])
                    keys[i] |= none if goes else one
                continue
            low = np.int32(1 - nodes[node, MISSING])
            split = np.int32(nodes[node, SPLIT])
            if lists < 0:
                own = codes[k, begin:end]
                for i in range(end - begin):
                    keys[i] |= none if (own[i] >= low) & (own[i] <= split) else one
            else:
                rows = ids[lists, begin:end]
                for i in range(end - begin):
                    c = codes[k, rows[i]]
                    keys[i] |= none if (c >= low) & (c <= split) else one


@inlined
def failed_in_box(key, n_bits, box, boxes, above, bit):
    """Return the players whose conditions in a box a key fails."""
    f = key & ((1 << n_bits) - 1)
    s, outcome = boxes[box, 1], boxes[box, 2]
    while s >= 0:
        if ((key >> (n_bits + s)) & 1) != outcome:
            f |= bit[s]
        outcome = above[s, 1]
        s = above[s, 0]
    return f


@inlined
def list_splits(nodes, root, owner, n_bits, bit_of, players, todo, twig_nodes, above, bit, boxes):
    """List the splits and boxes of a twig; return the number of splits and of players."""
    n_splits = n_boxes = np.int64(0)
    n_players = n_bits
    todo[0, 0], todo[0, 1], todo[0, 2] = root, -1, 0
    top = np.int64(1)
    while top > 0:
        top -= 1
        node, parent, outcome = todo[top, 0], todo[top, 1], todo[top, 2]
        if nodes[node, COLUMN] < 0:
            boxes[n_boxes, 0] = nodes[node, LEFT]
            boxes[n_boxes, 1], boxes[n_boxes, 2] = parent, outcome
            n_boxes += 1
            continue
        g = owner[nodes[node, COLUMN]]
        if bit_of[g] < 0:
            bit_of[g] = n_players
            players[n_players] = g
            n_players += 1
        twig_nodes[n_splits] = node
        bit[n_splits] = np.int64(1) << bit_of[g]
        above[n_splits, 0], above[n_splits, 1] = parent, outcome
        for side in range(2):
            todo[top, 0], todo[top, 1], todo[top, 2] = nodes[node, LEFT + side], n_splits, side
            top += 1
        n_splits += 1
    for j in range(n_bits, n_players):
        bit_of[players[j]] = -1
    return n_splits, n_players


@inlined
def count_keys(n_bits, n_splits, n_players, bit):
    """Return how many keys the rows of a twig can have, if no player has several columns."""
    n_keys = np.int64(1)
    for j in range(n_players):
        n_cells = np.int64(1) + (j < n_bits)
        for s in range(n_splits):
            n_cells += (bit[s] >> j) & 1
        n_keys *= n_cells
    return n_keys


@inlined
def _list_weighted(step, key_weights, z_keys, z_weights):
    """List the keys below `step` that have a weight, with its sum over lanes; set all to 0."""
    n = np.int64(0)
    one, none = spread(1.0), spread(0.0)
    for first in range(0, step, 8):
        sums = load(key_weights, first)
        for lane in range(1, LANES):
            at = lane * step + first
            sums = times_plus(one, load(key_weights, at), sums)
            store(key_weights, at, none)
        word = nonzero(sums)
        if word == ZERO:
            continue
        store(key_weights, first, sums)
        while word != ZERO:
            key = first + lowest(word)
            z_keys[n] = key
            z_weights[n] = number(key_weights, key)
            n += 1
            word &= word - ONE
        store(key_weights, first, none)
    return n


@inlined
def number_keys(key_of, n, places, keys):
    """List the keys of n rows and put their numbers in their place; return how many there are.

    `places` are -1 when they are not in use.
    """
    n_keys = np.int64(0)
    for i in range(n):
        key = np.uint64(key_of[i])
        at = places[key]
        if at < 0:
            at = np.int32(n_keys)
            places[key] = at
            keys[n_keys] = np.int64(key)
            n_keys += 1
        key_of[i] = at
    for i in range(n_keys):
        places[keys[i]] = -1
    return n_keys


@inlined
def list_background_keys(
    nodes, twig_nodes, n_splits, node_sets, is_set, n_bits, weights, level,
    codes, failed, ids, n, lists, key_of, keys, key_sums, key_weights, key_places,
):  # fmt: skip
    """List the keys of background rows with their weights; return how many there are."""
    fill_keys(
        nodes, twig_nodes, n_splits, node_sets, is_set, n_bits,
        codes, failed, ids, n, lists, level, key_of,
    )  # fmt: skip
    step = max(np.int64(1) << (n_bits + n_splits), np.int64(8))
    if step > SCANNED * n:
        n_keys = number_keys(key_of, n, key_places, keys)
        for i in range(n_keys):
            key_sums[i] = 0.0
        for i in range(n):
            row = i if lists < 0 else np.int64(ids[lists, i])
            key_sums[np.uint64(key_of[i])] += number(weights, row)
        return n_keys
    for i in range(n):
        row = i if lists < 0 else np.int64(ids[lists, i])
        at = np.int64(np.uint64(key_of[i])) + step * (row & (LANES - 1))
        put(key_weights, at, number(key_weights, at) + number(weights, row))
    return _list_weighted(step, key_weights, keys, key_sums)


@inlined
def list_keys(
    nodes, twig_nodes, n_splits, node_sets, is_set, n_bits, weights, level,
    z_codes, z_failed, z_ids, nz, lz, x_codes, x_failed, x_ids, nx, lx,
    key_of, z_keys, z_weights, x_keys, key_weights, key_places,
    mark, mark_words, pages, page_words,
):  # fmt: skip
    """List the keys of background rows with their weights, and those of explained rows.

    Return how many there are of both; `key_of` then has the keys of the explained rows.
    """
    n_z = list_background_keys(
        nodes, twig_nodes, n_splits, node_sets, is_set, n_bits, weights, level,
        z_codes, z_failed, z_ids, nz, lz, key_of, z_keys, z_weights, key_weights, key_places,
    )  # fmt: skip
    fill_keys(
        nodes, twig_nodes, n_splits, node_sets, is_set, n_bits,
        x_codes, x_failed, x_ids, nx, lx, level, key_of,
    )  # fmt: skip
    for i in range(nx):
        key = np.uint64(key_of[i])
        mark[key] = 1
        pages[key >> SIX] = 1
    n_keys = np.int64(1) << (n_bits + n_splits)
    n_x = list_marked(n_keys, mark, mark_words, pages, page_words, x_keys)
    return n_z, n_x


@inlined
def list_sets(
    n_z, z_keys, z_weights, n_bits, n_players, box, boxes, above, bit,
    set_weights, mark, mark_words, pages, page_words, listed,
):  # fmt: skip
    """List the sets of players that background rows fail in a box, and fill their weights."""
    for i in range(n_z):
        f = failed_in_box(z_keys[i], n_bits, box, boxes, above, bit)
        mark[f] = 1
        pages[f >> 6] = 1
        set_weights[f] += z_weights[i]
    return list_marked(np.int64(1) << n_players, mark, mark_words, pages, page_words, listed)
