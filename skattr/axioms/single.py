"""Axioms of one μ_{j,x} (docs/mathematics.md, section 2), each a function of the signed measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.axioms.functions import Cell, Coordinate, negative_tail, telling
from skattr.axioms.table import Finding, Witness
from skattr.measures.signed.decomposition import Numbers
from skattr.measures.signed.laws import ROUNDING, Law, atom, combined
from skattr.measures.signed.measure import Signed

NEAR = 1e-9  # the rounding of moments and tails of size 1


@dataclass(frozen=True, eq=False)
class Case:
    """μ_{j,x}, with j and x."""

    mu: Signed
    j: int
    row: int  # which of the points
    x: np.ndarray  # (d,) the point, as numbers
    numbers: Numbers

    @property
    def feature(self) -> Any:
        """The name of column j."""
        return self.numbers.names[self.j]

    @property
    def columns(self) -> list[int]:
        """All columns."""
        return list(range(len(self.x)))

    def broken(self, value: float, function: Any, result: float, wanted: str) -> Finding:
        """Return the finding that an axiom is violated, with its witness."""
        words = f"{self.feature}, point {self.row}: f = {function} gets {result:.4g}, {wanted}"
        return Finding(
            False, float(value), Witness(self.feature, self.row, function, float(result), words)
        )


def constants(case: Case) -> Finding:
    """Tell whether constants get 0: mass 0."""
    mass = case.mu.mass
    if np.isnan(mass):
        return Finding(None)
    if mass == 0:
        return Finding(True, 0.0)
    return case.broken(abs(mass), Cell(), mass, "not 0")


def sensitivity(case: Case) -> Finding:
    """Tell whether features that f ignores get 0: no mass on the other columns."""
    image = case.mu.without((case.j,))
    if image.is_zero is not False:
        return Finding(image.is_zero, 0.0 if image.is_zero else np.nan)
    others = [k for k in case.columns if k != case.j]
    shown = telling(image, others, case.numbers)
    value = image.size
    if shown is None:
        return Finding(False, value)
    return case.broken(value, *shown, f"though it ignores {case.feature}")


def positivity(case: Case) -> Finding:
    """Tell whether μ ≥ 0."""
    mu = case.mu
    if mu.negative is None:
        if mu.mass < 0:
            return case.broken(-mu.mass, Cell(), mu.mass, "though it is positive")
        return Finding(None)
    if mu.negative == 0:
        return Finding(True, 0.0)
    atoms = mu.at_atoms
    if len(atoms) and atoms.min() < 0:
        point = mu.points[np.argmin(atoms)]
        equal = tuple(
            (k, case.numbers.names[k], case.numbers.value(k, point[k])) for k in case.columns
        )
        return case.broken(mu.negative, Cell(equal=equal), atoms.min(), "though it is positive")
    shown = negative_tail(mu, case.columns, case.numbers)
    if shown is None:
        return Finding(False, mu.negative)
    return case.broken(mu.negative, *shown, "though it is positive")


def linear_recovery(case: Case) -> Finding:
    """Tell whether f = w·y gets w_j: first moments are the unit vector."""
    if case.numbers.levels.any() or np.isnan(case.mu.moments).any():
        return Finding(None)
    off = case.mu.moments - np.eye(len(case.x))[case.j]
    worst = int(np.argmax(np.abs(off)))
    value = float(abs(off[worst]))
    if value <= NEAR * max(1.0, float(np.abs(case.x).max())):
        return Finding(True, 0.0)
    function = Coordinate(worst, case.numbers.names[worst])
    wanted = f"not {int(worst == case.j)}"
    return case.broken(value, function, case.mu.moments[worst], wanted)


def monotonicity(case: Case, sensitive: Finding) -> Finding:
    """Tell whether f that increases in y_j gets at least 0: μ(y_j > s, y_-j in A) ≥ 0."""
    if sensitive.holds is not True:  # a function that ignores y_j increases, as does its negative
        return Finding(sensitive.holds, sensitive.value, sensitive.witness)
    mu = case.mu
    if mu.is_empty:
        return Finding(True, 0.0)
    if case.numbers.levels[case.j]:
        return Finding(None)
    if not mu.products and not mu.hidden:
        return _atoms_upwards(case)
    if mu.only_own is not None and mu.only_own[2] == case.j:
        return _tails_upwards(case, *mu.only_own[:2])
    return Finding(None)


def _atoms_upwards(case: Case) -> Finding:
    """Sum the atoms of each line along y_j from above."""
    points, weights = case.mu.points, case.mu.weights
    if np.isnan(points[:, case.j]).any():
        return Finding(None)
    others = np.delete(points, case.j, axis=1)
    _, line = np.unique(others, axis=0, return_inverse=True)
    order = np.lexsort((-points[:, case.j], line.reshape(-1)))
    line, height = line.reshape(-1)[order], points[order, case.j]
    upto = np.cumsum(weights[order])
    starts = np.flatnonzero(np.r_[True, line[1:] != line[:-1]])
    before = np.repeat(np.r_[0.0, upto[starts[1:] - 1]], np.diff(np.r_[starts, len(line)]))
    tails = upto - before
    lowest = int(np.argmin(tails))
    if tails[lowest] >= -NEAR * np.abs(weights).max():
        return Finding(True, 0.0)
    point = points[order[lowest]]
    equal = tuple((k, case.numbers.names[k], case.numbers.value(k, point[k]))
                  for k in case.columns if k != case.j)  # fmt: skip
    same = lowest + 1 < len(line) and line[lowest + 1] == line[lowest]
    s = height[lowest] / 2 + height[lowest + 1] / 2 if same else height[lowest] - 1.0
    above = ((case.j, case.feature, float(s)),)
    return case.broken(-tails[lowest], Cell(above, equal), tails[lowest],
                       f"though it increases in {case.feature}")  # fmt: skip


def _tails_upwards(case: Case, weight: float, law: Law) -> Finding:
    """Look for a negative tail of the law of column j that gives μ its signs."""
    if np.isnan(law.points).any():
        return Finding(None)
    size, sign = abs(weight), np.sign(weight)
    cuts = law.cuts()
    tails = np.array([sign * law.above(s) for s in cuts])
    lowest = int(np.argmin(tails))
    if tails[lowest] < -NEAR:
        function = Cell(((case.j, case.feature, float(cuts[lowest])),))
        return case.broken(-size * tails[lowest], function, size * tails[lowest],
                           f"though it increases in {case.feature}")  # fmt: skip
    # between cuts tails are linear, or those of one normal law
    normal = [part for _, part in law.parts if part.kind == "normal"]
    return Finding(True if len(normal) < 2 else None, 0.0)


def rest_of_marginal(case: Case) -> Law | None:
    """Return δ_{x_j} minus the marginal of μ_{j,x} on column j."""
    marginal = case.mu.marginal(case.j)
    return None if marginal is None else combined([(1.0, atom(case.x[case.j])), (-1.0, marginal)])


def other_marginals(case: Case) -> Finding:
    """Tell whether the marginals on the other columns are 0: functions of y_k get nothing."""
    if abs(case.mu.mass) > 0:
        return case.broken(abs(case.mu.mass), Cell(), case.mu.mass, "not 0")
    findings = [Finding(True, 0.0)]
    for k in case.columns:
        if k == case.j:
            continue
        law = case.mu.marginal(k)
        if law is None:
            return Finding(None)
        if law.is_zero:
            continue
        value = law.variation[0]
        if value <= ROUNDING:
            continue
        image = case.mu.without([i for i in case.columns if i != k])
        shown = telling(image, [k], case.numbers)
        findings.append(
            Finding(False, value) if shown is None else case.broken(value, *shown, "not 0")
        )
    return max(findings, key=lambda each: (each.holds is False, each.value))
