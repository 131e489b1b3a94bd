"""Walks along lines through a ReLU network, and the sum of what they meet.

On a line with the coordinate u every unit is piecewise linear. A walk starts at u = 0 and goes to
the right or to the left. The events of a layer are where its inputs have kinks, in order; between
two of them a unit is linear and passes 0 at most once: it flips. The events of the next layer are
these and the flips. A flip changes the slopes of the next layer by a multiple of one column of its
weights; an earlier event changes them all, and those of one walk are computed together.

Whether a unit is on its positive side is kept, and never inferred from a computed number: `turn` is
1 there, else -1, and turn · z never falls below 0.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

LEAST = 5e-324  # the smallest number that is right of 0
LEAP = 64.0  # from u to beyond that multiple of it slopes are computed afresh


class Units(NamedTuple):
    """A network behind its first affine map; layers stand one behind the other."""

    widths: np.ndarray  # (L,) of the hidden layers
    slopes: np.ndarray  # of the negative side, of all hidden units
    weights: np.ndarray  # transposed, of layer 2, 3, …
    last: np.ndarray  # (k, m) the last affine map


class Start(NamedTuple):
    """All hidden units at u = 0, where 0 counts as where it goes to the right, for n lines."""

    numbers: np.ndarray  # (n, M)
    slopes: np.ndarray  # (n, M) to the right
    places: np.ndarray  # (n, m) where the units of the first layer are 0, sorted; inf: nowhere
    order: np.ndarray  # (n, m) the units in this order
    rays: np.ndarray  # (2, M) slopes behind all events to the right, to the left, for all lines
    out: np.ndarray  # (n, k) slope of the output to the right


class Events(NamedTuple):
    """Kinks of the inputs of a layer, in order."""

    time: np.ndarray  # where they are
    unit: np.ndarray  # the unit of the layer before that flips, or -1 if all slopes change
    amount: np.ndarray  # by how much the slope of what that unit returns rises


class Knots(NamedTuple):
    """Where the output has kinks."""

    place: np.ndarray  # (N,) u
    rise: np.ndarray  # (N, k) of the slope
    line: np.ndarray  # (N,)


@njit(cache=True, nogil=True)
def _room(size):
    return Events(np.empty(size), np.empty(size, np.int64), np.empty(size))


@njit(cache=True, nogil=True)
def _more_knots(knots, n, size):
    """Return knots with room for `size` of them."""
    if size <= len(knots.place):
        return knots
    size = 2 * size
    place, line = np.empty(size), np.empty(size, np.int32)
    rise = np.empty((size, knots.rise.shape[1]))
    place[:n], rise[:n], line[:n] = knots.place[:n], knots.rise[:n], knots.line[:n]
    return Knots(place, rise, line)


@njit(cache=True, nogil=True)
def _first_events(places, order, amounts, side, events):
    """Fill events with the start and the flips of the first layer; return their number.

    What is 0 at the start counts as where it goes to the right: to the left it flips at once.
    """
    n = 1
    events.time[0], events.unit[0], events.amount[0] = 0.0, -1, 0.0
    middle = np.searchsorted(places, 0.0, side="right")
    begin, end, step = (middle, len(places), 1) if side > 0.0 else (middle - 1, -1, -1)
    for e in range(begin, end, step):
        if abs(places[e]) == np.inf:
            break
        events.time[n], events.unit[n] = abs(places[e]), order[e]
        events.amount[n] = amounts[order[e]]
        n += 1
    return n


@njit(cache=True, nogil=True, fastmath={"contract"})
def _advance(s, amount, weights, unit, turn, y, ahead, du, gain, outgoing, e):
    """Let slopes follow a flip, and move on; return how many units have passed 0 then."""
    passed = 0
    for i in range(len(s)):
        s[i] += amount * weights[unit, i]
        ahead[i] = y[i] + s[i] * du
        passed += ahead[i] * turn[i] < 0.0
        outgoing[e, i] = gain[i] * s[i]
    return passed


# sums in any order, which is faster; NaN stays NaN
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _advance_last(s, amount, weights, unit, turn, y, ahead, du, shares, outgoing, e):
    """Do the same for the last hidden layer; outputs have `shares` (k, m) of its slopes."""
    passed = 0
    total = 0.0
    for i in range(len(s)):
        s[i] += amount * weights[unit, i]
        ahead[i] = y[i] + s[i] * du
        passed += ahead[i] * turn[i] < 0.0
        total += shares[0, i] * s[i]
    outgoing[e, 0] = total
    for o in range(1, len(shares)):
        total = 0.0
        for i in range(len(s)):
            total += shares[o, i] * s[i]
        outgoing[e, o] = total
    return passed


@njit(cache=True, nogil=True)
def _slopes(weights, incoming, s):
    """Fill s with the slopes of a layer, given those of what the units before it return."""
    s[:] = 0.0
    for h in range(len(incoming)):
        if incoming[h] != 0.0:
            for i in range(len(s)):
                s[i] += incoming[h] * weights[h, i]


@njit(cache=True, nogil=True)
def _next(ahead, turn, i):
    """Return the first unit from i on that has passed 0."""
    while not ahead[i] * turn[i] < 0.0:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _put(events, first, n, u, unit, amount):
    """Insert an event among those from `first` on, which are in order; there are n."""
    place = n
    while place > first and events.time[place - 1] > u:
        events.time[place] = events.time[place - 1]
        events.unit[place] = events.unit[place - 1]
        events.amount[place] = events.amount[place - 1]
        place -= 1
    events.time[place], events.unit[place], events.amount[place] = u, unit, amount


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(weights, slope, z, up, events, n, incoming, fresh, ray, last, outgoing, following):
    """Follow the units of a layer past all events; fill in those of the next layer.

    `up` says which units are on their positive side. `incoming` has the slopes of what the units
    before return at the events where all of them change, `fresh` what follows for this layer, `ray`
    (m,) the slopes behind the last event. `outgoing` gets the slopes after each event: of what the
    units return, (n, m), or of the output, (n, k), if `last` is not empty. Returns the number of
    events in `following`, which has room for n · (m + 1).
    """
    m = len(z)
    y, ahead, s = z.copy(), np.empty(m), np.zeros(m)
    turn, gain = np.where(up, 1.0, -1.0), np.where(up, 1.0, slope)
    shares = last * gain if len(last) else last
    entering = incoming[0].copy()
    count, row = 0, 0
    for e in range(n):
        ends = e + 1 == n
        begin = events.time[e]
        end = np.inf if ends else events.time[e + 1]
        du = 0.0 if ends else end - begin
        unit, amount = events.unit[e], events.amount[e]
        if unit < 0:
            entering[:], s[:] = incoming[row], fresh[row]
            row += 1
            unit, amount = 0, 0.0
        else:
            entering[unit] += amount
        if ends:
            s[:], amount = ray, 0.0
        elif du > LEAP * begin and begin > 0.0:  # what is left of slopes that cancel would count
            _slopes(weights, entering, s)
            amount = 0.0
        if len(last):
            passed = _advance_last(
                s, amount, weights, unit, turn, y, ahead, du, shares, outgoing, e
            )
        else:
            passed = _advance(s, amount, weights, unit, turn, y, ahead, du, gain, outgoing, e)
        following.time[count], following.unit[count] = begin, -1
        count += 1
        if ends:  # as far away as can be
            for i in range(m):
                ahead[i] = s[i]
                passed += s[i] * turn[i] < 0.0
        if passed > 0:
            first = count
            i = -1
            for _ in range(passed):
                i = _next(ahead, turn, i + 1)
                u = min(begin - y[i] / s[i], end)
                if slope[i] != 1.0 and u < np.inf:
                    _put(following, first, count, u, i, (1.0 - slope[i]) * abs(s[i]))
                    count += 1
                turn[i] = -turn[i]
                gain[i] = 1.0 if turn[i] > 0.0 else slope[i]
                for o in range(len(last)):
                    shares[o, i] = last[o, i] * gain[i]
        y, ahead = ahead, y
    return count


@njit(cache=True, nogil=True)
def _emit(last, slope, events, n, outgoing, side, weight, line, knots, total):
    """Append the kinks of the output at events, where it has the given slope at first.

    Returns the number of all knots.
    """
    fresh = 0
    for e in range(n):
        unit = events.unit[e]
        if unit < 0:
            fresh += 1
            if e == 0:  # the start
                continue
        some = False
        for o in range(len(last)):
            if unit < 0:
                rise = outgoing[fresh - 1, o] - slope[o]
            else:
                rise = last[o, unit] * events.amount[e]
            slope[o] += rise
            knots.rise[total, o] = weight * rise
            some = some or rise != 0.0
        if some:
            at = max(events.time[e], LEAST) if side > 0.0 else -events.time[e]
            knots.place[total], knots.line[total] = at, line
            total += 1
    return total


@njit(cache=True, nogil=True)
def walk_lines(units, start, weight, first):
    """Walk along some lines; return all knots of the output, times the weights of the lines.

    The first line has the number `first`. A kink at u = 0 is one of the walk to the left.
    """
    L, m1, k = len(units.widths), units.widths[0], len(units.last)
    none = np.empty((0, 0))
    here, there = _room(m1 + 1), _room(m1 + 1)
    room = len(weight) * units.widths.sum() + 256
    knots = Knots(np.empty(room), np.empty((room, k)), np.empty(room, np.int32))
    amounts = (1.0 - units.slopes[:m1]) * np.abs(start.rays[0, :m1])
    total = 0
    for i in range(len(weight)):
        z, s = start.numbers[i], start.slopes[i]
        up = (z > 0.0) | ((z == 0.0) & (s > 0.0))
        for side in (1.0, -1.0):
            ray = start.rays[0 if side > 0.0 else 1]
            n = _first_events(start.places[i], start.order[i], amounts, side, here)
            outgoing = np.empty((1, m1))
            outgoing[0] = side * np.where(up[:m1], s[:m1], units.slopes[:m1] * s[:m1])
            w, u = 0, m1
            for layer in range(1, L):
                m, p = units.widths[layer], units.widths[layer - 1]
                weights = units.weights[w : w + m * p].reshape(p, m)
                own = slice(u, u + m)
                incoming, fresh = outgoing, np.empty((1, m))
                if layer == 1:
                    fresh[0] = side * s[own]
                else:
                    fresh = np.dot(incoming, weights)
                last = units.last if layer + 1 == L else none
                outgoing = np.empty((n, k if layer + 1 == L else m))
                if n * (m + 1) > len(there.time):
                    there = _room(2 * n * (m + 1))
                n = _walk(
                    weights, units.slopes[own], z[own], up[own], here, n, incoming, fresh, ray[own],
                    last, outgoing, there,
                )  # fmt: skip
                here, there = there, here
                w, u = w + m * p, u + m
            knots = _more_knots(knots, total, total + n)
            total = _emit(
                units.last, side * start.out[i], here, n, outgoing, side, weight[i], first + i,
                knots, total,
            )  # fmt: skip
    return Knots(knots.place[:total], knots.rise[:total], knots.line[:total])
