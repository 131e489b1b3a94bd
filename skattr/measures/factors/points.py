"""Points of product measures, at which models are evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.measures.base import Measure


@dataclass(eq=False)
class ProductPoints:
    """A product of sampled laws, in which the columns of an attribution are x's if `pinned`."""

    laws: list
    names: list
    pinned: bool
    row: PicklableTable  # a row of the background, the template of points

    @classmethod
    def of(cls, term: Measure) -> Self:
        """Return what points need of a measure with the view "factors"."""
        [(_, laws)], pinned = term.factors()
        background = term.background_
        row = frames.copy(frames.take_rows(background.X, slice(1)))
        return cls([law.sampled() for law in laws], background.names, pinned, PicklableTable(row))

    def merge(self, other: ProductPoints) -> ProductPoints:
        """Join the laws of two batches."""
        laws = [a.merge(b) for a, b in zip(self.laws, other.laws, strict=True)]
        return ProductPoints(laws, self.names, self.pinned, self.row)

    @property
    def n_uniforms(self) -> int:
        """One per column."""
        return len(self.laws)

    def free(self, columns: tuple[int, ...]) -> list[int]:
        """Return the columns with more than one value, other than pinned ones."""
        return [k for k, law in enumerate(self.laws) if k not in columns and law.n_atoms != 1]

    def transport(self, u: np.ndarray) -> Any:
        """Return points of equal weight, (len(u), d), with nothing pinned."""
        columns = {k: law.quantile(u[:, k]) for k, law in enumerate(self.laws)}
        return frames.with_columns(self.row.X, columns)

    def table(self, nodes: list, at: np.ndarray) -> Any:
        """Return rows with the nodes of each column at the indices `at` (n, d), if it has nodes."""
        columns = {
            k: frames.take_values(values, at[:, k])
            for k, values in enumerate(nodes)
            if values is not None
        }
        if not columns:
            return frames.take_rows(self.row.X, np.zeros(len(at), np.intp))
        return frames.with_columns(self.row.X, columns)
