"""Integrals over cells: each is cut into simplices, on which the mean of a ReLU is known.

A cell is the union of the cones from one of its vertices over the facets that do not hold it, which
are simple polytopes themselves; a polygon is walked round. On a simplex with n vertices, where a
unit has the values P_1..P_k >= 0 and N_1..N_{n-k} < 0, the mean of its positive part is
J(k, n - k) / n,

    J(a, 0) = Σ_{i<=a} P_i,  J(0, b) = 0,
    J(a, b) = λ J(a, b - 1) + (1 - λ) J(a - 1, b),  λ = P_a / (P_a - N_b)

(docs/mathematics.md, section 4). All terms are positive, so that nothing cancels.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.cells.polytopes import (
    BACK,
    CELL,
    FACET,
    ROUNDING,
    SIZE,
    START,
    TWIN,
    next_cell,
)
from skattr.kernels.compiled import called, inlined, kernel

OVER = 3  # more cells than allowed
COUNT, CURSOR, HELD, TIME = 0, 1, 2, 3  # of a level


class Work(NamedTuple):
    """Buffers for one cell: its last layer and its simplices."""

    z: np.ndarray  # (room, width) units of the last layer at the vertices
    sign: np.ndarray  # (width,) 1, -1, or 0 if a unit changes sign on the cell
    bent: np.ndarray  # (width,) first the units that do
    positive: np.ndarray  # (width,) for each of them, the integral of max(0, z)
    moment: np.ndarray  # (D + 1,) the integrals of the coordinates and of 1
    simplices: np.ndarray  # (3 room, D + 1) vertices; a solid of n vertices has at most 3 n
    share: np.ndarray  # (3 room,) volumes, over D + 1
    faces: np.ndarray  # (D, room) the vertices of the face at each level, its apex first
    levels: np.ndarray  # (D + 1, 4) their number, slots looked at, facet that holds the next, time
    facets: np.ndarray  # (D + 1, n_planes) when a facet was seen at each level; number of vertices
    room: np.ndarray  # (D + 2, D + 1) the edges of a simplex; a unit at its vertices


def new_work(stack):
    """Return buffers for the cells of a stack."""
    room, dim = stack.point.shape
    n_layers, _, width = stack.maps.shape
    return Work(
        np.empty((room, width)), np.empty(width, np.int8), np.empty(width, np.int32),
        np.empty(width), np.empty(dim + 1),
        np.empty((3 * room, dim + 1), np.int32), np.empty(3 * room),
        np.empty((dim, room), np.int32), np.zeros((dim + 1, 4), np.int64),
        np.zeros((dim + 1, 2 * dim + n_layers * width), np.int64), np.empty((dim + 2, dim + 1)),
    )  # fmt: skip


@kernel
def add_cells(network, stack, last, most, work, means, sums):
    """Add the means of the last layer's activations on all cells to means[unit].

    `last` is the number of the last layer, by which cells are not cut. sums are the volume of the
    cells, the whole cube having 1, and their number. Returns END, FULL or OVER.
    """
    while True:
        status = next_cell(network, stack, last)
        if status != CELL:
            return status
        top = stack.top[0]
        sums[1] += 1
        if sums[1] + top > most:
            return OVER
        start, n = stack.cells[top, START], stack.cells[top, SIZE]
        width, slope = network.widths[last], network.slope
        n_bent = look_at_all(
            stack.maps, slope, last, width, stack.point, start, n, work.z, work.sign, work.bent
        )
        add_simplices(stack.point, stack.graph, start, n, work, n_bent)
        add_units(stack.maps, slope, last, width, work.sign, work.positive, work.moment, means)
        sums[0] += work.moment[-1]


@called
def look_at_all(maps, slope, layer, width, point, start, n, z, sign, bent):
    """Fill z, sign and bent, and return the number of units that change sign on a cell."""
    dim = point.shape[1]
    for v in range(n):
        for u in range(width):
            z[v, u] = maps[layer, dim, u]
        for i in range(dim):
            x = point[start + v, i]
            for u in range(width):
                z[v, u] += maps[layer, i, u] * x
    n_bent = 0
    for u in range(width):
        least, most = z[0, u], z[0, u]
        for v in range(1, n):
            least, most = min(least, z[v, u]), max(most, z[v, u])
        sign[u] = 1 if slope[layer, u] == 1.0 or least >= 0.0 else -1
        if sign[u] < 0 and most > 0.0 and max(most, -least) > ROUNDING * maps[layer, dim + 1, u]:
            sign[u] = 0
            bent[n_bent] = u
            n_bent += 1
    return n_bent


@inlined
def add_units(maps, slope, layer, width, sign, positive, moment, means):
    """Add the contributions of one cell."""
    n_bent = 0
    for u in range(width):
        total = 0.0
        for i in range(moment.shape[0]):
            total += maps[layer, i, u] * moment[i]
        if sign[u] <= 0:
            total *= slope[layer, u]
        if sign[u] == 0:
            total += (1.0 - slope[layer, u]) * positive[n_bent]
            n_bent += 1
        means[u] += total


@called
def add_simplices(point, graph, start, n, work, n_bent):
    """Fill `positive` for the bent units, and `moment`, of one cell."""
    for i in range(work.moment.shape[0]):
        work.moment[i] = 0.0
    for b in range(n_bent):
        work.positive[b] = 0.0
    dim = point.shape[1]
    level, count = np.int64(0), np.int64(0)  # for a literal 0 numba compiles all below once more
    if dim == 1:
        work.simplices[0, 0], work.simplices[0, 1] = 0, 1
        count += 1
    elif dim == 2:
        count = _fan(graph, start, np.int32(0), level, level + 1, work.simplices, count)
    else:
        for v in range(n):
            work.faces[0, v] = v
        work.levels[0, COUNT] = n
        _begin(graph, start, work.faces, work.levels, work.facets, level)
        while level >= 0:
            if level < dim - 3:
                level = _next_face(graph, start, work.faces, work.levels, work.facets, level)
                continue
            if count + 3 * work.levels[level, COUNT] > work.share.shape[0]:
                _add(point, start, work, count, n_bent)
                count = np.int64(0)
            count = _solid(
                graph, start, work.faces, work.levels, work.facets, work.simplices, count
            )
            level -= 1
    _add(point, start, work, count, n_bent)


@inlined
def _begin(graph, start, faces, levels, facets, level):
    """Begin a face: its apex is on the facets with the most vertices, so that cones are few."""
    dim = graph.shape[2]
    n, sizes = levels[level, COUNT], facets.shape[0] - 1
    for k in range(n):
        for i in range(dim):
            facets[sizes, graph[start + faces[level, k], FACET, i]] += 1
    best, most = 0, 0
    for k in range(n):
        total = 0
        for i in range(dim):
            total += facets[sizes, graph[start + faces[level, k], FACET, i]]
        if total > most:
            best, most = k, total
    for k in range(n):
        for i in range(dim):
            facets[sizes, graph[start + faces[level, k], FACET, i]] = 0
    faces[level, 0], faces[level, best] = faces[level, best], faces[level, 0]
    levels[dim, TIME] += 1
    levels[level, TIME] = levels[dim, TIME]
    levels[level, CURSOR] = dim  # the facets of the apex make no cone
    for i in range(dim):
        facets[level, graph[start + faces[level, 0], FACET, i]] = levels[level, TIME]


@inlined
def _next_face(graph, start, faces, levels, facets, level):
    """Begin the next facet of a face, and return its level; the level above if there is none."""
    dim, n = graph.shape[2], levels[level, COUNT]
    while levels[level, CURSOR] < n * dim:
        cursor = levels[level, CURSOR]
        k, i = cursor // dim, cursor % dim
        levels[level, CURSOR] = cursor + 1
        g = graph[start + faces[level, k], FACET, i]
        if facets[level, g] == levels[level, TIME]:
            continue
        facets[level, g] = levels[level, TIME]
        levels[level, HELD] = g
        size = 0
        for k in range(n):
            for i in range(dim):
                if graph[start + faces[level, k], FACET, i] == g:
                    faces[level + 1, size] = faces[level, k]
                    size += 1
        levels[level + 1, COUNT] = size
        _begin(graph, start, faces, levels, facets, level + 1)
        return level + 1
    return level - 1


@inlined
def _solid(graph, start, faces, levels, facets, simplices, count):
    """Write the simplices of a face of three dimensions, and return how many there are now."""
    dim = graph.shape[2]
    level = dim - 3
    for k in range(levels[level, COUNT]):
        v = faces[level, k]
        for i in range(dim):
            g = graph[start + v, FACET, i]
            if facets[level, g] == levels[level, TIME]:
                continue
            facets[level, g] = levels[level, TIME]
            levels[level, HELD] = g
            one, two = np.int64(0), np.int64(0)  # the slots that stay on the polygon
            for slot in range(dim):
                held = False
                for h in range(level + 1):
                    held |= levels[h, HELD] == graph[start + v, FACET, slot]
                if not held:
                    one, two = two, slot
            begun = count
            count = _fan(graph, start, v, one, two, simplices, count)
            for s in range(begun, count):
                for h in range(level + 1):
                    simplices[s, h] = faces[h, 0]
    return count


@inlined
def _fan(graph, start, v, slot, other, simplices, count):
    """Write the triangles of a polygon, which is walked round from v, as the ends of simplices.

    It leaves v by two slots; `on` is the facet of the edge walked on that does not hold it all.
    """
    dim = graph.shape[2]
    on = graph[start + v, FACET, other]
    u, came = graph[start + v, TWIN, slot], graph[start + v, BACK, slot]
    while True:
        at = 0
        while graph[start + u, FACET, at] != on:
            at += 1
        on = graph[start + u, FACET, came]
        w, came = graph[start + u, TWIN, at], graph[start + u, BACK, at]
        if w == v:
            return count
        simplices[count, dim - 2] = v
        simplices[count, dim - 1] = u
        simplices[count, dim] = w
        count += 1
        u = w


@inlined
def _add(point, start, work, count, n_bent):
    """Add the integrals over some simplices."""
    _add_moments(point, start, work.simplices, count, work.share, work.moment, work.room)
    for b in range(n_bent):
        total = 0.0
        for s in range(count):
            total += work.share[s] * positive_sum(
                work.z, work.bent[b], work.simplices, s, work.room
            )
        work.positive[b] += total


@inlined
def _add_moments(point, start, simplices, count, share, moment, room):
    dim = point.shape[1]
    unit = 1.0 / (dim + 1)
    for k in range(dim):
        unit /= 2.0 * (k + 1)  # the cube has 2^dim, a simplex of those edges 1 / dim!
    for s in range(count):
        apex = start + simplices[s, 0]
        for k in range(dim):
            for i in range(dim):
                room[k, i] = point[start + simplices[s, k + 1], i] - point[apex, i]
        share[s] = unit * determinant(room)
        moment[dim] += share[s] * (dim + 1)
        for i in range(dim):
            total = 0.0
            for k in range(dim + 1):
                total += point[start + simplices[s, k], i]
            moment[i] += share[s] * total


@inlined
def determinant(edges):
    """Return |det| of the square without the last rows and column, by elimination in place."""
    dim = edges.shape[1] - 1
    if dim == 2:
        return abs(edges[0, 0] * edges[1, 1] - edges[0, 1] * edges[1, 0])
    if dim == 3:
        return abs(
            edges[0, 0] * (edges[1, 1] * edges[2, 2] - edges[1, 2] * edges[2, 1])
            + edges[0, 1] * (edges[1, 2] * edges[2, 0] - edges[1, 0] * edges[2, 2])
            + edges[0, 2] * (edges[1, 0] * edges[2, 1] - edges[1, 1] * edges[2, 0])
        )
    result = 1.0
    for k in range(dim):
        pivot = k
        for i in range(k + 1, dim):
            if abs(edges[i, k]) > abs(edges[pivot, k]):
                pivot = i
        if edges[pivot, k] == 0.0:
            return 0.0
        if pivot != k:
            for i in range(k, dim):
                edges[k, i], edges[pivot, i] = edges[pivot, i], edges[k, i]
        result *= abs(edges[k, k])
        for i in range(k + 1, dim):
            factor = edges[i, k] / edges[k, k]
            for c in range(k + 1, dim):
                edges[i, c] -= factor * edges[k, c]
    return result


@inlined
def positive_sum(z, unit, simplices, s, room):
    """Return the mean of max(0, z[:, unit]) over a simplex, times its number of vertices."""
    n = simplices.shape[1]
    a, b = 0, 0  # in room[0]: positive values from the left, negative from the right
    total = 0.0
    for k in range(n):
        value = z[simplices[s, k], unit]
        if value >= 0.0:
            total += value
            room[0, a] = value
            room[1, a] = total
            a += 1
        else:
            b += 1
            room[0, n - b] = value
    if a == 0:
        return 0.0
    for k in range(n - 1, n - 1 - b, -1):
        before = 0.0
        for i in range(a):
            share = room[0, i] / (room[0, i] - room[0, k])
            before = share * room[1, i] + (1.0 - share) * before
            room[1, i] = before
    return room[1, a - 1]


@kernel
def triangulate(point, graph, start, n, work):
    """Add the simplices of one cell, called from Python."""
    add_simplices(point, graph, start, n, work, 0)
