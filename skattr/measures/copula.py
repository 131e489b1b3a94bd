"""The Gaussian copula: empirical marginals, tied together by a normal law of their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from skattr.measures.gaussian import EDGE, Gaussian, learn_gaussian, patterns, rest

BLOCK = 2**20  # numbers at a time


@dataclass(eq=False)
class Copula:
    """Columns v_k(Φ(Y_k)), v_k the empirical quantile function and Y normal with variances 1.

    The own values enter by the normal scores Φ^{-1}(rank(t)) of their mid-ranks, standardised: with
    ties their variance is not 1. The law of the others is discrete, on the values of the data. It
    depends on ranks alone, so that strictly increasing maps of a column change nothing but names.
    """

    scores: Gaussian
    values: list[np.ndarray]  # for each column, sorted and distinct
    cumulated: list[np.ndarray]  # the weight below each value, and 1
    ends: list[np.ndarray]  # Φ^{-1} of the weight up to each value; the last is ∞

    @property
    def n_uniforms(self) -> int:
        """The number of uniform numbers that make a point."""
        return len(self.values)

    def center(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return own values t, (m, n_own), and the conditional means of the rest, (m, d)."""
        others = rest(self.n_uniforms, own)
        # many t have one rank
        scores, kind = np.unique(self._standardised(t, own), axis=0, return_inverse=True)
        means = np.empty((len(scores), len(others)))
        for rows, given in patterns(scores):
            slopes, factor = self.scores.conditional(own, given)
            shifts = scores[np.ix_(rows, given)] @ slopes.T
            deviations = np.sqrt((factor**2).sum(axis=1))
            for o, k in enumerate(others):
                means[rows, o] = _means(self.values[k], self.ends[k], shifts[:, o], deviations[o])
        result = np.empty((len(t), self.n_uniforms))
        result[:, own] = t
        result[:, others] = means[kind.ravel()]
        return result

    def points(self, u: np.ndarray, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return points of equal weight of the law given one t, (p, d), from uniform numbers."""
        others = rest(self.n_uniforms, own)
        result = np.empty((len(u), self.n_uniforms))
        result[:, own] = t
        moved = self.scores.draw(u, self._standardised(t[None], own)[0], own)
        for o, k in enumerate(others):
            result[:, k] = self.values[k][np.searchsorted(self.ends[k], moved[:, o])]
        return result

    def support(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return the rows behind the linear regression of scores on the own ones at t."""
        return self.scores.support(self._normal(t, own), own)

    def _normal(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return the normal scores of t, beyond the data those of its outermost values."""
        result = np.empty(np.shape(t))
        for i, k in enumerate(own):
            values, cumulated = self.values[k], self.cumulated[k]
            below = np.searchsorted(values, t[:, i])
            upto = np.searchsorted(values, t[:, i], side="right")
            rank = (cumulated[below] + cumulated[upto]) / 2
            rank = np.clip(rank, cumulated[1] / 2, (cumulated[-2] + 1) / 2)
            result[:, i] = np.where(np.isnan(t[:, i]), np.nan, _score(rank))
        return result

    def _standardised(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        return self.scores.standardised(self._normal(t, own), own)


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


def _means(values: np.ndarray, ends: np.ndarray, shifts: np.ndarray, scale: float) -> np.ndarray:
    """Return the means of v(Φ(Y)), Y ~ N(shift, scale²), for each shift, to rounding.

    Σ_v v (Φ((q_v - m)/s) - Φ((q_{v-} - m)/s)), summed by parts, costs O(n) for a shift m. It is
    smooth in m: on a range of half-length h the terms of its Chebyshev series fall as
    exp(-(i s / h)² / 2): those up to 9 h / s give it to rounding at any number of shifts.
    """
    if scale == 0:
        return values[np.searchsorted(ends, shifts)]
    middle, half = (shifts.max() + shifts.min()) / 2, (shifts.max() - shifts.min()) / 2
    size = int(24 + 9 * half / scale)
    if half == 0 or len(shifts) < 2 * size:
        return values[0] + _sums(values, ends, shifts, scale)
    angles = np.pi * (np.arange(size) + 0.5) / size
    at_nodes = _sums(values, ends, middle + half * np.cos(angles), scale)
    terms = np.cos(np.outer(np.arange(size), angles)) @ at_nodes * (2 / size)
    terms[0] /= 2
    places = np.arccos(np.clip((shifts - middle) / half, -1.0, 1.0))
    result = np.empty(len(shifts))
    for block in _blocks(len(shifts), size):
        result[block] = values[0] + np.cos(np.outer(places[block], np.arange(size))) @ terms
    return result


def _sums(values: np.ndarray, ends: np.ndarray, shifts: np.ndarray, scale: float) -> np.ndarray:
    """Return the means of v(Φ(Y)) - v(0) at each shift, in blocks."""
    result = np.empty(len(shifts))
    for block in _blocks(len(shifts), len(values)):
        result[block] = ndtr((shifts[block, None] - ends[:-1]) / scale) @ np.diff(values)
    return result


def _blocks(n: int, width: int) -> Iterator[slice]:
    """Yield parts of n rows that together with a width are small."""
    size = max(BLOCK // width, 1)
    return (slice(start, start + size) for start in range(0, n, size))
