"""What readers return: parts, whose sum is f.

A part is a function of the inputs of one front. On its way to it, a row of raw columns passes the
fitted steps of a pipeline and then the front, which is what the model itself does to its table:

    raw columns → steps → front → inputs → part
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from skattr._typing import override
from skattr.pieces.preprocessing.tracks import Track

SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # the relative error of one addition in float32, in float64


def rounding_of(dtype: Any) -> float:
    """Return how far a model that computes in a dtype may be off, relative to its terms."""
    return 1e-5 if dtype == np.float32 else 1e-8


class Front(ABC):
    """The checks, casts and encoders of the model itself.

    Attributes
    ----------
    columns : array (m,)
        The column of the model's table that each input comes from.
    takes_missing, takes_infinite : bool
        Whether the model accepts missing and infinite numbers.
    dtype : numpy dtype
        The type of the inputs.
    absent : float
        What an absent entry of a sparse table means.
    """

    columns: np.ndarray
    takes_missing = False
    takes_infinite = False
    dtype: np.dtype = np.dtype(np.float64)
    absent = 0.0

    @abstractmethod
    def inputs(self, X: Any) -> Any:
        """Return the numbers that the model computes with.

        Parameters
        ----------
        X : table (n, p)
            What the steps return, or the raw columns if there are no steps.

        Returns
        -------
        array or sparse matrix (n, m)

        Raises
        ------
        ValueError, TypeError
            Where the model's `predict` refuses X.
        """

    def track(self, c: int, track: Track) -> Track:
        """Return the track of input c, given the track of the column that it comes from."""
        return track

    def changes(self, c: int) -> tuple:
        """Return a description of how input c differs from its number cast, () if it does not."""
        return ()


@dataclass(eq=False)
class Part(ABC):
    """A function with k outputs of the inputs of one front."""

    front: Front
    constant: np.ndarray  # (k,)
    _: KW_ONLY
    steps: tuple = ()  # the fitted steps before the front, in the order in which they run
    rounding: float = 1e-8  # relative error of the model's own arithmetic

    @property
    def chain(self) -> tuple[int, ...]:
        """The identity of the steps: parts with the same chain share what their steps return."""
        return tuple(map(id, self.steps))

    def behind(self, *steps: Any) -> Self:
        """Return the same function behind more steps."""
        return replace(self, steps=(*steps, *self.steps))

    def plus(self, constant: Any) -> Self:
        """Return f + constant, a number or (k,)."""
        return replace(self, constant=self.constant + constant)

    def at_outputs(self, outputs: Any, k: int) -> Self:
        """Return the function with its outputs moved to the given ones of k, the others 0."""
        return self.combined(np.eye(k)[outputs])

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return factor · f."""

    @abstractmethod
    def combined(self, weights: np.ndarray) -> Self:
        """Return f @ weights, weights (k, m): each new output is a weighted sum of the old ones."""

    @abstractmethod
    def select(self, outputs: list[int] | None) -> Self:
        """Return the function with some of its outputs, or with all of them for None."""


@dataclass(eq=False)
class Expansion(Part):
    """f = constant + coefficients · φ(v), φ being m functions of the inputs v."""

    coefficients: np.ndarray  # (k, m)

    @override
    def scaled(self, factor: float) -> Self:
        return replace(
            self, coefficients=self.coefficients * factor, constant=self.constant * factor
        )

    @override
    def combined(self, weights: np.ndarray) -> Self:
        return replace(
            self, coefficients=weights.T @ self.coefficients, constant=self.constant @ weights
        )

    @override
    def select(self, outputs: list[int] | None) -> Self:
        if outputs is None or len(self.coefficients) == 1:
            return self
        return replace(
            self, coefficients=self.coefficients[outputs], constant=self.constant[outputs]
        )


@dataclass(eq=False)
class Linear(Expansion):
    """A linear function: φ(v) = v."""


@dataclass(eq=False)
class Bumps(Expansion):
    """A sum of Gaussian bumps: φ_m(v) = exp(-Σ_i γ_i (v_i - s_mi)²)."""

    supports: np.ndarray  # (M, p) s
    gammas: np.ndarray  # (p,)

    def some(self, terms: slice) -> Bumps:
        """Return the function with some of its terms."""
        return replace(
            self, supports=self.supports[terms], coefficients=self.coefficients[:, terms]
        )


class Layer(NamedTuple):
    """Units z = weight · y + bias that return z where z >= 0, slope · z elsewhere.

    The slope is 0 for a ReLU, 0.01 for a leaky one, and 1 for a unit that passes its number on.
    """

    weight: np.ndarray  # (m, p) float64
    bias: np.ndarray  # (m,)
    slope: np.ndarray  # (m,)


@dataclass(eq=False)
class Net(Expansion):
    """A ReLU network: φ(v) is what the last hidden layer returns."""

    layers: list[Layer]

    def deepened(self, depth: int) -> Net:
        """Return the same function with more layers, which pass their numbers on."""
        m = self.coefficients.shape[1]
        more = [Layer(np.eye(m), np.zeros(m), np.ones(m))] * (depth - len(self.layers))
        return replace(self, layers=[*self.layers, *more])


@dataclass(eq=False, kw_only=True)
class Trees(Part):
    """Decision trees, all nodes in one table.

    A child comes after its parent. A row whose input is missing goes where `missing_left` says;
    otherwise it goes left if its input is <= `edge` or, at a node with `members` >= 0, if its input
    (a level's number) is a member of that set.
    """

    roots: np.ndarray  # (n_trees,)
    outputs: np.ndarray  # (n_trees,) the first output that a tree adds to
    column: np.ndarray  # (n_nodes,) input, or -1 at a leaf
    left: np.ndarray  # (n_nodes,)
    right: np.ndarray  # (n_nodes,)
    edge: np.ndarray  # (n_nodes,) the largest float64 that goes left
    missing_left: np.ndarray  # (n_nodes,)
    values: np.ndarray  # (n_leaves, width), in the order of the leaves
    depth: int
    members: np.ndarray | None = None  # (n_nodes,) row of `sets`, or -1
    sets: np.ndarray | None = None  # (n_sets, n_levels) whether a level goes left
    known: dict = field(default_factory=dict)  # input of levels -> which of them the model knows
    levels: dict = field(default_factory=dict)  # input of levels -> their values
    rounding: float = DOUBLE  # relative error of one addition

    def nodes_of_inputs(self) -> dict[int, np.ndarray]:
        """Return the nodes at which each input is compared, for the inputs that are."""
        few = self.column.max(initial=0) < np.iinfo(np.int16).max  # small integers sort fast
        column = self.column.astype(np.int16) if few else self.column
        order = np.argsort(column, kind="stable")
        inputs, start = np.unique(column[order], return_index=True)
        nodes = zip(inputs.tolist(), np.split(order, start[1:]), strict=True)
        return {c: at for c, at in nodes if c >= 0}

    def n_leaves(self) -> np.ndarray:
        """Return how many leaves each tree has."""
        first = np.searchsorted(np.flatnonzero(self.column < 0), self.roots)
        return np.diff(first, append=len(self.values))

    @override
    def scaled(self, factor: float) -> Self:
        return replace(self, values=self.values * factor, constant=self.constant * factor)

    @override
    def combined(self, weights: np.ndarray, width: int = 1) -> Self:
        """Return f @ weights.

        Values are as wide as the outputs that one tree adds to, but not narrower than `width`.
        """
        old_width = self.values.shape[1]
        blocks = {o: weights[o : o + old_width] for o in np.unique(self.outputs).tolist()}
        spans = {o: np.flatnonzero(block.any(axis=0)) for o, block in blocks.items()}
        width = max([width, *(span[-1] - span[0] + 1 for span in spans.values() if len(span))])
        output = np.repeat(self.outputs, self.n_leaves())
        values = np.empty((len(self.values), width))
        outputs = np.empty_like(self.outputs)
        for o, block in blocks.items():
            first = min(spans[o].min(initial=weights.shape[1]), weights.shape[1] - width)
            values[output == o] = self.values[output == o] @ block[:, first : first + width]
            outputs[self.outputs == o] = first
        constant = self.constant @ weights
        return replace(self, values=values, outputs=outputs, constant=constant)

    @override
    def select(self, outputs: list[int] | None) -> Self:
        k = len(self.constant)
        if outputs is None or outputs == list(range(k)):
            return self
        return self.combined(np.eye(k)[:, outputs])
