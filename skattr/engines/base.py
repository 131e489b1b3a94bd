"""∫: engines, each one algorithm for one kind of pieces and one view of a measure.

The protocol. An engine says what it `needs`: (a kind of Pieces, the name of a view), and has

- `refuses(pieces, term)`: the reason why it cannot serve, or None;
- `prepare(pieces, term, own, jobs)` → state: arrays, not normalised where batches add up;
- `merge(a, b)` → the state of both batches, if the measures with this view add up;
- `finish(pieces, state, jobs)` → the state, with what is computed once all batches are there;
- `mean(pieces, state)` → ∫ f d(reference of the term), (k,), if `has_mean(term)`, else None;
- `tables(pieces, state, own)` → for each attribution that is a function of one column's code its
  values, (n_codes, k); for one that looks at the raw value too a curve with a method
  `at(codes, values)` → (n, k); else None;
- `integrate(pieces, state, X, codes, own, chosen, jobs)` → (n, len(chosen), k): some attributions
  at the rows of X, where there is no table. `codes` are those of X, if the pieces have a grid;
- `cost(pieces, term)`: in words, for `describe()`; `outlook(state, own)`: how much work explaining
  is; `certificate(state)`: how small its error is.

An engine whose cost is known only once it runs raises `TooCostly` in `prepare`; under "auto" the
terms are planned again without it. If `may_estimate(term, jobs)`, an exact engine may find that a
single value costs too much: its `integrate` returns an `Estimate` then, of error 0 elsewhere. What
it can prove of the values at hand it notes by `certify`.

An engine that is not `exact` is an `Approximation`: its `mean` is an `Estimate`, and in place of
`integrate` it has

- `estimate(pieces, state, X, own, chosen, jobs)` → the values (n, len(chosen), k) as an `Estimate`
  whose standard error should not exceed `jobs.error`, and the masses of the measures, an `Estimate`
  (n, len(chosen), 1), where `mass` is None because it depends on x or j.

A measure that depends on the "attribution" alone is, to an engine, one measure for each of them
that depends on nothing. What depends on model and measure is done in `prepare`, what depends on x
in `integrate`. A state is numpy arrays, plain containers and our own classes, so that it pickles.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.pieces import Pieces

Own = tuple[tuple[int, ...], ...]


class Jobs(NamedTuple):
    """How to run: the workers, as joblib counts them, and where approximations start and stop."""

    n_jobs: int | None = None
    verbose: int | None = 0  # whether to show progress; None: once it takes long
    tol: float = 1e-2  # largest standard error of a value, in units of the spread of f
    error: np.ndarray | None = None  # (k,) the largest standard error of a value of one term
    max_evals: float = 100_000  # evaluations of f for one value
    seed: int = 0
    without: tuple[str, ...] = ()  # engines that were found to cost too much
    certificate: dict | None = None  # where exact engines note what they can prove
    engine: Any = "auto"  # what the user asked for


class TooCostly(ValueError):
    """An engine's word that one value takes more than `max_evals`."""

    def __init__(self, engine: str, message: str) -> None:
        super().__init__(message)
        self.engine = engine


def certify(jobs: Jobs, found: dict) -> None:
    """Note what is known of the error of values: counts add up, errors are the largest."""
    if jobs.certificate is not None:
        join_certificates(jobs.certificate, found)


def join_certificates(whole: dict, found: dict) -> None:
    """Add what is known of more values."""
    for name, number in found.items():
        if name in whole:
            number = whole[name] + number if isinstance(number, int) else max(whole[name], number)
        whole[name] = number


class Engine(BaseEstimator):
    """An algorithm for ∫ f dμ. Settings, if it has any, are constructor parameters."""

    name: str
    needs: tuple[type[Pieces], str]
    exact = True
    knows_mean = True  # whether `mean` gives the integral against the term's reference
    smooth = False  # whether its curves are no step functions

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        kind, view = self.needs
        if not isinstance(pieces, kind):
            return f"it needs {kind.__name__}, the model is {pieces.describe()}"
        if view not in term.views:
            return f"it needs the view {view!r}, {term!r} has {', '.join(term.views)}"
        return None

    def suits(self, pieces: Pieces, term: Any, jobs: Jobs) -> str | None:
        """Return why another engine is better although this one could serve, or None."""
        return None

    def may_estimate(self, term: Measure, jobs: Jobs) -> bool:
        """Tell whether some values may turn out to be estimates."""
        return not self.exact

    def has_mean(self, term: Measure) -> bool:
        """Tell whether `mean` gives the integral against the reference of this term."""
        return self.knows_mean

    def cost(self, pieces: Any, term: Any) -> str:
        """Say what it costs."""
        raise NotImplementedError

    def outlook(self, state: Any, own: Own) -> str:
        """Say how much work it is to explain, if that is known before."""
        return ""

    def certificate(self, state: Any) -> str:
        """Say how small the error is known to be, if that takes more words than "exact"."""
        return ""

    def prepare(self, pieces: Any, term: Any, own: Own, jobs: Jobs) -> Any:
        """Do what does not depend on x."""
        raise NotImplementedError

    def merge(self, a: Any, b: Any) -> Any:
        """Join the states of two batches of the background."""
        raise NotImplementedError

    def finish(self, pieces: Any, state: Any, jobs: Jobs) -> Any:
        """Do what has to wait for all batches of the background."""
        return state

    def mean(self, pieces: Any, state: Any) -> Any:
        """Return ∫ f d(reference), (k,), or None if it takes another engine."""
        return None

    def tables(self, pieces: Any, state: Any, own: Own) -> list[np.ndarray | None]:
        """Return the values by code of each attribution, or None."""
        return [None] * len(own)

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> Any:
        """Return some attributions at the rows of X, (n, len(chosen), k)."""
        raise NotImplementedError


def is_asked_for(engine: Any, name: str) -> bool:
    """Tell whether the user wants this engine, or none that approximates in place of it."""
    return engine in ("exact", name) or (isinstance(engine, Engine) and engine.name == name)


class Approximation(Engine):
    """An algorithm that estimates ∫ f dμ, and its error."""

    exact = False

    @abstractmethod
    def estimate(
        self, pieces: Any, state: Any, X: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> tuple[Estimate, Estimate | None]:
        """Return estimates of some attributions at the rows of X, and of masses if they vary."""

    @abstractmethod
    def evaluations(self, state: Any, jobs: Jobs) -> str:
        """Say how many evaluations a value takes."""
