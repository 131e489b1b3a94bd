"""Marginal effects: the change of the prediction per unit of a column, at the row itself."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.measures.views import AtomsView

SHARE = 0.1  # of the standard deviation of a column, the default step


class MarginalEffect(Measure):
    """[δ_{(x_j + h, x_{-j})} - δ_{(x_j - h, x_{-j})}] / 2h: a difference quotient of f at the row.

    It has mass 0, and a column that the model ignores gets 0; f = w·y gives w_j
    [docs/mathematics.md, section 9]. A missing value gets 0. Columns of levels and groups are
    refused.

    Parameters
    ----------
    step : float or dict, optional
        h, for all columns or {column: h}; by default a tenth of the standard deviation of the
        column in the background (1 if it does not vary). Trees are flat between their thresholds: a
        small step then gives 0 nearly everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> from skattr.measures import MarginalEffect
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], MarginalEffect(step=0.5)).fit(X)
    >>> explainer.explain(X).values
    array([[1., 0.],
           [3., 2.]])
    """

    depends = "row"
    mass = 0.0
    views = ("atoms",)
    adds_up = False
    no_batches = "its steps are learned from the whole background"
    no_pairs = "it is defined for single columns"
    no_folds = "it depends on the background through the lengths of its steps only"

    def __init__(self, step: float | dict[Any, float] | None = None) -> None:
        self.step = step

    def _check_parameters(self) -> None:
        steps = self.step.values() if isinstance(self.step, dict) else [self.step]
        for step in steps:
            real = isinstance(step, Real) and not isinstance(step, bool)
            if step is not None and (not real or not 0 < float(step) < np.inf):
                raise ValueError(f"step must be a positive number, got {brief(step)}")

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        names = background.names
        for columns in attributions:
            if len(columns) > 1:
                group = [names[k] for k in columns]
                raise ValueError(f"MarginalEffect is for single columns, not for the group {group}")
        for k, name in enumerate(names):
            if background.levels[k] or not frames.is_number(background.X, k):
                raise ValueError(f"MarginalEffect needs numbers, but column {name!r} holds levels")
        unknown = set(self.step) - set(names) if isinstance(self.step, dict) else set()
        if unknown:
            raise ValueError(f"step names unknown columns {sorted(map(str, unknown))}")
        self.steps_ = np.array([self._step(background, k) for k in range(len(names))])

    def _step(self, background: Background, k: int) -> float:
        step = self.step.get(background.names[k]) if isinstance(self.step, dict) else self.step
        if step is not None:
            return float(step)
        values = frames.to_float(background.column(k))
        present = np.isfinite(values)
        weights, values = background.weights[present], values[present]
        if (
            values == values[:1]
        ).all():  # the mean of equal values may differ from them by rounding
            return 1.0
        mean = np.average(values, weights=weights)
        return SHARE * float(np.sqrt(np.average((values - mean) ** 2, weights=weights)))

    def atoms(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> AtomsView:
        """Return two atoms per attribution, in front of the row and behind it."""
        n, g = len(X), len(attributions)
        row = np.tile(np.arange(n), 2 * g)
        points = frames.take_rows(X, row)
        columns: dict[int, np.ndarray] = {}
        weights = np.zeros((g, 2 * g * n))
        for j, (k,) in enumerate(attributions):
            values = columns.setdefault(k, frames.to_float(frames.column(points, k)).copy())
            for side in (0, 1):
                at = slice((2 * j + side) * n, (2 * j + side + 1) * n)
                values[at] += (1 - 2 * side) * self.steps_[k]
                present = ~np.isnan(values[at])
                weights[j, at] = present * (1 - 2 * side) / (2 * self.steps_[k])
        return AtomsView(frames.replaced(points, columns), weights, row)

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()
