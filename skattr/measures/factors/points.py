"""Points of product measures: what models that can only be evaluated are asked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skattr import frames
from skattr.measures.base import Measure
from skattr.storage import PicklableTable


@dataclass(eq=False)
class ProductPoints:
    """A product of sampled laws; own coordinates are x's if `pinned`."""

    laws: list
    names: list
    pinned: bool
    row: PicklableTable  # one row, to make rows like it

    @classmethod
    def of(cls, term: Measure) -> Self:
        """Keep what points need of a product measure."""
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
        """How many uniform numbers a point is made of."""
        return len(self.laws)

    def free(self, columns: tuple[int, ...]) -> list[int]:
        """Return the columns that have more than one value where some are pinned."""
        return [k for k, law in enumerate(self.laws) if k not in columns and law.n_atoms != 1]

    def transport(self, u: np.ndarray) -> Any:
        """Return points of equal weight where nothing is pinned, one for each row of u."""
        columns = {k: law.quantile(u[:, k]) for k, law in enumerate(self.laws)}
        return frames.with_columns(self.row.X, columns)

    def table(self, nodes: list, at: np.ndarray) -> Any:
        """Return rows: of each column the nodes at some places, (n, d), the first where None."""
        columns = {
            k: frames.take_values(values, at[:, k])
            for k, values in enumerate(nodes)
            if values is not None
        }
        if not columns:
            return frames.take_rows(self.row.X, np.zeros(len(at), np.intp))
        return frames.with_columns(self.row.X, columns)
