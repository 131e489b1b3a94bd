"""Agreement with known attributions, as those of synthetic models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from skattr.explanation import Explanation
from skattr.metrics.linear import as_models

_ROUNDING = 1e-12  # of the largest number of a row: smaller differences are 0


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of values with the truth, row by row.

    Parameters
    ----------
    correlation : array (n,)
        Pearson's, over features; NaN where a side is constant.
    rank_correlation : array (n,)
        Spearman's, of the absolute values; NaN where a side is constant.
    sign : array (n,)
        Share of the features with a truth other than 0 whose sign is right; 1 if there are none.
    top : array (n,)
        Share of the `k` features with the largest absolute truth that have one of the k largest
        absolute values; of ties the first counts.
    error : array (n,)
        Root mean square of values − truth.
    k : int
        The number of features in `top`.

    Examples
    --------
    >>> from skattr.metrics import agreement
    >>> result = agreement([[1.0, -2.0, 0.1], [1.0, 2.0, 0.0]], [1.0, -2.0, 0.0])
    >>> result.sign
    array([1. , 0.5])
    """

    correlation: np.ndarray
    rank_correlation: np.ndarray
    sign: np.ndarray
    top: np.ndarray
    error: np.ndarray
    k: int

    @property
    def mean(self) -> dict[str, float]:
        """The mean of each metric over the rows where it is defined, NaN if there are none."""
        return {
            name: float(np.nanmean(each)) if np.isfinite(each).any() else np.nan
            for name, each in vars(self).items()
            if isinstance(each, np.ndarray)
        }

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={value:.3g}" for name, value in self.mean.items())
        return f"<Agreement {means}; {len(self.error)} rows, k={self.k}>"


def agreement(values: Any, truth: Any, *, k: int | None = None) -> Agreement:
    """Compare attributions with known ones.

    Parameters
    ----------
    values : Explanation of one output, or array (d,) or (n, d)
        The attributions; of an Explanation, the centred values.
    truth : array (d,) or (n, d)
        The true attributions; one row is repeated.
    k : int, optional
        The number of features in `top`; by default as many as have a truth other than 0, at most
        half of them.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> agreement([[1.0, -2.0, 0.1]], [1.0, -2.0, 0.0]).mean["sign"]
    1.0
    """
    if isinstance(values, Explanation):
        if len(values.output_names) > 1:
            raise ValueError(f"values must have one output; select one of {values.output_names}")
        values = values.centered().values
    attributions, truths = np.atleast_2d(as_models(values, "values"), as_models(truth, "truth"))
    n, d = attributions.shape
    if truths.shape[1] != d:
        raise ValueError(f"truth must have {d} features, as the values, got {truths.shape[1]}")
    if len(truths) not in (1, n):
        raise ValueError(f"truth must have 1 or {n} rows, as the values, got {len(truths)}")
    truths = np.broadcast_to(truths, attributions.shape)
    if k is None:
        k = max(1, min(int((truths != 0).sum(axis=1).max()), d // 2))
    if not 1 <= k <= d:
        raise ValueError(f"k must be between 1 and {d}, the number of features, got {k}")
    matters = truths != 0
    same = (np.sign(attributions) == np.sign(truths)) & matters
    count = matters.sum(axis=1)
    largest = [
        np.argsort(-np.abs(side), axis=1, kind="stable")[:, :k] for side in (attributions, truths)
    ]
    hits = [len(np.intersect1d(a, b)) / k for a, b in zip(*largest, strict=True)]
    return Agreement(
        _correlation(attributions, truths),
        _correlation(rankdata(np.abs(attributions), axis=1), rankdata(np.abs(truths), axis=1)),
        np.divide(same.sum(axis=1), count, out=np.ones(len(attributions)), where=count > 0),
        np.array(hits),
        np.sqrt(((attributions - truths) ** 2).mean(axis=1)),
        k,
    )


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation of rows, NaN where a side is constant."""
    result = np.ones(len(a))
    for side in (a, b):
        flat = np.ptp(side, axis=1) <= _ROUNDING * np.abs(side).max(axis=1)
        result[flat] = np.nan
    a, b = (side - side.mean(axis=1, keepdims=True) for side in (a, b))
    size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    cosine = np.divide((a * b).sum(axis=1), size, out=np.zeros(len(a)), where=size > 0)
    return result * np.clip(cosine, -1.0, 1.0)
