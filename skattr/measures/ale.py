"""ALE: accumulated local effects (Apley and Zhu 2020), as a measure.

See docs/mathematics.md, section 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr._utils.messages import brief, warn
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.measures.views import AccumulatedView, AtomsView

DEFAULT_BINS = 20


@dataclass(eq=False)
class LocalEffects:
    """The bins of a column: K effects, each the mean difference between two ends over some rows."""

    ends: Any  # (K + 1,) raw values, in order
    rows: np.ndarray  # (m,) background rows, a row once for each effect that it belongs to
    effect: np.ndarray  # (m,) the effect of each
    weight: np.ndarray  # (m,) weights that sum to 1 within each effect
    center: np.ndarray  # (K,) what is subtracted from the coefficients of the effects
    numbers: np.ndarray | None  # the ends as numbers, None for levels

    def coefficients(self, values: Any) -> np.ndarray:
        """Return how often each effect counts at raw values, (n, K); a missing value gets 0."""
        K = len(self.center)
        if self.numbers is not None:
            x = frames.to_float(values)
            width = np.diff(self.numbers)
            share = np.clip((x[:, None] - self.numbers[:-1]) / width, 0.0, 1.0)
            return np.where(np.isnan(x)[:, None], 0.0, share - self.center)
        position = {level: i for i, level in enumerate(frames.to_list(self.ends))}
        at = np.array([position.get(value, -1) for value in frames.to_list(values)])
        reached = (np.arange(1, K + 1) <= at[:, None]).astype(float)
        return np.where(at[:, None] < 0, 0.0, reached - self.center)


class ALE(Measure):
    """Accumulated local effects: differences of f across bins of x_j, accumulated up to x_j.

    In each bin of column j the rows of the background in it are moved to its two ends: the mean
    difference of f is the effect of the bin. Effects are added up to x_j, linearly within its bin
    and constant outside the background's range, and centred over the background. Only points near
    the data are asked for, unlike in partial dependence; where f is additive both agree up to a
    constant (at the ends of bins).

    Levels are in their order if they have one (ordered categories, booleans, numbers), else by
    name. The effect between two neighbours is a mean over the rows of both. A missing value, or a
    level that the background does not have, gets 0. Groups are refused.

    Parameters
    ----------
    n_bins : int, optional
        The number of bins of a column of numbers, with equal weights; 20 by default. Bins that
        have the same ends are merged.

    Attributes
    ----------
    n_bins_ : dict
        The number of bins of each column, after merging.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> from skattr.measures import ALE
    >>> X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] + 2 * X[:, 1], ALE()).fit(X)
    >>> explainer.curve(0)([0.0, 1.0, 2.0]).round(2)
    array([-0.83,  0.17,  1.17])
    """

    mass = 0.0
    views = ("accumulated", "atoms")
    adds_up = False
    no_batches = "its bins are quantiles of the whole background"
    no_folds = "its bins are quantiles of all rows together"
    no_pairs = "effects are accumulated along single columns"
    rows_at_once = 8

    def __init__(self, n_bins: int | None = None) -> None:
        self.n_bins = n_bins

    def in_words(self) -> str:
        """Return the usual short name, with the parameters that differ from the defaults."""
        return self._named("ALE")

    def _check_parameters(self) -> None:
        n_bins = self.n_bins
        whole = isinstance(n_bins, Integral) and not isinstance(n_bins, bool)
        if n_bins is not None and (not whole or int(n_bins) < 1):
            raise ValueError(f"n_bins must be a whole number, at least 1, got {brief(n_bins)}")

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        for columns in attributions:
            if len(columns) > 1:
                group = [background.names[k] for k in columns]
                raise ValueError(f"ALE is for single columns, not for the group {group}")
        self.rows_ = PicklableTable(frames.copy(background.X))
        self.effects_ = [self._column(background, k) for k in range(len(background.names))]
        self.n_bins_ = {
            name: len(column.center)
            for name, column in zip(background.names, self.effects_, strict=True)
        }
        merged = [
            name
            for k, (name, n) in enumerate(self.n_bins_.items())
            if self.n_bins is not None and n < self.n_bins and not background.levels[k]
        ]
        if merged:
            warn(
                f"ALE: the columns {merged} have too few distinct values for {self.n_bins} bins; "
                "bins with the same ends are merged",
            )

    def _column(self, background: Background, k: int) -> LocalEffects:
        if background.levels[k] or not frames.is_number(background.X, k):
            return _of_levels(background, k)
        return _of_numbers(background, k, self.n_bins or DEFAULT_BINS)

    def accumulated(self) -> AccumulatedView:
        """Return the background, and the bins of each column."""
        return AccumulatedView(self.background_, self.effects_)

    def atoms(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> AtomsView:
        """Return two atoms per background row and effect: at both ends of its bin."""
        n = len(X)
        tables, weights = [], []
        for j, (k,) in enumerate(attributions):
            column = self.effects_[k]
            coefficient = column.coefficients(frames.column(X, k))[:, column.effect]  # (n, m)
            for end, sign in ((1, 1.0), (0, -1.0)):
                tables.append(moved(self.rows_.X, column, k, end))
                share = np.zeros((len(attributions), n, len(column.rows)))
                share[j] = sign * coefficient * column.weight
                weights.append(share)
        points = frames.concatenate(tables)
        m = len(points)
        repeated = frames.take_rows(points, np.tile(np.arange(m), n))
        whole = np.concatenate(weights, axis=2).reshape(len(attributions), n * m)
        return AtomsView(repeated, whole, np.repeat(np.arange(n), m))

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()


def moved(X: Any, column: LocalEffects, k: int, end: int) -> Any:
    """Return the rows of all effects with column k at the upper (1) or lower (0) end."""
    rows = frames.take_rows(X, column.rows)
    if not len(column.rows):
        return rows
    values = frames.take_values(column.ends, column.effect + end)
    source = frames.with_columns(frames.take_rows(X, slice(1)), {k: values})
    at = np.arange(len(rows))[:, None].repeat(len(frames.labels(X)), axis=1)
    at[:, k] += len(rows)
    return frames.mixed(frames.concatenate([rows, source]), at)


def _of_numbers(background: Background, k: int, n_bins: int) -> LocalEffects:
    """Return bins of equal weight, (e_{m-1}, e_m], the first one closed."""
    values = frames.to_float(background.column(k))
    present = np.flatnonzero(np.isfinite(values))
    order = present[np.argsort(values[present], kind="stable")]
    share = np.cumsum(background.weights[order])
    wanted = np.arange(1, n_bins) / n_bins * (share[-1] if len(share) else 0.0)
    inner = order[np.searchsorted(share, wanted * (1 - 1e-12))] if len(order) else order
    ends = np.unique(values[np.concatenate([order[:1], inner, order[-1:]])])
    K = max(len(ends) - 1, 0)
    effect = np.maximum(np.searchsorted(ends, values[order], side="left") - 1, 0)
    total = np.bincount(effect, background.weights[order], K)[:K]
    mass = total / total.sum() if K else total
    if K == 0:  # at most one value: nothing to accumulate
        order, effect = order[:0], effect[:0]
    center = mass[::-1].cumsum()[::-1] - mass / 2
    weight = background.weights[order] / total[effect] if K else np.empty(0)
    column = frames.to_array(background.column(k))
    typed = ends.astype(column.dtype) if column.dtype.kind in "iuf" else ends
    return LocalEffects(typed, order, effect, weight, center, ends)


def _of_levels(background: Background, k: int) -> LocalEffects:
    """Return neighbouring levels, each effect with the rows of both."""
    column = frames.to_list(background.column(k))
    present = np.array([not frames.is_missing(value) for value in column], bool)
    levels = {value for value, here in zip(column, present, strict=True) if here}
    known = frames.level_order(background.X, k)
    by_name = sorted(levels, key=lambda level: (not _is_real(level), _key(level)))
    ordered = [level for level in known if level in levels] if known is not None else by_name
    position = {level: i for i, level in enumerate(ordered)}
    at = np.array([position[value] if here else -1
                   for value, here in zip(column, present, strict=True)], int)  # fmt: skip
    K = max(len(ordered) - 1, 0)
    both = [np.flatnonzero((at == m) | (at == m + 1)) for m in range(K)]
    rows = np.concatenate([np.empty(0, int), *both])
    effect = np.repeat(np.arange(K), [len(some) for some in both])
    total = np.bincount(effect, background.weights[rows], K)[:K]
    mass = np.bincount(at[present], background.weights[present], K + 1)
    center = (mass / mass.sum())[::-1].cumsum()[::-1][1:] if present.any() else np.empty(0)
    first = [int(np.flatnonzero(at == i)[0]) for i in range(len(ordered))]
    ends = frames.take_values(background.column(k), np.array(first, int))
    return LocalEffects(ends, rows, effect, background.weights[rows] / total[effect], center, None)


def _is_real(level: Any) -> bool:
    return isinstance(level, Real)


def _key(level: Any) -> Any:
    return level if _is_real(level) else str(level)
