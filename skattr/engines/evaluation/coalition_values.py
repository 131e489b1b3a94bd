"""Coalitions as bits, and the values of players given the worths of coalitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def members_of(coalitions: np.ndarray, n_players: int) -> np.ndarray:
    """Return which players belong to coalitions, (m, g), from numbers whose bits they are."""
    return (coalitions[:, None] >> np.arange(n_players)) & 1 == 1


def weights_of_sizes(semivalue: Any, n_players: int) -> np.ndarray:
    """Return the probability that a given coalition of 0, …, g - 1 other players forms, (g,)."""
    sizes = np.arange(n_players)
    return semivalue.moments(n_players - 1)[sizes, sizes[::-1]]


def coefficients(members: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the coefficients of the worths of coalitions in the values of players, (m, g).

    A player's value is the sum of weight · (worth with it - worth without it).
    """
    size = members.sum(axis=1)
    joined = weights[np.maximum(size - 1, 0)][:, None]
    alone = weights[np.minimum(size, len(weights) - 1)][:, None]
    return np.where(members, joined, -alone)


def weights_of_pairs(semivalue: Any, n_players: int) -> np.ndarray:
    """Return the probability that a given coalition of 0, …, g - 2 others of a pair forms."""
    sizes = np.arange(n_players - 1)
    return semivalue.moments(n_players - 2)[sizes, sizes[::-1]]


def pair_coefficients(
    members: np.ndarray, pairs: Sequence[tuple[int, int]], weights: np.ndarray
) -> np.ndarray:
    """Return the coefficients of the worths of coalitions in the values of pairs, (m, pairs).

    A pair's value is the sum of weight · (worth with both - worth with one - worth with the other
    + worth with neither).
    """
    size = members.sum(axis=1)[:, None]
    one, other = (members[:, [pair[i] for pair in pairs]] for i in range(2))
    n_inside = one.astype(int) + other
    at = np.clip(size - n_inside, 0, len(weights) - 1)
    return np.where(n_inside == 1, -weights[at], weights[at])
