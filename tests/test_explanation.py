"""Explanation: shapes, tables, rows, files, HTML."""

import copy
import importlib.util
import io
import json
import os
import pickle
import re
import sys
import tracemalloc
import types
import warnings
import zipfile
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import skattr
from skattr import MeasureExplainer, write_report
from skattr._files.results import TableWriter, values_table
from skattr.explanation import Explanation

ARRAYS = ("values", "base_value", "offset", "predictions", "std_error", "support")
PLAIN = ("feature_names", "columns", "output_names", "exact", "engine", "measure", "measure_name",
         "scale", "certificate")  # fmt: skip
quick = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def make(n=4, d=3, k=1, data=None, full_offset=False, seed=0, **changes):
    """Return an explanation of random numbers; `data` decides n and d."""
    rng = np.random.default_rng(seed)
    if data is None:
        data = rng.normal(size=(n, d))
    n, d = data.shape
    labels = [f"x{j}" for j in range(d)] if isinstance(data, np.ndarray) else list(data.columns)
    tail = () if k == 1 else (k,)
    fields = dict(  # noqa: C408
        values=rng.normal(size=(n, d, *tail)),
        base_value=rng.normal() if k == 1 else rng.normal(size=k),
        offset=rng.normal(size=(n, d, *tail) if full_offset else tail),
        predictions=rng.normal(size=(n, *tail)),
        data=data,
        feature_names=tuple(labels),
        columns=tuple((label,) for label in labels),
        output_names=("prediction",) if k == 1 else tuple(f"class {c}" for c in range(k)),
        std_error=rng.random(size=(n, d, *tail)),
        exact=False,
        engine=("rows",),
        measure="PartialDependence()",
        measure_name="partial dependence",
        scale="log-odds",
        certificate={"cells": 3},
        support=rng.random(size=(n, d)),
    )
    return Explanation(**(fields | changes))


def assert_bits(a, b):
    """Equal in type, dtype, shape and every bit."""
    assert type(a) is type(b)
    if a is None:
        return
    a, b = np.asarray(a), np.asarray(b)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes()


def assert_same(a, b):
    for name in ARRAYS:
        assert_bits(getattr(a, name), getattr(b, name))
    for name in PLAIN:
        assert getattr(a, name) == getattr(b, name)
        assert repr(getattr(a, name)) == repr(getattr(b, name))


def assert_same_frame(a, b):
    assert_frame_equal(
        a, b, check_exact=True, check_index_type="exact", check_column_type="exact",
        check_freq=True, check_flags=True,
    )  # fmt: skip
    for j in range(a.shape[1]):
        assert [type(v) for v in a.iloc[:, j]] == [type(v) for v in b.iloc[:, j]]
    assert [type(label) for label in a.columns] == [type(label) for label in b.columns]


def through_file(explanation, tmp_path):
    path = tmp_path / "explanation.npz"
    explanation.save(path)
    return Explanation.load(path)


# Construction -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"values": np.zeros((4, 2))}, r"values has shape \(4, 2\), expected \(4, 3\)"),
        ({"values": np.zeros((4, 3, 1))}, r"values has shape \(4, 3, 1\)"),
        ({"values": None}, "values must hold numbers"),
        ({"values": np.full((4, 3), "a")}, "values must hold numbers"),
        ({"base_value": np.zeros(2)}, r"base_value .* a single number"),
        ({"offset": np.zeros((4, 2))}, r"offset .* a single number or \(4, 3\)"),
        ({"predictions": np.zeros(3)}, r"predictions has shape \(3,\)"),
        ({"std_error": np.zeros((3, 3))}, "std_error has shape"),
        ({"support": np.zeros((4, 3, 1))}, "support has shape"),
        ({"feature_names": ("a", "b")}, "columns must have 2 entries, as feature_names, got 3"),
        ({"feature_names": (), "columns": ()}, "feature_names must be a tuple of at least one"),
        ({"output_names": ()}, "output_names must be a tuple of at least one"),
        ({"feature_names": ["x0", "x1", "x2"]}, "feature_names must be a tuple"),
        ({"engine": "rows"}, "engine must be a tuple"),
        ({"columns": (("x0",), ("x1",), ("x7",))}, "'x7'"),
        ({"columns": (("x0",), "x1", ("x2",))}, "each of columns must be a tuple"),
        ({"columns": (("x0",), (), ("x2",))}, "each of columns must be a tuple"),
        ({"output_names": ("a", "a")}, "output_names must be different strings"),
        ({"output_names": (1,)}, "output_names must be different strings"),
        ({"exact": True}, "std_error must be None"),
        ({"data": np.zeros(4)}, "data must be"),
        ({"data": [[1, 2, 3]] * 4}, "data must be"),
        ({"data": np.zeros((5, 3))}, r"values has shape \(4, 3\), expected \(5, 3\)"),
    ],
)
def test_refuses_what_does_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(make(), **changes)


def test_several_outputs_refuse_a_scalar_base_value():
    with pytest.raises(ValueError, match=r"base_value .* \(3,\)"):
        make(k=3, base_value=0.0)


def test_arrays_are_read_only_views_and_the_caller_keeps_his_own():
    values, data = np.ones((4, 3)), np.zeros((4, 3))
    explanation = make(values=values, data=data)
    assert np.shares_memory(explanation.values, values)
    assert explanation.data is data
    assert values.flags.writeable and data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        explanation.values[0, 0] = 2.0
    with pytest.raises(FrozenInstanceError):
        explanation.values = values


@pytest.mark.parametrize("again", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_are_frozen_too(again):
    explanation = make(k=2)
    assert_same(again(explanation), explanation)
    assert not again(explanation).values.flags.writeable


# Numbers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("full_offset", [False, True])
def test_centered_takes_the_offset_off_once(k, full_offset):
    explanation = make(k=k, full_offset=full_offset)
    centred = explanation.centered()
    cube, offset = explanation.values.reshape(4, 3, k), np.asarray(explanation.offset)
    for i in range(4):
        for j in range(3):
            for c in range(k):
                own = offset.reshape(4, 3, k)[i, j, c] if full_offset else offset.reshape(k)[c]
                assert centred.values.reshape(4, 3, k)[i, j, c] == cube[i, j, c] - own
    assert np.all(np.asarray(centred.offset) == 0)
    assert np.shape(centred.offset) == (() if k == 1 else (k,))
    assert_bits(centred.centered().values, centred.values)
    assert_bits(centred.base_value, explanation.base_value)


def test_importance_of_one_output():
    values = np.array([[1.0, 5.0, 3.0, 2.0], [3.0, -1.0, 1.0, 2.0]])
    explanation = make(data=np.zeros((2, 4)), values=values, offset=2.0)
    expected = pd.Series([3.0, 1.0, 1.0, 0.0], index=["x1", "x0", "x2", "x3"], name="importance")
    assert_series_equal(explanation.importance(), expected)


def test_importance_of_several_outputs_is_sorted_by_the_mean_over_outputs():
    values = np.array([[[1.0, 1.0], [0.0, 4.0], [2.0, 0.0]]])
    explanation = make(data=np.zeros((1, 3)), k=2, values=values, offset=np.zeros(2))
    expected = pd.DataFrame(
        [[0.0, 4.0], [1.0, 1.0], [2.0, 0.0]],
        index=["x1", "x0", "x2"], columns=["class 0", "class 1"],
    )  # fmt: skip
    assert_frame_equal(explanation.importance(), expected)


def test_ties_stay_in_order():
    values = np.tile([[1.0, 2.0]], 50)
    importance = make(data=np.zeros((1, 100)), values=values, offset=0.0).importance()
    assert list(importance.index) == [f"x{j}" for j in [*range(1, 100, 2), *range(0, 100, 2)]]


def test_importance_of_no_rows_is_refused():
    with pytest.raises(ValueError, match="none"):
        make()[:0].importance()


@pytest.mark.parametrize("full_offset", [False, True])
def test_select(full_offset):
    explanation = make(k=3, full_offset=full_offset, output_names=("2", "1", "b"))
    for chosen, place in {"b": 2, 1: 1, 2: 0, 0: 0, -1: 2, np.int64(0): 0}.items():
        one = explanation.select(chosen)
        assert one.output_names == (explanation.output_names[place],)
        assert_array_equal(one.values, explanation.values[:, :, place])
        assert_array_equal(one.std_error, explanation.std_error[:, :, place])
        assert_array_equal(one.predictions, explanation.predictions[:, place])
        assert one.base_value == explanation.base_value[place]
        assert_array_equal(one.offset, explanation.offset[..., place])
        assert one.data is explanation.data
    for wrong in ("c", 3, -4, 1.0, None):
        with pytest.raises(ValueError, match=r"there are \['2', '1', 'b'\]"):
            explanation.select(wrong)


def test_select_the_only_output():
    explanation = make()
    assert_same(explanation.select("prediction"), explanation)
    assert_same(explanation.select(0), explanation)
    with pytest.raises(ValueError, match="'prediction'"):
        explanation.select("p")


# Tables -----------------------------------------------------------------------------------------


def test_to_frame_has_the_index_and_the_labels_of_x():
    X = pd.DataFrame(np.zeros((3, 3)), index=[7, 7, 1], columns=["a", 5, ("t", 1)])
    explanation = make(data=X)
    frame = explanation.to_frame()
    assert list(frame.columns) == ["a", 5, ("t", 1)]
    assert list(frame.index) == [7, 7, 1]
    assert_array_equal(frame.to_numpy(), explanation.values)
    frame.iloc[0, 0] = 9.0  # the user's own copy
    assert explanation.values[0, 0] != 9.0


@pytest.mark.parametrize("labels", [["a", "a", "b"], [1, None, "a"], [("t", 1), "t", 0], [3, 2, 1]])
def test_to_frame_of_several_outputs(labels):
    X = pd.DataFrame(np.zeros((3, 3)))
    X.columns = pd.Index(labels, tupleize_cols=False, dtype=object)
    explanation = make(data=X, k=2)
    frame = explanation.to_frame()
    assert frame.columns.names == ["output", "feature"]
    for position, (output, feature) in enumerate(frame.columns):
        c, j = divmod(position, 3)
        assert output == f"class {c}"
        assert feature == labels[j] or (pd.isna(feature) and labels[j] is None)
        assert_array_equal(frame.iloc[:, position], explanation.values[:, j, c])


def test_to_frame_of_polars_counts_rows():
    X = pl.DataFrame({"a": [1, None], "b": ["u", "v"]})
    frame = make(data=X).to_frame()
    assert_frame_equal(frame, pd.DataFrame(make(data=X).values, columns=["a", "b"]))
    assert isinstance(frame.index, pd.RangeIndex)
    tidy = make(data=X).to_frame(tidy=True)
    assert list(tidy["data"]) == [1, "u", None, "v"]


@pytest.mark.parametrize("k", [1, 2])
def test_tidy(k):
    X = pd.DataFrame({"a": [1, 2], "b": ["u", "v"], "c": [0.5, np.inf]}, index=["r", "r"])
    explanation = make(data=X, k=k)
    explanation = replace(
        explanation,
        values=explanation.values[:, :2], offset=0.0, std_error=explanation.std_error[:, :2],
        support=None, feature_names=("a", "pair"), columns=(("a",), ("c", "b")),
    )  # fmt: skip
    tidy = explanation.to_frame(tidy=True)
    assert list(tidy.columns) == ["row", "output", "feature", "data", "value", "std_error"]
    raw = {0: [1, (0.5, "u")], 1: [2, (np.inf, "v")]}
    lines = iter(tidy.itertuples(index=False))
    for i in range(2):
        for c in range(k):
            for j in range(2):
                at = (i, j) if k == 1 else (i, j, c)
                expected = ("r", explanation.output_names[c], ("a", "pair")[j], raw[i][j],
                            explanation.values[at], explanation.std_error[at])  # fmt: skip
                assert tuple(next(lines)) == expected
    assert next(lines, None) is None
    exact = replace(explanation, exact=True, std_error=None).to_frame(tidy=True)
    assert exact["std_error"].isna().all()


def test_tidy_keeps_a_common_dtype_and_takes_a_multiindex_row_as_one_label():
    X = pd.DataFrame({"a": [1.0], "b": [np.nan]}, index=pd.MultiIndex.from_tuples([("u", 1)]))
    tidy = make(data=X).to_frame(tidy=True)
    assert tidy["data"].dtype == float
    assert list(tidy["row"]) == [("u", 1)] * 2
    assert make(data=np.ones((1, 2), dtype=int)).to_frame(tidy=True)["data"].dtype == int
    mixed = make(data=pd.DataFrame({"a": [2**62 + 1], "b": [0.5]})).to_frame(tidy=True)
    assert mixed["data"][0] == 2**62 + 1


def test_tidy_of_duplicated_and_missing_labels_shows_each_column():
    X = pd.DataFrame([[1, 2, 3, 4]], columns=["a", "a", np.nan, None])
    assert list(make(data=X).to_frame(tidy=True)["data"]) == [1, 2, 3, 4]


# Rows -------------------------------------------------------------------------------------------

FRAMES = {
    "numpy": lambda n: np.arange(2.0 * n).reshape(n, 2),
    "pandas": lambda n: pd.DataFrame({"a": range(n), 1: ["s"] * n}, index=[0] * n),
    "polars": lambda n: pl.DataFrame(
        {"a": list(range(n)), "b": ["s"] * n}, schema_overrides={"a": pl.Int64}
    ),
}


def as_rows(data):
    return data.rows() if isinstance(data, pl.DataFrame) else [tuple(r) for r in np.asarray(data)]


@quick
@given(st.data(), st.sampled_from(sorted(FRAMES)), st.integers(0, 5), st.sampled_from([1, 3]))
def test_rows(draw, kind, n, k):
    data = FRAMES[kind](n)
    explanation = make(data=data, k=k, full_offset=draw.draw(st.booleans()))
    one = st.integers(-n, n - 1) if n else st.nothing()
    keys = [
        one,
        st.slices(n),
        st.lists(st.booleans(), min_size=n, max_size=n).map(lambda m: np.array(m, dtype=bool)),
        st.lists(one, max_size=6 if n else 0),
        st.lists(one, max_size=6 if n else 0).map(lambda p: np.array(p, dtype=np.int8)),
    ]
    key = draw.draw(st.one_of(*keys))
    chosen = np.atleast_1d(np.arange(n)[np.array(key, int) if isinstance(key, list) else key])
    part = explanation[key]
    assert len(part) == len(chosen)
    assert type(part.data) is type(data)
    assert as_rows(part.data) == [as_rows(data)[i] for i in chosen]
    for name in ("values", "predictions", "std_error", "support"):
        assert_bits(getattr(part, name), getattr(explanation, name)[chosen])
    if np.shape(explanation.offset) == explanation.values.shape:
        assert_bits(part.offset, explanation.offset[chosen])
    else:
        assert_bits(part.offset, explanation.offset)
    assert_bits(part.base_value, explanation.base_value)
    for name in PLAIN:
        assert getattr(part, name) == getattr(explanation, name)


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_from_the_end(kind):
    explanation = make(data=FRAMES[kind](3))
    for key in (-1, [-1], np.int64(-1)):
        assert_bits(explanation[key].values, explanation.values[2:])
        assert as_rows(explanation[key].data) == as_rows(explanation.data)[2:]


def test_offset_of_k_outputs_is_not_taken_for_rows():
    explanation = make(n=3, d=3, k=3)
    assert_array_equal(explanation[[2, 0, 0]].offset, explanation.offset)


def test_rows_that_are_not_there():
    explanation = make()
    for key in (4, -5, [0, 4], np.array([-5]), [True], np.ones(5, dtype=bool)):
        with pytest.raises(IndexError):
            explanation[key]
    for key in ("a", [0.0], 1.0, None, [[0]], True, ["a"]):
        with pytest.raises(KeyError, match="there is no row"):
            explanation[key]
    for key in ((0, 1, 2), (), np.zeros((1, 1), int)):
        with pytest.raises(TypeError, match="rows"):
            explanation[key]
    with pytest.raises(TypeError, match="slice"):
        explanation["a":"b"]
    assert len(list(explanation)) == 4  # iteration ends


LABELS = {
    "strings": pd.Index(["Rome", "Ulm", "Kiel", "Bonn"]),
    "floats": pd.Index([0.5, 1.5, 2.5, 3.5]),
    "dates": pd.date_range("2024-01-01", periods=4),
    "pairs": pd.MultiIndex.from_product([["a", "b"], [0, 1]]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("full_offset", [False, True])
def test_rows_by_label(kind, full_offset):
    index = LABELS[kind]
    data = pd.DataFrame(np.eye(4), columns=list("abcd"), index=index)
    explanation = make(data=data, full_offset=full_offset)
    for i, label in enumerate(index):
        if kind != "pairs":  # a tuple is [rows, columns]
            assert_bits(explanation[label].values, explanation.values[[i]])
            assert_bits(explanation[label, "b"].values, explanation.values[[i]][:, [1]])
        assert explanation[[label]].data.index.tolist() == [label]
    part = explanation[[index[2], index[0]]]
    assert_bits(part.values, explanation.values[[2, 0]])
    assert_bits(part.predictions, explanation.predictions[[2, 0]])
    with pytest.raises(KeyError, match="there is no row 'Oslo'"):
        explanation["Oslo"]


def test_a_date_may_be_written_and_a_label_may_stand_twice():
    data = pd.DataFrame(np.eye(4), columns=list("abcd"), index=LABELS["dates"])
    explanation = make(data=data)
    assert_bits(explanation["2024-01-03"].values, explanation.values[[2]])
    twice = make(data=data.set_axis(["u", "v", "u", "w"]))
    assert_bits(twice["u"].values, twice.values[[0, 2]])


def test_integers_are_positions_whatever_the_labels():
    data = pd.DataFrame(np.eye(4), columns=[3, 2, 1, 0], index=[3, 2, 1, 0])
    explanation = make(data=data)
    assert_bits(explanation[3].values, explanation.values[[3]])
    assert explanation[3].data.index.tolist() == [0]
    assert_bits(explanation[:, 3].values, explanation.values[:, [3]])
    assert explanation[:, 3].feature_names == (0,)
    with pytest.raises(KeyError, match="integers are positions"):
        explanation["3"]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("full_offset", [False, True])
@pytest.mark.parametrize(
    ("key", "chosen"),
    [
        ("b", [1]),
        (["d", "a"], [3, 0]),
        (pd.Index(["d", "a"]), [3, 0]),
        (2, [2]),
        (-1, [3]),
        ([0, 2], [0, 2]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        (np.array([True, False, False, True]), [0, 3]),
    ],
)
def test_columns(k, full_offset, key, chosen):
    data = pd.DataFrame(np.eye(4), columns=list("abcd"))
    explanation = make(data=data, k=k, full_offset=full_offset)
    mask = np.array([True, False, True, True])
    part = explanation[mask, key]
    assert part.feature_names == tuple("abcd"[j] for j in chosen)
    assert part.columns == tuple(("abcd"[j],) for j in chosen)
    for name in ("values", "std_error", "support"):
        assert_bits(getattr(part, name), getattr(explanation, name)[mask][:, chosen])
    offset = explanation.offset[mask][:, chosen] if full_offset else explanation.offset
    assert_bits(part.offset, offset)
    assert_bits(part.predictions, explanation.predictions[mask])
    assert_frame_equal(part.data, data[mask])


def test_columns_that_are_tuples_or_not_there():
    data = pd.DataFrame(np.eye(2), columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]))
    explanation = make(data=data)
    assert explanation[:, ("b", 2)].feature_names == (("b", 2),)
    for key in ("c", ["c"], ("a", 2), [["a"]], 0.5):
        with pytest.raises(KeyError, match="there is no column"):
            explanation[:, key]
    for key in (2, [True], [], slice(0, 0)):
        with pytest.raises(IndexError):
            explanation[:, key]


def test_masks_of_pandas():
    data = pd.DataFrame(np.eye(3), columns=list("abc"), index=list("uvw"))
    explanation = make(data=data)
    mask = pd.Series([True, False, True], index=data.index)
    for each in (mask, mask.astype("boolean"), mask.tolist()):
        assert_bits(explanation[each].values, explanation.values[[0, 2]])
    with pytest.raises(IndexError, match="another index"):
        explanation[mask[::-1]]


def test_as_an_array():
    explanation = make()
    assert_bits(np.asarray(explanation), explanation.values)
    assert np.shares_memory(np.asarray(explanation), explanation.values)
    assert np.asarray(explanation, dtype=np.float32).dtype == np.float32
    copied = np.array(explanation)
    copied[:] = 0.0
    assert explanation.values.any()
    with pytest.raises(ValueError, match="copy"):
        np.array(explanation, dtype=np.float32, copy=False)


# What is left -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("offset", ["none", "one", "full"])
def test_remainder(k, offset):
    explanation = make(k=k, full_offset=offset == "full")
    if offset == "none":
        explanation = replace(explanation, offset=0.0)
    start = explanation.offset if offset == "one" else explanation.base_value
    centred = explanation.values - explanation.offset
    left = explanation.remainder()
    for i in range(4):
        total = start + sum(centred[i, j] for j in range(3)) + left.iloc[i]
        np.testing.assert_allclose(total, explanation.predictions[i], rtol=1e-12)
    if k == 1:
        assert left.name == "interactions"
    else:
        assert list(left) == ["class 0", "class 1"]


def test_the_remainder_is_called_what_it_is():
    frame = pd.DataFrame(np.eye(3), columns=list("abc"), index=list("uvw"))
    names = {
        "PartialDependence() - Expectation()": "interactions",
        "PartialDependence()": "interactions",
        "Conditional() - Expectation()": "not explained by single columns",
        "Uniform()": "not explained by single columns",
    }
    for measure, name in names.items():
        explanation = make(data=frame, measure=measure)
        assert explanation.remainder_name == explanation.remainder().name == name
        assert explanation.remainder().index.tolist() == list("uvw")
        assert explanation[:, ["a", "c"]].remainder_name == "not explained by these columns"
    with pytest.raises(ValueError, match="predictions=True"):
        make(predictions=None).remainder()


# Files ------------------------------------------------------------------------------------------

bits = hnp.arrays(np.uint64, (2, 2)).map(lambda a: a.view(np.float64))  # every NaN there is


@quick
@given(values=bits, k=st.sampled_from([1, 2]), optional=st.booleans())
def test_arrays_come_back_bit_for_bit(tmp_path, values, k, optional):
    data = np.asfortranarray(values)
    changes = {} if optional else {"predictions": None, "std_error": None, "support": None}
    explanation = make(data=data, k=k, full_offset=optional, exact=not optional, **changes)
    cube = values if k == 1 else np.stack([values] * k, axis=2)
    explanation = replace(explanation, values=cube)
    loaded = through_file(explanation, tmp_path)
    assert_same(loaded, explanation)
    assert_bits(loaded.data, data)
    assert not loaded.values.flags.writeable


scalars = st.one_of(
    st.text(), st.integers(), st.booleans(), st.none(), st.floats(), st.just(pd.NA),
    st.just(pd.NaT), st.floats(width=32).map(np.float32), st.integers(-9, 9).map(np.int16),
    st.tuples(st.text(), st.integers()), st.lists(st.integers(), max_size=2),
    st.just(pd.Timestamp("2024-10-27 00:30", tz="UTC").tz_convert("Europe/Paris")),
    st.just("\ud800"), st.just(pd.Timedelta(3, "s")), st.just(pd.Period("2024-02")),
    st.just(pd.Interval(0.0, 1.0)),
)  # fmt: skip
labels = st.one_of(st.text(), st.integers(), st.none(), st.tuples(st.text(), st.integers()))


@pytest.mark.slow
@quick
@given(
    st.lists(st.tuples(scalars, scalars), min_size=1, max_size=4),
    st.lists(labels, min_size=2, max_size=2),
)
def test_object_columns_and_labels_come_back(tmp_path, rows, names):
    array = np.empty((len(rows), 2), dtype=object)
    for i, row in enumerate(rows):
        for j in range(2):
            array[i, j] = row[j]
    loaded = through_file(make(data=array), tmp_path).data
    assert loaded.dtype == object
    assert [list(map(repr, row)) for row in loaded] == [list(map(repr, row)) for row in array]

    columns = {j: pd.Series(array[:, j], dtype=object) for j in range(2)}
    X = pd.DataFrame(columns).set_axis(pd.Index(names, tupleize_cols=False, dtype=object), axis=1)
    explanation = make(data=X)
    loaded = through_file(explanation, tmp_path)
    assert_same(loaded, explanation)
    assert [str(dtype) for dtype in loaded.data.dtypes] == ["object"] * 2
    assert list(map(repr, loaded.data.columns)) == list(map(repr, X.columns))
    for j in range(2):
        assert list(map(repr, loaded.data.iloc[:, j])) == list(map(repr, X.iloc[:, j]))


# a lone surrogate, which strings can hold that pyarrow does not back
LONE = "\ud800" if getattr(pd.array(["a"], dtype="str").dtype, "storage", "") == "python" else ""
COLUMNS = {
    "float32": np.array([1.5, np.nan, -0.0], dtype=np.float32),
    "float16": np.array([1.5, np.nan, -0.0], dtype=np.float16),
    "uint8": np.array([1, 2, 255], dtype=np.uint8),
    "bool": [True, False, True],
    "complex": np.array([1j, 2, np.nan]),
    "datetime[s]": np.array(["2020-01-01", "NaT", "1700-01-01"], dtype="M8[s]"),
    "datetime[ns]": np.array(["2020-01-01", "NaT", "1700-01-01"], dtype="M8[ns]"),
    "timedelta": np.array([1, 2, "NaT"], dtype="m8[us]"),
    "zone": pd.to_datetime(["2024-10-27 00:30", None, "2024-10-27 01:30"], utc=True).tz_convert(
        "Europe/Paris"
    ),
    "fixed zone": pd.to_datetime(["2024-10-27 00:30+03:00"] * 3),
    "str": pd.array(["a", np.nan, "\x00é" + LONE], dtype="str"),
    "string": pd.array(["a", pd.NA, ""], dtype="string"),
    "object": pd.Series(["a", None, 1.0], dtype=object),
    "object strings": pd.Series(["a", "b", "c"], dtype=object),
    "Int64": pd.array([2**62 + 1, None, -1], dtype="Int64"),
    "UInt8": pd.array([1, None, 2], dtype="UInt8"),
    "Float64": pd.arrays.FloatingArray(
        np.array([1.0, np.nan, 2.0]), np.array([False, False, True])
    ),
    "boolean": pd.array([True, None, False], dtype="boolean"),
    "category": pd.Categorical(["b", None, "a"], categories=["b", "a", "unused"]),
    "ordered": pd.Categorical([3, 1, 3], categories=[3, 1], ordered=True),
    "cut": pd.cut([1, 2, 30], [0, 5, 50]),
    "category of dates": pd.Categorical(pd.to_datetime(["2020-01-02", "2020-01-01", None])),
    "period": pd.array(["2020-01", None, "2020-03"], dtype="period[M]"),
    "interval": pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3], closed="left"),
    "sparse": pd.arrays.SparseArray([0, 0, 1]),
}
INDICES = {
    "range": pd.RangeIndex(5, -1, -2, name="r"),
    "duplicated": pd.Index([1, 1, 2], name=("a", 1)),
    "strings": pd.Index(["a", None, "b"]),
    "objects": pd.Index([1, "a", None], dtype=object, name=0),
    "only tuples": pd.Index([("a", 1), ("a", 2), ("b", 1)], tupleize_cols=False),
    "tuples": pd.Index([("a", 1), 2, "c"], tupleize_cols=False),
    "dates": pd.date_range("2024-01-01", periods=3, freq="MS", tz="Asia/Tokyo", name="day"),
    "holidays": pd.date_range("2024-01-01", periods=3, freq="B"),
    "categories": pd.CategoricalIndex(["a", "b", "a"], ordered=True),
    "nullable": pd.Index([1, None, 2], dtype="Int64"),
    "periods": pd.period_range("2020-01", periods=3, freq="Q"),
    "deltas": pd.timedelta_range("1h", periods=3, freq="90min"),
    "multi": pd.MultiIndex.from_arrays([["a", "b", "a"], [1.5, np.nan, 1.5]], names=["u", None]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_dtype_comes_back(tmp_path, kind):
    X = pd.DataFrame({"first": [1, 2, 3], "column": pd.Series(COLUMNS[kind])})
    loaded = through_file(make(data=X), tmp_path).data
    assert_same_frame(loaded, X)
    if kind == "Float64":  # NaN and NA are two things
        assert_array_equal(loaded["column"].array._mask, [False, False, True])
        assert np.isnan(loaded["column"].array._data[1])


@pytest.mark.parametrize("kind", INDICES)
def test_every_index_comes_back(tmp_path, kind):
    X = pd.DataFrame(np.zeros((3, 2)), index=INDICES[kind], columns=["a", "b"])
    assert_same_frame(through_file(make(data=X), tmp_path).data, X)


@pytest.mark.parametrize(
    "kind", ["range", "only tuples", "tuples", "duplicated", "objects", "multi", "dates"]
)
def test_every_kind_of_label_comes_back(tmp_path, kind):
    X = pd.DataFrame(np.arange(6).reshape(2, 3), columns=INDICES[kind])
    explanation = make(data=X)
    loaded = through_file(explanation, tmp_path)
    assert_same_frame(loaded.data, X)
    assert repr(loaded.feature_names) == repr(explanation.feature_names)
    assert_frame_equal(loaded.to_frame(tidy=True), explanation.to_frame(tidy=True))


def test_no_rows_come_back(tmp_path):
    X = pd.DataFrame({name: pd.Series(column) for name, column in COLUMNS.items()})
    assert_same_frame(through_file(make(data=X)[:0], tmp_path).data, X[:0])


def test_polars_comes_back_as_polars(tmp_path):
    X = pl.DataFrame(
        {
            "i": pl.Series([1, None, 3], dtype=pl.Int8),
            "f": [np.nan, None, -0.0],
            "s": ["a", None, "\x00"],
            "c": pl.Series(["u", "v", None], dtype=pl.Categorical),
            "e": pl.Series(["u", "Object", None], dtype=pl.Enum(["Object", "u"])),
            "d": pl.Series([0, None, 2], dtype=pl.Datetime("ms", "Europe/Paris")),
            "l": [[1], [], None],
            "n": [None, None, None],
        }
    )
    loaded = through_file(make(data=X), tmp_path).data
    assert loaded.schema == X.schema
    assert loaded.equals(X, null_equal=True)
    assert [repr(row) for row in loaded.rows()] == [repr(row) for row in X.rows()]


@pytest.mark.parametrize("dtype", ["U3", "S2", "M8[D]", "m8[h]", "i2", ">f8", "?", "c8"])
def test_numpy_dtypes_come_back(tmp_path, dtype):
    data = np.array([[1, 0], [0, 1]]).astype(dtype)
    loaded = through_file(make(data=data), tmp_path)
    assert_bits(loaded.data, data)
    loaded.to_frame(tidy=True)


@pytest.mark.parametrize(
    "data, message",
    [
        (
            pd.DataFrame({"good": [1], "bad": pd.Series([Decimal(1)], dtype=object)}),
            "'bad'.*Decimal",
        ),
        (np.array([[1, {}]], dtype=object), "'x1'.*dict"),
        (np.ma.masked_array([[1.0]], mask=[[True]]), "MaskedArray"),
        (pl.DataFrame({"good": [1], "bad": pl.Series([object()], dtype=pl.Object)}), "'bad'"),
        (pd.DataFrame([[1]], columns=[Decimal(1)]), "labels.*Decimal"),
        (pd.DataFrame({"a": [1]}, index=pd.Index([Decimal(1)])), "index.*Decimal"),
    ],
)
def test_what_a_file_cannot_hold_is_named_and_nothing_is_written(tmp_path, data, message):
    path = tmp_path / "explanation.npz"
    make().save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=message):
        make(data=data).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("step", ["savez", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, step, error):
    path = tmp_path / "explanation.npz"
    old = make(seed=1)
    old.save(path)

    def fail(*args, **kwargs):
        if step == "savez":
            args[0].write(b"half")
        raise error("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(np if step == "savez" else os, step, fail)
        with pytest.raises(error, match="interrupted"):
            make(seed=2).save(path)
    assert os.listdir(tmp_path) == [path.name]
    assert_same(Explanation.load(path), old)


def test_save_uses_the_path_as_it_is_and_keeps_links(tmp_path):
    target, link = tmp_path / "a file", tmp_path / "link"
    make(seed=1).save(target)
    link.symlink_to(target)
    make(seed=2).save(str(link))
    assert link.is_symlink()
    assert_same(Explanation.load(target), make(seed=2))
    assert sorted(os.listdir(tmp_path)) == ["a file", "link"]


def foreign_files():
    yield "empty", lambda path: path.write_bytes(b"")
    yield "text", lambda path: path.write_text("row,value\n1,2\n")
    yield "pickle", lambda path: path.write_bytes(pickle.dumps({"values": 1}))
    yield "npy", lambda path: np.save(path.open("wb"), np.zeros(3))
    yield "npz", lambda path: np.savez(path.open("wb"), values=np.zeros(3))
    yield "objects", lambda path: np.savez(path.open("wb"), header=np.array([{}], dtype=object))
    yield "json", lambda path: np.savez(path.open("wb"), header=np.frombuffer(b"[1]", np.uint8))
    yield "header", lambda path: np.savez(path.open("wb"), header=np.frombuffer(b"{}", np.uint8))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    "write", [w for _, w in foreign_files()], ids=[n for n, _ in foreign_files()]
)
def test_a_file_that_is_not_ours(tmp_path, write):
    path = tmp_path / "foreign.npz"
    write(path)
    with pytest.raises(ValueError, match=r"foreign\.npz is not an Explanation saved by skattr"):
        Explanation.load(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Explanation.load(tmp_path / "none.npz")


def rewrite(path, change):
    """Save the file again with another header."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    header = json.loads(arrays.pop("header").tobytes())
    change(header, arrays)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, header=text, **arrays)


def test_versions_and_damage(tmp_path):
    path = tmp_path / "explanation.npz"
    for change, message in [
        (lambda h, _: h.update(version=99), r"explanation\.npz .* version 99"),
        (lambda h, _: h.update(format="other"), r"explanation\.npz .*'other'"),
        (lambda h, _: h.pop("measure"), r"explanation\.npz is a damaged"),
        (lambda h, _: h["data"].update(array="none"), r"explanation\.npz is a damaged"),
        (lambda _, a: a.update(values=np.zeros((1, 1))), r"explanation\.npz is a damaged.*values"),
    ]:
        make().save(path)
        rewrite(path, change)
        with pytest.raises(ValueError, match=message):
            Explanation.load(path)
    make().save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match=r"explanation\.npz is"):
        Explanation.load(path)


# Other forms ------------------------------------------------------------------------------------


def test_to_shap_without_shap(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        make().to_shap()


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("full_offset", [False, True])
def test_to_shap(monkeypatch, k, full_offset):
    shap = types.ModuleType("shap")
    shap.Explanation = lambda **fields: types.SimpleNamespace(**fields)
    monkeypatch.setitem(sys.modules, "shap", shap)
    explanation = make(
        data=pd.DataFrame({0: [1, 2], "b": [0.5, 1.5]}), k=k, full_offset=full_offset
    )
    with pytest.warns(UserWarning, match="do not add up .* 'interactions'") as caught:
        result = explanation.to_shap()
    assert len(caught) == 1
    assert_array_equal(result.values[:, :2], explanation.centered().values)
    assert_array_equal(result.values[:, 2], explanation.remainder())
    start = explanation.base_value if full_offset else explanation.offset
    for i in range(2):
        assert_array_equal(result.base_values[i], start)
        total = result.base_values[i] + sum(result.values[i, j] for j in range(3))
        np.testing.assert_allclose(total, explanation.predictions[i], rtol=1e-12)
    assert result.base_values.shape == ((2,) if k == 1 else (2, 2))
    assert result.data.dtype == float and result.data[:, :2].tolist() == [[1, 0.5], [2, 1.5]]
    assert np.isnan(result.data[:, 2]).all()
    assert result.feature_names == ["0", "b", "interactions"]
    assert result.output_names == (None if k == 1 else ["class 0", "class 1"])


def test_to_shap_where_nothing_is_left(monkeypatch):
    shap = types.ModuleType("shap")
    shap.Explanation = lambda **fields: types.SimpleNamespace(**fields)
    monkeypatch.setitem(sys.modules, "shap", shap)
    explanation = make(data=np.array([["1", "2"]]))
    total = explanation.offset + explanation.centered().values.sum(axis=1)
    result = replace(explanation, predictions=total).to_shap()
    assert_array_equal(result.values, explanation.centered().values)
    assert result.data.dtype == object and result.data.tolist() == [["1", "2"]]
    with pytest.warns(UserWarning, match="without predictions it is not known"):
        result = replace(explanation, predictions=None).to_shap()
    assert result.feature_names == ["x0", "x1"]


def test_to_shap_writes_dates_as_text(monkeypatch):
    shap = types.ModuleType("shap")
    shap.Explanation = lambda **fields: types.SimpleNamespace(**fields)
    monkeypatch.setitem(sys.modules, "shap", shap)
    days = [pd.Timestamp("2024-02-01"), pd.Timestamp("2024-02-01 12:30"), pd.NaT]
    data = pd.DataFrame({"day": days, "kind": ["a", None, "b"], "n": [1, 2, 3]})
    with pytest.warns(UserWarning, match="do not add up"):
        found = make(data=data).to_shap().data
    assert found[:2, 0].tolist() == ["2024-02-01", "2024-02-01 12:30"] and pd.isna(found[2, 0])
    assert found[0, 1:3].tolist() == ["a", 1] and pd.isna(found[1, 1])


def test_repr_is_one_short_line():
    explanation = make(measure="Long(\n" + "a" * 500 + ")")
    assert "\n" not in repr(explanation) and len(repr(explanation)) < 150
    assert "(4, 3)" in repr(explanation) and "approximate" in repr(explanation)
    assert "exact" in repr(replace(explanation, exact=True, std_error=None))
    assert repr(explanation).startswith("<Explanation") and repr(explanation).endswith(">")


def test_html_escapes_whatever_the_user_named():
    hostile = "<script>alert('1')</script>\"&"
    X = pd.DataFrame({hostile: [1.0], ("<i>", 1): [2.0]}, index=["<b>" + hostile])
    X.index.name, X.columns.name = "<u>", "<s>"
    outputs = (f"<h1>{hostile}", "<h2>")
    page = make(data=X, k=2, output_names=outputs, measure=f"M({hostile})")._repr_html_()
    for tag in ("<script", "<i>", "<b>", "<u>", "<s>", "<h1>", "<h2>", "'1'", '"&'):
        assert tag not in page
    for text in ("&lt;script&gt;alert(&#x27;1&#x27;)", "&lt;i&gt;", "&lt;b&gt;", "&lt;h2&gt;"):
        assert text in page


def test_html_is_light_and_says_what_it_leaves_out():
    page = make(n=200, d=30, k=7)._repr_html_()
    assert page.count("<table") == 5
    assert page.count("<tr") == 5 * 11
    assert "10 of 200 rows" in page and "20 of 30 columns" in page
    assert "2 more outputs" in page and "approximate" in page
    small = make(std_error=None, exact=True)._repr_html_()
    assert "exact" in small and "more outputs" not in small and "4 of 4 rows" in small
    assert make()[:0]._repr_html_().count("<tr") == 1


def test_html_writes_prices_as_prices():
    data = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    values = np.array([[136_500.25, 0.00123], [-98_000.5, 0.5]])
    page = make(data=data, n=2, d=2, values=values)._repr_html_()
    assert "<td>136,500</td>" in page and "<td>-98,000</td>" in page
    assert "<td>0.001</td>" in page and "<td>0.500</td>" in page  # digits of their own column
    assert "e+0" not in page


def test_the_name_of_the_measure_is_kept(tmp_path):
    explanation = make(measure_name="main effect")
    assert through_file(explanation, tmp_path).measure_name == "main effect"
    assert explanation[:1].measure_name == "main effect"


# -- labels that UTF-8 does not have -------------------------------------------------------------


def surrogates():
    """An explainer and rows with lone surrogates in columns, levels, index and outputs."""
    rng = np.random.default_rng(0)
    index = pd.Index([f"row{i}\ud801" for i in range(20)], dtype=object)
    levels = [["u\udfff", "v"][i] for i in rng.integers(0, 2, 20)]
    words = pd.Series(levels, dtype=object, index=index)
    X = pd.concat([words, pd.Series(rng.normal(size=20), index=index)], axis=1)
    X.columns = pd.Index(["a\ud800", "b"], dtype=object)

    def model(X):
        size = np.array([len(word) for word in X.iloc[:, 0]])
        return np.c_[size * X.iloc[:, 1].to_numpy(), X.iloc[:, 1].to_numpy()]

    return MeasureExplainer(model, output_names=["o\ud800", "p"]).fit(X), X


@pytest.mark.slow
def test_lone_surrogates_are_legal_labels(tmp_path):
    explainer, X = surrogates()
    explanation = explainer.explain(X[["b", "a\ud800"]] if not has_pyarrow() else X)
    names = set(explanation.feature_names)
    assert {name for _, name in explanation.to_frame().columns} == names
    assert set(explanation.to_frame(tidy=True)["feature"]) == names
    assert set(explanation.importance().index) == names
    assert list(explanation.remainder().columns) == ["o\ud800", "p"]
    assert list(explainer.curve("a\ud800").to_frame().columns) == ["x", "value_o\ud800", "value_p"]
    table = values_table(explanation)
    assert "o\\ud800__a\\ud800" in table and table["row"].iloc[0] == "row0\\ud801"
    for kind in ("csv", "json", *(["parquet"] if has_pyarrow() else [])):
        path = str(tmp_path / f"values.{kind}")
        with open(path, "wb") as file:
            writer = TableWriter(file, path)
            writer.write(table)
            writer.close()
        assert b"\\ud800" in (tmp_path / f"values.{kind}").read_bytes()
    pytest.importorskip("jinja2")
    write_report(explainer, X, tmp_path / "report.html", title="\ud800")
    assert "a\N{REPLACEMENT CHARACTER}" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_lone_surrogates_in_the_names_of_outputs():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    tree = DecisionTreeRegressor().fit(X, X @ [[1.0, 2.0], [3.0, 5.0]])
    explainer = MeasureExplainer(tree, output_names=["o\ud800", "p"]).fit(X)
    values = ["value_o\ud800", "value_p"]
    assert list(explainer.surface("x0", "x1").to_frame().columns[-2:]) == values
    assert list(explainer.surface("x0", "x1").to_frame([0.0], [1.0])) == ["a", "b", *values]
    assert list(explainer.ice(X, "x0").to_frame().columns[-2:]) == values
    importance = explainer.explain(X).importance(error=True)
    assert list(importance.columns[::4]) == [("o\ud800", "importance"), ("p", "importance")]
    assert list(importance.columns.names) == ["output", None]


def has_pyarrow():
    """Whether pandas' strings are pyarrow's, which hold no surrogates."""
    return importlib.util.find_spec("pyarrow") is not None


# Files of strangers ------------------------------------------------------------------------------


def members(path):
    """The members of a file as (name, bytes)."""
    with zipfile.ZipFile(path) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def packed(path, contents, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of duplicates
        for name, content in contents:
            archive.writestr(name, content)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def claims(content, shape):
    """An array whose header claims another shape, of the same length."""
    old = re.search(rb"'shape': \(.*?\), \}", content)[0]
    new = f"'shape': {shape}, }}".encode()
    assert len(new) <= len(old) + 40
    return content.replace(old + b" " * (len(new) - len(old)), new, 1)


HOSTILE_FILES = {
    "a member that no Explanation has": lambda m: [*m, ("more.npy", npy(np.zeros(3)))],
    "a path": lambda m: [*m, ("../../values.npy", npy(np.zeros(3)))],
    "an absolute path": lambda m: [*m, ("/tmp/values.npy", npy(np.zeros(3)))],
    "a pickle": lambda m: [*m, ("data9.npy", npy(np.array([{}], object)))],
    "a member twice": lambda m: [*m, m[0]],
    "another kind of member": lambda m: [*m, ("values.py", b"print()")],
    "a larger shape": lambda m: [
        (n, claims(c, "(10000000000, 3)") if n == "values.npy" else c) for n, c in m
    ],
    "a negative shape": lambda m: [
        (n, claims(c, "(-4, -3)") if n == "values.npy" else c) for n, c in m
    ],
    "no header": lambda m: [(n, c) for n, c in m if n != "header.npy"],
    "a short member": lambda m: [(n, c[:-8] if n == "values.npy" else c) for n, c in m],
    "a long member": lambda m: [(n, c + b"\0" * 8 if n == "values.npy" else c) for n, c in m],
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_files_of_strangers_are_refused(tmp_path, name):
    path = tmp_path / "hostile.npz"
    make().save(path)
    packed(path, HOSTILE_FILES[name](members(path)))
    with pytest.raises(ValueError, match=r"hostile\.npz is (not an|a damaged) Explanation"):
        Explanation.load(path)
    assert [each.name for each in tmp_path.iterdir()] == ["hostile.npz"]


@pytest.mark.slow
def test_a_compressed_file_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb.npz"
    make().save(path)
    bomb = ("values.npy", npy(np.zeros(3 * 10**7)))
    contents = [bomb if name == "values.npy" else (name, c) for name, c in members(path)]
    packed(path, contents, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**6
    tracemalloc.start()
    with pytest.raises(ValueError, match="is compressed"):
        Explanation.load(path)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


@quick
@given(data=st.data())
def test_truncated_and_flipped_files_are_refused_or_the_same(tmp_path, data):
    path = tmp_path / "damaged.npz"
    explanation = make()
    explanation.save(path)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        bit = data.draw(st.integers(0, 8 * len(content) - 1))
        content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    try:
        again = Explanation.load(path)
    except ValueError as error:
        assert "damaged.npz is" in str(error) or "damaged.npz has format" in str(error)
    else:  # a date or an attribute of a member
        assert_array_equal(again.values, explanation.values)
        assert again.feature_names == explanation.feature_names


def test_a_file_says_which_version_wrote_it(tmp_path):
    path = tmp_path / "explanation.npz"
    make().save(path)
    rewrite(path, lambda h, _: h.update(version=2, skattr="9.9.9"))
    with pytest.raises(ValueError, match=r"version 2, written by skattr '9\.9\.9'; this is"):
        Explanation.load(path)


def test_pickles_say_which_version_wrote_them():
    X = np.random.default_rng(0).normal(size=(20, 2))
    explainer = MeasureExplainer(LinearRegression().fit(X, X[:, 0])).fit(X)
    state = explainer.__getstate__()
    assert state["_skattr_version"] == skattr.__version__
    again = pickle.loads(pickle.dumps(explainer))
    assert not hasattr(again, "_skattr_version")
    assert_array_equal(again.explain(X).values, explainer.explain(X).values)
    other = MeasureExplainer.__new__(MeasureExplainer)
    with pytest.raises(ValueError, match=r"pickled by skattr 99\.1, which is newer than this"):
        other.__setstate__({**state, "_skattr_version": "99.1"})
    assert not vars(other)
    for old in ("0.0.9", None):
        with pytest.warns(UserWarning, match=r"pickled by skattr (0\.0\.9|of an unknown)"):
            other.__setstate__({**state, "_skattr_version": old})
        assert_array_equal(other.explain(X).values, explainer.explain(X).values)
