"""The sums of one_violation.py for each fold of the background, in the same walk.

The rows of fold f are in the words f, G + f, 2 G + f, … of a set, so that the weights of a set by
fold take the popcounts of its weight; G is a multiple of eight, and the last folds may have no
rows. A box adds once for each set: to the side of the last split on its column for E, to the node
above it for A. What these add to curves is distributed once for each node: to the splits that bound
the intervals of its sides, and to the table of all codes.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import (
    ALL,
    ONE,
    WORD,
    ZERO,
    as_words,
    flip_to_fewer,
    lowest,
    n_words,
    prefetch,
    tail,
)
from skattr.kernels.boxes.layout import (
    ADMITS,
    COLUMN,
    HIGH,
    LEFT,
    LOW,
    MISSING,
    SPLIT,
    add_own,
    add_total,
    narrow,
    new_path,
)
from skattr.kernels.boxes.one_violation import (
    fill_side,
    index_rows,
    new_sets,
    restrict_sets,
    slot_of,
)
from skattr.kernels.compiled import inlined, kernel
from skattr.kernels.lines.vectors import (
    WIDTH,
    add_common,
    aligned_zeros,
    counted,
    load,
    spread,
    store,
    times,
    times_plus,
    total,
)


class ByFold(NamedTuple):
    """Sums by fold, which the last axis counts."""

    jumps: np.ndarray  # (m, k, G) by code, or by rows of `where`
    where: np.ndarray  # (n_nodes,) the row of a split; empty if rows are codes
    levels: np.ndarray  # (n, k, G) codes of columns without order
    level_start: np.ndarray  # (d,) where these begin in `levels`
    constant: np.ndarray  # (g, k, G)
    total: np.ndarray  # (1, k, G)


class FoldPath(NamedTuple):
    """Sums by fold along a path, and which of its levels bound the interval of each column."""

    # (levels + 2 d + 1, k, G): jumps at the split of each level; what begins at the first code of
    # each column; what its missing code gets; a row for what ends behind the last code
    sums: np.ndarray
    sides: np.ndarray  # (2 levels, k, G) x · E of boxes whose last split on their column this is
    under: np.ndarray  # (levels, k, G) x · A of the boxes under each level
    bound: np.ndarray  # (2, d) the level of the last split that moved LOW or HIGH, -1 for none
    saved: np.ndarray  # (levels, 2) those of each level's column above it
    last: np.ndarray  # (d,) the row of `sides` of the last split on each column
    saved_last: np.ndarray  # (levels,) that of each level's column above it
    weights: np.ndarray  # (G,) of a set
    stack: np.ndarray  # the bits of Sets.stack, for `vectors.load`
    side: np.ndarray  # the bits of Sets.side


def index_folds(codes, weights, offset, folds, n_folds):
    """Return the rows of a block, indexed with their places by fold, and the set of all places."""
    n = len(folds)
    order = np.argsort(folds, kind="stable")
    sizes = np.bincount(folds, minlength=n_folds)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n) - (np.cumsum(sizes) - sizes)[folds[order]]
    places = ((rank // WORD) * n_folds + folds) * WORD + rank % WORD
    n_places = -(-int(sizes.max()) // WORD) * n_folds * WORD
    all_rows = np.zeros(n_places, np.bool_)
    all_rows[places] = True
    return index_rows(codes, weights, offset, places, n_places), as_words(all_rows)


def walk(table, trees, owners, rows, all_rows, sums, by_fold):
    """Add the contributions of one block of rows to the boxes of some trees that have splits.

    Returns what begins at the first code of each column, and what its missing code gets, (d, k, G).
    """
    sets = new_sets(table, owners, rows.codes.shape[1], all_rows)
    levels, d, (_, k, n_folds) = table.depth + 2, len(table.is_set), by_fold.total.shape
    path = FoldPath(
        aligned_zeros(levels + 2 * d + 1, k, n_folds),
        aligned_zeros(2 * levels, k, n_folds),
        aligned_zeros(levels, k, n_folds),
        np.full((2, d), -1, np.int32),
        np.zeros((levels, 2), np.int32),
        np.zeros(d, np.int32),
        np.zeros(levels, np.int32),
        aligned_zeros(n_folds),
        sets.stack.view(np.float64),
        sets.side.view(np.float64),
    )
    _walk(table, trees, owners, rows, sums, new_path(table), sets, by_fold, path)
    return path.sums[levels : levels + d], path.sums[levels + d : levels + 2 * d]


@inlined
def weigh_folds(words, side_words, stack, level, slot, side, row, flip, weights, equal, by_fold):
    """Fill by_fold with the weights of `bits.weigh` by fold, and return their sum.

    `words` and `side_words` are the bits of stack and side.
    """
    n_folds, n_words = by_fold.shape[0], stack.shape[2]
    if equal:
        start, start_side = (level * stack.shape[1] + slot) * n_words, row * n_words
        one, each = spread(1.0), spread(weights[0])
        all_folds = spread(0.0)
        for f in range(0, n_folds, WIDTH):
            counts = spread(0.0)
            for w in range(f, n_words, n_folds):
                counts = add_common(
                    counts, load(words, start + w), load(side_words, start_side + w), flip
                )
            numbers = counted(counts)
            store(by_fold, f, times(numbers, each))
            all_folds = times_plus(numbers, one, all_folds)
        return total(all_folds) * weights[0]
    weight = 0.0
    for f in range(n_folds):
        by_fold[f] = 0.0
        for w in range(f, n_words, n_folds):
            word = stack[level, slot, w] & (side[row, w] ^ flip)
            while word != ZERO:
                by_fold[f] += weights[64 * w + lowest(word)]
                word &= word - ONE
        weight += by_fold[f]
    return weight


@inlined
def add_folds(target, row, output, factor, source, source_row):
    """Add factor · source[source_row] to an output of a row of sums by fold."""
    n_folds = target.shape[2]
    at = (row * target.shape[1] + output) * n_folds
    start = (source_row * target.shape[1] + output) * n_folds
    factors = spread(factor)
    for f in range(0, n_folds, WIDTH):
        numbers = times_plus(factors, load(source, start + f), load(target, at + f))
        store(target, at + f, numbers)


@inlined
def add_weights(target, row, output, factor, weights):
    """Add factor · weights, (G,), to an output of a row of sums by fold."""
    at = (row * target.shape[1] + output) * target.shape[2]
    factors = spread(factor)
    for f in range(0, target.shape[2], WIDTH):
        store(target, at + f, times_plus(factors, load(weights, f), load(target, at + f)))


@inlined
def add_set(values, box, output, j, k, offset, allowed, constant, levels, level_start, weights):
    """Count a box with the weight E of an attribution whose column k has no order."""
    n = offset[k + 1] - offset[k]
    flip = flip_to_fewer(allowed, k, n)
    for o in range(values.shape[1]):
        x = values[box, o]
        if flip != ZERO:  # add to all codes, and subtract from those that are not in the box
            add_weights(constant, np.int64(j), output + o, x, weights)
            x = -x
        for w in range(n_words(n)):
            word = (allowed[k, w] ^ flip) & tail(n, w)
            while word != ZERO:
                c = level_start[k] + 64 * w + lowest(word)
                word &= word - ONE
                add_weights(levels, c, output + o, x, weights)


@inlined
def move_bounds(k, split, turn, saved_interval, bound, saved, last, saved_last, level):
    """Set the levels that bound column k, as `layout.narrow` sets its interval."""
    if turn == 1:
        saved[level, LOW] = bound[LOW, k]
        saved[level, HIGH] = bound[HIGH, k]
        saved_last[level] = last[k]
    moves_high = turn == 1 and split < saved_interval[level, HIGH]
    moves_low = turn == 2 and split >= saved_interval[level, LOW]
    bound[LOW, k] = level if moves_low else saved[level, LOW]
    bound[HIGH, k] = level if moves_high else saved[level, HIGH]
    last[k] = saved_last[level] if turn == 3 else 2 * level + turn - 1


@inlined
def open_level(sums, sides, under, level, output, width):
    """Set the sums of a level of the path to 0."""
    for o in range(output, output + width):
        for f in range(sums.shape[2]):
            sums[level, o, f] = 0.0
            sides[2 * level, o, f] = 0.0
            sides[2 * level + 1, o, f] = 0.0
            under[level, o, f] = 0.0


@inlined
def place_of(nodes, node, offset, is_set, owner, where):
    """Return the row of `ByFold.jumps` that a split has, or -1."""
    k = nodes[node, COLUMN]
    code = offset[k] + nodes[node, SPLIT] + 1
    if is_set[k] or owner[k] < 0 or code >= offset[k + 1]:
        return np.int64(-1)
    return np.int64(where[node] if where.shape[0] > 0 else code)


@inlined
def close_sides(
    k, split, left_missing, level, output, width, interval, bound, n_levels, sums, sides
):
    """Add what the boxes on both sides of an ordered split have to the splits that bound them.

    A side whose interval is empty has no codes but, perhaps, the missing one.
    """
    d = interval.shape[1]
    low, high = interval[LOW, k], interval[HIGH, k]
    first = bound[LOW, k] if bound[LOW, k] >= 0 else n_levels + k
    end = bound[HIGH, k] if bound[HIGH, k] >= 0 else n_levels + 2 * d
    left, right = 2 * level, 2 * level + 1
    lowest_side = right if split < low else left
    highest_side = left if split >= high else right
    for o in range(output, output + width):
        if interval[ADMITS, k]:
            add_folds(sums, n_levels + d + k, o, 1.0, sides, left if left_missing else right)
        if low > high:
            continue
        add_folds(sums, first, o, 1.0, sides, lowest_side)
        add_folds(sums, end, o, -1.0, sides, highest_side)
        if lowest_side != highest_side:
            add_folds(sums, level, o, 1.0, sides, right)
            add_folds(sums, level, o, -1.0, sides, left)


@inlined
def close_level(level, output, width, place, first_of, sums, under, jumps, constant, whole):
    """Add the sums of a level to the level above, to the code of its split, and to constants.

    `first_of` is the attribution of which it has the first condition on the path, or -1.
    """
    for o in range(output, output + width):
        if place >= 0:
            add_folds(jumps, place, o, 1.0, sums, level)
        if first_of >= 0:
            add_folds(constant, first_of, o, -1.0, under, level)
        if level > 0:
            add_folds(under, level - 1, o, 1.0, under, level)
        else:  # level 0: for a literal 0 numba would compile `add_folds` once more
            add_folds(whole, level, o, 1.0, under, level)


@kernel
def _walk(table, trees, owners, rows, sums, path, row_sets, by_fold, fold_path):
    nodes, roots, values, sets, offset, is_set, _ = table
    owner, single, group = owners
    _, order, start, prefixes, missing, weights, equal = rows
    jumps, constant, all_boxes, box_weights = sums
    node_at, turn, interval, allowed, saved, saved_allowed = path
    stack, side, active, n_sets = row_sets
    fold_jumps, where, levels, level_start, fold_constant, fold_total = by_fold
    (
        level_sums, sides, under, bound, saved_bound, last, saved_last,
        fold_weights, words, side_words,
    ) = fold_path  # fmt: skip
    everything = side.shape[0] - 1
    n_levels = turn.shape[0]
    width = values.shape[1]
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        # written out as in one_violation.py, where the cost of sharing it is noted
        level = np.int64(0)
        node_at[0] = roots[t, 0]
        turn[0] = 0
        while level >= 0:
            node = node_at[level]
            turn[level] += 1
            now = turn[level]
            k = nodes[node, COLUMN]
            if now == 1:
                fill_side(
                    nodes, node, sets, offset, is_set,
                    order, start, prefixes, missing, side, level,
                )  # fmt: skip
                open_level(level_sums, sides, under, level, output, width)
                place = place_of(nodes, node, offset, is_set, owner, where)
                if place >= 0:
                    prefetch(fold_jumps, place)
            narrow(
                nodes, node, now, sets, offset, is_set,
                interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            split = nodes[node, SPLIT]
            if not is_set[k]:
                move_bounds(k, split, now, saved, bound, saved_bound, last, saved_last, level)
            g = owner[k]
            n = n_sets[level]
            own_slot = slot_of(active, level, n, g)
            if now == 3:
                if g >= 0 and not is_set[k]:
                    close_sides(
                        k, split, nodes[node, MISSING], level, output, width, interval, bound,
                        n_levels, level_sums, sides,
                    )  # fmt: skip
                close_level(
                    level, output, width, place_of(nodes, node, offset, is_set, owner, where),
                    g if own_slot == n else -1, level_sums, under,
                    fold_jumps, fold_constant, fold_total,
                )  # fmt: skip
                level -= 1
                continue
            child = nodes[node, now]
            if nodes[child, COLUMN] >= 0:
                count = restrict_sets(stack, side, active, level, n, own_slot, g, now)
                if count > 0:
                    level += 1
                    n_sets[level] = count
                    node_at[level] = child
                    turn[level] = 0
                continue
            weight = 0.0
            for s in range(n + (own_slot == n)):
                slot = s if s < n else 0
                j = active[level, s] if s < n else g
                free = s == own_slot
                row = everything if free else level
                flip = ALL if now == 2 and not free else ZERO
                some = weigh_folds(
                    words, side_words, stack, level, slot, side, row, flip, weights, equal,
                    fold_weights,
                )  # fmt: skip
                box = nodes[child, LEFT]
                if s == 0:
                    weight = some
                    add_total(values, box, output, weight, all_boxes, box_weights)
                    if weight != 0.0:
                        for o in range(width):
                            add_weights(under, level, output + o, values[box, o], fold_weights)
                    continue
                add_own(
                    values, box, output, weight, j, some, offset, is_set,
                    interval, allowed, single, group, jumps, constant, box_weights,
                )  # fmt: skip
                if some != 0.0 and is_set[single[j]]:
                    add_set(
                        values, box, output, j, single[j], offset, allowed,
                        fold_constant, levels, level_start, fold_weights,
                    )  # fmt: skip
                elif some != 0.0:
                    side_row = np.int64(last[single[j]])
                    for o in range(width):
                        add_weights(sides, side_row, output + o, values[box, o], fold_weights)


@kernel
def add_rows(events, rows, jumps):
    """Add rows of sums by fold to those of a table, in order; row -1 is left out."""
    for i in range(events.shape[0]):
        r = rows[i]
        if r >= 0:
            for o in range(events.shape[1]):
                for f in range(events.shape[2]):
                    jumps[r, o, f] += events[i, o, f]
