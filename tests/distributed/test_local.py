"""Frames that are read in batches in this process, against the same rows in memory."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from skattr import MeasureExplainer, distributed
from skattr.distributed import fitting, source
from skattr.measures import (
    Atoms,
    Coefficient,
    Conditional,
    Density,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    ScaledCoefficient,
    Shapley,
    Uniform,
)
from tests.helpers.frames import assert_same_fit, cases, cut, expected, flats, pipeline
from tests.helpers.lanes import quickly

CASES = cases()
LINEAR = LinearRegression()


def flat_density(y, x, j):
    return np.ones(y.shape[:-1])


def own_row(x):
    return x[None], np.ones((3, 1))


MEASURES = {
    "product": ProductMarginal() - Expectation("product"),
    "uniform": Uniform() - Expectation("uniform"),
    "coefficient": Coefficient(mass_zero=True),
    "scaled": ScaledCoefficient(),
    "corner": PartialDependence() - Expectation("corner"),
    "conditional": Conditional(),
    "gaussian": Conditional("gaussian"),
    "dirac": Dirac() - Expectation(),
    "atoms": Atoms(own_row),
    "density": Density(flat_density),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**31))
def test_fit_is_that_of_all_rows(name, seed):
    rng = np.random.default_rng(seed)
    explainer, X = CASES[name]
    parts = cut(X, int(rng.integers(1, 51)) if name == "forest" else 4, rng)
    whole = clone(explainer).fit(X)
    assert_same_fit(distributed.fit(clone(explainer), parts), whole, X[:50])


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURES)
def test_measures(name):
    X, y = flats()
    X = X[["area", "rooms", "built"]].fillna(1990.0)
    model = LINEAR.fit(X, y) if name == "density" else RandomForestRegressor(3, max_depth=3)
    explainer = MeasureExplainer(FrozenEstimator(model.fit(X, y)), MEASURES[name], random_state=0)
    parts = cut(X, 7, np.random.default_rng(0))
    a, b = distributed.fit(clone(explainer), parts), clone(explainer).fit(X)
    np.testing.assert_allclose(a.explain(X[:20]).values, b.explain(X[:20]).values, rtol=1e-7)
    np.testing.assert_allclose(a.base_value_, b.base_value_, rtol=1e-11)
    if b.spread_ is not None:
        np.testing.assert_allclose(a.spread_, b.spread_, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["uniform", "main_effect"])
def test_batches_can_be_added_later(measure):
    explainer, X = CASES["pipeline of raw columns"]
    X = X.sort_values("area")  # the last rows have larger values
    explainer = clone(explainer).set_params(measure=measure)
    fitted = distributed.fit(clone(explainer), [X[:150], X[150:200]]).partial_fit(X[200:])
    assert_same_fit(fitted, clone(explainer).fit(X), X)


def test_weights_are_a_column():
    explainer, X = CASES["pipeline of raw columns"]
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    weights[:120] = 0.0  # a first part without weight
    parts = cut(X.assign(w=weights), 5, np.random.default_rng(1))
    whole = clone(explainer).fit(X, sample_weight=weights)
    assert_same_fit(distributed.fit(clone(explainer), parts, sample_weight="w"), whole, X)


def test_levels_and_values_that_only_later_parts_have():
    X, y = flats()
    steps = pipeline().fit(X, y)
    X = X.sort_values("district")
    parts = [X[:40], X[40:200], X[200:]]
    whole, fitted = MeasureExplainer(steps).fit(X), distributed.fit(MeasureExplainer(steps), parts)
    a, b = (each.curve("district").to_frame() for each in (fitted, whole))
    assert sorted(map(str, a.iloc[:, 0])) == sorted(map(str, b.iloc[:, 0]))
    assert_same_fit(fitted, whole, X)


def test_levels_that_the_model_does_not_name():
    import xgboost

    X, y = flats()
    X = X[["area", "district"]].astype({"district": "category"}).sort_values("district")
    model = xgboost.XGBRegressor(n_estimators=5, enable_categorical=True).fit(X, y)
    parts = [X[:100], X[100:]]
    whole, fitted = MeasureExplainer(model).fit(X), distributed.fit(MeasureExplainer(model), parts)
    a, b = (each.curve("district").to_frame() for each in (fitted, whole))
    assert sorted(map(str, a.iloc[:, 0])) == sorted(map(str, b.iloc[:, 0]))
    assert_same_fit(fitted, whole, X)


def test_sample_of_a_large_frame(monkeypatch):
    monkeypatch.setattr(fitting, "SAMPLE", 200)
    explainer, X = CASES["forest"]
    explainer = clone(explainer).set_params(measure=Conditional() - Expectation())
    a = distributed.fit(clone(explainer), cut(X, 5, np.random.default_rng(0)))
    b = distributed.fit(clone(explainer), cut(X, 5, np.random.default_rng(0)))
    assert "a seeded sample of 200 of 400 rows" in a.describe()
    np.testing.assert_array_equal(a.explain(X).values, b.explain(X).values)
    np.testing.assert_allclose(a.base_value_, clone(explainer).fit(X).base_value_)
    assert "sample" not in clone(explainer).fit(X).describe()


def batches(kind, X, n=77):
    """Return rows as a frame of a kind."""
    table = pa.Table.from_pandas(X, preserve_index=False)
    if kind == "table":
        return table
    if kind == "reader":
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(n))
    if kind == "dataset":
        return ds.dataset([table.slice(start, n) for start in range(0, len(table), n)])
    if kind == "stream":
        return type(
            "Stream", (), {"__arrow_c_stream__": lambda _, s=None: table.__arrow_c_stream__(s)}
        )()
    if kind == "duckdb":
        return duckdb.connect().from_arrow(table)
    return (X[start : start + n] for start in range(0, len(X), n))


def collected(result):
    if isinstance(result, pa.RecordBatchReader):
        return result.read_all().to_pandas()
    if isinstance(result, duckdb.DuckDBPyRelation):
        return result.df()
    return pd.concat(result)


KINDS = ["table", "reader", "dataset", "stream", "duckdb", "iterator"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["boosting with missing values", "pipeline of raw columns", "classes"]
)
def test_kinds(kind, name, monkeypatch):
    monkeypatch.setattr(source, "ROWS_AT_ONCE", 150)
    explainer, X = CASES[name]
    whole = clone(explainer).fit(X)
    assert_same_fit(distributed.fit(clone(explainer), batches(kind, X)), whole, X)
    keyed = X.assign(key=np.arange(len(X))[::-1])
    result = distributed.explain(whole, batches(kind, keyed), keep=["key"])
    want = expected(whole, X)
    want.insert(0, "key", keyed["key"])
    pd.testing.assert_frame_equal(collected(result), want, check_exact=True)


def test_polars():
    X, y = flats()
    X = X[["area", "rooms", "built"]]
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    P = pl.from_pandas(X)
    whole = MeasureExplainer(model).fit(P)
    assert_same_fit(distributed.fit(MeasureExplainer(model), P.lazy()), whole, P)
    lazy = distributed.explain(whole, P.with_row_index("key").lazy(), keep=["key"])
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema().names()[:3] == ["key", "prediction", "base_value"]
    want = expected(whole, X)
    for engine in ("in-memory", "streaming"):
        result = lazy.collect(engine=engine).sort("key")
        np.testing.assert_array_equal(result.drop("key").to_numpy(), want.to_numpy())
    frames = distributed.explain(whole, P.iter_slices(100))
    np.testing.assert_array_equal(pl.concat(frames).to_numpy(), want.to_numpy())


def test_lazy():
    explainer, X = CASES["forest"]
    whole = clone(explainer).fit(X)

    def never():
        raise AssertionError("read too early")
        yield

    schema = pa.Table.from_pandas(X, preserve_index=False).schema
    result = distributed.explain(whole, pa.RecordBatchReader.from_batches(schema, never()))
    assert result.schema.names == ["prediction", "base_value", *X.columns]
    with pytest.raises(AssertionError, match="too early"):
        result.read_all()


def test_without_predictions_and_with_errors():
    explainer, X = CASES["forest"]
    whole = clone(explainer).fit(X)
    (result,) = distributed.explain(whole, [X], predictions=False, errors=True)
    names = [f"{name}__std_error" for name in X.columns]
    assert list(result) == ["base_value", *X.columns, *names]
    assert result[names].isna().all(axis=None)  # exact
    black_box = MeasureExplainer(whole.estimator_.predict, Conditional("gaussian"), random_state=0)
    black_box.set_params(tol=0.3).fit(X)
    (result,) = distributed.explain(black_box, [X[:5]], errors=True)
    want = black_box.explain(X[:5]).std_error
    np.testing.assert_array_equal(result[names].to_numpy(), want)


def test_index_of_iterators_is_kept():
    explainer, X = CASES["forest"]
    whole = clone(explainer).fit(X)
    X = X.set_axis([f"row {i}" for i in range(len(X))]).rename_axis("name")
    result = pd.concat(distributed.explain(whole, [X[:100], X[:0], X[100:]]))
    pd.testing.assert_frame_equal(result, expected(whole, X), check_exact=True)


def test_dtypes_that_differ_between_parts():
    explainer, X = CASES["boosting with missing values"]
    whole = clone(explainer).fit(X)
    missing = X[100:200].assign(rooms=None, built=pd.Series([None] * 100, X.index[100:200], object))
    objects = X[200:300].astype(object)
    parts = [X[:100], missing, objects, X[300:].astype({"rooms": "Int64", "area": "Float64"})]
    joined = pd.concat([X[:100], missing.astype(float), X[200:]])
    result = pd.concat(distributed.explain(whole, parts))
    pd.testing.assert_frame_equal(result, expected(whole, joined), check_exact=True)
    assert_same_fit(distributed.fit(clone(explainer), parts), clone(explainer).fit(joined), joined)


@pytest.mark.parametrize(
    "measure", quickly(["main_effect", "uniform", "conditional"], ["main_effect"])
)
@pytest.mark.parametrize("column", ["built", "district"])
def test_first_part_without_values(measure, column):
    """The dtype of a column that is missing in the first part is that of a later part."""
    explainer, X = CASES["pipeline of raw columns"]
    explainer = clone(explainer).set_params(measure=measure)
    nothing = pd.Series([None] * 50, X.index[:50], X[column].dtype)
    joined = pd.concat([X[:50].assign(**{column: nothing}), X[50:]])
    parts = [X[:50].assign(**{column: None}), X[50:]]
    assert_same_fit(distributed.fit(clone(explainer), parts), clone(explainer).fit(joined), joined)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 10])
def test_a_background_of_objects(first):
    """Numbers as objects, as databases return them, are numbers; the first ones may be missing."""
    explainer, X = CASES["boosting with missing values"]
    X = X[:60].assign(built=X["built"].where(np.arange(len(X)) >= first)[:60])
    objects = X.astype({"built": object, "rooms": object})
    whole = clone(explainer).fit(objects)
    for parts in (
        [objects[:5], objects[5:40], objects[40:]],
        [objects[i : i + 1] for i in range(len(X))],
        [objects[:30], X[30:]],
    ):
        fitted = distributed.fit(clone(explainer), parts)
        assert_same_fit(fitted, whole, objects)
        result = pd.concat(distributed.explain(fitted, parts))
        pd.testing.assert_frame_equal(result, expected(fitted, objects), check_exact=True)
    with pytest.raises(ValueError, match="batch 1: column 'built' holds object values such as"):
        distributed.fit(clone(explainer), [objects[:30], objects[30:].assign(built="a")])


def test_parts_without_values_have_any_dtype():
    explainer, X = CASES["boosting with missing values"]
    whole = clone(explainer).fit(X)
    want = expected(whole, X.assign(built=np.nan))
    for dtype in (object, "str", "string", "category", "Int64", "datetime64[us]"):
        part = X.assign(built=pd.Series([None] * len(X), X.index, dtype))
        (result,) = distributed.explain(whole, [part])
        pd.testing.assert_frame_equal(result, want, check_exact=True)


def test_coalitions_are_enumerated_or_sampled_by_the_number_of_all_rows(monkeypatch):
    monkeypatch.setattr(fitting, "HEAD", 50)
    explainer, X = CASES["forest"]
    f = explainer.estimator.predict
    for max_evals, engine in ((6 * 400, "enumerated_coalitions"), (2000, "sampled_coalitions")):
        black_box = MeasureExplainer(f, Shapley(), max_evals=max_evals, tol=0.5, random_state=0)
        fitted = distributed.fit(clone(black_box), cut(X, 3, np.random.default_rng(0)))
        assert fitted.engine_[0] == engine
        assert_same_fit(fitted, clone(black_box).fit(X), X[:3])
    with pytest.raises(ValueError, match=r"coalitions.* two passes .*read once"):
        distributed.fit(clone(black_box), iter([X]))


@pytest.mark.parametrize("measure", [Conditional("gaussian"), Shapley(Conditional("gaussian"))])
def test_laws_without_rows_are_learned_from_a_sample(monkeypatch, measure):
    monkeypatch.setattr(fitting, "SAMPLE", 200)
    explainer, X = CASES["forest"]
    explainer = clone(explainer).set_params(measure=measure, random_state=0, tol=0.5)
    fitted = distributed.fit(clone(explainer), cut(X, 5, np.random.default_rng(0)))
    assert "a seeded sample of 200 of 400 rows;" in fitted.describe()
    np.testing.assert_allclose(fitted.base_value_, clone(explainer).fit(X).base_value_)
    assert fitted.n_background_ == 400


def test_dictionaries():
    X, y = flats()
    X = X.astype({"district": "category"})
    steps = pipeline().fit(X, y)
    X = X.sort_values("district")
    rows = [X[:100], X[100:]]
    tables = [
        pa.Table.from_pandas(
            part.assign(district=part["district"].cat.remove_unused_categories()),
            preserve_index=False,
        )
        for part in rows
    ]
    fitted = distributed.fit(MeasureExplainer(steps), ds.dataset(tables))
    assert_same_fit(fitted, MeasureExplainer(steps).fit(X), X)


@pytest.mark.parametrize("kind", ["table", "dataset"])
def test_a_column_that_was_the_index_of_pandas(kind):
    """The metadata of pandas in a table, as in files of `to_parquet`, do not take columns away."""
    explainer, X = CASES["forest"]
    whole = clone(explainer).fit(X)
    table = pa.Table.from_pandas(X.set_index("area")).select(list(X))
    frame = table if kind == "table" else ds.dataset(table)
    result = distributed.explain(whole, frame).read_all().to_pandas()
    want = expected(whole, X).reset_index(drop=True)
    pd.testing.assert_frame_equal(result, want, check_exact=True)
    assert_same_fit(distributed.fit(clone(explainer), frame), whole, X)


def test_arrays():
    _, X = CASES["forest"]
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X.to_numpy(), X["area"])
    whole = MeasureExplainer(model).fit(X.to_numpy())
    (result,) = distributed.explain(whole, [X])
    np.testing.assert_array_equal(result.to_numpy()[:, 2:], whole.explain(X.to_numpy()).values)


@pytest.mark.slow
def test_a_first_part_of_few_values_does_not_choose_the_engine():
    """All combinations of values are evaluated only if there are few in the whole frame."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 60, (400, 4)).astype(float), columns=list("abcd"))
    X[:100] = np.round(X[:100] / 30)
    explainer = MeasureExplainer(
        lambda rows: (rows["a"] * rows["b"]).to_numpy(), ProductMarginal(), tol=0.5, random_state=0
    )
    parts = [X[:100], X[100:]]
    fitted = distributed.fit(clone(explainer), parts)
    whole = clone(explainer).fit(X)
    assert fitted.engine_ == whole.engine_ == ("quasi_monte_carlo",)
    assert_same_fit(fitted, whole, X[:3])
    words = r"finite_grid cannot be used.*12113880 combinations.*engine='quasi_monte_carlo'"
    for frame in (iter(parts), iter([X[i : i + 1] for i in range(len(X))])):
        with pytest.raises(ValueError, match=words):  # read once: as the first rows say
            distributed.fit(clone(explainer), frame)
    grid = distributed.fit(clone(explainer), [X[:50], X[50:100]])
    assert grid.engine_ == clone(explainer).fit(X[:100]).engine_ == ("finite_grid",)
