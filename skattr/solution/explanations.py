"""The values of a solution as an `Explanation`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._inputs.checks import realign
from skattr.engines import RunOptions
from skattr.explanation import Explanation
from skattr.solution.solution import Solution


@dataclass(frozen=True, eq=False)
class ImportanceByFold:
    """Computes the importances of rows with each fold of the background deleted."""

    solution: Solution
    options: RunOptions
    chosen: list[int]  # attributions
    fold_sums: Callable[[], Any]  # computes the sums by fold again
    output: int | None = None  # all if None

    def take(self, positions: Any) -> ImportanceByFold:
        """Return the same for some of the attributions."""
        return replace(self, chosen=[self.chosen[i] for i in positions])

    def select(self, output: int) -> ImportanceByFold:
        """Return the same for one output."""
        return replace(self, output=output)

    def importance(self, X: Any) -> np.ndarray:
        """Return the importances, (G, g), or (G, g, k) for several outputs."""
        assert self.solution.folds is not None
        self.solution.folds.restore(self.fold_sums)
        model = self.solution.model
        rows = model.as_background(realign(X, model.names) if model.named else X)
        importance = self.solution.importance_by_fold(rows, self.chosen, self.options)
        return one_output(importance) if self.output is None else importance[..., self.output]


def explain_rows(
    solution: Solution,
    chosen: list[int],
    rows: Any,
    X: Any,
    options: RunOptions,
    fold_sums: Callable[[], Any],
    predictions: bool = False,
) -> Explanation:
    """Return the values of some attributions at rows, with names, predictions and support.

    `rows` are the rows as the model takes them, X as the user passed them; `fold_sums` computes
    the sums by fold again, when errors of importances need them.
    """
    model, attributions = solution.model, solution.attributions
    values = solution.values(rows, chosen, options)
    measure, measure_name = solution.measure_names
    error = one_output(values.error)
    labels = frames.labels(rows)
    by_fold = ImportanceByFold(solution, options, chosen, fold_sums)
    return Explanation(
        values=one_output(values.values),
        base_value=one_output(solution.base_value),
        offset=one_output(values.offset),
        predictions=model.predict(rows) if predictions else None,
        data=X if frames.is_frame(X) else rows,
        feature_names=tuple(attributions.names[a] for a in chosen),
        columns=tuple(tuple(labels[k] for k in attributions[a]) for a in chosen),
        output_names=tuple(model.output.names),
        std_error=error,
        background_error=one_output(values.background_error),
        centered_background_error=one_output(values.centered_background_error),
        n_folds=0 if solution.folds is None else solution.folds.n,
        folds=None if solution.folds is None else by_fold,
        centered_error=one_output(values.centered_error),
        exact=solution.is_exact and error is None,
        engine=solution.engine_names,
        measure=measure,
        measure_name=measure_name,
        reference=one_output(solution.reference),
        support=solution.support(rows, chosen),
        scale=model.scale,
        certificate=values.certificate or None,
    )


def join_singles(pairs: Explanation, singles: Explanation, solution: Solution) -> Explanation:
    """Return the explanation of pairs together with that of single attributions."""
    return replace(
        pairs,
        predictions=singles.predictions,
        singles=singles,
        shared=all(term.measure.shared for term in solution.terms),
    )


def one_output(array: np.ndarray | None) -> Any:
    """Return an array without its last axis, the outputs, if there is one output."""
    if array is None or array.shape[-1] > 1:
        return array
    return float(array[0]) if array.ndim == 1 else array[..., 0]
