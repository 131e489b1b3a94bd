"""Fitted measures written out as atoms and products, from the views that engines use."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.attributions import Attributions
from skattr.measures.background import Background, as_background
from skattr.measures.base import Measure, copy_terms
from skattr.measures.factors.laws import Empirical, Interval, Levels, Normal
from skattr.measures.learned.bins import as_numbers
from skattr.measures.signed.laws import Law, Part, atom, discrete
from skattr.measures.signed.measure import Hidden, Signed, signed, total
from skattr.measures.views import FactorsView


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
        for _, term in self.terms:
            term.fit(self.background, None, domain, self.attributions)
        self.numbers = Numbers(self.background)
        self.rows = self.numbers.of(self.background.X)
        self.shares = self.background.weights / self.background.weights.sum()
        self._tables: dict[int, tuple] = {}

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
        terms = [
            (coefficient, self._term(t, term, x, number, chosen))
            for t, (coefficient, term) in enumerate(self.terms)
        ]
        return [total([(c, measures[i]) for c, measures in terms]) for i in range(len(chosen))]

    def _term(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        if term.depends == "attribution":
            members = term.members(self.attributions)  # probabilities
            return [
                total([(term.mass, self._product(members[a].factors(), number))]) for a in chosen
            ]
        for view, write in WRITERS.items():
            if view in term.views:
                return write(self, t, term, x, number, chosen)
        return [self._unknown(t, term, x, number, self.attributions[a]) for a in chosen]

    def _rows(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        background, pinned = term.rows()
        rows, shares = self._table(t, background)
        return [
            signed(_pinned(rows, number, self.attributions[a]) if pinned else rows, shares)
            for a in chosen
        ]

    def _bins(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        background, row_weights = term.bins()
        rows, _ = self._table(t, background)
        result = []
        for a in chosen:
            columns = self.attributions[a]
            weights = row_weights.given(columns, row_weights.bins_of(x, columns)[:, 0])
            result.append(signed(_pinned(rows, number, columns), weights / weights.sum()))
        return result

    def _factors(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        if t not in self._tables:
            view = term.factors()
            laws = [(weight, [self._law(law) for law in each]) for weight, each in view.components]
            self._tables[t] = laws, view.pinned
        components, pinned = self._tables[t]
        return [
            signed(*_nothing(number), [
                (weight, _pinned_laws(laws, number, self.attributions[a] if pinned else ()))
                for weight, laws in components
            ])
            for a in chosen
        ]  # fmt: skip

    def _product(self, view: FactorsView, number: np.ndarray) -> Signed:
        """Return a sum of products that does not depend on the row."""
        products = [
            (weight, tuple(self._law(law) for law in laws)) for weight, laws in view.components
        ]
        return signed(*_nothing(number), products)

    def _mixture(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        mixture, _, components = term.mixture()
        laws = [[self._law(law) for law in each] for each in components]
        result = []
        for a in chosen:
            columns = self.attributions[a]
            shares = mixture.shares(number[None, list(columns)], list(columns))[0]
            products = [
                (float(share), _pinned_laws(each, number, columns))
                for share, each in zip(shares, laws, strict=True)
            ]
            result.append(signed(*_nothing(number), products))
        return result

    def _atoms(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        points, weights, _ = term.atoms(x, self.attributions)
        points = self.numbers.of(points)
        return [signed(points, np.asarray(weights[a], np.float64)) for a in chosen]

    def _unknown(
        self, t: int, term: Any, x: Any, number: np.ndarray, columns: tuple[int, ...]
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

    def _table(self, t: int, background: Background) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a term as numbers, and their shares."""
        if t not in self._tables:
            if background is self.background:
                self._tables[t] = self.rows, self.shares
            else:
                weights = background.weights
                self._tables[t] = self.numbers.of(background.X), weights / weights.sum()
        return self._tables[t]

    def _law(self, law: Any) -> Law:
        if isinstance(law, Empirical):
            weights = law.background.weights
            values = law.background.column(law.k)
            return discrete(self.numbers.column(law.k, values), weights / weights.sum())
        if isinstance(law, Levels):
            k = self.numbers.names.index(law.name)
            levels = self.numbers.column(k, frames.as_column(law.levels))
            return discrete(levels, np.full(len(levels), 1 / len(levels)))
        if isinstance(law, Interval):
            low, high = law.ends().tolist()
            return atom(low) if low == high else _continuous(Part("uniform", low, high))
        if isinstance(law, Normal):
            at = float(law.mean)
            return atom(at) if law.scale == 0 else _continuous(Part("normal", at, float(law.scale)))
        raise NotImplementedError(f"{type(law).__name__} cannot be written out")


# the first view that a measure has is used
WRITERS = {
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
