"""Text about a solution: `MeasureExplainer.describe`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skattr._inputs import models
from skattr.attributions import Attributions
from skattr.engines import RunOptions
from skattr.measures.learned.dependence import dependent_in_words
from skattr.pieces import Pieces
from skattr.solution.solution import Solution
from skattr.solution.terms import Term


def describe(solution: Solution, options: RunOptions, pairs: Sequence[Solution] = ()) -> str:
    """Return a few lines about the model, the engines and their cost, those of pairs too."""
    model, measure = solution.model, solution.measure
    options = replace(options, error=solution.error)
    lines = [
        f"model: {models.in_words(model.output.estimator)}",
        f"explains: {models.output_in_words(model.scale, model.output.names)}",
        f"read as: {model.pieces.describe()}",
        f"measure: {measure.in_words()}, {measure!r}",
        *(_term(term, model.pieces, solution.attributions, options) for term in solution.terms),
        _folds(solution),
        *(f"note: {note}" for note in notes(solution)),
        *dict.fromkeys(line for each in pairs for line in _pairs(each, options)),
    ]
    return "\n".join(lines)


def _folds(solution: Solution) -> str:
    """Describe the error from the background."""
    if solution.folds is None:
        return f"error from the background: none: {solution.no_folds}"
    held = any(term.measure.by_rows == "held" for term in solution.terms)
    law = "; bins and bandwidths are held fixed" if held else ""
    return f"error from the background: jackknife over {solution.folds.n} folds of its rows{law}"


def _pairs(solution: Solution, options: RunOptions) -> list[str]:
    """Describe the engines of pairs, and the error of their values."""
    options = replace(options, error=solution.error)
    n = len(solution.attributions)
    which = f"{n} {'pairs' if n > 1 else 'pair'}: "
    return [
        *(
            which + _term(term, solution.model.pieces, solution.attributions, options)
            for term in solution.terms
        ),
        which + _folds(solution),
    ]


def notes(solution: Solution) -> list[str]:
    """Return notes about columns whose effects the measure cannot separate."""
    pairs = {pair for term in solution.terms for pair in term.measure.dependent_}
    return [dependent_in_words(pairs, solution.model.names)] if pairs else []


def _term(term: Term, pieces: Pieces, attributions: Attributions, options: RunOptions) -> str:
    """Describe engine, cost and error of a term in one line."""
    engine, exact = term.engine, term.engine.exact
    how = engine.how_exact
    if not exact:
        how = f"approximate (tol={options.tol:g}, max_evals={options.max_evals})"
    parts = [f"{term.measure!r}: engine {engine.name}, {how}"]
    if term.learned_from:
        parts.append(f"learned from {term.learned_from}")
    if not term.passes:
        return "; ".join([*parts, "computed together with another term"])
    parts.append(engine.cost(pieces, term.measure))
    if not exact:
        assert options.error is not None
        errors = ", ".join(f"{size:.2g}" for size in options.error)
        counts = engine.evaluations([each.state for each in term.passes], options)
        parts += [counts, f"stops at a standard error of {errors}"]
    if term.measure.depends != "attribution":
        state = term.passes[0].state
        parts += [engine.outlook(state, attributions), engine.certificate(state)]
    return "; ".join(part for part in parts if part)
