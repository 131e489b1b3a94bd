"""A check that steps treat each row by itself.

An attribution compares single rows with rows of the background, so the output of a step for one row
must not depend on the other rows of the table, as it does for a function that ranks them, scales
them or fills in their mean. scikit-learn's transformers learn such numbers in `fit`, so only
functions and classes from elsewhere are checked: on a few rows one by one, and on all together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from skattr._inputs import frames
from skattr._inputs.models import works_in_place
from skattr.pieces.base import unwrap
from skattr.pieces.preprocessing.pipeline import to_dense
from skattr.pieces.preprocessing.rules import inputs_of

TOGETHER = 32  # rows that are transformed together
ALONE = 3  # rows that are transformed alone, besides those with missing values
MEMBERS = ("estimators_", "regressor_")  # where estimators keep members that see the same X


def check_row_independence(estimator: Any, X: Any, row: Any) -> None:
    """Refuse a model that has a step whose output for a row depends on the other rows.

    `row` is one row that the model accepts.
    """
    estimator = unwrap(estimator)
    if next(_steps(estimator, row, ""), None) is None:
        return
    try:
        rows = frames.take_rows(X, np.array(_varied_rows(X, TOGETHER)))
        steps = list(_steps(estimator, rows, ""))
    except (TypeError, ValueError):  # a row that the model refuses: reported elsewhere
        return
    for name, step, table in steps:
        together = _outputs(step, table)
        if together is None:
            continue
        for i in _varied_rows(table, ALONE):
            alone = _outputs(step, frames.take_rows(table, slice(i, i + 1)))
            if alone is None or not _same(alone[0], together[i], together):
                function = getattr(getattr(step, "func", None), "__name__", type(step).__name__)
                raise ValueError(
                    f"the step {name!r} ({function}) returns something else for a row alone than "
                    "among others, as functions do that rank rows, scale by them or fill in their "
                    "mean; attributions would depend on the other rows of the table. Learn such "
                    "numbers in fit, as SimpleImputer, StandardScaler and QuantileTransformer do"
                )


def _steps(estimator: Any, X: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the steps to check, each with its name and its input."""
    if isinstance(estimator, Pipeline):
        yield from _steps_in_line(estimator, X)
    elif isinstance(estimator, ColumnTransformer):
        for part_name, part, columns in estimator.transformers_:
            if hasattr(part, "transform") and len(np.atleast_1d(columns)):
                inputs = inputs_of(estimator, part_name, columns, X)[1]
                yield from _steps(unwrap(part), inputs, part_name)
    elif isinstance(estimator, FeatureUnion):
        for part_name, part in estimator.transformer_list:
            yield from _steps(unwrap(part), X, part_name)
    elif hasattr(estimator, "transform") and _is_foreign(estimator):
        yield name, estimator, X
    elif not hasattr(estimator, "estimators_features_"):  # the members of bagging see some columns
        for member in _members(estimator):
            yield from _steps(member, X, name)


def _steps_in_line(pipeline: Pipeline, X: Any) -> Iterator[tuple[str, Any, Any]]:
    for i, (name, step) in enumerate(pipeline.steps):
        yield from _steps(unwrap(step), X, name)
        if hasattr(step, "transform") and i < len(pipeline.steps) - 1:
            X = step.transform(frames.copy(X) if works_in_place(step) else X)


def _members(estimator: Any) -> list:
    """Return the pipelines inside an estimator that see the same X."""
    members = [
        unwrap(member)
        for key in MEMBERS
        for member in np.ravel(np.array(getattr(estimator, key, []), object)).tolist()
    ]
    return [member for member in members if isinstance(member, Pipeline)]


def _is_foreign(step: Any) -> bool:
    """Tell whether a step is a user's function, or a class from outside scikit-learn."""
    if isinstance(step, FunctionTransformer):
        return step.func is not None and not isinstance(step.func, np.ufunc)
    return not type(step).__module__.startswith("sklearn.")


def _varied_rows(table: Any, n_rows: int) -> list[int]:
    """Return rows at equal distances, and for each column the first row where it is missing."""
    rows = np.unique(np.linspace(0, table.shape[0] - 1, n_rows).astype(int)).tolist()
    if not sparse.issparse(table):
        for k in range(len(frames.labels(table))):
            missing = np.flatnonzero(pd.isna(frames.to_array(frames.column(table, k))))
            rows += missing[:1].tolist()
    return list(dict.fromkeys(rows))


def _outputs(step: Any, table: Any) -> np.ndarray | None:
    """Return the outputs of a step for a table, (n, m), or None if it refuses the table."""
    try:
        outputs = to_dense(step.transform(frames.copy(table)))
    except (TypeError, ValueError):
        return None
    return np.asarray(outputs, dtype=object).reshape(len(outputs), -1)


def _same(alone: np.ndarray, row: np.ndarray, together: np.ndarray) -> bool:
    """Tell whether two rows of outputs are equal, up to rounding of numbers of their size."""
    if alone.shape != row.shape:
        return False
    for a, b, column in zip(alone, row, together.T, strict=True):
        if frames.is_missing(a) or frames.is_missing(b):
            if frames.is_missing(a) != frames.is_missing(b):
                return False
        elif isinstance(a, int | float | np.number) and isinstance(b, int | float | np.number):
            single = isinstance(a, np.float32 | np.float16)
            numbers = [float(v) for v in column if isinstance(v, int | float | np.number)]
            size = max((abs(v) for v in numbers if np.isfinite(v)), default=0.0)
            if a != b and not abs(float(a) - float(b)) <= (1e-3 if single else 1e-6) * size:
                return False
        elif a != b:
            return False
    return True
