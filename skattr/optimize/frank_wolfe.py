"""Steepest descent in the space of measures, on finitely many atoms.

See docs/mathematics.md, section 8.

The paper's future work, after Molchanov and Zuyev (2002). Attributions are linear in the measure,
so that on atoms y_a with weights c ≥ 0 of sum `mass` (Frank and Wolfe, 1956)

    phi_m = Σ_a c_a F_ma,  F_ma = f_m(y_a), or f_m(high_j, y_a) - f_m(low_j, y_a) for pairs,
    g_a = ∂L/∂c_a = Σ_m L'(phi_m) F_ma,  gap = ⟨g, c⟩ - mass · min g ≥ L(c) - min L if L is convex.

Each step moves weight from the worst atom that has some to the best one (pairwise steps, which
converge linearly on convex losses), as far as a line search says, and then the weights of the atoms
that have some by a Newton step. O(models × atoms) per step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skattr._utils.messages import warn
from skattr._utils.progress import Progress
from skattr.measures import Atoms
from skattr.metrics.linear import as_models
from skattr.metrics.solution_sets import as_box
from skattr.optimize.losses import NAMED

CONSTRAINTS = ("sensitive", "probability", None)
SECANTS = 40  # of a line search, at most
NUDGE, RIDGE = 1e-6, 1e-10  # of Newton steps: for differences of slopes, and regularisation


class FrankWolfeMeasure(BaseEstimator):
    """A measure learned by steepest descent, from models whose attributions should be right.

    Experimental. Learned measures beat partial dependence where a metric counts thresholds, but
    hardly ever the contrast δ_{e_j} - δ_0 of the ends of a column. Most of the gain comes from mass
    0 and sensitivity, which the constraint "sensitive" has by construction.
    `python -m benchmarks choosing` prints the comparison.

    Parameters
    ----------
    atoms : array (n_atoms, d)
        The points that the measure may use, inside the domain.
    loss : {"squared"}, or callable
        loss(phi, target) → value and derivative, (m,). `SquaredLoss`, `ThresholdLoss(alpha)`.
    constraint : {"sensitive", "probability", None}, default="sensitive"
        - "sensitive": pairs δ_(high_j, y) - δ_(low_j, y): features that a model ignores get 0.
        - "probability": positive, of the mass `mass`.
        - None: signed, of a total variation of at most `mass`.
    mass : float, default=1.0
        The sum of the weights of pairs or atoms.
    domain : array (d, 2), optional
        Low and high of each feature, [0, 1]^d by default.
    tol : float, default=1e-6
        The gap at which descent stops.
    max_iter : int, default=20_000
        The largest number of steps per feature, after which a larger gap is a warning.
    verbose : int, optional
        Whether to show progress: 1 always, 0 never, by default if it takes long.

    Attributes
    ----------
    weights_ : array (d, n_atoms)
        Row j: the weights of the atoms, or pairs, of μ_j.
    gap_ : array (d,)
        The certificate: if the loss is convex, no measure under the constraint has a loss that is
        smaller by more than this.
    loss_ : array (d,)
    n_iter_ : array (d,)

    Examples
    --------
    >>> import numpy as np
    >>> atoms = np.random.default_rng(0).random((50, 3))
    >>> models = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0]])  # linear ones
    >>> learned = FrankWolfeMeasure(atoms, "squared").fit(models, models)
    >>> bool(np.allclose(learned.attributions(models), models))
    True
    """

    def __init__(
        self,
        atoms: Any,
        loss: str | Callable = "squared",
        constraint: str | None = "sensitive",
        *,
        mass: float = 1.0,
        domain: Any = None,
        tol: float = 1e-6,
        max_iter: int = 20_000,
        verbose: int | None = None,
    ) -> None:
        self.atoms = atoms
        self.loss = loss
        self.constraint = constraint
        self.mass = mass
        self.domain = domain
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, models: Any, targets: Any) -> Self:
        """Learn μ_j for every feature j.

        Parameters
        ----------
        models : list of m callables or fitted estimators, or array (m, d)
            The models to explain: functions of (n, d) arrays, or the weights of linear models.
        targets : array (m, d)
            The targets of the attributions of each feature of each model.

        Returns
        -------
        self
        """
        loss = self._check()
        atoms, box = self._points()
        functions = _functions(models, atoms.shape[1])
        wanted = np.atleast_2d(as_models(targets, "targets"))
        if wanted.shape != (len(functions), atoms.shape[1]):
            raise ValueError(
                f"targets must have shape {(len(functions), atoms.shape[1])}, one per model and "
                f"feature, got {wanted.shape}"
            )
        shared = None if self.constraint == "sensitive" else _evaluated(functions, atoms)
        results = []
        with Progress(self.verbose, len(box), "features") as bar:
            for j in range(len(box)):
                F = self._pairs(functions, atoms, box, j) if shared is None else shared
                results.append(self._descend(F, loss, wanted[:, j], j))
                bar.step("Frank-Wolfe")
        weights, losses, gaps, steps = zip(*results, strict=True)
        self.weights_ = np.stack(weights)
        self.loss_, self.gap_, self.n_iter_ = np.array(losses), np.array(gaps), np.array(steps)
        self.points_, self.box_ = atoms, box
        return self

    def attributions(self, models: Any) -> np.ndarray:
        """Return ∫ f dμ_j of other models, (m, d).

        Parameters
        ----------
        models : as in `fit`
        """
        check_is_fitted(self)
        functions = _functions(models, len(self.box_))
        points, weights = self.build()
        return _evaluated(functions, points) @ weights.T

    @property
    def measure_(self) -> Atoms:
        """The measure, for a `MeasureExplainer`; the same for every explained row."""
        check_is_fitted(self)
        return Atoms(self.build)

    def build(self, x: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the atoms that have weight, (m, d), and their signed weights, (d, m).

        The measure is global: x does not matter.

        Parameters
        ----------
        x : ignored

        Examples
        --------
        >>> import numpy as np
        >>> from skattr.optimize import FrankWolfeMeasure
        >>> atoms = np.random.default_rng(0).random((50, 3))
        >>> models = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0]])
        >>> points, weights = FrankWolfeMeasure(atoms, "squared").fit(models, models).build()
        >>> len(points) == weights.shape[1]
        True
        """
        check_is_fitted(self)
        points, weights = [], []
        for j, row in enumerate(self.weights_):
            some = np.flatnonzero(row)
            for high in (1, 0) if self.constraint == "sensitive" else (None,):
                at = self.points_[some].copy()
                if high is not None:
                    at[:, j] = self.box_[j, high]
                part = np.zeros((len(self.box_), len(some)))
                part[j] = row[some] if high != 0 else -row[some]
                points.append(at)
                weights.append(part)
        return np.concatenate(points), np.concatenate(weights, axis=1)

    def _check(self) -> Callable:
        if self.constraint not in CONSTRAINTS:
            raise ValueError(f"constraint must be one of {CONSTRAINTS}, got {self.constraint!r}")
        if not self.mass > 0 or not self.tol > 0 or not self.max_iter > 0:
            raise ValueError("mass, tol and max_iter must be positive")
        if callable(self.loss):
            return self.loss
        if self.loss not in NAMED:
            raise ValueError(
                f"loss must be a callable or one of {sorted(NAMED)}, got {self.loss!r}"
            )
        return NAMED[self.loss]

    def _points(self) -> tuple[np.ndarray, np.ndarray]:
        atoms = np.atleast_2d(as_models(self.atoms, "atoms"))
        box = as_box(self.domain, atoms.shape[1])
        outside = ((atoms < box[:, 0]) | (atoms > box[:, 1])).any(axis=1)
        if outside.any():
            first = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"atoms must lie in the domain, got {int(outside.sum())} outside, first atom "
                f"{first} = {atoms[first].tolist()}; move them, or give domain"
            )
        return atoms, box

    def _pairs(
        self, functions: list[Callable], atoms: np.ndarray, box: np.ndarray, j: int
    ) -> np.ndarray:
        ends = []
        for end in (1, 0):
            points = atoms.copy()
            points[:, j] = box[j, end]
            ends.append(_evaluated(functions, points))
        return ends[0] - ends[1]

    def _descend(
        self, F: np.ndarray, loss: Callable, target: np.ndarray, j: int
    ) -> tuple[np.ndarray, float, float, int]:
        n = F.shape[1]
        if self.constraint is None:  # a signed ball is a simplex of atoms, their negatives and 0
            F = np.concatenate([F, -F, np.zeros((len(F), 1))], axis=1)
        weights, value, gap, step = descend(F, loss, target, self.mass, self.tol, self.max_iter)
        if gap > self.tol:
            warn(
                f"feature {j}: the gap is {gap:.2g} after {step} steps, above tol={self.tol:g}; "
                "raise max_iter",
                ConvergenceWarning,
            )
        if self.constraint is None:
            weights = weights[:n] - weights[n : 2 * n]
        return weights, value, gap, step


def descend(
    F: np.ndarray, loss: Callable, target: np.ndarray, mass: float, tol: float, max_iter: int
) -> tuple[np.ndarray, float, float, int]:
    """Minimise loss(F c) over c ≥ 0 of sum `mass`; return c, the loss, the gap, and the steps."""
    transposed = np.ascontiguousarray(F.T)
    c = np.zeros(F.shape[1])
    start = int(np.argmin(transposed @ loss(np.zeros(len(F)), target)[1]))
    c[start] = mass
    phi = mass * F[:, start]
    gap, step = np.inf, 0
    for step in range(max_iter + 1):
        value, slope = loss(phi, target)
        g = transposed @ slope
        best = int(np.argmin(g))
        gap = float(g @ c - mass * g[best])
        if gap <= tol or step == max_iter:
            break
        active = np.flatnonzero(c)
        worst = int(active[np.argmax(g[active])])
        move = transposed[best] - transposed[worst]
        length = _line_search(loss, phi, move, target, c[worst])
        phi = phi + length * move
        c[best] += length
        c[worst] = 0.0 if length == c[worst] else c[worst] - length
        _correct(transposed, loss, target, phi, c)
        c *= mass / c.sum()
        phi = F @ c
    return c, value, max(gap, 0.0), step


def _correct(
    transposed: np.ndarray, loss: Callable, target: np.ndarray, phi: np.ndarray, c: np.ndarray
) -> None:
    """Move the weights of atoms that have some by a Newton step, in place; their sum is kept.

    The curvature of the loss is estimated from differences of its slope. If it is wrong, the step
    is worse, but the gap remains a certificate.
    """
    active = np.flatnonzero(c)
    if len(active) < 2:
        return
    columns = transposed[active]  # (s, m)
    slope = loss(phi, target)[1]
    shift = NUDGE * (1 + float(np.abs(phi).max()))
    curvature = np.maximum((loss(phi + shift, target)[1] - slope) / shift, 0.0)
    A = (columns * curvature) @ columns.T
    A[np.diag_indices(len(A))] += RIDGE * (np.trace(A) / len(A) + np.finfo(float).tiny)
    try:
        downhill, level = np.linalg.solve(A, np.stack([columns @ slope, np.ones(len(A))], axis=1)).T
    except np.linalg.LinAlgError:
        return
    move = downhill.sum() / level.sum() * level - downhill
    move -= move.mean()  # rounding must not change the mass
    along = move @ columns
    if not np.isfinite(along).all() or slope @ along >= 0 or move.min() >= 0:
        return
    room = np.divide(c[active], -move, out=np.full(len(move), np.inf), where=move < 0)
    first = int(np.argmin(room))
    length = _line_search(loss, phi, along, target, float(room[first]))
    c[active] = np.maximum(c[active] + length * move, 0.0)
    if length == room[first]:
        c[active[first]] = 0.0


def _line_search(
    loss: Callable, phi: np.ndarray, move: np.ndarray, target: np.ndarray, longest: float
) -> float:
    """Return where the slope along a direction changes sign, or the longest step.

    The Illinois method: secants, in which the value at an end that stays twice is halved.
    """

    def slope(length: float) -> float:
        return float(loss(phi + length * move, target)[1] @ move)

    low, high, below, above = 0.0, longest, slope(0.0), slope(longest)
    if above <= 0:
        return longest
    flat, last = 1e-12 * max(-below, above), 0
    for _ in range(SECANTS):
        if below >= -flat:
            return low
        middle = low + (high - low) * below / (below - above)
        at_middle = slope(middle)
        if abs(at_middle) <= flat:
            return middle
        if at_middle < 0:
            low, below = middle, at_middle
            above, last = (above / 2 if last < 0 else above), -1
        else:
            high, above = middle, at_middle
            below, last = (below / 2 if last > 0 else below), 1
    return low


def _functions(models: Any, d: int) -> list[Callable]:
    """Return models as functions of (n, d) arrays."""
    if not isinstance(models, list | tuple) or not all(
        callable(m) or hasattr(m, "predict") for m in models
    ):
        weights = np.atleast_2d(as_models(models, "models"))
        if weights.shape[1] != d:
            raise ValueError(f"models must have {d} weights, got {weights.shape[1]}")
        return [w.__rmatmul__ for w in weights]
    for number, model in enumerate(models):
        features = getattr(model, "n_features_in_", d)
        if features != d:
            raise ValueError(f"model {number} must have {d} features, as the atoms, got {features}")
    return [model.predict if hasattr(model, "predict") else model for model in models]


def _evaluated(functions: list[Callable], points: np.ndarray) -> np.ndarray:
    """Return f_m(y_a), (m, n_atoms)."""
    F = np.empty((len(functions), len(points)))
    for number, f in enumerate(functions):
        values = np.asarray(f(points), dtype=np.float64)
        if values.reshape(-1).shape != (len(points),):
            raise ValueError(
                f"model {number} must return one output for {len(points)} points, got shape "
                f"{values.shape}"
            )
        F[number] = values.reshape(-1)
    if not np.isfinite(F).all():
        raise ValueError("models must be finite at the atoms, got missing or infinite values")
    return F
