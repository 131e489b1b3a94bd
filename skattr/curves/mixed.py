"""Step functions mixed by shares that depend on the raw value: mixtures of products on boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skattr._typing import override
from skattr.curves.base import NO_ROWS, ColumnFunction
from skattr.measures.learned.bins import as_numbers
from skattr.measures.learned.mixture import Mixture


class Mixed(ColumnFunction):
    """Σ_c π_c(t) F_c(code of t): smooth between the thresholds of the model.

    Parameters
    ----------
    mixture : Mixture
        Gives the shares π_c.
    k : int
        The column.
    name : label
        Its name, for errors.
    values : array (C, n_codes, k)
        The step function of each component.
    """

    kind = "function"
    has_table = False

    def __init__(self, mixture: Mixture, k: int, name: Any, values: np.ndarray) -> None:
        self.mixture = mixture
        self.k = k
        self.name = name
        self.values = values

    @override
    def at(self, codes: np.ndarray | None, values: Any) -> tuple[np.ndarray, np.ndarray]:
        t = as_numbers(values, self.name)[:, None]
        shares = self.mixture.shares(t, [self.k])
        return np.einsum("nc,cnk->nk", shares, self.values[:, codes]), NO_ROWS

    @override
    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Raise: `has_table` is False."""
        raise NotImplementedError
