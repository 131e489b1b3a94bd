"""Integrals over cells: each is cut into simplices, on which the mean of a ReLU is known.

A cell is the union of the cones from its first vertex over the facets that do not hold it, which
are simple polytopes themselves. On a simplex with n vertices, where a unit has the values
P_1..P_k >= 0 and N_1..N_{n-k} < 0, the mean of its positive part is J(k, n - k),

    J(a, 0) = Σ_{i<=a} P_i / n,  J(0, b) = 0,
    J(a, b) = λ J(a, b - 1) + (1 - λ) J(a - 1, b),  λ = P_a / (P_a - N_b)

(MATH.md, section 4). All terms are positive, so that nothing cancels.
"""

import numpy as np
from numba import njit

from skattr.kernels.polytopes import CELL, ROUNDING, SIZE, START, next_cell

OVER = 3  # more cells than allowed


@njit(cache=True, nogil=True)
def add_cells(network, stack, last, most, means, sums):
    """Add the means of the last layer's activations on all cells to means[unit].

    `last` is the number of the last layer, by which cells are not cut. sums are the volume of the
    cells, the whole cube having 1, and their number. Returns END, FULL or OVER.
    """
    while True:
        found = next_cell(network, stack, last)
        if found != CELL:
            return found
        sums[1] += 1
        if sums[1] + stack.top[0] > most:
            return OVER
        cell = stack.cells[stack.top[0]]
        corners = stack.point[cell[START] : cell[START] + cell[SIZE]]
        facets = stack.facet[cell[START] : cell[START] + cell[SIZE]]
        width = network.widths[last]
        add_cell(corners, facets, stack.maps[last, :width], network.slope[last], means, sums)


@njit(cache=True, nogil=True)
def add_cell(corners, facets, maps, slope, means, sums):
    """Add what one cell brings."""
    n, dim = corners.shape
    z = np.empty((maps.shape[0], n))  # first those units that change sign on the cell
    bent = np.empty(maps.shape[0], np.int64)
    n_bent = 0
    sign = np.empty(maps.shape[0], np.int8)
    for u in range(maps.shape[0]):
        least, most = np.inf, -np.inf
        for v in range(n):
            value = maps[u, dim]
            for i in range(dim):
                value += maps[u, i] * corners[v, i]
            z[n_bent, v] = value
            least = min(least, value)
            most = max(most, value)
        sign[u] = 1 if least >= 0.0 else -1
        if slope[u] == 1.0:
            sign[u] = 1
        elif least < 0.0 < most and max(most, -least) > ROUNDING * maps[u, dim + 1]:
            sign[u] = 0
            bent[n_bent] = u
            n_bent += 1
    positive = np.zeros(n_bent)
    moment = np.zeros(dim + 1)
    add_simplices(corners, facets, z[:n_bent], positive, moment)
    sums[0] += moment[dim]
    n_bent = 0
    for u in range(maps.shape[0]):
        total = 0.0
        for i in range(dim + 1):
            total += maps[u, i] * moment[i]
        if sign[u] > 0:
            means[u] += total
        else:
            means[u] += slope[u] * total
        if sign[u] == 0:
            means[u] += (1.0 - slope[u]) * positive[n_bent]
            n_bent += 1


@njit(cache=True, nogil=True)
def add_simplices(corners, facets, z, positive, moment):
    """Add the integrals of max(0, z), of the coordinates and of 1 over a cell."""
    n, dim = corners.shape
    on, apex = incidence(facets)
    faces = np.empty((dim, n), np.int64)  # the vertices of the face at each level
    sizes = np.empty(dim, np.int64)
    facet = np.empty(dim, np.int64)  # the last facet tried at each level
    simplex = np.empty(dim + 1, np.int64)
    edges = np.empty((dim, dim))
    work = np.empty(2 * dim + 2)
    for v in range(n):
        faces[0, v] = v
    faces[0, 0], faces[0, apex] = apex, 0
    sizes[0] = n
    facet[0] = -1
    level = 0
    while level >= 0:
        simplex[level] = faces[level, 0]
        if level == dim - 1:
            simplex[dim] = faces[level, 1]
            _add_simplex(corners, simplex, z, edges, work, positive, moment)
            level -= 1
            continue
        facet[level] += 1
        g = facet[level]
        if g == on.shape[1]:
            level -= 1
            continue
        if on[simplex[level], g]:
            continue
        size = 0
        for i in range(sizes[level]):
            v = faces[level, i]
            if on[v, g]:
                faces[level + 1, size] = v
                size += 1
        if size > 0:
            level += 1
            sizes[level] = size
            facet[level] = -1


@njit(cache=True, nogil=True)
def incidence(facets):
    """Return whether a vertex lies on a facet, (n_vertices, n_facets).

    And the vertex whose facets have the most vertices: the cones from it are the fewest.
    """
    n, dim = facets.shape
    names = np.empty(n * dim, np.int64)
    sizes = np.zeros(n * dim, np.int64)
    on = np.zeros((n, n * dim), np.bool_)
    n_facets = 0
    for v in range(n):
        for i in range(dim):
            g = 0
            while g < n_facets and names[g] != facets[v, i]:
                g += 1
            if g == n_facets:
                names[g] = facets[v, i]
                n_facets += 1
            on[v, g] = True
            sizes[g] += 1
    best, apex = 0, 0
    for v in range(n):
        size = 0
        for g in range(n_facets):
            if on[v, g]:
                size += sizes[g]
        if size > best:
            best, apex = size, v
    return on[:, :n_facets], apex


@njit(cache=True, nogil=True)
def _add_simplex(corners, simplex, z, edges, work, positive, moment):
    dim = corners.shape[1]
    for k in range(dim):
        for i in range(dim):
            edges[k, i] = corners[simplex[k + 1], i] - corners[simplex[0], i]
    volume = 1.0
    for k in range(dim):
        volume /= 2.0 * (k + 1)  # the cube has 2^dim, a simplex of those edges 1 / dim!
    volume *= determinant(edges)
    if volume == 0.0:
        return
    for i in range(dim):
        total = 0.0
        for v in simplex:
            total += corners[v, i]
        moment[i] += volume * total / (dim + 1)
    moment[dim] += volume
    for u in range(z.shape[0]):
        positive[u] += volume * mean_positive(z[u], simplex, work)


@njit(cache=True, nogil=True)
def determinant(edges):
    """Return |det|, by elimination in place."""
    dim = edges.shape[0]
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


@njit(cache=True, nogil=True)
def mean_positive(z, simplex, work):
    """Return the mean of max(0, z) over a simplex, z given at all vertices."""
    n = simplex.shape[0]
    values, sums = work[:n], work[n:]  # positive values from the left, negative from the right
    a, b = 0, 0
    for v in simplex:
        if z[v] >= 0.0:
            values[a] = z[v]
            sums[a] = z[v] / n + (sums[a - 1] if a > 0 else 0.0)
            a += 1
        else:
            b += 1
            values[n - b] = z[v]
    if a == 0:
        return 0.0
    for k in range(b):
        low = values[n - 1 - k]
        before = 0.0
        for i in range(a):
            share = values[i] / (values[i] - low)
            before = share * sums[i] + (1.0 - share) * before
            sums[i] = before
    return sums[a - 1]
