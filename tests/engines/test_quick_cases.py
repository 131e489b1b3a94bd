"""A quick case of each engine whose own tests are all slow."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

from skattr import MeasureExplainer
from skattr.measures import Conditional, Removal, Uniform
from tests.helpers.case import Case, proba
from tests.helpers.comparison import same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]

FOREST = RandomForestRegressor(3, max_leaf_nodes=5, random_state=0)
NETWORK = MLPRegressor(hidden_layer_sizes=(4,), max_iter=20, random_state=0)
MIXTURE = Conditional("gmm", n_components=2)
ENGINES = {
    "box_mixture": (FOREST, MIXTURE),
    "mixed_products": (SVR(), MIXTURE),
    "one_layer_uniform": (NETWORK, Uniform()),
    "one_layer_normal": (NETWORK, Conditional("gaussian")),
    "polytopes": (clone(NETWORK).set_params(hidden_layer_sizes=(3, 2)), Uniform()),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ENGINES)
def test_exact_values_are_what_sampling_estimates(name):
    model, measure = ENGINES[name]
    exact = MeasureExplainer(model.fit(X, Y), measure).fit(X)
    assert exact.engine_ == (name,) and exact.exact_
    sampled = MeasureExplainer(
        model, measure, engine="quasi_monte_carlo", tol=0.02, random_state=0
    ).fit(X)
    wanted = sampled.explain(X[:3])
    assert wanted.std_error.max() < 0.1 * Y.std()
    off = np.abs(exact.explain(X[:3]).values - wanted.values)
    assert (off <= 5 * wanted.std_error + 1e-9).all()


def test_removal_behind_a_link():
    model = GradientBoostingClassifier(n_estimators=3, max_depth=2).fit(X, Y > 0)
    case = Case(model, partial(proba, model), X, X[:5])
    explainer, _ = same(case, Removal(), output="proba")
    assert explainer.engine_ == ("linked_removal",)
