"""Intervals from two kinds of error: of a finite background, and of approximations."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from skattr._inputs import frames
from skattr._utils.messages import brief

NO_ERROR = (
    "there is no error from the background: explainer.describe() says why, and "
    "MeasureExplainer(..., folds=32) asks for it wherever there is one"
)

OF_BACKGROUND = "95 % interval (rows of the background)"  # for legends


def check_level(level: Any) -> float:
    """Return the level of an interval as a float in (0, 1), or raise."""
    if not isinstance(level, Real) or isinstance(level, bool) or not 0 < float(level) < 1:
        raise ValueError(f"level must be a number between 0 and 1, got {brief(level)}")
    return float(level)


def half_width(
    background: np.ndarray | None, n_folds: int, std_error: np.ndarray | None, level: float
) -> np.ndarray:
    """Return half the width of an interval.

    Variances add up. The quantile is that of Student's t with (G - 1) (total / background)²
    degrees of freedom, of variances (Welch and Satterthwaite): G - 1 where values are exact, those
    of the normal law where only the approximation has an error.
    """
    quantile = (1 + level) / 2
    if background is None:
        assert std_error is not None
        return norm.ppf(quantile) * std_error
    if std_error is None:
        return t.ppf(quantile, n_folds - 1) * background
    total = np.hypot(background, std_error)
    share = np.divide(background, total, out=np.ones_like(total), where=total > 0)
    freedom = np.minimum((n_folds - 1) / np.maximum(share, 1e-3) ** 4, 1e9)
    return t.ppf(quantile, freedom) * total


def spread_over_folds(by_fold: np.ndarray) -> np.ndarray:
    """Return the jackknife's standard error of statistics (G, …), each without a fold."""
    n = len(by_fold)
    return np.sqrt((n - 1) / n * ((by_fold - by_fold.mean(axis=0)) ** 2).sum(axis=0))


def jackknife_interval(
    value: np.ndarray, by_fold: np.ndarray, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of importances from those without a fold, (G, …); none is below 0."""
    width = half_width(spread_over_folds(by_fold), len(by_fold), None, level)
    return np.maximum(value - width, 0.0), value + width


def importance_frame(
    importance: pd.Series | pd.DataFrame,
    order: np.ndarray,
    by_fold: np.ndarray,
    level: float,
    outputs: Sequence[str],
) -> pd.DataFrame:
    """Return importances with their errors and intervals, in the order of the importances.

    `order` are the positions of the attributions, by_fold (G, g) or (G, g, k).
    """
    by_fold, value = by_fold[:, order], importance.to_numpy()
    low, high = jackknife_interval(value, by_fold, level)
    error = spread_over_folds(by_fold)
    parts = {"importance": value, "error": error, "low": low, "high": high}
    if value.ndim == 1:
        return pd.DataFrame(parts, index=importance.index)
    flat = np.stack([*parts.values()], axis=2).reshape(len(value), -1)
    levels = [frames.as_index(outputs), pd.Index([*parts])]
    columns = pd.MultiIndex.from_product(levels, names=["output", None])
    return pd.DataFrame(flat, index=importance.index, columns=columns)
