"""Integrands on boxes: ∫ f dg = Σ_b v_b Δ(g; box b), exact.

If g is declared as a product, Δ is the product of the increments of its factors, in any dimension.
Otherwise g is evaluated once at each distinct corner of all boxes, and Δ(g; a, b) = Σ_v (-1)^|v|
g(a^v : b^-v). The corners are found in `fit`; a value costs one call of g.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import joblib
import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.parallel import in_workers
from skattr._utils.progress import Progress
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_sums import add_trees
from skattr.engines.estimates import Estimate
from skattr.kernels.boxes import signed_products
from skattr.kernels.boxes.leaf_boxes import fill_boxes
from skattr.measures.written import as_point
from skattr.pieces import Boxes


@dataclass(eq=False)
class Corners:
    """The boxes that meet the domain, by their corners."""

    vertices: np.ndarray  # (n_vertices, d) distinct corners
    at: np.ndarray  # (n_boxes, 2^free) the corners of each box
    signs: np.ndarray  # (2^free,)
    values: np.ndarray  # (n_boxes, k)


@dataclass(eq=False)
class Cuts:
    """The measure, the cuts of each column, and the corners of boxes if it is not a product."""

    measure: Any
    ends: list[np.ndarray]  # of the intervals of each column inside the domain
    codes: list[np.ndarray]
    corners: Corners | None


class Increments(Engine):
    """Increments of an integrand over the boxes of trees."""

    name = "increments"
    kind = Boxes
    views = ("increments",)
    gives = "exact, row by row; groups"
    computes_mean = False

    @override
    def objection(self, pieces: Boxes, measure: Any) -> str | None:
        for k, name in enumerate(pieces.grid.names):
            partition = pieces.grid.partition(k)
            low, high = measure.sides_[k]
            if partition is None or not partition[0][0] <= low <= high <= partition[0][-1]:
                return f"the cells of column {name!r} are not known as ranges"
        return None

    @override
    def why_not_preferred(self, pieces: Any, measure: Any, options: RunOptions) -> str | None:
        return _why_too_many(pieces, measure, options)

    @override
    def cost(self, pieces: Boxes, measure: Any) -> str:
        work = "one product" if measure.product else "the integrand at the corners"
        return f"explain: {work} for each of {pieces.n_boxes:,} boxes per value"

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Cuts:
        reason = _why_too_many(pieces, measure, options)
        if reason is not None:
            raise ValueError(f"{self.name} cannot integrate {measure!r}: {reason}")
        cuts = [_cut(pieces.grid.partition(k), *side) for k, side in enumerate(measure.sides_)]
        ends, codes = [cut[0] for cut in cuts], [cut[1] for cut in cuts]
        corners = None if measure.product else _corners(pieces, ends, codes)
        return Cuts(measure, ends, codes, corners)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        X, options, wanted = request.X, request.options, request.columns
        result = request.zeros(pieces.n_outputs)
        points = (as_point(frames.take_rows(X, slice(i, i + 1))) for i in range(len(X)))
        if state.measure.product:
            for i, x in enumerate(points):
                for position, columns in enumerate(wanted):
                    result[i, position] = _product(pieces, state, x, columns, options)
            return Integral(Estimate(result))
        masses = state.measure.masses(X, request.attributions)[:, request.chosen]
        tasks = (joblib.delayed(_at_corners)(state, x, wanted) for x in points)
        with Progress(options.verbose, len(X), "rows") as bar:
            for i, sums in enumerate(in_workers(tasks, options.n_jobs)):
                result[i] = sums + pieces.constant * masses[i][:, None]
                bar.step("corners of boxes")
        return Integral(Estimate(result))


def _why_too_many(pieces: Boxes, measure: Any, options: RunOptions) -> str | None:
    """Return why there are too many corners of boxes, or None."""
    if measure.product:
        return None
    free = int((measure.sides_[:, 0] < measure.sides_[:, 1]).sum())
    n_corners = pieces.n_boxes * 2**free
    if n_corners > options.max_evals:
        return (
            f"{pieces.n_boxes} boxes have {n_corners} corners in {free} columns, and max_evals is "
            f"{options.max_evals}; raise max_evals, or declare the integrand as a product if it "
            "is one"
        )
    if any(not cells.ordered for cells in pieces.grid.cells):
        return "the codes of a column have no order, so boxes have no corners"
    return None


def _cut(partition: Any, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of a column's intervals inside the domain, and the code of each.

    The number low belongs to the first interval, which ends right behind it if the model cuts
    there. A side that is one number has two equal ends.
    """
    ends, codes = partition
    inside = (ends[1:] >= low) & (ends[:-1] < high)
    if low == high:
        inside = (ends[1:] >= low) & (ends[:-1] < low)
        return np.array([low, low]), codes[inside][:1]
    edges = ends[:-1][inside][1:]
    edges = np.where(edges <= low, np.nextafter(low, np.inf), edges)
    return np.r_[low, edges, high], codes[inside]


def _product(
    pieces: Boxes, state: Cuts, x: np.ndarray, columns: tuple[int, ...], options: RunOptions
) -> np.ndarray:
    """Return Σ_b v_b ∏_i Δ(g_i; side i of b)."""
    longest = max(len(ends) for ends in state.ends)
    padded = [np.r_[ends, np.full(longest - len(ends), ends[-1])] for ends in state.ends]
    g = state.measure.at(np.column_stack(padded), x, columns)
    masses = []
    for k, (ends, codes) in enumerate(zip(state.ends, state.codes, strict=True)):
        steps = np.diff(g[: len(ends), k]) if ends[0] < ends[-1] else g[:1, k]
        n_codes = pieces.grid.cells[k].n_codes
        masses.append(np.bincount(codes, weights=steps, minlength=n_codes))
    cumulated = np.array([_running(masses), _running([np.abs(mass) for mass in masses])])
    sums = add_trees(pieces, (), signed_products.walk, cumulated, options)
    return sums.total + pieces.constant * np.prod([mass.sum() for mass in masses])


def _running(masses: list[np.ndarray]) -> np.ndarray:
    """Return for each column the mass of code 0, then the running masses of the others, flat."""
    return np.concatenate([np.r_[mass[:1], np.cumsum(mass[1:])] for mass in masses])


def _corners(pieces: Boxes, ends: list[np.ndarray], codes: list[np.ndarray]) -> Corners:
    """Find the corners of all boxes that meet the domain."""
    d = len(ends)
    low, high = (np.empty((pieces.n_boxes, d), np.int32) for _ in range(2))
    output = np.empty(pieces.n_boxes, np.int32)
    fill_boxes(pieces.table, low, high, output)
    free = [k for k in range(d) if ends[k][0] < ends[k][-1]]
    box = np.arange(pieces.n_boxes)
    for k in range(d):  # ranges of codes become ranges of ends
        kept, first, last = _runs(codes[k], low[:, k], high[:, k])
        box, low, high = box[kept], low[kept], high[kept]
        low[:, k], high[:, k] = first, last
    signs = np.array(list(product((1, 0), repeat=len(free)))).reshape(-1, len(free))
    numbers = np.zeros((len(low), len(signs)), np.int64)
    for i, k in enumerate(free):
        numbers = numbers * len(ends[k])
        numbers += np.where(signs[:, i] == 1, high[:, k, None], low[:, k, None])
    distinct, at = np.unique(numbers, return_inverse=True)
    vertices = np.empty((len(distinct), d))
    rest = distinct
    for k in reversed(range(d)):
        if k in free:
            vertices[:, k] = ends[k][rest % len(ends[k])]
            rest = rest // len(ends[k])
        else:
            vertices[:, k] = ends[k][0]
    width = pieces.table.values.shape[1]
    values = np.zeros((len(low), pieces.n_outputs))
    for column in range(width):
        np.put_along_axis(
            values, output[box, None].astype(np.intp) + column,
            pieces.table.values[box, column, None], axis=1,
        )  # fmt: skip
    parity = (-1.0) ** (len(free) - signs.sum(axis=1))
    return Corners(vertices, at.reshape(numbers.shape), parity, values)


def _runs(codes: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple:
    """Return the runs of intervals whose codes lie between low and high, for each box.

    Three arrays: the box, the first interval, and the one behind the last. Where codes do not rise
    along the column (a step may reverse it, or replace a number) a box may have several runs.
    """
    if (np.diff(codes) > 0).all():
        first = np.searchsorted(codes, low, side="left")
        last = np.searchsorted(codes, high, side="right")
        kept = np.flatnonzero(first < last)
        return kept, first[kept], last[kept]
    runs = []
    for box, (a, b) in enumerate(zip(low, high, strict=True)):
        within = (codes >= a) & (codes <= b)
        turns = np.flatnonzero(np.diff(np.r_[False, within, False]))
        runs += [(box, first, last) for first, last in turns.reshape(-1, 2)]
    return tuple(np.array(runs, np.intp).reshape(-1, 3).T)


def _at_corners(state: Cuts, x: np.ndarray, attributions: list) -> np.ndarray:
    """Return Σ_b v_b Δ(g; b) for some attributions, (len(attributions), k)."""
    corners = state.corners
    assert corners is not None
    result = np.zeros((len(attributions), corners.values.shape[1]))
    for position, columns in enumerate(attributions):
        if len(corners.vertices):
            g = state.measure.at(corners.vertices, x, columns)
            result[position] = (g[corners.at] @ corners.signs) @ corners.values
    return result
