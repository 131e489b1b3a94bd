"""Values going in and curves coming out: what is put into a row is what the user gave.

The definition is `put`: the value stands in every row of the background, in the background's dtype
where that holds it, and the model's own `predict` is asked.
"""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

from skattr import MeasureExplainer, axioms
from skattr._inputs.values import as_objects, settle
from skattr.measures import (
    Baseline,
    Coefficient,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Stieltjes,
    Uniform,
)
from skattr.report.words import shown_value
from tests.helpers.lanes import quickly

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")
try:
    import pyarrow  # noqa: F401

    HAS_ARROW = True
except ImportError:  # it is large, and optional
    HAS_ARROW = False

MISSING_WORD = pd.Series(["b", None], dtype="str").iloc[
    1
]  # None before pandas 3, where str is object
WORDS = ["a", "b", "missing", "any other"]  # two are called as rows of a table that are not levels


# -- one way in ----------------------------------------------------------------------------------


def dates(*text, unit="s"):
    return pd.Series(pd.to_datetime(list(text), format="ISO8601").as_unit(unit))


@pytest.mark.parametrize(
    "values, like, expected",
    [
        ([2.6, 3], pd.Series([1]), [2.6, 3.0]),
        ([2.0, None], pd.Series([1.5]), [2.0, np.nan]),
        ([0.4], pd.Series([True]), [0.4]),
        ([1, 0.0], pd.Series([True]), [True, False]),
        ([True, None], pd.Series([True]), [True, None]),
        ([10**30], pd.Series([1]), [10**30]),
        ([2**60 + 1], pd.Series([1]), [2**60 + 1]),
        ([2**60 + 1], pd.Series([1.0]), [2**60 + 1]),
        (["1"], pd.Series([1.0]), ["1"]),
        ([0.1], pd.Series([1.0], dtype="float32"), [0.1]),
        (["a", "new", None], pd.Series(["a"], dtype="category"), ["a", "new", np.nan]),
        ([1, None, 2.5], pd.Series([1], dtype="Int64"), [1, None, 2.5]),
        (["a", None], pd.Series(["b"], dtype="str"), ["a", MISSING_WORD]),
        ([None, np.nan], pd.Series(["b"], dtype=object), [None, np.nan]),
        (dates("2020-01-01T00:00:00.5", unit="ns"), dates("2020-01-01"), None),
    ],
)
def test_no_value_is_changed(values, like, expected):
    found = settle(values, like).to_list()
    expected = list(values) if expected is None else expected
    for value, want in zip(found, expected, strict=True):
        if isinstance(want, float) and np.isnan(want):
            assert pd.isna(value) and value is not None
        else:
            assert value is want or value == want


@pytest.mark.parametrize(
    "values, like",
    [
        (np.array([0.1, 0.2], np.float32), pd.Series([1.0])),
        ([2.0, 3], pd.Series([1])),
        (["b", None], pd.Series(pd.Categorical(["a"], ["a", "b"], ordered=True))),
        (pd.Series(["a", None], dtype="string"), pd.Series(["b"], dtype="str")),
        (dates("2021-01-01", unit="ns"), dates("2020-01-01", unit="us")),
        ([1, None], pd.Series([1], dtype="Int64")),
    ],
)
def test_values_get_the_dtype_that_holds_them(values, like):
    assert settle(values, like).dtype == like.dtype


def test_values_get_the_dtype_of_arrow():
    pytest.importorskip("pyarrow")
    like = pd.Series([True, None], dtype="bool[pyarrow]")
    assert settle(pd.Series([True, None], dtype="boolean"), like).dtype == like.dtype


# -- curves and explain --------------------------------------------------------------------------


def with_holes(values, hole, rng):
    return [hole if rng.random() < 0.25 else value for value in values]


def draw(name, n, holes, rng):
    """A column of a dtype; the first values are all that there are."""
    base, dtype, hole = DTYPES[name]
    distinct = {"words": WORDS, "numbers": [0, 1, 2, 3], "bools": [False, True]}[base]
    values = [*distinct, *(distinct[i] for i in rng.integers(0, len(distinct), n - len(distinct)))]
    if holes:
        if isinstance(hole, str):  # both
            values = with_holes(with_holes(values, None, rng), np.nan, rng)
        else:
            values = with_holes(values, hole, rng)
    if name in ("bool", "int") and holes:
        return pd.Series(as_objects(values), dtype=object)
    return pd.Series(as_objects(values), dtype=object).astype(dtype)


DTYPES = {  # what it holds, pandas' dtype, and what stands for missing
    "object, None": ("words", object, None),
    "object, NaN": ("words", object, np.nan),
    "object, both": ("words", object, "both"),
    "str": ("words", "str", None),
    "string": ("words", "string", None),
    "arrow string": ("words", "string[pyarrow]", None),
    "category": ("words", pd.CategoricalDtype(WORDS), None),
    "ordered": ("words", pd.CategoricalDtype(WORDS[::-1], ordered=True), None),
    "category of ints": ("numbers", pd.CategoricalDtype([0, 1, 2, 3]), None),
    "category of bools": ("bools", pd.CategoricalDtype([False, True]), None),
    "Int64": ("numbers", "Int64", pd.NA),
    "Float64": ("numbers", "Float64", pd.NA),
    "boolean": ("bools", "boolean", pd.NA),
    "arrow int": ("numbers", "int64[pyarrow]", pd.NA),
    "arrow bool": ("bools", "bool[pyarrow]", pd.NA),
    "bool": ("bools", "bool", None),
    "int": ("numbers", "int64", np.nan),
    "float": ("numbers", "float64", np.nan),
    "float32": ("numbers", "float32", np.nan),
}
if not HAS_ARROW:
    DTYPES = {name: kind for name, kind in DTYPES.items() if not name.startswith("arrow")}
ENCODERS = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "one-hot, strict": lambda: OneHotEncoder(sparse_output=False),
    "infrequent": lambda: OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=6, sparse_output=False
    ),
    "ordinal": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-2, encoded_missing_value=-7
    ),
    "ordinal, NaN": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan
    ),
    "target": lambda: TargetEncoder(cv=2),
    "passthrough": lambda: "passthrough",
    "imputed": lambda: make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    ),
    "indicator": lambda: SimpleImputer(strategy="most_frequent", add_indicator=True),
}
MODELS = {
    "forest": lambda: RandomForestRegressor(2, random_state=0),
    "hist": lambda: HistGradientBoostingRegressor(
        max_iter=2, min_samples_leaf=2, categorical_features=[0]
    ),
    "ridge": Ridge,
}


def put(Z, value, dtype):
    """The definition: a value in column x of all rows, in the dtype of the background or its own"""
    try:
        own = pd.Series(as_objects([value]), dtype=object).astype(Z["x"].dtype)
        same = pd.isna(own[0]) if pd.isna(value) else own[0] == value
    except (TypeError, ValueError):
        same = False
    if not same:
        hole_of_objects = Z["x"].dtype == bool and pd.isna(value)
        own = pd.Series(as_objects([value]), dtype=object)
        own = own if value is None or hole_of_objects else own.astype(dtype)
    Z = Z.copy()
    Z.isetitem(1, pd.Series(own.array.take(np.zeros(len(Z), int)), dtype=own.dtype))
    return Z


def table(column, rng):
    return pd.DataFrame({"u": rng.integers(0, 4, len(column)).astype(float), "x": column})


def row_of(frame, kind, value):
    """The row of a curve's table that a value belongs to."""
    if kind == "steps":
        if pd.isna(value):
            return frame[frame["closed"] == "missing"]
        return frame[(frame["lower"] < float(value)) & (float(value) <= frame["upper"])]
    if pd.isna(value):
        gone = frame[frame["kind"] == "missing"]
        name = f"missing ({'None' if value is None else 'NaN'})"
        return gone if len(gone) == 1 else gone[gone["level"] == name]
    same = np.array([level == value for level in frame["level"]], bool)
    known = frame[(frame["kind"] == "level") & same]
    return known if len(known) else frame[frame["kind"] == "other"]


# every dtype meets every encoder, and each of them every model
PAIRS = [
    (dtype, encoder, list(MODELS)[(i + j) % len(MODELS)])
    for i, dtype in enumerate(DTYPES)
    for j, encoder in enumerate(ENCODERS)
]


# what scikit-learn says of columns that a model cannot be fitted on
UNFIT = (
    "could not convert string to float|must be uniformly strings or numbers|contains NaN"
    "|boolean value of NA is ambiguous|uses pandas.NA|does not support data with dtype bool"
)


@pytest.mark.parametrize(
    "dtype, encoder, model",
    [pair if i % 48 == 0 else pytest.param(*pair, marks=pytest.mark.slow)
     for i, pair in enumerate(PAIRS)],
)  # fmt: skip
def test_every_row_of_a_curve_is_explain_at_that_value(dtype, encoder, model):
    for seed, (learned, known) in enumerate([(False, False), (True, True), (True, False)]):
        rng = np.random.default_rng(seed)
        train = table(draw(dtype, 24, learned, rng), rng)
        names = [repr(v) for v in train["x"].to_list()]
        y = pd.factorize(pd.Series(names))[0] * (1 + train["u"]) + train["u"] + 0.5
        steps = ColumnTransformer([("x", ENCODERS[encoder](), ["x"]), ("u", "passthrough", ["u"])])
        background = table(draw(dtype, 8, known, rng), rng)
        pipeline = make_pipeline(steps, MODELS[model]())
        try:
            f = pipeline.fit(train, y).predict
        except (TypeError, ValueError) as error:
            assert re.search(UNFIT, str(error))
            continue
        explainer = MeasureExplainer(pipeline, PartialDependence())
        if refuses(lambda: f(background)):  # noqa: B023
            with pytest.raises(ValueError, match="the model refuses X"):
                explainer.fit(background)
            continue
        explainer.fit(background)
        _check_values(explainer, f, background, draw(dtype, 16, True, rng), rng)


def refuses(call):
    try:
        call()
    except (TypeError, ValueError):
        return True
    return False


def expected_at(f, background, value, dtype):
    """The definition; None if the model refuses the value."""
    Z = put(background, value, dtype)
    try:
        return f(Z).mean()
    except (TypeError, ValueError) as error:
        if "uses pandas.NA" not in str(error):
            return None
    # a ColumnTransformer refuses NA in a table of numbers, whatever the model makes of it
    Z = Z.assign(x=pd.Series(as_objects([np.nan] * len(Z)), dtype=object))
    return None if refuses(lambda: f(Z)) else f(Z).mean()


def _check_values(explainer, f, background, column, rng):
    """Compare explain, the curve and its table with the definition."""
    curve = explainer.curve("x")
    frame = curve.to_frame()
    first = {repr(value): i for i, value in reversed(list(enumerate(column.to_list())))}
    for i in first.values():
        value = column.to_list()[i]
        rows = table(column.iloc[[i]].reset_index(drop=True), rng)
        expected = expected_at(f, background, value, column.dtype)
        try:
            found = explainer.explain(rows, predictions=False).values[0, 1]
        except ValueError as error:
            assert "the model refuses X" in str(error)
            assert expected is None or value is pd.NA
            with pytest.raises(ValueError, match="the model refuses X"):
                curve([value])
            continue
        assert expected is not None, value
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), value
        assert curve([value]) == pytest.approx(found, rel=1e-9), value
        assert curve(as_objects([value])) == pytest.approx(found, rel=1e-9), value
        if curve.kind in ("levels", "steps"):
            shown = row_of(frame, curve.kind, value)
            assert len(shown) == 1, value
            assert shown["value"].iloc[0] == pytest.approx(found, rel=1e-9), value


def test_missing_that_the_encoder_learned_and_the_background_lacks():
    train = pd.DataFrame({"x": pd.Series(["a", np.nan, "b", "a", np.nan, "b"] * 4, dtype=object)})
    y = train["x"].map({"a": 1.0, "b": 2.0}).fillna(9.0)
    pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge(1e-6)).fit(train, y)
    background = pd.DataFrame({"x": pd.Series(["a", "b"], dtype=object)})
    frame = MeasureExplainer(pipeline, PartialDependence()).fit(background).curve("x").to_frame()
    values = frame.set_index(["kind", "level"])["value"]
    assert values["missing", "missing (NaN)"] == pytest.approx(9, abs=1e-3)
    assert values["level", "a"] == pytest.approx(1, abs=1e-3)
    # None is a level that the encoder does not know: all zeros
    assert values["missing", "missing (None)"] == pytest.approx(values["other", "any other"])


def test_a_black_box_at_a_column_that_is_missing_in_all_rows():
    X = pd.DataFrame({"g": pd.Series([None, None], dtype="category"), "x": [1.0, 2.0]})
    explainer = MeasureExplainer(lambda X: X["g"].isna() + X["x"], PartialDependence()).fit(X)
    assert explainer.curve("g").to_frame().columns.tolist() == ["x", "value"]
    assert explainer.curve("g")([None]) == pytest.approx([2.5])


def test_complex_numbers_are_refused_and_not_printed():
    X = np.ones((50, 3)) * 1j
    explainer = MeasureExplainer(lambda X: X[:, 0])
    with pytest.raises(ValueError, match=r"^Complex data not supported: X must hold real numbers$"):
        explainer.fit(X)
    with pytest.raises(ValueError, match=r"^X must hold real numbers, got complex ones$"):
        axioms.check(PartialDependence(), X)
    frame = pd.DataFrame(X.real, columns=["a", "b", "c"])
    forest = RandomForestRegressor(2, random_state=0).fit(frame, np.arange(50))
    explainer = MeasureExplainer(forest).fit(frame)
    message = r"^X must hold real numbers, got complex ones in columns \['b'\]$"
    for refuses in (explainer.explain, MeasureExplainer(forest).fit):
        for dtype in (complex, object):
            with pytest.raises(ValueError, match=message):
                refuses(frame.assign(b=pd.Series([1j] * 50, dtype=dtype)))


@pytest.mark.parametrize("model", [RandomForestRegressor(2, random_state=0), Ridge(), "function"])
@pytest.mark.parametrize("scaled", [False, True])
def test_curves_refuse_complex_numbers(model, scaled):
    """The imaginary part would be dropped."""
    X = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) % 7})
    if model == "function":
        model = lambda X: np.asarray(X, float)[:, 0] ** 2  # noqa: E731
    else:
        model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(X, X["a"])
    curve = MeasureExplainer(model).fit(X).curve("a")
    for values in (np.array([3.0 + 4.0j]), [3.0 + 4.0j], np.array([3.0 + 4.0j], object)):
        with pytest.raises(ValueError, match=r"^column 'a' must hold numbers, got .*3\+4j"):
            curve(values)


def test_words_of_tables_stay_apart_in_reports():
    assert shown_value("missing") == "'missing'" and shown_value(None) == "missing"


@pytest.mark.parametrize("model", [RandomForestRegressor(2, random_state=0), Ridge()])
def test_polars(model):
    values = ["a", None, "missing", "a", "b", "missing"] * 4
    train = pl.DataFrame({"x": values, "n": list(range(24)), "u": np.arange(24.0)})
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["x"]),
        ("passthrough", ["n", "u"]),
    )
    y = [{"a": 1.0, "b": 2.0, "missing": 4.0, None: 8.0}[v] for v in values]
    pipeline = make_pipeline(steps, model).fit(train, y)
    background = train[[0, 2, 4, 5]]
    explainer = MeasureExplainer(pipeline, PartialDependence()).fit(background)
    frame = explainer.curve("x").to_frame()
    for value in ("a", None, "missing", "b", "new"):
        Z = background.with_columns(x=pl.Series([value] * 4, dtype=pl.String))
        expected = pipeline.predict(Z).mean()
        assert explainer.explain(Z[:1]).values[0, 0] == pytest.approx(expected)
        assert explainer.curve("x")([value]) == pytest.approx(expected)
        assert row_of(frame, "levels", value)["value"].tolist() == pytest.approx([expected])
    Z = background.with_columns(n=pl.Series([2.6] * 4))
    assert explainer.curve("n")([2.6]) == pytest.approx(pipeline.predict(Z).mean())


# -- numbers that a dtype does not hold ----------------------------------------------------------


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("model", [RandomForestRegressor(3, random_state=0), Ridge()])
def test_fractions_in_a_column_of_integers(model, scaled):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.integers(0, 6, 40), "x": rng.normal(size=40)})
    model = make_pipeline(StandardScaler(), model) if scaled else model
    model.fit(X, X["n"] ** 2 + X["x"])
    explainer = MeasureExplainer(model, PartialDependence()).fit(X[:9])
    expected = [model.predict(X[:9].assign(n=v)).mean() for v in (2.6, 3, 2.4)]
    curve = explainer.curve("n")
    for values in ([2.6, 3, 2.4], np.array([2.6, 3, 2.4]), as_objects([2.6, 3, 2.4])):
        assert curve(values) == pytest.approx(expected)
    rows = X[:3].assign(n=as_objects([2.6, 3, 2.4]))
    assert explainer.explain(rows).values[:, 0] == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"column 'n' must hold numbers, got '2\.6'"):
        curve(["2.6"])


POINTS = [
    [0.4, 2.6, 0.1],
    [np.nan, 1, 0.1],
    [None, None, None],
    {"flag": True, "n": 10**30, "x": 0.0},
    [1, 2, 3],
    np.array([1.0, 0.5, 0.1]),
]


@pytest.mark.parametrize("black_box", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_baselines_keep_their_values(point, black_box):
    X = pd.DataFrame({"flag": [True, False, True], "n": [1, 2, 3], "x": [0.1, 0.2, 0.3]})
    forest = RandomForestRegressor(3, random_state=0).fit(X, [1.0, 2.0, 4.0])
    f = (lambda X: forest.predict(X)) if black_box else forest
    found = MeasureExplainer(f, Baseline(point)).fit(X).explain(X).values
    values = list(point.values()) if isinstance(point, dict) else list(point)
    row = pd.DataFrame([values], columns=list(X), dtype=object)
    assert found == pytest.approx(np.full((3, 3), forest.predict(row)[0]))


@pytest.mark.parametrize("like", [pd.DataFrame, pl.DataFrame, np.array])
def test_a_baseline_of_another_kind_is_refused(like):
    X = np.arange(6.0).reshape(3, 2)
    X = X if like is np.array else like({"x0": X[:, 0], "x1": X[:, 1]})
    explainer = MeasureExplainer(lambda X: np.zeros(len(X)), Baseline([1.0, "high"]))
    with pytest.raises(ValueError, match=r"value of column 'x1' .* got 'high'"):
        explainer.fit(X)


@pytest.mark.parametrize("end", ["1", True, None, 2**60 + 1])
def test_ends_of_a_domain_are_numbers(end):
    X = np.arange(6.0).reshape(3, 2)
    explainer = MeasureExplainer(lambda X: X[:, 0], Uniform(), domain={"x0": (end, 5.0)})
    with pytest.raises(ValueError, match=r"domain\['x0'\] must be a number"):
        explainer.fit(X)


# -- float32 -------------------------------------------------------------------------------------


def coarse(rng):
    X = np.round(rng.normal(size=(200, 3)), 1)
    return X, X @ [1.0, 2.0, 3.0] + X[:, 0] * X[:, 1]


@pytest.mark.slow
@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize(
    "model", [RandomForestRegressor(4, random_state=0), HistGradientBoostingRegressor(max_iter=9)]
)
def test_rows_are_encoded_in_the_dtype_of_the_background(model, as_frame):
    X, y = coarse(np.random.default_rng(0))
    made = (lambda X: pd.DataFrame(X, columns=list("abc"))) if as_frame else np.asarray
    pipeline = make_pipeline(StandardScaler(), model).fit(made(X), y)
    rows = X[:24].astype(np.float32)
    for dtype in (np.float64, np.float32):
        background = X[:20].astype(dtype)
        explainer = MeasureExplainer(pipeline, PartialDependence()).fit(made(background))
        found = explainer.explain(made(rows))
        wide = explainer.explain(made(rows.astype(np.float64)))
        np.testing.assert_array_equal(found.values, wide.values)
        for j in range(3):
            Z = np.repeat(background[None], len(rows), axis=0)
            Z[:, :, j] = rows[:, j, None]
            expected = pipeline.predict(made(Z.reshape(-1, 3))).reshape(len(rows), -1).mean(axis=1)
            np.testing.assert_allclose(found.values[:, j], expected)
            curve = explainer.curve(j)
            np.testing.assert_allclose(curve(rows[:, j].astype(np.float64)), expected)
            shown = [row_of(curve.to_frame(), "steps", v)["value"].iloc[0] for v in rows[:, j]]
            np.testing.assert_allclose(shown, expected)
        if as_frame:  # the dtype of one column does not move another
            mixed = explainer.explain(made(rows).astype({"a": np.float64}))
            np.testing.assert_array_equal(mixed.values, found.values)


ROUNDED = r"the columns \[.*\] are float32 in the background"
BINS = {"strategy": "quantile", "quantile_method": "averaged_inverted_cdf"}


@pytest.mark.slow
@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        KBinsDiscretizer(4, encode="ordinal", **BINS),
        KBinsDiscretizer(4, encode="onehot-dense", **BINS),
        KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"),
        make_union(StandardScaler(), KBinsDiscretizer(4, encode="ordinal", **BINS)),
        make_union("passthrough", KBinsDiscretizer(4, encode="ordinal", **BINS)),
    ],
)
@pytest.mark.parametrize("trained_in", [np.float64, np.float32])
def test_numbers_are_rounded_to_a_float32_background_behind_steps_with_a_warning(
    step, as_frame, trained_in
):
    X, y = coarse(np.random.default_rng(0))
    made = (lambda X: pd.DataFrame(X, columns=list("abc"))) if as_frame else np.asarray
    forest = RandomForestRegressor(4, random_state=0)
    pipeline = make_pipeline(step, forest).fit(made(X.astype(trained_in)), y)
    Z, rows = X[:20].astype(np.float32), X[:24]
    single = rows.astype(np.float32)
    explainer = MeasureExplainer(pipeline, PartialDependence()).fit(made(Z))
    with pytest.warns(UserWarning, match=ROUNDED):
        found = explainer.explain(made(rows)).values
    np.testing.assert_array_equal(found, explainer.explain(made(single)).values)
    for j in range(3):
        expected = []
        for value in single[:, j]:
            own = Z.copy()
            own[:, j] = value
            expected.append(pipeline.predict(made(own)).mean())
        np.testing.assert_allclose(found[:, j], expected)
        curve = explainer.curve(j)
        np.testing.assert_array_equal(curve(single[:, j]), found[:, j])
        with pytest.warns(UserWarning, match=ROUNDED):
            np.testing.assert_array_equal(curve(rows[:, j]), found[:, j])
        if curve.kind == "steps":
            frame = curve.to_frame()
            for values in (rows[:, j], single[:, j]):
                shown = [row_of(frame, "steps", v)["value"].iloc[0] for v in values]
                np.testing.assert_allclose(shown, expected)
    with pytest.warns(UserWarning, match=ROUNDED):
        base = MeasureExplainer(pipeline, Baseline(rows[0])).fit(made(Z)).explain(made(Z))
    np.testing.assert_allclose(base.values, pipeline.predict(made(single[:1]))[0])


def test_numbers_reach_a_model_without_steps_as_they_are():
    X, y = coarse(np.random.default_rng(0))
    model = HistGradientBoostingRegressor(max_iter=9).fit(X, y)
    Z = X[:20].astype(np.float32)
    explainer = MeasureExplainer(model, PartialDependence()).fit(Z)
    for value in np.unique(X[:, 0]):
        own = Z.astype(np.float64)
        own[:, 0] = value
        assert explainer.curve(0)([value]) == pytest.approx(model.predict(own).mean())


# -- booleans, categories, strings ---------------------------------------------------------------


@pytest.mark.parametrize("hole", [None, np.nan, pd.NA])
def test_missing_in_a_column_of_booleans(hole):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"flag": rng.random(40) < 0.5, "x": rng.normal(size=40)})
    train = X.assign(flag=X["flag"].astype(float).where(rng.random(40) < 0.8))
    forest = RandomForestRegressor(3, random_state=0).fit(train, train["flag"].fillna(5) + X["x"])
    explainer = MeasureExplainer(forest, PartialDependence()).fit(X[:9])
    dtype = "boolean" if hole is pd.NA else object
    rows = X[:2].assign(flag=pd.Series([True, hole], dtype=dtype))
    expected = [forest.predict(X[:9].assign(flag=v)).mean() for v in (1.0, np.nan)]
    assert explainer.explain(rows).values[:, 0] == pytest.approx(expected)
    assert explainer.curve("flag")([True, hole]) == pytest.approx(expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("booster", ["xgboost.XGBRegressor", "lightgbm.LGBMRegressor", "encoder"])
def test_errors_where_a_column_of_booleans_is_missing(booster, library):
    """The background has no holes, and the model takes them: its table has a line for them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"flag": rng.random(60) < 0.5, "x": rng.normal(size=60)})
    y = X["x"] + X["flag"] * 2 + X["flag"] * X["x"]
    if booster == "encoder":
        forest = RandomForestRegressor(3, random_state=0)
        encoder = OneHotEncoder(handle_unknown="ignore")
        model = make_pipeline(make_column_transformer((encoder, ["flag"])), forest)
    else:
        module, _, name = booster.partition(".")
        options = {"min_child_samples": 5, "verbose": -1} if module == "lightgbm" else {}
        model = getattr(pytest.importorskip(module), name)(n_estimators=3, **options)
    if library == "polars":
        X = pl.from_pandas(X)
    curve = MeasureExplainer(model.fit(X, y), PartialDependence()).fit(X).curve("flag")
    assert list(curve.to_frame()["level"]) == [False, True, "missing"]
    values = [False, True, np.nan]
    assert curve(values) == pytest.approx(curve.to_frame()["value"].to_numpy())
    assert curve.background_error(values) == pytest.approx(curve.table_errors(False)[:, 0])
    assert curve.background_error(values)[:2] == pytest.approx(curve.background_error(values[:2]))
    assert (curve.table_errors(True) >= 0).all()


@pytest.mark.parametrize("holes", quickly([False, True], [True]))
@pytest.mark.parametrize("encoder", [OneHotEncoder, OrdinalEncoder, TargetEncoder])
@pytest.mark.parametrize("values", [[False, True], [3, 7]])
def test_levels_are_named_as_the_categories_of_the_column(values, encoder, holes):
    """Scikit-learn keeps categories of booleans, and integers beside holes, as floats."""
    rng = np.random.default_rng(0)
    drawn = [values[i] for i in rng.integers(0, 2, 60)]
    if holes:
        drawn = [None if rng.random() < 0.2 else value for value in drawn]
    X = pd.DataFrame({"c": pd.Categorical(drawn, categories=values), "x": rng.normal(size=60)})
    y = X["c"].cat.codes + X["x"]
    steps = make_column_transformer((encoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(steps, RandomForestRegressor(3, random_state=0)).fit(X, y)
    curve = MeasureExplainer(model, PartialDependence()).fit(X).curve("c")
    frame = curve.to_frame()
    levels = frame[frame["kind"] == "level"]
    assert [(type(level), level) for level in levels["level"]] == [
        (type(value), value) for value in values
    ]
    put_in = [X.assign(c=pd.Categorical([value] * 60, categories=values)) for value in values]
    expected = [model.predict(rows).mean() for rows in put_in]
    assert levels["value"].to_numpy() == pytest.approx(expected)
    if values == [False, True]:
        assert "other" not in set(frame["kind"])  # there is no third level


@pytest.mark.slow
@pytest.mark.parametrize("measure", [PartialDependence(), Uniform(), ProductMarginal()])
@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("encoder", ["passthrough", "ordinal, NaN"])
@pytest.mark.parametrize("dtype", ["str", "bool", "category of bools", "int"])
def test_categorical_columns_of_hist_gradient_boosting(dtype, encoder, output, measure):
    rng = np.random.default_rng(0)
    X = table(draw(dtype, 40, False, rng), rng)[["x", "u"]]
    steps = ColumnTransformer([("x", ENCODERS[encoder](), ["x"]), ("u", "passthrough", ["u"])])
    pipeline = make_pipeline(steps.set_output(transform=output), MODELS["hist"]())
    pipeline.fit(X, pd.factorize(X["x"])[0] * X["u"])
    explainer = MeasureExplainer(pipeline, measure).fit(X[:12])
    found = explainer.explain(X).values[:, 0]
    curve = explainer.curve("x")
    np.testing.assert_allclose(curve(X["x"]), found)
    frame = curve.to_frame()
    shown = [row_of(frame, curve.kind, v)["value"].iloc[0] for v in X["x"].to_list()]
    np.testing.assert_allclose(shown, found)
    if isinstance(measure, PartialDependence):
        tables = [X[:12].assign(x=X["x"].iloc[[i] * 12].array) for i in range(len(X))]
        expected = pipeline.predict(pd.concat(tables)).reshape(len(X), 12).mean(axis=1)
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    "dtype", quickly(["object, None", "str", "category", "int", "category of ints"], ["category"])
)
def test_categorical_columns_of_catboost_behind_a_passthrough(dtype):
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    X = table(draw(dtype, 40, False, rng), rng)[["x", "u"]]
    steps = ColumnTransformer(
        [("x", "passthrough", ["x"]), ("u", "passthrough", ["u"])], verbose_feature_names_out=False
    ).set_output(transform="pandas")
    model = catboost.CatBoostRegressor(
        iterations=5, depth=2, cat_features=["x"], one_hot_max_size=9, silent=True,
        allow_writing_files=False, thread_count=1,
    )  # fmt: skip
    pipeline = make_pipeline(steps, model).fit(X, pd.factorize(X["x"])[0] * X["u"])
    explainer = MeasureExplainer(pipeline, PartialDependence()).fit(X[:12])
    assert explainer.exact_ and "boxes" in explainer.describe()
    tables = [X[:12].assign(x=X["x"].iloc[[i] * 12].array) for i in range(20)]
    expected = pipeline.predict(pd.concat(tables)).reshape(20, 12).mean(axis=1)
    np.testing.assert_allclose(explainer.explain(X[:20]).values[:, 0], expected)
    np.testing.assert_allclose(explainer.curve("x")(X["x"][:20]), expected)
    frame = explainer.curve("x").to_frame()
    shown = [row_of(frame, "levels", v)["value"].iloc[0] for v in X["x"].to_list()[:20]]
    np.testing.assert_allclose(shown, expected)


@pytest.mark.parametrize("model", MODELS)
def test_arrays_of_strings(model):
    rng = np.random.default_rng(0)
    X = rng.choice(["a", "b"], (40, 2))
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    pipeline = make_pipeline(encoder, MODELS[model]())
    pipeline.fit(X, (X[:, 0] == "a") + 2.0 * (X[:, 1] == "b"))
    explainer = MeasureExplainer(pipeline, PartialDependence()).fit(X[:9])
    rows = np.array([["a", "b"], ["long name", "a"]])
    for j in range(2):
        expected = []
        for value in rows[:, j]:
            Z = X[:9].astype(object)
            Z[:, j] = value
            expected.append(pipeline.predict(Z).mean())
        assert explainer.explain(rows).values[:, j] == pytest.approx(expected)
        assert explainer.curve(j)(rows[:, j]) == pytest.approx(expected)


@pytest.mark.parametrize("model", MODELS)
def test_arrays_of_numbers_as_objects(model):
    """An encoder that learned objects does not take numbers."""
    rng = np.random.default_rng(0)
    X = np.empty((40, 2), object)
    X[:] = rng.integers(0, 3, (40, 2)).astype(float).tolist()
    steps = ColumnTransformer(
        [("a", ENCODERS["ordinal"](), [0]), ("b", StandardScaler(), [1])], sparse_threshold=0
    )
    pipeline = make_pipeline(steps, MODELS[model]()).fit(X, X[:, 0] * X[:, 1])
    explainer = MeasureExplainer(pipeline, PartialDependence()).fit(X[:9])
    for j in range(2):
        expected = []
        for value in X[:12, j]:
            Z = X[:9].copy()
            Z[:, j] = value
            expected.append(pipeline.predict(Z).mean())
        assert explainer.explain(X[:12]).values[:, j] == pytest.approx(expected)
        assert explainer.explain(X[:12].astype(float)).values[:, j] == pytest.approx(expected)
        assert explainer.curve(j)(X[:12, j]) == pytest.approx(expected)


@pytest.mark.parametrize("holes", [[pd.NA], [pd.NA, None], [np.nan, pd.NA, 1]])
def test_missing_numbers_of_all_kinds_in_one_array(holes):
    X, y = coarse(np.random.default_rng(0))
    X[::5, 0] = np.nan
    model = HistGradientBoostingRegressor(max_iter=9).fit(X, y)
    explainer = MeasureExplainer(model, PartialDependence()).fit(X[:20])
    numbers = [np.nan if pd.isna(hole) else hole for hole in holes]
    expected = [model.predict(np.c_[np.full(20, v), X[:20, 1:]]).mean() for v in numbers]
    assert explainer.curve(0)(as_objects(holes)) == pytest.approx(expected)
    assert explainer.curve(0)(holes) == pytest.approx(expected)


def test_levels_without_names_are_not_taken_for_unknown_ones():
    """Of what catboost knows and the background lacks nobody knows the name."""
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(["a", "b", "any other"], 60), "x": rng.normal(size=60)})
    model = catboost.CatBoostRegressor(
        iterations=9, depth=2, cat_features=["g"], one_hot_max_size=9, silent=True,
        allow_writing_files=False, thread_count=1,
    )  # fmt: skip
    model.fit(X, X["g"].map({"a": 1.0, "b": 2.0, "any other": 5.0}) + X["x"])
    batches = [X[X["g"] == level] for level in ("a", "b", "any other")]
    explainer = MeasureExplainer(model, PartialDependence()).fit(batches[0])
    assert explainer.curve("g").to_frame()["level"].tolist() == ["a"]
    explainer.partial_fit(batches[1])
    assert explainer.curve("g").to_frame()["level"].tolist() == ["a", "b"]
    frame = explainer.partial_fit(batches[2]).curve("g").to_frame()
    assert frame["kind"].tolist() == ["level"] * 3 + ["other"]
    for value in ("a", "b", "any other", "new"):
        expected = model.predict(X.assign(g=value)).mean()
        assert row_of(frame, "levels", value)["value"].tolist() == pytest.approx([expected])


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize(
    "measure",
    [Uniform(), Coefficient(), Expectation("uniform"), Stieltjes(lambda y, x, j: y[:, 0])],
)
def test_uniform_laws_on_dates_are_refused(measure, unit):
    """They would put numbers in the place of dates."""
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 30), unit="D")
    X = pd.DataFrame({"day": pd.DatetimeIndex(day).as_unit(unit), "x": rng.normal(size=30)})
    steps = make_column_transformer((FunctionTransformer(to_days), ["day"]), ("passthrough", ["x"]))
    pipeline = make_pipeline(steps, Ridge()).fit(X, X["x"])
    with pytest.raises(ValueError, match="column 'day' holds dates or durations, and uniform laws"):
        MeasureExplainer(pipeline, measure).fit(X)


def test_what_a_model_refuses_in_all_rows_is_said_to_be_its_refusal():
    train = pd.DataFrame({"x": pd.Series([0, 1, 2, None] * 6, dtype=object)})
    pipeline = make_pipeline(OneHotEncoder(), Ridge()).fit(train, np.arange(24.0))
    with pytest.raises(ValueError, match="the model refuses X"):  # scikit-learn's is a TypeError
        MeasureExplainer(pipeline).fit(pd.DataFrame({"x": [0, 1, 2]}))


# -- batches -------------------------------------------------------------------------------------


def to_days(X):
    return X.to_numpy("M8[s]").astype(float) / 86_400


@pytest.mark.slow
@pytest.mark.parametrize("black_box", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("units", [("ns", "us"), ("s", "ns"), ("us", "s")])
def test_batches_with_other_categories_and_units(units, ordered, black_box):
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 30), unit="D")

    def batch(rows, levels, unit):
        grade = pd.Categorical(rng.choice(levels, len(rows)), levels, ordered=ordered)
        return pd.DataFrame({"grade": grade, "day": pd.DatetimeIndex(day[rows]).as_unit(unit)})

    first = batch(np.arange(15), ["low", "mid"], units[0])
    second = batch(np.arange(15, 30), ["high", "mid"], units[1])
    whole = pd.concat([X.astype({"grade": object}) for X in (first, second)], ignore_index=True)
    whole["grade"] = pd.Categorical(whole["grade"], ["low", "mid", "high"], ordered=ordered)
    steps = make_column_transformer(
        (OrdinalEncoder(), ["grade"]), (FunctionTransformer(to_days), ["day"])
    )
    y = whole["grade"].cat.codes * to_days(whole["day"])
    pipeline = make_pipeline(steps, Ridge()).fit(whole, y)
    f = (lambda X: pipeline.predict(X)) if black_box else pipeline
    measure = PartialDependence() - Expectation()
    batches = MeasureExplainer(f, measure).fit(first).partial_fit(second)
    once = MeasureExplainer(f, measure).fit(whole)
    np.testing.assert_allclose(batches.explain(whole).values, once.explain(whole).values, atol=1e-6)
    assert batches.curve("grade")(["high"]) == pytest.approx(once.curve("grade")(["high"]))
    assert len(batches.curve("day").to_frame()) == len(once.curve("day").to_frame())
