"""What a fitted explainer keeps: no sums that can be had again, and no digits that mean nothing."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor

from skattr import MeasureExplainer
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
MODELS = {
    "forest": RandomForestRegressor(10, random_state=0).fit(X, Y),
    "boosting": HistGradientBoostingRegressor(max_iter=10, random_state=0).fit(X, Y),
    "black box": KNeighborsRegressor(3).fit(X[:50], Y[:50]),
}


def test_a_code_takes_20_bytes():
    """An edge and two errors in float32, and a value."""
    model = MODELS["forest"]
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    n_codes = explainer.pieces_.grid.offset[-1]
    size = len(pickle.dumps(explainer)) - len(pickle.dumps(model)) - X.nbytes
    assert n_codes > 1000
    assert size < 20 * n_codes + 6000


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_a_pickle_keeps_every_bit(model):
    explainer = MeasureExplainer(MODELS[model]).fit(X)
    again = pickle.loads(pickle.dumps(explainer))
    rows = RNG.normal(size=(99, 3))
    one, other = explainer.explain(rows), again.explain(rows)
    for name in ("values", "background_error", "centered_background_error"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == np.float64
    np.testing.assert_array_equal(explainer.curve(0)(rows[:, 0]), again.curve(0)(rows[:, 0]))


@pytest.mark.parametrize("folds", quickly([0, "auto"], ["auto"]))
@pytest.mark.parametrize("model", quickly(MODELS, ["boosting"]))
def test_more_rows_after_fit(model, folds):
    """The sums of `fit` are made again from the rows that it kept, also after a pickle."""
    weights = RNG.random(300)
    whole = MeasureExplainer(MODELS[model], folds=folds).fit(X, sample_weight=weights)
    parts = MeasureExplainer(MODELS[model], folds=folds).fit(X[:100], sample_weight=weights[:100])
    parts = pickle.loads(pickle.dumps(parts))
    parts.partial_fit(X[100:200], sample_weight=weights[100:200])
    parts.partial_fit(X[200:], sample_weight=weights[200:])
    np.testing.assert_allclose(parts.explain(X).values, whole.explain(X).values, atol=1e-12)


@pytest.mark.parametrize("size", [2.0**200, 2.0**-200])
def test_errors_beyond_float32_keep_their_range(size):
    plain = RandomForestRegressor(3, random_state=0).fit(X, Y)
    scaled = copy.deepcopy(plain)
    for tree in scaled.estimators_:
        tree.tree_.value[:] *= size
    errors = MeasureExplainer(plain).fit(X).explain(X[:9]).background_error
    found = MeasureExplainer(scaled).fit(X).explain(X[:9]).background_error
    assert (errors > 0).any()
    np.testing.assert_allclose(found, size * errors, rtol=1e-6)
