"""f as a constant and a sum of functions of one raw column each (MATH.md, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skattr import frames
from skattr.pieces.columnwise import Columnwise, Front
from skattr.pieces.outputs import Output
from skattr.pieces.pipeline import CHUNK
from skattr.pieces.routes import few_levels, refusals


@dataclass(eq=False)
class Linear:
    """What a reader finds: a linear function of the inputs of one front."""

    front: Front
    coefficients: np.ndarray  # (k, m)
    constant: np.ndarray  # (k,)
    steps: tuple = ()  # fitted steps in front of the front, the outermost first
    rounding: float = 1e-8  # how far the model's own arithmetic may be off

    def scaled(self, factor: float) -> Linear:
        """Return factor · f."""
        return replace(
            self, coefficients=self.coefficients * factor, constant=self.constant * factor
        )

    def behind(self, *steps: Any) -> Linear:
        """Return the same function behind more steps."""
        return replace(self, steps=(*steps, *self.steps))

    def plus(self, constant: Any) -> Linear:
        """Return f + constant, a number or (k,)."""
        return replace(self, constant=self.constant + constant)

    def at_outputs(self, places: Any, k: int) -> Linear:
        """Return the function with its outputs at some places among k."""
        return self.combined(np.eye(k)[places])

    def combined(self, weights: np.ndarray) -> Linear:
        """Return f @ weights, (k, m): each new output is a weighted sum of those there are."""
        return replace(
            self,
            coefficients=weights.T @ self.coefficients,
            constant=self.constant @ weights,
        )


class Additive(Columnwise):
    """A sum of functions of one raw column each, f = constant + Σ_k h_k(x_k).

    Each h_k(x) is added up from that row alone, in a fixed order: its bits do not depend on the
    rows around it.
    """

    def __init__(self, parts: list[Linear], output: Output, row: Any) -> None:
        super().__init__([_select(part, output.columns) for part in parts], output, row)

    def contributions(self, X: Any, columns: list[int] | None = None) -> np.ndarray:
        """Return the h_k of all or some raw columns, (n, d, k).

        Refuses what the model's `predict` refuses; of columns that are not wanted nothing is said.
        """
        chosen = list(range(len(self.names))) if columns is None else columns
        result = np.empty((len(X), len(chosen), self.n_outputs))
        for block, values in self.in_blocks(X, chosen):
            result[block] = values
        return result

    def in_blocks(self, X: Any, columns: list[int]) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the contributions of some columns, some rows at a time."""
        width = max([len(columns) * self.n_outputs, *map(len, self.tracks)])
        size = max(64, CHUNK // width)
        for start in range(0, len(X), size):
            block = slice(start, min(start + size, len(X)))
            rows = X if size >= len(X) else frames.take_rows(X, block)
            yield block, self._block(rows, columns)

    def sums(self, X: Any, weights: np.ndarray) -> np.ndarray:
        """Return Σ_r w_r h_k(z_rk) of all columns, (d, k)."""
        total = np.zeros((len(self.names), self.n_outputs))
        for block, values in self.in_blocks(X, list(range(len(self.names)))):
            total += (weights[block, None, None] * values).sum(axis=0)
        return total

    def at_values(self, k: int, values: Any) -> np.ndarray:
        """Return h_k at raw values of column k, (m, n_outputs)."""
        return self.contributions(frames.with_columns(self.row.X, {k: values}), [k])[:, 0]

    def _block(self, X: Any, columns: list[int]) -> np.ndarray:
        """Return contributions; equal levels share what the fitted steps make of them."""
        result = np.empty((len(X), len(columns), self.n_outputs))
        behind = {track.column for s in self.chains.values() if s is not None for track in s.tracks}
        by_level = few_levels(X, behind.intersection(columns))
        by_row = [k for k in columns if k not in by_level]
        place = {k: i for i, k in enumerate(columns)}
        with refusals(X, self.row.X, self.inputs, self.behind_steps):
            if by_row:
                result[:, [place[k] for k in by_row]] = self._terms(X, by_row)
            if by_level:
                firsts = np.unique(np.concatenate([first for first, _ in by_level.values()]))
                found = self._terms(frames.take_rows(X, firsts), list(by_level))
                for i, (k, (first, kind)) in enumerate(by_level.items()):
                    result[:, place[k]] = found[np.searchsorted(firsts, first), i][kind]
        return result

    def _terms(self, X: Any, columns: list[int]) -> np.ndarray:
        wanted = set(columns) if len(columns) < len(self.names) else None
        result = np.zeros((len(X), len(columns), self.n_outputs))
        place = {k: i for i, k in enumerate(columns)}
        found = self.inputs(X, wanted)
        for part, tracks, inputs in zip(self.parts, self.tracks, found, strict=True):
            used = np.flatnonzero((part.coefficients != 0).any(axis=0)).tolist()
            chosen = [c for c in used if tracks[c].column in place]
            places = [place[tracks[c].column] for c in chosen]
            if sparse.issparse(inputs):
                result += self._sparse_terms(inputs, part, chosen, places, result.shape)
                continue
            for c, i in zip(chosen, places, strict=True):  # no matrix product: see the class
                result[:, i] += inputs[:, c, None] * part.coefficients[:, c]
        return result

    def _sparse_terms(
        self, inputs: Any, part: Linear, chosen: list, places: list, shape: tuple
    ) -> np.ndarray:
        """Return the contributions of a sparse table, row by row in the order of its entries."""
        k = self.n_outputs
        to = (np.array(places, int)[:, None] * k + np.arange(k)).ravel()
        data = part.coefficients[:, chosen].T.ravel()
        weights = sparse.csr_array(
            (data, (np.repeat(chosen, k), to)), (inputs.shape[1], shape[1] * k)
        )
        return (sparse.csr_array(inputs) @ weights).toarray().reshape(shape)

    def is_affine(self, k: int) -> bool:
        """Tell whether the term of a column is known to be affine in its present numbers."""
        return all(
            track.affine
            for part, tracks in zip(self.parts, self.tracks, strict=True)
            for track, coefficients in zip(tracks, part.coefficients.T, strict=True)
            if track.column == k and coefficients.any()
        )

    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the sum of all terms at some rows."""
        terms = self.contributions(rows)
        size = np.abs(self.constant) + np.abs(terms).sum(axis=1)
        rounding = max(part.rounding for part in self.parts)
        return self.constant + terms.sum(axis=1), rounding * size

    def describe(self) -> str:
        """Say how many columns there are."""
        n = len(self.names)
        return f"an additive model of {n} column{'s' if n != 1 else ''}"


def _select(part: Linear, columns: list[int] | None) -> Linear:
    if columns is None or len(part.coefficients) == 1:
        return part
    return replace(part, coefficients=part.coefficients[columns], constant=part.constant[columns])
