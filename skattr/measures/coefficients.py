"""The paper's linear measures: the coefficients of a linear model, for any model.

[The paper's appendix to 4.2.] With l and u the corners of the domain and f = w·y + b:

- `Coefficient` is 2·(uniform law on side j) ⊗ δ_{l_i}, and gives w_j (u_j - l_j) + 2 f(l);
- `ScaledCoefficient` is δ_{x_j} ⊗ δ_{l_i}, and gives w_j (x_j - l_j) + f(l).

On [0, 1]^d without intercept that is w_j and w_j x_j. f(l) enters because the masses are 2 and 1;
`mass_zero=True` subtracts as much of δ_l, and so does centring.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skattr._utils.messages import check_flag
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation, corner_row, lower_corner
from skattr.measures.factors.laws import Interval, uniform_law
from skattr.measures.views import FactorsView, RowsView

MOVES = "the corner of the domain moves with the range of the background"


class Coefficient(Measure):
    """2·(uniform law on side j) ⊗ δ_l on the others: w_j of a linear model on [0, 1]^d.

    It does not depend on the explained row. Choose it to summarize what a model does with a column
    over its whole range, with the others at their lower ends.

    Parameters
    ----------
    mass_zero : bool, default=False
        Whether to subtract 2·δ_l, so that no intercept enters: a linear model gives
        w_j (u_j - l_j) whatever its intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = LinearRegression().fit(X, X @ [2.0, -3.0] + 7.0)
    >>> explainer = MeasureExplainer(model, Coefficient(mass_zero=True)).fit(X)
    >>> explainer.explain(X[:1]).values.round(6).tolist()
    [[2.0, -3.0]]
    """

    depends = "attribution"
    mass = 2.0
    views = ("factors",)
    flat = True
    adds_up = False
    no_batches = MOVES
    of_ranges = True

    def __init__(self, mass_zero: bool = False) -> None:
        self.mass_zero = mass_zero

    def expanded(self) -> list[tuple[float, Measure]]:
        """Return itself, or itself less 2·δ_l."""
        return _without_mass(self, 2.0)

    def members(self, attributions: Sequence[tuple[int, ...]]) -> list[Measure]:
        """Return products of uniform laws and points."""
        background = self.background_
        corner = lower_corner(background, self.domain_)
        points = [
            Interval(low, low, name) for low, name in zip(corner, background.names, strict=True)
        ]
        members: list[Measure] = []
        for columns in attributions:
            laws: list = list(points)
            for k in columns:
                laws[k] = uniform_law(background, k, self.domain_)
            members.append(_Product(laws, background))
        return members

    def reference(self) -> Measure:
        """Return δ_l."""
        return Expectation("corner")


class ScaledCoefficient(Measure):
    """δ_{x_j} ⊗ δ_l on the others: w_j x_j of a linear model on [0, 1]^d.

    Parameters
    ----------
    mass_zero : bool, default=False
        Whether to subtract δ_l, so that no intercept enters: a linear model gives
        w_j (x_j - l_j) whatever its intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = LinearRegression().fit(X, X @ [2.0, -3.0] + 7.0)
    >>> explainer = MeasureExplainer(model, ScaledCoefficient(mass_zero=True)).fit(X)
    >>> explainer.explain(X[1:2]).values.round(6).tolist()
    [[2.0, 0.0]]
    """

    views = ("rows",)
    adds_up = False
    no_batches = MOVES
    of_ranges = True

    def __init__(self, mass_zero: bool = False) -> None:
        self.mass_zero = mass_zero

    def expanded(self) -> list[tuple[float, Measure]]:
        """Return itself, or itself less δ_l."""
        return _without_mass(self, 1.0)

    def rows(self) -> RowsView:
        """Return the corner as a background of one row, pinned."""
        return RowsView(corner_row(self.background_, self.domain_), True)

    def reference(self) -> Measure:
        """Return δ_l."""
        return Expectation("corner")


class _Product(Measure):
    """A product of laws, one per column."""

    depends = "nothing"
    views = ("factors",)
    flat = True

    def __init__(self, laws: list, background: Background) -> None:
        self.laws = laws
        self.background_ = background

    def factors(self) -> FactorsView:
        """Return one component."""
        return FactorsView([(1.0, self.laws)], False)


def _without_mass(measure: Any, mass: float) -> list[tuple[float, Measure]]:
    check_flag("mass_zero", measure.mass_zero)
    if not measure.mass_zero:
        return [(1.0, measure)]
    return [(1.0, type(measure)()), (-mass, Expectation("corner"))]
