"""EM for mixtures of normal laws: the parts that do not depend on the covariances."""

from __future__ import annotations

from collections.abc import Callable
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


def least_bic(
    fitted: Callable[[int], Any], size: Callable[[int], int], rows: int, n_eff: float, most: int
) -> Any:
    """Return the fit with the least BIC among those with enough rows in each component.

    `fitted(c)` is a fit of c components, `size(c)` its number of parameters.
    """
    best, least, worse = None, np.inf, 0
    for c in range(1, most + 1):
        fit = fitted(c)
        bic = -2 * n_eff * fit.likelihood + size(c) * np.log(n_eff)
        if best is None or (bic < least and fit.weights.min() * n_eff >= rows):
            best, least, worse = fit, bic, 0
        else:
            worse += 1
        if worse == 2:
            break
    assert best is not None
    return best


def alive(weights: np.ndarray) -> np.ndarray:
    """Return the components that have weight, the largest first."""
    kept = np.flatnonzero(weights > NONE)
    return kept[np.argsort(-weights[kept], kind="stable")]
