"""Units of one hidden layer along a line, past all events of the layer before.

Between two events a unit is linear in u. Slopes and values do not depend on which units flip, so
that four events are passed at a time, in vectors; the few units that pass 0 meanwhile are followed
once more, one by one. A unit is on the side of the last of its numbers at every fourth event that
was not 0; where it has been 0 all the time, on the one it was given.

Numbers of units are multiples of UNITS. A call with many arrays would cost as much as an event:
what happens at events is inlined.
"""

import numpy as np

from skattr.kernels.bits import ONE, WORD, ZERO, trailing_zeros
from skattr.kernels.compiled import called, inlined
from skattr.kernels.line_rooms import BLOCK
from skattr.kernels.vectors import (
    WIDTH,
    choose,
    differ,
    load,
    number,
    signs,
    spread,
    store,
    times,
    times_plus,
    total,
    unless_zero,
)

NONE = np.int64(0)  # unlike 0 of the type of all that it becomes: kernels are compiled once


@called
def walk_layer(rows, layer, events, n, room, returned, following):
    """Follow the units of a layer past n events; fill in those of the next layer.

    `returned` gets the slopes of what they return after each event, m numbers each, with room for
    BLOCK events more, `following` the events. Returns their number, or -1 if there is no room.
    """
    m, found, here = layer.m, NONE, NONE
    _begin(layer, room)
    for e in range(0, n, BLOCK):
        if found + BLOCK * (m + 2) > len(following.time):
            return -1
        _advance(rows, layer, events, e, room, here, None, returned)
        for b in range(BLOCK):
            room.counts[b] = 0
        for first in range(0, m, WORD):
            bits = room.found[first // WORD]
            while bits != ZERO:
                i = first + np.int64(trailing_zeros(bits))
                bits &= bits - ONE
                _flip(rows, layer, events, e, room, here, i, returned)
        for b in range(BLOCK if n - e > BLOCK else n - e):
            found = _follow(events, e, room, b, following, found)
        here = 3 * m - here
    return found


@called
def walk_last_layer(rows, layer, last, events, n, room, line, knots, found):
    """Follow the units of the last layer; append kinks of outputs that have `last` (k, m) of them.

    Returns the number of knots.
    """
    m, here = layer.m, NONE
    _begin(layer, room)
    for e in range(0, n, BLOCK):
        _advance(rows, layer, events, e, room, here, last, None)
        _share_more(rows, layer, events, e, room, here, last)
        for first in range(0, m, WORD):
            bits = room.found[first // WORD]
            while bits != ZERO:
                i = first + np.int64(trailing_zeros(bits))
                bits &= bits - ONE
                found = _kink(rows, layer, events, e, room, here, i, last, line, knots, found)
        here = 3 * m - here
    return _put_events(events, n, line, knots, found)


@inlined
def _begin(layer, room):
    """Fill in where the units are at u = 0."""
    for i in range(0, layer.m, WIDTH):
        store(room.state, 3 * i, load(layer.numbers, layer.at + i))
        store(room.state, 3 * i + WIDTH, spread(0.0))
        store(room.state, 3 * i + 2 * WIDTH, load(layer.turns, layer.at + i))


@inlined
def _advance(rows, layer, events, e, room, here, last, returned):
    """Go past four events, and find the units that may pass 0 meanwhile.

    Fill in the slopes of what they return, or of the first output, as if no unit flipped.
    """
    row, steps, out, state, m = events.row, events.steps, events.out, room.state, layer.m
    there = 3 * m - here
    r0, r1, r2, r3 = row[e], row[e + 1], row[e + 2], row[e + 3]
    a0, k0, d0 = spread(steps[e, 0]), spread(steps[e, 1]), spread(steps[e, 2])
    a1, k1, d1 = spread(steps[e + 1, 0]), spread(steps[e + 1, 1]), spread(steps[e + 1, 2])
    a2, k2, d2 = spread(steps[e + 2, 0]), spread(steps[e + 2, 1]), spread(steps[e + 2, 2])
    a3, k3, d3 = spread(steps[e + 3, 0]), spread(steps[e + 3, 1]), spread(steps[e + 3, 2])
    t0 = t1 = t2 = t3 = spread(0.0)
    for first in range(0, m, WORD):
        bits = ZERO
        for i in range(first, min(first + WORD, m), WIDTH):
            s0 = times_plus(a0, load(rows, r0 + i), times(k0, load(state, here + 3 * i + WIDTH)))
            s1 = times_plus(a1, load(rows, r1 + i), times(k1, s0))
            s2 = times_plus(a2, load(rows, r2 + i), times(k2, s1))
            s3 = times_plus(a3, load(rows, r3 + i), times(k3, s2))
            y0 = times_plus(d0, s0, load(state, here + 3 * i))
            y1 = times_plus(d1, s1, y0)
            y2 = times_plus(d2, s2, y1)
            y3 = times_plus(d3, s3, y2)
            turn = load(state, here + 3 * i + 2 * WIDTH)
            passed = differ(differ(spread(0.0), turn, y0), turn, y1)
            passed = differ(differ(passed, turn, y2), turn, y3)
            bits |= signs(passed) << np.uint64(i - first)
            store(state, there + 3 * i, y3)
            store(state, there + 3 * i + WIDTH, s3)
            store(state, there + 3 * i + 2 * WIDTH, unless_zero(y3, turn))
            gain = choose(turn, load(layer.slopes, layer.unit + i), spread(1.0))
            if last is not None:
                share = times(gain, load(last, i))
                t0, t1 = times_plus(share, s0, t0), times_plus(share, s1, t1)
                t2, t3 = times_plus(share, s2, t2), times_plus(share, s3, t3)
            if returned is not None:
                store(returned, e * m + i, times(gain, s0))
                store(returned, (e + 1) * m + i, times(gain, s1))
                store(returned, (e + 2) * m + i, times(gain, s2))
                store(returned, (e + 3) * m + i, times(gain, s3))
        room.found[first // WORD] = bits
    if last is not None:
        out[e, 0], out[e + 1, 0] = total(t0), total(t1)
        out[e + 2, 0], out[e + 3, 0] = total(t2), total(t3)


@inlined
def _share_more(rows, layer, events, e, room, here, last):
    """Fill in the slopes of further outputs."""
    row, steps, out, state, m = events.row, events.steps, events.out, room.state, layer.m
    there = 3 * m - here
    for o in range(1, out.shape[1]):
        t0 = t1 = t2 = t3 = spread(0.0)
        for i in range(0, m, WIDTH):
            s0 = times(spread(steps[e, 1]), load(state, here + 3 * i + WIDTH))
            s0 = times_plus(spread(steps[e, 0]), load(rows, row[e] + i), s0)
            s1 = times(spread(steps[e + 1, 1]), s0)
            s1 = times_plus(spread(steps[e + 1, 0]), load(rows, row[e + 1] + i), s1)
            s2 = times(spread(steps[e + 2, 1]), s1)
            s2 = times_plus(spread(steps[e + 2, 0]), load(rows, row[e + 2] + i), s2)
            s3 = load(state, there + 3 * i + WIDTH)
            turn = load(state, here + 3 * i + 2 * WIDTH)
            gain = choose(turn, load(layer.slopes, layer.unit + i), spread(1.0))
            share = times(gain, load(last, o * m + i))
            t0, t1 = times_plus(share, s0, t0), times_plus(share, s1, t1)
            t2, t3 = times_plus(share, s2, t2), times_plus(share, s3, t3)
        out[e, o], out[e + 1, o] = total(t0), total(t1)
        out[e + 2, o], out[e + 3, o] = total(t2), total(t3)


@inlined
def _again(rows, events, e, room, here, there, i):
    """Follow unit i past four events; return its side, 1 or -1, and where it is on the other."""
    row, steps, track = events.row, events.steps, room.track
    at = 3 * i - 2 * (i % WIDTH)
    y, s = number(room.state, here + at), number(room.state, here + at + WIDTH)
    y3, s3 = number(room.state, there + at), number(room.state, there + at + WIDTH)
    s0 = times_plus(steps[e, 0], number(rows, row[e] + i), steps[e, 1] * s)
    s1 = times_plus(steps[e + 1, 0], number(rows, row[e + 1] + i), steps[e + 1, 1] * s0)
    s2 = times_plus(steps[e + 2, 0], number(rows, row[e + 2] + i), steps[e + 2, 1] * s1)
    y0 = times_plus(steps[e, 2], s0, y)
    y1 = times_plus(steps[e + 1, 2], s1, y0)
    y2 = times_plus(steps[e + 2, 2], s2, y1)
    track[0], track[1], track[2], track[3] = s0, s1, s2, s3
    track[4], track[5], track[6], track[7] = y, y0, y1, y2
    turn = np.copysign(1.0, number(room.state, here + at + 2 * WIDTH))
    return turn, y0 * turn < 0.0, y1 * turn < 0.0, y2 * turn < 0.0, y3 * turn < 0.0


@inlined
def _zero(events, e, b, track):
    """Return where a unit passes 0 behind event e + b."""
    first, last = number(events.time, e + b), number(events.time, e + b + 1)
    u = first - number(track, BLOCK + b) / number(track, b)
    u = first if u < first else u
    return last if u > last else u


@inlined
def _kink(rows, layer, events, e, room, here, i, last, line, knots, found):
    """Append the kinks of a unit that passes 0; mend the slopes of the outputs."""
    out, flips, track, m = events.out, events.flips, room.track, layer.m
    slope = number(layer.slopes, layer.unit + i)
    turn, b0, b1, b2, b3 = _again(rows, events, e, room, here, 3 * m - here, i)
    changes = np.uint64(b0 | (b1 != b0) << 1 | (b2 != b1) << 2 | (b3 != b2) << 3)
    change = turn * (slope - 1.0)
    for o in range(len(last)):
        x = number(last, o * m + i) * change
        out[e + 1, o] += x * track[1] * b0  # no branch: nobody could foresee it
        out[e + 2, o] += x * track[2] * b1
        out[e + 3, o] += x * track[3] * b2
    while changes != ZERO:
        b = np.int64(trailing_zeros(changes))
        changes &= changes - ONE
        amount = (1.0 - slope) * abs(number(track, b))
        some = False
        for o in range(len(last)):
            x = number(last, o * m + i) * amount
            flips[e + b, o] += x
            knots.table[found, 1 + o] = line.weight * x
            some |= x != 0.0
        u = _zero(events, e, b, track)
        found = _put(u, some & (u < np.inf), line, knots, found)
    return found


@inlined
def _put(u, some, line, knots, found):
    """Put a knot where it is, if there is one; return how many there are now."""
    knots.table[found, 0] = np.copysign(u, line.side)
    return found + some


@inlined
def _put_events(events, n, line, knots, found):
    """Append the kinks at events behind the start."""
    out, flips = events.out, events.flips
    for e in range(1, n):
        some = False
        for o in range(out.shape[1]):
            x = out[e, o] - out[e - 1, o] - flips[e - 1, o]
            flips[e - 1, o] = 0.0
            knots.table[found, 1 + o] = line.weight * x
            some |= x != 0.0
        found = _put(events.time[e], some, line, knots, found)
    for e in range(n - 1, n + BLOCK - 1):  # where numbers overflow, units flip behind the last
        for o in range(out.shape[1]):
            flips[e, o] = 0.0
    return found


@called
def put_flips(events, n, last, line, knots, found):
    """Append the kinks of outputs that have `last` of the units which flip at events from 1 on."""
    for e in range(1, n):
        some = False
        for o in range(len(last)):
            x = last[o, events.unit[e]] * events.amount[e]
            knots.table[found, 1 + o] = line.weight * x
            some |= x != 0.0
        found = _put(events.time[e], some, line, knots, found)
    return found


@inlined
def _flip(rows, layer, events, e, room, here, i, returned):
    """Put down where a unit flips, in order; mend what it returns."""
    track, m = room.track, layer.m
    slope = number(layer.slopes, layer.unit + i)
    if slope == 1.0:
        return
    turn, b0, b1, b2, b3 = _again(rows, events, e, room, here, 3 * m - here, i)
    changes = np.uint64(b0 | (b1 != b0) << 1 | (b2 != b1) << 2 | (b3 != b2) << 3)
    change = turn * (slope - 1.0)
    returned[(e + 1) * m + i] += change * track[1] * b0
    returned[(e + 2) * m + i] += change * track[2] * b1
    returned[(e + 3) * m + i] += change * track[3] * b2
    while changes != ZERO:
        b = np.int64(trailing_zeros(changes))
        changes &= changes - ONE
        _insert(_zero(events, e, b, track), i, (1.0 - slope) * abs(number(track, b)), b, room)


@inlined
def _insert(u, unit, amount, b, room):
    """Insert a flip among those behind event b, which are in order."""
    flips, flipped = room.flips, room.flipped
    place = room.counts[b]
    while place > 0 and flips[0, b, place - 1] > u:
        flips[0, b, place] = flips[0, b, place - 1]
        flips[1, b, place] = flips[1, b, place - 1]
        flipped[b, place] = flipped[b, place - 1]
        place -= 1
    flips[0, b, place], flips[1, b, place], flipped[b, place] = u, amount, unit
    room.counts[b] += u < np.inf  # one that is there stands last


@inlined
def _follow(events, e, room, b, following, found):
    """Append event e + b and the flips behind it to those of the next layer."""
    following.time[found], following.unit[found] = events.time[e + b], -1
    found += 1
    for f in range(room.counts[b]):
        following.time[found], following.amount[found] = room.flips[0, b, f], room.flips[1, b, f]
        following.unit[found] = room.flipped[b, f]
        found += 1
    return found
