"""skrub's TableVectorizer in front of trees, on raw columns."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline

from skattr import MeasureExplainer
from skattr.datasets import load_flats
from tests.helpers.comparison import by_definition

pytestmark = pytest.mark.slow
skrub = pytest.importorskip("skrub")


def test_raw_columns():
    X, y = load_flats()
    pipeline = make_pipeline(skrub.TableVectorizer(), HistGradientBoostingRegressor(max_iter=20))
    pipeline.fit(X, y)
    Z = X[:40]
    explainer = MeasureExplainer(pipeline, "partial_dependence").fit(Z)
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    values = explainer.explain(X[40:44]).values
    wanted = by_definition(pipeline.predict, Z, X[40:44])
    assert np.abs(values - wanted).max() < 1e-10 * y.std()
    assert explainer.curve("district").kind == "levels"
    assert explainer.curve("area").kind == "steps"
    assert explainer.curve("listed").kind == "function"
