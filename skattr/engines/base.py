"""∫: engines, each one algorithm for one kind of pieces and some views of a measure.

An engine declares what it serves and what it gives, as class attributes:

- `kind`: the class of pieces, and `views`: the views of a measure, one of which it needs;
- `gives`: the result in a few words, for the table of all engines;
- `exact`: whether values are the integral up to rounding;
- `needs_partition`: whether its sums are correct only if every column belongs to exactly one
  attribution; overlapping attributions are then prepared in several passes;
- `computes_mean`: whether `mean` returns the integral against the reference of the measure;
- `smooth`: whether its curves vary between the thresholds of the model.

What depends on model and measure is computed in `prepare`, what depends on x in `integrate`. A
state consists of numpy arrays, plain containers and our own classes, so that it pickles.

An engine whose cost becomes known while it runs raises `TooCostly` in `prepare`; under "auto" the
terms are planned again without it. A measure that depends on the "attribution" alone is passed to
an engine as one measure per attribution, each of which depends on nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skattr._inputs import frames
from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.pieces import Pieces


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: workers, progress, tolerances and seed of approximations."""

    n_jobs: int | None = None  # as in joblib
    verbose: int | None = 0  # whether to show progress; None: only in long runs
    tol: float = 1e-2  # largest standard error of a value, in units of the spread of f
    error: np.ndarray | None = None  # (k,) the largest standard error of one term
    max_evals: float = 100_000  # evaluations of f for one value
    seed: int = 0
    without: tuple[str, ...] = ()  # engines that turned out to cost too much
    engine: Any = "auto"  # as in `MeasureExplainer`


class TooCostly(ValueError):
    """Raised by an engine that needs more than `max_evals` for one value."""

    def __init__(self, engine: str, message: str) -> None:
        super().__init__(message)
        self.engine = engine


class Rows(NamedTuple):
    """Explained rows, and their codes (d, n) where the pieces have a grid."""

    X: Any
    codes: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        codes = None if self.codes is None else np.ascontiguousarray(self.codes[:, rows])
        return Rows(frames.take_rows(self.X, rows), codes)


@dataclass(frozen=True, eq=False)
class Integral:
    """Attributions at some rows, as `Engine.integrate` returns them.

    Parameters
    ----------
    values : Estimate
        The attributions, (n, len(chosen), k), with error 0 where they are exact.
    masses : Estimate, optional
        The masses of the measures, (n, len(chosen), 1), if they vary and are estimated.
    certificate : dict
        Bounds on the error of the values, and counts.
    """

    values: Estimate
    masses: Estimate | None = None
    certificate: dict[str, Any] = field(default_factory=dict[str, Any])


def join_certificates(*certificates: dict[str, Any]) -> dict[str, Any]:
    """Join certificates: counts are added up, of errors the largest is kept."""
    whole: dict[str, Any] = {}
    for certificate in certificates:
        for name, number in certificate.items():
            if name in whole:
                before = whole[name]
                number = before + number if isinstance(number, int) else max(before, number)
            whole[name] = number
    return whole


class Engine(BaseEstimator):
    """An algorithm for ∫ f dμ. Settings, if it has any, are constructor parameters."""

    name: str
    kind: type[Pieces]
    views: tuple[str, ...]
    gives = "exact"
    exact = True
    needs_partition = False
    computes_mean = True
    smooth = False

    def refuses(self, pieces: Pieces, measure: Measure) -> str | None:
        """Return why this engine cannot be used, or None if it can.

        Parameters
        ----------
        pieces : Pieces
            The model.
        measure : Measure
            Fitted, and not a combination.
        """
        if not isinstance(pieces, self.kind):
            return f"it needs {self.kind.__name__}, the model is {pieces.describe()}"
        if not set(self.views) & set(measure.views):
            needed = " or ".join(repr(view) for view in self.views)
            return f"it needs the view {needed}, {measure!r} has {', '.join(measure.views)}"
        return self.objection(pieces, measure)

    def objection(self, pieces: Any, measure: Any) -> str | None:
        """Return why this engine cannot be used although kind and view fit, or None."""
        return None

    def why_not_preferred(self, pieces: Any, measure: Any, options: RunOptions) -> str | None:
        """Return why another engine is better although this one can be used, or None."""
        return None

    def may_estimate(self, measure: Measure, options: RunOptions) -> bool:
        """Return whether some values may turn out to be estimates."""
        return not self.exact

    def has_mean(self, measure: Measure) -> bool:
        """Return whether `mean` returns the integral against the reference of this measure."""
        return self.computes_mean

    def cost(self, pieces: Any, measure: Any) -> str:
        """Describe the cost of `fit` and `explain` in a few words, for `describe()`."""
        raise NotImplementedError

    def evaluations(self, states: list[Any], options: RunOptions) -> str:
        """Describe how many evaluations of the model an approximate value takes."""
        return ""

    def outlook(self, state: Any, attributions: Attributions) -> str:
        """Describe the work of explaining the background, if it is known."""
        return ""

    def certificate(self, state: Any) -> str:
        """Describe a bound on the error, if the engine has one beyond rounding."""
        return ""

    def prepare(
        self, pieces: Any, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Any:
        """Compute what does not depend on x.

        Parameters
        ----------
        pieces : Pieces
            The model.
        measure : Measure
            Fitted to one batch of the background.
        attributions : Attributions
            The sets of columns explained; a partition of the columns if `needs_partition`.
        options : RunOptions
            Options of the run.

        Returns
        -------
        state
            Not normalised if batches add up.
        """
        raise NotImplementedError

    def merge(self, a: Any, b: Any) -> Any:
        """Return the state of two batches of the background."""
        raise NotImplementedError

    def finish(self, pieces: Any, state: Any, options: RunOptions) -> Any:
        """Compute what needs all batches of the background, and return the new state."""
        return state

    def mean(self, pieces: Any, state: Any) -> Estimate | None:
        """Return ∫ f d(reference), (k,), or None if this engine does not compute it."""
        return None

    def curves(
        self, pieces: Any, state: Any, attributions: Attributions
    ) -> Sequence[ColumnFunction | None]:
        """Return each attribution as a function of one column, or None if it is integrated."""
        return [None] * len(attributions)

    def integrate(
        self,
        pieces: Any,
        state: Any,
        rows: Rows,
        attributions: Attributions,
        chosen: list[int],
        options: RunOptions,
    ) -> Integral:
        """Integrate some attributions at some rows, where there is no curve.

        Parameters
        ----------
        pieces : Pieces
            The model, on a grid that has the cells of the rows.
        state
            What `finish` returned.
        rows : Rows
            The n rows to explain.
        attributions : Attributions
            Those of `prepare`.
        chosen : list of int
            The positions of those to integrate.
        options : RunOptions
            Options of the run; standard errors should not exceed `options.error`.
        """
        raise NotImplementedError


def is_asked_for(engine: Any, name: str) -> bool:
    """Return whether the user asked for this engine, so that no other may replace it."""
    return engine in ("exact", name) or (isinstance(engine, Engine) and engine.name == name)
