"""Uniform measures on ReLU networks of few features, cell by cell (docs/mathematics.md, section 4).

    ∫ f dμ = Σ_P a_P · n_P + b_P μ(P),   n_P = ∫_P y dμ, over the cells P where f is affine

Exact. The box is cut by the units of all layers but the last, depth first, so that memory stays
small; the last layer is integrated over the simplices of each cell. A pinned value is a slice of
one dimension less. The number of cells of one value is bounded by `max_evals`; it becomes known
only as they are computed, and partial sums are never returned. Unless this engine is asked for, a
lower estimate of it is looked at first (`cell_counts.py`). The volumes of the cells must add up to
that of the box: the difference is the certificate.

A slice of the domain never has more cells than the domain itself. Each unit has one sign on a cell
P of the domain, so it has one on P ∩ slice, and cuts nothing there: the cells of the slice are
unions of such intersections, and each P belongs to one of them. So the number of cells in `fit`
bounds that of every value inside the domain, and a slice that has more is outside. Under "auto"
values with more than `max_evals` cells are estimated by quasi-random points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.messages import warn
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.engines.base import (
    Engine,
    Integral,
    Request,
    RunOptions,
    TooCostly,
    is_asked_for,
    join_certificates,
)
from skattr.engines.estimates import Estimate
from skattr.engines.evaluation.quasi_monte_carlo import PointSource, QuasiMonteCarlo
from skattr.engines.relu.cell_counts import estimated_cells
from skattr.engines.relu.first_layer import (
    FirstLayer,
    UniformLaws,
    Uniforms,
    uniform_laws,
    why_not_uniform,
)
from skattr.kernels.cells import polytopes, simplices
from skattr.measures.base import Measure
from skattr.measures.factors.points import ProductPoints
from skattr.pieces import ReluNetwork


class Polytopes(Engine):
    """Integrals over all cells of a box on which all layers but the last are affine."""

    name = "polytopes"
    kind = ReluNetwork
    views = ("factors",)
    always_finishes = False
    gives = "exact, if uniform and few columns; groups"
    smooth = True

    @override
    def objection(self, pieces: ReluNetwork, measure: Measure) -> str | None:
        return why_not_uniform(pieces, measure)

    @override
    def may_estimate(self, measure: Measure, options: RunOptions) -> bool:
        """Return whether values outside the domain may be estimates."""
        return measure.depends == "own" and not is_asked_for(options.engine, self.name)

    @override
    def cost(self, pieces: ReluNetwork, measure: Measure) -> str:
        once = "fit: all cells of the domain"
        return once if measure.depends == "nothing" else f"{once}; explain: all cells of a slice"

    @override
    def certificate(self, state: UniformLaws) -> str:
        assert state.certificate is not None
        cells, error = state.certificate["cells"], state.certificate["volume_error"]
        return f"{cells:,} cells in the domain, whose volumes add up to within {error:.1e} of it"

    @override
    def prepare(
        self, pieces: ReluNetwork, measure: Any, attributions: Attributions, options: RunOptions
    ) -> UniformLaws:
        laws = uniform_laws(pieces, measure, attributions, self, options)
        if self.may_estimate(measure, options) and len(laws.components) == 1:
            laws = replace(laws, points=ProductPoints.of(measure))
        return self.finish(pieces, laws, options)

    @override
    def merge(self, a: UniformLaws, b: UniformLaws) -> UniformLaws:
        return a.merge(b)

    @override
    def finish(self, pieces: ReluNetwork, state: UniformLaws, options: RunOptions) -> UniformLaws:
        if state.mean is not None:
            return state
        cells = _cells(pieces, options)
        boxes = _boxes(cells.first, state, ())
        cells.check_number(boxes)
        mean, certificate = cells.integral(boxes)
        return replace(state, mean=mean, certificate=certificate)

    @override
    def mean(self, pieces: ReluNetwork, state: UniformLaws) -> Estimate:
        assert state.mean is not None
        return Estimate(state.mean)

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        X, options = request.X, request.options
        result = request.zeros(pieces.n_outputs)
        unknown = np.full(pieces.n_outputs, np.nan)
        cells = _cells(pieces, options)
        assert state.certificate is not None
        in_domain = state.certificate["cells"]
        beyond: list[tuple[int, np.ndarray]] = []  # attributions and rows with too many cells
        certificates: list[dict] = []
        for i, columns in enumerate(request.columns):
            first, kind = frames.distinct_rows(X, columns)
            boxes = _boxes(cells.first, state, columns)
            added = cells.first.at_rows(frames.take_rows(X, first), columns)

            def value(z: np.ndarray, boxes: list = boxes) -> tuple[np.ndarray, dict]:
                slices = [box._replace(constant=box.constant + z) for box in boxes]
                try:
                    return cells.integral(slices, in_domain)
                except TooCostly:
                    pass  # outside the domain
                try:
                    cells.check_number(slices)
                    return cells.integral(slices)
                except TooCostly:
                    if state.points is None:
                        raise
                    return unknown, {}

            integrals = list(in_order(value, added, options.n_jobs))
            certificates += [certificate for _, certificate in integrals]
            result[:, i] = np.array([values for values, _ in integrals])[kind]
            missing = np.array([values is unknown for values, _ in integrals])[kind]
            if missing.any():
                beyond.append((i, np.flatnonzero(missing)))
        values = Estimate(result)
        if beyond:
            values = _estimated(pieces, state.points, request, result, beyond)
        return Integral(values, certificate=join_certificates(*certificates))


def _estimated(
    pieces: Any, points: ProductPoints, request: Request, result: np.ndarray, beyond: list
) -> Estimate:
    """Fill in values by quasi-random points; the replicates of all others are equal.

    `beyond` is a list of (position in chosen, rows).
    """
    n = sum(len(some) for _, some in beyond)
    warn(
        f"{n} of {result.shape[0] * result.shape[1]} values, at numbers outside the domain, take "
        f"more than max_evals={request.options.max_evals:g} cells: they are estimated by "
        "quasi-random points, with a standard error",
    )
    engine = QuasiMonteCarlo()
    replicates = np.zeros((engine.replicates, *result.shape))
    source = PointSource(points, varies=False, by_row=False)
    for i, some in beyond:
        part = replace(request, rows=request.rows.take(some), chosen=[request.chosen[i]])
        values = engine.integrate(pieces, source, part).values
        assert values.replicates is not None
        result[some, i], replicates[:, some, i] = values.value[:, 0], values.replicates[:, :, 0]
    return Estimate(result, 0.0, replicates)


def _boxes(first: FirstLayer, state: UniformLaws, columns: tuple[int, ...]) -> list[Uniforms]:
    """Return the boxes of all components, without the pinned columns."""
    return [
        box._replace(share=share * box.share)
        for share, laws in state.components
        for box in first.uniforms(laws, columns)
    ]


def _cells(network: ReluNetwork, options: RunOptions) -> Cells:
    asked = is_asked_for(options.engine, Polytopes.name)
    limits = options if asked else options.for_exact_sums()
    return Cells(network, limits.max_evals, asked)


class Cells:
    """Integrates a network over boxes, cell by cell."""

    def __init__(self, network: ReluNetwork, most: float, is_asked_for: bool = False) -> None:
        self.network = network
        self.most = most
        self.is_asked_for = is_asked_for
        self.first = FirstLayer(network)
        self.layers = polytopes.join_layers(network.layers) if network.layers else None

    def check_number(self, boxes: list[Uniforms]) -> None:
        """Raise TooCostly if there are too many cells by a quick estimate, unless asked for."""
        number = 0.0
        for box in () if self.is_asked_for else boxes:
            number += estimated_cells(self.network, box.constant, box.slopes)
            if number > self.most:
                raise TooCostly(Polytopes.name, self._too_many(box.slopes.shape[1]))

    def integral(self, boxes: list[Uniforms], most: float | None = None) -> tuple[np.ndarray, dict]:
        """Return Σ shares · mean of f over boxes, (k,), and the certificate.

        Raises TooCostly if there are more than `most` cells.
        """
        most = self.most if most is None else most
        total = np.zeros(len(self.network.bias))
        certificate = {"cells": 0, "volume_error": 0.0}
        for box in boxes:
            mean, n_cells, volume = self._mean(box, most - certificate["cells"])
            total += box.share * mean
            part = {"cells": n_cells, "volume_error": abs(volume - 1.0)}
            certificate = join_certificates(certificate, part)
        return total, certificate

    def _mean(self, box: Uniforms, most: float) -> tuple[np.ndarray, int, float]:
        """Return the mean of f over a box, its number of cells, and their volume (1 is all)."""
        network = self.network
        if not np.isfinite(box.constant).all():
            return np.full(len(network.bias), np.nan), 1, 1.0
        if self.layers is None:  # z is f, and affine
            return box.constant, 1, 1.0
        slope = network.layers[-1].slope
        if box.slopes.shape[1] == 0:
            z = box.constant
            for before, layer in zip(network.layers[:-1], network.layers[1:], strict=True):
                z = layer.weight @ np.where(z >= 0, z, before.slope * z) + layer.bias
            return network.weight @ np.where(z >= 0, z, slope * z) + network.bias, 1, 1.0
        stack = polytopes.new_stack(self.layers, np.column_stack([box.slopes, box.constant]))
        means, sums = np.zeros(len(slope)), np.zeros(2)
        last = len(network.layers) - 1
        while True:
            work = simplices.new_work(stack)
            status = simplices.add_cells(self.layers, stack, last, most, work, means, sums)
            if status == polytopes.END:
                return network.weight @ means + network.bias, int(sums[1]), float(sums[0])
            if status == simplices.OVER:
                raise TooCostly(Polytopes.name, self._too_many(box.slopes.shape[1]))
            stack = polytopes.grown(stack)

    def _too_many(self, dim: int) -> str:
        return (
            f"{self.network.describe()} has more than max_evals={self.most:g} cells on a box of "
            f"{dim} dimensions; raise max_evals, make the domain smaller, or use "
            "PartialDependence(), which is exact in any number of dimensions, or "
            "engine='quasi_monte_carlo'"
        )
