"""Weights of background rows given the values of one row x in many sets of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.measures.learned.row_weights import RowWeights


@dataclass(eq=False)
class CoalitionWeights:
    """π_r(x_S) of all rows r, S the columns of some of g players (docs/mathematics.md, section 7).

    Those of `RowWeights.given`: a column alone has its own weights, several columns have the
    product of their kernels, or the nearest rows if no row has weight.
    """

    weight: np.ndarray  # (n,) of rows given nothing, which sum to 1
    kernels: np.ndarray  # (g, n) the product of the kernels of a player's columns
    distances: np.ndarray  # (g, n) the sum of their distances
    alone: dict[int, np.ndarray]  # (n,) the weights given a player of one column

    @classmethod
    def of(cls, given: RowWeights, players: Sequence[tuple[int, ...]], x: Any) -> CoalitionWeights:
        """Look the kernels up at x, a table of one row."""
        rows, shape = given.rows, (len(players), len(given.weight))
        assert rows is not None
        kernels, distances, alone = np.ones(shape), np.zeros(shape), {}
        for p, columns in enumerate(players):
            bins = given.bins_of(x, columns)[:, 0]
            for k, b in zip(columns, bins, strict=True):
                kernels[p] *= given.columns[k].kernel[b][rows[k]]
                distances[p] += given.columns[k].distance[b][rows[k]]
            if len(columns) == 1 and len(players) > 1:
                alone[p] = given.given(columns, bins)
        return cls(given.weight, kernels, distances, alone)

    def given(self, members: np.ndarray) -> np.ndarray:
        """Return the weights given coalitions (m, g), (m, n); they sum to 1."""
        result = np.tile(self.weight, (len(members), 1))
        for p, kernel in enumerate(self.kernels):
            result[members[:, p]] *= kernel
        empty = np.flatnonzero(~result.any(axis=1))
        if len(empty):
            result[empty] = self._nearest(members[empty])
        single = np.flatnonzero(members.sum(axis=1) == 1)
        for i, p in zip(single, np.argmax(members[single], axis=1), strict=True):
            result[i] = self.alone.get(p, result[i])
        return result / result.sum(axis=1)[:, None]

    def _nearest(self, members: np.ndarray) -> np.ndarray:
        far = np.zeros((len(members), len(self.weight)))
        for p, distance in enumerate(self.distances):
            far[members[:, p]] += distance
        return self.weight * (far <= far.min(axis=1)[:, None] * (1 + 1e-9))
