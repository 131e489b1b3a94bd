"""Stability: every number equals a slow loop over models; identical models give exact zeros."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import t
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import Conditional, Expectation, PartialDependence
from skattr.metrics import stability
from tests.helpers.hostile import HOSTILE
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
N = 80
X = pd.DataFrame(
    {"a": RNG.normal(size=N), "b": RNG.integers(0, 5, N).astype(float), "c": RNG.normal(size=N)},
    index=np.zeros(N, int),  # duplicated
)
X.loc[X["b"] == 3, "c"] = np.nan
Y = X["a"] * X["b"] + 0.1 * RNG.normal(size=N)
CLASSES = np.digitize(Y, [-1, 1])


def explainers(kind, measure="main_effect", **settings):
    """Return explainers of the models of five folds."""
    model, target, data = {
        "forest": (RandomForestRegressor(5, max_depth=4, random_state=0), Y, X),
        "classes": (RandomForestClassifier(5, max_depth=3, random_state=0), CLASSES, X),
        "linear": (LinearRegression(), Y, X.fillna(0.0)),
    }[kind]
    found = cross_validate(model, data, target, return_estimator=True)["estimator"]
    return [MeasureExplainer(one, measure, **settings).fit(data) for one in found], data


def slow(fitted, data):
    """Return the numbers of the table by loops: output → feature → numbers."""
    all_values = [e.explain(data).centered().values.reshape(len(data), -1, 1) if
                  len(e.output_names_) == 1 else e.explain(data).centered().values
                  for e in fitted]  # fmt: skip
    m, (n, g, k) = len(fitted), all_values[0].shape
    result = {}
    for o in range(k):
        sizes = [[np.mean([abs(v[i, j, o]) for i in range(n)]) for j in range(g)]
                 for v in all_values]  # fmt: skip
        for j in range(g):
            own = [size[j] for size in sizes]
            ranks = [
                1 + sum(other > size[j] for other in size)
                + 0.5 * (sum(other == size[j] for other in size) - 1)
                for size in sizes
            ]  # fmt: skip
            pairs, variances = [], []
            for i in range(n):
                values = [v[i, j, o] for v in all_values]
                pairs += [
                    values[p] * values[q] < 0 for p in range(m) for q in range(m) if p < q
                ]  # fmt: skip
                variances.append(np.var(values, ddof=1))
            result[o, j] = {
                "importance": np.mean(own), "spread": np.std(own, ddof=1),
                "low": min(own), "high": max(own),
                "rank": np.mean(ranks), "rank_spread": np.std(ranks, ddof=1),
                "sign_changes": np.mean(pairs), "value_spread": np.sqrt(np.mean(variances)),
            }  # fmt: skip
    return result


@pytest.mark.parametrize(
    ("kind", "measure", "settings"),
    [
        ("forest", "main_effect", {}),
        pytest.param("forest", "partial_dependence", {}, marks=pytest.mark.slow),
        pytest.param("forest", "shapley", {}, marks=pytest.mark.slow),
        pytest.param("forest", Conditional() - Expectation(), {}, marks=pytest.mark.slow),
        ("forest", "main_effect", {"groups": {"both": ["a", "c"]}}),
        ("classes", "main_effect", {}),
        ("linear", "main_effect", {}),
    ],
)
def test_every_number_is_that_of_a_slow_loop(kind, measure, settings):
    fitted, data = explainers(kind, measure, **settings)
    frame = stability(fitted, data).to_frame()
    explanation = fitted[0].explain(data)
    wanted = slow(fitted, data)
    assert len(frame) == len(wanted)
    for line in frame.to_dict("records"):
        o = explanation.output_names.index(line.pop("output"))
        j = explanation.feature_names.index(line.pop("feature"))
        assert line == pytest.approx(wanted[o, j], rel=1e-9, abs=1e-12)


def test_the_most_important_column_comes_first():
    fitted, data = explainers("classes")
    frame = stability(fitted, data).to_frame()
    mean = frame.groupby("feature")["importance"].mean().sort_values(ascending=False)
    for _, part in frame.groupby("output"):
        assert list(part["feature"]) == list(mean.index)


@pytest.mark.parametrize("ratio", quickly([None, 0.0, 0.58], [0.58]))
@pytest.mark.parametrize("kind", ["forest", "classes", "linear"])
def test_identical_models_give_exact_zeros(kind, ratio):
    fitted, data = explainers(kind)
    model = fitted[0].estimator
    found = stability([MeasureExplainer(model).fit(data) for _ in range(4)], data, ratio=ratio)
    frame = found.to_frame()
    for name in ("spread", "rank_spread", "sign_changes", "value_spread"):
        assert (frame[name] == 0).all(), name
    assert (frame["low"] == frame["importance"]).all()
    assert (frame["high"] == frame["importance"]).all()
    sizes = fitted[0].explain(data).importance()
    by_name = frame.set_index(["feature", "output"])["importance"].unstack()
    sizes = sizes.to_frame("prediction") if sizes.ndim == 1 else sizes
    np.testing.assert_array_equal(by_name.loc[sizes.index, sizes.columns], sizes)
    band = found.curve("b").to_frame()
    assert (band["spread"] == 0).all()
    assert (band["low"] == band["mean"]).all() and (band["high"] == band["mean"]).all()


def test_intervals_with_a_ratio():
    fitted, data = explainers("forest")
    plain = stability(fitted, data).to_frame()
    corrected = stability(fitted, data, ratio=0.25, level=0.9)
    frame = corrected.to_frame()
    half = t.ppf(0.95, 4) * np.sqrt(1 / 5 + 0.25) * plain["spread"]
    np.testing.assert_allclose(frame["low"], plain["importance"] - half)
    np.testing.assert_allclose(frame["high"], plain["importance"] + half)
    assert corrected.interval_name == "90 % interval of the mean of 5 models"
    assert stability(fitted, data).interval_name == "smallest to largest of 5 models"
    band = corrected.curve("a")([0.3])
    values = [e.curve("a")([0.3])[0] for e in fitted]
    half = t.ppf(0.95, 4) * np.sqrt(1 / 5 + 0.25) * np.std(values, ddof=1)
    assert band["high"][0] == pytest.approx(np.mean(values) + half)


def test_frames_of_other_libraries_and_arrays():
    fitted, data = explainers("linear")
    wanted = stability(fitted, data).to_frame()
    other = stability(fitted, pl.from_pandas(data.reset_index(drop=True))).to_frame()
    pd.testing.assert_frame_equal(wanted, other)
    arrays = [MeasureExplainer(LinearRegression().fit(data.to_numpy()[i:], Y[i:])).fit(
        data.to_numpy()) for i in (0, 20)]  # fmt: skip
    assert set(stability(arrays, data.to_numpy()).to_frame()["feature"]) == {"x0", "x1", "x2"}
    assert len(stability({"u": arrays[0], "v": arrays[1]}, data.to_numpy()).explainers) == 2


def test_one_row_and_a_constant_model():
    fitted, data = explainers("forest")
    frame = stability(fitted, data[:1]).to_frame()
    assert frame["importance"].notna().all() and len(frame) == 3
    constants = [MeasureExplainer(lambda Z, c=c: np.full(len(Z), c)).fit(data) for c in (1.0, 2.0)]
    frame = stability(constants, data).to_frame()
    assert (frame[["importance", "spread", "sign_changes", "value_spread"]] == 0).all(axis=None)
    assert (frame["rank"] == 2).all() and (frame["rank_spread"] == 0).all()


def test_values_that_are_rounding_have_no_sign():
    models = [lambda Z, s=s: Z["a"] * 1e-20 * s + Z["b"] for s in (1, -1)]
    frame = stability([MeasureExplainer(f).fit(X) for f in models], X).to_frame()
    assert (frame["sign_changes"] == 0).all()


@pytest.mark.slow
def test_hostile_names():
    names = list(dict.fromkeys(HOSTILE))
    data = pd.DataFrame(RNG.normal(size=(5, len(names))), columns=pd.Index(names, dtype=object))
    fitted = [
        MeasureExplainer(lambda Z, s=s: s * np.asarray(Z, float).sum(axis=1)).fit(data)
        for s in (1, 2)
    ]
    found = stability(fitted, data)
    assert set(found.to_frame()["feature"]) == {*names}
    band = found.curve("$x_1$")
    assert band.feature == "$x_1$" and len(band.to_frame()) == 5


# -- bands of curves -----------------------------------------------------------------------------


def band_of(fitted, data, feature, **options):
    return stability(fitted, data, **options).curve(feature)


@pytest.mark.parametrize(
    "measure", quickly(["main_effect", "partial_dependence", "conditional"], ["main_effect"])
)
@pytest.mark.parametrize("kind", ["forest", "classes"])
@pytest.mark.parametrize("feature", quickly(["a", "b", "c"], ["a"]))
def test_bands_of_steps_are_those_of_a_loop(kind, feature, measure):
    fitted, data = explainers(kind, measure)
    band = band_of(fitted, data, feature)
    assert band.kind == "steps"
    frame = band.to_frame()
    k = len(band.output_names)
    curves = [explainer.curve(feature) for explainer in fitted]
    # the intervals cover the axis, and the curves do not jump inside them
    for o, (output, part) in enumerate(frame.groupby("output", sort=False)):
        assert output == band.output_names[o]
        inside = part[part["closed"] == "right"]
        assert inside["lower"].iloc[0] == -np.inf and inside["upper"].iloc[-1] == np.inf
        np.testing.assert_array_equal(inside["lower"][1:], inside["upper"][:-1])
        for line in part.iloc[:: max(1, len(part) // 15)].itertuples():
            if line.closed == "missing":
                places = [np.nan]
            else:
                ends = np.clip([line.lower, line.upper], -1e6, 1e6)
                places = [np.nextafter(ends[0], np.inf), ends.mean(), ends[1]]
            for x in places:
                values = [np.reshape(c([x]), k)[o] - c.offset[o] for c in curves]
                wanted = (np.mean(values), np.std(values, ddof=1), min(values), max(values))
                found = (line.mean, line.spread, line.low, line.high)
                np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    assert (frame["closed"] == "missing").sum() == k


@pytest.mark.slow
def test_bands_of_levels_with_a_model_that_does_not_use_the_column():
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    data = pd.DataFrame({"word": list("uvw") * 10, "a": RNG.normal(size=30)})
    target = (data["word"] == "u") * 1.0

    def model(y):
        encode = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["word"]), remainder="passthrough"
        )
        return make_pipeline(encode, DecisionTreeRegressor(random_state=0)).fit(data, y)

    fitted = [MeasureExplainer(model(y)).fit(data) for y in (data["a"] > 0, target, 3 * target)]
    band = band_of(fitted, data, "word")
    assert band.kind == "levels"
    frame = band.to_frame().set_index("level")
    assert list(frame["kind"]).count("level") == 3
    for level in "uvw":
        values = [e.curve("word")([level])[0] for e in fitted]
        assert frame.loc[level, "mean"] == pytest.approx(np.mean(values))
        assert frame.loc[level, "high"] == pytest.approx(max(values))
    other = frame[frame["kind"] != "level"]
    assert len(other) and (other["low"] <= other["mean"]).all()
    unknown = [e.curve("word")(["new"])[0] for e in fitted]
    assert frame.loc["any other", "mean"] == pytest.approx(np.mean(unknown))


@pytest.mark.slow
def test_bands_of_other_functions():
    data = X[["a", "b"]]
    networks = [
        MLPRegressor(hidden_layer_sizes=(4,), tol=1e9, n_iter_no_change=1, random_state=s).fit(
            data, Y
        )
        for s in range(3)
    ]
    functions = [lambda Z, s=s: s * Z["a"] ** 2 + Z["b"] for s in (1.0, 2.0)]
    for models, kind, most in ((networks, "linear", 1201), (functions, "function", 100)):
        fitted = [MeasureExplainer(model).fit(data) for model in models]
        band = band_of(fitted, data, "a")
        assert band.kind == kind
        frame = band.to_frame().dropna()
        assert 2 < len(frame) <= most
        for line in frame.iloc[::7].itertuples():
            values = [e.curve("a")([line.x])[0] for e in fitted]
            assert line.mean == pytest.approx(np.mean(values))
            assert line.low == pytest.approx(min(values))


@pytest.mark.slow
@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_bands_of_dates(zone):
    days = pd.date_range("2026-01-01", periods=20, tz=zone).to_series().reset_index(drop=True)
    data = pd.DataFrame({"day": days, "a": RNG.normal(size=20)})
    functions = [lambda Z, s=s: s * Z["day"].dt.day.to_numpy() + Z["a"] for s in (1.0, 2.0)]
    fitted = [MeasureExplainer(function).fit(data) for function in functions]
    frame = band_of(fitted, data, "day").to_frame()
    assert list(frame["x"]) == list(days)
    for line in frame.iloc[::6].itertuples():
        values = [e.curve("day")([line.x])[0] for e in fitted]
        assert (line.low, line.high) == pytest.approx((min(values), max(values)))


def test_a_band_at_some_values_asks_for_no_others():
    asked = []

    def model(Z):
        asked.append(len(Z))
        return Z["a"] ** 2

    data = X[["a"]]
    found = stability([MeasureExplainer(model).fit(data) for _ in range(2)], data)
    band = found.curve("a")
    asked.clear()
    band([0.1, 0.2])
    assert sum(asked) <= 2 * 2 * N  # models, values, background


def test_bands_at_values_outputs_and_offsets():
    fitted, data = explainers("classes", "partial_dependence")
    band = band_of(fitted, data, "a")
    found = band([0.1, 0.2], centered=False)
    assert list(found["output"]) == ["0", "0", "1", "1", "2", "2"]
    values = np.stack([e.curve("a")([0.1, 0.2]) for e in fitted])
    np.testing.assert_allclose(found["mean"], values.mean(axis=0).T.ravel())
    centred = band(0.1)
    offsets = np.array([e.curve("a").offset for e in fitted])
    wanted = (values[:, 0] - offsets).mean(axis=0)
    np.testing.assert_allclose(centred["mean"], wanted)
    one = band.select("1")
    assert one.output_names == ("1",)
    pd.testing.assert_frame_equal(
        one(0.1), centred[centred["output"] == "1"].reset_index(drop=True)
    )
    pd.testing.assert_frame_equal(stability(fitted, data).curve("a", "1")(0.1), one(0.1))


def test_what_has_no_curve_has_no_band():
    fitted, data = explainers("forest", "shapley")
    with pytest.raises(ValueError, match="depends on the whole row"):
        band_of(fitted, data, "a")
    fitted, data = explainers("forest", groups={"both": ["a", "c"]})
    with pytest.raises(ValueError, match="group"):
        band_of(fitted, data, "both")


# -- bad input -----------------------------------------------------------------------------------

TREE = DecisionTreeRegressor(max_depth=2).fit(X, Y)
ONE = MeasureExplainer(TREE).fit(X)


def other(columns, measure="main_effect", **settings):
    Z = X[columns]
    return MeasureExplainer(DecisionTreeRegressor(max_depth=2).fit(Z, Y), measure, **settings).fit(
        Z
    )


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (lambda: other(["a", "b"]), "same columns, but explainers[0] and explainers[1] differ: "
                                    "only in explainers[0]: ['c']"),
        (lambda: other(["c", "b", "a"]), "they are in another order"),
        (lambda: MeasureExplainer(LinearRegression().fit(X[["a"]].rename(columns={"a": "z"}), Y))
            .fit(X[["a"]].rename(columns={"a": "z"})), "only in explainers[1]: ['z']"),
        (lambda: other(["a", "b", "c"], PartialDependence()), "same measure, but explainers[0] has "
            "'PartialDependence() - Expectation()' and explainers[1] has 'PartialDependence()'"),
        (lambda: other(["a", "b", "c"], groups={"g": ["a", "b"]}), "same groups"),
        (lambda: MeasureExplainer(LogisticRegression().fit(X.fillna(0), CLASSES)).fit(X.fillna(0)),
         "same outputs, but explainers[0] has ('prediction',) and explainers[1] has ('0', '1', '2"),
    ],
)  # fmt: skip
def test_differences_are_named(second, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        stability([ONE, second()], X.fillna(0))


def test_another_scale_is_named():
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=3).fit(X, CLASSES)
    pair = [MeasureExplainer(model, output=output).fit(X) for output in ("raw", "proba")]
    with pytest.raises(ValueError, match=r"same scale of the output, but .*logit.*probability"):
        stability(pair, X)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([], ValueError, "at least two explainers, got 0"),
        ([ONE], ValueError, "at least two explainers, got 1"),
        (ONE, TypeError, "explainers must be a list of fitted MeasureExplainers"),
        (3, TypeError, "explainers must be a list"),
        ([ONE, TREE], TypeError, "explainers[1] must be a fitted MeasureExplainer"),
        ([ONE, MeasureExplainer(TREE)], NotFittedError, "not fitted"),
    ],
)
def test_what_is_not_a_list_of_explainers(given, error, words):
    with pytest.raises(error, match=re.escape(words)):
        stability(given, X)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"ratio": -0.1}, ValueError, "ratio must be the number of rows left out"),
        ({"ratio": np.inf}, ValueError, "ratio must be"),
        ({"ratio": np.nan}, ValueError, "ratio must be"),
        ({"ratio": "bootstrap"}, TypeError, "ratio must be a number, got 'bootstrap'"),
        ({"ratio": True}, TypeError, "ratio must be a number"),
        ({"level": 1.0}, ValueError, "level must be between 0 and 1, got 1.0"),
        ({"level": 95}, ValueError, "level must be between 0 and 1, got 95"),
        ({"level": None}, TypeError, "level must be a number"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=re.escape(words)):
        stability([ONE, ONE], X, **options)
