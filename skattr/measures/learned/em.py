"""EM for mixtures of normal laws: the parts that do not depend on the covariances."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

ROUNDS = 50  # of EM on all rows, at most
FEW = 15  # the same for each number of components that is compared
ROUGH = 1e-3  # gain of mean log-likelihood at which EM ends while numbers are compared
SETTLED = 1e-4  # the same at the end
COMPONENTS = 10  # at most, where their number is looked for
ROWS = 5  # effective rows of a component, at least, where their number is looked for
START = 5000  # rows that EM starts with
N_INIT = 3  # runs of k-means
NONE = 1e-10  # share of the weight below which a component has none


def starting_rows(n: int) -> np.ndarray:
    """Return the rows that EM starts with."""
    some = np.arange(n)
    return some if n <= START else np.random.default_rng(0).choice(some, START, replace=False)


def clusters(scores: np.ndarray, shares: np.ndarray, c: int) -> np.ndarray:
    """Return the share of each row in each of c clusters that k-means finds, (n, c)."""
    labels = np.zeros(len(scores), int)
    if c > 1:
        means = KMeans(c, n_init=N_INIT, random_state=0)
        labels = means.fit_predict(scores, sample_weight=shares)
    return np.eye(c)[labels] * shares[:, None]


def settled(step: Callable[[Any], Any], fit: Any, tolerance: float, rounds: int) -> Any:
    """Return the fit at which the likelihood, which never falls, stops rising."""
    fit = fit._replace(likelihood=-np.inf)  # it was computed on other rows
    for _ in range(rounds):
        before, fit = fit.likelihood, step(fit)
        if fit.likelihood - before < tolerance:
            break
    return fit


def learn(
    start: Callable[[int], Any], step: Callable[[Any], Any], size: Callable[[int], int], rows: int,
    n_eff: float, most: int, n_components: int | None,
) -> Any:  # fmt: skip
    """Return the fit of `n_components`, at most `most`; by default the one with the least BIC.

    EM makes `step` from `start(c)` for c components, which have `size(c)` parameters, and at least
    `rows` effective rows each if their number is looked for. The search ends when BIC got worse
    twice in a row.
    """
    if n_components is not None:
        return settled(step, start(min(n_components, most)), SETTLED, ROUNDS)
    best, least, worse = None, np.inf, 0
    for c in range(1, min(most, COMPONENTS) + 1):
        fit = settled(step, start(c), ROUGH, FEW)
        bic = -2 * n_eff * fit.likelihood + size(c) * np.log(n_eff)
        if best is None or (bic < least and fit.weights.min() * n_eff >= rows):
            best, least, worse = fit, bic, 0
        else:
            worse += 1
        if worse == 2:
            break
    return settled(step, best, SETTLED, ROUNDS)


def n_distinct(rows: np.ndarray) -> int:
    """Return the number of distinct rows."""
    return len(np.unique(rows, axis=0)) if rows.shape[1] else 1


def responsibilities(logs: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the parts of the shares (n,) that belong to components, (C, n), and log-likelihoods.

    They are computed in place from the log densities of the components, (C, n).
    """
    top = logs.max(axis=0)
    logs -= top
    np.exp(logs, out=logs)
    total = logs.sum(axis=0)
    logs *= shares / total
    return logs, top + np.log(total)


def overlap(parts: Iterable[np.ndarray], n_components: int) -> np.ndarray:
    """Return Q of a `Mixture` from the parts of the shares that belong to components, (C, n)."""
    mass, squares = np.zeros(n_components), np.zeros((n_components, n_components))
    for belongs in parts:
        mass += belongs.sum(axis=1)
        squares += belongs @ belongs.T
    return squares / np.outer(mass, mass)


def alive(weights: np.ndarray) -> np.ndarray:
    """Return the components that have weight, the largest first."""
    kept = np.flatnonzero(weights > NONE)
    return kept[np.argsort(-weights[kept], kind="stable")]
