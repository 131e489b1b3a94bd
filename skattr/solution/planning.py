"""The engines of all terms, and the terms prepared on a batch of the background."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skattr._utils.messages import warn
from skattr.attributions import Attributions
from skattr.engines import RunOptions, TooCostly, choose, is_asked_for
from skattr.engines.backgrounds import find_moments
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.pieces import Pieces
from skattr.solution.terms import Fit, Term


def fit_to(
    background: Background, domain: dict[int, tuple[float, float]], attributions: Attributions
) -> Fit:
    """Return the function that fits a measure to a background, for these attributions or others."""

    def fit(measure: Measure, attributions: Attributions = attributions) -> Measure:
        if measure.needs_partition:
            _, attributions = attributions.partitions()[0]
        return measure.fit(background, None, domain, attributions)

    return fit


def plan_and_prepare(
    pieces: Pieces,
    measures: list[tuple[float, Measure]],
    attributions: Attributions,
    options: RunOptions,
    fit: Fit,
) -> list[Term]:
    """Plan and prepare terms, again without an engine that turns out to cost too much."""
    for _, measure in measures:
        fit(measure)
    while True:
        try:
            terms = plan(pieces, measures, options, fit)
            return prepare(pieces, terms, attributions, options, fit)
        except TooCostly as error:
            if is_asked_for(options.engine, error.engine):
                raise
            warn(f"{error}; another engine takes over")
            options = replace(options, without=(*options.without, error.engine))


def known_means(terms: list[Term], options: RunOptions) -> set[str]:
    """Return the laws whose means the engines of these terms compute anyway, over all rows."""
    return {
        term.measure.reference().mean_law
        for term in terms
        if not term.is_constant
        and term.engine.has_mean(term.measure)
        and (term.adds_up or not options.in_parts)
    }


def plan(
    pieces: Pieces, measures: list[tuple[float, Measure]], options: RunOptions, fit: Fit
) -> list[Term]:
    """Choose the engines of all terms, given (coefficient, fitted measure).

    Adds, with coefficient 0, the expectations that are required but not otherwise computed: the
    reference of each measure, and P itself for `base_value`.
    """
    wanted = dict.fromkeys(["joint", *(m.reference().mean_law for _, m in measures)])
    terms = _with_engines(pieces, measures, options.engine, options)
    computed = known_means(terms, options) | {measure.mean_law for _, measure in measures}
    extra = [(0.0, fit(Expectation(law))) for law in wanted if law and law not in computed]
    references = _with_engines(pieces, extra, "auto", options)
    return terms + [replace(term, is_reference=True) for term in references]


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
    known = known_means(terms, options)
    for term in terms:
        measure = term.measure
        if not measure.mean_law or measure.mean_law not in known:
            term.prepare(pieces, attributions, options, fit)
        if term.engine.may_estimate(measure, options):
            term.moments = find_moments(measure.background_, pieces)
    for term in terms:
        term.release()
    return terms
