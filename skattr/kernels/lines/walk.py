"""Walks along lines through a ReLU network, and the kinks of the output that they meet.

On a line with the coordinate u every unit is piecewise linear. A walk starts at u = 0 and goes to
the right or to the left. The events of a layer are where its inputs have kinks, in order; between
two of them a unit is linear and passes 0 at most once: it flips. The events of the next layer are
these and the flips. A flip changes the slopes of the next layer by a multiple of one column of its
weights; an earlier event changes them all, and those of one walk are computed together.
"""

import numpy as np

from skattr.kernels.compiled import called, inlined, kernel
from skattr.kernels.lines.buffers import BLOCK, Layer, Line
from skattr.kernels.lines.products import multiply
from skattr.kernels.lines.units import put_flips, walk_last_layer, walk_layer
from skattr.kernels.lines.vectors import (
    WIDTH,
    choose,
    load,
    number,
    spread,
    store,
    times,
    times_plus,
)

LEAP = 64.0  # slopes are computed afresh if the next event is beyond this multiple of u
MOST = np.finfo(np.float64).max
DONE, EVENTS, KNOTS = 0, 1, 2  # which buffers are too small


@kernel
def walk_one_layer(units, start, rays, weight, events, returned, knots, first, n_knots):
    """Do what `walk_lines` does, in a network with one hidden layer."""
    M = len(units.slopes)
    for i in range(first, len(weight)):
        before = n_knots
        for way in range(2):
            line = Line(1.0 - 2.0 * way, weight[i])
            n = _first_events(units, start, i, rays, way * M, line.side, events, returned)
            if n_knots + n > len(knots.table):
                return i, before, KNOTS
            n_knots = put_flips(events, n, units.last, line, knots, n_knots)
        knots.ends[i] = n_knots
    return len(weight), n_knots, DONE


@kernel
def walk_lines(units, start, rays, weight, buffers, deep, knots, first, n_knots):
    """Walk along lines from the first on, and append all knots of the output to those there are.

    `rays` (2, M) are slopes behind all events to the right and to the left; rises are multiplied by
    the weights of the lines. Knots to the left are negative, or -0. Returns the line for which a
    buffer is too small, how many knots there are before it, and which buffer. `deep` is None for
    networks with two hidden layers: what three need is not compiled then.
    """
    here, block, rows, returned, entering = buffers
    behind = returned
    if deep is not None:
        there, behind, active = deep
    end, L, M = len(units.weights), len(units.widths), len(units.slopes)
    for i in range(first, len(weight)):
        before = n_knots
        for way in range(2):
            line, ray, p = Line(1.0 - 2.0 * way, weight[i]), way * M, units.widths[0]
            n = _first_events(units, start, i, rays, ray, line.side, here, returned)
            u, w, m = p, np.int64(0), units.widths[1]
            layer = Layer(units.slopes, start.values, start.turns, u, i * M + u, m)
            _fill(start.slopes, layer.at, m, line.side, rows, end)
            n_fresh = np.int64(1)  # how often all slopes of the layer before change
            _plan(rows, w, p, m, end, n_fresh, here, n, returned, rays, ray + u, entering)
            if deep is not None:
                for depth in range(2, L):
                    n_fresh = n
                    n = walk_layer(rows, layer, units.last, here, n, block, behind, there)
                    if n < 0:
                        return i, before, EVENTS
                    u, w, p = u + m, w + m * p, m
                    m = units.widths[depth]
                    layer = Layer(units.slopes, start.values, start.turns, u, i * M + u, m)
                    multiply(behind, n_fresh, p, units.tiles, w, m, rows, end, active)
                    _plan(rows, w, p, m, end, n_fresh, there, n, behind, rays, ray + u, entering)
                    here, there = there, here
                    returned, behind = behind, returned
            if n_knots + n * (m + 1) > len(knots.table):
                return i, before, KNOTS
            n_knots = walk_last_layer(
                rows, layer, units.last, here, n, block, behind, line, knots, n_knots
            )
        knots.ends[i] = n_knots
    return len(weight), n_knots, DONE


@called
def _first_events(units, start, i, rays, ray, side, events, returned):
    """Fill events with the start and the flips of the first layer; return their number.

    `returned` gets the slopes of what the units return at u = 0. Slopes behind all events stand in
    `rays` from `ray` on.
    """
    time, unit, amount = events.time, events.unit, events.amount
    positions, order = start.positions, start.order
    m, n, middle = positions.shape[1], 1, 0
    time[0], unit[0], amount[0] = 0.0, -1, 0.0
    while middle < m and np.copysign(1.0, positions[i, order[i, middle]]) < 0.0:
        middle += 1
    begin, end, step = (middle, m, 1) if side > 0.0 else (middle - 1, -1, -1)
    for e in range(begin, end, step):
        h = order[i, e]
        position = abs(positions[i, h])
        if position == np.inf:
            break
        time[n], unit[n] = position, h
        amount[n] = (1.0 - units.slopes[h]) * abs(number(rays, ray + h))
        n += 1
    for h in range(0, m, WIDTH):
        turn = load(start.turns, i * len(units.slopes) + h)
        gain = choose(turn, load(units.slopes, h), spread(1.0))
        store(returned, h, times(gain, load(rays, ray + h)))
    return n


@called
def _fill(slopes, at, m, side, rows, end):
    for i in range(0, m, WIDTH):
        store(rows, end + i, times(spread(side), load(slopes, at + i)))


@called
def _plan(rows, weights, p, m, fresh, n_fresh, events, n, incoming, rays, ray, entering):
    """Fill in what happens at n events, and that nothing does behind them.

    `rows` has the p rows of the weights, transposed, from `weights` on, and from `fresh` on n_fresh
    rows of slopes of the layer where all of them change; there it has n + 1 rows in all. `incoming`
    are the slopes of what the layer before returns there; `rays`, from `ray` on, those of the layer
    behind the last event, where it goes on as far as numbers do; `entering` holds p numbers. Where
    the next event is far away, what is left of slopes that cancel would count: they are computed
    afresh.
    """
    time, unit, amount = events.time, events.unit, events.amount
    met, free, here = 0, fresh + n_fresh * m, 0.0
    for e in range(n - 1):
        du, row, factor = time[e + 1] - here, weights + unit[e] * m, amount[e]
        keep = 1.0
        if unit[e] < 0:
            row, factor, keep = fresh + met * m, 1.0, 0.0
            met += 1
        elif du > LEAP * here and here > 0.0:
            for h in range(p):
                entering[h] = incoming[(met - 1) * p + h]
            _afresh(rows, weights, p, m, unit, amount, e, entering, free)
            row, factor, keep = free, 1.0, 0.0
            free += m
        _set_step(events, e, row, factor, keep, du)
        here = time[e + 1]
    _fill(rays, ray, m, 1.0, rows, free)
    _set_step(events, n - 1, free, 1.0, 0.0, MOST)
    time[n] = np.inf
    for e in range(n, n + BLOCK - 1):
        _set_step(events, e, weights, 0.0, 1.0, 0.0)


@inlined
def _set_step(events, e, row, factor, keep, du):
    events.row[e] = row
    steps = events.steps
    steps[e, 0] = factor
    steps[e, 1] = keep
    steps[e, 2] = du


@called
def _afresh(rows, weights, p, m, unit, amount, e, entering, row):
    """Fill a row with the slopes behind event e, given those that came in when all changed.

    What comes in is summed up first: there it cancels to the last bit.
    """
    while unit[e] >= 0:
        entering[unit[e]] += amount[e]
        e -= 1
    for i in range(0, m, WIDTH):
        slopes = spread(0.0)
        for h in range(p):
            slopes = times_plus(spread(entering[h]), load(rows, weights + h * m + i), slopes)
        store(rows, row + i, slopes)
