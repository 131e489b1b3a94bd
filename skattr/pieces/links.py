"""Links: known functions of the margins of a model, which lead to what it predicts.

The margins stand on the first axis: a link takes an array (m, …) and returns one (k, …), so that it
works on whole blocks of rows and cells at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._typing import override


class Link(ABC):
    """A function of the margins: what the model predicts is this function of sums of pieces."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The function in words."""

    @abstractmethod
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        """Return the outputs, (k, …), at margins (m, …), which may be overwritten."""

    def select(self, columns: list[int] | None) -> Link:
        """Return the link with some of its outputs, or with all of them for None."""
        return self if columns is None else Selected(self, tuple(columns))


@dataclass(frozen=True, eq=False)
class Function(Link):
    """A function with as many outputs as margins: of each by itself, or of all of them."""

    label: str
    function: Callable[[np.ndarray], np.ndarray]

    @property
    @override
    def name(self) -> str:
        return self.label

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        return self.function(margins)


@dataclass(frozen=True, eq=False)
class TwoClasses(Link):
    """1 - p and p, where p is a link of one margin: the probabilities of two classes."""

    positive: Link

    @property
    @override
    def name(self) -> str:
        return self.positive.name

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        p = self.positive(margins)
        return np.concatenate([1.0 - p, p])

    @override
    def select(self, columns: list[int] | None) -> Link:
        return self.positive if columns == [1] else super().select(columns)


@dataclass(frozen=True, eq=False)
class Normalised(Link):
    """Shares: the outputs of another link, divided by their sum; equal shares where that is 0."""

    parts: Link

    @property
    @override
    def name(self) -> str:
        return f"{self.parts.name}, as shares"

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        parts = self.parts(margins)
        total = parts.sum(axis=0)
        equal = np.full_like(parts, 1 / len(parts))
        return np.divide(parts, total, out=equal, where=total != 0)


@dataclass(frozen=True, eq=False)
class Chain(Link):
    """One link after another."""

    first: Link
    then: Link

    @property
    @override
    def name(self) -> str:
        return f"{self.first.name}, then {self.then.name}"

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        return self.then(self.first(margins))

    @override
    def select(self, columns: list[int] | None) -> Link:
        return Chain(self.first, self.then.select(columns))


@dataclass(frozen=True, eq=False)
class SideBySide(Link):
    """One link for each of some margins; the outputs stand side by side."""

    members: Sequence[tuple[slice, Link]]  # the margins of each member, and its link

    @property
    @override
    def name(self) -> str:
        return _names(link for _, link in self.members)

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        return np.concatenate([link(margins[of]) for of, link in self.members])


@dataclass(frozen=True, eq=False)
class WeightedSum(Link):
    """The weighted sum of members, each a link of some of the margins."""

    members: Sequence[tuple[slice, Link]]  # the margins of each member, and its link
    weights: Sequence[float]

    @property
    @override
    def name(self) -> str:
        return (
            f"the mean of {len(self.members)} members behind {_names(m for _, m in self.members)}"
        )

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        pairs = zip(self.members, self.weights, strict=True)
        total: Any = 0.0
        for (of, link), weight in pairs:
            total = total + weight * link(margins[of])
        return total

    @override
    def select(self, columns: list[int] | None) -> Link:
        members = [(of, link.select(columns)) for of, link in self.members]
        return WeightedSum(members, self.weights)


@dataclass(frozen=True, eq=False)
class Placed(Link):
    """The outputs of another link at some of k positions, 0 at the others."""

    link: Link
    positions: Sequence[int]
    k: int

    @property
    @override
    def name(self) -> str:
        return self.link.name

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        result = np.zeros((self.k, *margins.shape[1:]))
        result[list(self.positions)] = self.link(margins)
        return result


@dataclass(frozen=True, eq=False)
class Selected(Link):
    """Some outputs of another link."""

    link: Link
    columns: tuple[int, ...]

    @property
    @override
    def name(self) -> str:
        return self.link.name

    @override
    def __call__(self, margins: np.ndarray) -> np.ndarray:
        return self.link(margins)[list(self.columns)]


def _names(links: Any) -> str:
    return " and ".join(dict.fromkeys(link.name for link in links))


def _expit(margins: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # e^∞ is right: the probability is 0
        p = np.negative(margins)
        np.exp(p, out=p)
    p += 1.0
    return np.reciprocal(p, out=p)


def _exp(margins: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.exp(margins)


def _softmax(margins: np.ndarray) -> np.ndarray:
    p = np.exp(margins - margins.max(axis=0))
    p /= p.sum(axis=0)
    return p


def _log_softmax(margins: np.ndarray) -> np.ndarray:
    shifted = margins - margins.max(axis=0)
    return shifted - np.log(np.exp(shifted).sum(axis=0))


def _softplus(margins: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, margins)


def _signed_square(margins: np.ndarray) -> np.ndarray:
    return np.sign(margins) * margins * margins


def _clipped(margins: np.ndarray) -> np.ndarray:
    return (np.clip(margins, -1.0, 1.0) + 1.0) / 2.0


def scaled(link: Link, factor: float) -> Link:
    """Return the link of factor · margin."""
    if factor == 1.0:
        return link
    return Chain(Function(f"{factor:g} times", lambda margins: factor * margins), link)


IDENTITY = Function("no link", lambda margins: margins)
EXP = Function("exp", _exp)
LOGISTIC = Function("the logistic function", _expit)
SOFTMAX = Function("softmax", _softmax)
LOG_SOFTMAX = Function("log softmax", _log_softmax)
SOFTPLUS = Function("log(1 + exp)", _softplus)
SIGNED_SQUARE = Function("the signed square", _signed_square)
CLIPPED = Function("clipping to [-1, 1]", _clipped)
BINARY = TwoClasses(LOGISTIC)
