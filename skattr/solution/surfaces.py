"""The surface of two columns, with the names that `Surface` presents."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.pairs import read_pair
from skattr.attributions import Pairs
from skattr.curves import Surface
from skattr.curves.pair_tables import ColumnTable, EvaluatedPair, PairTable, SumOfPairs
from skattr.engines import RunOptions
from skattr.pieces.cells import level_frame, missing_rows
from skattr.solution.column_curves import column_curve
from skattr.solution.read_model import ReadModel
from skattr.solution.seen import SeenColumns
from skattr.solution.solution import Solution


def column_pair(a: Any, b: Any, solution: Solution) -> Pairs:
    """Return the pair of two columns that have a surface."""
    row_terms = [repr(t.measure) for t in solution.terms if t.measure.depends == "row"]
    if row_terms:
        raise ValueError(
            f"{', '.join(row_terms)} depends on the whole row: there is no surface; use "
            "explain_pairs"
        )
    singles, names = solution.attributions, solution.model.names
    members = read_pair((a, b), singles, names, "surface")
    for each in members:
        if len(singles[each]) > 1:
            raise ValueError(
                f"surface: {singles.names[each]!r} is a group, and only single columns have "
                "surfaces; use explain_pairs"
            )
    return Pairs.of(singles, [members])


def pair_surface(
    solution: Solution,
    seen: SeenColumns,
    of_pairs: Solution,
    p: int,
    features: tuple[Any, Any],
    options: RunOptions,
) -> Surface:
    """Return the surface of two columns; `of_pairs` has their pair at position p."""
    singles, names = solution.attributions, solution.model.names
    a, b = read_pair(features, singles, names, "surface")
    first, second = (column_curve(solution, seen, each, options) for each in features)
    return Surface(
        (first, second),
        _pair_table(solution, of_pairs, p, (a, b), options),
        solution.offset.value,
        solution.measure.in_words(),
    )


def _pair_table(
    solution: Solution, of_pairs: Solution, p: int, members: tuple[int, int], options: RunOptions
) -> PairTable:
    swapped = members[0] > members[1]
    if of_pairs.rest[p] or any(curve.partial for _, curve in of_pairs.curved[p]):

        def integrate(first: Any, second: Any) -> np.ndarray:
            both = (second, first) if swapped else (first, second)
            return of_pairs.at_values(p, options, *both)

        return EvaluatedPair(integrate)
    constant = of_pairs.tables.constants[p] + of_pairs.estimates[p].value
    parts: list[Any] = [
        (of_pairs.all_terms[t].coefficient, curve) for t, curve in of_pairs.curved[p]
    ]
    return SumOfPairs(constant, parts, swapped, partial(_tables, solution, members, options))


def _tables(
    solution: Solution, members: tuple[int, int], options: RunOptions
) -> tuple[ColumnTable, ColumnTable] | None:
    """Return the cells of both columns with their curves, or None if they are not known."""
    tables = []
    for a in members:
        (k,) = solution.attributions[a]
        described = _describe_cells(solution.model, k)
        curve = solution.curve(a, partial(solution.at_values, a, options))
        if described is None or curve is None:
            return None
        labels, codes = described
        tables.append((labels, codes, curve.at(codes, codes)[0]))
    first, second = tables
    return first, second


def _describe_cells(model: ReadModel, k: int) -> tuple[pd.DataFrame, np.ndarray] | None:
    """Return the cells of a column as a frame, and their codes."""
    grid = model.grid
    if grid is None or grid.cells[k].open:
        return None
    if not frames.is_boolean(model.row.X, k):
        return grid.describe_cells(k)
    missing = missing_rows(grid.missing_codes(k))
    rows = [(False, "level"), (True, "level"), *(row[:2] for row in missing)]
    codes = grid.encode_values(k, pd.Series([False, True])).tolist()
    return level_frame(rows), np.array([*codes, *(row[2] for row in missing)])
