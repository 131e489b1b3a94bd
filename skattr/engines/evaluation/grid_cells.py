"""The cells of tensor grids: nodes and weights of measures, for models that are evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from skattr._inputs import frames
from skattr.engines.evaluation.backends import Device, Host, backend_of
from skattr.engines.evaluation.blocks import blocks
from skattr.kernels.grids import numba_grids as grids
from skattr.measures.factors.points import ProductPoints
from skattr.measures.written import as_point


class Weighted(NamedTuple):
    """Some cells: their nodes as the model takes them, and their weights, not 0."""

    points: Any
    weights: Any


def add_up(cells: Iterator[Weighted], f: Any, varies: bool = False) -> np.ndarray:
    """Return Σ weight · f over cells, (k,), followed by Σ weight if masses vary."""
    backend = backend_of(f)
    total = np.zeros(len(f.names) + 1)
    for points, weights in cells:
        total += backend.sums(f, points, weights)[0]
    return total if varies else total[:-1]


def free_columns(source: Any) -> int:
    """Return the number of columns that a value of a single column is integrated over."""
    if isinstance(source, ProductPoints):
        return max(len(source.free(())) - source.pinned, 0)
    return int((source.sides_[:, 0] < source.sides_[:, 1]).sum())


def is_finite(source: Any, columns: tuple[int, ...]) -> bool:
    """Return whether the columns that are not pinned have finitely many values."""
    if not isinstance(source, ProductPoints):
        return not (source.sides_[:, 0] < source.sides_[:, 1]).any()
    return all(source.laws[k].n_atoms is not None for k in source.free(columns))


def depends_on_row(source: Any) -> bool:
    """Return whether the number of cells differs between rows, as that of a product does."""
    return getattr(source, "product", False)


def n_cells(source: Any, points: int, columns: tuple[int, ...], x: Any = None) -> int:
    """Return the number of cells with some columns pinned, at the row x if it matters."""
    if isinstance(source, ProductPoints):
        return prod(source.laws[k].n_atoms or points for k in source.free(columns))
    if depends_on_row(source):
        _, weights = factor_axes(source, as_point(x), columns, points, "left")
        return prod(len(weight) for weight in weights)
    return points ** free_columns(source)


def cells(
    backend: Host | Device, source: Any, x: Any, columns: tuple[int, ...], points: int, rule: str
) -> Iterator[Weighted]:
    """Yield the cells of a grid that have weight, in blocks."""
    if isinstance(source, ProductPoints):
        return _product_cells(backend, source, x, columns, points, rule)
    point = as_point(x)
    if "density" in source.views:
        return _density_cells(backend, source, point, columns, *source.axes(points, rule))
    if source.product:
        axes = factor_axes(source, point, columns, points, rule)
        return _factor_cells(backend, source, *axes)
    return _increment_cells(backend, source, point, columns, points, rule)


def _product_cells(
    backend: Host | Device, source: ProductPoints, x: Any, columns: tuple[int, ...], points: int,
    rule: str,
) -> Iterator[Weighted]:  # fmt: skip
    """Yield the nodes of a product of laws, with some columns pinned to x."""
    axes = [
        (frames.column(x, k), np.ones(1)) if k in columns else law.nodes(points, rule)
        for k, law in enumerate(source.laws)
    ]
    nodes, shares = [values for values, _ in axes], [weights for _, weights in axes]
    combine = backend.combiner(source, nodes, x, columns)
    weights = grids.as_lists(shares)
    for start, n in blocks(shares):
        yield Weighted(combine(start, n), backend.products(start, weights, n))


def _density_cells(
    backend: Host | Device, source: Any, x: np.ndarray, columns: tuple[int, ...], nodes: list,
    shares: list,
) -> Iterator[Weighted]:  # fmt: skip
    """Yield the nodes of a rule, with the density times the rule's weights."""
    where, weights = grids.as_lists(nodes), grids.as_lists(shares)
    for start, n in blocks(nodes):
        y = backend.points(start, where, n)
        weight = backend.products(start, weights, n) * source.at(y, x, columns)
        yield from _nonzero_cells(backend, source, y, weight)


def _factor_cells(
    backend: Host | Device, source: Any, nodes: list, shares: list
) -> Iterator[Weighted]:
    """Yield the cells of a product of integrands of one column each."""
    where, weights = grids.as_lists(nodes), grids.as_lists(shares)
    for start, n in blocks(nodes):
        y = backend.points(start, where, n)
        yield from _nonzero_cells(backend, source, y, backend.products(start, weights, n))


def factor_axes(
    source: Any, x: np.ndarray, columns: tuple[int, ...], points: int, rule: str
) -> tuple[list, list]:
    """Return the nodes and the nonzero increments of each factor."""
    vertices = source.vertices(points, x, columns)
    longest = max(len(ends) for ends in vertices)
    y = np.column_stack([np.r_[ends, np.full(longest - len(ends), ends[-1])] for ends in vertices])
    g = source.at(y, x, columns)
    nodes, weights = [], []
    for k, ends in enumerate(vertices):
        weight = np.diff(g[: len(ends), k]) if len(ends) > 1 else g[:1, k]
        nonzero = weight != 0
        nodes.append(_nodes(ends, rule)[nonzero])
        weights.append(weight[nonzero])
    return nodes, weights


def _increment_cells(
    backend: Host | Device, source: Any, x: np.ndarray, columns: tuple[int, ...], points: int,
    rule: str,
) -> Iterator[Weighted]:  # fmt: skip
    """Yield the cells of an integrand: its values at vertices, differenced axis by axis."""
    vertices = source.vertices(points, x, columns)
    nodes = [_nodes(ends, rule) for ends in vertices]
    for y, weights in backend.increments(partial(source.at, x=x, columns=columns), vertices, nodes):
        yield Weighted(backend.rows(source, y), weights)


def _nonzero_cells(backend: Host | Device, source: Any, y: Any, weight: Any) -> Iterator[Weighted]:
    """Yield the cells whose weight is not 0, if there are any."""
    nonzero = weight != 0
    if not nonzero.all():
        y, weight = y[nonzero], weight[nonzero]
    if len(weight):
        yield Weighted(backend.rows(source, y), weight)


def _nodes(ends: np.ndarray, rule: str) -> np.ndarray:
    """Return the nodes of the cells between some ends.

    A cell between two neighbouring floats, where g jumps, has the upper one as its node or, at the
    lower face of the domain, the lower one.
    """
    if len(ends) == 1:
        return ends
    low, high = ends[:-1], ends[1:]
    nodes = low.copy() if rule == "left" else low / 2 + high / 2
    narrow = np.nextafter(low, np.inf) >= high
    nodes[narrow] = high[narrow]
    if narrow[0]:
        nodes[0] = low[0]
    return nodes
