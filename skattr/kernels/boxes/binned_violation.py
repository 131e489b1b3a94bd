"""Push rows down all trees as in one_violation.py, with separate sums for each bin of x_j.

For a conditional measure the weight of a box b in the curve of attribution j at t, in bin B, is

    1[t meets the conditions on j] · Σ_s κ_j[B, s] C_{b,j,s},

C_{b,j,s} the weight of the rows of E_{b,j} in bin s (docs/mathematics.md, section 3). So every row
of E_{b,j} adds x = value · weight to sums that κ is applied to once, at the end:

- `whole[B, s]`, cumulated over B: x from bin B on (+x behind the first code's bin, -x behind the
  bin of the code that follows the last). What lies inside these two bins goes to `jumps` at the
  place code + B, with κ. Where codes rise with bins, code + B numbers all pairs that can meet.
- `whole[code, s]`, cumulated over codes where they have an order, for all other columns.

A box without a condition on j counts for j with the rows of A_b: `fit` has f at each row, `without`
takes the boxes with a condition on j out again.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import (
    ALL,
    ONE,
    ZERO,
    flip_to_fewer,
    lowest,
    n_words,
    tail,
)
from skattr.kernels.boxes.layout import (
    ADMITS,
    COLUMN,
    HIGH,
    LEFT,
    LOW,
    go_down,
    new_path,
    next_turn,
    start_walk,
)
from skattr.kernels.boxes.one_violation import fill_side, new_sets, restrict_sets, slot_of
from skattr.kernels.compiled import inlined, kernel


class Binning(NamedTuple):
    """The bins of all columns. Tables are flat, one column after the other."""

    bins: np.ndarray  # (d, n) the bin of each row
    n_bins: np.ndarray  # (d,) number of bins of rows, "missing" and "any other" included
    rises: np.ndarray  # (d,) whether codes rise with bins: see above
    first: np.ndarray  # (n_codes,) the first bin in which a code can be
    missing: np.ndarray  # (d,) the code of missing, or -1
    kappa: np.ndarray  # flat (n_bins, n_bins)
    kappa_start: np.ndarray  # (d,)
    whole_start: np.ndarray  # (d,)
    jumps_start: np.ndarray  # (d,)
    without_start: np.ndarray  # (d,)


class BinnedSums(NamedTuple):
    """The sums that the kernel adds to; the first axis is the output."""

    whole: np.ndarray  # flat (n_bins + 1, n_bins), missing last, or (n_codes + 1, n_bins)
    jumps: np.ndarray  # flat (n_codes + n_bins,)
    without: np.ndarray  # flat (n_bins,)
    fit: np.ndarray  # (k, n)


@inlined
def _add_inside(
    stack, level, side, flip, values, box, output, weights, fit,
    single, active, n_active, bins, without_start, without,
):  # fmt: skip
    """Add a box's value to its rows, and subtract it for columns with conditions in the box."""
    for w in range(stack.shape[2]):
        word = stack[level, 0, w] & (side[level, w] ^ flip)
        while word != ZERO:
            r = 64 * w + lowest(word)
            word &= word - ONE
            for o in range(values.shape[1]):
                x = values[box, o]
                fit[output + o, r] += x
                for s in range(1, n_active):
                    k = single[active[level, s]]
                    without[output + o, without_start[k] + bins[k, r]] -= x * weights[r]


@inlined
def _list(stack, level, slot, side, row, flip, weights, bins, k, bin_of, weight):
    """Fill bin_of and weight with the bins and weights of a set of rows; return how many."""
    n = 0
    for w in range(stack.shape[2]):
        word = stack[level, slot, w] & (side[row, w] ^ flip)
        while word != ZERO:
            r = 64 * w + lowest(word)
            word &= word - ONE
            bin_of[n] = bins[k, r]
            weight[n] = weights[r]
            n += 1
    return n


@inlined
def _add_row(sums, o, start, n, bin_of, weight, x):
    """Add x · weight to the bins of a list."""
    for i in range(n):
        sums[o, start + bin_of[i]] += x * weight[i]


@inlined
def _dot(kappa, start, n, bin_of, weight):
    """Return the sum of κ · weight over the bins of a list."""
    total = 0.0
    for i in range(n):
        total += kappa[start + bin_of[i]] * weight[i]
    return total


@inlined
def _add_rising(
    values, box, output, k, low, high, n_codes, admits, m, n, bin_of, weight, first, base,
    missing, kappa, kappa_start, whole_sums, whole_start, jumps, jumps_start,
):  # fmt: skip
    """Add rows where codes rise with bins."""
    width = values.shape[1]
    if low <= high:
        begin = first[base + low]
        gains = _dot(kappa, kappa_start[k] + begin * m, n, bin_of, weight)
        ends = high + 1 < n_codes
        end = first[base + high + 1] if ends else 0
        loses = _dot(kappa, kappa_start[k] + end * m, n, bin_of, weight) if ends else 0.0
        for o in range(width):
            x = values[box, o]
            jumps[output + o, jumps_start[k] + low + begin] += x * gains
            if ends:
                jumps[output + o, jumps_start[k] + high + 1 + end] -= x * loses
            if not (ends and begin == end):
                start = whole_start[k] + (begin + 1) * m
                _add_row(whole_sums, output + o, start, n, bin_of, weight, x)
                if ends:
                    start = whole_start[k] + (end + 1) * m
                    _add_row(whole_sums, output + o, start, n, bin_of, weight, -x)
    if admits if missing[k] == 0 else low <= missing[k] <= high:
        for o in range(width):
            _add_row(
                whole_sums, output + o, whole_start[k] + m * m, n, bin_of, weight, values[box, o]
            )


@inlined
def _add_by_code(
    values, box, output, k, low, high, n_codes, admits, m, n, bin_of, weight, is_set, allowed,
    whole_sums, whole_start,
):  # fmt: skip
    """Add rows to the codes of a column that meet the conditions."""
    start = whole_start[k]
    for o in range(values.shape[1]):
        x = values[box, o]
        if is_set[k]:
            flip = flip_to_fewer(allowed, k, n_codes)
            if flip != ZERO:  # add to all codes, and subtract from those that are not in the box
                _add_row(whole_sums, output + o, start + n_codes * m, n, bin_of, weight, x)
                x = -x
            for w in range(n_words(n_codes)):
                word = (allowed[k, w] ^ flip) & tail(n_codes, w)
                while word != ZERO:
                    c = 64 * w + lowest(word)
                    word &= word - ONE
                    _add_row(whole_sums, output + o, start + c * m, n, bin_of, weight, x)
            continue
        if low <= high:
            _add_row(whole_sums, output + o, start + low * m, n, bin_of, weight, x)
            if high + 1 < n_codes:
                _add_row(whole_sums, output + o, start + (high + 1) * m, n, bin_of, weight, -x)
        if admits:
            _add_row(whole_sums, output + o, start, n, bin_of, weight, x)


class Listed(NamedTuple):
    """The rows of a set as a list."""

    bins: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)


def walk(table, trees, owners, rows, binning, sums):
    """Add the contributions of one block of rows to trees, for attributions of one column."""
    n = rows.codes.shape[1]
    path, sets = new_path(table), new_sets(table, owners, n)
    listed = Listed(np.empty(n, np.int32), np.empty(n))
    _walk(table, trees, owners, rows, binning, sums, path, sets, listed)


@kernel
def _walk(table, trees, owners, rows, binning, sums, path, row_sets, listed):
    nodes, roots, values, sets, offset, is_set, _ = table
    owner, single, _ = owners
    _, order, start, prefixes, missing, weights, _ = rows
    (bins, n_bins, rises, first, missing_code, kappa, kappa_start, whole_start, jumps_start,
     without_start) = binning  # fmt: skip
    whole_sums, jumps, without, fit = sums
    node_at, turn, interval, allowed, saved, saved_allowed = path
    stack, side, active, n_sets = row_sets
    bin_of, weight = listed
    everything = side.shape[0] - 1
    for i in range(trees.shape[0]):
        t = trees[i]
        output = roots[t, 1]
        level = start_walk(roots[t, 0], node_at, turn)
        while level >= 0:
            node = node_at[level]
            now = next_turn(
                nodes, sets, offset, is_set,
                node_at, turn, interval, allowed, saved, saved_allowed, level,
            )  # fmt: skip
            if now == 1:
                fill_side(
                    nodes, node, sets, offset, is_set,
                    order, start, prefixes, missing, side, level,
                )  # fmt: skip
            if now == 3:
                level -= 1
                continue
            child = nodes[node, now]
            g = owner[nodes[node, COLUMN]]
            n = n_sets[level]
            own_slot = slot_of(active, level, n, g)
            last = n + (own_slot == n)
            if own_slot == n:
                active[level, n] = g
            if nodes[child, COLUMN] >= 0:
                count = restrict_sets(stack, side, active, level, n, own_slot, g, now)
                if count > 0:
                    level = go_down(child, node_at, turn, level)
                    n_sets[level] = count
                continue
            box = nodes[child, LEFT]
            for s in range(last):
                slot = s if s < n else 0  # the first condition on g: E_g is A
                free = s == own_slot  # the split puts no condition on these rows
                row = everything if free else level
                flip = ALL if now == 2 and not free else ZERO
                if s == 0:
                    _add_inside(
                        stack, level, side, flip, values, box, output, weights, fit,
                        single, active, last, bins, without_start, without,
                    )  # fmt: skip
                    continue
                k = single[active[level, s]]
                m = n_bins[k]
                base = offset[k]
                n_codes = offset[k + 1] - base
                size = _list(stack, level, slot, side, row, flip, weights, bins, k, bin_of, weight)
                if rises[k]:
                    _add_rising(
                        values, box, output, k, interval[LOW, k], interval[HIGH, k], n_codes,
                        interval[ADMITS, k], m, size, bin_of, weight, first, base, missing_code,
                        kappa, kappa_start, whole_sums, whole_start, jumps, jumps_start,
                    )  # fmt: skip
                else:
                    _add_by_code(
                        values, box, output, k, interval[LOW, k], interval[HIGH, k], n_codes,
                        interval[ADMITS, k], m, size, bin_of, weight, is_set, allowed,
                        whole_sums, whole_start,
                    )  # fmt: skip
