"""A mixture of products whose shares depend on the own value, on boxes (MATH.md, section 3).

    phi_j(x) = Σ_c π_c(x_j) F_{j,c}(x_j)

One step curve for each component, made as in box_products.py, mixed at lookup. Exact, whatever the
number of rows; O(components · boxes · depth).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr import frames
from skattr.engines.base import Engine, Jobs, Own
from skattr.engines.box_products import sum_products
from skattr.engines.box_sums import BoxSums
from skattr.measures.base import Measure
from skattr.measures.bins import as_numbers
from skattr.measures.mixture import Mixture
from skattr.pieces import Boxes, Pieces


@dataclass(eq=False)
class MixedCurve:
    """The curves of all components of one column."""

    mixture: Mixture
    k: int
    name: Any
    values: np.ndarray  # (C, n_codes, k)
    bins: None = None  # it is smooth between the thresholds
    partial: bool = False

    def at(self, codes: np.ndarray, values: Any) -> np.ndarray:
        """Return the curve at raw values and their codes, (n, k)."""
        t = as_numbers(values, self.name)[:, None]
        shares = self.mixture.shares(t, [self.k])
        return np.einsum("nc,cnk->nk", shares, self.values[:, codes])


@dataclass(eq=False)
class State:
    """The sums over boxes of each component."""

    mixture: Mixture
    names: list
    sums: list[BoxSums]


class BoxMixture(Engine):
    """Sums over boxes for each component, mixed by shares that depend on the own value."""

    name = "box_mixture"
    needs = (Boxes, "mixture")
    knows_mean = False
    smooth = True

    def refuses(self, pieces: Pieces, term: Measure) -> str | None:
        """Return the reason why this engine cannot serve, or None."""
        reason = super().refuses(pieces, term)
        if reason is None and isinstance(pieces, Boxes):
            ends = [pieces.grid.partition(k) for k in range(len(pieces.grid.cells))]
            odd = [
                name
                for name, found in zip(pieces.grid.names, ends, strict=True)
                if found is None or np.isfinite(found[0][[0, -1]]).any()
            ]
            if odd:
                return f"the steps in front of the model do not turn ranges of {odd} into ranges"
        return reason

    def cost(self, pieces: Boxes, term: Measure) -> str:
        """Say what it costs."""
        return (
            f"fit: one product for each of {pieces.n_boxes:,} boxes and each component; explain: "
            "one lookup per value and component"
        )

    def prepare(self, pieces: Boxes, term: Any, own: Own, jobs: Jobs) -> State:
        """Sum over the boxes."""
        mixture, names, components = term.mixture()
        sums = []
        for laws in components:
            masses = [law.masses(pieces.grid, k) for k, law in enumerate(laws)]
            sums.append(sum_products(pieces, own, masses, jobs))
        return State(mixture, names, sums)

    def mean(self, pieces: Boxes, state: State) -> None:
        """Leave the mean over the background to an engine for rows."""
        return None

    def tables(self, pieces: Boxes, state: State, own: Own) -> list:
        """Return the curves of single columns."""
        parts = [sums.tables(pieces, own) for sums in state.sums]
        result: list[MixedCurve | None] = []
        for columns, *curves in zip(own, *parts, strict=True):
            found = [curve for curve in curves if curve is not None]
            k = columns[0]
            result.append(
                MixedCurve(state.mixture, k, state.names[k], np.array(found)) if found else None
            )
        return result

    def integrate(
        self, pieces: Any, state: Any, X: Any, codes: Any, own: Own, chosen: list[int], jobs: Jobs
    ) -> np.ndarray:
        """Return the values of groups."""
        parts = np.array([sums.integrate(pieces, codes, own, chosen) for sums in state.sums])
        result = np.empty(parts.shape[1:])
        for place, a in enumerate(chosen):
            t = [as_numbers(frames.column(X, k), state.names[k]) for k in own[a]]
            shares = state.mixture.shares(np.stack(t, axis=1), list(own[a]))
            result[:, place] = np.einsum("nc,cnk->nk", shares, parts[:, :, place])
        return result
