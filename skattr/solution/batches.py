"""The background in batches: each is prepared on its own, and what was prepared is merged.

`Plan.prepare` needs the rows of one batch only, and a plan and a batch pickle, so that batches may
be prepared and merged in any order, in any process. A measure may need a law that is learned
before, from all rows or from a sample of them; given the law, its batches add up. Other measures do
not add up: their terms are prepared before, and are not prepared again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr.attributions import Attributions
from skattr.engines import RunOptions
from skattr.engines.backgrounds import find_moments
from skattr.engines.base import RowFolds
from skattr.measures.background import Background, drop_zero_weights
from skattr.solution.fold_tables import carrier_of
from skattr.solution.folds import (
    FoldedTerms,
    dependent_terms,
    folds_of_all,
    folds_of_batch,
    way_of,
)
from skattr.solution.planning import fit_to, prepare
from skattr.solution.read_model import ReadModel
from skattr.solution.seen import SeenColumns, columns_without_table
from skattr.solution.terms import Fit, Term


@dataclass(eq=False)
class Batch:
    """All terms prepared on some rows of the background, and what was seen there."""

    terms: list[Term]
    seen: SeenColumns
    folds: FoldedTerms | None = None  # if errors from the background need more than the terms have

    @classmethod
    def of(cls, model: ReadModel, terms: list[Term], X: Any) -> Batch:
        """Return terms that are prepared on X together with what is seen there."""
        seen = SeenColumns()
        seen.add(X, columns_without_table(model, terms), model.anonymous_columns())
        return cls(terms, seen)

    def merge(self, other: Batch) -> Batch:
        """Return the batch of the rows of both."""
        terms = [a.merge(b) for a, b in zip(self.terms, other.terms, strict=True)]
        folds = None
        if self.folds is not None and other.folds is not None:
            folds = self.folds.merge(other.folds)
        return Batch(terms, self.seen.merge(other.seen), folds)


@dataclass(eq=False)
class Plan:
    """A model, attributions and terms with their engines, to be prepared on batches.

    Terms whose measure does not add up over batches, not even given a law, are prepared already;
    batches only add the moments of f to them.
    """

    model: ReadModel
    attributions: Attributions
    terms: list[Term]
    domain: dict[int, tuple[float, float]]
    options: RunOptions
    n_folds: int = 0  # for errors from the background

    def prepare(self, X: Any, weights: np.ndarray, first: int | None = 0) -> Batch:
        """Prepare all terms on a batch, of which some row has a positive weight.

        `first` is the position of its first row in the whole background, None if it is all of it.
        """
        X, weights = drop_zero_weights(X, weights)
        pieces = self.model.pieces
        background = Background(X, weights, pieces.levels)
        fit = self._fit_rows(background)
        options = self.options
        if self.n_folds and first is None:
            options = replace(options, folds=folds_of_all(len(X), self.n_folds))
        elif self.n_folds:
            options = replace(options, folds=folds_of_batch(first or 0, len(X), self.n_folds))
        terms = [term.on_batch(background, fit) for term in self.terms]
        adding = [term for term in terms if term.adds_up]
        prepare(pieces, adding, self.attributions, options, fit)
        for term in terms:
            if not term.adds_up and term.engine.may_estimate(term.measure, self.options):
                term.moments = find_moments(background, pieces)
        batch = Batch.of(self.model, terms, X)
        batch.folds = self.prepare_folds(terms, background, options.folds)
        return batch

    def prepare_folds(
        self, terms: list[Term], background: Background, folds: RowFolds | None
    ) -> FoldedTerms | None:
        """Prepare terms, which are prepared on all rows of a batch, on the rows of each fold.

        None if there are no folds, or if the states of the terms have them already.
        """
        if folds is None or not self.n_folds or carrier_of(terms) is not None:
            return None
        way, dependent = way_of(terms), dependent_terms(terms)
        prepared, weights = {}, {}
        for g in np.unique(folds.of_rows).tolist():
            within = folds.of_rows == g
            rows = np.flatnonzero(~within if way == "deleted" else within)
            prepared[g] = self._prepare_again(dependent, background.take(rows))
            weights[g] = float(background.weights[within].sum())
        return FoldedTerms(way, prepared, weights)

    def _prepare_again(self, terms: list[Term], background: Background) -> list[Term]:
        """Prepare terms that are prepared already on other rows."""
        fit = self._fit_rows(background)
        copies = [term.on_batch(background, fit) for term in terms]
        for term, known in zip(copies, terms, strict=True):
            if known.passes:  # else another term has the mean
                if not term.adds_up:
                    fit(term.measure)
                term.prepare(self.model.pieces, self.attributions, self.options, fit)
        for term in copies:
            term.release()
        return copies

    def _fit_rows(self, background: Background) -> Fit:
        return fit_to(background, self.domain, self.attributions)

    def finish(self, whole: Batch) -> Batch:
        """Return the batch of all rows with the terms that were prepared before."""
        terms = [
            term if term.adds_up else replace(known, moments=term.moments)
            for term, known in zip(whole.terms, self.terms, strict=True)
        ]
        return Batch(terms, whole.seen, whole.folds)
