"""Backends that build points, evaluate models at them and add up: the host, or a torch device.

Both have the same methods. On the host points are tables as the estimator takes them; on a device
they are tensors, and only sums are copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from skattr._inputs import frames, modules
from skattr.engines.evaluation.blocks import ROW_BLOCK, block_shape, parts
from skattr.kernels.grids import numba_grids as grids
from skattr.kernels.grids import torch_grids
from skattr.measures.factors.points import ProductPoints

CHUNK = 2**14  # vertices at which g is evaluated together: they fit in a core's cache


def backend_of(output: Any) -> Host | Device:
    """Return the backend that evaluates a model."""
    return Device(output.estimator) if modules.is_module(output.estimator) else Host()


class Host:
    """Evaluates models on the host, with numba and numpy."""

    def points(self, start: int, lists: grids.Lists, n: int) -> np.ndarray:
        """Return points (n, d) of the product of d lists, from number `start` on."""
        out = np.empty((n, len(lists.sizes)))
        grids.fill_points(start, lists, out)
        return out

    def products(self, start: int, lists: grids.Lists, n: int) -> np.ndarray:
        """Return the products of the coordinates of the same points, (n,)."""
        out = np.empty(n)
        grids.fill_products(start, lists, out)
        return out

    def increments(self, g: Callable, vertices: list, nodes: list) -> Iterator[tuple]:
        """Yield the nodes (n, d) and increments (n,) of cells over which g has an increment."""
        size = min(ROW_BLOCK, prod(len(one) for one in nodes))
        y, weights, filled = np.empty((size, len(nodes))), np.empty(size), 0
        for block, increments in _increments(g, vertices):
            at = [one[a : max(b, a + 1)] for one, (a, b) in zip(nodes, block, strict=True)]
            lists, start = grids.as_lists(at), 0
            while start < len(increments):
                start, filled = grids.fill_weighted(start, lists, increments, filled, y, weights)
                if filled == size:
                    yield y, weights
                    y, weights, filled = np.empty_like(y), np.empty_like(weights), 0
        if filled:
            yield y[:filled], weights[:filled]

    def uniforms(self, u: np.ndarray) -> np.ndarray:
        """Return uniform numbers on this backend."""
        return u

    def transport(self, source: ProductPoints, u: np.ndarray) -> Any:
        """Return points of a product of laws, with no column pinned."""
        return source.transport(u)

    def pin(self, points: Any, x: Any, columns: tuple[int, ...]) -> Any:
        """Return points with some columns set to those of x, a table of one row."""
        return frames.pin(points, x, columns) if columns else points

    def combiner(
        self, source: ProductPoints, nodes: list, x: Any, columns: tuple[int, ...]
    ) -> Callable[[int, int], Any]:
        """Return the function (start, n) → combinations of nodes, one list per column."""
        kinds = [getattr(values, "dtype", None) for values in (source.row.X, *nodes)]
        if all(kind == np.float64 for kind in kinds):  # there are no other dtypes to keep
            numbers = grids.as_lists([np.asarray(values) for values in nodes])
            return lambda start, n: self.points(start, numbers, n)
        positions = grids.as_lists([np.arange(len(values)) for values in nodes])
        free = [None if k in columns else values for k, values in enumerate(nodes)]

        def combine(start: int, n: int) -> Any:
            at = self.points(start, positions, n).astype(np.intp)
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
            with np.errstate(over="ignore", invalid="ignore"):  # `Solution` refuses what overflows
                return values.reshape(replicates, -1, values.shape[1]).sum(axis=1)
        columns = [*(weights * column for column in values.T), weights]  # not one large array
        return np.stack([one.reshape(replicates, -1).sum(axis=1) for one in columns], axis=1)


def _increments(g: Callable, vertices: list) -> Iterator[tuple[list, np.ndarray]]:
    """Yield blocks of cells, as one range per axis, and the increments of g over them.

    Consecutive blocks along the first axis share the values on the face between them.
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
    """Fill in g at the points of a product of lists; it gets points with contiguous columns."""
    y = np.empty((len(lists.sizes), min(CHUNK, len(out))))
    for start in range(0, len(out), CHUNK):
        part = out[start : start + CHUNK]
        grids.fill_columns(start, lists, y[:, : len(part)])
        part[:] = g(y[:, : len(part)].T)


class Device:
    """Evaluates a torch module on the device that it is on."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.device = modules.place(module)[0]

    @property
    def torch(self) -> Any:
        """The library, imported here because an attribute would not pickle."""
        import torch

        return torch

    def points(self, start: int, lists: grids.Lists, n: int) -> Any:
        """Return points (n, d) of the product of d lists, from number `start` on."""
        return torch_grids.points(self.torch, start, lists, n, self.device)

    def products(self, start: int, lists: grids.Lists, n: int) -> Any:
        """Return the products of the coordinates of the same points, (n,)."""
        return torch_grids.products(self.torch, start, lists, n, self.device)

    def increments(self, g: Callable, vertices: list, nodes: list) -> Iterator[tuple]:
        """Yield the nodes (n, d) and increments (n,) of cells over which g has an increment."""
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
        """Return uniform numbers on this backend."""
        return self.torch.tensor(u, device=self.device)

    def transport(self, source: ProductPoints, u: Any) -> Any:
        """Return points of a product of laws, with no column pinned."""
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
        """Return points with some columns set to those of x, a table of one row."""
        points = points.clone()
        for k in columns:
            points[:, k] = float(frames.to_float(frames.column(x, k))[0])
        return points

    def combiner(
        self, source: ProductPoints, nodes: list, x: Any, columns: tuple[int, ...]
    ) -> Callable[[int, int], Any]:
        """Return the function (start, n) → combinations of nodes, one list per column."""
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
