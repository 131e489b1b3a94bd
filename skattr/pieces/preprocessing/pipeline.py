"""The fitted steps before a model, which work column by column.

Steps are never inverted: values of raw columns go through them, and their outputs are ranked among
the model's own edges. `tracks` says which raw column each output comes from (rules.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_array
from sklearn.utils._set_output import _get_output_config

from skattr._inputs import frames
from skattr._inputs.models import works_in_place
from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Part
from skattr.pieces.preprocessing.rules import inputs_of, trace
from skattr.pieces.preprocessing.tracks import Kind, Track

CHUNK = 2**22  # numbers of a transformed table that are in memory at a time
WIDE = 256  # columns up to which a sparse table is made dense


class Preprocessing:
    """The fitted steps before a model; steps that mix columns are Unreadable."""

    def __init__(self, steps: tuple, row: Any) -> None:
        self.steps = steps
        self.in_place = any(works_in_place(step) for step in steps)
        tracks = [Track(k) for k in range(len(frames.labels(row)))]
        row = frames.copy(row)
        for step in steps:
            tracks = trace(step, tracks, row)
            row = step.transform(row)
        if np.shape(row)[1] != len(tracks):
            raise Unreadable(
                f"the steps return {np.shape(row)[1]} columns where {len(tracks)} are understood"
            )
        self.tracks = tracks
        self.untouched = {track.column for track in tracks if track.kind == Kind.RAW}
        self.sparse = sparse.issparse(row)
        self.is_wide = self.sparse and len(tracks) > WIDE
        self.n_entries = row.nnz if self.sparse else len(tracks)
        self.row = row  # what the model sees of one row

    def transform(
        self, X: Any, wanted: set | None = None, keep_sparse: bool = True, memo: dict | None = None
    ) -> Any:
        """Return the table that the model sees.

        With `wanted`, only the outputs of these raw columns must be right: the transformers of a
        ColumnTransformer that is the only step are run for these alone, and the others repeat what
        they return for one row. Without `keep_sparse`, a sparse table may come dense. `memo` holds
        what chains that begin with the same steps have returned for the same X.
        """
        memo = {} if memo is None else memo
        if self.in_place:
            X = frames.copy(X)
        if wanted is not None and len(self.steps) == 1:
            if isinstance(self.steps[0], ColumnTransformer):
                key: tuple = (id(self.steps[0]), keep_sparse)
                if key not in memo:
                    memo[key] = self._transform_some(X, wanted, keep_sparse)
                return memo[key]
        for i, step in enumerate(self.steps):
            key = tuple(map(id, self.steps[: i + 1]))
            if key not in memo:
                memo[key] = step.transform(X)
            X = memo[key]
        return X

    def mixes(self, rows: Any) -> Any:
        """Return the name of a raw column that changes outputs of other columns, or None.

        The rules prove that there is none; this guards against a wrong rule. Half of the columns
        are shifted by one row in a copy, and the outputs of the other half must not change. With
        the halves given by the binary digits of the columns' numbers, 2 log2(d) copies separate any
        two columns.
        """
        rows = frames.take_rows(rows, slice(8))
        names = frames.labels(rows)
        numbers = np.arange(len(names))
        digits = (numbers >> np.arange(len(names).bit_length())[:, None]) % 2 == 1
        halves = np.concatenate([digits, ~digits])
        shifted = halves[halves.any(axis=1) & ~halves.all(axis=1)]
        if not self._changes_others(rows, shifted).any():
            return None
        alone = (k for k in numbers if self._changes_others(rows, (numbers == k)[None]).any())
        return names[next(alone, 0)]

    def _changes_others(self, rows: Any, shifted: np.ndarray) -> np.ndarray:
        """Tell for each set of columns (m, d) whether shifting them changes outputs of others."""
        n = len(rows)
        tables: Any = self.transform(frames.shifted(rows, shifted))
        tables = tables.tocsr() if sparse.issparse(tables) else np.asarray(tables)
        owner = np.array([track.column for track in self.tracks], int)

        def block(i: int) -> np.ndarray:
            return to_dense(tables[i * n : (i + 1) * n])

        first = block(0)
        result = np.empty(len(shifted), bool)
        for i, columns in enumerate(shifted):
            others = ~columns[owner]
            same = pd.DataFrame(block(i + 1)[:, others]).equals(pd.DataFrame(first[:, others]))
            result[i] = not same
        return result

    def rows_at_once(self) -> int:
        """Return how many rows to transform together."""
        return max(64, CHUNK // max(1, self.n_entries if self.is_wide else len(self.tracks)))

    def _transform_some(self, X: Any, wanted: set, keep_sparse: bool) -> Any:
        """Run the transformers of a ColumnTransformer that use the wanted columns."""
        (step,) = self.steps
        if _get_output_config("transform", step)["dense"] != "default" or step.transformer_weights:
            return step.transform(X)  # a frame, whose names may matter to what comes next
        as_sparse = step.sparse_output_ and keep_sparse
        blocks: list = []
        for name, transformer, columns in step.transformers_:
            outputs = step.output_indices_[name]
            if outputs.start == outputs.stop:
                continue
            indices, table = inputs_of(step, name, columns, X)
            if not wanted.isdisjoint(indices):
                blocks.append(transformer.transform(table))
            elif as_sparse:
                blocks.append(sparse.csr_matrix((len(X), outputs.stop - outputs.start)))
            else:
                blocks.append(np.repeat(to_dense(self.row[:, outputs]), len(X), axis=0))
        if as_sparse:
            checked = [check_array(b, accept_sparse=True, ensure_all_finite=False) for b in blocks]
            return sparse.hstack(checked).tocsr()
        return np.hstack([to_dense(block) for block in blocks])


def preprocessings(parts: Iterable[Part], row: Any) -> dict[tuple, Preprocessing | None]:
    """Return the preprocessing of each chain of steps, None for parts without steps."""
    steps = {part.chain: part.steps for part in parts}
    return {
        chain: Preprocessing(of_chain, row) if of_chain else None
        for chain, of_chain in steps.items()
    }


def row_blocks(X: Any, width: int) -> Iterator[tuple[slice, Any]]:
    """Yield X a block of rows at a time, so that tables of some width stay small."""
    size = max(64, CHUNK // width)
    for start in range(0, len(X), size):
        block = slice(start, min(start + size, len(X)))
        yield block, X if size >= len(X) else frames.take_rows(X, block)


def to_dense(table: Any) -> Any:
    """Return a sparse table as an array, and any other as it is."""
    return table.toarray() if sparse.issparse(table) else table
