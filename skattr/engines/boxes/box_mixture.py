"""Mixtures of products whose shares depend on x_j, on boxes (docs/mathematics.md, section 3).

    phi_j(x) = Σ_c π_c(x_j) F_{j,c}(x_j)

One step curve per component, computed as in box_products.py and mixed at lookup. Exact;
O(components · boxes · depth), whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr.attributions import Attributions
from skattr.curves.base import ColumnFunction
from skattr.curves.mixed import Mixed
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_products import sum_products
from skattr.engines.boxes.box_sums import BoxSums
from skattr.engines.estimates import Estimate
from skattr.engines.laws import masses
from skattr.measures.base import Measure
from skattr.measures.learned.bins import as_numbers
from skattr.measures.learned.mixture import Mixture
from skattr.pieces import Boxes


@dataclass(eq=False)
class ComponentSums:
    """The sums over boxes of each component."""

    mixture: Mixture
    names: list
    sums: list[BoxSums]


class BoxMixture(Engine):
    """Sums over boxes for each component, mixed by shares that depend on x_j."""

    name = "box_mixture"
    kind = Boxes
    views = ("mixture",)
    gives = "exact curves; groups"
    needs_partition = True
    computes_mean = False
    smooth = True

    @override
    def objection(self, pieces: Boxes, measure: Measure) -> str | None:
        partitions = [pieces.grid.partition(k) for k in range(len(pieces.grid.cells))]
        not_ranges = [
            name
            for name, partition in zip(pieces.grid.names, partitions, strict=True)
            if partition is None or np.isfinite(partition[0][[0, -1]]).any()
        ]
        if not_ranges:
            return f"the steps in front of the model do not map ranges of {not_ranges} to ranges"
        return None

    @override
    def cost(self, pieces: Boxes, measure: Measure) -> str:
        return (
            f"fit: one product per box ({pieces.n_boxes:,}) and component; explain: one lookup per "
            "value and component"
        )

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Attributions, options: RunOptions
    ) -> ComponentSums:
        mixture, names, components = measure.mixture()
        sums = []
        for laws in components:
            sides = [masses(law, pieces.grid, k) for k, law in enumerate(laws)]
            sums.append(sum_products(pieces, attributions, sides, options))
        return ComponentSums(mixture, names, sums)

    @override
    def curves(self, pieces: Boxes, state: ComponentSums, attributions: Attributions) -> Curves:
        parts = [sums.curves(pieces, attributions) for sums in state.sums]
        result: list[ColumnFunction | None] = []
        for (k, *_), *curves in zip(attributions, *parts, strict=True):
            values = [curve.values for curve in curves if curve is not None]
            mixed = Mixed(state.mixture, k, state.names[k], np.array(values))
            result.append(mixed if values else None)
        return result

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        parts = np.array([sums.integrate(pieces, request) for sums in state.sums])
        result = np.empty(parts.shape[1:])
        for i, columns in enumerate(request.columns):
            t = [as_numbers(frames.column(request.X, k), state.names[k]) for k in columns]
            shares = state.mixture.shares(np.stack(t, axis=1), list(columns))
            result[:, i] = np.einsum("nc,cnk->nk", shares, parts[:, :, i])
        return Integral(Estimate(result))
