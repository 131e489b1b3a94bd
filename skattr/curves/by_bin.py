"""Functions of a column's code and of the bin of its raw value: conditional measures on boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._typing import override
from skattr.curves.base import NO_ROWS, ColumnFunction
from skattr.curves.by_code import ByCode
from skattr.measures.learned.bins import Bins
from skattr.pieces.cells import MISSING, between, level_frame


class ByCodeAndBin(ColumnFunction):
    """Values by code and bin.

    Parameters
    ----------
    bins : Bins
        The bins of the column.
    values : array
        (n_codes, bins of t, k), or by code + bin (…, k), missing last, if `reach` is given.
    reach : array (2, n), optional
        The first and last code of each bin, where codes rise with bins.
    partial : bool
        Whether rounding in the steps in front of the model may lead out of reach.
    """

    kind = "steps"
    has_table = False  # SumByCodeAndBin has one

    def __init__(
        self,
        bins: Bins,
        values: np.ndarray,
        reach: np.ndarray | None = None,
        partial: bool = False,
    ) -> None:
        self.bins = bins
        self.values = values
        self.reach = reach
        self.partial = partial

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        assert codes is not None
        result, off = self.at_bins(codes, self.bins.of(values))
        if len(off) and not self.partial:
            raise ValueError(
                f"column {self.bins.name!r} has numbers that the model distinguishes but float64 "
                "does not; convert the column to float64"
            )
        return result, off

    def at_bins(self, codes: np.ndarray, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values at codes and bins, (n, k), and the rows out of reach."""
        if self.reach is None:
            return self.values[codes, bins], NO_ROWS
        present = bins < self.bins.n
        low, high = self.reach[:, np.where(present, bins, 0)]
        off = np.flatnonzero(present & ((codes < low) | (codes > high)))
        index = np.where(present, codes + bins, -1)
        index[off] = -1
        return self.values[index], off

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Raise: `has_table` is False."""
        raise NotImplementedError


class SumByCodeAndBin(ColumnFunction):
    """Values by code, plus multiples of functions of code and bin.

    Parameters
    ----------
    base : ByCode
    parts : list of (float, ByCodeAndBin)
    integrate : callable
        Raw values → attributions (n, k), for values that lie off a part.
    """

    def __init__(
        self,
        base: ByCode,
        parts: list[tuple[float, ByCodeAndBin]],
        integrate: Callable[[Any], np.ndarray],
    ) -> None:
        self.base = base
        self.parts = parts
        self.integrate = integrate
        self.partial = any(function.partial for _, function in parts)

    @property
    @override
    def kind(self) -> str:
        """Steps, or levels of the background, also if the model takes them for numbers."""
        levels = any(function.bins.levels is not None for _, function in self.parts)
        return "levels" if levels else self.base.kind

    @property
    @override
    def of_numbers(self) -> bool:
        return self.kind == "steps" and self.base.of_numbers

    @override
    def encode(self, values: Any) -> np.ndarray:
        return self.base.encode(values)

    @override
    def warn_of_rounding(self, values: Any) -> None:
        self.base.warn_of_rounding(values)

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        result, off = self.base.values[codes], [NO_ROWS]
        for coefficient, function in self.parts:
            part, off_part = function.at(codes, values)
            result = result + coefficient * part
            off.append(off_part)
        return result, np.unique(np.concatenate(off))

    @override
    def evaluate(self, values: Any) -> np.ndarray:
        result, off = self.at(self.encode(values), values)
        return self.integrate(values) if len(off) else result

    def _at_bins(self, codes: np.ndarray, bins: list[np.ndarray]) -> np.ndarray:
        result: np.ndarray = self.base.values[codes]
        for (coefficient, function), which in zip(self.parts, bins, strict=True):
            result = result + coefficient * function.at_bins(codes, which)[0]
        return result

    @property
    @override
    def has_table(self) -> bool:
        # the cuts of bins of dates are numbers
        return self.base.has_table and not frames.is_date(self.base.grid.row.X, self.base.k)

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return labels and values of all levels, or all steps between jumps of codes and bins.

        Levels that the model does not have may still be levels of the background.
        """
        return self._level_table() if self.kind == "levels" else self._step_table()

    def _level_table(self) -> tuple[pd.DataFrame, np.ndarray]:
        grid, k = self.base.grid, self.base.k
        pairs = list(grid.cells[k].labels or [])
        known = {level for level, _ in pairs}
        more = grid.levels_taken(k, [v for _, f in self.parts for v in f.bins.told_apart()])
        pairs += [(level, code) for level, code in more if level not in known]
        pairs = [(level, code) for level, code in pairs if not frames.is_missing(level)]
        levels = frames.as_column([level for level, _ in pairs])
        rest = grid.other_labels(k, levels.to_list())
        codes = np.array([code for *_, code in [*pairs, *rest]], int)
        bins = [
            np.append(f.bins.of(levels), [f.bins.n + (kind != MISSING) for _, kind, _ in rest])
            for _, f in self.parts
        ]
        frame = level_frame([*((level, "level") for level in levels), *rest])
        return frame, self._at_bins(codes, [which.astype(int) for which in bins])

    def _step_table(self) -> tuple[pd.DataFrame, np.ndarray]:
        grid, k = self.base.grid, self.base.k
        partition = grid.partition(k)
        assert partition is not None
        ends = partition[0]
        cuts = np.concatenate([function.bins.cuts() for _, function in self.parts])
        ends = np.union1d(ends, cuts[(cuts > ends[0]) & (cuts < ends[-1])])
        frame = pd.DataFrame({"lower": ends[:-1], "upper": ends[1:], "closed": "right"})
        values = self.evaluate(between(ends))
        if -np.inf in cuts:  # a value of the background that has its own bin
            first = pd.DataFrame({"lower": [-np.inf], "upper": [-np.inf], "closed": ["both"]})
            frame = pd.concat([first, frame], ignore_index=True)
            values = np.concatenate([self.evaluate(np.array([-np.inf])), values])
        missing = grid.missing_code(k)
        if missing is not None:
            frame.loc[len(frame)] = [np.nan, np.nan, "missing"]
            bins = [np.array([function.bins.n]) for _, function in self.parts]
            values = np.concatenate([values, self._at_bins(np.array([missing]), bins)])
        return frame, values
