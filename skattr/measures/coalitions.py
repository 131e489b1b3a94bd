"""Shapley and Banzhaf values: differences that a column makes to coalitions of the others.

The attributions are the players of a game. A coalition S is worth v_x(S) = ∫ f dμ_{S,x}, where
μ_{S,x} is the measure that an inner measure has for the columns of S as one attribution. If every
other player joins with probability p, independently, then

    phi_j(x) = ∫ E[v_x(S ∪ j) - v_x(S)] dP(p)

with p uniform on [0, 1] for Shapley values and p = 1/2 for Banzhaf values (docs/mathematics.md,
section 11).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from skattr._utils.messages import brief
from skattr.measures.background import Background
from skattr.measures.base import LinearCombination, Measure
from skattr.measures.empirical import PartialDependence
from skattr.measures.views import CoalitionsView, of_coalitions


@dataclass(frozen=True)
class Semivalue:
    """The law of the probability p with which a player joins a coalition.

    Parameters
    ----------
    p : float, optional
        The probability, if it is fixed; by default p is uniform on [0, 1].
    """

    p: float | None = None

    def moments(self, n: int) -> np.ndarray:
        """Return ∫ p^a (1 - p)^b dP(p) for a, b = 0, …, n, (n + 1, n + 1).

        It is the probability that a given players join and b others do not.
        """
        return _moments(self.p, n)

    def nodes(self, degree: int) -> tuple[np.ndarray, np.ndarray]:
        """Return nodes in p and weights that integrate polynomials up to a degree exactly."""
        if self.p is not None:
            return np.array([self.p]), np.ones(1)
        x, weights = np.polynomial.legendre.leggauss(degree // 2 + 1)
        return (x + 1) / 2, weights / 2


@lru_cache(maxsize=64)
def _moments(p: float | None, n: int) -> np.ndarray:
    if p is not None:
        powers, others = (q ** np.arange(n + 1.0) for q in (p, 1 - p))
        moments = powers[:, None] * others
    else:  # a! b! / (a + b + 1)!
        rows = range(n + 1)
        moments = np.array([[1 / ((a + b + 1) * comb(a + b, a)) for b in rows] for a in rows])
    moments.flags.writeable = False
    return moments


class _Coalitions(Measure):
    """What Shapley and Banzhaf values share; `semivalue` is the law of p."""

    depends = "row"
    mass = 0.0
    others_matter = True  # they are the other players
    semivalue: Semivalue

    def __init__(self, measure: Measure = PartialDependence()) -> None:  # noqa: B008
        self.measure = measure

    @property
    def views(self) -> tuple[str, ...]:  # type: ignore[override]
        """One view of coalitions for each view of the inner measure."""
        return tuple(map(of_coalitions, self._inner().views))

    @property
    def flat(self) -> bool:  # type: ignore[override]
        """Whether the laws of the inner measure are uniform."""
        return self._inner().flat

    @property
    def needs_partition(self) -> bool:  # type: ignore[override]
        """Whether every column must be a player, or belong to one: always."""
        return True

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Whether batches of the background add up for the inner measure."""
        return self._inner().adds_up

    @property
    def adds_up_given_law(self) -> bool:  # type: ignore[override]
        """Whether they do given the law of the inner measure."""
        return self._inner().adds_up_given_law

    @property
    def no_batches(self) -> str:  # type: ignore[override]
        """Why they do not."""
        return self._inner().no_batches

    @property
    def by_rows(self) -> str:  # type: ignore[override]
        """How the inner measure depends on rows."""
        return self._inner().by_rows

    @property
    def no_folds(self) -> str:  # type: ignore[override]
        """Why there is no error from the background."""
        return self._inner().no_folds

    @property
    def dependent_(self) -> Any:  # type: ignore[override]
        """The strongly dependent columns of the inner measure."""
        return self.measure_.dependent_ if hasattr(self, "measure_") else ()

    def _inner(self) -> Measure:
        """Return the inner measure, or raise if its coalitions are not worth an integral."""
        inner, name = self.measure, type(self).__name__
        if isinstance(inner, type) and issubclass(inner, Measure):
            raise TypeError(
                f"{name}: measure must be an object, got the class {inner.__name__}: write "
                f"{name}({inner.__name__}())"
            )
        if not isinstance(inner, Measure):
            raise TypeError(f"{name}: measure must be a Measure, got {brief(inner)}")
        if isinstance(inner, LinearCombination) or inner.expanded()[0][1] is not inner:
            raise ValueError(
                f"{name}: measure must not be a combination, got {inner!r}; combine the values "
                f"instead, for example {name}(PartialDependence()) - {name}(Uniform())"
            )
        if isinstance(inner, _Coalitions):
            raise ValueError(f"{name}: measure must not be made of coalitions, got {inner!r}")
        if inner.depends != "own" or inner.mass != 1.0:
            raise ValueError(
                f"{name}: measure must be a probability that depends on the values of the "
                f"coalition's columns, such as PartialDependence() or ProductMarginal(), got "
                f"{inner!r}; for one baseline row, fit PartialDependence() on that row"
            )
        return inner

    def _check_parameters(self) -> None:
        self._inner()

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        self.n_players_ = len(attributions)
        self.measure_ = clone(self._inner())
        self.measure_.fit(background, None, self.domain_, attributions)

    def on_batch(self, background: Background) -> Self:
        """Return the measure with the law of the inner measure, and the rows of a batch."""
        batch = clone(self)
        batch.background_, batch.domain_ = background, self.domain_
        batch.n_players_, batch.measure_ = self.n_players_, self.measure_.on_batch(background)
        return batch

    def merge(self, other: Self) -> Self:
        """Return the measure of two batches."""
        both = copy(other)
        both.measure_ = self.measure_.merge(other.measure_)
        return both

    def finish(self) -> None:
        """Finish the inner measure."""
        self.measure_.finish()

    def release(self) -> None:
        """Forget the background, that of the inner measure too."""
        super().release()
        self.measure_.release()

    def coalitions(self) -> CoalitionsView:
        """Return the inner measure and the law of p."""
        return CoalitionsView(self.measure_, self.semivalue)

    def reference(self) -> Measure:
        """Return the probability of the coalition without players."""
        return self._inner().reference()

    def in_words(self) -> str:
        """Return the name in words, with the inner measure if it is not partial dependence."""
        name = f"{type(self).__name__} values"
        inner = self._inner()
        usual = type(inner) is PartialDependence
        return name if usual else f"{name} ({inner.in_words()})"


class Shapley(_Coalitions):
    """Shapley values: the mean difference that a column makes when columns are added in any order.

    The values of a row add up to f(x) less the mean of f over the background (under the inner
    measure). A column that the model ignores gets 0. A group of columns (`groups=`) is one player.
    With a background of one row they are baseline Shapley values.

    Parameters
    ----------
    measure : Measure, default=PartialDependence()
        What the columns outside a coalition do: they keep the values of background rows
        (`PartialDependence`, which shap calls interventional), those of background rows that are
        near in the coalition's columns (`Conditional`: a column that the model ignores may then get
        a value), are independent (`ProductMarginal`), or uniform (`Uniform`).

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Shapley()).fit(X[:1])
    >>> explainer.explain(X[1:]).values
    array([[1., 1.]])
    """

    semivalue = Semivalue()


class Banzhaf(_Coalitions):
    """Banzhaf values: the mean difference that a column makes to all coalitions of the others.

    All coalitions count alike. The values do not add up to the prediction; in return they vary less
    where coalitions are sampled. A column that the model ignores gets 0.

    Parameters
    ----------
    measure : Measure, default=PartialDependence()
        What the columns outside a coalition do, as in `Shapley`.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Banzhaf()).fit(X)
    >>> explainer.explain(X).values
    array([[-2., -1.],
           [ 2.,  1.]])
    """

    semivalue = Semivalue(0.5)
