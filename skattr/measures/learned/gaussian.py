"""The multivariate normal law, and what it says of some columns given the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

CUT = 1e-12  # eigenvalues of a correlation matrix below it, relatively, are rounding
FAR = 1e100  # standardised values end there, so that nothing overflows
EDGE = 2.0**-52  # uniform numbers keep this distance from 0 and 1: ± 8.1 standard deviations
MOST = 2**24  # numbers kept in factors


@dataclass(eq=False)
class Gaussian:
    """N(mean, covariance), kept as scales and correlations so that units do not matter.

    Given the own values t, the other columns are normal with mean m_o + B (t - m_own), where
    B = Σ_{o,own} Σ_own^+, and covariance Σ_o - B Σ_{own,o}. Directions in which the own columns do
    not vary condition on nothing: the inverse is a pseudo-inverse.
    """

    mean: np.ndarray  # (d,)
    scale: np.ndarray  # (d,) standard deviations, 0 for a constant column
    correlation: np.ndarray  # (d, d), rows of zeros for constant columns
    n_eff: float  # (Σ w)² / Σ w²
    _factors: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def n_uniforms(self) -> int:
        """The number of uniform numbers that make a point."""
        return len(self.mean)

    def center(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return own values t, (m, n_own), and the conditional means of the rest, (m, d)."""
        others = rest(self.n_uniforms, own)
        scores = self.standardised(t, own)
        result = np.tile(self.mean, (len(t), 1))
        result[:, own] = t
        for rows, given in patterns(scores):
            slopes = self.regression(own, given)[0]
            means = by_row(scores[np.ix_(rows, given)], slopes.T)
            result[np.ix_(rows, others)] += means * self.scale[others]
        return result

    def points(self, u: np.ndarray, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return points of equal weight of the law given one t, (p, d), from uniform numbers."""
        others = rest(self.n_uniforms, own)
        result = np.empty((len(u), self.n_uniforms))
        result[:, own] = t
        moved = self.draw(u, self.standardised(t[None], own)[0], own)
        result[:, others] = self.mean[others] + self.scale[others] * moved
        return result

    def support(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return n_eff / (1 + z²), z the Mahalanobis distance of t under the own marginal.

        So many rows' mean would vary as much as the linear regression on the own columns does at t.
        """
        scores = self.standardised(t, own)
        result = np.empty(len(t))
        for rows, given in patterns(scores):
            root = self.regression(own, given)[1]
            z = by_row(scores[np.ix_(rows, given)], root)
            result[rows] = self.n_eff / (1 + (z**2).sum(axis=1))
        return result

    def shares(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return 1 for each of own values t: a mixture of one component, (m, 1)."""
        self.standardised(t, own)  # refuses what has no conditional law
        return np.ones((len(t), 1))

    def linear(
        self, weights: np.ndarray, own: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what the law says of sums of columns, weights (m, d), given the own values t.

        In each of C components they have the means weights @ center + slopes @ (t - center_own):
        centers (C, d), slopes (C, m, n_own), and standard deviations (C, m). Here C is 1.
        """
        others = rest(self.n_uniforms, own)
        own = list(own)
        root = self.regression(own, np.arange(len(own)))[1]
        parts = self._parts()
        basis = parts[own].T @ root  # orthonormal directions that the own values fix
        moved = (weights[:, others] * self.scale[others]) @ parts[others]  # (m, d)
        along = moved @ basis
        scale = self.scale[own]
        slopes = along @ root.T * np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
        left = moved - along @ basis.T
        return self.mean[None], (weights[:, own] + slopes)[None], np.linalg.norm(left, axis=1)[None]

    def _parts(self) -> np.ndarray:
        """Return a factor of the correlations, (d, d), made once."""
        found = self._factors.get("whole")
        if found is None:
            values, vectors = np.linalg.eigh(self.correlation)
            found = vectors * np.sqrt(np.maximum(values, 0.0))
            self._factors["whole"] = found
        return found

    def log_density(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return the logarithm of the density of present own values t, (m,), but for a constant.

        Columns and directions that do not vary say nothing.
        """
        root = self.regression(own, np.arange(len(own)))[1]
        z = by_row(self.standardised(t, own), root)
        scale = self.scale[list(own)]
        size = np.log((root**2).sum(axis=0)).sum() / 2 - np.log(scale[scale > 0]).sum()
        return size - (z**2).sum(axis=1) / 2

    def standardised(self, t: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return (t - mean) / scale, 0 in constant columns."""
        if np.isinf(t).any():
            raise ValueError(
                "an infinite value has no Gaussian conditional law; "
                "estimators 'copula' and 'kernel' work with ranks, and take it"
            )
        scale = self.scale[own]
        with np.errstate(over="ignore"):
            scores = (t - self.mean[own]) / np.where(scale > 0, scale, 1.0)
        scores[:, scale == 0] *= 0.0  # but NaN stays
        return np.clip(scores, -FAR, FAR)

    def regression(self, own: Sequence[int], given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes B, (n_others, n_given), and a root of Σ^+, (n_given, rank), standardised.

        `given` are the places in `own` that are conditioned on.
        """
        known = np.asarray(own, int)[given]
        values, vectors = np.linalg.eigh(self.correlation[np.ix_(known, known)])
        kept = values > CUT * values.max(initial=0.0)
        root = vectors[:, kept] / np.sqrt(values[kept])
        others = rest(self.n_uniforms, own)
        return self.correlation[np.ix_(others, known)] @ root @ root.T, root

    def draw(self, u: np.ndarray, scores: np.ndarray, own: Sequence[int]) -> np.ndarray:
        """Return standardised points of the other columns, (p, n_others), given own scores."""
        given = np.flatnonzero(~np.isnan(scores))
        slopes, factor = self.conditional(own, given)
        normal = ndtri(np.clip(u[:, : factor.shape[1]], EDGE, 1 - EDGE))
        return slopes @ scores[given] + normal @ factor.T

    def conditional(self, own: Sequence[int], given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes and a factor of the conditional covariance, (n_others, rank), standardised.

        Both are made once for an own: points are asked for row by row.
        """
        key = tuple(own), tuple(given.tolist())
        found = self._factors.get(key)
        if found is None:
            slopes, root = self.regression(own, given)
            others = rest(self.n_uniforms, own)
            explained = self.correlation[np.ix_(others, np.asarray(own, int)[given])] @ root
            left = self.correlation[np.ix_(others, others)] - explained @ explained.T
            values, vectors = np.linalg.eigh(left)
            kept = np.flatnonzero(values > CUT)[::-1]  # the first uniform number moves most
            found = slopes, vectors[:, kept] * np.sqrt(values[kept])
            if len(self._factors) * self.n_uniforms**2 > MOST:
                self._factors = {}
            self._factors[key] = found
        return found

    def __getstate__(self) -> dict:
        return {**vars(self), "_factors": {}}


def learn_gaussian(numbers: np.ndarray, weights: np.ndarray) -> Gaussian:
    """Return the weighted mean and covariance, divided by the sum of weights. O(n d²)."""
    shares = weights / weights.sum()
    n_eff = 1 / float(shares @ shares)
    mean, scale = moments(numbers, shares)
    scores = (numbers - mean) / np.where(scale > 0, scale, 1.0)
    correlation = (scores * shares[:, None]).T @ scores
    correlation = np.clip((correlation + correlation.T) / 2, -1.0, 1.0)
    np.fill_diagonal(correlation, scale > 0)
    return Gaussian(mean, scale, correlation, n_eff)


def moments(numbers: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations, (d,) each; 0 exactly where a column is constant."""
    constant = numbers.min(axis=0) == numbers.max(axis=0)
    mean = np.where(constant, numbers[0], shares @ numbers)
    away = numbers - mean
    largest = np.where(constant, 1.0, np.abs(away).max(axis=0))  # so that squares are in range
    away /= largest
    return mean, largest * np.sqrt(shares @ away**2)


def by_row(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a @ b; unlike a matrix product, a row's bits do not depend on how many there are."""
    result = np.zeros((len(a), b.shape[1]))
    for i, row in enumerate(b):
        result += a[:, i, None] * row
    return result


def rest(d: int, own: Sequence[int]) -> np.ndarray:
    """Return the columns that are not own, in order."""
    return np.delete(np.arange(d), own)


def patterns(t: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows that have values in the same places, and those places."""
    missing = np.isnan(t)
    if not missing.any():
        yield np.arange(len(t)), np.arange(t.shape[1])
        return
    kinds, kind = np.unique(missing, axis=0, return_inverse=True)
    for k, without in enumerate(kinds):
        yield np.flatnonzero(kind.ravel() == k), np.flatnonzero(~without)
