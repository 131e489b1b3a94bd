"""f as a sum of indicator functions of boxes, written as trees over codes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skattr.kernels.boxes import COLUMN, LEFT, MISSING, RIGHT, SPLIT, Table
from skattr.kernels.group_values import add_group
from skattr.pieces.base import Pieces, Unreadable
from skattr.pieces.cells import Cells, Front, Grid
from skattr.pieces.outputs import Output


@dataclass(eq=False)
class Trees:
    """What a reader finds: trees over the inputs of one front, all nodes in one table.

    A child stands behind its parent. A row whose input is missing goes where `missing_left` says;
    else it goes left if its input is <= `edge` or, at a node with `members` >= 0, if its input (a
    level's number) is a member of that set.
    """

    front: Front
    roots: np.ndarray  # (n_trees,)
    outputs: np.ndarray  # (n_trees,) the first output that a tree adds to
    column: np.ndarray  # (n_nodes,) input, or -1 at a leaf
    left: np.ndarray  # (n_nodes,)
    right: np.ndarray  # (n_nodes,)
    edge: np.ndarray  # (n_nodes,) the largest float64 that goes left
    missing_left: np.ndarray  # (n_nodes,)
    values: np.ndarray  # (n_leaves, width), in the order of the leaves
    constant: np.ndarray  # (k,) what all trees stand on
    depth: int
    members: np.ndarray | None = None  # (n_nodes,) row of `sets`, or -1
    sets: np.ndarray | None = None  # (n_sets, n_levels) whether a level goes left
    known: dict = field(default_factory=dict)  # input of levels -> which of them the model knows
    levels: dict = field(default_factory=dict)  # input of levels -> their raw values

    def nodes_of_inputs(self) -> dict[int, np.ndarray]:
        """Return for each input that is asked for the nodes that ask."""
        few = self.column.max(initial=0) < np.iinfo(np.int16).max  # small integers sort fast
        column = self.column.astype(np.int16) if few else self.column
        order = np.argsort(column, kind="stable")
        inputs, start = np.unique(column[order], return_index=True)
        found = zip(inputs.tolist(), np.split(order, start[1:]), strict=True)
        return {c: nodes for c, nodes in found if c >= 0}

    def scaled(self, factor: float) -> Trees:
        """Return factor · f."""
        return replace(self, values=self.values * factor, constant=self.constant * factor)

    def behind(self, front: Front) -> Trees:
        """Return the same trees behind another front with the same inputs."""
        return replace(self, front=front)

    def at_outputs(self, places: Any, k: int) -> Trees:
        """Return trees whose outputs stand at some places among k."""
        values = np.zeros((len(self.values), k))
        values[:, places] = self.values
        constant = np.zeros(k)
        constant[places] = self.constant
        return replace(self, values=values, constant=constant)


class Boxes(Pieces):
    """A sum of boxes over the codes of raw columns, f = constant + Σ_b v_b 1[x in box b].

    The boxes are kept as a table of nodes (`table`) and derived along paths, one tree at a time.
    Each tree's median leaf is moved into the constant, so that a large offset of f costs no
    accuracy; a single leaf that is huge costs eps times its value.
    """

    def __init__(self, parts: list[Trees], output: Output, n_columns: int) -> None:
        super().__init__(output)
        parts = [_select(part, output.columns) for part in parts]
        asked = [part.nodes_of_inputs() for part in parts]
        self.grid, splits = _grid(parts, asked, n_columns)
        self.constant = np.sum([part.constant for part in parts], axis=0)
        self.table = _table(parts, asked, splits, self.grid, self.constant)

    def evaluate(self, codes: np.ndarray) -> np.ndarray:
        """Return f at the cells of codes (d, n), (n, k)."""
        everywhere = np.ones(len(self.grid.cells), np.bool_)
        result = np.tile(self.constant, (codes.shape[1], 1))
        once, nothing = np.ones(self.n_boxes), np.zeros(self.n_boxes)
        add_group(self.table, everywhere, once, nothing, codes, result)
        return result

    @property
    def n_boxes(self) -> int:
        """Number of boxes."""
        return len(self.table.values)

    def describe(self) -> str:
        """Say how many boxes there are."""
        n_trees = len(self.table.roots)
        return f"{self.n_boxes} boxes in {n_trees} tree{'s' if n_trees != 1 else ''}"


def _select(part: Trees, columns: list[int] | None) -> Trees:
    if columns is None or part.values.shape[1] == 1:
        return part
    return replace(part, values=part.values[:, columns], constant=part.constant[columns])


def _distinct(fronts: list[Front]) -> list[Front]:
    return list({id(front): front for front in fronts}.values())


def _grid(parts: list[Trees], asked: list[dict], n_columns: int) -> tuple[Grid, dict]:
    """Join what all parts tell apart in each raw column.

    Returns also, for each part and ordered input, the last codes that go left at its nodes.
    """
    fronts = _distinct([part.front for part in parts])
    position = {id(front): i for i, front in enumerate(fronts)}
    sources: list[list] = [[] for _ in range(n_columns)]
    levels: list[dict] = [{} for _ in range(n_columns)]
    edges: list[dict] = [{} for _ in range(n_columns)]
    for i, front in enumerate(fronts):
        for c, k in enumerate(front.columns):
            sources[k].append((i, c))
    for p, (part, nodes) in enumerate(zip(parts, asked, strict=True)):
        for c, found in part.levels.items():
            levels[part.front.columns[c]][position[id(part.front)], c] = found
        for c, at in nodes.items():
            if c not in part.levels:
                edges[part.front.columns[c]][p, c] = part.edge[at]
    cells: list[Cells] = []
    splits: dict[tuple[int, int], np.ndarray] = {}
    for k in range(n_columns):
        every = np.concatenate([np.empty(0), *edges[k].values()])
        distinct, place = np.unique(every, return_inverse=True)
        # +inf asks for missing or not: it is no edge, and all codes but 0 go left; -inf is one
        below = distinct[distinct < np.inf]
        cells.append(_cells(fronts, sources[k], levels[k], below, k))
        ends = np.cumsum([len(at) for at in edges[k].values()])[:-1]
        splits.update(zip(edges[k], np.split(place + 1, ends), strict=False))
    return Grid(fronts, cells), splits


def _cells(fronts: list, sources: list, levels: dict, edges: np.ndarray, k: int) -> Cells:
    cells = Cells(
        takes_missing=all(fronts[i].takes_missing for i, _ in sources),
        takes_infinite=all(fronts[i].takes_infinite for i, _ in sources),
    )
    if not levels:
        # the widest input has every digit that an edge may ask for
        cells.sources = sorted(sources, key=lambda source: -fronts[source[0]].dtype.itemsize)
        cells.edges = edges
        if cells.sources:
            cells.dtype = fronts[cells.sources[0][0]].dtype
        return cells
    if len(levels) < len(sources):
        raise Unreadable(
            f"column {k} holds categories for one part of the model and numbers for another"
        )
    cells.levels = list(dict.fromkeys(level for found in levels.values() for level in found))
    code_of = {level: code for code, level in enumerate(cells.levels, start=1)}
    cells.sources = list(levels)
    cells.maps = [np.array([code_of[v] for v in levels[s]], np.int32) for s in cells.sources]
    return cells


def _table(
    parts: list[Trees], asked: list[dict], splits: dict, grid: Grid, constant: np.ndarray
) -> Table:
    """Translate all parts to codes; moves the median leaf of each tree into the constant."""
    sets: dict[bytes, int] = {}  # each distinct set, and where it starts
    tables, roots, values = [], [], []
    n_nodes = n_boxes = 0
    for p, (part, nodes_of) in enumerate(zip(parts, asked, strict=True)):
        nodes = np.empty((len(part.column), 5), np.int32)
        leaf = part.column < 0
        nodes[:, COLUMN] = np.where(leaf, -1, part.front.columns[part.column])
        nodes[:, LEFT] = part.left + n_nodes
        nodes[leaf, LEFT] = n_boxes + np.arange(len(part.values))
        nodes[:, RIGHT] = part.right + n_nodes
        nodes[:, SPLIT] = 0
        nodes[:, MISSING] = part.missing_left
        for c, at in nodes_of.items():
            cells = grid.cells[part.front.columns[c]]
            if cells.ordered:
                nodes[at, SPLIT] = splits[p, c]
            else:
                nodes[at, SPLIT] = [_place(_set_of(part, node, c, cells), sets) for node in at]
        tables.append(nodes)
        roots.append(np.stack([part.roots + n_nodes, part.outputs], axis=1))
        values.append(_centred(part, leaf, constant))
        n_nodes += len(nodes)
        n_boxes += len(part.values)
    return Table(
        np.concatenate(tables),
        np.concatenate(roots).astype(np.int32),
        np.concatenate(values),
        np.frombuffer(b"".join(sets), np.uint8),
        grid.offset,
        np.array([not cells.ordered for cells in grid.cells], np.uint8),
        max(part.depth for part in parts),
    )


def _place(members: np.ndarray, sets: dict[bytes, int]) -> int:
    """Return where a set starts among all sets, adding it if it is new."""
    last = next(reversed(sets), b"")
    return sets.setdefault(members.tobytes(), sets.get(last, 0) + len(last))


def _set_of(part: Trees, node: int, c: int, cells: Cells) -> np.ndarray:
    """Return the codes that go left at a split on levels, one byte each."""
    assert part.members is not None and part.sets is not None
    members = np.full(cells.n_codes, part.missing_left[node], np.uint8)
    code_of = {level: code for code, level in enumerate(cells.levels or [], start=1)}
    codes = np.array([code_of[level] for level in part.levels[c]], np.intp)
    known = part.known[c]
    members[codes[known]] = part.sets[part.members[node], : len(codes)][known]
    return members


def _centred(part: Trees, leaf: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return the values less each tree's median leaf, which is added to the constant."""
    first = np.searchsorted(np.flatnonzero(leaf), part.roots)  # each tree's first leaf
    trees = np.split(part.values, first[1:])
    medians = np.array([np.median(values, axis=0) for values in trees])
    width = part.values.shape[1]
    for output in np.unique(part.outputs):
        constant[output : output + width] += medians[part.outputs == output].sum(axis=0)
    return part.values - np.repeat(medians, [len(values) for values in trees], axis=0)
