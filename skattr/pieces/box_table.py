"""From trees over inputs to trees over codes: the grid of several parts, and their joint table."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr import frames
from skattr.kernels.boxes import COLUMN, LEFT, MISSING, RIGHT, SPLIT, Table
from skattr.pieces.cells.enumeration import enumerate_cells
from skattr.pieces.cells.grid import Grid
from skattr.pieces.cells.levels import UnnamedLevel
from skattr.pieces.parts import Trees
from skattr.pieces.preprocessing.pipeline import Preprocessing
from skattr.pieces.preprocessing.routes import Input, Route
from skattr.pieces.preprocessing.tracks import DISCRETE, FREE, LEVELS, RAW, Track


def join_inputs(
    parts: list[Trees], nodes: list[dict[int, np.ndarray]], row: Any
) -> tuple[Grid, list[dict[int, Input]]]:
    """Join what all parts tell apart in each raw column.

    Parameters
    ----------
    parts : list of Trees
    nodes : list of dicts
        For each part the nodes at which each input is compared.
    row : table (1, d)
        One row of X.

    Returns
    -------
    grid : Grid
    sources : list of dicts
        For each part the Input of each of its inputs that is compared.
    """
    chains: dict = {}
    route_of: dict = {}
    for part in parts:
        if part.chain not in chains:
            chains[part.chain] = Preprocessing(part.steps, row) if part.steps else None
        route_of.setdefault((part.chain, id(part.front)), Route(chains[part.chain], part.front))
    routes = list(route_of.values())
    columns: list[dict] = [{} for _ in frames.labels(row)]
    levels: dict[int, list] = {}
    sources: list[dict] = []
    for part, compared in zip(parts, nodes, strict=True):
        i = list(route_of).index((part.chain, id(part.front)))
        of_part = {}
        for c in [*compared, *(c for c in part.levels if c not in compared)]:
            track = routes[i].track(c)
            is_levels = c in part.levels
            if is_levels and part.steps:
                track = _behind_steps(track, part.levels[c])
            # inputs that are the same number up to a cast are one input
            same = ("raw",) if track.kind == RAW else (part.chain, int(part.front.columns[c]))
            key: tuple = (i, c) if is_levels else same
            source = columns[track.column].setdefault(key, Input(i, c, track))
            if is_levels:
                source.n_levels = len(part.levels[c])
                levels[id(source)] = part.levels[c]
            else:
                edges = part.edge[compared[c]]
                # +inf only tells missing from present: it is not an edge, all ranks but 0 go left
                source.edges = np.union1d(source.edges, edges[edges < np.inf])
                if routes[i].front.dtype.itemsize > routes[source.route].front.dtype.itemsize:
                    source.route, source.place = i, c  # the wider type has all digits
            of_part[c] = source
        sources.append(of_part)
    inputs_of = [list(inputs.values()) for inputs in columns]
    return enumerate_cells(routes, inputs_of, levels, row), sources


def _behind_steps(track: Track, levels: list) -> Track:
    """Return the track of an input of levels that has steps before it.

    Unnamed levels cannot be sent through the steps: if these pass values on unchanged, the model's
    own numbers are used.
    """
    if not any(type(level) is UnnamedLevel for level in levels):
        return track.discretized(LEVELS, levels)
    return track if track.kind in (RAW, *DISCRETE) else track.then(FREE)


def compile_table(
    parts: list[Trees], nodes_of: list[dict], sources: list[dict], grid: Grid, constant: np.ndarray
) -> Table:
    """Translate all parts to codes; the median leaf of each tree is added to `constant`."""
    sets: dict[bytes, int] = {}  # each distinct set, and where it starts
    tables, roots, values = [], [], []
    n_nodes = n_boxes = 0
    for part, compared, inputs in zip(parts, nodes_of, sources, strict=True):
        nodes = np.empty((len(part.column), 5), np.int32)
        leaf = part.column < 0
        nodes[:, COLUMN] = -1
        nodes[:, LEFT] = part.left + n_nodes
        nodes[leaf, LEFT] = n_boxes + np.arange(len(part.values))
        nodes[:, RIGHT] = part.right + n_nodes
        nodes[:, SPLIT] = 0
        nodes[:, MISSING] = part.missing_left
        by_source: dict[int, list] = {}
        for c, at in compared.items():
            by_source.setdefault(id(inputs[c]), []).append(at)
        for k, cells in enumerate(grid.cells):
            for source, ranks in zip(cells.inputs, cells.ranks_by_input(), strict=True):
                for at in by_source.get(id(source), []):
                    nodes[at, COLUMN] = k
                    split = _split_sets if source.n_levels else _split_edges
                    splits, missing = split(part, at, source, ranks, cells.ordered, sets)
                    nodes[at, SPLIT], nodes[at, MISSING] = splits, missing
        tables.append(nodes)
        roots.append(np.stack([part.roots + n_nodes, part.outputs], axis=1))
        values.append(_centred(part, constant))
        n_nodes += len(nodes)
        n_boxes += len(part.values)
    return Table(
        np.concatenate(tables),
        np.concatenate(roots).astype(np.int32),
        np.concatenate(values),
        np.frombuffer(b"".join(sets), np.uint8).copy(),  # writable, as it is after a pickle
        grid.offset,
        np.array([not cells.ordered for cells in grid.cells], np.uint8),
        max(part.depth for part in parts),
    )


def _split_edges(
    part: Trees, at: np.ndarray, source: Input, ranks: np.ndarray, ordered: bool, sets: dict
) -> tuple[Any, Any]:
    """Return the splits of nodes at edges of an input, and whether code 0 goes left.

    `ranks` are those of the input by code.
    """
    last = np.searchsorted(source.edges, part.edge[at]) + 1  # the last rank that goes left
    last[part.edge[at] == np.inf] = len(source.edges) + 1
    missing = part.missing_left[at].astype(bool)
    code_0 = np.where(ranks[0] == 0, missing, ranks[0] <= last)
    if ordered:
        return np.searchsorted(ranks[1:], last, side="right"), code_0
    kinds, which = np.unique(2 * last + missing, return_inverse=True)
    members = [np.where(ranks == 0, kind % 2, ranks <= kind // 2) for kind in kinds]
    return np.array([_start_of(m.astype(np.uint8), sets) for m in members])[which], code_0


def _split_sets(
    part: Trees, at: np.ndarray, source: Input, ranks: np.ndarray, ordered: bool, sets: dict
) -> tuple[Any, Any]:
    """Return the splits of nodes at sets of levels of an input, and whether code 0 goes left."""
    assert part.members is not None and part.sets is not None
    c = part.column[at[0]]
    known = np.append(False, part.known[c])
    starts, code_0 = [], []
    for node in at:
        left = np.append(0, part.sets[part.members[node], : len(part.levels[c])])
        goes = np.where(known, left, part.missing_left[node])[ranks].astype(np.uint8)
        starts.append(_start_of(goes, sets))
        code_0.append(goes[0])
    return np.array(starts), np.array(code_0)


def _start_of(members: np.ndarray, sets: dict[bytes, int]) -> int:
    """Return where a set starts among all sets, adding it if it is new."""
    last = next(reversed(sets), b"")
    return sets.setdefault(members.tobytes(), sets.get(last, 0) + len(last))


def _centred(part: Trees, constant: np.ndarray) -> np.ndarray:
    """Return the values less each tree's median leaf, which is added to the constant."""
    n_leaves = part.n_leaves()
    trees = np.split(part.values, np.cumsum(n_leaves)[:-1])
    medians = np.array([np.median(values, axis=0) for values in trees])
    width = part.values.shape[1]
    for output in np.unique(part.outputs):
        constant[output : output + width] += medians[part.outputs == output].sum(axis=0)
    return part.values - np.repeat(medians, n_leaves, axis=0)
