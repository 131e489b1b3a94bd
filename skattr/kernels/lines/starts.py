"""The units of a network where lines start, and where those of the first layer flip.

With numpy in their place, curves of one hidden layer took at least a fifth longer.
"""

import numpy as np

from skattr.kernels.compiled import kernel
from skattr.kernels.lines.keys import as_key, row_of
from skattr.kernels.lines.vectors import WIDTH, choose, load, spread, store, times, unless_zero


def find_positions(z, ray, slope, positions, keys, bits):
    """Fill in where units at z with the slopes `ray` are 0, inf if nowhere, and keys to sort.

    What is 0 at the start counts as where it goes to the right: to the left, at -0, it flips. A
    position that is too small for a number keeps its sign.
    """
    _find_positions(z, ray, slope, positions, positions.view(np.int64), keys, bits)


@kernel
def _find_positions(z, ray, slope, positions, words, keys, bits):
    n, m = positions.shape
    for i in range(n):
        for h in range(m):
            kinked = (ray[h] != 0.0) & (slope[h] != 1.0)
            position = -z[i, h] / ray[h] if kinked else np.inf
            positions[i, h] = -0.0 if kinked & (z[i, h] == 0.0) else position
        for h in range(m):
            keys[i, h] = as_key(words[i, h], h, bits)


@kernel
def find_order(positions, order, bits):
    """Turn sorted keys into the units in the order of their positions."""
    n, m = positions.shape
    for i in range(n):
        for e in range(m):
            unit, at = row_of(order[i, e], bits), e
            position = positions[i, unit]
            while at > 0 and positions[i, order[i, at - 1]] > position:  # keys are not exact
                order[i, at] = order[i, at - 1]
                at -= 1
            order[i, at] = unit


@kernel
def find_sides(start, u, slope):
    """Fill in on which side the units from u on are, and what they return.

    What is 0 counts as where it goes to the right, on the negative side if it stays 0.
    """
    (n, M), (_, wide) = start.values.shape, start.returned.shape
    for i in range(n):
        for h in range(0, len(slope), WIDTH):
            at, to = i * M + u + h, i * wide + h
            z, s = load(start.values, at), load(start.slopes, at)
            turn = unless_zero(z, unless_zero(s, spread(-1.0)))
            gain = choose(turn, load(slope, h), spread(1.0))
            store(start.turns, at, turn)
            store(start.returned, to, times(gain, z))
            store(start.returned_slopes, to, times(gain, s))
