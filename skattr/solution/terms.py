"""The terms of a measure, each with its engine: planned, prepared and merged over batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction
from skattr.engines import Engine, Integral, Rows, RunOptions, choose
from skattr.engines.backgrounds import Moments, find_moments
from skattr.engines.base import join_certificates
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.pieces import Pieces

Fit = Callable[[Measure, Attributions], Measure]


@dataclass(eq=False)
class Pass:
    """Some attributions that an engine prepares together, and a measure fitted for them."""

    positions: list[int]  # of these attributions among all
    attributions: Attributions  # those passed to the engine; they begin with these if x matters
    measure: Measure
    state: Any = None


@dataclass(eq=False)
class Term:
    """coefficient · ∫ f dμ, μ a measure that is not a combination."""

    coefficient: float
    measure: Measure
    engine: Engine
    passes: list[Pass] = field(default_factory=list)  # empty if another term has the mean
    mean: Estimate | None = None  # (k,) ∫ f d(reference)
    moments: Moments | None = None  # of f over the background, if values may be estimates

    @property
    def is_constant(self) -> bool:
        """Whether its values are the same for all rows."""
        return self.measure.depends in ("nothing", "attribution")

    def unfitted(self) -> Term:
        """Return the term with a clone of its measure, to be prepared on another batch."""
        return Term(self.coefficient, clone(self.measure), self.engine)

    def prepare(
        self, pieces: Pieces, attributions: Attributions, options: RunOptions, fit: Fit
    ) -> None:
        """Prepare all passes."""
        self.passes = self._passes(attributions, fit)
        for each in self.passes:
            each.state = self.engine.prepare(pieces, each.measure, each.attributions, options)

    def _passes(self, attributions: Attributions, fit: Fit) -> list[Pass]:
        measure = self.measure
        partitions = [(list(range(len(attributions))), attributions)]
        if self.engine.needs_partition or measure.needs_partition:
            partitions = attributions.partitions()
        positions, first = partitions[0]
        if measure.depends == "attribution":
            members = measure.members(attributions)
            return [Pass([a], first, member) for a, member in enumerate(members)]
        if measure.depends == "nothing" or first is attributions:
            return [Pass(positions, first, measure)]
        return [
            Pass(positions, partition, fit(clone(measure), partition))
            for positions, partition in partitions
        ]

    def release(self) -> None:
        """Release the background of all measures."""
        self.measure.release()
        for each in self.passes:
            each.measure.release()

    def merge(self, other: Term) -> Term:
        """Return the term of two batches of the background."""
        if not self.passes:
            return other
        moments = None
        if self.moments is not None and other.moments is not None:
            moments = self.moments.merge(other.moments)
        passes = [
            Pass(a.positions, a.attributions, b.measure, self.engine.merge(a.state, b.state))
            for a, b in zip(self.passes, other.passes, strict=True)
        ]
        return Term(self.coefficient, other.measure, self.engine, passes, None, moments)

    def finish(self, pieces: Pieces, options: RunOptions) -> None:
        """Compute what needs all batches, and the mean of the reference if the engine has it."""
        for each in self.passes:
            each.state = self.engine.finish(pieces, each.state, options)
        if self.passes and self.measure.depends != "attribution":
            self.mean = self.engine.mean(pieces, self.passes[0].state)

    def constants(self, pieces: Pieces, n: int) -> list[Estimate]:
        """Return the values of n attributions of a constant term, (k,) each."""
        if self.measure.depends != "attribution":
            assert self.mean is not None
            return [self.mean] * n
        means = [self.engine.mean(pieces, each.state) for each in self.passes]
        return [mean * self.measure.mass for mean in means if mean is not None]

    def curves(self, pieces: Pieces, n: int) -> list[ColumnFunction | None]:
        """Return n attributions as functions of one column, None where they are integrated."""
        result: list[ColumnFunction | None] = [None] * n
        for each in self.passes:
            curves = self.engine.curves(pieces, each.state, each.attributions)
            for position, curve in zip(each.positions, curves, strict=False):
                result[position] = curve
        return result

    def integrate(
        self, pieces: Any, rows: Rows, chosen: Sequence[int], options: RunOptions
    ) -> Integral:
        """Return some attributions at some rows, and their masses if these depend on x or j."""
        parts = []
        for each in self.passes:
            targets = [i for i, a in enumerate(chosen) if a in each.positions]
            wanted = [each.positions.index(chosen[i]) for i in targets]
            if not wanted:
                continue
            integral = self.engine.integrate(
                pieces, each.state, rows, each.attributions, wanted, options
            )
            masses = integral.masses
            if masses is None and self.measure.mass is None:
                known = each.measure.masses(rows.X, each.attributions)
                assert known is not None
                masses = Estimate(known[:, wanted, None])
            parts.append((targets, integral.values, masses, integral.certificate))
        n = len(chosen)
        values = [values.placed(to, n) for to, values, *_ in parts]
        varying = [masses.placed(to, n) for to, _, masses, _ in parts if masses is not None]
        return Integral(
            _total(values),
            _total(varying) if varying else None,
            join_certificates(*(certificate for *_, certificate in parts)),
        )

    def support(self, X: Any, a: int) -> np.ndarray | None:
        """Return the effective number of rows behind an attribution, (n,), if it depends on x."""
        for each in self.passes:
            if a in each.positions:
                columns = each.attributions[each.positions.index(a)]
                return each.measure.support(X, columns)
        return None

    def describe(self, pieces: Pieces, attributions: Attributions, options: RunOptions) -> str:
        """Describe engine, cost and error in one line."""
        engine, exact = self.engine, self.engine.exact
        how = "exact"
        if not exact:
            how = f"approximate (tol={options.tol:g}, max_evals={options.max_evals})"
        parts = [f"{self.measure!r}: engine {engine.name}, {how}"]
        if not self.passes:
            return "; ".join([*parts, "computed together with another term"])
        parts.append(engine.cost(pieces, self.measure))
        if not exact:
            assert options.error is not None
            errors = ", ".join(f"{size:.2g}" for size in options.error)
            counts = engine.evaluations([each.state for each in self.passes], options)
            parts += [counts, f"stops at a standard error of {errors}"]
        if self.measure.depends != "attribution":
            state = self.passes[0].state
            parts += [engine.outlook(state, attributions), engine.certificate(state)]
        return "; ".join(part for part in parts if part)


def _total(parts: list[Estimate]) -> Estimate:
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def known_means(terms: list[Term]) -> set[str]:
    """Return the laws whose means the engines of these terms compute anyway."""
    return {
        term.measure.reference().law
        for term in terms
        if not term.is_constant and term.engine.has_mean(term.measure)
    }


def plan(
    pieces: Pieces,
    measures: list[tuple[float, Measure]],
    options: RunOptions,
    fit: Callable[[Measure], Measure],
) -> list[Term]:
    """Choose the engines of all terms, given (coefficient, fitted measure).

    Adds, with coefficient 0, the expectations that are required but not otherwise computed: the
    reference of each measure, and P itself for `base_value`.
    """
    wanted = {"joint": None}
    for _, measure in measures:
        law = measure.reference()
        if isinstance(law, Expectation):
            wanted[law.law] = None
    terms = _with_engines(pieces, measures, options.engine, options)
    computed = known_means(terms) | {m.law for _, m in measures if isinstance(m, Expectation)}
    extra = [(0.0, fit(Expectation(law))) for law in wanted if law not in computed]
    return terms + _with_engines(pieces, extra, "auto", options)


def _with_engines(
    pieces: Pieces, measures: list[Any], engine: Any, options: RunOptions
) -> list[Term]:
    engines = choose(engine, pieces, [measure for _, measure in measures], options)
    return [
        Term(coefficient, measure, chosen)
        for (coefficient, measure), chosen in zip(measures, engines, strict=True)
    ]


def prepare(
    pieces: Pieces, terms: list[Term], attributions: Attributions, options: RunOptions, fit: Fit
) -> list[Term]:
    """Prepare planned terms with fitted measures on one batch of the background.

    An expectation that another term computes anyway is not computed again: it has no passes.
    """
    known = known_means(terms)
    for term in terms:
        measure = term.measure
        if not (isinstance(measure, Expectation) and measure.law in known):
            term.prepare(pieces, attributions, options, fit)
        if term.engine.may_estimate(measure, options):
            term.moments = find_moments(measure.background_, pieces)
    for term in terms:
        term.release()
    return terms


def share_of_error(terms: list[Term], tol: float) -> np.ndarray | None:
    """Return the error of one term, (k,), with which the sum of all terms is within `tol`."""
    moments = next((term.moments for term in terms if term.moments is not None), None)
    if moments is None:
        return None
    shares = sum(abs(t.coefficient) * _scale(t) for t in terms if t.moments is not None)
    return tol * moments.spread() / (shares or 1.0)


def _scale(term: Term) -> float:
    """Return the factor of integrals: members are probabilities, their measure may not be."""
    return float(term.measure.mass or 0.0) if term.measure.depends == "attribution" else 1.0
