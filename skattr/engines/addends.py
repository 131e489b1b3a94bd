"""A sum of pieces of different kinds: one engine per addend, and the results added up.

∫ (f_1 + f_2) dμ = ∫ f_1 dμ + ∫ f_2 dμ, exact where the addends are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction
from skattr.engines.base import Engine, Integral, Rows, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.lookups import look_up
from skattr.measures.base import Measure
from skattr.pieces import Pieces, Sum


@dataclass(eq=False)
class Addend:
    """One addend: its engine, state and curves."""

    engine: Engine
    state: Any
    attributions: Any  # the attributions that may have curves
    curves: Sequence[ColumnFunction | None] = field(default_factory=list)


class Addends(Engine):
    """The sum of the integrals of all addends, each by its own engine.

    Parameters
    ----------
    engines : tuple of Engine
        The exact engines to choose from, in order of preference.
    """

    name = "addends"
    kind = Sum
    views = ("rows", "bins", "factors")
    gives = "exact; groups"
    needs_partition = True

    def __init__(self, engines: tuple[Engine, ...] = ()) -> None:
        self.engines = engines

    def _engine(self, addend: Pieces, measure: Measure) -> Engine | None:
        engines = (each for each in self.engines if each.refuses(addend, measure) is None)
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
    def mean(self, pieces: Sum, state: list[Addend]) -> Estimate:
        total = Estimate(np.zeros(pieces.n_outputs))
        for part, addend in zip(pieces.addends, state, strict=True):
            mean = addend.engine.mean(part, addend.state)
            assert mean is not None
            total = total + mean
        return total

    @override
    def integrate(
        self,
        pieces: Any,
        state: Any,
        rows: Rows,
        attributions: Attributions,
        chosen: list[int],
        options: RunOptions,
    ) -> Integral:
        result = np.zeros((len(rows.X), len(chosen), pieces.n_outputs))
        for part, addend in zip(pieces.addends, state, strict=True):
            met, codes = part.meet(rows.X)
            encoded = Rows(rows.X, codes)
            integrate = partial(addend.engine.integrate, met, addend.state)
            rest = []
            for i, a in enumerate(chosen):
                curve = addend.curves[a]
                if curve is None:
                    rest.append(i)
                    continue
                off = partial(integrate, attributions=attributions, chosen=[a], options=options)
                result[:, i] += look_up(curve, encoded, attributions[a][0], off)
            if rest:
                wanted = [chosen[i] for i in rest]
                integral = integrate(encoded, attributions, wanted, options)
                result[:, rest] += integral.values.value
        return Integral(Estimate(result))
