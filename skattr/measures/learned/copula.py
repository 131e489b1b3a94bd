"""The Gaussian copula: empirical marginals, joined by a normal law of their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr, ndtri

from skattr.measures.learned.gaussian import EDGE, Gaussian, by_row, learn_gaussian, patterns, rest

BLOCK = 2**20  # numbers at a time


@dataclass(eq=False)
class Copula:
    """Columns v_k(Φ(Y_k)), v_k the empirical quantile function and Y normal with variances 1.

    A `ConditionalLaw`. Values t enter by the normal scores Φ^{-1}(rank(t)) of their mid-ranks,
    standardised, as with ties their variance is not 1. The law of the other columns is discrete, on
    the values of the data. It depends on ranks alone: strictly increasing functions of a column
    change nothing but the values themselves.
    """

    scores: Gaussian
    values: list[np.ndarray]  # for each column, sorted and distinct
    cumulated: list[np.ndarray]  # the weight below each value, and 1
    ends: list[np.ndarray]  # Φ^{-1} of the weight up to each value; the last is ∞
    _means: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def n_uniforms(self) -> int:
        """One per column."""
        return len(self.values)

    def center(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return t and the means of the other columns."""
        others = rest(self.n_uniforms, columns)
        # many t share a rank
        scores, kind = np.unique(self._standardised(t, columns), axis=0, return_inverse=True)
        means = np.empty((len(scores), len(others)))
        for rows, present in patterns(scores):
            slopes = self.scores.conditional(columns, present)[0]
            shifts = by_row(scores[np.ix_(rows, present)], slopes.T)
            for o, mean in enumerate(self._mean_functions(columns, present)):
                means[rows, o] = mean(shifts[:, o])
        result = np.empty((len(t), self.n_uniforms))
        result[:, columns] = t
        result[:, others] = means[kind.ravel()]
        return result

    def points(self, u: np.ndarray, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return points of equal weight, given one t."""
        others = rest(self.n_uniforms, columns)
        result = np.empty((len(u), self.n_uniforms))
        result[:, columns] = t
        moved = self.scores.draw(u, self._standardised(t[None], columns)[0], columns)
        for o, k in enumerate(others):
            result[:, k] = self.values[k][np.searchsorted(self.ends[k], moved[:, o])]
        return result

    def support(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return the rows behind the linear regression of scores at t."""
        return self.scores.support(self._normal(t, columns), columns)

    def _mean_functions(self, columns: Sequence[int], present: np.ndarray) -> list[Mean]:
        """Return the means of the other columns as functions of their shifts, cached."""
        key = tuple(columns), tuple(present.tolist())
        means = self._means.get(key)
        if means is None:
            slopes, factor = self.scores.conditional(columns, present)
            deviations = np.sqrt((factor**2).sum(axis=1))
            reach = np.abs(slopes) @ np.array([self._largest(columns[i]) for i in present])
            means = [
                Mean(self.values[k], self.ends[k], float(deviations[o]), float(reach[o]))
                for o, k in enumerate(rest(self.n_uniforms, columns))
            ]
            self._means[key] = means
        return means

    def _largest(self, k: int) -> float:
        """Return the largest absolute score of column k."""
        outer = self._standardised(self.values[k][[0, -1], None], [k])
        return float(np.abs(outer).max())

    def __getstate__(self) -> dict:
        return {**vars(self), "_means": {}}

    def _normal(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return the normal scores of t; beyond the data, those of the outermost values."""
        result = np.empty(np.shape(t))
        for i, k in enumerate(columns):
            values, cumulated = self.values[k], self.cumulated[k]
            below = np.searchsorted(values, t[:, i])
            upto = np.searchsorted(values, t[:, i], side="right")
            rank = (cumulated[below] + cumulated[upto]) / 2
            rank = np.clip(rank, cumulated[1] / 2, (cumulated[-2] + 1) / 2)
            result[:, i] = np.where(np.isnan(t[:, i]), np.nan, _score(rank))
        return result

    def _standardised(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        return self.scores.standardised(self._normal(t, columns), columns)


def learn_copula(numbers: np.ndarray, weights: np.ndarray) -> Copula:
    """Return the weighted marginals and the correlations of the scores. O(n d (d + log n))."""
    scores = np.empty(numbers.shape)
    values, cumulated, ends = [], [], []
    for k in range(numbers.shape[1]):
        distinct, kind = np.unique(numbers[:, k], return_inverse=True)
        total = np.cumsum(np.bincount(kind, weights=weights))
        share = np.r_[0.0, total / total[-1]]
        scores[:, k] = _score((share[:-1] + share[1:]) / 2)[kind]
        values.append(distinct)
        cumulated.append(share)
        ends.append(ndtri(share[1:]))
    return Copula(learn_gaussian(scores, weights), values, cumulated, ends)


def _score(rank: np.ndarray) -> np.ndarray:
    return ndtri(np.clip(rank, EDGE, 1 - EDGE))


@dataclass(eq=False)
class Mean:
    """The mean of v(Φ(Y)), Y ~ N(m, scale²), as a function of m, to rounding.

    Σ_v v (Φ((q_v - m)/s) - Φ((q_{v-} - m)/s)), summed by parts, costs O(n) for each m. It is smooth
    in m: for |m| <= h the terms of its Chebyshev series fall as exp(-(i s / h)² / 2), and those up
    to 9 h / s give it to rounding for any number of m.
    """

    values: np.ndarray
    ends: np.ndarray
    scale: float
    reach: float  # the largest |m|
    terms: np.ndarray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        size = 24 + 9 * self.reach / self.scale if self.scale > 0 else np.inf
        if 2 * size < len(self.values) and self.reach > 0:
            angles = np.pi * (np.arange(int(size)) + 0.5) / int(size)
            at_nodes = self._sums(self.reach * np.cos(angles))
            terms = np.cos(np.outer(np.arange(int(size)), angles)) @ at_nodes * (2 / int(size))
            terms[0] /= 2
            self.terms = terms

    def __call__(self, shifts: np.ndarray) -> np.ndarray:
        """Return the means for each m."""
        if self.scale == 0:
            return self.values[np.searchsorted(self.ends, shifts)]
        if self.terms is None:
            return self.values[0] + self._sums(shifts)
        angles = np.arccos(np.clip(shifts / self.reach, -1.0, 1.0))
        result = np.empty(len(shifts))
        for block in _blocks(len(shifts), len(self.terms)):
            waves = np.cos(np.outer(angles[block], np.arange(len(self.terms))))
            result[block] = (waves * self.terms).sum(axis=1)
        return self.values[0] + result

    def _sums(self, shifts: np.ndarray) -> np.ndarray:
        """Return the means less the smallest value, in blocks."""
        result = np.empty(len(shifts))
        steps = np.diff(self.values)
        for block in _blocks(len(shifts), len(self.values)):
            upto = ndtr((shifts[block, None] - self.ends[:-1]) / self.scale)
            result[block] = (upto * steps).sum(axis=1)
        return result


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Yield blocks of n rows, so that a block times `width` is small."""
    size = max(BLOCK // width, 1)
    return (slice(start, start + size) for start in range(0, n, size))
