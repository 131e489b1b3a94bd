"""Measures: families μ_{j,x}, learned from data, and their algebra.

`Measure` is what all measures have; `views.py` is what they have for each view that they name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from inspect import signature
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from skattr._utils.messages import brief
from skattr.attributions import Attributions
from skattr.measures.background import Background, as_background


class Measure(BaseEstimator):
    """A family of measures μ_{j,x}, one for each attribution j and explained row x.

    An attribution is a tuple of column positions. A measure never sees the model. Subclasses learn
    in `_learn`, check their parameters in `_check_parameters`, and set these attributes.

    Attributes
    ----------
    depends : {"own", "row", "attribution", "nothing"}
        What μ_{j,x} depends on: on x_j alone (then attributions are curves), on all of x, on j
        alone (see `members`), or on neither.
    mass : float or None
        The mass of every μ_{j,x}; None if it depends on j or x (see `masses`).
    views : tuple of str
        The forms in which engines can ask for it, keys of `skattr.measures.views.VIEWS`.
    flat : bool
        Whether the laws of `factors()` are uniform, on intervals or on levels.
    needs_partition : bool
        Whether each column must belong to exactly one of the attributions of `fit`.
    others_matter : bool
        Whether the measure of an attribution depends on which the others are.
    adds_up : bool
        Whether batches of the background give the same as one `fit`.
    no_batches : str
        Why they do not.
    no_pairs : str
        Why there are no pairs of attributions, if there are none.
    adds_up_given_law : bool
        Whether they do once a law is learned from all rows or a sample of them (see `on_batch`).
    by_rows : {"mean", "sums", "held", ""}
        How it depends on the rows of the background, of which errors from the background are made:
        it is a weighted mean of measures of single rows; it is made of sums that add up over rows;
        what it learns is held (`on_batch`); or there is no such error.
    no_folds : str
        Why there is no error from the background, if `by_rows` is "".
    of_ranges : bool
        Whether all that it learns of the background is the range of each column of numbers.
    effect : str
        What the measure minus the mean prediction is called.
    mean_law : str
        The law of the background of which it is the `Expectation`, "" if it is none.
    background_ : Background or None
        The data of `fit`, until `release`.
    domain_ : dict
        The domain of `fit`.
    dependent_ : tuple of (column, column, rank correlation)
        Strongly dependent columns of different attributions, where that matters to the measure.

    Examples
    --------
    >>> from skattr.measures import Expectation, PartialDependence
    >>> measure = PartialDependence() - Expectation()
    >>> measure
    PartialDependence() - Expectation()
    >>> measure.in_words()
    'main effect'
    """

    depends = "own"
    mass: float | None = 1.0
    views: tuple[str, ...] = ()
    flat = False
    needs_partition = False
    others_matter = False
    adds_up = True
    adds_up_given_law = False
    no_batches = ""
    no_pairs = ""
    by_rows = ""
    no_folds = "it does not depend on the rows of the background, at most on their range"
    of_ranges = False
    effect = ""
    mean_law = ""
    dependent_: tuple[tuple[int, int, float], ...] = ()
    __array_ufunc__ = None  # so that numpy scalars call our `__rmul__`

    def fit(
        self,
        X: Any,
        sample_weight: Any = None,
        domain: dict[int, tuple[float, float]] | None = None,
        attributions: Sequence[tuple[int, ...]] | None = None,
    ) -> Self:
        """Learn the measure from background rows.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The background.
        sample_weight : array (n,), optional
            Weights of its rows.
        domain : dict, optional
            Position of a column → (low, high), where this is not the range of the background.
        attributions : sequence of tuples of int, optional
            The columns of each attribution; one attribution per column by default.
        """
        self._check_parameters()
        background = as_background(X, sample_weight)
        self.background_: Any = background
        self.domain_ = domain or {}
        self._learn(background, attributions or Attributions.single(background.names))
        return self

    def _check_parameters(self) -> None:
        """Raise if a parameter is not valid."""

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        """Learn what the views need of the background, beside the background itself."""

    def release(self) -> None:
        """Forget the background, and keep what was learned."""
        self.background_ = None

    def on_batch(self, background: Background) -> Self:
        """Return the measure with the same law and the rows of a batch, if `adds_up_given_law`."""
        raise NotImplementedError

    def merge(self, other: Self) -> Self:
        """Return the measure of two batches."""
        return other

    def finish(self) -> None:
        """Compute what needs the rows of all batches."""

    def expanded(self) -> list[tuple[float, Measure]]:
        """Return the measure as a sum of (coefficient, measure) that engines know."""
        return [(1.0, self)]

    def members(self, attributions: Sequence[tuple[int, ...]]) -> list[Measure]:
        """Return a probability per attribution, if the measure depends on the attribution alone.

        They depend on nothing, and μ_{j,x} is `mass` times member j.
        """
        raise NotImplementedError

    def masses(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> np.ndarray | None:
        """Return the masses of μ_{j,x}, (n, g), or None if engines have to integrate them."""
        return None

    def support(self, X: Any, columns: tuple[int, ...]) -> np.ndarray | None:
        """Return the effective number of rows behind an attribution, (n,), if it depends on x."""
        return None

    def reference(self) -> Measure:
        """Return the `Expectation` that `Explanation.centered` subtracts the integral of.

        If its law is "joint", the views "rows" and "bins" must give all rows of the background,
        with their weights: engines take the mean over the rows of a view for it.
        """
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
        """Return a name with the parameters that differ from the defaults."""
        default = {p.name: p.default for p in signature(type(self)).parameters.values()}
        changed = [
            value if isinstance(value, str) else f"{parameter} {value}".replace("_", " ")
            for parameter, value in self.get_params(deep=False).items()
            if isinstance(value, str | Real) and value != default[parameter]
        ]
        return f"{name} ({', '.join(changed)})" if changed else name

    def __add__(self, other: Any) -> Measure:
        if not isinstance(other, Measure):
            return NotImplemented
        return _sum([*as_terms(self), *as_terms(other)])

    def __radd__(self, other: Any) -> Measure:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # for `sum`

    def __sub__(self, other: Any) -> Measure:
        return self + (-1.0) * other if isinstance(other, Measure) else NotImplemented

    def __neg__(self) -> Measure:
        return self * -1.0

    def __mul__(self, factor: Any) -> Measure:
        if not isinstance(factor, Real):
            return NotImplemented
        number = float(factor)
        if not np.isfinite(number):
            raise ValueError(f"a measure must be multiplied by a finite number, got {number}")
        return _sum([(number * c, measure) for c, measure in as_terms(self)])

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Measure:
        return self * (1.0 / divisor) if isinstance(divisor, Real) else NotImplemented


Terms = list[tuple[float, Measure]]


class LinearCombination(Measure):
    """Σ_i c_i μ_i: the result of `+`, `-` and scalar `*`.

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

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; those of the terms are called `term0__…`."""
        params: dict[str, Any] = {"terms": self.terms}
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
        terms: list[list[Any]] = [list(term) for term in self.terms]
        positions = {f"{word}{i}": (i, part) for i in range(len(terms))
                     for part, word in enumerate(("coefficient", "term"))}  # fmt: skip
        for name in [name for name in params if name in positions]:
            i, part = positions[name]
            terms[i][part] = params.pop(name)
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if head not in positions or not rest or positions[head][1] == 0:
                raise ValueError(f"a LinearCombination of {len(terms)} terms has no {name!r}")
            terms[positions[head][0]][1].set_params(**{rest: value})
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


def _flat(terms: Terms) -> Iterator[tuple[float, Measure]]:
    """Yield the terms, with combinations among them expanded."""
    for coefficient, measure in terms:
        if isinstance(measure, LinearCombination):
            yield from ((coefficient * inner, term) for inner, term in _flat(measure.terms))
        else:
            yield coefficient, measure


def _sum(terms: Terms) -> Measure:
    if len(terms) == 1 and terms[0][0] == 1.0:
        return terms[0][1]
    return LinearCombination(terms)


def as_terms(measure: Measure) -> Terms:
    """Return a measure as a list of (coefficient, measure), no measure a combination."""
    if not isinstance(measure, LinearCombination):
        return measure.expanded()
    entries: Any = measure.terms
    if not isinstance(entries, list | tuple) or not entries:
        raise ValueError(f"terms must be a list that is not empty, got {brief(entries)}")
    terms: Terms = []
    for entry in entries:
        pair = isinstance(entry, tuple | list) and len(entry) == 2
        if not pair or not isinstance(entry[1], Measure):
            raise TypeError(f"a term must be (coefficient, Measure), got {brief(entry)}")
        coefficient, inner = entry
        if not isinstance(coefficient, Real) or not np.isfinite(float(coefficient)):
            raise ValueError(f"a coefficient must be a finite number, got {brief(coefficient)}")
        terms += [(float(coefficient) * c, term) for c, term in as_terms(inner)]
    return terms


def copy_terms(measure: Measure) -> Terms:
    """Return the terms with unfitted copies of the measures."""
    return [(coefficient, clone(term)) for coefficient, term in as_terms(measure)]
