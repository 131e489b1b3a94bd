"""Measures given by their distribution functions g_{j,x}: ∫ f dg [the paper's appendix to 3.3].

The measure of a box is the increment of g, Δ(g; a, b) = Σ_v (-1)^|v| g(a^v : b^-v), with + at the
upper corner in every dimension. g is right-continuous inside the domain [l, u]; at a lower face the
jump from g(l) to g(l+) is an atom at l, as in the paper's 1[y > 0]. A side of the domain that is
one number is a point: no difference is taken along it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as corners
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.messages import check_flag
from skattr.measures.background import Background
from skattr.measures.written import OnDomain, as_label, as_point, ask

TRIES = 64  # points at which a suspected jump is looked for


class Stieltjes(OnDomain):
    """The increments of a function g_{j,x}: choose the attribution of indicator functions.

    Exact on trees: for a declared product in any dimension, for a general g as long as boxes × 2^d
    are at most `max_evals`. On other models a sum over a grid, with an error.

    Parameters
    ----------
    integrand : callable, or list of d callables
        g(y, x, j) → g_{j,x} at y, an array (..., d), as an array (...); x is the explained row,
        (d,), j the position of the column. Or one g_j(y, x) per column.
    product : bool, default=False
        Whether g is a product of functions of one column each. Then the integrand returns them,
        an array (..., d): entry i depends on y_i alone.
    jumps : dict or callable, optional
        Where g jumps, {column: numbers}, or jumps(x, j) → such a dict. Jumps at the lower faces
        and at the coordinates of x need not be declared.
    backend : {"numpy", "torch"}, default="numpy"
        What y and x are: arrays, or tensors on the device of the model (else on the CPU).

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> def warm_up(y, x, j):  # the paper's section 3.1: δ at x_j, uniform in the other column
    ...     return (y[..., j] >= x[j]) * y[..., 1 - j]
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.25, 0.5]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Stieltjes(warm_up)).fit(X)
    >>> explainer.explain(X[2:]).values.round(6)
    array([[0.125, 0.25 ]])
    """

    views = ("increments",)
    _functions = ()

    def __init__(
        self,
        integrand: Callable | list,
        *,
        product: bool = False,
        jumps: Any = None,
        backend: str = "numpy",
    ) -> None:
        self.integrand = integrand
        self.product = product
        self.jumps = jumps
        self.backend = backend

    def _check_parameters(self) -> None:
        super()._check_parameters()
        integrand: Any = self.integrand
        several = isinstance(integrand, list | tuple)
        if not callable(integrand) and not (several and all(callable(g) for g in integrand)):
            raise TypeError(
                "integrand must be a function g(y, x, j), or a list of functions g_j(y, x), got "
                f"{integrand!r}"
            )
        check_flag("product", self.product)

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        super()._learn(background, attributions)
        if not callable(self.integrand):
            if len(self.integrand) != len(self.names_):
                raise ValueError(
                    f"there must be one integrand per column of X, got {len(self.integrand)} for "
                    f"{len(self.names_)} columns"
                )
            if any(len(columns) > 1 for columns in attributions):
                raise ValueError("a list of integrands has none for groups; give one g(y, x, j)")
        if self.jumps is not None and not callable(self.jumps):
            self._positions(self.jumps)

    def at(self, y: Any, x: np.ndarray, columns: tuple[int, ...]) -> Any:
        """Return g, or its factors if it is a product."""
        shape = y.shape if self.product else y.shape[:-1]
        return ask(self, "integrand", self._function(columns), y, x, columns, shape)

    def _function(self, columns: tuple[int, ...]) -> Callable:
        if callable(self.integrand):
            return self.integrand
        integrand = self.integrand[columns[0]]
        return lambda y, x, j: integrand(y, x)

    def masses(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> np.ndarray:
        """Return the increments over the whole domain."""
        result = np.empty((len(X), len(attributions)))
        free = [k for k, (low, high) in enumerate(self.sides_) if high > low]
        for i in range(len(X)):
            x = as_point(frames.take_rows(X, slice(i, i + 1)))
            for a, columns in enumerate(attributions):
                result[i, a] = self._mass(x, columns, free)
        return result

    def _mass(self, x: np.ndarray, columns: tuple[int, ...], free: list[int]) -> float:
        if self.product:
            low, high = self.at(self.sides_.T.copy(), x, columns)
            return float(np.prod(np.where(self.sides_[:, 0] < self.sides_[:, 1], high - low, high)))
        signs = np.array(list(corners((0, 1), repeat=len(free)))).reshape(-1, len(free))
        y = np.repeat(self.sides_[None, :, 1], len(signs), axis=0)
        y[:, free] = np.where(signs == 1, self.sides_[free, 0], self.sides_[free, 1])
        return float(((-1.0) ** signs.sum(axis=1) * self.at(y, x, columns)).sum())

    def vertices(self, points: int, x: np.ndarray, columns: tuple[int, ...]) -> list[np.ndarray]:
        """Return an even grid, with cells between neighbouring numbers where g jumps."""
        jumps = self.jumps(x.copy(), as_label(columns)) if callable(self.jumps) else self.jumps
        positions = self._positions(jumps)
        steps = np.arange(points + 1) / points
        result = []
        for k, (low, high) in enumerate(self.sides_):
            ends = np.unique(np.r_[low * (1 - steps) + high * steps, low, high])
            inside = [p for p in positions.get(k, ()) if low < p <= high]
            at_face = low in positions.get(k, ())
            if low < x[k] <= high and self._jumps_at(k, x[k], np.nextafter(x[k], low), x, columns):
                inside.append(float(x[k]))
            if at_face or self._jumps_at(k, np.nextafter(low, np.inf), low, x, columns):
                ends = np.union1d(ends, np.nextafter(low, np.inf))
            below = [np.nextafter(p, -np.inf) for p in inside]
            result.append(np.union1d(ends, np.r_[inside, below]))
        return result

    def _jumps_at(
        self, k: int, upper: float, lower: float, x: np.ndarray, columns: tuple[int, ...]
    ) -> bool:
        """Tell whether g jumps between two neighbouring numbers of column k."""
        low, high = self.sides_.T
        if low[k] == high[k]:
            return False
        u = np.random.default_rng(0).random((TRIES, len(low)))
        u[0] = 1.0
        y = low * (1 - u) + high * u
        above, below = y.copy(), y.copy()
        above[:, k], below[:, k] = upper, lower
        g = self.at(np.concatenate([above, below, y]), x, columns)
        g = g[:, k] if self.product else g
        change = np.abs(g[:TRIES] - g[TRIES : 2 * TRIES])
        # a smooth g changes a little between neighbours, too
        smooth = max(1e-9, 1e3 * abs(upper - lower) / (high[k] - low[k]))
        return bool((change > smooth * np.abs(g).max()).any())

    def _positions(self, jumps: Any) -> dict[int, np.ndarray]:
        """Return the jumps of each column that has any, by its position."""
        if jumps is None:
            return {}
        if not isinstance(jumps, dict):
            raise TypeError(f"jumps must be a dict or a function, got {jumps!r}")
        result = {}
        for name, numbers in jumps.items():
            known = name in self.names_
            if not known and not (isinstance(name, int) and 0 <= name < len(self.names_)):
                raise ValueError(f"jumps must name columns of {self.names_}, got {name!r}")
            k = self.names_.index(name) if known else name
            array = np.atleast_1d(np.asarray(numbers, dtype=np.float64))
            if np.isnan(array).any():
                raise ValueError(f"jumps of column {name!r} must be numbers, got {numbers!r}")
            result[k] = array
        return result
