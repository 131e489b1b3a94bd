"""Units of one hidden layer along a line, past all events of the layer before.

Between two events a unit is linear in u. Slopes and values do not depend on which units flip, so
that four events are taken in one pass over the units, in vectors; the few units that pass 0
meanwhile are followed once more, one by one. Whether a unit is on its positive side is kept, and
never inferred from a computed number: `turn` is 1 there, else -1, and turn · y never falls below 0.

A call with many arrays would cost as much as an event: what happens at events is inlined.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skattr.kernels.compiled import inlined, inlined_in_any_order, kernel

BLOCK = 4  # events that are taken together
LEAST = 5e-324  # the smallest number that is right of 0
LEAP = 64.0  # from u to beyond that multiple of it slopes are computed afresh
MOST = np.finfo(np.float64).max
LOWEST = np.array([0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0])  # bit of four
TURN, GAIN, LOW, TRACK = 4, 5, 6, 7  # of a state; s and y are in rows 0 and 1, or 2 and 3
FOUND, COUNT, FLIPPED = 0, 1, 2  # of numbers


class Events(NamedTuple):
    """Kinks of the inputs of a layer, in order, and what happens there."""

    time: np.ndarray  # where they are
    unit: np.ndarray  # the unit of the layer before that flips, or -1 if all slopes change
    amount: np.ndarray  # by how much the slope of what that unit returns rises
    row: np.ndarray  # s ← keep · s + factor · rows[row], and up to the next event y ← y + du · s
    steps: np.ndarray  # (3, size) factor, keep and du


class Line(NamedTuple):
    """A walk along a line."""

    side: float  # 1 to the right, -1 to the left
    weight: float  # by which rises are multiplied
    number: int
    slope: np.ndarray  # (k,) of the output, up to now


class Knots(NamedTuple):
    """Where the output has kinks."""

    place: np.ndarray  # (N,) u
    rise: np.ndarray  # (N, k) of the slope
    line: np.ndarray  # (N,)


class Room(NamedTuple):
    """Room for the m units of a layer."""

    state: np.ndarray  # (8, …) see above; gain is the slope of the side, low the least turn · y
    share: np.ndarray  # (k, m) what k outputs have of the last layer's units, else (0, m)
    flips: np.ndarray  # (2, BLOCK, m) behind four events: where, and by how much slopes rise
    entering: np.ndarray  # (p,) slopes of what the layer before returns
    numbers: np.ndarray  # (6, …) units that pass 0; how many flip behind four events, and which


@njit(cache=True, nogil=True)
def room_for_events(size):
    """Return room for events, and some that do not happen."""
    size += BLOCK
    time, unit, amount = np.empty(size), np.empty(size, np.int64), np.empty(size)
    return Events(time, unit, amount, np.empty(size, np.int64), np.empty((3, size)))


@njit(cache=True, nogil=True)
def room_for_units(m, p, k):
    """Return room for units."""
    wide = m + 2 * BLOCK
    state, share = np.empty((8, wide)), np.empty((k, m))
    flips, entering = np.empty((2, BLOCK, m)), np.empty(p)
    return Room(state, share, flips, entering, np.empty((2 + BLOCK, wide), np.int64))


@njit(cache=True, nogil=True)
def more_rows(array, kept, size):
    """Return an array with at least `size` rows, of which the first are kept."""
    if size <= len(array):
        return array
    wider = np.empty((2 * size, array.shape[1]))
    for i in range(kept):
        for c in range(array.shape[1]):
            wider[i, c] = array[i, c]
    return wider


@kernel
def plan(rows, p, events, n, incoming, n_incoming, ray, entering):
    """Fill in what happens at n events, and that nothing does behind them.

    `rows` are the p rows of the weights, transposed, then n_incoming rows of slopes of the layer
    where all of them change, and room for n + 1 more; `incoming` the slopes of what the layer
    before returns there; `ray` those of the layer behind the last event, where it goes on as far as
    numbers do; `entering` room for p numbers. Where the next event is far away, what is left of
    slopes that cancel would count: they are computed afresh.
    """
    time, unit, amount, row, steps = events
    fresh, free = 0, p + n_incoming
    for e in range(n - 1):
        row[e], steps[0, e], steps[1, e] = unit[e], amount[e], 1.0
        steps[2, e] = time[e + 1] - time[e]
        if unit[e] < 0:
            row[e], steps[0, e], steps[1, e] = p + fresh, 1.0, 0.0
            fresh += 1
        elif steps[2, e] > LEAP * time[e] and time[e] > 0.0:
            _afresh(rows, p, unit, amount, e, incoming, fresh - 1, entering, free)
            row[e], steps[0, e], steps[1, e] = free, 1.0, 0.0
            free += 1
    for i in range(len(ray)):
        rows[free, i] = ray[i]
    row[n - 1], steps[0, n - 1], steps[1, n - 1], steps[2, n - 1] = free, 1.0, 0.0, MOST
    time[n] = np.inf
    for e in range(n, n + BLOCK - 1):
        row[e], steps[0, e], steps[1, e], steps[2, e] = 0, 0.0, 1.0, 0.0


@kernel
def _afresh(rows, p, unit, amount, e, incoming, fresh, entering, row):
    """Fill a row with the slopes behind an event, given the last of `incoming` before it."""
    for h in range(p):
        entering[h] = incoming[fresh, h]
    while unit[e] >= 0:
        entering[unit[e]] += amount[e]
        e -= 1
    for i in range(rows.shape[1]):
        rows[row, i] = 0.0
    for h in range(p):
        for i in range(rows.shape[1]):
            rows[row, i] += entering[h] * rows[h, i]


@kernel
def walk_layer(rows, slope, z, up, last, events, n, room, out, following, line, knots, total):
    """Follow the units of a layer past n events; fill in those of the next layer.

    At u = 0 the units are at z, those that are `up` on their positive side. `out` gets the slopes
    of what they return after each event, (n, m), with room for BLOCK more, `following` the events,
    with room for n · (m + 1). If the layer is the last, k outputs have `last` (k, m) of it, `out`
    gets their slopes, and their kinks are appended to `total` knots. Returns the number of events,
    or of knots.
    """
    state, share = room.state, room.share
    here, there = 0, 2
    for i in range(len(z)):
        state[here, i], state[here + 1, i] = 0.0, z[i]
        state[TURN, i] = 1.0 if up[i] else -1.0
        state[GAIN, i] = 1.0 if up[i] else slope[i]
    for o in range(len(last)):
        for i in range(len(z)):
            share[o, i] = last[o, i] * state[GAIN, i]
    for e in range(0, n, BLOCK):
        if len(last) == 0:
            _advance(rows, events, e, len(z), state, here, there, out)
        else:
            _advance_last(rows, events, e, len(z), state, here, there, share, out)
        n_found = _find(state, room.numbers, len(z))
        _flip(rows, events, e, slope, last, room, n_found, here, there, out)
        for b in range(BLOCK if n - e > BLOCK else n - e):
            if len(last) == 0:
                total = _follow(events, e, room, b, following, total)
            else:
                total = _put(events, e, room, b, last, out, line, knots, total)
        here, there = there, here
    return total


@inlined
def _advance(rows, events, e, m, state, here, there, out):
    """Go past four events as if no unit flipped, and find the least turn · y of each."""
    _, _, _, row, steps = events
    r0, r1, r2, r3 = row[e], row[e + 1], row[e + 2], row[e + 3]
    a0, a1, a2, a3 = steps[0, e], steps[0, e + 1], steps[0, e + 2], steps[0, e + 3]
    k0, k1, k2, k3 = steps[1, e], steps[1, e + 1], steps[1, e + 2], steps[1, e + 3]
    d0, d1, d2, d3 = steps[2, e], steps[2, e + 1], steps[2, e + 2], steps[2, e + 3]
    for i in range(m):
        s0 = k0 * state[here, i] + a0 * rows[r0, i]
        s1 = k1 * s0 + a1 * rows[r1, i]
        s2 = k2 * s1 + a2 * rows[r2, i]
        s3 = k3 * s2 + a3 * rows[r3, i]
        y0 = state[here + 1, i] + s0 * d0
        y1 = y0 + s1 * d1
        y2 = y1 + s2 * d2
        y3 = y2 + s3 * d3
        v0, v1 = y0 * state[TURN, i], y1 * state[TURN, i]
        v2, v3 = y2 * state[TURN, i], y3 * state[TURN, i]
        v0 = v1 if v1 < v0 else v0  # one instruction, unlike min
        v2 = v3 if v3 < v2 else v2
        state[LOW, i] = v2 if v2 < v0 else v0
        state[there, i], state[there + 1, i] = s3, y3
        out[e, i], out[e + 1, i] = state[GAIN, i] * s0, state[GAIN, i] * s1
        out[e + 2, i], out[e + 3, i] = state[GAIN, i] * s2, state[GAIN, i] * s3


@inlined_in_any_order
def _advance_last(rows, events, e, m, state, here, there, share, out):
    """Do the same for the last layer; one loop with a choice in it would not become vectors."""
    _, _, _, row, steps = events
    r0, r1, r2, r3 = row[e], row[e + 1], row[e + 2], row[e + 3]
    a0, a1, a2, a3 = steps[0, e], steps[0, e + 1], steps[0, e + 2], steps[0, e + 3]
    k0, k1, k2, k3 = steps[1, e], steps[1, e + 1], steps[1, e + 2], steps[1, e + 3]
    d0, d1, d2, d3 = steps[2, e], steps[2, e + 1], steps[2, e + 2], steps[2, e + 3]
    t0 = t1 = t2 = t3 = 0.0
    for i in range(m):
        s0 = k0 * state[here, i] + a0 * rows[r0, i]
        s1 = k1 * s0 + a1 * rows[r1, i]
        s2 = k2 * s1 + a2 * rows[r2, i]
        s3 = k3 * s2 + a3 * rows[r3, i]
        y0 = state[here + 1, i] + s0 * d0
        y1 = y0 + s1 * d1
        y2 = y1 + s2 * d2
        y3 = y2 + s3 * d3
        v0, v1 = y0 * state[TURN, i], y1 * state[TURN, i]
        v2, v3 = y2 * state[TURN, i], y3 * state[TURN, i]
        v0 = v1 if v1 < v0 else v0  # one instruction, unlike min
        v2 = v3 if v3 < v2 else v2
        state[LOW, i] = v2 if v2 < v0 else v0
        state[there, i], state[there + 1, i] = s3, y3
        t0 += share[0, i] * s0
        t1 += share[0, i] * s1
        t2 += share[0, i] * s2
        t3 += share[0, i] * s3
    out[e, 0], out[e + 1, 0], out[e + 2, 0], out[e + 3, 0] = t0, t1, t2, t3
    for o in range(1, len(share)):
        t0 = t1 = t2 = t3 = 0.0
        for i in range(m):
            s0 = k0 * state[here, i] + a0 * rows[r0, i]
            s1 = k1 * s0 + a1 * rows[r1, i]
            s2 = k2 * s1 + a2 * rows[r2, i]
            t0 += share[o, i] * s0
            t1 += share[o, i] * s1
            t2 += share[o, i] * s2
            t3 += share[o, i] * state[there, i]
        out[e, o], out[e + 1, o], out[e + 2, o], out[e + 3, o] = t0, t1, t2, t3


@inlined
def _find(state, numbers, m):
    """Fill in the units that pass 0; return how many. A branch nobody could foresee is avoided."""
    n = 0
    for i in range(m):
        numbers[FOUND, n] = i
        n += state[LOW, i] < 0.0
    return n


@inlined
def _flip(rows, events, e, slope, last, room, n_found, here, there, out):
    """Follow the units that were found past four events; put down where they flip, mend out."""
    time, _, _, row, steps = events
    state, share, _, _, numbers = room
    r0, r1, r2, r3 = row[e], row[e + 1], row[e + 2], row[e + 3]
    a0, a1, a2, a3 = steps[0, e], steps[0, e + 1], steps[0, e + 2], steps[0, e + 3]
    k0, k1, k2, k3 = steps[1, e], steps[1, e + 1], steps[1, e + 2], steps[1, e + 3]
    d0, d1, d2, d3 = steps[2, e], steps[2, e + 1], steps[2, e + 2], steps[2, e + 3]
    numbers[COUNT, 0] = numbers[COUNT, 1] = numbers[COUNT, 2] = numbers[COUNT, 3] = 0
    c1 = c2 = c3 = 0.0  # by how much the slopes of the first output are wrong
    for f in range(n_found):
        i = np.uint64(numbers[FOUND, f])  # unsigned: an index from the front
        s0 = k0 * state[here, i] + a0 * rows[r0, i]
        s1 = k1 * s0 + a1 * rows[r1, i]
        s2 = k2 * s1 + a2 * rows[r2, i]
        s3 = k3 * s2 + a3 * rows[r3, i]
        y0 = state[here + 1, i] + s0 * d0
        y1 = y0 + s1 * d1
        y2 = y1 + s2 * d2
        y3 = y2 + s3 * d3
        state[there, i], state[there + 1, i] = s3, y3
        state[TRACK, 0], state[TRACK, 1], state[TRACK, 2], state[TRACK, 3] = s0, s1, s2, s3
        state[TRACK, 4], state[TRACK, 5] = state[here + 1, i], y0
        state[TRACK, 6], state[TRACK, 7] = y1, y2
        turn = state[TURN, i]
        b0, b1, b2, b3 = y0 * turn < 0.0, y1 * turn < 0.0, y2 * turn < 0.0, y3 * turn < 0.0
        changes = b0 | (b1 != b0) << 1 | (b2 != b1) << 2 | (b3 != b2) << 3
        while changes and slope[i] != 1.0:
            b = LOWEST[changes]
            changes &= changes - 1
            u = time[e + b] - state[TRACK, 4 + b] / state[TRACK, b]
            u = time[e + b] if u < time[e + b] else u
            u = time[e + b + 1] if u > time[e + b + 1] else u
            _insert(u, i, (1.0 - slope[i]) * abs(state[TRACK, b]), b, room.flips, numbers)
        other = 1.0 if turn < 0.0 else slope[i]
        rise = other - state[GAIN, i]
        s1, s2, s3 = rise * s1 * b0, rise * s2 * b1, rise * s3 * b2
        if len(last) == 0:
            out[e + 1, i] += s1
            out[e + 2, i] += s2
            out[e + 3, i] += s3
        else:
            c1, c2, c3 = c1 + last[0, i] * s1, c2 + last[0, i] * s2, c3 + last[0, i] * s3
        for o in range(1, len(last)):
            out[e + 1, o] += last[o, i] * s1
            out[e + 2, o] += last[o, i] * s2
            out[e + 3, o] += last[o, i] * s3
        if b3:
            state[TURN, i], state[GAIN, i] = -turn, other
            for o in range(len(last)):
                share[o, i] = last[o, i] * other
    if len(last) > 0:
        out[e + 1, 0] += c1
        out[e + 2, 0] += c2
        out[e + 3, 0] += c3


@inlined
def _insert(u, unit, amount, b, flips, numbers):
    """Insert a flip among those behind event b, which are in order."""
    place = numbers[COUNT, b]
    while place > 0 and flips[0, b, place - 1] > u:
        flips[0, b, place] = flips[0, b, place - 1]
        flips[1, b, place] = flips[1, b, place - 1]
        numbers[FLIPPED + b, place] = numbers[FLIPPED + b, place - 1]
        place -= 1
    flips[0, b, place], flips[1, b, place], numbers[FLIPPED + b, place] = u, amount, unit
    numbers[COUNT, b] += u < np.inf  # one that is there stands last


@inlined
def _follow(events, e, room, b, following, total):
    """Append event e + b and the flips behind it to those of the next layer."""
    following.time[total], following.unit[total] = events.time[e + b], -1
    total += 1
    for f in range(room.numbers[COUNT, b]):
        following.time[total], following.amount[total] = room.flips[0, b, f], room.flips[1, b, f]
        following.unit[total] = room.numbers[FLIPPED + b, f]
        total += 1
    return total


@inlined
def _put(events, e, room, b, last, slopes, line, knots, total):
    """Append event e + b, if it is not the start, and the flips behind it to the knots."""
    if e + b > 0:
        for o in range(len(last)):
            knots.rise[total, o] = slopes[e + b, o] - line.slope[o]
        total = _put_knot(events.time[e + b], line, knots, total)
    for f in range(room.numbers[COUNT, b]):
        for o in range(len(last)):
            unit = room.numbers[FLIPPED + b, f]
            knots.rise[total, o] = last[o, unit] * room.flips[1, b, f]
        total = _put_knot(room.flips[0, b, f], line, knots, total)
    return total


@inlined
def _put_knot(u, line, knots, total):
    """Put a knot with a given rise where it is, if there is one; return how many there are now."""
    some = False
    for o in range(len(line.slope)):
        rise = knots.rise[total, o]
        line.slope[o] += rise
        some |= rise != 0.0
        knots.rise[total, o] = line.weight * rise
    right = u if u > LEAST else LEAST
    knots.place[total] = right if line.side > 0.0 else -u
    knots.line[total] = line.number
    return total + some


@kernel
def put_flips(events, n, last, line, knots, total):
    """Append the kinks of outputs that have `last` of the units which flip at events from 1 on."""
    for e in range(1, n):
        for o in range(len(last)):
            knots.rise[total, o] = last[o, events.unit[e]] * events.amount[e]
        total = _put_knot(events.time[e], line, knots, total)
    return total
