"""Walks along lines through a ReLU network, and the kinks of the output that they meet.

On a line with the coordinate u every unit is piecewise linear. A walk starts at u = 0 and goes to
the right or to the left. The events of a layer are where its inputs have kinks, in order; between
two of them a unit is linear and passes 0 at most once: it flips. The events of the next layer are
these and the flips. A flip changes the slopes of the next layer by a multiple of one column of its
weights; an earlier event changes them all, and those of one walk are computed together.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skattr.kernels.compiled import kernel
from skattr.kernels.line_units import (
    BLOCK,
    Knots,
    Line,
    more_rows,
    plan,
    put_flips,
    room_for_events,
    room_for_units,
    walk_layer,
)
from skattr.kernels.sparse_rows import multiply


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
    places: np.ndarray  # (n, m) where the units of the first layer are 0; inf: nowhere
    order: np.ndarray  # (n, m) the units in the order of these
    rays: np.ndarray  # (2, M) slopes behind all events to the right, to the left, for all lines
    out: np.ndarray  # (n, k) slope of the output to the right


@njit(cache=True, nogil=True)
def walk_lines(units, start, weight, first):
    """Walk along some lines; return all knots of the output, times the weights of the lines.

    The first line has the number `first`. A kink at u = 0 is one of the walk to the left.
    """
    L, m1, k = len(units.widths), units.widths[0], len(units.last)
    here, there = room_for_events(m1 + 1), room_for_events(m1 + 1)
    size = len(weight) * units.widths.sum() + (m1 + 1) * units.widths.max()
    knots = Knots(np.empty(size), np.empty((size, k)), np.empty(size, np.int32))
    amounts = (1.0 - units.slopes[:m1]) * np.abs(start.rays[0, :m1])
    rows, returned, rooms = _rooms(units)
    work = np.empty(units.widths.max() + 1, np.int64)
    up = np.empty(units.widths.sum(), np.bool_)  # on the positive side
    total = 0
    for i in range(len(weight)):
        z, s = start.numbers[i], start.slopes[i]
        for h in range(len(z)):
            up[h] = (z[h] > 0.0) | ((z[h] == 0.0) & (s[h] > 0.0))
        for side in (1.0, -1.0):
            line = Line(side, weight[i], first + i, side * start.out[i])
            ray = start.rays[0 if side > 0.0 else 1]
            n = _first_events(start.places[i], start.order[i], amounts, side, here)
            _return(side, s, up, units.slopes, returned[0])
            before, u = 1, m1  # how often all slopes of the layer before change
            for layer in range(1, L):
                m, p = units.widths[layer], units.widths[layer - 1]
                own = slice(u, u + m)
                rows[layer] = more_rows(rows[layer], p, p + before + n + 1)
                if layer == 1:
                    _fill(rows[1], p, side, s[own])
                else:
                    fresh = rows[layer][p : p + before + 1]
                    multiply(returned[layer - 1], before, rows[layer][:p], fresh, work)
                plan(
                    rows[layer], p, here, n, returned[layer - 1], before, ray[own],
                    rooms[layer].entering,
                )  # fmt: skip
                returned[layer] = more_rows(returned[layer], 0, n + BLOCK)
                if n * (m + 1) + BLOCK > len(there.time):
                    there = room_for_events(2 * n * (m + 1))
                ends = layer + 1 == L
                if ends:
                    knots = _more_knots(knots, total, total + n * (m + 1))
                found = walk_layer(
                    rows[layer], units.slopes[own], z[own], up[own],
                    units.last[: k if ends else 0], here, n, rooms[layer], returned[layer], there,
                    line, knots, total if ends else 0,
                )  # fmt: skip
                if ends:
                    total = found
                else:
                    before, n = n, found
                    here, there = there, here
                    u += m
            if L == 1:
                knots = _more_knots(knots, total, total + n)
                total = put_flips(here, n, units.last, line, knots, total)
    return Knots(knots.place[:total], knots.rise[:total], knots.line[:total])


@njit(cache=True, nogil=True)
def _rooms(units):
    """Return for each layer its weights, with room for more rows, room to walk and for returns."""
    rows, returned = [np.empty((0, 0))], [np.empty((1, units.widths[0]))]
    rooms = [room_for_units(0, 0, 0)]
    w, L = 0, len(units.widths)
    for layer in range(1, L):
        m, p = units.widths[layer], units.widths[layer - 1]
        rows.append(more_rows(units.weights[w : w + m * p].reshape(p, m), p, p + 2))
        k = len(units.last) if layer + 1 == L else 0
        returned.append(np.empty((0, k if k else m)))
        rooms.append(room_for_units(m, p, k))
        w += m * p
    return rows, returned, rooms


@njit(cache=True, nogil=True)
def _more_knots(knots, n, size):
    """Return knots with room for `size` of them."""
    if size <= len(knots.place):
        return knots
    size = 2 * size
    more = Knots(np.empty(size), np.empty((size, knots.rise.shape[1])), np.empty(size, np.int32))
    for i in range(n):
        more.place[i], more.line[i] = knots.place[i], knots.line[i]
        for o in range(knots.rise.shape[1]):
            more.rise[i, o] = knots.rise[i, o]
    return more


@kernel
def _fill(rows, p, side, slopes):
    for i in range(len(slopes)):
        rows[p, i] = side * slopes[i]


@kernel
def _return(side, s, up, slopes, out):
    """Fill in the slopes of what the units of the first layer return at u = 0."""
    for h in range(out.shape[1]):
        out[0, h] = side * s[h] * (1.0 if up[h] else slopes[h])


@kernel
def _first_events(places, order, amounts, side, events):
    """Fill events with the start and the flips of the first layer; return their number.

    What is 0 at the start counts as where it goes to the right: to the left it flips at once.
    """
    n = 1
    events.time[0], events.unit[0], events.amount[0] = 0.0, -1, 0.0
    middle = 0
    while middle < len(order) and places[order[middle]] <= 0.0:
        middle += 1
    begin, end, step = (middle, len(places), 1) if side > 0.0 else (middle - 1, -1, -1)
    for e in range(begin, end, step):
        unit = order[e]
        if abs(places[unit]) == np.inf:
            break
        events.time[n], events.unit[n], events.amount[n] = abs(places[unit]), unit, amounts[unit]
        n += 1
    return n
