"""Solutions of pairs of attributions, made when they are first asked for."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr._inputs.checks import Domain
from skattr.attributions import Pairs
from skattr.curves.base import Function
from skattr.engines import RunOptions
from skattr.engines.table import engine_of_pairs
from skattr.measures.background import Background
from skattr.measures.base import copy_terms
from skattr.measures.pairs import Interaction
from skattr.solution.batches import Plan
from skattr.solution.fold_solutions import add_errors
from skattr.solution.fold_tables import n_folds
from skattr.solution.folds import folds_of_all
from skattr.solution.planning import fit_to, plan_and_prepare
from skattr.solution.solution import Solution, solve

KEPT = 8  # solutions that are kept: those of a large forest take much memory


class PairSolutions:
    """A copy of the background, and solutions of sets of pairs that were asked for.

    Only the background is pickled. Several threads may ask at once.

    Parameters
    ----------
    X : table, or None
        The background; None if it came in batches, of which no rows are kept.
    weights : array (n,), or None
    folds : int or "auto", default=0
        As in `MeasureExplainer`; "auto" is none, as errors of pairs take long.
    """

    def __init__(self, X: Any = None, weights: np.ndarray | None = None, folds: Any = 0) -> None:
        self.background = None if X is None else PicklableTable(frames.copy(X))
        self.weights = None if weights is None else weights.copy()
        self.folds = folds
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._solved: dict[tuple[tuple[int, int], ...], Solution] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the background, and its weights, equal ones as one number."""
        weights: Any = self.weights
        if weights is not None and (weights == weights[0]).all():
            weights = float(weights[0])
        return {"background": self.background, "weights": weights, "folds": self.folds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.background, self.weights = state["background"], state["weights"]
        self.folds = state["folds"]
        if self.background is not None and isinstance(self.weights, float):
            self.weights = np.full(len(self.background.X), self.weights)
        self._start()

    @property
    def solutions(self) -> list[Solution]:
        """The solutions that are kept."""
        return list(self._solved.values())

    def functions(self) -> list[Function]:
        """Return the functions of two columns of the solutions that are kept."""
        return [f for each in self.solutions for some in each.curved for _, f in some]

    def find(
        self, solution: Solution, pairs: Pairs, options: RunOptions, domain: Domain
    ) -> tuple[Solution, list[int]]:
        """Return a solution that has these pairs, and their positions in it.

        Parameters
        ----------
        solution : Solution
            That of single attributions.
        pairs : Pairs
        options : RunOptions
        domain : Domain
            That of the user, for uniform measures.
        """
        with self._lock:
            for members, known in self._solved.items():
                if set(pairs.members) <= set(members):
                    return known, [members.index(pair) for pair in pairs.members]
            solved = self._solve(solution, pairs, options, domain)
            self._solved[pairs.members] = solved
            while len(self._solved) > KEPT:
                del self._solved[next(iter(self._solved))]
        return solved, list(range(len(pairs)))

    def rows(self) -> tuple[Any, np.ndarray]:
        """Return the background and its weights, or raise if they were not kept."""
        if self.background is None or self.weights is None:
            raise ValueError(
                "pairs need the whole background, of which partial_fit and distributed.fit keep "
                "no rows; use fit"
            )
        return self.background.X, self.weights

    def _solve(
        self, solution: Solution, pairs: Pairs, options: RunOptions, domain: Domain
    ) -> Solution:
        model = solution.model
        background = Background(*self.rows(), model.pieces.levels)
        numbers = domain.of_numbers(background.levels)
        measures = copy_terms(Interaction(solution.measure))
        engine = engine_of_pairs(options.engine, [measure for _, measure in measures])
        options = replace(options, engine=engine)
        fit = fit_to(background, numbers, pairs)
        terms = plan_and_prepare(model.pieces, measures, pairs, options, fit)
        solved = solve(model, pairs, terms, options)
        n = n_folds(self.folds, terms, options)
        folds = folds_of_all(len(background), n) if n else None
        plan = Plan(model, pairs, terms, numbers, options, n)
        add_errors(solved, self.folds, plan.prepare_folds(terms, background, folds), options)
        return solved
