"""f, read as a sum of simple pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from skattr import frames
from skattr.pieces.outputs import Output
from skattr.storage import PicklableTable

THRESHOLD = (FixedThresholdClassifier, TunedThresholdClassifierCV)  # they change labels only


class Unreadable(Exception):
    """A reader's word that an estimator is no sum of its pieces; the message says why."""


class Pieces:
    """An estimator as engines see it.

    Every kind of pieces can be evaluated, `predict(X)` → (n, k): that is what makes the engines
    that only evaluate serve all of them. What was read can be compared with it, `refuted(rows)`.
    What else there is, the kind says: a `grid` of cells, columns of `levels`.
    """

    grid: Any = None

    def __init__(self, output: Output, row: Any) -> None:
        self.output = output
        self.row = PicklableTable(row)  # one row of X

    @property
    def addends(self) -> tuple[Pieces, ...]:
        """The pieces whose sum this is."""
        return (self,)

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""
        return len(self.output.names)

    def predict(self, X: Any) -> np.ndarray:
        """Return f(X), (n, k)."""
        return self.output(X)

    def meet(self, X: Any) -> tuple[Pieces, np.ndarray | None]:
        """Return the pieces on a grid that knows the cells of X, and the codes of X, (d, n).

        Pieces without a grid are returned as they are, with None.
        """
        return self, None

    def name_levels(self, X: Any) -> None:
        """Learn from X the names of levels that the model keeps no names of."""

    @property
    def levels(self) -> np.ndarray | None:
        """Whether a column holds levels to the model, (d,), if it is known."""
        return None

    def without_table(self) -> list[int]:
        """Return the columns whose curve may have no table: it is shown at the values met."""
        return list(range(len(frames.labels(self.row.X))))

    def level_values(self, k: int) -> tuple[list, list, list] | None:
        """Return what a column of levels may hold, where its curve has no table, or None."""
        return None

    def reading(self, rows: Any) -> tuple[Any, Any] | None:
        """Return f as it was read at some rows, (n, k), and how far that may be off."""
        return None

    def preprocessings(self) -> list:
        """Return the steps in front of the model that were read as working column by column."""
        return []

    def refuted(self, rows: Any) -> str | None:
        """Compare what was read with what the model and its steps say of some rows."""
        found = self.reading(rows)
        if found is None:
            return None
        for steps in self.preprocessings():
            mixed = steps.mixes(rows)
            if mixed is not None:
                return f"column {mixed!r} moves what the steps make of other columns"
        if (np.abs(found[0] - self.predict(rows)) <= found[1]).all():
            return None
        who = f"its {self.output.method}" if self.output.method else "it"
        name = type(self.output.estimator).__name__
        return f"what was read of {name} does not add up to what {who} returns"

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
