"""What `skattr.distributed` refuses, and what it says."""

import threading

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from skattr import MeasureExplainer, distributed
from skattr.distributed import kinds, work
from skattr.distributed.shipping import check_pickles
from skattr.measures import Conditional, Uniform
from tests.helpers.frames import NUMBERS, cases, flats

CASES = cases()
FOREST, X = CASES["forest"]
FITTED = clone(FOREST).fit(X)


@pytest.mark.parametrize("frame", [3, "rows.parquet", {"a": [1]}, None])
def test_unknown_kinds_list_those_that_are_known(frame):
    with pytest.raises(TypeError, match=r"dask.dataframe.DataFrame, a pyspark.*polars.LazyFrame"):
        distributed.fit(clone(FOREST), frame)


@pytest.mark.parametrize(
    "frame", [X["area"], pl.Series([1.0]), pa.chunked_array([[1.0]]), X.to_numpy(), X.index]
)
def test_single_columns_and_arrays(frame):
    with pytest.raises(TypeError, match=r"frame must be a dask.*; got a (pandas|polars|pyarrow|n)"):
        distributed.explain(FITTED, frame)


@pytest.mark.parametrize("kind", ["iterable", "later part", "arrow", "keep"])
def test_columns_of_equal_names(kind):
    double = X.set_axis(["area", "rooms", "rooms"], axis=1)
    keys = X.assign(key=1, other=2).set_axis([*X, "key", "key"], axis=1)
    frame, keep = {
        "iterable": ([double], None),
        "later part": ([X, double], None),
        "arrow": (pa.Table.from_arrays([pa.array([1.0])] * 2, names=["rooms", "rooms"]), None),
        "keep": ([keys], ["key"]),
    }[kind]
    with pytest.raises(ValueError, match=r"occur in (the frame|batch 1) more than once; rename"):
        list(distributed.explain(FITTED, frame, keep=keep))


@pytest.mark.parametrize("frame", [X, pl.from_pandas(X)])
def test_frames_in_memory(frame):
    with pytest.raises(TypeError, match="is in memory: call fit and explain"):
        distributed.explain(FITTED, frame)


def test_frames_of_pyspark_pandas_have_an_index_that_cannot_be_kept():
    frame = type("DataFrame", (), {"__module__": "pyspark.pandas.frame"})()
    with pytest.raises(TypeError, match=r"cannot be kept: use .*to_spark\(index_col"):
        distributed.explain(FITTED, frame)


def test_missing_library_names_the_extra(monkeypatch):
    def no_module(name):
        raise ImportError("No module named 'dask'", name="dask")

    frame = type("DataFrame", (), {"__module__": "dask.dataframe"})()
    monkeypatch.setattr(kinds, "import_module", no_module)
    with pytest.raises(ImportError, match=r"needs dask: pip install 'skattr\[dask\]'"):
        distributed.fit(clone(FOREST), frame)


def test_streams_that_can_be_read_once():
    for measure in (Uniform(), Conditional()):
        explainer = clone(FOREST).set_params(measure=measure)
        with pytest.raises(ValueError, match=r"two passes.*read once: give a list of frames"):
            distributed.fit(explainer, iter([X]))


@pytest.mark.parametrize("frame", [[], [X[:0], X[:0]], iter(())])
def test_no_rows(frame):
    with pytest.raises(ValueError, match=r"no rows|no frames"):
        distributed.fit(clone(FOREST), frame)


def test_an_estimator_that_is_not_fitted():
    with pytest.raises(ValueError, match="needs a fitted estimator"):
        distributed.fit(MeasureExplainer(RandomForestRegressor()), [X])


@pytest.mark.parametrize("weight", ["nothing", np.ones(3), 2])
def test_weights(weight):
    with pytest.raises(ValueError, match="sample_weight must be the name of a column"):
        distributed.fit(clone(FOREST), [X], sample_weight=weight)


@pytest.mark.parametrize(
    ("column", "words"), [("many", "numbers"), (-1.0, "negative"), (np.nan, "finite")]
)
def test_weights_of_a_part(column, words):
    parts = [X.assign(w=1.0), X.assign(w=column)]
    with pytest.raises(ValueError, match=f"batch 1: .*{words}"):
        distributed.fit(clone(FOREST), parts, sample_weight="w")


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ("key", "keep must be a list"),
        (["key", "key"], "each column once"),
        (["no"], r"no columns \['no'\]"),
        (["key", "area"], "also columns of the result"),
    ],
)
def test_keep(keep, words):
    with pytest.raises((TypeError, ValueError), match=words):
        distributed.explain(FITTED, [X.assign(key=1)], keep=keep)


def test_columns():
    with pytest.raises(ValueError, match=r"missing: \['rooms'\].*not known from fit: \['key'\]"):
        distributed.explain(FITTED, [X.drop(columns="rooms").assign(key=1)])
    other = MeasureExplainer(lambda rows: rows[:, 0]).fit(X.to_numpy()[:9])
    with pytest.raises(ValueError, match="array of 3 columns, the frame has 4"):
        distributed.explain(other, [X.assign(key=1)])


def test_a_bad_part_is_named():
    parts = [X[:100], X[100:200].assign(rooms="many"), X[200:]]
    words = "batch 1: column 'rooms' holds (str|object) values such as 'many'"
    with pytest.raises(ValueError, match=words):
        list(distributed.explain(FITTED, parts))
    explainer = clone(FOREST)
    with pytest.raises(ValueError, match=words):
        distributed.fit(explainer, parts)
    assert not hasattr(explainer, "base_value_")
    with pytest.raises(ValueError, match=r"batch 1: the columns \['rooms'\] are missing"):
        list(distributed.explain(FITTED, [X, X.drop(columns="rooms")]))
    with pytest.raises(TypeError, match="batch 1: an iterable must yield pandas or polars"):
        list(distributed.explain(FITTED, [X, 3]))
    table = pa.Table.from_pandas(X)
    for batches in ([X, table], iter([X, *table.to_batches()])):
        with pytest.raises(TypeError, match=r"batch 1: .* make a RecordBatchReader or a Dataset"):
            list(distributed.explain(FITTED, batches))


def test_columns_that_the_model_does_not_take_are_named_by_fit():
    with pytest.raises(ValueError, match=r"has 4 columns, but .* was fitted on 3: drop \['key'\]"):
        distributed.fit(clone(FOREST), [X.assign(key=1)])


def test_nested_columns():
    table = pa.table({**{name: X[name] for name in NUMBERS[:2]}, "built": [[1.0]] * len(X)})
    with pytest.raises(TypeError, match=r"column 'built' holds list<.*unnest or drop"):
        distributed.explain(FITTED, table)


def test_what_does_not_pickle_is_named():
    lock = threading.Lock()
    explainer = MeasureExplainer(lambda rows: np.zeros(len(rows)) + bool(lock))
    with pytest.raises(TypeError, match="estimator=function must pickle to reach the workers"):
        check_pickles(explainer)


def test_cells_that_depend_on_the_data():
    Z, y = flats()
    Z = Z[["area", "rooms"]].fillna(50.0)
    model = make_pipeline(SplineTransformer(3, degree=2), RandomForestRegressor(3, max_depth=3))
    explainer = MeasureExplainer(model.fit(Z, y))
    with pytest.raises(ValueError, match=r"distributed.fit: the cells of the columns .*use fit"):
        distributed.fit(explainer, [Z])
    assert not hasattr(explainer, "base_value_")


def test_states_that_grow_with_the_rows(monkeypatch):
    monkeypatch.setattr(work, "LARGEST", 10_000)
    explainer = MeasureExplainer(FITTED.estimator_.predict)
    with pytest.raises(ValueError, match=r"keeps rows or their values: fit on a sample"):
        distributed.fit(explainer, [X[:200], X[200:]])


def test_attributions_with_equal_names():
    Z = X.set_axis([1, 2, 3], axis=1)
    explainer = MeasureExplainer(lambda rows: rows.iloc[:, 0], groups={"1": [2, 3]}).fit(Z[:5])
    with pytest.raises(ValueError, match="equal names as text"):
        distributed.explain(explainer, [Z])
