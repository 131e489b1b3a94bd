"""Readers where a wrong reading once went unnoticed, against the definition."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import PartialDependence, Uniform
from skattr.pieces import readers
from tests.helpers.comparison import by_definition


def check(model, X, f=None):
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    assert explainer.engine_ == ("one_violation",)
    found = explainer.explain(X[:20]).values
    wanted = by_definition(f or model.predict, X, X[:20])
    assert_allclose(found, wanted, atol=1e-10 * np.std(model.predict(X)) + 1e-13)
    return explainer


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_outputs_of_boosting_are_counted_without_predicting(n_classes):
    X = np.random.default_rng(0).normal(size=(90, 2))
    if n_classes:
        model = HistGradientBoostingClassifier(max_iter=2).fit(X, np.arange(90) % n_classes)
        values = model.decision_function(X)
    else:
        model = HistGradientBoostingRegressor(max_iter=2).fit(X, X[:, 0])
        values = model.predict(X)
    assert readers.n_outputs(model, X[:1]) == values.reshape(90, -1).shape[1]
    with pytest.raises(ValueError, match="features"):
        readers.n_outputs(model, X[:1, :1])


def test_a_threshold_at_minus_infinity():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)) * 5) / 5
    X[:8, 0] = np.nan
    X[8:60, 0] = -np.inf
    y = np.where(np.isneginf(X[:, 0]), 5, np.where(X[:, 0] > 0.5, 2, X[:, 1]))
    model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    thresholds = np.concatenate([tree.nodes["num_threshold"] for (tree,) in model._predictors])
    assert np.isneginf(thresholds).any()
    curve = check(model, X).curve(0)
    values = np.array([-np.inf, -1e300, 0.3, np.inf, np.nan])
    pinned = np.tile(X[:1], (5, 1))
    pinned[:, 0] = values
    assert_allclose(curve(values), by_definition(model.predict, X, pinned)[:, 0], atol=1e-12)


def test_nested_bags_read_their_own_columns():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 6))
    y = X[:, 0] * X[:, 1] + X[:, 4]
    inner = BaggingRegressor(DecisionTreeRegressor(max_depth=4), n_estimators=3, max_features=0.5)
    check(BaggingRegressor(inner, n_estimators=4, random_state=0).fit(X, y), X)


def test_members_of_a_bag_with_encoders_of_their_own():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 4, size=(200, 3)).astype(float)
    y = (X[:, 0] == 2) * X[:, 1] + X[:, 2]
    hist = [
        (str(j), HistGradientBoostingRegressor(max_iter=3, categorical_features=[j]))
        for j in (0, 1)
    ]
    bag = BaggingRegressor(VotingRegressor(hist), n_estimators=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(bag, "partial_dependence").fit(X)
    assert_allclose(
        explainer.explain(X[:5]).values, by_definition(bag.predict, X, X[:5]), atol=1e-12
    )
    assert "boxes" in explainer.describe()  # columns that are levels to one member only are open
    same = HistGradientBoostingRegressor(max_iter=3, categorical_features=[0])
    check(BaggingRegressor(same, n_estimators=4, max_samples=0.1, random_state=0).fit(X, y), X)


def test_frozen_members_are_read():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    tree = FrozenEstimator(DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0]))
    check(VotingRegressor([("t", tree)]).fit(X, X[:, 0]), X)


class Doubled(RandomForestRegressor):
    def predict(self, X):
        return 2 * super().predict(X)


def test_a_subclass_with_another_predict_is_a_black_box():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(100, 2))
    X[:50] = 0.0
    model = Doubled(3, random_state=0).fit(X, X[:, 0] + 1)
    with pytest.warns(UserWarning, match="Doubled does not add up"):
        explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    assert explainer.engine_ == ("finite_sum",)
    assert_allclose(explainer.explain(X[-3:]).values, by_definition(model.predict, X, X[-3:]))


@pytest.mark.parametrize("model", [GradientBoostingRegressor(), DecisionTreeRegressor()])
def test_raw_of_a_regressor_without_a_link(model):
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    model.fit(X, X["a"])
    raw = MeasureExplainer(model, output="raw").fit(X).explain(X)
    assert_array_equal(raw.values, MeasureExplainer(model).fit(X).explain(X).values)


def test_a_huge_leaf_costs_its_own_rounding_only():
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(300, 3))
    y = X[:, 0] + X[:, 1]
    X[0, 0], y[0] = 5.0, 1e8
    model = DecisionTreeRegressor(max_depth=6).fit(X, y)
    background = X[1:]
    explainer = MeasureExplainer(model, "partial_dependence").fit(background)
    found = explainer.explain(background[:20]).values
    assert_allclose(
        found, by_definition(model.predict, background, background[:20]), atol=1e-14 * 1e8
    )


def test_uniform_on_a_range_that_float64_can_hardly_hold():
    X = np.linspace(-1, 1, 50)[:, None] * [1.0, 2.0]
    model = HistGradientBoostingRegressor(max_iter=5).fit(X, np.sign(X[:, 0]) + X[:, 1])
    values = [
        MeasureExplainer(model, Uniform(), domain={1: (-size, size)}).fit(X).explain(X).values
        for size in (1e300, 1.7e308)
    ]
    assert_allclose(*values, atol=1e-12)


def test_engines_chosen_at_fit_stay_for_batches():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 2))
    tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    whole = MeasureExplainer(tree, PartialDependence()).fit(X).explain(X)
    explainer = MeasureExplainer(tree, PartialDependence()).fit(X[:30])
    explainer.set_params(engine="finite_sum").partial_fit(X[30:])
    assert_allclose(explainer.explain(X).values, whole.values, atol=1e-13)


def test_a_domain_for_all_columns_leaves_levels_alone():
    X = pd.DataFrame({"a": np.linspace(0, 1, 60), "b": pd.Categorical(["x", "y", "z"] * 20)})
    model = HistGradientBoostingRegressor(max_iter=5).fit(X, X["a"] * (X["b"] == "x"))
    domain = np.array([[0.0, 1.0], [np.nan, np.nan]])
    given = MeasureExplainer(model, Uniform(), domain=domain).fit(X).explain(X)
    assert_allclose(given.values, MeasureExplainer(model, Uniform()).fit(X).explain(X).values)


def test_integers_that_float64_cannot_hold():
    X = (2**60 + np.arange(8) * 2**37)[:, None]
    model = DecisionTreeRegressor().fit(X, np.arange(8.0))
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    points = np.array([2**60 + 2**36 + 1, 2**60 + 2**36, 2**60 + 2**36 - 1])
    assert_array_equal(explainer.curve(0)(points), model.predict(points[:, None]))
    assert_array_equal(explainer.explain(points[:, None]).values[:, 0], explainer.curve(0)(points))


def test_signed_zeros_are_two_values():
    X = np.array([[0.0, 1.0], [-0.0, 1.0]], np.float32)
    explainer = MeasureExplainer(lambda Z: np.copysign(1.0, Z[:, 0])).fit(X)
    assert_array_equal(explainer.explain(X).values[:, 0], [1.0, -1.0])


def test_rows_of_weight_zero_are_never_shown_to_the_model():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 2))
    model = RandomForestRegressor(3, random_state=0).fit(X, X[:, 0])
    more = np.vstack([np.full((2, 2), np.inf), X])
    weight = np.r_[0.0, 0.0, np.ones(40)]
    with pytest.raises(ValueError, match="infinite"):
        MeasureExplainer(model, "partial_dependence").fit(more)
    for f in (model, model.predict):
        found = (
            MeasureExplainer(f, "partial_dependence")
            .fit(more, sample_weight=weight)
            .explain(X[:3])
            .values
        )
        assert_allclose(found, by_definition(model.predict, X, X[:3]))
