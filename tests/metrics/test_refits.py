"""Refits: each is the estimator fitted on a bootstrap sample, the same for any number of jobs."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from skattr import MeasureExplainer
from skattr.metrics import refit, stability

RNG = np.random.default_rng(0)
N = 60
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": RNG.normal(size=N),
        "word": np.array(list("uvw"))[np.arange(N) % 3],
    },
    index=np.zeros(N, int),  # duplicated
)
Y = (X["a"] + (X["word"] == "u") + 0.1 * RNG.normal(size=N)).to_numpy()
NUMBERS = X[["a", "b"]]


class Records(RegressorMixin, BaseEstimator):
    """A regressor that keeps what it was fitted on; its random_state is what it predicts."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weights_ = X, y, sample_weight
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), float(self.random_state or 0))


def pipeline():
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["word"]), remainder="passthrough"
    )
    return make_pipeline(encode, RandomForestRegressor(4, max_depth=3))


def same(a, b, data):
    for one, two in zip(a, b, strict=True):
        np.testing.assert_array_equal(one.explain(data).values, two.explain(data).values)


def numbered():
    """Rows that say which they are."""
    return np.column_stack([np.arange(N), RNG.normal(size=N)]), np.arange(N) * 10.0


@pytest.mark.slow
def test_samples_are_drawn_with_replacement_and_are_the_background():
    Z, y = numbered()
    found = refit(MeasureExplainer(Records()), Z, y, n_refits=300, random_state=0)
    assert len(found) == 300
    drawn = []
    for explainer in found:
        check_is_fitted(explainer)
        model = explainer.estimator_
        rows = model.X_[:, 0].astype(int)
        np.testing.assert_array_equal(model.y_, rows * 10.0)
        assert len(rows) == N and model.weights_ is None
        drawn.append(np.bincount(rows, minlength=N))
        assert explainer.n_background_ == len(np.unique(rows))
        # the mean of the background is that of the sample
        known = MeasureExplainer(lambda Z: Z[:, 0]).fit(model.X_)
        kept, weights = explainer._fitting.pairs.rows()
        np.testing.assert_allclose(np.average(kept[:, 0], weights=weights), known.base_value_)
    counts = np.array(drawn)
    assert abs(counts.var() - (1 - 1 / N)) < 0.05  # of a multinomial draw
    assert abs((counts == 0).mean() - (1 - 1 / N) ** N) < 0.01
    seeds = {explainer.estimator_.random_state for explainer in found}
    assert len(seeds) == 300  # each model has its own


def test_a_background_of_rows_that_were_not_drawn():
    Z, y = numbered()
    found = refit(
        MeasureExplainer(Records()), Z, y, n_refits=5, background="out_of_bag", random_state=0
    )
    for explainer in found:
        kept, weights = explainer._fitting.pairs.rows()
        seen = explainer.estimator_.X_[:, 0]
        assert {*kept[:, 0]} == {*range(N)} - {*seen}
        assert (weights == 1).all()


def test_a_background_for_all():
    found = refit(
        MeasureExplainer(LinearRegression()), NUMBERS, Y, n_refits=3, background=NUMBERS[:7],
        random_state=0,
    )  # fmt: skip
    for explainer in found:
        wanted = MeasureExplainer(explainer.estimator_).fit(NUMBERS[:7]).explain(NUMBERS)
        np.testing.assert_array_equal(explainer.explain(NUMBERS).values, wanted.values)
        assert explainer.n_background_ == 7


def test_weights_go_to_the_estimator_and_to_the_background():
    Z, y = numbered()
    weights = np.arange(N) + 1.0
    for wrap in (lambda model: model, lambda model: make_pipeline(StandardScaler(), model)):
        found = refit(
            MeasureExplainer(wrap(Records())), Z, y, n_refits=3, sample_weight=weights,
            random_state=1,
        )  # fmt: skip
        for explainer in found:
            model = explainer.estimator_
            model = model[-1] if hasattr(model, "steps") else model
            rows = (model.y_ / 10).astype(int)
            np.testing.assert_array_equal(model.weights_, weights[rows])
            kept, own = explainer._fitting.pairs.rows()
            times = np.bincount(rows, minlength=N)[kept[:, 0].astype(int)]
            np.testing.assert_allclose(own, times * weights[kept[:, 0].astype(int)])
    with pytest.raises(TypeError, match=re.escape("KNeighborsRegressor.fit does not take sample")):
        refit(MeasureExplainer(KNeighborsRegressor()), Z, y, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight"):
        refit(MeasureExplainer(Records()), Z, y, sample_weight=weights[1:])


def test_clusters_stay_together():
    Z, y = numbered()
    clusters = np.array([f"patient {i // 4}" for i in range(N)])
    for labels in (clusters, pd.Series(clusters), pl.Series(clusters), clusters.tolist()):
        found = refit(MeasureExplainer(Records()), Z, y, n_refits=4, clusters=labels,
                      random_state=0)  # fmt: skip
        for explainer in found:
            counts = np.bincount(explainer.estimator_.X_[:, 0].astype(int), minlength=N)
            by_cluster = counts.reshape(-1, 4)
            assert (by_cluster == by_cluster[:, :1]).all()
            assert by_cluster[:, 0].sum() == N // 4


kinds = pytest.mark.parametrize(
    ("estimator", "data", "target"),
    [
        (pipeline(), X, Y),
        (RandomForestRegressor(4, max_depth=3), NUMBERS, Y),
        (RandomForestRegressor(4, max_depth=3), NUMBERS.to_numpy(), Y.tolist()),
        (RandomForestRegressor(4, max_depth=3), pl.from_pandas(NUMBERS.reset_index(drop=True)),
         pl.Series(Y)),
        (RandomForestRegressor(4, max_depth=3), NUMBERS, pd.DataFrame({"y": Y, "z": -Y})),
        (HistGradientBoostingClassifier(max_iter=3), NUMBERS, np.where(Y > 0, "yes", "no")),
        (IsolationForest(n_estimators=5), NUMBERS, None),
    ],
    ids=["pipeline", "frame", "array", "polars", "outputs", "classes", "no target"],
)  # fmt: skip


@pytest.mark.slow
@kinds
def test_seeded(estimator, data, target):
    explainer = MeasureExplainer(estimator, "partial_dependence")
    before = repr(estimator)
    first = refit(explainer, data, target, n_refits=3, random_state=7)
    same(first, refit(explainer, data, target, n_refits=3, random_state=7), data)
    again = np.random.RandomState(7)
    same(first, refit(explainer, data, target, n_refits=3, random_state=again), data)
    other = refit(explainer, data, target, n_refits=3, random_state=8)
    assert not np.array_equal(first[0].explain(data).values, other[0].explain(data).values)
    assert repr(estimator) == before and not hasattr(estimator, "n_features_in_")
    assert stability(first, data).to_frame()["spread"].max() > 0


@pytest.mark.slow  # workers take seconds to start
@kinds
def test_the_same_for_any_number_of_jobs(estimator, data, target):
    explainer = MeasureExplainer(estimator, "partial_dependence")
    first = refit(explainer, data, target, n_refits=3, random_state=7)
    same(first, refit(explainer, data, target, n_refits=3, random_state=7, n_jobs=2), data)


def test_seeds_of_approximations_are_shared():
    explainer = MeasureExplainer(LinearRegression(), "uniform", random_state=None)
    found = refit(explainer, NUMBERS, Y, n_refits=2, random_state=0)
    assert found[0].random_state == found[1].random_state
    explainer = MeasureExplainer(LinearRegression(), "uniform", random_state=5)
    assert refit(explainer, NUMBERS, Y, n_refits=2)[1].random_state == 5


def test_settings_of_the_explainer_are_kept_and_a_fitted_one_stays_as_it_is():
    forest = RandomForestRegressor(4, max_depth=3, random_state=0).fit(NUMBERS, Y)
    explainer = MeasureExplainer(forest, "shapley", groups={"both": ["a", "b"]}).fit(NUMBERS)
    before = explainer.explain(NUMBERS).values
    found = refit(explainer, NUMBERS, Y, n_refits=2, random_state=0)
    assert found[0].explain(NUMBERS).feature_names == ("both",)
    assert repr(found[0].measure_) == repr(explainer.measure_)
    np.testing.assert_array_equal(explainer.explain(NUMBERS).values, before)
    assert found[0].estimator is not forest


@pytest.mark.slow
@pytest.mark.parametrize("background", [None, "out_of_bag"])
def test_every_sample_has_all_classes(background):
    y = np.array(["rare"] * 2 + ["common"] * (N - 2))
    found = refit(
        MeasureExplainer(DecisionTreeClassifier(max_depth=2)), NUMBERS, y, n_refits=30,
        background=background, random_state=0,
    )  # fmt: skip
    assert all(list(e.estimator_.classes_) == ["common", "rare"] for e in found)
    stability(found, NUMBERS)
    with pytest.raises(ValueError, match="classes with few rows should be joined"):
        refit(MeasureExplainer(LogisticRegression()), NUMBERS, np.arange(N).astype(str))


@pytest.mark.slow
def test_the_spread_of_a_mean_is_its_standard_error():
    """Bootstrap variance of the mean of f over the background and of y, as in the textbook."""
    Z = RNG.normal(size=(200, 1))
    y = 2 * Z[:, 0] + RNG.normal(size=200)
    found = refit(
        MeasureExplainer(LinearRegression(), "expectation"), Z, y, n_refits=400, random_state=0
    )
    means = np.array([explainer.base_value_ for explainer in found])  # the mean of the sample's y
    assert means.std(ddof=1) == pytest.approx(y.std() / np.sqrt(200), rel=0.12)
    slopes = np.array([explainer.estimator_.coef_[0] for explainer in found])
    error = (y - LinearRegression().fit(Z, y).predict(Z)).std() / (Z.std() * np.sqrt(200))
    assert slopes.std(ddof=1) == pytest.approx(error, rel=0.15)


def test_progress_is_shown(capfd):
    refit(MeasureExplainer(LinearRegression()), NUMBERS, Y, n_refits=3, verbose=1)
    assert "3/3" in capfd.readouterr().err
    refit(MeasureExplainer(LinearRegression()), NUMBERS, Y, n_refits=3)
    assert capfd.readouterr().err == ""


MODEL = MeasureExplainer(LinearRegression())


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((LinearRegression(), NUMBERS, Y), {}, TypeError, "explainer must be a MeasureExplainer"),
        ((MeasureExplainer(len), NUMBERS, Y), {}, TypeError, "an estimator that scikit-learn can"),
        ((MeasureExplainer(FrozenEstimator(LinearRegression().fit(NUMBERS, Y))), NUMBERS, Y), {},
         TypeError, "never fitted again: pass the estimator inside it"),
        ((MODEL, NUMBERS, Y[1:]), {}, ValueError, "each of the 60 rows of X, got 59"),
        ((MODEL, NUMBERS[:0], Y[:0]), {}, ValueError, "with rows"),
        ((MODEL, NUMBERS[:1], Y[:1]), {}, ValueError, "at least two rows, got one"),
        ((MODEL, "data.csv", Y), {}, ValueError, "X must be a DataFrame or an array"),
        ((MODEL, NUMBERS, Y), {"n_refits": 1}, ValueError, "at least 2, got 1"),
        ((MODEL, NUMBERS, Y), {"n_refits": 2.5}, ValueError, "at least 2, got 2.5"),
        ((MODEL, NUMBERS, Y), {"n_refits": True}, ValueError, "at least 2, got True"),
        ((MODEL, NUMBERS, Y), {"n_jobs": 0}, ValueError, "n_jobs must be None or an integer"),
        ((MODEL, NUMBERS, Y), {"background": "oob"}, ValueError, "None or \"out_of_bag\", got"),
        ((MODEL, NUMBERS, Y), {"clusters": ["u"] * N}, ValueError, "at least two clusters"),
        ((MODEL, NUMBERS, Y), {"clusters": ["u"]}, ValueError, "one label for each of the 60 rows"),
        ((MODEL, NUMBERS, Y), {"clusters": [None] + ["u", "v"] * 29 + ["u"]}, ValueError,
         "no missing labels"),
        ((MODEL, NUMBERS, Y), {"random_state": "seed"}, ValueError, "seed"),
    ],
)  # fmt: skip
def test_bad_input(arguments, options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        refit(*arguments, **options)


def test_a_tree_without_weights_of_its_own_takes_columns_with_missing_values():
    data = NUMBERS.assign(a=NUMBERS["a"].where(NUMBERS["a"] > 0))
    found = refit(MeasureExplainer(DecisionTreeRegressor()), data, Y, n_refits=2, random_state=0)
    assert stability(found, data).to_frame().notna().all(axis=None)
