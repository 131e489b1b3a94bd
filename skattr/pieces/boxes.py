"""f as a sum of indicator functions of boxes, written as trees over codes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skattr import frames
from skattr.kernels.boxes import COLUMN, LEFT, MISSING, RIGHT, SPLIT, Table
from skattr.pieces.base import Pieces
from skattr.pieces.cells import Nameless
from skattr.pieces.enumeration import build
from skattr.pieces.grid import Grid
from skattr.pieces.outputs import Output
from skattr.pieces.pipeline import Preprocessing
from skattr.pieces.routes import Front, Input, Route
from skattr.pieces.steps import DISCRETE, FREE, LEVELS, RAW, Track

SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # the relative error of one addition in float32, in float64


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
    levels: dict = field(default_factory=dict)  # input of levels -> their values
    steps: tuple = ()  # fitted steps in front of the front, the outermost first
    rounding: float = DOUBLE  # relative error of one addition in the model's own arithmetic

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

    def behind(self, *steps: Any) -> Trees:
        """Return the same trees behind more steps."""
        return replace(self, steps=(*steps, *self.steps))

    def plus(self, constant: Any) -> Trees:
        """Return f + constant, a number or (k,)."""
        return replace(self, constant=self.constant + constant)

    def at_outputs(self, places: Any, k: int) -> Trees:
        """Return trees whose outputs stand at some places among k."""
        return self.combined(np.eye(k)[places])

    def combined(self, weights: np.ndarray, width: int = 1) -> Trees:
        """Return f @ weights, (k, m): each new output is a weighted sum of those there are.

        Values are as wide as the outputs that one tree adds to, but no less than `width`.
        """
        own = self.values.shape[1]
        blocks = {o: weights[o : o + own] for o in np.unique(self.outputs).tolist()}
        spans = {o: np.flatnonzero(block.any(axis=0)) for o, block in blocks.items()}
        width = max([width, *(span[-1] - span[0] + 1 for span in spans.values() if len(span))])
        output = np.repeat(self.outputs, self.n_leaves())
        values = np.empty((len(self.values), width))
        outputs = np.empty_like(self.outputs)
        for o, block in blocks.items():
            first = min(spans[o].min(initial=weights.shape[1]), weights.shape[1] - width)
            values[output == o] = self.values[output == o] @ block[:, first : first + width]
            outputs[self.outputs == o] = first
        constant = self.constant @ weights
        return replace(self, values=values, outputs=outputs, constant=constant)

    def n_leaves(self) -> np.ndarray:
        """Return how many leaves each tree has."""
        first = np.searchsorted(np.flatnonzero(self.column < 0), self.roots)
        return np.diff(first, append=len(self.values))


class Boxes(Pieces):
    """A sum of boxes over the codes of raw columns, f = constant + Σ_b v_b 1[x in box b].

    The boxes are kept as a table of nodes (`table`) and derived along paths, one tree at a time.
    Each tree's median leaf is moved into the constant, so that a large offset of f costs no
    accuracy; a single leaf that is huge costs eps times its value.
    """

    def __init__(self, parts: list[Trees], output: Output, row: Any) -> None:
        super().__init__(output, row)
        self.parts = _equally_wide([_select(part, output.columns) for part in parts])
        self.asked = [part.nodes_of_inputs() for part in self.parts]
        self.grid, self.sources = _grid(self.parts, self.asked, row)
        self._compile()

    def on(self, grid: Grid) -> Boxes:
        """Return the boxes on a grid that knows more cells in open columns (`Grid.meet`)."""
        if not grid.open_columns:
            return self
        boxes = copy(self)
        cells = [
            replace(own, signatures=met.signatures) if own.open else own
            for own, met in zip(self.grid.cells, grid.cells, strict=True)
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
        self.table = _table(self.parts, self.asked, self.sources, self.grid, self.constant)

    def evaluate(self, codes: np.ndarray) -> np.ndarray:
        """Return f at the cells of codes (d, n), (n, k)."""
        return self._add_up(self.table.values, self.constant, self._boxes_at(codes))

    def _boxes_at(self, codes: np.ndarray) -> np.ndarray:
        """Return the box of each tree that the cells of codes (d, n) are in, (n_trees, n)."""
        nodes, roots, _, sets, _, is_set, _ = self.table
        n = codes.shape[1]
        at = np.repeat(roots[:, 0], n)  # the node of each tree and row
        row = np.tile(np.arange(n), len(roots))
        inside = np.flatnonzero(nodes[at, COLUMN] >= 0)
        while len(inside):
            column, left, right, split, missing = nodes[at[inside]].T
            code = codes[column, row[inside]]
            goes = np.where(code == 0, missing != 0, code <= split)
            in_set = np.flatnonzero(is_set[column])
            goes[in_set] = sets[split[in_set] + code[in_set]]
            at[inside] = np.where(goes, left, right)
            inside = inside[nodes[at[inside], COLUMN] >= 0]
        return nodes[at, LEFT].reshape(-1, n)

    def _add_up(self, values: np.ndarray, constant: np.ndarray, boxes: np.ndarray) -> np.ndarray:
        """Return constant + Σ over trees of values (n_boxes, width) at boxes (n_trees, n)."""
        result = np.tile(constant, (boxes.shape[1], 1))
        width = values.shape[1]
        for (_, output), own in zip(self.table.roots.tolist(), boxes, strict=True):
            result[:, output : output + width] += values[own]
        return result

    def name_levels(self, X: Any) -> None:
        """Learn from X the names of levels that the model keeps no names of."""
        self.grid.name_levels(X)

    @property
    def levels(self) -> np.ndarray:
        """Whether a column holds levels to the model, (d,)."""
        return np.array([cells.labels is not None for cells in self.grid.cells])

    def without_table(self) -> list[int]:
        """Return the columns whose cells may be no levels and no intervals on the raw scale."""
        return self.grid.without_table()

    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the sum of the boxes that rows are in, and how far the model's sum may be off.

        In arithmetic with a relative error u of one addition, a sum of m numbers is off by at most
        m u / (1 - m u) times the sum of their sizes, in any order of addition (Higham, Accuracy and
        Stability of Numerical Algorithms, section 4.2). For each row these are the constant and the
        leaves that it falls into. To this comes what the reader's own float64 rounds.
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
        """Return how many numbers the model adds for each output, (k,), weights of parts included.

        A weight (of a member of an ensemble, of a tree in dart) rounds once more.
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

    def preprocessings(self) -> list:
        """Return the steps of all routes."""
        return list({id(r.steps): r.steps for r in self.grid.routes if r.steps}.values())

    @property
    def n_boxes(self) -> int:
        """Number of boxes."""
        return len(self.table.values)

    def describe(self) -> str:
        """Say how many boxes there are."""
        n_trees = len(self.table.roots)
        trees = f"{n_trees:,} tree{'s' if n_trees != 1 else ''}"
        return f"{self.n_boxes:,} boxes, the leaves of {trees}"


def _select(part: Trees, columns: list[int] | None) -> Trees:
    k = len(part.constant)
    if columns is None or columns == list(range(k)):
        return part
    return part.combined(np.eye(k)[:, columns])


def _equally_wide(parts: list[Trees]) -> list[Trees]:
    width = max(part.values.shape[1] for part in parts)
    return [
        part if part.values.shape[1] == width else part.combined(np.eye(len(part.constant)), width)
        for part in parts
    ]


def _grid(parts: list[Trees], asked: list[dict], row: Any) -> tuple[Grid, list[dict]]:
    """Join what all parts tell apart in each raw column.

    Returns also, for each part, the Input behind each of its inputs that is asked for.
    """
    chains: dict = {}
    ways: dict = {}
    for part in parts:
        key = tuple(map(id, part.steps))
        if key not in chains:
            chains[key] = Preprocessing(part.steps, row) if part.steps else None
        ways.setdefault((key, id(part.front)), Route(chains[key], part.front))
    routes = list(ways.values())
    columns: list[dict] = [{} for _ in frames.labels(row)]
    levels: dict[int, list] = {}
    sources: list[dict] = []
    for part, nodes in zip(parts, asked, strict=True):
        chain = tuple(map(id, part.steps))
        i = list(ways).index((chain, id(part.front)))
        found = {}
        for c in [*nodes, *(c for c in part.levels if c not in nodes)]:
            track = routes[i].track(c)
            is_levels = c in part.levels
            if is_levels and part.steps:
                track = _behind_steps(track, part.levels[c])
            # inputs that are one number but for a cast are one input
            same = ("raw",) if track.kind == RAW else (chain, int(part.front.columns[c]))
            name: tuple = (i, c) if is_levels else same
            source = columns[track.column].setdefault(name, Input(i, c, track))
            if is_levels:
                source.n_levels = len(part.levels[c])
                levels[id(source)] = part.levels[c]
            else:
                edges = part.edge[nodes[c]]
                # +inf asks for missing or not: it is no edge, and all ranks but 0 go left
                source.edges = np.union1d(source.edges, edges[edges < np.inf])
                if routes[i].front.dtype.itemsize > routes[source.route].front.dtype.itemsize:
                    source.route, source.place = i, c  # it has every digit that is asked for
            found[c] = source
        sources.append(found)
    return build(routes, [list(inputs.values()) for inputs in columns], levels, row), sources


def _behind_steps(track: Track, levels: list) -> Track:
    """Return the track of an input of levels that has steps in front of it.

    Levels without a name cannot be sent through the steps: if these pass values on as they are, the
    model's own numbers count.
    """
    if not any(type(level) is Nameless for level in levels):
        return track.told_apart(LEVELS, levels)
    return track if track.kind in (RAW, *DISCRETE) else track.then(FREE)


def _table(
    parts: list[Trees], asked: list[dict], sources: list[dict], grid: Grid, constant: np.ndarray
) -> Table:
    """Translate all parts to codes; moves the median leaf of each tree into the constant."""
    sets: dict[bytes, int] = {}  # each distinct set, and where it starts
    tables, roots, values = [], [], []
    n_nodes = n_boxes = 0
    for part, nodes_of, inputs in zip(parts, asked, sources, strict=True):
        nodes = np.empty((len(part.column), 5), np.int32)
        leaf = part.column < 0
        nodes[:, COLUMN] = -1
        nodes[:, LEFT] = part.left + n_nodes
        nodes[leaf, LEFT] = n_boxes + np.arange(len(part.values))
        nodes[:, RIGHT] = part.right + n_nodes
        nodes[:, SPLIT] = 0
        nodes[:, MISSING] = part.missing_left
        asking: dict[int, list] = {}
        for c, at in nodes_of.items():
            asking.setdefault(id(inputs[c]), []).append(at)
        for k, cells in enumerate(grid.cells):
            for source, ranks in zip(cells.inputs, cells.ranks_by_input(), strict=True):
                for at in asking.get(id(source), []):
                    nodes[at, COLUMN] = k
                    split = _split_sets if source.n_levels else _split_edges
                    found = split(part, at, source, ranks, cells.ordered, sets)
                    nodes[at, SPLIT], nodes[at, MISSING] = found
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
    """Return the splits at edges of an input of some ranks by code, and where code 0 goes."""
    last = np.searchsorted(source.edges, part.edge[at]) + 1  # the last rank that goes left
    last[part.edge[at] == np.inf] = len(source.edges) + 1
    missing = part.missing_left[at].astype(bool)
    code_0 = np.where(ranks[0] == 0, missing, ranks[0] <= last)
    if ordered:
        return np.searchsorted(ranks[1:], last, side="right"), code_0
    kinds, which = np.unique(2 * last + missing, return_inverse=True)
    members = [np.where(ranks == 0, kind % 2, ranks <= kind // 2) for kind in kinds]
    return np.array([_place(m.astype(np.uint8), sets) for m in members])[which], code_0


def _split_sets(
    part: Trees, at: np.ndarray, source: Input, ranks: np.ndarray, ordered: bool, sets: dict
) -> tuple[Any, Any]:
    """Return the splits at sets of levels of an input, and where code 0 goes."""
    assert part.members is not None and part.sets is not None
    c = part.column[at[0]]
    known = np.append(False, part.known[c])
    places, code_0 = [], []
    for node in at:
        left = np.append(0, part.sets[part.members[node], : len(part.levels[c])])
        goes = np.where(known, left, part.missing_left[node])[ranks].astype(np.uint8)
        places.append(_place(goes, sets))
        code_0.append(goes[0])
    return np.array(places), np.array(code_0)


def _place(members: np.ndarray, sets: dict[bytes, int]) -> int:
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
