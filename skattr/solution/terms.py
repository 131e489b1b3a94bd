"""The terms of a measure, each with its engine: prepared, merged over batches, integrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from skattr.attributions import Attributions, Pairs
from skattr.curves.base import Function
from skattr.engines import Engine, Integral, Request, RunOptions
from skattr.engines.backgrounds import Moments
from skattr.engines.base import join_certificates
from skattr.engines.estimates import Estimate
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.pieces import Pieces

Fit = Callable[..., Measure]  # (measure, attributions=all), see `planning.fit_to`


@dataclass(eq=False)
class Pass:
    """Some attributions that an engine prepares together, and a measure fitted for them."""

    positions: list[int]  # of these attributions among all
    attributions: Attributions  # those passed to the engine; they begin with these if x matters
    measure: Measure
    state: Any = None


@dataclass(eq=False)
class Term:
    """coefficient · ∫ f dμ, μ a measure that is not a combination."""

    coefficient: float
    measure: Measure
    engine: Engine
    passes: list[Pass] = field(default_factory=list)  # empty if another term has the mean
    mean: Estimate | None = None  # (k,) ∫ f d(reference)
    moments: Moments | None = None  # of f over the background, if values may be estimates
    is_reference: bool = False  # not part of the measure, but its mean is required
    learned_from: str = ""  # the rows it was learned from, if these are not all

    @property
    def is_constant(self) -> bool:
        """Whether its values are the same for all rows."""
        return self.measure.depends in ("nothing", "attribution")

    @property
    def adds_up(self) -> bool:
        """Whether it is prepared on each batch and merged."""
        return self.measure.adds_up or self.measure.adds_up_given_law

    @property
    def fold_sums(self) -> Any:
        """The `FoldSums` of its only pass, or None without them."""
        if len(self.passes) != 1:
            return None
        return self.engine.sums_by_fold(self.passes[0].state)

    def on_batch(self, background: Background, fit: Fit) -> Term:
        """Return the term with its measure on another batch of the background, not yet prepared.

        What a measure has learned from all rows is held; a measure without such a law is fitted to
        the batch.
        """
        new = replace(self, passes=[], mean=None, moments=None)
        if not self.measure.adds_up_given_law:
            new.measure = clone(self.measure)
            if new.measure.adds_up:
                fit(new.measure)
            return new
        known = {id(measure): measure for measure in self._measures()}
        batch = {key: measure.on_batch(background) for key, measure in known.items()}
        new.measure = batch[id(self.measure)]
        new.passes = [
            replace(each, measure=batch[id(each.measure)], state=None) for each in self.passes
        ]
        return new

    def _measures(self) -> list[Measure]:
        return [self.measure, *(each.measure for each in self.passes)]

    def prepare(
        self, pieces: Pieces, attributions: Attributions, options: RunOptions, fit: Fit
    ) -> None:
        """Prepare all passes; a term that is prepared again on all parts only learns its law."""
        self.passes = self.passes or self._passes(attributions, fit)
        if options.in_parts and self.measure.adds_up_given_law:
            return
        for each in self.passes:
            each.state = self.engine.prepare(pieces, each.measure, each.attributions, options)

    def _passes(self, attributions: Attributions, fit: Fit) -> list[Pass]:
        measure = self.measure
        partitions = [(list(range(len(attributions))), attributions)]
        together = isinstance(attributions, Pairs) and not self.is_constant  # of a partition
        if (self.engine.needs_partition or measure.needs_partition) and not together:
            partitions = attributions.partitions(one_each=measure.others_matter)
        positions, first = partitions[0]
        if measure.depends == "attribution":
            members = measure.members(attributions)
            return [Pass([a], first, member) for a, member in enumerate(members)]
        if measure.depends == "nothing" or first is attributions:
            return [Pass(positions, first, measure)]
        return [
            Pass(positions, partition, fit(clone(measure), partition))
            for positions, partition in partitions
        ]

    def release(self) -> None:
        """Release the background of all measures."""
        self.measure.release()
        for each in self.passes:
            each.measure.release()

    def merge(self, other: Term) -> Term:
        """Return the term of two batches of the background."""
        moments = None
        if self.moments is not None and other.moments is not None:
            moments = self.moments.merge(other.moments)
        if not self.adds_up:
            return replace(other, mean=None, moments=moments)
        pairs = zip(self._measures(), other._measures(), strict=True)
        measures = {id(b): a.merge(b) for a, b in pairs}  # several passes may share one
        passes = [
            replace(b, measure=measures[id(b.measure)], state=self.engine.merge(a.state, b.state))
            for a, b in zip(self.passes, other.passes, strict=True)
        ]
        measure = measures[id(other.measure)]
        return replace(other, measure=measure, passes=passes, mean=None, moments=moments)

    def finish(self, pieces: Pieces, options: RunOptions) -> None:
        """Compute what needs all batches, and the mean of the reference if the engine has it."""
        for measure in {id(each): each for each in self._measures()}.values():
            measure.finish()
        for each in self.passes:
            each.state = self.engine.finish(pieces, each.state, options)
        if self.passes and self.measure.depends != "attribution":
            self.mean = self.engine.mean(pieces, self.passes[0].state)

    def compact(self) -> None:
        """Drop what only merging and curves need, when the curves are made."""
        for each in self.passes:
            each.state = self.engine.compact(each.state)

    def constants(self, pieces: Pieces, n: int) -> list[Estimate]:
        """Return the values of n attributions of a constant term, (k,) each."""
        if self.measure.depends != "attribution":
            assert self.mean is not None
            return [self.mean] * n
        means = [self.engine.mean(pieces, each.state) for each in self.passes]
        return [mean * self.measure.mass for mean in means if mean is not None]

    def curves(self, pieces: Pieces, n: int) -> list[Function | None]:
        """Return n attributions as functions of one column, None where they are integrated."""
        result: list[Function | None] = [None] * n
        for each in self.passes:
            curves = self.engine.curves(pieces, each.state, each.attributions)
            for position, curve in zip(each.positions, curves, strict=False):
                result[position] = curve
        return result

    def integrate(self, pieces: Any, request: Request) -> Integral:
        """Return some attributions at some rows, and their masses if these depend on x or j."""
        parts = []
        for each in self.passes:
            targets = [i for i, a in enumerate(request.chosen) if a in each.positions]
            wanted = [each.positions.index(request.chosen[i]) for i in targets]
            if not wanted:
                continue
            part = replace(request, attributions=each.attributions, chosen=wanted)
            integral = self.engine.integrate(pieces, each.state, part)
            masses = integral.masses
            if masses is None and self.measure.mass is None:
                known = each.measure.masses(request.X, each.attributions)
                assert known is not None
                masses = Estimate(known[:, wanted, None])
            parts.append((targets, integral.values, masses, integral.certificate))
        n = len(request.chosen)
        values = [values.placed(to, n) for to, values, *_ in parts]
        varying = [masses.placed(to, n) for to, _, masses, _ in parts if masses is not None]
        return Integral(
            _total(values),
            _total(varying) if varying else None,
            join_certificates(*(certificate for *_, certificate in parts)),
        )

    def support(self, X: Any, a: int) -> np.ndarray | None:
        """Return the effective number of rows behind an attribution, (n,), if it depends on x."""
        for each in self.passes:
            if a in each.positions:
                columns = each.attributions[each.positions.index(a)]
                return each.measure.support(X, columns)
        return None


def _total(parts: list[Estimate]) -> Estimate:
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result
