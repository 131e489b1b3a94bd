"""How far an attribution can be from Gradient × Input [the paper's Theorem 2.1].

For a sensitive, x'-complete, linear attribution and f twice differentiable, with any x_0,

    phi(x, f) = ∇f(x_0) ⊙ (x - x') + phi(x, R),  |phi(x, R)|₂ ≤ L_x sup|R|,
    sup|R| ≤ ½ M sup|y - x_0|²,  L_x = (Σ_j TV(μ_{j,x})²)^½,  M = sup |∇²f|_op over the domain.

On [0, 1]^d, |y - x_0|² ≤ d gives the theorem's L_x d M / 2; the farthest corner gives less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import qmc

from skattr._inputs import frames
from skattr._inputs.points import one_row
from skattr.axioms.check import check
from skattr.measures import Measure
from skattr.metrics.solution_sets import as_box

POINTS = 1024  # at which a Hessian is evaluated


@dataclass(frozen=True, eq=False)
class Bound:
    """The bound of Theorem 2.1 and its parts.

    Parameters
    ----------
    value : float
        The bound on |phi(x, f) - gradient_input|₂: lipschitz · curvature · radius² / 2.
    paper : float
        The same with the diagonal of the domain in place of the farthest corner: L_x d M / 2 on
        [0, 1]^d.
    lipschitz : float
        L_x.
    curvature : float
        M.
    radius : float
        The distance from x_0 to the farthest corner of the domain.
    gradient_input : array (d,) or None
        ∇f(x_0) ⊙ (x - x'), if the gradient is known.
    applies : bool or None
        Whether the measure is sensitive and complete with respect to the baseline, as the theorem
        needs.
    curvature_is_exact : bool
        False if M is the largest of finitely many Hessians: then the bound is an estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.axioms import bound
    >>> from skattr.measures import Shapley
    >>> X = np.zeros((1, 2))  # one background row: complete with respect to it
    >>> result = bound(Shapley(), X, [0.5, 0.5], hessian=1.0, baseline=[0.0, 0.0])
    >>> bool(result.value < result.paper), result.applies
    (True, True)
    """

    value: float
    paper: float
    lipschitz: float
    curvature: float
    radius: float
    gradient_input: np.ndarray | None
    applies: bool | None
    curvature_is_exact: bool


def bound(
    measure: Measure | str,
    X: Any,
    x: Any,
    *,
    hessian: float | Callable,
    baseline: Any,
    gradient: Callable | None = None,
    x0: Any = None,
    domain: Any = None,
    sample_weight: Any = None,
) -> Bound:
    """Return how far attributions of a smooth model can be from Gradient × Input.

    Parameters
    ----------
    measure : Measure or str
        Sensitive and complete with respect to the baseline, or the theorem does not apply.
    X : array (n, d) or DataFrame of numbers
        The background.
    x : array (d,)
        The explained point.
    hessian : float or callable
        A bound M on |∇²f|_op over the domain, or y (n, d) → (n, d, d), which is evaluated at the
        corners (of few columns) and at 1024 points: an estimate of M from below.
    baseline : array (d,)
        x'.
    gradient : callable, optional
        y (n, d) → (n, d), for `gradient_input`.
    x0 : array (d,), optional
        Where the gradient is taken; x by default.
    domain : array (d, 2), optional
        The domain, [0, 1]^d by default.
    sample_weight : array (n,), optional
        Weights of the background's rows.

    Returns
    -------
    Bound

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.measures import Shapley
    >>> X = np.zeros((1, 2))  # one background row: complete with respect to it
    >>> result = bound(Shapley(), X, [1.0, 1.0], hessian=0.0, baseline=[0.0, 0.0])
    >>> float(result.value)  # a linear model: its attributions are Gradient × Input
    0.0
    """
    X = frames.as_table(X)
    d = len(frames.labels(X))
    x, baseline = _point(x, "x"), _point(baseline, "baseline")
    box = as_box(domain, d)
    center = x if x0 is None else _point(x0, "x0")
    for name, point in (("x", x), ("baseline", baseline), ("x0", center)):
        if point.shape != (d,) or (point < box[:, 0]).any() or (point > box[:, 1]).any():
            raise ValueError(f"{name} must be a point of the domain, which has {d} columns, got "
                             f"{point.tolist()}; give domain")  # fmt: skip
    row = one_row(x, X)
    table = check(measure, X, sample_weight=sample_weight, baseline=baseline, points=row,
                  domain=box)  # fmt: skip
    needed = [table[name].holds for name in ("sensitivity", "completeness")]
    applies = False if False in needed else None if None in needed else True
    lipschitz = float(np.sqrt((table.total_variation[0] ** 2).sum()))
    curvature, exact = _curvature(hessian, box)
    radius = float(np.sqrt((np.maximum(center - box[:, 0], box[:, 1] - center) ** 2).sum()))
    diagonal = float((np.diff(box, axis=1) ** 2).sum())
    start = None
    if gradient is not None:
        start = np.asarray(gradient(center[None]), float)[0] * (x - baseline)
    return Bound(
        lipschitz * curvature * radius**2 / 2, lipschitz * curvature * diagonal / 2, lipschitz,
        curvature, radius, start, applies, exact,
    )  # fmt: skip


def _point(point: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(point, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array (d,) of numbers, got {point!r}") from error


def _curvature(hessian: float | Callable, box: np.ndarray) -> tuple[float, bool]:
    """Return M, and whether it is exact: a number rather than a maximum over points."""
    if isinstance(hessian, Real):
        if not 0 <= float(hessian) < np.inf:
            raise ValueError(f"hessian must be a number of at least 0, got {hessian!r}")
        return float(hessian), True
    if not callable(hessian):
        raise TypeError(f"hessian must be a number or a function, got {type(hessian).__name__}")
    d = len(box)
    points = qmc.Sobol(d, scramble=False).random(POINTS)
    if d <= 10:
        corners = np.array(np.meshgrid(*[[0.0, 1.0]] * d)).reshape(d, -1).T
        points = np.concatenate([points, corners])
    matrices = np.asarray(hessian(box[:, 0] + points * np.diff(box)[:, 0]), float)
    if matrices.shape != (len(points), d, d):
        raise ValueError(f"hessian must return shape {(len(points), d, d)}, got {matrices.shape}")
    return float(np.abs(np.linalg.eigvalsh(matrices)).max()), False
