"""Models, rows and comparisons for frames in parts."""

from functools import cache

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from skattr import MeasureExplainer
from skattr.datasets import make_flats
from skattr.measures import Shapley

GROUPS = {"place": ["district", "built"]}
NUMBERS = ["area", "rooms", "built"]


def flats(n=400, seed=0):
    """Return raw columns that every kind of frame holds alike: numbers, text, missing values."""
    X, y = make_flats(n, random_state=seed)
    X = X[["area", "rooms", "built", "district", "balcony"]]
    return X.assign(district=X["district"].astype("str")), y


def pipeline():
    """Return a pipeline of raw columns with categories and missing values."""
    columns = make_column_transformer(
        (SimpleImputer(), ["area", "built"]),
        (OneHotEncoder(handle_unknown="ignore"), ["district"]),
        (OrdinalEncoder(), ["balcony"]),
        ("passthrough", ["rooms"]),
    )
    return make_pipeline(columns, RandomForestRegressor(5, max_depth=4, random_state=0))


@cache
def cases():
    """Return name → (explainer, rows): forests, boosting, pipelines, classes, groups, Shapley."""
    X, y = flats()
    Z = X[NUMBERS].fillna(1990.0)
    kinds = pd.qcut(y, 3, labels=["low", "middle", "high"]).astype(str)
    # frozen: clones of an explainer keep them fitted
    forest = RandomForestRegressor(5, max_depth=4, random_state=0).fit(Z, y)
    classes = RandomForestClassifier(5, max_depth=4, random_state=0).fit(Z, kinds)
    boosted = HistGradientBoostingRegressor(max_iter=10, random_state=0).fit(X[NUMBERS], y)
    steps = pipeline().fit(X, y)
    return {
        "forest": (MeasureExplainer(FrozenEstimator(forest)), Z),
        "boosting with missing values": (MeasureExplainer(FrozenEstimator(boosted)), X[NUMBERS]),
        "pipeline of raw columns": (MeasureExplainer(FrozenEstimator(steps)), X),
        "classes": (MeasureExplainer(FrozenEstimator(classes)), Z),
        "groups": (
            MeasureExplainer(FrozenEstimator(steps), groups={"place": ["district", "built"]}),
            X,
        ),
        "Shapley": (MeasureExplainer(FrozenEstimator(forest), Shapley()), Z),
        "uniform": (MeasureExplainer(FrozenEstimator(steps), "uniform"), X),
    }


def cut(X, n_parts, rng):
    """Cut rows into uneven parts, some of them empty."""
    ends = np.sort(rng.integers(0, len(X) + 1, n_parts - 1))
    return [X.iloc[a:b] for a, b in zip([0, *ends], [*ends, len(X)], strict=True)]


def assert_same_fit(fitted, whole, X):
    """Two explainers are equal up to rounding."""
    a, b = fitted.explain(X), whole.explain(X)
    size = np.abs(b.values).max()
    np.testing.assert_allclose(a.values, b.values, rtol=1e-9, atol=1e-11 * size)
    np.testing.assert_allclose(a.base_value, b.base_value, rtol=1e-11)
    assert fitted.n_background_ == whole.n_background_
    assert fitted.engine_ == whole.engine_ and fitted.output_names_ == whole.output_names_


def expected(explainer, X):
    """Return the columns that an explained frame must have, bit for bit."""
    explanation = explainer.explain(X)
    outputs = explanation.output_names
    columns = {}
    for output in outputs:
        one = explanation.select(output)
        lead = f"{output}__" if len(outputs) > 1 else ""
        columns[f"{lead}prediction"] = np.asarray(one.predictions)
        columns[f"{lead}base_value"] = np.full(len(X), one.base_value)
        frame = one.to_frame()
        columns |= {f"{lead}{name}": frame[name].to_numpy() for name in frame}
    return pd.DataFrame(columns, index=X.index)
