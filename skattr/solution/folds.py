"""The background in folds: errors from its finite number of rows.

Every row belongs to one of G folds. With m_(g) the values without the rows of fold g, the
delete-a-group jackknife is

    SE² = (G - 1) / G · Σ_g (m_(g) - mean of m_(g))²

(docs/mathematics.md, section 12). Whole solutions are compared, so that differences of terms and
centred values have their own errors. A fold is a batch of the background, and there are three ways
to its m_(g), each for all terms that depend on the rows:

- "alone": the measures are means over rows. Fold g is solved by itself, and with its weight w_g of
  W and its values m_g, m_(g) - m = w_g / (W - w_g) · (m - m_g);
- "merged": sums add up, given the law that a measure has learned (bins and bandwidths are held).
  The batches of all other folds are merged, and solved;
- "deleted": the terms are prepared anew on the rows of all other folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from skattr.engines import RunOptions
from skattr.engines.base import RowFolds
from skattr.measures.base import Measure
from skattr.solution.terms import Term

DEFAULT = 32  # folds
SEED = 0x9E3779B97F4A7C15


def _mixed(position: np.ndarray) -> np.ndarray:
    """Return a hash of positions (splitmix64)."""
    mixed = position + np.uint64(SEED)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def folds_of_all(n: int, folds: int) -> RowFolds:
    """Return the folds of all n rows of a background: in the order of a hash, one after the other.

    Folds are equally large, and random in any order of the rows.
    """
    fold = np.empty(n, np.int64)
    fold[np.argsort(_mixed(np.arange(n, dtype=np.uint64)))] = np.arange(n) % folds
    return RowFolds(fold, folds)


def folds_of_batch(first: int, n: int, folds: int) -> RowFolds:
    """Return the folds of n rows among others: a hash of their positions, which begin at `first`.

    The folds of a row do not depend on how the rows are divided into batches: if batches were dealt
    evenly to folds, differences between batches would not be seen. The first rows of the background
    get one fold each, so that few rows make many folds.
    """
    position = np.arange(n, dtype=np.uint64) + np.uint64(first)
    fold = np.where(position < folds, position, _mixed(position) % np.uint64(folds))
    return RowFolds(fold.astype(np.int64), folds)


def first_folds(folds: Any, n: int, in_batches: bool) -> RowFolds | None:
    """Return the folds of the first n rows, if the user wants them: see `MeasureExplainer`."""
    number = DEFAULT if folds == "auto" else int(folds)
    if not number:
        return None
    return folds_of_batch(0, n, number) if in_batches else folds_of_all(n, number)


@dataclass(eq=False)
class FoldedTerms:
    """The terms that depend on rows, prepared on each fold alone, or on all rows but a fold's."""

    way: str  # "alone", "merged" or "deleted"
    terms: dict[int, list[Term]]
    weights: dict[int, float]

    def merge(self, other: FoldedTerms) -> FoldedTerms:
        """Return the folds of two batches of the background."""
        terms, weights = dict(self.terms), dict(self.weights)
        for g, more in other.terms.items():
            known = terms.get(g)
            terms[g] = more if known is None else _merged(known, more)
            weights[g] = weights.get(g, 0.0) + other.weights[g]
        return FoldedTerms(self.way, terms, weights)

    def without(self) -> list[list[Term]]:
        """Return for each fold the terms of all others; 3 G merges."""
        alone = [self.terms[g] for g in sorted(self.terms)]
        before: list[list[Term] | None] = [None]
        after: list[list[Term] | None] = [None]
        for terms in alone[:-1]:
            before.append(_merge_known(before[-1], terms))
        for terms in alone[:0:-1]:
            after.append(_merge_known(terms, after[-1]))
        return [_merge_known(a, b) for a, b in zip(before, reversed(after), strict=True)]


def _merge_known(a: list[Term] | None, b: list[Term] | None) -> list[Term]:
    """Return the terms of both, or of the one there is."""
    both = [terms for terms in (a, b) if terms is not None]
    return reduce(_merged, both)


def _merged(a: list[Term], b: list[Term]) -> list[Term]:
    return [one.merge(other) for one, other in zip(a, b, strict=True)]


def depends_on_rows(measure: Measure) -> bool:
    """Return whether the values of a measure, or what centring subtracts, depend on rows."""
    return bool(measure.by_rows or measure.reference().by_rows)


def dependent_terms(terms: list[Term]) -> list[Term]:
    """Return the terms whose values or references depend on rows."""
    return [term for term in terms if depends_on_rows(term.measure)]


def way_of(terms: list[Term]) -> str:
    """Return how the values without a fold are found, see the module."""
    dependent = dependent_terms(terms)
    if all(term.measure.by_rows in ("mean", "") for term in dependent):
        return "alone"
    return "merged" if all(term.adds_up for term in dependent) else "deleted"


def why_no_folds(folds: Any, terms: list[Term], options: RunOptions) -> str:
    """Return why there is no error from the background, "" if there is one."""
    if folds == 0:
        return "folds=0"
    of_measure = [term for term in terms if term.coefficient and not term.is_reference]
    if not any(term.measure.by_rows for term in of_measure):
        return f"{of_measure[0].measure!r}: {of_measure[0].measure.no_folds}"
    for term in of_measure:
        if not term.measure.by_rows and term.measure.no_folds != Measure.no_folds:
            return f"{term.measure!r}: {term.measure.no_folds}"
    for term in dependent_terms(terms):
        if term.engine.may_estimate(term.measure, options):
            return f"the values of {term.engine.name} are estimates themselves"
        if term.learned_from:
            return f"{term.measure!r} is learned from {term.learned_from}"
    if options.in_parts and way_of(terms) == "deleted":
        return "the background came in parts, and is not kept"
    return ""
