"""A sum of boxes at rows, and at the same rows with one column moved to one of two codes.

One pass of the rows down the trees for all columns together (kernels/boxes/moved_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from skattr._utils.parallel import in_order
from skattr.engines.boxes.box_sums import tree_blocks
from skattr.kernels.boxes.moved_rows import Moves, add_moves
from skattr.pieces import Boxes

MAX_NUMBERS = 2**16  # changes that are computed together, so that they fit in the cache
LOWER, UPPER = 0, 1


def moved_values(
    boxes: Boxes,
    codes: np.ndarray,
    targets: Callable[[slice, np.ndarray], None],
    n_jobs: int | None = 1,
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield for each block of rows f, (n, k), and its changes, (n, d, 2, k).

    Parameters
    ----------
    boxes : Boxes
        On a grid that has all codes.
    codes : array (d, n)
        The codes of the rows.
    targets : callable
        Writes the codes that the rows of a block are moved to, if they are not their own, into an
        array (n, d, 2): the lower and the upper one.
    n_jobs : int, optional
        Threads, as in joblib; the result does not depend on it.
    """
    d, n = codes.shape
    trees = np.concatenate([np.empty(0, np.intp), *tree_blocks(boxes)])
    size = max(64, MAX_NUMBERS // (2 * d * boxes.n_outputs))

    def run(start: int) -> tuple[slice, np.ndarray, np.ndarray]:
        block = slice(start, min(start + size, n))
        block_codes = np.ascontiguousarray(codes[:, block].T)
        moves = Moves(
            block_codes,
            np.repeat(block_codes[:, :, None], 2, axis=2),
            np.tile(boxes.constant, (len(block_codes), 1)),
            np.zeros((len(block_codes), d, 2, boxes.n_outputs)),
        )
        targets(block, moves.targets)
        add_moves(boxes.table, trees, moves)
        return block, moves.fit, moves.changes

    yield from in_order(run, range(0, n, size), n_jobs)
