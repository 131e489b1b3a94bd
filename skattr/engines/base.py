"""∫: engines, each one algorithm for one kind of pieces and some views of a measure.

An engine declares what it serves and what it gives, as class attributes:

- `kind`: the class of pieces, and `views`: the views of a measure, one of which it needs;
- `gives`: the result in a few words, for the table of all engines;
- `exact`: whether values are the integral up to rounding;
- `how_exact`: this in words, for `describe()`;
- `needs_partition`: whether its sums are correct only if every column belongs to exactly one
  attribution; overlapping attributions are then prepared in several passes;
- `always_finishes`: whether it never raises `TooCostly`, so that it may serve one of several
  addends;
- `counts_rows`: whether it depends on the number of background rows that it is preferred;
- `counts_values`: whether it depends on how many different values the background has;
- `computes_mean`: whether `mean` returns the integral against the reference of the measure;
- `smooth`: whether its curves vary between the thresholds of the model;
- `row_by_row`: whether explained rows share no evaluations, so that blocks of them cost the same.

What depends on model and measure is computed in `prepare`, what depends on x in `integrate`. A
state consists of numpy arrays, plain containers and our own classes, so that it pickles.

An engine whose cost becomes known while it runs raises `TooCostly` in `prepare`; under "auto" the
terms are planned again without it. A measure that depends on the "attribution" alone is passed to
an engine as one measure per attribution, each of which depends on nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skattr._inputs import frames
from skattr._utils.parallel import check_n_jobs
from skattr.attributions import Attributions
from skattr.curves.base import Function
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.pieces import Pieces

Curves = Sequence[Function | None]  # one per attribution, None if it is integrated

AT_ONCE = 10**7  # evaluations that an exact engine may take where an estimate would do


class RowFolds(NamedTuple):
    """The folds of background rows, for errors from the background."""

    of_rows: np.ndarray  # (n,)
    n: int  # the number of all folds, of which some may have no rows


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: workers, progress, tolerances and seed of approximations.

    Examples
    --------
    >>> from skattr.engines import RunOptions
    >>> RunOptions(max_evals=1e9).for_exact_sums().max_evals
    10000000
    """

    n_jobs: int | None = None  # as in joblib
    verbose: int | None = 0  # whether to show progress; None: only in long runs
    tol: float = 1e-2  # largest standard error of a value, in units of the spread of f
    error: np.ndarray | None = None  # (k,) the largest standard error of one term
    max_evals: float = 100_000  # evaluations of f for one value
    seed: int = 0
    without: tuple[str, ...] = ()  # engines that turned out to cost too much
    engine: Any = "auto"  # as in `MeasureExplainer`
    in_parts: bool = False  # whether these rows are not the whole background
    n_rows: int | None = None  # rows of the whole background, if they are in parts and counted
    folds: RowFolds | None = None  # if sums by fold are of use

    def __post_init__(self) -> None:
        check_n_jobs(self.n_jobs)

    def for_exact_sums(self) -> RunOptions:
        """Return the options that decide whether an exact sum is preferred to an estimate.

        An estimate stops as soon as `tol` is reached, an exact sum takes all its evaluations: a
        large `max_evals` allows them only up to `AT_ONCE`, unless the engine is asked for.
        """
        return replace(self, max_evals=min(self.max_evals, AT_ONCE))


class TooCostly(ValueError):
    """Raised by an engine that needs more than `max_evals` for one value.

    Examples
    --------
    >>> from skattr.engines import TooCostly
    >>> TooCostly("polytopes", "too many cells").engine
    'polytopes'
    """

    def __init__(self, engine: str, message: str) -> None:
        super().__init__(message)
        self.engine = engine


class Rows(NamedTuple):
    """Explained rows, and their codes (d, n) where the pieces have a grid.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.engines import Rows
    >>> Rows(np.array([[1.0], [2.0], [3.0]])).take(np.array([2, 0])).X
    array([[3.],
           [1.]])
    """

    X: Any
    codes: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        codes = None if self.codes is None else np.ascontiguousarray(self.codes[:, rows])
        return Rows(frames.take_rows(self.X, rows), codes)


@dataclass(frozen=True, eq=False)
class Request:
    """The values that `Engine.integrate` is asked for: some attributions at some rows.

    Parameters
    ----------
    rows : Rows
        The n rows to explain.
    attributions : Attributions
        Those of `prepare`.
    chosen : list of int
        The positions of the g attributions to integrate.
    options : RunOptions
        Options of the run; standard errors should not exceed `options.error`.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.attributions import Attributions
    >>> from skattr.engines import Request, Rows, RunOptions
    >>> both = Attributions.single(["a", "b"])
    >>> request = Request(Rows(np.ones((3, 2))), both, [1], RunOptions())
    >>> request.columns, request.zeros(1).shape
    ([(1,)], (3, 1, 1))
    """

    rows: Rows
    attributions: Attributions
    chosen: Sequence[int]
    options: RunOptions

    @property
    def X(self) -> Any:
        """The n rows, raw."""
        return self.rows.X

    @property
    def columns(self) -> list[tuple[int, ...]]:
        """The columns of each chosen attribution."""
        return [self.attributions[a] for a in self.chosen]

    @property
    def all_columns(self) -> list[int]:
        """The columns that belong to any chosen attribution."""
        return sorted({k for columns in self.columns for k in columns})

    def zeros(self, n_outputs: int) -> np.ndarray:
        """Return an array for the values, (n, g, n_outputs)."""
        return np.zeros((len(self.X), len(self.chosen), n_outputs))


@dataclass(frozen=True, eq=False)
class Integral:
    """Attributions at some rows, as `Engine.integrate` returns them.

    Parameters
    ----------
    values : Estimate
        The attributions, (n, g, k), with error 0 where they are exact.
    masses : Estimate, optional
        The masses of the measures, (n, g, 1), if they vary and are estimated.
    certificate : dict
        Bounds on the error of the values, and counts.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.engines import Integral
    >>> from skattr.engines.estimates import Estimate
    >>> Integral(Estimate(np.zeros((3, 2, 1)))).values.is_exact
    True
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
    """An algorithm for ∫ f dμ. Settings, if it has any, are constructor parameters.

    Examples
    --------
    >>> from skattr.engines import ENGINES
    >>> engine = ENGINES[0]
    >>> engine.name, engine.kind.__name__, engine.views, engine.exact
    ('one_violation', 'Boxes', ('rows',), True)
    """

    name: str
    kind: type[Pieces]
    views: tuple[str, ...]
    gives = "exact"
    exact = True
    how_exact = "exact"
    needs_partition = False
    always_finishes = True
    counts_rows = False
    counts_values = False
    computes_mean = True
    smooth = False
    row_by_row = False

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

    def suits(self, pieces: Pieces, measure: Measure) -> bool:
        """Return whether this engine can be used; no time is spent on reasons."""
        if not (isinstance(pieces, self.kind) and set(self.views) & set(measure.views)):
            return False
        return self.refuses(pieces, measure) is None

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

    def sums_by_fold(self, state: Any) -> Any:
        """Return the `FoldSums` of a state that was prepared with folds, or None without them."""
        return None

    def drop_folds(self, state: Any) -> None:
        """Drop the sums by fold of a state, if it has them."""
        return None

    def finish(self, pieces: Any, state: Any, options: RunOptions) -> Any:
        """Compute what needs all batches of the background, and return the new state."""
        return state

    def compact(self, state: Any) -> Any:
        """Return the state without what only `merge` and `curves` read."""
        return state

    def mean(self, pieces: Any, state: Any) -> Estimate | None:
        """Return ∫ f d(reference), (k,), or None if this engine does not compute it."""
        return None

    def curves(self, pieces: Any, state: Any, attributions: Attributions) -> Curves:
        """Return each attribution as a function of one or two columns, or None if integrated."""
        return [None] * len(attributions)

    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        """Integrate the attributions of a request, where there is no curve.

        Parameters
        ----------
        pieces : Pieces
            The model, on a grid that has the cells of the rows.
        state
            What `finish` returned.
        request : Request
            Rows, attributions and options.
        """
        raise NotImplementedError


def is_asked_for(engine: Any, name: str) -> bool:
    """Return whether the user asked for this engine, so that no other may replace it.

    Examples
    --------
    >>> is_asked_for("exact", "polytopes"), is_asked_for("auto", "polytopes")
    (True, False)
    """
    return engine in ("exact", name) or (isinstance(engine, Engine) and engine.name == name)
