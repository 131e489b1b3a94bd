"""Conditional measures: the library equals the definition in `oracle.py`."""

import pickle
import warnings
from zlib import crc32

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import Conditional, Expectation, PartialDependence
from tests.cases import CASES, TREES, make_case
from tests.helpers import boosters, comparison, votes
from tests.helpers.case import Case
from tests.helpers.comparison import cube, read_frame
from tests.helpers.pipelines import PREPARATIONS, RawOracle
from tests.helpers.pipelines import make_case as make_pipeline_case
from tests.helpers.random_cases import column_as_given, column_names, groups_of, has_values
from tests.oracle import Oracle, columns, described, float32_edge, leave_one_out, numeric

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

KINDS = ["kernel", "local_linear", "knn"]
FAMILIES = ["gaussian", "copula", "gmm"]


every_kind = pytest.mark.parametrize("kind", KINDS)
every_family = pytest.mark.parametrize("family", FAMILIES)


# -- how it is compared --------------------------------------------------------------------------


def same(estimator, measure, oracle, X, own=None, **settings):
    """The comparison with the definition, on the background of an oracle."""
    case = Case(estimator, oracle.f, oracle.given_X, X)
    return comparison.same(case, measure, oracle.given_weight, own, oracle, **settings)


def oracle_of(f, X, weight=None, levels=(), kind=Oracle):
    """The definition, which knows what it was made of."""
    oracle = kind(f, X, weight, levels=levels)
    oracle.given_X, oracle.given_weight = X, weight
    return oracle


def some_weights(rng, n):
    """No weights, floats, integers, or integers with zeros; five rows count at least."""
    weight = [None, rng.random(n) + 0.1, rng.integers(1, 4, n), rng.integers(0, 3, n)]
    chosen = weight[rng.integers(4)]
    if chosen is not None:
        chosen[:5] += 1
    return chosen


def drawn(case, seed, n=None):
    """A background that something can be learned from, its weights, and rows to explain."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.choice([5, 12, 30]))
    while True:
        Z, weight = case.draw(rng, n), some_weights(rng, n)
        if has_values(Z, np.ones(n, bool) if weight is None else weight > 0):
            return Z, weight, case.draw(rng, int(rng.choice([1, 10])))


def some_measure(seed):
    """One of the three by rows, with few or many bins."""
    return Conditional(KINDS[seed % 3], n_bins=[200, 5, 2][seed // 3 % 3])


def plain_columns(f):
    """A function of columns as one of arrays, with one output."""
    return lambda X: np.asarray(f(*np.asarray(X, float).T), float)[:, None]


# -- values: every reader ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_models(name):
    seed = sorted(CASES).index(name)
    case = make_case(name, seed)
    Z, weight, X = drawn(case, seed)
    oracle = oracle_of(case.f, Z, weight, case.levels)
    explainer, _ = same(case.estimator, some_measure(seed), oracle, X)
    assert explainer.engine_ != ("finite_sum",)
    assert name not in TREES or explainer.engine_ == ("binned_rows",)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(18))
def test_groups(seed):
    case = make_case(sorted(CASES)[7 * seed % len(CASES)], 50 + seed)
    Z, weight, X = drawn(case, seed)
    groups, own = groups_of(case, seed + 1)
    oracle = oracle_of(case.f, Z, weight, case.levels)
    same(case.estimator, some_measure(seed), oracle, X, own, groups=groups)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(9))
def test_finite_sums_and_callables(seed):
    case = make_case(sorted(CASES)[11 * seed % len(CASES)], 90 + seed)
    Z, weight, X = drawn(case, seed, 12)
    groups, own = groups_of(case, seed)
    oracle = oracle_of(case.f, Z, weight, case.levels)
    found = same(
        case.estimator, some_measure(seed), oracle, X, own, groups=groups, engine="finite_sum"
    )
    assert found[0].engine_ == ("finite_sum",)
    same(case.f, some_measure(seed), oracle_of(case.f, Z, weight), X, own, groups=groups)


PIPELINES = [
    ("mixed", "forest"),
    ("mixed", "ridge"),
    ("mixed", "hist multiclass"),
    ("mixed", "logistic multiclass"),
    ("mixed", "voting"),
    ("mixed", "stacking"),
    ("mixed", "log target"),
    ("standard", "forest"),
    ("minmax clip", "forest"),
    ("power", "forest"),
    ("quantile", "hist"),
    ("imputer", "forest"),
    ("imputer indicator", "forest"),
    ("imputer indicator", "ridge"),
    ("bins ordinal", "forest"),
    ("bins one-hot", "ridge"),
    ("log1p", "forest"),
    ("negative", "forest"),
    ("squares", "forest"),
    ("waves", "forest"),
    ("splines", "forest"),
    ("spline of one", "forest"),
    ("splines", "ridge"),
    ("days", "forest"),
    ("months", "forest"),
    ("one-hot None and NaN", "forest"),
    ("max categories", "forest"),
    ("ordinal missing", "forest"),
    ("ordinal NaN", "hist"),
    ("target", "tree multiclass"),
    ("booleans", "forest"),
    ("a column twice", "forest"),
    ("everything", "forest"),
    ("everything", "ridge"),
    ("frame", "hist"),
    ("frame", "hist multiclass"),
    ("pca", "forest"),
    ("neighbours", "ridge"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PIPELINES, ids=" | ".join)
def test_pipelines(name):
    seed = PIPELINES.index(name)
    containers = PREPARATIONS[name[0]].containers
    case = make_pipeline_case(*name, containers[seed % len(containers)])
    Z, weight, X = drawn(case, seed, 14)
    groups, own = groups_of(case, seed) if seed % 3 == 0 else (None, None)
    levels = {7} if name[0] == "everything" else ()  # codes, behind an encoder
    oracle = oracle_of(case.f, Z, weight, levels, kind=RawOracle)
    settings = {**case.settings, "groups": groups}
    explainer, _ = same(case.estimator, some_measure(seed + 1), oracle, X, own, **settings)
    engines = {
        "boxes": "binned_rows", "additive": "binned_additive", "linked": "linked_boxes",
        "black box": "finite_sum",
    }  # fmt: skip
    assert explainer.engine_ == (engines[case.reads],)


def correlated(seed=0, n=60, d=3):
    """Numbers that move together, two decimals."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, d)), 2)


def answer(X):
    """A target with an interaction."""
    return X[:, 0] * X[:, 1] + X[:, -1]


@pytest.mark.slow
@every_kind
def test_a_number_that_means_missing_to_the_imputer_only(kind):
    Z = np.round(correlated() * 2) / 2
    Z[::7, 1] = -1
    model = make_pipeline(
        SimpleImputer(missing_values=-1), RandomForestRegressor(3, random_state=0)
    ).fit(Z, answer(Z))
    X = np.r_[Z[:9], [[-1, -1, -1], [-1.25, 0, 7.0]]]
    oracle = oracle_of(lambda X: model.predict(X)[:, None], Z)
    for n_bins in (3, 200):
        same(model, Conditional(kind, n_bins=n_bins), oracle, X)


@pytest.mark.slow
@pytest.mark.parametrize("name", votes.MODELS)
@pytest.mark.parametrize("groups", [None, {"both": ["a", "c"]}])
def test_votes_of_trees_and_lines(name, groups):
    model = clone(votes.MODELS[name]).fit(votes.X, votes.Y)
    Z = votes.X[:40]
    X = votes.X[35:47].assign(c=lambda X: X["c"].mask(X["a"] > 1, "w"))
    own = None if groups is None else [(0, 2), (1,)]
    weight = 1.0 + np.arange(40) % 3
    oracle = oracle_of(lambda X: model.predict(X)[:, None], Z, weight)
    explainer, _ = same(model, some_measure(len(name)), oracle, X, own, groups=groups)
    assert explainer.engine_ == ("addends",)


@pytest.mark.slow
@pytest.mark.parametrize("model", [SVR(kernel="poly"), KNeighborsRegressor(3)], ids=str)
@every_kind
def test_black_boxes(model, kind):
    Z = correlated(1, 40)
    model = clone(model).fit(Z, answer(Z))
    oracle = oracle_of(lambda X: model.predict(X)[:, None], Z)
    X = np.r_[Z[:4], Z[:1], Z[:2] + 0.005]
    explainer, _ = same(model, Conditional(kind), oracle, X)
    assert explainer.engine_ == ("finite_sum",)
    same(model, Conditional(kind), oracle, X, [(0, 1), (2,)], groups={"g": ["x0", "x1"]})


@pytest.mark.slow
@pytest.mark.parametrize("library", boosters.LIBRARIES)
def test_boosting_libraries(library):
    data, y = boosters.make_frame()
    numbers = data[["a", "b"]].assign(e=data.a.round(0) + np.arange(len(data)) % 3)
    loose = 1e-5 if library == "xgboost" else 0.0  # it adds up in float32
    regressor, classifier = boosters.models(library)
    regressor.fit(numbers, y)
    Z, X = numbers[:40], numbers[38:50]
    weight = np.arange(40) % 3
    oracle = oracle_of(lambda X: np.float64(regressor.predict(X))[:, None], Z, weight)
    for measure in (Conditional(), Conditional("local_linear", n_bins=7)):
        explainer, _ = same(regressor, measure, oracle, X, loose=loose * oracle.spread())
        assert explainer.engine_ == ("binned_rows",)
    classifier.fit(numbers, np.digitize(y, [0.5, 1.5]))
    explainer = MeasureExplainer(classifier, "conditional").fit(Z)
    assert explainer.explain(X).values.shape == (12, 3, 3)
    black = MeasureExplainer(explainer.pieces_.output, "conditional").fit(Z).explain(X)
    assert_allclose(explainer.explain(X).values, black.values, atol=1e-5)


# -- values: hard data ---------------------------------------------------------------------------


def beside(values):
    """Numbers and their neighbours."""
    values = np.unique(values[np.isfinite(values)])
    return np.r_[values, np.nextafter(values, -np.inf), np.nextafter(values, np.inf)]


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("n_bins", [2, 5, 200])
def test_at_bin_edges_thresholds_and_beyond(kind, n_bins):
    Z = correlated(2, 30)
    Z[::6, 0] = np.nan
    Z[1, 1], Z[2, 1] = np.inf, -np.inf
    settings = {"max_iter": 4, "max_leaf_nodes": 6, "min_samples_leaf": 2, "random_state": 0}
    model = HistGradientBoostingRegressor(**settings).fit(Z, Z[:, 2] + (Z[:, 1] > 0))
    cuts = [node["num_threshold"] for (p,) in model._predictors for node in p.nodes]
    t = np.r_[beside(np.r_[Z.ravel(), cuts]), np.inf, -np.inf, np.nan, 1e300, -0.0, 0.0]
    X = np.stack([t, t[::-1], np.roll(t, 3)], axis=1)
    oracle = oracle_of(lambda X: model.predict(X)[:, None], Z)
    explainer, found = same(model, Conditional(kind, n_bins=n_bins), oracle, X)
    for k in range(3):
        curve = explainer.curve(k)
        assert curve.kind == "steps"
        assert_array_equal(curve(X[:, k]), found.values[:, k])


def test_float32_trees_and_float64_bins_meet_in_one_column():
    rng = np.random.default_rng(0)
    Z = rng.random((25, 2)) / 3
    model = DecisionTreeRegressor(random_state=0).fit(Z, answer(Z))
    cuts = model.tree_.threshold[model.tree_.feature >= 0]
    t = beside(np.r_[Z.ravel(), cuts, np.float32(Z.ravel())])
    oracle = oracle_of(lambda X: model.predict(X)[:, None], Z)
    same(model, Conditional(bandwidth=0.3), oracle, np.stack([t, t[::-1]], axis=1))


@every_kind
def test_local_weights(kind):
    """A fixed bandwidth; the weights of a line are negative where a column ends."""
    Z = correlated(3, 40)
    measure = Conditional(kind, **{"n_neighbors": 9} if kind == "knn" else {"bandwidth": 0.7})
    oracle = oracle_of(plain_columns(lambda a, b, c: a * b - c**2), Z)
    explainer, _ = same(lambda X: X[:, 0] * X[:, 1] - X[:, 2] ** 2, measure, oracle, Z[:8])
    ((_, _, parameters),) = described(explainer.measure_)
    weights = oracle.given(parameters, Z, (0,))
    assert_allclose(weights.sum(axis=1), 1)
    assert (weights.min() < -1e-3) == (kind == "local_linear")
    assert_array_equal(explainer.measure_.bandwidth_, np.full(3, 9 / 40 if kind == "knn" else 0.7))


def mixed_frame(seed=0, n=40):
    """Numbers, a date, a boolean, codes, levels; some missing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    level = np.digitize(z + rng.normal(size=n) / 2, [-1, 0, 1])
    words = np.array(["p", "q", "r", "s"], object)[level]
    words[rng.random(n) < 0.1] = None
    number = np.where(rng.random(n) < 0.1, np.nan, z + rng.normal(size=n) / 2)
    days = np.datetime64("2024-01-01", "us") + (z * 1e9).astype("timedelta64[us]")
    return pd.DataFrame({
        "number": number, "day": days, "flag": z + rng.normal(size=n) > 0,
        "code": np.round(z).astype(int), "word": pd.Series(words, dtype=object), "z": z,
    })  # fmt: skip


def mixed_answer(X):
    """A function of a frame, pandas or polars."""
    if isinstance(X, pl.DataFrame):
        X = pd.DataFrame({c: X[c].to_numpy() for c in X.columns})
    day = (X["day"] - pd.Timestamp("2024-01-01")) / pd.Timedelta("1D")
    word = X["word"].map({"p": 1.0, "q": -1.0, "r": 2.0}).astype(float).fillna(0.5)
    flag = X["flag"].astype(float)
    result = X["number"].astype(float).fillna(3.0) * flag + day / 1e4 * X["code"] + word * X["z"]
    return result.to_numpy(float)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n_bins"), [("kernel", 200), ("local_linear", 3), ("knn", 15)])
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_mixed_frames(kind, container, n_bins):
    data = mixed_frame()
    Z, X = data[:30], pd.concat([data[30:], data[:2]], ignore_index=True)
    X.loc[0, ["word", "code", "number"]] = ["s", 17, 1e9]  # a level and a code never seen
    X.loc[1, ["word", "number"]] = [None, np.nan]
    if container == "polars":
        Z, X = (pl.DataFrame({c: part[c].to_list() for c in part}) for part in (Z, X))
    weight = np.random.default_rng(0).random(30)
    oracle = oracle_of(mixed_answer, Z, weight)
    measure = Conditional(kind, n_bins=n_bins)
    same(mixed_answer, measure, oracle, X)
    groups = {"g": ["word", "number"], "h": ["day", "flag"]}
    same(mixed_answer, measure, oracle, X, [(0, 4), (1, 2), (3,), (5,)], groups=groups)


@pytest.mark.slow
def test_nothing_near_a_combination():
    """No row of a group has weight: the nearest rows have it."""
    Z = np.repeat(np.arange(24.0), 3).reshape(-1, 3)
    X = np.array([[0, 23, 1], [23, 0, 5], [11, 12, 0], [3, 3, 3], [np.nan, 9, 9], [9, np.nan, 4]])
    f = plain_columns(lambda a, b, c: np.nan_to_num(a) + 10 * np.nan_to_num(b) * c)
    for measure in (Conditional(bandwidth=0.2), Conditional("knn", n_neighbors=1)):
        same(f, measure, oracle_of(f, Z), X, [(0, 1), (2,)], groups={"g": ["x0", "x1"]})
    Z[::2, 1] = np.nan
    words = pd.DataFrame(Z, columns=list("abc")).assign(s=list("uvwxyz") * 4)
    at = words.iloc[[0, 5, 9]].assign(s=["z", "new", None])
    g = lambda X: f(X[list("abc")]) + (X["s"] == "u").to_numpy(float)[:, None]  # noqa: E731
    groups = {"g": ["s", "a", "b"]}
    same(g, Conditional(bandwidth=0.2), oracle_of(g, words), at, [(3, 0, 1), (2,)], groups=groups)


# -- what is learned -----------------------------------------------------------------------------


def learning_data(seed, n=None):
    """Columns of all kinds that know of one another, more or less."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.choice([6, 14, 24]))
    a = rng.normal(size=n)
    level = np.clip(np.round(a + 2 + rng.normal(size=n) * rng.choice([0.1, 1])), 0, 5).astype(int)
    X = pd.DataFrame(
        {
            "a": a,
            "b": np.round(a + rng.normal(size=n) * rng.choice([0.05, 0.5, 3]), 1),
            "c": rng.integers(0, rng.choice([2, 4, 14]), n).astype(float),
            "d": pd.Categorical(np.array(list("uvwxyz"))[level]),
        }
    )
    if rng.random() < 0.5:
        X.loc[1:, "b"] = X["b"][1:].mask(rng.random(n - 1) < 0.2)
    if rng.random() < 0.3:
        X.loc[1:, "d"] = X["d"][1:].mask(rng.random(n - 1) < 0.2)
    X = X[rng.permutation(X.columns)[: int(rng.integers(2, 5))]]
    return X, Conditional(KINDS[seed % 3], n_bins=int(rng.choice([2, 5, 12, 200])))


def chosen_best(X, measure):
    """Whether every column has the least local of the best candidates, rows really left out."""
    measure = clone(measure).fit(X)
    ((_, _, parameters),) = described(measure)
    oracle = Oracle(lambda X: np.zeros((len(X), 1)), X)
    bins = [oracle.column(parameters, k).bins for k in range(X.shape[1])]
    for k, local in enumerate(parameters["local"]):
        others = [other for i, other in enumerate(bins) if i != k]
        candidates, errors = leave_one_out(bins[k], measure.estimator, others)
        best = np.flatnonzero(errors <= errors.min() * (1 + 1e-9))
        wanted = candidates[best[-1] if bins[k].n > 1 else -1]
        if not np.isclose(local, wanted):
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_leave_one_out(seed):
    assert chosen_best(*learning_data(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 7, 15])
def test_leave_one_out_with_mid_ranks_at_tenths(seed):
    assert chosen_best(*learning_data(seed, 25))


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("factor", [1.0, 0.1, 3.0])
def test_leave_one_out_where_several_are_perfect(kind, factor):
    """Every window that holds nothing but the own value predicts without error."""
    X = pd.DataFrame({"a": np.repeat(np.arange(12.0), 4)}).assign(b=lambda X: X["a"] ** 3)
    measure = Conditional(kind)
    assert chosen_best(X, measure)
    scaled = clone(measure).fit(X, np.full(48, factor))
    assert_array_equal(scaled.bandwidth_, clone(measure).fit(X).bandwidth_)


@pytest.mark.slow
def test_scored_on_a_hundred_columns_in_any_order():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 130)), columns=[f"column {k}" for k in range(130)])
    X += rng.normal(size=(30, 1)) * (np.arange(130) % 7 > 3)  # some know of one another
    learned = Conditional().fit(X).bandwidth_
    order = rng.permutation(130)
    assert_array_equal(Conditional().fit(X.iloc[:, order]).bandwidth_, learned[order])
    chosen = sorted(X.columns, key=lambda name: crc32(repr(name).encode()))[:101]
    for k in (0, 129):
        others = [name for name in chosen if name != X.columns[k]][:100]
        alone = Conditional().fit(X[[*others, X.columns[k]]]).bandwidth_[-1]
        assert learned[k] == alone


@pytest.mark.slow
@every_kind
def test_groups_are_scored_on_the_columns_outside(kind):
    X = pd.DataFrame(correlated(5, 24, 4), columns=list("abcd"))
    f = lambda X: X["a"].to_numpy()  # noqa: E731
    explainer = MeasureExplainer(f, Conditional(kind), groups={"g": ["a", "b"]}).fit(X)
    for k, others in enumerate(["cd", "cd", "abd", "abc"]):
        alone = Conditional(kind).fit(X[[*others, "abcd"[k]]])
        assert explainer.measure_.bandwidth_[k] == alone.bandwidth_[-1]


@pytest.mark.slow
def test_integer_weights_are_repeated_rows():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        Z, times = correlated(seed, 32), rng.integers(1, 4, 32)
        Z[rng.random(32) < 0.2, 1] = np.nan
        f = lambda X: np.nan_to_num(X[:, 0] * X[:, 1]) + X[:, 2]  # noqa: E731
        # a bandwidth that is learned leaves the weight of a row out, not one of its copies
        local = {"n_neighbors": 10_000} if seed % 3 == 2 else {"bandwidth": 0.8}
        measure = some_measure(seed).set_params(**local)
        weighted = MeasureExplainer(f, measure).fit(Z, sample_weight=times)
        repeated = MeasureExplainer(f, measure).fit(np.repeat(Z, times, axis=0))
        assert_array_equal(weighted.measure_.bandwidth_, repeated.measure_.bandwidth_)
        assert_allclose(weighted.explain(Z).values, repeated.explain(Z).values, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_scaled_weights_change_nothing(seed):
    rng = np.random.default_rng(seed)
    n = [24, 45, 25, 35][seed]
    Z = correlated(seed, n) + rng.normal(size=(n, 3)) / 1e3
    weight = np.ones(n) if seed % 2 else rng.integers(1, 5, n) * 1.0
    for measure in map(Conditional, KINDS):
        first = clone(measure).fit(Z, weight)
        for factor in (0.1, 3.0, 1 / 3, 1e-9, 1e9, 7.0):
            scaled = clone(measure).fit(Z, factor * weight)
            assert_array_equal(scaled.bandwidth_, first.bandwidth_)
            for one, other in zip(scaled.support_, first.support_, strict=True):
                assert_allclose(one, other, rtol=1e-9)


@pytest.mark.slow
def test_scaled_weights_of_many_rows_make_the_same_bins():
    values = np.random.default_rng(0).normal(size=(100_000, 1))
    weights = [np.full(len(values), w) for w in (1.0, 0.1)]
    one, scaled = (Conditional(n_bins=2, bandwidth=0.5).fit(values, w) for w in weights)
    assert_allclose(scaled.support_[0], one.support_[0], rtol=1e-9)


@pytest.mark.slow
def test_scaled_weights_do_not_say_which_levels_share_a_bin():
    data = pd.DataFrame({"s": np.repeat(list("abcd"), 3), "x": np.arange(12.0)})
    weight = np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.2, 0.2, 0.2, 0.6, 0.05, 0.05])
    one, scaled = (Conditional(n_bins=3).fit(data, w) for w in (weight, 3 * weight))
    assert_array_equal(scaled.smoothing_, one.smoothing_)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_changes_nothing(seed):
    data = mixed_frame(seed)
    order = np.random.default_rng(seed).permutation(len(data))
    weight = 1.0 + np.arange(len(data)) % 4
    measure = some_measure(seed)
    f = lambda X: mixed_answer(X)[:, 0]  # noqa: E731
    first = MeasureExplainer(f, measure).fit(data, sample_weight=weight)
    other = MeasureExplainer(f, measure).fit(data.iloc[order], sample_weight=weight[order])
    assert_array_equal(other.measure_.bandwidth_, first.measure_.bandwidth_)
    assert_array_equal(other.measure_.smoothing_, first.measure_.smoothing_)
    assert_allclose(other.explain(data).values, first.explain(data).values, atol=1e-9)


@pytest.mark.slow
def test_the_order_of_rows_does_not_say_which_levels_share_a_bin():
    data = pd.DataFrame({"s": list("abcdef") * 3, "x": np.random.default_rng(0).normal(size=18)})
    f = lambda X: X["x"].to_numpy() * (X["s"] == "a").to_numpy(float)  # noqa: E731
    first = MeasureExplainer(f, Conditional(n_bins=3)).fit(data)
    other = MeasureExplainer(f, Conditional(n_bins=3)).fit(data[::-1])
    assert_allclose(other.explain(data).values, first.explain(data).values, atol=1e-9)


@pytest.mark.slow
def test_so_many_neighbors_although_some_rows_are_missing():
    x = np.arange(100.0)
    x[50:] = np.nan
    Z = np.stack([x, np.random.default_rng(0).normal(size=100)], axis=1)
    measure = Conditional("knn", n_neighbors=10).fit(Z)
    assert measure.support_[0][20] >= 10 * (1 - 1e-9)
    assert measure.support_[1][20] >= 10 * (1 - 1e-9)


@pytest.mark.slow
def test_learned_attributes():
    data = mixed_frame()
    measure = Conditional().fit(data)
    ordered = ~np.isnan(measure.bandwidth_)
    assert ordered.tolist() == [True, True, False, False, False, True]
    assert (np.isnan(measure.smoothing_) == ordered).all()
    n = [len(np.unique(data[c].dropna())) + 2 for c in data]
    assert [len(found) for found in measure.support_] == n
    assert measure.support_[0][-1] == pytest.approx(40)  # any other: all rows
    assert measure.support_[0][-2] == pytest.approx(data["number"].isna().sum())
    assert all((found <= 40 * (1 + 1e-9)).all() for found in measure.support_)


# -- invariance and limits -----------------------------------------------------------------------


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("change", [np.exp, np.cbrt, lambda x: 2 * x, lambda x: x**3 + 5 * x])
def test_increasing_changes_of_a_column(kind, change):
    rng = np.random.default_rng(0)
    Z = np.round(correlated(6, 70), 1 if kind == "knn" else 2)
    moved = Z.copy()
    moved[:, 1] = change(Z[:, 1])
    values = np.unique(Z[:, 1])
    assert len(values) == len(np.unique(moved[:, 1])) > 10
    numbers = rng.normal(size=len(values))

    def f(known):
        return lambda X: numbers[np.searchsorted(known, X[:, 1])] * X[:, 0] + X[:, 2]

    for groups in (None, {"g": ["x0", "x1"]}):
        settings = {"groups": groups}
        measure = Conditional(kind, n_bins=15)
        first = MeasureExplainer(f(values), measure, **settings).fit(Z)
        other = MeasureExplainer(f(change(values)), measure, **settings).fit(moved)
        assert_array_equal(other.measure_.bandwidth_, first.measure_.bandwidth_)
        assert_array_equal(other.explain(moved).values, first.explain(Z).values)
        assert_array_equal(other.explain(moved).support, first.explain(Z).support)


@pytest.mark.slow
@every_kind
def test_a_forest_of_doubled_numbers(kind):
    Z = correlated(7, 80)
    forest = RandomForestRegressor(4, max_depth=5, random_state=0)
    found = [
        MeasureExplainer(clone(forest).fit(c * Z, answer(Z)), Conditional(kind))
        .fit(c * Z)
        .explain(c * Z)
        .values
        for c in (1, 2, 0.25)
    ]
    assert_array_equal(found[1], found[0])
    assert_array_equal(found[2], found[0])


def of_interactions(X):
    """Smooth, and not additive."""
    return np.sin(X[:, 0]) * X[:, 1] + X[:, 2]


@pytest.mark.slow
@every_kind
def test_independent_columns_come_near_partial_dependence(kind):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 3))
    conditional = MeasureExplainer(of_interactions, Conditional(kind)).fit(Z)
    marginal = MeasureExplainer(of_interactions, "partial_dependence").fit(Z).explain(Z[:60]).values
    away = conditional.explain(Z[:60]).values - marginal
    assert np.sqrt((away**2).mean()) < 0.15 * of_interactions(Z).std()
    assert np.median(conditional.measure_.bandwidth_) >= (0.5 if kind == "knn" else 2)
    if kind != "knn":  # an infinite bandwidth is partial dependence
        wide = MeasureExplainer(of_interactions, Conditional(kind, bandwidth=np.inf)).fit(Z)
        assert_allclose(wide.explain(Z[:60]).values, marginal, atol=1e-12)


@pytest.mark.slow
@every_kind
def test_a_column_that_determines_the_others_comes_near_f(kind):
    z = np.random.default_rng(0).normal(size=300)
    Z = np.stack([z, z**3, np.exp(z)], axis=1)
    found = MeasureExplainer(of_interactions, Conditional(kind)).fit(Z).explain(Z[:60])
    wanted = of_interactions(Z[:60])
    away = found.values - wanted[:, None]
    assert np.sqrt((away**2).mean()) < 0.1 * of_interactions(Z).std()
    marginal = MeasureExplainer(of_interactions, "partial_dependence").fit(Z).explain(Z[:60]).values
    assert (away**2).mean() < ((marginal - wanted[:, None]) ** 2).mean() / 20


@pytest.mark.slow
@every_kind
def test_a_column_of_one_value_is_partial_dependence(kind):
    Z = correlated(8, 30)
    Z[:, 1] = 1.5
    X = Z[:6].copy()
    X[3:, 1] = [2.5, 1.5, -1.0]
    for model in (of_interactions, DecisionTreeRegressor(random_state=0).fit(Z, answer(Z))):
        wanted = MeasureExplainer(model, "partial_dependence").fit(Z).explain(X).values[:, 1]
        found = MeasureExplainer(model, Conditional(kind)).fit(Z).explain(X)
        assert_allclose(found.values[:, 1], wanted, atol=1e-12)
        assert_allclose(found.support[:, 1], 30)


@pytest.mark.slow
@every_kind
def test_one_column_alone(kind):
    Z = correlated(9, 30, 1)
    f = lambda X: X[:, 0] ** 2  # noqa: E731
    found = MeasureExplainer(f, Conditional(kind)).fit(Z)
    assert_allclose(found.explain(Z).values[:, 0], Z[:, 0] ** 2, atol=1e-12)
    assert found.measure_.bandwidth_[0] == (1.0 if kind == "knn" else np.inf)


# -- curves --------------------------------------------------------------------------------------


def agrees_with_frame(explainer, X, k, name, values):
    """A curve is what `explain` says, and its frame is the curve."""
    curve = explainer.curve(name)
    got = np.asarray(curve(column_as_given(X, k))).reshape(len(X), -1)
    assert_array_equal(got, values)
    frame = curve.to_frame()
    outputs = [c for c in frame.columns if str(c).startswith("value")]
    if curve.kind == "function":
        held = frame["x"].to_numpy()
        again = np.asarray(curve(held)).reshape(len(held), -1)
        assert_array_equal(frame[outputs].to_numpy(float), again)
        return curve.kind
    held = [read_frame(curve.kind, frame, v) for v in columns(X)[k]]
    read = np.array([row[outputs] for row in held], float)
    assert_array_equal(read, got, err_msg=f"{name}\n{frame}")
    if curve.kind == "steps":
        inside = frame[frame["closed"] == "right"]
        ends = inside["upper"].to_numpy(float)
        lower = inside["lower"].to_numpy(float)
        with np.errstate(over="ignore"):  # behind the largest number is inf
            above = np.nextafter(np.where(np.isfinite(lower), lower, -1e40), np.inf)
        for at in (ends, above):
            taken = np.abs(at) < 1e30  # a float32 model takes no more
            again = np.asarray(curve(at[taken])).reshape(taken.sum(), -1)
            assert_array_equal(inside[outputs].to_numpy(float)[taken], again)
    return curve.kind


def finite(X):
    """Whether no number is infinite; those have a test of their own."""
    return not any(numeric(c) and np.isinf(c.astype(float)).any() for c in columns(X))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_curves(seed):
    case = make_case(sorted(TREES)[5 * seed % len(TREES)], 200 + seed)
    Z, weight, X = next(found for i in range(99) if finite((found := drawn(case, seed + i))[0]))
    measure = [some_measure(seed), some_measure(seed) - 0.5 * PartialDependence()][seed % 2]
    explainer = MeasureExplainer(case.estimator, measure).fit(Z, sample_weight=weight)
    values = cube(explainer.explain(X).values)
    for k, name in enumerate(column_names(case)):
        kind = agrees_with_frame(explainer, X, k, name, values[:, k])
        assert kind in ("steps", "levels")


INFINITE = [
    (-np.inf, False),
    (-np.inf, True),
    (np.inf, False),
    (np.inf, True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("far", "many"), INFINITE)
def test_curves_where_an_infinite_value_has_a_bin(far, many):
    Z = correlated(13, 30)
    Z[:, 0] = np.arange(30) % (15 if many else 4)
    Z[::5, 0] = far
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2).fit(Z, Z[:, 1])
    explainer = MeasureExplainer(model, Conditional(bandwidth=0.5)).fit(Z)
    agrees_with_frame(explainer, Z, 0, "x0", explainer.explain(Z).values[:, [0]])


CURVES = {
    ("mixed", "forest"): ["steps", "steps", "levels", "levels"],
    ("mixed", "ridge"): ["function", "function", "levels", "levels"],
    ("negative", "forest"): ["steps", "steps"],
    ("bins ordinal", "forest"): ["steps", "steps"],
    ("splines", "forest"): ["function", "function"],
    ("power", "hist"): ["steps", "steps"],
    ("everything", "forest"): None,
    ("frame", "hist"): ["steps", "levels", "steps"],
    ("mixed", "log target"): None,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CURVES, ids=" | ".join)
def test_curves_of_pipelines(name):
    case = make_pipeline_case(*name)
    seed = list(CURVES).index(name)
    Z, weight, _ = drawn(case, seed, 14)
    X = case.draw(np.random.default_rng(seed), 8)
    explainer = MeasureExplainer(case.estimator, some_measure(seed), **case.settings)
    explainer.fit(Z, sample_weight=weight)
    values = cube(explainer.explain(X).values)
    kinds = []
    for k, label in enumerate(column_names(case)):
        curve = explainer.curve(label)
        kinds.append(curve.kind)
        got = np.asarray(curve(column_as_given(X, k))).reshape(len(X), -1)
        assert_array_equal(got, values[:, k])
        if curve.kind == "steps":
            agrees_with_frame(explainer, X, k, label, values[:, k])
    assert CURVES[name] in (None, kinds)


# -- algebra -------------------------------------------------------------------------------------


MEASURES = {
    "centred": lambda: Conditional() - Expectation(),
    "half": lambda: 0.5 * Conditional() + 0.5 * PartialDependence(),
    "difference": lambda: Conditional("kernel") - Conditional("knn"),
    "all": lambda: Conditional("local_linear", n_bins=4) - 2 * Conditional() + Expectation(),
}


@pytest.fixture(scope="module")
def forest():
    X = correlated(10, 50)
    return RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, answer(X)), X


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURES)
def test_algebra(forest, name):
    model, Z = forest
    X = np.r_[Z[:9], Z[:3] + 0.01, [[9, -9, 0]]]
    linear = make_pipeline(StandardScaler(), Ridge()).fit(Z, answer(Z))
    for one in (model, linear, model.predict):
        f = getattr(one, "predict", one)
        oracle = oracle_of(lambda X, f=f: f(X)[:, None], Z)
        same(one, MEASURES[name](), oracle, X)
        groups = {"g": ["x0", "x2"]}
        explainer, _ = same(one, MEASURES[name](), oracle, X, [(0, 2), (1,)], groups=groups)
        text = explainer.describe()
        assert "Conditional(" in text and "exact" in text
        for engine in explainer.engine_:
            assert engine in text


@pytest.mark.slow
def test_centered_is_minus_expectation(forest):
    model, Z = forest
    plain = MeasureExplainer(model, "conditional").fit(Z).explain(Z)
    centred = MeasureExplainer(model, Conditional() - Expectation()).fit(Z).explain(Z)
    assert_allclose(plain.centered().values, centred.values, atol=1e-12)
    assert plain.offset == pytest.approx(model.predict(Z).mean())
    assert centred.offset == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
def test_support(forest):
    model, Z = forest
    explainer = MeasureExplainer(model, Conditional(bandwidth=0.5)).fit(Z)
    found = explainer.explain(Z)
    assert found.support.shape == found.values.shape
    assert (found.support >= 1 - 1e-9).all() and (found.support < 50).all()
    assert MeasureExplainer(model).fit(Z).explain(Z).support is None
    assert MeasureExplainer(model, Expectation()).fit(Z).explain(Z).support is None
    half = MeasureExplainer(model, 0.5 * Conditional(bandwidth=0.5) + PartialDependence()).fit(Z)
    assert_array_equal(half.explain(Z).support, found.support)
    none = MeasureExplainer(model, 0.0 * Conditional() + PartialDependence()).fit(Z)
    assert none.explain(Z).support is None


# -- bits that nobody moves ----------------------------------------------------------------------


def models_of_every_engine():
    X = correlated(10, 50)
    y = answer(X)
    frame = pd.DataFrame(X, columns=list("abc"))
    trees = RandomForestRegressor(5, max_depth=4, random_state=0)
    return {
        "binned_rows": (clone(trees).fit(frame, y), frame),
        "binned_additive": (make_pipeline(StandardScaler(), Ridge()).fit(frame, y), frame),
        "finite_sum": (SVR(kernel="poly").fit(frame, y), frame),
        "addends": (
            VotingRegressor([("a", trees), ("b", Ridge())]).fit(frame, y),
            frame,
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["binned_rows", "binned_additive", "finite_sum", "addends"])
@pytest.mark.parametrize("groups", [None, {"g": ["a", "c"]}])
def test_bits(engine, groups, monkeypatch):
    model, Z = models_of_every_engine()[engine]
    explainer = MeasureExplainer(model, Conditional() - Expectation(), groups=groups).fit(Z)
    assert explainer.engine_[0] == engine
    X = pd.concat([Z[:5] + 0.01, Z[:5], Z[3:5]])
    found = explainer.explain(X)
    order = np.random.default_rng(0).permutation(len(X))
    assert_array_equal(explainer.explain(X.iloc[order]).values, found.values[order])
    one_by_one = [explainer.explain(X.iloc[[i]]).values[0] for i in range(len(X))]
    assert_array_equal(one_by_one, found.values)
    assert_array_equal(explainer.transform(X), found.values)
    names = list(found.feature_names)
    some = explainer.explain(X, features=names[::-1][:2])
    places = [names.index(name) for name in names[::-1][:2]]
    assert_array_equal(some.values, found.values[:, places])
    assert_array_equal(some.support, found.support[:, places])
    again = pickle.loads(pickle.dumps(explainer))
    assert_array_equal(again.explain(X).values, found.values)
    assert_array_equal(again.explain(X).support, found.support)
    settings = {**explainer.get_params(deep=False), "n_jobs": 2}
    workers = MeasureExplainer(**settings).fit(Z)
    assert_array_equal(workers.explain(X).values, found.values)
    monkeypatch.setattr("skattr.solution.read_model.BLOCK", 1)
    many = pd.concat([X] * 30) if engine != "finite_sum" else X
    wanted = np.tile(found.values, (len(many) // len(X), 1))
    assert_array_equal(explainer.explain(many).values, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, *FAMILIES])
def test_skops_round_trip(kind, forest):
    skops_io = pytest.importorskip("skops.io")
    model, Z = forest
    linear = LinearRegression().fit(Z, answer(Z))
    for one in (model, linear) if kind in (*KINDS, "gmm") else (linear,):
        explainer = MeasureExplainer(one, Conditional(kind), groups={"g": ["x0", "x1"]}).fit(Z)
        stored = skops_io.dumps(explainer)
        trusted = skops_io.get_untrusted_types(data=stored)
        again = skops_io.loads(stored, trusted=trusted)
        assert_array_equal(again.explain(Z).values, explainer.explain(Z).values)
        assert_array_equal(again.explain(Z).support, explainer.explain(Z).support)


@pytest.mark.slow
def test_parameters(forest):
    model, Z = forest
    explainer = MeasureExplainer(model, Conditional()).set_params(measure__bandwidth=0.25)
    explainer.fit(Z)
    assert_array_equal(explainer.measure_.bandwidth_, np.full(3, 0.25))
    assert not hasattr(explainer.measure, "bandwidth_")  # what was given is never fitted
    again = clone(explainer)
    assert again.measure.bandwidth == 0.25 and not hasattr(again, "measure_")
    again.set_params(estimator=model)
    assert_array_equal(again.fit(Z).explain(Z).values, explainer.explain(Z).values)
    assert repr(Conditional("knn", n_neighbors=3)) == "Conditional(estimator='knn', n_neighbors=3)"
    named = MeasureExplainer(model, "conditional").fit(Z)
    assert repr(named.measure_) == "Conditional()"
    plain = MeasureExplainer(model, Conditional()).fit(Z)
    assert_array_equal(named.explain(Z).values, plain.explain(Z).values)
    combined = (Conditional() - Expectation()).set_params(term0__n_bins=7)
    assert combined.get_params()["term0__n_bins"] == 7


@pytest.mark.slow
def test_partial_fit_is_not_there_and_says_why(forest):
    model, Z = forest
    for measure in ("conditional", PartialDependence() + Conditional("gmm")):
        explainer = MeasureExplainer(model, measure)
        assert not hasattr(explainer, "partial_fit")
        with pytest.raises(AttributeError) as error:
            explainer.partial_fit(Z)
        text = f"{error.value} {error.value.__cause__}"
        assert "Conditional(" in text and "all rows together" in text and "fit" in text


# -- families ------------------------------------------------------------------------------------


def shares(mixture, t, k):
    """π_c(t) of one column."""
    density = mixture.weights * norm.pdf(t, mixture.means[:, k], mixture.scales[:, k])
    return density / density.sum()


@pytest.mark.slow
def test_gmm_on_trees_in_closed_form():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(120, 3)) + 4 * rng.integers(0, 2, (120, 1)) * [1, -1, 0]
    tree = DecisionTreeRegressor(max_leaf_nodes=9, random_state=0).fit(Z, answer(Z))
    explainer = MeasureExplainer(tree, Conditional("gmm", n_components=2)).fit(Z)
    assert explainer.engine_ == ("box_mixture",) and explainer.exact_
    law = explainer.measure_.family_
    assert law.means.shape == (2, 3)
    boxes = list(leaf_boxes(tree.tree_))
    X = np.r_[Z[:10], [[30.0, -30.0, 0.0]], tree.tree_.threshold[:3, None] * np.ones(3)]
    found = explainer.explain(X)
    assert found.exact and found.std_error is None
    for i, x in enumerate(X):
        for j in range(3):
            total = 0.0
            for c, share in enumerate(shares(law, x[j], j)):
                for low, high, value in boxes:
                    mass = np.diff(norm.cdf([low, high], law.means[c], law.scales[c]), axis=0)[0]
                    mass[j] = low[j] < x[j] <= high[j]
                    total += share * value * mass.prod()
            assert found.values[i, j] == pytest.approx(total, abs=1e-9)
    assert explainer.curve(0).kind == "function"
    assert_array_equal(explainer.curve(0)(X[:, 0]), found.values[:, 0])


def leaf_boxes(tree, node=0, low=None, high=None):
    """Yield the corners and the value of each leaf."""
    low = np.full(tree.n_features, -np.inf) if low is None else low
    high = np.full(tree.n_features, np.inf) if high is None else high
    if tree.children_left[node] < 0:
        yield low, high, float(tree.value[node, 0, 0])
        return
    k, cut = tree.feature[node], float32_edge(tree.threshold[node])
    upto, above = high.copy(), low.copy()
    upto[k], above[k] = min(high[k], cut), max(low[k], cut)
    yield from leaf_boxes(tree, tree.children_left[node], low, upto)
    yield from leaf_boxes(tree, tree.children_right[node], above, high)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, {"g": ["x0", "x2"]}])
def test_gmm_against_its_own_points(forest, groups):
    model, Z = forest
    X = Z[:5]
    settings = {"groups": groups, "random_state": 0, "tol": 3e-3}
    exact = MeasureExplainer(model, Conditional("gmm"), groups=groups).fit(Z).explain(X)
    for one in (model, model.predict):
        explainer = MeasureExplainer(
            one, Conditional("gmm"), engine="quasi_monte_carlo", **settings
        ).fit(Z)
        found = explainer.explain(X)
        assert not found.exact and explainer.engine_ == ("quasi_monte_carlo",)
        assert (np.abs(found.values - exact.values) <= 5 * found.std_error + 1e-12).all()
        assert_allclose(found.support, exact.support)


@pytest.mark.slow
@every_family
def test_families_on_affine_models(family):
    Z = correlated(11, 80)
    X = np.r_[Z[:6], [[4.0, -4.0, 0.0]]]
    weight = 1.0 + np.arange(80) % 3
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(Z, answer(Z))
    explainer = MeasureExplainer(model, Conditional(family)).fit(Z, sample_weight=weight)
    assert explainer.engine_ == ("affine",) and explainer.exact_
    found = explainer.explain(X)
    assert found.exact and found.std_error is None
    share = weight / weight.sum()
    mean = share @ Z
    covariance = (Z - mean).T @ ((Z - mean) * share[:, None])
    law = explainer.measure_.family_
    for j in range(3):
        for i, x in enumerate(X):
            if family == "gaussian":
                center = mean + covariance[j] / covariance[j, j] * (x[j] - mean[j])
            elif family == "gmm":
                center = shares(law, x[j], j) @ law.means
            else:
                center = copula_center(Z, share, x[j], j)
            center[j] = x[j]
            assert found.values[i, j] == pytest.approx(model.predict([center])[0], abs=1e-8)


def copula_center(Z, share, t, j):
    """The means of all columns given one, by sums over the values of the data."""

    def rank(k, t):
        return share[Z[:, k] < t].sum() + share[Z[:, k] == t].sum() / 2

    scores = norm.ppf([[rank(k, z) for z in Z[:, k]] for k in range(3)])
    scale = np.sqrt([share @ (s - share @ s) ** 2 for s in scores])
    middle = scores @ share
    z = (scores - middle[:, None]) / scale[:, None]
    correlation = (z * share) @ z.T
    at = norm.ppf(rank(j, np.clip(t, Z[:, j].min(), Z[:, j].max())))
    at = (at - middle[j]) / scale[j]
    center = np.empty(3)
    for k in range(3):
        values = np.unique(Z[:, k])
        upto = np.array([share[Z[:, k] <= v].sum() for v in values])
        rho = correlation[j, k]
        spread = np.sqrt(max(1 - rho**2, 1e-300))
        below = norm.cdf((norm.ppf(np.clip(upto, 0, 1)) - rho * at) / spread)
        below[-1] = 1.0
        center[k] = np.diff(below, prepend=0.0) @ values
    return center


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "copula"])
def test_families_elsewhere_have_errors(family, forest):
    model, Z = forest
    X = Z[:3]
    explainer = MeasureExplainer(model, Conditional(family), random_state=0, tol=3e-3).fit(Z)
    found = explainer.explain(X)
    assert not explainer.exact_ and not found.exact and found.std_error.shape == (3, 3)
    assert explainer.engine_ == ("quasi_monte_carlo",)
    assert "approximate" in explainer.describe()
    other = MeasureExplainer(model, Conditional(family), random_state=1, tol=3e-3).fit(Z).explain(X)
    error = np.hypot(found.std_error, other.std_error)
    assert (np.abs(found.values - other.values) <= 5 * error).all()
    with pytest.raises(ValueError, match=f"no exact engine.*{family}"):
        MeasureExplainer(model, Conditional(family), engine="exact").fit(Z)
    square = MeasureExplainer(lambda X: X[:, 1] ** 2, Conditional(family), random_state=0).fit(Z)
    if family == "gaussian":  # E[Y²] = mean² + variance
        mean, covariance = Z.mean(axis=0), np.cov(Z.T, bias=True)
        got = square.explain(X)
        slope = covariance[0, 1] / covariance[0, 0]
        wanted = (mean[1] + slope * (X[:, 0] - mean[0])) ** 2
        wanted += covariance[1, 1] - slope * covariance[0, 1]
        assert (np.abs(got.values[:, 0] - wanted) <= 5 * got.std_error[:, 0]).all()
        assert_allclose(got.values[:, 1], X[:, 1] ** 2)


# -- bad input -----------------------------------------------------------------------------------


def refused(explainer, X, *words, **settings):
    """`fit` raises a ValueError with these words, and leaves nothing fitted."""
    with pytest.raises(ValueError) as error:
        explainer.fit(X, **settings)
    for word in words:
        assert word in str(error.value), error.value
    for name in ("measure_", "base_value_", "engine_"):
        assert not hasattr(explainer, name)
    with pytest.raises(NotFittedError):
        explainer.explain(X)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": "tree"}, ["'tree'", "kernel", "gmm"]),
        ({"estimator": None}, ["None", "kernel"]),
        ({"estimator": ["kernel"]}, ["['kernel']"]),
        ({"bandwidth": 0}, ["bandwidth", "positive"]),
        ({"bandwidth": -0.5}, ["bandwidth", "-0.5"]),
        ({"bandwidth": float("nan")}, ["bandwidth", "nan"]),
        ({"bandwidth": "wide"}, ["bandwidth", "'wide'"]),
        ({"estimator": "knn", "bandwidth": 0.1}, ["bandwidth", "kernel"]),
        ({"estimator": "gaussian", "bandwidth": 0.1}, ["bandwidth", "local_linear"]),
        ({"n_neighbors": 5}, ["n_neighbors", "knn"]),
        ({"estimator": "knn", "n_neighbors": 0}, ["n_neighbors", "at least 1"]),
        ({"estimator": "knn", "n_neighbors": 2.5}, ["n_neighbors", "integer"]),
        ({"estimator": "knn", "n_neighbors": True}, ["n_neighbors", "integer"]),
        ({"n_components": 2}, ["n_components", "gmm"]),
        ({"estimator": "gmm", "n_components": 0}, ["n_components", "at least 1"]),
        ({"n_bins": 1}, ["n_bins", "at least 2"]),
        ({"n_bins": None}, ["n_bins"]),
        ({"n_bins": 20.0}, ["n_bins", "integer"]),
    ],
)
def test_bad_parameters(forest, settings, words):
    model, Z = forest
    refused(MeasureExplainer(model, Conditional(**settings)), Z, *words)
    refused(MeasureExplainer(model, Conditional(**settings) - Expectation()), Z, *words)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, *FAMILIES])
def test_few_rows(forest, kind):
    model, Z = forest
    words = ["at least 5", "4", "PartialDependence()"]
    refused(MeasureExplainer(model, Conditional(kind)), Z[:4], *words)
    weight = [1, 2, 0, 1, 0, 1]
    refused(MeasureExplainer(model, Conditional(kind)), Z[:6], *words, sample_weight=weight)
    explainer = MeasureExplainer(model, Conditional(kind), tol=0.1, random_state=0).fit(Z[:5])
    assert np.isfinite(explainer.explain(Z).values).all()


@pytest.mark.slow
@every_kind
def test_a_column_that_is_all_missing(kind):
    Z = pd.DataFrame(correlated(12, 20), columns=["a", "b", "c"])
    f = lambda X: X["a"].to_numpy()  # noqa: E731
    refused(MeasureExplainer(f, Conditional(kind)), Z.assign(b=np.nan), "'b'", "missing in every")
    words = Z.assign(b=pd.Series([None] * 20, dtype=object))
    refused(MeasureExplainer(f, Conditional(kind)), words, "'b'", "missing in every")
    later = Z.assign(b=Z["b"].where(np.arange(20) < 3))
    weight = np.r_[np.zeros(3), np.ones(17)]  # what is present does not count
    refused(MeasureExplainer(f, Conditional(kind)), later, "'b'", sample_weight=weight)


@pytest.mark.slow
@every_family
def test_families_take_numbers_only(family):
    Z = pd.DataFrame(correlated(12, 20), columns=["a", "b", "c"])
    f = lambda X: X["a"].to_numpy()  # noqa: E731
    spoiled = {
        "category": Z.assign(b=pd.Categorical(["u", "v"] * 10)),
        "words": Z.assign(b=["u", "v"] * 10),
        "booleans": Z.assign(b=[True, False] * 10),
        "dates": Z.assign(b=pd.date_range("2024", periods=20)),
        "missing": Z.assign(b=Z["b"].mask(Z["b"] > 1)),
        "infinite": Z.assign(b=Z["b"].replace(Z["b"].max(), np.inf)),
    }
    for X in spoiled.values():
        refused(MeasureExplainer(f, Conditional(family)), X, "'b'", family, "Conditional('kernel')")
    codes = Z.assign(b=np.arange(20) % 4)
    model = make_pipeline(
        make_column_transformer((OrdinalEncoder(), ["b"]), remainder="passthrough"),
        RandomForestRegressor(2, random_state=0),
    ).fit(codes, Z["a"])
    refused(MeasureExplainer(model, Conditional(family)), codes, "'b'", "Conditional('kernel')")


@pytest.mark.slow
def test_an_infinite_own_value():
    Z = correlated(10, 50)
    at = np.array([[np.inf, 0.0, 1.0]])
    f = lambda X: np.clip(X, -9, 9).sum(axis=1)  # noqa: E731
    settings = {"tol": 0.05, "random_state": 0}
    with pytest.raises(ValueError, match=r"infinite value.*'kernel'"):
        MeasureExplainer(f, Conditional("gaussian"), **settings).fit(Z).explain(at)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("copula", "gmm", *KINDS):
            found = MeasureExplainer(f, Conditional(kind), **settings).fit(Z).explain(at)
            assert np.isfinite(found.values).all()


@pytest.mark.slow
def test_table_of_a_boolean_column():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.uniform(size=60) < 0.4})
    X["a"] += X["b"]
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X["a"] + 2 * X["b"])
    explainer = MeasureExplainer(tree, Conditional()).fit(X)
    table = explainer.curve("b").to_frame().set_index("level")["value"]
    assert explainer.curve("b").kind == "levels"
    assert_array_equal([table[False], table[True]], explainer.curve("b")([False, True]))


@pytest.mark.slow
def test_curve_of_levels_that_the_model_ignores():
    frame = pd.DataFrame({"x": np.arange(40.0), "word": ["a", "b", None, "c"] * 10})
    pipeline = make_pipeline(
        ColumnTransformer([("x", "passthrough", ["x"])]),
        DecisionTreeRegressor(max_depth=3, random_state=0),
    ).fit(frame, frame["x"] ** 2)
    explainer = MeasureExplainer(pipeline, Conditional()).fit(frame)
    curve = explainer.curve("word")
    table = curve.to_frame().set_index("level")["value"]
    assert curve.kind == "levels"
    assert table.index.to_list() == ["a", "b", "c", "missing", "any other"]
    assert_array_equal(table.iloc[:3], curve(["a", "b", "c"]))
    assert table["any other"] == pytest.approx(explainer.base_value_)
