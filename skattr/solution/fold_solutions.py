"""One solution for each fold of the background, and the errors that their values give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.engines import Request, RunOptions
from skattr.measures.learned.weights import NoWeightError
from skattr.pieces import Pieces
from skattr.solution.fold_errors import FoldErrors, Pair, jackknife
from skattr.solution.fold_tables import fold_sums, tabulate
from skattr.solution.folds import (
    DEFAULT,
    FoldedTerms,
    dependent_terms,
    why_no_folds,
)
from skattr.solution.solution import Solution, solve
from skattr.solution.terms import Term
from skattr.solution.values import Values

COSTLY = (
    "it would take longer than the values, up to a hundred times as long; pass "
    f"folds={DEFAULT} to compute it"
)
ONE_ROW = "the background has one row"
HEAVY = "one fold of the background has nearly all the weight"
LEAST = 1e-6  # share of the weight outside a fold without which values are mostly rounding
NOT_KEPT = "the folds of earlier batches were not kept"


@dataclass(eq=False)
class FoldSolutions(FoldErrors):
    """Solutions of the terms that depend on rows: those of each fold, or without it.

    Explaining takes one evaluation of each of them.
    """

    solutions: list[Solution]
    factors: np.ndarray  # (G,) values move by factor · (those of the solution - those of all rows)
    whole: Solution | None  # of the same terms on all rows; None if these are all terms

    def __post_init__(self) -> None:
        self.n = len(self.solutions)

    @override
    def errors(self, pieces: Pieces | None, request: Request, values: Values) -> Pair:
        return jackknife(self._deviations(pieces, request, values), self.n)

    @override
    def centered_deviations(
        self, pieces: Pieces | None, request: Request, values: Values
    ) -> Iterator[np.ndarray]:
        for _, moved in self._deviations(pieces, request, values):
            yield moved

    def _deviations(
        self, pieces: Pieces | None, request: Request, values: Values
    ) -> Iterator[Pair]:
        """Yield for each fold how values and centred values move without it."""
        if self.whole is not None:
            values = self.whole.values_at(pieces, request)
        for factor, solution in zip(self.factors, self.solutions, strict=True):
            fold = solution.values_at(pieces, request)
            moved = fold.values - values.values
            yield factor * moved, factor * (moved - (fold.offset - values.offset))


def add_errors(
    solution: Solution, folds: Any, folded: FoldedTerms | None, options: RunOptions
) -> None:
    """Give a solution its errors from the background, or the reason why it has none.

    Parameters
    ----------
    solution : Solution
    folds : int or "auto"
        As in `MeasureExplainer`.
    folded : FoldedTerms or None
        The folds, if the states of the terms do not have them.
    options : RunOptions
    """
    terms = solution.all_terms
    solution.no_folds = why_no_folds(folds, terms, options)
    if solution.no_folds:
        return
    sums = fold_sums(terms)
    if sums is not None:
        solution.no_folds = _why_too_few(sums.weights)
        solution.folds = None if solution.no_folds else tabulate(solution)
        return
    if folded is None:
        solution.no_folds = COSTLY if folds == "auto" else NOT_KEPT
        return
    solution.no_folds = _why_too_few(np.array(list(folded.weights.values())))
    if solution.no_folds:
        return
    try:
        solution.folds = solve_folds(solution, folded, options)
    except NoWeightError as error:
        solution.no_folds = (
            f"without one of its {len(folded.weights)} folds, no rows of positive weight are left "
            f"given some values of {error.args[0]!r}"
        )


def _why_too_few(weights: np.ndarray) -> str:
    """Return why folds of these weights give no error, "" if they do."""
    weights = np.sort(weights[weights > 0])
    if len(weights) < 2:
        return ONE_ROW
    return HEAVY if weights[:-1].sum() < LEAST * weights[-1] else ""


def solve_folds(solution: Solution, folded: FoldedTerms, options: RunOptions) -> FoldSolutions:
    """Solve the terms of all folds."""
    model, attributions = solution.model, solution.attributions

    def solved(terms: list[Term]) -> Solution:
        return solve(model, attributions, terms, options)

    dependent = dependent_terms(solution.all_terms)
    whole = None if len(dependent) == len(solution.all_terms) else solved(dependent)
    terms_of_folds = [folded.terms[g] for g in sorted(folded.terms)]
    if folded.way == "alone":
        weights = np.array([folded.weights[g] for g in sorted(folded.weights)])
        factors = -weights / (weights.sum() - weights)
    else:
        factors = np.ones(len(terms_of_folds))
        if folded.way == "merged":
            terms_of_folds = folded.without()
    return FoldSolutions([solved(terms) for terms in terms_of_folds], factors, whole)
