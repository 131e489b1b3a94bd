"""Attributions of all columns but those of one attribution."""

from __future__ import annotations

from skattr._inputs.checks import Domain
from skattr.attributions import Attributions
from skattr.engines import RunOptions
from skattr.measures.background import Background
from skattr.measures.base import copy_terms
from skattr.solution.pair_solutions import PairSolutions
from skattr.solution.planning import fit_to, plan_and_prepare
from skattr.solution.solution import Solution, solve


def complements(attributions: Attributions) -> Attributions:
    """Return for each attribution the one of all other columns."""
    every = range(attributions.n_columns)
    columns = tuple(tuple(k for k in every if k not in columns_of) for columns_of in attributions)
    return Attributions(attributions.names, columns, attributions.n_columns)


def solve_complements(
    solution: Solution, kept: PairSolutions, options: RunOptions, domain: Domain
) -> Solution:
    """Return the solution for the complements of all attributions, on the kept background."""
    pieces, others = solution.model.pieces, complements(solution.attributions)
    background = Background(*kept.rows(), pieces.levels)
    fit = fit_to(background, domain.of_numbers(background.levels), others)
    terms = plan_and_prepare(pieces, copy_terms(solution.measure), others, options, fit)
    return solve(solution.model, others, terms, options)
