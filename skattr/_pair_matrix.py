"""The values of pairs and of single attributions in one matrix per row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np


def pair_matrix(
    pairs: np.ndarray, names: Sequence[Any], singles: np.ndarray, single_names: Sequence[Hashable],
    shared: bool,
) -> np.ndarray:  # fmt: skip
    """Return half of each pair's value on both sides of the diagonal, (n, g, g) or (n, g, g, k).

    Parameters
    ----------
    pairs : array (n, p) or (n, p, k)
    names : sequence of (label, label)
        The names of the pairs.
    singles : array (n, g) or (n, g, k)
        The centred values of single attributions.
    own : sequence of labels
        Their names.
    shared : bool
        Whether the values of pairs are parts of the single values: then the diagonal is the single
        value less its halves, so that rows add up to the single values; else it is the single
        value.
    """
    g = len(single_names)
    number = {name: a for a, name in enumerate(single_names)}
    members = [(number[a], number[b]) for a, b in names]
    if len(set(members)) < g * (g - 1) // 2:
        raise ValueError(
            f"to_matrix needs all pairs of {g} attributions, {g * (g - 1) // 2}, got "
            f"{len(set(members))}; use explain_pairs(X), without selecting some of them"
        )
    result = np.zeros((len(pairs), g, g, *pairs.shape[2:]))
    for p, (a, b) in enumerate(members):
        result[:, a, b] = result[:, b, a] = pairs[:, p] / 2
    at = np.arange(g)
    result[:, at, at] = singles - result.sum(axis=2) if shared else singles
    return result
