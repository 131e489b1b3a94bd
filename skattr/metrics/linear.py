"""Recall, precision and F1 of attributions of linear models [the paper's section 4.3].

The golden set of f = w·y is {j : |w_j| > β}, what an attribution retrieves is {j : |phi_j| ≥ α}:

    recall = |golden ∩ retrieved| / |golden|,  precision = |golden ∩ retrieved| / |retrieved|.

0/0 is 1: an empty golden set is retrieved completely, an empty retrieved set has no errors.
F1 = 2 hits / (|golden| + |retrieved|), which is 1 if both are empty, and 0 if only one of them is.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np


class Counts(NamedTuple):
    """The numbers of features that are golden, retrieved and both, for each model."""

    golden: np.ndarray
    retrieved: np.ndarray
    hits: np.ndarray


def recall(values: Any, weights: Any, *, alpha: float, beta: float) -> float | np.ndarray:
    """Return the share of the golden features that are retrieved, 1 if none is golden.

    Parameters
    ----------
    values : array (d,) or (m, d)
        Attributions, one row per model.
    weights : array (d,) or (m, d)
        The weights of the linear models. If one of the two has one row, it is repeated.
    alpha : float
        Feature j is retrieved if |values_j| ≥ alpha.
    beta : float
        Feature j is golden if |weights_j| > beta.

    Returns
    -------
    float, or array (m,) for a family of models

    Examples
    --------
    >>> recall([0.9, 0.1, 0.5], [1.0, -1.0, 0.0], alpha=0.3, beta=0.1)
    0.5
    """
    counts = count(values, weights, alpha, beta)
    return _ratio(counts.hits, counts.golden)


def precision(values: Any, weights: Any, *, alpha: float, beta: float) -> float | np.ndarray:
    """Return the share of the retrieved features that are golden, 1 if none is retrieved.

    Parameters
    ----------
    values, weights, alpha, beta
        As in `recall`.

    Returns
    -------
    float, or array (m,) for a family of models

    Examples
    --------
    >>> precision([0.9, 0.1, 0.5], [1.0, -1.0, 0.0], alpha=0.3, beta=0.1)
    0.5
    """
    counts = count(values, weights, alpha, beta)
    return _ratio(counts.hits, counts.retrieved)


def f1(values: Any, weights: Any, *, alpha: float, beta: float) -> float | np.ndarray:
    """Return 2 hits / (golden + retrieved), 1 if both sets are empty.

    Parameters
    ----------
    values, weights, alpha, beta
        As in `recall`.

    Returns
    -------
    float, or array (m,) for a family of models

    Examples
    --------
    >>> f1([0.9, 0.1, 0.5], [1.0, -1.0, 0.0], alpha=0.3, beta=0.1)
    0.5
    """
    counts = count(values, weights, alpha, beta)
    return _ratio(2 * counts.hits, counts.golden + counts.retrieved)


def count(values: Any, weights: Any, alpha: float, beta: float) -> Counts:
    """Return the sizes of the sets, each () or (m,)."""
    check_thresholds(alpha, beta)
    phi, models = as_models(values, "values"), as_models(weights, "weights")
    d = models.shape[-1]
    if phi.shape[-1] != d:
        raise ValueError(f"values must have {d} features, as the models, got {phi.shape[-1]}")
    lengths = {len(each) for each in (phi, models) if each.ndim == 2} - {1}
    if len(lengths) > 1:
        raise ValueError(f"values must be of {len(models)} models, as the weights, got {len(phi)}")
    golden, retrieved = np.broadcast_arrays(golden_set(models, beta), np.abs(phi) >= alpha)
    return Counts(golden.sum(-1), retrieved.sum(-1), (golden & retrieved).sum(-1))


def golden_set(weights: np.ndarray, beta: float) -> np.ndarray:
    """Return which features matter to each model."""
    return np.abs(weights) > beta


def check_thresholds(alpha: Any, beta: Any) -> None:
    """Raise if thresholds are not numbers of at least 0."""
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")


def as_models(array: Any, name: str) -> np.ndarray:
    """Return finite numbers, (d,) or (m, d)."""
    try:
        result = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have rows of one length: {error}") from error
    if result.ndim not in (1, 2) or 0 in result.shape:
        raise ValueError(f"{name} must be (d,), or (m, d) for m models, got shape {result.shape}")
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite, got missing or infinite values")
    return result


def _ratio(part: np.ndarray, whole: np.ndarray) -> float | np.ndarray:
    ratio = np.divide(part, whole, out=np.ones(np.shape(part)), where=whole > 0)
    return float(ratio) if ratio.ndim == 0 else ratio
