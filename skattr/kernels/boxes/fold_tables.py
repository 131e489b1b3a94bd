"""Errors from the background by code, from the sums of all folds."""

import numpy as np

from skattr.kernels.compiled import kernel
from skattr.kernels.lines.vectors import WIDTH, load, spread, store, times, times_plus, total


@kernel
def fill_errors(jumps, start, end, cumulate, scale, base, weights, shares, n_folds, work, errors):
    """Fill errors[start:end] with the jackknife's errors of a curve, see solution/folds.py.

    The sums of fold f at a code are scale · (jumps, cumulated behind the missing code) + base,
    base (k, G). `shares` are 1 / (W - weights), (G,), with W the sum of weights; n_folds is the
    number of folds that have weight; work (2, k, G) is a buffer.
    """
    n_outputs, n = base.shape
    one, minus, factor = spread(1.0), spread(-1.0), spread(scale)
    all_weights = spread(0.0)
    for f in range(0, n, WIDTH):
        all_weights = times_plus(one, load(weights, f), all_weights)
    all_weight = total(all_weights)
    for c in range(start, end):
        goes_on = cumulate and c > start + 1
        for o in range(n_outputs):
            at, own, here = (c * n_outputs + o) * n, o * n, (n_outputs + o) * n
            sums = spread(0.0)
            for f in range(0, n, WIDTH):
                curve = load(jumps, at + f)
                if goes_on:
                    curve = times_plus(one, load(work, own + f), curve)
                store(work, own + f, curve)
                of_fold = times_plus(factor, curve, load(base, own + f))
                store(work, here + f, of_fold)
                sums = times_plus(one, of_fold, sums)
            mean = spread(total(sums) / all_weight)
            firsts, seconds = spread(0.0), spread(0.0)
            for f in range(0, n, WIDTH):
                without = times_plus(minus, load(work, here + f), times(load(weights, f), mean))
                moved = times(without, load(shares, f))
                firsts = times_plus(one, moved, firsts)
                seconds = times_plus(moved, moved, seconds)
            first = total(firsts)
            variance = total(seconds) - first * first / n_folds
            if variance < 0.0:
                variance = 0.0
            errors[c, o] = np.sqrt(variance * (n_folds - 1) / n_folds)
