"""Sums of Gaussian bumps exp(-Σ_i γ_i (v_i - s_mi)²), over rows and over support vectors m."""

import math

import numpy as np

from skattr.kernels.compiled import kernel

TILE = 256  # rows that stay in the cache during a loop over all support vectors


def add_rows(inputs, weights, bins, supports, gammas, starts, totals, others):
    """Add each row's bumps to totals[m], and those without attribution a to others[m, a, bin].

    Attribution a has the inputs starts[a] to starts[a + 1]. The exponents of the other attributions
    are added up from both sides, never subtracted. others may have no attributions.
    """
    exponents, before = np.empty(len(starts) - 1), np.zeros(len(starts))
    _add_rows(inputs, weights, bins, supports, gammas, starts, totals, others, exponents, before)


@kernel
def _add_rows(inputs, weights, bins, supports, gammas, starts, totals, others, exponents, before):
    n, g = inputs.shape[0], exponents.shape[0]
    for first in range(0, n, TILE):
        for m in range(supports.shape[0]):
            for r in range(first, first + TILE if first + TILE < n else n):
                for a in range(g):
                    exponents[a] = 0.0
                    for i in range(starts[a], starts[a + 1]):
                        gap = inputs[r, i] - supports[m, i]
                        exponents[a] += gammas[i] * gap * gap
                    before[a + 1] = before[a] + exponents[a]
                whole = weights[r] * math.exp(-before[g])
                totals[m] += whole
                after = 0.0
                for a in range(others.shape[1] - 1, -1, -1):
                    if starts[a] == starts[a + 1]:  # the same to the last bit
                        others[m, a, bins[a, r]] += whole
                    else:
                        others[m, a, bins[a, r]] += weights[r] * math.exp(-before[a] - after)
                        after += exponents[a]


@kernel
def add_bumps(inputs, which, supports, gammas, table, coefficients, out):
    """Add Σ_m coefficients[m, o] · table[which[i], m] · bump m at row i to out[i, o]."""
    for i in range(inputs.shape[0]):
        row = which[i]
        for m in range(supports.shape[0]):
            exponent = 0.0
            for c in range(supports.shape[1]):
                gap = inputs[i, c] - supports[m, c]
                exponent += gammas[c] * gap * gap
            bump = table[row, m] * math.exp(-exponent)
            for o in range(out.shape[1]):
                out[i, o] += coefficients[m, o] * bump
