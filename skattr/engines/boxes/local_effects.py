"""Local effects of boxes: f at both ends of the bins of all rows, in one pass down the trees.

Also behind a link: the pass gives the margins at each row and at both ends, one row at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skattr.engines.backgrounds import encode
from skattr.engines.boxes.moved_rows import LOWER, UPPER, moved_values
from skattr.measures.ale import LocalEffects
from skattr.measures.background import Background
from skattr.pieces import Boxes, Pieces


@dataclass(eq=False)
class Ends:
    """The rows of a column's effects, in order, and the codes of the ends of their bins."""

    rows: np.ndarray  # (m,)
    effect: np.ndarray  # (m,)
    weight: np.ndarray  # (m,)
    codes: np.ndarray  # (m, 2)
    moved: np.ndarray  # (m, 2) whether an end has another code than the row

    @classmethod
    def of(cls, column: LocalEffects, ends: np.ndarray, codes: np.ndarray) -> Ends:
        """Return the ends of a column, given the codes of its ends and those of all rows."""
        order = np.argsort(column.rows, kind="stable")
        rows, effect = column.rows[order], column.effect[order]
        both = np.stack([ends[effect], ends[effect + 1]], axis=1)
        return cls(rows, effect, column.weight[order], both, both != codes[rows, None])

    def within(self, block: slice) -> slice:
        """Return where the rows of a block stand."""
        return slice(*np.searchsorted(self.rows, [block.start, block.stop]))


def effects_of_boxes(
    pieces: Pieces,
    boxes: Boxes,
    background: Background,
    columns: dict[int, LocalEffects],
    n_jobs: int | None,
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Return the effects of columns whose cells are known, and the mean of f.

    Parameters
    ----------
    pieces : Boxes or Linked
        The model.
    boxes : Boxes
        The model, or its margins.
    background : Background
        The rows.
    columns : dict
        Position of a column → its bins.
    n_jobs : int or None
        Threads.

    Returns
    -------
    effects : dict of arrays (K, k)
    mean : array (k,)
    """
    grid, codes = encode(background, boxes.grid, n_jobs)
    known = {k: column for k, column in columns.items() if not grid.cells[k].open}
    ends = {
        k: Ends.of(column, grid.encode_values(k, column.ends), codes[k])
        for k, column in known.items()
        if len(column.rows)
    }

    def targets(block: slice, into: np.ndarray) -> None:
        for k, column in ends.items():
            some = column.within(block)
            at = column.rows[some] - block.start
            for end in (LOWER, UPPER):
                moved = column.moved[some, end]
                into[at[moved], k, end] = column.codes[some, end][moved]

    effects = {k: np.zeros((len(column.center), pieces.n_outputs)) for k, column in known.items()}
    total = np.zeros(pieces.n_outputs)
    for block, fit, changes in moved_values(boxes.on(grid), codes, targets, n_jobs):
        total += background.weights[block] @ pieces.outputs(fit)
        for k, column in ends.items():
            some = column.within(block)
            at = column.rows[some] - block.start
            lower, upper = (
                changes[at, k, end] * column.moved[some, end, None] for end in (LOWER, UPPER)
            )
            if pieces is not boxes:
                lower, upper = pieces.outputs(fit[at] + lower), pieces.outputs(fit[at] + upper)
            difference = column.weight[some, None] * (upper - lower)
            for o, values in enumerate(difference.T):
                effects[k][:, o] += np.bincount(column.effect[some], values, len(effects[k]))
    return effects, total / background.weights.sum()
