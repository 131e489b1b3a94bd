"""f as a sum of indicator functions of boxes, written as trees over codes."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.kernels.box_values import add_values
from skattr.pieces.base import Pieces
from skattr.pieces.box_table import compile_table, join_inputs
from skattr.pieces.cells.grid import Grid
from skattr.pieces.outputs import Output
from skattr.pieces.parts import Trees


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
        self.grid, self.sources = join_inputs(self.parts, self.nodes, row)
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

    def _compile(self) -> None:
        self.constant = np.sum([part.constant for part in self.parts], axis=0)
        self.table = compile_table(self.parts, self.nodes, self.sources, self.grid, self.constant)

    def evaluate(self, codes: np.ndarray) -> np.ndarray:
        """Return f at the cells of codes (d, n), (n, k)."""
        return self._add_up(self.table.values, self.constant, codes)

    def _add_up(self, values: np.ndarray, constant: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return constant + Σ of values (n_boxes, width) over the boxes of codes (d, n), (n, k)."""
        table = self.table
        result = np.tile(constant, (codes.shape[1], 1))
        add_values(table.nodes, table.roots, values, table.sets, table.is_set, codes, result)
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
        bound = m / (1 - m) * boxes._sizes(codes)
        rounding = 1e-8 + 1e-12 * np.abs(self.table.values).max(initial=0.0)
        return boxes.evaluate(codes), rounding + bound

    def _n_addends(self) -> np.ndarray:
        """Return how many numbers the model adds up for each output, (k,).

        The weight of a part (a member of an ensemble, a tree in dart) counts as one more rounding.
        """
        counts = np.full(self.n_outputs, 2 * len(self.parts) + 1)
        for part in self.parts:
            reach = part.outputs + np.arange(part.values.shape[1])[:, None]
            np.add.at(counts, reach.ravel(), 1)
        return counts

    def _sizes(self, codes: np.ndarray) -> np.ndarray:
        """Return |constant| + Σ |leaf| over the leaves at the cells of codes (d, n), (n, k)."""
        sizes = np.abs(np.concatenate([part.values for part in self.parts]))
        constant = np.sum([np.abs(part.constant) for part in self.parts], axis=0)
        return self._add_up(sizes, constant, codes)

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
        return f"{self.n_boxes} boxes in {n_trees} tree{'s' if n_trees != 1 else ''}"


def _equally_wide(parts: list[Trees]) -> list[Trees]:
    width = max(part.values.shape[1] for part in parts)
    return [
        part if part.values.shape[1] == width else part.combined(np.eye(len(part.constant)), width)
        for part in parts
    ]
