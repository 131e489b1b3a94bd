"""Designs of sampled coalitions: which are evaluated, and what they tell about each player.

Every design comes in pairs, with all coalitions replaced by their complements: interactions of two
players then cancel, so that games of at most pairs have no error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Design(NamedTuple):
    """m lists of L coalitions, and two of each list that differ by one player only."""

    members: np.ndarray  # (m, L, g)
    joined: np.ndarray  # (m, g) the coalition with the player
    alone: np.ndarray  # (m, g) the same without it
    step: np.ndarray  # (m, g) the number of other players in both

    def differences(self, worths: np.ndarray) -> np.ndarray:
        """Return what each player adds to a coalition, (m, g, k), given the worths (m, L, k)."""
        joined, alone = (
            np.take_along_axis(worths, at[:, :, None], axis=1) for at in (self.joined, self.alone)
        )
        return joined - alone


def chains(positions: np.ndarray) -> Design:
    """Return the coalitions that grow player by player, from none to all.

    positions (m, g) are those of the players in a permutation.
    """
    g = positions.shape[1]
    members = positions[:, None, :] < np.arange(g + 1)[:, None]
    return Design(members, positions + 1, positions, positions)


def flips(members: np.ndarray) -> Design:
    """Return the coalitions (m, g), and those in which one player changes sides."""
    m, g = members.shape
    changed = np.eye(g + 1, g, -1, dtype=bool)
    lists = members[:, None, :] ^ changed
    other = np.broadcast_to(np.arange(1, g + 1), (m, g))
    step = members.sum(axis=1)[:, None] - members
    return Design(lists, np.where(members, 0, other), np.where(members, other, 0), step)


def latin_positions(m: int, g: int, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of g players in m random permutations, (m, g).

    Permutations come in blocks of g, all rotations of one, so that in a block every player has
    every position once.
    """
    n_blocks = -(-m // g)
    first = rng.permuted(np.tile(np.arange(g), (n_blocks, 1)), axis=1)
    turns = rng.permuted(np.tile(np.arange(g), (n_blocks, 1)), axis=1)
    return ((first[:, None, :] + turns[:, :, None]) % g).reshape(-1, g)[:m]


def half_coalitions(m: int, g: int, rng: np.random.Generator) -> np.ndarray:
    """Return m coalitions to which each player belongs with probability 1/2, (m, g)."""
    return rng.random((m, g)) < 0.5


class Distinct(NamedTuple):
    """The distinct ones of M coalitions, and where each occurs."""

    members: np.ndarray  # (m, g)
    positions: list[np.ndarray]  # m arrays of positions among the M


def distinct_coalitions(members: np.ndarray) -> Distinct:
    """Return the distinct ones of coalitions (M, g)."""
    bits, which = np.unique(np.packbits(members, axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    ends = np.cumsum(np.bincount(which, minlength=len(bits)))[:-1]
    where = np.split(np.argsort(which, kind="stable"), ends) if len(bits) else []
    return Distinct(np.unpackbits(bits, axis=1, count=members.shape[1]).astype(bool), where)
