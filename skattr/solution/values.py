"""Values of attributions with their errors and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skattr._utils.messages import warn
from skattr.engines import RunOptions
from skattr.engines.base import join_certificates

OVERFLOW = "is not finite: sums of predictions overflow; explain the model in other units"


class Values(NamedTuple):
    """The attributions of some rows.

    Errors are None if the values are exact; the offset is (k,), or has the shape of the values if a
    mass depends on x or j.
    """

    values: np.ndarray  # (n, g, k)
    error: np.ndarray | None  # standard errors
    offset: np.ndarray  # what centring subtracts
    centered_error: np.ndarray | None
    background_error: np.ndarray | None  # standard errors of a finite background
    centered_background_error: np.ndarray | None
    certificate: dict[str, Any]

    @classmethod
    def joined(cls, parts: Iterable[Values], n: int) -> Values:
        """Concatenate the rows of blocks, n in all."""
        whole: list[Any] | None = None
        certificates = []
        start = 0
        for part in parts:
            arrays: list[Any] = list(part[:-1])
            certificates.append(part.certificate)
            rows = len(part.values)
            if whole is None:
                whole = [
                    array if array is None or array.ndim == 1 else np.empty((n, *array.shape[1:]))
                    for array in arrays
                ]
            for total, array in zip(whole, arrays, strict=True):
                if array is not None and array.ndim > 1:
                    total[start : start + rows] = array
            start += rows
        assert whole is not None
        return cls._make([*whole, join_certificates(*certificates)])


def check_finite(values: np.ndarray, names: Sequence[Any]) -> None:
    """Raise, naming the attribution and the row, if values (n, g, k) are not finite."""
    if not np.isfinite(values).all():
        row, attribution, _ = np.argwhere(~np.isfinite(values))[0].tolist()
        raise ValueError(f"the attribution of {names[attribution]!r} in row {row} {OVERFLOW}")


def check_finite_means(mean: np.ndarray, spread: np.ndarray | None) -> None:
    """Raise if the mean of f or its spread is not finite."""
    if not np.isfinite(mean).all():
        raise ValueError(f"the mean of f over the background {OVERFLOW}")
    if spread is not None and not np.isfinite(spread).all():
        raise ValueError(f"the spread of f over the background {OVERFLOW}")


def warn_unconverged(
    errors: np.ndarray | None, spread: np.ndarray | None, options: RunOptions
) -> None:
    """Warn about values that stopped at max_evals with a standard error above tol."""
    if errors is None:
        return
    sizes = errors / spread  # (n, g, k)
    far = sizes > options.tol * (1 + 1e-9)  # sums of terms round
    if far.any():
        n_far, n = far.any(axis=2).sum(), far[:, :, 0].size
        warn(
            f"{n_far} of {n} values stopped at max_evals={options.max_evals} with a standard "
            f"error above tol={options.tol:g} (in units of the spread of f), the largest "
            f"{sizes[far].max():.2g}; raise max_evals or tol",
            ConvergenceWarning,
        )
