"""f as a constant and a sum of products of functions of one raw column each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr.kernels import bumps
from skattr.pieces.columnwise import Columnwise
from skattr.pieces.parts import Bumps
from skattr.pieces.preprocessing.pipeline import row_blocks, to_dense
from skattr.pieces.preprocessing.refusals import refusals
from skattr.pieces.preprocessing.tracks import Kind

BUNDLE = 64  # terms that are integrated by quadrature together


class Sides(NamedTuple):
    """The inputs of a part, sorted by attribution."""

    inputs: np.ndarray  # (p,) which of the part's inputs they are
    starts: np.ndarray  # (g + 1,) where the inputs of each attribution start
    supports: np.ndarray  # (M, p)
    gammas: np.ndarray  # (p,)


class Products(Columnwise[Bumps]):
    """A sum of products, f = constant + Σ_m c_m ∏_k φ_mk(x_k).

    φ_mk(x_k) = exp(-Σ γ_i (v_i(x_k) - s_mi)²), the sum over the inputs v_i that come from the raw
    column k. The terms are those of all parts, one part after the other.
    """

    @property
    def n_terms(self) -> int:
        """Number of terms, M."""
        return sum(len(part.supports) for part in self.parts)

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of all terms, (M, k)."""
        return np.concatenate([part.coefficients.T for part in self.parts])

    def terms(self) -> list[slice]:
        """Return the range of each part's terms among all terms."""
        ends = np.cumsum([len(part.supports) for part in self.parts]).tolist()
        return [slice(*ends) for ends in zip([0, *ends], ends, strict=False)]

    def sides(self, attributions: Sequence) -> list[Sides]:
        """Return the inputs of each part that belong to attributions, tuples of columns."""
        result = []
        for part, tracks in zip(self.parts, self.tracks, strict=True):
            groups = [
                [c for c, t in enumerate(tracks) if t.column in columns and part.gammas[c] > 0]
                for columns in attributions
            ]
            inputs = np.array([c for group in groups for c in group], int)
            starts = np.cumsum([0, *map(len, groups)])
            supports = np.ascontiguousarray(part.supports[:, inputs])
            result.append(Sides(inputs, starts, supports, part.gammas[inputs]))
        return result

    def in_blocks(
        self, X: Any, columns: list[int] | None = None, width: int = 1
    ) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """Yield the inputs of all parts, a block of rows at a time.

        Only the inputs of the wanted `columns` are right. `width` is how many numbers the caller
        computes per row.
        """
        wanted = None if columns is None or len(columns) == len(self.names) else set(columns)
        for block, rows in row_blocks(X, max([width, *map(len, self.tracks)])):
            with refusals(rows, self.row.X, self.inputs, self.behind_steps):
                inputs = self.inputs(rows, wanted)
            yield block, [np.asarray(to_dense(values), np.float64) for values in inputs]

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
        for terms, values, side in zip(self.terms(), inputs, sides, strict=True):
            for c in range(side.starts[i], side.starts[i + 1]):
                with np.errstate(over="ignore"):
                    gaps = values[:, side.inputs[c], None] - side.supports[:, c]
                    exponents[:, terms] += side.gammas[c] * gaps**2
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
        """Yield sums of a few of the terms each, which together are all terms."""
        for part, tracks in zip(self.parts, self.tracks, strict=True):
            for start in range(0, len(part.supports), BUNDLE):
                some = copy(self)
                some.parts = [part.some(slice(start, start + BUNDLE))]
                some.tracks = [tracks]
                yield some

    def ignores(self, columns: tuple[int, ...]) -> np.ndarray:
        """Tell which terms do not depend on some columns, (M,)."""
        ignored = [len(side.inputs) == 0 for side in self.sides((columns,))]
        return np.repeat(ignored, [len(part.supports) for part in self.parts])

    def is_affine(self, k: int) -> bool:
        """Tell whether all inputs of a column are known to be affine in the numbers present."""
        return all(track.affine for track in self.tracks_of(k))

    def parabolas(self, k: int, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A, center and rest, (M,) each: -log φ_mk = A_m (u - center_m)² + rest_m.

        Column k must be affine; `ends` are its raw values at u = -1 and u = 1.
        """
        ((_, inputs),) = self.in_blocks(frames.with_columns(self.row.X, {k: ends}), [k])
        parabolas = []
        for values, side in zip(inputs, self.sides(((k,),)), strict=True):
            left, right = values[:, side.inputs]
            slope, gaps = right / 2 - left / 2, side.supports - (left / 2 + right / 2)
            square = float(side.gammas @ slope**2)
            center = gaps @ (side.gammas * slope) / square if square else np.zeros(len(gaps))
            rest = (gaps - center[:, None] * slope) ** 2 @ side.gammas
            parabolas.append((np.full(len(gaps), square), center, rest))
        squares, centers, rests = map(np.concatenate, zip(*parabolas, strict=True))
        return squares, centers, rests

    def sees_all(self, k: int, points: np.ndarray) -> bool:
        """Tell whether no bump of column k is so narrow that it fits between two points."""
        ((_, inputs),) = self.in_blocks(frames.with_columns(self.row.X, {k: points}), [k])
        for values, part, tracks in zip(inputs, self.parts, self.tracks, strict=True):
            smooth = np.array([t.column == k and t.kind not in Kind.DISCRETE for t in tracks], bool)
            exponents = part.gammas[smooth] * np.diff(values[:, smooth], axis=0) ** 2
            if not exponents.max(initial=0.0) <= 1:
                return False
        return True

    def add_up(
        self,
        inputs: list[np.ndarray],
        sides: list[Sides],
        table: np.ndarray,
        coefficients: np.ndarray,
        which: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return Σ_m coefficients_m · table[which, m] · ∏_{k in a} φ_mk at rows, (n, k).

        `sides` are those of one attribution a. The bits of a row do not depend on other rows.
        """
        n = len(inputs[0])
        result = np.zeros((n, coefficients.shape[1]))
        which = np.zeros(n, np.int64) if which is None else which
        for terms, values, side in zip(self.terms(), inputs, sides, strict=True):
            bumps.add_bumps(
                np.ascontiguousarray(values[:, side.inputs]), which, side.supports, side.gammas,
                np.ascontiguousarray(table[:, terms]), np.ascontiguousarray(coefficients[terms]),
                result,
            )  # fmt: skip
        return result

    @override
    def reading(self, rows: Any) -> tuple[Any, Any]:
        sides = self.sides((tuple(range(len(self.names))),))
        both = np.concatenate([self.coefficients, np.abs(self.coefficients)], axis=1)
        table = np.ones((1, self.n_terms))
        sums = [self.add_up(inputs, sides, table, both) for _, inputs in self.in_blocks(rows)]
        values, size = np.split(np.concatenate(sums), 2, axis=1)
        rounding = self.rounding(self.inputs(rows))
        return self.constant + values, rounding * (np.abs(self.constant) + size)

    @override
    def describe(self) -> str:
        n = len(self.names)
        return f"a sum of products, {self.n_terms:,} terms of {n} column{'s' if n != 1 else ''}"
