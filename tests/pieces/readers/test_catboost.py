"""CatBoost models, against the library's own predictions and leaves."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skattr import MeasureExplainer
from skattr.pieces import Boxes, Output, Unreadable

catboost = pytest.importorskip("catboost")
from skattr.pieces.readers import catboost as reader  # noqa: E402

QUIET = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
POLICIES = ["SymmetricTree", "Depthwise", "Lossguide"]
LARGEST = float(np.finfo(np.float32).max)


def read(model, row):
    (part,) = reader.read(model, "raw")
    names = [str(i) for i in range(len(part.constant))]
    return Boxes([part], Output(model, "predict", "raw", None, names), row)


def leaf_sums(model, X, k):
    """Add the leaves up by the library's own numbers of them."""
    counts = model.get_tree_leaf_counts()
    start = np.cumsum(counts) - counts
    values = np.reshape(model.get_leaf_values(), (-1, k))
    leaves = model.calc_leaf_indexes(X, thread_count=1) + start
    scale, bias = model.get_scale_and_bias()
    return scale * values[leaves].sum(axis=1) + bias


def check(model, X):
    boxes = read(model, X[:1])
    found = boxes.evaluate(boxes.grid.encode(X))
    size = max(1.0, np.abs(found).max())
    margin = reader.margin(model, X).reshape(len(found), -1)
    assert_allclose(found, margin, rtol=0, atol=1e-11 * size)
    assert_allclose(found, leaf_sums(model, X, found.shape[1]), rtol=0, atol=1e-12 * size)
    if "predict" in reader.scales(model):
        assert_array_equal(margin, np.reshape(model.predict(X), margin.shape))
    return boxes


def neighbours(borders):
    """Return the borders and what stands next to them in float32 and float64, and extremes."""
    b32 = np.asarray(borders, np.float32)
    b64 = b32.astype(np.float64)
    with np.errstate(over="ignore"):
        beside = [np.nextafter(b32, np.float32(end)).astype(float) for end in (-np.inf, np.inf)]
    around = [np.nextafter(b64, end) for end in (-np.inf, np.inf)]
    middle = [(b64 + side) / 2 for side in beside if np.isfinite(side).all()]
    ties = [np.nextafter(m, end) for m in middle for end in (-np.inf, np.inf)]
    largest = LARGEST * (1 + 2.0**-30)
    extremes = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 5e-324, 1e300, -1e300,
                LARGEST, -LARGEST, largest, -largest, 2.0**128 - 2.0**103]  # fmt: skip
    return np.concatenate([b64, *beside, *around, *middle, *ties, extremes])


def hard_rows(model, X, rng):
    """Return rows of values where a wrong comparison would show."""
    rows = X[rng.integers(len(X), size=400)].astype(float)
    for j, borders in model.get_borders().items():
        values = neighbours(borders)
        rows[:, j] = np.where(rng.random(400) < 0.7, rng.choice(values, 400), rows[:, j])
    return rows


def numbers(rng, missing=True):
    X = rng.normal(size=(150, 4))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = X[:, 2] > 0
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def target(X):
    return np.nan_to_num(X[:, 0], nan=3.0) * np.nan_to_num(X[:, 1], nan=-2.0) + np.isnan(X[:, 3])


# CatBoost's own word, on numpy 2.0, about numbers beyond float32
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    policy=st.sampled_from(POLICIES),
    nan_mode=st.sampled_from(["Min", "Max"]),
    loss=st.sampled_from(["RMSE", "MAE", "Poisson", "Tweedie:variance_power=1.5", "Logloss",
                          "MultiClass", "MultiClassOneVsAll", "MultiRMSE",
                          "RMSEWithUncertainty"]),
    native=st.booleans(),
    weighted=st.booleans(),
)  # fmt: skip
def test_numbers(seed, policy, nan_mode, loss, native, weighted):
    rng = np.random.default_rng(seed)
    X = numbers(rng)
    y = target(X) + 0.1 * rng.normal(size=len(X))
    kind = catboost.CatBoostRegressor
    if loss == "Logloss":
        y = (y > 0).astype(int)
    elif loss.startswith("MultiClass"):
        y = np.digitize(y, [-1, 1])
    elif loss == "MultiRMSE":
        y = np.c_[y, rng.normal(size=len(y))]
    elif loss[0] in "PT":
        y = np.abs(y)
    if loss.startswith(("Logloss", "MultiClass")):
        kind = catboost.CatBoostClassifier
    weight = rng.uniform(0.5, 2, size=len(X)) if weighted else None
    options = dict(iterations=int(rng.integers(1, 12)), depth=int(rng.integers(1, 5)),
                   nan_mode=nan_mode, loss_function=loss, grow_policy=policy,
                   border_count=int(rng.choice([3, 254])), **QUIET)  # fmt: skip
    model = catboost.CatBoost(options) if native else kind(**options)
    model.fit(X, y, sample_weight=weight)
    linked = kind is catboost.CatBoostClassifier or loss[0] in "PT" or "Uncertainty" in loss
    assert reader.scales(model) == (("raw",) if linked and not native else ("predict", "raw"))
    rows = np.concatenate([X, hard_rows(model, X, rng)])
    check(model, rows)
    with np.errstate(over="ignore"):
        check(model, rows.astype(np.float32))
    check(model, pd.DataFrame(rows))
    check(model, rows[:1])


@pytest.mark.parametrize("nan_mode", ["Min", "Max", "Forbidden"])
def test_missing_where_training_saw_none(nan_mode):
    rng = np.random.default_rng(0)
    X = numbers(rng, missing=False)
    model = catboost.CatBoostRegressor(10, depth=3, nan_mode=nan_mode, **QUIET).fit(X, target(X))
    check(model, hard_rows(model, X, rng))  # `Forbidden` is a rule for training alone


def test_borders_at_the_largest_float32():
    rng = np.random.default_rng(1)
    X = numbers(rng)
    for nan_mode, end in (("Min", -LARGEST), ("Max", LARGEST)):
        model = catboost.CatBoostRegressor(20, depth=3, nan_mode=nan_mode, **QUIET)
        model.fit(X, target(X) + 5 * np.isnan(X[:, 0]))
        assert end in np.concatenate(list(model.get_borders().values()))
        check(model, hard_rows(model, X, rng))


def test_borders_at_infinity_are_a_black_box():
    X = np.linspace(-1, 1, 60)[:, None] * [1.0, 2.0]
    X[:20, 0] = -np.inf
    model = catboost.CatBoostRegressor(5, **QUIET).fit(X, 3 * np.isinf(X[:, 0]) + X[:, 1] / 9)
    with pytest.raises(Unreadable, match=r"cannot write the model as JSON.*-inf"):
        reader.read(model, "raw")


@pytest.mark.parametrize("policy", POLICIES)
def test_early_stopping_scale_and_bias_sums(policy):
    rng = np.random.default_rng(2)
    X = numbers(rng)
    y = target(X)
    model = catboost.CatBoostRegressor(80, depth=3, learning_rate=0.5, grow_policy=policy, **QUIET)
    model.fit(X[:80], y[:80], eval_set=(X[80:], y[80:]), early_stopping_rounds=5)
    assert model.tree_count_ == model.best_iteration_ + 1 < 80
    rows = hard_rows(model, X, rng)
    assert len(check(model, rows).table.roots) == model.tree_count_
    other = catboost.CatBoostRegressor(5, depth=2, grow_policy=policy, **QUIET).fit(X, y)
    if policy == "SymmetricTree":
        model.set_scale_and_bias(-2.5, [7.25])
        check(model, rows)
        check(catboost.sum_models([other, other], weights=[0.25, 0.5]), rows)
    check(catboost.CatBoostRegressor(5, depth=2, grow_policy=policy, **QUIET).fit(
        X, y, init_model=other), rows)  # fmt: skip


def test_rankers_and_several_labels():
    rng = np.random.default_rng(3)
    X = numbers(rng)
    y = target(X)
    ranker = catboost.CatBoostRanker(10, depth=3, **QUIET)
    ranker.fit(X, np.digitize(y, [0, 1]), group_id=np.arange(150) // 10)
    assert reader.scales(ranker) == ("predict", "raw")
    check(ranker, hard_rows(ranker, X, rng))
    labels = catboost.CatBoostClassifier(10, depth=3, loss_function="MultiLogloss", **QUIET)
    labels.fit(X, np.c_[y > 0, X[:, 2] > 0].astype(int))
    check(labels, hard_rows(labels, X, rng))


def test_a_model_from_a_file(tmp_path):
    rng = np.random.default_rng(4)
    X = numbers(rng)
    model = catboost.CatBoostRegressor(5, loss_function="Poisson", **QUIET)
    model.fit(X, np.abs(target(X))).save_model(str(tmp_path / "model"))
    loaded = catboost.CatBoostRegressor().load_model(str(tmp_path / "model"))
    assert reader.scales(loaded) == ("raw",)  # the file holds the link
    assert_allclose(loaded.predict(X), np.exp(reader.margin(loaded, X)))
    check(loaded, X)


def levels(rng, n=200):
    return pd.DataFrame({
        "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        "word": rng.choice(["x", "yy", "nan", "", "ä", "3"], n),
        "whole": rng.integers(-1, 5, n),
        "many": pd.Categorical(rng.choice(list("abcdefg"), n)),
        "unused": "same",
    })  # fmt: skip


def level_target(X):
    word = X["word"].astype(str).map({"x": 1, "yy": 5, "nan": -3, "": 2, "ä": 4, "3": -6})
    return (word * X["number"].fillna(2) + X["whole"].astype(int) ** 2
            + 3 * X["many"].isin(list("bdf"))).to_numpy(float)  # fmt: skip


def level_model(rng, policy="SymmetricTree", loss="RMSE", X=None, iterations=20):
    X = levels(rng) if X is None else X
    y = level_target(X)
    if loss == "MultiClass":
        y = np.digitize(y, [0, 5])
    options = dict(iterations=iterations, depth=4, grow_policy=policy, loss_function=loss,
                   one_hot_max_size=50, cat_features=[1, 2, 3, 4], **QUIET)  # fmt: skip
    return catboost.CatBoost(options).fit(X, y), X


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("loss", ["RMSE", "MultiClass"])
@pytest.mark.parametrize("seed", range(3))
def test_levels(policy, loss, seed):
    rng = np.random.default_rng(seed)
    model, X = level_model(rng, policy, loss)
    check(model, X)
    new = X.copy()
    new["word"] = rng.choice(["x", "never seen", "yy", "3", "nan"], len(X))
    new["whole"] = rng.integers(-3, 9, len(X))
    new["many"] = pd.Categorical(rng.choice(list("gfzab"), len(X)), categories=list("zyxgfba"))
    check(model, new)
    check(model, new.iloc[:1])
    check(model, new.astype({"word": object, "many": str, "whole": str}))
    check(model, new.astype({"whole": "Int64", "number": "Float64", "word": "category"}))
    check(model, new.astype({"many": str}).to_numpy(object))
    check(model, pl.DataFrame(new.astype({"many": str, "word": str}).to_dict("list")))
    check(model, new.assign(whole=rng.random(len(X)) < 0.5))  # a column of booleans is 0 and 1
    check(model, new.assign(word=np.where(rng.random(len(X)) < 0.5, 3, 4)))  # 3 is "3"


def test_raw_values_are_found_as_the_library_finds_them():
    model, X = level_model(np.random.default_rng(0))
    boxes = check(model, X)
    codes = boxes.grid.encode(X)
    for k in range(X.shape[1]):
        assert_array_equal(boxes.grid.encode_values(k, X.iloc[:, k]), codes[k])
    found = boxes.grid.encode_values(1, pd.Series([3, "3", "never"], dtype=object))
    assert found[0] == found[1] and found[2] == 0
    with pytest.raises(ValueError, match="'word'"):
        boxes.grid.encode_values(1, pd.Series(["x", np.nan], dtype=object))


def test_levels_of_a_model_without_names_or_numbers():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, size=(100, 3))
    y = (X[:, 0] == 2) * 3.0 + X[:, 1]
    model = catboost.CatBoostRegressor(8, cat_features=[0, 1, 2], one_hot_max_size=9, **QUIET)
    model.fit(X, y)
    check(model, np.concatenate([X, X + 2]))
    check(model, pd.DataFrame(X, columns=list("abc")))
    with pytest.raises(ValueError, match="floating point"):
        check(model, X.astype(float))
    some = catboost.CatBoostRegressor(8, cat_features=[2], **QUIET).fit(X, y)
    if not np.isin(2, reader.read(some, "raw")[0].front.columns):  # declared but never asked for
        check(some, X)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"word": [None, "x"]}, "word"),
        ({"word": pd.array(["x", None], "string")}, "word"),
        ({"many": pd.Categorical(["a", None])}, "many"),
        ({"whole": [0.5, 1.0]}, "whole"),
        ({"whole": pd.array([1, None], "Int64")}, "whole"),
        ({"number": ["1.5", "one"]}, "number"),
        ({"number": pd.Categorical([1.0, 2.0])}, "number"),
    ],
)
def test_what_the_library_refuses(change, column):
    model, X = level_model(np.random.default_rng(1), iterations=3)
    X = X.head(2).assign(**change)
    with pytest.raises(Exception):  # noqa: B017 (the library has errors of many types)
        model.predict(X)
    boxes = read(model, np.zeros((1, 5)))
    with pytest.raises(ValueError, match=column):
        boxes.grid.encode(X)
    with pytest.raises(ValueError, match="CatBoost refuses X"):
        reader.margin(model, X)


def test_missing_levels_of_polars():
    model, X = level_model(np.random.default_rng(1), iterations=3)
    X = pl.DataFrame(X.head(3).astype({"many": str}).to_dict("list"))
    X = X.with_columns(pl.Series("word", ["x", None, "x"], dtype=pl.Categorical))
    with pytest.raises(ValueError, match="column 'word' has missing values"):
        reader.read(model, "raw")[0].front.inputs(X)


def test_the_order_of_columns():
    rng = np.random.default_rng(6)
    X = pd.DataFrame(numbers(rng), columns=list("abcd"))
    model = catboost.CatBoostRegressor(8, **QUIET).fit(X, target(X.to_numpy()))
    boxes = check(model, X)
    assert_array_equal(model.predict(X[list("dcba")]), model.predict(X))  # it goes by names
    with pytest.raises(ValueError, match="bring the columns into the model's order"):
        boxes.grid.encode(X[list("dcba")])
    for bad in (X.rename(columns={"a": "z"}), X[["a"]]):
        with pytest.raises(ValueError, match="CatBoost refuses X"):
            boxes.grid.encode(bad)
    check(model, X.assign(more=1.0))
    check(model, pl.DataFrame(X.to_dict("list")))


@pytest.mark.slow
def test_other_types_of_numbers():
    rng = np.random.default_rng(7)
    X = rng.integers(0, 3, size=(100, 3))
    y = X[:, 0] * X[:, 1] - X[:, 2]
    model = catboost.CatBoostRegressor(8, **QUIET).fit(X, y)
    boxes = check(model, X)
    wanted = model.predict(X)
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix):
        assert_array_equal(
            boxes.grid.routes[0].front.inputs(kind(X)), boxes.grid.routes[0].front.inputs(X)
        )
        assert_array_equal(reader.margin(model, kind(X.astype(float))), wanted)
    for dtype in (bool, np.int8, np.uint64, np.float16, object, str):
        check(model, X.astype(dtype))
    missing = pd.DataFrame(X).astype("Int64").mask(rng.random(X.shape) < 0.2)
    check(model, missing)
    check(model, missing.astype("Float32"))


def test_integers_are_rounded_once():
    X = (2**60 + np.arange(8) * 2**37)[:, None]
    model = catboost.CatBoostRegressor(8, **QUIET).fit(X, np.arange(8.0))
    boxes = check(model, X)
    points = np.array([2**60 + 2**36 + 1, 2**60 + 2**36, 2**60 + 2**36 - 1])
    found = boxes.evaluate(boxes.grid.encode_values(0, points)[None])
    assert_allclose(found[:, 0], model.predict(points[:, None]), atol=1e-12)


def test_columns_that_no_split_asks_for():
    rng = np.random.default_rng(8)
    X = numbers(rng, missing=False)
    X[:, [0, 3]] = 1.0
    model = catboost.CatBoostRegressor(4, **QUIET).fit(X, X[:, 1] + X[:, 2])
    check(model, X)
    assert not np.isin([0, 3], reader.read(model, "raw")[0].front.columns).any()
    check(model, X[:, :3])  # which the library takes, too


def test_statistics_texts_and_embeddings_are_no_boxes():
    rng = np.random.default_rng(9)
    X = levels(rng)
    y = level_target(X)
    model = catboost.CatBoostRegressor(5, cat_features=[1, 2, 3, 4], **QUIET).fit(X, y)
    with pytest.raises(Unreadable, match=r"statistics of the categories of \[.*'word'"):
        reader.read(model, "raw")
    text = pd.DataFrame({"a": X["number"], "t": X["word"] + " word"})
    model = catboost.CatBoostClassifier(3, text_features=["t"], **QUIET).fit(text, y > 0)
    with pytest.raises(Unreadable, match=r"text features \['t'\]"):
        reader.read(model, "raw")
    vectors = pd.DataFrame({"a": X["number"], "e": list(rng.normal(size=(200, 3)))})
    model = catboost.CatBoostClassifier(3, embedding_features=["e"], **QUIET)
    model.fit(vectors, y > 0)
    with pytest.raises(Unreadable, match=r"embedding features \['e'\]"):
        reader.read(model, "raw")


def test_what_is_no_catboost_model():
    class CatBoost:
        pass

    assert reader.scales(CatBoost()) == () == reader.scales(None)


def loaded(model, kind, folder):
    model.save_model(str(folder / "model.cbm"))
    return kind().load_model(str(folder / "model.cbm"))


COPIES = {
    "loaded": lambda model, folder: loaded(model, type(model), folder),
    "loaded as a plain model": lambda model, folder: loaded(model, catboost.CatBoost, folder),
    "pickled": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "copied": lambda model, folder: model.copy(),
    "deep copied": lambda model, folder: copy.deepcopy(model),
    "summed": lambda model, folder: catboost.sum_models([model, model], weights=[0.25, 0.75]),
    "pickled sum": lambda model, folder: pickle.loads(
        pickle.dumps(catboost.sum_models([model, model], weights=[0.25, 0.75]))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_loaded_copied_and_summed_models(how, k, tmp_path):
    rng = np.random.default_rng(k)
    X = pd.DataFrame(numbers(rng), columns=list("abcd"))
    X["c"] = np.where(X.c > 0, "yes", "no")
    y = target(X[["a", "b", "d", "d"]].to_numpy())
    kind = catboost.CatBoostRegressor if k == 1 else catboost.CatBoostClassifier
    y = y if k == 1 else np.digitize(y, [-1, 1][: k - 1])
    model = kind(iterations=8, depth=3, cat_features=["c"], one_hot_max_size=9, **QUIET).fit(X, y)
    again = COPIES[how](model, tmp_path)
    wanted = MeasureExplainer(model, "partial_dependence").fit(X[:40]).explain(X[40:50])
    explainer = MeasureExplainer(again, "partial_dependence").fit(X[:40])
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    assert_allclose(explainer.explain(X[40:50]).values, wanted.values, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match=r"X has 2 columns, but CatBoost.* was fitted on 4"):
        MeasureExplainer(again).fit(X[["a", "b"]])
