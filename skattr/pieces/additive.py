"""f as a constant and a sum of functions of one raw column each (MATH.md, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy import sparse

from skattr import frames
from skattr.pieces.base import Pieces
from skattr.pieces.cells import OTHER, unknown_level
from skattr.pieces.outputs import Output
from skattr.pieces.pipeline import CHUNK, Preprocessing
from skattr.pieces.routes import few_levels, refusals
from skattr.pieces.steps import CUTS, FREE, LEVELS, MISSING, Track


class Front(Protocol):
    """The checks of a model, and the numbers that it adds up."""

    columns: np.ndarray  # (m,) the column of its table that each input comes from

    def inputs(self, X: Any) -> Any:
        """Return what is added up, (n, m), dense or sparse, or refuse X as `predict` does."""

    def track(self, c: int, track: Track) -> Track:
        """Return what input c is, given the track of its column."""


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


class Additive(Pieces):
    """A sum of functions of one raw column each, f = constant + Σ_k h_k(x_k).

    Each h_k(x) is added up from that row alone, in a fixed order: its bits do not depend on the
    rows around it.
    """

    def __init__(self, parts: list[Linear], output: Output, row: Any) -> None:
        super().__init__(output, row)
        self.parts = [_select(part, output.columns) for part in parts]
        self.names = frames.labels(row)
        self.constant = np.sum([part.constant for part in self.parts], axis=0)
        self.chains: dict[tuple, Preprocessing | None] = {}
        for part in self.parts:
            key = _key(part)
            if key not in self.chains:
                self.chains[key] = Preprocessing(part.steps, row) if part.steps else None
        self.tracks = [self._tracks(part) for part in self.parts]

    def _tracks(self, part: Linear) -> list[Track]:
        """Return what each input of a part is, as a function of a raw column."""
        steps = self.chains[_key(part)]
        columns = part.front.columns.tolist()
        tracks = [Track(c) if steps is None else steps.tracks[c] for c in columns]
        return [part.front.track(c, track) for c, track in enumerate(tracks)]

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
        steps = any(chain is not None for chain in self.chains.values())
        with refusals(X, self.row.X, self._inputs, steps):
            if by_row:
                result[:, [place[k] for k in by_row]] = self._terms(X, by_row)
            if by_level:
                firsts = np.unique(np.concatenate([first for first, _ in by_level.values()]))
                found = self._terms(frames.take_rows(X, firsts), list(by_level))
                for i, (k, (first, kind)) in enumerate(by_level.items()):
                    result[:, place[k]] = found[np.searchsorted(firsts, first), i][kind]
        return result

    def _inputs(self, X: Any, wanted: set | None = None) -> list:
        """Return the inputs of all parts; each chain of steps runs once."""
        memo: dict = {}
        tables = {
            key: X if steps is None else steps.transform(X, wanted, memo=memo)
            for key, steps in self.chains.items()
        }
        return [part.front.inputs(tables[_key(part)]) for part in self.parts]

    def _terms(self, X: Any, columns: list[int]) -> np.ndarray:
        wanted = set(columns) if len(columns) < len(self.names) else None
        result = np.zeros((len(X), len(columns), self.n_outputs))
        place = {k: i for i, k in enumerate(columns)}
        found = self._inputs(X, wanted)
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

    @property
    def levels(self) -> np.ndarray:
        """Whether a column is one of levels to the fitted steps, (d,)."""
        kinds: list[set] = [set() for _ in self.names]
        for track in (track for tracks in self.tracks for track in tracks):
            kinds[track.column].add(track.kind)
        return np.array([LEVELS in found and found <= {LEVELS, MISSING} for found in kinds], bool)

    def level_values(self, k: int) -> list[tuple[list, list[pd.Series]]] | None:
        """Return what a column of levels may hold: labels, and raw values of which one is taken.

        The model may refuse all but the known levels.
        """
        if not self.levels[k]:
            return None
        tracks = [track for tracks in self.tracks for track in tracks if track.column == k]
        every = [level for track in tracks for level in (*track.known, *track.replaced)]
        known = list(dict.fromkeys(v for v in every if not frames.is_missing(v)))
        found: list[tuple[list, list]] = [(known, [known])] if known else []
        found.append((["missing"], [[None], [np.nan]]))
        if (other := unknown_level(known)) is not None:
            found.append(([OTHER], [[other]]))
        return [(labels, [frames.as_column(v) for v in choices]) for labels, choices in found]

    def cuts(self, k: int) -> np.ndarray:
        """Return where h_k is known to jump, or to have a kink."""
        own = [track for tracks in self.tracks for track in tracks if track.column == k]
        cuts = [cut for track in own if track.kind == CUTS for cut in track.known]
        return np.unique([*cuts, *(place for track in own for place in track.breaks or ())])

    def is_known(self, k: int) -> bool:
        """Tell whether the term of a column is smooth but at known places: it may have poles."""
        own = [track for tracks in self.tracks for track in tracks if track.column == k]
        return all(track.kind != FREE and track.breaks is not None for track in own)

    def is_affine(self, k: int) -> bool:
        """Tell whether the term of a column is known to be affine in its present numbers."""
        return all(
            track.affine
            for part, tracks in zip(self.parts, self.tracks, strict=True)
            for track, coefficients in zip(tracks, part.coefficients.T, strict=True)
            if track.column == k and coefficients.any()
        )

    def without_table(self) -> list[int]:
        """Return the columns that are numbers."""
        return np.flatnonzero(~self.levels).tolist()

    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the sum of all terms at some rows."""
        terms = self.contributions(rows)
        size = np.abs(self.constant) + np.abs(terms).sum(axis=1)
        rounding = max(part.rounding for part in self.parts)
        return self.constant + terms.sum(axis=1), rounding * size

    def preprocessings(self) -> list:
        """Return the steps of all parts."""
        return [steps for steps in self.chains.values() if steps is not None]

    def describe(self) -> str:
        """Say how many columns there are."""
        n = len(self.names)
        return f"an additive model of {n} column{'s' if n != 1 else ''}"


def _select(part: Linear, columns: list[int] | None) -> Linear:
    if columns is None or len(part.coefficients) == 1:
        return part
    return replace(part, coefficients=part.coefficients[columns], constant=part.constant[columns])


def _key(part: Linear) -> tuple:
    return tuple(map(id, part.steps))
