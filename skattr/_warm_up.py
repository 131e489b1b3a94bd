"""Compile all kernels ahead of time, for container images, continuous integration and clusters.

Small models are explained with every engine that has kernels, on every kind of table that gives
kernels other types. Compiled kernels are cached as usual (kernels/compiled.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.neural_network import MLPRegressor

from skattr.curves.by_two_codes import ByTwoCodes
from skattr.engines import Riemann
from skattr.explainer import MeasureExplainer
from skattr.kernels.boxes.rectangles import at_points
from skattr.measures import (
    ALE,
    Conditional,
    PartialDependence,
    ProductMarginal,
    Removal,
    Shapley,
    Stieltjes,
    Uniform,
)
from skattr.pieces import Boxes, ReluNetwork


def cases() -> Iterator[tuple[str, MeasureExplainer, pd.DataFrame]]:
    """Yield what is explained: its name, an explainer that is not fitted yet, and rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((60, 4)), columns=list("abcd"))
    y = X.to_numpy() @ [1.0, 2.0, 3.0, 4.0] + X["a"] * X["b"]
    levels = X.assign(c=pd.Categorical(np.where(X["c"] < 0.5, "low", "high")))
    groups = {"both": ["a", "b"]}

    def explainer(model: Any, measure: Any, **more: Any) -> MeasureExplainer:
        return MeasureExplainer(model, measure, random_state=0, **more)

    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    boosting = HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=5, categorical_features="from_dtype"
    ).fit(levels, y)
    measures = (PartialDependence(), ProductMarginal(), Conditional())
    coalitions = (Shapley(), Shapley(ProductMarginal()))
    for name, model, table in (("forest", forest, X), ("boosting", boosting, levels)):
        for measure in (*measures, *coalitions):
            yield f"{name}, {measure}", explainer(model, measure), table
            yield f"{name}, {measure}, groups", explainer(model, measure, groups=groups), table
        for measure in (ALE(), Removal()):
            yield f"{name}, {measure}", explainer(model, measure), table
    classes = HistGradientBoostingClassifier(
        max_iter=3, min_samples_leaf=5, categorical_features="from_dtype"
    ).fit(levels, y > y.mean())
    yield "boosting, link", explainer(classes, PartialDependence(), output="proba"), levels
    for hidden in ((4,), (4, 4), (4, 4, 4)):
        network = _network(hidden).fit(X, y)
        for measure in (PartialDependence(), Conditional()):
            yield f"network {hidden}, {measure}", explainer(network, measure), X
        yield f"network {hidden}, Uniform()", explainer(network, Uniform()), X[:2]
    yield "closed form, normal", explainer(_network((4,)).fit(X, y), Conditional("gaussian")), X
    process = GaussianProcessRegressor(random_state=0).fit(X[:20], y[:20])
    for measure in (PartialDependence(), Conditional()):
        yield f"bumps, {measure}", explainer(process, measure), X[:20]
    yield "bumps, coalitions", explainer(process, Shapley()), X[:20]
    yield "bumps, nodes", explainer(process, Shapley(ProductMarginal())), X[:20]
    yield "grid", explainer(process, Uniform(), engine=Riemann(points=3)), X[:2]
    for model in (process, forest):
        for product in (False, True):
            name = f"increments, {type(model).__name__}, {product}"
            yield name, explainer(model, Stieltjes(_volume(product), product=product)), X[:2]


def _network(hidden: tuple[int, ...]) -> MLPRegressor:
    """Return a network that stops training after one iteration."""
    return MLPRegressor(hidden_layer_sizes=hidden, tol=1e9, n_iter_no_change=1, random_state=0)


def _volume(product: bool) -> Callable:
    """Return a function whose increments are volumes, or its factors."""
    return lambda y, x, j: y if product else np.prod(y, axis=-1)


def compute(explainer: MeasureExplainer, X: pd.DataFrame) -> list[np.ndarray]:
    """Return the attributions of three rows and, on boxes, those of pairs, looked up and swept."""
    values = [explainer.fit(X).explain(X[:3]).values]
    if isinstance(explainer.measure, Shapley):
        return [*values, explainer.explain_pairs(X[:3]).values]
    pieces = explainer.pieces_
    if not isinstance(pieces, Boxes) or not {"rows", "factors"} & {*explainer.measure_.views}:
        return values
    values.append(explainer.explain_pairs(X[:3]).values)
    for function in explainer._fitting.pairs.functions():
        assert isinstance(function, ByTwoCodes)
        first, second = (pieces.grid.encode(X[:3])[k] for k in function.columns)
        axes = function.first, function.second
        values.append(at_points(function.rectangles, *axes, first, second, sweep=True))
    return values


def warm_up() -> None:
    """Compile all kernels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # models that are not trained to the end
        for _, explainer, X in cases():
            compute(explainer, X)
            pieces = explainer.pieces_
            if isinstance(pieces, ReluNetwork):
                next(pieces.regions([(0.0, 1.0)] * X.shape[1]))
