"""Whether a step treats each row by itself.

An attribution compares single rows with rows of the background, so what a step makes of a row must
not depend on the rows that it comes with, as it does in a function that fills with the mean of what
it is given, ranks, or scales by it. scikit-learn's own transformers learn such numbers in `fit`;
only functions and classes of others are looked at, a few rows alone and all of them together.
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

from skattr import frames
from skattr.models import works_in_place
from skattr.pieces.base import unwrap
from skattr.pieces.steps import inputs_of

COMPANY = 32  # rows that are transformed together
ALONE = 3  # rows that are looked at besides those with missing values
MEMBERS = ("estimators_", "regressor_")  # where estimators keep those that see the same X


def check_rows_alone(estimator: Any, X: Any, row: Any) -> None:
    """Refuse a model one of whose steps makes something else of a row alone than in company.

    `row` is one row that the model takes.
    """
    estimator = unwrap(estimator)
    if next(_steps(estimator, row, ""), None) is None:
        return
    try:
        found = list(_steps(estimator, _company(X), ""))
    except (TypeError, ValueError):  # a row that the model refuses, which is said elsewhere
        return
    for name, step, table in found:
        together = _numbers(step, table)
        if together is None:
            continue
        for i in _telling_rows(table, ALONE):
            alone = _numbers(step, frames.take_rows(table, slice(i, i + 1)))
            if alone is None or not _same(alone[0], together[i], together):
                function = getattr(getattr(step, "func", None), "__name__", type(step).__name__)
                raise ValueError(
                    f"the step {name!r} ({function}) makes something else of a row alone than "
                    "among others, as functions do that fill with the mean of the rows they are "
                    "given, rank them or scale by them; attributions would depend on the company "
                    "of a row. Learn such numbers in fit, as SimpleImputer, StandardScaler and "
                    "QuantileTransformer do"
                )


def _steps(estimator: Any, X: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the steps of others, each with its name and what it is given of X."""
    if isinstance(estimator, Pipeline):
        yield from _steps_in_line(estimator, X)
    elif isinstance(estimator, ColumnTransformer):
        for own, part, columns in estimator.transformers_:
            if hasattr(part, "transform") and len(np.atleast_1d(columns)):
                yield from _steps(unwrap(part), inputs_of(estimator, own, columns, X)[1], own)
    elif isinstance(estimator, FeatureUnion):
        for own, part in estimator.transformer_list:
            yield from _steps(unwrap(part), X, own)
    elif hasattr(estimator, "transform") and _is_foreign(estimator):
        yield name, estimator, X
    elif not hasattr(estimator, "estimators_features_"):  # members of a bag see some columns
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
    """Tell whether a step is somebody's function, or no class of scikit-learn's."""
    if isinstance(step, FunctionTransformer):
        return step.func is not None and not isinstance(step.func, np.ufunc)
    return not type(step).__module__.startswith("sklearn.")


def _company(X: Any) -> Any:
    """Return a few rows of X among which others are looked at."""
    return frames.take_rows(X, np.array(_telling_rows(X, COMPANY)))


def _telling_rows(table: Any, n_rows: int) -> list[int]:
    """Return a few rows from all over a table, and for each column the first that is missing."""
    rows = np.unique(np.linspace(0, table.shape[0] - 1, n_rows).astype(int)).tolist()
    if not sparse.issparse(table):
        for k in range(len(frames.labels(table))):
            missing = np.flatnonzero(pd.isna(frames.to_array(frames.column(table, k))))
            rows += missing[:1].tolist()
    return list(dict.fromkeys(rows))


def _numbers(step: Any, table: Any) -> np.ndarray | None:
    """Return what a step makes of a table, (n, m), or None if it refuses it."""
    try:
        made = step.transform(frames.copy(table))
    except (TypeError, ValueError):
        return None
    made = made.toarray() if sparse.issparse(made) else made
    return np.asarray(made, dtype=object).reshape(len(made), -1)


def _same(alone: np.ndarray, row: np.ndarray, together: np.ndarray) -> bool:
    """Tell whether a row of outputs is the same, up to rounding of numbers of that size."""
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
