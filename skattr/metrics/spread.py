"""The spread of numbers over models: mean, standard deviation, and an interval."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from skattr._utils.messages import brief


class Summary(NamedTuple):
    """Mean, standard deviation and interval of numbers over models, all of the same shape."""

    mean: np.ndarray
    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Spread:
    """How numbers of m models are summed up.

    Parameters
    ----------
    ratio : float or None
        None: the interval reaches from the smallest to the largest number. Otherwise it is
        mean ± t √(1/m + ratio) · sd, an interval of the mean over training sets: `ratio`, the
        number of rows left out of a fit relative to that of rows in it, corrects for training
        sets that overlap (Nadeau and Bengio, 2003, "Inference for the generalization error").
    level : float
        The coverage of that interval.
    """

    ratio: float | None = None
    level: float = 0.95

    def __post_init__(self) -> None:
        numbers = {"level": self.level} | ({} if self.ratio is None else {"ratio": self.ratio})
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, Real):
                raise TypeError(f"{name} must be a number, got {brief(value)}")
        if self.ratio is not None and not 0 <= self.ratio < np.inf:
            raise ValueError(
                f"ratio must be the number of rows left out of a fit relative to that of rows in "
                f"it, at least 0, got {self.ratio}"
            )
        if not 0 < self.level < 1:
            raise ValueError(f"level must be between 0 and 1, got {self.level}")

    def of(self, values: Any) -> Summary:
        """Sum up numbers of models, (m, ...); equal ones have a spread of exactly 0."""
        values = np.asarray(values, float)
        m = len(values)
        apart = values - values[0]
        mean, spread = values[0] + apart.mean(axis=0), apart.std(axis=0, ddof=1)
        if self.ratio is None:
            return Summary(mean, spread, values.min(axis=0), values.max(axis=0))
        half = t.ppf((1 + self.level) / 2, m - 1) * np.sqrt(1 / m + self.ratio) * spread
        return Summary(mean, spread, mean - half, mean + half)

    def in_words(self, m: int) -> str:
        """Say what the interval is, for a legend."""
        if self.ratio is None:
            return f"smallest to largest of {m} models"
        return f"{100 * self.level:g} % interval of the mean of {m} models"
