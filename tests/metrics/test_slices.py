"""Slices: every number equals a loop over the rows of the slice; every kind of column is cut."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

from skattr import Explanation, MeasureExplainer
from skattr.metrics import by_slice
from tests.helpers.hostile import HOSTILE
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
N = 90
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": RNG.integers(0, 4, size=N).astype(float),
        "c": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
    },
    index=np.repeat(np.arange(N // 2), 2),  # duplicated
)
TREE = DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, X["a"] * X["b"] - X["c"].fillna(2))
EXPLANATION = MeasureExplainer(TREE).fit(X).explain(X)
FOREST = RandomForestClassifier(5, max_depth=4, random_state=0)
CLASSES = (
    MeasureExplainer(FOREST.fit(X, np.digitize(X["a"], [-0.5, 0.5])), "partial_dependence")
    .fit(X)
    .explain(X)
)


def plain(n=4, data=None, **more):
    """Return an explanation of n rows and one column."""
    fields = {
        "values": np.arange(n, dtype=float)[:, None] - 1.0,
        "base_value": 0.0, "offset": 0.0, "data": np.zeros((n, 1)) if data is None else data,
        "feature_names": ("x0",), "columns": (("x0",),), "output_names": ("prediction",),
        "exact": True, "engine": ("rows",), "measure": "PartialDependence()",
    }  # fmt: skip
    return Explanation(**fields | more)


def check(explanation, labels, frame):
    """Compare all numbers with a loop over slices, outputs and attributions."""
    labels = np.asarray(labels, object)
    k = len(explanation.output_names)
    assert len(frame) == len({*labels}) * len(explanation.feature_names) * k
    for line in frame.itertuples():
        rows = np.flatnonzero(labels == line.slice)
        part = explanation.select(line.output).centered()
        values = part.values[rows, part.feature_names.index(line.feature)]
        assert line.rows == len(rows) > 0
        for found, error, numbers in [
            (line.importance, line.importance_row_error, np.abs(values)),
            (line.mean_value, line.mean_row_error, values),
        ]:
            assert found == pytest.approx(numbers.mean(), rel=1e-12, abs=1e-14)
            if len(rows) == 1:
                assert np.isnan(error)
            else:
                sd = np.sqrt(((numbers - numbers.mean()) ** 2).sum() / (len(rows) - 1))
                assert error == pytest.approx(sd / np.sqrt(len(rows)), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("explanation", [EXPLANATION, CLASSES], ids=["one", "classes"])
@pytest.mark.parametrize("kind", ["list", "array", "series", "polars", "categorical", "column"])
def test_every_number_is_that_of_a_loop(explanation, kind):
    labels = np.array(["u", "v", "w"])[RNG.integers(3, size=N)]
    by = {
        "list": labels.tolist(),
        "array": labels,
        "series": pd.Series(labels, index=X.index),
        "polars": pl.Series("anything", labels),
        "categorical": pd.Categorical(labels, categories=["w", "v", "u", "unused"]),
        "column": "b",
    }[kind]
    frame = by_slice(explanation, by)
    check(explanation, X["b"] if kind == "column" else labels, frame)
    order = {"categorical": ["w", "v", "u"], "column": [0.0, 1.0, 2.0, 3.0]}
    assert list(frame["slice"].unique()) == order.get(kind, ["u", "v", "w"])
    assert set(frame["kind"]) == {"level"}
    assert list(frame["output"].unique()) == list(explanation.output_names)


def test_attributions_stand_in_the_order_of_importance():
    frame = by_slice(EXPLANATION, "b")
    assert list(frame["feature"][:3]) == list(EXPLANATION.importance().index)
    frame = by_slice(CLASSES, "b")
    assert list(frame["feature"][:3]) == list(CLASSES.importance().index)


def test_slices_add_up_to_the_importance_of_all_rows():
    frame = by_slice(EXPLANATION, "c")
    total = (frame["importance"] * frame["rows"]).groupby(frame["feature"]).sum() / N
    pd.testing.assert_series_equal(
        total.sort_index(), EXPLANATION.importance().sort_index(), check_names=False
    )


def test_numbers_are_cut_where_there_are_many_and_missing_is_a_slice():
    frame = by_slice(EXPLANATION, "c")
    first = frame.drop_duplicates("slice")
    assert list(first["kind"]) == ["interval"] * 5 + ["missing"]
    assert first["slice"].iloc[-1] == "missing"
    assert first["rows"].iloc[-1] == X["c"].isna().sum()
    sizes = first["rows"].iloc[:5]
    assert sizes.max() - sizes.min() <= 1 and sizes.sum() == X["c"].notna().sum()
    intervals = list(first["slice"].iloc[:5])
    assert intervals[0].closed == "both" and intervals[0].left == X["c"].min()
    assert intervals[-1].right == X["c"].max()
    labels = [next((i for i in intervals if v in i), "missing") for v in X["c"]]
    check(EXPLANATION, labels, frame)


@pytest.mark.parametrize("seed", quickly(range(20), range(5)))
def test_intervals_of_numbers_with_ties_are_those_that_hold_the_values(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    values = rng.choice([-np.inf, *np.round(rng.normal(size=8), 1), np.inf, np.nan], size=n)
    explanation = plain(n, values=rng.normal(size=(n, 1)))
    for bins in (
        None,
        2,
        4,
        [0.0],
        [-5.0, 0.0, 5.0],
        sorted({*np.round(values[:3], 1)} - {np.nan}),
    ):
        if isinstance(bins, list) and (not bins or np.isnan(bins).any()):
            continue
        frame = by_slice(explanation, values, bins=bins)
        labels = []
        for v in values:
            found = [
                s for s in frame["slice"]
                if not isinstance(s, str) and (v in s if isinstance(s, pd.Interval) else v == s)
            ]  # fmt: skip
            assert len(found) == (0 if np.isnan(v) else 1)
            labels.append(found[0] if found else "missing")
        check(explanation, labels, frame)
        if isinstance(bins, list):
            edges = [s.right for s in frame["slice"] if s != "missing"]
            there = values[~np.isnan(values)]
            assert all(edge in bins or edge == there.max() for edge in edges)
        if isinstance(bins, int):
            assert (frame["kind"] != "missing").sum() <= bins


def test_an_edge_belongs_to_the_interval_below_it():
    frame = by_slice(plain(4), [18, 20, 65, 70], bins=[18, 65])
    assert [str(label) for label in frame["slice"]] == ["[18, 18]", "(18, 65]", "(65, 70]"]
    assert list(frame["rows"]) == [1, 2, 1]
    frame = by_slice(plain(4), [18, 20, 65, 70], bins=[0, 18.5, 90, 100])
    assert [str(label) for label in frame["slice"]] == ["(0.0, 18.5]", "(18.5, 90.0]"]


@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_dates_are_cut(zone):
    days = pd.Series(pd.date_range("2026-01-01", periods=N, freq="D", tz=zone), index=X.index)
    frame = by_slice(EXPLANATION, days)
    assert frame["slice"].nunique() == 5 and set(frame["rows"]) == {18}
    edge = pd.Timestamp("2026-02-01", tz=zone)
    frame = by_slice(EXPLANATION, days, bins=[edge])
    assert list(frame["rows"].unique()) == [32, N - 32]
    assert frame["slice"].iloc[0] == pd.Interval(days.iloc[0], edge, closed="both")
    durations = days - days.iloc[0]
    assert by_slice(EXPLANATION, durations, bins=[pd.Timedelta(days=9)])["rows"].iloc[0] == 10
    with pytest.raises(ValueError, match="edges in bins must be dates"):
        by_slice(EXPLANATION, days, bins=["soon"])
    if zone:
        with pytest.raises(ValueError, match="edges in bins must be dates"):
            by_slice(EXPLANATION, days, bins=[pd.Timestamp("2026-02-01")])


def test_frames_of_other_libraries():
    frame = pl.DataFrame({
        "number": [1.0, None, 2.0, 1.0],
        "word": ["b", None, "a", "b"],
        "size": pl.Series(["small", "large", None, "small"], dtype=pl.Enum(["small", "large"])),
        "day": pl.Series(["2026-01-02", "2026-01-01", None, "2026-01-02"]).str.to_date(),
        "flag": [True, False, None, True],
    })  # fmt: skip
    explanation = plain(data=frame, feature_names=("number",), columns=(("number",),))
    for name, first in [("number", 1.0), ("word", "a"), ("size", "small"), ("flag", False),
                        ("day", pd.Timestamp("2026-01-01"))]:  # fmt: skip
        found = by_slice(explanation, name)
        assert found["slice"].iloc[0] == first, name
        assert list(found["kind"]) == ["level", "level", "missing"]
        assert sorted(found["rows"]) == [1, 1, 2]
        pd.testing.assert_frame_equal(found, by_slice(explanation, frame[name]))


@pytest.mark.parametrize(
    ("labels", "slices"),
    [
        ([True, False, None, True], [False, True, "missing"]),
        (["missing", None, "missing", "a"], ["a", "missing", "missing"]),
        ([None] * 4, ["missing"]),
        ([np.nan] * 4, ["missing"]),
        ([pd.NA, "a", None, float("nan")], ["a", "missing"]),
        ([1, "a", 1, (2, 3)], [1, "a", (2, 3)]),
        ([7] * 4, [7]),
    ],
)
def test_labels_of_any_kind(labels, slices):
    frame = by_slice(plain(), labels)
    assert list(frame["slice"]) == slices
    assert frame["rows"].sum() == 4
    assert list(frame["kind"] == "missing") == [
        i == len(slices) - 1 and any(pd.isna(v) is True for v in labels if not isinstance(v, tuple))
        for i in range(len(slices))
    ]


@pytest.mark.slow
def test_hostile_names_and_labels():
    n = len(HOSTILE)
    names = list(dict.fromkeys(HOSTILE))
    data = pd.DataFrame(np.eye(n, len(names)), columns=pd.Index(names, dtype=object))
    explanation = plain(
        n, data=data, values=RNG.normal(size=(n, len(names))),
        feature_names=tuple(names), columns=tuple((name,) for name in names),
    )  # fmt: skip
    for name in names:
        frame = by_slice(explanation, name)
        assert set(frame["slice"]) <= {0.0, 1.0}
    frame = by_slice(explanation[:, 0], HOSTILE)
    assert set(frame["slice"]) == {*HOSTILE}
    assert set(by_slice(explanation, "rows")["feature"]) == {*names}


def test_labels_that_are_tuples_or_positions():
    data = pd.DataFrame(np.eye(3), columns=pd.Index([("a", 1), ("a", 2), 7], tupleize_cols=False))
    names = (("a", 1), ("a", 2), 7)
    explanation = plain(
        3, data=data, values=np.eye(3), feature_names=names, columns=tuple((c,) for c in names)
    )
    for by in (("a", 2), 1):
        assert list(by_slice(explanation, by)["rows"].iloc[[0, 3]]) == [2, 1]
    assert list(by_slice(explanation, ("x", "y", "x"))["slice"].unique()) == ["x", "y"]


def test_one_row_has_no_error():
    frame = by_slice(EXPLANATION[0], "a")
    assert len(frame) == 3 and frame["importance_row_error"].isna().all()
    assert frame["mean_row_error"].isna().all() and frame["mean_value"].notna().all()


def test_a_constant_model_has_zeros_everywhere():
    explanation = MeasureExplainer(lambda Z: np.full(len(Z), 3.0)).fit(X).explain(X)
    frame = by_slice(explanation, "b")
    for name in ("importance", "mean_value", "importance_row_error", "mean_row_error"):
        assert (frame[name] == 0).all()


def test_equal_values_have_no_error_at_all():
    explanation = plain(7, values=np.full((7, 1), 0.1))
    frame = by_slice(explanation, ["u"] * 7)
    assert frame["importance_row_error"][0] == frame["mean_row_error"][0] == 0


def test_pairs_are_taken():
    pairs = MeasureExplainer(TREE).fit(X).explain_pairs(X)
    frame = by_slice(pairs, "b")
    assert set(frame["feature"]) == {("a", "b"), ("a", "c"), ("b", "c")}
    check(pairs, X["b"], frame)


def test_errors_of_approximate_values_have_a_column():
    error = np.arange(1.0, 5.0)[:, None]
    explanation = plain(exact=False, std_error=error)
    frame = by_slice(explanation, list("uuvv"))
    assert list(frame["approximation_error"]) == [1.5, 3.5]
    centred = replace(explanation, centered_error=2 * error)
    assert list(by_slice(centred, list("uuvv"))["approximation_error"]) == [3.0, 7.0]
    assert "approximation_error" not in by_slice(plain(), list("uuvv"))


@pytest.mark.parametrize(
    ("by", "bins", "words"),
    [
        ("none", None, "by: there is no column 'none'; there are ['a', 'b', 'c']"),
        (3, None, "by: there is no column 3"),
        (["u", "v"], None, "one label for each of the 90 rows explained, got shape (2,)"),
        (X, None, "got shape (90, 3)"),
        (X.to_numpy(), None, "got shape (90, 3)"),
        (pd.Series(["u"] * N), None, "another index than the rows explained; use by.to_numpy()"),
        (["u"] * N, 3, "bins=3 cut numbers or dates, but by holds levels"),
        ("a", 1, "bins must be at least 2"),
        ("a", 0, "bins must be at least 2"),
        ("a", True, "bins must be an int or a list of edges, got True"),
        ("a", 2.5, "bins must be an int or a list of edges, got 2.5"),
        ("a", "five", "bins must be an int or a list of edges, got 'five'"),
        ("a", [], "bins must be an int or a list of edges, got []"),
        ("a", [1.0, 1.0], "must increase, got [1.0, 1.0]"),
        ("a", [2, 1], "must increase"),
        ("a", [np.nan], "must increase"),
        ("a", ["x"], "must be numbers, as by holds"),
    ],
)
def test_bad_input(by, bins, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        by_slice(EXPLANATION, by, bins=bins)


def test_what_is_not_an_explanation():
    with pytest.raises(TypeError, match="must be an Explanation, which"):
        by_slice(X, "a")
    with pytest.raises(
        ValueError, match="slices are means over rows, and this explanation has none"
    ):
        by_slice(EXPLANATION[:0], "a")
