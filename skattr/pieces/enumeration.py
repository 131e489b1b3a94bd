"""From what a model asks for to the cells of each raw column.

Cells are enumerated from the model's edges and from the fitted steps, never from data:

- a number that reaches the model as it is: between its edges;
- levels: every level that an encoder knows, one that none knows, and missing, sent through the
  steps;
- one input: all its ranks, whatever the steps do;
- several inputs that are monotone or jump at known cuts: between all places on the raw scale where
  one of them changes rank, found by bisection;
- else the column is open.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from skattr import frames
from skattr.pieces.bisection import between, jumps, reach
from skattr.pieces.cells import GONE, Cells, Nameless, Ranks, unknown_level
from skattr.pieces.grid import NEAR, Grid, halves
from skattr.pieces.routes import Input, Route
from skattr.pieces.steps import CUTS, LEVELS, MISSING, MONOTONE, NUMBER, RAW
from skattr.storage import PicklableTable

NARROW = 64  # inputs of a column up to which all their ranks are kept, else what differs


def build(routes: list[Route], asked: list[list[Input]], levels: dict, row: Any) -> Grid:
    """Return the grid of a model.

    `asked` are the inputs from each raw column, `levels` the raw levels of those (by identity) that
    are found in sets, `row` is one row of X.
    """
    cells = [Cells(inputs, np.zeros((1, len(inputs)), np.int32), open=True) for inputs in asked]
    grid = Grid(routes, cells, PicklableTable(row))
    todo: dict[int, list] = {}  # columns of levels
    for k, inputs in enumerate(asked):
        kinds = [source.track.effective for source in inputs]
        numbers = [kind for kind in kinds if kind != MISSING]
        model_levels = [source for source in inputs if source.n_levels]
        if not inputs:
            cells[k] = _ignored(grid, k)
        elif len(model_levels) == len(inputs) and all(kind == RAW for kind in kinds):
            cells[k] = _model_levels(inputs, levels)
        elif kinds == [RAW]:
            cells[k] = _numbers(grid, k)
        elif not numbers:
            cells[k] = _there_or_not(grid, k)
        elif all(kind in (LEVELS, MISSING) for kind in kinds):
            tracks = {id(source.track): source.track for source in inputs}.values()
            known = [v for track in tracks for v in (*track.known, *track.replaced)]
            todo[k] = list(dict.fromkeys(v for v in known if not frames.is_missing(v)))
        elif len(inputs) == 1 and not model_levels:
            ranks = np.arange(len(inputs[0].edges) + 2, dtype=np.int32)[:, None]
            cells[k] = Cells(inputs, ranks)
        elif len(numbers) == 1 and numbers[0] in (*NEAR, MONOTONE, NUMBER):
            cells[k] = _with_indicators(grid, k)
        elif set(kinds) <= {*NEAR, MONOTONE, CUTS, MISSING} and not model_levels:
            cells[k] = _between_cuts(grid, k)
    _enumerate_levels(grid, todo)
    return Grid(routes, cells, grid.row)


def _ignored(grid: Grid, k: int) -> Cells:
    """Return the one cell of a column that the model never asks for; it may still refuse values."""
    fronts = [route.front for route in grid.routes if route.steps is None]
    tracks = grid.tracks[k]
    levels = list(dict.fromkeys(v for t in tracks if t.kind == LEVELS for v in t.known))
    number = frames.is_number(grid.row.X, k)
    return Cells(
        [],
        np.zeros((2, 0), np.int32),
        edges=np.empty(0) if number and not tracks else None,
        labels=[(v, 1) for v in levels if not frames.is_missing(v)] if levels else None,
        takes_missing=all(front.takes_missing for front in fronts),
        takes_infinite=all(front.takes_infinite for front in fronts),
        partition=(np.array([-np.inf, np.inf]), np.ones(1, np.int64)),
    )


def _numbers(grid: Grid, k: int) -> Cells:
    """Return the cells of a number that reaches the model as it is."""
    routes, (source,) = grid.routes, grid.cells[k].inputs
    fronts = [r.front for r in routes if r.steps is None or k in r.steps.untouched]
    edges = source.edges
    plain = all(route.steps is None for route in routes)
    partition = None if plain else (np.r_[-np.inf, edges, np.inf], np.arange(1, len(edges) + 2))
    return Cells(
        [source],
        np.arange(len(edges) + 2, dtype=np.int32)[:, None],
        edges=edges if plain else None,
        takes_missing=all(front.takes_missing for front in fronts),
        takes_infinite=all(front.takes_infinite for front in fronts),
        dtype=routes[source.route].front.dtype,
        partition=partition,
    )


def _model_levels(inputs: list[Input], levels: dict) -> Cells:
    """Return the cells of a column whose levels the model itself numbers; others are missing."""
    every = list(dict.fromkeys(v for source in inputs for v in levels[id(source)]))
    ranks = np.zeros((len(every) + 1, len(inputs)), np.int32)
    for s, source in enumerate(inputs):
        number = {level: i + 1 for i, level in enumerate(levels[id(source)])}
        ranks[1:, s] = [number.get(level, 0) for level in every]
    labels = [
        (level, code) for code, level in enumerate(every, start=1) if type(level) is not Nameless
    ]
    return Cells(inputs, ranks, labels=labels)


# -- levels, sent through the fitted steps -------------------------------------------------------


def _enumerate_levels(grid: Grid, todo: dict[int, list]) -> None:
    """Send all levels of all columns through the steps, and give each signature a code.

    So do one level that no step knows, and missing, where the steps take them.
    """
    base = grid.row_ranks(todo)
    probe = partial(_probe_if_taken, grid, base=base)
    levels = probe({k: v for k, v in todo.items() if v})
    refused = [k for k, v in todo.items() if v and k not in levels]
    taken = todo | {k: [v for v in todo[k] if probe({k: [v]})] for k in refused}
    levels |= _probe(grid, {k: taken[k] for k in refused if taken[k]}, base)
    none, nan = (probe({k: [gone] for k in todo}) for gone in GONE)
    unknown = {k: u for k, v in todo.items() if (u := unknown_level(v)) is not None}
    other = probe({k: [u] for k, u in unknown.items()})
    for k, known in taken.items():
        inputs = grid.cells[k].inputs
        parts = [ranks[k] for ranks in (levels, nan, other) if k in ranks]
        missing = none.get(k, nan.get(k))
        if missing is None:  # no value has this signature
            missing = Ranks.of(np.full((len(inputs), 1), -1), base[k], 1)
        signatures = _distinct(Ranks.joined([missing, *parts]))
        code_of = {key: code for code, key in enumerate(signatures.keys())}
        labels = [
            (v, code_of[key])
            for v, key in zip(known, levels[k].keys() if known else [], strict=True)
        ]
        narrow = len(inputs) <= NARROW
        grid.cells[k] = Cells(inputs, signatures.dense() if narrow else signatures, labels=labels)


def _distinct(ranks: Ranks) -> Ranks:
    """Return the distinct rows: the first, then the others, in order of ranks if they are few."""
    keys = ranks.keys()
    first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
    ranks = ranks.take(sorted(first.values()))
    if len(ranks.base) > NARROW:
        return ranks
    return ranks.take([0, *(1 + np.lexsort(ranks.dense()[1:, ::-1].T)).tolist()])


def _probe(
    grid: Grid, values: dict[int, list], base: dict[int, np.ndarray] | None = None
) -> dict[int, Ranks]:
    """Send values of several columns through the steps at once; return their signatures."""
    if not values:
        return {}
    base = grid.row_ranks(values) if base is None else base
    n = max(map(len, values.values()))
    columns = {k: _repeated(v, n) for k, v in values.items()}
    parts: dict[int, list] = {k: [] for k in values}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unknown categories, which are what is asked for
        rows = grid.rows_with(columns)
        for block in grid.blocks(n):
            inputs = [route.inputs(frames.take_rows(rows, block)) for route in grid.routes]
            for k, found in parts.items():
                found.append(grid.ranks(k, inputs, base[k]))
    return {k: Ranks.joined(found).take(range(len(values[k]))) for k, found in parts.items()}


def _probe_if_taken(
    grid: Grid, values: dict[int, list], base: dict[int, np.ndarray] | None = None
) -> dict[int, Ranks]:
    """Do the same with values that the steps may refuse; if they do, by halves."""
    values = {k: v for k, v in values.items() if not any(grid.refuses(k, one) for one in v)}
    try:
        return _probe(grid, values, base)
    except (TypeError, ValueError):
        if len(values) == 1:
            return {}
    return {k: r for half in halves(values) for k, r in _probe_if_taken(grid, half, base).items()}


def _repeated(values: list, n: int) -> pd.Series:
    return frames.as_column([values[i % len(values)] for i in range(n)])


# -- numbers, ranked behind the fitted steps -----------------------------------------------------


def _missing(grid: Grid, k: int) -> np.ndarray:
    """Return the signature of missing in a column of numbers; -1 is what no value has."""
    for gone in reversed(GONE):  # NaN is a missing number, None may be an object to a step
        found = _probe_if_taken(grid, {k: [gone]})
        if found:
            return found[k].dense()
    return np.full((1, len(grid.cells[k].inputs)), -1, np.int32)


def _there_or_not(grid: Grid, k: int) -> Cells:
    """Return the cells of a column of which the model is told only whether it is missing."""
    inputs = grid.cells[k].inputs
    present = _probe(grid, {k: [grid.present(k)]})[k].dense()
    missing = _missing(grid, k)
    whole = (np.array([-np.inf, np.inf]), np.ones(1, np.int64))
    return Cells(inputs, np.concatenate([missing, present]), partition=whole)


def _with_indicators(grid: Grid, k: int) -> Cells:
    """Return the cells of one number and of indicators that tell only whether it is missing."""
    inputs = grid.cells[k].inputs
    main = next(s for s, source in enumerate(inputs) if source.track.kind != MISSING)
    present = _probe(grid, {k: [grid.present(k)]})[k].dense()[0]
    signatures = np.tile(present, (len(inputs[main].edges) + 2, 1))
    signatures[:, main] = np.arange(len(signatures))
    signatures[0] = _missing(grid, k)[0]
    return Cells(inputs, signatures)


def _between_cuts(grid: Grid, k: int) -> Cells:
    """Return the cells of several inputs that are monotone or jump at known cuts."""
    inputs = grid.cells[k].inputs
    found = [np.empty(0)]
    for s, source in enumerate(inputs):
        if source.track.kind in NEAR:
            found.append(source.edges)
        elif source.track.kind == CUTS:
            found.append(np.array(source.track.known, float))
        elif source.track.kind == MONOTONE:
            rank = grid.ranker(k, s)
            found.append(jumps(rank, *reach(rank, float(grid.present(k)))))
    cuts = np.unique(np.concatenate(found))
    ends = np.r_[-np.inf, cuts[np.isfinite(cuts)], np.inf]
    signatures = _probe(grid, {k: between(ends).tolist()})[k].dense()
    first = _missing(grid, k)
    rows, codes = [first[0]], []
    place = {first[0].tobytes(): 0}
    for row in signatures:
        if row.tobytes() not in place:
            place[row.tobytes()] = len(rows)
            rows.append(row)
        codes.append(place[row.tobytes()])
    return Cells(inputs, np.array(rows, np.int32), partition=(ends, np.array(codes)))
