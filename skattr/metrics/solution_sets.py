"""Sets of centres of mass that make a measure optimal [the paper's section 4.3].

For a linear model w with golden set D, a probability μ_j with centre of mass m is optimal if

    recall:     |w·m| ≥ α  if j is in D,
    precision:  |w·m| ≥ α  if j is in D,  |w·m| < α  if not.

For recall this is also necessary if it can be met; for precision it is only sufficient (one hit
and nothing else has precision 1). For a class of models, or the regions of a network, all
conditions must hold at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr.metrics.linear import as_models, check_thresholds, golden_set

METRICS = ("recall", "precision", "f1")


@dataclass(frozen=True, eq=False)
class SolutionSet:
    """{m in the box : |far·m| ≥ far_alpha and |near·m| < near_alpha}, row by row.

    Parameters
    ----------
    box : array (d, 2)
        The domain: low and high of each feature.
    far, far_alpha : array (p, d), (p,)
        Models that must retrieve the feature.
    near, near_alpha : array (q, d), (q,)
        Models that must not.

    Examples
    --------
    >>> from skattr.metrics import solution_set
    >>> first = solution_set([1.0, -1.0], 0, alpha=0.5, beta=0.1)
    >>> both = first.intersect(solution_set([1.0, 1.0], 0, alpha=0.5, beta=0.1))
    >>> both.contains([1.0, 0.2]), both.contains([0.2, 0.2])
    (True, False)
    """

    box: np.ndarray
    far: np.ndarray
    far_alpha: np.ndarray
    near: np.ndarray
    near_alpha: np.ndarray

    def contains(self, m: Any) -> bool | np.ndarray:
        """Tell whether a centre of mass is optimal: the paper's sanity check for a measure.

        Parameters
        ----------
        m : array (d,) or (n, d)
            Centres of mass. One outside the domain is in no solution set.

        Returns
        -------
        bool, or array (n,)
        """
        points = as_models(m, "m")
        if points.shape[-1] != len(self.box):
            raise ValueError(f"m must have {len(self.box)} coordinates, got {points.shape[-1]}")
        inside = ((points >= self.box[:, 0]) & (points <= self.box[:, 1])).all(axis=-1)
        far = np.abs(points @ self.far.T) >= self.far_alpha
        near = np.abs(points @ self.near.T) < self.near_alpha
        result = inside & far.all(axis=-1) & near.all(axis=-1)
        return bool(result) if points.ndim == 1 else result

    def intersect(self, *others: SolutionSet) -> SolutionSet:
        """Return the centres that are optimal for all of them: a class of models.

        Parameters
        ----------
        *others : SolutionSet
            Of the same domain.
        """
        for other in others:
            if other.box.shape != self.box.shape:
                raise ValueError(
                    f"solution sets must have the same number of features, got {len(self.box)} and "
                    f"{len(other.box)}"
                )
            if not np.array_equal(other.box, self.box):
                raise ValueError("solution sets must have the same domain")
        everyone = (self, *others)
        return SolutionSet(
            self.box,
            np.concatenate([each.far for each in everyone]),
            np.concatenate([each.far_alpha for each in everyone]),
            np.concatenate([each.near for each in everyone]),
            np.concatenate([each.near_alpha for each in everyone]),
        )

    def __repr__(self) -> str:
        return (
            f"<SolutionSet: {len(self.box)} features, {len(self.far)} conditions |w·m| ≥ α, "
            f"{len(self.near)} conditions |w·m| < α>"
        )


def solution_set(model: Any, j: int, metric: str = "recall", *, alpha: float, beta: float,
                 domain: Any = None) -> SolutionSet:  # fmt: skip
    """Return the centres of mass that are optimal for feature j.

    Parameters
    ----------
    model : array (d,) or (m, d)
        The weights of a linear model, of a class of them, or the gradients of a network's regions.
        All conditions must hold at once.
    j : int
        The feature.
    metric : {"recall", "precision", "f1"}
        The metric to maximise; "f1" has the conditions of both.
    alpha, beta : float
        As in `recall`.
    domain : array (d, 2), optional
        Where centres may lie, [0, 1]^d by default.

    Returns
    -------
    SolutionSet
        With `contains(m)` and `intersect(*others)`.

    Examples
    --------
    >>> S = solution_set([1.0, -1.0], 0, "recall", alpha=0.5, beta=0.1)
    >>> S.contains([1.0, 0.2]), S.contains([0.5, 0.4])
    (True, False)
    """
    check_thresholds(alpha, beta)
    check_metric(metric)
    weights = np.atleast_2d(as_models(model, "model"))
    d = weights.shape[1]
    check_feature(j, d)
    golden = golden_set(weights[:, j], beta)
    far, near = weights[golden], weights[~golden]
    if metric == "recall":
        near = near[:0]
    return SolutionSet(
        as_box(domain, d), far, np.full(len(far), float(alpha)), near,
        np.full(len(near), float(alpha)),
    )  # fmt: skip


def check_metric(metric: Any) -> None:
    """Raise if a metric has no solution set."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {METRICS}, got {metric!r}")


def check_feature(j: Any, d: int) -> None:
    """Raise if a feature does not exist."""
    if not isinstance(j, int | np.integer) or isinstance(j, bool) or not 0 <= j < d:
        raise ValueError(f"j must be the position of a feature, 0 to {d - 1}, got {j!r}")


def as_box(domain: Any, d: int) -> np.ndarray:
    """Return the domain as (d, 2), [0, 1]^d by default."""
    if domain is None:
        return np.tile([0.0, 1.0], (d, 1))
    box = np.array(domain, dtype=np.float64)
    if box.shape != (d, 2):
        raise ValueError(f"domain must have shape (n_features, 2) = ({d}, 2), got {box.shape}")
    if not np.isfinite(box).all() or (box[:, 0] > box[:, 1]).any():
        raise ValueError("domain must have rows low <= high, both finite")
    return box
