"""Work that is done by several workers: the same values, whichever joblib backend is active."""

import pytest

from tests.helpers.processes import run_code

pytestmark = pytest.mark.slow

IN_ORDER = """
import sys
import joblib
from skattr._utils.parallel import in_workers

with joblib.parallel_backend(sys.argv[1], n_jobs=2):
    found = list(in_workers((joblib.delayed(abs)(-k) for k in range(20)), 2))
assert found == list(range(20))
"""
BLACK_BOX = """
import sys
import joblib
import numpy as np
from sklearn.neighbors import KNeighborsRegressor
from skattr import MeasureExplainer

X = np.random.default_rng(0).normal(size=(30, 2))
model = KNeighborsRegressor(2).fit(X, X[:, 0])
wanted = MeasureExplainer(model).fit(X).explain(X[:4]).values
with joblib.parallel_backend(sys.argv[1], n_jobs=2):
    found = MeasureExplainer(model, n_jobs=2).fit(X).explain(X[:4]).values
np.testing.assert_array_equal(found, wanted)
"""


def check(code, backend):
    """Run code in a process of its own: forks must not meet the threads of other tests."""
    done = run_code(code, backend)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_results_keep_their_order(backend):
    check(IN_ORDER, backend)


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_a_black_box_in_workers(backend):
    check(BLACK_BOX, backend)
