"""Checks of what is passed to the explainer: X, groups, domain and parameters."""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import validate_data

from skattr._inputs import frames
from skattr._inputs.modules import check_device
from skattr._inputs.values import number
from skattr._utils.messages import brief
from skattr._utils.parallel import check_n_jobs
from skattr.attributions import Attributions


def takes_missing(estimator: Any) -> bool:
    """Tell whether missing values may be handed to the estimator, which may still refuse them."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return True
    if isinstance(estimator, Pipeline) or get_tags(estimator).input_tags.allow_nan:
        return True  # the tags of a pipeline say nothing about its imputers
    inside = estimator.get_params().values() if hasattr(estimator, "get_params") else ()
    return any(isinstance(each, Pipeline) for each in inside)


def check_X(explainer: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Check X and remember (reset) or compare its columns; frames stay as they are."""
    if frames.is_frame(X):
        names = frames.labels(X)
        double = sorted({str(name) for name in names if names.count(name) > 1})
        if double:
            raise ValueError(f"the columns {double} occur in X more than once; rename them")
        if len(X) == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}): X has no rows")
        if not names:
            raise ValueError(f"0 feature(s) (shape={X.shape}): X has no columns")
        _refuse_complex_columns(X)
        validate_data(explainer, X, reset=reset, skip_check_array=True)
        return X
    _refuse_other_kinds(X)
    try:
        return validate_data(
            explainer,
            X,
            reset=reset,
            dtype=None if _stays_as_it_is(X, explainer, reset) else "numeric",
            # what takes missing values decides about infinite ones itself
            ensure_all_finite=not takes_missing(explainer.estimator),
        )
    except ValueError as error:
        if not isinstance(X, np.ndarray) or X.ndim != 2 or 0 in X.shape:
            raise
        raise ValueError(f"{error}{frames.unusual(X)}") from error


def _refuse_complex_columns(X: Any) -> None:
    """Refuse columns of complex numbers, of which scikit-learn's error prints the frame."""
    if not isinstance(X, pd.DataFrame):  # no other library has them
        return
    names = [
        X.columns[k]
        for k, dtype in enumerate(X.dtypes)
        if isinstance(dtype, np.dtype)
        and dtype.kind in "cO"
        and pd.api.types.infer_dtype(X.iloc[:, k], skipna=True) == "complex"
    ]
    if names:
        raise ValueError(f"X must hold real numbers, got complex ones in columns {brief(names)}")


def _refuse_other_kinds(X: Any) -> None:
    """Refuse, by name, what is often passed instead of a table."""
    kind = type(X)
    if hasattr(kind, "collect") and hasattr(kind, "columns"):
        raise TypeError(
            f"X must be a table in memory, got a {kind.__name__}: call .collect() first"
        )
    if isinstance(X, str | bytes | os.PathLike):
        raise TypeError(f"X must be a table, got {brief(X)}: read the file first")
    if X is None or (isinstance(X, dict | set) and not hasattr(X, "shape")):  # scipy's dok has one
        got = "None" if X is None else f"a {kind.__name__}: pd.DataFrame(X) makes one of it"
        raise TypeError(f"X must be a table with rows and columns, got {got}")
    if hasattr(kind, "predict") or hasattr(kind, "explain"):
        raise TypeError(f"X must be a table, got a model or an explainer ({kind.__name__})")
    if isinstance(X, np.ndarray) and X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    flat = isinstance(X, list | tuple) and len(X) > 0 and np.ndim(X[0]) == 0
    if flat or len(getattr(X, "shape", ())) == 1:
        raise ValueError(
            f"X must be a table with rows and columns, got a {kind.__name__} of length {len(X)}. "
            "Reshape your data: X[['name']] or X.reshape(-1, 1) if it is one column, X.iloc[[i]] "
            "or X.reshape(1, -1) if it is one row"
        )


def _stays_as_it_is(X: Any, explainer: Any, reset: bool) -> bool:
    """Tell whether an array holds words, or objects for the steps of a pipeline.

    An encoder that learned objects does not take numbers, and in a few rows all words may be
    missing, so that `explain` goes by what `fit` did.
    """
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "OU":
        return False
    if X.dtype.kind == "U":
        return True
    if not reset and isinstance(explainer._model.row.X, np.ndarray):
        return explainer._model.row.X.dtype.kind == "O" or any(
            isinstance(v, str) for v in X.ravel()
        )
    steps = isinstance(explainer.estimator, Pipeline)
    return steps or any(isinstance(value, str) for value in X.ravel())


def realign(X: Any, names: list) -> Any:
    """Return the columns of a frame in the order of fit, or say what is wrong with them."""
    if not frames.is_frame(X):
        return X
    columns = frames.labels(X)
    if columns == names:
        return X
    missing = [name for name in names if name not in columns]
    extra = [name for name in columns if name not in names]
    if missing or extra:
        words = [f"{what}: {which}" for what, which in
                 (("missing", missing), ("not known from fit", extra)) if which]  # fmt: skip
        raise ValueError(
            "The feature names should match those that were passed during fit. "
            f"Columns {'; '.join(words)}"
        )
    return frames.reorder(X, names)


def attributions(groups: Any, names: list) -> Attributions:
    """Return the attributions; a group stands at its first member."""
    if groups is None:
        return Attributions.single(names)
    if not isinstance(groups, dict):
        raise TypeError(f"groups must be a dict of name: [columns], got {type(groups).__name__}")
    member_of: dict[int, str] = {}
    for name, members in groups.items():
        if not isinstance(members, list | tuple) or not members:
            raise ValueError(f"groups[{name!r}] must be a list of columns, got {brief(members)}")
        for member in members:
            k = position(member, names, f"groups[{name!r}]")
            if k in member_of:
                raise ValueError(
                    f"groups: column {names[k]!r} is in {member_of[k]!r} and in {name!r}; "
                    "a column can be in one group only"
                )
            member_of[k] = name
    clash = [n for k, n in enumerate(names) if k not in member_of and n in groups]
    if clash:
        raise ValueError(f"groups: {clash} name columns outside of the group; rename the group")
    columns: dict = {}
    for k in range(len(names)):
        group = member_of.get(k)
        columns.setdefault(("column", k) if group is None else ("group", group), []).append(k)
    labels = tuple(names[where] if kind == "column" else where for kind, where in columns)
    return Attributions(labels, tuple(tuple(c) for c in columns.values()), len(names))


def position(name: Any, names: list, where: str, what: str = "column") -> int:
    """Return the position of a column, given by its name or, where none has it, its position."""
    if isinstance(name, Hashable) and name in names:
        return names.index(name)
    whole = isinstance(name, int | np.integer) and not isinstance(name, bool)
    if whole and 0 <= name < len(names):
        return int(name)
    raise ValueError(f"{where}: there is no {what} {brief(name)}; there are {brief(list(names))}")


def positions(chosen: Any, names: list, where: str, what: str = "column") -> list[int]:
    """Return the positions of some columns, all if `chosen` is None."""
    if chosen is None:
        return list(range(len(names)))
    wanted = list(chosen) if np.iterable(chosen) and not isinstance(chosen, str) else []
    if not wanted:
        raise ValueError(f"{where} must be a list of at least one {what}, got {brief(chosen)}")
    return [position(name, names, where, what) for name in wanted]


@dataclass(frozen=True)
class Domain:
    """The domain as the user gave it: position of a column → (low, high)."""

    sides: dict[int, tuple[float, float]]
    named: bool  # by column; an array has a row for every column, those of levels too

    @classmethod
    def read(cls, domain: Any, names: list) -> Domain:
        """Read an array (d, 2) or a dict."""
        return cls(read_domain(domain, names), isinstance(domain, dict))

    def of_numbers(
        self, levels: np.ndarray, ranges: dict[int, tuple[float, float]] | None = None
    ) -> dict[int, tuple[float, float]]:
        """Return the domain without columns of levels, unless they are named, which is a mistake.

        `levels` (d,) tells which columns hold levels; `ranges` are for columns that were not given.
        """
        numbers = {k: side for k, side in (ranges or {}).items() if not levels[k]}
        sides = {k: side for k, side in self.sides.items() if self.named or not levels[k]}
        return numbers | sides


def read_domain(domain: Any, names: list) -> dict[int, tuple[float, float]]:
    """Return position → (low, high) from an array (d, 2) or a dict."""
    if domain is None:
        return {}
    if isinstance(domain, dict):
        pairs = {position(name, names, "domain"): pair for name, pair in domain.items()}
    else:
        array = np.asarray(domain)
        if array.shape != (len(names), 2):
            raise ValueError(
                "domain must be a dict {column: (low, high)} or an array of shape (n_columns, 2), "
                f"here ({len(names)}, 2), got {brief(domain)}"
            )
        pairs = {k: pair for k, pair in enumerate(array) if not pd.isna(pair).all()}
    result = {}
    for k, pair in pairs.items():
        if np.shape(pair) != (2,):
            raise ValueError(f"domain[{names[k]!r}] must be (low, high), got {brief(pair)}")
        low, high = (number(end, f"an end of domain[{names[k]!r}]") for end in pair)
        if not np.isfinite([low, high]).all() or low > high:
            raise ValueError(
                f"domain[{names[k]!r}] must be (low, high) with low <= high, both finite, got "
                f"({low}, {high})"
            )
        result[k] = (low, high)
    return result


def named_outputs(names: Any, known: list[str]) -> list[str]:
    """Return the names of the outputs: those that the user gave, if any."""
    if names is None:
        return known
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"output_names must be a list of str, got {brief(names)}")
    if len(names) != len(known):
        raise ValueError(
            f"output_names={brief(list(names))} names {len(names)} outputs, but the model has "
            f"{len(known)}: {brief(known)}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"output_names must all be different, got {brief(list(names))}")
    return list(names)


def _check_folds(folds: Any) -> None:
    whole = isinstance(folds, int | np.integer) and not isinstance(folds, bool)
    if not (isinstance(folds, str) and folds == "auto") and not (whole and folds >= 0):
        raise ValueError(f"folds must be 'auto', 0 or an integer of at least 2, got {brief(folds)}")
    if whole and folds == 1:
        raise ValueError(
            "folds must be at least 2, got 1: an error is the spread between folds; 0 is for none"
        )


def check_n_folds(folds: Any, n_rows: int) -> None:
    """Raise if there are more folds than rows."""
    if folds != "auto" and folds > n_rows:
        raise ValueError(
            f"folds must be at most the number of background rows of positive weight, which is "
            f"{n_rows}, got {folds}"
        )


def check_parameters(explainer: Any) -> None:
    """Refuse invalid parameters before anything is computed."""
    for name in ("tol", "max_evals"):
        value: Any = getattr(explainer, name)
        if not isinstance(value, Real) or not float(value) > 0:
            raise ValueError(f"{name} must be a positive number, got {brief(value)}")
    verbose = explainer.verbose
    if verbose is not None and not isinstance(verbose, int | np.integer):
        raise ValueError(f"verbose must be None, 0 or 1, got {brief(verbose)}")
    check_n_jobs(explainer.n_jobs)
    _check_folds(explainer.folds)
    try:
        check_random_state(explainer.random_state)
    except ValueError as error:
        seed = brief(explainer.random_state)
        raise ValueError(
            f"random_state must be None, an int or a RandomState, got {seed}"
        ) from error
    check_device(explainer.estimator, explainer.device)
