"""ReLU networks and rows of data: piecewise linear along the own coordinate of each row.

    F_j(t) = Σ_r w_r f(t, z_{r,-j}),   or Σ_r κ(bin of t, bin of z_rj) ω_r f(t, z_{r,-j})

For each row all places are found where t ↦ f(t, z_{r,-j}) has a kink, on the whole line and for any
number of layers (kernels/lines.py), and kinks and jumps of all rows are summed up in order from the
median of the column outward (kernels/line_sums.py): F_j with all its knots, exact to rounding
(MATH.md, section 4). For two hidden layers of m units a row costs O(m²), for each further layer
O(m³); a value is looked up in O(log knots). Groups, and columns that reach the network otherwise
than by an affine map, are summed up over the rows for each distinct own value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skattr import frames
from skattr.engines.base import Engine, Jobs, Own
from skattr.kernels.line_sums import Segments, straighten, sweep, sweep_one_kind
from skattr.kernels.lines import Knots, Start, Units, walk_lines
from skattr.measures.base import Measure
from skattr.measures.bins import Bins, as_numbers
from skattr.measures.row_weights import RowWeights
from skattr.parallel import in_order
from skattr.pieces import Pieces, ReluNetwork
from skattr.pieces.relu import Layer, Line

LINES = 512  # rows that are walked along together
ROOM = 2**26  # numbers of all curves together; beyond that each is made when it is asked for


@dataclass(eq=False)
class LineCurve:
    """A piecewise linear function of a raw number, u = (x - origin) - middle.

    Segment i ends at knot i and, up to the middle's knot, begins there; later ones begin at knot
    i - 1. Where it jumps a knot stands twice. Bin b has the segments first[b] to last[b].
    """

    name: Any
    origin: float
    middle: float
    knots: np.ndarray  # (M,) u
    values: np.ndarray  # (M, k)
    slopes: np.ndarray  # (M + 1, k)
    center: int  # the knot of the middle
    bins: Bins | None = None
    first: np.ndarray | None = None
    last: np.ndarray | None = None
    points: np.ndarray | None = None  # (n, k) values of single numbers that have a bin each
    special: np.ndarray | None = None  # (3, k) at missing, -inf and inf, NaN if there is none
    partial = False

    def at(self, codes: Any, values: Any) -> np.ndarray:
        """Return the curve at raw values, (n, k)."""
        x = as_numbers(values, self.name)
        u = (x - self.origin) - self.middle
        found = np.searchsorted(self.knots, u, side="left")
        if self.first is not None:
            assert self.bins is not None and self.last is not None
            bins = np.minimum(self.bins.of(values), self.bins.n - 1)  # missing is seen to below
            found = np.clip(found, self.first[bins], self.last[bins])
        start = np.where(found <= self.center, found, found - 1)
        with np.errstate(invalid="ignore"):
            result = self.values[start] + self.slopes[found] * (u - self.knots[start])[:, None]
        if self.points is not None:
            assert self.bins is not None
            bins = self.bins.of(values)
            single = bins < self.bins.n
            result[single] = self.points[bins[single]]
        self._put_special(x, result)
        return result

    def breaks(self) -> np.ndarray:
        """Return raw numbers between which it is affine; beside them it may have jumps."""
        places = [self.origin + (self.middle + self.knots)]
        if self.bins is not None:
            cuts = self.bins.cuts()
            places += [cuts, np.nextafter(cuts, np.inf)]
        return np.unique(np.concatenate(places))

    def missing(self) -> np.ndarray | None:
        """Return its value where the column is missing, (k,), if that may be."""
        assert self.special is not None
        return None if np.isnan(self.special[0]).any() else self.special[0]

    def _put_special(self, x: np.ndarray, result: np.ndarray) -> None:
        """Fill in what missing and infinite values get, or refuse them as the model does."""
        for i, (what, where) in enumerate(
            (("missing", np.isnan(x)), ("infinite", x == -np.inf), ("infinite", x == np.inf))
        ):
            if where.any():
                assert self.special is not None
                if np.isnan(self.special[i]).any():
                    raise ValueError(f"column {self.name!r}: the model takes no {what} values")
                result[where] = self.special[i]


@dataclass(eq=False)
class Rows:
    """The background as inputs of the network, and the curves once all batches are there."""

    total: np.ndarray  # (k,) Σ_r w_r f(z_r)
    weights: np.ndarray  # (n,)
    own: Own
    numbers: np.ndarray | None  # (n, p), None if nothing is pinned
    given: RowWeights | None = None  # weights that depend on the own value
    curves: list[LineCurve | None] | None = None


class Lines(Engine):
    """Walks along lines through the regions of a network, one for each row and column."""

    name = "lines"
    needs = (ReluNetwork, "rows")

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        if isinstance(pieces, ReluNetwork) and "bins" in term.views:
            return None
        return super().refuses(pieces, term)

    def cost(self, pieces: ReluNetwork, term: Measure) -> str:
        """Say what it costs."""
        if term.depends == "nothing":
            return "fit: one evaluation of each row"
        return (
            "fit: one line through each row for each column; explain: one lookup a value, for "
            "groups and levels one evaluation of the background for each distinct value"
        )

    def prepare(self, pieces: ReluNetwork, term: Any, own: Own, jobs: Jobs) -> Rows:
        """Evaluate the background."""
        given = None
        if "bins" in term.views:
            background, given = term.bins()
            pinned = True
        else:
            background, pinned = term.rows()
        numbers = pieces.numbers(background.X)
        weights = background.weights.copy()
        total = weights @ pieces.forward(numbers)
        return Rows(total, weights, own, numbers if pinned else None, given)

    def merge(self, a: Rows, b: Rows) -> Rows:
        """Put one batch behind the other."""
        numbers = None
        if a.numbers is not None and b.numbers is not None:
            numbers = np.concatenate([a.numbers, b.numbers])
        weights = np.concatenate([a.weights, b.weights])
        return replace(b, total=a.total + b.total, weights=weights, numbers=numbers, curves=None)

    def finish(self, pieces: ReluNetwork, state: Rows, jobs: Jobs) -> Rows:
        """Walk along all lines."""
        if state.numbers is None:
            return state
        single = [c[0] for c in state.own if len(c) == 1 and _has_line(pieces, state, c[0])]
        units = sum(len(layer.bias) for layer in pieces.layers)
        size = len(single) * len(state.numbers) * units * (2 + 2 * pieces.n_outputs)
        curves: list[LineCurve | None] = [None] * len(state.own)
        if size <= ROOM:
            with threadpool_limits(1):  # lines are walked in threads
                for a, columns in enumerate(state.own):
                    if len(columns) == 1 and columns[0] in single:
                        curves[a] = _curve(pieces, state, columns[0], jobs)
        return replace(state, curves=curves)

    def mean(self, pieces: ReluNetwork, state: Rows) -> np.ndarray:
        """Return E f."""
        return state.total / state.weights.sum()

    def tables(self, pieces: ReluNetwork, state: Rows, own: Own) -> list:
        """Return the curves of columns of numbers."""
        assert state.curves is not None
        return state.curves

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return curves that were too large to keep, and sums over rows where there is none."""
        result = np.empty((len(X), len(chosen), pieces.n_outputs))
        with threadpool_limits(1):
            for place, a in enumerate(chosen):
                columns = own[a]
                if len(columns) == 1 and _has_line(pieces, state, columns[0]):
                    curve = _curve(pieces, state, columns[0], jobs)
                    result[:, place] = curve.at(None, frames.column(X, columns[0]))
                else:
                    result[:, place] = _sums(pieces, state, X, columns, jobs)
        return result


def _has_line(pieces: ReluNetwork, state: Rows, k: int) -> bool:
    """Tell whether an attribution is piecewise linear in the number of a column."""
    return k in pieces.lines and (state.given is None or state.given.columns[k].bins.levels is None)


# sums over rows ---------------------------------------------------------------------------------


def _sums(
    pieces: ReluNetwork, state: Rows, X: Any, columns: tuple[int, ...], jobs: Jobs
) -> np.ndarray:
    """Return the mean of f over the rows with own values put into them, (n, k)."""
    assert state.numbers is not None
    first, kind = frames.distinct_rows(X, columns)
    some = frames.take_rows(X, first)
    places, inputs = pieces.own_numbers(some, columns)
    shares = [state.weights / state.weights.sum()] * len(first)
    if state.given is not None:
        bins = state.given.bins_of(some, columns)
        shares = [state.given.given(columns, at) for at in bins.T]
    run = partial(_pinned, pieces, state.numbers, places)
    found = list(in_order(lambda pair: run(*pair), zip(inputs, shares, strict=True), jobs.n_jobs))
    return np.array(found)[kind]


def _pinned(
    pieces: ReluNetwork, numbers: np.ndarray, places: np.ndarray, own: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Return Σ_r share_r f(own, z_r), (k,)."""
    rows = np.flatnonzero(share)
    Z = numbers[rows]
    Z[:, places] = own
    return share[rows] @ pieces.forward(Z)


# curves -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Shares:
    """How much the rows count for a column: share of row r at t = weight_r table[bin of t, kind_r].

    `edges` are the raw numbers between the bins of t, `bins` those bins, if there is more than one.
    """

    weight: np.ndarray  # (n,)
    kind: np.ndarray  # (n,)
    table: np.ndarray  # (E + 1, kinds)
    edges: np.ndarray  # (E,)
    bins: Bins | None = None


def _shares(state: Rows, k: int) -> Shares:
    if state.given is None:
        n = len(state.weights)
        weight = state.weights / state.weights.sum()
        return Shares(weight, np.zeros(n, np.int32), np.ones((1, 1)), np.zeros(0))
    column = state.given.columns[k]
    assert state.given.rows is not None
    edges, table = column.bins.edges, column.table
    if edges is None:  # numbers that have a bin each: here the others
        edges, table = np.zeros(0), table[-1:]
    table = np.ascontiguousarray(table[: len(edges) + 1])
    return Shares(state.given.weight, state.given.rows[k], table, edges, column.bins)


def _curve(pieces: ReluNetwork, state: Rows, k: int, jobs: Jobs) -> LineCurve:
    """Return the curve of a column."""
    assert state.numbers is not None
    numbers, line, shares = state.numbers, pieces.lines[k], _shares(state, k)
    middle = _middle(line, numbers)
    network = Straight(pieces, line)
    own = line.start + middle * line.direction

    def walk(begin: int) -> tuple[np.ndarray, np.ndarray, Knots]:
        some = slice(begin, begin + LINES)
        Z = numbers[some].copy()
        Z[:, line.places] = own
        return network.walk(Z, shares.weight[some], begin)

    found = list(in_order(walk, range(0, len(numbers), LINES), jobs.n_jobs))
    values, slopes, knots = zip(*found, strict=True)
    kinds = shares.table.shape[1], pieces.n_outputs
    total, slope = np.zeros(kinds), np.zeros(kinds)
    np.add.at(total, shares.kind, np.concatenate(values))
    np.add.at(slope, shares.kind, np.concatenate(slopes))
    curve = _sum_up(
        Knots(*(_joined(parts) for parts in zip(*knots, strict=True))), shares,
        total, slope, (shares.edges - line.origin) - middle,
    )  # fmt: skip
    curve.slopes[0], curve.slopes[-1] = -network.rays[1], network.rays[0]
    return replace(
        curve, name=pieces.names[k], origin=line.origin, middle=middle,
        points=_points(pieces, state, k), special=_special(pieces, state, k),
    )  # fmt: skip


def _joined(parts: tuple[np.ndarray, ...]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _middle(line: Line, numbers: np.ndarray) -> float:
    """Return a median of the column: where sums begin, so that they lose nothing near the data."""
    c = int(np.abs(line.direction).argmax())
    if line.direction[c] == 0:
        return 0.0
    u = (numbers[:, line.places[c]] - line.start[c]) / line.direction[c]
    return float(np.partition(u, len(u) // 2)[len(u) // 2])


class Straight:
    """A network along one direction of its inputs."""

    def __init__(self, pieces: ReluNetwork, line: Line) -> None:
        layers, last, bias = pieces.layers, pieces.weight, pieces.bias
        if not layers:  # a network without kinks
            k = len(bias)
            layers, last, bias = [Layer(last, bias, np.ones(k))], np.eye(k), np.zeros(k)
        self.layers = layers
        self.maps = [(layer.weight, layer.bias) for layer in layers[1:]] + [(last, bias)]
        self.slope = layers[0].weight[:, line.places] @ line.direction  # of the first layer
        self.units = Units(
            np.array([len(layer.bias) for layer in layers]),
            np.concatenate([layer.slope for layer in layers]),
            np.concatenate([np.zeros(0), *(layer.weight.T.ravel() for layer in layers[1:])]),
            np.ascontiguousarray(last),
        )
        rays = [np.stack([self.slope, -self.slope])]
        for layer, (weight, _) in zip(layers, self.maps, strict=True):
            rays.append(np.where(rays[-1] > 0, rays[-1], layer.slope * rays[-1]) @ weight.T)
        self.hidden_rays = np.concatenate(rays[:-1], axis=1)
        self.rays = rays[-1]  # (2, k) slopes of the output far to the right, and to the left

    def walk(
        self, Z: np.ndarray, weight: np.ndarray, first: int
    ) -> tuple[np.ndarray, np.ndarray, Knots]:
        """Return value and slope of the output at inputs, (n, k), and its knots from there on.

        All is multiplied by the weights of the rows, the first of which has the number `first`.
        """
        z = Z @ self.layers[0].weight.T + self.layers[0].bias
        s = np.broadcast_to(self.slope, z.shape)
        places = np.full(z.shape, np.inf)
        with np.errstate(over="ignore"):
            switches = (self.slope != 0) & (self.layers[0].slope != 1)
            np.divide(-z, self.slope, out=places, where=switches)
        order = np.argsort(places, axis=1)
        numbers, slopes = [], []
        for layer, (map_weight, map_bias) in zip(self.layers, self.maps, strict=True):
            numbers.append(z)
            slopes.append(s)
            side = np.where((z > 0) | ((z == 0) & (s > 0)), 1.0, layer.slope)
            z, s = (side * z) @ map_weight.T + map_bias, (side * s) @ map_weight.T
        start = Start(
            np.concatenate(numbers, axis=1),
            np.concatenate(slopes, axis=1),
            places,
            order,
            self.hidden_rays,
            s,
        )
        knots = walk_lines(self.units, start, weight, first)
        return weight[:, None] * z, weight[:, None] * s, knots


def _sum_up(
    knots: Knots, shares: Shares, value: np.ndarray, slope: np.ndarray, edges: np.ndarray
) -> LineCurve:
    """Sum the knots of all rows up, to the right and to the left of the middle."""
    order = _order(knots.place)
    split = int(np.searchsorted(knots.place, 0.0, side="right", sorter=order))
    b0 = int(np.searchsorted(edges, 0.0, side="left"))  # the middle's bin
    size, k = 1 + len(order) + 2 * len(edges), value.shape[1]
    segments = Segments(np.empty(size), np.empty((size, k)), np.empty((size + 1, k)))
    center = split + 2 * b0
    one = shares.bins is None
    kind = None if one else shares.kind[knots.line]

    def half(order: np.ndarray, side: int, edges: np.ndarray, table: np.ndarray) -> tuple:
        ends, order = np.empty(len(edges), np.int64), np.ascontiguousarray(order)
        if one:
            start = value[0], side * slope[0]
            sweep_one_kind(knots.place, knots.rise, order, side, *start, segments, center)
            return len(order), ends
        n = sweep(
            knots.place, knots.rise, kind, order, side, np.ascontiguousarray(edges),
            np.ascontiguousarray(table), value, side * slope, segments, center, ends,
        )  # fmt: skip
        return n, ends

    right, up = half(order[split:], 1, edges[b0:], shares.table[b0:])
    left, down = half(order[:split][::-1], -1, -edges[:b0][::-1], shares.table[: b0 + 1][::-1])
    begin, end = center - left, center + right + 1
    found = Segments(
        segments.knots[begin:end], segments.values[begin:end], segments.slopes[begin : end + 1]
    )
    if end - begin < size:
        found = Segments(*(array.copy() for array in found))
    first = np.zeros(len(edges) + 1, np.int64)
    last = np.full(len(edges) + 1, end - begin)
    last[b0:-1], first[b0 + 1 :] = left + up, left + up + 2
    first[1 : b0 + 1], last[:b0] = (left - down + 1)[::-1], (left - down - 1)[::-1]
    curve = LineCurve(
        None, 0.0, 0.0, found.knots, found.values, found.slopes, left, shares.bins
    )  # fmt: skip
    return replace(curve, first=first, last=last) if len(edges) else curve


def _order(numbers: np.ndarray) -> np.ndarray:
    """Return the order of finite numbers, as np.argsort does, but in half the time.

    Numbers are sorted whose last bits are their places in the list; few are not in order then.
    """
    bits = max(len(numbers) - 1, 1).bit_length()
    keys = numbers.view(np.int64) >> bits << bits | np.arange(len(numbers))
    keys.view(np.float64).sort()
    keys &= (1 << bits) - 1
    return keys if straighten(numbers, keys) else np.argsort(numbers)


def _points(pieces: ReluNetwork, state: Rows, k: int) -> np.ndarray | None:
    """Return the values of numbers that have a bin of their own, (n, k)."""
    bins = None if state.given is None else state.given.columns[k].bins
    if bins is None or bins.points is None:
        return None
    line = pieces.lines[k]
    own = line.start + (bins.points - line.origin)[:, None] * line.direction
    pairs = zip(bins.points.tolist(), own, strict=True)
    return np.array([_value(pieces, state, k, *pair) for pair in pairs])


def _special(pieces: ReluNetwork, state: Rows, k: int) -> np.ndarray:
    """Return the values at missing, -inf and inf, (3, k), NaN where there is none."""
    line = pieces.lines[k]
    result = np.full((3, pieces.n_outputs), np.nan)
    if line.missing is not None:
        result[0] = _value(pieces, state, k, np.nan, line.missing)
    if line.infinite:  # then no other column counts
        assert state.numbers is not None
        Z = state.numbers[:1].repeat(2, axis=0)
        with np.errstate(invalid="ignore"):
            Z[:, line.places] = np.array([[-np.inf], [np.inf]]) * line.direction + line.start
            result[1:] = pieces.forward(Z)
    return result


def _value(pieces: ReluNetwork, state: Rows, k: int, t: float, own: np.ndarray) -> np.ndarray:
    """Return the attribution of column k at the number t, where it has the given inputs."""
    assert state.numbers is not None
    share = state.weights / state.weights.sum()
    if state.given is not None:
        at = state.given.columns[k].bins.of(np.array([t]))
        share = state.given.given((k,), at)
    return _pinned(pieces, state.numbers, pieces.lines[k].places, own, share)
