"""Trees and linear models in one estimator: exact, each by its own engine."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence, ProductMarginal

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": RNG.normal(size=60),
        "b": RNG.integers(0, 5, 60).astype(float),
        "c": np.array(["u", "v", "w"])[RNG.integers(3, size=60)],
    }
)
Y = (X.a * (X.c == "u") + X.b).to_numpy()


def steps(number=None):
    return make_column_transformer(
        (number or StandardScaler(), ["a", "b"]), (OneHotEncoder(handle_unknown="ignore"), ["c"])
    )


def members():
    linear = make_pipeline(steps(), Ridge())
    trees = make_pipeline(steps(), RandomForestRegressor(5, random_state=0))
    return [("linear", linear), ("trees", trees)]


MODELS = {
    "voting": VotingRegressor(members(), weights=[1, 3]),
    "stacking": StackingRegressor(members(), final_estimator=LinearRegression()),
    "open": make_pipeline(
        steps(SplineTransformer(n_knots=3)),
        VotingRegressor([("a", Ridge()), ("b", RandomForestRegressor(3, random_state=0))]),
    ),
    "inside": make_pipeline(
        make_column_transformer((OneHotEncoder(sparse_output=False), ["c"]),
                                remainder="passthrough"),
        StackingRegressor(
            [("hist", HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3))],
            final_estimator=Ridge(), passthrough=True,
        ),
    ),
}  # fmt: skip
MEASURES = {
    "rows": PartialDependence(),
    "centred": PartialDependence() - Expectation(),
    "products": ProductMarginal() + 2 * PartialDependence(),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(X, Y) for name, model in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("groups", [None, {"both": ["a", "c"]}])
def test_equals_the_definition(fitted, name, measure, groups):
    model = fitted[name]
    weights = np.arange(1.0, 9.0)
    explainer = MeasureExplainer(model, MEASURES[measure], groups=groups).fit(
        X[:8], sample_weight=weights
    )
    assert set(explainer.engine_) == {"addends"}, explainer.describe()
    found = explainer.explain(X[8:14])
    own = [(0,), (1,), (2,)] if groups is None else [(0, 2), (1,)]
    wanted = sum(
        c * brute(model.predict, X[:8], weights, X[8:14], own, type(m).__name__)
        for c, m in getattr(MEASURES[measure], "terms", [(1.0, MEASURES[measure])])
    )
    np.testing.assert_allclose(found.values, wanted, rtol=0, atol=1e-10 * Y.std())
    np.testing.assert_allclose(found.predictions, model.predict(X[8:14]), atol=1e-12)
    again = pickle.loads(pickle.dumps(explainer)).explain(X[8:14])
    np.testing.assert_array_equal(again.values, found.values)


def brute(f, Z, weights, X, own, kind):
    """The definition: rows with the own values put in, or all combinations of the others."""
    shares = weights / weights.sum()
    n, d = Z.shape
    columns = [Z.iloc[:, k] for k in range(d)]
    result = np.empty((len(X), len(own)))
    for i in range(len(X)):
        for j, mine in enumerate(own):
            if kind == "ProductMarginal":
                index = np.stack(np.meshgrid(*[np.arange(n)] * d), axis=-1).reshape(-1, d)
                index = np.unique(np.where(np.isin(np.arange(d), mine), 0, index), axis=0)
                others = [k for k in range(d) if k not in mine]
                w = np.prod(shares[index[:, others]], axis=1)
            else:
                index = np.tile(np.arange(n)[:, None], (1, d))
                w = shares
            point = pd.DataFrame(
                {
                    name: columns[k].to_numpy()[index[:, k]]
                    if k not in mine or kind == "Expectation"
                    else np.full(len(index), X.iloc[i, k])
                    for k, name in enumerate(Z)
                }
            )
            result[i, j] = w @ f(point)
    return result


def test_batches_and_curves(fitted):
    explainer = MeasureExplainer(fitted["voting"])
    explainer.partial_fit(X[:5]).partial_fit(X[5:20])
    whole = MeasureExplainer(fitted["voting"]).fit(X[:20])
    values = whole.explain(X[:6]).values
    np.testing.assert_allclose(explainer.explain(X[:6]).values, values, atol=1e-12)
    for k, name in enumerate(X):
        np.testing.assert_allclose(whole.curve(name)(X[name][:6]), values[:, k], atol=1e-12)
    assert list(whole.curve("c").to_frame().level) == ["u", "v", "w", "missing", "any other"]
    with pytest.raises(ValueError, match="'a'"):
        MeasureExplainer(fitted["open"]).partial_fit(X)


def test_soft_votes_of_classifiers_stay_black_boxes_with_a_reason():
    from sklearn.linear_model import LogisticRegression

    model = VotingClassifier(
        [("a", LogisticRegression()), ("b", RandomForestClassifier(3, random_state=0))],
        voting="soft",
    ).fit(X[["a", "b"]], Y > 1)
    explainer = MeasureExplainer(model).fit(X[["a", "b"]])
    assert "black box" in explainer.describe() and "LogisticRegression" in explainer.describe()
