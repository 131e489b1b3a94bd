"""A sum of pieces of different kinds: each addend by its own engine, and the results added up.

∫ (f_1 + f_2) dμ = ∫ f_1 dμ + ∫ f_2 dμ, exact where the addends are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skattr.engines.additive import AdditiveTerms
from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.binned_additive import BinnedAdditive
from skattr.engines.binned_products import BinnedProducts
from skattr.engines.binned_rows import BinnedRows, look_up
from skattr.engines.box_products import BoxProducts
from skattr.engines.lines import Lines
from skattr.engines.one_violation import OneViolation
from skattr.engines.products import ProductTerms
from skattr.measures.base import Measure
from skattr.pieces import Boxes, Pieces, Sum

ENGINES = (
    OneViolation(), BinnedRows(), BoxProducts(), AdditiveTerms(), BinnedAdditive(), ProductTerms(),
    BinnedProducts(), Lines(),
)  # fmt: skip


@dataclass(eq=False)
class Addend:
    """The engine of one addend, its state, and the curves that it has."""

    engine: Engine
    state: Any
    own: Own
    tables: list = field(default_factory=list)


class Addends(Engine):
    """The sum of what the engines of all addends give."""

    name = "addends"
    needs = (Sum, "rows")

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        if not isinstance(pieces, Sum):
            return super().refuses(pieces, term)
        for addend in pieces.addends:
            if _engine(addend, term) is None:
                return f"no engine has a view of {term!r} for {addend.describe()}"
        return None

    def cost(self, pieces: Sum, term: Measure) -> str:
        """Say what the addends cost."""
        found = [(_engine(addend, term), addend) for addend in pieces.addends]
        return "; and ".join(
            f"{engine.name}: {engine.cost(addend, term)}" for engine, addend in found if engine
        )

    def prepare(self, pieces: Sum, term: Measure, own: Own, jobs: Jobs) -> list[Addend]:
        """Prepare all addends."""
        result = []
        curves = own if term.depends != "nothing" else ()
        for addend in pieces.addends:
            engine = _engine(addend, term)
            assert engine is not None
            result.append(Addend(engine, engine.prepare(addend, term, own, jobs), curves))
        return result

    def merge(self, a: list[Addend], b: list[Addend]) -> list[Addend]:
        """Join the batches of all addends."""
        return [
            replace(x, state=x.engine.merge(x.state, y.state), tables=[])
            for x, y in zip(a, b, strict=True)
        ]

    def finish(self, pieces: Sum, state: list[Addend], jobs: Jobs) -> list[Addend]:
        """Finish all addends."""
        result = []
        for addend, one in zip(pieces.addends, state, strict=True):
            finished = one.engine.finish(addend, one.state, jobs)
            tables = one.engine.tables(addend, finished, one.own)
            result.append(replace(one, state=finished, tables=tables))
        return result

    def mean(self, pieces: Sum, state: list[Addend]) -> np.ndarray:
        """Return the sum of the means."""
        total = np.zeros(pieces.n_outputs)
        for addend, one in zip(pieces.addends, state, strict=True):
            mean = one.engine.mean(addend, one.state)
            assert mean is not None
            total = total + mean
        return total

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the sum of the addends' values."""
        result = np.zeros((len(X), len(chosen), pieces.n_outputs))
        for addend, one in zip(pieces.addends, state, strict=True):
            if isinstance(addend, Boxes):
                grid, codes = addend.grid.meet(X)
                addend = addend.on(grid)
            rest = []
            for place, a in enumerate(chosen):
                table, k = one.tables[a], own[a][0]
                if table is None:
                    rest.append(place)
                elif isinstance(table, np.ndarray):
                    result[:, place] += table[codes[k]]
                else:
                    result[:, place] += look_up(
                        one.engine, addend, one.state, table, X, codes, own, a, jobs
                    )
            if rest:
                todo = [chosen[place] for place in rest]
                result[:, rest] += one.engine.integrate(
                    addend, one.state, X, codes, own, todo, jobs
                )
        return result


def _engine(addend: Pieces, term: Measure) -> Engine | None:
    return next((engine for engine in ENGINES if engine.refuses(addend, term) is None), None)
