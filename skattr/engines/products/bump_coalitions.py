"""Shapley and Banzhaf values of sums of products (docs/mathematics.md, section 11).

    f = b + Σ_m c_m ∏_k φ_mk(y_k),   K_mj = ∏_{k in j} φ_mk:
    phi_j(x) = Σ_m c_m ∫ E[(K_mj(x) - K_mj(Z)) ∏_{i≠j} (p K_mi(x) + (1-p) K_mi(Z))] dP(p)

Z is a row of the background, or has independent columns: then the means of K_mi(Z) replace them.
Exact. The integral over p is a sum over coalitions or over nodes, whichever costs less
(coalition_sums.py). Sums over coalitions cost O(rows · terms · 2^g) once and O(terms · 2^g) per
explained row; nodes cost O(rows · terms · g²) per explained row, and O(terms · g²) under laws. Each
part of the model is a game of its own, of the players that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skattr._typing import override
from skattr.attributions import Attributions
from skattr.engines.base import Engine, Integral, Request, RunOptions
from skattr.engines.estimates import Estimate
from skattr.engines.laws import as_means, merge_components, why_inexact
from skattr.engines.products import coalition_sums
from skattr.engines.products.coalition_sums import SINGLES, Differences, Players, prefers_moments
from skattr.engines.products.product_sums import (
    add_rows,
    at_rows,
    mean_factor,
    mean_factors,
    value,
)
from skattr.measures.base import Measure
from skattr.measures.coalitions import Semivalue
from skattr.pieces import Products

ROWS = 64  # rows that one worker explains at a time
WORTHS = 2**20  # worths of coalitions that one worker keeps


@dataclass(eq=False)
class Games:
    """One game per part, and what its coalitions are worth at the background.

    Rows are kept until `finish`, which replaces them by moments where these cost less.
    """

    semivalue: Semivalue
    attributions: Attributions
    totals: np.ndarray  # (M,) sums over rows, or means, of all factors
    weight: float = 1.0
    inputs: list[np.ndarray] = field(default_factory=list)  # of rows, one table (n, p) per part
    weights: list[np.ndarray] = field(default_factory=list)  # (n,) per part
    moments: list[np.ndarray | None] = field(default_factory=list)  # (M, 2^g) per part
    components: list | None = None  # (π_c, one law per column, as `laws.mean` takes it)
    means: np.ndarray | None = None  # (C, d, M) of the factors of columns


class BumpCoalitions(Engine):
    """Worths of all coalitions, or nodes in p, for the products of each explained row."""

    name = "bump_coalitions"
    kind = Products
    views = ("coalitions of rows", "coalitions of factors")
    gives = "exact; groups"
    needs_partition = True

    @override
    def objection(self, pieces: Products, measure: Any) -> str | None:
        inner = measure.coalitions().measure
        return why_inexact(inner, lambda law, k: mean_factor(pieces, law, k))

    @override
    def cost(self, pieces: Products, measure: Measure) -> str:
        n = f"{pieces.n_terms:,} products"
        if "coalitions of rows" not in measure.views:
            return f"explain: {n} per column and node"
        return f"fit: {n} per row; explain: {n} per coalition, or per background row and node"

    @override
    def outlook(self, state: Games, attributions: Attributions) -> str:
        if state.components is not None:
            return ""
        g = len(attributions)
        if any(table is not None for table in state.moments):
            return f"from the moments of at most {2**g:,} coalitions"
        n = max(map(len, state.weights), default=0)
        return f"from {n:,} background rows at {len(state.semivalue.nodes(g - 1)[0])} nodes"

    @override
    def prepare(
        self, pieces: Products, measure: Any, attributions: Attributions, options: RunOptions
    ) -> Games:
        inner, semivalue = measure.coalitions()
        totals = np.zeros(pieces.n_terms)
        if "rows" not in inner.views:
            components, _ = inner.factors()
            means = [(share, [as_means(law, pieces) for law in laws]) for share, laws in components]
            return Games(semivalue, attributions, totals, components=means)
        background, _ = inner.rows()
        nothing = np.zeros((pieces.n_terms, 0, 1))
        kept = []
        for block, inputs in pieces.in_blocks(background.X):
            weights = background.weights[block]
            add_rows(pieces, inputs, weights, attributions, (totals, nothing), options)
            kept.append(inputs)
        tables = [np.concatenate(part) for part in zip(*kept, strict=True)]
        return Games(
            semivalue, attributions, totals, float(background.weights.sum()), tables,
            [background.weights] * len(tables), [None] * len(tables),
        )  # fmt: skip

    @override
    def merge(self, a: Games, b: Games) -> Games:
        if a.components is not None and b.components is not None:
            return replace(b, components=merge_components(a.components, b.components), means=None)
        return replace(
            b,
            totals=a.totals + b.totals,
            weight=a.weight + b.weight,
            inputs=[np.concatenate(pair) for pair in zip(a.inputs, b.inputs, strict=True)],
            weights=[np.concatenate(pair) for pair in zip(a.weights, b.weights, strict=True)],
            moments=[_added(*pair) for pair in zip(a.moments, b.moments, strict=True)],
        )

    @override
    def finish(self, pieces: Products, state: Games, options: RunOptions) -> Games:
        if state.components is not None:
            means = np.array([mean_factors(pieces, laws) for _, laws in state.components])
            shares = [share for share, _ in state.components]
            totals = sum(
                share * np.prod(each, axis=0) for share, each in zip(shares, means, strict=True)
            )
            return replace(state, means=means, totals=totals)
        inputs, weights, moments = [*state.inputs], [*state.weights], [*state.moments]
        for part, players in enumerate(_players(pieces, state.attributions)):
            rows, known = inputs[part], moments[part]
            if not len(players) or not len(rows):
                continue
            if known is not None or prefers_moments(players, len(rows), state.semivalue):
                ordered = np.ascontiguousarray(rows[:, players.inputs])
                new = coalition_sums.moments(players, ordered, weights[part], options)
                moments[part] = _added(known, new)
                inputs[part], weights[part] = rows[:0], weights[part][:0]
        return replace(state, inputs=inputs, weights=weights, moments=moments)

    @override
    def mean(self, pieces: Products, state: Games) -> Estimate:
        return Estimate(value(pieces, state.totals / state.weight))

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        attributions = request.attributions
        result = np.zeros((len(request.X), len(attributions), pieces.n_outputs))

        def add(block: slice, players: Players, values: np.ndarray) -> None:
            result[block, players.attributions] += values

        for_each_part(pieces, state, request, SINGLES, add)
        return Integral(Estimate(result[:, list(request.chosen)] / state.weight))


def for_each_part(
    pieces: Products,
    state: Games,
    request: Request,
    differences: Differences,
    add: Callable[[slice, Players, np.ndarray], None],
) -> None:
    """Call add(rows, players, values) for the parts of the model and blocks of rows.

    Values are (rows, players or pairs, k), not divided by the weight of the background.
    """
    games = [
        (part, players, terms)
        for part, (players, terms) in enumerate(
            zip(_players(pieces, state.attributions), pieces.terms(), strict=True)
        )
        if differences.count(len(players))
    ]
    coefficients = pieces.coefficients

    def fill(block: slice, inputs: list) -> None:
        for part, players, terms in games:
            of_players = np.ascontiguousarray(inputs[part][:, players.inputs])
            add(
                block,
                players,
                _values(state, part, terms, players, of_players, coefficients[terms], differences),
            )

    sets = max((table.shape[1] for table in state.moments if table is not None), default=1)
    n_rows = max(1, min(ROWS, WORTHS // (sets * pieces.n_outputs)))
    at_rows(pieces, request, fill, n_rows, list(range(len(pieces.names))))


def _players(pieces: Products, attributions: Attributions) -> list[Players]:
    """Return the players of each part: the attributions that it depends on."""
    result = []
    for side in pieces.sides(attributions):
        sizes = np.diff(side.starts)
        starts = side.starts[np.append(np.flatnonzero(sizes), len(sizes))]
        result.append(
            Players(np.flatnonzero(sizes).tolist(), side.inputs, starts, side.supports, side.gammas)
        )
    return result


def _added(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    """Return the sum of two tables, either of which may be missing."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _values(
    state: Games,
    part: int,
    terms: slice,
    players: Players,
    inputs: np.ndarray,
    coefficients: np.ndarray,
    differences: Differences,
) -> np.ndarray:
    """Return the values of the players of one part, or of their pairs, at rows."""
    last = coefficients, state.semivalue, differences
    if state.components is not None:
        assert state.means is not None
        columns = [list(state.attributions[a]) for a in players.attributions]
        means = np.stack([state.means[:, k, terms].prod(axis=1) for k in columns], axis=1)
        shares = np.array([share for share, _ in state.components])
        means = np.ascontiguousarray(means.transpose(2, 1, 0))  # (M, players, C)
        return coalition_sums.from_means(players, inputs, means, shares, *last)
    table = state.moments[part]
    if table is not None:
        return coalition_sums.from_moments(players, inputs, table, *last)
    background = np.ascontiguousarray(state.inputs[part][:, players.inputs])
    return coalition_sums.from_rows(players, inputs, background, state.weights[part], *last)
