"""Shapley and Banzhaf values on boxes, against rows of data.

See docs/mathematics.md, sections 3 and 11.

Explained and background rows go down the trees together, as sets of the conditions that they fail.
Exact. A box costs the rows on both sides and the distinct sets among them, whatever the number of
pairs of rows; `fit` only encodes the background.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import local
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.engines import backgrounds
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_sums import owners, tree_blocks
from skattr.engines.estimates import Estimate
from skattr.kernels.boxes.layout import Table
from skattr.kernels.coalitions import walk
from skattr.kernels.coalitions.buffers import Buffers, new_buffers
from skattr.kernels.coalitions.set_values import rates_of_sizes
from skattr.measures.coalitions import Semivalue
from skattr.pieces import Boxes, Grid

Add = Callable[[list[np.ndarray], np.ndarray], None]

ROW_BLOCK = 16384  # explained rows that go down the trees together
NUMBERS = 2**21  # and their values
FEW_ROWS = 64  # rows that go down all trees in one call, which cannot be interrupted


@dataclass(eq=False)
class Plan:
    """What trees and players are like, whatever the rows: it is made once, and not pickled."""

    table: Table
    owner: np.ndarray  # (d,) the player of each column
    blocks: list[np.ndarray]  # of trees
    n_players: int  # the largest number in a box
    counts: np.ndarray  # (n_nodes,) the number of boxes below each node

    @classmethod
    def of(cls, boxes: Boxes, owner: np.ndarray) -> Plan:
        """Return the plan for boxes."""
        table = boxes.table
        n_players = walk.most_players(table, owner)
        return cls(table, owner, tree_blocks(boxes), n_players, walk.count_boxes(table))


@dataclass(eq=False)
class Planned:
    """A state with a plan, which is made again for other boxes and after unpickling."""

    semivalue: Semivalue
    grid: Grid  # with the cells of the background
    owner: np.ndarray  # (d,) the player of each column
    zeros: str = field(default="", kw_only=True)  # which pairs are 0, in words

    def plan(self, boxes: Boxes) -> Plan:
        """Return the plan for boxes."""
        plan: Plan | None = vars(self).get("_plan")
        if plan is None or plan.table is not boxes.table:
            plan = Plan.of(boxes, self.owner)
            self._plan = plan
        return plan

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_plan"}


@dataclass(eq=False)
class CodedRows(Planned):
    """The background as codes."""

    codes: np.ndarray  # (d, n)
    weights: np.ndarray  # (n,) not normalised


class BoxCoalitions(Engine):
    """Differences that players make to coalitions, by sets of failed conditions."""

    name = "box_coalitions"
    kind = Boxes
    views = ("coalitions of rows",)
    gives = "exact; groups"
    needs_partition = True
    computes_mean = False

    @override
    def objection(self, pieces: Boxes, measure: Any) -> str | None:
        return too_many_columns(pieces)

    @override
    def cost(self, pieces: Boxes, measure: Any) -> str:
        return (
            "fit: codes of the background; explain: the background and the explained rows go down "
            "all trees together"
        )

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Attributions, options: RunOptions
    ) -> CodedRows:
        inner, semivalue = measure.coalitions()
        background, _ = inner.rows()
        grid, codes = backgrounds.encode(background, pieces.grid, options.n_jobs)
        owner = owners(attributions, grid).owner
        return CodedRows(semivalue, grid, owner, codes, background.weights)

    @override
    def merge(self, a: CodedRows, b: CodedRows) -> CodedRows:
        return replace(
            a,
            codes=np.concatenate([a.codes, b.codes], axis=1),
            weights=np.concatenate([a.weights, b.weights]),
        )

    @override
    def finish(self, pieces: Boxes, state: CodedRows, options: RunOptions) -> CodedRows:
        state = replace(state, codes=np.ascontiguousarray(state.codes))
        if not state.grid.open_columns:
            state.plan(pieces)
        return state

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        boxes, codes = on_grid(pieces, state.grid, request)
        shape = len(request.attributions), boxes.n_outputs
        values = against_rows(
            boxes, state, codes, request, shape, new_buffers, list(request.chosen)
        )
        return Integral(Estimate(values))


def too_many_columns(boxes: Boxes) -> str | None:
    """Return why sets of the columns of a box cannot be written as bits, or None."""
    if boxes.table.depth <= walk.MOST:
        return None
    most = walk.most_players(boxes.table, np.arange(len(boxes.grid.cells), dtype=np.int32))
    if most <= walk.MOST:
        return None
    return f"a box has conditions on {most} columns, more than {walk.MOST}"


def on_grid(pieces: Boxes, grid: Grid, request: Request) -> tuple[Boxes, np.ndarray]:
    """Return boxes whose grid has the cells of the background and of the rows, and the codes."""
    if not grid.open_columns:
        assert request.rows.codes is not None
        return pieces, request.rows.codes
    grid, codes = grid.meet(request.X)
    return pieces.on(grid), codes


def against_rows(
    boxes: Boxes,
    state: CodedRows,
    codes: np.ndarray,
    request: Request,
    shape: tuple[int, int],
    new_buffers: Callable[..., Buffers],
    chosen: list[int] | slice = slice(None),
) -> np.ndarray:
    """Return the requested values against the background, by the kernel that has these buffers."""
    plan = state.plan(boxes)
    weights = whole_numbers(state.weights)
    moments = state.semivalue.moments(plan.n_players) / weights.sum()
    rates = rates_of_sizes(moments)

    def adding(rows: np.ndarray, shape: tuple[int, ...]) -> Add:
        buffers = new_buffers(plan.table, shape, plan.n_players, state.codes, rows)

        def add(blocks: list[np.ndarray], out: np.ndarray) -> None:
            walk.add_differences(
                plan.table, blocks, plan.owner, plan.counts, moments, rates, weights, buffers, out
            )

        return add

    return added_over_trees(plan, codes, request, shape, adding, chosen)


def whole_numbers(weights: np.ndarray) -> np.ndarray:
    """Return weights as whole numbers below 2^52: sums of them are exact in any order.

    Equal weights stay equal, and those that are whole numbers already keep their proportions; all
    others change by less than the last bit of their sum.
    """
    _, exponent = np.frexp(weights.sum())
    return np.rint(np.ldexp(weights, 52 - exponent))


def added_over_trees(
    plan: Plan,
    codes: np.ndarray,
    request: Request,
    shape: tuple[int, int],
    adding: Callable[[np.ndarray, tuple[int, ...]], Add],
    chosen: list[int] | slice = slice(None),
) -> np.ndarray:
    """Return the requested values at rows, added over trees in fixed blocks.

    `adding(codes, shape)` returns a function for one thread: `add(blocks, out)` adds to out,
    (n, *shape), the sums of blocks of trees at the rows of codes, one after the other. Those that
    are `chosen` are returned.
    """
    result = request.zeros(shape[1])
    n_jobs = request.options.n_jobs
    tasks = [[each] for each in plan.blocks]
    if tasks and len(result) <= FEW_ROWS and effective_n_jobs(n_jobs) == 1:
        tasks = [plan.blocks]
    step = max(1, min(ROW_BLOCK, NUMBERS // max(1, shape[0] * shape[1])))
    for start in range(0, len(result), step):
        rows = np.ascontiguousarray(codes[:, start : start + step])
        total = np.zeros((rows.shape[1], *shape))
        of_thread = local()

        def run(
            blocks: list[np.ndarray], rows: np.ndarray = rows, of_thread: local = of_thread
        ) -> np.ndarray:
            part = np.zeros((rows.shape[1], *shape))
            if not hasattr(of_thread, "add"):
                of_thread.add = adding(rows, part.shape)
            of_thread.add(blocks, part)
            return part

        for part in in_order(run, tasks, n_jobs):
            total += part
        result[start : start + step] = total[:, chosen]
    return result
