"""The terms of a measure, solved: each with its engine and state, and the sum of their curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skattr.engines import Approximation, Engine, Jobs, choose
from skattr.engines.binned_rows import look_up
from skattr.engines.estimates import Estimate
from skattr.kernels import lookup
from skattr.measures.background import Moments
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
    mean: Estimate | None = None  # (k,) ∫ f d(reference)
    moments: Moments | None = None  # of f over the background, if values may be estimates

    @property
    def is_constant(self) -> bool:
        """Whether its values depend on no row."""
        return self.measure.depends in ("nothing", "attribution")


class Found(NamedTuple):
    """Values, (n, g, k), their standard errors, what centring takes off, and errors after it.

    The errors are None where nothing was approximated; the offset is (k,), or the shape of the
    values where a mass depends on x or j.
    """

    values: np.ndarray
    error: np.ndarray | None
    offset: np.ndarray
    centered_error: np.ndarray | None


def joined(parts: Iterable[Found], n: int) -> Found:
    """Put the rows of blocks one behind the other, n in all."""
    whole: list[Any] | None = None
    start = 0
    for part in parts:
        rows = len(part.values)
        if whole is None:
            whole = [
                array if array is None or array.ndim == 1 else np.empty((n, *array.shape[1:]))
                for array in part
            ]
        for total, array in zip(whole, part, strict=True):
            if array is not None and array.ndim > 1:
                total[start : start + rows] = array
        start += rows
    assert whole is not None
    return Found(*whole)


@dataclass(eq=False)
class Solution:
    """All terms, and what explaining needs of them.

    `curves` (n_codes, k) holds, one behind the other, the sum over terms of the curves of each
    attribution; `where` (2, g) its column and start, or -1 where it has no code to look up: there
    the sum is `constants[a]`. `binned[a]` are (number, curve) of the terms whose curve takes the
    raw value as well as its code, `rest[a]` those without a curve, integrated for each row.
    `estimates[a]` are approximate constants, `offset` the sum over terms of constant mass.
    """

    terms: list[Term]
    base_value: np.ndarray
    offset: Estimate  # (k,)
    curves: np.ndarray
    where: np.ndarray
    constants: np.ndarray
    estimates: list[Estimate]
    binned: list[list[tuple[int, Any]]]
    rest: list[list[int]]
    error: np.ndarray | None  # (k,) of one approximate term

    @property
    def spread(self) -> np.ndarray | None:
        """The spread of f, (k,), the unit of standard errors, or None if there are none."""
        return next((t.moments.spread() for t in self.terms if t.moments is not None), None)

    @property
    def is_exact(self) -> bool:
        """Whether every term that counts is exact."""
        return all(term.engine.exact for term in self.terms if term.coefficient)

    def values(
        self,
        pieces: Pieces | None,
        X: Any,
        codes: np.ndarray | None,
        own: tuple,
        a: Any,
        jobs: Jobs,
    ) -> Found:
        """Return some attributions at a block of rows."""
        chosen = np.asarray(a)
        jobs = jobs._replace(error=self.error)
        result = self._looked_up(pieces, X, codes, own, chosen, jobs)
        total, offset = self._constant(chosen), self.offset
        for t, term in enumerate(self.terms):
            places = [place for place, j in enumerate(chosen) if t in self.rest[j]]
            if not places:
                continue
            part, mass = self._integrals(term, pieces, X, codes, own, chosen[places], jobs)
            if isinstance(part, np.ndarray):
                result[:, places] += term.coefficient * part
            else:
                total = total + _spread_over(part * term.coefficient, places, len(chosen))
            if mass is not None:
                assert term.mean is not None
                off = mass * (term.coefficient * term.mean.value)
                offset = offset + _spread_over(off, places, len(chosen))
        if self.error is None:  # nothing is approximate
            return Found(result, None, offset.value, None)
        centered = total - offset
        errors = [
            None
            if self.is_exact and estimate.is_exact
            else np.broadcast_to(estimate.std_error, result.shape)
            for estimate in (total, centered)
        ]
        return Found(result + total.value, errors[0], offset.value, errors[1])

    def _looked_up(
        self, pieces: Any, X: Any, codes: Any, own: tuple, chosen: np.ndarray, jobs: Jobs
    ) -> np.ndarray:
        """Return the sums of the curves and of exact constants, (n, g, k)."""
        result = np.zeros((len(X), len(chosen), len(self.base_value)))
        if codes is not None:
            lookup.look_up(codes, np.ascontiguousarray(self.where[:, chosen]), self.curves, result)
        for place, j in enumerate(chosen):
            if self.where[0, j] < 0:
                result[:, place] = self.constants[j]
            for t, curve in self.binned[j]:
                term = self.terms[t]
                result[:, place] += term.coefficient * look_up(
                    term.engine, pieces, term.state, curve, X, codes, own, int(j), jobs
                )
        return result

    def _constant(self, chosen: np.ndarray) -> Estimate:
        """Return the approximate terms that depend on no row, (g, k)."""
        parts = [self.estimates[j] for j in chosen]
        error = np.array([np.broadcast_to(part.error, part.value.shape) for part in parts])
        replicates = None
        if any(part.replicates is not None for part in parts):
            replicates = np.stack([part.replicates for part in parts], axis=1)
        return Estimate(np.array([part.value for part in parts]), error, replicates)

    def _integrals(
        self, term: Term, pieces: Any, X: Any, codes: Any, own: tuple, a: np.ndarray, jobs: Jobs
    ) -> tuple[Estimate | np.ndarray, Estimate | None]:
        """Return the values of a term without a curve, and its masses if they vary."""
        todo = [int(j) for j in a]
        if isinstance(term.engine, Approximation):
            return term.engine.estimate(pieces, term.state, X, own, todo, jobs)
        values = term.engine.integrate(pieces, term.state, X, codes, own, todo, jobs)
        mass = None
        if term.measure.mass is None:
            mass = Estimate(term.measure.masses(X, own)[:, todo, None])
        return values, mass

    def needs_pieces(self, a: int) -> bool:
        """Tell whether an attribution may have to be integrated, not only looked up."""
        return bool(self.rest[a]) or any(curve.partial for _, curve in self.binned[a])

    def curve(self, a: int, n_codes: int) -> np.ndarray:
        """Return the values by code of an attribution that has no rest."""
        start = self.where[1, a]
        return self.curves[start : start + n_codes]


def _spread_over(part: Estimate, places: list[int], g: int) -> Estimate:
    """Put attributions at their places among all that are wanted, 0 elsewhere."""
    if places == list(range(g)):
        return part
    shape = (*part.value.shape[:-2], g, part.value.shape[-1])
    value, error = np.zeros(shape), np.zeros(shape)
    value[..., places, :] = part.value
    error[..., places, :] = part.error
    replicates = None
    if part.replicates is not None:
        replicates = np.zeros((len(part.replicates), *shape))
        replicates[..., places, :] = part.replicates
    return Estimate(value, error, replicates)


def known_means(terms: list[Term]) -> set[str]:
    """Return the laws whose means the engines of these terms know without being asked."""
    return {
        term.measure.reference().law
        for term in terms
        if not term.is_constant and term.engine.has_mean(term.measure)
    }


def plan(
    pieces: Pieces, measures: list, engine: Any, jobs: Jobs, fit: Callable[[Measure], Measure]
) -> list[Term]:
    """Choose the engines of all terms, (coefficient, fitted measure).

    Adds, with coefficient 0, the expectations that somebody needs and nobody computes: the
    reference of each measure, and P itself for `base_value`.
    """
    wanted = {"joint": None}
    for _, measure in measures:
        law = measure.reference()
        if isinstance(law, Expectation):
            wanted[law.law] = None
    found = _chosen(pieces, measures, engine, jobs)
    computed = known_means(found) | {m.law for _, m in measures if isinstance(m, Expectation)}
    extra = [(0.0, fit(Expectation(law))) for law in wanted if law not in computed]
    return found + _chosen(pieces, extra, "auto", jobs)


def _chosen(pieces: Pieces, measures: list, engine: Any, jobs: Jobs) -> list[Term]:
    engines = choose(engine, pieces, [measure for _, measure in measures], jobs)
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
        measure, engine = term.measure, term.engine
        if measure.depends == "attribution":
            members = measure.members(own)
            term.state = [engine.prepare(pieces, member, own, jobs) for member in members]
        elif not (isinstance(measure, Expectation) and measure.law in known):
            term.state = engine.prepare(pieces, measure, own, jobs)
        if engine.may_estimate(measure, jobs):
            term.moments = measure.background_.moments(pieces)
    return terms


def merge(a: list[Term], b: list[Term]) -> list[Term]:
    """Join two batches of the background."""
    return [_merged(x, y) for x, y in zip(a, b, strict=True)]


def _merged(a: Term, b: Term) -> Term:
    if a.state is None:
        return b
    moments = None if a.moments is None or b.moments is None else a.moments.merge(b.moments)
    if isinstance(a.state, list) and a.measure.depends == "attribution":
        state: Any = [a.engine.merge(x, y) for x, y in zip(a.state, b.state, strict=True)]
    else:
        state = a.engine.merge(a.state, b.state)
    return Term(a.coefficient, b.measure, a.engine, state, None, moments)


def solve(pieces: Pieces, terms: list[Term], own: tuple, jobs: Jobs) -> Solution:
    """Sum the curves and the means of all terms."""
    error = _share_of_error(terms, jobs.tol)
    jobs = jobs._replace(error=error)
    members, base_value = _fill_means(pieces, terms, jobs)
    k = pieces.n_outputs
    offset = Estimate(np.zeros(k))
    tables: list[Any] = [np.zeros((1, k)) for _ in own]
    estimates = [Estimate(np.zeros(k)) for _ in own]
    binned: list[list[tuple[int, Any]]] = [[] for _ in own]
    rest: list[list[int]] = [[] for _ in own]
    for t, term in enumerate(terms):
        assert term.mean is not None
        if term.measure.mass is not None:
            offset = offset + term.mean * (term.coefficient * term.measure.mass)
        if term.is_constant:
            found = members.get(t, [term.mean] * len(own))
            parts = [term.coefficient * mean for mean in found] if term.coefficient else []
            for j, part in enumerate(parts):
                if term.engine.exact:
                    tables[j] = tables[j] + part.value
                else:
                    estimates[j] = estimates[j] + part
            continue
        for j, table in enumerate(term.engine.tables(pieces, term.state, own)):
            if table is not None and not isinstance(table, np.ndarray):
                binned[j].append((t, table))
            elif table is not None:
                tables[j] = tables[j] + term.coefficient * table
            elif term.coefficient:
                rest[j].append(t)
    curves, where = _layout(pieces, tables, own)
    constants = np.array([table[0] for table in tables])
    return Solution(
        terms, base_value, offset, curves, where, constants, estimates, binned, rest, error
    )


def _share_of_error(terms: list[Term], tol: float) -> np.ndarray | None:
    """Return the error of one term, (k,), at which the sum of all keeps the tolerance."""
    moments = next((term.moments for term in terms if term.moments is not None), None)
    if moments is None:
        return None
    shares = sum(abs(t.coefficient) * _scale(t) for t in terms if t.moments is not None)
    return tol * moments.spread() / (shares or 1.0)


def _scale(term: Term) -> float:
    """Return what integrals are multiplied by: members are probabilities, their measure is not."""
    return float(term.measure.mass or 0.0) if term.measure.depends == "attribution" else 1.0


def _fill_means(pieces: Pieces, terms: list[Term], jobs: Jobs) -> tuple[dict, np.ndarray]:
    """Finish the terms and give each the mean of its reference.

    Returns the means of those that are one measure an attribution, by number, and E f.
    """
    means: dict[str, Estimate] = {}
    members: dict[int, list[Estimate]] = {}
    for t, term in enumerate(terms):
        if term.state is None:
            continue
        if term.measure.depends == "attribution":
            term.state = [term.engine.finish(pieces, state, jobs) for state in term.state]
            found = [_estimate(term.engine.mean(pieces, state)) for state in term.state]
            members[t] = [mean * term.measure.mass for mean in found if mean is not None]
            continue
        term.state = term.engine.finish(pieces, term.state, jobs)
        term.mean = _estimate(term.engine.mean(pieces, term.state))
        law = term.measure.reference()
        if term.mean is not None and isinstance(law, Expectation):
            term.mean = means.setdefault(law.law, term.mean)
    for term in terms:
        if term.mean is None:
            term.mean = means[term.measure.reference().law]
    return members, means["joint"].value


def _estimate(mean: Any) -> Estimate | None:
    return Estimate(mean) if isinstance(mean, np.ndarray) else mean


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
