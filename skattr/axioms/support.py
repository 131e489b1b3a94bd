"""The share of a measure that lies where there are no data."""

from __future__ import annotations

import numpy as np

from skattr.axioms.single import Case
from skattr.axioms.table import Finding
from skattr.measures.signed.decomposition import Decomposition
from skattr.measures.signed.laws import Law
from skattr.measures.signed.measure import Signed

DRAWS = 512  # points that represent a product
BLOCK = 2**22  # distances at a time
USUAL = 0.95  # share of the rows that are near to another row


def off_support(written: Decomposition, cases: list[list[Case]]) -> tuple[Finding, str]:
    """Return the share of |μ_{j,x}| that is farther from every row than rows are from each other.

    Columns count by the ranks of their values among the rows, levels by being equal. Far is more
    than the 95 % quantile of the distances of rows to their nearest other row.
    """
    ruler = _Ruler(written)
    shares, drawn = [], False
    for case in (case for each in cases for case in each):
        if case.mu.hidden:
            return Finding(None), "laws that are not written out"
        points, weights = _spread(case.mu)
        drawn |= bool(case.mu.products)
        size = weights.sum()
        if size > 0:
            shares.append(float(weights @ ruler.far(points)) / size)
    value = float(np.mean(shares)) if shares else 0.0
    note = "share of mass farther from the rows than these are from each other"
    return Finding(value == 0, value), note + (f", {DRAWS} points per product" if drawn else "")


class _Ruler:
    def __init__(self, written: Decomposition) -> None:
        self.levels = written.numbers.levels
        self.sorted = [np.sort(column[~np.isnan(column)]) for column in written.rows.T]
        self.rows = self._ranks(np.unique(written.rows, axis=0))
        nearest = self._nearest(self.rows, not_itself=True)
        self.radius = float(np.quantile(nearest, USUAL)) if len(nearest) > 1 else 0.0

    def far(self, points: np.ndarray) -> np.ndarray:
        """Return which points are far from all rows."""
        return self._nearest(self._ranks(points)) > self.radius * (1 + 1e-9)

    def _ranks(self, points: np.ndarray) -> np.ndarray:
        """Return mid-ranks between 0 and 1, and levels as they are; missing values at -1."""
        ranks = np.empty(points.shape)
        for k, values in enumerate(self.sorted):
            column = points[:, k]
            if self.levels[k]:
                ranks[:, k] = np.where(np.isnan(column), -1.0, column)
                continue
            both = [np.searchsorted(values, column, side=side) for side in ("left", "right")]
            rank = (both[0] + both[1]) / 2 / max(len(values), 1)
            ranks[:, k] = np.where(np.isnan(column), -1.0, rank)
        return ranks

    def _nearest(self, ranks: np.ndarray, not_itself: bool = False) -> np.ndarray:
        """Return the distance to the nearest row."""
        numbers, levels = ~self.levels, self.levels
        result = np.empty(len(ranks))
        step = max(1, BLOCK // max(len(self.rows), 1))
        for start in range(0, len(ranks), step):
            block = ranks[start : start + step]
            a, b = block[:, numbers], self.rows[:, numbers]
            square = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
            for k in np.flatnonzero(levels):
                square += block[:, k, None] != self.rows[:, k]
            if not_itself:
                rows = np.arange(len(block))
                square[rows, start + rows] = np.inf
            # differences of squares of size d have rounding errors
            square[square < 1e-12 * max(1, ranks.shape[1])] = 0.0
            result[start : start + step] = np.sqrt(square.min(axis=1))
        return result


def _spread(mu: Signed) -> tuple[np.ndarray, np.ndarray]:
    """Return points that represent |μ|, and their weights."""
    points, weights = [mu.points], [np.abs(mu.weights)]
    rng = np.random.default_rng(0)
    for weight, laws in mu.products:
        size = abs(weight) * float(np.prod([law.variation[0] for law in laws]))
        points.append(np.stack([_draws(law, rng) for law in laws], axis=1))
        weights.append(np.full(DRAWS, size / DRAWS))
    return np.concatenate(points), np.concatenate(weights)


def _draws(law: Law, rng: np.random.Generator) -> np.ndarray:
    """Return random points of |law|."""
    masses = np.abs([*law.masses.tolist(), *(w for w, _ in law.parts)])
    which = rng.choice(len(masses), DRAWS, p=masses / masses.sum())
    result = np.append(law.points, np.zeros(len(law.parts)))[which]
    for i, (_, part) in enumerate(law.parts):
        here = which == len(law.points) + i
        if part.kind == "uniform":
            result[here] = rng.uniform(part.a, part.b, here.sum())
        else:
            result[here] = rng.normal(part.a, part.b, here.sum())
    return result
