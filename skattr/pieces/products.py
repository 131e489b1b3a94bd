"""f as a constant and a sum of products of functions of one raw column each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skattr import frames
from skattr.kernels import bumps
from skattr.pieces.columnwise import Columnwise, Front
from skattr.pieces.outputs import Output
from skattr.pieces.pipeline import CHUNK
from skattr.pieces.routes import refusals
from skattr.pieces.steps import DISCRETE, Track

BUNDLE = 64  # terms that are integrated by quadrature together
SINGLE = 1e-5  # how far a model that computes in float32 may be off


@dataclass(eq=False)
class Bumps:
    """What a reader finds: Σ_m c_m exp(-Σ_i γ_i (v_i - s_mi)²), v the inputs of one front."""

    front: Front
    supports: np.ndarray  # (M, p) s
    gammas: np.ndarray  # (p,)
    coefficients: np.ndarray  # (k, M) c
    constant: np.ndarray  # (k,)
    steps: tuple = ()  # fitted steps in front of the front, the outermost first
    rounding: float = 1e-8  # how far the model's own arithmetic may be off

    def scaled(self, factor: float) -> Bumps:
        """Return factor · f."""
        return replace(
            self, coefficients=self.coefficients * factor, constant=self.constant * factor
        )

    def behind(self, *steps: Any) -> Bumps:
        """Return the same function behind more steps."""
        return replace(self, steps=(*steps, *self.steps))

    def plus(self, constant: Any) -> Bumps:
        """Return f + constant, a number or (k,)."""
        return replace(self, constant=self.constant + constant)

    def at_outputs(self, places: Any, k: int) -> Bumps:
        """Return the function with its outputs at some places among k."""
        return self.combined(np.eye(k)[places])

    def combined(self, weights: np.ndarray) -> Bumps:
        """Return f @ weights, (k, m): each new output is a weighted sum of those there are."""
        return replace(
            self, coefficients=weights.T @ self.coefficients, constant=self.constant @ weights
        )

    def at_columns(self, columns: list[int] | None) -> Bumps:
        """Return the function with some of its outputs."""
        if columns is None or len(self.coefficients) == 1:
            return self
        return replace(
            self, coefficients=self.coefficients[columns], constant=self.constant[columns]
        )

    def some(self, terms: slice) -> Bumps:
        """Return the function with some of its terms."""
        return replace(
            self, supports=self.supports[terms], coefficients=self.coefficients[:, terms]
        )


class Sides(NamedTuple):
    """The inputs of a part, those of one attribution after the other."""

    inputs: np.ndarray  # (p,) their places
    starts: np.ndarray  # (g + 1,) where those of each attribution begin
    supports: np.ndarray  # (M, p)
    gammas: np.ndarray  # (p,)


class Products(Columnwise):
    """A sum of products, f = constant + Σ_m c_m ∏_k φ_mk(x_k).

    φ_mk(x_k) = exp(-Σ γ_i (v_i(x_k) - s_mi)²), the sum over the inputs v_i that come from the raw
    column k. Terms are those of all parts, one part behind the other.
    """

    def __init__(self, parts: list[Bumps], output: Output, row: Any) -> None:
        super().__init__([part.at_columns(output.columns) for part in parts], output, row)

    @property
    def n_terms(self) -> int:
        """Number of terms, M."""
        return sum(len(part.supports) for part in self.parts)

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of all terms, (M, k)."""
        return np.concatenate([part.coefficients.T for part in self.parts])

    def terms(self) -> list[slice]:
        """Return which of all terms those of each part are."""
        ends = np.cumsum([len(part.supports) for part in self.parts]).tolist()
        return [slice(*ends) for ends in zip([0, *ends], ends, strict=False)]

    def sides(self, own: Sequence) -> list[Sides]:
        """Return the inputs of each part that belong to some attributions."""
        result = []
        for part, tracks in zip(self.parts, self.tracks, strict=True):
            places = [
                [c for c, t in enumerate(tracks) if t.column in columns and part.gammas[c] > 0]
                for columns in own
            ]
            chosen = np.array([c for some in places for c in some], int)
            starts = np.cumsum([0, *map(len, places)])
            supports = np.ascontiguousarray(part.supports[:, chosen])
            result.append(Sides(chosen, starts, supports, part.gammas[chosen]))
        return result

    def in_blocks(
        self, X: Any, columns: list[int] | None = None, width: int = 1
    ) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Yield the inputs of all parts, some rows at a time.

        Those of columns that are not wanted may be wrong. `width` numbers are made of each row.
        """
        wanted = None if columns is None or len(columns) == len(self.names) else set(columns)
        size = max(64, CHUNK // max([width, *map(len, self.tracks)]))
        for start in range(0, len(X), size):
            block = slice(start, min(start + size, len(X)))
            rows = X if size >= len(X) else frames.take_rows(X, block)
            with refusals(rows, self.row.X, self.inputs, self.behind_steps):
                found = self.inputs(rows, wanted)
            yield block, [_dense(inputs) for inputs in found]

    def factors(self, X: Any, columns: list[int]) -> np.ndarray:
        """Return φ_mk of some raw columns, (n, len(columns), M)."""
        result = np.empty((len(X), len(columns), self.n_terms))
        sides = self.sides(tuple((k,) for k in columns))
        for block, inputs in self.in_blocks(X, columns, self.n_terms):
            for i in range(len(columns)):
                result[block, i] = self._factor(inputs, sides, i)
        return result

    def _factor(self, inputs: list[np.ndarray], sides: list[Sides], i: int) -> np.ndarray:
        """Return the factors of the i-th attribution of sides, (n, M)."""
        exponents = np.zeros((len(inputs[0]), self.n_terms))
        for some, found, side in zip(self.terms(), inputs, sides, strict=True):
            for c in range(side.starts[i], side.starts[i + 1]):
                with np.errstate(over="ignore"):
                    gaps = found[:, side.inputs[c], None] - side.supports[:, c]
                    exponents[:, some] += side.gammas[c] * gaps**2
        return np.exp(-exponents)

    def sums(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return Σ_r w_r φ_mk(z_rk) of all columns, (d, M)."""
        d = len(self.names)
        total = np.zeros((d, self.n_terms))
        sides = self.sides(tuple((k,) for k in range(d)))
        for block, inputs in self.in_blocks(X, None, self.n_terms):
            for k in range(d):
                total[k] += weights[block] @ self._factor(inputs, sides, k)
        return total

    def at_values(self, k: int, values: Any) -> np.ndarray:
        """Return φ_mk at raw values of column k, (n, M)."""
        return self.factors(frames.with_columns(self.row.X, {k: values}), [k])[:, 0]

    def bundles(self) -> Iterator[Products]:
        """Yield the same with a few of the terms, until all had their turn."""
        for part, tracks in zip(self.parts, self.tracks, strict=True):
            for start in range(0, len(part.supports), BUNDLE):
                some = copy(self)
                some.parts = [part.some(slice(start, start + BUNDLE))]
                some.tracks = [tracks]
                yield some

    def ignores(self, columns: tuple[int, ...]) -> np.ndarray:
        """Tell which terms do not look at some columns at all, (M,)."""
        found = [len(side.inputs) == 0 for side in self.sides((columns,))]
        return np.repeat(found, [len(part.supports) for part in self.parts])

    def is_affine(self, k: int) -> bool:
        """Tell whether all inputs of a column are known to be affine in its present numbers."""
        return all(track.affine for track in self.own_tracks(k))

    def parabolas(self, k: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return -log φ_mk = A_m (u - center_m)² + rest_m of an affine column, three times (M,).

        `ends` are the raw values at u = -1 and u = 1.
        """
        ((_, inputs),) = self.in_blocks(frames.with_columns(self.row.X, {k: ends}), [k])
        found = []
        for values, side in zip(inputs, self.sides(((k,),)), strict=True):
            left, right = values[:, side.inputs]
            slope, gaps = right / 2 - left / 2, side.supports - (left / 2 + right / 2)
            square = float(side.gammas @ slope**2)
            center = gaps @ (side.gammas * slope) / square if square else np.zeros(len(gaps))
            rest = (gaps - center[:, None] * slope) ** 2 @ side.gammas
            found.append((np.full(len(gaps), square), center, rest))
        squares, centers, rests = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return squares, centers, rests

    def sees_all(self, k: int, points: np.ndarray) -> bool:
        """Tell whether no bump of a column is so narrow that it fits between two points."""
        ((_, inputs),) = self.in_blocks(frames.with_columns(self.row.X, {k: points}), [k])
        return all(
            (gammas * np.diff(values, axis=0) ** 2).max(initial=0.0) <= 1
            for values, gammas in (
                (found[:, smooth], part.gammas[smooth])
                for found, part, tracks in zip(inputs, self.parts, self.tracks, strict=True)
                for smooth in [[c for c, t in enumerate(tracks) if _is_smooth(t, k)]]
            )
        )

    def add_up(
        self,
        inputs: list[np.ndarray],
        sides: list[Sides],
        table: np.ndarray,
        coefficients: np.ndarray,
        which: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return Σ_m coefficients_m · table[which, m] · ∏_{k own} φ_mk at rows, (n, k).

        `sides` are those of one attribution. Bits do not depend on the rows around.
        """
        n = len(inputs[0])
        result = np.zeros((n, coefficients.shape[1]))
        which = np.zeros(n, np.int64) if which is None else which
        for some, found, side in zip(self.terms(), inputs, sides, strict=True):
            bumps.add_bumps(
                np.ascontiguousarray(found[:, side.inputs]), which, side.supports, side.gammas,
                np.ascontiguousarray(table[:, some]), np.ascontiguousarray(coefficients[some]),
                result,
            )  # fmt: skip
        return result

    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the sum of all terms at some rows."""
        sides = self.sides((tuple(range(len(self.names))),))
        both = np.concatenate([self.coefficients, np.abs(self.coefficients)], axis=1)
        table = np.ones((1, self.n_terms))
        found = [self.add_up(inputs, sides, table, both) for _, inputs in self.in_blocks(rows)]
        values, size = np.split(np.concatenate(found), 2, axis=1)
        single = any(inputs.dtype == np.float32 for inputs in self.inputs(rows))
        rounding = max([part.rounding for part in self.parts] + [SINGLE] * single)
        return self.constant + values, rounding * (np.abs(self.constant) + size)

    def describe(self) -> str:
        """Say how many products there are."""
        n = len(self.names)
        return f"a sum of products, {self.n_terms:,} terms of {n} column{'s' if n != 1 else ''}"


def _is_smooth(track: Track, k: int) -> bool:
    return track.column == k and track.kind not in DISCRETE


def _dense(inputs: Any) -> np.ndarray:
    inputs = inputs.toarray() if sparse.issparse(inputs) else inputs
    return np.asarray(inputs, np.float64)
