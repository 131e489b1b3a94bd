"""Measures made of rows of data: partial dependence, expectation, Dirac and baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._inputs.points import one_row
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.factors.laws import Empirical, Interval, uniform_law
from skattr.measures.views import AtomsView, FactorsView, RowsView

LAWS = ("joint", "product", "uniform", "corner")


def lower_corner(background: Background, domain: dict) -> np.ndarray:
    """Return the lower corner of the domain, (d,)."""
    corner = np.empty(len(background.names))
    for k, name in enumerate(background.names):
        law = uniform_law(background, k, domain)
        if not isinstance(law, Interval):
            raise ValueError(f"the lower corner needs numbers, but column {name!r} holds levels")
        corner[k] = law.ends()[0]
    return corner


def corner_row(background: Background, domain: dict) -> Background:
    """Return the lower corner of the domain as a background of one row."""
    corner = lower_corner(background, domain)
    row = frames.take_rows(background.X, slice(1))
    columns = {k: np.array([low]) for k, low in enumerate(corner)}
    return Background(frames.with_columns(row, columns), np.ones(1), background.levels)


class PartialDependence(Measure):
    """δ_{x_j} ⊗ P_{-j}: the mean of f over the background with x_j put into every row.

    Its attribution is E f(x_j, X_{-j}) [the paper's Table 1, row 3]. Choose it to see what the
    model does with a column when the others stay as they are in the data. Where columns are
    strongly correlated, it asks the model about points that do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], PartialDependence()).fit(X)
    >>> explainer.explain(X).values
    array([[0., 1.],
           [4., 3.]])
    """

    effect = "main effect"
    views = ("rows",)
    by_rows = "mean"

    def rows(self) -> RowsView:
        """Return the background, pinned."""
        return RowsView(self.background_, True)

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()


class Expectation(Measure):
    """The background's law P, for every attribution and row: the mean of f.

    Subtract it from another measure to centre it: `PartialDependence() - Expectation()`.

    Parameters
    ----------
    law : {"joint", "product", "uniform", "corner"}
        P, the product ⊗P_i of its marginals, the uniform law on the domain, or the point at its
        lower corner. They centre `PartialDependence`, `ProductMarginal`, `Uniform` and the
        coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Expectation()).fit(X)
    >>> explainer.explain(X).values
    array([[3., 3.],
           [3., 3.]])
    """

    depends = "nothing"

    def __init__(self, law: str = "joint") -> None:
        self.law = law

    @property
    def views(self) -> tuple[str, ...]:  # type: ignore[override]
        """The view that belongs to the law."""
        return ("rows",) if self.law in ("joint", "corner") else ("factors",)

    @property
    def mean_law(self) -> str:  # type: ignore[override]
        """The law itself."""
        return self.law

    @property
    def adds_up(self) -> bool:  # type: ignore[override]
        """Whether batches give the result of one fit."""
        return self.law != "corner"

    no_batches = "the corner of the domain moves with the range of the background"

    @property
    def by_rows(self) -> str:  # type: ignore[override]
        """How it depends on rows."""
        return {"joint": "mean", "product": "sums"}.get(self.law, "")

    @property
    def of_ranges(self) -> bool:  # type: ignore[override]
        """Whether it learns ranges only."""
        return self.law in ("uniform", "corner")

    @property
    def flat(self) -> bool:  # type: ignore[override]
        """Whether it is the uniform law."""
        return self.law == "uniform"

    def _check_parameters(self) -> None:
        if self.law not in LAWS:
            raise ValueError(f"law must be one of {LAWS}, got {self.law!r}")

    def rows(self) -> RowsView:
        """Return the background, or the corner as a background of one row."""
        if self.law == "corner":
            return RowsView(corner_row(self.background_, self.domain_), False)
        return RowsView(self.background_, False)

    def factors(self) -> FactorsView:
        """Return one component, not pinned."""
        background = self.background_
        columns = range(len(background.names))
        if self.law == "product":
            laws: list = [Empirical(background, k) for k in columns]
        else:
            laws = [uniform_law(background, k, self.domain_) for k in columns]
        return FactorsView([(1.0, laws)], False)

    def reference(self) -> Measure:
        """Return itself."""
        return self


class Dirac(Measure):
    """δ_x: the prediction f(x), for every attribution.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Dirac()).fit(X)
    >>> explainer.explain(X).values
    array([[0., 0.],
           [6., 6.]])
    """

    depends = "row"
    views = ("atoms",)

    def atoms(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> AtomsView:
        """Return one atom per row: the row itself."""
        n = len(X)
        return AtomsView(X, np.broadcast_to(1.0, (len(attributions), n)), np.arange(n))

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()


class Baseline(Measure):
    """δ_p: the prediction f(p) at one fixed point, for every attribution and row.

    Parameters
    ----------
    point : array (d,), dict, Series or one-row frame
        The point; a dict, a Series or a frame names the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Baseline([1.0, 5.0])).fit(X)
    >>> explainer.explain(X).values
    array([[5., 5.],
           [5., 5.]])
    """

    depends = "nothing"
    views = ("rows",)

    def __init__(self, point: Any) -> None:
        self.point = point

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        self.background_ = Background(one_row(self.point, background.X), np.ones(1))

    def rows(self) -> RowsView:
        """Return the point as a background of one row."""
        return RowsView(self.background_, False)

    def reference(self) -> Measure:
        """Return itself."""
        return self
