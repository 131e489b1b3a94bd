"""Shapley and Banzhaf values of additive models (docs/mathematics.md, section 5).

    phi_j(x) = Σ_{i in j} (h_i(x_i) - E h_i)

A column adds the same to every coalition, so that all semivalues agree. Exact, and as cheap as
partial dependence, whose means of terms it uses.
"""

from __future__ import annotations

from typing import Any

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines import laws
from skattr.engines.additive.additive import AdditiveTerms, TermMeans, centered_terms
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.measures.base import Measure
from skattr.pieces import Additive


class AdditiveCoalitions(Engine):
    """The terms of each explained row, less their means."""

    name = "additive_coalitions"
    kind = Additive
    views = ("coalitions of rows", "coalitions of factors")
    gives = "exact; groups"

    @override
    def objection(self, pieces: Additive, measure: Any) -> str | None:
        inner = measure.coalitions().measure
        return laws.why_inexact(inner, lambda law, k: laws.mean(law, pieces, k))

    @override
    def cost(self, pieces: Additive, measure: Measure) -> str:
        return AdditiveTerms().cost(pieces, measure)

    @override
    def prepare(
        self, pieces: Additive, measure: Any, attributions: Attributions, options: RunOptions
    ) -> TermMeans:
        inner = measure.coalitions().measure
        return AdditiveTerms().prepare(pieces, inner, attributions, options)

    @override
    def merge(self, a: TermMeans, b: TermMeans) -> TermMeans:
        return AdditiveTerms().merge(a, b)

    @override
    def finish(self, pieces: Additive, state: TermMeans, options: RunOptions) -> TermMeans:
        return AdditiveTerms().finish(pieces, state, options)

    @override
    def mean(self, pieces: Additive, state: TermMeans) -> Estimate:
        return AdditiveTerms().mean(pieces, state)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        return Integral(Estimate(centered_terms(pieces, state, request)))
