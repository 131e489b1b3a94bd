"""How many cells a ReLU network has on a cube, estimated before they are enumerated.

Each random point of the cube lies in one cell, which is known by the signs of all units that cut.
From the cells that were met once and twice, f₁ and f₂, Chao's estimator

    S + f₁ (f₁ - 1) / (2 (f₂ + 1)),   S the number of cells met,

is a lower bound of the number of cells on average (Chao 1984, "Nonparametric estimation of the
number of classes in a population"). O(points · weights), whatever the number of cells.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skattr.pieces import ReluNetwork

POINTS = 2**13


def estimated_cells(network: ReluNetwork, constant: np.ndarray, slopes: np.ndarray) -> float:
    """Return a lower estimate of the number of cells of all layers but the last.

    Parameters
    ----------
    network : ReluNetwork
    constant : array (m,)
    slopes : array (m, D)
        The first layer on the cube: z = constant + slopes @ u, u in [-1, 1]^D.
    """
    rng = np.random.default_rng(0)
    z = constant + rng.uniform(-1, 1, (POINTS, slopes.shape[1])) @ slopes.T
    signs = []
    layers = network.layers
    for layer, following in pairwise(layers):
        signs.append(z >= 0)
        z = np.where(z >= 0, z, layer.slope * z) @ following.weight.T + following.bias
    if not signs:
        return 1.0
    bits = np.packbits(np.concatenate(signs, axis=1), axis=1)
    keys = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1])))[:, 0]
    times = np.unique(keys, return_counts=True)[1]
    once, twice = int(np.sum(times == 1)), int(np.sum(times == 2))
    return len(times) + once * (once - 1) / (2 * (twice + 1))
