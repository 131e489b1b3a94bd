"""The reader of LightGBM, against LightGBM's margin and against its leaves."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit, logit, softmax
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skattr import MeasureExplainer
from skattr.pieces.base import Unreadable
from skattr.pieces.boxes import Boxes
from skattr.pieces.outputs import Output
from skattr.pieces.readers.lightgbm import margin, read, scales
from skattr.pieces.readers.lightgbm.front import TINY
from tests.helpers.comparison import by_definition

lgb = pytest.importorskip("lightgbm")

SMALL = {
    "num_leaves": 7,
    "min_data_in_leaf": 3,
    "min_data_per_group": 2,
    "min_data_in_bin": 1,
    "cat_smooth": 0.1,
    "cat_l2": 0.1,
    "verbose": -1,
    "num_threads": 1,
    "seed": 0,
}
REGRESSION = {"objective": "regression"}
FOREST = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7, "feature_fraction": 0.7}


def booster_of(model):
    return getattr(model, "booster_", model)


def k_of(model):
    return booster_of(model).num_model_per_iteration()


def boxes_of(model, scale="raw"):
    names = [str(i) for i in range(k_of(model))]
    output = Output(model, "predict", scale, None, names)
    return Boxes(read(model, scale), output, np.zeros((1, booster_of(model).num_feature())))


def by_leaves(model, X):
    """Sum the leaves that LightGBM finds, in float64."""
    booster, k = booster_of(model), k_of(model)
    leaves = np.asarray(model.predict(X, pred_leaf=True)).reshape(len(X), -1)
    total = np.zeros((len(X), k))
    for t, found in enumerate(leaves.T):
        values = {leaf: booster.get_leaf_output(t, leaf) for leaf in np.unique(found).tolist()}
        total[:, t % k] += [values[leaf] for leaf in found.tolist()]
    if "\naverage_output\n" in booster.model_to_string():
        total /= leaves.shape[1] // k
    return total


def check(model, X, scale="raw"):
    boxes = boxes_of(model, scale)
    found = boxes.evaluate(boxes.grid.encode(X))
    wanted = by_leaves(model, X)
    size = np.abs(wanted).max() + 1
    assert_allclose(found, wanted, rtol=0, atol=1e-12 * size)
    assert_allclose(found, margin(model, X).reshape(len(X), -1), rtol=0, atol=1e-12 * size)
    if scale == "predict":
        own = np.asarray(model.predict(X)).reshape(len(X), -1)
        assert_allclose(found, own, rtol=0, atol=1e-12 * size)
    return boxes


def lines(model, key):
    text = booster_of(model).model_to_string().split("\n")
    return [line.partition("=")[2] for line in text if line.startswith(f"{key}=")]


def hard_rows(model, X, rng, n=400):
    """Rows of X with entries on, and next to, the thresholds, and with all odd values."""
    thresholds = np.array([float(t) for line in lines(model, "threshold") for t in line.split()])
    single = thresholds.astype(np.float32)
    values = np.concatenate([thresholds, single])
    for near in (thresholds, single):
        for end in (-np.inf, np.inf):
            values = np.concatenate([values, np.nextafter(near, near.dtype.type(end))])
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, TINY, -TINY, 1e-36, -1e-36, 1e300, 2e300, -2e300]
    odd += [np.nextafter(TINY, 1), np.nextafter(-TINY, -1), np.nextafter(TINY, 0)]
    values = np.concatenate([values, np.tile(odd, len(values) // len(odd) + 1)])
    result = X[rng.integers(0, len(X), n)].astype(float)
    swap = rng.random(result.shape) < 0.6
    result[swap] = rng.choice(values, swap.sum())
    return result


def numbers(rng, n=200, missing=0.15, zeros=0.3):
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n).round(1), rng.integers(-3, 4, n)])
    X[rng.random(X.shape) < zeros] = 0.0
    X[rng.random(X.shape) < missing] = np.nan
    return X


def target(X, rng):
    Z = np.nan_to_num(X, nan=2.5)
    return Z[:, 0] * (Z[:, 1] > 0) + np.isin(Z[:, 2], [0, 2, 2.5]) + 0.1 * rng.normal(size=len(Z))


def train(params, X, y, rounds=8, **more):
    return lgb.train({**SMALL, **params}, lgb.Dataset(X, y, **more), rounds)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    missing=st.sampled_from([0.0, 0.2]),
    params=st.sampled_from(
        [{}, {"use_missing": False}, {"zero_as_missing": True}, {"max_bin": 4}, {"num_leaves": 2}]
    ),
    boosting=st.sampled_from([{}, {"boosting": "dart"}, FOREST, {"data_sample_strategy": "goss"}]),
    weighted=st.booleans(),
)
def test_regression(seed, missing, params, boosting, weighted):
    rng = np.random.default_rng(seed)
    X = numbers(rng, missing=missing)
    weight = rng.uniform(0, 2, len(X)) if weighted else None
    model = train({**REGRESSION, **params, **boosting}, X, target(X, rng), weight=weight)
    rows = hard_rows(model, X, rng)
    check(model, X, "predict")
    check(model, rows, "predict")
    check(model, rows[:1])


def test_all_missing_types_are_met():
    rng = np.random.default_rng(0)
    found = set()
    for params in ({}, {"use_missing": False}, {"zero_as_missing": True}):
        X = numbers(rng)
        model = train({**REGRESSION, **params}, X, target(X, rng))
        found |= {int(d) for line in lines(model, "decision_type") for d in line.split()}
    assert found >= {2, 4, 6, 8, 10}  # none; zero and nan, to the right and to the left


@pytest.mark.slow
@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    params=st.sampled_from([{}, {"use_missing": False}, {"zero_as_missing": True}]),
    largest=st.sampled_from([6, 40, 5000]),
    kind=st.sampled_from(["regression", "binary", "multiclass"]),
)
def test_integer_categories(seed, params, largest, kind):
    rng = np.random.default_rng(seed)
    X = numbers(rng)
    X[:, 2] = rng.choice(rng.integers(0, largest, 12), len(X))
    X[rng.random(len(X)) < 0.1, 2] = np.nan
    y = np.nan_to_num(X[:, 0]) + (X[:, 2] % 3)
    y = np.nan_to_num(y, nan=-1.0)
    if kind != "regression":
        y = np.digitize(y, [1.0] if kind == "binary" else [0.5, 1.5])
    if kind == "multiclass":
        params = {**params, "num_class": 3}
    model = train({"objective": kind, **params}, X, y, categorical_feature=[2])
    assert any(int(n) for n in lines(model, "num_cat"))
    rows = hard_rows(model, X, rng)
    codes = X[rng.integers(0, len(X), len(rows)), 2]
    odd = [np.nan, -1, -0.5, -0.0, 0.5, 1e-36, 2.7, 7777, 3e9, -3e9, np.inf, -np.inf, 2.0**31]
    rows[:, 2] = np.where(rng.random(len(rows)) < 0.5, codes, rng.choice(odd, len(rows)))
    rows[:, 2] += rng.choice([0.0, 0.3, 1.0], len(rows))
    check(model, X)
    boxes = check(model, rows)
    assert all(isinstance(level, int) for level, _ in boxes.grid.cells[2].labels)


def frame(rng, n=250):
    X = pd.DataFrame(
        {
            "a b": rng.normal(size=n).round(1),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue", "grey"], n)),
            "count": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "size": pd.Categorical(rng.choice([30, 10, 20], n)),
            "flag": rng.random(n) < 0.5,
        }
    )
    X.loc[rng.random(n) < 0.1, ["a b", "count", "colour"]] = None
    y = X["a b"].fillna(2) * (X["colour"] == "red") + (X["size"] == 10) + X["flag"]
    return X, y.to_numpy(float) + (X["count"].fillna(1).to_numpy(float) > 2)


def other_frame(X, rng):
    """The same columns with categories in another order, new ones, and other types."""
    Z = X.copy()
    Z["colour"] = pd.Categorical(rng.choice(["mauve", "blue", "red", None], len(X)))
    Z["size"] = pd.Categorical(rng.choice([10, 99, 30, 20], len(X)), categories=[99, 30, 20, 10])
    Z["count"] = Z["count"].astype("Float32")
    Z["flag"] = pd.array(Z["flag"], dtype="boolean")
    Z.loc[:5, "flag"] = None
    return Z


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "params", [{}, {"use_missing": False}, {"zero_as_missing": True}, {"max_cat_to_onehot": 1}]
)
def test_pandas_categories(seed, params):
    rng = np.random.default_rng(seed)
    X, y = frame(rng)
    wrapper = lgb.LGBMRegressor(n_estimators=8, **{**SMALL, **params}).fit(X, y)
    for model in (wrapper, wrapper.booster_, train({**REGRESSION, **params}, X, y)):
        boxes = check(model, X, "predict")
        assert [v for v, _ in boxes.grid.cells[1].labels] == ["blue", "green", "grey", "red"]
        assert [v for v, _ in boxes.grid.cells[3].labels] == [10, 20, 30]
        check(model, other_frame(X, rng), "predict")
        check(model, X.iloc[:1], "predict")


def test_pandas_categories_after_pickling_and_loading():
    rng = np.random.default_rng(0)
    X, y = frame(rng)
    model = train(REGRESSION, X, y)
    for copy in (
        pickle.loads(pickle.dumps(model)),
        lgb.Booster(model_str=model.model_to_string()),
    ):
        check(copy, other_frame(X, rng), "predict")


def test_codes_in_the_place_of_pandas_categories():
    rng = np.random.default_rng(0)
    X, y = frame(rng)
    model = train(REGRESSION, X, y)
    codes = np.column_stack([X["a b"], rng.integers(-1, 6, len(X)), *rng.integers(0, 4, (3, 250))])
    check(model, codes.astype(float), "predict")
    check(model, pl.DataFrame(codes, schema=list("abcde")), "predict")


@pytest.mark.parametrize("params", [{}, {"use_missing": False}, {"zero_as_missing": True}])
def test_ordered_categories_are_compared(params):
    rng = np.random.default_rng(1)
    X, y = frame(rng)
    X = X.drop(columns=["count", "flag"])  # they look like the numbers of categories
    grade = pd.Categorical(rng.choice(["C", "A", "B", None], len(X)), ["C", "B", "A"], ordered=True)
    X.insert(1, "grade", grade)
    y = y + np.where(X["grade"].isna(), 1.5, X["grade"].cat.codes)
    model = train({**REGRESSION, **params}, X, y)
    boxes = check(model, X, "predict")
    assert [v for v, _ in boxes.grid.cells[1].labels] == ["C", "B", "A"]
    Z = X.copy()
    Z["grade"] = pd.Categorical(rng.choice(["A", "Z", "C", None], len(X)))
    check(model, Z, "predict")
    codes = np.column_stack([np.zeros(3), [0, 1, 2.5], np.zeros(3), np.zeros(3)])
    check(model, codes[:2], "predict")
    with pytest.raises(ValueError, match=r"'x1': 2\.5 is not the number of a category"):
        boxes.grid.encode(codes)


def test_ordered_categories_that_look_like_other_numbers_are_no_guess():
    rng = np.random.default_rng(2)
    X, y = frame(rng)
    X["size"] = X["size"].cat.as_ordered()
    model = train(REGRESSION, X, y)
    with pytest.raises(Unreadable, match="does not tell which"):
        read(model, "raw")


def test_categories_of_one_level_have_their_place():
    rng = np.random.default_rng(3)
    X, y = frame(rng)
    X.insert(0, "same", pd.Categorical(["only"] * len(X)))
    boxes = check(train(REGRESSION, X, y), X, "predict")
    assert [v for v, _ in boxes.grid.cells[0].labels] == ["only"]
    assert [v for v, _ in boxes.grid.cells[2].labels] == ["blue", "green", "grey", "red"]


def test_a_category_column_without_values():
    rng = np.random.default_rng(3)
    X, y = frame(rng)
    X.insert(1, "nothing", pd.Categorical([None] * len(X)))
    model = train(REGRESSION, X, y)
    check(model, X, "predict")
    check(model, X.assign(nothing=pd.Categorical(["new"] * len(X))), "predict")


def test_integer_columns_named_categorical_beside_pandas_categories():
    rng = np.random.default_rng(4)
    X, y = frame(rng)
    X["count"] = rng.integers(20, 40, len(X))
    y = y + X["count"] % 4
    model = train(REGRESSION, X, y, categorical_feature=["colour", "count", "size"])
    boxes = check(model, X, "predict")
    assert [v for v, _ in boxes.grid.cells[1].labels] == ["blue", "green", "grey", "red"]
    assert [v for v, _ in boxes.grid.cells[2].labels] == list(range(20, 40))


def test_continued_training_with_other_missing_types_and_codes():
    rng = np.random.default_rng(5)
    X = numbers(rng, missing=0.0)
    X[:, 2] = rng.integers(0, 9, len(X))
    y = X[:, 0] + X[:, 2] % 3
    first = train(REGRESSION, X, y, categorical_feature=[2])
    Z = X.copy()
    Z[::4, :2] = np.nan
    Z[:, 2] += 5
    data = lgb.Dataset(Z, y + (X[:, 2] == 6), categorical_feature=[2])
    model = lgb.train({**SMALL, **REGRESSION}, data, 8, init_model=first)
    for rows in (X, Z, hard_rows(model, X, rng)):
        check(model, rows, "predict")
    data = lgb.Dataset(Z, y, categorical_feature=[2])
    mixed = lgb.train({**SMALL, **REGRESSION, "zero_as_missing": True}, data, 8, init_model=first)
    with pytest.raises(Unreadable, match=r"0\.0 is missing for some trees"):
        read(mixed, "raw")
    mixed = lgb.train({**SMALL, **REGRESSION}, lgb.Dataset(Z, y), 8, init_model=first)
    with pytest.raises(Unreadable, match="column 2 holds categories for some trees"):
        read(mixed, "raw")


@pytest.mark.parametrize("extra", [{}, FOREST, {"boosting": "dart"}])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classifiers(extra, n_classes):
    rng = np.random.default_rng(6)
    X = numbers(rng)
    y = np.array(["d", "a", "c", "b"])[np.digitize(target(X, rng), [0, 0.5, 1][: n_classes - 1])]
    model = lgb.LGBMClassifier(n_estimators=6, **{**SMALL, **extra}).fit(X, y)
    assert scales(model) == scales(model.booster_) == ("raw",)
    rows = hard_rows(model, X, rng)
    check(model, rows)
    check(model.booster_, rows)
    raw = margin(model, rows)
    assert raw.shape == ((len(rows),) if n_classes == 2 else (len(rows), 4))
    proba = model.predict_proba(rows)
    if n_classes == 2:
        assert_allclose(1 / (1 + np.exp(-raw)), proba[:, 1], rtol=1e-12)
    else:
        power = np.exp(raw - raw.max(axis=1, keepdims=True))
        assert_allclose(power / power.sum(axis=1, keepdims=True), proba, rtol=1e-11)


WITH_LINK = ("poisson", "gamma", "tweedie", "cross_entropy", "cross_entropy_lambda", "binary")
WITHOUT = ("regression", "regression_l1", "huber", "fair", "quantile", "mape")


@pytest.mark.parametrize("sqrt", [False, True])
@pytest.mark.parametrize("objective", WITH_LINK + WITHOUT)
def test_links(objective, sqrt):
    rng = np.random.default_rng(7)
    X = numbers(rng)
    y = np.abs(target(X, rng)) + 0.1
    y = y / y.max() * 0.9
    if objective == "binary":
        y = (y > 0.3) * 1
    model = train({"objective": objective, "reg_sqrt": sqrt}, X, y)
    linked = not np.array_equal(model.predict(X), model.predict(X, raw_score=True))
    assert scales(model) == (("raw",) if linked else ("predict", "raw"))
    check(model, hard_rows(model, X, rng), scales(model)[0])
    wrapper = lgb.LGBMRegressor(objective=objective, reg_sqrt=sqrt, n_estimators=3, **SMALL)
    assert scales(wrapper.fit(X, y)) == scales(model)


def test_an_objective_of_the_user_has_no_link():
    rng = np.random.default_rng(8)
    X = numbers(rng)
    y = target(X, rng)
    model = lgb.LGBMRegressor(
        objective=lambda y, f: (f - y, np.ones_like(f)), n_estimators=4, **SMALL
    ).fit(X, y)
    assert scales(model) == ("predict", "raw")
    check(model, hard_rows(model, X, rng), "predict")


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg"])
def test_rankers(objective):
    rng = np.random.default_rng(9)
    X = numbers(rng)
    y = (target(X, rng) > 0.5) * 1
    model = lgb.LGBMRanker(objective=objective, n_estimators=5, **SMALL)
    model.fit(X, y, group=[20] * 10)
    assert scales(model) == ("predict", "raw")
    check(model, hard_rows(model, X, rng), "predict")


@pytest.mark.parametrize("extra", [{}, FOREST])
def test_the_best_iteration(extra):
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + rng.normal(size=300)
    data = lgb.Dataset(X[:150], y[:150])
    held = lgb.Dataset(X[150:], y[150:], reference=data)
    params = {**SMALL, **REGRESSION, **extra, "learning_rate": 0.5}
    with warnings.catch_warnings():  # a forest is warned about early stopping
        warnings.simplefilter("ignore")
        stop = [lgb.early_stopping(3, verbose=False)]
        model = lgb.train(
            params, data, 60, valid_sets=[held], callbacks=stop, keep_training_booster=True
        )
        wrapper = lgb.LGBMRegressor(n_estimators=60, **{**SMALL, **extra}, learning_rate=0.5)
        wrapper.fit(X[:150], y[:150], eval_set=[(X[150:], y[150:])], callbacks=stop)
    assert 0 < model.best_iteration < model.num_trees()  # the wrapper drops the later trees
    for fitted in (model, wrapper):
        assert len(read(fitted, "raw")[0].roots) == booster_of(fitted).best_iteration
        check(fitted, X, "predict")


def test_trees_of_one_leaf():
    X = np.random.default_rng(11).normal(size=(50, 2))
    model = train(REGRESSION, X, np.full(50, 3.0))
    boxes = check(model, X, "predict")
    assert boxes.n_boxes == 1
    y = np.where(X[:, 0] > 0, 2, 0)  # nothing to split for class 1
    model = train({"objective": "multiclass", "num_class": 3}, X, y, 4)
    assert "1" in lines(model, "num_leaves")
    check(model, X)


def test_what_is_no_sum_of_boxes():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(100, 2))
    linear = train({**REGRESSION, "linear_tree": True}, X, X[:, 0])
    with pytest.raises(Unreadable, match="linear_tree"):
        read(linear, "raw")
    early = lgb.LGBMClassifier(n_estimators=3, pred_early_stop=True, **SMALL)
    with pytest.raises(Unreadable, match="pred_early_stop"):
        read(early.fit(X, X[:, 0] > 0), "raw")
    with pytest.raises(Unreadable, match="no trees"):
        read(lgb.Booster({**SMALL, **REGRESSION}, lgb.Dataset(X, X[:, 0])), "raw")


class OtherFormat:
    """A model of a LightGBM to come."""

    def __init__(self, booster, old, new):
        self.booster, self.old, self.new = booster, old, new

    def model_to_string(self):
        return self.booster.model_to_string().replace(self.old, self.new)


@pytest.mark.parametrize(
    ("old", "new"),
    [("version=v4", "version=v9"), ("\nthreshold=", "\ncut="), ("left_child=1", "left_child=0")],
)
def test_an_unknown_format_is_told(old, new):
    X = np.random.default_rng(13).normal(size=(100, 2))
    model = train(REGRESSION, X, X[:, 0])
    with pytest.raises(Unreadable, match=f"lightgbm {lgb.__version__} is not known here"):
        read(OtherFormat(model, old, new), "raw")


def test_what_is_of_another_library():
    for other in (object(), np.mean, lgb.Dataset(np.zeros((3, 1)))):
        assert scales(other) == ()
    assert scales(lgb.DaskLGBMRegressor) == ()


def test_kinds_of_arrays_and_frames():
    rng = np.random.default_rng(14)
    X = np.column_stack([rng.integers(0, 2**26, 200), rng.integers(-5, 5, 200)]) * 1.0
    model = lgb.LGBMRegressor(n_estimators=8, **SMALL).fit(X, X[:, 0] / 2**26 + X[:, 1])
    near = [float(t) for line in lines(model, "threshold") for t in line.split()]
    near = np.array([t for t in near if t > 100]).round().astype(np.int64)
    rows = np.column_stack([near, np.resize([-2, 0, 3], len(near))])
    for kind in (np.int64, np.int32, np.float32, np.float64, object):
        check(model, rows.astype(kind), "predict")
        check(model.booster_, rows.astype(kind), "predict")
        if kind is not object:
            check(model, pd.DataFrame(rows.astype(kind)), "predict")
            check(model, pl.DataFrame(rows.astype(kind), schema=["a", "b"]), "predict")
    check(model, np.asfortranarray(rows.astype(float)), "predict")
    check(model.booster_, rows.astype(str), "predict")
    odd = pl.DataFrame({"a": [1, None, 2**25], "b": [True, False, None]})
    check(model, odd, "predict")
    thin = pd.DataFrame(rows).astype(pd.SparseDtype(float, 0.0))
    boxes = boxes_of(model)
    assert_allclose(
        boxes.evaluate(boxes.grid.encode(thin))[:, 0], model.predict(rows.astype(float))
    )


@pytest.mark.parametrize("params", [{}, {"use_missing": False}, {"zero_as_missing": True}])
@pytest.mark.parametrize(
    "kind", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.coo_array]
)
def test_an_absent_entry_is_zero(kind, params):
    rng = np.random.default_rng(15)
    X = numbers(rng)
    model = lgb.LGBMRegressor(n_estimators=8, **{**SMALL, **params})
    model.fit(sparse.csr_matrix(X), target(X, rng))
    boxes = check(model, X, "predict")
    assert boxes.grid.routes[0].front.absent == 0.0
    found = boxes.evaluate(boxes.grid.encode(X))[:, 0]
    assert_allclose(found, margin(model, kind(X)), atol=1e-12)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # arrays are meant
def test_what_predict_refuses():
    rng = np.random.default_rng(16)
    X, y = frame(rng)
    wrapper = lgb.LGBMRegressor(n_estimators=3, **SMALL).fit(X, y)
    for model in (wrapper, wrapper.booster_):
        front = boxes_of(model).grid.routes[0].front
        bad = {
            "'flag'": X.assign(flag="yes"),
            "'count'": X.assign(count=pd.Timestamp("2020-01-01")),
            "'a b'": X.assign(**{"a b": pd.Timedelta(1, "s")}),
            "'colour' is not of type category": X.assign(colour=X["colour"].astype(object)),
            "'count' is of type category": X.assign(count=X["count"].astype("category")),
            "'b'": pl.DataFrame({"a": [1.0], "b": ["x"], "c": [1], "d": [1], "e": [1]}),
            "has 4 columns": X.iloc[:, :4],
            "has 2 columns": np.zeros((3, 2)),
            "(?i)dimension|2D": np.zeros(5),
        }
        for told, Z in bad.items():
            with pytest.raises(ValueError, match=told):
                front.inputs(Z)
            with pytest.raises((ValueError, TypeError, lgb.basic.LightGBMError)):
                model.predict(Z)
    with pytest.raises(ValueError, match="strings"):
        boxes_of(wrapper).grid.encode(np.full((2, 5), "1"))


def test_category_columns_given_to_a_model_of_arrays_are_their_codes():
    rng = np.random.default_rng(17)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 4, 200)])
    y = X[:, 0] + (X[:, 1] == 2)
    for categorical in ([], [1]):
        model = train(REGRESSION, X, y, categorical_feature=categorical)
        Z = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(rng.choice([*"xyz", None], 200))})
        check(model, Z, "predict")


def test_leaves_keep_all_digits():
    rng = np.random.default_rng(18)
    X = rng.normal(size=(200, 3))
    model = train({**REGRESSION, "num_leaves": 31}, X, X[:, 0] * X[:, 1])
    (part,) = read(model, "raw")
    first = np.cumsum([int(n) for n in lines(model, "num_leaves")])
    exact = [
        model.get_leaf_output(t, leaf)
        for t, size in enumerate(np.diff(np.r_[0, first]))
        for leaf in range(size)
    ]
    assert_array_equal(part.values[:, 0], exact)
    dumped = model.trees_to_dataframe().sort_values(["tree_index", "node_index"])
    splits = dumped["threshold"].dropna()
    wanted = np.sort(splits.to_numpy(float))
    wanted[wanted == -TINY] = np.nextafter(-TINY, -1)  # -TINY itself is read as 0.0
    assert_array_equal(np.sort(part.edge[part.column >= 0]), wanted)


@pytest.mark.parametrize("objective", ["binary", "multiclass", "multiclassova"])
@pytest.mark.parametrize("piped", [False, True])
def test_classifiers_of_random_forests_are_exact(objective, piped):
    """Their decision_function is a sum over trees, but what the link gets is the mean."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] * X[:, 2] > 0.3) * (objective != "binary")
    model = lgb.LGBMClassifier(objective=objective, n_estimators=9, **SMALL, **FOREST)
    model = make_pipeline(StandardScaler(), model) if piped else model
    model.fit(X, y)
    explainer = MeasureExplainer(model, "partial_dependence").fit(X[:20])
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    explanation = explainer.explain(X[20:24])
    p = model.predict_proba(X[20:24])
    if objective == "multiclass":
        assert_allclose(softmax(explanation.predictions, axis=1), p, atol=1e-12)
    elif objective == "binary":
        assert_allclose(expit(explanation.predictions), p[:, 1], atol=1e-12)

    def f(rows):
        proba = model.predict_proba(rows)
        if objective == "binary":
            return logit(proba[:, 1:])
        own = model[-1] if piped else model
        return margin(own, model[0].transform(rows) if piped else rows)

    assert_allclose(explanation.values, by_definition(f, X[:20], X[20:24]), atol=1e-10)
