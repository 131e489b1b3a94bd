"""Values of players, or of pairs of players, on the terms of one part, block by block.

    phi_a(x) = Σ_m c_m Σ_r w_r ∫ (K_a(x) - K_a(z_r)) ∏_{b≠a} (p K_b(x) + (1-p) K_b(z_r)) dP(p)

K_a is the product of the factors of player a in term m. Two ways to compute it, both exact:

- `from_moments`: Σ_r w_r ∏_{b not in S} K_b(z_r) is known for all sets S of players, so that a row
  costs O(2^g) per term, however many background rows there are;
- `at_nodes`: the integrand is a polynomial in p of degree g - 1, integrated by ⌈g/2⌉ nodes, so that
  a row costs O(g²) per term and background row.

A pair of players a and b has the factors (K_a(x) - K_a(z_r)) (K_b(x) - K_b(z_r)) and the product
over the others, of degree g - 2: O(g³) per term and background row at nodes. `SINGLES` and `PAIRS`
say which of both is computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skattr._utils.parallel import in_order
from skattr.engines.base import RunOptions
from skattr.kernels.coalitions import bumps
from skattr.measures.coalitions import Semivalue

TERMS = 32  # terms whose factors are in memory at a time
ROWS = 128  # background rows whose factors are in memory at a time
NUMBERS = 2**22  # the most moments of one part that are kept
CACHED = 2048  # numbers that stay in the fastest cache
EXPLAINED = 100  # rows that are usually explained with one fit, for choosing the cheaper way


class Players(NamedTuple):
    """The attributions that a part depends on, with its inputs sorted by them."""

    attributions: list[int]  # their positions
    inputs: np.ndarray  # (p,) which of the part's inputs they are
    starts: np.ndarray  # (g + 1,) where the inputs of each player start
    supports: np.ndarray  # (M, p)
    gammas: np.ndarray  # (p,)

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Differences:
    """Differences that players make (order 1), or second differences of pairs of them (order 2).

    The pair of players a < b is at b (b - 1) / 2 + a.
    """

    order: int

    def count(self, g: int) -> int:
        """Return the number of values of g players."""
        return g if self.order == 1 else g * (g - 1) // 2

    def nodes(self, semivalue: Semivalue, g: int) -> tuple[np.ndarray, np.ndarray]:
        """Return nodes in p and weights that are exact for g players."""
        return semivalue.nodes(max(g - self.order, 0))

    def weights_of_sets(self, semivalue: Semivalue, g: int) -> np.ndarray:
        """Return the weights of all sets of players, (2^g,), among those that a value is not of."""
        by_size = np.zeros(g + 1)
        by_size[: g + 1 - self.order] = np.fliplr(semivalue.moments(g - self.order)).diagonal()
        sizes = np.zeros(1, int)
        for _ in range(g):
            sizes = np.concatenate([sizes, sizes + 1])
        return by_size[sizes]


SINGLES, PAIRS = Differences(1), Differences(2)


def factors_and_rests(players: Players, inputs: np.ndarray, terms: slice) -> np.ndarray:
    """Return factors of players in some terms at rows, (2, terms, players, rows), and their rests.

    Factors times 1 + rests are more accurate than numbers of 64 bits.
    """
    supports = players.supports[terms]
    result = np.empty((2, len(supports), len(players), len(inputs)))
    bumps.fill_factors(inputs, supports, players.gammas, players.starts, *result)
    return result


def factors(players: Players, inputs: np.ndarray, terms: slice) -> np.ndarray:
    """Return the factors of players in some terms at rows, (terms, players, rows)."""
    result, rests = factors_and_rests(players, inputs, terms)
    result += result * rests
    return result


def blocks(n: int, size: int) -> Iterator[slice]:
    """Yield the ranges of at most `size` of n numbers."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def prefers_moments(players: Players, n_rows: int, semivalue: Semivalue) -> bool:
    """Return whether moments fit in memory, and cost less than nodes for usual numbers of rows."""
    g = len(players)
    sets, n_nodes = 2.0**g, len(semivalue.nodes(g - 1)[0])
    if len(players.supports) * sets > NUMBERS:
        return False
    return sets * (1 + n_rows / EXPLAINED) <= n_rows * g * n_nodes


def moments(
    players: Players, inputs: np.ndarray, weights: np.ndarray, options: RunOptions
) -> np.ndarray:
    """Return Σ_r w_r ∏_{a not in S} K_ma(z_r) for all terms and sets of players, (M, 2^g)."""
    result = np.zeros((len(players.supports), 2 ** len(players)))

    def fill(terms: slice) -> None:
        products, errors = np.empty((2, result.shape[1]))
        of_terms = np.zeros_like(result[terms])
        for rows in blocks(len(weights), ROWS):
            at_rows = factors(players, inputs[rows], terms)
            bumps.add_moments(at_rows, weights[rows], products, errors, of_terms)
        result[terms] = of_terms[:, ::-1]  # the complement of a set has the others' bits

    deque(in_order(fill, blocks(len(result), TERMS), options.n_jobs), maxlen=0)
    return result


def from_moments(
    players: Players,
    inputs: np.ndarray,
    table: np.ndarray,
    coefficients: np.ndarray,
    semivalue: Semivalue,
    differences: Differences,
) -> np.ndarray:
    """Return values at rows, (rows, players or pairs, k), from `moments`."""
    n_sets, k = table.shape[1], coefficients.shape[1]
    worths, errors = np.zeros((2, len(inputs), k, n_sets))
    products, lost = np.empty((2, n_sets))
    tile = max(1, CACHED // (2 * k * n_sets))
    for terms in blocks(len(table), TERMS):
        at_rows, rests = factors_and_rests(players, inputs, terms)
        bumps.add_worths(
            at_rows,
            rests,
            table[terms],
            coefficients[terms],
            tile,
            products,
            lost,
            errors,
            worths,
        )
    worths += errors
    g = len(players)
    result = np.zeros((len(inputs), differences.count(g), k))
    add = {1: bumps.add_differences, 2: bumps.add_pair_differences}
    add[differences.order](worths, differences.weights_of_sets(semivalue, g), result)
    return result


def at_nodes(
    explained: np.ndarray,
    background: np.ndarray,
    weights: np.ndarray,
    coefficients: np.ndarray,
    semivalue: Semivalue,
    differences: Differences,
    out: np.ndarray,
) -> None:
    """Add values at rows to out, (rows, players or pairs, k), given factors of some terms."""
    g, n = background.shape[1:]
    nodes, shares = differences.nodes(semivalue, g)
    add = {1: bumps.add_at_nodes, 2: bumps.add_pairs_at_nodes}
    add[differences.order](
        explained, background, weights, coefficients, nodes, shares, np.empty((g, n)), np.empty(n),
        np.empty((out.shape[1], n)), np.empty((out.shape[2], out.shape[1], n)), out,
    )  # fmt: skip


def from_rows(
    players: Players,
    inputs: np.ndarray,
    background: np.ndarray,
    weights: np.ndarray,
    coefficients: np.ndarray,
    semivalue: Semivalue,
    differences: Differences,
) -> np.ndarray:
    """Return values at rows, (rows, players or pairs, k), from the inputs of a background."""
    result = np.zeros((len(inputs), differences.count(len(players)), coefficients.shape[1]))
    for terms in blocks(len(players.supports), TERMS):
        explained = factors(players, inputs, terms)
        for rows in blocks(len(weights), ROWS):
            others = factors(players, background[rows], terms)
            at_nodes(
                explained, others, weights[rows], coefficients[terms], semivalue, differences,
                result,
            )  # fmt: skip
    return result


def from_means(
    players: Players,
    inputs: np.ndarray,
    means: np.ndarray,
    shares: np.ndarray,
    coefficients: np.ndarray,
    semivalue: Semivalue,
    differences: Differences,
) -> np.ndarray:
    """Return values at rows, (rows, players or pairs, k).

    `means` (M, players, C) are those of the players' factors in each component of a mixture.
    """
    result = np.zeros((len(inputs), differences.count(len(players)), coefficients.shape[1]))
    for terms in blocks(len(players.supports), TERMS):
        explained = factors(players, inputs, terms)
        at_nodes(
            explained, means[terms], shares, coefficients[terms], semivalue, differences, result
        )
    return result
