"""Cells of a ReLU network on the cube [-1, 1]^D: cut by its units, layer by layer, depth first.

A cell is a simple polytope, kept as its graph: each vertex lies on exactly D facets, and for each
of them there is one edge that leaves it and stays on the others. `graph[v, FACET, i]` is the facet
that slot i of vertex v leaves, TWIN the other end, BACK the slot there that leads back. A cut puts
a vertex on every edge from a positive to a negative one; two of them are neighbours if they lie on
the same 2-face, which is walked along its negative side. Nothing is merged: vertices may coincide,
cells stay simple, and no number of facets is too large (docs/mathematics.md, section 4).

On a cell each pre-activation is affine, `maps[layer]`. Values that are 0 up to the rounding of the
map are 0 exactly, and 0 counts as positive; a cell that touches a plane is not cut by it.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from skattr.kernels.compiled import called, inlined, kernel

END, CELL, FULL = 0, 1, 2  # what `next_cell` found: nothing more, a cell, the buffers are full
START, SIZE, LAYER, CURSOR = 0, 1, 2, 3  # of a cell on the stack
FACET, TWIN, BACK, NEW = 0, 1, 2, 3  # of a slot in a graph
ROUNDING = 8 * np.finfo(np.float64).eps


class Network(NamedTuple):
    """All layers in one array per parameter, as numba needs equal types."""

    widths: np.ndarray  # (L,) number of units
    weight: np.ndarray  # (L, width, width) from units to units; that of layer 0 is not used
    bias: np.ndarray  # (L, width)
    slope: np.ndarray  # (L, width)


class Stack(NamedTuple):
    """The stack of cells to visit, and buffers."""

    top: np.ndarray  # (1,) number of cells
    cells: np.ndarray  # (depth, 4) first vertex, number of vertices, layer, next unit to look at
    side: np.ndarray  # (depth, width) of the layer's units: 1, -1, or 0 if not looked at
    parts: np.ndarray  # (depth, D + 2, width) the next layer's map, of the units looked at
    maps: np.ndarray  # (L, D + 2, width) slopes, constant, and a bound on its size
    point: np.ndarray  # (room, D)
    graph: np.ndarray  # (room, 4, D) facet; twin, from the cell's first vertex on; back; new vertex
    z: np.ndarray  # (room,) a unit at the vertices of a cell
    rank: np.ndarray  # (room,) number of a vertex among those of its sign
    edge: np.ndarray  # (D room, 4) that changes sign: positive vertex, slot, negative twin, back


def join_layers(layers):
    """Return the Network of layers (weight, bias, slope)."""
    widths = np.array([len(bias) for _, bias, _ in layers])
    n, width = len(layers), int(widths.max())
    weight, bias, slope = np.zeros((n, width, width)), np.zeros((n, width)), np.zeros((n, width))
    for i, layer in enumerate(layers):
        m = widths[i]
        if i > 0:
            weight[i, : widths[i - 1], :m] = layer[0].T
        bias[i, :m], slope[i, :m] = layer[1], layer[2]
    return Network(widths, weight, bias, slope)


def new_stack(network, first, room=256):
    """Return a stack that holds the cube, `first` (m, D + 1) being the map of the first layer."""
    n_layers, width = network.slope.shape
    dim = first.shape[1] - 1
    depth = int(network.widths.sum()) + 2
    maps = np.zeros((n_layers, dim + 2, width))
    maps[0, :-1, : len(first)] = first.T
    maps[0, -1] = np.abs(maps[0, :-1]).sum(axis=0)
    cells = np.zeros((depth, 4), np.int64)
    cells[0] = 0, 2**dim, -1, 0  # in front of the first layer
    room = max(room, 2 ** (dim + 6))
    point, graph = np.empty((room, dim)), np.empty((room, 4, dim), np.int32)
    point[: 2**dim], graph[: 2**dim] = cube(dim)
    return Stack(
        np.array([1]), cells, np.zeros((depth, width), np.int8),
        np.empty((depth, dim + 2, width)), maps, point, graph,
        np.empty(room), np.empty(room, np.int32), np.empty((room * dim, 4), np.int32),
    )  # fmt: skip


@cache
def cube(dim):
    """Return the corners of the cube and their graph."""
    corner = np.arange(2**dim)[:, None]
    axis = np.arange(dim)
    high = corner >> axis & 1
    slot = np.broadcast_to(axis, high.shape)
    return 2.0 * high - 1, np.stack([2 * axis + high, corner ^ (1 << axis), slot, slot], axis=1)


def grown(stack):
    """Return the stack with buffers of twice the size."""
    wider = {}
    for name in Stack._fields[Stack._fields.index("point") :]:
        array = getattr(stack, name)
        wider[name] = np.concatenate([array, np.empty_like(array)])
    return stack._replace(**wider)


@inlined
def next_cell(network, stack, n_cut):
    """Go on until a cell is cut by the first n_cut layers; it is the one behind the top."""
    top, cells, side = stack.top, stack.cells, stack.side
    while top[0] > 0:
        at = top[0] - 1
        layer, unit = cells[at, LAYER], cells[at, CURSOR]
        if layer >= 0:
            while unit < network.widths[layer] and side[at, unit] != 0:
                unit += 1
        if layer < 0 or unit == network.widths[layer]:
            if 0 <= layer < network.widths.shape[0] - 1:
                copy_map(stack.parts, at, stack.maps, layer + 1)
            if layer + 1 == n_cut:
                top[0] -= 1
                return CELL
            begin_layer(network, stack, at, layer + 1)
            continue
        cells[at, CURSOR] = unit
        start, n = cells[at, START], cells[at, SIZE]
        side[at, unit] = look(stack.maps, layer, unit, stack.point, start, n, stack.z)
        if side[at, unit] != 0:
            add_unit(network, stack, at, layer, unit)
            continue
        plane = 2 * stack.point.shape[1] + layer * network.slope.shape[1] + unit
        if not cut(stack, at, plane):
            return FULL
        side[at, unit], side[at + 1, unit] = -1, 1
        add_unit(network, stack, at, layer, unit)
        add_unit(network, stack, at + 1, layer, unit)
        top[0] += 1
    return END


@called
def begin_layer(network, stack, at, layer):
    """Find the signs of all units of a layer, most of which do not cut the cell."""
    cells, side, parts = stack.cells, stack.side, stack.parts
    cells[at, LAYER], cells[at, CURSOR] = layer, 0
    start, n = cells[at, START], cells[at, SIZE]
    if layer + 1 < network.widths.shape[0]:
        last = parts.shape[1] - 1
        for u in range(parts.shape[2]):
            for i in range(last - 1):
                parts[at, i, u] = 0.0
            parts[at, last - 1, u] = network.bias[layer + 1, u]
            parts[at, last, u] = abs(network.bias[layer + 1, u])
    for u in range(network.widths[layer]):
        side[at, u] = 1
        if network.slope[layer, u] != 1.0:
            side[at, u] = look(stack.maps, layer, u, stack.point, start, n, stack.z)
        if side[at, u] != 0:
            add_unit(network, stack, at, layer, u)


@inlined
def add_unit(network, stack, at, layer, unit):
    """Add the contribution of a unit to the next layer on a cell where its side is known."""
    factor = 1.0 if stack.side[at, unit] > 0 else network.slope[layer, unit]
    if factor != 0.0 and layer + 1 < network.widths.shape[0]:
        _add_unit(stack.maps, layer, unit, factor, network.weight, stack.parts, at)


@inlined
def _add_unit(maps, layer, unit, factor, weight, parts, at):
    last, width = parts.shape[1] - 1, parts.shape[2]
    for i in range(last):
        value = factor * maps[layer, i, unit]
        for u in range(width):
            parts[at, i, u] += weight[layer + 1, unit, u] * value
    value = abs(factor) * maps[layer, last, unit]
    for u in range(width):
        parts[at, last, u] += abs(weight[layer + 1, unit, u]) * value


@inlined
def look(maps, layer, unit, point, start, n, z):
    """Fill z, and return 1 or -1 if it has one sign on the cell, else 0."""
    dim = point.shape[1]
    least, most = np.inf, -np.inf
    rounding = ROUNDING * maps[layer, dim + 1, unit]
    for v in range(n):
        value = maps[layer, dim, unit]
        for i in range(dim):
            value += maps[layer, i, unit] * point[start + v, i]
        if abs(value) <= rounding:
            value = 0.0
        z[v] = value
        least = value if value < least else least
        most = value if value > most else most
    if most <= 0.0:
        return -1
    return 1 if least >= 0.0 else 0


@called
def cut(stack, at, plane):
    """Replace the top cell by its negative part, with its positive part above.

    Both are written after the cell, whose memory is free again when the two are done. Returns False
    if the buffers are full.
    """
    cells, point, graph, edge = stack.cells, stack.point, stack.graph, stack.edge
    start, n = cells[at, START], cells[at, SIZE]
    n_positive, n_new = _number(graph, start, n, stack.z, stack.rank, edge)
    low, high = start + n, start + n + n - n_positive + n_new
    low_new, high_new = high - n_new, high + n_positive
    if high_new + n_new > point.shape[0]:
        return False
    _keep(point, graph, start, n, stack.z, stack.rank, low, high)
    _link(graph, start, stack.z, edge, n_new, high, high_new)
    for new in range(n_new):
        _add_vertex(
            point, graph, start, stack.z, stack.rank, edge, new, low, low_new, high, high_new, plane
        )
    for i in range(cells.shape[1]):
        cells[at + 1, i] = cells[at, i]
    cells[at, START], cells[at, SIZE] = low, high - low
    cells[at + 1, START], cells[at + 1, SIZE] = high, high_new + n_new - high
    for u in range(stack.side.shape[1]):
        stack.side[at + 1, u] = stack.side[at, u]
    copy_map(stack.parts, at, stack.parts, at + 1)
    return True


@inlined
def copy_map(maps, i, into, k):
    """Copy a map: numba would allocate for into[k] = maps[i]."""
    for row in range(maps.shape[1]):
        for u in range(maps.shape[2]):
            into[k, row, u] = maps[i, row, u]


@inlined
def _number(graph, start, n, z, rank, edge):
    """Count and number the positive vertices and the edges to negative ones; number the latter."""
    n_positive, n_new = 0, 0
    for v in range(n):
        if z[v] < 0.0:
            rank[v] = v - n_positive
            continue
        rank[v] = n_positive
        n_positive += 1
        for i in range(graph.shape[2]):
            u = graph[start + v, TWIN, i]
            if z[u] < 0.0:
                graph[start + v, NEW, i] = n_new
                edge[n_new, 0] = v
                edge[n_new, 1] = i
                edge[n_new, 2] = u
                edge[n_new, 3] = graph[start + v, BACK, i]
                n_new += 1
    return n_positive, n_new


@inlined
def _keep(point, graph, start, n, z, rank, low, high):
    """Copy each vertex to the part of its sign."""
    for v in range(n):
        place = rank[v] + (low if z[v] < 0.0 else high)
        for i in range(point.shape[1]):
            point[place, i] = point[start + v, i]
            graph[place, FACET, i] = graph[start + v, FACET, i]
            graph[place, TWIN, i] = rank[graph[start + v, TWIN, i]]
            graph[place, BACK, i] = graph[start + v, BACK, i]


@inlined
def _link(graph, start, z, edge, n_new, high, high_new):
    """Find the neighbours of the new vertices inside the cut, and write them to the positive part.

    The new vertex on the edge that leaves facet a of v has the facets of v, the plane in place of
    a. In the 2-face that is on neither a nor b, `on` is the facet of the edge walked on that does
    not hold the whole 2-face.
    """
    dim = graph.shape[2]
    for new in range(n_new):
        for k in range(dim):
            graph[high_new + new, TWIN, k] = -1
    for new in range(n_new):
        v, i = edge[new, 0], edge[new, 1]
        for k in range(dim):
            if k == i or graph[high_new + new, TWIN, k] >= 0:  # found from the other end
                continue
            on = graph[start + v, FACET, k]
            u, slot = v, i
            while True:
                w, came = graph[start + u, TWIN, slot], graph[start + u, BACK, slot]
                at = 0
                while graph[start + w, FACET, at] != on:
                    at += 1
                if z[w] >= 0.0:
                    break
                on = graph[start + w, FACET, came]
                u, slot = w, at
            other = graph[start + w, NEW, came]
            graph[high_new + new, TWIN, k] = high_new - high + other
            graph[high_new + new, BACK, k] = at
            graph[high_new + other, TWIN, at] = high_new - high + new
            graph[high_new + other, BACK, at] = k


@inlined
def _add_vertex(point, graph, start, z, rank, edge, new, low, low_new, high, high_new, plane):
    """Write a new vertex to both parts; it has the slots of its positive end."""
    v, i, u, came = edge[new, 0], edge[new, 1], edge[new, 2], edge[new, 3]
    share = z[v] / (z[v] - z[u])
    below, above = low_new + new, high_new + new
    for k in range(graph.shape[2]):
        x = point[start + v, k] + share * (point[start + u, k] - point[start + v, k])
        point[below, k], point[above, k] = x, x
        facet = plane if k == i else graph[start + v, FACET, k]
        graph[below, FACET, k], graph[above, FACET, k] = facet, facet
        graph[below, TWIN, k] = graph[above, TWIN, k] - (high_new - high) + (low_new - low)
        graph[below, BACK, k] = graph[above, BACK, k]
    graph[below, TWIN, i], graph[below, BACK, i] = rank[u], came
    graph[above, TWIN, i], graph[above, BACK, i] = rank[v], i
    u, v = low + rank[u], high + rank[v]
    graph[u, TWIN, came], graph[u, BACK, came] = below - low, i
    graph[v, TWIN, i], graph[v, BACK, i] = above - high, i


@kernel
def find_cell(layers, stack, last):
    """Find the next cell, called from Python."""
    return next_cell(layers, stack, last)
