"""Tables of errors by code, made of the sums of all folds at once.

Where one term has curves by code and sums by fold, and all others are the mean of f that these sums
have too, the sums of fold g at a code of attribution j are

    scale · (jumps up to the code + constant_j + total) + shift · total,

`scale` the coefficient of that term and `shift` those of the means. The errors are reduced to one
table at once, and the sums are dropped unless batches of the background follow. Tables hold float32
where its range is enough: seven digits of a standard error are more than it has, and these tables
are the largest part of a fitted explainer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.curves.by_code import ByCode
from skattr.engines import Request, RunOptions
from skattr.engines.boxes.fold_sums import FoldSums
from skattr.kernels.boxes.fold_tables import fill_errors
from skattr.pieces import Grid, Pieces
from skattr.solution.code_tables import CodeTables
from skattr.solution.fold_errors import FoldErrors, Pair
from skattr.solution.folds import DEFAULT, dependent_terms, why_no_folds
from skattr.solution.solution import Solution
from skattr.solution.terms import Term
from skattr.solution.values import Values


def carrier_of(terms: list[Term]) -> Term | None:
    """Return the one term of all that depend on rows whose sums by fold serve them all."""
    prepared = [term for term in dependent_terms(terms) if term.passes]
    return prepared[0] if len(prepared) == 1 and prepared[0].fold_sums is not None else None


def n_folds(folds: Any, terms: list[Term], options: RunOptions) -> int:
    """Return the number of folds that batches are divided into, 0 for none."""
    if why_no_folds(folds, terms, options) or (folds == "auto" and carrier_of(terms) is None):
        return 0
    return DEFAULT if folds == "auto" else int(folds)


def fold_sums(terms: list[Term]) -> FoldSums | None:
    """Return the sums by fold that serve all terms, or None if they were dropped."""
    term = carrier_of(terms)
    return None if term is None else term.fold_sums


def drop_folds(terms: list[Term]) -> None:
    """Drop the sums by fold of all states."""
    term = carrier_of(terms)
    if term is not None:
        term.engine.drop_folds(term.passes[0].state)


@dataclass(frozen=True, eq=False)
class CurvesByFold:
    """How the curves of all attributions are made of the sums by fold."""

    coefficients: tuple[float, float]  # of the carrier's curve and of the mean of f
    attributions: Attributions
    grid: Grid

    def deviations(self, sums: FoldSums, a: int, mass: float) -> np.ndarray:
        """Return how a curve less `mass` times the mean of f moves without each fold, (n, k, G)."""
        (k,) = self.attributions[a]
        start, end = self.grid.offset[k : k + 2]
        curve = sums.jumps[start:end].copy()
        if self.grid.cells[k].ordered:
            np.cumsum(curve[1:], axis=0, out=curve[1:])
        curve = self.coefficients[0] * curve + self._base(sums, a, mass)
        weights, all_weight = sums.weights, sums.weights.sum()
        mean = curve.sum(axis=2, keepdims=True) / all_weight
        moved: np.ndarray = (weights * mean - curve) / (all_weight - weights)
        return moved

    def errors(self, sums: FoldSums, mass: float) -> CodeTables:
        """Return the errors of all curves less `mass` times the mean of f, by code."""
        k = sums.total.shape[0]
        errors, work = np.zeros((len(sums.jumps), k)), np.empty((2, *sums.total.shape))
        shares = 1.0 / (sums.weights.sum() - sums.weights)
        curves = []
        for a, (column,) in enumerate(self.attributions):
            start, end = self.grid.offset[column : column + 2].tolist()
            fill_errors(
                sums.jumps, start, end, self.grid.cells[column].ordered, self.coefficients[0],
                self._base(sums, a, mass), sums.weights, shares, sums.n, work, errors,
            )  # fmt: skip
            curves.append(ByCode(self.grid, column, errors[start:end]))
        tables = CodeTables.of(curves, self.grid, self.attributions)
        return replace(tables, values=_narrowed(tables.values))

    def _base(self, sums: FoldSums, a: int, mass: float) -> np.ndarray:
        """Return the part of the sums by fold that is the same at all codes, (k, G)."""
        scale, shift = self.coefficients
        base: np.ndarray = scale * sums.constant[a] + (scale + shift - mass) * sums.total
        return base


@dataclass(eq=False)
class TableErrors(FoldErrors):
    """Errors by code, looked up beside the values."""

    n: int
    error: CodeTables
    centered: CodeTables | None  # None if centring changes nothing
    curves: CurvesByFold
    mass: float  # what centring subtracts, in units of the mean of f
    sums: FoldSums | None = None  # computed again where they are needed, and not pickled

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "sums": None}

    @override
    def errors(self, pieces: Pieces | None, request: Request, values: Values) -> Pair:
        rows, at = request.rows, np.asarray(request.chosen)
        error = self.error.look_up(rows, at)
        return error, error if self.centered is None else self.centered.look_up(rows, at)

    @override
    def centered_deviations(
        self, pieces: Pieces | None, request: Request, values: Values
    ) -> Iterator[np.ndarray]:
        codes_of = request.rows.codes
        assert self.sums is not None and codes_of is not None
        tables = [self.curves.deviations(self.sums, a, self.mass) for a in request.chosen]
        codes = [codes_of[column] for (column,) in request.columns]
        for f in np.flatnonzero(self.sums.weights):
            each = [table[:, :, f][at] for table, at in zip(tables, codes, strict=True)]
            yield np.stack(each, axis=1)

    @override
    def restore(self, again: Callable[[], FoldSums | None]) -> None:
        self.sums = self.sums or again()
        if self.sums is None:
            raise ValueError(
                "the errors of importances need the background, of which distributed.fit keeps no "
                "rows; use fit, or partial_fit"
            )


def _narrowed(errors: np.ndarray) -> np.ndarray:
    """Return errors as float32, if they are in its range."""
    single = np.finfo(np.float32)
    some = errors[errors != 0]
    fits = len(some) == 0 or (some.min() >= single.tiny and some.max() <= single.max)
    return errors.astype(np.float32) if fits else errors


def tabulate(solution: Solution) -> TableErrors:
    """Return the tables of errors of a solution whose terms carry folds."""
    dependent, grid = dependent_terms(solution.all_terms), solution.model.grid
    carrier, sums = carrier_of(dependent), fold_sums(dependent)
    assert carrier is not None and sums is not None and grid is not None
    shift = sum(term.coefficient for term in dependent if term is not carrier)
    mass = sum(term.coefficient * (term.measure.mass or 0.0) for term in dependent)
    curves = CurvesByFold((carrier.coefficient, shift), solution.attributions, grid)
    centered = curves.errors(sums, mass) if mass else None
    return TableErrors(sums.n, curves.errors(sums, 0.0), centered, curves, mass)
