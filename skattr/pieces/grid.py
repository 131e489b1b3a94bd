"""The cells of all raw columns: from rows to codes, and from codes to words."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from skattr import frames
from skattr.parallel import in_order
from skattr.pieces.bisection import between, monotone_ends
from skattr.pieces.cells import GONE, OTHER, Cells, Ranks, missing_rows, unknown_level
from skattr.pieces.routes import Route, dense, few_levels, refusals
from skattr.pieces.steps import CUTS, MISSING, MONOTONE, NUMBER, PARTIAL, RAW, SAME, Track
from skattr.storage import PicklableTable
from skattr.values import narrow_float, rounded

NEAR = (RAW, SAME)  # kinds of inputs whose edges are raw numbers


def level_frame(rows: list[tuple]) -> pd.DataFrame:
    """Return rows of (level, kind, …) as the columns `level, kind`."""
    return pd.DataFrame({
        "level": pd.Series([row[0] for row in rows], dtype=object),
        "kind": pd.Series([row[1] for row in rows], dtype=object),
    })  # fmt: skip


def halves(values: dict) -> tuple[dict, dict]:
    """Split a dict in two."""
    items = iter(values.items())
    return dict(islice(items, len(values) // 2)), dict(items)


@dataclass(eq=False)
class Grid:
    """The cells of all raw columns, and the fitted steps that lead to them."""

    routes: list[Route]
    cells: list[Cells]
    row: PicklableTable  # one row of X: what the other columns hold while one is looked at
    offset: np.ndarray = field(init=False)  # (d + 1,) where the codes of a column start
    tracks: list[list[Track]] = field(init=False)  # what the steps make of each column

    def __post_init__(self) -> None:
        sizes = [c.n_codes for c in self.cells]
        self.offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        every = [t for r in self.routes if r.steps is not None for t in r.steps.tracks]
        self.tracks = [[] for _ in self.cells]
        for track in {id(t): t for t in every}.values():  # the outputs of one encoder share theirs
            self.tracks[track.column].append(track)

    @property
    def names(self) -> list:
        """The names of the raw columns."""
        return frames.labels(self.row.X)

    @property
    def open_columns(self) -> list[int]:
        """The columns whose cells cannot be enumerated."""
        return [k for k, cells in enumerate(self.cells) if cells.open]

    def without_table(self) -> list[int]:
        """Return the columns whose cells may be no levels and no intervals on the raw scale."""
        return [
            k
            for k, cells in enumerate(self.cells)
            if cells.labels is None
            and cells.partition is None
            and cells.edges is None
            and (cells.open or any(source.track.effective not in NEAR for source in cells.inputs)
                 or not frames.is_number(self.row.X, k))
        ]  # fmt: skip

    def encode(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return the codes of X, (d, n); refuses what the model's `predict` refuses."""
        return self._encode(X, n_jobs, [None] * len(self.cells))

    def meet(self, X: Any, n_jobs: int | None = 1) -> tuple[Grid, np.ndarray]:
        """Return a grid that knows the cells of X in open columns too, and the codes of X."""
        if not self.open_columns:
            return self, self.encode(X, n_jobs)
        new: list = [{} if cells.open else None for cells in self.cells]
        codes = self._encode(X, n_jobs, new)
        cells = list(self.cells)
        for k, found in enumerate(new):
            if found:
                rows = np.frombuffer(b"".join(found), np.int32).reshape(len(found), -1)
                before: Any = cells[k].signatures  # of open columns, an array
                cells[k] = replace(cells[k], signatures=np.concatenate([before, rows]))
        return Grid(self.routes, cells, self.row), codes

    def _encode(
        self, X: Any, n_jobs: int | None, new: list, columns: Sequence[int] | None = None
    ) -> np.ndarray:
        """Fill the codes of all columns, or of some.

        Values stand in the background's rows: behind steps, columns of another dtype are put into
        the kept row apart from the others, which steps might cast together with them.
        """
        columns = list(range(len(self.cells)) if columns is None else columns)
        wide = frames.wider(X, self.row.X) if any(r.steps for r in self.routes) else []
        if not wide:
            return self._encode_rows(X, n_jobs, new, columns)
        self._refuse_rounding(X, wide)
        rest = [k for k in columns if k not in wide]
        codes = np.empty((len(self.cells), len(X)), np.int32)
        for some in (rest, [k for k in columns if k in wide]):
            if some:
                rows = self.rows_with({k: frames.column(X, k) for k in some})
                codes[some] = self._encode_rows(rows, n_jobs, new, some)[some]
        return codes

    def _refuse_rounding(self, X: Any, columns: list[int]) -> None:
        """Refuse numbers that the background's float32 would round: the cells are its own."""
        for k in columns:
            column, like = frames.column(X, k), frames.column(self.row.X, k)
            kind = narrow_float(like)
            numbers = rounded(column, like)
            if kind is None or numbers is column:
                continue
            exact = frames.to_float(column)
            off = (numbers != exact) & ~np.isnan(exact)
            if off.any():
                raise ValueError(
                    f"column {self.names[k]!r} is {kind} in the background, which does not hold "
                    f"{exact[off][0]!s}: give both in one dtype, the background as float64, or "
                    f"X.astype({kind.name!r})"
                )

    def rows_with(self, columns: dict[int, Any]) -> Any:
        """Return the kept row repeated, with some columns set to values as the column holds them.

        Numbers are rounded to the float32 of a column: its cells are those of float32.
        """
        row = self.row.X
        own = {k: rounded(values, frames.column(row, k)) for k, values in columns.items()}
        return frames.with_columns(row, own)

    def _encode_rows(self, X: Any, n_jobs: int | None, new: list, columns: list) -> np.ndarray:
        """Fill the codes of some columns, with all columns of X as they are."""
        n = len(X)
        codes = np.empty((len(self.cells), n), np.int32)
        by_level = self._by_level(X, columns)
        by_row = [k for k in columns if k not in by_level]
        behind = any(route.steps is not None for route in self.routes)
        with refusals(X, self.row.X, self._inputs, behind):
            for block in self.blocks(n):
                rows = X if block == slice(0, n) else frames.take_rows(X, block)
                inputs = self._inputs(rows, set(by_row))

                def fill(k: int, inputs: list = inputs, block: slice = block) -> None:
                    self._fill(k, inputs, codes[k, block], new[k])

                deque(in_order(fill, by_row, n_jobs), maxlen=0)
            if by_level:
                firsts = np.unique(np.concatenate([first for first, _ in by_level.values()]))
                found = np.empty((len(by_level), len(firsts)), np.int32)
                for block in self.blocks(len(firsts)):
                    inputs = self._inputs(frames.take_rows(X, firsts[block]), set(by_level))
                    for k, level_codes in zip(by_level, found, strict=True):
                        self._fill(k, inputs, level_codes[block], new[k])
                for (k, (first, kind)), level_codes in zip(by_level.items(), found, strict=True):
                    codes[k] = level_codes[np.searchsorted(firsts, first)][kind]
        return codes

    def blocks(self, n: int) -> list[slice]:
        """Return n rows in blocks that bound the tables which the steps make of them."""
        steps = [route.steps for route in self.routes if route.steps is not None]
        size = max(1, min([own.rows_at_once() for own in steps], default=n))
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def _by_level(self, X: Any, columns: Sequence[int]) -> dict[int, tuple]:
        """Return the columns behind steps whose distinct values are few enough to look up."""
        return few_levels(X, [k for k in columns if self.tracks[k]])

    def _inputs(self, X: Any, wanted: set | None = None) -> list:
        """Return the inputs of all routes."""
        memo: dict = {}
        return [route.inputs(X, wanted, memo) for route in self.routes]

    def _fill(self, k: int, inputs: list, codes: np.ndarray, new: dict | None) -> None:
        cells = self.cells[k]
        if cells.plain:
            source = cells.inputs[0]
            source.rank(inputs[source.route][:, source.place], codes)
        elif not cells.inputs:
            codes[:] = 1
        else:
            if isinstance(cells.signatures, Ranks):
                ranks: Any = self.ranks(k, inputs, cells.signatures.base)
            else:
                ranks = np.ascontiguousarray(np.array([*self._ranks(k, inputs)]).T)
            codes[:] = cells.codes_of(ranks, new, self.names[k])

    def _ranks(self, k: int, inputs: list) -> Iterator[np.ndarray]:
        """Yield the ranks of each input of column k, (n,), from the inputs of all routes."""
        for source in self.cells[k].inputs:
            ranks = np.empty(len(inputs[0]), np.int32)
            source.rank(inputs[source.route][:, source.place], ranks)
            yield ranks

    def ranks(self, k: int, inputs: list, base: np.ndarray) -> Ranks:
        """Return the signatures of column k, from the inputs of all routes."""
        return Ranks.of(self._ranks(k, inputs), base, len(inputs[0]))

    def row_ranks(self, columns: Iterable[int]) -> dict[int, np.ndarray]:
        """Return the signatures of the one row that is known, (n_inputs,), in some columns."""
        columns = list(columns)
        inputs = self._inputs(self.row.X) if columns else []
        return {k: np.array([ranks[0] for ranks in self._ranks(k, inputs)]) for k in columns}

    def encode_values(self, k: int, values: Any) -> np.ndarray:
        """Return the codes of raw values of column k."""
        cells = self.cells[k]
        if cells.edges is not None:
            return cells.encode_numbers(values, self.names[k])
        rows = self.rows_with({k: values})
        with np.errstate(over="ignore"):  # the model says it better than numpy
            return self._encode(rows, 1, [None] * len(self.cells), [k])[k]

    def missing_code(self, k: int) -> int | None:
        """Return the code of missing in column k, or None if it may not be missing."""
        codes = self.missing_codes(k)
        return codes[0][1] if codes else None

    def missing_codes(self, k: int) -> list[tuple[Any, int]]:
        """Return missing values of column k with their codes: None and NaN, if they differ."""
        if self.cells[k].edges is not None:
            return [(np.nan, 0)] if self.cells[k].takes_missing else []
        if self.cells[k].labels is not None:
            return self._missing_codes[k]
        return self._missing_of([k])[k][::-1]  # a missing number is NaN

    @cached_property
    def _missing_codes(self) -> dict[int, list]:
        """The same for all columns of levels."""
        return self._missing_of(list(self._unknown))

    def _missing_of(self, columns: list[int]) -> dict[int, list]:
        found = [(value, self.codes_if_taken(dict.fromkeys(columns, value))) for value in GONE]
        result: dict[int, list] = {}
        for k in columns:
            by_code = {codes[k]: value for value, codes in reversed(found) if k in codes}
            result[k] = [(value, code) for code, value in reversed(by_code.items())]
        return result

    @cached_property
    def _unknown(self) -> dict[int, Any]:
        """A level that is new, for all columns of levels."""
        known = {k: c.labels for k, c in enumerate(self.cells) if c.labels is not None}
        return {
            k: unknown_level([level for level, _ in labels if not frames.is_missing(level)])
            for k, labels in known.items()
        }

    @cached_property
    def _unknown_codes(self) -> dict[int, int]:
        """The codes of these levels, in all columns that take them."""
        return self.codes_if_taken({k: u for k, u in self._unknown.items() if u is not None})

    def refuses(self, k: int, value: Any) -> bool:
        """Tell whether a step is known to refuse a new level, or missing, in column k."""
        return any(track.refuses(value) for track in self.tracks[k])

    def codes_if_taken(self, values: dict[int, Any]) -> dict[int, int]:
        """Return the codes of one value of each of some columns, of those that are taken.

        All go through the steps at once; if these refuse, then by halves.
        """
        values = {k: value for k, value in values.items() if not self.refuses(k, value)}
        if not values:
            return {}
        with suppress(TypeError, ValueError), warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("ignore")  # of unknown categories
            columns = {k: pd.Series([value], dtype=object) for k, value in values.items()}
            return self._codes_of_row(columns)
        if len(values) == 1:
            return {}
        return {k: c for half in halves(values) for k, c in self.codes_if_taken(half).items()}

    def _codes_of_row(self, columns: dict[int, pd.Series]) -> dict[int, int]:
        """Return the codes of some columns of a row, the others being as they are."""
        found = {}
        code = np.empty(1, np.int32)
        inputs = self._inputs(self.rows_with(columns), set(columns))
        for k, value in columns.items():
            if self.cells[k].edges is not None:
                code = self.cells[k].encode_numbers(value, self.names[k])
            else:
                self._fill(k, inputs, code, None)
            found[k] = int(code[0])
        return found

    def other_labels(self, k: int, levels: list) -> list[tuple[str, str, int]]:
        """Return label, kind and code of missing, and of any other than levels, where taken."""
        found = missing_rows(self.missing_codes(k))
        other = unknown_level(levels)
        if other is None:
            return found
        if other == self._unknown.get(k):
            code = self._unknown_codes.get(k)
        else:
            code = self.codes_if_taken({k: other}).get(k)
        return found if code is None else [*found, (OTHER, "other", code)]

    def levels_taken(self, k: int, levels: list) -> list:
        """Return the levels that the model takes in column k, known or not, with their codes."""
        with suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of unknown categories
            return list(zip(levels, self.encode_values(k, frames.as_column(levels)), strict=True))
        found = [(level, self.codes_if_taken({k: level})) for level in levels]
        return [(level, codes[k]) for level, codes in found if codes]

    def name_levels(self, X: Any) -> None:
        """Name the levels of columns of which the model keeps no names, as far as X has them."""
        for k, cells in enumerate(self.cells):
            if cells.labels == []:
                levels = frames.distinct_levels(frames.column(X, k))
                codes = self.encode_values(k, frames.as_column(levels))
                cells.labels = list(zip(levels, codes.tolist(), strict=True))

    def present(self, k: int) -> float:
        """Return some number that column k may hold."""
        value = frames.to_array(frames.column(self.row.X, k))[0]
        return 0.0 if frames.is_missing(value) else value

    def ranker(self, k: int, s: int) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function from numbers in column k to the ranks of its input s.

        The model's own checks are left out: they refuse numbers that bisection tries.
        """
        source = self.cells[k].inputs[s]
        route = self.routes[source.route]
        place = int(route.front.columns[source.place])

        def rank(values: np.ndarray) -> np.ndarray:
            table = self.rows_with({k: values})
            if route.steps is not None:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    table = route.steps.transform(table, {k})
            if sparse.issparse(table):
                table = dense(table[:, [place]], route.front.absent)
            at = place if np.shape(table)[1] > 1 else 0
            result = np.empty(len(values), np.int32)
            source.rank(frames.to_float(frames.column(table, at)), result)
            return result

        return rank

    def partition(self, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the ends of intervals on the raw scale and their codes, or None if there are none.

        The steps in front of one input must be known to be monotone.
        """
        cells = self.cells[k]
        if cells.partition is None and cells.edges is not None:  # not kept: it is large
            edges = cells.edges
            return np.r_[-np.inf, edges, np.inf], np.arange(1, len(edges) + 2)
        mains = [s for s, source in enumerate(cells.inputs) if source.track.kind != MISSING]
        numeric = not frames.is_level(self.row.X, k) and cells.labels is None
        if cells.partition is None and numeric and not cells.open and len(mains) == 1:
            source = cells.inputs[mains[0]]
            known = (*NEAR, CUTS, MONOTONE, NUMBER, PARTIAL)
            if self.routes[source.route].changes(source.place) or source.track.kind not in known:
                return None
            try:
                if source.track.kind == CUTS:
                    ends = np.r_[-np.inf, np.unique(source.track.known), np.inf]
                elif source.track.kind in NEAR:
                    ends = np.r_[-np.inf, source.edges[np.isfinite(source.edges)], np.inf]
                else:
                    ends = monotone_ends(self.ranker(k, mains[0]), float(self.present(k)))
                for value in source.track.replaced:  # a cell of its own
                    ends = np.union1d(ends, [np.nextafter(value, -np.inf), value])
                cells.partition = (ends, self.encode_values(k, between(ends)))
            except (TypeError, ValueError):
                return None
        return cells.partition

    def describe_cells(self, k: int) -> tuple[pd.DataFrame, np.ndarray] | None:
        """Describe the cells, `lower, upper, closed` or `level, kind`, and return their codes.

        Missing is a row of its own, if it may be; all levels that the model does not know are of
        the kind "other". None if the cells are no intervals on the raw scale.
        """
        cells = self.cells[k]
        if cells.labels is not None:
            known = [(v, "level", code) for v, code in cells.labels if not frames.is_missing(v)]
            rows = [*known, *self.other_labels(k, [level for level, _, _ in known])]
            return level_frame(rows), np.array([code for *_, code in rows], int)
        partition = self.partition(k)
        if partition is None:
            return None
        ends, codes = partition
        frame = pd.DataFrame({"lower": ends[:-1], "upper": ends[1:], "closed": "right"})
        missing = self.missing_code(k)
        if missing is not None:
            frame.loc[len(frame)] = [np.nan, np.nan, "missing"]
            codes = np.append(codes, missing)
        return frame, codes
