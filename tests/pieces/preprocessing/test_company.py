"""Steps that look at all rows are refused by name; those that do not are not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.impute import KNNImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skattr import MeasureExplainer

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(1e3, 1, size=(300, 3)), columns=list("abc"))
X.loc[271, "b"] = np.nan  # one row among many
FULL = X.fillna(1e3)
Y = FULL.a * 2 + FULL.b


def fill(X):
    return X.fillna(X.mean())


def fill_with_the_median(X):
    return X.fillna(X.median())


def rank(X):
    return X.rank()


def z_score(X):
    return (X - X.mean()) / X.std()


def by_the_largest(X):
    return X / X.max()


LOOKING = [fill, fill_with_the_median, rank, z_score, by_the_largest]


@pytest.mark.parametrize("function", LOOKING)
def test_steps_that_look_at_all_rows_are_refused(function):
    step = FunctionTransformer(function)
    pipelines = {
        "functiontransformer": make_pipeline(step, HistGradientBoostingRegressor(max_iter=5)),
        "functiontransformer-": make_pipeline(
            make_column_transformer((step, ["a"]), (step, ["b"]), remainder="passthrough"),
            HistGradientBoostingRegressor(max_iter=5),
        ),
        "looks": make_pipeline(
            FeatureUnion([("looks", step)]), HistGradientBoostingRegressor(max_iter=5)
        ),
    }
    for name, pipeline in pipelines.items():
        model = pipeline.fit(X, Y)
        with pytest.raises(ValueError, match=rf"step '{name}.*{function.__name__}.*SimpleImputer"):
            MeasureExplainer(model).fit(X)
    vote = VotingRegressor([("one", pipelines["looks"]), ("two", Ridge())]).fit(FULL, Y)
    if function not in (fill, fill_with_the_median):
        with pytest.raises(ValueError, match=function.__name__):
            MeasureExplainer(vote).fit(FULL)


def twice(X):
    return X * 2 + np.sin(X)


class Centred(StandardScaler):
    """A class of the user's own that learns in fit."""


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(twice),
        FunctionTransformer(np.log),
        FunctionTransformer(lambda X: np.asarray(X) @ np.ones((3, 2))),
        FunctionTransformer(lambda X: np.asarray(X, np.float32) @ np.ones((3, 2), np.float32)),
        PCA(2),
        KNNImputer(),
        Centred(),
    ],
)
def test_others_are_not(step):
    model = make_pipeline(step, RandomForestRegressor(3, random_state=0)).fit(FULL, Y)
    MeasureExplainer(model).fit(FULL[:10])
