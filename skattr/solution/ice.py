"""The curves of single rows (ICE), with the names that `Curves` presents."""

from __future__ import annotations

from typing import Any

import pandas as pd

from skattr._inputs import frames
from skattr.curves import Curves
from skattr.curves.evaluated import Booleans
from skattr.engines.single_rows import row_functions
from skattr.solution.column_curves import column_of
from skattr.solution.seen import SeenColumns
from skattr.solution.solution import Solution


def ice(solution: Solution, seen: SeenColumns, rows: Any, X: Any, feature: Any) -> Curves:
    """Return f at rows as functions of one column; X are the rows as the user gave them."""
    k = column_of(feature, solution, "ice")
    (curves,) = curves_of_rows(solution, seen, rows, X, [k])
    return curves


def curves_of_rows(
    solution: Solution, seen: SeenColumns, rows: Any, X: Any, columns: list[int]
) -> list[Curves]:
    """Return f at rows as functions of one column, for some columns."""
    model = solution.model
    pieces, encoded = model.encode(rows, model.pieces)
    assert pieces is not None
    points = {
        k: seen.points[k] if k in seen.points else frames.sorted_values(frames.column(rows, k))
        for k in columns
    }
    result = []
    functions_of_columns = row_functions(pieces, encoded, columns, points)
    for k, functions in zip(columns, functions_of_columns, strict=True):
        if frames.is_boolean(model.row.X, k):
            functions = [Booleans(function) for function in functions]
        linear = functions[0].kind == "linear" and k in seen.points
        result.append(
            Curves(
                model.names[k],
                tuple(model.output.names),
                functions,
                X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(X)),
                X,
                model.scale,
                seen.span(k) if linear else None,
            )
        )
    return result
