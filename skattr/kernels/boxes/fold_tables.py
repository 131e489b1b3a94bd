"""Errors from the background by code, from the sums of all folds."""

import numpy as np

from skattr.kernels.compiled import kernel


@kernel
def fill_errors(jumps, start, end, cumulate, scale, base, weights, n_folds, run, errors):
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
