"""A sum of boxes as a step function of one column, for each of some rows.

One pass down the trees for all columns together, O(boxes · depth · rows / 64) and a few additions
for each row that meets all but one condition of a box; then one number per row and code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skattr.engines.boxes.box_sums import owners, tree_blocks
from skattr.kernels.boxes import one_violation, row_curves
from skattr.kernels.boxes.row_curves import RowSteps
from skattr.pieces import Boxes

MAX_NUMBERS = 2**22  # margins that are computed together
MIN_ROWS, MAX_ROWS = 64, 512  # rows that go down the trees together


@dataclass(eq=False)
class StepsOfRows:
    """Boxes, and some columns as functions of which rows are computed.

    Parameters
    ----------
    boxes : Boxes
        On a grid that has the cells of the rows.
    columns : list of int
        The columns that are left free, one at a time.
    """

    boxes: Boxes
    columns: list[int]

    def __post_init__(self) -> None:
        self._trees = tree_blocks(self.boxes)
        self._owners = owners([(k,) for k in self.columns], self.boxes.grid)
        n_codes = np.diff(self.boxes.grid.offset)[self.columns]
        self._start = np.concatenate([[0], np.cumsum(n_codes)]).astype(np.int64)

    def block_size(self) -> int:
        """Return how many rows are computed together, which bounds memory."""
        size = MAX_NUMBERS // (self.boxes.n_outputs * (int(self._start[-1]) + 1))
        return int(np.clip(size // MIN_ROWS * MIN_ROWS, MIN_ROWS, MAX_ROWS))

    def of(self, codes: np.ndarray) -> tuple[np.ndarray, Iterator[tuple[int, np.ndarray]]]:
        """Return f at some rows, (k, n), and the steps of each column, (k, codes, n).

        Parameters
        ----------
        codes : array (d, n)
            The codes of rows, at most `block_size` of them.
        """
        k, n = self.boxes.n_outputs, codes.shape[1]
        steps = RowSteps(
            np.zeros((k, 1, n)),
            np.zeros((k, len(self.columns), n)),
            np.zeros((k, int(self._start[-1]) + 1, n)),
            self._start[:-1],
        )
        rows = one_violation.index_rows(
            np.ascontiguousarray(codes), np.ones(n), self.boxes.grid.offset
        )
        for trees in self._trees:
            row_curves.walk(self.boxes.table, trees, self._owners, rows, steps)
        fit = steps.fit + self.boxes.constant[:, None, None]
        return fit[:, 0], self._columns(fit, steps)

    def _columns(self, fit: np.ndarray, steps: RowSteps) -> Iterator[tuple[int, np.ndarray]]:
        for j, k in enumerate(self.columns):
            values = steps.jumps[:, self._start[j] : self._start[j + 1]]
            if self.boxes.grid.cells[k].ordered:
                np.cumsum(values[:, 1:], axis=1, out=values[:, 1:])
            values += fit + steps.own[:, j : j + 1]
            yield k, values


def passes(boxes: Boxes, columns: list[int]) -> list[list[int]]:
    """Split columns into passes in which the steps of a block of rows fit in memory."""
    limit = MAX_NUMBERS * 4 // (MIN_ROWS * boxes.n_outputs)
    offset = boxes.grid.offset
    result: list[list[int]] = [[]]
    size = 0
    for k in columns:
        more = int(offset[k + 1] - offset[k])
        if result[-1] and size + more > limit:
            result.append([])
            size = 0
        result[-1].append(k)
        size += more
    return result
