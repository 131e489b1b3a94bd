"""Where points are built, evaluated and added up: on the host, or on the device of a torch module.

Both do the same with their own kernels. On the host points are tables as the estimator takes them;
on a device they are tensors, and only sums come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from skattr import frames, modules
from skattr.engines.evaluation.blocks import ROW_BLOCK, block_shape, parts
from skattr.kernels.grids import numba_grids as grids
from skattr.kernels.grids import torch_grids
from skattr.measures.factors.points import ProductPoints

CHUNK = 2**14  # vertices at which g is asked together: they stay in a core's cache


def place_of(output: Any) -> Host | Device:
    """Return where a model is evaluated."""
    return Device(output.estimator) if modules.is_module(output.estimator) else Host()


class Host:
    """numba and numpy."""

    def points(self, start: int, lists: grids.Lists, n: int) -> np.ndarray:
        """Return points (n, d) of the product of d lists, from number `start` on."""
        out = np.empty((n, len(lists.sizes)))
        grids.fill_points(start, lists, out)
        return out

    def products(self, start: int, lists: grids.Lists, n: int) -> np.ndarray:
        """Return the products of their entries, (n,)."""
        out = np.empty(n)
        grids.fill_products(start, lists, out)
        return out

    def increments(self, g: Callable, vertices: list, nodes: list) -> Iterator[tuple]:
        """Yield the nodes (n, d) and increments (n,) of cells where g has any."""
        room = min(ROW_BLOCK, prod(len(one) for one in nodes))
        y, weights, filled = np.empty((room, len(nodes))), np.empty(room), 0
        for block, found in _increments(g, vertices):
            at = [one[a : max(b, a + 1)] for one, (a, b) in zip(nodes, block, strict=True)]
            lists, start = grids.as_lists(at), 0
            while start < len(found):
                start, filled = grids.fill_weighted(start, lists, found, filled, y, weights)
                if filled == room:
                    yield y, weights
                    y, weights, filled = np.empty_like(y), np.empty_like(weights), 0
        if filled:
            yield y[:filled], weights[:filled]

    def uniforms(self, u: np.ndarray) -> np.ndarray:
        """Return uniform numbers as they are used here."""
        return u

    def transport(self, source: ProductPoints, u: np.ndarray) -> Any:
        """Return points of a product of laws, nothing pinned."""
        return source.transport(u)

    def pin(self, points: Any, x: Any, columns: tuple[int, ...]) -> Any:
        """Return points with some columns set to those of x, one row."""
        return frames.pin(points, x, columns) if columns else points

    def combiner(
        self, source: ProductPoints, nodes: list, x: Any, columns: tuple[int, ...]
    ) -> Callable[[int, int], Any]:
        """Return the function (start, n) → combinations of nodes, one list a column."""
        kinds = [getattr(values, "dtype", None) for values in (source.row.X, *nodes)]
        if all(kind == np.float64 for kind in kinds):  # nothing has a type of its own to keep
            numbers = grids.as_lists([np.asarray(values) for values in nodes])
            return lambda start, n: self.points(start, numbers, n)
        places = grids.as_lists([np.arange(len(values)) for values in nodes])
        free = [None if k in columns else values for k, values in enumerate(nodes)]

        def combine(start: int, n: int) -> Any:
            at = self.points(start, places, n).astype(np.intp)
            return self.pin(source.table(free, at), x, columns)

        return combine

    def rows(self, source: Any, y: np.ndarray) -> Any:
        """Return numbers (n, d) as the model takes them."""
        return source.points(y)

    def table(self, points: Any) -> Any:
        """Return a table of points as the model takes it."""
        return points

    def sums(self, f: Any, points: Any, weights: Any, replicates: int = 1) -> np.ndarray:
        """Return the sums of f over the points of each replicate, (R, k), and of the weights."""
        starts = range(0, len(points), ROW_BLOCK)
        blocks = [f(frames.take_rows(points, slice(i, i + ROW_BLOCK))) for i in starts]
        values = np.concatenate(blocks)
        if weights is None:
            return values.reshape(replicates, -1, values.shape[1]).sum(axis=1)
        columns = [*(weights * column for column in values.T), weights]  # no larger array
        return np.stack([one.reshape(replicates, -1).sum(axis=1) for one in columns], axis=1)


def _increments(g: Callable, vertices: list) -> Iterator[tuple[list, np.ndarray]]:
    """Yield blocks of cells, a range for each axis, and the increments of g over them.

    Blocks follow each other along the first axis, and hand on the values on the face between them.
    """
    first, *others = block_shape([len(one) for one in vertices])
    for ranges in product(*(parts(axis) for axis in others)):
        rest = [one[a : b + 1] for one, (a, b) in zip(vertices[1:], ranges, strict=True)]
        layer = prod(len(ends) for ends in rest)
        values = np.empty(layer * (first[1] + 1))
        spare = np.empty_like(values)
        face = np.empty(0)
        for a, b in parts(first):
            ends = vertices[0][a + (len(face) > 0) : b + 1]
            known, n = len(face), len(face) + layer * len(ends)
            values[:known] = face
            _fill_values(g, grids.as_lists([ends, *rest]), values[known:n])
            face = values[n - layer : n].copy()
            sizes = np.array([n // layer, *(len(one) for one in rest)])
            yield [(a, b), *ranges], grids.difference(values[:n], spare[:n], sizes)


def _fill_values(g: Callable, lists: grids.Lists, out: np.ndarray) -> None:
    """Fill g at the points of a product of lists; the columns of its y are contiguous."""
    y = np.empty((len(lists.sizes), min(CHUNK, len(out))))
    for start in range(0, len(out), CHUNK):
        part = out[start : start + CHUNK]
        grids.fill_columns(start, lists, y[:, : len(part)])
        part[:] = g(y[:, : len(part)].T)


class Device:
    """torch, where the module is."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.device = modules.place(module)[0]

    @property
    def torch(self) -> Any:
        """The library: an attribute would not pickle."""
        import torch

        return torch

    def points(self, start: int, lists: grids.Lists, n: int) -> Any:
        """Return points (n, d) of the product of d lists, from number `start` on."""
        return torch_grids.points(self.torch, start, lists, n, self.device)

    def products(self, start: int, lists: grids.Lists, n: int) -> Any:
        """Return the products of their entries, (n,)."""
        return torch_grids.products(self.torch, start, lists, n, self.device)

    def increments(self, g: Callable, vertices: list, nodes: list) -> Iterator[tuple]:
        """Yield the nodes (n, d) and increments (n,) of cells where g has any."""
        for ranges in product(*(parts(axis) for axis in block_shape([len(v) for v in vertices]))):
            ends = [one[a : b + 1] for one, (a, b) in zip(vertices, ranges, strict=True)]
            at = [one[a : max(b, a + 1)] for one, (a, b) in zip(nodes, ranges, strict=True)]
            lists = grids.as_lists(ends)
            values = g(self.points(0, lists, int(np.prod(lists.sizes))))
            weights = torch_grids.difference(values, lists.sizes)
            counts = weights != 0
            if counts.any():
                y = self.points(0, grids.as_lists(at), len(weights))
                yield y[counts], weights[counts]

    def uniforms(self, u: np.ndarray) -> Any:
        """Return uniform numbers as they are used here."""
        return self.torch.tensor(u, device=self.device)

    def transport(self, source: ProductPoints, u: Any) -> Any:
        """Return points of a product of laws, nothing pinned."""
        columns = []
        for k, law in enumerate(source.laws):
            if law.n_atoms is None:
                columns.append(law.quantile(u[:, k]))
            else:
                values, weights = law.nodes(1, "gauss")
                numbers = frames.to_float(values)
                columns.append(torch_grids.choose(self.torch, u[:, k], weights, numbers))
        return self.torch.stack(columns, dim=1)

    def pin(self, points: Any, x: Any, columns: tuple[int, ...]) -> Any:
        """Return points with some columns set to those of x, one row."""
        points = points.clone()
        for k in columns:
            points[:, k] = float(frames.to_float(frames.column(x, k))[0])
        return points

    def combiner(
        self, source: ProductPoints, nodes: list, x: Any, columns: tuple[int, ...]
    ) -> Callable[[int, int], Any]:
        """Return the function (start, n) → combinations of nodes, one list a column."""
        numbers = grids.as_lists([frames.to_float(values) for values in nodes])
        return lambda start, n: self.points(start, numbers, n)

    def rows(self, source: Any, y: Any) -> Any:
        """Return numbers (n, d) as the module takes them."""
        return y

    def table(self, points: Any) -> Any:
        """Return a table of points as the module takes it."""
        if isinstance(points, self.torch.Tensor):
            return points
        return self.torch.as_tensor(modules.as_numbers(points), device=self.device)

    def sums(self, f: Any, points: Any, weights: Any, replicates: int = 1) -> np.ndarray:
        """Return the sums of f over the points of each replicate, (R, k), and of the weights."""
        values = modules.evaluate(self.module, points)
        if bool(values.isnan().any()):
            raise ValueError(f"{type(self.module).__name__} returned NaN")
        if weights is not None:
            weights = self.torch.as_tensor(weights, device=self.device)
            values = self.torch.cat([values, self.torch.ones_like(values[:, :1])], dim=1)
        return torch_grids.sums(values, weights, replicates).cpu().numpy()
