"""The solution: curves, constants and offsets of all terms of a measure, added up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction
from skattr.curves.by_code import ByCode, Constant
from skattr.curves.sums import add_up
from skattr.engines import Rows, RunOptions
from skattr.engines.base import join_certificates
from skattr.engines.estimates import Estimate
from skattr.engines.lookups import look_up
from skattr.kernels import lookup
from skattr.measures.empirical import Expectation
from skattr.pieces import Grid, Pieces
from skattr.solution.terms import Term, share_of_error


class Values(NamedTuple):
    """The attributions of some rows.

    Errors are None if the values are exact; the offset is (k,), or has the shape of the values if a
    mass depends on x or j.
    """

    values: np.ndarray  # (n, g, k)
    error: np.ndarray | None  # standard errors
    offset: np.ndarray  # what centring subtracts
    centered_error: np.ndarray | None
    certificate: dict[str, Any]

    @classmethod
    def joined(cls, parts: Iterable[Values], n: int) -> Values:
        """Concatenate the rows of blocks, n in all."""
        whole: list[Any] | None = None
        certificates = []
        start = 0
        for part in parts:
            arrays: list[Any] = list(part[:-1])
            certificates.append(part.certificate)
            rows = len(part.values)
            if whole is None:
                whole = [
                    array if array is None or array.ndim == 1 else np.empty((n, *array.shape[1:]))
                    for array in arrays
                ]
            for total, array in zip(whole, arrays, strict=True):
                if array is not None and array.ndim > 1:
                    total[start : start + rows] = array
            start += rows
        assert whole is not None
        values, error, offset, centered_error = whole
        return cls(values, error, offset, centered_error, join_certificates(*certificates))


@dataclass(eq=False)
class CodeTables:
    """Functions of codes, concatenated so that one call looks them all up."""

    values: np.ndarray  # (n_codes in all, k)
    where: np.ndarray  # (2, g) the column and the start of each attribution, -1 if it has no codes
    constants: np.ndarray  # (g, k) the value of an attribution that has no codes

    @classmethod
    def of(
        cls, bases: Sequence[Constant | ByCode], grid: Grid | None, attributions: Attributions
    ) -> CodeTables:
        """Concatenate functions; a constant is repeated for each code of the column."""
        where = np.full((2, len(bases)), -1, np.int64)
        constants = np.array([base.values[0] for base in bases])
        parts, start = [constants[:0]], 0
        for j, (base, columns) in enumerate(zip(bases, attributions, strict=True)):
            if grid is None or len(columns) > 1 or grid.cells[columns[0]].open:
                continue
            n_codes = grid.cells[columns[0]].n_codes
            where[:, j] = columns[0], start
            parts.append(np.broadcast_to(base.values, (n_codes, base.values.shape[1])))
            start += n_codes
        return cls(np.concatenate(parts), where, constants)

    def look_up(self, rows: Rows, chosen: np.ndarray) -> np.ndarray:
        """Return some attributions at rows, (n, len(chosen), k)."""
        result = np.zeros((len(rows.X), len(chosen), self.values.shape[1]))
        where = np.ascontiguousarray(self.where[:, chosen])
        if rows.codes is not None:
            lookup.look_up(rows.codes, where, self.values, result)
        for i in np.flatnonzero(where[0] < 0):
            result[:, i] = self.constants[chosen[i]]
        return result

    def base(self, a: int, grid: Grid | None) -> Constant | ByCode:
        """Return one of the functions."""
        k, start = self.where[:, a]
        if k < 0:
            return Constant(self.constants[a : a + 1])
        assert grid is not None
        return ByCode(grid, int(k), self.values[start : start + grid.cells[k].n_codes])


@dataclass(eq=False)
class Solution:
    """All terms, and their sums by attribution."""

    terms: list[Term]
    base_value: np.ndarray  # (k,) E f
    offset: Estimate  # (k,) the sum over terms of constant mass
    tables: CodeTables  # exact constants and functions of codes
    estimates: list[Estimate]  # approximate constants, (k,) each
    curved: list[list[tuple[int, ColumnFunction]]]  # (term, function of the raw value)
    rest: list[list[int]]  # terms that are integrated for each row
    error: np.ndarray | None  # (k,) the standard error of one approximate term

    @property
    def spread(self) -> np.ndarray | None:
        """The spread of f, (k,), the unit of standard errors, or None if there are none."""
        return next((t.moments.spread() for t in self.terms if t.moments is not None), None)

    @property
    def is_exact(self) -> bool:
        """Whether every term with a nonzero coefficient is exact."""
        return all(term.engine.exact for term in self.terms if term.coefficient)

    def needs_pieces(self, a: int) -> bool:
        """Return whether an attribution may have to be integrated, not only looked up."""
        return bool(self.rest[a]) or any(curve.partial for _, curve in self.curved[a])

    def curve(
        self, a: int, grid: Grid | None, integrate: Callable[..., Any]
    ) -> ColumnFunction | None:
        """Return an attribution as a function of its column, or None if it must be evaluated.

        `integrate` maps raw values to attributions, (n, k).
        """
        if self.rest[a]:
            return None
        base = self.tables.base(a, grid) + Constant(self.estimates[a].value[None])
        parts = [(self.terms[t].coefficient, curve) for t, curve in self.curved[a]]
        return add_up(base, parts, integrate)

    def values(
        self,
        pieces: Pieces | None,
        rows: Rows,
        attributions: Attributions,
        chosen: Sequence[int],
        options: RunOptions,
    ) -> Values:
        """Return some attributions at a block of rows.

        Each attribution is looked up on its curves, or integrated; `pieces` are needed only for the
        latter.
        """
        g = len(chosen)
        options = replace(options, error=self.error)
        result = self.tables.look_up(rows, np.asarray(chosen))
        total, offset = self._constants(chosen), self.offset
        certificates = []
        for i, a in enumerate(chosen):
            for t, curve in self.curved[a]:
                term = self.terms[t]

                def integrate(some: Rows, term: Term = term, a: int = a) -> Any:
                    return term.integrate(pieces, some, [a], options)

                values = look_up(curve, rows, attributions[a][0], integrate)
                result[:, i] += term.coefficient * values
        for t, term in enumerate(self.terms):
            positions = [i for i, a in enumerate(chosen) if t in self.rest[a]]
            if positions:
                wanted = [chosen[i] for i in positions]
                integral = term.integrate(pieces, rows, wanted, options)
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
            return Values(result, None, offset.value, None, certificate)
        errors = [
            None
            if self.is_exact and estimate.is_exact
            else np.broadcast_to(estimate.std_error, result.shape)
            for estimate in (total, total - offset)
        ]
        return Values(result + total.value, errors[0], offset.value, errors[1], certificate)

    def _constants(self, chosen: Sequence[int]) -> Estimate:
        """Return the approximate constants of some attributions, (g, k)."""
        parts = [self.estimates[a] for a in chosen]
        error = np.array([np.broadcast_to(part.error, part.value.shape) for part in parts])
        replicates: Any = [part.replicates for part in parts]
        sampled = any(part is not None for part in replicates)
        replicates = np.stack(replicates, axis=1) if sampled else None
        return Estimate(np.array([part.value for part in parts]), error, replicates)


def solve(
    pieces: Pieces, terms: list[Term], attributions: Attributions, options: RunOptions
) -> Solution:
    """Finish all terms, and add up their curves, constants and means."""
    error = share_of_error(terms, options.tol)
    base_value = _finish(pieces, terms, replace(options, error=error))
    g, k = len(attributions), pieces.n_outputs
    offset = Estimate(np.zeros(k))
    bases: list[Constant | ByCode] = [Constant(np.zeros((1, k))) for _ in range(g)]
    estimates = [Estimate(np.zeros(k)) for _ in range(g)]
    curved: list[list[tuple[int, ColumnFunction]]] = [[] for _ in range(g)]
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
            if isinstance(curve, Constant | ByCode):
                bases[j] = bases[j] + term.coefficient * curve
            elif curve is not None:
                curved[j].append((t, curve))
            elif term.coefficient:
                rest[j].append(t)
    tables = CodeTables.of(bases, pieces.grid, attributions)
    return Solution(terms, base_value, offset, tables, estimates, curved, rest, error)


def _finish(pieces: Pieces, terms: list[Term], options: RunOptions) -> np.ndarray:
    """Finish the terms, set the mean of the reference of each, and return E f."""
    means: dict[str, Estimate] = {}
    for term in terms:
        term.finish(pieces, options)
        reference = term.measure.reference()
        if term.mean is not None and isinstance(reference, Expectation):
            term.mean = means.setdefault(reference.law, term.mean)
    for term in terms:
        if term.mean is None:
            term.mean = means[term.measure.reference().law]
    return np.asarray(means["joint"].value)
