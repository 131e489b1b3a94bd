"""Where points are built, evaluated and added up: on the host, or on the device of a torch module.

Both do the same with their own kernels. On the host points are tables as the estimator takes them;
on a device they are tensors, and only sums come back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr import frames, modules
from skattr.kernels import grids, torch_grids
from skattr.measures.points import ProductPoints

ROW_BLOCK = 65_536  # points in one call of the model


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

    def difference(self, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the increments over cells of values at vertices."""
        values = np.array(values)
        return values[: grids.difference(values, sizes)]

    def uniforms(self, u: np.ndarray) -> np.ndarray:
        """Return uniform numbers as they are used here."""
        return u

    def transport(self, source: ProductPoints, u: np.ndarray) -> Any:
        """Return points of a product of laws, nothing pinned."""
        return source.transport(u)

    def pin(self, points: Any, x: Any, columns: tuple[int, ...]) -> Any:
        """Return points with some columns set to those of x, one row."""
        return frames.pin(points, x, columns) if columns else points

    def nodes(self, source: ProductPoints, nodes: list, start: int, n: int) -> Any:
        """Return combinations of nodes, one list a column; None where a column is pinned later."""
        sizes = [1 if values is None else len(values) for values in nodes]
        at = self.points(start, grids.as_lists([np.arange(size) for size in sizes]), n)
        return source.table(nodes, at.astype(np.intp))

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
        if weights is not None:
            values = np.column_stack([weights[:, None] * values, weights])
        return values.reshape(replicates, -1, values.shape[1]).sum(axis=1)


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

    def difference(self, values: Any, sizes: np.ndarray) -> Any:
        """Return the increments over cells of values at vertices."""
        return torch_grids.difference(values, sizes)

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

    def nodes(self, source: ProductPoints, nodes: list, start: int, n: int) -> Any:
        """Return combinations of nodes, one list a column; None where a column is pinned later."""
        numbers = [np.zeros(1) if values is None else frames.to_float(values) for values in nodes]
        return self.points(start, grids.as_lists(numbers), n)

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
