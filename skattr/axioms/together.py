"""Axioms that compare the μ_{j,x} of several features, or of several points."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.axioms.functions import Cell, Symmetrised, telling
from skattr.axioms.single import Case, other_marginals, rest_of_marginal
from skattr.axioms.table import Finding, Witness, worst
from skattr.measures import Dirac
from skattr.measures.signed.decomposition import Decomposition
from skattr.measures.signed.laws import Law, atom, combined
from skattr.measures.signed.measure import Signed, total
from skattr.measures.views import COALITIONS

FEW = 6  # columns up to which all pairs are exchanged


def completeness(written: Decomposition, points: list, baseline: Any) -> tuple[Finding, str]:
    """Tell whether Σ_j μ_{j,x} is δ_x minus the baseline or one law for all x, and which."""
    rests = [total([(1.0, written.point(x)), (-1.0, written.sum_at(x))]) for x in points]
    if baseline is not None:
        goal, name = written.point(baseline), "the baseline"
    else:
        goal, name = _common_law(written, rests)
    findings = []
    for row, rest in enumerate(rests):
        off = total([(1.0, goal), (-1.0, rest)])  # Σ μ - (δ_x - goal)
        if off.is_zero is not False:
            findings.append(Finding(off.is_zero, 0.0 if off.is_zero else np.nan))
            continue
        shown = telling(off, list(range(off.d)), written.numbers)
        words = f"point {row}: the attributions do not add up to f(x) minus {name}"
        if shown is not None:
            words = f"point {row}: f = {shown[0]} adds up to {shown[1]:.4g} too much"
        function, value = shown if shown is not None else (None, np.nan)
        findings.append(Finding(False, off.size, Witness(None, row, function, value, words)))
    result = worst(findings)
    return result, f"with respect to {name}" if result.holds else ""


def _common_law(written: Decomposition, rests: list[Signed]) -> tuple[Signed, str]:
    """Return the law that attributions may be complete with respect to, and its name."""
    first = rests[0]
    if first.mass == 1 or abs(first.mass - 1) < 1e-9:
        if first.negative == 0 and not first.hidden:
            if not first.products and len(first.weights) == 1:
                values = [written.numbers.value(k, v) for k, v in enumerate(first.points[0])]
                return first, f"the point {values}"
            is_background = total([(1.0, first), (-1.0, written.law())]).is_zero
            return first, "the background" if is_background else "one law for all points"
    return written.law(), "the background"


def additive_recovery(cases: list[list[Case]], baseline: np.ndarray | None) -> Finding:
    """Tell whether f = Σ f_k(y_k) gets f_j(x_j) minus the mean of f_j under one law for all x."""
    findings = [other_marginals(case) for each in cases for case in each]
    for j in range(len(cases[0])):
        rests = [rest_of_marginal(each[j]) for each in cases]
        known = [rest for rest in rests if rest is not None]
        if len(known) < len(rests):
            findings.append(Finding(None))
            continue
        goal = atom(baseline[j]) if baseline is not None else known[0]
        for each, rest in zip(cases, known, strict=True):
            findings.append(_same_marginal(each[j], rest, goal))
    return worst(findings)


def _same_marginal(case: Case, rest: Law, goal: Law) -> Finding:
    """Tell whether `rest` is `goal`, and `goal` a probability."""
    if goal.sign != 1 or abs(goal.mass - 1) > 1e-9:
        marginal = case.mu.without([k for k in case.columns if k != case.j])
        function, value = telling(marginal, [case.j], case.numbers) or (Cell(), 0.0)
        wanted = f"not f(x) minus a mean over {case.feature}"
        return case.broken(marginal.size, function, value, wanted)
    off = combined([(1.0, rest), (-1.0, goal)])
    size = off.variation[0]
    if size <= 1e-9:
        return Finding(True, 0.0)
    if not off.variation[1]:
        return Finding(None)
    cuts = off.cuts()
    if case.numbers.levels[case.j] or not len(cuts):
        function = Cell(equal=((case.j, case.feature, case.numbers.value(case.j, off.points[0])),))
        value = float(off.masses[0])
    else:
        s = float(cuts[np.argmax([abs(off.above(s)) for s in cuts])])
        function, value = Cell(((case.j, case.feature, s),)), off.above(s)
    return case.broken(size, function, -value, "more than f(x) minus its mean")


def symmetry(written: Decomposition, points: list, weak: bool) -> Finding:
    """Tell whether features in which f is symmetric get the same.

    If `weak`, where x has equal values. Two columns of numbers are exchanged: all pairs of few
    columns, else neighbours.
    """
    level = written.numbers.levels
    columns = [k for k in range(len(level)) if not level[k]]
    pairs = list(combinations(columns, 2) if len(columns) <= FEW else pairwise(columns))
    if not pairs:
        return Finding(None)
    findings = []
    for row, x in enumerate(points):
        for j, k in pairs:
            at = _equalised(x, j, k) if weak else x
            findings.append(_exchange(written, at, row, j, k, weak))
            if findings[-1].holds is False:
                return findings[-1]
    return worst(findings)


def _equalised(x: Any, j: int, k: int) -> Any:
    value = frames.to_float(frames.column(x, j))
    return frames.with_columns(x, {j: value, k: value})


def _exchange(written: Decomposition, x: Any, row: int, j: int, k: int, weak: bool) -> Finding:
    mu, nu = written.several(x, [j, k])
    off = total([(0.5, mu), (0.5, mu.swapped(j, k)), (-0.5, nu), (-0.5, nu.swapped(j, k))])
    if off.is_zero is not False:
        return Finding(off.is_zero, 0.0 if off.is_zero else np.nan)
    names = written.numbers.names
    shown = telling(off, list(range(off.d)), written.numbers)
    if shown is None:
        return Finding(False, off.size)
    function = Symmetrised(shown[0], j, k)  # type: ignore[arg-type]
    where = f"point {row} with equal {names[j]} and {names[k]}" if weak else f"point {row}"
    words = f"{names[j]} and {names[k]}, {where}: f = {function} gets {shown[1]:.4g} more"
    witness = Witness((names[j], names[k]), row, function, shown[1], words)
    return Finding(False, off.size, witness)


def robustness(written: Decomposition, x: Any) -> Finding:
    """Tell whether x ↦ μ_{j,x} is weakly continuous, judging by the views."""
    findings = [_continuous(written, term, x) for c, term in written.terms if c]
    return worst(findings)


def _continuous(written: Decomposition, term: Any, x: Any) -> Finding:
    views = set(term.views)
    if set(COALITIONS) & views:
        views = {"rows", "factors"} & set(term.coalitions().measure.views)
    continuous = {"rows", "factors", "mixture"} & views
    if continuous or term.depends in ("nothing", "attribution"):
        return Finding(True, 0.0)  # only pinned coordinates or smooth shares depend on x
    if "bins" in views:
        return worst(_jumps(written, term, x, k) for k in range(len(written.attributions)))
    if isinstance(term, Dirac):
        return Finding(True, 0.0)
    return Finding(None)


def _jumps(written: Decomposition, term: Any, x: Any, k: int) -> Finding:
    """Tell whether the weights of rows jump at an end of a bin."""
    learned = term.bins().weights.columns[k]
    if learned.bins.levels is not None:
        return Finding(True, 0.0)  # levels have no neighbours
    for end in learned.bins.cuts():
        sides = np.array([end, np.nextafter(end, np.inf)])
        at = learned.bins.of(sides)
        if np.array_equal(learned.table[at[0]], learned.table[at[1]]):
            continue
        images = []
        for side in sides:
            moved = frames.with_columns(x, {k: np.array([side])})
            images.append(written.several(moved, [k])[0].without((k,)))
        off = total([(1.0, images[1]), (-1.0, images[0])])
        others = [i for i in range(len(written.attributions)) if i != k]
        shown = telling(off, others, written.numbers)
        if shown is None:
            continue
        name = written.numbers.names[k]
        words = f"{name}: f = {shown[0]} jumps by {shown[1]:.4g} at {name} = {end:.6g}"
        return Finding(False, off.size, Witness(name, None, *shown, words))
    return Finding(True, 0.0)
