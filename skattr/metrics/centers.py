"""The centre of mass of each μ_{j,x}, which determines the attributions of linear models."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._inputs.checks import read_domain
from skattr._inputs.points import one_row
from skattr.measures import Measure, as_measure
from skattr.measures.signed.decomposition import Decomposition


def center_of_mass(
    measure: Measure | str, X: Any, x: Any = None, *, sample_weight: Any = None, domain: Any = None
) -> np.ndarray:
    """Return ∫ y dμ_{j,x} / mass of μ_{j,x}, one row per attribution j.

    Parameters
    ----------
    measure : Measure or str
        The measure, which is fitted on the background.
    X : DataFrame or array (n, d)
        The background, all numbers.
    x : one row, optional
        The explained point, for measures that depend on it; the first row of X by default.
    sample_weight : array (n,), optional
        Weights of the background's rows.
    domain : array (d, 2) or dict, optional
        The domain of measures that have one, as uniform measures.

    Returns
    -------
    array (d, d)
        Row j is the centre of mass of μ_{j,x}, an argument of `solution_set(...).contains`.

    Examples
    --------
    >>> from skattr.measures import PartialDependence
    >>> center_of_mass(PartialDependence(), [[0.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    array([[1. , 0.5],
           [0. , 1. ]])
    """
    moments, mass = first_moments(measure, X, x, sample_weight=sample_weight, domain=domain)
    without = np.flatnonzero(mass == 0)
    if len(without):
        names = [frames.labels(frames.as_table(X))[j] for j in without.tolist()]
        raise ValueError(
            f"the measures of {names} have mass 0, and no centre of mass; use first_moments"
        )
    return moments / mass[:, None]


def first_moments(
    measure: Measure | str, X: Any, x: Any = None, *, sample_weight: Any = None, domain: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return ∫ y dμ_{j,x}, (d, d), one row per attribution j, and the masses, (d,).

    The attribution of f = w·y + b is w·(row j) + b·(mass j).

    Parameters
    ----------
    measure, X, x, sample_weight, domain
        As in `center_of_mass`.

    Examples
    --------
    >>> from skattr.measures import PartialDependence
    >>> moments, masses = first_moments(PartialDependence(), [[0.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    >>> moments
    array([[1. , 0.5],
           [0. , 1. ]])
    >>> masses
    array([1., 1.])
    """
    X = frames.as_table(X)
    names = frames.labels(X)
    fitted = Decomposition(as_measure(measure), X, sample_weight, read_domain(domain, names))
    row = frames.take_rows(X, slice(0, 1)) if x is None else one_row(x, X)
    measures = fitted.at(row)
    moments = np.stack([mu.moments for mu in measures])
    unknown = [names[k] for k in np.flatnonzero(~np.isfinite(moments).all(axis=0))]
    unknown += [n for k, n in enumerate(names) if fitted.numbers.levels[k] and n not in unknown]
    if unknown:
        raise ValueError(
            f"the columns {unknown} have no first moments under {measure!r}: levels, missing or "
            "infinite values, or a law that is not written out"
        )
    return moments, np.array([mu.mass for mu in measures])
