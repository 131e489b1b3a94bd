"""Signed laws of one column: atoms, and uniform or normal parts. The factors of `Signed`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

ROUNDING = 1e-12  # of the masses that were added: smaller sums are 0


class Part(NamedTuple):
    """A continuous probability: uniform on [a, b], or normal with mean a and scale b."""

    kind: str  # "uniform" | "normal"
    a: float
    b: float

    @property
    def mean(self) -> float:
        """Its mean."""
        return self.a if self.kind == "normal" else self.a / 2 + self.b / 2

    def above(self, s: float) -> float:
        """Return the mass of (s, ∞)."""
        if self.kind == "normal":
            return float(ndtr((self.a - s) / self.b))
        return float(np.clip((self.b - s) / (self.b - self.a), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Law:
    """Σ masses_i δ_{points_i} + Σ weight · part, no two terms alike, none of weight 0."""

    points: np.ndarray  # (m,) sorted, missing last
    masses: np.ndarray  # (m,)
    parts: tuple[tuple[float, Part], ...] = ()

    @cached_property
    def key(self) -> tuple:
        """A key that equal laws share."""
        return self.points.tobytes(), self.masses.tobytes(), self.parts

    @cached_property
    def is_zero(self) -> bool:
        """Whether the law is 0."""
        return len(self.points) == 0 and not self.parts

    @cached_property
    def mass(self) -> float:
        """The total mass; exactly 0 if it is 0 up to rounding."""
        weights = [*self.masses.tolist(), *(weight for weight, _ in self.parts)]
        total = float(np.sum(weights))
        return total if abs(total) > ROUNDING * float(np.abs(weights).sum()) else 0.0

    @cached_property
    def moment(self) -> float:
        """∫ y dν, NaN if it does not exist: mass on missing or infinite values."""
        if not np.isfinite(self.points).all():
            return np.nan
        atoms = float(self.masses @ self.points)
        return atoms + sum(weight * part.mean for weight, part in self.parts)

    @cached_property
    def sign(self) -> int:
        """1 if it is positive, -1 if negative, 0 if it has both signs, or is 0."""
        weights = [*self.masses.tolist(), *(weight for weight, _ in self.parts)]
        if weights and min(weights) > 0:
            return 1
        return -1 if weights and max(weights) < 0 else 0

    @cached_property
    def variation(self) -> tuple[float, bool]:
        """The total variation, and whether it is exact rather than an upper bound."""
        weights = np.array([weight for weight, _ in self.parts])
        one_sign = len(weights) < 2 or (weights > 0).all() or (weights < 0).all()
        return float(np.abs(self.masses).sum() + np.abs(weights).sum()), bool(one_sign)

    def at(self, points: np.ndarray) -> np.ndarray:
        """Return the masses of single points."""
        if len(self.points) == 0:
            return np.zeros(len(points))
        at = np.minimum(np.searchsorted(self.points, points), len(self.points) - 1)
        nearest = self.points[at]
        same = (nearest == points) | (np.isnan(nearest) & np.isnan(points))
        return np.where(same, self.masses[at], 0.0)

    def above(self, s: float) -> float:
        """Return the mass of (s, ∞)."""
        parts = sum(weight * part.above(s) for weight, part in self.parts)
        return float(self.masses[self.points > s].sum()) + parts

    def cuts(self) -> np.ndarray:
        """Return numbers s at which the masses of (s, ∞) show that a law is not 0, and its sign.

        Between two of them the mass of (s, ∞) is linear, or that of one normal law.
        """
        ends = [e for _, part in self.parts if part.kind == "uniform" for e in (part.a, part.b)]
        ends += [part.a + c * part.b for _, part in self.parts if part.kind == "normal"
                 for c in (-40.0, -1.0, 0.0, 1.0, 40.0)]  # fmt: skip
        known = np.unique([*self.points[~np.isnan(self.points)].tolist(), *ends])
        below = np.nextafter(known, -np.inf)
        middle = [a / 2 + b / 2 for a, b in pairwise(known)]
        return np.unique([*known.tolist(), *below.tolist(), *middle])


def atom(point: float) -> Law:
    """Return δ_point."""
    return Law(np.array([point]) + 0.0, np.ones(1))


def discrete(points: np.ndarray, masses: np.ndarray) -> Law:
    """Return Σ masses δ_points; equal points are joined."""
    distinct, kind = np.unique(points + 0.0, return_inverse=True)
    total = np.bincount(kind, masses, len(distinct))
    size = np.bincount(kind, np.abs(masses), len(distinct))
    keep = np.abs(total) > ROUNDING * size
    return Law(distinct[keep], total[keep])


def combined(terms: Iterable[tuple[float, Law]]) -> Law:
    """Return Σ weight · law."""
    terms = list(terms)
    points = np.concatenate([law.points for _, law in terms])
    masses = np.concatenate([weight * law.masses for weight, law in terms])
    atoms = discrete(points, masses)
    sums: dict[Part, list[float]] = {}
    for weight, law in terms:
        for share, part in law.parts:
            sums.setdefault(part, []).append(weight * share)
    parts = tuple(
        (sum(shares), part)
        for part, shares in sorted(sums.items())
        if abs(sum(shares)) > ROUNDING * sum(map(abs, shares))
    )
    return Law(atoms.points, atoms.masses, parts)
