"""Work that is done by several workers: the same values, whichever joblib backend is active."""

import joblib
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from skattr import MeasureExplainer
from skattr._utils.parallel import in_workers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_results_keep_their_order(backend):
    with joblib.parallel_backend(backend, n_jobs=2):
        found = list(in_workers((joblib.delayed(abs)(-k) for k in range(20)), 2))
    assert found == list(range(20))


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_a_black_box_in_workers(backend):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = KNeighborsRegressor(2).fit(X, X[:, 0])
    wanted = MeasureExplainer(model).fit(X).explain(X[:4]).values
    with joblib.parallel_backend(backend, n_jobs=2):
        found = MeasureExplainer(model, n_jobs=2).fit(X).explain(X[:4]).values
    np.testing.assert_array_equal(found, wanted)
