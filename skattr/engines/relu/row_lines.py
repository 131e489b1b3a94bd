"""ReLU networks along one coordinate of single rows: one piecewise linear function per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skattr.curves.linear import PiecewiseLinear
from skattr.engines.relu.line_curves import Arena, sum_one_kind
from skattr.engines.relu.line_walks import Direction, Walker
from skattr.engines.relu.lines import LINES, middle_of
from skattr.pieces import ReluNetwork


def row_lines(pieces: ReluNetwork, X: Any, k: int) -> Iterator[PiecewiseLinear]:
    """Yield f of each row as a function of column k, with all its knots."""
    numbers, line = pieces.numbers(X), pieces.lines[k]
    middle = middle_of(line, numbers)
    pinned = line.start + middle * line.direction
    special = _special(pieces, numbers, k)
    with threadpool_limits(1):
        walker = Walker(pieces, min(LINES, len(numbers)))
        network = Direction(walker, line)
        for begin in range(0, len(numbers), LINES):
            Z = numbers[begin : begin + LINES].copy()
            Z[:, line.positions] = pinned
            workspace = walker.workspace()
            value, slope, knots = network.walk(Z, np.ones(len(Z)), workspace)
            starts = np.concatenate([[0], knots.ends[:-1]])
            for i, (start, end) in enumerate(zip(starts, knots.ends, strict=True)):
                table = np.ascontiguousarray(knots.table[start:end])
                curve = sum_one_kind(table, value[i], slope[i], Arena(0))
                curve.slopes[0], curve.slopes[-1] = -network.rays[1], network.rays[0]
                yield replace(
                    curve, name=pieces.names[k], origin=line.origin, middle=middle,
                    special=special[begin + i],
                )  # fmt: skip
            walker.free.append(workspace)


def _special(pieces: ReluNetwork, numbers: np.ndarray, k: int) -> np.ndarray:
    """Return f at missing, -inf and inf in each row, (n, 3, k), NaN if they are not accepted."""
    line = pieces.lines[k]
    result = np.full((len(numbers), 3, pieces.n_outputs), np.nan)
    inputs: list[Any] = [line.missing, None, None]
    if line.infinite:
        with np.errstate(invalid="ignore"):
            inputs[1:] = np.array([[-np.inf], [np.inf]]) * line.direction + line.start
    for i, number in enumerate(inputs):
        if number is not None:
            Z = numbers.copy()
            Z[:, line.positions] = number
            result[:, i] = pieces.forward(Z)
    return result
