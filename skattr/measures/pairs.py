"""Pairs of attributions: what pinning both does beyond each alone.

For a measure μ with reference ν (a probability) and masses m, the pair of attributions j and k has

    μ_{jk,x} - μ_{j,x} - μ_{k,x} + (m_j + m_k - m_jk) ν,

which is μ_jk - μ_j - μ_k + ν for probabilities: the centred value of both columns together less
the centred values of each. For Shapley and Banzhaf values it is the interaction index

    I_jk(x) = ∫ E[v_x(S ∪ jk) - v_x(S ∪ j) - v_x(S ∪ k) + v_x(S)] dP(p)

(docs/mathematics.md, section 11). `MeasureExplainer.explain_pairs` makes it of the explainer's
measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from skattr.attributions import Pairs
from skattr.measures.background import Background
from skattr.measures.base import Measure, as_terms
from skattr.measures.views import COALITIONS, PairsView, of_pairs


class Interaction(Measure):
    """The interaction of pairs of attributions under a measure; its attributions are `Pairs`.

    Parameters
    ----------
    measure : Measure
        The measure of single attributions. The interaction of a combination is the combination of
        the interactions; measures that are the same for all attributions have none.
    """

    mass = 0.0

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    @property
    def depends(self) -> str:  # type: ignore[override]
        """What it depends on: the whole row if the inner measure does, else both values."""
        return "row" if self.measure.depends == "row" else "own"

    @property
    def views(self) -> tuple[str, ...]:  # type: ignore[override]
        """One view of pairs for each view of the inner measure."""
        return tuple(map(of_pairs, self.measure.views))

    @property
    def flat(self) -> bool:  # type: ignore[override]
        """Whether the laws of the inner measure are uniform."""
        return self.measure.flat

    adds_up = False
    no_batches = "pairs are computed from the whole background"

    @property
    def by_rows(self) -> str:  # type: ignore[override]
        """How the inner measure depends on rows."""
        return "" if self.measure.by_rows == "held" else self.measure.by_rows

    @property
    def no_folds(self) -> str:  # type: ignore[override]
        """Why there is no error from the background."""
        held = self.measure.by_rows == "held"
        return "the law of pairs is learned from all rows" if held else self.measure.no_folds

    @property
    def dependent_(self) -> Any:  # type: ignore[override]
        """The strongly dependent columns of the inner measure."""
        return self.measure_.dependent_ if hasattr(self, "measure_") else ()

    def expanded(self) -> list[tuple[float, Measure]]:
        """Return one interaction for each term that depends on the attribution."""
        terms = as_terms(self.measure)
        kept = [(c, term) for c, term in terms if term.depends != "nothing"]
        if not kept:
            raise ValueError(
                f"{self.measure!r} is the same for all attributions, so that pairs of them are 0; "
                "use a measure that pins columns, such as PartialDependence()"
            )
        for _, term in kept:
            if term.no_pairs:
                raise ValueError(f"there are no pairs of {term!r}: {term.no_pairs}")
        if len(terms) == 1 and terms[0][1] is self.measure:
            return [(1.0, self)]
        return [(c, Interaction(term)) for c, term in kept]

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        if isinstance(attributions, Pairs):
            attributions = replace(attributions.singles, together=True)
        self.measure_ = clone(self.measure)
        self.measure_.fit(background, None, self.domain_, attributions)

    def release(self) -> None:
        """Forget the background, that of the inner measure too."""
        super().release()
        self.measure_.release()

    def support(self, X: Any, columns: tuple[int, ...]) -> np.ndarray | None:
        """Return the effective number of rows behind both attributions together."""
        return self.measure_.support(X, columns)

    @property
    def shared(self) -> bool:
        """Whether values of pairs are parts of the values of single attributions."""
        return not set(self.measure.views).isdisjoint(COALITIONS)

    def pairs(self) -> PairsView:
        """Return the inner measure, fitted to single attributions."""
        return PairsView(self.measure_)

    def reference(self) -> Measure:
        """Return the reference of the inner measure."""
        return self.measure.reference()

    def in_words(self) -> str:
        """Return the name in words."""
        return f"pairs of {self.measure.in_words()}"
