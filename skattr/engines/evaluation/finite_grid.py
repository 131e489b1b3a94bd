"""Products of laws with finitely many values on any model: the sum over all combinations.

    Σ f(x_j, y_-j) ∏_{i≠j} ν_i(y_i), exact

One evaluation for each combination of the other columns' values, so it is meant for few of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import AT_ONCE, Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.backends import backend_of
from skattr.engines.evaluation.distinct import at_distinct
from skattr.engines.evaluation.grid_cells import ProductGrid, add_up
from skattr.measures.base import Measure
from skattr.measures.factors.points import ProductPoints
from skattr.pieces import Pieces


@dataclass(eq=False)
class Combinations:
    """The laws, and the mean of f over all combinations."""

    grid: ProductGrid
    mean: np.ndarray | None = None


class FiniteGrid(Engine):
    """Evaluates the model at all combinations of values."""

    name = "finite_grid"
    kind = Pieces
    views = ("factors",)
    gives = "exact, if columns have few values"
    counts_values = True

    @override
    def objection(self, pieces: Pieces, measure: Measure) -> str | None:
        if measure.depends == "attribution" or not _grid(measure).is_finite(()):
            return "the law of a column has infinitely many values"
        return None

    @override
    def why_not_preferred(self, pieces: Pieces, measure: Any, options: RunOptions) -> str | None:
        most = options.for_exact_sums().max_evals
        return _why_too_many(_grid(measure), f"max_evals is {most}", most)

    @override
    def cost(self, pieces: Pieces, measure: Measure) -> str:
        return "explain: all combinations of the other columns' values per distinct explained value"

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Combinations:
        grid, most = _grid(measure), options.max_evals
        self._check_size(grid, f"max_evals is {most}", most)
        return Combinations(grid)

    def _check_size(self, grid: ProductGrid, limit: str, most: float) -> None:
        reason = _why_too_many(grid, limit, most)
        if reason is not None:
            raise ValueError(
                f"{self.name} cannot be used: {reason}; raise max_evals, "
                "or choose engine='quasi_monte_carlo'"
            )

    @override
    def merge(self, a: Combinations, b: Combinations) -> Combinations:
        return Combinations(a.grid.merge(b.grid))

    @override
    def finish(self, pieces: Any, state: Combinations, options: RunOptions) -> Combinations:
        # all batches together have more values than one, by which the engine was chosen
        most = max(options.max_evals, AT_ONCE)
        self._check_size(state.grid, f"batches may have {most:.0f}", most)
        return replace(state, mean=_pinned(pieces.output, state.grid, None, ()))

    @override
    def mean(self, pieces: Any, state: Combinations) -> Estimate:
        return Estimate(state.mean)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        value = partial(_pinned, pieces.output, state.grid)
        return Integral(Estimate(at_distinct(value, request)))


def _grid(measure: Measure) -> ProductGrid:
    return ProductGrid(ProductPoints.of(measure))


def _pinned(f: Any, grid: ProductGrid, x: Any, columns: tuple[int, ...]) -> np.ndarray:
    return add_up(grid.cells(backend_of(f), x, columns, 1, "gauss"), f)


def _why_too_many(grid: ProductGrid, limit: str, most: float) -> str | None:
    """Return why not all combinations can be evaluated, or None if there are at most `most`."""
    size = grid.n_cells(1, ())  # the reference has one more column than a value
    return f"there are {size} combinations of values, {limit}" if size > most else None
