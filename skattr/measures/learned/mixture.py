"""Mixtures of normal laws with independent columns, learned by weighted EM.

scikit-learn's GaussianMixture takes no weights, hence this EM: O(n d C) per iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from skattr.measures.learned import em
from skattr.measures.learned.gaussian import EDGE, FAR, by_row, moments, rest

FLOOR = 1e-3  # of a column's variance: no component is narrower
BLOCK = 512  # rows of an EM step at a time: they stay in the cache
LARGE = 1e4  # standard deviations beyond which squares cancel


@dataclass(eq=False)
class Mixture:
    """Σ_c π_c ⊗_k N(m_ck, s_ck²): a `NormalLaw`.

    Given the values t of columns J, the others have the same components with the shares
    π_c(t) ∝ π_c ∏_{i in J} N(t_i; m_ci, s_ci²).
    """

    weights: np.ndarray  # (C,) π_c, the largest first
    means: np.ndarray  # (C, d)
    scales: np.ndarray  # (C, d) standard deviations, 0 for a constant column
    overlap: np.ndarray  # (C, C) Q, Σ_r ω_r² r_rc r_rd / (n_c n_d), n_c = Σ_r ω_r r_rc

    @property
    def n_uniforms(self) -> int:
        """One for the component, and one per column."""
        return self.means.shape[1] + 1

    def shares(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return π_c(t); infinite values give the limit.

        Columns in which all components are equal, as constant ones, are ignored.
        """
        means, scales = self.means[:, columns], self.scales[:, columns]
        tells = ((means != means[0]) | (scales != scales[0])).any(axis=0)
        means, scales, t = means[:, tells], scales[:, tells], t[:, tells]
        middle, unit = self.weights @ means, scales.max(axis=0, initial=0.0)
        means, scales = (means - middle) / unit, scales / unit
        with np.errstate(over="ignore"):
            t = np.clip((t - middle) / unit, -FAR, FAR)
        result = _near(self.weights, means, scales, t)
        large = (np.abs(t) > LARGE).any(axis=1)
        if large.any():
            result[large] = _far(self.weights, means, scales, t[large])
        return result

    def center(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return t and Σ_c π_c(t) m_c."""
        first = self.means[0]  # a constant column is kept to the last bit
        result = first + by_row(self.shares(t, columns), self.means - first)
        result[:, columns] = t
        return result

    def points(self, u: np.ndarray, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return points of equal weight, given one t."""
        others = rest(self.means.shape[1], columns)
        upto = np.cumsum(self.shares(t[None], columns)[0])
        c = np.searchsorted(upto[:-1], u[:, 0], side="right")
        normal = ndtri(np.clip(u[:, 1 : len(others) + 1], EDGE, 1 - EDGE))
        result = np.empty((len(u), self.means.shape[1]))
        result[:, columns] = t
        result[:, others] = self.means[np.ix_(c, others)] + self.scales[np.ix_(c, others)] * normal
        return result

    def linear(
        self, weights: np.ndarray, columns: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the conditional laws of sums of columns: the slopes are the weights."""
        others = rest(self.means.shape[1], columns)
        size = np.abs(self.scales).max(axis=0)[others]  # so that squares are in range
        size[size == 0] = 1.0
        squares = (weights[:, others] * size) ** 2 @ ((self.scales[:, others] / size) ** 2).T
        slopes = np.tile(weights[:, columns], (len(self.weights), 1, 1))
        return self.means, slopes, np.sqrt(squares).T

    def support(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return 1 / (π(t)ᵀ Q π(t)): rows r enter with the weights Σ_c π_c(t) ω_r r_rc / n_c."""
        shares = self.shares(t, columns)
        return 1 / (by_row(shares, self.overlap) * shares).sum(axis=1)


def _near(weights: np.ndarray, means: np.ndarray, scales: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return shares from log densities."""
    logs = np.tile(np.log(weights), (len(t), 1))
    for i in range(t.shape[1]):
        z = (t[:, i, None] - means[:, i]) / scales[:, i]
        logs -= np.where(np.isnan(z), 0.0, z**2 / 2 + np.log(scales[:, i]))
    logs -= logs.max(axis=1, keepdims=True)
    shares = np.exp(logs)
    return shares / shares.sum(axis=1, keepdims=True)


def _far(weights: np.ndarray, means: np.ndarray, scales: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return shares from ratios of densities, whose logarithms are polynomials of degree 2.

    Their coefficients are subtracted before t is inserted: where the scales of two components are
    equal, the means decide, however large t² is.
    """
    known = ~np.isnan(t)
    t = np.where(known, t, 0.0)
    square, line = -0.5 / scales**2, means / scales**2
    constant = -0.5 * (means / scales) ** 2 - np.log(scales)
    shares = np.empty((len(t), len(weights)))
    for c in range(len(weights)):
        logs = by_row(t**2, (square - square[c]).T) + by_row(t, (line - line[c]).T)
        logs += by_row(known, (constant - constant[c]).T) + np.log(weights / weights[c])
        with np.errstate(over="ignore"):
            shares[:, c] = 1 / np.exp(logs).sum(axis=1)
    return shares / shares.sum(axis=1, keepdims=True)


def learn_mixture(
    numbers: np.ndarray, weights: np.ndarray, n_components: int | None = None
) -> Mixture:
    """Return a mixture of `n_components`, or of fewer if there are fewer distinct rows.

    By default their number has the least BIC, -2 n_eff · (mean log-likelihood) + (number of
    parameters) · log n_eff, among up to 10 components of at least 5 effective rows each. EM runs on
    all rows, with columns standardised and variances of at least 1e-3 of the column's. It starts
    from the result of k-means and EM on 5000 rows, so that few steps on all rows are needed. The
    same data give the same mixture.
    """
    shares = weights / weights.sum()
    mean, scale = moments(numbers, shares)
    varies = scale > 0
    scores = (numbers[:, varies] - mean[varies]) / scale[varies]
    data = np.concatenate([scores**2, scores], axis=1)
    some = em.starting_rows(len(scores))
    with threadpool_limits(1):  # steps are too short for threads
        fit = em.learn(
            partial(_start, data[some], shares[some]),
            partial(em_step, data, shares),
            lambda c: c * (data.shape[1] + 1) - 1,
            em.ROWS,
            1 / float(shares @ shares),
            em.n_distinct(scores[some]),
            n_components,
        )
    kept = em.alive(fit.weights)
    fit = Fit(fit.weights[kept] / fit.weights[kept].sum(), fit.means[kept], fit.variances[kept])
    means, scales = np.tile(mean, (len(kept), 1)), np.zeros((len(kept), len(mean)))
    means[:, varies] += fit.means * scale[varies]
    scales[:, varies] = np.sqrt(fit.variances) * scale[varies]
    parts = (belongs for _, belongs, _ in _responsibilities(data, shares, fit))
    return Mixture(fit.weights, means, scales, em.overlap(parts, len(kept)))


class Fit(NamedTuple):
    """Components on standardised columns."""

    weights: np.ndarray  # (C,)
    means: np.ndarray  # (C, k)
    variances: np.ndarray  # (C, k)
    likelihood: float = -np.inf  # the mean logarithm, of the fit one step before


def _start(data: np.ndarray, shares: np.ndarray, c: int) -> Fit:
    """Return where EM on these rows settles, from the clusters that k-means finds."""
    belongs = em.clusters(data[:, data.shape[1] // 2 :], shares, c)
    fit = _maximised(belongs.sum(axis=0), belongs.T @ data)
    step = partial(em_step, data, shares / shares.sum())
    return em.settled(step, fit, em.ROUGH, 2 * em.ROUNDS)


def em_step(data: np.ndarray, shares: np.ndarray, fit: Fit) -> Fit:
    """Return a likelier fit to data, (n, 2 k): squares first; and the likelihood of this one."""
    likelihood = 0.0
    mass, sums = np.zeros(len(fit.weights)), np.zeros((len(fit.weights), data.shape[1]))
    for block, belongs, logs in _responsibilities(data, shares, fit):
        likelihood += float(shares[block] @ logs)
        mass += belongs.sum(axis=1)
        sums += belongs @ data[block]
    return _maximised(mass, sums, likelihood)


def _maximised(mass: np.ndarray, sums: np.ndarray, likelihood: float = -np.inf) -> Fit:
    """Return the components of these masses and sums of squares and values."""
    mass = np.maximum(mass, np.finfo(float).tiny)
    squares, means = np.split(sums / mass[:, None], 2, axis=1)
    return Fit(mass / mass.sum(), means, np.maximum(squares - means**2, FLOOR), likelihood)


def _responsibilities(
    data: np.ndarray, shares: np.ndarray, fit: Fit
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of rows, (C, n) of their shares belongs to each component, log-likelihoods."""
    slopes = np.concatenate([-0.5 / fit.variances, fit.means / fit.variances], axis=1)
    constant = fit.means**2 / fit.variances + np.log(2 * np.pi * fit.variances)
    constant = np.log(fit.weights) - constant.sum(axis=1) / 2
    for start in range(0, len(data), BLOCK):
        block = slice(start, start + BLOCK)
        logs = slopes @ data[block].T
        logs += constant[:, None]
        yield block, *em.responsibilities(logs, shares[block])
