"""Small models of the boosting libraries, and a frame for them."""

import numpy as np
import pandas as pd
import pytest


def make_frame(seed=0, n=150):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "c": pd.Categorical(np.array(["u", "v", "w"])[rng.integers(3, size=n)]),
            "s": np.array(["x", "y", "z", "t"])[rng.integers(4, size=n)],
        }
    )
    y = X.a * (X.s == "x") + X.b.fillna(1) + X.c.cat.codes + rng.normal(size=n) / 10
    return X, y.to_numpy()


def models(library):
    """Yield a name, an unfitted regressor and an unfitted classifier."""
    if library == "xgboost":
        xgb = pytest.importorskip("xgboost")
        options = {"n_estimators": 12, "max_depth": 3, "n_jobs": 1}
        return xgb.XGBRegressor(**options), xgb.XGBClassifier(**options)
    if library == "lightgbm":
        lgb = pytest.importorskip("lightgbm")
        options = {"n_estimators": 12, "min_child_samples": 3, "n_jobs": 1, "verbose": -1}
        return lgb.LGBMRegressor(**options), lgb.LGBMClassifier(**options)
    catboost = pytest.importorskip("catboost")
    options = {"iterations": 12, "depth": 3, "verbose": 0, "thread_count": 1}
    options["allow_writing_files"] = False
    return catboost.CatBoostRegressor(**options), catboost.CatBoostClassifier(**options)


LIBRARIES = ["xgboost", "lightgbm", "catboost"]
