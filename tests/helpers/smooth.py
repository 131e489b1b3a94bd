"""Linear models, kernel machines and networks behind preprocessing, on frames of numbers and words.

`behind_steps` builds a random case of any of them for `cases.py`. `X`, `GAPS` and `TARGETS` are one
such frame, for tests of models of their own.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

from tests.helpers.case import EVERYTHING, Case, seed_of

N_TRAIN = 60
EFFECTS = {"Ulm": 1.0, "Bonn": -2.0, "Kiel": 0.5}
RARE = "never seen in training"
NUMBERS = ["age", "size", "code"]


# -- data ----------------------------------------------------------------------------------------


def frame(rng, n):
    """Two columns of numbers, one of words and one of codes."""
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(1),
            "size": rng.normal(size=n),
            "city": pd.Series(rng.choice([*EFFECTS], n), dtype="str"),
            "code": rng.integers(1, 5, n),
        }
    )


def with_gaps(rng, X):
    """Missing numbers and words, but not in the first row."""
    gone = rng.random((2, len(X))) < 0.2
    gone[:, 0] = False
    return X.assign(age=X["age"].mask(gone[0]), city=X["city"].mask(gone[1]))


def targets(X):
    """What a model can be fitted to."""
    age, size, code = X[NUMBERS].to_numpy(float).T
    score = 0.1 * age * X["city"].map(EFFECTS).to_numpy() + size**2 + 0.3 * code
    thirds = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3]))
    return {
        "number": score,
        "positive": np.exp(0.2 * score),
        "binary": np.where(score > np.median(score), "yes", "no"),
        "classes": np.array(["low", "mid", "high"])[thirds],
        "targets": np.stack([score, size - score, age], axis=1),
    }


_rng = np.random.default_rng(0)
X = frame(_rng, N_TRAIN)
GAPS = with_gaps(_rng, X)
TARGETS = targets(X)


# -- preprocessing -------------------------------------------------------------------------------


def one_hot(**settings):
    """An encoder that takes levels it does not know."""
    return OneHotEncoder(**{"handle_unknown": "ignore", "sparse_output": False, **settings})


def imputed():
    """Numbers that may be missing, and whether they are."""
    return make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())


def knots(columns):
    """The numbers where splines of age and size are glued together."""
    splines = columns.named_transformers_["splinetransformer"]
    return [*(sorted(set(spline.t)) for spline in splines.bsplines_), [], []]


def bounds(columns):
    """The numbers where a scaler starts to clip size and age."""
    scaler = columns.named_transformers_["minmaxscaler"]
    size, age = np.stack([scaler.data_min_, scaler.data_max_], axis=1).tolist()
    return [age, size, [], []]


@dataclass
class Steps:
    """One preprocessing."""

    make: Callable
    columns: tuple = ("age", "size", "city", "code")
    gaps: bool = False  # it takes missing values
    levels: tuple = (3,)  # columns of numbers that it encodes as levels
    bends: Callable | None = None  # fitted steps -> for each column where they are not smooth
    nodes: int = 1  # with which Gauss-Legendre sums between bends are exact


def nowhere(columns):
    """No bends."""
    return [[]] * columns.n_features_in_


STEPS = {
    "numbers": Steps(StandardScaler, tuple(NUMBERS), levels=(), bends=nowhere),
    "scaled": Steps(lambda: make_column_transformer(
        (StandardScaler(), ["age", "size"]), (one_hot(), ["city"]), remainder="passthrough"),
        levels=(), bends=nowhere),
    "gaps": Steps(lambda: make_column_transformer(
        (imputed(), ["age"]), (StandardScaler(), ["size"]), (one_hot(), ["city", "code"])),
        gaps=True, bends=nowhere),
    "sparse": Steps(lambda: make_column_transformer(
        (one_hot(sparse_output=True), ["city", "code"]),
        (MinMaxScaler(clip=True), ["size", "age"]), sparse_threshold=1.0), bends=bounds),
    "splines": Steps(lambda: make_column_transformer(
        (SplineTransformer(4), ["age", "size"]), (one_hot(), ["code", "city"])),
        bends=knots, nodes=2),
    "curved": Steps(lambda: make_column_transformer(
        (SplineTransformer(4), ["age"]), (QuantileTransformer(n_quantiles=9), ["size"]),
        (one_hot(), ["code", "city"]))),
}  # fmt: skip
DENSE = [name for name in STEPS if name != "sparse"]


# -- cases ---------------------------------------------------------------------------------------


def fit(steps, model, X, y):
    """A pipeline; a model need not be good to be explained."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(STEPS[steps].make(), model).fit(X, y)


def behind_steps(make, f, target, rng, steps=STEPS, over=EVERYTHING, nodes=1):
    """A random case of a model behind some preprocessing.

    `nodes` is 1 for a model that is linear in what the steps give it. Where it is not, integrals
    over boxes are left to steps without bends: the sums between bends would be long.
    """
    name = steps if isinstance(steps, str) else str(rng.choice([*steps]))
    how = STEPS[name]
    model = make()
    if "random_state" in model.get_params():
        model.set_params(random_state=seed_of(rng))

    def rows(rng, n, unseen=True):
        X = frame(rng, n)
        if unseen:
            X["city"] = X["city"].mask(rng.random(n) < 0.2, RARE)
        return (with_gaps(rng, X) if how.gaps else X)[[*how.columns]]

    train = frame(rng, N_TRAIN)
    y = targets(train)[target]
    train = (with_gaps(rng, train) if how.gaps else train)[[*how.columns]]
    estimator = fit(name, model, train, y)
    bends = how.bends and how.bends(estimator[0])
    if nodes > 1 and bends is not None and any(bends):
        bends = None
    n, m = (int(rng.choice([1, 3, 4, 5, 5])) for _ in range(2))
    return Case(
        estimator,
        partial(f, estimator),
        rows(rng, n),
        rows(rng, m),
        set(how.levels),
        draw=rows,
        breaks=bends,
        nodes=max(nodes, how.nodes),
        over=over,
    )
