"""How terms are fitted to a background: to all of its rows at once, or to batch after batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from skattr._inputs.checks import Domain, check_n_folds
from skattr.attributions import Attributions, Pairs
from skattr.engines import RunOptions
from skattr.engines.boxes.fold_sums import FoldSums
from skattr.measures.background import Background
from skattr.measures.base import Terms
from skattr.solution.batches import Batch, Plan
from skattr.solution.fold_solutions import add_errors
from skattr.solution.fold_tables import drop_folds, fold_sums, n_folds
from skattr.solution.folds import first_folds
from skattr.solution.pair_solutions import PairSolutions
from skattr.solution.planning import fit_to, plan_and_prepare
from skattr.solution.read_model import ReadModel
from skattr.solution.seen import SeenColumns
from skattr.solution.solution import Solution, solve
from skattr.solution.terms import Fit, Term


class Fitting:
    """Fits the terms of a measure to a background, and keeps what is needed of it afterwards.

    Parameters
    ----------
    model : ReadModel
    attributions : Attributions
    domain : Domain
        That of the user, for uniform measures.
    folds : int or "auto"
        As in `MeasureExplainer`.

    Attributes
    ----------
    batch : Batch
        The terms, prepared on all rows so far, and what was seen there.
    pairs : PairSolutions
        A copy of the rows, if they came at once, and the solutions of pairs.
    n_folds : int
        The number of folds into which batches are divided, 0 for none.
    """

    def __init__(
        self, model: ReadModel, attributions: Attributions, domain: Domain, folds: Any
    ) -> None:
        self.model = model
        self.attributions = attributions
        self.domain = domain
        self.folds = folds
        self.n_folds = 0
        self.batch = Batch([], SeenColumns())
        self.pairs = PairSolutions()

    @property
    def seen(self) -> SeenColumns:
        """What was seen in the background."""
        return self.batch.seen

    @property
    def keeps_rows(self) -> bool:
        """Whether the rows of the background are kept."""
        return self.pairs.background is not None

    def fit(self, measures: Terms, X: Any, weights: np.ndarray, options: RunOptions) -> Solution:
        """Fit measures to the whole background, and keep a copy of it."""
        check_n_folds(self.folds, len(X))
        batch = self._first_batch(measures, X, weights, options, more_follow=False)
        self.pairs = PairSolutions(X, weights, self.folds)
        solution = self.solve(batch, options)
        for term in batch.terms:
            term.compact()  # the sums can be had again
        return solution

    def fit_first(
        self, measures: Terms, X: Any, weights: np.ndarray, options: RunOptions
    ) -> Solution:
        """Fit measures to the first batch of the background."""
        self.model.refuse_open_columns()
        batch = self._first_batch(measures, X, weights, options, more_follow=True)
        return self.solve(batch, options, more_follow=True)

    def fit_next(self, X: Any, weights: np.ndarray, options: RunOptions) -> Solution:
        """Add a batch to the background."""
        self.model.refuse_open_columns()
        plan, known = self.plan(self.batch.terms, options), self.batch
        if self.keeps_rows:  # but not all of their sums
            known = plan.prepare(*self.pairs.rows())
        batch = plan.prepare(X, weights, known.seen.n_rows)
        solution = self.solve(known.merge(batch), options, more_follow=True)
        self.pairs = PairSolutions()
        return solution

    def learn(
        self,
        measures: Terms,
        X: Any,
        weights: np.ndarray,
        ranges: dict[int, Any],
        options: RunOptions,
    ) -> list[Term]:
        """Plan terms that are prepared on all rows later, and learn from some rows what they need.

        `ranges` are those of columns of all rows, where they are needed. The domain of measures
        that add up grows with the batches.
        """
        folds = first_folds(self.folds, len(X), in_batches=False)
        options = replace(options, in_parts=True, folds=folds)
        return self._prepare(measures, options, self._fit_rows(X, weights, ranges))

    def _first_batch(
        self,
        measures: Terms,
        X: Any,
        weights: np.ndarray,
        options: RunOptions,
        more_follow: bool,
    ) -> Batch:
        """Plan terms, and prepare them on the first rows of the background."""
        folds = first_folds(self.folds, len(X), in_batches=more_follow)
        fit = self._fit_rows(X, weights)
        terms = self._prepare(measures, replace(options, folds=folds), fit)
        batch = Batch.of(self.model, terms, X)
        background = Background(X, weights, self.model.pieces.levels)
        batch.folds = self.plan(terms, options).prepare_folds(terms, background, folds)
        return batch

    def _prepare(self, measures: Terms, options: RunOptions, fit: Fit) -> list[Term]:
        terms = plan_and_prepare(self.model.pieces, measures, self.attributions, options, fit)
        self.n_folds = n_folds(self.folds, terms, options)
        return terms

    def plan(self, terms: list[Term], options: RunOptions) -> Plan:
        """Return the plan by which all batches of the background are prepared."""
        row = Background(self.model.row.X, np.ones(1), self.model.pieces.levels)
        return Plan(
            self.model, self.attributions, terms, self.domain.of_numbers(row.levels), options,
            self.n_folds,
        )  # fmt: skip

    def solve(self, batch: Batch, options: RunOptions, more_follow: bool = False) -> Solution:
        """Solve terms that are prepared on all rows so far."""
        self.model.name_seen_levels(batch.seen.levels)
        solution = solve(self.model, self.attributions, batch.terms, options)
        add_errors(solution, self.folds, batch.folds, options)
        if not more_follow:
            batch.folds = None
            drop_folds(batch.terms)
        self.batch = batch
        return solution

    def solve_pairs(
        self, solution: Solution, pairs: Pairs, options: RunOptions
    ) -> tuple[Solution, list[int]]:
        """Return a solution that has these pairs, and their positions in it."""
        return self.pairs.find(solution, pairs, options, self.domain)

    def fold_sums_of(
        self, solution: Solution, options: RunOptions
    ) -> Callable[[], FoldSums | None]:
        """Return the function that computes the sums of all folds of a solution.

        `fit` does not keep them. It uses the rows that are kept now, not those of later batches.
        """
        terms, kept = solution.all_terms, self.pairs

        def sums() -> FoldSums | None:
            if kept.background is None:
                return fold_sums(terms)
            return fold_sums(self.plan(terms, options).prepare(*kept.rows(), first=None).terms)

        return sums

    def _fit_rows(self, X: Any, weights: np.ndarray, ranges: dict[int, Any] | None = None) -> Fit:
        background = Background(X, weights, self.model.pieces.levels)
        return fit_to(
            background, self.domain.of_numbers(background.levels, ranges), self.attributions
        )
