"""The routes from raw columns to the numbers that a model compares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from skattr.kernels import lookup
from skattr.pieces.parts import Front
from skattr.pieces.preprocessing.pipeline import Preprocessing
from skattr.pieces.preprocessing.sparse_inputs import SparseInputs, fill_absent
from skattr.pieces.preprocessing.tracks import Kind, Track


@dataclass(eq=False)
class Route:
    """The fitted steps and the front between raw columns and the inputs of a part."""

    steps: Preprocessing | None
    front: Front

    def inputs(self, X: Any, wanted: set | None = None, memo: dict | None = None) -> Any:
        """Return the inputs, (n, m), an array or SparseInputs, of which [:, i] is one.

        `wanted` and `memo` are those of `Preprocessing.transform`.
        """
        if self.steps is not None:
            keep_sparse = self.front.absent != 0 or self.steps.is_wide
            X = self.steps.transform(X, wanted, keep_sparse, memo)
            if sparse.issparse(X):
                if self.steps.is_wide:
                    return SparseInputs(self.front, X)
                X = fill_absent(X, self.front.absent)
        return self.front.inputs(X)

    def track(self, c: int) -> Track:
        """Return what input c is, as a function of a raw column, before the model's own encoder."""
        column = int(self.front.columns[c])
        track = Track(column) if self.steps is None else self.steps.tracks[column]
        return track.then(Kind.FREE) if self.changes(c) else track

    def changes(self, c: int) -> tuple:
        """Return how single numbers are changed on the way, such as 0 taken for missing."""
        absent = self.steps is not None and self.steps.sparse and self.front.absent != 0
        return (*(("absent",) if absent else ()), *self.front.changes(c))


@dataclass(eq=False)
class Input:
    """A number that the model compares with edges or, if `n_levels`, looks up in sets of levels."""

    route: int
    place: int  # which of the route's inputs it is
    track: Track
    edges: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_levels: int = 0

    def rank(self, values: np.ndarray, out: np.ndarray) -> None:
        """Fill out with the ranks of values."""
        if self.n_levels:
            out[:] = np.where(np.isnan(values), -1, values).astype(np.int32) + 1
        else:
            lookup.rank(values, self.edges, out)
