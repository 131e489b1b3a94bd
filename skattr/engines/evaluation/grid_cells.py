"""The cells of tensor grids: nodes and weights of measures, for models that are evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr.engines.evaluation.backends import Device, Host, backend_of
from skattr.engines.evaluation.blocks import blocks
from skattr.kernels.grids import numba_grids as grids
from skattr.measures.factors.points import ProductPoints
from skattr.measures.written import as_point


class Weighted(NamedTuple):
    """Some cells: their nodes as the model takes them, and their weights, not 0."""

    points: Any
    weights: Any


Backend = Host | Device
Cells = Iterator[Weighted]
Columns = tuple[int, ...]


def add_up(cells: Cells, f: Any, varies: bool = False) -> np.ndarray:
    """Return Σ weight · f over cells, (k,), followed by Σ weight if masses vary."""
    backend = backend_of(f)
    total = np.zeros(len(f.names) + 1)
    for points, weights in cells:
        total += backend.sums(f, points, weights)[0]
    return total if varies else total[:-1]


def grid_of(measure: Any) -> TensorGrid:
    """Return the grids of a fitted measure, by the view that it has."""
    if "factors" in measure.views:
        return ProductGrid(ProductPoints.of(measure))
    if "density" in measure.views:
        return DensityGrid(measure)
    return FactorGrid(measure) if measure.product else IncrementGrid(measure)


class TensorGrid(ABC):
    """A measure as nodes with weights, the cells of a grid that can be made finer.

    Attributes
    ----------
    by_row : bool
        Whether the number of cells differs between rows.
    has_mean : bool
        Whether the grid with no column pinned gives the mean of f.
    """

    by_row = False
    has_mean = False

    @abstractmethod
    def free_columns(self) -> int:
        """Return the number of columns that a value of a single column is integrated over."""

    @abstractmethod
    def is_finite(self, columns: Columns) -> bool:
        """Return whether the columns that are not pinned have finitely many values."""

    @abstractmethod
    def n_cells(self, points: int, columns: Columns, x: Any = None) -> int:
        """Return the number of cells with some columns pinned, at the row x if `by_row`."""

    @abstractmethod
    def cells(self, backend: Backend, x: Any, columns: Columns, points: int, rule: str) -> Cells:
        """Yield the cells that have weight, in blocks.

        Parameters
        ----------
        backend : Host or Device
        x : table of one row
            The explained row.
        columns : tuple of int
            The columns that are pinned to it.
        points : int
            The number of points per side.
        rule : {"left", "midpoint", "gauss"}
            Where the nodes are.
        """

    def pinned_in_largest(self, points: int) -> tuple[int, ...]:
        """Return the columns whose values have the largest grid, () if none are pinned."""
        return ()

    @abstractmethod
    def merge(self, other: Any) -> TensorGrid:
        """Return the grids of two batches of the background."""


class ProductGrid(TensorGrid):
    """The nodes of a product of laws; the columns of an attribution are pinned to x."""

    has_mean = True

    def __init__(self, product: ProductPoints) -> None:
        self.product = product

    @override
    def free_columns(self) -> int:
        return max(len(self.product.free(())) - self.product.pinned, 0)

    @override
    def is_finite(self, columns: Columns) -> bool:
        laws = self.product.laws
        return all(laws[k].n_atoms is not None for k in self.product.free(columns))

    @override
    def n_cells(self, points: int, columns: Columns, x: Any = None) -> int:
        laws = self.product.laws
        return prod(laws[k].n_atoms or points for k in self.product.free(columns))

    @override
    def pinned_in_largest(self, points: int) -> tuple[int, ...]:
        if not self.product.pinned:
            return ()
        return (int(np.argmin([law.n_atoms or points for law in self.product.laws])),)

    @override
    def cells(self, backend: Backend, x: Any, columns: Columns, points: int, rule: str) -> Cells:
        axes = [
            (frames.column(x, k), np.ones(1)) if k in columns else law.nodes(points, rule)
            for k, law in enumerate(self.product.laws)
        ]
        nodes, shares = [values for values, _ in axes], [weights for _, weights in axes]
        combine = backend.combiner(self.product, nodes, x, columns)
        weights = grids.as_lists(shares)
        for start, n in blocks(shares):
            yield Weighted(combine(start, n), backend.products(start, weights, n))

    @override
    def merge(self, other: ProductGrid) -> ProductGrid:
        return ProductGrid(self.product.merge(other.product))


class BoxGrid(TensorGrid):
    """The cells of a box on which a measure lives; `measure` has what `views.OnBox` has."""

    def __init__(self, measure: Any) -> None:
        self.measure = measure

    @override
    def free_columns(self) -> int:
        sides = self.measure.sides_
        return int((sides[:, 0] < sides[:, 1]).sum())

    @override
    def is_finite(self, columns: Columns) -> bool:
        return self.free_columns() == 0

    @override
    def n_cells(self, points: int, columns: Columns, x: Any = None) -> int:
        return points ** self.free_columns()

    @override
    def merge(self, other: BoxGrid) -> BoxGrid:
        return type(self)(self.measure.merge(other.measure))


class DensityGrid(BoxGrid):
    """The nodes of a rule, with the density times the rule's weights."""

    @override
    def cells(self, backend: Backend, x: Any, columns: Columns, points: int, rule: str) -> Cells:
        row, (nodes, shares) = as_point(x), self.measure.axes(points, rule)
        where, weights = grids.as_lists(nodes), grids.as_lists(shares)
        for start, n in blocks(nodes):
            y = backend.points(start, where, n)
            weight = backend.products(start, weights, n) * self.measure.at(y, row, columns)
            yield from _nonzero_cells(backend, self.measure, y, weight)


class IncrementGrid(BoxGrid):
    """The cells of an integrand: its values at vertices, differenced axis by axis."""

    @override
    def cells(self, backend: Backend, x: Any, columns: Columns, points: int, rule: str) -> Cells:
        row = as_point(x)
        vertices = self.measure.vertices(points, row, columns)
        nodes = [_nodes(ends, rule) for ends in vertices]
        integrand = partial(self.measure.at, x=row, columns=columns)
        for y, weights in backend.increments(integrand, vertices, nodes):
            yield Weighted(backend.rows(self.measure, y), weights)


class FactorGrid(BoxGrid):
    """The cells of a product of integrands of one column each; a factor may be 0 on a part."""

    by_row = True

    @override
    def n_cells(self, points: int, columns: Columns, x: Any = None) -> int:
        _, weights = factor_axes(self.measure, as_point(x), columns, points, "left")
        return prod(len(weight) for weight in weights)

    @override
    def cells(self, backend: Backend, x: Any, columns: Columns, points: int, rule: str) -> Cells:
        nodes, shares = factor_axes(self.measure, as_point(x), columns, points, rule)
        where, weights = grids.as_lists(nodes), grids.as_lists(shares)
        for start, n in blocks(nodes):
            y = backend.points(start, where, n)
            yield from _nonzero_cells(backend, self.measure, y, backend.products(start, weights, n))


def factor_axes(
    source: Any, x: np.ndarray, columns: Columns, points: int, rule: str
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


def _nonzero_cells(backend: Backend, source: Any, y: Any, weight: Any) -> Cells:
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
