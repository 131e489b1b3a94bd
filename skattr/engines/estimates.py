"""Estimates of integrals with their errors; sums of estimates keep both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(eq=False)
class Estimate:
    """A value, a bound on its error, and independent replicates of it if it was sampled.

    Replicate r of every estimate comes from one seed, so that the replicates of a sum are the sums
    of the replicates. Values broadcast over leading axes that they do not have.
    """

    value: Any
    error: Any = 0.0  # of the part that is not random
    replicates: np.ndarray | None = None  # (R, …)

    @classmethod
    def sampled(cls, replicates: np.ndarray) -> Estimate:
        """Return the mean of independent replicates."""
        return cls(sum(replicates) / len(replicates), 0.0, replicates)

    @property
    def std_error(self) -> Any:
        """The standard error of the value."""
        if self.replicates is None:
            return self.error
        return np.hypot(self.error, standard_error(self.replicates))

    @property
    def is_exact(self) -> bool:
        """Whether nothing was estimated."""
        return self.replicates is None and not np.any(self.error)

    def placed(self, positions: list[int], n: int) -> Estimate:
        """Return the estimate with its attributions (the last axis but one) at positions among n.

        All others are 0.
        """
        if positions == list(range(n)):
            return self
        shape = (*self.value.shape[:-2], n, self.value.shape[-1])
        value, error = np.zeros(shape), np.zeros(shape)
        value[..., positions, :] = self.value
        error[..., positions, :] = self.error
        replicates = None
        if self.replicates is not None:
            replicates = np.zeros((len(self.replicates), *shape))
            replicates[..., positions, :] = self.replicates
        return Estimate(value, error, replicates)

    def __mul__(self, factor: Any) -> Estimate:
        replicates = None if self.replicates is None else self.replicates * factor
        return Estimate(self.value * factor, self.error * np.abs(factor), replicates)

    __rmul__ = __mul__

    def __add__(self, other: Estimate) -> Estimate:
        value, error = self.value + other.value, self.error + other.error
        if self.replicates is None or other.replicates is None:
            only = self if other.replicates is None else other
            return Estimate(value, error, _wide(only.replicates, np.ndim(value)))
        if len(self.replicates) == len(other.replicates):
            ndim = np.ndim(value)
            both = _wide(self.replicates, ndim) + _wide(other.replicates, ndim)
            return Estimate(value, error, both)
        # they may be dependent: errors add up
        return Estimate(value, error + standard_error(other.replicates), self.replicates)

    def __sub__(self, other: Estimate) -> Estimate:
        return self + other * -1.0


def _wide(replicates: Any, ndim: int) -> Any:
    """Insert axes of length 1 behind that of the replicates."""
    if replicates is None:
        return None
    missing = ndim + 1 - replicates.ndim
    return replicates.reshape(len(replicates), *(1,) * missing, *replicates.shape[1:])


def standard_error(replicates: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean over the first axis."""
    n = len(replicates)
    # sums of whole arrays: numpy's own reductions may round differently for another shape
    with np.errstate(over="ignore", invalid="ignore"):  # NaN where a value is infinite
        deviations = replicates - sum(replicates) / n
        return np.sqrt(sum(deviations * deviations) / ((n - 1) * n))
