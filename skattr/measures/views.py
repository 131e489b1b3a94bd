"""Views: the forms in which engines ask for a measure.

A measure names its views in `Measure.views`, keys of `VIEWS`. The first eight are the measures of
all attributions at once, which the method of that name returns: `rows()`, `bins()`, `factors()`,
`mixture()`, `normals()`, `atoms(X, attributions)`, `accumulated()` and `replaced()`. The others
answer for one attribution at a time, given its `columns`, a tuple of column positions: the measure
has the methods of a protocol.
A measure of coalitions has the view "coalitions of rows" if its inner measure has the view "rows",
and so on for all views; `coalitions()` returns it. A measure of pairs has the view "pairs of rows"
or "pairs of coalitions of rows", one for each view of its inner measure; `pairs()` returns it.

Shapes: n rows, d columns, g attributions. A table is a frame or an array, x a table of one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from skattr.measures.background import Background
from skattr.measures.learned.conditional_law import NormalLaw
from skattr.measures.learned.mixture import Mixture
from skattr.measures.learned.row_weights import RowWeights


class RowsView(NamedTuple):
    """μ_{j,x} = Σ_r w_r δ_{z_r} / Σ w, with the coordinates j of z_r set to x's if `pinned`."""

    background: Background
    pinned: bool


class BinsView(NamedTuple):
    """μ_{j,x} = Σ_r π_r(x_j) δ_{(x_j, z_{r,-j})}: weights of rows that depend on the bin of x_j."""

    background: Background
    weights: RowWeights


class FactorsView(NamedTuple):
    """μ_{j,x} = Σ_c π_c ⊗_i ν_{c,i}, with the factors j replaced by δ_{x_j} if `pinned`."""

    components: list[tuple[float, list[Any]]]  # π_c, and one law of factors/laws.py per column
    pinned: bool


class MixtureView(NamedTuple):
    """μ_{j,x} = Σ_c π_c(x_j) δ_{x_j} ⊗_{i≠j} ν_{c,i}: shares that depend on x_j."""

    mixture: Mixture  # `shares(t, columns)` are π_c(t)
    names: list[Any]
    components: list[list[Any]]  # one law per column


class NormalsView(NamedTuple):
    """μ_{j,x} = Σ_c π_c(x_j) N_c(x_j): normal laws that depend on x_j."""

    law: NormalLaw
    names: list[Any]


class AtomsView(NamedTuple):
    """μ_{j,x_i} = Σ_a weights[j, a] δ_{points_a} over the atoms a of row i."""

    points: Any  # a table, one row per atom
    weights: np.ndarray  # (g, n_atoms)
    row: np.ndarray  # (n_atoms,) the explained row


class CoalitionsView(NamedTuple):
    """phi_j(x) = ∫ E[v_x(S ∪ j) - v_x(S)] dP(p), v_x(S) = ∫ f dμ_{S,x}, μ the inner measure."""

    measure: Any  # the inner measure, fitted
    semivalue: Any  # the law of p, a `coalitions.Semivalue`


class PairsView(NamedTuple):
    """phi_jk(x) = ∫ f dμ_jk - ∫ f dμ_j - ∫ f dμ_k + ∫ f dν, or the interaction index of a game."""

    measure: Any  # the inner measure μ, fitted to single attributions; ν is its reference


class AccumulatedView(NamedTuple):
    """phi_j(x) = Σ_m c_m(x_j) ∫ f dν_{j,m}, ν_{j,m} the mean difference over a bin of column j."""

    background: Background
    columns: list[Any]  # the bins of each column, an `ale.LocalEffects` each


class ReplacedView(NamedTuple):
    """μ_{j,x} = δ_x - Σ_r w_r δ_{(z_rj, x_{-j})} / Σ w: the own value replaced by those of rows."""

    background: Background


class HasCenters(Protocol):
    """View "centers": the means of probabilities."""

    def centers(self, X: Any, columns: tuple[int, ...]) -> Any:
        """Return the means as a table (n, d): the columns as in X, the others at their means."""


class HasTransport(Protocol):
    """View "transport": points made of uniform numbers."""

    @property
    def n_uniforms(self) -> int:
        """The number of uniform numbers that make a point."""

    def transport(self, u: Any, x: Any, columns: tuple[int, ...]) -> tuple[Any, Any]:
        """Return points and their weights.

        Parameters
        ----------
        u : array (m, n_uniforms)
            Uniform numbers in [0, 1); a tensor if the measure has the view "density" and the model
            evaluates tensors.
        x : table of one row
            The explained row.
        columns : tuple of int
            The columns of the attribution.

        Returns
        -------
        points : table (m, d)
        weights : array (m,) or None
            Their mean is the mass. None: equal weights of mass 1.
        """


class HasDraws(Protocol):
    """View "draws": points that a function draws."""

    @property
    def n_uniforms(self) -> int:
        """The number of columns of `each.u`, which are not used."""

    def draws(self, x: Any, columns: tuple[int, ...], each: Any) -> Any:
        """Return points of equal weight, a table (len(each.u), d), one replicate after the other.

        The fields of `each` are `u`, `replicates`, the `seed`, and the `number` of the round.
        """

    def merge(self, other: Self) -> Self:
        """Return the measure of two batches of the background."""


class OnBox(Protocol):
    """A function of points y of the box `sides_`, on which the measure lives."""

    sides_: np.ndarray  # (d, 2) low and high; a column where they are equal is a point

    def at(self, y: Any, x: np.ndarray, columns: tuple[int, ...]) -> Any:
        """Return the function at y, an array or tensor (..., d), for x (d,): (...)."""

    def points(self, y: np.ndarray) -> Any:
        """Return y (n, d) as a table like the background."""


class HasIncrements(OnBox, Protocol):
    """View "increments": the measure of a box is the increment of the function `at`."""

    product: bool  # whether `at` returns the factors of a product, (..., d), entry i of y_i alone

    def vertices(self, points: int, x: np.ndarray, columns: tuple[int, ...]) -> list[np.ndarray]:
        """Return the ends of the cells of a grid on each side, with jumps in separate cells."""

    def masses(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> np.ndarray:
        """Return the increments over the whole box, (n, g)."""


class HasDensity(OnBox, Protocol):
    """View "density": the function `at` is a density with respect to Lebesgue measure."""

    def axes(self, points: int, rule: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the nodes and weights of a rule ("left", "midpoint", "gauss") on each side."""


VIEWS: dict[str, type] = {
    "rows": RowsView,
    "bins": BinsView,
    "factors": FactorsView,
    "mixture": MixtureView,
    "normals": NormalsView,
    "atoms": AtomsView,
    "accumulated": AccumulatedView,
    "replaced": ReplacedView,
    "centers": HasCenters,
    "transport": HasTransport,
    "increments": HasIncrements,
    "density": HasDensity,
    "draws": HasDraws,
}


def of_coalitions(view: str) -> str:
    """Return the view of coalitions whose inner measure has a view."""
    return f"coalitions of {view}"


COALITIONS = tuple(map(of_coalitions, VIEWS))
VIEWS |= dict.fromkeys(COALITIONS, CoalitionsView)


def of_pairs(view: str) -> str:
    """Return the view of pairs whose inner measure has a view."""
    return f"pairs of {view}"


PAIRS = tuple(map(of_pairs, VIEWS))
VIEWS |= dict.fromkeys(PAIRS, PairsView)
