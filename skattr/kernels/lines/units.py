"""Units of one hidden layer along a line, past all events of the layer before.

Between two events a unit is linear in u. Slopes and values do not depend on which units flip, so
that four events are passed at a time, in vectors; the few units that pass 0 meanwhile are followed
once more, one by one. A unit is on the side of the last of its values at every fourth event that
was not 0; where it has been 0 all the time, on the one it started with.

A call with many arrays would cost as much as an event: what happens at events is inlined.
"""

import numpy as np

from skattr.kernels.boxes.bits import ONE, WORD, ZERO, trailing_zeros
from skattr.kernels.compiled import called, inlined
from skattr.kernels.lines.buffers import BLOCK
from skattr.kernels.lines.vectors import (
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

# typed as variables are, unlike 0 and True, so that numba compiles each callee once
NONE, YES, NO = np.int64(0), np.bool_(True), np.bool_(False)


@called
def walk_layer(rows, layer, last, events, n, block, returned, following):
    """Follow the units of a layer past n events; fill in those of the next layer.

    `returned` gets the slopes of what they return after each event, m numbers each, and has to be
    BLOCK events longer; `following` gets the events. Returns their number, or -1 if they may not
    fit. `last` is not used.
    """
    m, n_following, here = layer.m, NONE, NONE
    _begin(layer, block)
    for e in range(0, n, BLOCK):
        if n_following + BLOCK * (m + 2) > len(following.time):
            return -1
        _advance(rows, layer, events, e, block, here, NO, last, NONE, returned)
        for b in range(BLOCK):
            block.counts[b] = 0
        for first in range(0, m, WORD):
            bits = block.crossing[first // WORD]
            while bits != ZERO:
                i = first + np.int64(trailing_zeros(bits))
                bits &= bits - ONE
                _flip(rows, layer, events, e, block, here, i, returned)
        for b in range(BLOCK if n - e > BLOCK else n - e):
            n_following = _follow(events, e, block, b, following, n_following)
        here = 3 * m - here
    return n_following


@called
def walk_last_layer(rows, layer, last, events, n, block, returned, line, knots, n_knots):
    """Follow the units of the last layer; append kinks of outputs that have `last` (k, m) of them.

    Returns the number of knots. `returned` is not used.
    """
    m, here = layer.m, NONE
    _begin(layer, block)
    for e in range(0, n, BLOCK):
        for o in range(len(last)):
            _advance(rows, layer, events, e, block, here, YES, last, o, returned)
        for first in range(0, m, WORD):
            bits = block.crossing[first // WORD]
            while bits != ZERO:
                i = first + np.int64(trailing_zeros(bits))
                bits &= bits - ONE
                n_knots = _kink(rows, layer, events, e, block, here, i, last, line, knots, n_knots)
        here = 3 * m - here
    return _put_events(events, n, line, knots, n_knots)


@inlined
def _begin(layer, block):
    """Fill in where the units are at u = 0."""
    for i in range(0, layer.m, WIDTH):
        store(block.state, 3 * i, load(layer.values, layer.at + i))
        store(block.state, 3 * i + WIDTH, spread(0.0))
        store(block.state, 3 * i + 2 * WIDTH, load(layer.turns, layer.at + i))


@inlined
def _advance(rows, layer, events, e, block, here, to_output, last, o, returned):
    """Go past four events, and find the units that may pass 0 meanwhile.

    Fill in the slopes of output o, or of what the units return, as if no unit flipped.
    """
    row, steps, state, m = events.row, events.steps, block.state, layer.m
    there = 3 * m - here
    r0, r1 = row[e], row[e + 1]
    r2, r3 = row[e + 2], row[e + 3]
    step = 3 * e
    a0, k0, d0 = _step(steps, step)
    a1, k1, d1 = _step(steps, step + 3)
    a2, k2, d2 = _step(steps, step + 6)
    a3, k3, d3 = _step(steps, step + 9)
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
            if to_output:
                share = times(gain, load(last, o * m + i))
                t0, t1 = times_plus(share, s0, t0), times_plus(share, s1, t1)
                t2, t3 = times_plus(share, s2, t2), times_plus(share, s3, t3)
            else:
                at = e * m + i
                store(returned, at, times(gain, s0))
                store(returned, at + m, times(gain, s1))
                store(returned, at + 2 * m, times(gain, s2))
                store(returned, at + 3 * m, times(gain, s3))
        block.crossing[first // WORD] = bits
    if to_output:
        out = events.out
        out[e, o], out[e + 1, o] = total(t0), total(t1)
        out[e + 2, o], out[e + 3, o] = total(t2), total(t3)


@inlined
def _step(steps, at):
    """Return factor, keep and du of an event, eight times each."""
    return spread(number(steps, at)), spread(number(steps, at + 1)), spread(number(steps, at + 2))


@inlined
def _again(rows, events, e, block, here, there, i):
    """Follow unit i past four events.

    Return its side, 1 or -1, and a word whose bit b tells whether it passes 0 behind event e + b;
    then, as 0 or 1, whether it is on the other side at the second, third and fourth event.
    """
    row, steps, track, state, at = events.row, events.steps, block.track, block.state, 3 * e
    unit = 3 * i - 2 * (i % WIDTH)
    y, s = number(state, here + unit), number(state, here + unit + WIDTH)
    y3, s3 = number(state, there + unit), number(state, there + unit + WIDTH)
    s0 = times_plus(number(steps, at), number(rows, row[e] + i), number(steps, at + 1) * s)
    s1 = times_plus(number(steps, at + 3), number(rows, row[e + 1] + i), number(steps, at + 4) * s0)
    s2 = times_plus(number(steps, at + 6), number(rows, row[e + 2] + i), number(steps, at + 7) * s1)
    y0 = times_plus(number(steps, at + 2), s0, y)
    y1 = times_plus(number(steps, at + 5), s1, y0)
    y2 = times_plus(number(steps, at + 8), s2, y1)
    track[0], track[1] = s0, s1
    track[2], track[3] = s2, s3
    track[4], track[5] = y, y0
    track[6], track[7] = y1, y2
    turn = np.copysign(1.0, number(state, here + unit + 2 * WIDTH))
    b0, b1, b2, b3 = y0 * turn < 0.0, y1 * turn < 0.0, y2 * turn < 0.0, y3 * turn < 0.0
    changes = np.uint64(b0 | (b1 != b0) << 1 | (b2 != b1) << 2 | (b3 != b2) << 3)
    return turn, changes, b0, b1, b2


@inlined
def _zero(events, e, b, track):
    """Return where a unit passes 0 behind event e + b."""
    first, last = number(events.time, e + b), number(events.time, e + b + 1)
    u = first - number(track, BLOCK + b) / number(track, b)
    u = first if u < first else u
    return last if u > last else u


@inlined
def _kink(rows, layer, events, e, block, here, i, last, line, knots, n_knots):
    """Append the kinks of a unit that passes 0; mend the slopes of the outputs."""
    out, flips, track, m = events.out, events.flips, block.track, layer.m
    slope = number(layer.slopes, layer.unit + i)
    turn, changes, b0, b1, b2 = _again(rows, events, e, block, here, 3 * m - here, i)
    change = turn * (slope - 1.0)
    for o in range(len(last)):
        x = number(last, o * m + i) * change
        out[e + 1, o] += x * track[1] * b0  # no branch, which could not be predicted
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
            knots.table[n_knots, 1 + o] = line.weight * x
            some |= x != 0.0
        u = _zero(events, e, b, track)
        n_knots = _put(u, some & (u < np.inf), line, knots, n_knots)
    return n_knots


@inlined
def _put(u, some, line, knots, n_knots):
    """Write down where a knot is, if there is one; return how many there are now."""
    knots.table[n_knots, 0] = np.copysign(u, line.side)
    return n_knots + some


@inlined
def _put_events(events, n, line, knots, n_knots):
    """Append the kinks at events behind the start."""
    out, flips = events.out, events.flips
    for e in range(1, n):
        some = False
        for o in range(out.shape[1]):
            x = out[e, o] - out[e - 1, o] - flips[e - 1, o]
            flips[e - 1, o] = 0.0
            knots.table[n_knots, 1 + o] = line.weight * x
            some |= x != 0.0
        n_knots = _put(events.time[e], some, line, knots, n_knots)
    for e in range(n - 1, n + BLOCK - 1):  # where numbers overflow, units flip behind the last
        for o in range(out.shape[1]):
            flips[e, o] = 0.0
    return n_knots


@called
def put_flips(events, n, last, line, knots, n_knots):
    """Append the kinks of outputs that have `last` of the units which flip at events from 1 on."""
    for e in range(1, n):
        some = False
        for o in range(len(last)):
            x = last[o, events.unit[e]] * events.amount[e]
            knots.table[n_knots, 1 + o] = line.weight * x
            some |= x != 0.0
        n_knots = _put(events.time[e], some, line, knots, n_knots)
    return n_knots


@inlined
def _flip(rows, layer, events, e, block, here, i, returned):
    """Write down where a unit flips, in order; mend what it returns."""
    track, m = block.track, layer.m
    slope = number(layer.slopes, layer.unit + i)
    if slope == 1.0:
        return
    turn, changes, b0, b1, b2 = _again(rows, events, e, block, here, 3 * m - here, i)
    change, at = turn * (slope - 1.0), e * m + i
    returned[at + m] += change * track[1] * b0
    returned[at + 2 * m] += change * track[2] * b1
    returned[at + 3 * m] += change * track[3] * b2
    while changes != ZERO:
        b = np.int64(trailing_zeros(changes))
        changes &= changes - ONE
        _insert(_zero(events, e, b, track), i, (1.0 - slope) * abs(number(track, b)), b, block)


@inlined
def _insert(u, unit, amount, b, block):
    """Insert a flip among those behind event b, which are in order."""
    flips, flipped = block.flips, block.flipped
    at = block.counts[b]
    while at > 0 and flips[0, b, at - 1] > u:
        flips[0, b, at] = flips[0, b, at - 1]
        flips[1, b, at] = flips[1, b, at - 1]
        flipped[b, at] = flipped[b, at - 1]
        at -= 1
    flips[0, b, at] = u
    flips[1, b, at] = amount
    flipped[b, at] = unit
    block.counts[b] += u < np.inf  # one that is there stands last


@inlined
def _follow(events, e, block, b, following, n):
    """Append event e + b and the flips behind it to the n events of the next layer."""
    following.time[n], following.unit[n] = events.time[e + b], -1
    n += 1
    for f in range(block.counts[b]):
        following.time[n], following.amount[n] = block.flips[0, b, f], block.flips[1, b, f]
        following.unit[n] = block.flipped[b, f]
        n += 1
    return n
