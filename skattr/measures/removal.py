"""Removal: what the prediction loses when a column is replaced by values of the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.measures.views import AtomsView, ReplacedView

MAX_ATOMS = 65_536  # atoms of all rows that are evaluated together


class Removal(Measure):
    """δ_x - δ_{x_{-j}} ⊗ P_j: f(x) less the mean of f with column j replaced by the background's.

    Also called occlusion, or leave one covariate out without refitting [docs/mathematics.md,
    section 9]. It has mass 0, and a column that the model ignores gets 0. A group of columns is
    replaced as one, by rows of the background.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> from skattr.measures import Removal
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Removal()).fit(X)
    >>> explainer.explain(X).values
    array([[-1.,  0.],
           [ 3.,  2.]])
    """

    depends = "row"
    mass = 0.0
    views = ("replaced", "atoms")
    adds_up = False
    no_batches = "its points are those of the whole background"
    by_rows = "mean"

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        self.rows_ = PicklableTable(frames.copy(background.X))
        self.weights_ = background.weights / background.weights.sum()
        self.n_atoms_ = 1 + sum(
            len(frames.distinct_rows(background.X, tuple(c))[0]) for c in attributions
        )

    def replaced(self) -> ReplacedView:
        """Return the background."""
        return ReplacedView(self.background_)

    @property
    def rows_at_once(self) -> int:
        """The number of rows whose atoms are evaluated together."""
        return max(1, MAX_ATOMS // self.n_atoms_)

    def atoms(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> AtomsView:
        """Return each row, and copies with the columns of an attribution from the background."""
        Z, n, d = self.rows_.X, len(X), len(frames.labels(X))
        sources, shares = [np.full((1, d), -1)], [np.ones((len(attributions), 1))]
        for j, columns in enumerate(attributions):
            first, kind = frames.distinct_rows(Z, tuple(columns))
            source = np.full((len(first), d), -1)
            source[:, list(columns)] = first[:, None]
            share = np.zeros((len(attributions), len(first)))
            share[j] = -np.bincount(kind, self.weights_, len(first))
            sources.append(source)
            shares.append(share)
        source = np.concatenate(sources)  # -1: the row itself
        rows = np.repeat(np.arange(n), len(source))[:, None]
        tiled = np.tile(source, (n, 1))
        points = frames.mixed(frames.concatenate([X, Z]), np.where(tiled < 0, rows, n + tiled))
        return AtomsView(points, np.tile(np.concatenate(shares, axis=1), n), rows[:, 0])

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()
