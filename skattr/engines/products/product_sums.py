"""Sums of products over rows and under laws, leaving out the factors of one attribution."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skattr._utils.parallel import in_order
from skattr.engines import laws
from skattr.engines.base import Request, RunOptions
from skattr.kernels import bumps
from skattr.pieces import Products

TERMS = 64  # terms that one worker sums at a time
POINTS = 1025  # points of a range; quadrature would miss a bump between two of them
ROWS = 256  # rows that one worker explains at a time


def add_rows(
    pieces: Products,
    inputs: list[np.ndarray],
    weights: np.ndarray,
    attributions: Sequence,
    sums: tuple[np.ndarray, np.ndarray],
    options: RunOptions,
    bins: np.ndarray | None = None,
) -> None:
    """Add the products of rows to sums: of all factors, (M,), and of those outside, (M, g, bins).

    `bins` (g, n) are the bins of the rows for each attribution, all 0 by default. The second sum
    may have no attributions.
    """
    bins = np.zeros((len(attributions), len(weights)), np.int32) if bins is None else bins
    tasks = []
    for terms, table, side in zip(pieces.terms(), inputs, pieces.sides(attributions), strict=True):
        ordered = np.ascontiguousarray(table[:, side.inputs])
        totals, others = sums[0][terms], sums[1][terms]
        for start in range(0, len(totals), TERMS):
            some = slice(start, start + TERMS)
            tasks.append((
                ordered, weights, bins, side.supports[some], side.gammas, side.starts,
                totals[some], others[some],
            ))  # fmt: skip
    deque(in_order(lambda task: bumps.add_rows(*task), tasks, options.n_jobs), maxlen=0)


def mean_factors(pieces: Products, factors: list) -> np.ndarray:
    """Return ∫ φ_mk dν_k of all columns, (d, M)."""
    return np.array([mean_factor(pieces, law, k) for k, law in enumerate(factors)])


def mean_factor(pieces: Products, law: Any, k: int) -> np.ndarray:
    """Return ∫ φ_mk dν_k of one column, (M,)."""
    if not hasattr(law, "bump"):
        means = laws.mean(law, pieces, k)
    elif pieces.is_affine(k):
        square, center, rest = pieces.parabolas(k, law.ends())
        means = np.exp(-rest) * law.bump(square, center)
    else:
        means = _by_quadrature(pieces, law, k)
    return np.where(pieces.ignores((k,)), 1.0, means)  # weights may not add up to the last bit


def _by_quadrature(pieces: Products, law: Any, k: int) -> np.ndarray:
    low, high = law.ends()
    if not pieces.sees_all(k, np.linspace(low, high, POINTS)):
        raise laws.Inexact(
            f"column {pieces.names[k]!r}: the kernel is so narrow on the range {low} to {high}, "
            "behind steps that are not affine, that its mean is not known exactly; use "
            "PartialDependence() or ProductMarginal(), which do not need this mean"
        )
    return np.concatenate([np.zeros(0), *(laws.mean(law, some, k) for some in pieces.bundles())])


def multiply(
    pieces: Products, factors: np.ndarray, attributions: Sequence
) -> tuple[np.ndarray, np.ndarray]:
    """Return the products over all columns, (M,), and over those outside, (M, g).

    The attributions are a partition of the columns. Products from both sides, no division.
    """
    totals = np.prod(factors, axis=0)
    others = np.empty((len(totals), len(attributions)))
    before = np.ones_like(totals)
    for a, columns in enumerate(attributions):
        others[:, a] = before
        before = before * np.prod(factors[list(columns)], axis=0)
    after = np.ones_like(totals)
    for a in reversed(range(len(attributions))):
        others[:, a] *= after
        after = after * np.prod(factors[list(attributions[a])], axis=0)
    for a, columns in enumerate(attributions):  # the same to the last bit
        others[:, a] = np.where(pieces.ignores(columns), totals, others[:, a])
    return totals, others


def value(pieces: Products, weights: np.ndarray) -> np.ndarray:
    """Return constant + Σ_m c_m weights_m, (k,), in the order in which rows are summed."""
    nothing = [np.empty((1, len(tracks))) for tracks in pieces.tracks]
    sides = pieces.sides(((),))
    return pieces.constant + pieces.add_up(nothing, sides, weights[None], pieces.coefficients)[0]


def at_rows(
    pieces: Products,
    request: Request,
    fill: Callable[[slice, list], None],
    n_rows: int = ROWS,
    columns: list[int] | None = None,
) -> None:
    """Call fill(rows, inputs) for n_rows at a time.

    Inputs are those of the request's columns, or of the columns given.
    """
    columns = request.all_columns if columns is None else columns
    for block, inputs in pieces.in_blocks(request.X, columns):
        starts = range(0, block.stop - block.start, n_rows)

        def run(start: int, first: int = block.start, inputs: list = inputs) -> None:
            some = [table[start : start + n_rows] for table in inputs]
            fill(slice(first + start, first + start + len(some[0])), some)

        deque(in_order(run, starts, request.options.n_jobs), maxlen=0)
