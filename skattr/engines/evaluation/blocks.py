"""Blocks of the cells of tensor grids, which keep memory small."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

BLOCK = 2**18  # vertices in one block
ROW_BLOCK = 32_768  # points in one call of the model


def blocks(axes: list) -> Iterator[tuple[int, int]]:
    """Yield the first cell and the number of cells of each block of a product of axes."""
    n = prod(len(axis) for axis in axes)
    for start in range(0, n, ROW_BLOCK):
        yield start, min(ROW_BLOCK, n - start)


def block_shape(sizes: list[int]) -> list[tuple[int, int]]:
    """Return for each axis of vertices its number of cells, and the number in one block.

    The first axis is split before the others, because blocks along it share their vertices.
    """
    shape = [max(size - 1, 1) for size in sizes]
    while prod(min(n + 1, size) for n, size in zip(shape, sizes, strict=True)) > BLOCK:
        k = 0 if shape[0] > 1 else int(np.argmax(shape))
        shape[k] = (shape[k] + 1) // 2
    return [(size - 1, n) for size, n in zip(sizes, shape, strict=True)]


def parts(axis: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the ranges of cells of the blocks along an axis; one vertex is one range."""
    n_cells, step = axis
    if n_cells == 0:
        return [(0, 0)]
    return [(a, min(a + step, n_cells)) for a in range(0, n_cells, step)]
