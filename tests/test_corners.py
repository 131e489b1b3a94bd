"""Pipelines at their corners: what a hostile tester found wrong once."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

from skattr import MeasureExplainer
from skattr.measures import Expectation, ProductMarginal, Uniform


def forest():
    return RandomForestRegressor(5, random_state=0)


def objects(rng, values, n=60):
    column = np.empty(n, object)
    column[:] = [values[i] for i in rng.integers(len(values), size=n)]
    return pd.Series(column, dtype=object)


def agrees(pipeline, Z, X, name, tolerance=1e-10):
    """Compare one column's attributions with rows that have its values put in."""
    explainer = MeasureExplainer(pipeline).fit(Z)
    assert explainer.engine_ != ("finite_sum",), explainer.describe()
    found = explainer.explain(X, features=[name]).values[:, 0]
    dtype = X[name].dtype
    wanted = [
        pipeline.predict(Z.assign(**{name: pd.Series([v] * len(Z), dtype=dtype, index=Z.index)}))
        for v in X[name]
    ]
    np.testing.assert_allclose(found, np.mean(wanted, axis=1), rtol=0, atol=tolerance)
    np.testing.assert_allclose(explainer.curve(name)(X[name]), found, rtol=0, atol=1e-12)
    return explainer


@pytest.mark.parametrize("measure", [ProductMarginal(), Uniform(), Expectation("product")])
def test_products_on_sums(measure):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    members = [("trees", forest()), ("linear", LinearRegression())]
    vote = VotingRegressor(members).fit(X, X.a * X.b)
    parts = [MeasureExplainer(m, measure).fit(X).explain(X).values for m in vote.estimators_]
    found = MeasureExplainer(vote, measure).fit(X).explain(X).values
    np.testing.assert_allclose(found, np.mean(parts, axis=0), atol=1e-12)


@pytest.mark.parametrize(
    "encoder",
    [
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        OrdinalEncoder(encoded_missing_value=-7),
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(),
        TargetEncoder(cv=2),
    ],
)
def test_none_and_nan_in_one_column(encoder):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"o": objects(rng, ["a", "b", None, np.nan]), "a": rng.normal(size=60)})
    y = pd.factorize(X.o)[0] + np.array([v is None for v in X.o]) * 2 + X.a
    steps = make_column_transformer((encoder, ["o"]), remainder="passthrough")
    pipeline = make_pipeline(steps, forest()).fit(X, y)
    agrees(pipeline, X, X, "o")
    agrees(pipeline, X[[isinstance(v, str) for v in X.o]], X, "o")


def as_words(frame):
    return frame.astype(str)


@pytest.mark.parametrize("values", [[1, "u", True], [np.nan, "u", pd.NA], ["u", 1, 1.0]])
@pytest.mark.parametrize("model", [forest(), LinearRegression()])
def test_values_that_are_equal_but_not_the_same(values, model):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"o": objects(rng, values), "a": rng.normal(size=60)})
    y = X.o.map(lambda v: len(str(v))) * 3 + X.a
    words = make_pipeline(FunctionTransformer(as_words), OneHotEncoder())
    steps = make_column_transformer((words, ["o"]), remainder="passthrough")
    pipeline = make_pipeline(steps, model).fit(X, y)
    agrees(pipeline, X, X, "o")
    agrees(pipeline, X[[type(v) is not type(values[2]) for v in X.o]], X, "o")


@pytest.mark.parametrize(
    "step",
    [
        "passthrough",
        make_pipeline(SimpleImputer(add_indicator=True), MinMaxScaler()),
        make_union(StandardScaler(), MinMaxScaler()),
    ],
)
def test_a_zero_that_is_absent_is_missing_to_xgboost(step):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=60).round(0),
            "b": np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60)),
            "s": rng.choice(["x", "y", "z"], 60),
        }
    )
    y = X.a + (X.s == "x") * 2 + X.b.fillna(3) + (X.a == 0) * 2
    steps = ColumnTransformer(
        [("o", OneHotEncoder(), ["s"]), ("n", step, ["a", "b"])], sparse_threshold=1.0
    )
    boosted = xgboost.XGBRegressor(n_estimators=8, max_depth=4, min_child_weight=0, n_jobs=1)
    pipeline = make_pipeline(steps, boosted).fit(X, y)
    for name in ("a", "b"):
        agrees(pipeline, X, X, name, tolerance=1e-5)
        agrees(pipeline, X[X.a != 0], X, name, tolerance=1e-5)


@pytest.mark.parametrize("encode", ["onehot-dense", "ordinal"])
def test_bins_of_float32(encode):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=list("ab"))
    bins = KBinsDiscretizer(
        4, encode=encode, dtype=np.float32, quantile_method="averaged_inverted_cdf"
    )
    agrees(make_pipeline(bins, forest()).fit(X, X.a * X.b), X, X, "a")


def test_a_number_that_means_missing_is_a_row_of_the_curve():
    rng = np.random.default_rng(0)
    a = np.where(rng.random(60) < 0.3, -999.0, rng.normal(size=60))
    X = pd.DataFrame({"a": a, "b": rng.normal(size=60)})
    steps = SimpleImputer(missing_values=-999, strategy="median")
    pipeline = make_pipeline(steps, forest()).fit(X, np.where(a < -9, 5, a) + X.b)
    curve = agrees(pipeline, X, X, "a").curve("a").to_frame()
    (row,) = curve[curve.upper == -999].index[-1:]
    assert curve.value[row] == MeasureExplainer(pipeline).fit(X).curve("a")([-999.0])[0]
