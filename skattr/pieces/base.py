"""The base class of pieces: an estimator as engines see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr.pieces.outputs import Output

THRESHOLD = (FixedThresholdClassifier, TunedThresholdClassifierCV)  # they change labels only


class Unreadable(Exception):
    """Raised when an estimator cannot be read as pieces; the message says why."""


class Pieces(ABC):
    """An estimator as a sum of simple functions.

    All pieces can be evaluated, so that engines which only evaluate serve every kind. Some know the
    cells of their columns (`grid`) or which columns hold levels (`levels`).

    Parameters
    ----------
    output : Output
        The method of the estimator, and the columns of its result, that are explained.
    row : table (1, d)
        One row of X.
    """

    grid: Any = None

    def __init__(self, output: Output, row: Any) -> None:
        self.output = output
        self.row = PicklableTable(row)

    @property
    def addends(self) -> tuple[Pieces, ...]:
        """The pieces whose sum this is."""
        return (self,)

    @property
    def before_link(self) -> Pieces:
        """The pieces whose outputs a link takes, or these if there is no link."""
        return self

    def linked(self, margins: np.ndarray) -> np.ndarray:
        """Return f, (k, …), where the outputs of `before_link` are margins (m, …)."""
        return margins

    def outputs(self, margins: np.ndarray) -> np.ndarray:
        """Return f, (n, k), where the outputs of `before_link` are margins (n, m)."""
        return margins

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

    def name_levels(self, X: Any) -> None:  # noqa: B027
        """Learn from X the names of levels that the model keeps only as numbers."""

    @property
    def levels(self) -> np.ndarray | None:
        """Whether the model treats each column as levels, (d,), or None if that is not known."""
        return None

    def without_table(self) -> list[int]:
        """Return the columns whose curve may have no table: it is shown at the values met."""
        return list(range(len(frames.labels(self.row.X))))

    def level_values(self, k: int) -> tuple[list, list, list] | None:
        """Return the values that column k may hold, if it is one of levels without cells.

        These are three lists: the levels that the model knows, missing values, and another level;
        the latter two as far as the model is not known to refuse them.
        """
        return None

    def reading(self, rows: Any) -> tuple[Any, Any] | None:
        """Return f as it was read, (n, k), and its possible rounding error; None if nothing was."""
        return None

    def preprocessings(self) -> list:
        """Return the preprocessings before the model that were read as working column by column."""
        return []

    def cancellation(self, rows: Any) -> str | None:
        """Return which numbers cancel so far that what is left is their rounding, or None."""
        return None

    def refuted(self, rows: Any) -> str | None:
        """Compare what was read with the estimator on some rows; return what is wrong, or None."""
        read = self.reading(rows)
        if read is None:
            return None
        for steps in self.preprocessings():
            mixed = steps.mixes(rows)
            if mixed is not None:
                return f"column {mixed!r} changes what the steps return for other columns"
        values, rounding = read
        if (np.abs(values - self.predict(rows)) <= rounding).all():
            return self.cancellation(rows)
        method = f"its {self.output.method}" if self.output.method else "it"
        name = type(self.output.estimator).__name__
        return f"what was read of {name} does not add up to what {method} returns"

    @abstractmethod
    def describe(self) -> str:
        """Return a few words on what was read."""


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
