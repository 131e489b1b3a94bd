"""Accumulated local effects: f at two points per background row and column.

The effect of a bin is the mean difference of f between its ends, over the rows in it. They are
computed once; a value is a sum of effects. On columns of numbers the attribution is piecewise
linear, with its knots at the ends of the bins: an exact curve on every model. On boxes, also
behind a link, one pass of the background down the trees serves all columns; other models are
evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr.attributions import Attributions
from skattr.curves.linear import PiecewiseLinear
from skattr.engines.backgrounds import find_moments
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.boxes.local_effects import effects_of_boxes
from skattr.engines.estimates import Estimate
from skattr.measures.ale import LocalEffects, moved
from skattr.measures.base import Measure
from skattr.pieces import Boxes, Pieces

ROW_BLOCK = 65_536  # rows in one call of the model


@dataclass(eq=False)
class Accumulated:
    """The bins of each explained column, and their effects."""

    columns: dict[int, LocalEffects]
    effects: dict[int, np.ndarray]  # (K, k)
    mean: np.ndarray  # (k,) of f over the background
    names: list


class AccumulatedEffects(Engine):
    """Evaluates the model at both ends of the bins of all background rows."""

    name = "accumulated_effects"
    kind = Pieces
    views = ("accumulated",)
    gives = "exact curves"

    @override
    def cost(self, pieces: Pieces, measure: Measure) -> str:
        pass_of = "one pass of the background down all trees"
        has_boxes = isinstance(pieces.before_link, Boxes)
        fit = pass_of if has_boxes else "two evaluations per row and column"
        return f"fit: {fit}; explain: one lookup per value"

    @override
    def prepare(
        self, pieces: Pieces, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Accumulated:
        background, columns = measure.accumulated()
        chosen = {k: columns[k] for k in sorted({k for (k,) in attributions})}
        boxes = pieces.before_link
        if isinstance(boxes, Boxes):
            effects, mean = effects_of_boxes(pieces, boxes, background, chosen, options.n_jobs)
        else:
            effects, mean = {}, find_moments(background, pieces).mean
        for k, column in chosen.items():
            if k not in effects:
                effects[k] = _effects(pieces, background.X, column, k)
        return Accumulated(chosen, effects, mean, background.names)

    @override
    def mean(self, pieces: Pieces, state: Accumulated) -> Estimate:
        return Estimate(state.mean)

    @override
    def curves(self, pieces: Pieces, state: Accumulated, attributions: Attributions) -> Curves:
        return [_curve(state, k) for (k,) in attributions]

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        result = request.zeros(pieces.n_outputs)
        for i, (k,) in enumerate(request.columns):
            coefficients = state.columns[k].coefficients(frames.column(request.X, k))
            result[:, i] = np.einsum("nm,mk->nk", coefficients, state.effects[k])
        return Integral(Estimate(result))


def _effects(pieces: Pieces, X: Any, column: LocalEffects, k: int) -> np.ndarray:
    """Return the mean difference of f between the ends of each bin, (K, n_outputs)."""
    result = np.zeros((len(column.center), pieces.n_outputs))
    for end, sign in ((1, 1.0), (0, -1.0)):
        points = moved(X, column, k, end)
        for start in range(0, len(column.rows), ROW_BLOCK):
            block = slice(start, start + ROW_BLOCK)
            values = pieces.predict(frames.take_rows(points, block))
            np.add.at(result, column.effect[block], sign * column.weight[block, None] * values)
    return result


def _curve(state: Accumulated, k: int) -> PiecewiseLinear | None:
    """Return the attribution of a column of numbers, None if it has levels or no bins."""
    column, effects = state.columns[k], state.effects[k]
    if column.numbers is None or len(effects) == 0:
        return None
    values = np.concatenate([np.zeros((1, effects.shape[1])), np.cumsum(effects, axis=0)])
    values -= column.center @ effects
    flat = np.zeros((1, effects.shape[1]))
    slopes = np.concatenate([flat, effects / np.diff(column.numbers)[:, None], flat])
    special = np.concatenate([flat, values[:1], values[-1:]])
    return PiecewiseLinear(
        state.names[k], 0.0, 0.0, column.numbers, values, slopes, 0, special=special
    )
