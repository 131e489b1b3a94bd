"""Measures made of points that the user's function builds: finite ones, and samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skattr import frames
from skattr.measures.base import AtomsView
from skattr.measures.written import Written, as_label, as_point, same_values


class Atoms(Written):
    """Σ_a w_{j,a} δ_{p_a}: points and weights that a function builds for each explained row.

    Any attribution that is linear in f and asks it finitely often, in ten lines: ICE, occlusion,
    marginal effects, LIME with given samples, enumerated Shapley values.

    Parameters
    ----------
    build : callable
        build(x) → points (m, d), an array or a frame, and weights (g, m): one row of weights for
        each attribution, of any sign. It is asked more than once, so it must always give the same.

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
    _functions = ("build",)

    def __init__(self, build: Callable) -> None:
        self.build = build

    def _built(self, x: Any, n_attributions: int) -> tuple[Any, np.ndarray]:
        """Return the points and the weights of one row, a table."""
        point = as_point(x)
        given = point.copy()
        answer = self.build(point)
        if not same_values(point, given).all():
            raise ValueError(f"build changes its input, at x = {given.tolist()}; copy it first")
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise ValueError("build must return two things: points (m, d) and weights (g, m)")
        points = self.table(answer[0], "build")
        weights = np.asarray(answer[1], dtype=np.float64)
        if weights.shape != (n_attributions, len(points)):
            raise ValueError(
                f"build returned weights of shape {weights.shape} for {len(points)} points and "
                f"{n_attributions} attributions; it must be ({n_attributions}, {len(points)})"
            )
        if not np.isfinite(weights).all():
            raise ValueError(f"build returned weights that are not finite, at x = {given.tolist()}")
        return points, weights

    def atoms(self, X: Any, own: tuple) -> AtomsView:
        """Return the atoms of all rows."""
        built = [self._built(frames.take_rows(X, slice(i, i + 1)), len(own)) for i in range(len(X))]
        points = frames.concatenate([points for points, _ in built])
        weights = np.concatenate([weights for _, weights in built], axis=1)
        row = np.repeat(np.arange(len(X)), [len(points) for points, _ in built])
        return AtomsView(points, weights, row)

    def masses(self, X: Any, own: tuple) -> np.ndarray:
        """Return the sums of the weights, (n, g)."""
        rows = (frames.take_rows(X, slice(i, i + 1)) for i in range(len(X)))
        found = [self._built(row, len(own))[1].sum(axis=1) for row in rows]
        return np.array(found).reshape(len(X), len(own))


class Sampler(Written):
    """The law that a function draws points from, for each explained row and attribution.

    Its integrals are means over the points, approximate, with standard errors.

    Parameters
    ----------
    draw : callable
        draw(x, j, n, rng) → n points, an array (n, d) or a frame. All randomness must come from
        `rng`, a numpy Generator that is made anew from (seed, j, replicate) for every row.
    """

    mass: float | None = 1.0
    views = ("draws",)
    n_uniforms = 1  # the points of the loop that it goes through, and does not look at
    _functions = ("draw",)

    def __init__(self, draw: Callable) -> None:
        self.draw = draw

    def merge(self, other: Sampler) -> Sampler:
        """Keep either: points do not depend on the background."""
        return self

    def draws(self, x: Any, columns: tuple[int, ...], each: Any) -> Any:
        """Return the points of one round for all replicates, one behind the other."""
        point = as_point(x)
        n = len(each.u) // each.replicates
        parts = []
        for replicate in range(each.replicates):
            key = (replicate, each.number, *columns)
            rng = np.random.default_rng(np.random.SeedSequence(each.seed, spawn_key=key))
            points = self.table(self.draw(point.copy(), as_label(columns), n, rng), "draw")
            if len(points) != n:
                raise ValueError(f"draw returned {len(points)} points, it was asked for {n}")
            parts.append(points)
        return frames.concatenate(parts)
