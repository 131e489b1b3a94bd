"""What is drawn for a case: weights, groups, rows."""

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings

from tests.oracle import columns, is_polars


def examples(n):
    """The same `n` examples in every run."""
    return settings(
        max_examples=n,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def weights_of(case, seed):
    """No weights, or weights of some kind; zeros never empty a column."""
    rng = np.random.default_rng(seed)
    n = len(case.background)
    weight = [None, rng.random(n) + 0.1, rng.integers(1, 4, n), rng.random(n)][rng.integers(4)]
    if weight is not None and rng.random() < 0.6:
        weight = weight * (rng.random(n) < 0.7)
    if weight is None or not has_values(case.background, np.asarray(weight) > 0):
        return None
    return weight


def has_values(X, kept):
    """Whether every column has a value that is present and finite among the rows kept."""
    if not kept.any():
        return False
    parts = [c if isinstance(c, np.ndarray) else np.asarray(c, object) for c in columns(X)]
    return all((~pd.isna(c[kept]) & ~np.isin(c[kept], [np.inf, -np.inf])).any() for c in parts)


def column_names(case):
    """Names of the raw columns."""
    if isinstance(case.X, np.ndarray):
        return [f"x{k}" for k in range(case.n_columns)]
    return list(case.X.columns)


def groups_of(case, seed):
    """Random groups and the columns of each attribution; a group stands at its first member."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, 2, case.n_columns)  # 0: in the group, if that makes sense
    pinned = [int(k) for k in rng.permutation(np.flatnonzero(owner == 0))]
    own = [(k,) for k in range(case.n_columns) if k not in pinned]
    if not pinned:
        return None, own
    own = sorted([*own, tuple(pinned)], key=min)
    return {"the group": [column_names(case)[k] for k in pinned]}, own


def rows_as_given(X, chosen):
    """Rows in the container and the dtypes that they came in."""
    return X.iloc[chosen] if isinstance(X, pd.DataFrame) else X[chosen]


def column_as_given(X, k):
    """One column as a user would take it out of X."""
    if isinstance(X, np.ndarray):
        return X[:, k]
    return X.to_series(k) if is_polars(X) else X.iloc[:, k]
