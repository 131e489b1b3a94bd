"""Fitted measures written out as atoms and products, from the views that engines use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.attributions import Attributions
from skattr.measures.background import Background, as_background
from skattr.measures.base import Measure, copy_terms
from skattr.measures.factors.laws import Empirical, Interval, Levels, Normal
from skattr.measures.learned.bins import as_numbers
from skattr.measures.signed.coalitions import (
    COLUMNS,
    MANY,
    Worths,
    ends,
    not_known,
    own_difference,
    products_at_nodes,
    subsets,
    sum_of_coalitions,
)
from skattr.measures.signed.laws import Law, Part, atom, discrete
from skattr.measures.signed.measure import Hidden, Signed, signed, total
from skattr.measures.views import COALITIONS, FactorsView

Columns = Sequence[tuple[int, ...]]


class Numbers:
    """Columns as float64: levels numbered in the order in which they occur, missing as NaN."""

    def __init__(self, background: Background) -> None:
        self.names = background.names
        self.levels = background.levels
        self._codes: list[dict] = [{} for _ in self.names]

    def of(self, X: Any) -> np.ndarray:
        """Return rows as numbers, (n, d)."""
        if not frames.is_frame(X):
            X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != len(self.names):
            raise ValueError(f"points must have {len(self.names)} columns, got shape {X.shape}")
        columns = [self.column(k, frames.column(X, k)) for k in range(len(self.names))]
        return np.stack(columns, axis=1)

    def column(self, k: int, values: Any) -> np.ndarray:
        """Return one column as numbers."""
        if not self.levels[k]:
            return as_numbers(values, self.names[k])
        codes = self._codes[k]
        numbers = [
            np.nan if frames.is_missing(value) else float(codes.setdefault(value, len(codes)))
            for value in frames.to_list(values)
        ]
        return np.array(numbers, np.float64)

    def value(self, k: int, number: float) -> Any:
        """Return the value of column k that a number stands for, None if it is missing."""
        if np.isnan(number):
            return None
        return list(self._codes[k])[int(number)] if self.levels[k] else float(number)


class Decomposition:
    """A measure, fitted on a background with one attribution per column, that gives μ_{j,x}."""

    def __init__(
        self, measure: Measure, X: Any, sample_weight: Any = None, domain: dict | None = None
    ) -> None:
        self.background = as_background(X, sample_weight)
        self.attributions = Attributions.single(self.background.names)
        self.terms = copy_terms(measure)
        self.domain = domain
        for _, term in self.terms:
            term.fit(self.background, None, domain, self.attributions)
        self.numbers = Numbers(self.background)
        self.rows = self.numbers.of(self.background.X)
        self.shares = self.background.weights / self.background.weights.sum()
        self._tables: dict[Any, tuple] = {}
        self._worths: dict[Any, Worths] = {}
        self._references: dict[Any, Signed] = {}

    def law(self) -> Signed:
        """Return P, the law of the background."""
        return signed(self.rows, self.shares)

    def point(self, x: Any) -> Signed:
        """Return δ_x, x one row."""
        return signed(self.numbers.of(x), np.ones(1))

    def at(self, x: Any) -> list[Signed]:
        """Return μ_{j,x} of all attributions j, x one row."""
        return self.several(x, range(len(self.attributions)))

    def several(self, x: Any, chosen: Any) -> list[Signed]:
        """Return μ_{j,x} of the chosen attributions j, x one row."""
        number = self.numbers.of(x)[0]
        columns = [self.attributions[a] for a in chosen]
        terms = [
            (coefficient, self._term(t, term, x, number, columns))
            for t, (coefficient, term) in enumerate(self.terms)
        ]
        return [total([(c, measures[i]) for c, measures in terms]) for i in range(len(chosen))]

    def sum_at(self, x: Any) -> Signed:
        """Return Σ_j μ_{j,x}, x one row; of coalitions by their sizes, where these cancel."""
        number = self.numbers.of(x)[0]
        terms: list[tuple[float, Signed]] = []
        for t, (coefficient, term) in enumerate(self.terms):
            known = None
            if set(COALITIONS) & set(term.views):
                known = ends(term.coalitions().semivalue, len(number))
            if known is None:
                measures = self._term(t, term, x, number, list(self.attributions))
                terms += [(coefficient, mu) for mu in measures]
            else:
                terms.append((coefficient * known[0], self.point(x)))
                terms.append((-coefficient * known[1], self._reference(t, term, x, number)))
        return total(terms)

    def _term(self, t: Any, term: Any, x: Any, number: np.ndarray, chosen: Columns) -> list[Signed]:
        if term.depends == "attribution":
            members = term.members(self.attributions)  # probabilities
            return [
                total([(term.mass, self._product(members[k].factors(), number))]) for (k,) in chosen
            ]
        for view, write in WRITERS.items():
            if view in term.views:
                return write(self, t, term, x, number, chosen)
        return [self._unknown(t, term, x, number, columns) for columns in chosen]

    def _coalitions(
        self, t: Any, term: Any, x: Any, number: np.ndarray, chosen: Columns
    ) -> list[Signed]:
        inner, semivalue = term.coalitions()
        d = len(number)
        if "factors" in inner.views and d <= COLUMNS:
            components = self._laws(t, inner)[0]
            return [products_at_nodes(components, semivalue, number, j) for (j,) in chosen]
        if "rows" in inner.views and len(self.rows) * 2.0**d <= MANY:
            worths = self._coalition_worths(t, term, x, number)
            return [sum_of_coalitions(worths, semivalue, d, j) for (j,) in chosen]
        key = (t, *number.tolist())
        if not {"rows", "factors"} & set(inner.views):
            return [not_known(key, number, j) for (j,) in chosen]
        law = self._reference(t, term, x, number)
        return [own_difference(key, law, number, j) for (j,) in chosen]

    def _coalition_worths(self, t: Any, term: Any, x: Any, number: np.ndarray) -> Worths:
        """Return the measures of all coalitions of columns, at the last x that was asked for."""
        key = (t, number.tobytes())
        if key not in self._worths:
            some = subsets(len(number))[1:-1]
            worths = dict(zip(some, self._term(t, term.measure_, x, number, some), strict=True))
            worths[()] = self._reference(t, term, x, number)
            worths[tuple(range(len(number)))] = self.point(x)
            self._worths = {key: worths}
        return self._worths[key]

    def _reference(self, t: Any, term: Any, x: Any, number: np.ndarray) -> Signed:
        """Return the law of the coalition without columns."""
        if t not in self._references:
            law = term.reference().fit(self.background, None, self.domain, self.attributions)
            self._references[t] = self._term((t, "reference"), law, x, number, [()])[0]
        return self._references[t]

    def _rows(self, t: Any, term: Any, x: Any, number: np.ndarray, chosen: Columns) -> list[Signed]:
        background, pinned = term.rows()
        rows, shares = self._table(t, background)
        return [
            signed(_pinned(rows, number, columns) if pinned else rows, shares) for columns in chosen
        ]

    def _bins(self, t: Any, term: Any, x: Any, number: np.ndarray, chosen: Columns) -> list[Signed]:
        background, row_weights = term.bins()
        rows, _ = self._table(t, background)
        result = []
        for columns in chosen:
            weights = row_weights.given(columns, row_weights.bins_of(x, columns)[:, 0])
            result.append(signed(_pinned(rows, number, columns), weights / weights.sum()))
        return result

    def _factors(
        self, t: Any, term: Any, x: Any, number: np.ndarray, chosen: Columns
    ) -> list[Signed]:
        components, pinned = self._laws(t, term)
        return [
            signed(*_nothing(number), [
                (weight, _pinned_laws(laws, number, columns if pinned else ()))
                for weight, laws in components
            ])
            for columns in chosen
        ]  # fmt: skip

    def _laws(self, t: Any, term: Any) -> tuple[list[tuple[float, list[Law]]], bool]:
        """Return the components of a term with factors, and whether they are pinned."""
        if t not in self._tables:
            view = term.factors()
            laws = [
                (weight, [_written(law, self.numbers) for law in each])
                for weight, each in view.components
            ]
            self._tables[t] = laws, view.pinned
        return self._tables[t]

    def _product(self, view: FactorsView, number: np.ndarray) -> Signed:
        """Return a sum of products that does not depend on the row."""
        products = [
            (weight, tuple(_written(law, self.numbers) for law in laws))
            for weight, laws in view.components
        ]
        return signed(*_nothing(number), products)

    def _mixture(
        self, t: Any, term: Any, x: Any, number: np.ndarray, chosen: Columns
    ) -> list[Signed]:
        mixture, _, components = term.mixture()
        laws = [[_written(law, self.numbers) for law in each] for each in components]
        result = []
        for columns in chosen:
            shares = mixture.shares(number[None, list(columns)], list(columns))[0]
            products = [
                (float(share), _pinned_laws(each, number, columns))
                for share, each in zip(shares, laws, strict=True)
            ]
            result.append(signed(*_nothing(number), products))
        return result

    def _atoms(
        self, t: Any, term: Any, x: Any, number: np.ndarray, chosen: Columns
    ) -> list[Signed]:
        points, weights, _ = term.atoms(x, self.attributions)
        points = self.numbers.of(points)
        return [signed(points, np.asarray(weights[k], np.float64)) for (k,) in chosen]

    def _unknown(
        self, t: Any, term: Any, x: Any, number: np.ndarray, columns: tuple[int, ...]
    ) -> Signed:
        """Return a law that is not written out, with its mass and means if they are known."""
        moments = np.full(len(number), np.nan)
        if "centers" in term.views:
            moments = self.numbers.of(term.centers(x, columns))[0]
        mass, positive = term.mass, term.mass is not None  # those with a mass are probabilities
        if mass is None:
            masses = term.masses(x, (columns,))
            mass = np.nan if masses is None else float(masses[0, 0])
        law = Hidden((t, *number[list(columns)].tolist(), *columns), float(mass), moments, positive)
        return signed(*_nothing(number), (), [(1.0, law)])

    def _table(self, t: Any, background: Background) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a term as numbers, and their shares."""
        if t not in self._tables:
            if background is self.background:
                self._tables[t] = self.rows, self.shares
            else:
                weights = background.weights
                self._tables[t] = self.numbers.of(background.X), weights / weights.sum()
        return self._tables[t]


@singledispatch
def _written(law: Any, numbers: Numbers) -> Law:
    """Return the law of a column as a law of numbers."""
    raise NotImplementedError(f"{type(law).__name__} cannot be written out")


@_written.register
def _written_values(law: Empirical, numbers: Numbers) -> Law:
    weights, values = law.background.weights, law.background.column(law.k)
    return discrete(numbers.column(law.k, values), weights / weights.sum())


@_written.register
def _written_levels(law: Levels, numbers: Numbers) -> Law:
    k = numbers.names.index(law.name)
    levels = numbers.column(k, frames.as_column(law.levels))
    return discrete(levels, np.full(len(levels), 1 / len(levels)))


@_written.register
def _written_interval(law: Interval, numbers: Numbers) -> Law:
    low, high = law.ends().tolist()
    return atom(low) if low == high else _continuous(Part("uniform", low, high))


@_written.register
def _written_normal(law: Normal, numbers: Numbers) -> Law:
    at = float(law.mean)
    return atom(at) if law.scale == 0 else _continuous(Part("normal", at, float(law.scale)))


# the first view that a measure has is used
WRITERS = {
    **dict.fromkeys(COALITIONS, Decomposition._coalitions),
    "atoms": Decomposition._atoms,
    "rows": Decomposition._rows,
    "bins": Decomposition._bins,
    "factors": Decomposition._factors,
    "mixture": Decomposition._mixture,
}


def _continuous(part: Part) -> Law:
    return Law(np.empty(0), np.empty(0), ((1.0, part),))


def _nothing(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.empty((0, len(number))), np.empty(0)


def _pinned(rows: np.ndarray, number: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    rows = rows.copy()
    rows[:, list(columns)] = number[list(columns)]
    return rows


def _pinned_laws(laws: list[Law], number: np.ndarray, columns: tuple[int, ...]) -> tuple[Law, ...]:
    return tuple(atom(number[k]) if k in columns else law for k, law in enumerate(laws))
