"""Agreement with attributions that are known, as those of synthetic models are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from skattr.explanation import Explanation
from skattr.metrics.linear import as_models

_ROUNDING = 1e-12  # of the largest number of a row: differences below are none


@dataclass(frozen=True, eq=False)
class Agreement:
    """How values agree with the truth, row by row.

    Parameters
    ----------
    correlation : array (n,)
        Pearson's, over features; NaN where a side is constant.
    rank_correlation : array (n,)
        Spearman's, of the absolute values; NaN where a side is constant.
    sign : array (n,)
        Share of the features with a truth other than 0 whose sign is right; 1 if there is none.
    top : array (n,)
        Share of the `k` truly largest features, in absolute value, that are among the k largest
        values; ties count for the first.
    error : array (n,)
        Root mean square of values − truth.
    k : int
        See `top`.
    """

    correlation: np.ndarray
    rank_correlation: np.ndarray
    sign: np.ndarray
    top: np.ndarray
    error: np.ndarray
    k: int

    @property
    def mean(self) -> dict[str, float]:
        """The mean of each over the rows that have one, NaN if none has."""
        return {
            name: float(np.nanmean(each)) if np.isfinite(each).any() else np.nan
            for name, each in vars(self).items()
            if isinstance(each, np.ndarray)
        }

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={value:.3g}" for name, value in self.mean.items())
        return f"<Agreement {found}; {len(self.error)} rows, k={self.k}>"


def agreement(values: Any, truth: Any, *, k: int | None = None) -> Agreement:
    """Compare attributions with known ones.

    Parameters
    ----------
    values : Explanation of one output, or array (d,) or (n, d)
        What is judged; of an Explanation the centred values.
    truth : array (d,) or (n, d)
        The attributions that are right; one row is repeated.
    k : int, optional
        How many features count as the largest; by default as many as have a truth other than 0,
        at most half of them.

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
            raise ValueError(f"select one of the outputs {values.output_names} first")
        values = values.centered().values
    found, right = np.atleast_2d(as_models(values, "values"), as_models(truth, "truth"))
    if found.shape[1] != right.shape[1]:
        raise ValueError(f"values have {found.shape[1]} features, the truth {right.shape[1]}")
    if len(right) not in (1, len(found)):
        raise ValueError(f"values have {len(found)} rows, the truth {len(right)}")
    right = np.broadcast_to(right, found.shape)
    d = found.shape[1]
    if k is None:
        k = max(1, min(int((right != 0).sum(axis=1).max()), d // 2))
    if not 1 <= k <= d:
        raise ValueError(f"k={k} features of {d}")
    matters = right != 0
    same = (np.sign(found) == np.sign(right)) & matters
    count = matters.sum(axis=1)
    largest = [np.argsort(-np.abs(side), axis=1, kind="stable")[:, :k] for side in (found, right)]
    hits = [len(np.intersect1d(a, b)) / k for a, b in zip(*largest, strict=True)]
    return Agreement(
        _correlation(found, right),
        _correlation(rankdata(np.abs(found), axis=1), rankdata(np.abs(right), axis=1)),
        np.divide(same.sum(axis=1), count, out=np.ones(len(found)), where=count > 0),
        np.array(hits),
        np.sqrt(((found - right) ** 2).mean(axis=1)),
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
