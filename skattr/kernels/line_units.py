"""Units of one hidden layer along a line, past all events of the layer before.

Between two events a unit is linear in u. Slopes and values do not depend on which units flip, so
that four events are taken in one pass over the units, in vectors; the few units that pass 0
meanwhile are followed once more, one by one. Whether a unit is on its positive side is kept, and
never inferred from a computed number: `turn` is 1 there, else -1, and turn · y never falls below 0.

Numbers of units are multiples of UNITS. A call with many arrays would cost as much as an event:
what happens at events is inlined.
"""

import numpy as np

from skattr.kernels.bits import ONE, ZERO, trailing_zeros
from skattr.kernels.compiled import inlined, kernel
from skattr.kernels.line_rooms import BLOCK, WORD
from skattr.kernels.vectors import (
    WIDTH,
    choose,
    differ,
    load,
    signs,
    spread,
    store,
    times,
    times_plus,
    total,
)

LEAST = 5e-324  # the smallest number that is right of 0
NONE = np.int64(0)  # unlike 0 of the type of all that it becomes: kernels are compiled once


@kernel
def walk_layer(rows, layer, events, n, room, returned, following):
    """Follow the units of a layer past n events; fill in those of the next layer.

    `returned` gets the slopes of what they return after each event, m numbers each, with room for
    BLOCK events more, `following` the events. Returns their number, or -1 if there is no room.
    """
    found, here = NONE, NONE
    _begin(layer, room)
    for e in range(0, n, BLOCK):
        if found + BLOCK * (len(layer.z) + 2) > len(following.time):
            return -1
        _advance(rows, events, e, layer, room, here, returned)
        _flip(rows, events, e, layer, room, here, returned)
        for b in range(BLOCK if n - e > BLOCK else n - e):
            found = _follow(events, e, room, b, following, found)
        here = 1 - here
    return found


@kernel
def walk_last_layer(rows, layer, last, events, n, room, line, knots, found):
    """Follow the units of the last layer; append kinks of outputs that have `last` (k, m) of them.

    Returns the number of knots.
    """
    m, here = len(layer.z), NONE
    _begin(layer, room)
    for o in range(len(last)):
        for i in range(0, m, WIDTH):
            store(room.share, o * m + i, times(load(last, o * m + i), load(room.gain, i)))
    for e in range(0, n, BLOCK):
        _advance(rows, events, e, layer, room, here, None)
        _share_more(rows, events, e, layer, room, here)
        found = _kink(rows, events, e, layer, last, room, here, line, knots, found)
        here = 1 - here
    return _put_events(events, n, line, knots, found)


@inlined
def _begin(layer, room):
    """Fill in where the units are at u = 0."""
    for i in range(0, len(layer.z), WIDTH):
        turn = load(layer.turn, i)
        store(room.s, i, spread(0.0))
        store(room.y, i, load(layer.z, i))
        store(room.turn, i, turn)
        store(room.gain, i, choose(turn, load(layer.slope, i), spread(1.0)))


@inlined
def _advance(rows, events, e, layer, room, here, returned):
    """Go past four events, and find the units that may pass 0 meanwhile.

    Fill in the slopes of what they return, or of the first output, as if no unit flipped.
    """
    row, steps, y, s, m = events.row, events.steps, room.y, room.s, len(layer.z)
    here, there = here * m, (1 - here) * m
    r0, r1, r2, r3 = row[e], row[e + 1], row[e + 2], row[e + 3]
    a0, a1 = spread(steps[0, e]), spread(steps[0, e + 1])
    a2, a3 = spread(steps[0, e + 2]), spread(steps[0, e + 3])
    k0, k1 = spread(steps[1, e]), spread(steps[1, e + 1])
    k2, k3 = spread(steps[1, e + 2]), spread(steps[1, e + 3])
    d0, d1 = spread(steps[2, e]), spread(steps[2, e + 1])
    d2, d3 = spread(steps[2, e + 2]), spread(steps[2, e + 3])
    t0 = t1 = t2 = t3 = spread(0.0)
    for first in range(0, m, WORD):
        bits = ZERO
        for i in range(first, min(first + WORD, m), WIDTH):
            s0 = times_plus(a0, load(rows, r0 + i), times(k0, load(s, here + i)))
            s1 = times_plus(a1, load(rows, r1 + i), times(k1, s0))
            s2 = times_plus(a2, load(rows, r2 + i), times(k2, s1))
            s3 = times_plus(a3, load(rows, r3 + i), times(k3, s2))
            y0 = times_plus(d0, s0, load(y, here + i))
            y1 = times_plus(d1, s1, y0)
            y2 = times_plus(d2, s2, y1)
            y3 = times_plus(d3, s3, y2)
            store(s, there + i, s3)
            store(y, there + i, y3)
            turn = load(room.turn, i)
            passed = differ(differ(spread(0.0), turn, y0), turn, y1)
            passed = differ(differ(passed, turn, y2), turn, y3)
            bits |= signs(passed) << np.uint64(i % WORD)
            if returned is None:
                share = load(room.share, i)
                t0, t1 = times_plus(share, s0, t0), times_plus(share, s1, t1)
                t2, t3 = times_plus(share, s2, t2), times_plus(share, s3, t3)
            else:
                gain = load(room.gain, i)
                store(returned, e * m + i, times(gain, s0))
                store(returned, (e + 1) * m + i, times(gain, s1))
                store(returned, (e + 2) * m + i, times(gain, s2))
                store(returned, (e + 3) * m + i, times(gain, s3))
        room.found[first // WORD] = bits
    if returned is None:
        out = events.out
        out[e, 0], out[e + 1, 0] = total(t0), total(t1)
        out[e + 2, 0], out[e + 3, 0] = total(t2), total(t3)


@inlined
def _share_more(rows, events, e, layer, room, here):
    """Fill in the slopes of further outputs."""
    row, steps, out, m = events.row, events.steps, events.out, len(layer.z)
    for o in range(1, out.shape[1]):
        t0 = t1 = t2 = t3 = spread(0.0)
        for i in range(0, m, WIDTH):
            s0 = times(spread(steps[1, e]), load(room.s, here * m + i))
            s0 = times_plus(spread(steps[0, e]), load(rows, row[e] + i), s0)
            s1 = times(spread(steps[1, e + 1]), s0)
            s1 = times_plus(spread(steps[0, e + 1]), load(rows, row[e + 1] + i), s1)
            s2 = times(spread(steps[1, e + 2]), s1)
            s2 = times_plus(spread(steps[0, e + 2]), load(rows, row[e + 2] + i), s2)
            s3 = load(room.s, (1 - here) * m + i)
            share = load(room.share, o * m + i)
            t0, t1 = times_plus(share, s0, t0), times_plus(share, s1, t1)
            t2, t3 = times_plus(share, s2, t2), times_plus(share, s3, t3)
        out[e, o], out[e + 1, o] = total(t0), total(t1)
        out[e + 2, o], out[e + 3, o] = total(t2), total(t3)


@inlined
def _again(rows, events, e, room, m, here, i):
    """Follow unit i past four events; return bits that tell where turn · y is below 0."""
    row, steps, track, turn = events.row, events.steps, room.track, room.turn[i]
    y, s, i = room.y, room.s, np.int64(i)
    before, behind = here * m + i, (1 - here) * m + i
    s0 = times_plus(steps[0, e], rows[row[e] + i], steps[1, e] * s[before])
    s1 = times_plus(steps[0, e + 1], rows[row[e + 1] + i], steps[1, e + 1] * s0)
    s2 = times_plus(steps[0, e + 2], rows[row[e + 2] + i], steps[1, e + 2] * s1)
    y0 = times_plus(steps[2, e], s0, y[before])
    y1 = times_plus(steps[2, e + 1], s1, y0)
    y2 = times_plus(steps[2, e + 2], s2, y1)
    track[0], track[1], track[2], track[3] = s0, s1, s2, s[behind]
    track[4], track[5], track[6], track[7] = y[before], y0, y1, y2
    b0, b1, b2, b3 = y0 * turn < 0.0, y1 * turn < 0.0, y2 * turn < 0.0, y[behind] * turn < 0.0
    return np.uint64(b0 | b1 << 1 | b2 << 2 | b3 << 3)


@inlined
def _zero(events, e, b, track):
    """Return where a unit passes 0 behind event e + b."""
    first, last = events.time[e + b], events.time[e + b + 1]
    u = first - track[b + BLOCK] / track[b]
    u = first if u < first else u
    return last if u > last else u


@inlined
def _kink(rows, events, e, layer, last, room, here, line, knots, found):
    """Append the kinks of units that pass 0; mend the slopes of the outputs."""
    out, flips, track, m = events.out, events.flips, room.track, len(layer.z)
    for word in range(-(-m // WORD)):
        bits = room.found[word]
        while bits != ZERO:
            i = np.uint64(word * WORD) + trailing_zeros(bits)
            bits &= bits - ONE
            below = _again(rows, events, e, room, m, here, i)
            changes = (below ^ below << ONE) & np.uint64(15)
            slope, turn = layer.slope[i], room.turn[i]
            other = 1.0 if turn < 0.0 else slope
            change = other - room.gain[i]
            for o in range(len(last)):
                x = last[o, i] * change
                out[e + 1, o] += x * track[1] * (below & ONE)
                out[e + 2, o] += x * track[2] * (below >> ONE & ONE)
                out[e + 3, o] += x * track[3] * (below >> np.uint64(2) & ONE)
            while changes != ZERO:
                b = np.int64(trailing_zeros(changes))
                changes &= changes - ONE
                amount = (1.0 - slope) * abs(track[b])
                some = False
                for o in range(len(last)):
                    x = last[o, i] * amount
                    flips[e + b, o] += x
                    knots.rise[found, o] = line.weight * x
                    some |= x != 0.0
                u = _zero(events, e, b, track)
                found = _put(u, some & (u < np.inf), line, knots, found)
            if below >> np.uint64(3):
                room.turn[i], room.gain[i] = -turn, other
                for o in range(len(last)):
                    room.share[o * m + np.int64(i)] = last[o, i] * other
    return found


@inlined
def _put(u, some, line, knots, found):
    """Put a knot where it is, if there is one; return how many there are now."""
    right = u if u > LEAST else LEAST
    knots.place[found] = right if line.side > 0.0 else -u
    return found + some


@inlined
def _put_events(events, n, line, knots, found):
    """Append the kinks at events behind the start."""
    out, flips = events.out, events.flips
    for e in range(n):
        some = False
        for o in range(out.shape[1]):
            x = out[e, o] - out[e - 1, o] - flips[e - 1, o] if e > 0 else 0.0
            knots.rise[found, o] = line.weight * x
            some |= x != 0.0
        found = _put(events.time[e], some, line, knots, found)
    for e in range(n):
        for o in range(out.shape[1]):
            flips[e, o] = 0.0
    return found


@kernel
def put_flips(events, n, last, line, knots, found):
    """Append the kinks of outputs that have `last` of the units which flip at events from 1 on."""
    for e in range(1, n):
        some = False
        for o in range(len(last)):
            x = last[o, events.unit[e]] * events.amount[e]
            knots.rise[found, o] = line.weight * x
            some |= x != 0.0
        found = _put(events.time[e], some, line, knots, found)
    return found


@inlined
def _flip(rows, events, e, layer, room, here, returned):
    """Put down where units flip, in order; mend what they return."""
    track, m = room.track, len(layer.z)
    for b in range(BLOCK):
        room.counts[b] = 0
    for word in range(-(-m // WORD)):
        bits = room.found[word]
        while bits != ZERO:
            i = np.uint64(word * WORD) + trailing_zeros(bits)
            bits &= bits - ONE
            below = _again(rows, events, e, room, m, here, i)
            changes = (below ^ below << ONE) & np.uint64(15)
            slope, turn = layer.slope[i], room.turn[i]
            other = 1.0 if turn < 0.0 else slope
            change, unit = other - room.gain[i], np.int64(i)
            returned[(e + 1) * m + unit] += change * track[1] * (below & ONE)
            returned[(e + 2) * m + unit] += change * track[2] * (below >> ONE & ONE)
            returned[(e + 3) * m + unit] += change * track[3] * (below >> np.uint64(2) & ONE)
            while changes != ZERO:
                b = np.int64(trailing_zeros(changes))
                changes &= changes - ONE
                amount = (1.0 - slope) * abs(track[b])
                _insert(_zero(events, e, b, track), unit, amount, b, room)
            if below >> np.uint64(3):
                room.turn[i], room.gain[i] = -turn, other


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
