"""Cells of a ReLU network on the cube [-1, 1]^D: cut by its units, layer by layer, depth first.

A cell is a simple polytope, kept as its graph: each vertex lies on exactly D facets, and for each
of them there is one edge that leaves it and stays on the others. `facet[v, i]` is the facet that
slot i of vertex v leaves, `twin[v, i]` the other end, `back[v, i]` the slot there that leads back.
A cut puts a vertex on every edge from a positive to a negative one; two of them are neighbours if
they lie on the same 2-face, which is walked along its negative side. Nothing is merged: vertices
may coincide, cells stay simple, and no number of facets is too large (MATH.md, section 4).

On a cell each pre-activation is affine, `maps[layer]`. Values that are 0 up to the rounding of the
map are 0 exactly, and 0 counts as positive; a cell that touches a plane is not cut by it.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

END, CELL, FULL = 0, 1, 2  # what `next_cell` found: nothing more, a cell, too little room
START, SIZE, LAYER, CURSOR = 0, 1, 2, 3  # of a cell on the stack
ROUNDING = 8 * np.finfo(np.float64).eps


class Network(NamedTuple):
    """Layers as one array each: numba wants equal types."""

    widths: np.ndarray  # (L,) number of units
    weight: np.ndarray  # (L, width, width); that of the first layer is not used
    bias: np.ndarray  # (L, width)
    slope: np.ndarray  # (L, width)


class Stack(NamedTuple):
    """The cells that wait, one behind the other, and room to work."""

    top: np.ndarray  # (1,) number of cells
    cells: np.ndarray  # (depth, 4) first vertex, number of vertices, layer, next unit to look at
    side: np.ndarray  # (depth, width) of the layer's units: 1, -1, or 0 if not looked at
    maps: np.ndarray  # (L, width, D + 2) slopes, constant, and a bound on its size
    point: np.ndarray  # (room, D)
    facet: np.ndarray  # (room, D)
    twin: np.ndarray  # (room, D) counted from the cell's first vertex
    back: np.ndarray  # (room, D)
    z: np.ndarray  # (room,) a unit at the vertices of a cell
    rank: np.ndarray  # (room,) number of a vertex among those of its sign
    born: np.ndarray  # (room, D) number of the vertex on an edge
    link: np.ndarray  # (room, D) twins of new vertices inside the cut
    link_back: np.ndarray  # (room, D)


def join_layers(layers):
    """Return the Network of layers (weight, bias, slope)."""
    widths = np.array([len(bias) for _, bias, _ in layers])
    n, width = len(layers), int(widths.max())
    weight, bias, slope = np.zeros((n, width, width)), np.zeros((n, width)), np.zeros((n, width))
    for i, layer in enumerate(layers):
        m = widths[i]
        if i > 0:
            weight[i, :m, : widths[i - 1]] = layer[0]
        bias[i, :m], slope[i, :m] = layer[1], layer[2]
    return Network(widths, weight, bias, slope)


def new_stack(network, first, room=64):
    """Return a stack that holds the cube, `first` (m, D + 1) being the map of the first layer."""
    n_layers, width = network.slope.shape
    dim = first.shape[1] - 1
    depth = int(network.widths.sum()) + 2
    room = max(room, 2 ** (dim + 2))
    maps = np.zeros((n_layers, width, dim + 2))
    maps[0, : len(first), :-1] = first
    maps[0, :, -1] = np.abs(maps[0, :, :-1]).sum(axis=1)
    cells = np.zeros((depth, 4), np.int64)
    cells[0] = 0, 2**dim, -1, 0  # in front of the first layer
    floats, numbers = np.empty((room, dim)), np.empty((room, dim), np.int64)
    corner = np.arange(2**dim)
    for i in range(dim):
        high = corner >> i & 1
        floats[corner, i] = 2.0 * high - 1
        numbers[corner, i] = 2 * i + high
    twin, back = np.empty_like(numbers), np.empty_like(numbers)
    twin[corner] = corner[:, None] ^ (1 << np.arange(dim))
    back[corner] = np.arange(dim)
    born, link, link_back = (np.empty_like(numbers) for _ in range(3))
    return Stack(
        np.array([1]), cells, np.zeros((depth, width), np.int8), maps, floats, numbers, twin, back,
        np.empty(room), np.empty(room, np.int64), born, link, link_back,
    )  # fmt: skip


def grown(stack):
    """Return the same stack with twice the room."""
    wider = {}
    for name in Stack._fields[Stack._fields.index("point") :]:
        array = getattr(stack, name)
        wider[name] = np.concatenate([array, np.empty_like(array)])
    return stack._replace(**wider)


@njit(cache=True, nogil=True)
def next_cell(network, stack, n_cut):
    """Go on until a cell is cut by the first n_cut layers; it is the one behind the top."""
    while stack.top[0] > 0:
        cell = stack.cells[stack.top[0] - 1]
        layer = cell[LAYER]
        unit = cell[CURSOR]
        side = stack.side[stack.top[0] - 1]
        if layer >= 0:
            while unit < network.widths[layer] and side[unit] != 0:
                unit += 1
        if layer < 0 or unit == network.widths[layer]:
            if 0 <= layer < network.widths.shape[0] - 1:
                compose(network, stack.maps, layer, side)
            if layer + 1 == n_cut:
                stack.top[0] -= 1
                return CELL
            cell[LAYER] = layer + 1
            cell[CURSOR] = 0
            for u in range(network.widths[layer + 1]):
                side[u] = 1
                if network.slope[layer + 1, u] != 1.0:
                    side[u] = look(stack, cell, layer + 1, u)
            continue
        cell[CURSOR] = unit
        side[unit] = look(stack, cell, layer, unit)
        if side[unit] == 0:
            plane = 2 * stack.point.shape[1] + layer * network.slope.shape[1] + unit
            if not cut(stack, cell, side, unit, plane):
                return FULL
    return END


@njit(cache=True, nogil=True)
def compose(network, maps, layer, side):
    """Fill the map of the next layer, on a cell where the units of this one have these sides."""
    for u in range(network.widths[layer + 1]):
        row = maps[layer + 1, u]
        row[:] = 0.0
        row[-2] = network.bias[layer + 1, u]
        row[-1] = abs(row[-2])
        for v in range(network.widths[layer]):
            factor = network.weight[layer + 1, u, v]
            if side[v] < 0:
                factor *= network.slope[layer, v]
            if factor != 0.0:
                for i in range(row.shape[0] - 1):
                    row[i] += factor * maps[layer, v, i]
                row[-1] += abs(factor) * maps[layer, v, -1]


@njit(cache=True, nogil=True)
def look(stack, cell, layer, unit):
    """Fill z, and return 1 or -1 if it has one sign on the cell, else 0."""
    row = stack.maps[layer, unit]
    dim = stack.point.shape[1]
    least, most = np.inf, -np.inf
    for v in range(cell[SIZE]):
        z = row[dim]
        for i in range(dim):
            z += row[i] * stack.point[cell[START] + v, i]
        if abs(z) <= ROUNDING * row[dim + 1]:
            z = 0.0
        stack.z[v] = z
        least = min(least, z)
        most = max(most, z)
    if most <= 0.0:
        return -1
    return 1 if least >= 0.0 else 0


@njit(cache=True, nogil=True)
def cut(stack, cell, side, unit, plane):
    """Replace the top cell by its negative part, with its positive part above; False if no room."""
    start, n = cell[START], cell[SIZE]
    n_sides, n_new = _number(stack, start, n)
    positive, negative = n_sides[0] + n_new, n_sides[1] + n_new
    if start + n + positive + negative > stack.point.shape[0]:
        return False
    _link(stack, start, n)
    first = start + n  # both parts are made behind the cell, then moved down
    _write(stack, start, n, first, n_sides[1], -1, plane)
    _write(stack, start, n, first + negative, n_sides[0], 1, plane)
    for v in range(positive + negative):
        for i in range(stack.point.shape[1]):
            stack.point[start + v, i] = stack.point[first + v, i]
            stack.facet[start + v, i] = stack.facet[first + v, i]
            stack.twin[start + v, i] = stack.twin[first + v, i]
            stack.back[start + v, i] = stack.back[first + v, i]
    above = stack.cells[stack.top[0]]
    above[:] = cell
    above[START] = start + negative
    above[SIZE] = positive
    cell[SIZE] = negative
    stack.side[stack.top[0]] = side
    stack.side[stack.top[0], unit] = 1
    side[unit] = -1
    stack.top[0] += 1
    return True


@njit(cache=True, nogil=True)
def _number(stack, start, n):
    """Count and number the vertices of each sign, and the edges that change it."""
    dim = stack.point.shape[1]
    n_positive, n_negative, n_new = 0, 0, 0
    for v in range(n):
        if stack.z[v] < 0.0:
            stack.rank[v] = n_negative
            n_negative += 1
            continue
        stack.rank[v] = n_positive
        n_positive += 1
        for i in range(dim):
            u = stack.twin[start + v, i]
            if stack.z[u] < 0.0:
                stack.born[v, i] = n_new
                stack.born[u, stack.back[start + v, i]] = n_new
                n_new += 1
    return (n_positive, n_negative), n_new


@njit(cache=True, nogil=True)
def _link(stack, start, n):
    """Find the neighbours of the new vertices inside the cut.

    The new vertex on the edge that leaves facet a of v has the facets of v, the plane in place of
    a. In the 2-face that is on neither a nor b, `on` is the facet of the edge walked on that does
    not hold the whole 2-face.
    """
    dim = stack.point.shape[1]
    for v in range(n):
        if stack.z[v] < 0.0:
            continue
        for i in range(dim):
            if stack.z[stack.twin[start + v, i]] >= 0.0:
                continue
            new = stack.born[v, i]
            for k in range(dim):
                if k == i:
                    continue
                on = stack.facet[start + v, k]
                u, slot = v, i
                while True:
                    w, back = stack.twin[start + u, slot], stack.back[start + u, slot]
                    at = 0
                    while stack.facet[start + w, at] != on:
                        at += 1
                    if stack.z[w] >= 0.0:
                        stack.link[new, k] = stack.born[u, slot]
                        stack.link_back[new, k] = at
                        break
                    on = stack.facet[start + w, back]
                    u, slot = w, at


@njit(cache=True, nogil=True)
def _write(stack, start, n, first, n_kept, sign, plane):
    """Write the part of one sign to the vertices from `first` on: those kept, then the new ones."""
    dim = stack.point.shape[1]
    for v in range(n):
        kept = stack.z[v] < 0.0 if sign < 0 else stack.z[v] >= 0.0
        place = first + stack.rank[v]
        for i in range(dim):
            u, back = stack.twin[start + v, i], stack.back[start + v, i]
            if kept:
                stack.point[place, i] = stack.point[start + v, i]
                stack.facet[place, i] = stack.facet[start + v, i]
                stack.twin[place, i] = stack.rank[u]
                stack.back[place, i] = back
            if (stack.z[u] < 0.0) == (stack.z[v] < 0.0):
                continue
            new = stack.born[v, i]
            if kept:
                stack.twin[place, i] = n_kept + new
            if stack.z[v] < 0.0:
                continue
            if kept:  # the new vertex has the slots of its positive end
                stack.back[place, i] = i
            share = stack.z[v] / (stack.z[v] - stack.z[u])
            there = first + n_kept + new
            for k in range(dim):
                here = stack.point[start + v, k]
                stack.point[there, k] = here + share * (stack.point[start + u, k] - here)
                stack.facet[there, k] = stack.facet[start + v, k]
                stack.twin[there, k] = stack.link[new, k] + n_kept
                stack.back[there, k] = stack.link_back[new, k]
            stack.facet[there, i] = plane
            stack.twin[there, i] = stack.rank[v] if kept else stack.rank[u]
            stack.back[there, i] = i if kept else back
