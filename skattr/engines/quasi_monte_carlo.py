"""Quasi-random points on any model: means of f over scrambled Sobol points (MATH.md, section 6).

    ∫ f dμ_{j,x} ≈ 1/p Σ_i f(T_{j,x}(u_i)), T_{j,x} the measure's transport of uniform points u_i

Approximate. Independent scramblings of the points give independent estimates, and with them the
standard error. Points are doubled until it is small enough, for each distinct own value by itself:
a value's bits depend on no other row. All rows, attributions and terms share the scramblings.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from scipy.stats import qmc

from skattr import frames
from skattr.engines.base import Approximation, Jobs, Own, standard_error
from skattr.measures.base import Measure
from skattr.parallel import in_workers
from skattr.pieces import Pieces

FIRST = 64  # points of a replicate before its error is looked at
ROW_BLOCK = 65_536  # points in one call of the model


class QuasiMonteCarlo(Approximation):
    """Means over scrambled Sobol points, with standard errors.

    Parameters
    ----------
    replicates : int, default=16
        Number of independent scramblings.
    """

    name = "quasi_monte_carlo"
    needs = (Pieces, "transport")

    def __init__(self, replicates: int = 16) -> None:
        self.replicates = replicates

    def cost(self, pieces: Pieces, term: Measure) -> str:
        """Say what it costs."""
        return (
            f"explain: {self.replicates} replicates of {FIRST} points or more for each distinct "
            "own value"
        )

    def prepare(self, pieces: Pieces, term: Measure, own: Own, jobs: Jobs) -> Measure:
        """Keep the measure, which makes the points."""
        self._first(jobs.max_evals)
        return term

    def estimate(
        self,
        pieces: Any,
        state: Any,
        X: Any,
        own: Own,
        chosen: list[int],
        error: np.ndarray,
        jobs: Jobs,
    ) -> np.ndarray:
        """Return the mean over the points of each scrambling, (R, n, len(chosen), k)."""
        values: list[tuple[int, tuple]] = []  # the row and the own columns of each distinct value
        which = np.empty((len(X), len(chosen)), int)
        for place, a in enumerate(chosen):
            first, kind = frames.distinct_rows(X, own[a])
            which[:, place] = len(values) + kind
            values += [(i, own[a]) for i in first.tolist()]
        means = self._means(pieces, state, X, values, error, jobs)
        return np.moveaxis(means[which], 2, 0)

    def _means(
        self, pieces: Any, measure: Any, X: Any, values: list, error: np.ndarray, jobs: Jobs
    ) -> np.ndarray:
        """Return the estimates of all values, (len(values), R, k); those done leave the loop."""
        scramblings = _scramblings(measure.n_uniforms, self.replicates, jobs.seed)
        totals = np.zeros((len(values), self.replicates, pieces.n_outputs))
        means = np.empty_like(totals)
        active = np.arange(len(values))
        more, n_points = self._first(jobs.max_evals), 0
        while len(active) and (n_points + more) * self.replicates <= jobs.max_evals:
            u = np.concatenate([sobol.random(more) for sobol in scramblings])
            u.flags.writeable = False
            n_points += more
            tasks = (
                joblib.delayed(_sums)(pieces.output, measure, x, columns, u, self.replicates)
                for x, columns in _rows(X, [values[v] for v in active])
            )
            title = f"{self.replicates} × {n_points} points" if jobs.verbose else None
            for v, sums in zip(
                active, in_workers(tasks, len(active), jobs.n_jobs, title), strict=True
            ):
                totals[v] += sums
            means[active] = totals[active] / n_points
            # not NaN, the error of an infinite value: more points would not help
            far = standard_error(np.moveaxis(means[active], 1, 0)) > error
            active = active[far.any(axis=1)]
            more = n_points
        return means

    def _first(self, max_evals: float) -> int:
        """Return how many points a replicate starts with."""
        if not isinstance(self.replicates, Integral) or self.replicates < 2:
            raise ValueError(
                f"QuasiMonteCarlo(replicates={self.replicates!r}): it is an integer, at least 2, "
                "as the error is how much replicates differ"
            )
        if max_evals < 2 * self.replicates:
            raise ValueError(
                f"max_evals={max_evals!r} is too small for {self.name}: {self.replicates} "
                f"replicates of 2 points take {2 * self.replicates}"
            )
        points = FIRST
        while points * self.replicates > max_evals:
            points //= 2
        return points


def _scramblings(m: int, replicates: int, seed: int) -> list[qmc.Sobol]:
    """Return Sobol sequences in [0, 1)^m, scrambled independently."""
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    return [qmc.Sobol(m, seed=np.random.default_rng(one)) for one in seeds]


def _rows(X: Any, values: list) -> Any:
    """Yield each value as one row of X, and its own columns."""
    for i, columns in values:
        yield frames.take_rows(X, slice(i, i + 1)), columns


def _sums(
    f: Callable, measure: Any, x: Any, columns: tuple[int, ...], u: np.ndarray, replicates: int
) -> np.ndarray:
    """Return the sums of f over the points of each replicate, (R, k); x is one row."""
    blocks = [u[start : start + ROW_BLOCK] for start in range(0, len(u), ROW_BLOCK)]
    values = np.concatenate([f(measure.transport(block, x, columns)) for block in blocks])
    return values.reshape(replicates, -1, values.shape[1]).sum(axis=1)
