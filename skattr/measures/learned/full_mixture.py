"""Mixtures of normal laws with full covariances, learned by weighted EM: O(n d² C) per step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from skattr.measures.learned import em
from skattr.measures.learned.gaussian import Gaussian, by_row, moments, patterns
from skattr.measures.learned.mixture import Mixture

LEAST = 1e-6  # eigenvalues of a covariance of standardised columns are not smaller
BLOCK = 4096  # rows of an EM step at a time


@dataclass(eq=False)
class FullMixture:
    """Σ_c π_c N(m_c, Σ_c): a `NormalLaw`.

    Given the values t of columns J, each component is its conditional normal law, and the shares
    are π_c(t) ∝ π_c N(t; m_{c,J}, Σ_{c,J}).
    """

    components: list[Gaussian]
    marginals: Mixture  # the shares, and the means and scales of single columns

    @property
    def n_uniforms(self) -> int:
        """One for the component, and one per column."""
        return self.marginals.n_uniforms

    def shares(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return π_c(t)."""
        if len(columns) == 1:
            return self.marginals.shares(t, columns)
        result = np.empty((len(t), len(self.components)))
        for rows, present in patterns(t):
            known = [columns[i] for i in present]
            if len(known) == 1:
                result[rows] = self.marginals.shares(t[np.ix_(rows, present)], known)
                continue
            logs = np.stack(
                [law.log_density(t[np.ix_(rows, present)], known) for law in self.components],
                axis=1,
            )
            logs += np.log(self.marginals.weights)
            logs -= logs.max(axis=1, keepdims=True)
            shares = np.exp(logs)
            result[rows] = shares / shares.sum(axis=1, keepdims=True)
        return result

    def center(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return t and the mean of the components' means."""
        shares = self.shares(t, columns)
        first = self.components[0].center(t, columns)  # a constant column is kept to the last bit
        result = first.copy()
        for c, law in enumerate(self.components[1:], 1):
            result += shares[:, c, None] * (law.center(t, columns) - first)
        result[:, columns] = t
        return result

    def points(self, u: np.ndarray, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return points of equal weight, given one t."""
        upto = np.cumsum(self.shares(t[None], columns)[0])
        which = np.searchsorted(upto[:-1], u[:, 0], side="right")
        result = np.empty((len(u), len(self.components[0].mean)))
        for c in np.unique(which):
            rows = which == c
            result[rows] = self.components[c].points(u[rows, 1:], t, columns)
        return result

    def support(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return 1 / (vᵀ Q v), v_c = π_c(t) (1 + z_c²)^½, z_c the distance of t in component c.

        This is `Gaussian.support` for one component, and `Mixture.support` without the distances.
        """
        shares = self.shares(t, columns)
        away = [law.n_eff / law.support(t, columns) for law in self.components]  # 1 + z²
        shares = shares * np.sqrt(np.stack(away, axis=1))
        return 1 / (by_row(shares, self.marginals.overlap) * shares).sum(axis=1)

    def linear(
        self, weights: np.ndarray, columns: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the conditional laws of sums of columns in each component."""
        laws = zip(*(law.linear(weights, columns) for law in self.components), strict=True)
        centers, slopes, scales = (np.concatenate(parts) for parts in laws)
        return centers, slopes, scales


class Fit(NamedTuple):
    """Components on standardised columns."""

    weights: np.ndarray  # (C,)
    means: np.ndarray  # (C, k)
    covariances: np.ndarray  # (C, k, k)
    likelihood: float = -np.inf  # the mean logarithm, of the fit one step before


def learn_full_mixture(
    numbers: np.ndarray, weights: np.ndarray, n_components: int | None = None
) -> FullMixture:
    """Return a mixture of `n_components`, or of fewer if there are fewer distinct rows.

    By default their number is chosen as in `learn_mixture`, with more effective rows in each
    component than there are columns.
    """
    shares = weights / weights.sum()
    mean, scale = moments(numbers, shares)
    varies = scale > 0
    scores = (numbers[:, varies] - mean[varies]) / scale[varies]
    some, k = em.starting_rows(len(scores)), scores.shape[1]
    with threadpool_limits(1):  # the same bits whatever the threads
        fit = em.learn(
            partial(_start, scores[some], shares[some]),
            partial(full_step, scores, shares),
            lambda c: c * (k + k * (k + 1) // 2 + 1) - 1,
            max(em.ROWS, k + 1),
            1 / float(shares @ shares),
            em.n_distinct(scores[some]),
            n_components,
        )
        return _kept(fit, scores, shares, mean, scale)


def _kept(
    fit: Fit, scores: np.ndarray, shares: np.ndarray, mean: np.ndarray, scale: np.ndarray
) -> FullMixture:
    """Return the components that did not die, the largest first, on the scale of the numbers."""
    kept = em.alive(fit.weights)
    total = fit.weights[kept].sum()
    fit = Fit(fit.weights[kept] / total, fit.means[kept], fit.covariances[kept])
    parts = (belongs for _, belongs, _ in _responsibilities(scores, shares, fit))
    overlap = em.overlap(parts, len(kept))
    varies = scale > 0
    d, components = len(scale), []
    for c in range(len(kept)):
        middle, spread, correlation = mean.copy(), np.zeros(d), np.zeros((d, d))
        deviation = np.sqrt(np.diag(fit.covariances[c]))
        middle[varies] += fit.means[c] * scale[varies]
        spread[varies] = deviation * scale[varies]
        correlation[np.ix_(varies, varies)] = fit.covariances[c] / np.outer(deviation, deviation)
        np.fill_diagonal(correlation, varies)
        components.append(Gaussian(middle, spread, correlation, 1 / overlap[c, c]))
    means = np.array([law.mean for law in components])
    scales = np.array([law.scale for law in components])
    return FullMixture(components, Mixture(fit.weights, means, scales, overlap))


def _start(scores: np.ndarray, shares: np.ndarray, c: int) -> Fit:
    """Return where EM on these rows settles, from the clusters that k-means finds."""
    belongs = em.clusters(scores, shares, c)
    sums = np.einsum("nc,ni->ci", belongs, scores)
    squares = np.stack([(scores * r[:, None]).T @ scores for r in belongs.T])
    fit = _maximised(belongs.sum(axis=0), sums, squares)
    step = partial(full_step, scores, shares / shares.sum())
    return em.settled(step, fit, em.ROUGH, 2 * em.ROUNDS)


def full_step(scores: np.ndarray, shares: np.ndarray, fit: Fit) -> Fit:
    """Return a likelier fit, and the likelihood of this one."""
    n_components, k = fit.means.shape
    likelihood, mass = 0.0, np.zeros(n_components)
    sums, squares = np.zeros((n_components, k)), np.zeros((n_components, k, k))
    for block, belongs, logs in _responsibilities(scores, shares, fit):
        rows = scores[block]
        likelihood += float(shares[block] @ logs)
        mass += belongs.sum(axis=1)
        sums += belongs @ rows
        for c in range(n_components):
            squares[c] += (rows * belongs[c, :, None]).T @ rows
    return _maximised(mass, sums, squares, likelihood)


def _maximised(
    mass: np.ndarray, sums: np.ndarray, squares: np.ndarray, likelihood: float = -np.inf
) -> Fit:
    """Return the components of these masses and sums of values and of their products."""
    mass = np.maximum(mass, np.finfo(float).tiny)
    means = sums / mass[:, None]
    covariances = squares / mass[:, None, None] - means[:, :, None] * means[:, None, :]
    for covariance in covariances:
        values, vectors = np.linalg.eigh(covariance)
        covariance[:] = (vectors * np.maximum(values, LEAST)) @ vectors.T
    return Fit(mass / mass.sum(), means, covariances, likelihood)


def _responsibilities(
    scores: np.ndarray, shares: np.ndarray, fit: Fit
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of rows, (C, n) of their shares belongs to each component, log-likelihoods."""
    roots, constants = [], []
    for weight, covariance in zip(fit.weights, fit.covariances, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, LEAST)
        roots.append(vectors / np.sqrt(values))
        constants.append(np.log(weight) - np.log(2 * np.pi * values).sum() / 2)
    for start in range(0, len(scores), BLOCK):
        block = slice(start, start + BLOCK)
        logs = np.stack(
            [
                constant - (((scores[block] - mean) @ root) ** 2).sum(axis=1) / 2
                for mean, root, constant in zip(fit.means, roots, constants, strict=True)
            ]
        )
        yield block, *em.responsibilities(logs, shares[block])
