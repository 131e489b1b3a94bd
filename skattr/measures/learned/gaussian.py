"""The multivariate normal law, and its conditional laws given some columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

CUT = 1e-12  # smaller eigenvalues of a correlation matrix, relatively, are rounding
FAR = 1e100  # standardised values are clipped to it, so that nothing overflows
EDGE = 2.0**-52  # uniform numbers keep this distance from 0 and 1: ± 8.1 standard deviations
MOST = 2**24  # numbers cached in factors


@dataclass(eq=False)
class Gaussian:
    """N(mean, covariance) as scales and correlations, so that units do not matter: a `NormalLaw`.

    Given the values t of columns J, the other columns O are normal with mean m_O + B (t - m_J),
    where B = Σ_{O,J} Σ_J^+, and covariance Σ_O - B Σ_{J,O}. The pseudo-inverse ignores directions
    in which the columns J do not vary.
    """

    mean: np.ndarray  # (d,)
    scale: np.ndarray  # (d,) standard deviations, 0 for a constant column
    correlation: np.ndarray  # (d, d), rows of zeros for constant columns
    n_eff: float  # (Σ w)² / Σ w²
    _factors: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def n_uniforms(self) -> int:
        """One per column."""
        return len(self.mean)

    def center(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return t and m_O + B (t - m_J)."""
        others = rest(self.n_uniforms, columns)
        scores = self.standardised(t, columns)
        result = np.tile(self.mean, (len(t), 1))
        result[:, columns] = t
        for rows, present in patterns(scores):
            slopes = self.regression(columns, present)[0]
            means = by_row(scores[np.ix_(rows, present)], slopes.T)
            result[np.ix_(rows, others)] += means * self.scale[others]
        return result

    def points(self, u: np.ndarray, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return points of equal weight, given one t."""
        others = rest(self.n_uniforms, columns)
        result = np.empty((len(u), self.n_uniforms))
        result[:, columns] = t
        moved = self.draw(u, self.standardised(t[None], columns)[0], columns)
        result[:, others] = self.mean[others] + self.scale[others] * moved
        return result

    def support(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return n_eff / (1 + z²), z the Mahalanobis distance of t under the marginal law.

        The mean of so many rows would vary as much as the linear regression on J does at t.
        """
        scores = self.standardised(t, columns)
        result = np.empty(len(t))
        for rows, present in patterns(scores):
            root = self.regression(columns, present)[1]
            z = by_row(scores[np.ix_(rows, present)], root)
            result[rows] = self.n_eff / (1 + (z**2).sum(axis=1))
        return result

    def shares(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return 1 for each t: there is one component."""
        self.standardised(t, columns)  # raises where there is no conditional law
        return np.ones((len(t), 1))

    def linear(
        self, weights: np.ndarray, columns: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the conditional laws of sums of columns, in one component."""
        others = rest(self.n_uniforms, columns)
        columns = list(columns)
        root = self.regression(columns, np.arange(len(columns)))[1]
        parts = self._parts()
        basis = parts[columns].T @ root  # orthonormal directions that t fixes
        moved = (weights[:, others] * self.scale[others]) @ parts[others]  # (m, d)
        along = moved @ basis
        scale = self.scale[columns]
        slopes = along @ root.T * np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
        left = moved - along @ basis.T
        return (
            self.mean[None],
            (weights[:, columns] + slopes)[None],
            np.linalg.norm(left, axis=1)[None],
        )

    def _parts(self) -> np.ndarray:
        """Return a factor of the correlations, (d, d), computed once."""
        factor = self._factors.get("whole")
        if factor is None:
            values, vectors = np.linalg.eigh(self.correlation)
            factor = vectors * np.sqrt(np.maximum(values, 0.0))
            self._factors["whole"] = factor
        return factor

    def log_density(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return the logarithm of the density at t, (m,), up to a constant; no value is missing.

        Columns and directions that do not vary are ignored.
        """
        root = self.regression(columns, np.arange(len(columns)))[1]
        z = by_row(self.standardised(t, columns), root)
        scale = self.scale[list(columns)]
        size = np.log((root**2).sum(axis=0)).sum() / 2 - np.log(scale[scale > 0]).sum()
        return size - (z**2).sum(axis=1) / 2

    def standardised(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return (t - mean) / scale, 0 in constant columns."""
        if np.isinf(t).any():
            raise ValueError(
                "an infinite value has no Gaussian conditional law; "
                "the estimators 'copula' and 'kernel' use ranks, and take it"
            )
        scale = self.scale[columns]
        with np.errstate(over="ignore"):
            scores = (t - self.mean[columns]) / np.where(scale > 0, scale, 1.0)
        scores[:, scale == 0] *= 0.0  # but NaN stays
        return np.clip(scores, -FAR, FAR)

    def regression(
        self, columns: Sequence[int], present: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes B, (n_others, n_present), and a root of Σ_J^+, (n_present, rank).

        Both are of standardised columns. `present` are the positions in `columns` whose values are
        not missing.
        """
        known = np.asarray(columns, int)[present]
        values, vectors = np.linalg.eigh(self.correlation[np.ix_(known, known)])
        kept = values > CUT * values.max(initial=0.0)
        root = vectors[:, kept] / np.sqrt(values[kept])
        others = rest(self.n_uniforms, columns)
        return self.correlation[np.ix_(others, known)] @ root @ root.T, root

    def draw(self, u: np.ndarray, scores: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return standardised points of the other columns, (p, n_others), given standardised t."""
        present = np.flatnonzero(~np.isnan(scores))
        slopes, factor = self.conditional(columns, present)
        normal = ndtri(np.clip(u[:, : factor.shape[1]], EDGE, 1 - EDGE))
        return slopes @ scores[present] + normal @ factor.T

    def conditional(
        self, columns: Sequence[int], present: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes and a factor of the conditional covariance, (n_others, rank), standardised.

        Both are cached, because points are asked for row by row.
        """
        key = tuple(columns), tuple(present.tolist())
        result = self._factors.get(key)
        if result is None:
            slopes, root = self.regression(columns, present)
            others = rest(self.n_uniforms, columns)
            explained = self.correlation[np.ix_(others, np.asarray(columns, int)[present])] @ root
            left = self.correlation[np.ix_(others, others)] - explained @ explained.T
            values, vectors = np.linalg.eigh(left)
            kept = np.flatnonzero(values > CUT)[::-1]  # the first uniform number moves most
            result = slopes, vectors[:, kept] * np.sqrt(values[kept])
            if len(self._factors) * self.n_uniforms**2 > MOST:
                self._factors = {}
            self._factors[key] = result
        return result

    def __getstate__(self) -> dict:
        return {**vars(self), "_factors": {}}


def learn_gaussian(numbers: np.ndarray, weights: np.ndarray) -> Gaussian:
    """Return the law of the weighted means and covariances of numbers (n, d). O(n d²)."""
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
    """Return a @ b, in which the bits of a row do not depend on the number of rows."""
    result = np.zeros((len(a), b.shape[1]))
    for i, row in enumerate(b):
        result += a[:, i, None] * row
    return result


def rest(d: int, columns: Sequence[int]) -> np.ndarray:
    """Return the other columns, in order."""
    return np.delete(np.arange(d), columns)


def patterns(t: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows with the same columns present, and the positions of these columns."""
    missing = np.isnan(t)
    if not missing.any():
        yield np.arange(len(t)), np.arange(t.shape[1])
        return
    kinds, kind = np.unique(missing, axis=0, return_inverse=True)
    for k, without in enumerate(kinds):
        yield np.flatnonzero(kind.ravel() == k), np.flatnonzero(~without)
