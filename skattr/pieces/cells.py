"""What a model can tell apart in each raw column, and the numbers (codes) of it.

Code 0 is missing. An ordered column with edges e_1 < … < e_m has the codes 1 … m + 1: code c means
e_{c-1} < x <= e_c. Readers store each edge as the largest float64 that the model still sends left,
so that comparing in float64 is right for every library (MATH.md, section 7). A column of levels has
one code a level.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd

from skattr import frames
from skattr.kernels import lookup
from skattr.parallel import in_order

INTEGERS = (np.int64, np.uint64)  # the types that float64 rounds


class Front(Protocol):
    """The estimator's own fitted steps in front of the model."""

    columns: np.ndarray  # (m,) the raw column that each input comes from
    takes_missing: bool
    takes_infinite: bool
    dtype: np.dtype  # of the inputs

    def inputs(self, X: Any) -> np.ndarray:
        """Return what the model sees, (n, m), or refuse X as `predict` does."""


@dataclass(eq=False)
class Cells:
    """The cells of one raw column: edges if they have an order, else levels.

    `sources` are the inputs (front, column of its inputs) that come from the raw column; for
    levels, `maps` has one array for each: the code of an input value.
    """

    edges: np.ndarray | None = None
    levels: list | None = None
    sources: list = field(default_factory=list)
    maps: list = field(default_factory=list)
    takes_missing: bool = True
    takes_infinite: bool = True
    dtype: Any = np.float64  # of the input that is ranked

    @property
    def ordered(self) -> bool:
        """Whether codes have an order."""
        return self.levels is None

    @property
    def n_codes(self) -> int:
        """Number of codes, missing included."""
        if self.levels is not None:
            return len(self.levels) + 1
        assert self.edges is not None
        return len(self.edges) + 2

    def encode_inputs(self, inputs: list, codes: np.ndarray) -> None:
        """Fill codes from the inputs of all fronts."""
        if not self.sources:
            codes[:] = 1  # a column that the model never sees
        elif self.ordered:
            front, column = self.sources[0]
            lookup.rank(inputs[front][:, column], self.edges, codes)
        else:
            codes[:] = 0
            for (front, column), to_code in zip(self.sources, self.maps, strict=True):
                values = inputs[front][:, column]
                known = ~np.isnan(values) & (codes == 0)
                codes[known] = to_code[values[known].astype(np.intp)]

    def encode_values(self, values: Any, name: Any) -> np.ndarray:
        """Return the codes of raw values."""
        if self.ordered:
            codes = self._rank(values, name)
        else:
            codes = self._find(values)
        if not self.takes_missing and not codes.all():
            raise ValueError(f"column {name!r}: the model takes no missing values")
        return codes

    def _rank(self, values: Any, name: Any) -> np.ndarray:
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
        return codes

    def _find(self, values: Any) -> np.ndarray:
        code_of = {level: code for code, level in enumerate(self.levels or [], start=1)}
        array = frames.to_array(values)
        return np.array([code_of.get(v, 0) for v in array.tolist()], np.int32)

    def labels(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Describe the cells, `lower, upper, closed` or `level`, and return their codes.

        Missing is the last row, if the model takes it; a level that the model does not know is
        "any other", and counts as missing.
        """
        if self.levels is not None:
            levels = [*self.levels, "missing", "any other"]
            return pd.DataFrame({"level": pd.Series(levels, dtype=object)}), np.r_[
                1 : self.n_codes, 0, 0
            ]
        assert self.edges is not None
        lower = np.concatenate([[-np.inf], self.edges])
        upper = np.concatenate([self.edges, [np.inf]])
        frame = pd.DataFrame({"lower": lower, "upper": upper, "closed": "right"})
        codes = np.arange(1, self.n_codes)
        if self.takes_missing:
            frame.loc[len(frame)] = [np.nan, np.nan, "missing"]
            codes = np.append(codes, 0)
        return frame, codes


@dataclass(eq=False)
class Grid:
    """The cells of all raw columns, and the fitted steps that lead to them."""

    fronts: list
    cells: list[Cells]
    offset: np.ndarray = field(init=False)  # (d + 1,) where the codes of a column start

    def __post_init__(self) -> None:
        sizes = [c.n_codes for c in self.cells]
        self.offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def encode(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """Return the codes of X, (d, n); refuses what the model's `predict` refuses."""
        try:
            inputs = [front.inputs(X) for front in self.fronts]
        except (TypeError, ValueError) as error:
            raise ValueError(f"the model refuses X: {error}{frames.unusual(X)}") from error
        codes = np.empty((len(self.cells), len(X)), np.int32)

        def fill(k: int) -> None:
            self.cells[k].encode_inputs(inputs, codes[k])

        deque(in_order(fill, range(len(self.cells)), n_jobs), maxlen=0)
        return codes
