"""The cells of tensor grids: nodes and weights of measures on models that are only evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from skattr import frames
from skattr.kernels import grids
from skattr.measures.points import ProductPoints
from skattr.measures.written import as_point

BLOCK = 2**18  # vertices or cells that are looked at together
ROW_BLOCK = 65_536  # points in one call of the model


class Weighted(NamedTuple):
    """Some cells: their nodes, a table, and weights that are not 0."""

    points: Any
    weights: np.ndarray


def add_up(cells: Iterator[Weighted], f: Any, varies: bool = False) -> np.ndarray:
    """Return Σ weight · f over cells, (k,), and Σ weight behind it where masses vary."""
    total = np.zeros(len(f.names) + varies)
    for points, every in cells:
        for start in range(0, len(every), ROW_BLOCK):
            weights = every[start : start + ROW_BLOCK]
            values = f(frames.take_rows(points, slice(start, start + ROW_BLOCK)))
            if varies:
                values = np.column_stack([values, np.ones(len(values))])
            total += (weights[:, None] * values).sum(axis=0)
    return total


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


def n_cells(source: Any, points: int, columns: tuple[int, ...]) -> int:
    """Return the number of cells where some columns are pinned."""
    if not isinstance(source, ProductPoints):
        return points ** free_columns(source)
    return prod(source.laws[k].n_atoms or points for k in source.free(columns))


def cells(
    source: Any, x: Any, columns: tuple[int, ...], points: int, rule: str
) -> Iterator[Weighted]:
    """Yield the cells of a grid that have weight, in blocks."""
    if isinstance(source, ProductPoints):
        return _product_cells(source, x, columns, points, rule)
    if "density" in source.views:
        return _density_cells(source, x, columns, points, rule)
    if source.product:
        return _factor_cells(source, x, columns, points, rule)
    return _increment_cells(source, x, columns, points, rule)


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n, BLOCK):
        yield start, min(BLOCK, n - start)


def _product_cells(
    source: ProductPoints, x: Any, columns: tuple[int, ...], points: int, rule: str
) -> Iterator[Weighted]:
    """Yield the nodes of a product of laws, own columns at x."""
    free = source.free(columns)
    axes = {k: source.laws[k].nodes(points, rule) for k in range(len(source.laws))}
    sizes = [len(axes[k][1]) for k in free]
    fixed = [k for k in axes if k not in free]
    weights = grids.as_lists([np.ones(1), *(axes[k][1] for k in free)])
    rows = grids.as_lists([np.zeros(1), *(np.arange(size) for size in sizes)])
    for start, n in _blocks(prod(sizes)):
        weight, at = np.empty(n), np.empty((n, 1 + len(free)))
        grids.fill_products(start, weights, weight)
        grids.fill_points(start, rows, at)
        values = {
            k: frames.take_values(axes[k][0], at[:, 1 + i].astype(np.intp))
            for i, k in enumerate(free)
        }
        values |= {k: frames.take_values(axes[k][0], np.zeros(n, np.intp)) for k in fixed}
        table = frames.with_columns(source.row.X, values)
        yield Weighted(frames.pin(table, x, columns) if columns else table, weight)


def _density_cells(
    source: Any, x: Any, columns: tuple[int, ...], points: int, rule: str
) -> Iterator[Weighted]:
    """Yield the nodes of a rule, with the density times the rule's weights."""
    nodes, weights = source.axes(points, rule)
    where, shares = grids.as_lists(nodes), grids.as_lists(weights)
    for start, n in _blocks(prod(len(one) for one in nodes)):
        y, weight = np.empty((n, len(nodes))), np.empty(n)
        grids.fill_points(start, where, y)
        grids.fill_products(start, shares, weight)
        weight *= source.at(y, x, columns)
        yield from _that_weigh(source, y, weight)


def _factor_cells(
    source: Any, x: Any, columns: tuple[int, ...], points: int, rule: str
) -> Iterator[Weighted]:
    """Yield the cells of a product of integrands of one column each."""
    nodes, weights = factor_axes(source, as_point(x), columns, points, rule)
    where, shares = grids.as_lists(nodes), grids.as_lists(weights)
    for start, n in _blocks(prod(len(one) for one in nodes)):
        y, weight = np.empty((n, len(nodes))), np.empty(n)
        grids.fill_points(start, where, y)
        grids.fill_products(start, shares, weight)
        yield from _that_weigh(source, y, weight)


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
    source: Any, x: Any, columns: tuple[int, ...], points: int, rule: str
) -> Iterator[Weighted]:
    """Yield the cells of an integrand: its values at vertices, differenced axis by axis."""
    point = as_point(x)
    vertices = source.vertices(points, point, columns)
    nodes = [_nodes(ends, rule) for ends in vertices]
    for parts in product(*(_parts(n) for n in _block_shape([len(one) for one in vertices]))):
        ends = [one[a : b + 1] for one, (a, b) in zip(vertices, parts, strict=True)]
        lists = grids.as_lists(ends)
        y = np.empty((int(np.prod(lists.sizes)), len(ends)))
        grids.fill_points(0, lists, y)
        g = np.array(source.at(y, point, columns))
        weight = g[: grids.difference(g, lists.sizes)]
        at = [one[a : max(b, a + 1)] for one, (a, b) in zip(nodes, parts, strict=True)]
        y = np.empty((len(weight), len(ends)))
        grids.fill_points(0, grids.as_lists(at), y)
        yield from _that_weigh(source, y, weight)


def _that_weigh(source: Any, y: np.ndarray, weight: np.ndarray) -> Iterator[Weighted]:
    """Yield the cells whose weight is not 0, if there are any."""
    counts = weight != 0
    if not counts.all():
        y, weight = y[counts], weight[counts]
    if len(weight):
        yield Weighted(source.points(y), weight)


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


def _block_shape(sizes: list[int]) -> list[tuple[int, int]]:
    """Return for each axis its number of cells, and how many go into one block."""
    shape = [max(size - 1, 1) for size in sizes]
    while prod(min(n + 1, size) for n, size in zip(shape, sizes, strict=True)) > BLOCK:
        k = int(np.argmax(shape))
        shape[k] = (shape[k] + 1) // 2
    return [(size - 1, n) for size, n in zip(sizes, shape, strict=True)]


def _parts(axis: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the ranges of cells of the blocks along an axis; an axis of one vertex is a range."""
    n_cells, step = axis
    if n_cells == 0:
        return [(0, 0)]
    return [(a, min(a + step, n_cells)) for a in range(0, n_cells, step)]
