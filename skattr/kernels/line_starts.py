"""The units of a network where lines start, and where those of the first layer flip."""

import numpy as np

from skattr.kernels.compiled import kernel

MOST = np.finfo(np.float64).max


@kernel
def find_places(z, ray, slope, places, keys, bits):
    """Fill in where units at z with the slopes `ray` are 0, inf if nowhere, and keys to sort.

    A key is that number, some of its last bits replaced by the number of the unit.
    """
    n, m = places.shape
    numbers = keys.view(np.float64)
    for i in range(n):
        for h in range(m):
            kinked = (ray[h] != 0.0) & (slope[h] != 1.0)
            place = -z[i, h] / ray[h] if kinked else np.inf
            places[i, h] = place
            place = MOST if place > MOST else place
            numbers[i, h] = -MOST if place < -MOST else place
        for h in range(m):
            keys[i, h] = keys[i, h] >> bits << bits | h


@kernel
def find_order(places, order, bits):
    """Turn sorted keys into the units in the order of their places."""
    n, m = places.shape
    for i in range(n):
        for e in range(m):
            unit = order[i, e] & ((1 << bits) - 1)
            place, at = places[i, unit], e
            while at > 0 and places[i, order[i, at - 1]] > place:  # keys are not exact
                order[i, at] = order[i, at - 1]
                at -= 1
            order[i, at] = unit


@kernel
def find_sides(z, s, slope, turns, passed):
    """Fill in on which side units are, and what they return: numbers, and slopes to the right."""
    n, m = z.shape
    for i in range(n):
        for h in range(m):
            up = (z[i, h] > 0.0) | ((z[i, h] == 0.0) & (s[i, h] > 0.0))
            gain = 1.0 if up else slope[h]
            turns[i, h] = 0.0 if slope[h] == 1.0 else 1.0 if up else -1.0
            passed[0, i, h], passed[1, i, h] = gain * z[i, h], gain * s[i, h]
