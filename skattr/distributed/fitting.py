"""`fit` on a frame: read the model on a few rows, prepare all terms on all parts, and solve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skattr._inputs import models
from skattr._utils.messages import brief
from skattr.distributed.alignment import untyped_columns
from skattr.distributed.kinds import source_of
from skattr.distributed.shipping import check_pickles
from skattr.distributed.sketch import Sketch
from skattr.distributed.source import Source
from skattr.distributed.work import Counting, Preparing, Sketching, split_weights
from skattr.measures import as_measure
from skattr.measures.base import as_terms
from skattr.solution.batches import Batch
from skattr.solution.terms import Term

HEAD = 1_000  # rows on which the model is read and compared with its predictions
SAMPLE = 50_000  # rows from which measures are learned that need rows together


def fit_frame(explainer: Any, frame: Any, weight: Any) -> Any:
    """Fit an explainer to all rows of a frame; see `skattr.distributed.fit`."""
    if not models.is_fitted(explainer.estimator):
        raise ValueError(
            "distributed.fit needs a fitted estimator: parts of the background cannot fit it"
        )
    measures = [measure for _, measure in as_terms(as_measure(explainer.measure))]
    source = source_of(frame)
    _check_weight(weight, source)
    if source.remote:
        check_pickles(explainer)
    two_passes = [measure for measure in measures if not measure.adds_up or measure.flat]
    rows = None if two_passes else _first_rows(source, weight)
    sketch = _sketch(source, weight, two_passes) if rows is None else None
    if sketch is not None:
        rows = sketch.sample.X, sketch.weights
    assert rows is not None
    ranges = sketch.domain() if sketch is not None and two_passes else {}
    n_rows = None if sketch is None else sketch.n_rows
    terms = _learn(explainer, rows, ranges, n_rows)
    if n_rows is None and source.again and any(term.engine.counts_values for term in terms):
        sketch = _sketch(source, weight, two_passes)
        rows, n_rows = (sketch.sample.X, sketch.weights), sketch.n_rows
        terms = _learn(explainer, rows, ranges, n_rows)
    if n_rows is None and any(term.engine.counts_rows for term in terms):
        terms = _learn(explainer, rows, ranges, _count(source, weight))
    fitting = explainer._fitting
    try:
        fitting.model.refuse_open_columns("distributed.fit")
        whole = _all_rows(explainer, terms, source, weight, sketch)
        explainer._finish(fitting.solve(whole, explainer._options()))
    except BaseException:
        explainer._forget()
        raise
    return explainer


def _learn(
    explainer: Any, rows: tuple[Any, np.ndarray], ranges: dict[int, Any], n_rows: int | None
) -> list[Term]:
    """Plan the terms, and learn from some rows what they need; `n_rows` is the number of all."""
    measures, X, weights = explainer._begin(rows[0], None, rows[1])
    options = replace(explainer._options(), n_rows=n_rows)
    terms: list[Term] = explainer._fitting.learn(measures, X, weights, ranges, options)
    return terms


def _all_rows(
    explainer: Any, terms: list[Term], source: Source, weight: Any, sketch: Sketch | None
) -> Batch:
    """Return the terms prepared on all rows."""
    described = [_described(term, sketch) for term in terms]
    plan = explainer._fitting.plan(described, explainer._options())
    if source.remote:
        plan = replace(plan, options=replace(plan.options, n_jobs=1, verbose=0))
    whole = source.reduce(Preparing(plan, weight, source.part))
    if whole is None:
        raise _no_rows()
    return plan.finish(whole)


def _described(term: Term, sketch: Sketch | None) -> Term:
    """Return a term that says how many rows it was learned from, if that is not all."""
    measure = term.measure
    if sketch is None or measure.adds_up or measure.of_ranges or sketch.n_rows <= sketch.size:
        return term
    words = f"a seeded sample of {sketch.size:,} of {sketch.n_rows:,} rows"
    if term.adds_up:
        words += ", summed over all rows"
    return replace(term, learned_from=words)


def _check_weight(weight: Any, source: Source) -> None:
    if weight is None:
        return
    labels = source.labels()
    if not isinstance(weight, str) or weight not in labels:
        raise ValueError(
            f"sample_weight must be the name of a column of the frame, got {brief(weight)}; it "
            f"has {brief(labels)}"
        )


def _first_rows(source: Source, weight: Any) -> tuple[Any, np.ndarray] | None:
    """Return some first rows with their weights, or None if they do not say enough.

    That is if none of them has a positive weight, or if the dtype of a column is not known.
    """
    head = source.head(HEAD)
    if head is None or not len(head):
        raise _no_rows()
    return None if source.again and untyped_columns(head) else split_weights(head, weight)


def _check_again(source: Source, what: str) -> None:
    if not source.again:
        raise ValueError(
            f"{what} needs two passes over the rows, and this frame can be read once: give a list "
            "of frames, a pyarrow Dataset, or another frame that can be read again"
        )


def _count(source: Source, weight: Any) -> int:
    _check_again(source, "a measure of coalitions, whose cost depends on the number of rows,")
    return source.reduce(Counting(weight, source.part)) or 0


def _sketch(source: Source, weight: Any, two_passes: list[Any]) -> Sketch:
    first = repr(two_passes[0]) if two_passes else "a frame whose first rows weigh 0"
    _check_again(source, first)
    sketch = source.reduce(Sketching(weight, SAMPLE, 0, source.part))
    if sketch is None:
        raise _no_rows()
    return sketch


def _no_rows() -> ValueError:
    return ValueError("the frame has no rows of positive weight: nothing can be learned from it")
