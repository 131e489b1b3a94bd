"""The centre of mass that is optimal for as many linear models as possible.

See docs/mathematics.md, section 8.

Conditions are |w·m| ≥ α for models whose golden set holds j, and for precision and F1 |w·m| ≤ α for
the others. With binaries p, q, b for the conditions that are met, and M large enough to lift one,

    w·m ≥ α - M (1 - p),  w·m ≤ -α + M (1 - q),  p + q ≤ 1,  |w·m| ≤ α + M (1 - b),

the weight of the conditions met is maximised by a mixed-integer linear program (HiGHS, no gap). A
condition of recall weighs 1 / |golden set| of its model, one of precision or F1 weighs 1: precision
itself is a ratio over features that does not separate. Then a linear program moves m away from the
boundary, as far from all conditions met as possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from skattr.metrics.linear import as_models, golden_set
from skattr.metrics.solution_sets import SolutionSet, solution_set

TOLERANCE = 1e-7  # of the solver: smaller margins are 0


@dataclass(frozen=True, eq=False)
class OptimalCenter:
    """The result of `optimal_center`.

    Parameters
    ----------
    center : array (d,)
        A centre of mass that meets conditions of the largest weight. All measures with this centre
        are equally good for linear models, the simplest being δ_center.
    margin : float
        All conditions met are met by this much: |w·center| is at least alpha + margin, or at most
        alpha - margin. Strict conditions hold only if it is positive.
    bound : float
        No centre meets conditions of more weight.
    total : float
        The weight of all conditions.
    certified_empty : bool
        Whether the solution set is empty: no measure meets all conditions.
    met : array (m,) of bool
        The models whose condition is met; those without one count as met.

    Examples
    --------
    >>> from skattr.optimize import optimal_center
    >>> result = optimal_center([[1.0, -1.0], [1.0, 0.5]], 0, alpha=0.5, beta=0.1)
    >>> result.met, result.bound == result.total
    (array([ True,  True]), True)
    """

    center: np.ndarray
    margin: float
    bound: float
    total: float
    certified_empty: bool
    met: np.ndarray


def optimal_center(weights: Any, j: int, metric: str = "recall", *, alpha: float, beta: float,
                   domain: Any = None) -> OptimalCenter:  # fmt: skip
    """Return the centre of mass of μ_j that is best for a class of linear models.

    Parameters
    ----------
    weights : array (d,) or (m, d)
        The models, or the gradients of a network's regions.
    j : int
        The feature.
    metric : {"recall", "precision", "f1"}
        "recall" asks for |w·m| ≥ alpha where j is golden, the others also for |w·m| < alpha where
        it is not.
    alpha, beta : float
        As in `skattr.metrics.recall`.
    domain : array (d, 2), optional
        Where the centre may lie, [0, 1]^d by default. For signed measures of mass 0 these are
        first moments, and the box may hold negative numbers.

    Returns
    -------
    OptimalCenter
        `center`, `margin`, `bound`, `total`, `certified_empty`, `met`.

    Examples
    --------
    >>> result = optimal_center([[1.0, -1.0], [1.0, 0.5]], 0, alpha=0.5, beta=0.1)
    >>> result.center.tolist(), result.certified_empty
    ([1.0, 0.0], False)
    >>> optimal_center([0.2, 0.2], 0, alpha=0.5, beta=0.1).certified_empty
    True
    """
    models = np.atleast_2d(as_models(weights, "weights"))
    wanted = solution_set(models, j, metric, alpha=alpha, beta=beta, domain=domain)
    golden = golden_set(models, beta)
    if not golden[:, j].any():
        raise ValueError(
            f"feature {j} is in no model's golden set, as no weight is larger than beta={beta}; "
            "lower beta, or leave the feature out"
        )
    share = 1 / golden[golden[:, j]].sum(axis=1) if metric == "recall" else np.ones(len(wanted.far))
    price = np.concatenate([share, np.ones(len(wanted.near))])
    sides, bound = _most(wanted, price)
    center, margin = _widest(wanted, sides)
    total = float(price.sum())
    empty = bool(bound < total - 1e-6 * price.min())
    if not empty and len(wanted.near) and margin <= TOLERANCE:  # is a strict condition met?
        center, margin = _strictly(wanted)
        empty = margin <= TOLERANCE
    met = np.ones(len(models), bool)
    met[golden[:, j]] = sides[: len(wanted.far)] != 0
    if metric != "recall":
        met[~golden[:, j]] = sides[len(wanted.far) :] != 0
    return OptimalCenter(center, float(margin), float(bound), total, empty, met)


def _most(wanted: SolutionSet, price: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the side of each condition, 0 if it is not met, and a bound on the weight met."""
    n_far, n_near, d = len(wanted.far), len(wanted.near), len(wanted.box)
    rows = _conditions(wanted)
    both = np.zeros((n_far, d + 2 * n_far + n_near))
    both[np.arange(n_far), d + np.arange(n_far)] = 1
    both[np.arange(n_far), d + n_far + np.arange(n_far)] = 1
    cost = -np.concatenate([np.zeros(d), price[:n_far], price[:n_far], price[n_far:]])
    result = milp(
        cost,
        constraints=[rows, LinearConstraint(both, -np.inf, 1)],
        integrality=np.arange(len(cost)) >= d,
        bounds=_bounds(wanted, len(cost) - d),
        options={"mip_rel_gap": 0.0},
    )
    if result.x is None:
        raise RuntimeError(f"HiGHS found no centre: {result.message}")
    chosen = np.round(result.x[d:]).astype(int)
    sides = np.concatenate([chosen[:n_far] - chosen[n_far : 2 * n_far], chosen[2 * n_far :]])
    reached = float((price * np.abs(sides)).sum())
    bound = -float(result.mip_dual_bound)
    # weights met are sums of prices: a bound within rounding of one is that one
    return sides, reached if abs(bound - reached) < 1e-6 * price.min() else bound


def _conditions(wanted: SolutionSet) -> LinearConstraint:
    """Return A (m, p, q, b) ≤ limit: p, q are sides of far conditions, b near ones."""
    n_far, n_near = len(wanted.far), len(wanted.near)
    far_low, far_high = _range(wanted.far, wanted.box)
    near_low, near_high = _range(wanted.near, wanted.box)
    up, down = wanted.far_alpha - far_low, wanted.far_alpha + far_high
    over = np.maximum(near_high, -near_low) - wanted.near_alpha
    none = np.zeros
    A = np.block([
        [-wanted.far, np.diag(up), none((n_far, n_far + n_near))],
        [wanted.far, none((n_far, n_far)), np.diag(down), none((n_far, n_near))],
        [wanted.near, none((n_near, 2 * n_far)), np.diag(over)],
        [-wanted.near, none((n_near, 2 * n_far)), np.diag(over)],
    ])  # fmt: skip
    limit = np.concatenate([
        up - wanted.far_alpha, down - wanted.far_alpha, over + wanted.near_alpha,
        over + wanted.near_alpha,
    ])  # fmt: skip
    return LinearConstraint(A, -np.inf, limit)


def _range(weights: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest w·m on the box."""
    ends = weights[:, :, None] * box
    return ends.min(axis=2).sum(axis=1), ends.max(axis=2).sum(axis=1)


def _bounds(wanted: SolutionSet, n_binaries: int) -> Bounds:
    low = np.concatenate([wanted.box[:, 0], np.zeros(n_binaries)])
    high = np.concatenate([wanted.box[:, 1], np.ones(n_binaries)])
    return Bounds(low, high)


def _widest(wanted: SolutionSet, sides: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the m in the box with the largest margin, given the sides of the conditions met."""
    n_far = len(wanted.far)
    far, near = sides[:n_far], sides[n_far:] != 0
    side = far[far != 0][:, None]
    rows = [-side * wanted.far[far != 0], wanted.near[near], -wanted.near[near]]
    limits = [-wanted.far_alpha[far != 0], wanted.near_alpha[near], wanted.near_alpha[near]]
    A, limit = np.concatenate(rows), np.concatenate(limits)
    if len(A) == 0:
        return wanted.box.mean(axis=1), 0.0
    result = linprog(
        np.append(np.zeros(A.shape[1]), -1.0),
        A_ub=np.column_stack([A, np.ones(len(A))]),
        b_ub=limit,
        bounds=[*map(tuple, wanted.box), (None, None)],
    )
    if result.x is None:
        raise RuntimeError(f"HiGHS found no margin: {result.message}")
    center = np.clip(result.x[:-1], wanted.box[:, 0], wanted.box[:, 1])
    return center, float((limit - A @ center).min())


def _strictly(wanted: SolutionSet) -> tuple[np.ndarray, float]:
    """Return the m that meets all conditions, near ones by the largest margin, and the margin."""
    n_far, n_near, d = len(wanted.far), len(wanted.near), len(wanted.box)
    rows = _conditions(wanted)
    column = np.zeros((rows.A.shape[0], 1))
    column[2 * n_far :] = 1  # near: ± w·m + margin ≤ α
    one_side = np.zeros((n_far, d + 2 * n_far + n_near + 1))
    one_side[np.arange(n_far), d + np.arange(n_far)] = 1
    one_side[np.arange(n_far), d + n_far + np.arange(n_far)] = 1
    bounds = _bounds(wanted, 2 * n_far + n_near)
    low, high = np.append(bounds.lb, 0.0), np.append(bounds.ub, wanted.near_alpha.max())
    low[d + 2 * n_far : -1] = 1  # all near conditions
    cost = np.append(np.zeros(len(low) - 1), -1.0)
    result = milp(
        cost,
        constraints=[
            LinearConstraint(np.column_stack([rows.A, column]), -np.inf, rows.ub),
            LinearConstraint(one_side, 1, 1),
        ],
        integrality=(np.arange(len(cost)) >= d) & (np.arange(len(cost)) < len(cost) - 1),
        bounds=Bounds(low, high),
        options={"mip_rel_gap": 0.0},
    )
    if result.x is None:  # only within the solver's tolerance was there a solution
        return wanted.box.mean(axis=1), 0.0
    return np.clip(result.x[:d], wanted.box[:, 0], wanted.box[:, 1]), float(result.x[-1])
