"""Trees and linear models in one estimator: exact, each by its own engine."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, VotingClassifier

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence, ProductMarginal
from tests.helpers.comparison import by_definition
from tests.helpers.votes import MODELS, X, Y

MEASURES = {
    "rows": PartialDependence(),
    "centred": PartialDependence() - Expectation(),
    "products": ProductMarginal() + 2 * PartialDependence(),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(X, Y) for name, model in MODELS.items()}


@pytest.mark.slow
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
    wanted = by_definition(model.predict, X[:8], X[8:14], MEASURES[measure], weights, own)
    np.testing.assert_allclose(found.values, wanted, rtol=0, atol=1e-10 * Y.std())
    np.testing.assert_allclose(found.predictions, model.predict(X[8:14]), atol=1e-12)
    again = pickle.loads(pickle.dumps(explainer)).explain(X[8:14])
    np.testing.assert_array_equal(again.values, found.values)


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


def test_soft_votes_of_unlike_classifiers_are_a_sum_behind_links():
    from sklearn.linear_model import LogisticRegression

    few = X[["a", "b"]]
    model = VotingClassifier(
        [("a", LogisticRegression()), ("b", RandomForestClassifier(3, random_state=0))],
        voting="soft",
    ).fit(few, Y > 1)
    explainer = MeasureExplainer(model, PartialDependence()).fit(few)
    assert "boxes" in explainer.describe() and "logistic" in explainer.describe()
    wanted = by_definition(lambda Z: model.predict_proba(Z)[:, 1], few, few[:6])
    np.testing.assert_allclose(explainer.explain(few[:6]).values, wanted, atol=1e-12)
