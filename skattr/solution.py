"""The terms of a measure, solved: each with its engine and state, and the sum of their curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.engines import Approximation, Engine, Jobs, choose
from skattr.engines.base import standard_error
from skattr.engines.binned_rows import look_up
from skattr.kernels import lookup
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.pieces import Boxes, Pieces


@dataclass(eq=False)
class Term:
    """coefficient · ∫ f dμ, μ one measure."""

    coefficient: float
    measure: Measure
    engine: Engine
    state: Any  # None where another term knows the mean, which is all there is
    mean: np.ndarray | None = None  # (k,) ∫ f d(reference)
    spread: np.ndarray | None = None  # (k,) of f over the background, if the engine approximates


@dataclass(eq=False)
class Solution:
    """All terms, and what explaining needs of them.

    `curves` (n_codes, k) holds, one behind the other, the sum over terms of the curves of each
    attribution; `where` (2, g) its column and start, or -1 where it has no code to look up: there
    the sum is `constants[a]`. `binned[a]` are (number, curve) of the terms whose curve takes the
    raw value as well as its code, `rest[a]` those without a curve, integrated for each row.
    """

    terms: list[Term]
    base_value: np.ndarray
    offset: np.ndarray
    curves: np.ndarray
    where: np.ndarray
    constants: np.ndarray
    binned: list[list[tuple[int, Any]]]
    rest: list[list[int]]

    @property
    def spread(self) -> np.ndarray | None:
        """The spread of f, (k,), the unit of standard errors, or None if every term is exact."""
        return next((term.spread for term in self.terms if term.spread is not None), None)

    def values(
        self,
        pieces: Pieces | None,
        X: Any,
        codes: np.ndarray | None,
        own: tuple,
        a: Any,
        jobs: Jobs,
    ) -> tuple[np.ndarray, Any]:
        """Return some attributions at a block of rows, (n, len(a), k), and standard errors.

        The errors are None where all terms are exact, 0 where no approximate term counts.
        """
        chosen = np.asarray(a)
        result = np.zeros((len(X), len(chosen), len(self.base_value)))
        if codes is not None:
            lookup.look_up(codes, np.ascontiguousarray(self.where[:, chosen]), self.curves, result)
        for place, j in enumerate(chosen):
            if self.where[0, j] < 0:
                result[:, place] = self.constants[j]
            for t, curve in self.binned[j]:
                assert codes is not None
                term = self.terms[t]
                result[:, place] += term.coefficient * look_up(
                    term.engine, pieces, term.state, curve, X, codes, own, int(j), jobs
                )
        for t, term in enumerate(self.terms):
            places = [place for place, j in enumerate(chosen) if t in self.rest[j]]
            if places and not isinstance(term.engine, Approximation):
                todo = [int(chosen[place]) for place in places]
                part = term.engine.integrate(pieces, term.state, X, codes, own, todo, jobs)
                result[:, places] += term.coefficient * part
        if self.spread is None:
            return result, None
        estimates, error = self._estimates(pieces, X, own, chosen, jobs)
        return result + estimates, error

    def _estimates(
        self, pieces: Pieces | None, X: Any, own: tuple, chosen: np.ndarray, jobs: Jobs
    ) -> tuple[Any, Any]:
        """Return the sum of the approximate terms, (n, len(chosen), k), and its standard error.

        Each term keeps a share of the tolerance, so that the sum keeps all of it.
        """
        # an approximation has no curves: it is in the rest of all attributions, or of none
        rest = [self.terms[t] for t in self.rest[chosen[0]]]
        terms = [(term, term.engine) for term in rest if isinstance(term.engine, Approximation)]
        if not terms:
            return 0.0, 0.0
        assert self.spread is not None
        error = jobs.tol * self.spread / sum(abs(term.coefficient) for term, _ in terms)
        places = chosen.tolist()
        replicates: Any = sum(
            term.coefficient * engine.estimate(pieces, term.state, X, own, places, error, jobs)
            for term, engine in terms
        )
        return sum(replicates) / len(replicates), standard_error(replicates)

    def needs_pieces(self, a: int) -> bool:
        """Tell whether an attribution may have to be integrated, not only looked up."""
        return bool(self.rest[a]) or any(curve.partial for _, curve in self.binned[a])

    def curve(self, a: int, n_codes: int) -> np.ndarray:
        """Return the values by code of an attribution that has no rest."""
        start = self.where[1, a]
        return self.curves[start : start + n_codes]


def known_means(terms: list[Term]) -> set[str]:
    """Return the laws whose means the engines of these terms know without being asked."""
    return {
        term.measure.reference().law
        for term in terms
        if term.engine.knows_mean and term.measure.depends != "nothing"
    }


def plan(pieces: Pieces, measures: list, engine: Any) -> list[Term]:
    """Choose the engines of all terms, (coefficient, measure).

    Adds, with coefficient 0, the expectations that somebody needs and nobody computes: the
    reference of each measure, and P itself for `base_value`.
    """
    wanted = {"joint": None}
    for _, measure in measures:
        law = measure.reference()
        if isinstance(law, Expectation):
            wanted[law.law] = None
    found = _chosen(pieces, measures, engine)
    computed = known_means(found) | {m.law for _, m in measures if isinstance(m, Expectation)}
    extra = [(0.0, Expectation(law)) for law in wanted if law not in computed]
    return found + _chosen(pieces, extra, "auto")


def _chosen(pieces: Pieces, measures: list, engine: Any) -> list[Term]:
    engines = choose(engine, pieces, [measure for _, measure in measures])
    return [
        Term(coefficient, measure, chosen, None)
        for (coefficient, measure), chosen in zip(measures, engines, strict=True)
    ]


def prepare(pieces: Pieces, terms: list[Term], own: tuple, jobs: Jobs) -> list[Term]:
    """Prepare planned terms with fitted measures on one batch of the background.

    An expectation that another term knows anyway is not computed again: its state stays None.
    """
    known = known_means(terms)
    for term in terms:
        if not (isinstance(term.measure, Expectation) and term.measure.law in known):
            term.state = term.engine.prepare(pieces, term.measure, own, jobs)
        if isinstance(term.engine, Approximation):
            term.spread = term.measure.background_.spread(pieces)
    return terms


def merge(a: list[Term], b: list[Term]) -> list[Term]:
    """Join two batches of the background."""
    return [
        Term(x.coefficient, y.measure, x.engine, x.engine.merge(x.state, y.state))
        if x.state is not None
        else y
        for x, y in zip(a, b, strict=True)
    ]


def solve(pieces: Pieces, terms: list[Term], own: tuple, jobs: Jobs) -> Solution:
    """Sum the curves and the means of all terms."""
    base_value = _fill_means(pieces, terms, jobs)
    k = pieces.n_outputs
    offset = np.zeros(k)
    tables: list[Any] = [np.zeros((1, k)) for _ in own]
    binned: list[list[tuple[int, Any]]] = [[] for _ in own]
    rest: list[list[int]] = [[] for _ in own]
    for t, term in enumerate(terms):
        assert term.mean is not None
        offset += term.coefficient * (term.measure.mass * term.mean)
        found: list[Any] = [term.mean[None]] * len(own)
        if term.measure.depends != "nothing":
            found = term.engine.tables(pieces, term.state, own)
        for j, table in enumerate(found):
            if table is not None and not isinstance(table, np.ndarray):
                binned[j].append((t, table))
            elif table is not None:
                tables[j] = tables[j] + term.coefficient * table
            elif term.coefficient:
                rest[j].append(t)
    curves, where = _layout(pieces, tables, own)
    constants = np.array([table[0] for table in tables])
    return Solution(terms, base_value, offset, curves, where, constants, binned, rest)


def _fill_means(pieces: Pieces, terms: list[Term], jobs: Jobs) -> np.ndarray:
    """Finish the terms and give each the mean of its reference; returns E f."""
    means: dict[str, np.ndarray] = {}
    for term in terms:
        if term.state is None:
            continue
        term.state = term.engine.finish(pieces, term.state, jobs)
        term.mean = term.engine.mean(pieces, term.state)
        law = term.measure.reference()
        if term.mean is not None and isinstance(law, Expectation):
            term.mean = means.setdefault(law.law, term.mean)
    for term in terms:
        if term.mean is None:
            term.mean = means[term.measure.reference().law]
    return means["joint"]


def _layout(pieces: Pieces, tables: list, own: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Put the curves of single columns one behind the other, and say where they are."""
    where = np.full((2, len(own)), -1, np.int64)
    parts, start = [np.zeros((0, pieces.n_outputs))], 0
    for j, columns in enumerate(own):
        if tables[j] is not None and isinstance(pieces, Boxes) and len(columns) == 1:
            n_codes = pieces.grid.cells[columns[0]].n_codes
            if pieces.grid.cells[columns[0]].open:
                continue
            where[:, j] = columns[0], start
            parts.append(np.broadcast_to(tables[j], (n_codes, tables[j].shape[1])))
            start += n_codes
    return np.concatenate(parts), where
