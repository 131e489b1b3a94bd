"""Shapley and Banzhaf values on boxes, under products of one-dimensional laws.

Exact, without rows: one polynomial in p for each box and set of conditions that explained rows fail
(docs/mathematics.md, section 11). The laws add up over batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.backgrounds import encode
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_coalitions import (
    Add,
    Planned,
    added_over_trees,
    on_grid,
    too_many_columns,
)
from skattr.engines.boxes.box_products import BoxProducts, cumulated
from skattr.engines.boxes.box_sums import owners
from skattr.engines.estimates import Estimate
from skattr.engines.laws import as_masses, masses, merge_components
from skattr.kernels.coalitions import products
from skattr.pieces import Boxes, Grid


@dataclass(eq=False)
class CodedLaws(Planned):
    """A mixture of products as masses by code."""

    components: list  # (π_c, the masses of one law per column)


class ProductCoalitions(Engine):
    """Differences that players make to coalitions, from the masses of the sides of boxes."""

    name = "product_coalitions"
    kind = Boxes
    views = ("coalitions of factors",)
    gives = "exact; groups"
    needs_partition = True
    computes_mean = False

    @override
    def objection(self, pieces: Boxes, measure: Any) -> str | None:
        inner = measure.coalitions().measure
        return too_many_columns(pieces) or BoxProducts().objection(pieces, inner)

    @override
    def cost(self, pieces: Boxes, measure: Any) -> str:
        return f"explain: all rows go down all trees to {pieces.n_boxes:,} boxes"

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Attributions, options: RunOptions
    ) -> CodedLaws:
        inner, semivalue = measure.coalitions()
        components, _ = inner.factors()
        grid, _ = encode(inner.background_, pieces.grid, options.n_jobs)
        coded = [
            (share, [as_masses(law, pieces.grid) for law in laws]) for share, laws in components
        ]
        return CodedLaws(semivalue, grid, owners(attributions, grid).owner, coded)

    @override
    def merge(self, a: CodedLaws, b: CodedLaws) -> CodedLaws:
        return replace(a, components=merge_components(a.components, b.components))

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        boxes, codes = on_grid(pieces, state.grid, request)
        plan = state.plan(boxes)
        nodes = state.semivalue.nodes(max(plan.n_players - 1, 0))
        shape = len(request.attributions), boxes.n_outputs

        def add(trees: np.ndarray, running: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
            products.add_differences(plan.table, trees, plan.owner, nodes, running, rows, out)

        values = against_laws(boxes, state, codes, request, shape, add, list(request.chosen))
        return Integral(Estimate(values))


def against_laws(
    boxes: Boxes,
    state: CodedLaws,
    codes: np.ndarray,
    request: Request,
    shape: tuple[int, int],
    add: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], None],
    chosen: list[int] | slice = slice(None),
) -> np.ndarray:
    """Return the requested values under a mixture of products.

    `add(trees, running, codes, out)` adds those under one product; running are the cumulated masses
    of the codes of all columns.
    """
    total = request.zeros(boxes.n_outputs)
    for share, laws in state.components:
        sides = [masses(law, boxes.grid, k) for k, law in enumerate(laws)]
        running = cumulated(_padded(sides, boxes.grid))

        def adding(rows: np.ndarray, shape: tuple[int, ...], running: Any = running) -> Add:
            def add_blocks(blocks: list[np.ndarray], out: np.ndarray) -> None:
                for trees in blocks:
                    part = np.zeros(out.shape)
                    add(trees, running, rows, part)
                    out += part

            return add_blocks

        total += share * added_over_trees(state.plan(boxes), codes, request, shape, adding, chosen)
    return total


def _padded(sides: list[np.ndarray], grid: Grid) -> list[np.ndarray]:
    """Return masses with 0 for the cells of open columns that only explained rows have."""
    return [
        np.pad(side, (0, cells.n_codes - len(side)))
        for side, cells in zip(sides, grid.cells, strict=True)
    ]
