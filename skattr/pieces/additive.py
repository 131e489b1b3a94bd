"""f as a constant and a sum of functions of one raw column each.

See docs/mathematics.md, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from skattr._inputs import frames
from skattr._typing import override
from skattr.pieces.cells.levels import few_levels
from skattr.pieces.columnwise import Columnwise
from skattr.pieces.parts import Linear
from skattr.pieces.preprocessing.pipeline import row_blocks
from skattr.pieces.preprocessing.refusals import refusals


class Additive(Columnwise[Linear]):
    """A sum of functions of one raw column each, f = constant + Σ_k h_k(x_k).

    Each h_k(x) is added up from that row alone, in a fixed order: its bits do not depend on the
    other rows.
    """

    def contributions(self, X: Any, columns: list[int] | None = None) -> np.ndarray:
        """Return the h_k of all or some raw columns, (n, d, k).

        Values of these columns that the model's `predict` refuses are refused.
        """
        columns = list(range(len(self.names))) if columns is None else columns
        result = np.empty((len(X), len(columns), self.n_outputs))
        for block, values in self.in_blocks(X, columns):
            result[block] = values
        return result

    def in_blocks(self, X: Any, columns: list[int]) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the contributions of some columns, a block of rows at a time."""
        width = max([len(columns) * self.n_outputs, *map(len, self.tracks)])
        for block, rows in row_blocks(X, width):
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
        """Return contributions; each distinct level goes through the steps once."""
        result = np.empty((len(X), len(columns), self.n_outputs))
        behind = {track.column for s in self.chains.values() if s is not None for track in s.tracks}
        by_level = few_levels(X, behind.intersection(columns))
        by_row = [k for k in columns if k not in by_level]
        index = {k: i for i, k in enumerate(columns)}
        with refusals(X, self.row.X, self.inputs, self.behind_steps):
            if by_row:
                result[:, [index[k] for k in by_row]] = self._terms(X, by_row)
            if by_level:
                firsts = np.unique(np.concatenate([first for first, _ in by_level.values()]))
                terms = self._terms(frames.take_rows(X, firsts), list(by_level))
                for i, (k, (first, kind)) in enumerate(by_level.items()):
                    result[:, index[k]] = terms[np.searchsorted(firsts, first), i][kind]
        return result

    def _terms(self, X: Any, columns: list[int]) -> np.ndarray:
        wanted = set(columns) if len(columns) < len(self.names) else None
        result = np.zeros((len(X), len(columns), self.n_outputs))
        index = {k: i for i, k in enumerate(columns)}
        of_parts = self.inputs(X, wanted)
        for part, tracks, inputs in zip(self.parts, self.tracks, of_parts, strict=True):
            nonzero = np.flatnonzero((part.coefficients != 0).any(axis=0)).tolist()
            used = {c: index[tracks[c].column] for c in nonzero if tracks[c].column in index}
            if sparse.issparse(inputs):
                result += self._sparse_terms(inputs, part, used, result.shape)
                continue
            for c, i in used.items():  # not a matrix product, whose bits depend on other rows
                result[:, i] += inputs[:, c, None] * part.coefficients[:, c]
        return result

    def _sparse_terms(
        self, inputs: Any, part: Linear, used: dict[int, int], shape: tuple
    ) -> np.ndarray:
        """Return the contributions of sparse inputs, added up row by row in order of the entries.

        `used` maps the inputs to their columns of the result.
        """
        k = self.n_outputs
        to = (np.array([*used.values()], int)[:, None] * k + np.arange(k)).ravel()
        data = part.coefficients[:, [*used]].T.ravel()
        entries = (data, (np.repeat([*used], k), to))
        weights = sparse.csr_array(entries, (inputs.shape[1], shape[1] * k))
        return (sparse.csr_array(inputs) @ weights).toarray().reshape(shape)

    def is_affine(self, k: int) -> bool:
        """Tell whether h_k is known to be affine in the numbers that are present."""
        return all(
            track.affine
            for part, tracks in zip(self.parts, self.tracks, strict=True)
            for track, coefficients in zip(tracks, part.coefficients.T, strict=True)
            if track.column == k and coefficients.any()
        )

    @override
    def reading(self, rows: Any) -> tuple[Any, Any]:
        terms = self.contributions(rows)
        size = np.abs(self.constant) + np.abs(terms).sum(axis=1)
        return self.constant + terms.sum(axis=1), self.rounding([]) * size

    @override
    def describe(self) -> str:
        n = len(self.names)
        return f"an additive model of {n} column{'s' if n != 1 else ''}"
