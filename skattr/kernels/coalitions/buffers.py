"""Buffers of coalitions on boxes (walk.py): one thread uses them for any number of trees."""

import math
from typing import NamedTuple

import numpy as np

from skattr.kernels.coalitions.pending_sums import TWIGS, Pending, most_sums
from skattr.kernels.coalitions.set_values import RATES
from skattr.kernels.coalitions.twig_pairs import Pairs, new_pairs, triangle_size
from skattr.kernels.coalitions.twigs import (
    WIDE,
    Marks,
    Tables,
    Twig,
    new_marks,
    new_tables,
    new_twig,
)
from skattr.kernels.lines.vectors import aligned

KEY_BITS = 12  # the longest keys
KEYS_OF_ROWS = 2  # background rows per key that can occur in a twig
WINDOW = 12  # players by which rows are compared before they are dropped
DENSE = 64  # values of a row up to which all of them are added at once, as vectors
DENSE_PAIRS = 192  # the same for pairs, of which a box has more


class Side(NamedTuple):
    """Rows on their way down a tree: the explained ones, or those of the background."""

    codes: np.ndarray  # (d, n)
    failed: np.ndarray  # (levels, n) the players whose conditions a row fails, as bits
    ids: np.ndarray  # (levels, n) the rows in the list of a level
    n_rows: np.ndarray  # (levels,) the length of the list
    list_of: np.ndarray  # (levels,) the level whose list is used, -1 if it has all rows
    marks: np.ndarray  # (2^WINDOW,) bytes: which sets occur, then which contain one that occurs
    mark_words: np.ndarray  # the same memory as words of eight bytes


class Steps(NamedTuple):
    """The path down a tree, and the players that have conditions on it."""

    node_at: np.ndarray  # (levels,)
    turn: np.ndarray  # (levels,) 0 above a node, 1 in its left child, 2 in its right one
    is_first: np.ndarray  # (levels,) whether the player of the node has no condition above it
    bit_of: np.ndarray  # (g,) the bit of a player on the path
    players: np.ndarray  # (levels + splits of a twig,) the player of each bit


class SetSums(NamedTuple):
    """The values of players for sets of failed players (set_values.py)."""

    z_sets: np.ndarray  # (n,) those of background rows or keys, as words
    z_weights: np.ndarray  # (n,)
    x_sets: np.ndarray  # (n,) those of explained keys
    members: np.ndarray  # (players, words) which sets of background rows do not have a player
    members_as_numbers: np.ndarray  # the same memory
    disjoint: np.ndarray  # (words,) which of them are disjoint from a set
    disjoint_as_numbers: np.ndarray  # the same memory
    sizes: np.ndarray  # (sets · lanes,) weights by size, 0 when they are not in use
    rates: np.ndarray  # (sets · RATES,)
    values: np.ndarray  # (sets · lanes,)
    row_sizes: np.ndarray  # (24 · (WIDE + 1),) 0 when they are not in use
    row_values: np.ndarray  # (64,)
    local: np.ndarray  # (17,) the bit in the twig of each player of a box
    path: np.ndarray  # (splits, 3) the splits above a box of a twig
    lane_of: np.ndarray  # (17,) the place of a player among the values of a set
    mask: np.ndarray  # (64,) 1 in these places, 0 when it is not in use
    columns: np.ndarray  # (64,) the position of a player among the values of a row


class Buffers(NamedTuple):
    """The values of the rows, and all that a walk down the trees writes to."""

    values: np.ndarray  # (n, …)
    key_bits: int
    most_keys: int
    dense: bool  # whether all values of a row are added at once
    bits: np.ndarray  # (64,)
    steps: Steps
    twig: Twig
    marks: Marks
    tables: Tables
    background: Side
    explained: Side
    set_sums: SetSums
    pending: Pending
    pairs: Pairs | None  # None: single players


def new_set_sums(n_players, n, lanes):
    """Return buffers for up to n rows on each side; lanes are the values per set."""
    n_sets = max(2 ** min(n_players, WIDE - 1), 4)
    shapes = (n_sets * 16, n_sets * RATES, n_sets * lanes, 24 * (WIDE + 1), 64)
    words = _padded(-(-n // 64))
    members, disjoint = zeros(64, words), zeros(words)
    return SetSums(
        np.zeros(n, np.uint64), np.zeros(n), np.zeros(n, np.uint64),
        members.view(np.uint64), members, disjoint.view(np.uint64), disjoint,
        *(zeros(size) for size in shapes),
        np.zeros(WIDE + 1, np.int64), np.zeros((WIDE + 1, 3), np.int64),
        np.zeros(WIDE + 1, np.int64), zeros(64), np.zeros(64, np.int64),
    )  # fmt: skip


def zeros(*shape):
    """Return an array of zeros that begins with a line of the cache."""
    array = aligned(math.prod(shape))
    array[:] = 0.0
    return array.reshape(shape)


def new_side(codes, levels, dtype):
    """Return the rows at a root."""
    n = codes.shape[1]
    marks = np.zeros(2**WINDOW, np.uint8)
    return Side(
        codes,
        np.zeros((levels, n), dtype),
        np.zeros((levels, n), np.int32),
        np.full(levels, n, np.int64),
        np.full(levels, -1, np.int64),
        marks,
        marks.view(np.uint64),
    )


def new_buffers(table, shape, n_players, codes, explained):
    """Return the buffers of `add_differences`, which one thread uses for any number of calls.

    Parameters
    ----------
    table : Table
    shape : tuple
        That of the values, (n, g, k).
    n_players : int
        The largest number of players in a box.
    codes, explained : arrays (d, m), (d, n)
        The codes of the background and of the explained rows.
    """
    (_, g, k), m = shape, codes.shape[1]
    dense = g * k <= DENSE
    n_values = _padded(g * k) if dense else g * k
    widths = n_values, WIDE * table.values.shape[1], 1
    most_keys = min(max(m // KEYS_OF_ROWS, 8), 2**KEY_BITS)
    return _buffers(table, g, n_players, codes, explained, KEY_BITS, most_keys, dense, widths, None)


def new_pair_buffers(table, shape, n_players, codes, explained, columns):
    """Return buffers with which `add_differences` adds second differences, (n, pairs, k).

    columns (g, g) are the positions of the pairs among the values, -1 for those that are not
    computed.
    """
    n, n_pairs, k = shape
    key_bits = key_size(codes.shape[1]) + 1  # boxes cost more here, so that longer keys pay
    most = min(len(columns), max(min(n_players, WIDE), key_bits))  # players of a twig
    size, dense = triangle_size(most), n_pairs * k <= DENSE_PAIRS
    n_values = _padded(n_pairs * k) if dense else n_pairs * k
    pairs = new_pairs(columns, n if dense else 1, n_values if dense else 1, most)
    widths = n_values, size * table.values.shape[1], size
    g = len(columns)
    return _buffers(table, g, n_players, codes, explained, key_bits, 0, dense, widths, pairs)


def _padded(n):
    """Return the next multiple of eight."""
    return -(-n // 8) * 8


def _buffers(table, g, n_players, codes, explained, key_bits, most_keys, dense, widths, pairs):
    """Return buffers for g players; widths are those of values, keys and sets of players."""
    levels, n = table.depth + 2, explained.shape[1]
    dtype = np.uint32 if n_players <= 32 else np.uint64
    size = 2 ** max(min(n_players, WIDE), key_bits)
    steps = Steps(
        np.zeros(levels, np.int32), np.zeros(levels, np.int8), np.zeros(levels, np.bool_),
        np.full(g, -1, np.int64), np.zeros(levels + key_bits, np.int64),
    )  # fmt: skip
    n_pending = most_sums(n) if dense and pairs is None else 1
    pending = Pending(
        zeros(n_pending, widths[0]), np.zeros((TWIGS, n), np.int32), np.zeros(2, np.int64)
    )
    return Buffers(
        zeros(n, widths[0]),
        key_bits,
        most_keys,
        dense,
        (np.uint64(1) << np.arange(64, dtype=np.uint64)).astype(dtype),
        steps,
        new_twig(key_bits + 1, n, max(n, codes.shape[1]), widths[1]),
        new_marks(size),
        new_tables(size, n, widths[2]),
        new_side(codes, levels, dtype),
        new_side(explained, levels, dtype),
        new_set_sums(n_players if pairs is None else 0, max(n, codes.shape[1]), 16),
        pending,
        pairs,
    )


def key_size(n):
    """Return the number of bits of keys for n background rows: several rows share a key."""
    return min(max(int(math.log2(n) - 2), 3), 11)
