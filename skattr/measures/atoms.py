"""Measures made of points that a function of the user builds or draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.measures.views import AtomsView
from skattr.measures.written import Written, as_label, as_point, same_values


class Atoms(Written):
    """Σ_a w_{j,a} δ_{p_a}: points and weights that a function builds for each explained row.

    Any attribution that is linear in f and evaluates it finitely often, in ten lines: ICE,
    occlusion, marginal effects, LIME with fixed samples, enumerated Shapley values.

    Parameters
    ----------
    build : callable
        build(x) → points (m, d), an array or a frame, and weights (g, m) of any sign: one row of
        weights per attribution. It is called more than once, and must always return the same.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> def occlusion(x):  # f(x) less f(x with column j set to 0)
    ...     d = len(x)
    ...     points = np.vstack([x, np.where(np.eye(d), 0.0, x)])
    ...     return points, np.column_stack([np.ones(d), -np.eye(d)])
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], Atoms(occlusion)).fit(X)
    >>> explainer.explain(X).values
    array([[ 2.,  2.],
           [12., 12.]])
    """

    views = ("atoms",)
    rows_at_once = 256
    no_pairs = "build returns weights for the attributions, and none for pairs of them"
    _functions = ("build",)

    def __init__(self, build: Callable) -> None:
        self.build = build

    def _built(self, x: Any, n_attributions: int) -> tuple[Any, np.ndarray]:
        """Return the points and the weights of one row, a table."""
        point = as_point(x)
        before = point.copy()
        built = self.build(point)
        if not same_values(point, before).all():
            raise ValueError(f"build must not change its input x = {before.tolist()}; copy x")
        if not isinstance(built, tuple | list) or len(built) != 2:
            raise ValueError("build must return two things: points (m, d) and weights (g, m)")
        points = self.table(built[0], "build")
        weights = np.asarray(built[1], dtype=np.float64)
        if weights.shape != (n_attributions, len(points)):
            raise ValueError(
                f"build must return weights of shape ({n_attributions}, {len(points)}) for "
                f"{n_attributions} attributions and {len(points)} points, got {weights.shape}"
            )
        if not np.isfinite(weights).all():
            raise ValueError(f"build must return finite weights, also at x = {point.tolist()}")
        return points, weights

    def _built_rows(self, X: Any, n_attributions: int) -> Iterator[tuple[Any, np.ndarray]]:
        for i in range(len(X)):
            yield self._built(frames.take_rows(X, slice(i, i + 1)), n_attributions)

    def atoms(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> AtomsView:
        """Return what the function builds for each row."""
        built = list(self._built_rows(X, len(attributions)))
        points = frames.concatenate([points for points, _ in built])
        weights = np.concatenate([weights for _, weights in built], axis=1)
        row = np.repeat(np.arange(len(X)), [len(points) for points, _ in built])
        return AtomsView(points, weights, row)

    def masses(self, X: Any, attributions: Sequence[tuple[int, ...]]) -> np.ndarray:
        """Return the sums of the weights."""
        sums = [weights.sum(axis=1) for _, weights in self._built_rows(X, len(attributions))]
        return np.array(sums).reshape(len(X), len(attributions))


class Sampler(Written):
    """The law that a function draws points from, for each explained row and attribution.

    Its integrals are means over the points: approximate, with standard errors.

    Parameters
    ----------
    draw : callable
        draw(x, j, n, rng) → n points, an array (n, d) or a frame. All randomness must come from
        `rng`, a numpy Generator that is created from (seed, j, replicate) for every row.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> def near(x, j, n, rng):  # points around x, the own value kept
    ...     points = x + 0.1 * rng.standard_normal((n, len(x)))
    ...     points[:, j] = x[j]
    ...     return points
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> explainer = MeasureExplainer(lambda X: X.sum(axis=1), Sampler(near), random_state=0).fit(X)
    >>> explanation = explainer.explain(X)
    >>> explanation.exact, bool(abs(explanation.values[0, 0] - 3.0) < 0.1)
    (False, True)
    """

    mass: float | None = 1.0
    views = ("draws",)
    n_uniforms = 1  # of the round, which draws do not use
    _functions = ("draw",)

    def __init__(self, draw: Callable) -> None:
        self.draw = draw

    def merge(self, other: Sampler) -> Sampler:
        """Return itself: points do not depend on the background."""
        return self

    def draws(self, x: Any, columns: tuple[int, ...], each: Any) -> Any:
        """Return the points that the function draws for each replicate."""
        point = as_point(x)
        n = len(each.u) // each.replicates
        parts = []
        for replicate in range(each.replicates):
            key = (replicate, each.number, *columns)
            rng = np.random.default_rng(np.random.SeedSequence(each.seed, spawn_key=key))
            points = self.table(self.draw(point.copy(), as_label(columns), n, rng), "draw")
            if len(points) != n:
                raise ValueError(f"draw must return {n} points, got {len(points)}")
            parts.append(points)
        return frames.concatenate(parts)
