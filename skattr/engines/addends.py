"""A sum of pieces of different kinds: one engine per addend, and the results added up.

∫ (f_1 + f_2) dμ = ∫ f_1 dμ + ∫ f_2 dμ, exact where the addends are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Curves, Engine, Integral, Request, Rows, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.lookups import look_up
from skattr.measures.base import Measure
from skattr.measures.views import COALITIONS, of_pairs
from skattr.pieces import Pieces, Sum


@dataclass(eq=False)
class Addend:
    """One addend: its engine, state and curves."""

    engine: Engine
    state: Any
    attributions: Any  # the attributions that may have curves
    curves: Curves = field(default_factory=list)


class Addends(Engine):
    """The sum of the integrals of all addends, each by its own engine.

    Parameters
    ----------
    engines : tuple of Engine
        The exact engines to choose from, in order of preference.
    """

    name = "addends"
    kind = Sum
    views = (
        "rows", "bins", "factors", "coalitions of rows", "coalitions of factors",
        "pairs of coalitions of rows", "pairs of coalitions of factors",
    )  # fmt: skip
    gives = "exact; groups"
    needs_partition = True

    def __init__(self, engines: tuple[Engine, ...] = ()) -> None:
        self.engines = engines

    def _engine(self, addend: Pieces, measure: Measure) -> Engine | None:
        engines = (each for each in self.engines if each.suits(addend, measure))
        return next(engines, None)

    @override
    def objection(self, pieces: Sum, measure: Measure) -> str | None:
        for addend in pieces.addends:
            if self._engine(addend, measure) is None:
                return f"no engine has a view of {measure!r} for {addend.describe()}"
        return None

    @override
    def cost(self, pieces: Sum, measure: Measure) -> str:
        pairs = [(self._engine(addend, measure), addend) for addend in pieces.addends]
        return "; and ".join(
            f"{engine.name}: {engine.cost(addend, measure)}" for engine, addend in pairs if engine
        )

    @override
    def prepare(
        self, pieces: Sum, measure: Measure, attributions: Attributions, options: RunOptions
    ) -> list[Addend]:
        curved = attributions if measure.depends != "nothing" else ()
        result = []
        for addend in pieces.addends:
            engine = self._engine(addend, measure)
            assert engine is not None
            state = engine.prepare(addend, measure, attributions, options)
            result.append(Addend(engine, state, curved))
        return result

    @override
    def merge(self, a: list[Addend], b: list[Addend]) -> list[Addend]:
        return [
            replace(x, state=x.engine.merge(x.state, y.state), curves=[])
            for x, y in zip(a, b, strict=True)
        ]

    @override
    def finish(self, pieces: Sum, state: list[Addend], options: RunOptions) -> list[Addend]:
        result = []
        for part, addend in zip(pieces.addends, state, strict=True):
            finished = addend.engine.finish(part, addend.state, options)
            curves = addend.engine.curves(part, finished, addend.attributions)
            result.append(replace(addend, state=finished, curves=curves))
        return result

    @override
    def has_mean(self, measure: Measure) -> bool:
        games = {*COALITIONS, *map(of_pairs, COALITIONS)}
        return games.isdisjoint(measure.views)  # engines on boxes do not compute it

    @override
    def mean(self, pieces: Sum, state: list[Addend]) -> Estimate | None:
        total = Estimate(np.zeros(pieces.n_outputs))
        for part, addend in zip(pieces.addends, state, strict=True):
            mean = addend.engine.mean(part, addend.state)
            if mean is None:
                return None
            total = total + mean
        return total

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        result = request.zeros(pieces.n_outputs)
        for part, addend in zip(pieces.addends, state, strict=True):
            met, codes = part.meet(request.X)
            encoded = replace(request, rows=Rows(request.X, codes))
            integrate = partial(addend.engine.integrate, met, addend.state)
            rest = []
            for i, a in enumerate(request.chosen):
                curve = addend.curves[a]
                if curve is None:
                    rest.append(i)
                else:
                    result[:, i] += look_up(curve, replace(encoded, chosen=[a]), integrate)
            if rest:
                wanted = replace(encoded, chosen=[request.chosen[i] for i in rest])
                result[:, rest] += integrate(wanted).values.value
        return Integral(Estimate(result))
