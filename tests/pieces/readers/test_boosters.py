"""The boosting libraries from end to end: attributions against their own predictions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence
from tests.helpers.boosters import LIBRARIES, make_frame, models
from tests.helpers.comparison import by_definition


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("sparse", [False, True])
def test_behind_a_pipeline(library, sparse):
    X, y = make_frame()
    regressor, classifier = models(library)
    steps = make_column_transformer(
        (StandardScaler(), ["a", "b"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=sparse), ["c", "s"]),
        sparse_threshold=1.0 if sparse else 0.0,
    )
    pipeline = make_pipeline(steps, regressor).fit(X, y)
    explainer = MeasureExplainer(pipeline, "partial_dependence").fit(X[:30])
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    explanation = explainer.explain(X[30:36])
    wanted = by_definition(pipeline.predict, X[:30], X[30:36])
    tolerance = 1e-10 if library != "xgboost" else 1e-5
    np.testing.assert_allclose(explanation.values, wanted, rtol=0, atol=tolerance * wanted.std())
    for name in X:
        held = explainer.curve(name)(X[name].iloc[30:36])
        np.testing.assert_allclose(held, explanation.values[:, list(X).index(name)], atol=1e-12)
    assert {"t", "x", "y", "z"} <= set(explainer.curve("s").to_frame().level)

    pipeline = make_pipeline(steps, classifier).fit(X, y > 1)
    explanation = MeasureExplainer(pipeline, "partial_dependence").fit(X[:30]).explain(X[30:33])
    assert explanation.engine == ("one_violation",)
    proba = pipeline.predict_proba(X[30:33])[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-explanation.predictions)), proba, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_native_and_multiclass(library):
    X, y = make_frame()
    X = X[["a", "b"]].to_numpy()
    regressor, classifier = models(library)
    labels = np.digitize(y, [0.5, 1.5])
    classifier.fit(X, labels)
    explainer = MeasureExplainer(classifier, PartialDependence() - Expectation()).fit(X)
    values = explainer.explain(X[:5]).values
    assert values.shape == (5, 2, 3) and explainer.output_names_ == ["0", "1", "2"]
    regressor.fit(X, y)
    native = {"xgboost": "get_booster", "lightgbm": "booster_"}.get(library)
    if native is not None:
        booster = getattr(regressor, native)
        booster = booster() if callable(booster) else booster
        for output in ("auto", "raw", "predict"):
            found = MeasureExplainer(booster, "partial_dependence", output=output).fit(X)
            assert found.engine_ == ("one_violation",)
            wanted = MeasureExplainer(regressor, "partial_dependence").fit(X).explain(X[:5]).values
            np.testing.assert_allclose(found.explain(X[:5]).values, wanted, atol=1e-12)


def test_catboost_names_levels_from_the_background():
    catboost = pytest.importorskip("catboost")
    X, y = make_frame()
    X = X.assign(c=X.c.astype(str))
    model = catboost.CatBoostRegressor(
        iterations=12, one_hot_max_size=9, cat_features=["c", "s"], verbose=0,
        allow_writing_files=False,
    ).fit(X, y)  # fmt: skip
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    curve = explainer.curve("s").to_frame()
    assert sorted(curve.level) == ["any other", "t", "x", "y", "z"]
    wanted = by_definition(model.predict, X, X[:4])
    np.testing.assert_allclose(explainer.explain(X[:4]).values, wanted, atol=1e-10)


def test_xgboost_and_lightgbm_values_that_mean_missing():
    xgb, lgb = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    X, y = make_frame()
    X = X[["a", "b"]].fillna(-1.0).round(0)
    for model in (
        xgb.XGBRegressor(n_estimators=9, max_depth=3, missing=-1.0),
        lgb.LGBMRegressor(n_estimators=9, min_child_samples=3, zero_as_missing=True, verbose=-1),
    ):
        model.fit(X, y)
        explainer = MeasureExplainer(model, "partial_dependence").fit(X)
        assert explainer.engine_ == ("one_violation",)
        wanted = by_definition(model.predict, X, X[:9])
        np.testing.assert_allclose(explainer.explain(X[:9]).values, wanted, atol=1e-5)
        np.testing.assert_allclose(explainer.curve("a")(X.a[:9]), wanted[:, 0], atol=1e-5)


def members_that_differ(library):
    """Yield ensembles whose members do not take the same numbers for missing."""
    if library == "xgboost":
        regressor = pytest.importorskip("xgboost").XGBRegressor
        options = {"n_estimators": 5, "max_depth": 3, "n_jobs": 1}
        yield VotingRegressor([(str(m), regressor(missing=m, **options)) for m in (0.0, -1.0)])
        for order in (1, -1):  # an absent entry is missing to one of them, and 0 to the other
            forest = RandomForestRegressor(5, max_depth=4, random_state=0)
            members = [("a", regressor(**options)), ("b", forest)][::order]
            yield make_pipeline(OneHotEncoder(handle_unknown="ignore"), VotingRegressor(members))
    else:
        regressor = pytest.importorskip("lightgbm").LGBMRegressor
        options = {"n_estimators": 1, "num_leaves": 3, "min_child_samples": 3, "verbose": -1}
        member = regressor(zero_as_missing=True, n_jobs=1, **options)
        for seed in (0, 1, 3):  # members that do not split on a column know nothing of its zeros
            yield BaggingRegressor(member, 6, max_samples=0.15, random_state=seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # Bagging passes arrays
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_members_that_take_different_numbers_for_missing(library):
    for seed, model in enumerate(members_that_differ(library)):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.integers(-3, 4, (300, 4)).astype(float), columns=list("abcd"))
        y = X.a.abs() + X.b.abs() + X.c + 3 * (X.d == 0)
        model.fit(X, y)
        background = X[~X.isin([0.0, -1.0]).any(axis=1)][:15]  # no refutation
        explainer = MeasureExplainer(model, PartialDependence()).fit(background)
        assert "boxes" in explainer.describe()
        explained = X[X.isin([0.0, -1.0]).all(axis=1) | (X.index < 8)]
        np.testing.assert_allclose(
            explainer.explain(explained).values,
            by_definition(model.predict, background, explained),
            rtol=1e-5,
            atol=1e-5,
        )
