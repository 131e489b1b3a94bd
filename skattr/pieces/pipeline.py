"""A preprocessing that works column by column, pushed through to raw columns.

The fitted steps are never inverted: values of raw columns go through them, and what comes out is
ranked among the model's own edges. `tracks` says which raw column each output comes from
(steps.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.utils import check_array
from sklearn.utils._set_output import _get_output_config

from skattr import frames
from skattr.models import works_in_place
from skattr.pieces.base import Unreadable
from skattr.pieces.steps import RAW, Track, inputs_of, trace

CHUNK = 2**22  # numbers of a transformed table that are there at a time
WIDE = 256  # columns from which a sparse table is not made dense


class Preprocessing:
    """The fitted steps in front of a model; refuses steps that mix columns (Unreadable)."""

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
                f"the steps give {np.shape(row)[1]} columns where {len(tracks)} are understood"
            )
        self.tracks = tracks
        self.untouched = {track.column for track in tracks if track.kind == RAW}
        self.sparse = sparse.issparse(row)
        self.is_wide = self.sparse and len(tracks) > WIDE
        self.n_entries = row.nnz if self.sparse else len(tracks)
        self.row = row  # what the model sees of one row

    def transform(
        self,
        X: Any,
        wanted: set | None = None,
        keep_sparse: bool = True,
        memo: dict | None = None,
    ) -> Any:
        """Return what the model sees of X.

        With `wanted`, only the outputs of these raw columns are right: the parts of a
        ColumnTransformer that do not touch them are not run, if it is the only step; what they made
        of one row stands there. Without `keep_sparse`, what it would return as a sparse
        table may come dense. `memo` keeps what other chains that begin with the same steps made of
        the same X.
        """
        memo = {} if memo is None else memo
        if self.in_place:
            X = frames.copy(X)
        if wanted is not None and len(self.steps) == 1:
            if isinstance(self.steps[0], ColumnTransformer):
                key: tuple = (id(self.steps[0]), keep_sparse)
                if key not in memo:
                    memo[key] = self._parts(X, wanted, keep_sparse)
                return memo[key]
        for i, step in enumerate(self.steps):
            key = tuple(map(id, self.steps[: i + 1]))
            if key not in memo:
                memo[key] = step.transform(X)
            X = memo[key]
        return X

    def mixes(self, rows: Any) -> Any:
        """Return the name of a raw column that moves outputs of others, or None.

        That there is none is proved by the structure of the steps; this guards against a wrong
        table. Half of the columns are moved on by one row in a copy, and the outputs of the others
        must stay as they are: with the halves that the binary digits of a column's number make,
        2 log2(d) copies part any two columns.
        """
        rows = frames.take_rows(rows, slice(8))
        names = frames.labels(rows)
        numbers = np.arange(len(names))
        digits = (numbers >> np.arange(len(names).bit_length())[:, None]) % 2 == 1
        halves = np.concatenate([digits, ~digits])
        moved = halves[halves.any(axis=1) & ~halves.all(axis=1)]
        if not self._moves(rows, moved).any():
            return None
        alone = (k for k in numbers if self._moves(rows, (numbers == k)[None]).any())
        return names[next(alone, 0)]

    def _moves(self, rows: Any, moved: np.ndarray) -> np.ndarray:
        """Tell for each set of columns (m, d) whether moving them changes outputs of others."""
        n = len(rows)
        tables: Any = self.transform(frames.shifted(rows, moved))
        tables = tables.tocsr() if sparse.issparse(tables) else np.asarray(tables)
        owner = np.array([track.column for track in self.tracks], int)

        def block(i: int) -> np.ndarray:
            some: Any = tables[i * n : (i + 1) * n]
            return some.toarray() if sparse.issparse(some) else some

        first = block(0)
        result = np.empty(len(moved), bool)
        for i, here in enumerate(moved):
            others = ~here[owner]
            same = pd.DataFrame(block(i + 1)[:, others]).equals(pd.DataFrame(first[:, others]))
            result[i] = not same
        return result

    def rows_at_once(self) -> int:
        """Return how many rows to transform together."""
        return max(64, CHUNK // max(1, self.n_entries if self.is_wide else len(self.tracks)))

    def _parts(self, X: Any, wanted: set, keep_sparse: bool) -> Any:
        """Run the parts of a ColumnTransformer that touch the wanted columns."""
        (step,) = self.steps
        if _get_output_config("transform", step)["dense"] != "default" or step.transformer_weights:
            return step.transform(X)  # a frame, whose names may matter to what comes next
        as_sparse = step.sparse_output_ and keep_sparse
        blocks: list = []
        for name, part, columns in step.transformers_:
            place = step.output_indices_[name]
            if place.start == place.stop:
                continue
            places, table = inputs_of(step, name, columns, X)
            if not wanted.isdisjoint(places):
                blocks.append(part.transform(table))
            elif as_sparse:
                blocks.append(sparse.csr_matrix((len(X), place.stop - place.start)))
            else:
                blocks.append(np.repeat(_dense(self.row[:, place]), len(X), axis=0))
        if as_sparse:
            checked = [check_array(b, accept_sparse=True, ensure_all_finite=False) for b in blocks]
            return sparse.hstack(checked).tocsr()
        return np.hstack([_dense(block) for block in blocks])


def _dense(table: Any) -> Any:
    return table.toarray() if sparse.issparse(table) else table
