"""Pipelines at their corners: what a hostile tester found wrong once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import Expectation, ProductMarginal, Uniform
from tests.helpers.lanes import quickly


def forest():
    return RandomForestRegressor(5, random_state=0)


def objects(rng, values, n=60):
    column = np.empty(n, object)
    column[:] = [values[i] for i in rng.integers(len(values), size=n)]
    return pd.Series(column, dtype=object)


def agrees(pipeline, Z, X, name, tolerance=1e-10):
    """Compare one column's attributions with rows that have its values put in."""
    explainer = MeasureExplainer(pipeline, "partial_dependence").fit(Z)
    assert explainer.engine_ != ("finite_sum",), explainer.describe()
    found = explainer.explain(X, features=[name]).values[:, 0]
    dtype = X[name].dtype
    wanted = [
        pipeline.predict(Z.assign(**{name: pd.Series([v] * len(Z), dtype=dtype, index=Z.index)}))
        for v in X[name]
    ]
    np.testing.assert_allclose(found, np.mean(wanted, axis=1), rtol=0, atol=tolerance)
    np.testing.assert_allclose(explainer.curve(name)(X[name]), found, rtol=0, atol=1e-12)
    return explainer


@pytest.mark.slow
@pytest.mark.parametrize("measure", [ProductMarginal(), Uniform(), Expectation("product")])
def test_products_on_sums(measure):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    members = [("trees", forest()), ("linear", LinearRegression())]
    vote = VotingRegressor(members).fit(X, X.a * X.b)
    parts = [MeasureExplainer(m, measure).fit(X).explain(X).values for m in vote.estimators_]
    found = MeasureExplainer(vote, measure).fit(X).explain(X).values
    np.testing.assert_allclose(found, np.mean(parts, axis=0), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoder",
    [
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        OrdinalEncoder(encoded_missing_value=-7),
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(),
        TargetEncoder(cv=2),
    ],
)
def test_none_and_nan_in_one_column(encoder):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"o": objects(rng, ["a", "b", None, np.nan]), "a": rng.normal(size=60)})
    y = pd.factorize(X.o)[0] + np.array([v is None for v in X.o]) * 2 + X.a
    steps = make_column_transformer((encoder, ["o"]), remainder="passthrough")
    pipeline = make_pipeline(steps, forest()).fit(X, y)
    agrees(pipeline, X, X, "o")
    agrees(pipeline, X[[isinstance(v, str) for v in X.o]], X, "o")


def as_words(frame):
    return frame.astype(str)


@pytest.mark.slow
@pytest.mark.parametrize("values", [[1, "u", True], [np.nan, "u", pd.NA], ["u", 1, 1.0]])
@pytest.mark.parametrize("model", [forest(), LinearRegression()])
def test_values_that_are_equal_but_not_the_same(values, model):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"o": objects(rng, values), "a": rng.normal(size=60)})
    y = X.o.map(lambda v: len(str(v))) * 3 + X.a
    words = make_pipeline(FunctionTransformer(as_words), OneHotEncoder())
    steps = make_column_transformer((words, ["o"]), remainder="passthrough")
    pipeline = make_pipeline(steps, model).fit(X, y)
    agrees(pipeline, X, X, "o")
    agrees(pipeline, X[[type(v) is not type(values[2]) for v in X.o]], X, "o")


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        "passthrough",
        make_pipeline(SimpleImputer(add_indicator=True), MinMaxScaler()),
        make_union(StandardScaler(), MinMaxScaler()),
    ],
)
def test_a_zero_that_is_absent_is_missing_to_xgboost(step):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=60).round(0),
            "b": np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60)),
            "s": rng.choice(["x", "y", "z"], 60),
        }
    )
    y = X.a + (X.s == "x") * 2 + X.b.fillna(3) + (X.a == 0) * 2
    steps = ColumnTransformer(
        [("o", OneHotEncoder(), ["s"]), ("n", step, ["a", "b"])], sparse_threshold=1.0
    )
    boosted = xgboost.XGBRegressor(n_estimators=8, max_depth=4, min_child_weight=0, n_jobs=1)
    pipeline = make_pipeline(steps, boosted).fit(X, y)
    for name in ("a", "b"):
        agrees(pipeline, X, X, name, tolerance=1e-5)
        agrees(pipeline, X[X.a != 0], X, name, tolerance=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("encode", ["onehot-dense", "ordinal"])
def test_bins_of_float32(encode):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=list("ab"))
    bins = KBinsDiscretizer(
        4, encode=encode, dtype=np.float32, quantile_method="averaged_inverted_cdf"
    )
    agrees(make_pipeline(bins, forest()).fit(X, X.a * X.b), X, X, "a")


def test_a_number_that_means_missing_is_a_row_of_the_curve():
    rng = np.random.default_rng(0)
    a = np.where(rng.random(60) < 0.3, -999.0, rng.normal(size=60))
    X = pd.DataFrame({"a": a, "b": rng.normal(size=60)})
    steps = SimpleImputer(missing_values=-999, strategy="median")
    pipeline = make_pipeline(steps, forest()).fit(X, np.where(a < -9, 5, a) + X.b)
    curve = agrees(pipeline, X, X, "a").curve("a").to_frame()
    (row,) = curve[curve.upper == -999].index[-1:]
    assert (
        curve.value[row]
        == MeasureExplainer(pipeline, "partial_dependence").fit(X).curve("a")([-999.0])[0]
    )


@pytest.mark.slow
def test_bags_of_columns_of_a_sparse_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": rng.choice(list("abcdefgh"), 60), "t": rng.choice(list("xyz"), 60)})
    for share in (1.0, 0.6):
        bag = BaggingRegressor(forest(), 3, max_features=share, random_state=0)
        pipeline = make_pipeline(OneHotEncoder(), bag).fit(X, (X.s < "d") * 2.0 + (X.t == "x"))
        agrees(pipeline, X, X[:6], "s")


@pytest.mark.slow
def test_none_in_a_list_and_shifted_rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"o": objects(rng, ["a", "b", None]), "a": rng.normal(size=60)})
    for model in (forest(), LinearRegression(), KNeighborsRegressor(3)):
        steps = make_column_transformer((OneHotEncoder(), ["o"]), remainder="passthrough")
        pipeline = make_pipeline(steps, model).fit(X, pd.factorize(X.o)[0] + X.a)
        explainer = MeasureExplainer(pipeline).fit(X)
        found = explainer.explain(X[:9]).values[:, 0]
        np.testing.assert_allclose(explainer.curve("o")(X.o[:9].tolist()), found, atol=1e-12)


@pytest.mark.parametrize("function", quickly([np.abs, np.square, np.sin], [np.sin]))
def test_a_function_that_is_not_monotone_has_no_steps(function):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"year": rng.uniform(2000, 2020, 90), "a": rng.normal(size=90)})
    step = make_pipeline(StandardScaler(), FunctionTransformer(function))
    steps = make_column_transformer((step, ["year"]), remainder="passthrough")
    pipeline = make_pipeline(steps, forest()).fit(X, np.abs(X.year - 2010) + X.a)
    assert agrees(pipeline, X, X[:9], "year").curve("year").kind == "function"
    with pytest.raises(ValueError, match="'year'"):
        MeasureExplainer(pipeline, "uniform", engine="exact").fit(X)
    assert not MeasureExplainer(pipeline, "uniform", tol=0.1).fit(X).exact_


@pytest.mark.slow
def test_a_monotone_function_has_steps():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0, 9, 90), "b": rng.normal(size=90)})
    steps = make_column_transformer((FunctionTransformer(np.log1p), ["a"]), remainder="passthrough")
    pipeline = make_pipeline(steps, forest()).fit(X, np.sqrt(X.a) + X.b)
    curve = agrees(pipeline, X, X[:9], "a").curve("a")
    frame = curve.to_frame()
    assert curve.kind == "steps" and -1.1 < frame.lower[0] < -0.9
    inner = frame.upper[:-2].to_numpy()
    np.testing.assert_array_equal(curve(inner), frame.value[:-2])
    np.testing.assert_array_equal(curve(np.nextafter(inner, 9.0)), frame.value[1:-1])


@pytest.mark.parametrize("dtype", quickly(["float64", "float32"], ["float32"]))
@pytest.mark.parametrize("function", [np.log, np.log1p])
def test_steps_begin_where_the_model_takes_the_function(function, dtype):
    """The logarithm of 0 is infinite, which a forest refuses: no row of the table has it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0.1, 9, 60).astype(dtype), "b": rng.normal(size=60)})
    steps = make_column_transformer((FunctionTransformer(function), ["a"]), remainder="passthrough")
    explainer = MeasureExplainer(make_pipeline(steps, forest()).fit(X, X.a + X.b)).fit(X)
    curve = explainer.curve("a")
    frame = curve.to_frame()
    least = np.array([np.nextafter(frame.lower[0], np.inf)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the columns .* are float32")
        assert curve(least) == frame.value[0]
        with pytest.raises(ValueError, match="infinity"), np.errstate(divide="ignore"):
            curve(frame.lower[:1].to_numpy())


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_a_column_that_a_later_step_drops_may_still_be_refused(value):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40)})
    steps = make_column_transformer((SimpleImputer(), ["a"]), remainder="passthrough")
    last = ColumnTransformer([("kept", "passthrough", [1])])
    pipeline = make_pipeline(steps, last, forest()).fit(X, X.b)
    explainer = MeasureExplainer(pipeline).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        explainer.explain(X[:1].assign(a=value))
    with pytest.raises(ValueError, match="infinity"):
        explainer.curve("a")([value])
    assert explainer.curve("a")([0.5]) == 0.0


def test_uniform_law_and_a_pole():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    model = make_pipeline(FunctionTransformer(np.reciprocal), LinearRegression()).fit(X, X.a)
    with pytest.raises(ValueError, match="'a'"):
        MeasureExplainer(model, "uniform", engine="exact").fit(X)


def test_nullable_and_dropped_columns_have_curves():
    rng = np.random.default_rng(0)
    whole = pd.array(rng.integers(0, 9, 60), dtype="Int64")
    truth = pd.array(rng.random(60) < 0.5, dtype="boolean")
    whole[::5], truth[::7] = pd.NA, pd.NA
    X = pd.DataFrame({"i": whole, "b": truth, "a": rng.normal(size=60)})
    y = X.i.astype(float).fillna(4) + X.a
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder())
    steps = make_column_transformer(
        (SimpleImputer(), ["i"]), (levels, ["b"]), remainder="passthrough"
    )
    explainer = MeasureExplainer(make_pipeline(steps, forest()).fit(X, y)).fit(X)
    found = explainer.explain(X[:9]).values
    for k, name in enumerate(X):
        np.testing.assert_allclose(explainer.curve(name)(X[name][:9]), found[:, k], atol=1e-12)
    only = make_pipeline(make_column_transformer((StandardScaler(), ["a"])), forest()).fit(X, y)
    curve = MeasureExplainer(only).fit(X).curve("i")
    assert len(set(curve(X.i[:9]))) == 1 and list(curve.to_frame().closed) == ["right", "missing"]


@pytest.mark.slow
def test_levels_that_another_part_refuses():
    rng = np.random.default_rng(0)
    words = pd.Series(
        np.where(rng.random(60) < 0.2, None, rng.choice(list("abc"), 60)), dtype="str"
    )
    X = pd.DataFrame({"s": words, "a": rng.normal(size=60)})
    filled = make_pipeline(SimpleImputer(strategy="constant", fill_value="zzz"), OneHotEncoder())
    steps = make_column_transformer(
        (filled, ["s"]), (OrdinalEncoder(encoded_missing_value=-1), ["s"]), remainder="passthrough"
    )
    pipeline = make_pipeline(steps, forest()).fit(X, pd.factorize(X.s)[0] * X.a)
    explainer = agrees(pipeline, X, X[:9], "s")
    assert list(explainer.curve("s").to_frame().level) == ["a", "b", "c", "missing"]


@pytest.mark.parametrize("model", [forest(), LinearRegression()])
@pytest.mark.parametrize(
    "levels",
    [
        ["missing", "any other", "x"],
        [10**17, 10**17 + 16, 10**17 + 32],
        list(pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"])),
    ],
)
def test_levels_that_are_hard_to_name(model, levels):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": pd.Series([levels[i] for i in rng.integers(3, size=60)])})
    X["a"] = rng.normal(size=60)
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["s"]), remainder="passthrough"
    )
    pipeline = make_pipeline(steps, model).fit(X, 2.0 * pd.factorize(X.s)[0] ** 2 + X.a)
    explainer = MeasureExplainer(pipeline).fit(X)
    frame = explainer.curve("s").to_frame()
    assert list(frame.level[:3]) == sorted(levels)
    found = dict(zip(X.s, explainer.explain(X).values[:, 0], strict=True))
    wanted = [found[level] for level in sorted(levels)]
    np.testing.assert_allclose(frame.value[:3], wanted, atol=1e-12)
    assert list(frame.level[3:]) == ["missing", "any other"]
    assert frame.value[4] not in wanted


@pytest.mark.slow
@pytest.mark.parametrize("other", [StandardScaler(), Binarizer()])
def test_a_cast_beside_another_step(other):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=list("ab"))
    bins = KBinsDiscretizer(
        4, encode="ordinal", dtype=np.float32, quantile_method="averaged_inverted_cdf"
    )
    pipeline = make_pipeline(make_union(bins, other), forest()).fit(X, X.a * X.b)
    assert agrees(pipeline, X, X, "a").curve("a").kind == "steps"


@pytest.mark.slow
def test_a_number_that_means_missing_beside_its_indicator():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"r": rng.normal(size=60).round(0), "a": rng.normal(size=60)})
    imputer = SimpleImputer(missing_values=-1, add_indicator=True)
    steps = make_column_transformer((imputer, ["r"]), remainder="passthrough")
    pipeline = make_pipeline(steps, forest()).fit(X, X.r + (X.r == -1) * 3)
    assert agrees(pipeline, X, X, "r").curve("r").kind == "function"


@pytest.mark.parametrize("storage", quickly(["str", "string[pyarrow]", "arrow"], ["arrow"]))
@pytest.mark.parametrize("model", [forest(), LinearRegression()])
def test_arrow_backed_columns(storage, model):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    dtype = pd.ArrowDtype(pa.string()) if storage == "arrow" else storage
    X = pd.DataFrame(
        {
            "s": pd.Series(rng.choice(list("abc"), 60), dtype=dtype),
            "i": pd.Series(rng.integers(0, 5, 60), dtype=pd.ArrowDtype(pa.int64())),
        }
    )
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["s"]), remainder="passthrough"
    )
    pipeline = make_pipeline(steps, model).fit(X, pd.factorize(X.s)[0] * 2.0 + X.i.astype(float))
    for name in X:
        agrees(pipeline, X[:30], X[30:40], name)


@pytest.mark.slow
@pytest.mark.parametrize("model", [forest(), LinearRegression()])
@pytest.mark.parametrize("kind", ["columns", "union"])
def test_weights_of_transformers(model, kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    if kind == "union":
        steps = FeatureUnion([("p", "passthrough")], transformer_weights={"p": 2.0})
    else:
        parts = [("s", StandardScaler(), ["a"]), ("p", "passthrough", ["b", "c"])]
        steps = ColumnTransformer(parts, transformer_weights={"s": 3.0, "p": -0.5})
    pipeline = make_pipeline(steps, model).fit(X, X.a * 2 + X.b * X.c)
    for name in X:
        agrees(pipeline, X, X[:9], name)


@pytest.mark.slow
def test_steps_that_write_into_their_input():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(3, 2, size=(60, 2)), columns=list("ab"))
    for rows in (X, X.to_numpy()):
        for model in (forest(), LinearRegression(), KNeighborsRegressor(3)):
            pipeline = make_pipeline(StandardScaler(copy=False), model).fit(rows.copy(), X.a)
            before = rows.copy()
            found = MeasureExplainer(pipeline).fit(rows).explain(rows[:5]).values
            assert np.array_equal(np.asarray(before), np.asarray(rows))
            twin = make_pipeline(StandardScaler(), model).fit(rows, X.a)
            wanted = MeasureExplainer(twin).fit(rows).explain(rows[:5]).values
            np.testing.assert_allclose(found, wanted, atol=1e-10)


@pytest.mark.slow
def test_a_range_on_which_only_missing_matters():
    rng = np.random.default_rng(0)
    a = np.where(rng.random(200) < 0.4, np.nan, rng.uniform(1990, 2000, 200))
    X = pd.DataFrame({"a": a, "b": rng.normal(size=200)})
    root = make_pipeline(FunctionTransformer(np.negative), FunctionTransformer(np.exp))
    steps = make_column_transformer((root, ["a"]), remainder="passthrough")
    model = HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=2)
    pipeline = make_pipeline(steps, model).fit(X, np.isnan(a) * 5.0)
    explainer = agrees(pipeline, X, X[:9], "a")
    frame = explainer.curve("a").to_frame()
    assert frame.value[0] == explainer.curve("a")([1995.0])[0]
    uniform = MeasureExplainer(pipeline, "uniform").fit(X).explain(X[:2]).values[:, 1]
    np.testing.assert_allclose(uniform, pipeline.predict(X.fillna(1995.0))[:2], atol=1e-12)


def test_an_imputer_behind_a_logarithm_is_not_monotone():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=90), "b": rng.normal(size=90)})
    fill = SimpleImputer(strategy="constant", fill_value=9.0)
    step = make_pipeline(FunctionTransformer(np.sqrt), fill)
    steps = make_column_transformer((step, ["a"]), remainder="passthrough")
    with np.errstate(invalid="ignore"):
        pipeline = make_pipeline(steps, forest()).fit(X, np.abs(X.a))
        assert agrees(pipeline, X, X[:9], "a").curve("a").kind == "function"
        with pytest.raises(ValueError, match="'a'"):
            MeasureExplainer(pipeline, "uniform", engine="exact").fit(X)


@pytest.mark.parametrize(
    "step",
    [
        Binarizer(threshold=0.123),
        MinMaxScaler(clip=True),
        QuantileTransformer(n_quantiles=7),
        SplineTransformer(n_knots=4, degree=1),
    ],
)
def test_uniform_laws_with_jumps_and_kinks(step):
    """Thresholds anywhere: integrals piece by piece between the places where f is not smooth."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.lognormal(size=90), "b": rng.normal(size=90)})
    model = make_pipeline(step, LinearRegression()).fit(X, X.a + X.b)
    domain = {"a": (0.05, 9.0), "b": (-2.0, 2.5)}
    found = MeasureExplainer(model, "uniform", domain=domain).fit(X).explain(X[:2]).values
    nodes, weights = np.polynomial.legendre.leggauss(12)
    fitted = model[0]
    for k, (low, high) in enumerate(domain.values()):
        places = {
            "Binarizer": lambda: [0.123, np.nextafter(0.123, 1)],
            "MinMaxScaler": lambda k=k: [fitted.data_min_[k], fitted.data_max_[k]],
            "QuantileTransformer": lambda k=k: fitted.quantiles_[:, k],
            "SplineTransformer": lambda k=k: fitted.bsplines_[k].t,
        }[type(fitted).__name__]()
        ends = np.unique(np.clip([low, *places, high], low, high))
        width = np.diff(ends)
        points = (ends[:-1, None] + width[:, None] * (nodes + 1) / 2).ravel()
        share = (width[:, None] * weights / 2).ravel() / (high - low)
        for i in range(2):
            rows = X.iloc[np.full(len(points), i)].assign(**{"ab"[k]: points})
            assert abs(found[i, 1 - k] - share @ model.predict(rows)) < 1e-10


def test_a_refused_batch_leaves_the_fit_as_it_was():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    pipeline = make_pipeline(SplineTransformer(n_knots=3), forest()).fit(X, X.a)
    explainer = MeasureExplainer(pipeline).fit(X)
    values = explainer.explain(X[:3]).values
    with pytest.raises(ValueError, match="'a'"):
        explainer.partial_fit(X)
    np.testing.assert_array_equal(explainer.explain(X[:3]).values, values)


def test_curves_of_trees_by_finite_sums():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30)})
    model = forest().fit(X, X.a)
    by_sums = MeasureExplainer(model, engine="finite_sum").fit(X).curve("a")
    assert by_sums.kind == "function" and len(by_sums.to_frame()) == 30
    np.testing.assert_allclose(by_sums(X.a), MeasureExplainer(model).fit(X).curve("a")(X.a))


@pytest.mark.slow
def test_a_column_that_is_always_missing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": np.nan, "c": rng.normal(size=60)})
    for imputer in (
        SimpleImputer(strategy="constant", fill_value=0.0),
        SimpleImputer(keep_empty_features=True),
        SimpleImputer(),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the column that is lost
            pipeline = make_pipeline(imputer, forest()).fit(X, X.a)
            for name in X:
                agrees(pipeline, X, X[:5], name)


def test_missing_values_that_a_selection_refuses():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    pipeline = make_pipeline(SelectKBest(f_regression, k=2), DecisionTreeRegressor()).fit(
        X, X.a + X.b
    )
    curve = MeasureExplainer(pipeline).fit(X).curve("a")
    assert "missing" not in set(curve.to_frame().closed)
    with pytest.raises(ValueError, match="NaN"):
        curve([np.nan])


@pytest.mark.slow
@pytest.mark.parametrize("last", [False, True])
def test_a_row_without_a_logarithm_may_come_first(last):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0.5, 9, 90), "b": rng.normal(size=90)})
    X.loc[0, "a"] = -1.0
    steps = make_column_transformer((FunctionTransformer(np.log), ["a"]), remainder="passthrough")
    with np.errstate(invalid="ignore"):
        pipeline = make_pipeline(steps, HistGradientBoostingRegressor(max_iter=3)).fit(X, X.a)
        rows = X[::-1] if last else X
        explainer = MeasureExplainer(pipeline, "uniform", domain={"a": (1.0, 9.0)}).fit(rows)
        assert np.isfinite(explainer.explain(rows[:3]).values).all()
        assert explainer.curve("a").kind == "steps"
