"""The regions of a box in which a ReLU network is affine, enumerated one by one.

The box is cut by all layers, depth first, so that there is never a list of all regions
(docs/mathematics.md, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skattr.kernels.cells import polytopes, simplices

if TYPE_CHECKING:
    from skattr.pieces.relu import ReluNetwork


class Region(NamedTuple):
    """A polytope on which f(x) = a · x + b, x the raw columns."""

    a: np.ndarray  # (k, d)
    b: np.ndarray  # (k,)
    vertices: np.ndarray  # (n_vertices, d), in any order
    volume: float  # in the dimensions in which the box has a width


def regions_of(network: ReluNetwork, domain: Any) -> Iterator[Region]:
    """Yield the regions of positive volume; `domain` is (d, 2) or {column: (low, high)}."""
    if not network.is_plain:
        used = set(network.columns.tolist())
        rest = [n for k, n in enumerate(network.names) if k in used and k not in network.lines]
        raise ValueError(
            "regions need every column to enter the network by one affine function, got others "
            f"in {rest or network.names}"
        )
    low, high = _sides(domain, network.names)
    return _regions(network, low, high)


def _sides(domain: Any, names: list) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(domain, dict):
        wrong = [name for name in [*names, *domain] if (name in names) != (name in domain)]
        if wrong:
            raise ValueError(f"domain must name all columns and no others, see {wrong[0]!r}")
        domain = [domain[name] for name in names]
    sides = np.asarray(domain, np.float64)
    if sides.shape != (len(names), 2) or not np.isfinite(sides).all():
        raise ValueError(f"domain must hold finite numbers (low, high) of {len(names)} columns")
    if (sides[:, 0] > sides[:, 1]).any():
        raise ValueError("domain must have low <= high in each column")
    return sides[:, 0], sides[:, 1]


def _regions(network: ReluNetwork, low: np.ndarray, high: np.ndarray) -> Iterator[Region]:
    center, half = low / 2 + high / 2, high / 2 - low / 2
    wide = np.flatnonzero(half)
    size = float(np.prod(2 * half[wide]))
    for slopes, corners, share in _cells(network, center - network.origin, half, wide):
        vertices = np.tile(center, (len(corners), 1))
        vertices[:, wide] += half[wide] * corners
        vertices = np.unique(np.clip(vertices, low, high), axis=0)
        a, b = slopes[:, :-1], slopes[:, -1] - slopes[:, :-1] @ network.origin
        yield Region(a, b, vertices, share * size)


def _cells(
    network: ReluNetwork, center: np.ndarray, half: np.ndarray, wide: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Yield affine maps (k, d + 1), corners in [-1, 1]^dim and shares of the volume."""
    layers, dim = network.layers, len(wide)
    if not layers or dim == 0:
        A, b = network.local(center[None])
        corners = np.array(list(product((-1.0, 1.0), repeat=dim))).reshape(2**dim, dim)
        yield np.column_stack([A[0], b[0]]), corners, 1.0
        return
    joined = polytopes.join_layers(layers)
    first = layers[0]
    map_ = np.column_stack([first.weight[:, wide] * half[wide], first.weight @ center + first.bias])
    stack = polytopes.new_stack(joined, map_)
    while True:
        status = polytopes.find_cell(joined, stack, len(layers))
        if status == polytopes.END:
            return
        if status == polytopes.FULL:
            stack = polytopes.grown(stack)
            continue
        start, n = stack.cells[stack.top[0], :2]
        corners, work = stack.point[start : start + n], simplices.new_work(stack)
        simplices.triangulate(stack.point, stack.graph, start, n, work)
        moment = work.moment
        if moment[dim] > 0:
            mean = center.copy()
            mean[wide] += half[wide] * (moment[:dim] / moment[dim])
            A, b = network.local(mean[None])  # the centroid is in this region only
            yield np.column_stack([A[0], b[0]]), corners, float(moment[dim])
