"""What a model can tell apart in each raw column, and the numbers (codes) of it.

An `Input` is a number that the model compares with edges (or finds in sets of levels); its rank is
0 if it is missing, else 1 + the number of edges below it. Readers store each edge as the largest
float64 that the model still sends left, so that comparing in float64 is right for every library
(MATH.md, section 7). The ranks of all inputs that come from one raw column are the signature of its
value, and each signature has a code: that is a cell. Code 0 is missing.

Cells are enumerated from the fitted model and steps (grids.py). A column for which this is
impossible is open: its cells are those met (`Grid.meet`).
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy import sparse

from skattr import frames
from skattr.kernels import lookup
from skattr.parallel import in_order
from skattr.pieces.bisection import between, monotone_ends
from skattr.pieces.pipeline import Preprocessing
from skattr.pieces.steps import FREE, MISSING, RAW, SAME, Track
from skattr.storage import Kept

NEAR = (RAW, SAME)  # kinds of inputs whose edges are raw numbers
OTHER = "any other"
INTEGERS = (np.int64, np.uint64)  # the types that float64 rounds


@dataclass(frozen=True)
class Nameless:
    """A level of which the model keeps a number, but not the raw value."""

    number: Any


class Front(Protocol):
    """The checks, casts and encoders of the model itself."""

    columns: np.ndarray  # (m,) the column of its table that each input comes from
    takes_missing: bool
    takes_infinite: bool
    dtype: np.dtype  # of the inputs
    absent: float  # what an absent entry of a sparse table means
    changes: np.ndarray  # (m,) whether a number is more than cast, such as 0 taken for missing

    def inputs(self, X: Any) -> np.ndarray:
        """Return what the model compares, (n, m), or refuse X as `predict` does."""


@dataclass(eq=False)
class Route:
    """The way from raw columns to the inputs of a part of the model."""

    steps: Preprocessing | None
    front: Front

    def inputs(self, X: Any, wanted: set | None = None) -> np.ndarray:
        """Return the inputs, (n, m); with `wanted` only those of some raw columns are right."""
        if self.steps is not None:
            X = self.steps.transform(X, wanted, keep_sparse=self.front.absent != 0)
            if sparse.issparse(X):
                X = _dense(X, self.front.absent)
        return self.front.inputs(X)

    def track(self, c: int) -> Track:
        """Return what input c is, as a function of a raw column, before the model's own encoder."""
        column = int(self.front.columns[c])
        track = Track(column) if self.steps is None else self.steps.tracks[column]
        return track.then(FREE) if self.front.changes[c] else track


def _dense(table: Any, absent: float) -> np.ndarray:
    if absent == 0:
        return table.toarray()
    entries = table.tocoo()
    result = np.full(table.shape, absent)
    result[entries.row, entries.col] = entries.data
    return result


@dataclass(eq=False)
class Input:
    """A number that the model asks for: compared with edges or, if `n_levels`, found in sets."""

    route: int
    place: int  # column of the route's inputs
    track: Track
    edges: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_levels: int = 0

    def rank(self, values: np.ndarray, out: np.ndarray) -> None:
        """Fill out with the ranks of values."""
        if self.n_levels:
            out[:] = np.where(np.isnan(values), -1, values).astype(np.int32) + 1
        else:
            lookup.rank(values, self.edges, out)


@dataclass(eq=False)
class Cells:
    """The cells of one raw column.

    `ordered`: ranks never fall from code 1 on, so that what goes left at a split is 1, 2, … up to
    some code. `edges`: those of a number that reaches the model as it is. `labels`: (level, code)
    for a column of levels.
    """

    inputs: list[Input]
    signatures: np.ndarray  # (n_codes, n_inputs) ranks
    edges: np.ndarray | None = None
    labels: list | None = None
    open: bool = False
    ordered: bool = field(init=False)
    takes_missing: bool = True
    takes_infinite: bool = True
    dtype: Any = np.float64  # of the number
    partition: tuple | None = None  # ends of intervals on the raw scale, and their codes

    def __post_init__(self) -> None:
        rows = self.signatures[1:]
        sets = any(source.n_levels for source in self.inputs)
        rises = bool((rows > 0).all() and (np.diff(rows, axis=0) >= 0).all())
        self.ordered = rises and not sets and not self.open

    @property
    def n_codes(self) -> int:
        """Number of codes, missing included."""
        return len(self.signatures)

    @property
    def plain(self) -> bool:
        """Whether codes are the ranks of one input."""
        return (
            len(self.inputs) == 1
            and self.ordered
            and self.n_codes == len(self.inputs[0].edges) + 2
            and self.signatures[0, 0] <= 0
        )

    def codes_of(self, ranks: np.ndarray, new: dict | None, name: Any) -> np.ndarray:
        """Return the codes of signatures (m, n_inputs); those that are new get the next numbers."""
        if not self.inputs:
            return np.ones(len(ranks), np.int32)
        known = {row.tobytes(): code for code, row in reversed(list(enumerate(self.signatures)))}
        rows, which = np.unique(ranks, axis=0, return_inverse=True)
        codes = np.empty(len(rows), np.int32)
        for i, row in enumerate(rows):
            code = known.get(row.tobytes())
            if code is None and new is not None:
                code = new.setdefault(row.tobytes(), self.n_codes + len(new))
            if code is None:
                raise ValueError(
                    f"column {name!r}: a value lies in a cell that the fitted steps did not "
                    "announce; numbers as float64, and levels of one type, avoid this"
                )
            codes[i] = code
        return codes[which.reshape(-1)]

    def encode_numbers(self, values: Any, name: Any) -> np.ndarray:
        """Return the codes of raw numbers that reach the model as they are."""
        try:
            numbers = frames.to_float(values)
            if getattr(values, "dtype", None) in INTEGERS:  # rounded once, as the model does
                numbers = np.asarray(values).astype(self.dtype).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {name!r} wants numbers: {error}") from error
        if not self.takes_infinite:  # and casts to float32
            with np.errstate(over="ignore"):
                if np.isinf(numbers.astype(np.float32)).any():
                    raise ValueError(
                        f"column {name!r}: the model takes no infinite values, none beyond float32"
                    )
        codes = np.empty(len(numbers), np.int32)
        lookup.rank(numbers, self.edges, codes)
        if not self.takes_missing and not codes.all():
            raise ValueError(f"column {name!r}: the model takes no missing values")
        return codes


def unknown_level(levels: list) -> Any:
    """Return a value that is none of the levels, or None if there can be no other."""
    if set(map(type, levels)) == {bool}:
        return None
    if levels and all(isinstance(v, int | float) for v in levels):
        return float(np.ceil(max(levels))) + 1.0
    name = OTHER
    while name in levels:
        name += "."
    return name


@dataclass(eq=False)
class Grid:
    """The cells of all raw columns, and the fitted steps that lead to them."""

    routes: list[Route]
    cells: list[Cells]
    row: Kept  # one row of X: what the other columns hold while one is looked at
    offset: np.ndarray = field(init=False)  # (d + 1,) where the codes of a column start

    def __post_init__(self) -> None:
        sizes = [c.n_codes for c in self.cells]
        self.offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

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
            and (cells.open or any(source.track.kind not in NEAR for source in cells.inputs)
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
                cells[k] = replace(cells[k], signatures=np.concatenate([cells[k].signatures, rows]))
        return Grid(self.routes, cells, self.row), codes

    def _encode(self, X: Any, n_jobs: int | None, new: list) -> np.ndarray:
        n = len(X)
        codes = np.empty((len(self.cells), n), np.int32)
        by_level = self._by_level(X)
        by_row = [k for k in range(len(self.cells)) if k not in by_level]
        size = min([r.steps.rows_at_once() for r in self.routes if r.steps is not None], default=n)
        behind = any(route.steps is not None for route in self.routes)
        with refusals(X, self.row.X, self._inputs, behind):
            for start in range(0, n, max(size, 1)):
                block = slice(start, min(start + size, n))
                rows = X if size >= n else frames.take_rows(X, block)
                inputs = self._inputs(rows, set(by_row))

                def fill(k: int, inputs: list = inputs, block: slice = block) -> None:
                    self._fill(k, inputs, codes[k, block], new[k])

                deque(in_order(fill, by_row, n_jobs), maxlen=0)
            if by_level:
                firsts = np.unique(np.concatenate([first for first, _ in by_level.values()]))
                some = frames.take_rows(X, firsts)
                inputs = self._inputs(some, set(by_level))
                found = np.empty(len(firsts), np.int32)
                for k, (first, kind) in by_level.items():
                    self._fill(k, inputs, found, new[k])
                    codes[k] = found[np.searchsorted(firsts, first)][kind]
        return codes

    def _by_level(self, X: Any) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Return the columns behind steps whose distinct values are few enough to look up."""
        steps = [route.steps for route in self.routes if route.steps is not None]
        return few_levels(X, {track.column for step in steps for track in step.tracks})

    def _inputs(self, X: Any, wanted: set | None = None) -> list:
        """Return the inputs of all routes."""
        return [route.inputs(X, wanted) for route in self.routes]

    def _fill(self, k: int, inputs: list, codes: np.ndarray, new: dict | None) -> None:
        cells = self.cells[k]
        if cells.plain:
            source = cells.inputs[0]
            source.rank(inputs[source.route][:, source.place], codes)
        else:
            codes[:] = cells.codes_of(self.ranks(k, inputs), new, self.names[k])

    def ranks(self, k: int, inputs: list) -> np.ndarray:
        """Return the signatures of column k, (n, n_inputs), from the inputs of all routes."""
        sources = self.cells[k].inputs
        result = np.empty((len(sources), len(inputs[0])), np.int32)
        for source, out in zip(sources, result, strict=True):
            source.rank(inputs[source.route][:, source.place], out)
        return np.ascontiguousarray(result.T)

    def encode_values(self, k: int, values: Any) -> np.ndarray:
        """Return the codes of raw values of column k."""
        cells = self.cells[k]
        if cells.edges is not None:
            return cells.encode_numbers(values, self.names[k])
        rows = frames.with_columns(self.row.X, {k: values})
        new: list = [{} if c.open and i != k else None for i, c in enumerate(self.cells)]
        return self._encode(rows, 1, new)[k]

    def takes_missing(self, k: int) -> bool:
        """Tell whether column k may be missing."""
        if self.cells[k].edges is not None:
            return self.cells[k].takes_missing
        try:
            self.encode_values(k, pd.Series([None], dtype=object))
        except ValueError:
            return False
        return True

    def _other_labels(self, k: int) -> list:
        """Return the codes of "missing" and "any other", where the model takes them."""
        levels = [level for level, _ in self.cells[k].labels or []]
        found = []
        for label, value in (("missing", None), (OTHER, unknown_level(levels))):
            taken = label == "missing" or value is not None
            with suppress(ValueError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of unknown categories
                if taken:
                    code = self.encode_values(k, pd.Series([value], dtype=object))[0]
                    found.append((label, int(code)))
        return found

    def name_levels(self, X: Any) -> None:
        """Name the levels of columns of which the model keeps no names, as far as X has them."""
        for k, cells in enumerate(self.cells):
            if cells.labels == []:
                levels = frames.distinct_levels(frames.column(X, k))
                codes = self.encode_values(k, pd.Series(levels, dtype=object).infer_objects())
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
            table = frames.with_columns(self.row.X, {k: values})
            if route.steps is not None:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    table = route.steps.transform(table, {k})
            if sparse.issparse(table):
                table = _dense(table[:, [place]], route.front.absent)
            at = place if np.shape(table)[1] > 1 else 0
            result = np.empty(len(values), np.int32)
            source.rank(frames.to_float(frames.column(table, at)), result)
            return result

        return rank

    def partition(self, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the ends of intervals on the raw scale and their codes, or None if there are none.

        The steps in front of one input are taken to be monotone if nothing that is looked at says
        otherwise.
        """
        cells = self.cells[k]
        mains = [s for s, source in enumerate(cells.inputs) if source.track.kind != MISSING]
        numeric = not frames.is_level(self.row.X, k) and cells.labels is None
        if cells.partition is None and numeric and not cells.open and len(mains) == 1:
            source = cells.inputs[mains[0]]
            try:
                if source.track.kind in NEAR and not source.track.replaced:
                    ends = np.r_[-np.inf, source.edges[np.isfinite(source.edges)], np.inf]
                else:
                    ends = monotone_ends(self.ranker(k, mains[0]), float(self.present(k)))
                cells.partition = (ends, self.encode_values(k, between(ends)))
            except (TypeError, ValueError):
                return None
        return cells.partition

    def describe_cells(self, k: int) -> tuple[pd.DataFrame, np.ndarray] | None:
        """Describe the cells, `lower, upper, closed` or `level`, and return their codes.

        Missing is a row of its own, if it may be; all levels that the model does not know are "any
        other". None if the cells are no intervals on the raw scale.
        """
        cells = self.cells[k]
        if cells.labels is not None:
            labels = [*cells.labels, *self._other_labels(k)]
            frame = pd.DataFrame({"level": pd.Series([v for v, _ in labels], dtype=object)})
            return frame, np.array([code for _, code in labels], int)
        partition = self.partition(k)
        if partition is None:
            return None
        ends, codes = partition
        frame = pd.DataFrame({"lower": ends[:-1], "upper": ends[1:], "closed": "right"})
        if self.takes_missing(k):
            missing = 0
            if cells.edges is None:
                missing = int(self.encode_values(k, pd.Series([None], dtype=object))[0])
            frame.loc[len(frame)] = [np.nan, np.nan, "missing"]
            codes = np.append(codes, missing)
        return frame, codes


def few_levels(X: Any, columns: Iterable[int]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the columns of levels whose distinct values are few enough to look up."""
    found = {k: frames.distinct(frames.column(X, k)) for k in columns if frames.is_level(X, k)}
    return {k: v for k, v in found.items() if len(v[0]) <= len(X) // 2}


@contextmanager
def refusals(X: Any, row: Any, inputs: Callable, behind_steps: bool) -> Iterator[None]:
    """Turn what a fitted step or the model says of X into an error that names the column.

    `inputs` refuses rows as the model does, `row` is one that it takes.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        why = _blame(X, row, inputs) if behind_steps else frames.unusual(X)
        raise ValueError(f"the model refuses X: {error}{why}") from error


def _blame(X: Any, row: Any, inputs: Callable) -> str:
    """Name the column that the fitted steps refuse, by trying one after the other."""
    for k, name in enumerate(frames.labels(row)):
        try:
            values = frames.take_rows(X, frames.distinct(frames.column(X, k))[0])
            inputs(frames.with_columns(row, {k: frames.column(values, k)}))
        except (TypeError, ValueError):
            return (
                f" (column {name!r}: leave such rows out, or let the step that prepares it "
                "take them, as handle_unknown and SimpleImputer do)"
            )
    return ""
