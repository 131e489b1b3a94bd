"""What is done with one part of a frame: a sketch, a prepared batch, or an explanation.

Objects of these classes pickle. `of_rows` takes a table in memory and the number of the part, and
every error that it raises names the part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from skattr._inputs import frames
from skattr.distributed.alignment import align
from skattr.distributed.results import ResultColumns
from skattr.distributed.shipping import n_bytes
from skattr.distributed.sketch import Sketch
from skattr.measures.background import check_weights
from skattr.solution.batches import Batch, Plan

LARGEST = 2**30  # bytes of a state that is still merged


class Work(Protocol):
    """Computes something of each part, and merges it."""

    def of_rows(self, table: Any, number: int, block: int = 0) -> Any:
        """Return what is computed of a block of a part, None if no row has a positive weight."""

    def merge(self, a: Any, b: Any) -> Any:
        """Return what is computed of both parts."""


@contextmanager
def naming(part: str, number: int) -> Iterator[None]:
    """Name the part of a frame in every error."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"{part} {number}: {error}") from error
    except Exception as error:  # each library has errors of its own
        raise RuntimeError(f"{part} {number}: {type(error).__name__}: {error}") from error


def split_weights(table: Any, weight: Any) -> tuple[Any, np.ndarray] | None:
    """Return rows and their weights, which may be a column; None if there are no such rows."""
    if not len(table):
        return None
    if weight is None:
        return table, np.ones(len(table))
    names = frames.labels(table)
    k = names.index(weight)
    if not frames.is_number(table, k):
        raise ValueError(f"sample_weight: column {weight!r} must hold numbers")
    weights = frames.to_float(frames.column(table, k))
    rest = frames.take_columns(table, [i for i in range(len(names)) if i != k])
    if (weights == 0).all():
        return None
    return rest, check_weights(weights, len(table))


@dataclass(eq=False)
class Sketching:
    """The ranges of all columns, and a seeded sample of the rows."""

    weight: Any  # the column of weights, or None
    rows: int  # of the sample
    seed: int
    part: str

    def of_rows(self, table: Any, number: int, block: int = 0) -> Sketch | None:
        """Return the sketch of a block of a part."""
        with naming(self.part, number):
            split = split_weights(table, self.weight)
            if split is None:
                return None
            return Sketch.of(*split, self.rows, (self.seed, number, block))

    def merge(self, a: Sketch, b: Sketch) -> Sketch:
        """Return the sketch of both parts."""
        return a.merge(b)


@dataclass(eq=False)
class Counting:
    """The number of rows of positive weight."""

    weight: Any
    part: str

    def of_rows(self, table: Any, number: int, block: int = 0) -> int | None:
        """Return the number of rows of a block of a part."""
        with naming(self.part, number):
            split = split_weights(table, self.weight)
            return None if split is None else int(np.count_nonzero(split[1]))

    def merge(self, a: int, b: int) -> int:
        """Return the number of rows of both parts."""
        return a + b


@dataclass(eq=False)
class Preparing:
    """All terms of a plan, prepared on a part of the background."""

    plan: Plan
    weight: Any
    part: str

    def of_rows(self, table: Any, number: int, block: int = 0) -> Batch | None:
        """Return the prepared batch."""
        with naming(self.part, number):
            split = split_weights(table, self.weight)
            if split is None:
                return None
            rows, weights = split
            first = (number << 40) + (block << 32)  # each block has other positions
            return self.plan.prepare(align(rows, self.plan.model), weights, first)

    def merge(self, a: Batch, b: Batch) -> Batch:
        """Return the batch of both parts, unless it has become too large to travel."""
        both = a.merge(b)
        size = n_bytes(both)
        if size > LARGEST:
            engines = ", ".join(sorted({term.engine.name for term in both.terms}))
            raise ValueError(
                f"what is kept of {both.seen.n_rows:,} rows of the background takes "
                f"{size / 1e9:.1f} GB, as {engines} keeps rows or their values: fit on a sample of "
                "the frame, or choose a measure and a model whose sums do not grow "
                "(PartialDependence on trees)"
            )
        return both


@dataclass(eq=False)
class Explaining:
    """The values of a fitted explainer."""

    explainer: Any
    columns: ResultColumns
    part: str

    def of_rows(self, table: Any, number: int, block: int = 0) -> dict[str, np.ndarray]:
        """Return the columns of the result, by name."""
        if not len(table):
            return {name: np.empty(0) for name in self.columns.names}
        model = self.explainer._model
        with naming(self.part, number):
            rows = align(frames.reorder(table, self.columns.inputs), model)
            explanation = self.explainer.explain(rows, predictions=self.columns.predictions)
            return self.columns.of(explanation)


def table_of(columns: list[nw.Series], implementation: Any) -> Any:
    """Return series of narwhals as a frame of their library."""
    pairs = {series.name: series for series in columns}
    return nw.from_dict(pairs, backend=implementation).to_native()
