"""Riemann and Riemann-Stieltjes sums on any model: tensor grids (docs/mathematics.md, section 6).

    ∫ f dμ ≈ Σ_cells f(node of the cell) · (weight of the cell)

Product measures: weights are products; atoms are nodes, smooth factors have the nodes of a rule.
Densities: the rule's weights times h. Integrands g: one value at each vertex, and differences along
one axis after the other. Cells are visited in blocks; f is not evaluated where the weight is 0.

Approximate. The number of points per side is doubled, plus one so that levels do not nest, until
the last levels differ by less than the requested error. The reported error is the difference of the
last two levels, or half that of the two before if it is larger: two levels may agree by chance
where f jumps.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.backends import backend_of
from skattr.engines.evaluation.distinct import at_distinct
from skattr.engines.evaluation.grid_cells import TensorGrid, add_up, grid_of
from skattr.measures.base import Measure
from skattr.pieces import Boxes, Pieces, ReluNetwork

RULES = ("left", "midpoint", "gauss")
FIRST, SECOND = 4, 9  # points per side of the first two levels; then 19, 39, …
FEW = 3  # free columns up to which a grid is better than points; 1 if the model jumps


@dataclass(eq=False)
class GridState:
    """The grids of a measure, and the mean of f with no column pinned if they have it."""

    grid: TensorGrid
    varies: bool
    by_row: bool
    mean: Estimate | None = None


class Riemann(Engine):
    """Sums over tensor grids.

    Parameters
    ----------
    rule : {"gauss", "midpoint", "left"}, default="gauss"
        Where f is evaluated: at Gauss-Legendre nodes of smooth factors and densities, at the
        middle of each cell, or at its lower corner (as in the paper). For increments of an
        integrand, which have no Gauss nodes, "gauss" means "midpoint".
    points : int, optional
        Number of points per side. By default it is doubled until the error is small enough.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> from skattr.engines import Riemann
    >>> from skattr.measures import Uniform
    >>> engine = Riemann(rule="midpoint", points=4)
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Uniform(), engine=engine).fit(X)
    >>> explainer.explain(X).values  # right for a function that is linear in each column
    array([[0., 1.],
           [4., 3.]])
    """

    name = "riemann"
    kind = Pieces
    views = ("factors", "density", "increments")
    gives = "approximate, with an error; for few columns"
    exact = False

    def __init__(self, rule: str = "gauss", points: int | None = None) -> None:
        self.rule = rule
        self.points = points

    @override
    def why_not_preferred(self, pieces: Pieces, measure: Any, options: RunOptions) -> str | None:
        if "increments" in measure.views or measure.depends == "attribution":
            return None  # increments have no other engine, the others one free column
        if isinstance(pieces, ReluNetwork):
            return "the model has kinks, for which quasi-random points are better than grids"
        grid = grid_of(measure)
        free, few = grid.free_columns(), 1 if isinstance(pieces, Boxes) else FEW
        if free > few:
            return f"{free} columns are free, and a grid is meant for {few} at most"
        size = grid.n_cells(SECOND, ())  # the reference has no column pinned
        if size > options.max_evals:
            return f"its grid has {size} cells, max_evals is {options.max_evals}"
        return None

    @override
    def has_mean(self, measure: Measure) -> bool:
        return "factors" in measure.views

    @override
    def cost(self, pieces: Pieces, measure: Measure) -> str:
        side = f"{FIRST}, {SECOND}, …" if self.points is None else str(self.points)
        each = "row" if measure.depends == "row" else "explained value"
        return f"explain: grids of {side} points per free column for each distinct {each}"

    @override
    def evaluations(self, states: list[GridState], options: RunOptions) -> str:
        if any(one.grid.by_row for one in states):
            return "evaluations where all factors of a row have weight"
        counts = [list(self._sizes(one, options)) for one in states]
        widest = max(counts, key=lambda sizes: sizes[-1])
        return ", ".join(f"{size:,}" for size in widest) + " evaluations per value at most"

    def _sizes(self, state: GridState, options: RunOptions) -> Iterator[int]:
        """Yield the numbers of cells of all levels, for the column with the largest grid."""
        grid, pinned = state.grid, state.grid.pinned_in_largest(FIRST)
        for points in self._levels(grid, None, pinned, options.max_evals):
            yield grid.n_cells(points, pinned)

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Attributions, options: RunOptions
    ) -> GridState:
        self._check()
        grid = grid_of(measure)
        if not grid.by_row:
            self._check_size(grid, None, (), options)
        return GridState(grid, measure.mass is None, measure.depends == "row")

    def _check_size(
        self, grid: TensorGrid, x: Any, columns: tuple[int, ...], options: RunOptions
    ) -> None:
        """Raise if the smallest grid that has an error is larger than max_evals."""
        least = SECOND if self.points is None else self.points
        size = grid.n_cells(least, columns, x)
        if size > options.max_evals:
            raise ValueError(
                f"the grid has {size} cells for one value at {least} points per side, max_evals is "
                f"{options.max_evals}: raise max_evals, or lower the number of points, "
                "Riemann(points=…); declare an integrand as a product if it is one"
            )

    @override
    def merge(self, a: GridState, b: GridState) -> GridState:
        return GridState(a.grid.merge(b.grid), a.varies, a.by_row)

    @override
    def finish(self, pieces: Any, state: GridState, options: RunOptions) -> GridState:
        if not state.grid.has_mean:
            return state
        value, error = self._refine(pieces.output, state, options, None, ())
        return replace(state, mean=Estimate(value, error))

    @override
    def mean(self, pieces: Any, state: GridState) -> Estimate | None:
        return state.mean

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        k = pieces.n_outputs
        refine = partial(self._refine, pieces.output, state, request.options)
        sums = at_distinct(refine, request, state.by_row)
        values, errors = sums[:, :, 0], sums[:, :, 1]  # (n, g, k), and masses behind them
        masses = Estimate(values[..., k:], errors[..., k:]) if state.varies else None
        return Integral(Estimate(values[..., :k], errors[..., :k]), masses)

    def _refine(
        self, f: Any, state: GridState, options: RunOptions, x: Any, columns: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum at the last level, (k,), and its error."""
        assert options.error is not None
        backend = backend_of(f)
        values: list[np.ndarray] = []
        error = np.zeros(0)
        if state.grid.by_row:
            self._check_size(state.grid, x, columns, options)
        for points in self._levels(state.grid, x, columns, options.max_evals):
            nodes = state.grid.cells(backend, x, columns, points, self.rule)
            values.append(add_up(nodes, f, state.varies))
            error = _error(values)
            if len(values) > 2 and not (error[: len(options.error)] > options.error).any():
                break
        return values[-1], error

    def _levels(
        self, grid: TensorGrid, x: Any, columns: tuple[int, ...], max_evals: float
    ) -> Iterator[int]:
        """Yield the numbers of points per side: 1 if all columns have atoms only."""
        if grid.is_finite(columns):
            yield 1
            return
        if self.points is not None:
            some = (self.points // 4, (self.points - 1) // 2, self.points)
            yield from sorted({max(1, points) for points in some})
            return
        points, spent = FIRST, grid.n_cells(FIRST, columns, x)
        while points <= SECOND or spent <= max_evals:
            yield points
            points = 2 * points + 1
            spent += grid.n_cells(points, columns, x)

    def _check(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"Riemann(rule={self.rule!r}): rule must be one of {RULES}")
        whole = isinstance(self.points, numbers.Integral) and not isinstance(self.points, bool)
        if self.points is not None and not (whole and self.points >= 2):
            raise ValueError(
                f"Riemann(points={self.points!r}): points must be an integer of at least 2, as the "
                "error is the difference of levels"
            )


def _error(values: list[np.ndarray]) -> np.ndarray:
    """Return the error of the sum at the last level, given the sums at all levels."""
    steps = [np.abs(b - a) for a, b in pairwise(values)]
    if not steps:
        return np.zeros_like(values[-1])
    return np.maximum(steps[-1], steps[-2] / 2) if len(steps) > 1 else steps[-1]
