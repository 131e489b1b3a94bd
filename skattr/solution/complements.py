"""Attributions of all columns but those of one attribution."""

from __future__ import annotations

from skattr.attributions import Attributions
from skattr.engines import RunOptions
from skattr.measures.base import copy_terms
from skattr.solution.pair_solutions import FitOf, PairSolutions
from skattr.solution.planning import plan_and_prepare
from skattr.solution.solution import Solution, solve


def complements(attributions: Attributions) -> Attributions:
    """Return for each attribution the one of all other columns."""
    every = range(attributions.n_columns)
    columns = tuple(tuple(k for k in every if k not in columns_of) for columns_of in attributions)
    return Attributions(attributions.names, columns, attributions.n_columns)


def solve_complements(
    solution: Solution, kept: PairSolutions, options: RunOptions, fit_of: FitOf
) -> Solution:
    """Return the solution for the complements of all attributions, on the kept background."""
    X, weights = kept.rows()
    others = complements(solution.attributions)
    terms = plan_and_prepare(
        solution.model.pieces, copy_terms(solution.measure), others, options,
        fit_of(X, weights, others),
    )  # fmt: skip
    return solve(solution.model, others, terms, options)
