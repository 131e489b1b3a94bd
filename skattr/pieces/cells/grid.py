"""The cells of all raw columns: rows become codes, and codes are described."""

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

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr._inputs.values import is_held, narrow_float, rounded
from skattr._utils.messages import warn
from skattr._utils.parallel import in_order
from skattr.pieces.cells.bisection import between, last_rounded, monotone_ends
from skattr.pieces.cells.cells import Cells, Ranks
from skattr.pieces.cells.levels import (
    MISSING_VALUES,
    OTHER,
    few_levels,
    level_frame,
    missing_rows,
    unknown_level,
)
from skattr.pieces.preprocessing.refusals import refusals
from skattr.pieces.preprocessing.routes import Route
from skattr.pieces.preprocessing.sparse_inputs import fill_absent
from skattr.pieces.preprocessing.tracks import Kind, Track

CLOSED = pd.Series(["right", "missing"]).array  # how a cell is closed


def by_halves(values: dict[int, Any], function: Callable[[dict], dict]) -> dict[int, Any]:
    """Return function(values); if it refuses them, the results of their halves, down to one value.

    Warnings, which are about unknown categories, are ignored.
    """
    with suppress(TypeError, ValueError), warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore")
        return function(values) if values else {}
    if len(values) == 1:
        return {}
    items = iter(values.items())
    first = dict(islice(items, len(values) // 2))
    return by_halves(first, function) | by_halves(dict(items), function)


@dataclass(eq=False)
class Grid:
    """The cells of all raw columns, and the fitted steps that lead to them."""

    routes: list[Route]
    cells: list[Cells]
    row: PicklableTable  # one row of X: the values of the other columns while one is probed
    offset: np.ndarray = field(init=False)  # (d + 1,) where the codes of a column start
    tracks: list[list[Track]] = field(init=False)  # the outputs of the steps, by raw column

    def __post_init__(self) -> None:
        sizes = [c.n_codes for c in self.cells]
        self.offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        tracks = [t for r in self.routes if r.steps is not None for t in r.steps.tracks]
        self.tracks = [[] for _ in self.cells]
        for track in {id(t): t for t in tracks}.values():  # the outputs of one encoder share one
            self.tracks[track.column].append(track)

    @property
    def names(self) -> list:
        """The names of the raw columns."""
        return frames.labels(self.row.X)

    @property
    def open_columns(self) -> list[int]:
        """The columns whose cells cannot be enumerated."""
        return [k for k, cells in enumerate(self.cells) if cells.open]

    @property
    def behind_steps(self) -> bool:
        """Whether some columns pass through fitted steps."""
        return any(route.steps is not None for route in self.routes)

    def without_table(self) -> list[int]:
        """Return the columns whose cells may be neither levels nor intervals on the raw scale."""
        result = []
        for k, cells in enumerate(self.cells):
            kinds = {source.track.effective_kind for source in cells.inputs}
            intervals = kinds <= {*Kind.UNCHANGED} and frames.is_number(self.row.X, k)
            if cells.labels is None and cells.partition is None and cells.edges is None:
                if cells.open or not intervals:
                    result.append(k)
        return result

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
        for k, met in enumerate(new):
            if met:
                rows = np.frombuffer(b"".join(met), np.int32).reshape(len(met), -1)
                known: Any = cells[k].signatures  # of open columns, an array
                cells[k] = replace(cells[k], signatures=np.concatenate([known, rows]))
        return Grid(self.routes, cells, self.row), codes

    def _encode(
        self, X: Any, n_jobs: int | None, new: list, columns: Sequence[int] | None = None
    ) -> np.ndarray:
        """Return the codes of all columns, or of some.

        Cells belong to the dtypes of the background. Behind steps, columns of another dtype are
        encoded apart from the others, which steps might cast together with them.
        """
        columns = list(range(len(self.cells)) if columns is None else columns)
        wide = frames.wider(X, self.row.X) if self.behind_steps else []
        if not wide:
            return self._encode_rows(X, n_jobs, new, columns)
        self.warn_of_rounding({k: frames.column(X, k) for k in wide})
        codes = np.empty((len(self.cells), len(X)), np.int32)
        for some in ([k for k in columns if k not in wide], [k for k in columns if k in wide]):
            if some:
                rows = self.rows_with({k: frames.column(X, k) for k in some})
                codes[some] = self._encode_rows(rows, n_jobs, new, some)[some]
        return codes

    def warn_of_rounding(self, columns: dict[int, Any]) -> None:
        """Warn of numbers that the float32 of a column rounds: its cells are those of float32."""
        names = self.behind_steps and [
            self.names[k]
            for k, values in columns.items()
            if not is_held(values, frames.column(self.row.X, k))
        ]
        if names:
            warn(
                f"the columns {names} are float32 in the background, and the steps in front of the "
                "model compute in it: numbers that float32 does not hold are rounded to it; give "
                "the background as float64 to keep them",
            )

    def raw_cuts(self, k: int, cuts: Any) -> np.ndarray:
        """Return cuts between numbers that column k holds as cuts between all float64 numbers."""
        kind = narrow_float(frames.column(self.row.X, k))
        cuts = np.asarray(cuts, np.float64)
        return cuts if kind is None else last_rounded(cuts, kind)

    def rows_with(self, columns: dict[int, Any]) -> Any:
        """Return the kept row repeated, with some columns set to values.

        Numbers are rounded to the float32 of a column that is one: its cells are those of float32.
        """
        row = self.row.X
        values = {k: rounded(column, frames.column(row, k)) for k, column in columns.items()}
        return frames.with_columns(row, values)

    def _encode_rows(self, X: Any, n_jobs: int | None, new: list, columns: list) -> np.ndarray:
        """Return the codes of some columns, sending all columns of X through the steps."""
        n = len(X)
        codes = np.empty((len(self.cells), n), np.int32)
        by_level = few_levels(X, [k for k in columns if self.tracks[k]])
        by_row = [k for k in columns if k not in by_level]
        with refusals(X, self.row.X, self._inputs, self.behind_steps):
            for block in self.blocks(n):
                rows = X if block == slice(0, n) else frames.take_rows(X, block)
                inputs = self._inputs(rows, set(by_row))

                def fill(k: int, inputs: list = inputs, block: slice = block) -> None:
                    self._fill(k, inputs, codes[k, block], new[k])

                deque(in_order(fill, by_row, n_jobs), maxlen=0)
            if by_level:
                firsts = np.unique(np.concatenate([first for first, _ in by_level.values()]))
                of_levels = {k: np.empty(len(firsts), np.int32) for k in by_level}
                for block in self.blocks(len(firsts)):
                    inputs = self._inputs(frames.take_rows(X, firsts[block]), set(by_level))
                    for k, level_codes in of_levels.items():
                        self._fill(k, inputs, level_codes[block], new[k])
                for k, (first, kind) in by_level.items():
                    codes[k] = of_levels[k][np.searchsorted(firsts, first)][kind]
        return codes

    def blocks(self, n: int) -> list[slice]:
        """Split n rows into blocks that bound the size of transformed tables."""
        sizes = [r.steps.rows_at_once() for r in self.routes if r.steps is not None]
        size = max(1, min(sizes, default=n))
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def _inputs(self, X: Any, wanted: set | None = None) -> list:
        """Return the inputs of all routes."""
        memo: dict = {}
        return [route.inputs(X, wanted, memo) for route in self.routes]

    def _fill(self, k: int, inputs: list, codes: np.ndarray, new: dict | None) -> None:
        """Fill the codes of column k, (n,), from the inputs of all routes."""
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
        """Return the signatures of the kept row, (n_inputs,), in some columns."""
        columns = list(columns)
        inputs = self._inputs(self.row.X) if columns else []
        return {k: np.array([ranks[0] for ranks in self._ranks(k, inputs)]) for k in columns}

    def encode_values(self, k: int, values: Any) -> np.ndarray:
        """Return the codes of raw values of column k."""
        cells = self.cells[k]
        if cells.edges is not None:
            return cells.encode_numbers(values, self.names[k])
        rows = self.rows_with({k: values})
        with np.errstate(over="ignore"):  # the model's own error says more
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
        """The missing codes of all columns of levels."""
        return self._missing_of(list(self._unknown))

    def _missing_of(self, columns: list[int]) -> dict[int, list]:
        accepted = [(v, self.codes_if_accepted(dict.fromkeys(columns, v))) for v in MISSING_VALUES]
        result: dict[int, list] = {}
        for k in columns:
            by_code = {codes[k]: value for value, codes in reversed(accepted) if k in codes}
            result[k] = [(value, code) for code, value in reversed(by_code.items())]
        return result

    @cached_property
    def _unknown(self) -> dict[int, Any]:
        """A level that the model does not know, for each column of levels."""
        known = {k: c.labels for k, c in enumerate(self.cells) if c.labels is not None}
        return {
            k: unknown_level([level for level, _ in labels if not frames.is_missing(level)])
            for k, labels in known.items()
        }

    @cached_property
    def _unknown_codes(self) -> dict[int, int]:
        """The codes of these levels, in the columns where they are accepted."""
        return self.codes_if_accepted({k: u for k, u in self._unknown.items() if u is not None})

    def refuses(self, k: int, value: Any) -> bool:
        """Tell whether a step is known to refuse a value in column k."""
        return any(track.refuses(value) for track in self.tracks[k])

    def codes_if_accepted(self, values: dict[int, Any]) -> dict[int, int]:
        """Return the codes of one value per column, for the columns where it is accepted."""
        values = {k: value for k, value in values.items() if not self.refuses(k, value)}
        columns = {k: pd.Series([value], dtype=object) for k, value in values.items()}
        return by_halves(columns, self._codes_of_row)

    def _codes_of_row(self, columns: dict[int, pd.Series]) -> dict[int, int]:
        """Return the codes of values of some columns, put into the kept row."""
        codes = {}
        code = np.empty(1, np.int32)
        inputs = self._inputs(self.rows_with(columns), set(columns))
        for k, value in columns.items():
            if self.cells[k].edges is not None:
                code = self.cells[k].encode_numbers(value, self.names[k])
            else:
                self._fill(k, inputs, code, None)
            codes[k] = int(code[0])
        return codes

    def other_labels(self, k: int, levels: list) -> list[tuple[str, str, int]]:
        """Return label, kind and code of missing and of any other level, where accepted.

        There is no "any other" beside levels that the model knows only as numbers.
        """
        missing = missing_rows(self.missing_codes(k))
        other = unknown_level(levels)
        if other is None or not self.cells[k].all_named:
            return missing
        if other == self._unknown.get(k):
            code = self._unknown_codes.get(k)
        else:
            code = self.codes_if_accepted({k: other}).get(k)
        return missing if code is None else [*missing, (OTHER, "other", code)]

    def levels_taken(self, k: int, levels: list) -> list:
        """Return the levels that the model accepts in column k, known or not, with their codes."""
        with suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unknown categories
            return list(zip(levels, self.encode_values(k, frames.as_column(levels)), strict=True))
        one_by_one = [(level, self.codes_if_accepted({k: level})) for level in levels]
        return [(level, codes[k]) for level, codes in one_by_one if codes]

    def name_levels(self, X: Any) -> None:
        """Name the levels that X has, in columns for which the model keeps no names."""
        for k, cells in enumerate(self.cells):
            if cells.anonymous:
                known = {level for level, _ in cells.labels or []}
                present = frames.distinct_levels(frames.column(X, k))
                levels = [level for level in present if level not in known]
                codes = self.encode_values(k, frames.as_column(levels)) if levels else np.empty(0)
                new = zip(levels, codes.astype(int).tolist(), strict=True)
                cells.labels = [*(cells.labels or []), *new]

    def present(self, k: int) -> float:
        """Return a number that column k may hold."""
        value = frames.to_array(frames.column(self.row.X, k))[0]
        return 0.0 if frames.is_missing(value) else value

    def ranker(self, k: int, s: int, infinite: bool = True) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function from numbers in column k to the ranks of its input s.

        The model's own checks are skipped: they refuse numbers that bisection tries. If not
        `infinite`, the rank is 0 where the input is infinite and the model refuses that.
        """
        source = self.cells[k].inputs[s]
        route = self.routes[source.route]
        column = int(route.front.columns[source.place])

        def rank(values: np.ndarray) -> np.ndarray:
            table = self.rows_with({k: values})
            if route.steps is not None:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    table = route.steps.transform(table, {k})
            if sparse.issparse(table):
                table = fill_absent(table[:, [column]], route.front.absent)
            at = column if np.shape(table)[1] > 1 else 0
            result = np.empty(len(values), np.int32)
            numbers = frames.to_float(frames.column(table, at))
            source.rank(numbers, result)
            if not (infinite or route.front.takes_infinite):
                result[np.isinf(numbers)] = 0
            return result

        return rank

    def partition(self, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the ends of the cells as intervals on the raw scale and their codes.

        None if they are not known to be intervals: there must be one input, behind steps that are
        known to be monotone.
        """
        cells = self.cells[k]
        if cells.partition is None and cells.edges is not None:  # not stored: it is large
            edges = cells.edges
            return np.r_[-np.inf, edges, np.inf], np.arange(1, len(edges) + 2)
        mains = [s for s, source in enumerate(cells.inputs) if source.track.kind != Kind.MISSING]
        numeric = not frames.is_level(self.row.X, k) and cells.labels is None
        if cells.partition is None and numeric and not cells.open and len(mains) == 1:
            source = cells.inputs[mains[0]]
            known = (*Kind.UNCHANGED, Kind.CUTS, Kind.MONOTONE, Kind.NUMBER, Kind.PARTIAL)
            if self.routes[source.route].changes(source.place) or source.track.kind not in known:
                return None
            try:
                if source.track.kind == Kind.CUTS:
                    ends = np.r_[-np.inf, np.unique(self.raw_cuts(k, source.track.known)), np.inf]
                elif source.track.kind in Kind.UNCHANGED:
                    edges = np.unique(self.raw_cuts(k, source.edges))
                    ends = np.r_[-np.inf, edges[np.isfinite(edges)], np.inf]
                else:
                    rank, accepted = (self.ranker(k, mains[0], some) for some in (True, False))
                    ends = monotone_ends(rank, accepted, float(self.present(k)))
                for value in source.track.replaced:  # a cell of its own
                    sides = [np.nextafter(value, -np.inf), value]
                    ends = np.union1d(ends, self.raw_cuts(k, sides))
                cells.partition = (ends, self.encode_values(k, between(ends)))
            except (TypeError, ValueError):
                return None
        return cells.partition

    def describe_cells(self, k: int) -> tuple[pd.DataFrame, np.ndarray] | None:
        """Return the cells as a frame, `lower, upper, closed` or `level, kind`, and their codes.

        Missing has a row, if it is accepted; all levels that the model does not know share a row of
        the kind "other". None if the cells are not intervals on the raw scale.
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
        lower, upper = ends[:-1], ends[1:]
        missing = self.missing_code(k)
        if missing is not None:
            lower, upper = np.append(lower, np.nan), np.append(upper, np.nan)
            codes = np.append(codes, missing)
        # words are taken, as pandas needs longer to read a list of them
        closed = CLOSED.take(np.isnan(lower).astype(int))
        return pd.DataFrame({"lower": lower, "upper": upper, "closed": closed}), codes
