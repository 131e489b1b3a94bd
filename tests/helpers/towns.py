"""A table of numbers and towns, and preprocessing in front of models that are fitted on it."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

rng = np.random.default_rng(0)
N = 60
X = pd.DataFrame(
    {
        "age": rng.normal(40, 10, N).round(1),
        "size": rng.normal(size=N),
        "city": pd.Series(rng.choice(["Ulm", "Bonn", "Kiel"], N), dtype="str"),
        "code": rng.integers(1, 5, N),
    }
)
EFFECT = X["city"].map({"Ulm": 1.0, "Bonn": -2.0, "Kiel": 0.5}).to_numpy()
GAPS = X.assign(age=X["age"].mask(rng.random(N) < 0.2), city=X["city"].mask(rng.random(N) < 0.2))


def one_hot(**settings):
    return OneHotEncoder(**{"handle_unknown": "ignore", "sparse_output": False, **settings})


def imputed():
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())


PREPARATIONS = {
    "scaled": (lambda: make_column_transformer(
        (StandardScaler(), ["age", "size"]), (one_hot(), ["city"]), remainder="passthrough"), X),
    "gaps": (lambda: make_column_transformer(
        (imputed(), ["age"]), (StandardScaler(), ["size"]), (one_hot(), ["city", "code"])), GAPS),
    "sparse": (lambda: make_column_transformer(
        (one_hot(sparse_output=True), ["city", "code"]),
        (MinMaxScaler(clip=True), ["size", "age"]), sparse_threshold=1.0), X),
}  # fmt: skip
