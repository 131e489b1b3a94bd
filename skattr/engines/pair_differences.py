"""Pairs by differences: any model, any measure that pins columns.

    phi_jk = c_jk - c_j - c_k,   c = ∫ f dμ - mass · ∫ f dν

with the centred values c of both attributions together and of each alone, ν the reference of μ
(measures/pairs.py). An engine for single attributions integrates all of them, pairs as groups of
columns; exact where that engine is. Estimates keep their replicates: replicate r of all values
comes from one seed, so that the error is that of the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions, Pairs
from skattr.curves.by_code import Constant
from skattr.engines.base import (
    Curves,
    Engine,
    Integral,
    Request,
    RunOptions,
    join_certificates,
)
from skattr.engines.estimates import Estimate
from skattr.engines.lookups import look_up
from skattr.measures.base import Measure
from skattr.measures.views import COALITIONS, VIEWS, of_pairs
from skattr.pieces import Pieces

BASIC = tuple(view for view in VIEWS if of_pairs(view) in VIEWS and view not in COALITIONS)


@dataclass(eq=False)
class Part:
    """Some of all attributions, prepared together."""

    positions: list[int]  # among all attributions: the paired ones, then the pairs
    attributions: Attributions  # those passed to the engine; they begin with these
    measure: Measure
    state: Any
    curves: Curves = field(default_factory=list)


@dataclass(eq=False)
class Differences:
    """The attributions that differences are made of, and the mean of the reference."""

    engine: Engine
    cost: str  # of one value, in words
    everything: Attributions  # the paired attributions, then the pairs
    number: dict[int, int]  # position of a paired attribution among the singles → in `everything`
    parts: list[Part]
    mass: float | None
    constant: bool  # whether values do not depend on x
    reference: tuple[Engine, Any] | None  # engine and state, if the engine does not have the mean
    mean: Estimate | None = None


class _PairDifferences(Engine):
    """Values of both together less those of each, by another engine.

    Parameters
    ----------
    engines : tuple of Engine
        The engines to choose from, in order of preference.
    """

    kind = Pieces
    views = tuple(map(of_pairs, BASIC))

    def __init__(self, engines: tuple[Engine, ...] = ()) -> None:
        self.engines = engines

    def _usable(self, pieces: Pieces, inner: Measure) -> list[Engine]:
        """Return the engines that integrate single values as these are: exactly, or not."""
        alike = (each for each in self.engines if each.exact == self.exact)
        return [each for each in alike if each.suits(pieces, inner)]

    def _engine(self, pieces: Pieces, inner: Measure, options: RunOptions) -> Engine | None:
        usable = [each for each in self._usable(pieces, inner) if each.name not in options.without]
        preferred = (e for e in usable if e.why_not_preferred(pieces, inner, options) is None)
        return next(preferred, usable[0] if usable else None)

    @override
    def objection(self, pieces: Pieces, measure: Any) -> str | None:
        inner = measure.pairs().measure
        if self._usable(pieces, inner):
            return None
        kind = "exact" if self.exact else "approximate"
        return f"there is no {kind} engine for {inner!r} on {pieces.describe()}"

    @override
    def why_not_preferred(self, pieces: Any, measure: Any, options: RunOptions) -> str | None:
        if self._engine(pieces, measure.pairs().measure, options) is None:
            return "the engines that could integrate each value cost too much"
        return None

    @override
    def cost(self, pieces: Pieces, measure: Any) -> str:
        return "explain: both columns together and each alone"

    @override
    def may_estimate(self, measure: Measure, options: RunOptions) -> bool:
        return not self.exact

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Any, options: RunOptions
    ) -> Differences:
        inner = measure.pairs().measure
        engine = self._engine(pieces, inner, options)
        assert engine is not None
        everything, number = _with_singles(attributions)
        partitions = [(list(range(len(everything))), everything)]
        if engine.needs_partition:
            partitions = everything.partitions()
        constant = inner.depends == "attribution"
        if constant:
            first = partitions[0][1]
            chosen = [([a], first, each) for a, each in enumerate(inner.members(everything))]
        else:
            chosen = [(positions, each, inner) for positions, each in partitions]
        parts = [
            Part(positions, each, of_part, engine.prepare(pieces, of_part, each, options))
            for positions, each, of_part in chosen
        ]
        reference = None
        if constant or not engine.has_mean(inner):
            law = inner.reference().fit(measure.background_, None, measure.domain_)
            other = next(
                each
                for each in self.engines
                if (each.exact or not self.exact) and each.suits(pieces, law)
            )
            _, partition = everything.partitions()[0]
            reference = other, other.prepare(pieces, law, partition, options)
        cost = f"each value by {engine.name} ({engine.cost(pieces, inner)})"
        return Differences(engine, cost, everything, number, parts, inner.mass, constant, reference)

    @override
    def finish(self, pieces: Pieces, state: Differences, options: RunOptions) -> Differences:
        engine = state.engine
        parts = []
        for part in state.parts:
            finished = engine.finish(pieces, part.state, options)
            curves = () if state.constant else engine.curves(pieces, finished, part.attributions)
            parts.append(replace(part, state=finished, curves=curves))
        if state.reference is None:
            mean = engine.mean(pieces, parts[0].state)
        else:
            other, known = state.reference
            mean = other.mean(pieces, other.finish(pieces, known, options))
        return replace(state, parts=parts, mean=mean, reference=None)

    @override
    def mean(self, pieces: Pieces, state: Differences) -> Estimate | None:
        return state.mean

    @override
    def curves(self, pieces: Pieces, state: Differences, attributions: Any) -> Curves:
        if not (state.constant and self.exact):
            return [None] * len(attributions)
        request = Request(None, attributions, range(len(attributions)), RunOptions())  # type: ignore[arg-type]
        values = self._differences(state, _constants(pieces, state), attributions, request.chosen)
        return [Constant(value[None]) for value in values.value]

    @override
    def outlook(self, state: Differences, attributions: Any) -> str:
        more = state.engine.outlook(state.parts[0].state, state.everything)
        return f"{state.cost}; {more}" if more else state.cost

    @override
    def evaluations(self, states: list[Differences], options: RunOptions) -> str:
        return states[0].engine.evaluations([part.state for part in states[0].parts], options)

    @override
    def certificate(self, state: Differences) -> str:
        return state.engine.certificate(state.parts[0].state)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        pairs: Any = request.attributions
        if state.constant:
            values = self._differences(state, _constants(pieces, state), pairs, request.chosen)
            n = len(request.X)
            return Integral(values + Estimate(np.zeros((n, *values.value.shape))))
        n_singles = len(state.number)
        needed = {state.number[a] for p in request.chosen for a in pairs.members[p]}
        needed |= {n_singles + p for p in request.chosen}
        values, certificate = _centred(pieces, state, sorted(needed), request)
        return Integral(self._differences(state, values, pairs, request.chosen), None, certificate)

    def _differences(
        self, state: Differences, values: Estimate, pairs: Pairs, chosen: Any
    ) -> Estimate:
        """Return the differences of some pairs, given the centred values of all attributions."""
        both = [len(state.number) + p for p in chosen]
        first, second = ([state.number[pairs.members[p][side]] for p in chosen] for side in (0, 1))
        return _taken(values, both) - _taken(values, first) - _taken(values, second)


class ExactDifferences(_PairDifferences):
    """Pairs by differences of exact values."""

    name = "pair_differences"
    gives = "exact, both together less each alone"


class EstimatedDifferences(_PairDifferences):
    """Pairs by differences of estimates."""

    name = "estimated_differences"
    gives = "with standard errors"
    exact = False


def _with_singles(pairs: Pairs) -> tuple[Attributions, dict[int, int]]:
    """Return the paired attributions and the pairs, and the positions of the former."""
    paired = sorted({a for members in pairs.members for a in members})
    singles = pairs.singles
    everything = Attributions(
        (*(singles.names[a] for a in paired), *pairs.names),
        (*(singles[a] for a in paired), *pairs.columns),
        pairs.n_columns,
    )
    return everything, {a: i for i, a in enumerate(paired)}


def _taken(values: Estimate, at: list[int]) -> Estimate:
    """Return some attributions, the last axis but one."""
    error = values.error
    if np.ndim(error):
        error = np.broadcast_to(error, values.value.shape)[..., at, :]
    replicates = None if values.replicates is None else values.replicates[..., at, :]
    return Estimate(values.value[..., at, :], error, replicates)


def _constants(pieces: Pieces, state: Differences) -> Estimate:
    """Return the centred values of all attributions, (g, k), if they do not depend on x."""
    g = len(state.everything)
    assert state.mean is not None and state.mass is not None
    total = Estimate(np.zeros((g, pieces.n_outputs)))
    for a, part in enumerate(state.parts):
        mean = state.engine.mean(pieces, part.state)
        assert mean is not None
        one = (mean - state.mean) * state.mass
        rows = Estimate(
            np.asarray(one.value)[None], one.error,
            None if one.replicates is None else one.replicates[:, None],
        )  # fmt: skip
        total = total + rows.placed([a], g)
    return total


def _centred(
    pieces: Any, state: Differences, needed: list[int], request: Request
) -> tuple[Estimate, dict[str, Any]]:
    """Return the centred values of some attributions at rows, (n, g, k); all others are 0."""
    g = len(state.everything)
    total = Estimate(np.zeros((len(request.X), g, pieces.n_outputs)))
    certificates = []
    for part in state.parts:
        at = {a: i for i, a in enumerate(part.positions) if a in needed}
        of_part = replace(request, attributions=part.attributions)
        integrate = partial(state.engine.integrate, pieces, part.state)
        rest = []
        for a, i in at.items():
            curve = part.curves[i]
            if curve is None:
                rest.append((a, i))
                continue
            values = look_up(curve, replace(of_part, chosen=[i]), integrate)
            total = total + _less_mean(state, Estimate(values[:, None]), None).placed([a], g)
        if rest:
            wanted = replace(of_part, chosen=[i for _, i in rest])
            integral = integrate(wanted)
            masses = integral.masses
            if masses is None and state.mass is None:
                known = part.measure.masses(request.X, part.attributions)
                assert known is not None
                masses = Estimate(known[:, wanted.chosen, None])
            centred = _less_mean(state, integral.values, masses)
            total = total + centred.placed([a for a, _ in rest], g)
            certificates.append(integral.certificate)
    return total, join_certificates(*certificates)


def _less_mean(state: Differences, values: Estimate, masses: Estimate | None) -> Estimate:
    """Return values less mass times the mean of the reference."""
    assert state.mean is not None
    if masses is not None:
        return values - masses * state.mean.value
    assert state.mass is not None
    return values - state.mean * state.mass
