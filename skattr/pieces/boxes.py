"""f as a sum of indicator functions of boxes, written as trees over codes."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr.kernels import lookup
from skattr.kernels.boxes.bits import ONE, as_words
from skattr.kernels.boxes.layout import COLUMN, LEFT, MISSING, RIGHT, SPLIT, Table
from skattr.pieces.base import Pieces
from skattr.pieces.cells.enumeration import enumerate_cells
from skattr.pieces.cells.grid import Grid
from skattr.pieces.cells.levels import UnnamedLevel
from skattr.pieces.outputs import Output
from skattr.pieces.parts import Trees
from skattr.pieces.preprocessing.pipeline import preprocessings
from skattr.pieces.preprocessing.routes import Input, Route
from skattr.pieces.preprocessing.tracks import Kind, Track


class Boxes(Pieces):
    """A sum of boxes over the codes of raw columns, f = constant + Σ_b v_b 1[x in box b].

    The boxes are kept as a table of nodes, `table`; a box is a path from a root to a leaf. Each
    tree's median leaf is moved into the constant, so that a large offset of f costs no accuracy; a
    single huge leaf costs eps times its value.
    """

    def __init__(self, parts: list[Trees], output: Output, row: Any) -> None:
        super().__init__(output, row)
        self.parts = _equally_wide([part.select(output.columns) for part in parts])
        self.nodes = [part.nodes_of_inputs() for part in self.parts]
        self.grid, self.sources = _join_inputs(self.parts, self.nodes, row)
        self._compile()

    def on(self, grid: Grid) -> Boxes:
        """Return the boxes on a grid that knows more cells in open columns (`Grid.meet`)."""
        if not grid.open_columns:
            return self
        boxes = copy(self)
        cells = [
            replace(known, signatures=met.signatures) if known.open else known
            for known, met in zip(self.grid.cells, grid.cells, strict=True)
        ]
        boxes.grid = Grid(self.grid.routes, cells, self.grid.row)
        boxes._compile()
        return boxes

    def meet(self, X: Any) -> tuple[Boxes, np.ndarray]:
        """Return the boxes on a grid that knows the cells of X, and the codes of X, (d, n)."""
        grid, codes = self.grid.meet(X)
        return self.on(grid), codes

    def _compile(self) -> None:
        self.constant = np.sum([part.constant for part in self.parts], axis=0)
        self.table = _table(self.parts, self.nodes, self.sources, self.grid, self.constant)

    def evaluate(self, codes: np.ndarray) -> np.ndarray:
        """Return f at the cells of codes (d, n), (n, k)."""
        return self._add_up(self.table.values, self.constant, self._boxes_at(codes))

    def _boxes_at(self, codes: np.ndarray) -> np.ndarray:
        """Return the box of each tree that the cells of codes (d, n) are in, (n_trees, n)."""
        nodes, roots, _, sets, _, is_set, _ = self.table
        n_trees, n = len(roots), codes.shape[1]
        fields, width = nodes.ravel(), nodes.shape[1]  # flat: one number at a time is read fastest
        flat, unordered = codes.ravel(), is_set.any()
        boxes = np.empty(n_trees * n, np.int32)
        pair = np.arange(n_trees * n)  # a tree and a row
        row = np.tile(np.arange(n), n_trees)
        node = np.repeat(roots[:, 0].astype(np.int64) * width, n)
        while len(pair):
            column = fields.take(node + COLUMN)
            inner = column >= 0
            if not inner.all():
                boxes[pair[~inner]] = fields.take(node[~inner] + LEFT)
                inside = np.flatnonzero(inner)
                pair, row, node, column = (each.take(inside) for each in (pair, row, node, column))
            code = flat.take(column * np.int64(n) + row)
            split = fields.take(node + SPLIT)
            goes_left = code <= split
            missing = np.flatnonzero(code == 0)
            goes_left[missing] = fields.take(node[missing] + MISSING)
            if unordered:
                in_set = np.flatnonzero(is_set[column])
                member = code[in_set]
                word = sets[split[in_set] + (member >> 6)]
                goes_left[in_set] = word >> (member & 63).astype(np.uint64) & ONE
            node = fields.take(node + (RIGHT - goes_left)).astype(np.int64) * width
        return boxes.reshape(n_trees, n)

    def _add_up(self, values: np.ndarray, constant: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return constant + Σ over trees of values (n_boxes, width) at boxes (n_trees, n)."""
        result = np.tile(constant, (boxes.shape[1], 1))
        outputs, width = self.table.roots[:, 1], values.shape[1]
        for output in np.unique(outputs).tolist():
            of_output = boxes[outputs == output]
            result[:, output : output + width] += values[of_output].sum(axis=0)
        return result

    @override
    def name_levels(self, X: Any) -> None:
        self.grid.name_levels(X)

    @property
    @override
    def levels(self) -> np.ndarray:
        return np.array([cells.labels is not None for cells in self.grid.cells])

    @override
    def without_table(self) -> list[int]:
        return self.grid.without_table()

    @override
    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the sum of the boxes that rows are in, and a bound on the model's rounding error.

        In arithmetic with a relative error u of one addition, a sum of m numbers is off by at most
        m u / (1 - m u) times the sum of their sizes, in any order of addition (Higham, Accuracy and
        Stability of Numerical Algorithms, section 4.2). For each row these numbers are the constant
        and the leaves that it falls into. The rounding of our own float64 is added to the bound.
        """
        grid, codes = self.grid.meet(rows)
        boxes = self.on(grid)
        u = max(part.rounding for part in self.parts)
        m = u * self._n_addends()
        at = boxes._boxes_at(codes)
        bound = m / (1 - m) * boxes._sizes(at)
        rounding = 1e-8 + 1e-12 * np.abs(self.table.values).max(initial=0.0)
        return boxes._add_up(boxes.table.values, boxes.constant, at), rounding + bound

    def _n_addends(self) -> np.ndarray:
        """Return how many numbers the model adds up for each output, (k,).

        The weight of a part (a member of an ensemble, a tree in dart) counts as one more rounding.
        """
        counts = np.full(self.n_outputs, 2 * len(self.parts) + 1)
        for part in self.parts:
            reach = part.outputs + np.arange(part.values.shape[1])[:, None]
            np.add.at(counts, reach.ravel(), 1)
        return counts

    def _sizes(self, boxes: np.ndarray) -> np.ndarray:
        """Return |constant| + Σ |leaf| over trees, at boxes (n_trees, n), (n, k)."""
        sizes = np.abs(np.concatenate([part.values for part in self.parts]))
        constant = np.sum([np.abs(part.constant) for part in self.parts], axis=0)
        return self._add_up(sizes, constant, boxes)

    @override
    def preprocessings(self) -> list:
        return list({id(r.steps): r.steps for r in self.grid.routes if r.steps}.values())

    @property
    def n_boxes(self) -> int:
        """Number of boxes."""
        return len(self.table.values)

    @override
    def describe(self) -> str:
        n_trees = len(self.table.roots)
        trees = f"{n_trees:,} tree{'s' if n_trees != 1 else ''}"
        return f"{self.n_boxes:,} boxes, the leaves of {trees}"


def _equally_wide(parts: list[Trees]) -> list[Trees]:
    width = max(part.values.shape[1] for part in parts)
    return [
        part if part.values.shape[1] == width else part.combined(np.eye(len(part.constant)), width)
        for part in parts
    ]


def _join_inputs(
    parts: list[Trees], nodes: list[dict[int, np.ndarray]], row: Any
) -> tuple[Grid, list[dict[int, Input]]]:
    """Join what all parts tell apart in each raw column.

    `nodes` are the nodes of each part at which each input is compared, `row` is one row of X.
    Returns also, for each part, the Input of each of its inputs that is compared.
    """
    chains = preprocessings(parts, row)
    route_of = {(p.chain, id(p.front)): Route(chains[p.chain], p.front) for p in parts}
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
            same = (part.chain, int(part.front.columns[c]), routes[i].changes(c))
            key: tuple = (i, c) if is_levels else ("raw",) if track.kind == Kind.RAW else same
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
        return track.discretized(Kind.LEVELS, levels)
    return track if track.kind in (Kind.RAW, *Kind.DISCRETE) else track.then(Kind.FREE)


def _table(
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
        np.frombuffer(b"".join(sets), np.uint64).copy(),  # writable, as it is after a pickle
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
    last = np.empty(len(at), np.int32)  # the last rank that goes left
    lookup.rank(part.edge[at], source.edges, last)
    last[part.edge[at] == np.inf] = len(source.edges) + 1
    missing = part.missing_left[at].astype(bool)
    code_0 = np.where(ranks[0] == 0, missing, ranks[0] <= last)
    if ordered:
        every = np.arange(len(source.edges) + 2)
        return np.searchsorted(ranks[1:], every, side="right")[last], code_0
    kinds, which = np.unique(2 * last + missing, return_inverse=True)
    members = [np.where(ranks == 0, kind % 2, ranks <= kind // 2) for kind in kinds]
    return np.array([_start_of(m, sets) for m in members])[which], code_0


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
    """Return the first word of a set among all sets, adding it if it is new."""
    last = next(reversed(sets), b"")
    return sets.setdefault(as_words(members).tobytes(), sets.get(last, 0) + len(last) // 8)


def _centred(part: Trees, constant: np.ndarray) -> np.ndarray:
    """Return the values less each tree's median leaf, which is added to the constant."""
    n_leaves = part.n_leaves()
    first = np.cumsum(n_leaves) - n_leaves
    medians = np.empty((len(n_leaves), part.values.shape[1]))
    for n in np.unique(n_leaves):  # all trees of a size at once: boosting has hundreds
        trees = np.flatnonzero(n_leaves == n)
        leaves = part.values[first[trees, None] + np.arange(n)]
        # the upper median, without the overhead of np.median
        medians[trees] = np.partition(leaves, n // 2, axis=1)[:, n // 2]
    width = part.values.shape[1]
    for output in np.unique(part.outputs):
        constant[output : output + width] += medians[part.outputs == output].sum(axis=0)
    return part.values - np.repeat(medians, n_leaves, axis=0)
