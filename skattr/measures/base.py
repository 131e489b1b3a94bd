"""μ: families of measures μ_{j,x}, learned from data, and their algebra.

The protocol. A measure is a BaseEstimator. `fit(X, sample_weight, domain, own)` learns it and never
sees f. It says

- `depends`: on "nothing", on the "attribution" j (then `members(own)` are measures that depend on
  nothing), on the "own" value x_j alone (then it has curves), or on the whole "row";
- `mass` of each μ_{j,x}, or None if it depends on x or j (then `masses(X, own)`, (n, g), where it
  is known without integrating);
- `reference()`: the probability law that `Explanation.centered` subtracts;
- `views`: under which of these names engines can ask for it, each for all attributions at once:
  `rows()`, `bins()`, `factors()`, `mixture()`, `normals()`, `atoms(X, own)`; or for one
  attribution, as probabilities: `centers(X, columns)` → X with the others at their means given own
  values, and `transport(u, x, columns)` → points, one for each row of u in [0, 1)^n_uniforms, and
  their weights (None: equal ones of mass 1), x one row;
- `flat`: whether the laws of `factors()` are uniform, on intervals or on levels;
- `needs_partition`: whether it must be fitted with attributions that share no column;
- `adds_up`: whether batches of the background give the result of one `fit`; `no_batches` why not;
- `support(X, columns)`: the effective number of rows behind an attribution, if it depends on x;
- `dependent_`: pairs of columns of different attributions that say much about each other, as
  (column, column, rank correlation), where that matters to the measure.

An attribution is a tuple of raw columns, `own` the tuple of all attributions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from inspect import signature
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from skattr.measures.background import Background, as_background
from skattr.measures.learned.mixture import Mixture
from skattr.measures.learned.row_weights import RowWeights
from skattr.messages import brief


class RowsView(NamedTuple):
    """μ_{j,x} = Σ_r w_r δ_{z_r} / Σ w, with the own coordinates of z_r set to x's if `pinned`."""

    background: Background
    pinned: bool


class BinsView(NamedTuple):
    """μ_{j,x} = Σ_r π_r(x_j) δ_{(x_j, z_{r,-j})}: weights of rows that depend on the own bins."""

    background: Background
    weights: RowWeights


class FactorsView(NamedTuple):
    """μ_{j,x} = Σ_c π_c ⊗_i ν_{c,i}, with the own factors replaced by δ_{x_i} if `pinned`."""

    components: list[tuple[float, list]]  # π_c, one law a column
    pinned: bool


class MixtureView(NamedTuple):
    """μ_{j,x} = Σ_c π_c(x_j) δ_{x_j} ⊗_{i≠j} ν_{c,i}: shares that depend on the own value."""

    mixture: Mixture
    names: list
    components: list[list]  # one law a column


class NormalsView(NamedTuple):
    """μ_{j,x} = Σ_c π_c(x_j) N_c(x_j): normal laws that depend on the own value.

    `shares(t, own)` are π_c(t), `linear(weights, own)` what the laws say of sums of columns.
    """

    family: Any
    names: list


class AtomsView(NamedTuple):
    """μ_{j,x_i} = Σ_a weights[j, a] δ_{points_a} over the atoms a of row i."""

    points: Any  # a frame or an array, one row an atom
    weights: np.ndarray  # (g, n_atoms)
    row: np.ndarray  # (n_atoms,) the explained row


class Measure(BaseEstimator):
    """A family of measures μ_{j,x}, one for each attribution j and explained row x."""

    depends = "own"
    mass: float | None = 1.0
    views: tuple[str, ...] = ()
    flat = False
    adds_up = True
    no_batches = ""
    needs_partition = False  # whether what it learns of a column depends on the column's group
    dependent_: tuple[tuple[int, int, float], ...] = ()
    effect = ""  # its name in words after the mean prediction is taken off
    __array_ufunc__ = None  # so that numpy scalars leave `*` to us

    def fit(
        self,
        X: Any,
        sample_weight: Any = None,
        domain: dict | None = None,
        own: Sequence[tuple[int, ...]] | None = None,
    ) -> Self:
        """Learn the measure from background rows.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The background.
        sample_weight : array (n,), optional
            Weights of its rows.
        domain : dict, optional
            Position of a column → (low, high), where not the background's range.
        own : tuple of tuples of int, optional
            The attributions; one a column by default.
        """
        self.background_: Any = as_background(X, sample_weight)
        self.domain_ = domain or {}
        return self

    def expanded(self) -> list[tuple[float, Measure]]:
        """Return the measure as a sum of (coefficient, measure) that engines know."""
        return [(1.0, self)]

    def release(self) -> None:
        """Forget the background: what is left is what was learned."""
        self.background_ = None

    def support(self, X: Any, columns: tuple[int, ...]) -> np.ndarray | None:
        """Return the effective number of rows behind an attribution, (n,), if it depends on x."""
        return None

    def reference(self) -> Measure:
        """Return the probability law that centring subtracts."""
        raise NotImplementedError

    def in_words(self) -> str:
        """Return the measure's name in words, for legends and tables.

        Examples
        --------
        >>> from skattr.measures import Conditional, Expectation, PartialDependence
        >>> PartialDependence().in_words(), Expectation("product").in_words()
        ('partial dependence', 'expectation (product)')
        >>> (PartialDependence() - Expectation()).in_words()
        'main effect'
        >>> (Conditional("gaussian") - 0.5 * Expectation()).in_words()
        'conditional (gaussian) − 0.5 · expectation'
        """
        return self._named(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower())

    def _named(self, name: str) -> str:
        """Return a name with the parameters that are not the default ones."""
        default = {p.name: p.default for p in signature(type(self)).parameters.values()}
        changed = [
            value if isinstance(value, str) else f"{parameter} {value}".replace("_", " ")
            for parameter, value in self.get_params(deep=False).items()
            if isinstance(value, str | Real) and value != default[parameter]
        ]
        return f"{name} ({', '.join(changed)})" if changed else name

    def __add__(self, other: Any) -> Measure:
        return _sum([*as_terms(self), *as_terms(other)]) if _is_measure(other) else NotImplemented

    def __radd__(self, other: Any) -> Measure:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # for `sum`

    def __sub__(self, other: Any) -> Measure:
        return self + (-1.0) * other if _is_measure(other) else NotImplemented

    def __neg__(self) -> Measure:
        return self * -1.0

    def __mul__(self, factor: Any) -> Measure:
        if not isinstance(factor, Real):
            return NotImplemented
        number = float(factor)
        if not np.isfinite(number):
            raise ValueError(f"a measure cannot be multiplied by {number}")
        return _sum([(number * c, measure) for c, measure in as_terms(self)])

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Measure:
        return self * (1.0 / divisor) if isinstance(divisor, Real) else NotImplemented


class LinearCombination(Measure):
    """Σ_i c_i μ_i: what `+`, `-` and scalar `*` give.

    Parameters
    ----------
    terms : list of (float, Measure)
        The coefficients and measures. They are parameters too: `term0`, `coefficient0`, `term1`, …

    Examples
    --------
    >>> from skattr.measures import Expectation, PartialDependence
    >>> PartialDependence() - 0.5 * Expectation("product")
    PartialDependence() - 0.5 * Expectation(law='product')
    """

    def __init__(self, terms: list) -> None:
        self.terms = terms

    def get_params(self, deep: bool = True) -> dict:
        """Return the parameters, those of the terms as `term0__…`."""
        params: dict = {"terms": self.terms}
        if deep:
            for i, (coefficient, measure) in enumerate(self.terms):
                params[f"coefficient{i}"] = coefficient
                params[f"term{i}"] = measure
                nested = measure.get_params().items()
                params.update({f"term{i}__{name}": value for name, value in nested})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set `terms`, `coefficient0`, `term0`, `term0__…`."""
        if "terms" in params:
            self.terms = params.pop("terms")
        terms = [list(term) for term in self.terms]
        places = {f"{word}{i}": (i, part) for i in range(len(terms))
                  for part, word in enumerate(("coefficient", "term"))}  # fmt: skip
        for name in [name for name in params if name in places]:
            i, part = places[name]
            terms[i][part] = params.pop(name)
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if head not in places or not rest or places[head][1] == 0:
                raise ValueError(f"a LinearCombination of {len(terms)} terms has no {name!r}")
            terms[places[head][0]][1].set_params(**{rest: value})
        self.terms = [(coefficient, measure) for coefficient, measure in terms]
        return self

    def in_words(self) -> str:
        """Return the sum in words; a measure minus the mean prediction is its effect."""
        named = [(coefficient, measure.in_words()) for coefficient, measure in self.terms]
        first = self.terms[0][1] if self.terms else self
        if first.effect and named == [(1.0, first.in_words()), (-1.0, "expectation")]:
            return first._named(first.effect)
        text = ""
        for coefficient, words in named:
            size = "" if abs(coefficient) == 1 else f"{abs(coefficient):g} · "
            sign = "−" if coefficient < 0 else "+"
            lead = f" {sign} " if text else sign.replace("+", "")
            text += f"{lead}{size}{words}"
        return text

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = ""
        for coefficient, measure in _flat(self.terms):
            sign = "-" if coefficient < 0 else "+"
            size = abs(coefficient)
            short = f"{size:g}"  # 2 rather than 2.0
            factor = "" if size == 1 else f"{short if float(short) == size else repr(size)} * "
            lead = ("-" if sign == "-" else "") if not text else f" {sign} "
            text += f"{lead}{factor}{measure!r}"
        return text or "LinearCombination([])"


def _flat(terms: list) -> Iterator[tuple[Any, Any]]:
    """Yield the terms, those of combinations among them one by one."""
    for coefficient, measure in terms:
        if isinstance(measure, LinearCombination):
            yield from ((coefficient * inner, term) for inner, term in _flat(measure.terms))
        else:
            yield coefficient, measure


def _is_measure(other: Any) -> bool:
    return isinstance(other, Measure)


def _sum(terms: list) -> Measure:
    if len(terms) == 1 and terms[0][0] == 1.0:
        return terms[0][1]
    return LinearCombination(terms)


def as_terms(measure: Measure) -> list[tuple[float, Measure]]:
    """Return a measure as a list of (coefficient, measure that is no combination)."""
    if not isinstance(measure, LinearCombination):
        return measure.expanded()
    if not isinstance(measure.terms, list | tuple) or not measure.terms:
        raise ValueError(f"the terms of a LinearCombination are a list, not {brief(measure.terms)}")
    terms = []
    for entry in measure.terms:
        if not (isinstance(entry, tuple | list) and len(entry) == 2 and _is_measure(entry[1])):
            raise TypeError(f"a term is (coefficient, Measure), not {brief(entry)}")
        coefficient, inner = entry
        if not isinstance(coefficient, Real) or not np.isfinite(float(coefficient)):
            raise ValueError(f"a term's coefficient is a finite number, not {brief(coefficient)}")
        terms += [(float(coefficient) * c, term) for c, term in as_terms(inner)]
    return terms


def copy_terms(measure: Measure) -> list[tuple[float, Measure]]:
    """Return the terms with unfitted copies of the measures."""
    return [(coefficient, clone(term)) for coefficient, term in as_terms(measure)]
