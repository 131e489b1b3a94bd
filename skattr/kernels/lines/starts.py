"""The units of a network where lines start, and where those of the first layer flip."""

import numpy as np

from skattr.kernels.compiled import kernel
from skattr.kernels.keys import as_key, row_of
from skattr.kernels.vectors import WIDTH, choose, load, spread, store, times, unless_zero


def find_places(z, ray, slope, places, keys, bits):
    """Fill in where units at z with the slopes `ray` are 0, inf if nowhere, and keys to sort.

    What is 0 at the start counts as where it goes to the right: to the left, at -0, it flips. A
    place that is too small for a number keeps its sign.
    """
    _find_places(z, ray, slope, places, places.view(np.int64), keys, bits)


@kernel
def _find_places(z, ray, slope, places, words, keys, bits):
    n, m = places.shape
    for i in range(n):
        for h in range(m):
            kinked = (ray[h] != 0.0) & (slope[h] != 1.0)
            place = -z[i, h] / ray[h] if kinked else np.inf
            places[i, h] = -0.0 if kinked & (z[i, h] == 0.0) else place
        for h in range(m):
            keys[i, h] = as_key(words[i, h], h, bits)


@kernel
def find_order(places, order, bits):
    """Turn sorted keys into the units in the order of their places."""
    n, m = places.shape
    for i in range(n):
        for e in range(m):
            unit = row_of(order[i, e], bits)
            place, at = places[i, unit], e
            while at > 0 and places[i, order[i, at - 1]] > place:  # keys are not exact
                order[i, at] = order[i, at - 1]
                at -= 1
            order[i, at] = unit


@kernel
def find_sides(start, u, slope):
    """Fill in on which side the units from u on are, and what they return.

    What is 0 counts as where it goes to the right, on the negative side if it stays 0.
    """
    (n, M), (_, wide) = start.numbers.shape, start.passed.shape
    for i in range(n):
        for h in range(0, len(slope), WIDTH):
            at, to = i * M + u + h, i * wide + h
            z, s = load(start.numbers, at), load(start.slopes, at)
            turn = unless_zero(z, unless_zero(s, spread(-1.0)))
            gain = choose(turn, load(slope, h), spread(1.0))
            store(start.turns, at, turn)
            store(start.passed, to, times(gain, z))
            store(start.passed_slopes, to, times(gain, s))
