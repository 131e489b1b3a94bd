"""What a column of a table is, as a function of one raw column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from skattr._inputs import frames

UNKNOWN = "unknown"  # levels that are not among the known ones


class Kind:
    """The kinds of functions of a raw value that a track can be."""

    RAW = "raw"  # the value itself
    SAME = "same"  # the value itself where it is present
    MONOTONE = "monotone"  # monotone in a present number, in floating point too
    NUMBER = "number"  # monotone up to rounding, and a number for each present number
    PARTIAL = "partial"  # monotone up to rounding, but not a number everywhere
    SPLINE = "spline"  # smooth between a few breaks
    MISSING = "missing"  # tells only whether the value is missing
    CUTS = "cuts"  # constant between known cuts
    LEVELS = "levels"  # tells known levels apart, all others are alike
    FREE = "free"  # anything

    UNCHANGED = (RAW, SAME)  # those that are compared on the raw scale
    DISCRETE = (MISSING, CUTS, LEVELS)  # those that no later step can make less simple


@dataclass(frozen=True)
class Track:
    """A column of a table, as a function of one raw column."""

    column: int
    kind: str = Kind.RAW
    known: tuple = ()  # the levels, or the cuts: the largest numbers below each jump
    replaced: tuple = ()  # present values that an imputer takes for missing
    breaks: tuple | None = ()  # the raw numbers where it has kinks or jumps; None: not known
    straight: bool = True  # whether every step so far was affine in the present numbers
    refused: tuple = ()  # what an encoder is known to refuse: of MISSING and UNKNOWN

    @property
    def effective_kind(self) -> str:
        """The kind, given that some present values may be taken for missing."""
        return Kind.FREE if self.replaced and self.kind in Kind.UNCHANGED else self.kind

    @property
    def affine(self) -> bool:
        """Whether it is an affine function of the raw number, where that is present."""
        return self.straight and self.kind in (*Kind.UNCHANGED, Kind.MONOTONE) and not self.replaced

    def then(self, kind: str, straight: bool = False) -> Track:
        """Return the track behind a step that applies a function of this kind to each column.

        `straight` says that the function is affine.
        """
        if kind == Kind.RAW or self.kind in Kind.DISCRETE or self.kind == Kind.FREE:
            return self
        if kind == Kind.SAME:
            if self.kind in (Kind.PARTIAL, Kind.SPLINE):  # an imputer fills the gaps
                return replace(self, kind=Kind.FREE)
            return self if self.kind != Kind.RAW else replace(self, kind=Kind.SAME)
        if self.replaced:
            return replace(self, kind=Kind.FREE)
        order = (Kind.MONOTONE, Kind.NUMBER, Kind.PARTIAL, Kind.SPLINE, Kind.FREE)
        worst = max(order.index(k) for k in (kind, self.kind) if k in order)
        return replace(self, kind=order[worst], straight=self.straight and straight)

    def with_breaks(self, breaks: Iterable) -> Track:
        """Return the track behind a step that is not smooth at some values of its input."""
        if self.kind in Kind.DISCRETE:
            return self
        known = self.kind in Kind.UNCHANGED and self.breaks is not None
        return replace(self, breaks=(*(self.breaks or ()), *breaks) if known else None)

    def replacing(self, value: Any) -> Track:
        """Return the track behind an imputer that takes a present value for missing."""
        if self.kind in Kind.DISCRETE:
            return self
        if self.kind not in Kind.UNCHANGED:
            return replace(self, kind=Kind.FREE)
        return replace(self, kind=Kind.SAME, replaced=(*self.replaced, value))

    def discretized(self, kind: str, known: Iterable, strict: bool = False) -> Track:
        """Return the track behind a step that only tells known LEVELS, or CUTS, apart.

        `strict` says that it refuses everything else.
        """
        if self.kind in Kind.DISCRETE:
            return self
        if self.kind not in Kind.UNCHANGED or (kind == Kind.CUTS and self.replaced):
            return replace(self, kind=Kind.FREE)
        known = tuple(known)
        refused: tuple = (UNKNOWN,) if strict else ()
        if strict and self.kind == Kind.RAW and not any(frames.is_missing(v) for v in known):
            refused = (UNKNOWN, Kind.MISSING)
        return replace(self, kind=kind, known=known, refused=refused)

    def refuses(self, value: Any) -> bool:
        """Tell whether an encoder is known to refuse a raw value."""
        if frames.is_missing(value):
            return Kind.MISSING in self.refused
        return UNKNOWN in self.refused and value not in self._known_values

    @cached_property
    def _known_values(self) -> frozenset:
        return frozenset(self.known)

    def as_indicator(self) -> Track:
        """Return the track of an indicator of missing values."""
        if self.kind in Kind.DISCRETE or self.kind == Kind.FREE:
            return self
        total = (*Kind.UNCHANGED, Kind.MONOTONE, Kind.NUMBER)  # a number for every number
        known = self.kind in total and not self.replaced
        return replace(self, kind=Kind.MISSING if known else Kind.FREE)
