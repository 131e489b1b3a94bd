"""Single rows as functions of one column: f(t, x_{i,-j}) of each row i, by the kind of pieces.

On boxes they are steps with all jumps (boxes/row_steps.py), on additive models one term plus a
number per row, on ReLU networks piecewise linear with all knots (relu/row_lines.py); a link of
steps has the same jumps. Other models are evaluated at the values asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.curves.base import ColumnFunction
from skattr.curves.by_code import ByCode
from skattr.curves.evaluated import Evaluated, EvaluatedLevels
from skattr.engines.base import Rows
from skattr.engines.boxes.row_steps import StepsOfRows, passes
from skattr.engines.relu.row_lines import row_lines
from skattr.pieces import Additive, Boxes, Linked, Pieces, ReluNetwork

ROW_BLOCK = 65_536  # rows in one call of the model
Functions = list[ColumnFunction]  # one per row, or one whose outputs are those of all rows


def row_functions(pieces: Pieces, rows: Rows, columns: list[int], points: dict) -> list[Functions]:
    """Return f of each row as a function of one column, for some columns.

    Parameters
    ----------
    pieces : Pieces
        The model, on a grid that has the cells of the rows.
    rows : Rows
        The n rows.
    columns : list of int
        The columns.
    points : dict
        Position of a column → the values in the table of a function that is evaluated.

    Returns
    -------
    list of lists of ColumnFunction
        For each column one per row or, if their tables have the same rows, one for all of them,
        with the outputs of row 0, row 1, …
    """
    steps = _steps(pieces, rows, columns)
    known = KNOWN.get(type(pieces))
    result = []
    for k in columns:
        functions: Functions | None = None
        if k in steps:
            function = steps[k]
            whole = function.has_table
            functions = [function if whole else Evaluated(function.evaluate, points[k])]
        if functions is None and known is not None:
            functions = known(pieces, rows, k, points[k])
        if functions is None:
            functions = [_evaluated(pieces, k, points[k], _by_predictions(pieces, rows, k))]
        result.append(functions)
    return result


def _steps(pieces: Pieces, rows: Rows, columns: list[int]) -> dict[int, ColumnFunction]:
    """Return the steps of boxes, or of a link of boxes; one pass for all columns."""
    boxes = pieces.before_link
    if not isinstance(boxes, Boxes):
        return {}
    assert rows.codes is not None
    closed = [k for k in columns if not boxes.grid.cells[k].open]
    result: dict[int, ColumnFunction] = {}
    for some in passes(boxes, closed):
        steps = StepsOfRows(boxes, some)
        blocks: dict[int, list[np.ndarray]] = {k: [] for k in some}
        for start in range(0, len(rows.X), steps.block_size()):
            _, steps_of_columns = steps.of(rows.codes[:, start : start + steps.block_size()])
            for k, values in steps_of_columns:
                blocks[k].append(_columns(pieces.linked(values)))
        for k, parts in blocks.items():
            values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            result[k] = ByCode(boxes.grid, k, values)
    return result


def _columns(values: np.ndarray) -> np.ndarray:
    """Return (k, m, n) as (m, n · k)."""
    k, m, n = values.shape
    return np.ascontiguousarray(values.transpose(1, 2, 0)).reshape(m, n * k)


def _additive(pieces: Additive, rows: Rows, k: int, points: Any) -> Functions:
    rest = _without(pieces, rows, k)

    def at(values: Any) -> np.ndarray:
        return (pieces.at_values(k, values)[:, None] + rest).reshape(len(values), -1)

    return [_evaluated(pieces, k, points, at)]


def _without(pieces: Additive, rows: Rows, k: int) -> np.ndarray:
    """Return f without the term of column k, (n, n_outputs)."""
    terms = pieces.contributions(rows.X)
    others = [i for i in range(terms.shape[1]) if i != k]
    return pieces.constant + terms[:, others].sum(axis=1)


def _lines(pieces: ReluNetwork, rows: Rows, k: int, points: Any) -> Functions:
    if k in pieces.lines:
        return list(row_lines(pieces, rows.X, k))
    return [_evaluated(pieces, k, points, _by_passes(pieces, rows, k))]


def _by_passes(pieces: ReluNetwork, rows: Rows, k: int) -> Callable[[Any], np.ndarray]:
    """Return forward passes of all rows, one per value."""
    numbers = pieces.numbers(rows.X)

    def at(values: Any) -> np.ndarray:
        table = frames.with_columns(pieces.row.X, {k: values})
        positions, inputs = pieces.own_numbers(table, (k,))
        Z = numbers.copy()
        result = []
        for value in inputs:
            Z[:, positions] = value
            result.append(pieces.forward(Z).ravel())
        return np.array(result).reshape(len(inputs), -1)

    return at


def _linked(pieces: Linked, rows: Rows, k: int, points: Any) -> Functions | None:
    inner = pieces.inner
    if type(inner) not in MARGINS:
        return None
    margins = MARGINS[type(inner)](inner, rows, k)

    def at(values: Any) -> np.ndarray:
        inner_margins = margins(values).reshape(-1, inner.n_outputs)
        return pieces.outputs(inner_margins).reshape(len(values), -1)

    return [_evaluated(pieces, k, points, at)]


def _additive_margins(pieces: Additive, rows: Rows, k: int) -> Callable[[Any], np.ndarray]:
    (function,) = _additive(pieces, rows, k, np.empty(0))
    return lambda values: function.at(None, values)[0]


def _by_predictions(pieces: Pieces, rows: Rows, k: int) -> Callable[[Any], np.ndarray]:
    """Return the model's own predictions, of all rows at each value."""

    def at(values: Any) -> np.ndarray:
        n, m = len(rows.X), len(values)
        step = max(1, ROW_BLOCK // max(n, 1))
        result = []
        for start in range(0, m, step):
            some = frames.take_values(values, np.arange(start, min(start + step, m)))
            index = np.tile(np.arange(n), len(some))
            table = frames.take_rows(rows.X, index)
            column = frames.take_values(some, np.repeat(np.arange(len(some)), n))
            result.append(pieces.predict(_put(table, k, column)).reshape(len(some), -1))
        return np.concatenate(result)

    return at


def _put(table: Any, k: int, column: Any) -> Any:
    """Return rows with the values of a column replaced."""
    source = frames.with_columns(frames.take_rows(table, slice(1)), {k: column})
    others = np.arange(len(table))[:, None].repeat(len(frames.labels(table)), axis=1)
    others[:, k] += len(table)
    return frames.mixed(frames.concatenate([table, source]), others)


def _evaluated(
    pieces: Pieces, k: int, points: Any, function: Callable[[Any], np.ndarray]
) -> ColumnFunction:
    levels = pieces.level_values(k)
    if levels is not None:
        return EvaluatedLevels(function, *levels)
    return Evaluated(function, points)


KNOWN: dict[type[Pieces], Callable[..., Functions | None]] = {
    Additive: _additive,
    ReluNetwork: _lines,
    Linked: _linked,
}
MARGINS: dict[type[Pieces], Callable[..., Callable[[Any], np.ndarray]]] = {
    Additive: _additive_margins,
    ReluNetwork: _by_passes,
}
