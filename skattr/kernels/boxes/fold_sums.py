"""The sums of one_violation.py for each fold of the background, in the same walk.

The rows of fold f stand in the words f, G + f, 2 G + f, … of a set, so that the weights of a set by
fold take the popcounts of its weight. What a box adds to a curve begins and ends at splits on its
path: sums by fold are kept for each level of the path, where they stay in the cache, and are added
to the table of all codes once for each node.
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
    popcount,
    restrict,
    tail,
)
from skattr.kernels.boxes.layout import (
    ADMITS,
    COLUMN,
    HIGH,
    LEFT,
    LOW,
    SPLIT,
    add_own,
    add_total,
    narrow,
    new_path,
)
from skattr.kernels.boxes.one_violation import fill_side, index_rows, new_sets
from skattr.kernels.compiled import called, inlined, kernel


class ByFold(NamedTuple):
    """Sums by fold, which the last axis counts."""

    jumps: np.ndarray  # (m, k, G) rows of `where`
    where: np.ndarray  # (n_nodes,) the row of a split, -1 if its column has no order
    levels: np.ndarray  # (n, k, G) codes of columns without order
    level_start: np.ndarray  # (d,) where these begin in `levels`
    constant: np.ndarray  # (g, k, G)
    total: np.ndarray  # (k, G)


class FoldPath(NamedTuple):
    """Sums by fold along a path, and which of its levels bound the interval of each column."""

    # (levels + 2 d + 2, k, G): of each level; what begins at the first code of each column; what
    # its missing code gets; two rows for what has no place
    sums: np.ndarray
    bound: np.ndarray  # (2, d) the level of the last split that moved LOW or HIGH, -1 for none
    saved: np.ndarray  # (levels, 2) those of each level's column above it
    weights: np.ndarray  # (2, G) of the set A, and of one set E
    counts: np.ndarray  # (G,)
    stack: np.ndarray  # (levels, n_slots, words / G, G) a view of Sets.stack
    side: np.ndarray  # (levels + 1, words / G, G) a view of Sets.side


def index_folds(codes, weights, offset, folds, n_folds):
    """Return the rows of a block, indexed with their places by fold, and the set of all places."""
    n = len(folds)
    order = np.argsort(folds, kind="stable")
    sizes = np.bincount(folds, minlength=n_folds)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n) - (np.cumsum(sizes) - sizes)[folds[order]]
    places = ((rank // WORD) * n_folds + folds) * WORD + rank % WORD
    n_places = -(-int(sizes.max()) // WORD) * n_folds * WORD
    everyone = np.zeros(n_places, np.bool_)
    everyone[places] = True
    return index_rows(codes, weights, offset, places, n_places), as_words(everyone)


def walk(table, trees, owners, rows, everyone, sums, by_fold):
    """Add the contributions of one block of rows to the boxes of some trees that have splits.

    Returns what begins at the first code of each column, and what its missing code gets, (d, k, G).
    """
    sets = new_sets(table, owners, rows.codes.shape[1], everyone)
    levels, d, (k, n_folds) = table.depth + 2, len(table.is_set), by_fold.total.shape
    path = FoldPath(
        np.zeros((levels + 2 * d + 2, k, n_folds)),
        np.full((2, d), -1, np.int32),
        np.zeros((levels, 2), np.int32),
        np.zeros((2, n_folds)),
        np.zeros(n_folds, np.int64),
        sets.stack.reshape(*sets.stack.shape[:2], -1, n_folds),
        sets.side.reshape(len(sets.side), -1, n_folds),
    )
    _walk(table, trees, owners, rows, sums, new_path(table), sets, by_fold, path)
    return path.sums[levels : levels + d], path.sums[levels + d : levels + 2 * d]


@inlined
def weigh_folds(stack, level, slot, side, row, flip, weights, equal, by_fold, at, counts):
    """Fill by_fold[at] with the weights of `bits.weigh` by fold, and return their sum.

    The words of stack and side have two axes, of which the last counts folds: loops over a sum of
    indices would not be vectorised, and take four times as long.
    """
    n_folds = counts.shape[0]
    if equal:
        odd = stack.shape[2] & 1
        for f in range(n_folds):
            word = stack[level, slot, 0, f] & (side[row, 0, f] ^ flip) if odd else ZERO
            counts[f] = np.int64(popcount(word))
        for p in range(odd, stack.shape[2], 2):  # two at once: counts are written half as often
            for f in range(n_folds):
                word = stack[level, slot, p, f] & (side[row, p, f] ^ flip)
                other = stack[level, slot, p + 1, f] & (side[row, p + 1, f] ^ flip)
                counts[f] += np.int64(popcount(word)) + np.int64(popcount(other))
        each = weights[0]
        count = np.int64(0)
        for f in range(n_folds):
            count += counts[f]
            by_fold[at, f] = counts[f] * each
        return count * each
    total = 0.0
    for f in range(n_folds):
        by_fold[at, f] = 0.0
        for p in range(stack.shape[2]):
            word = stack[level, slot, p, f] & (side[row, p, f] ^ flip)
            while word != ZERO:
                by_fold[at, f] += weights[64 * (p * n_folds + f) + lowest(word)]
                word &= word - ONE
        total += by_fold[at, f]
    return total


@called
def add_folds(target, row, output, value, weights, at):
    """Add value · weights[at] to one output of a row of sums by fold."""
    for f in range(weights.shape[1]):
        target[row, output, f] += value * weights[at, f]


@inlined
def add_own_folds(
    values, box, output, some, weight, j, k, offset, is_set, interval, allowed,
    constant, levels, level_start, sums, bound, n_levels, weights,
):  # fmt: skip
    """Do what `layout.add_own` does for each fold; E weighs `some`, and A `weight`."""
    n = offset[k + 1] - offset[k]
    for o in range(values.shape[1]):
        x = values[box, o]
        if weight != 0.0:
            add_folds(constant, j, output + o, -x, weights, 0)
        if some == 0.0:
            continue
        if is_set[k]:
            flip = flip_to_fewer(allowed, k, n)
            sign = x
            if flip != ZERO:
                sign = -x
                add_folds(constant, j, output + o, x, weights, 1)
            for w in range(n_words(n)):
                word = (allowed[k, w] ^ flip) & tail(n, w)
                while word != ZERO:
                    c = level_start[k] + 64 * w + lowest(word)
                    word &= word - ONE
                    add_folds(levels, c, output + o, sign, weights, 1)
            continue
        d = is_set.shape[0]
        low = bound[LOW, k] if bound[LOW, k] >= 0 else n_levels + k
        high = bound[HIGH, k] if bound[HIGH, k] >= 0 else n_levels + 2 * d
        absent = n_levels + d + k if interval[ADMITS, k] else n_levels + 2 * d + 1
        if interval[LOW, k] > interval[HIGH, k]:
            if interval[ADMITS, k]:
                add_folds(sums, absent, output + o, x, weights, 1)
            continue
        for f in range(weights.shape[1]):  # of rows that differ: one loop is vectorised
            sum_of_fold = x * weights[1, f]
            sums[low, output + o, f] += sum_of_fold
            sums[high, output + o, f] -= sum_of_fold
            sums[absent, output + o, f] += sum_of_fold


@inlined
def move_bounds(k, split, turn, saved_interval, bound, saved, level):
    """Set the levels that bound column k, as `layout.narrow` sets its interval."""
    if turn == 1:
        saved[level, LOW] = bound[LOW, k]
        saved[level, HIGH] = bound[HIGH, k]
    moves_high = turn == 1 and split < saved_interval[level, HIGH]
    moves_low = turn == 2 and split >= saved_interval[level, LOW]
    bound[LOW, k] = level if moves_low else saved[level, LOW]
    bound[HIGH, k] = level if moves_high else saved[level, HIGH]


@inlined
def open_level(sums, level, output, width):
    """Set the sums of a level of the path to 0."""
    for o in range(output, output + width):
        for f in range(sums.shape[2]):
            sums[level, o, f] = 0.0


@inlined
def close_level(sums, level, output, width, row, jumps):
    """Add the sums of a level of the path to those of its split."""
    for o in range(output, output + width):
        for f in range(sums.shape[2]):
            jumps[row, o, f] += sums[level, o, f]


@kernel
def _walk(table, trees, owners, rows, sums, path, row_sets, by_fold, fold_path):
    nodes, roots, values, sets, offset, is_set, _ = table
    owner, single, group = owners
    _, order, start, prefixes, missing, weights, equal = rows
    jumps, constant, total, box_weights = sums
    node_at, turn, interval, allowed, saved, saved_allowed = path
    stack, side, active, n_sets = row_sets
    fold_jumps, where, levels, level_start, fold_constant, fold_total = by_fold
    level_sums, bound, saved_bound, fold_weights, counts, fold_stack, fold_side = fold_path
    everything = side.shape[0] - 1
    n_levels = turn.shape[0]
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
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
                open_level(level_sums, level, output, values.shape[1])
            narrow(
                nodes, node, now, sets, offset, is_set,
                interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if not is_set[k]:
                move_bounds(k, nodes[node, SPLIT], now, saved, bound, saved_bound, level)
            if now == 3:
                if where[node] >= 0:
                    close_level(level_sums, level, output, values.shape[1], where[node], fold_jumps)
                level -= 1
                continue
            child = nodes[node, now]
            inner = nodes[child, COLUMN] >= 0
            g = owner[k]
            n = n_sets[level]
            mine = n if g >= 0 else -1
            for s in range(1, n):
                if active[level, s] == g:
                    mine = s
            count = np.int64(0)
            any_row = False
            weight = 0.0
            for s in range(n + (mine == n)):
                slot = s if s < n else 0
                j = active[level, s] if s < n else g
                free = s == mine
                row = everything if free else level
                flip = ALL if now == 2 and not free else ZERO
                if inner:
                    kept = restrict(stack, level, slot, side, row, flip, count)
                    any_row |= kept
                    if kept or s == 0:
                        active[level + 1, count] = j
                        count += 1
                    continue
                some = weigh_folds(
                    fold_stack, level, slot, fold_side, row, flip, weights, equal,
                    fold_weights, 0 if s == 0 else 1, counts,
                )  # fmt: skip
                box = nodes[child, LEFT]
                if s == 0:
                    weight = some
                    add_total(values, box, output, weight, total, box_weights)
                    if weight != 0.0:
                        for o in range(values.shape[1]):
                            for f in range(fold_total.shape[1]):
                                fold_total[output + o, f] += values[box, o] * fold_weights[0, f]
                else:
                    add_own(
                        values, box, output, weight, j, some, offset, is_set,
                        interval, allowed, single, group, jumps, constant, box_weights,
                    )  # fmt: skip
                    add_own_folds(
                        values, box, output, some, weight, j, single[j], offset, is_set,
                        interval, allowed, fold_constant, levels, level_start,
                        level_sums, bound, n_levels, fold_weights,
                    )  # fmt: skip
            if any_row:
                level += 1
                n_sets[level] = count
                node_at[level] = child
                turn[level] = 0


@kernel
def add_rows(events, rows, jumps):
    """Add rows of sums by fold to those of a table, in order; row -1 is left out."""
    for i in range(events.shape[0]):
        r = rows[i]
        if r >= 0:
            for o in range(events.shape[1]):
                for f in range(events.shape[2]):
                    jumps[r, o, f] += events[i, o, f]


@kernel
def spread(jumps, start, end, cumulate, scale, base, weights, n_folds, run, errors):
    """Fill errors[start:end] with the jackknife's errors of a curve, see solution/folds.py.

    The sums of fold f at a code are scale · (jumps, cumulated behind the missing code) + base,
    base (k, G); run (k, G) is a buffer, n_folds the number of folds that have weight.
    """
    all_weight = 0.0
    for f in range(weights.shape[0]):
        all_weight += weights[f]
    for c in range(start, end):
        for o in range(run.shape[0]):
            total = 0.0
            for f in range(run.shape[1]):
                before = run[o, f] if cumulate and c > start + 1 else 0.0
                run[o, f] = before + jumps[c, o, f]
                total += scale * run[o, f] + base[o, f]
            mean = total / all_weight
            first = 0.0
            second = 0.0
            for f in range(run.shape[1]):
                moved = weights[f] * mean - (scale * run[o, f] + base[o, f])
                moved /= all_weight - weights[f]
                first += moved
                second += moved * moved
            variance = second - first * first / n_folds
            if variance < 0.0:
                variance = 0.0
            errors[c, o] = np.sqrt(variance * (n_folds - 1) / n_folds)
