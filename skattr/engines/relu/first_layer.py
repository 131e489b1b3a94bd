"""The first affine map of a ReLU network under products of uniform laws.

A column is uniform on an interval, a point, or uniform on some levels. Columns with intervals enter
by affine functions, so that for each combination of levels

    z = constant + Σ_i slopes_i u_i,   u uniform on [-1, 1]^D, D the number of such intervals.

Pinned columns are part of the constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from skattr._inputs import frames
from skattr.attributions import Attributions
from skattr.engines.base import Engine, RunOptions, TooCostly
from skattr.engines.laws import merge_components
from skattr.measures.factors.laws import Levels
from skattr.measures.factors.points import ProductPoints
from skattr.measures.learned.gaussian import by_row
from skattr.pieces import ReluNetwork


class Uniforms(NamedTuple):
    """The first layer on one combination of levels, over the cube of the intervals."""

    share: float
    constant: np.ndarray  # (m,)
    slopes: np.ndarray  # (m, D)


class FirstLayer:
    """z = bias + Σ_k h_k(x_k), m units; the outputs if there is no hidden layer."""

    def __init__(self, network: ReluNetwork) -> None:
        self.network = network
        self.weight, self.bias = network.weight, network.bias
        if network.layers:
            self.weight, self.bias = network.layers[0].weight, network.layers[0].bias

    def inputs_of(self, k: int) -> np.ndarray:
        """Return the inputs that come from a column."""
        line = self.network.lines.get(k)
        return np.flatnonzero(self.network.columns == k) if line is None else line.positions

    def is_affine(self, k: int) -> bool:
        """Return whether a column is known to enter by an affine function, or does not enter."""
        return k in self.network.lines or not len(self.inputs_of(k))

    def not_affine(self, k: int) -> str:
        """Return the message for a column that is not known to be affine."""
        return (
            f"column {self.network.names[k]!r} is not known to enter the network by an affine "
            "function, so integrals over its range are not known exactly"
        )

    def slope(self, k: int) -> np.ndarray:
        """Return the slope of h_k of an affine column, (m,)."""
        line = self.network.lines.get(k)
        if line is None:
            return np.zeros(len(self.bias))
        return self.weight[:, line.positions] @ line.direction

    def at(self, k: int, values: Any) -> np.ndarray:
        """Return h_k at some raw values, (n, m)."""
        line = self.network.lines.get(k)
        if line is not None:
            start = self.weight[:, line.positions] @ line.start
            return start + (np.asarray(values, float)[:, None] - line.origin) * self.slope(k)
        inputs = self.inputs_of(k)
        if not len(inputs):
            return np.zeros((len(values), len(self.bias)))
        rows = frames.with_columns(self.network.row.X, {k: values})
        return by_row(self.network.numbers(rows)[:, inputs], self.weight[:, inputs].T)

    def at_rows(self, X: Any, columns: tuple[int, ...]) -> np.ndarray:
        """Return Σ_k h_k over some columns of rows, (n, m); no row depends on the others."""
        Z = self.network.numbers(X)
        inputs = np.concatenate([self.inputs_of(k) for k in columns])
        return by_row(Z[:, inputs], self.weight[:, inputs].T)

    def rest(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return slopes (m,), weights (k, m) and biases (k,) after a single layer."""
        network = self.network
        if network.layers:
            return network.layers[0].slope, network.weight, network.bias
        k = len(network.bias)  # the units are the outputs
        return np.ones(k), np.eye(k), np.zeros(k)

    def uniforms(self, laws: list, pinned: tuple[int, ...]) -> Iterator[Uniforms]:
        """Yield each combination of the levels of columns that are not pinned."""
        constant, slopes, choices = self.bias, [], []
        for k, law in enumerate(laws):
            if k in pinned:
                continue
            if isinstance(law, Levels):
                choices.append(self.at(k, frames.as_column(law.levels)))
                continue
            low, high = law.ends()
            if low < high and not self.is_affine(k):  # each batch has one number, but not the same
                raise ValueError(
                    f"partial_fit: {self.not_affine(k)}; use fit with the whole background"
                )
            constant = constant + self.at(k, np.array([low / 2 + high / 2]))[0]
            if low < high and (slope := self.slope(k)).any():
                slopes.append(slope * (high / 2 - low / 2))
        count = prod(len(choice) for choice in choices)
        sides = np.array(slopes).T if slopes else np.zeros((len(self.bias), 0))
        for chosen in product(*choices):
            yield Uniforms(1.0 / count, sum(chosen, constant), sides)


@dataclass(eq=False)
class UniformLaws:
    """A mixture of products of uniform laws, and the mean of f under it."""

    attributions: Sequence  # the pinned ones
    components: list  # (π_c, one law per column)
    points: ProductPoints | None = None  # for values with too many cells
    mean: np.ndarray | None = None  # (k,)
    certificate: dict | None = None

    def merge(self, other: UniformLaws) -> UniformLaws:
        """Join the laws of two batches."""
        joined = merge_components(self.components, other.components)
        points = self.points and other.points and self.points.merge(other.points)
        return UniformLaws(self.attributions, joined, points)


def why_not_shallow(network: ReluNetwork) -> str | None:
    """Return why a network has more than one hidden layer, or None."""
    n = len(network.layers)
    return f"it needs at most one hidden layer, the network has {n}" if n > 1 else None


def why_not_uniform(network: ReluNetwork, measure: Any) -> str | None:
    """Return why the laws of a measure are not uniform on the inputs of a network, or None."""
    if not measure.flat:
        return f"it needs uniform laws, those of {measure!r} are not"
    if not hasattr(measure, "background_"):  # not fitted yet
        return None
    first = FirstLayer(network)
    columns = range(len(network.names))
    members = [measure]
    if measure.depends == "attribution":
        members = measure.members(tuple((k,) for k in columns))
    products = [laws for member in members for _, laws in member.factors()[0]]
    for k in columns:
        wide = any(
            not isinstance(laws[k], Levels) and laws[k].low < laws[k].high for laws in products
        )
        if wide and not first.is_affine(k):
            return first.not_affine(k)
    return None


def uniform_laws(
    network: ReluNetwork,
    measure: Any,
    attributions: Attributions,
    engine: Engine,
    options: RunOptions,
) -> UniformLaws:
    """Return the laws of a measure; raise TooCostly if they have too many levels."""
    components, pinned = measure.factors()
    for _, laws in components:
        count = prod(len(law.levels) for law in laws if isinstance(law, Levels))
        if count > options.max_evals:
            raise TooCostly(
                engine.name,
                f"the levels of {measure!r} have {count} combinations, which is more than "
                f"max_evals={options.max_evals:g}",
            )
    return UniformLaws(attributions if pinned else (), components)
