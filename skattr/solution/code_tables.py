"""Functions of codes of all attributions, in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skattr.attributions import Attributions
from skattr.curves.by_code import ByCode, CodeFunction, Constant
from skattr.engines import Rows
from skattr.kernels import lookup
from skattr.pieces import Grid


@dataclass(eq=False)
class CodeTables:
    """Functions of codes, concatenated so that one call looks them all up."""

    values: np.ndarray  # (n_codes in all, k)
    where: np.ndarray  # (2, g) the column and the start of each attribution, -1 if it has no codes
    constants: np.ndarray  # (g, k) the value of an attribution that has no codes

    @classmethod
    def of(
        cls, bases: Sequence[CodeFunction], grid: Grid | None, attributions: Attributions
    ) -> CodeTables:
        """Concatenate functions; a constant is repeated for each code of the column."""
        where = np.full((2, len(bases)), -1, np.int64)
        constants = np.array([base.values[0] for base in bases])
        parts, start = [constants[:0]], 0
        for j, (base, columns) in enumerate(zip(bases, attributions, strict=True)):
            if grid is None or len(columns) > 1 or grid.cells[columns[0]].open:
                continue
            n_codes = grid.cells[columns[0]].n_codes
            where[:, j] = columns[0], start
            parts.append(np.broadcast_to(base.values, (n_codes, base.values.shape[1])))
            start += n_codes
        return cls(np.concatenate(parts), where, constants)

    def look_up(self, rows: Rows, chosen: np.ndarray) -> np.ndarray:
        """Return some attributions at rows, (n, len(chosen), k)."""
        result = np.zeros((len(rows.X), len(chosen), self.values.shape[1]))
        where = np.ascontiguousarray(self.where[:, chosen])
        if rows.codes is not None:
            lookup.look_up(rows.codes, where, self.values, result)
        for i in np.flatnonzero(where[0] < 0):
            result[:, i] = self.constants[chosen[i]]
        return result

    def base(self, a: int, grid: Grid | None) -> CodeFunction:
        """Return one of the functions."""
        k, start = self.where[:, a]
        if k < 0:
            return Constant(self.constants[a : a + 1])
        assert grid is not None
        return ByCode(grid, int(k), self.values[start : start + grid.cells[k].n_codes])
