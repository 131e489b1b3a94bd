"""A ReLU network along lines: all kinks of its output in one coordinate of each row.

The network is converted once, for all columns, to the layout of kernels/lines/. Buffers are reused
from one column to the next, because the system has to clear the pages of new ones.
"""

from __future__ import annotations

import numpy as np

from skattr.kernels.lines import buffers
from skattr.kernels.lines.products import tiles
from skattr.kernels.lines.starts import find_order, find_positions, find_sides
from skattr.kernels.lines.vectors import aligned
from skattr.kernels.lines.walk import EVENTS, KNOTS, walk_lines, walk_one_layer
from skattr.pieces import ReluNetwork
from skattr.pieces.parts import Layer
from skattr.pieces.relu import Line


class Walker:
    """A network whose widths are padded to multiples of what kernels take at a time."""

    def __init__(self, pieces: ReluNetwork, lines: int) -> None:
        layers, last, bias = pieces.layers, pieces.weight, pieces.bias
        k = len(bias)
        if not layers:  # a network without kinks
            layers, last, bias = [Layer(last, bias, np.ones(k))], np.eye(k), np.zeros(k)
        widths = [-(-len(layer.bias) // buffers.UNITS) * buffers.UNITS for layer in layers]
        inputs = [layers[0].weight.shape[1], *widths]
        self.layers = [
            Layer(
                _padded(each.weight, m, p), _padded(each.bias, m), _padded(each.slope, m, fill=1.0)
            )
            for each, m, p in zip(layers, widths, inputs[:-1], strict=True)
        ]
        self.last = Layer(_padded(last, k, widths[-1]), bias, np.ones(k))
        self.units = buffers.Units(
            np.array(widths),
            np.concatenate([layer.slope for layer in self.layers]),
            _joined([layer.weight.T.ravel() for layer in self.layers[1:]]),
            _joined([tiles(layer.weight.T) for layer in self.layers[1:]]),
            self.last.weight,
        )
        self.lines = lines
        self.free: list[Workspace] = []  # not in use

    def workspace(self) -> Workspace:
        """Return a free workspace; the caller appends it to `free` after use."""
        try:
            return self.free.pop()
        except IndexError:  # all are in use by other threads
            return Workspace(self.units, self.lines)


class Workspace:
    """Buffers for the walks along some lines, which grow when they are full."""

    def __init__(self, units: buffers.Units, lines: int) -> None:
        self.units = units
        first, widest, total = int(units.widths[0]), int(units.widths.max()), len(units.slopes)
        self.events = first + 1 if len(units.widths) < 3 else total + buffers.BLOCK * (widest + 2)
        self.start = buffers.start_buffers(units, lines)
        self.allocate()
        size = lines * total + (first + 1) * (widest + 1)
        self.knots = buffers.knot_buffers(size, len(units.last), lines)

    def walk(self, start: buffers.Start, rays: np.ndarray, weight: np.ndarray) -> buffers.Knots:
        """Return all knots of the output along lines, times the weights of the lines."""
        line = n_knots = 0
        while True:
            line, n_knots, lacking = self._go_on(start, rays, weight, line, n_knots)
            if lacking == EVENTS:
                self.events *= 2
                self.allocate()
            elif lacking == KNOTS:
                table, ends = self.knots
                self.knots = buffers.knot_buffers(2 * len(table), len(self.units.last), len(ends))
                self.knots.table[:n_knots], self.knots.ends[:] = table[:n_knots], ends
            else:
                return buffers.Knots(self.knots.table[:n_knots], self.knots.ends[: len(weight)])

    def allocate(self) -> None:
        """Allocate buffers for `self.events` events."""
        self.walks = buffers.walk_buffers(self.units, self.events)
        self.deep = buffers.deep_buffers(self.units, self.events)

    def _go_on(
        self, start: buffers.Start, rays: np.ndarray, weight: np.ndarray, line: int, n_knots: int
    ) -> tuple[int, int, int]:
        """Walk until the lines end or a buffer is full."""
        where = self.units, start, rays, weight
        if len(self.units.widths) == 1:
            events, returned = self.walks.events, self.walks.returned
            return walk_one_layer(*where, events, returned, self.knots, line, n_knots)
        return walk_lines(*where, self.walks, self.deep, self.knots, line, n_knots)


class Direction:
    """A network along one direction of its inputs."""

    def __init__(self, walker: Walker, line: Line) -> None:
        self.walker, (first, *others) = walker, walker.layers
        ray = first.weight[:, line.positions] @ line.direction
        rays = [np.stack([ray, -ray])]
        for layer, behind in zip(walker.layers, [*others, walker.last], strict=True):
            passed = np.where(rays[-1] > 0, rays[-1], layer.slope * rays[-1])
            rays.append(passed @ behind.weight.T)
        self.hidden_rays = np.concatenate(rays[:-1], axis=1)  # (2, M)
        self.rays = rays[-1]  # (2, k) slopes of the output far to the right, and to the left

    def walk(
        self, Z: np.ndarray, weight: np.ndarray, workspace: Workspace
    ) -> tuple[np.ndarray, np.ndarray, buffers.Knots]:
        """Return value and slope of the output at inputs, (n, k), and its knots along the lines.

        All are multiplied by the weights of the rows. The knots are views of the workspace.
        """
        walker = self.walker
        start = buffers.Start(*(part[: len(Z)] for part in workspace.start))
        first, *others = walker.layers
        m, u = len(first.bias), 0
        z, s = start.values[:, :m], start.slopes[:, :m]
        np.matmul(Z, first.weight.T, out=z)
        z += first.bias
        s[:] = self.hidden_rays[0, :m]
        bits = m.bit_length()
        find_positions(z, self.hidden_rays[0], first.slope, start.positions, start.order, bits)
        start.order.sort(axis=1)
        find_order(start.positions, start.order, bits)
        for layer, behind in zip(walker.layers, [*others, walker.last], strict=True):
            find_sides(start, u, layer.slope)
            m, k = len(layer.bias), len(behind.bias)
            u += m
            z, s = start.values[:, u : u + k], start.slopes[:, u : u + k]
            if behind is walker.last:
                z, s = np.empty((2, len(Z), k))
            np.matmul(start.returned[:, :m], behind.weight.T, out=z)
            np.matmul(start.returned_slopes[:, :m], behind.weight.T, out=s)
            z += behind.bias
        knots = workspace.walk(start, self.hidden_rays, weight)
        return weight[:, None] * z, weight[:, None] * s, knots


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Return vectors one after the other, aligned to cache lines."""
    whole = aligned(sum(map(len, parts)))
    np.concatenate([np.zeros(0), *parts], out=whole)
    return whole


def _padded(array: np.ndarray, *sizes: int, fill: float = 0.0) -> np.ndarray:
    """Return an array padded at the end of each axis."""
    wider = np.full(sizes, fill, np.float64)
    wider[tuple(map(slice, array.shape))] = array
    return wider
