"""The protocol of laws of all columns that are learned from numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class ConditionalLaw(Protocol):
    """The law of d columns, given the values t of some of them, `columns`.

    A value that is NaN is not conditioned on.
    """

    @property
    def n_uniforms(self) -> int:
        """The number of uniform numbers that make a point."""

    def center(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return t, (m, len(columns)), and the conditional means of the other columns: (m, d)."""

    def points(self, u: np.ndarray, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return points of equal weight, (p, d), given one t, from u (p, n_uniforms) uniform."""

    def support(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return the effective number of rows behind the law given each t, (m,)."""


class NormalLaw(ConditionalLaw, Protocol):
    """A mixture of C normal laws, which stays one given the values of some columns."""

    def shares(self, t: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Return π_c(t), (m, C), for t (m, len(columns))."""

    def linear(
        self, weights: np.ndarray, columns: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the conditional laws of sums of columns with the weights (m, d).

        In each component a sum is normal, with the mean
        weights @ center + slopes @ (t - center_columns).

        Returns
        -------
        centers : array (C, d)
        slopes : array (C, m, len(columns))
        scales : array (C, m)
            Standard deviations.
        """
