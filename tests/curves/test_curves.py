"""Curves: functions of one column that engines return, added up, named and selected."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skattr import MeasureExplainer
from skattr.curves.by_code import Constant
from skattr.measures import Baseline, Conditional, Expectation, PartialDependence


def numbers(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(2)
    return X, np.sin(X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("sign", [-1.0, 2.0])
def test_estimated_constants_are_part_of_exact_curves(sign):
    """A uniform law behind a function that nothing is known of is estimated; the curve is exact."""
    X, y = numbers()
    steps = make_column_transformer((FunctionTransformer(np.sin), [1]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestRegressor(5, random_state=0)).fit(X, y)
    measure = PartialDependence() + sign * Expectation("uniform")
    explainer = MeasureExplainer(model, measure, random_state=0).fit(X)
    assert explainer.engine_ == ("one_violation", "quasi_monte_carlo") and not explainer.exact_
    values = explainer.explain(X).values
    assert explainer.curve(0).kind == "steps"
    for k in range(2):
        assert_array_equal(explainer.curve(k)(X[:, k]), values[:, k])


def test_one_output_of_several():
    X, y = numbers()
    classes = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    model = RandomForestClassifier(5, random_state=0).fit(X, classes)
    explainer = MeasureExplainer(model).fit(X)
    curve = explainer.curve(0)
    for o, name in enumerate(explainer.output_names_):
        for one in (curve.select(name), curve.select(o), explainer.curve(0, output=name)):
            assert one.output_names == (name,) and one.kind == curve.kind
            assert_array_equal(one(X[:, 0]), curve(X[:, 0])[:, o])
            assert_array_equal(one.to_frame()["value"], curve.to_frame()[f"value_{name}"])
            assert_array_equal(one.offset, curve.offset[[o]])
        assert one.select(0).output_names == (name,)
    with pytest.raises(ValueError, match="select: there is no output 'none'"):
        curve.select("none")


@pytest.mark.slow
def test_sums_of_lines():
    """Terms of one network: knots of both, and the constant of a third."""
    X, y = numbers()
    model = MLPRegressor(hidden_layer_sizes=(6, 4), random_state=0, max_iter=5)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        model.fit(X, y)
    measure = 2.0 * PartialDependence() - 0.5 * Conditional() + Baseline([0.0, 0.0])
    explainer = MeasureExplainer(model, measure).fit(X)
    curve = explainer.curve(0)
    assert curve.kind == "linear"
    frame = curve.to_frame()
    assert_allclose(curve(frame["x"]), frame["value"], rtol=1e-12)
    assert_array_equal(curve(X[:, 0]), explainer.explain(X).values[:, 0])


def test_levels():
    X = pd.DataFrame({"a": list("xyzx") * 10, "b": np.arange(40.0)})
    steps = make_column_transformer((OneHotEncoder(), ["a"]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestRegressor(5, random_state=0))
    explainer = MeasureExplainer(model.fit(X, X["b"] * (X["a"] == "x"))).fit(X)
    assert sorted(explainer.curve("a").levels) == ["x", "y", "z"]
    assert explainer.curve("b").levels is None


def test_constants_add_up():
    total = Constant(np.array([[1.0, 2.0]])) + 3.0 * Constant(np.array([[1.0, 0.0]]))
    assert_array_equal(total.at(None, np.zeros(2))[0], [[4.0, 2.0], [4.0, 2.0]])
