"""Removal on boxes: f at a row less its mean with one column replaced, in one pass of the rows.

The cost does not depend on the background, of which the law of the codes of each column is enough:
one descent per row, tree and column that has splits on the row's path, both ways at splits on that
column (docs/mathematics.md, section 9). Groups, and columns whose cells are not known in advance,
are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.engines.backgrounds import encode
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_sums import tree_blocks
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.evaluation import Evaluation
from skattr.kernels.boxes.replaced_columns import side_masses, subtract_replaced
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.pieces import Boxes, Grid

MAX_NUMBERS = 2**18  # values of rows that go down the trees together


@dataclass(eq=False)
class ReplacedColumns:
    """The masses of both sides of all splits, and the measure for what is evaluated."""

    masses: np.ndarray  # (n_nodes, 2)
    measure: Measure


class RemovalOfBoxes(Engine):
    """Sends each row down the trees, with one column after the other left to its law."""

    name = "removal_of_boxes"
    kind = Boxes
    views = ("replaced",)
    gives = "exact; groups by evaluation"
    computes_mean = False

    @override
    def cost(self, pieces: Boxes, measure: Measure) -> str:
        return (
            "explain: one descent per row, tree and column, whatever the size of the background; "
            "for a group one evaluation per background row"
        )

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Attributions, options: RunOptions
    ) -> ReplacedColumns:
        grid, laws = laws_of_codes(measure.replaced().background, pieces.grid, options.n_jobs)
        pieces = pieces.on(grid)
        running = [np.concatenate([law[:1], np.cumsum(law[1:])]) for law in laws]
        masses = side_masses(pieces.table, _trees(pieces), np.concatenate(running))
        return ReplacedColumns(masses, measure)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        codes = request.rows.codes
        assert codes is not None
        result = request.zeros(pieces.n_outputs)
        fast = columns_of_known_cells(request, pieces.grid)
        wanted = np.zeros(len(codes), np.bool_)
        wanted[list(fast.values())] = True

        size = max(64, MAX_NUMBERS // (len(codes) * pieces.n_outputs))

        def run(start: int) -> np.ndarray:
            some = np.ascontiguousarray(codes[:, start : start + size].T)
            out = np.zeros((*some.shape, pieces.n_outputs))
            subtract_replaced(pieces.table, _trees(pieces), state.masses, wanted, some, out)
            return out[:, list(fast.values())]

        if fast:
            starts = range(0, codes.shape[1], size)
            values = list(in_order(run, starts, request.options.n_jobs))
            result[:, list(fast)] = np.concatenate(values)
        evaluate_others(pieces, state.measure, request, fast, result)
        return Integral(Estimate(result))


def laws_of_codes(
    background: Background, grid: Grid, n_jobs: int | None
) -> tuple[Grid, list[np.ndarray]]:
    """Return the grid of the background, and the share of each code of each column."""
    grid, codes = encode(background, grid, n_jobs)
    share = background.weights / background.weights.sum()
    sizes = [cells.n_codes for cells in grid.cells]
    return grid, [np.bincount(c, share, n) for c, n in zip(codes, sizes, strict=True)]


def columns_of_known_cells(request: Request, grid: Grid) -> dict[int, int]:
    """Return the attributions of one column whose cells are known: position → column."""
    return {
        i: columns[0]
        for i, columns in enumerate(request.columns)
        if len(columns) == 1 and not grid.cells[columns[0]].open
    }


def evaluate_others(
    pieces: Any, measure: Measure, request: Request, known: dict[int, int], result: np.ndarray
) -> None:
    """Evaluate the attributions that are not known otherwise, and put them into the result."""
    others = [i for i in range(len(request.chosen)) if i not in known]
    if others:
        names, columns = request.attributions.names, request.columns
        some = Attributions(
            tuple(names[request.chosen[i]] for i in others),
            tuple(columns[i] for i in others),
            request.attributions.n_columns,
        )
        rest = Request(request.rows, some, range(len(some)), request.options)
        result[:, others] = Evaluation().integrate(pieces, measure, rest).values.value


def _trees(pieces: Boxes) -> np.ndarray:
    return np.concatenate([np.empty(0, np.intp), *tree_blocks(pieces)])
