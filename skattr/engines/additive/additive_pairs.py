"""Pairs on additive models: they are 0.

The terms of two columns are pinned by both together as by each alone, and all others keep their
means, so that μ_jk - μ_j - μ_k + ν integrates an additive model to 0 if the columns that are not
pinned keep their laws. The same holds for second differences of coalitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._typing import override
from skattr.curves.by_code import Constant
from skattr.engines.base import Curves, Engine, RunOptions
from skattr.pieces import Additive


class AdditivePairs(Engine):
    """Returns 0, exactly."""

    name = "additive_pairs"
    kind = Additive
    views = (
        "pairs of rows", "pairs of factors",
        "pairs of coalitions of rows", "pairs of coalitions of factors",
    )  # fmt: skip
    gives = "exact"
    computes_mean = False

    @override
    def cost(self, pieces: Additive, measure: Any) -> str:
        return "nothing to compute"

    @override
    def prepare(
        self, pieces: Additive, measure: Any, attributions: Any, options: RunOptions
    ) -> int:
        return len(attributions)

    @override
    def certificate(self, state: int) -> str:
        return f"{state:,} of {state:,} pairs are certified to be 0: the model is additive"

    @override
    def curves(self, pieces: Additive, state: int, attributions: Any) -> Curves:
        return [Constant(np.zeros((1, pieces.n_outputs)))] * len(attributions)
