"""ReLU networks and rows of data: piecewise linear along one coordinate of each row.

    F_j(t) = Σ_r w_r f(t, z_{r,-j}),   or Σ_r κ(bin of t, bin of z_rj) ω_r f(t, z_{r,-j})

For each row all kinks of t ↦ f(t, z_{r,-j}) are located, on the whole line and for any number of
layers (kernels/lines/walk.py), and kinks and jumps of all rows are summed up in order from the
median of the column outward (kernels/lines/sums.py): F_j with all its knots, exact to rounding
(docs/mathematics.md, section 4). For two hidden layers of m units a row costs O(m²), for each
further layer O(m³); a value is looked up in O(log knots). Groups, and columns that do not enter the
network by an affine function, are summed over the rows for each distinct explained value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.curves.linear import PiecewiseLinear
from skattr.engines.backgrounds import merge_weights, rows_or_bins, settle_weights
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.relu.line_curves import Arena, Shares, sum_up
from skattr.engines.relu.line_walks import Direction, Walker
from skattr.kernels.lines.buffers import Knots
from skattr.measures.base import Measure
from skattr.measures.learned.row_weights import RowWeights
from skattr.pieces import ReluNetwork
from skattr.pieces.relu import Line

LINES = 512  # rows in one call of the kernels
MAX_NUMBERS = 2**26  # in all curves together; beyond it each curve is made when it is needed


@dataclass(eq=False)
class RowLines:
    """The background as inputs of the network, and the curves once all batches are added."""

    total: np.ndarray  # (k,) Σ_r w_r f(z_r)
    weights: np.ndarray  # (n,)
    attributions: Attributions
    numbers: np.ndarray | None  # (n, p), None if no column is pinned
    row_weights: RowWeights | None = None  # if weights depend on the explained value
    curves: list[PiecewiseLinear | None] | None = None


class Lines(Engine):
    """Walks through the regions of a network along one line per row and column."""

    name = "lines"
    kind = ReluNetwork
    views = ("rows", "bins")
    gives = "exact curves; groups row by row"

    @override
    def cost(self, pieces: ReluNetwork, measure: Measure) -> str:
        if measure.depends == "nothing":
            return "fit: one evaluation per row"
        return (
            "fit: one line per row and column; explain: one lookup per value, for groups and "
            "levels one evaluation of the background for each distinct value"
        )

    @override
    def prepare(
        self, pieces: ReluNetwork, measure: Any, attributions: Attributions, options: RunOptions
    ) -> RowLines:
        background, row_weights, pinned = rows_or_bins(measure)
        numbers = pieces.numbers(background.X)
        weights = background.weights.copy()
        total = weights @ pieces.forward(numbers)
        return RowLines(total, weights, attributions, numbers if pinned else None, row_weights)

    @override
    def merge(self, a: RowLines, b: RowLines) -> RowLines:
        numbers = None
        if a.numbers is not None and b.numbers is not None:
            numbers = np.concatenate([a.numbers, b.numbers])
        weights = np.concatenate([a.weights, b.weights])
        return replace(
            b, total=a.total + b.total, weights=weights, numbers=numbers, curves=None,
            row_weights=merge_weights(a, b),
        )  # fmt: skip

    @override
    def finish(self, pieces: ReluNetwork, state: RowLines, options: RunOptions) -> RowLines:
        state = settle_weights(state)
        if state.numbers is None:
            return state
        single = [
            c[0] for c in state.attributions if len(c) == 1 and _has_line(pieces, state, c[0])
        ]
        units = sum(len(layer.bias) for layer in pieces.layers)
        size = len(single) * len(state.numbers) * units * (2 + 2 * pieces.n_outputs)
        curves: list[PiecewiseLinear | None] = [None] * len(state.attributions)
        if size <= MAX_NUMBERS:
            walker, arena = Walker(pieces, min(LINES, len(state.numbers))), Arena(size)
            with threadpool_limits(1):  # lines are walked in threads
                for a, columns in enumerate(state.attributions):
                    if len(columns) == 1 and columns[0] in single:
                        curves[a] = _curve(walker, pieces, state, columns[0], options, arena)
        return replace(state, curves=curves)

    @override
    def mean(self, pieces: ReluNetwork, state: RowLines) -> Estimate:
        return Estimate(state.total / state.weights.sum())

    @override
    def curves(self, pieces: ReluNetwork, state: RowLines, attributions: Attributions) -> Curves:
        return state.curves or [None] * len(attributions)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        """Evaluate curves that are too large to keep, else sum over the rows."""
        X, options = request.X, request.options
        result = request.zeros(pieces.n_outputs)
        walker: Walker | None = None
        with threadpool_limits(1):
            for i, columns in enumerate(request.columns):
                if len(columns) == 1 and _has_line(pieces, state, columns[0]):
                    walker = walker or Walker(pieces, min(LINES, len(state.numbers)))
                    curve = _curve(walker, pieces, state, columns[0], options, Arena(0))
                    result[:, i] = curve.at(None, frames.column(X, columns[0]))[0]
                else:
                    result[:, i] = _sums(pieces, state, X, columns, options)
        return Integral(Estimate(result))


def _has_line(pieces: ReluNetwork, state: RowLines, k: int) -> bool:
    """Return whether the attribution of column k is piecewise linear in its value."""
    return k in pieces.lines and (
        state.row_weights is None or state.row_weights.columns[k].bins.levels is None
    )


# sums over rows ---------------------------------------------------------------------------------


def _sums(
    pieces: ReluNetwork, state: RowLines, X: Any, columns: tuple[int, ...], options: RunOptions
) -> np.ndarray:
    """Return the mean of f over the rows with some columns pinned to those of X, (n, k)."""
    assert state.numbers is not None
    first, kind = frames.distinct_rows(X, columns)
    some = frames.take_rows(X, first)
    positions, inputs = pieces.own_numbers(some, columns)
    shares = [state.weights / state.weights.sum()] * len(first)
    if state.row_weights is not None:
        bins = state.row_weights.bins_of(some, columns)
        shares = [state.row_weights.given(columns, at) for at in bins.T]
    run = partial(_pinned, pieces, state.numbers, positions)
    means = list(
        in_order(lambda pair: run(*pair), zip(inputs, shares, strict=True), options.n_jobs)
    )
    return np.array(means)[kind]


def _pinned(
    pieces: ReluNetwork,
    numbers: np.ndarray,
    positions: np.ndarray,
    pinned: np.ndarray,
    share: np.ndarray,
) -> np.ndarray:
    """Return Σ_r share_r f(pinned, z_r), (k,)."""
    rows = np.flatnonzero(share)
    Z = numbers[rows]
    Z[:, positions] = pinned
    return share[rows] @ pieces.forward(Z)


# curves -----------------------------------------------------------------------------------------


def _shares(state: RowLines, k: int) -> Shares:
    if state.row_weights is None:
        n = len(state.weights)
        weight = state.weights / state.weights.sum()
        return Shares(weight, np.zeros(n, np.int32), np.ones((1, 1)), np.zeros(0))
    column = state.row_weights.columns[k]
    assert state.row_weights.rows is not None
    edges, table = column.bins.edges, column.table
    if edges is None:  # some numbers have a bin each; this is the bin of all others
        edges, table = np.zeros(0), table[-1:]
    table = np.ascontiguousarray(table[: len(edges) + 1])
    return Shares(state.row_weights.weight, state.row_weights.rows[k], table, edges, column.bins)


def _curve(
    walker: Walker, pieces: ReluNetwork, state: RowLines, k: int, options: RunOptions, arena: Arena
) -> PiecewiseLinear:
    """Return the curve of a column."""
    assert state.numbers is not None
    numbers, line, shares = state.numbers, pieces.lines[k], _shares(state, k)
    middle = middle_of(line, numbers)
    network = Direction(walker, line)
    pinned = line.start + middle * line.direction
    starts = range(0, len(numbers), LINES)

    def walk(begin: int) -> tuple[np.ndarray, np.ndarray, Knots]:
        some = slice(begin, begin + LINES)
        Z = numbers[some].copy()
        Z[:, line.positions] = pinned
        workspace = walker.workspace()
        value, slope, knots = network.walk(Z, shares.weight[some], workspace)
        if len(starts) > 1:  # else the workspace is not used again before they are summed up
            knots = Knots(*(part.copy() for part in knots))
        walker.free.append(workspace)
        return value, slope, knots

    values, slopes, parts = zip(*in_order(walk, starts, options.n_jobs), strict=True)
    kinds = shares.table.shape[1], pieces.n_outputs
    total, slope = np.zeros(kinds), np.zeros(kinds)
    np.add.at(total, shares.kind, np.concatenate(values))
    np.add.at(slope, shares.kind, np.concatenate(slopes))
    counts = np.concatenate([np.diff(part.ends, prepend=0) for part in parts])
    table = _joined([part.table for part in parts])
    edges = (shares.edges - line.origin) - middle
    curve = sum_up(table, counts, shares, total, slope, edges, arena)
    curve.slopes[0], curve.slopes[-1] = -network.rays[1], network.rays[0]
    return replace(
        curve, name=pieces.names[k], origin=line.origin, middle=middle,
        points=_points(pieces, state, k), special=_special(pieces, state, k),
    )  # fmt: skip


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def middle_of(line: Line, numbers: np.ndarray) -> float:
    """Return a median of the column: sums start there, so that they are accurate near the data."""
    c = int(np.abs(line.direction).argmax())
    if line.direction[c] == 0:
        return 0.0
    u = (numbers[:, line.positions[c]] - line.start[c]) / line.direction[c]
    return float(np.partition(u, len(u) // 2)[len(u) // 2])


def _points(pieces: ReluNetwork, state: RowLines, k: int) -> np.ndarray | None:
    """Return the values at numbers that have a bin each, (n, k)."""
    bins = None if state.row_weights is None else state.row_weights.columns[k].bins
    if bins is None or bins.points is None:
        return None
    line = pieces.lines[k]
    pinned = line.start + (bins.points - line.origin)[:, None] * line.direction
    pairs = zip(bins.points.tolist(), pinned, strict=True)
    return np.array([_value(pieces, state, k, *pair) for pair in pairs])


def _special(pieces: ReluNetwork, state: RowLines, k: int) -> np.ndarray:
    """Return the values at missing, -inf and inf, (3, k), NaN if the model does not take them."""
    line = pieces.lines[k]
    result = np.full((3, pieces.n_outputs), np.nan)
    if line.missing is not None:
        result[0] = _value(pieces, state, k, np.nan, line.missing)
    if line.infinite:  # then no other column matters
        assert state.numbers is not None
        Z = state.numbers[:1].repeat(2, axis=0)
        with np.errstate(invalid="ignore"):
            Z[:, line.positions] = np.array([[-np.inf], [np.inf]]) * line.direction + line.start
            result[1:] = pieces.forward(Z)
    return result


def _value(
    pieces: ReluNetwork, state: RowLines, k: int, t: float, pinned: np.ndarray
) -> np.ndarray:
    """Return the attribution of column k at the number t, whose inputs are `pinned`."""
    assert state.numbers is not None
    share = state.weights / state.weights.sum()
    if state.row_weights is not None:
        at = state.row_weights.columns[k].bins.of(np.array([t]))
        share = state.row_weights.given((k,), at)
    return _pinned(pieces, state.numbers, pieces.lines[k].positions, pinned, share)
