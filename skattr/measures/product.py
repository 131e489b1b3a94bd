"""Products of one-dimensional laws, with δ_{x_j} in the explained columns."""

from __future__ import annotations

from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.measures.factors.laws import Empirical, uniform_law
from skattr.measures.views import FactorsView


class ProductMarginal(Measure):
    """δ_{x_j} ⊗ ⊗_{i≠j} P_i: partial dependence as if the other columns were independent.

    [The paper's Table 1, row 2.] It is exact on trees, without sampling combinations of values.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], ProductMarginal()).fit(X)
    >>> explainer.explain(X).values
    array([[0., 1.],
           [4., 3.]])
    """

    views = ("factors",)
    by_rows = "sums"

    def factors(self) -> FactorsView:
        """Return one component, the marginals of the background."""
        background = self.background_
        laws = [Empirical(background, k) for k in range(len(background.names))]
        return FactorsView([(1.0, laws)], True)

    def reference(self) -> Measure:
        """Return ⊗P_i."""
        return Expectation("product")


class Uniform(Measure):
    """δ_{x_j} ⊗ the uniform law on the other sides of the domain.

    [The paper's section 3.1, in d dimensions.] Choose it to look at the model alone: of the data it
    uses the range only. A column of categories, booleans or strings has equal weight on
    the background's levels; missing values have none.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Uniform()).fit(X)
    >>> explainer.explain(X).values
    array([[0., 1.],
           [4., 3.]])
    """

    views = ("factors",)
    flat = True

    def factors(self) -> FactorsView:
        """Return one component."""
        background = self.background_
        columns = range(len(background.names))
        laws = [uniform_law(background, k, self.domain_) for k in columns]
        return FactorsView([(1.0, laws)], True)

    def reference(self) -> Measure:
        """Return the uniform law on the whole domain."""
        return Expectation("uniform")
