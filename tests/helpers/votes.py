"""Trees and linear models in one estimator, on a frame of numbers and words."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

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
