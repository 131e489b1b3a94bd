"""Enumeration of the cells of each raw column.

Cells are enumerated from the model's edges and from the fitted steps, never from data:

- a number that reaches the model unchanged: between its edges;
- levels: every level that an encoder knows, one that no encoder knows, and missing, sent through
  the steps;
- one input: all its ranks, whatever the steps do;
- several inputs that are monotone or jump at known cuts: between all points of the raw scale where
  one of them changes rank, found by bisection;
- else the column is open.
"""

from __future__ import annotations

import warnings
from functools import partial
from itertools import cycle, islice
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.pieces.cells.bisection import between, jumps, reach
from skattr.pieces.cells.cells import Cells, Ranks
from skattr.pieces.cells.grid import Grid, by_halves
from skattr.pieces.cells.levels import MISSING_VALUES, UnnamedLevel, unknown_level
from skattr.pieces.preprocessing.routes import Input, Route
from skattr.pieces.preprocessing.tracks import Kind

Base = dict[int, np.ndarray] | None  # the base row of each column's signatures
BISECTED = {*Kind.UNCHANGED, Kind.MONOTONE, Kind.CUTS, Kind.MISSING}  # kinds with known jumps
NARROW = 64  # inputs of a column up to which signatures are kept dense


def enumerate_cells(
    routes: list[Route], inputs_of: list[list[Input]], levels: dict[int, list], row: Any
) -> Grid:
    """Return the grid of a model.

    `inputs_of` are the inputs that come from each raw column, `levels` the raw levels of those that
    are looked up in sets (by the id of the Input), `row` is one row of X.
    """
    cells = [Cells(inputs, np.zeros((1, len(inputs)), np.int32), open=True) for inputs in inputs_of]
    grid = Grid(routes, cells, PicklableTable(row))
    levels_of: dict[int, list] = {}  # columns of levels, which are enumerated together
    for k, inputs in enumerate(inputs_of):
        kinds = [source.track.effective_kind for source in inputs]
        numbers = [kind for kind in kinds if kind != Kind.MISSING]
        model_levels = [source for source in inputs if source.n_levels]
        if not inputs:
            cells[k] = _ignored(grid, k)
        elif len(model_levels) == len(inputs) and all(kind == Kind.RAW for kind in kinds):
            cells[k] = _model_levels(inputs, levels)
        elif kinds == [Kind.RAW]:
            cells[k] = _numbers(grid, k)
        elif not numbers:
            cells[k] = _present_or_missing(grid, k)
        elif all(kind in (Kind.LEVELS, Kind.MISSING) for kind in kinds):
            tracks = {id(source.track): source.track for source in inputs}.values()
            known = [v for track in tracks for v in (*track.known, *track.replaced)]
            levels_of[k] = _levels(grid, k, known)
        elif len(inputs) == 1 and not model_levels:
            ranks = np.arange(len(inputs[0].edges) + 2, dtype=np.int32)[:, None]
            cells[k] = Cells(inputs, ranks)
        elif len(numbers) == 1 and numbers[0] in (*Kind.UNCHANGED, Kind.MONOTONE, Kind.NUMBER):
            cells[k] = _with_indicators(grid, k)
        elif BISECTED.issuperset(kinds) and not model_levels:
            cells[k] = _between_cuts(grid, k)
    _enumerate_levels(grid, levels_of)
    return Grid(routes, cells, grid.row)


def _levels(grid: Grid, k: int, known: list) -> list:
    """Return the levels that steps know, once each, named as the column names them."""
    levels = list(dict.fromkeys(v for v in known if not frames.is_missing(v)))
    return frames.as_categories(grid.row.X, k, levels)


def _ignored(grid: Grid, k: int) -> Cells:
    """Return the one cell of a column that the model does not use; it may still refuse values."""
    fronts = [route.front for route in grid.routes if route.steps is None]
    tracks = grid.tracks[k]
    known = [v for t in tracks if t.kind == Kind.LEVELS for v in t.known]
    # a step may refuse values even of a column whose output a later step drops
    plain = frames.is_number(grid.row.X, k) and not grid.behind_steps
    return Cells(
        [],
        np.zeros((2, 0), np.int32),
        edges=np.empty(0) if plain else None,
        labels=[(v, 1) for v in _levels(grid, k, known)] if known else None,
        takes_missing=all(front.takes_missing for front in fronts),
        takes_infinite=all(front.takes_infinite for front in fronts),
        partition=(np.array([-np.inf, np.inf]), np.ones(1, np.int64)),
    )


def _numbers(grid: Grid, k: int) -> Cells:
    """Return the cells of a number that reaches the model unchanged."""
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
    known = list(dict.fromkeys(v for source in inputs for v in levels[id(source)]))
    ranks = np.zeros((len(known) + 1, len(inputs)), np.int32)
    for s, source in enumerate(inputs):
        number = {level: i + 1 for i, level in enumerate(levels[id(source)])}
        ranks[1:, s] = [number.get(level, 0) for level in known]
    labels = [(v, code) for code, v in enumerate(known, start=1) if type(v) is not UnnamedLevel]
    return Cells(inputs, ranks, labels=labels, anonymous=not labels)


# -- levels, sent through the fitted steps -------------------------------------------------------


def _enumerate_levels(grid: Grid, levels_of: dict[int, list]) -> None:
    """Send all levels of all columns through the steps, and give each signature a code.

    One level that no step knows, and missing, are sent as well, where the steps accept them.
    """
    base = grid.row_ranks(levels_of)
    probe = partial(_probe_if_accepted, grid, base=base)
    known = probe({k: v for k, v in levels_of.items() if v})
    refused = [k for k, v in levels_of.items() if v and k not in known]
    accepted = levels_of | {k: [v for v in levels_of[k] if probe({k: [v]})] for k in refused}
    known |= _probe(grid, {k: accepted[k] for k in refused if accepted[k]}, base)
    none, nan = (probe({k: [missing] for k in levels_of}) for missing in MISSING_VALUES)
    unknown = {k: u for k, v in levels_of.items() if (u := unknown_level(v)) is not None}
    other = probe({k: [u] for k, u in unknown.items()})
    for k, levels in accepted.items():
        inputs = grid.cells[k].inputs
        parts = [ranks[k] for ranks in (known, nan, other) if k in ranks]
        missing = none.get(k, nan.get(k))
        if missing is None:  # no value has this signature
            missing = Ranks.of(np.full((len(inputs), 1), -1), base[k], 1)
        signatures = _distinct(Ranks.joined([missing, *parts]))
        code_of = {key: code for code, key in enumerate(signatures.keys())}
        keys = known[k].keys() if levels else []
        labels = [(level, code_of[key]) for level, key in zip(levels, keys, strict=True)]
        narrow = len(inputs) <= NARROW
        grid.cells[k] = Cells(inputs, signatures.dense() if narrow else signatures, labels=labels)


def _distinct(ranks: Ranks) -> Ranks:
    """Return the distinct rows: the first, then the others, sorted if there are few inputs."""
    keys = ranks.keys()
    first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
    ranks = ranks.take(sorted(first.values()))
    if len(ranks.base) > NARROW:
        return ranks
    return ranks.take([0, *(1 + np.lexsort(ranks.dense()[1:, ::-1].T)).tolist()])


def _probe(grid: Grid, values: dict[int, list], base: Base = None) -> dict[int, Ranks]:
    """Send values of several columns through the steps at once; return their signatures."""
    if not values:
        return {}
    base = grid.row_ranks(values) if base is None else base
    n = max(map(len, values.values()))
    columns = {k: frames.as_column([*islice(cycle(v), n)]) for k, v in values.items()}
    parts: dict[int, list] = {k: [] for k in values}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unknown categories, which are sent on purpose
        rows = grid.rows_with(columns)
        for block in grid.blocks(n):
            inputs = [route.inputs(frames.take_rows(rows, block)) for route in grid.routes]
            for k, ranks in parts.items():
                ranks.append(grid.ranks(k, inputs, base[k]))
    return {k: Ranks.joined(ranks).take(range(len(values[k]))) for k, ranks in parts.items()}


def _probe_if_accepted(grid: Grid, values: dict[int, list], base: Base = None) -> dict[int, Ranks]:
    """Do the same with values that the steps may refuse."""
    values = {k: v for k, v in values.items() if not any(grid.refuses(k, one) for one in v)}
    return by_halves(values, lambda some: _probe(grid, some, base))


# -- numbers, ranked behind the fitted steps -----------------------------------------------------


def _missing(grid: Grid, k: int) -> np.ndarray:
    """Return the signature of missing in a column of numbers; -1 if it is not accepted."""
    for value in reversed(MISSING_VALUES):  # NaN is a number, None may be an object to a step
        ranks = _probe_if_accepted(grid, {k: [value]})
        if ranks:
            return ranks[k].dense()
    return np.full((1, len(grid.cells[k].inputs)), -1, np.int32)


def _present_or_missing(grid: Grid, k: int) -> Cells:
    """Return the cells of a column of which the model sees only whether it is missing."""
    inputs = grid.cells[k].inputs
    present = _probe(grid, {k: [grid.present(k)]})[k].dense()
    missing = _missing(grid, k)
    whole = (np.array([-np.inf, np.inf]), np.ones(1, np.int64))
    return Cells(inputs, np.concatenate([missing, present]), partition=whole)


def _with_indicators(grid: Grid, k: int) -> Cells:
    """Return the cells of one number and of indicators of whether it is missing."""
    inputs = grid.cells[k].inputs
    main = next(s for s, source in enumerate(inputs) if source.track.kind != Kind.MISSING)
    present = _probe(grid, {k: [grid.present(k)]})[k].dense()[0]
    signatures = np.tile(present, (len(inputs[main].edges) + 2, 1))
    signatures[:, main] = np.arange(len(signatures))
    signatures[0] = _missing(grid, k)[0]
    return Cells(inputs, signatures)


def _between_cuts(grid: Grid, k: int) -> Cells:
    """Return the cells of several inputs that are monotone or jump at known cuts."""
    inputs = grid.cells[k].inputs
    changes = [np.empty(0)]
    for s, source in enumerate(inputs):
        if source.track.kind in Kind.UNCHANGED:
            changes.append(grid.raw_cuts(k, source.edges))
        elif source.track.kind == Kind.CUTS:
            changes.append(grid.raw_cuts(k, source.track.known))
        elif source.track.kind == Kind.MONOTONE:
            rank = grid.ranker(k, s)
            changes.append(jumps(rank, *reach(rank, float(grid.present(k)))))
    cuts = np.unique(np.concatenate(changes))
    ends = np.r_[-np.inf, cuts[np.isfinite(cuts)], np.inf]
    signatures = _probe(grid, {k: between(ends).tolist()})[k].dense()
    missing = _missing(grid, k)[0]
    rows, codes = [missing], []
    code_of = {missing.tobytes(): 0}
    for row in signatures:
        if row.tobytes() not in code_of:
            code_of[row.tobytes()] = len(rows)
            rows.append(row)
        codes.append(code_of[row.tobytes()])
    return Cells(inputs, np.array(rows, np.int32), partition=(ends, np.array(codes)))
