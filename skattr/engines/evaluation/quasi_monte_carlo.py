"""Quasi-random points on any model: means of f over scrambled Sobol points.

See docs/mathematics.md, section 6.

    ∫ f dμ_{j,x} ≈ 1/p Σ_i w_{j,x}(u_i) f(T_{j,x}(u_i)), T the measure's transport of uniform points

Approximate. Independent scramblings of the points give independent estimates, and so a standard
error. The number of points is doubled until the error is small enough twice in a row (few points
may all miss a rare event, and agree), separately for each distinct explained value, so that no
value depends on the other rows. All rows, attributions and terms share the scramblings.

Under a product measure they also share the points: apart from the pinned coordinates these are the
points of the reference, so that only the difference is sampled, ∫ f d(reference) + mean of
f(x_j, y_-j) - f(y). A column that the model ignores gets the reference to the last bit.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy.stats import qmc

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.parallel import in_workers
from skattr._utils.progress import Progress
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate, standard_error
from skattr.engines.evaluation.backends import Device, Host, backend_of
from skattr.engines.evaluation.distinct import FEWER, distinct_values, in_words
from skattr.measures.base import Measure
from skattr.measures.factors.points import ProductPoints
from skattr.pieces import Pieces

FIRST = 64  # points of a replicate in the first round


class Round(NamedTuple):
    """The uniform numbers of the points of one round, one scrambling after the other."""

    u: np.ndarray  # (R · more, m), not to be changed
    number: int
    n_points: int  # of each replicate, in all rounds so far
    replicates: int
    seed: int


@dataclass(eq=False)
class PointSource:
    """A measure that makes points, and the sums of f over the points of its reference."""

    points: Any  # a measure, or ProductPoints
    varies: bool  # whether masses are estimated too
    by_row: bool  # whether the points depend on the whole row
    sums: list[np.ndarray] = field(default_factory=list)  # (R, k) of f, after each round
    mean: np.ndarray | None = None  # (R, k)


class QuasiMonteCarlo(Engine):
    """Means over scrambled Sobol points, with standard errors.

    Parameters
    ----------
    replicates : int, default=16
        Number of independent scramblings.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> from skattr.engines import QuasiMonteCarlo
    >>> from skattr.measures import Uniform
    >>> engine = QuasiMonteCarlo(replicates=8)
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Uniform(), engine=engine).fit(X)
    >>> explainer.explain(X).exact
    False
    """

    name = "quasi_monte_carlo"
    kind = Pieces
    views = ("factors", "transport", "draws")
    gives = "approximate, with standard errors"
    exact = False

    def __init__(self, replicates: int = 16) -> None:
        self.replicates = replicates

    @override
    def has_mean(self, measure: Measure) -> bool:
        return "factors" in measure.views

    @override
    def cost(self, pieces: Pieces, measure: Measure) -> str:
        return (
            f"explain: {self.replicates} replicates of {FIRST} points or more for each distinct "
            f"{'row' if measure.depends == 'row' else 'explained value'}"
        )

    @override
    def evaluations(self, states: list, options: RunOptions) -> str:
        first = most = self._first(options.max_evals) * self.replicates
        while 2 * most <= options.max_evals:
            most *= 2
        return f"{first:,} to {most:,} evaluations per value"

    @override
    def prepare(
        self, pieces: Pieces, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> PointSource:
        self._first(options.max_evals)
        points = ProductPoints.of(measure) if "factors" in measure.views else measure
        return PointSource(points, measure.mass is None, measure.depends == "row")

    @override
    def merge(self, a: PointSource, b: PointSource) -> PointSource:
        return PointSource(a.points.merge(b.points), a.varies, a.by_row)

    @override
    def finish(self, pieces: Any, state: PointSource, options: RunOptions) -> PointSource:
        if not isinstance(state.points, ProductPoints):
            return state
        assert options.error is not None
        backend = backend_of(pieces.output)
        total = np.zeros((self.replicates, pieces.n_outputs))
        sums: list[np.ndarray] = []
        far = True
        for each in self._rounds(state, options):
            points = backend.transport(state.points, backend.uniforms(each.u))
            total = total + backend.sums(pieces.output, points, None, self.replicates)
            sums.append(total)
            mean = total / each.n_points
            far, before = bool((standard_error(mean) > options.error / 2).any()), far
            if not far and not before:
                break
        return replace(state, sums=sums, mean=mean)

    @override
    def mean(self, pieces: Any, state: PointSource) -> Estimate | None:
        return None if state.mean is None else Estimate.sampled(state.mean)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        values: list[tuple[int, tuple]] = []  # the row and the columns of each distinct value
        which = []
        for columns, (first, kind) in distinct_values(request, state.by_row):
            which.append(len(values) + kind)
            values += [(row, columns) for row in first.tolist()]
        replicates = self._means(pieces, state, request.X, values, request.options)
        means = np.moveaxis(replicates[np.stack(which, axis=1)], 2, 0)
        if not state.varies:
            return Integral(Estimate.sampled(means))
        return Integral(Estimate.sampled(means[..., :-1]), Estimate.sampled(means[..., -1:]))

    def _means(
        self, pieces: Any, state: PointSource, X: Any, values: list, options: RunOptions
    ) -> np.ndarray:
        """Return the replicates of all values, (len(values), R, k).

        If masses vary, the last output is the mass.
        """
        assert options.error is not None
        k = pieces.n_outputs
        backend = backend_of(pieces.output)
        totals = np.zeros((len(values), self.replicates, k + state.varies))
        means = np.empty_like(totals)
        active, far = np.arange(len(values)), np.ones(len(values), bool)
        labels = frames.labels(X)
        hint = (
            f"{len(values):,} values to estimate from quasi-random points, each to a standard "
            f"error of tol={options.tol:g}; a larger tol, a smaller max_evals, {FEWER}"
        )
        with Progress(options.verbose, 0, "evaluations", hint) as bar:
            for each in self._rounds(state, options):
                bar.add(len(active) * len(each.u))
                tasks = (
                    joblib.delayed(_sums)(backend, pieces.output, state, x, columns, points, each)
                    for x, columns, points in _rows(
                        backend, X, [values[v] for v in active], state, each
                    )
                )
                for v, sums in zip(active, in_workers(tasks, options.n_jobs), strict=True):
                    totals[v] += sums
                    bar.step(in_words(labels, values[v][1]), len(each.u))
                means[active] = totals[active] / each.n_points
                if each.number < len(state.sums):
                    assert state.mean is not None
                    shared = state.sums[each.number] / each.n_points
                    means[active] = state.mean + (means[active] - shared)
                error = standard_error(np.moveaxis(means[active], 1, 0))[:, :k]
                # the error of an infinite value is NaN: more points would not help
                before = far[active] & ~np.isnan(error).any(axis=1)
                far[active] = (error > options.error).any(axis=1)
                active = active[far[active] | before]
                if not len(active):
                    break
        return means

    def _rounds(self, state: PointSource, options: RunOptions) -> Iterator[Round]:
        """Yield rounds that double the number of points, up to max_evals."""
        R = self.replicates
        scramblings = _scramblings(state.points.n_uniforms, R, options.seed)
        more, n_points, number = self._first(options.max_evals), 0, 0
        while (n_points + more) * R <= options.max_evals:
            u = np.concatenate([sobol.random(more) for sobol in scramblings])
            u.flags.writeable = False
            n_points += more
            yield Round(u, number, n_points, R, options.seed)
            more, number = n_points, number + 1

    def _first(self, max_evals: float) -> int:
        """Return the number of points of a replicate in the first round."""
        if not isinstance(self.replicates, numbers.Integral) or self.replicates < 2:
            raise ValueError(
                f"QuasiMonteCarlo(replicates={self.replicates!r}): replicates must be an integer "
                "of at least 2, as the error is computed from their differences"
            )
        if max_evals < 2 * self.replicates:
            raise ValueError(
                f"max_evals={max_evals!r} is too small for {self.name}: {self.replicates} "
                f"replicates of 2 points each need {2 * self.replicates}"
            )
        points = FIRST
        while points * self.replicates > max_evals:
            points //= 2
        return points


def _scramblings(m: int, replicates: int, seed: int) -> list[qmc.Sobol]:
    """Return Sobol sequences in [0, 1)^m, scrambled independently."""
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    return [qmc.Sobol(m, seed=np.random.default_rng(one)) for one in seeds]


def _rows(
    backend: Host | Device, X: Any, values: list, state: PointSource, each: Round
) -> Iterator[tuple]:
    """Yield each value as one row of X, its pinned columns, and points that all values share.

    These are points of the reference of a product, else uniform numbers.
    """
    shared: Any = each.u
    if isinstance(state.points, ProductPoints):
        shared = backend.transport(state.points, backend.uniforms(each.u))
    elif "density" in state.points.views:
        shared = backend.uniforms(each.u)
    for i, columns in values:
        yield frames.take_rows(X, slice(i, i + 1)), columns, shared


def _sums(
    backend: Host | Device, f: Any, state: PointSource, x: Any, columns: tuple[int, ...],
    shared: Any, each: Round,
) -> np.ndarray:  # fmt: skip
    """Return the sums of f over the points of each replicate, (R, k); x is a table of one row."""
    weights = None
    if isinstance(state.points, ProductPoints):
        points = backend.pin(shared, x, columns)
    elif "draws" in state.points.views:
        points = state.points.draws(x, columns, each)
    else:
        points, weights = state.points.transport(shared, x, columns)
    return backend.sums(f, backend.table(points), weights, each.replicates)
