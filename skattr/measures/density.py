"""Measures with a density h_{j,x} on the domain [the paper's appendix to 3.3]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skattr._inputs import modules
from skattr.measures.factors.quadrature import rule_on
from skattr.measures.written import OnDomain, as_point, ask


class Density(OnDomain):
    """h_{j,x}(y) dy on the domain, with a function h of any sign and mass.

    A column whose side of the domain is one number is a point: nothing is integrated over it.

    Parameters
    ----------
    density : callable
        h(y, x, j) → the density at y, an array (..., d), as an array (...); x is the explained row,
        (d,), j the position of the column.
    backend : {"numpy", "torch"}, default="numpy"
        What y and x are: arrays, or tensors on the device of the model (else on the CPU).

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> linear = Density(lambda y, x, j: 12 * (y[..., j] - 0.5))  # mass 0: the slope along j
    >>> explainer = MeasureExplainer(lambda X: X @ [2.0, 3.0] + 5, linear).fit(X)
    >>> explainer.explain(X[:1]).values.round(6)
    array([[2., 3.]])
    """

    views = ("density", "transport")
    _functions = ("density",)

    def __init__(self, density: Callable, *, backend: str = "numpy") -> None:
        self.density = density
        self.backend = backend

    @property
    def n_uniforms(self) -> int:
        """One per column."""
        return len(self.sides_)

    def at(self, y: Any, x: np.ndarray, columns: tuple[int, ...]) -> Any:
        """Return h."""
        return ask(self, "density", self.density, y, x, columns, y.shape[:-1])

    def transport(self, u: Any, x: Any, columns: tuple[int, ...]) -> tuple[Any, Any]:
        """Return points that are uniform on the domain, weighted by volume times density."""
        low, high = self.sides_.T
        volume = float(np.prod(np.where(high > low, high - low, 1.0)))
        y = modules.like(low, u) * (1 - u) + modules.like(high, u) * u
        weights = volume * self.at(y, as_point(x), columns)
        return (self.points(y) if isinstance(y, np.ndarray) else y), weights

    def axes(self, points: int, rule: str) -> tuple[list, list]:
        """Return the rule's nodes and weights on each side of the domain."""
        nodes, weights = [], []
        for low, high in self.sides_:
            at, share = rule_on(points, rule) if high > low else (np.zeros(1), np.ones(1))
            nodes.append(low * (1 - at) + high * at)
            weights.append(share * (high - low if high > low else 1.0))
        return nodes, weights
