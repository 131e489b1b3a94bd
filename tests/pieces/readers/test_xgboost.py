"""The reader of XGBoost against XGBoost's own margins and its own choice of leaves."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_regression
from sklearn.ensemble import BaggingRegressor
from sklearn.pipeline import make_pipeline

from skattr import MeasureExplainer
from skattr.pieces import as_pieces, choose_output
from skattr.pieces.base import Unreadable
from skattr.pieces.boxes import Boxes
from skattr.pieces.outputs import Output
from skattr.pieces.readers import xgboost as reader
from tests.helpers.lanes import quickly
from tests.helpers.processes import run_code

xgb = pytest.importorskip("xgboost")

# of XGBoost 3.4, about dart and its random forests
pytestmark = pytest.mark.filterwarnings("ignore:.*(is|are) deprecated")

VERSION = tuple(map(int, xgb.__version__.split(".")[:2]))
NAMED = pytest.mark.skipif(VERSION < (3, 1), reason="categories have names since 3.1")


def leaf_values(booster):
    """Return the trees of XGBoost's JSON, each as (leaf values by node, output)."""
    learner = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    model = learner.get("gbtree", learner)["model"]
    weights = learner.get("weight_drop", model.get("weight_drop"))
    trees = []
    for t, tree in enumerate(model["trees"]):
        width = int(tree["tree_param"]["size_leaf_vector"])
        values = np.array(tree["split_conditions"], np.float32).astype(float)[:, None]
        if width > 1:
            values = np.array(tree["base_weights"], np.float32).astype(float).reshape(-1, width)
            if "leaf_weights" in tree:
                vectors = np.array(tree["leaf_weights"], np.float32).reshape(-1, width)
                leaf = np.array(tree["left_children"]) < 0
                values[leaf] = vectors[np.array(tree["right_children"])[leaf]]
        weight = 1.0 if weights is None else float(np.float32(weights[t]))
        trees.append((values * weight, model["tree_info"][t]))
    return trees


def sum_of_leaves(estimator, X, constant):
    """Return constant + Σ leaf values in float64, at the leaves that XGBoost finds."""
    if hasattr(estimator, "apply"):
        booster, leaves = estimator.get_booster(), estimator.apply(X)
    else:
        booster = estimator
        types = None if isinstance(X, pd.DataFrame) else booster.feature_types
        matrix = xgb.DMatrix(X, feature_types=types, enable_categorical=True)
        leaves = booster.predict(matrix, pred_leaf=True)
    leaves = np.asarray(leaves).reshape(len(X), -1).astype(int)
    result = np.tile(constant, (len(X), 1))
    for (values, output), leaf in zip(leaf_values(booster), leaves.T, strict=False):
        result[:, output : output + values.shape[1]] += values[leaf]
    return result


def boxes_of(estimator, scale="raw", row=None):
    parts = reader.read(estimator, scale)
    row = np.zeros((1, len(parts[0].front.columns))) if row is None else row
    names = [str(i) for i in range(len(parts[0].constant))]
    output = Output(estimator, "predict", scale, None, names)
    return parts, Boxes(parts, output, row)


def check(estimator, X, leaves=True):
    parts, boxes = boxes_of(estimator, row=X[:1] if len(X.shape) == 2 else None)
    (part,) = parts
    inner = part.column >= 0
    assert (part.left[inner] > np.flatnonzero(inner)).all()
    assert (part.right[inner] > np.flatnonzero(inner)).all()
    found = boxes.evaluate(boxes.grid.encode(X))
    margin = np.asarray(reader.margin(estimator, X), float).reshape(len(X), -1)
    size = np.abs(part.constant).max() + np.abs(part.values).max() * np.sqrt(len(part.roots))
    np.testing.assert_allclose(found, margin, rtol=1e-5, atol=1e-5 * size)
    if leaves:  # XGBoost's own choice of leaves goes through a DMatrix, which takes no inf
        exact = sum_of_leaves(estimator, X, part.constant)
        np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-12 * max(size, 1.0))
    return boxes


def neighbours(estimator, X, rng, n=200):
    """Return rows of thresholds, and of their neighbours in float32 and float64."""
    part = reader.read(estimator, "raw")[0]
    booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    learner = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    trees = learner.get("gbtree", learner)["model"]["trees"]
    columns = [[] for _ in part.front.columns]
    for tree in trees:
        for c, t, kind, left in zip(
            tree["split_indices"],
            tree["split_conditions"],
            tree["split_type"],
            tree["left_children"],
            strict=True,
        ):
            if left >= 0 and kind == 0:
                t = np.float32(t)
                up, down = np.nextafter(t, np.float32(np.inf)), np.nextafter(t, np.float32(-np.inf))
                middle = float(down) + (float(t) - float(down)) / 2
                columns[c] += [float(v) for v in (t, up, down)]
                columns[c] += [middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)]
                columns[c] += [np.nextafter(float(t), -np.inf), np.nextafter(float(t), np.inf)]
    rows = X[rng.integers(0, len(X), n)].copy()
    for c, values in enumerate(columns):
        if values:
            rows[:, c] = rng.choice(values, n)
    return rows


def data(seed, n=150, d=4, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(rng.integers(1, 4))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
    X[rng.random(X.shape) < missing] = np.nan
    return rng, X, y + 0.1 * rng.normal(size=n)


SMALL = {"n_estimators": 8, "max_depth": 3, "n_jobs": 1}
MODELS = {
    "regression": lambda X, y, w: xgb.XGBRegressor(**SMALL).fit(X, y, sample_weight=w),
    "deep": lambda X, y, w: xgb.XGBRegressor(**SMALL | {"max_depth": 8}).fit(X, y),
    "exact": lambda X, y, w: xgb.XGBRegressor(**SMALL, tree_method="exact", gamma=3).fit(X, y),
    "lossguide": lambda X, y, w: xgb.XGBRegressor(
        **SMALL | {"max_depth": 0}, max_leaves=9, grow_policy="lossguide"
    ).fit(X, y),
    "base score": lambda X, y, w: xgb.XGBRegressor(**SMALL, base_score=1e4).fit(X, y + 1e4),
    "dart": lambda X, y, w: xgb.XGBRegressor(
        **SMALL, booster="dart", rate_drop=0.5, one_drop=True
    ).fit(X, y),
    "forest": lambda X, y, w: xgb.XGBRFRegressor(**SMALL).fit(X, y),
    "parallel": lambda X, y, w: xgb.XGBRegressor(**SMALL, num_parallel_tree=3).fit(X, y),
    "binary": lambda X, y, w: xgb.XGBClassifier(**SMALL).fit(X, y > 0, sample_weight=w),
    "forest of classes": lambda X, y, w: xgb.XGBRFClassifier(**SMALL).fit(X, y > 0),
    "multiclass": lambda X, y, w: xgb.XGBClassifier(**SMALL).fit(X, np.digitize(y, [-0.7, 0.7])),
    "dart of classes": lambda X, y, w: xgb.XGBClassifier(
        **SMALL, booster="dart", rate_drop=0.5, num_parallel_tree=2
    ).fit(X, np.digitize(y, [-0.7, 0.7])),
    "vector leaves of classes": lambda X, y, w: xgb.XGBClassifier(
        **SMALL, multi_strategy="multi_output_tree"
    ).fit(X, np.digitize(y, [-0.7, 0.7])),
    "several labels": lambda X, y, w: xgb.XGBClassifier(**SMALL).fit(
        X, np.stack([y > 0, y > 1], axis=1)
    ),
    "several targets": lambda X, y, w: xgb.XGBRegressor(**SMALL).fit(X, np.stack([y, -y], axis=1)),
    "vector leaves": lambda X, y, w: xgb.XGBRegressor(
        **SMALL, multi_strategy="multi_output_tree"
    ).fit(X, np.stack([y, y**2], axis=1)),
    "quantiles": lambda X, y, w: xgb.XGBRegressor(
        **SMALL, objective="reg:quantileerror", quantile_alpha=[0.2, 0.5, 0.9]
    ).fit(X, y),
    "ranker": lambda X, y, w: xgb.XGBRanker(**SMALL).fit(
        X, (y > 0).astype(int), qid=np.arange(len(y)) // 30
    ),
    "booster": lambda X, y, w: xgb.train(
        {"max_depth": 3, "nthread": 1}, xgb.DMatrix(X, y, weight=w), 8
    ),
    "custom objective": lambda X, y, w: xgb.XGBRegressor(
        **SMALL, objective=lambda t, p: (p - t, np.ones_like(t))
    ).fit(X, y),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODELS)
def test_margin_and_leaves(name, seed):
    rng, X, y = data(seed)
    estimator = MODELS[name](X, y, rng.random(len(y)))
    check(estimator, X)
    check(estimator, X[:1])
    check(estimator, neighbours(estimator, X, rng))
    strange = rng.choice(
        [np.inf, -np.inf, 1e300, -1e300, np.nan, 0.0, -0.0, 1e-50, -1e-50], X.shape
    )
    check(estimator, strange, leaves=False)
    check(estimator, X.astype(np.float32))
    frame = pd.DataFrame(X, columns=list("abcd"))
    check(estimator, frame)


@pytest.mark.parametrize(
    "objective",
    ["reg:logistic", "binary:logistic", "binary:logitraw", "binary:hinge", "count:poisson",
     "reg:gamma", "reg:tweedie", "reg:pseudohubererror", "reg:absoluteerror",
     "reg:squaredlogerror", "survival:cox"],
)  # fmt: skip
@pytest.mark.parametrize("base_score", quickly([None, 0.3], [0.3]))
def test_raw_scale_is_in_front_of_the_link(objective, base_score):
    _, X, y = data(7)
    y = (y > 0).astype(float) if "log" in objective or "hinge" in objective else np.exp(y)
    estimator = xgb.XGBRegressor(**SMALL, objective=objective, base_score=base_score).fit(X, y)
    check(estimator, X)
    check(estimator.get_booster(), X)
    scales = reader.scales(estimator)
    same = np.array_equal(reader.predict(estimator, X), reader.margin(estimator, X))
    assert scales == (("predict", "raw") if same else ("raw",))
    assert reader.scales(estimator.get_booster()) == scales


def test_scales():
    _, X, y = data(0)
    assert reader.scales(MODELS["regression"](X, y, None)) == ("predict", "raw")
    assert reader.scales(MODELS["ranker"](X, y, None)) == ("predict", "raw")
    assert reader.scales(MODELS["booster"](X, y, None)) == ("predict", "raw")
    assert reader.scales(MODELS["binary"](X, y, None)) == ("raw",)
    assert reader.scales(MODELS["custom objective"](X, y, None)) == ("predict", "raw")
    assert reader.scales(object()) == ()
    assert reader.scales(xgb.DMatrix(X)) == ()


@pytest.mark.parametrize("n_parallel", [1, 3])
@pytest.mark.parametrize("classes", [0, 3])
def test_best_iteration(classes, n_parallel):
    _, X, y = data(3, n=300)
    if classes:
        y = np.digitize(y, [-0.7, 0.7])
    kind = xgb.XGBClassifier if classes else xgb.XGBRegressor
    estimator = kind(
        n_estimators=60, learning_rate=0.9, n_jobs=1, early_stopping_rounds=4,
        num_parallel_tree=n_parallel,
    )  # fmt: skip
    estimator.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    booster = estimator.get_booster()
    assert estimator.best_iteration + 1 < booster.num_boosted_rounds()
    stopped, whole = check(estimator, X), check(booster, X)  # a Booster uses all its trees
    assert len(stopped.table.roots) == (estimator.best_iteration + 1) * max(classes, 1) * n_parallel
    assert len(whole.table.roots) > len(stopped.table.roots)


def test_training_continues():
    _, X, y = data(4)
    first = xgb.XGBRegressor(**SMALL, num_parallel_tree=2).fit(X, y)
    check(xgb.XGBRegressor(**SMALL).fit(X, y, xgb_model=first), X)


@pytest.mark.parametrize("missing", [-1, 0.1, 0, np.inf])
def test_a_value_that_means_missing(missing):
    rng, X, y = data(5)
    X = np.where(np.isnan(X), missing, X)
    estimator = xgb.XGBRegressor(**SMALL, missing=missing).fit(X, y)
    boxes = check(estimator, X)
    codes = boxes.grid.encode(np.array([[missing] * 4, [np.nan] * 4]))
    assert (codes == 0).all()
    check(estimator, np.where(rng.random(X.shape) < 0.1, np.nan, X), leaves=missing != np.inf)
    near = np.where(X == missing, np.nextafter(missing, 10.0), X)
    check(estimator, near, leaves=missing != np.inf)


def test_extreme_thresholds():
    rng, X, y = data(6, missing=0.2)
    booster = xgb.train({"max_depth": 4, "nthread": 1}, xgb.DMatrix(X, y), 12)
    model = json.loads(booster.save_raw("json"))
    top = float(np.finfo(np.float32).max)
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    choices = [top, -top, 0.0, -0.0, tiny, -tiny, np.inf, -np.inf]
    for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
        tree["split_conditions"] = [
            v if left < 0 else float(rng.choice(choices))
            for v, left in zip(tree["split_conditions"], tree["left_children"], strict=True)
        ]
    changed = xgb.Booster({"nthread": 1})
    changed.load_model(bytearray(json.dumps(model).encode()))
    kept = json.loads(changed.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    assert any(np.isinf(tree["split_conditions"]).any() for tree in kept)
    beyond = 2.0**128 - 2.0**103
    values = [*choices, beyond, -beyond, np.nan, tiny / 2, -tiny / 2, tiny * 0.51, -tiny * 0.51]
    values += [np.nextafter(beyond, 0), -np.nextafter(beyond, 0), 1e300, -1e300, 1e-300, -1e-300]
    boxes = check(changed, rng.choice(values, (800, 4)), leaves=False)
    for k in range(4):  # single values are ranked in float64
        some = rng.choice(values, (100, 4))
        np.testing.assert_array_equal(
            boxes.grid.encode_values(k, some[:, k]), boxes.grid.encode(some)[k]
        )


def levels(rng, n, names, missing=0.1):
    codes = np.where(rng.random(n) < missing, -1, rng.integers(0, len(names), n))
    return pd.Categorical.from_codes(codes, categories=names)


def categorical_data(seed, n=250):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": rng.normal(size=n).round(1),
            "c": levels(rng, n, list("zabcdefgh")),
            "k": levels(rng, n, [30, 10, 20, 40]),
            "w": pd.array(rng.integers(0, 5, n), dtype="Int64"),
        }
    )
    X.loc[rng.random(n) < 0.1, "w"] = pd.NA
    effect = rng.normal(size=10)
    y = effect[X.c.cat.codes] * X.x + effect[X.k.cat.codes] + X.c.isna() * rng.choice([-2, 2])
    return rng, X, y.to_numpy() + rng.normal(size=n) / 10


@pytest.mark.slow
@NAMED
@pytest.mark.parametrize("one_hot", [1, 100])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("missing", [np.nan, -1, 30])
def test_categories(seed, one_hot, missing):
    _, X, y = categorical_data(seed)
    estimator = xgb.XGBRegressor(
        **SMALL, enable_categorical=True, max_cat_to_onehot=one_hot, missing=missing
    ).fit(X, y)
    boxes = check(estimator, X)
    check(estimator, X[:1])
    other = X.assign(
        c=X.c.cat.reorder_categories(list("hgfedcbaz")),
        k=X.k.cat.reorder_categories([10, 20, 30, 40]),
    )
    check(estimator, other)
    np.testing.assert_array_equal(boxes.grid.encode(other), boxes.grid.encode(X))
    fewer = X.assign(c=X.c.cat.set_categories(list("cab")), x=np.nan)
    check(estimator, fewer)
    part = reader.read(estimator, "raw")[0]
    assert part.levels[1] == list("zabcdefgh") and part.levels[2] == [30, 10, 20, 40]
    codes = np.stack([boxes.grid.encode_values(k, X.iloc[:, k]) for k in range(4)])
    np.testing.assert_allclose(
        boxes.evaluate(codes), boxes.evaluate(boxes.grid.encode(X)), rtol=1e-12, atol=1e-12
    )
    if np.isnan(missing):  # a Booster has no such value
        check(estimator.get_booster(), X)
        check(estimator.get_booster(), other)


@NAMED
def test_missing_that_is_a_category_too():
    _, X, y = categorical_data(0)
    estimator = xgb.XGBRegressor(**SMALL, enable_categorical=True, missing=2).fit(X, y)
    with pytest.raises(
        Unreadable, match="missing=2 is also the number of a category of column 'c'"
    ):
        reader.read(estimator, "raw")


@NAMED
def test_categories_that_are_refused():
    _, X, y = categorical_data(0)
    estimator = xgb.XGBRegressor(**SMALL, enable_categorical=True).fit(X, y)
    _, boxes = boxes_of(estimator)
    n = len(X)
    bad = {
        "c": [
            X.c.cat.add_categories(["zz"]),
            X.c.astype(object),
            X.c.cat.codes,
            np.nan,
            pd.Categorical.from_codes(np.zeros(n, int), [3]),
            pd.Categorical([np.nan] * n),
        ],
        "k": [
            pd.Categorical(X.k.astype("float32")),
            X.k.cat.rename_categories(str),
            X.k.cat.rename_categories(np.array([30, 10, 20, 40], np.int32)),
        ],
        "x": ["a", pd.Timestamp("2020"), pd.Categorical(["a"] * n)],
    }
    for name, columns in bad.items():
        for column in columns:
            wrong = X.assign(**{name: column})
            with pytest.raises(ValueError):
                reader.margin(estimator, wrong)
            with pytest.raises(ValueError, match=f"column '{name}'"):
                boxes.grid.encode(wrong)
    # XGBoost 3.2 takes an unknown category for the next one that it knows
    with pytest.raises(ValueError, match="does not know: \\['bb'\\]"):
        boxes.grid.encode(X.assign(c=X.c.cat.rename_categories({"b": "bb"})))
    with pytest.raises(ValueError, match="pass a data frame"):
        boxes.grid.encode(np.zeros((2, 4)))


@NAMED
def test_category_names_beyond_ascii():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": levels(rng, 100, ["éa", "b", "c"])})
    estimator = xgb.XGBRegressor(**SMALL, enable_categorical=True).fit(X, X.c.cat.codes)
    with pytest.raises(Unreadable, match="ASCII"):
        reader.read(estimator, "raw")


@pytest.mark.parametrize("one_hot", [1, 100])
@pytest.mark.parametrize("seed", quickly(range(5), [0]))
@pytest.mark.parametrize("missing", [np.nan, 3])
def test_categories_that_are_numbers(seed, one_hot, missing):
    rng, X, y = data(seed, n=300)
    X[:, 0] = np.where(np.isnan(X[:, 0]), missing, rng.choice([0, 1, 3, 4, 7], 300))
    y = y + rng.normal(size=8)[np.nan_to_num(X[:, 0]).astype(int)]
    estimator = xgb.XGBRegressor(
        **SMALL, feature_types=["c", "q", "q", "q"], enable_categorical=True,
        max_cat_to_onehot=one_hot, missing=missing,
    ).fit(X, y)  # fmt: skip
    check(estimator, X)
    unseen = X.copy()
    unseen[:, 0] = rng.choice([-1, 0, 2, 3, 5, 6, 7, 8, 100, 1e9, np.nan], 300)
    check(estimator, unseen, leaves=False)
    frame = pd.DataFrame(unseen, columns=list("abcd"))
    check(estimator, frame, leaves=False)
    if np.isnan(missing):
        check(estimator.get_booster(), X)
    _, boxes = boxes_of(estimator)
    with pytest.raises(ValueError, match="whole numbers"):
        boxes.grid.encode(X + 0.5)
    with pytest.raises(ValueError, match="column 'a'"):
        boxes.grid.encode(frame.assign(a=pd.Categorical(["u"] * 300)))


@NAMED
def test_categories_that_no_split_asks_for():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": levels(rng, 200, list("abcdefghij")), "x": rng.normal(size=200)})
    X["never"] = pd.Categorical.from_codes(np.zeros(200, int), list("uvw"))
    y = (X.c == "b") + X.x
    estimator = xgb.XGBRegressor(
        n_estimators=1, max_depth=2, n_jobs=1, enable_categorical=True, max_cat_to_onehot=100
    )
    check(estimator.fit(X, y), X)


@pytest.mark.parametrize("missing", [7, 8])
def test_missing_next_to_the_largest_category(missing):
    rng, X, y = data(0, n=300)
    X[:, 0] = rng.integers(0, 8, 300)
    y = y + rng.normal(size=8)[X[:, 0].astype(int)]
    X[rng.random(300) < 0.2, 0] = missing
    estimator = xgb.XGBRegressor(
        **SMALL, feature_types=list("cqqq"), enable_categorical=True, missing=missing
    ).fit(X, y)
    check(estimator, X)
    X[:, 0] = rng.choice([6, 7, 8, 9, 10, -1, np.nan], 300)
    check(estimator, X, leaves=False)


def test_categories_without_their_names():
    rng, X, y = data(0)
    X[:, 0] = rng.integers(0, 5, len(X))
    matrix = xgb.DMatrix(
        X, y, feature_names=list("abcd"), feature_types=list("cqqq"), enable_categorical=True
    )
    with pytest.raises(Unreadable, match="does not hold the names of its categories"):
        reader.read(xgb.train({"nthread": 1}, matrix, 3), "raw")


def test_frames_of_many_types():
    rng, X, y = data(1, missing=0)
    frame = pd.DataFrame((X * 3).round(), columns=list("abcd"))
    estimator = xgb.XGBRegressor(**SMALL).fit(frame, y)
    large = frame.astype("int64")
    large.iloc[:50] += 2**24 + 1
    kinds = ("int8", "Int64", "Float32", "Float64", "float16", "uint64", "boolean")
    for X in (large, large * 2**30, *(frame.abs().clip(0, 1).astype(kind) for kind in kinds)):
        check(estimator, X)
    some = frame.astype("Int64").mask(rng.random(frame.shape) < 0.2)
    check(estimator, some)
    check(estimator, frame.to_numpy().astype(np.int64), leaves=False)  # for want of names
    check(estimator, frame.to_numpy().astype(object), leaves=False)
    _, boxes = boxes_of(estimator)
    array = frame.to_numpy()
    frames = (frame[list("bacd")], frame.astype(str), frame.iloc[:, :3])
    for bad in (*frames, array.astype("U"), array[:, :3]):
        with pytest.raises(ValueError):
            reader.margin(estimator, bad)
        with pytest.raises(ValueError):
            boxes.grid.encode(bad)


def test_polars():
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    c = rng.integers(0, 4, 200)
    names = pl.Enum(list("badc"))
    X = pl.DataFrame(
        {
            "x": rng.normal(size=200),
            "k": [None if v > 1 else int(v) for v in rng.normal(size=200)],
            "c": pl.Series([None if v == 3 else "abc"[v] for v in c], dtype=names),
        }
    )
    y = c + X["x"].to_numpy()
    estimator = xgb.XGBRegressor(**SMALL).fit(X[["x", "k"]], y)
    check(estimator, X[["x", "k"]])
    estimator = xgb.XGBRegressor(**SMALL, enable_categorical=True).fit(X, y)
    check(estimator, X)
    check(estimator, X.with_columns(pl.col("c").cast(pl.String).cast(pl.Enum(list("cab")))))


def test_absent_entries_are_missing():
    rng, X, y = data(2)
    X[rng.random(X.shape) < 0.5] = 0
    sparse = sp.csr_matrix(np.nan_to_num(X))
    sparse.data[:20] = 0  # stored, so not missing
    estimator = xgb.XGBRegressor(**SMALL).fit(sparse, y)
    part = reader.read(estimator, "raw")[0]
    dense = np.full(X.shape, part.front.absent)
    rows = np.repeat(np.arange(len(X)), np.diff(sparse.indptr))
    dense[rows, sparse.indices] = sparse.data
    _, boxes = boxes_of(estimator)
    found = boxes.evaluate(boxes.grid.encode(dense))[:, 0]
    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_matrix):
        for model in (estimator, estimator.get_booster()):
            np.testing.assert_allclose(reader.margin(model, kind(sparse)), found, atol=1e-5)


def test_what_is_no_sum_of_boxes():
    _, X, y = data(0)
    linear = xgb.XGBRegressor(n_estimators=2, booster="gblinear", n_jobs=1).fit(X, y)
    for model in (linear, linear.get_booster()):
        assert reader.scales(model) == ("predict", "raw")
        with pytest.raises(Unreadable, match="linear"):
            reader.read(model, "raw")
        np.testing.assert_array_equal(reader.margin(model, X), linear.predict(X))
    with pytest.raises(Unreadable, match="no trees"):
        reader.read(xgb.train({}, xgb.DMatrix(X, y), 0), "raw")


def test_unknown_format(monkeypatch):
    _, X, y = data(0)
    booster = MODELS["booster"](X, y, None)
    text = bytes(booster.save_raw("ubj")).replace(b"split_conditions", b"split_conditionz")
    monkeypatch.setattr(booster, "save_raw", lambda form: bytearray(text))
    with pytest.raises(Unreadable, match=rf"XGBoost {xgb.__version__} is not known here"):
        reader.read(booster, "raw")


def test_saved_and_loaded(tmp_path):
    rng, X, y = data(9)
    for name in ("binary", "dart", "vector leaves"):
        estimator = MODELS[name](X, y, rng.random(len(y)))
        estimator.get_booster().save_model(tmp_path / "model.ubj")
        booster = xgb.Booster(model_file=tmp_path / "model.ubj")
        check(booster, X)


@pytest.mark.slow
def test_reading_is_lazy_about_xgboost():
    code = "import sys, skattr.pieces.readers.xgboost; assert 'xgboost' not in sys.modules"
    assert run_code(code).returncode == 0


def test_many_columns():
    X, y = make_regression(60, 300, random_state=0)
    check(xgb.XGBRegressor(**SMALL).fit(X, y), X)


def ordinary_model(seed):
    """Return a small fitted model of any ordinary kind, and its data."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(60, 120)), int(rng.choice([1, 1, 2, 3, 10, 25]))
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < rng.choice([0.0, 0.1])] = np.nan
    options = {
        "n_estimators": int(rng.choice([3, 10] if k > 3 else [10, 100])),
        "max_depth": int(rng.integers(1, 5)),
        "learning_rate": float(rng.choice([0.05, 0.3, 1.0])),
        "booster": str(rng.choice(["gbtree", "dart"])),
        "n_jobs": 1,
    }
    if k == 1:
        y = 10.0 ** rng.integers(-2, 4) * (np.nan_to_num(X[:, 0]) + rng.normal(size=n))
        return xgb.XGBRegressor(**options).fit(X, y + 1e4 * rng.integers(2)), X
    y = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    return xgb.XGBClassifier(**options).fit(X, y), X


@pytest.mark.parametrize("seed", quickly(range(30), range(6)))
def test_right_readings_stand(seed):
    model, X = ordinary_model(seed)
    output = choose_output(model, "auto", X[:1])
    pieces = as_pieces(output, X[:1])
    assert isinstance(pieces, Boxes)
    assert pieces.refuted(X) is None


def perturbed(part, how):
    """Return trees with one mistake that a reader could make."""
    if how == "one leaf":
        values = part.values.copy()
        values[0] += 0.02 * np.std(part.values)  # the first leaf of the first tree
        return replace(part, values=values)
    if how == "flipped comparison":
        left, right = part.left.copy(), part.right.copy()
        node = part.roots[-1]
        left[node], right[node] = right[node], left[node]
        return replace(part, left=left, right=right)
    if how == "missing goes the other way":
        return replace(part, missing_left=1 - part.missing_left)
    names = ("column", "left", "right", "edge", "missing_left", "members")
    nodes = {name: getattr(part, name)[: part.roots[-1]] for name in names}
    values = part.values[: -part.n_leaves()[-1]]
    return replace(part, **nodes, roots=part.roots[:-1], outputs=part.outputs[:-1], values=values)


@pytest.mark.parametrize(
    "how", ["one leaf", "flipped comparison", "missing goes the other way", "one tree less"]
)
@pytest.mark.parametrize("k", [1, 2, 10])
def test_wrong_readings_are_refuted(how, k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(64, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = rng.normal(size=64) if k == 1 else np.arange(64) % k
    kind = xgb.XGBRegressor if k == 1 else xgb.XGBClassifier
    model = kind(n_estimators=100 if k == 1 else 20, max_depth=3, n_jobs=1).fit(X, y)
    output = choose_output(model, "auto", X[:1])
    (part,) = reader.read(model, "raw")
    assert Boxes([part], output, X[:1]).refuted(X) is None
    wrong = Boxes([perturbed(part, how)], output, X[:1]).refuted(X)
    assert wrong is not None and "does not add up" in wrong


def test_a_mean_of_boosters_in_float32_is_exact():
    """BaggingRegressor adds up what its members return, in float32 too."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = 1e3 * X[:, 0] * X[:, 1] + 1e4
    members = xgb.XGBRegressor(n_estimators=40, max_depth=3, n_jobs=1)
    model = BaggingRegressor(members, n_estimators=12, random_state=0).fit(X, y)
    output = choose_output(model, "auto", X[:1])
    pieces = as_pieces(output, X[:1])
    assert isinstance(pieces, Boxes)
    assert pieces.refuted(X) is None


def test_unknown_codes_of_feature_types_behind_a_passthrough():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.integers(0, 4, 200), "a": rng.normal(size=200)})
    options = {"n_estimators": 10, "feature_types": ["c", "q"], "enable_categorical": True}
    booster = xgb.XGBRegressor(max_cat_to_onehot=1, n_jobs=1, **options)
    steps = make_column_transformer(("passthrough", ["c", "a"]))
    model = make_pipeline(steps, booster).fit(X, (X.c == 2) * 2 + X.a)
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    assert explainer.engine_ == ("one_violation",)
    rows = X[:4].assign(c=[7, 1, 2, 9])
    found = explainer.explain(rows).values
    curve = explainer.curve("c")
    for i in range(4):
        wanted = model.predict(X.assign(c=rows.c.iloc[i])).mean()
        np.testing.assert_allclose(found[i, 0], wanted, atol=1e-5)
        np.testing.assert_allclose(curve([rows.c.iloc[i]]), wanted, atol=1e-5)
    assert "any other" in curve.to_frame().level.tolist()
