"""The cells of tensor grids: nodes and weights of measures on models that are only evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from skattr import frames
from skattr.engines.evaluation.backends import Device, Host, place_of
from skattr.engines.evaluation.blocks import blocks
from skattr.kernels.grids import numba_grids as grids
from skattr.measures.factors.points import ProductPoints
from skattr.measures.written import as_point


class Weighted(NamedTuple):
    """Some cells: their nodes as the model takes them, and weights that are not 0."""

    points: Any
    weights: Any


def add_up(cells: Iterator[Weighted], f: Any, varies: bool = False) -> np.ndarray:
    """Return Σ weight · f over cells, (k,), and Σ weight behind it where masses vary."""
    place = place_of(f)
    total = np.zeros(len(f.names) + 1)
    for points, weights in cells:
        total += place.sums(f, points, weights)[0]
    return total if varies else total[:-1]


def free_columns(source: Any) -> int:
    """Return how many columns a value is integrated over, if one is pinned where any is."""
    if isinstance(source, ProductPoints):
        return max(len(source.free(())) - source.pinned, 0)
    return int((source.sides_[:, 0] < source.sides_[:, 1]).sum())


def is_finite(source: Any, columns: tuple[int, ...]) -> bool:
    """Tell whether all columns but some have finitely many values."""
    if not isinstance(source, ProductPoints):
        return not (source.sides_[:, 0] < source.sides_[:, 1]).any()
    return all(source.laws[k].n_atoms is not None for k in source.free(columns))


def depends_on_row(source: Any) -> bool:
    """Tell whether the number of cells is another for each row: where factors have weight."""
    return getattr(source, "product", False)


def n_cells(source: Any, points: int, columns: tuple[int, ...], x: Any = None) -> int:
    """Return the number of cells where some columns are pinned, for the row x if it counts."""
    if isinstance(source, ProductPoints):
        return prod(source.laws[k].n_atoms or points for k in source.free(columns))
    if depends_on_row(source):
        _, weights = factor_axes(source, as_point(x), columns, points, "left")
        return prod(len(weight) for weight in weights)
    return points ** free_columns(source)


def cells(
    place: Host | Device, source: Any, x: Any, columns: tuple[int, ...], points: int, rule: str
) -> Iterator[Weighted]:
    """Yield the cells of a grid that have weight, in blocks."""
    if isinstance(source, ProductPoints):
        return _product_cells(place, source, x, columns, points, rule)
    point = as_point(x)
    if "density" in source.views:
        return _density_cells(place, source, point, columns, *source.axes(points, rule))
    if source.product:
        axes = factor_axes(source, point, columns, points, rule)
        return _factor_cells(place, source, *axes)
    return _increment_cells(place, source, point, columns, points, rule)


def _product_cells(
    place: Host | Device, source: ProductPoints, x: Any, columns: tuple[int, ...], points: int,
    rule: str,
) -> Iterator[Weighted]:  # fmt: skip
    """Yield the nodes of a product of laws, own columns at x."""
    axes = [
        (frames.column(x, k), np.ones(1)) if k in columns else law.nodes(points, rule)
        for k, law in enumerate(source.laws)
    ]
    nodes, shares = [values for values, _ in axes], [weights for _, weights in axes]
    combine = place.combiner(source, nodes, x, columns)
    weights = grids.as_lists(shares)
    for start, n in blocks(shares):
        yield Weighted(combine(start, n), place.products(start, weights, n))


def _density_cells(
    place: Host | Device, source: Any, x: np.ndarray, columns: tuple[int, ...], nodes: list,
    shares: list,
) -> Iterator[Weighted]:  # fmt: skip
    """Yield the nodes of a rule, with the density times the rule's weights."""
    where, weights = grids.as_lists(nodes), grids.as_lists(shares)
    for start, n in blocks(nodes):
        y = place.points(start, where, n)
        weight = place.products(start, weights, n) * source.at(y, x, columns)
        yield from _that_weigh(place, source, y, weight)


def _factor_cells(
    place: Host | Device, source: Any, nodes: list, shares: list
) -> Iterator[Weighted]:
    """Yield the cells of a product of integrands of one column each."""
    where, weights = grids.as_lists(nodes), grids.as_lists(shares)
    for start, n in blocks(nodes):
        y = place.points(start, where, n)
        yield from _that_weigh(place, source, y, place.products(start, weights, n))


def factor_axes(
    source: Any, x: np.ndarray, columns: tuple[int, ...], points: int, rule: str
) -> tuple[list, list]:
    """Return the nodes and increments of each factor, where it has any."""
    vertices = source.vertices(points, x, columns)
    longest = max(len(ends) for ends in vertices)
    y = np.column_stack([np.r_[ends, np.full(longest - len(ends), ends[-1])] for ends in vertices])
    g = source.at(y, x, columns)
    nodes, weights = [], []
    for k, ends in enumerate(vertices):
        weight = np.diff(g[: len(ends), k]) if len(ends) > 1 else g[:1, k]
        counts = weight != 0
        nodes.append(_nodes(ends, rule)[counts])
        weights.append(weight[counts])
    return nodes, weights


def _increment_cells(
    place: Host | Device, source: Any, x: np.ndarray, columns: tuple[int, ...], points: int,
    rule: str,
) -> Iterator[Weighted]:  # fmt: skip
    """Yield the cells of an integrand: its values at vertices, differenced axis by axis."""
    vertices = source.vertices(points, x, columns)
    nodes = [_nodes(ends, rule) for ends in vertices]
    for y, weights in place.increments(partial(source.at, x=x, columns=columns), vertices, nodes):
        yield Weighted(place.rows(source, y), weights)


def _that_weigh(place: Host | Device, source: Any, y: Any, weight: Any) -> Iterator[Weighted]:
    """Yield the cells whose weight is not 0, if there are any."""
    counts = weight != 0
    if not counts.all():
        y, weight = y[counts], weight[counts]
    if len(weight):
        yield Weighted(place.rows(source, y), weight)


def _nodes(ends: np.ndarray, rule: str) -> np.ndarray:
    """Return where f is evaluated on the cells between some ends.

    A cell between neighbouring numbers holds one of them, where g jumps: the upper one or, at the
    lower face, the lower one.
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
