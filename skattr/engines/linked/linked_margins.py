"""Rows of data on a link of additive models or networks: the margins of all rows, row by row.

Σ_r w_r link(g(x_j, z_{r,-j})) for each distinct explained value. The margins come from the inputs
of the pieces: the background passes the steps in front of the model once, not once per value.

- additive: g(x_j, z_{r,-j}) = g(z_r) - h_j(z_rj) + h_j(x_j), one addition per row;
- networks: one forward pass of the rows, with some inputs replaced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.engines.backgrounds import rows_or_bins
from skattr.engines.base import Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.row_sums import RowSum, SumsOverRows
from skattr.measures.base import Measure
from skattr.pieces import Additive, Linked, Pieces, ReluNetwork


class RowMargins(ABC):
    """The margins g of some rows, with some columns set to those of other rows."""

    @classmethod
    @abstractmethod
    def of(cls, pieces: Any, X: Any) -> RowMargins:
        """Compute what is needed of the rows of X."""

    @abstractmethod
    def __add__(self, other: Any) -> RowMargins:
        """Return the margins of two batches of rows."""

    @abstractmethod
    def fit(self, pieces: Any) -> np.ndarray:
        """Return the margins of the rows, (n, m)."""

    @abstractmethod
    def pinned(
        self, pieces: Any, x: Any, columns: tuple[int, ...]
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield for each row of x a function of chosen rows that returns their margins, (n, m)."""


@dataclass(eq=False)
class AdditiveRows(RowMargins):
    """The terms of an additive model."""

    terms: np.ndarray  # (n, d, m) h_k

    @override
    @classmethod
    def of(cls, pieces: Additive, X: Any) -> AdditiveRows:
        return cls(pieces.contributions(X))

    @override
    def __add__(self, other: AdditiveRows) -> AdditiveRows:
        return AdditiveRows(np.concatenate([self.terms, other.terms]))

    @override
    def fit(self, pieces: Additive) -> np.ndarray:
        return pieces.constant + self.terms.sum(axis=1)

    @override
    def pinned(self, pieces: Additive, x: Any, columns: tuple[int, ...]) -> Iterator[Any]:
        others = [k for k in range(self.terms.shape[1]) if k not in columns]
        rest = pieces.constant + self.terms[:, others].sum(axis=1)
        rows = frames.with_columns(pieces.row.X, {k: frames.column(x, k) for k in columns})
        shifts = pieces.contributions(rows, list(columns)).sum(axis=1)
        for value in shifts:
            yield partial(_shifted, rest, value)


def _shifted(rest: np.ndarray, value: np.ndarray, rows: Any) -> np.ndarray:
    return rest[rows] + value


@dataclass(eq=False)
class NetworkRows(RowMargins):
    """The inputs of a network."""

    numbers: np.ndarray  # (n, p)

    @override
    @classmethod
    def of(cls, pieces: ReluNetwork, X: Any) -> NetworkRows:
        return cls(pieces.numbers(X))

    @override
    def __add__(self, other: NetworkRows) -> NetworkRows:
        return NetworkRows(np.concatenate([self.numbers, other.numbers]))

    @override
    def fit(self, pieces: ReluNetwork) -> np.ndarray:
        return pieces.forward(self.numbers)

    @override
    def pinned(self, pieces: ReluNetwork, x: Any, columns: tuple[int, ...]) -> Iterator[Any]:
        positions, inputs = pieces.own_numbers(x, columns)
        for value in inputs:
            yield partial(self._forward, pieces, positions, value)

    def _forward(
        self, pieces: ReluNetwork, positions: np.ndarray, value: np.ndarray, rows: Any
    ) -> np.ndarray:
        Z = self.numbers[rows]  # a copy
        Z[:, positions] = value
        return pieces.forward(Z)


KINDS: dict[type[Pieces], type[RowMargins]] = {Additive: AdditiveRows, ReluNetwork: NetworkRows}


class LinkedMargins(SumsOverRows):
    """Evaluates the link of the margins of all rows, for each distinct explained value."""

    name = "linked_margins"
    kind = Linked
    gives = "exact, behind a link: one pass of the rows per distinct value"
    how_exact = "exact, behind a link"

    @override
    def objection(self, pieces: Linked, measure: Measure) -> str | None:
        if type(pieces.inner) in KINDS:
            return None
        return f"it needs Additive or ReluNetwork behind the link, not {pieces.describe()}"

    @override
    def cost(self, pieces: Linked, measure: Measure) -> str:
        if measure.depends == "nothing":
            return "fit: one evaluation per row"
        return "explain: one pass of the background's margins for each distinct explained value"

    @override
    def prepare(
        self, pieces: Linked, measure: Any, attributions: Attributions, options: RunOptions
    ) -> RowSum:
        background, row_weights, pinned = rows_or_bins(measure)
        rows = KINDS[type(pieces.inner)].of(pieces.inner, background.X)
        weights = background.weights.copy()
        total = _weighted_sum(pieces, rows.fit(pieces.inner), weights)
        return RowSum(total, weights, rows if pinned else None, row_weights)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        result = request.zeros(pieces.n_outputs)
        with threadpool_limits(1):  # values are computed in threads
            for i, columns in enumerate(request.columns):
                result[:, i] = _values(pieces, state, request, columns)
        return Integral(Estimate(result))


def _values(
    pieces: Linked, state: RowSum, request: Request, columns: tuple[int, ...]
) -> np.ndarray:
    """Return the mean of f over the rows with some columns set to those of X, (n, k)."""
    assert state.rows is not None
    first, kind = frames.distinct_rows(request.X, columns)
    x = frames.take_rows(request.X, first)
    bins = None if state.row_weights is None else state.row_weights.bins_of(x, columns)

    def value(item: tuple[int, Any]) -> np.ndarray:
        i, margins = item
        if bins is None:
            weights, rows = state.weights, np.arange(len(state.weights))
        else:
            assert state.row_weights is not None
            weights = state.row_weights.given(columns, bins[:, i])
            rows = np.flatnonzero(weights)
            weights = weights[rows]
        return _weighted_sum(pieces, margins(rows), weights) / weights.sum()

    items = enumerate(state.rows.pinned(pieces.inner, x, columns))
    return np.array(list(in_order(value, items, request.options.n_jobs)))[kind]


def _weighted_sum(pieces: Linked, margins: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Σ_r w_r link(margins_r), (k,)."""
    return (pieces.link(np.ascontiguousarray(margins.T)) * weights).sum(axis=-1)
