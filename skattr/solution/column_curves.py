"""The curve of a column, with the names and the range that `Curve` presents."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr.curves import Curve
from skattr.curves.background import BackgroundErrors
from skattr.curves.base import ColumnFunction
from skattr.curves.evaluated import Booleans, Evaluated, EvaluatedLevels
from skattr.engines import RunOptions
from skattr.solution.read_model import ReadModel
from skattr.solution.seen import SeenColumns
from skattr.solution.solution import Solution


def column_curve(solution: Solution, seen: SeenColumns, feature: Any, options: RunOptions) -> Curve:
    """Return the attribution of a column, given by name or position, as a function of its value."""
    model = solution.model
    a = _attribution(feature, solution)
    (k,) = solution.attributions[a]
    row_terms = [repr(t.measure) for t in solution.terms if t.measure.depends == "row"]
    if row_terms:
        raise ValueError(
            f"{', '.join(row_terms)} depends on the whole row: there is no curve; use explain, and "
            "skattr.plot.scatter to draw the values of many rows against a column"
        )
    integrate = partial(solution.at_values, a, options)
    function = solution.curve(a, integrate) or _evaluated(model, seen, k, integrate)
    return Curve(
        model.names[k],
        tuple(model.output.names),
        Booleans(function) if frames.is_boolean(model.row.X, k) else function,
        offset=solution.offset.value,
        scale=model.scale,
        span=seen.span(k) if function.kind == "linear" else None,
        measure_name=solution.measure.in_words(),
        order=frames.level_order(model.row.X, k),
        missing_seen=k in seen.with_missing,
        errors=_errors(solution, a, k, options),
    )


def _errors(solution: Solution, a: int, k: int, options: RunOptions) -> BackgroundErrors | None:
    if solution.folds is None:
        return None
    at = partial(solution.error_at_values, a, options)
    return BackgroundErrors(at, solution.folds.n, frames.column(solution.model.row.X, k))


def column_of(feature: Any, solution: Solution, method: str) -> int:
    """Return the position of a column; raise for the name of a group."""
    names, groups = solution.model.names, solution.attributions.names
    if isinstance(feature, Hashable) and feature in groups and feature not in names:
        raise ValueError(f"{feature!r} is a group, and only single columns have curves")
    return position(feature, names, method)


def _attribution(feature: Any, solution: Solution) -> int:
    """Return the position of the attribution of a column."""
    attributions = solution.attributions
    k = column_of(feature, solution, "curve")
    having = [a for a, columns in enumerate(attributions) if k in columns]
    a = min(having, key=lambda a: len(attributions[a]))
    if len(attributions[a]) > 1:
        raise ValueError(
            f"column {feature!r} belongs to the group {attributions.names[a]!r}, and only single "
            "columns have curves"
        )
    return a


def _evaluated(
    model: ReadModel, seen: SeenColumns, k: int, integrate: Callable[..., Any]
) -> ColumnFunction:
    """Return a function of a column that is evaluated on demand."""
    levels = model.pieces.level_values(k)
    if levels is not None:
        return EvaluatedLevels(integrate, *levels)
    return Evaluated(integrate, seen.points[k])
