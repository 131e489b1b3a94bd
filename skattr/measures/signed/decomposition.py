"""Fitted measures as sums: μ_{j,x} of atoms and products, from the views that engines use."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr import frames
from skattr.measures.background import Background, as_background
from skattr.measures.base import FactorsView, Measure, copy_terms
from skattr.measures.factors.laws import Empirical, Interval, Levels, Normal
from skattr.measures.learned.bins import as_numbers
from skattr.measures.signed.laws import Law, Part, atom, discrete
from skattr.measures.signed.measure import Hidden, Signed, signed, total


class Numbers:
    """Every column as float64: levels by the order in which they are met, missing as NaN."""

    def __init__(self, background: Background) -> None:
        self.names = background.names
        self.levels = background.levels
        self._codes: list[dict] = [{} for _ in self.names]

    def of(self, X: Any) -> np.ndarray:
        """Return rows as numbers, (n, d)."""
        if not frames.is_frame(X):
            X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != len(self.names):
            raise ValueError(f"points have shape {X.shape}; there are {len(self.names)} columns")
        columns = [self.column(k, frames.column(X, k)) for k in range(len(self.names))]
        return np.stack(columns, axis=1)

    def column(self, k: int, values: Any) -> np.ndarray:
        """Return one column as numbers."""
        if not self.levels[k]:
            return as_numbers(values, self.names[k])
        codes = self._codes[k]
        found = [
            np.nan if frames.is_missing(value) else float(codes.setdefault(value, len(codes)))
            for value in frames.to_list(values)
        ]
        return np.array(found, np.float64)

    def value(self, k: int, number: float) -> Any:
        """Return what a number stands for."""
        if np.isnan(number):
            return None
        return list(self._codes[k])[int(number)] if self.levels[k] else float(number)


class Decomposition:
    """A measure, fitted on a background, of which μ_{j,x} can be asked for.

    `own` are its attributions, `rows` the background, `n_terms` how many terms are added up.
    """

    def __init__(
        self, measure: Measure, X: Any, sample_weight: Any = None, domain: dict | None = None,
        own: tuple | None = None,
    ) -> None:  # fmt: skip
        self.background = as_background(X, sample_weight)
        self.own = own or tuple((k,) for k in range(len(self.background.names)))
        self.terms = copy_terms(measure)
        for _, term in self.terms:
            term.fit(self.background, None, domain, self.own)
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
        return self.several(x, range(len(self.own)))

    def several(self, x: Any, chosen: Any) -> list[Signed]:
        """Return μ_{j,x} of some attributions."""
        number = self.numbers.of(x)[0]
        terms = [
            (coefficient, self._term(t, term, x, number, chosen))
            for t, (coefficient, term) in enumerate(self.terms)
        ]
        return [total([(c, found[i]) for c, found in terms]) for i in range(len(chosen))]

    def _term(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        if term.depends == "attribution":
            members = term.members(self.own)  # probabilities
            return [total([(term.mass, self._given(members[a].factors(), number))]) for a in chosen]
        for view, write in WRITERS.items():
            if view in term.views:
                return write(self, t, term, x, number, chosen)
        return [self._unknown(t, term, x, number, self.own[a]) for a in chosen]

    def _rows(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        background, pinned = term.rows()
        rows, shares = self._table(t, background)
        return [
            signed(_pinned(rows, number, self.own[a]) if pinned else rows, shares) for a in chosen
        ]

    def _bins(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        background, given = term.bins()
        rows, _ = self._table(t, background)
        found = []
        for a in chosen:
            own = self.own[a]
            weights = given.given(own, given.bins_of(x, own)[:, 0])
            found.append(signed(_pinned(rows, number, own), weights / weights.sum()))
        return found

    def _factors(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        if t not in self._tables:
            view = term.factors()
            laws = [(weight, [self._law(law) for law in each]) for weight, each in view.components]
            self._tables[t] = laws, view.pinned
        components, pinned = self._tables[t]
        return [
            signed(*_nothing(number), [
                (weight, _with_own(laws, number, self.own[a] if pinned else ()))
                for weight, laws in components
            ])
            for a in chosen
        ]  # fmt: skip

    def _given(self, view: FactorsView, number: np.ndarray) -> Signed:
        """Return a product that depends on no row."""
        products = [
            (weight, tuple(self._law(law) for law in laws)) for weight, laws in view.components
        ]
        return signed(*_nothing(number), products)

    def _mixture(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        mixture, _, components = term.mixture()
        laws = [[self._law(law) for law in each] for each in components]
        found = []
        for a in chosen:
            own = self.own[a]
            shares = mixture.shares(number[None, list(own)], list(own))[0]
            products = [
                (float(share), _with_own(each, number, own))
                for share, each in zip(shares, laws, strict=True)
            ]
            found.append(signed(*_nothing(number), products))
        return found

    def _atoms(self, t: int, term: Any, x: Any, number: np.ndarray, chosen: Any) -> list[Signed]:
        points, weights, _ = term.atoms(x, self.own)
        points = self.numbers.of(points)
        return [signed(points, np.asarray(weights[a], np.float64)) for a in chosen]

    def _unknown(
        self, t: int, term: Any, x: Any, number: np.ndarray, own: tuple[int, ...]
    ) -> Signed:
        """Return a law of which mass and means are known at best."""
        moments = np.full(len(number), np.nan)
        if "centers" in term.views:
            moments = self.numbers.of(term.centers(x, own))[0]
        mass, positive = term.mass, term.mass is not None  # those with a mass are probabilities
        if mass is None:
            masses = getattr(term, "masses", None)
            mass = np.nan if masses is None else float(masses(x, (own,))[0, 0])
        law = Hidden((t, *number[list(own)].tolist(), *own), float(mass), moments, positive)
        return signed(*_nothing(number), (), [(1.0, law)])

    def _table(self, t: int, background: Background) -> tuple[np.ndarray, np.ndarray]:
        """Return a term's rows as numbers, and their shares."""
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


# the first view that a measure has is taken
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


def _pinned(rows: np.ndarray, number: np.ndarray, own: tuple[int, ...]) -> np.ndarray:
    rows = rows.copy()
    rows[:, list(own)] = number[list(own)]
    return rows


def _with_own(laws: list[Law], number: np.ndarray, own: tuple[int, ...]) -> tuple[Law, ...]:
    return tuple(atom(number[k]) if k in own else law for k, law in enumerate(laws))
