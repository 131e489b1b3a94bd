"""The solution: curves, constants and offsets of all terms of a measure, added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction, Function
from skattr.curves.by_code import CodeFunction, Constant
from skattr.curves.sums import add_up
from skattr.engines import Request, RunOptions
from skattr.engines.base import join_certificates
from skattr.engines.estimates import Estimate
from skattr.engines.lookups import look_up
from skattr.measures import LinearCombination, Measure
from skattr.pieces import Pieces
from skattr.solution.code_tables import CodeTables
from skattr.solution.fold_errors import FoldErrors
from skattr.solution.read_model import ReadModel
from skattr.solution.terms import Term
from skattr.solution.values import Values, check_finite, check_finite_means, warn_unconverged


@dataclass(eq=False)
class Solution:
    """A model, all terms of a measure, and their sums by attribution."""

    model: ReadModel
    attributions: Attributions
    all_terms: list[Term]  # those of the measure, then those that only have means
    base_value: np.ndarray  # (k,) E f
    offset: Estimate  # (k,) the sum over terms of constant mass
    tables: CodeTables  # exact constants and functions of codes
    estimates: list[Estimate]  # approximate constants, (k,) each
    curved: list[list[tuple[int, Function]]]  # (term, function of the raw value)
    rest: list[list[int]]  # terms that are integrated for each row
    error: np.ndarray | None  # (k,) the standard error of one approximate term
    folds: FoldErrors | None = None  # errors from the background
    no_folds: str = ""  # why there are none

    @property
    def terms(self) -> list[Term]:
        """The terms of the measure."""
        return [term for term in self.all_terms if not term.is_reference]

    @property
    def measure(self) -> Measure:
        """The fitted measure."""
        fitted = [(term.coefficient, term.measure) for term in self.terms]
        whole = len(fitted) == 1 and fitted[0][0] == 1.0
        return fitted[0][1] if whole else LinearCombination(fitted)

    @cached_property
    def measure_names(self) -> tuple[str, str]:
        """The fitted measure as Python writes it, and in words."""
        measure = self.measure
        return repr(measure), measure.in_words()

    @property
    def engine_names(self) -> tuple[str, ...]:
        """The engine of each term of the measure."""
        return tuple(term.engine.name for term in self.terms)

    @property
    def spread(self) -> np.ndarray | None:
        """The spread of f, (k,), the unit of standard errors, or None if there are none."""
        return next((t.moments.spread() for t in self.all_terms if t.moments is not None), None)

    @property
    def is_exact(self) -> bool:
        """Whether every term with a nonzero coefficient is exact."""
        return all(term.engine.exact for term in self.all_terms if term.coefficient)

    @property
    def reference(self) -> np.ndarray | None:
        """The mean of f that the values of one measure without mass add up from, if not E f."""
        (first, *others) = self.terms
        law = first.measure.reference().mean_law
        alone = not others and first.coefficient == 1.0 and first.measure.mass == 0.0
        if not alone or law in ("", "joint"):
            return None
        assert first.mean is not None
        mean: np.ndarray = first.mean.value
        return mean

    def curve(self, a: int, integrate: Callable[..., Any]) -> ColumnFunction | None:
        """Return an attribution as a function of its column, or None if it must be evaluated.

        `integrate` maps raw values to attributions, (n, k).
        """
        if self.rest[a]:
            return None
        base = self.tables.base(a, self.model.grid) + Constant(self.estimates[a].value[None])
        parts: list[Any] = [(self.all_terms[t].coefficient, each) for t, each in self.curved[a]]
        return add_up(base, parts, integrate)

    def values(self, X: Any, chosen: Sequence[int], options: RunOptions) -> Values:
        """Return some attributions at rows, and warn if estimates stopped at `max_evals`."""
        model = self.model
        integrated = any(self._is_integrated(a) for a in chosen)
        pieces = model.pieces if integrated else None

        def values(block: slice) -> Values:
            return self._with_errors(
                *self._request(frames.take_rows(X, block), pieces, chosen, options)
            )

        shared = any(not t.engine.row_by_row for t in self.all_terms)
        if integrated and model.grid is None and shared:  # rows of equal values share evaluations
            result = values(slice(len(X)))
        else:
            # engines that integrate use the workers themselves
            n_jobs = 1 if integrated else options.n_jobs
            result = Values.joined(in_order(values, model.blocks(X), n_jobs), len(X))
        check_finite(result.values, [self.attributions.names[a] for a in chosen])
        warn_unconverged(result.error, self.spread, options)
        return result

    def at_values(self, a: int, options: RunOptions, *values: Any) -> np.ndarray:
        """Return an attribution at raw values of its columns, (n, k), by integrating it."""
        model, columns = self.model, self.attributions[a]
        if len(values[0]) == 0:  # the background has no values
            return np.empty((0, len(self.base_value)))
        X = model.rows_with(dict(zip(columns, values, strict=True)))
        result = self.values_at(*self._request(X, model.pieces, [a], options))
        warn_unconverged(result.error, self.spread, options)
        return result.values[:, 0]

    def error_at_values(
        self, a: int, options: RunOptions, centered: bool, values: Any
    ) -> np.ndarray:
        """Return the error from the background of an attribution at raw values, (n, k)."""
        if len(values) == 0:
            return np.empty((0, len(self.base_value)))
        model = self.model
        (k,) = self.attributions[a]
        if model.takes_booleans_as_numbers(k):
            values = frames.to_float(values)  # a missing one too, which bool does not hold
        X = model.rows_with({k: values})
        estimate = self._with_errors(*self._request(X, model.pieces, [a], options))
        error = estimate.centered_background_error if centered else estimate.background_error
        assert error is not None
        return error[:, 0]

    def importance_by_fold(self, X: Any, chosen: Sequence[int], options: RunOptions) -> np.ndarray:
        """Return the mean absolute centred values, with each fold deleted, (G, g, k)."""
        assert self.folds is not None
        total = np.zeros((self.folds.n, len(chosen), len(self.base_value)))
        pieces = self.model.pieces if any(self._is_integrated(a) for a in chosen) else None
        blocks = [slice(len(X))] if self.model.grid is None else self.model.blocks(X)
        for block in blocks:
            met, request = self._request(frames.take_rows(X, block), pieces, chosen, options)
            known = self.values_at(met, request)
            moved = self.folds.centered_deviations(met, request, known)
            for g, deviation in enumerate(moved):
                total[g] += np.abs(known.values - known.offset + deviation).sum(axis=0)
        return total / len(X)

    def _request(
        self, X: Any, pieces: Pieces | None, chosen: Sequence[int], options: RunOptions
    ) -> tuple[Pieces | None, Request]:
        """Return the request for attributions at raw rows, and the pieces that have their cells."""
        met, rows = self.model.encode(X, pieces)
        return met, Request(rows, self.attributions, chosen, options)

    def _with_errors(self, pieces: Pieces | None, request: Request) -> Values:
        """Return some attributions at rows, with their errors from the background."""
        values = self.values_at(pieces, request)
        if self.folds is None:
            return values
        error, centered = self.folds.errors(pieces, request, values)
        return values._replace(background_error=error, centered_background_error=centered)

    def support(self, X: Any, chosen: Sequence[int]) -> np.ndarray | None:
        """Return the effective number of rows behind each value, the least of all terms."""
        result = None
        for term in self.terms:
            for i, a in enumerate(chosen):
                support = term.support(X, a) if term.coefficient else None
                if support is not None:
                    if result is None:
                        result = np.full((len(X), len(chosen)), np.inf)
                    result[:, i] = np.minimum(result[:, i], support)
        return result

    def _is_integrated(self, a: int) -> bool:
        """Return whether an attribution may have to be integrated, not only looked up."""
        return bool(self.rest[a]) or any(curve.partial for _, curve in self.curved[a])

    def values_at(self, pieces: Pieces | None, request: Request) -> Values:
        """Look attributions up on their curves, or integrate them, which takes `pieces`.

        Rows and pieces are those that `ReadModel.encode` returns.
        """
        request = replace(request, options=replace(request.options, error=self.error))
        chosen, g = request.chosen, len(request.chosen)
        result = self.tables.look_up(request.rows, np.asarray(chosen))
        total, offset = self._constants(chosen), self.offset
        certificates = []
        for i, a in enumerate(chosen):
            for t, curve in self.curved[a]:
                term, one = self.all_terms[t], replace(request, chosen=[a])
                values = look_up(curve, one, partial(term.integrate, pieces))
                result[:, i] += term.coefficient * values
        for t, term in enumerate(self.all_terms):
            positions = [i for i, a in enumerate(chosen) if t in self.rest[a]]
            if positions:
                wanted = replace(request, chosen=[chosen[i] for i in positions])
                integral = term.integrate(pieces, wanted)
                certificates.append(integral.certificate)
                estimate = integral.values * term.coefficient
                if estimate.is_exact:
                    result[:, positions] += estimate.value
                else:
                    total = total + estimate.placed(positions, g)
                if integral.masses is not None:
                    assert term.mean is not None
                    masses = integral.masses * (term.coefficient * term.mean.value)
                    offset = offset + masses.placed(positions, g)
        certificate = join_certificates(*certificates)
        if self.error is None:  # nothing is approximate
            return Values(result, None, offset.value, None, None, None, certificate)
        errors = [
            None
            if self.is_exact and estimate.is_exact
            else np.broadcast_to(estimate.std_error, result.shape)
            for estimate in (total, total - offset)
        ]
        return Values(
            result + total.value, errors[0], offset.value, errors[1], None, None, certificate
        )

    def _constants(self, chosen: Sequence[int]) -> Estimate:
        """Return the approximate constants of some attributions, (g, k)."""
        parts = [self.estimates[a] for a in chosen]
        error = np.array([np.broadcast_to(part.error, part.value.shape) for part in parts])
        replicates: Any = [part.replicates for part in parts]
        sampled = any(part is not None for part in replicates)
        replicates = np.stack(replicates, axis=1) if sampled else None
        return Estimate(np.array([part.value for part in parts]), error, replicates)


def solve(
    model: ReadModel, attributions: Attributions, terms: list[Term], options: RunOptions
) -> Solution:
    """Finish all terms, and add up their curves, constants and means."""
    pieces = model.pieces
    error = _share_of_error(terms, options.tol)
    base_value = _finish(pieces, terms, replace(options, error=error))
    check_finite_means(base_value, error)
    g, k = len(attributions), pieces.n_outputs
    offset = Estimate(np.zeros(k))
    bases: list[CodeFunction] = [Constant(np.zeros((1, k))) for _ in range(g)]
    estimates = [Estimate(np.zeros(k)) for _ in range(g)]
    curved: list[list[tuple[int, Function]]] = [[] for _ in range(g)]
    rest: list[list[int]] = [[] for _ in range(g)]
    for t, term in enumerate(terms):
        assert term.mean is not None
        if term.measure.mass is not None:
            offset = offset + term.mean * (term.coefficient * term.measure.mass)
        if term.is_constant:
            for j, constant in enumerate(term.constants(pieces, g) if term.coefficient else []):
                part = constant * term.coefficient
                if term.engine.exact:
                    bases[j] = bases[j] + Constant(part.value[None])
                else:
                    estimates[j] = estimates[j] + part
            continue
        for j, curve in enumerate(term.curves(pieces, g)):
            if curve is None:
                if term.coefficient:
                    rest[j].append(t)
                continue
            total = curve.added_to(bases[j], term.coefficient)
            if total is None:
                curved[j].append((t, curve))
            else:
                bases[j] = total
    tables = CodeTables.of(bases, pieces.grid, attributions)
    return Solution(
        model, attributions, terms, base_value, offset, tables, estimates, curved, rest, error
    )


def _finish(pieces: Pieces, terms: list[Term], options: RunOptions) -> np.ndarray:
    """Finish the terms, set the mean of the reference of each, and return E f."""
    means: dict[str, Estimate] = {}
    for term in sorted(terms, key=lambda term: bool(term.learned_from)):  # all rows first
        term.finish(pieces, options)
        law = term.measure.reference().mean_law
        if term.mean is not None and law:
            term.mean = means.setdefault(law, term.mean)
    for term in terms:
        if term.mean is None:
            term.mean = means[term.measure.reference().mean_law]
    return np.asarray(means["joint"].value)


def _share_of_error(terms: list[Term], tol: float) -> np.ndarray | None:
    """Return the error of one term, (k,), with which the sum of all terms is within `tol`."""
    moments = next((term.moments for term in terms if term.moments is not None), None)
    if moments is None:
        return None
    shares = sum(abs(t.coefficient) * _scale(t) for t in terms if t.moments is not None)
    return tol * moments.spread() / (shares or 1.0)


def _scale(term: Term) -> float:
    """Return the factor of integrals: members are probabilities, their measure may not be."""
    return float(term.measure.mass or 0.0) if term.measure.depends == "attribution" else 1.0
