"""f, read as a sum of simple pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from skattr.pieces.outputs import Output

THRESHOLD = (FixedThresholdClassifier, TunedThresholdClassifierCV)  # they change labels only


class Unreadable(Exception):
    """A reader's word that an estimator is no sum of its pieces; the message says why."""


class Pieces:
    """An estimator as engines see it.

    Every kind of pieces can be evaluated, `predict(X)` → (n, k): that is what makes the engines
    that only evaluate serve all of them. What else there is, the kind says.
    """

    def __init__(self, output: Output) -> None:
        self.output = output

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""
        return len(self.output.names)

    def predict(self, X: Any) -> np.ndarray:
        """Return f(X), (n, k)."""
        return self.output(X)

    def name_levels(self, X: Any) -> None:
        """Learn from X the names of levels that the model keeps no names of."""

    def describe(self) -> str:
        """Say in a few words what was read."""
        raise NotImplementedError


def unwrap(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator, a search or a threshold."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, THRESHOLD):
            estimator = getattr(estimator, "estimator_", estimator.estimator)
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator
