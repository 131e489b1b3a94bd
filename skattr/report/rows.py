"""The rows of a report, explained in blocks where all values would not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.explanation import Explanation
from skattr.report.tables import spread_rows

NUMBERS = 4_000_000  # values and raw values that are kept
LEAST = 1000  # rows that are kept in any case
FOLDED = 5000  # rows that the errors of importances are computed at


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Centred values of all rows, or of some of them, and the importance over all.

    Attributes
    ----------
    explanation : Explanation
        The centred values that figures, tables and checks show.
    positions : array (m,)
        The positions of its rows in X.
    n_rows : int
        The number of rows of X.
    size : array (g,) or (g, k)
        The mean of |centred value| over all rows of X.
    by_fold : array (G, g) or (G, g, k), or None
        The same without each fold of the background, over some rows of X; None if there are none.
    """

    explanation: Explanation
    positions: np.ndarray
    n_rows: int
    size: np.ndarray
    by_fold: np.ndarray | None

    @classmethod
    def of(cls, explanation: Explanation) -> ExplainedRows:
        """Return all rows of an explanation."""
        centred = explanation.centered()
        columns = [
            np.abs(centred.values[:, j]).mean(axis=0) for j in range(centred.values.shape[1])
        ]
        n = len(centred)
        return cls(centred, np.arange(n), n, np.array(columns), _by_fold(centred))

    @classmethod
    def explained(cls, explainer: Any, X: Any, features: Any) -> ExplainedRows:
        """Explain all rows, in blocks if there are many; some rows are kept then."""
        outputs, columns = len(explainer.output_names_), len(explainer.column_names_)
        most = max(LEAST, NUMBERS // (columns * (1 + outputs)))
        in_blocks = isinstance(X, np.ndarray) or frames.is_frame(X)
        n = len(X) if in_blocks else 0
        if n <= most:
            return cls.of(explainer.explain(X, features=features))
        total: Any = 0.0
        for start in range(0, n, most):
            block = frames.take_rows(X, slice(start, start + most))
            part = explainer.explain(block, features=features, predictions=False).centered()
            total = total + _sums(part)
        some = spread_rows(n, most)
        kept = explainer.explain(frames.take_rows(X, some), features=features)
        by_fold = _by_fold_in_blocks(explainer, X, features, most)
        return cls(kept.centered(), some, n, total / n, by_fold)

    @property
    def is_sample(self) -> bool:
        """Whether some rows were not kept."""
        return len(self.explanation) < self.n_rows

    def importance(self) -> Explanation:
        """Return an explanation whose importance is that of all rows."""
        if not self.is_sample:
            return replace(self.explanation, importance_by_fold=self.by_fold)
        one = self.explanation[0]
        error = None if one.std_error is None else np.zeros_like(one.std_error)
        return replace(
            one, values=self.size[None], std_error=error, importance_by_fold=self.by_fold
        )


def _by_fold(centred: Explanation) -> np.ndarray | None:
    """Return importances without each fold of the background, if there are any."""
    if centred.background_error is None or not len(centred):
        return None
    if centred.folds is None:  # it was read from a file
        return centred.importance_by_fold
    some = centred if len(centred) <= FOLDED else centred[spread_rows(len(centred), FOLDED)]
    some.importance(error=True)
    return some.importance_by_fold


def _by_fold_in_blocks(explainer: Any, X: Any, features: Any, most: int) -> np.ndarray | None:
    """Return the same over rows spread evenly over X, of which `most` are explained at once."""
    rows = spread_rows(len(X), FOLDED)
    total: Any = 0.0
    for start in range(0, len(rows), most):
        block = frames.take_rows(X, rows[start : start + most])
        part = explainer.explain(block, features=features, predictions=False).centered()
        importance = _by_fold(part)
        if importance is None:
            return None
        total = total + importance * len(part)
    return np.asarray(total / len(rows))


def _sums(explanation: Explanation) -> np.ndarray:
    """Return the sums of |value| over rows, (g,) or (g, k), column by column to save memory."""
    values = explanation.values
    return np.array([np.abs(values[:, j]).sum(axis=0) for j in range(values.shape[1])])
