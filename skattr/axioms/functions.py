"""Simple functions whose integrals show that a signed measure violates an axiom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.measures.learned.bins import as_numbers
from skattr.measures.signed.decomposition import Numbers
from skattr.measures.signed.measure import Signed


@dataclass(frozen=True)
class Cell:
    """1 where columns lie above numbers or have values; without conditions 1 everywhere.

    Parameters
    ----------
    above : tuple of (position, name, number)
    equal : tuple of (position, name, value), None is missing

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.axioms import Cell
    >>> cell = Cell(above=((0, "a", 0.5),), equal=((1, "b", 2.0),))
    >>> cell(np.array([[1.0, 2.0], [0.0, 2.0]]))
    array([1., 0.])
    >>> print(cell)
    1[a > 0.5, b = 2]
    """

    above: tuple = ()
    equal: tuple = ()

    def __call__(self, X: Any) -> np.ndarray:
        """Return its values at rows, (n,)."""
        inside = np.ones(len(X), bool)
        for k, name, number in self.above:
            inside &= as_numbers(frames.column(X, k), name) > number
        for k, name, value in self.equal:
            inside &= _equal(frames.column(X, k), name, value)
        return inside.astype(np.float64)

    def __str__(self) -> str:
        parts = [f"{name} > {number:.6g}" for _, name, number in self.above]
        parts += [f"{name} = {_short(value)}" for _, name, value in self.equal]
        return f"1[{', '.join(parts)}]" if parts else "1"


@dataclass(frozen=True)
class Coordinate:
    """The column itself: f(y) = y_k.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.axioms import Coordinate
    >>> Coordinate(1, "b")(np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([2., 3.])
    """

    k: int
    name: Any

    def __call__(self, X: Any) -> np.ndarray:
        """Return its values at rows, (n,)."""
        return as_numbers(frames.column(X, self.k), self.name)

    def __str__(self) -> str:
        return str(self.name)


@dataclass(frozen=True)
class Symmetrised:
    """(g(y) + g(y with two columns exchanged)) / 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.axioms import Coordinate, Symmetrised
    >>> Symmetrised(Coordinate(0, "a"), 0, 1)(np.array([[1.0, 3.0]]))
    array([2.])
    """

    g: Cell | Coordinate
    j: int
    k: int

    def __call__(self, X: Any) -> np.ndarray:
        """Return its values at rows, (n,)."""
        columns = {self.j: frames.column(X, self.k), self.k: frames.column(X, self.j)}
        numbers = {k: as_numbers(values, k) for k, values in columns.items()}
        return (self.g(X) + self.g(frames.replaced(X, numbers))) / 2

    def __str__(self) -> str:
        return f"{self.g}, symmetrised"


def _equal(values: Any, name: Any, value: Any) -> np.ndarray:
    if value is None:
        return np.array([frames.is_missing(v) for v in frames.to_list(values)])
    if isinstance(value, float):
        return as_numbers(values, name) == value
    return np.array([not frames.is_missing(v) and v == value for v in frames.to_list(values)])


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def telling(mu: Signed, columns: list[int], numbers: Numbers) -> tuple[Callable, float] | None:
    """Return a simple function of some columns whose integral is not 0, and the integral, or None.

    `columns` are the positions of the columns of mu.
    """
    if abs(mu.mass) > 0:
        return Cell(), mu.mass
    names = [numbers.names[k] for k in columns]
    level = numbers.levels[columns] if columns else np.zeros(0, bool)
    moments = np.where(level | ~np.isfinite(mu.moments), 0.0, mu.moments)
    if np.any(moments):
        i = int(np.argmax(np.abs(moments)))
        return Coordinate(columns[i], names[i]), float(moments[i])
    if mu.hidden:
        return None
    if len(mu.weights) and np.abs(mu.at_atoms).max() > 0:
        best = int(np.argmax(np.abs(mu.at_atoms)))
        point = mu.points[best]
        equal = [(k, n, numbers.value(k, v)) for k, n, v in zip(columns, names, point, strict=True)]
        return Cell(equal=tuple(equal)), float(mu.at_atoms[best])
    return _corner(mu, columns, numbers)


def _corner(mu: Signed, columns: list[int], numbers: Numbers) -> tuple[Callable, float] | None:
    """Return the indicator of a corner of the space on which the first product has mass."""
    if not mu.products:
        return None
    above, equal = [], []
    for i, law in enumerate(mu.products[0][1]):
        if law.mass:
            continue
        k = columns[i]
        if numbers.levels[k]:
            best = law.points[np.argmax(np.abs(law.masses))]
            equal.append((i, best))
        else:
            cuts = law.cuts()
            above.append((i, float(cuts[np.argmax([abs(law.above(s)) for s in cuts])])))
    value = mass_of(mu, above, equal)
    names = numbers.names
    cell = Cell(
        tuple((columns[i], names[columns[i]], s) for i, s in above),
        tuple((columns[i], names[columns[i]], numbers.value(columns[i], v)) for i, v in equal),
    )
    return (cell, value) if value else None


def negative_tail(
    mu: Signed, columns: list[int], numbers: Numbers
) -> tuple[Callable, float] | None:
    """Return a half-space or a value of one column with the most negative mass, or None."""
    cells: list[tuple[Callable, float]] = []
    for i, k in enumerate(columns):
        law = mu.marginal(i)
        if law is None or law.is_zero:
            continue
        name = numbers.names[k]
        if len(law.points):
            best = int(np.argmin(law.masses))
            value = numbers.value(k, law.points[best])
            cells.append((Cell(equal=((k, name, value),)), float(law.masses[best])))
        if not numbers.levels[k]:
            cuts = law.cuts()
            masses = [law.above(s) for s in cuts]
            best = int(np.argmin(masses))
            cells.append((Cell(((k, name, float(cuts[best])),)), float(masses[best])))
    lowest = min(cells, key=lambda each: each[1], default=None)
    return lowest if lowest is not None and lowest[1] < -1e-12 else None


def mass_of(mu: Signed, above: list, equal: list) -> float:
    """Return the mass of a cell, with conditions (column of mu, number)."""
    inside = np.ones(len(mu.weights), bool)
    for i, s in above:
        inside &= mu.points[:, i] > s
    for i, v in equal:
        inside &= (mu.points[:, i] == v) | (np.isnan(mu.points[:, i]) & np.isnan(v))
    result = float(mu.weights[inside].sum())
    for weight, laws in mu.products:
        conditions = dict(above), dict(equal)
        for i, law in enumerate(laws):
            if i in conditions[0]:
                weight *= law.above(conditions[0][i])
            elif i in conditions[1]:
                weight *= float(law.at(np.array([conditions[1][i]]))[0])
            else:
                weight *= law.mass
        result += weight
    return result
