"""Single rows: curves of rows (ICE), and the smallest change of one column."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import skattr
from skattr import MeasureExplainer, counterfactual
from tests.cases import CASES, make_case
from tests.helpers.comparison import close
from tests.helpers.lanes import quickly
from tests.helpers.random_cases import column_as_given, weights_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:Found unknown categories"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(size=120).round(2),
        "b": np.where(RNG.random(120) < 0.2, np.nan, RNG.normal(size=120)),
        "i": RNG.integers(0, 9, 120),
        "s": pd.Categorical(np.array(["u", "v", "w"])[RNG.integers(3, size=120)]),
        "t": RNG.random(120) < 0.5,
    }
)
Y = FRAME.a + FRAME.b.fillna(1) + FRAME.i / 4 + (FRAME.s == "u") + FRAME.t * FRAME.a
NUMBERS = FRAME[["a", "i"]].astype(float)
HIST = HistGradientBoostingRegressor(
    max_iter=12, min_samples_leaf=5, categorical_features="from_dtype"
).fit(FRAME, Y)
CLASSES = HistGradientBoostingClassifier(
    max_iter=8, min_samples_leaf=5, categorical_features="from_dtype"
).fit(FRAME, np.digitize(Y, [1.0, 2.5]))


# -- ICE -----------------------------------------------------------------------------------------

QUICK = ("hist categories", "logistic binary")


@pytest.mark.parametrize("name", quickly(CASES, QUICK))
def test_the_mean_of_the_curves_of_the_background_is_partial_dependence(name):
    for seed in range(2):
        case = make_case(name, seed)
        weight = weights_of(case, seed)
        share = np.ones(len(case.background)) if weight is None else np.asarray(weight, float)
        share = share / share.sum()
        explainer = MeasureExplainer(case.estimator, "partial_dependence")
        explainer.fit(case.background, sample_weight=weight)
        kept = share > 0
        for k in range(case.n_columns):
            values = column_as_given(case.X, k)
            curves = explainer.ice(case.background, k)
            rows = curves(values).reshape(len(case.background), len(case.X), -1)
            mean = np.einsum("r,rmk->mk", share[kept], rows[kept])
            curve = explainer.curve(k)(values).reshape(len(case.X), -1)
            scale = 1e-9 * max(1.0, float(np.abs(rows).max()))
            close(curve, mean, scale, f"{name}, column {k}")


MODELS = {
    "forest": RandomForestRegressor(5, random_state=0).fit(NUMBERS, Y),
    "forest of classes": RandomForestClassifier(5, random_state=0).fit(NUMBERS, Y > 1),
    "ridge": Ridge().fit(NUMBERS, Y),
    "logistic": LogisticRegression().fit(NUMBERS, np.digitize(Y, [1.0, 2.5])),
    "network": make_pipeline(
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(6, 5), tol=1e-1, max_iter=900, random_state=0),
    ).fit(NUMBERS, Y),
    "network of classes": MLPClassifier((6,), tol=1e-1, max_iter=900, random_state=0).fit(
        NUMBERS, Y > 1
    ),
    "neighbours": KNeighborsRegressor(3).fit(NUMBERS, Y),
}
KIND = {"forest": "steps", "forest of classes": "steps", "network": "linear"}


@pytest.mark.parametrize("name", quickly(MODELS, ["forest", "network of classes"]))
def test_curves_equal_predictions(name):
    model = MODELS[name]
    output = "proba" if hasattr(model, "predict_proba") else "predict"
    explainer = MeasureExplainer(model, output=output).fit(NUMBERS)
    rows = NUMBERS[10:16]
    for column in NUMBERS:
        curves = explainer.ice(rows, column)
        assert curves.kind == KIND.get(name, "function") and len(curves) == 6
        values = np.concatenate([NUMBERS[column][:9], [-50.0, 0.123, 77.0]])
        frame = curves.to_frame()
        if curves.kind == "steps":  # at all jumps, and one unit beside
            edges = frame["upper"][np.isfinite(frame["upper"])].unique()
            values = np.concatenate([values, edges, np.nextafter(edges, np.inf)])
        wanted = []
        for value in values:
            pinned = rows.assign(**{column: value})
            wanted.append(
                model.predict_proba(pinned) if output == "proba" else model.predict(pinned)
            )
        wanted = np.array(wanted).swapaxes(0, 1)
        if output == "proba" and wanted.shape[2] == 2:
            wanted = wanted[:, :, 1]
        np.testing.assert_allclose(curves(values), wanted, atol=1e-10)
        assert set(frame["row"]) == set(rows.index)
        if wanted.ndim == 3:
            np.testing.assert_array_equal(curves.select(1)(values), curves(values)[:, :, 1])


def test_levels_missing_values_and_booleans():
    explainer = MeasureExplainer(HIST).fit(FRAME)
    rows = FRAME[:5]
    for column, values in {"s": ["u", "w"], "b": [np.nan, 0.5], "t": [True, False]}.items():
        curves = explainer.ice(rows, column)
        got = curves(values)
        for j, value in enumerate(values):
            pinned = rows.copy()
            pinned[column] = pd.Series([value] * 5).astype(FRAME[column].dtype)
            np.testing.assert_allclose(got[:, j], HIST.predict(pinned), atol=1e-12)
    assert explainer.ice(rows, "s").levels == ["u", "v", "w"]
    assert explainer.ice(rows, "t").kind == "levels"
    assert set(explainer.ice(rows, "t").to_frame()["kind"]) <= {"level", "missing"}


def test_bad_input_of_ice():
    explainer = MeasureExplainer(HIST, groups={"both": ["a", "b"]}).fit(FRAME)
    with pytest.raises(ValueError, match="'both' is a group"):
        explainer.ice(FRAME[:3], "both")
    assert explainer.ice(FRAME[:3], "a").kind == "steps"  # a member of a group has curves
    with pytest.raises(ValueError, match="nothing"):
        explainer.ice(FRAME[:3], "nothing")
    with pytest.raises(ValueError, match="must hold numbers"):
        explainer.ice(FRAME[:3], "a")(["x"])


# -- counterfactuals -----------------------------------------------------------------------------


def at(model, row, column, value, method="predict"):
    """The prediction of one row with another value."""
    pinned = row.copy()
    dtype = row[column].dtype
    pinned[column] = pd.Series([value], index=row.index)
    if str(dtype) == "category":
        pinned[column] = pinned[column].astype(dtype)
    return getattr(model, method)(pinned)[0]


def check_threshold(model, rows, target, found):
    """The value found meets the target, one unit before does not, and nothing nearer does."""
    for _, line in found.iterrows():
        row = rows.loc[[line["row"]]]
        before = model.predict(row)[0]
        assert np.isclose(before, line["before"])
        column, value = line["column"], line["to"]
        if line["note"] == "no value of this column does":
            assert pd.isna(value)
            for other in FRAME[column].dropna().unique():
                assert (at(model, row, column, other) >= target) == (before >= target)
            continue
        after = at(model, row, column, value)
        assert np.isclose(after, line["after"], atol=1e-9)
        assert (after >= target) != (before >= target)
        if column in ("a", "b") and not pd.isna(line["from"]):
            nearer = np.nextafter(value, line["from"])
            assert (at(model, row, column, nearer) >= target) == (before >= target)
            between = np.linspace(line["from"], nearer, 25)
            assert all((at(model, row, column, t) >= target) == (before >= target) for t in between)
        if column == "i":
            value = int(value)
            assert value == line["to"]
            step = 1 if value > line["from"] else -1
            for t in range(int(line["from"]), value, step):
                assert (at(model, row, column, t) >= target) == (before >= target)


@pytest.mark.slow
@pytest.mark.parametrize("target", [0.5, 1.5, 2.75])
def test_thresholds_on_trees(target):
    explainer = MeasureExplainer(HIST).fit(FRAME)
    rows = FRAME[20:28]
    found = counterfactual(explainer, rows, target)
    assert set(found["column"]) == set(FRAME)
    check_threshold(HIST, rows, target, found)
    levels = found[(found["column"] == "s") & found["to"].notna()]
    for _, line in levels.iterrows():
        assert np.isclose(line["share"], (FRAME["s"] == line["to"]).mean())
    for _, some in levels.groupby("row"):
        assert some["share"].is_monotonic_decreasing


def test_shares_are_those_of_the_stretch_that_does_it():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])
    tree = RandomForestRegressor(1, bootstrap=False, random_state=0).fit(X, [0, 0, 5, 5, 0])
    explainer = MeasureExplainer(tree).fit(X, sample_weight=[1, 1, 1, 2, 5])
    found = counterfactual(explainer, X[0], 2.0)
    value = found["to"][0]
    assert tree.predict([[value], [np.nextafter(value, 0)]]).tolist() == [5.0, 0.0]
    assert np.isclose(found["share"][0], 0.3)
    found = counterfactual(explainer, X[2], 2.0)
    value = found["to"][0]
    assert tree.predict([[value], [np.nextafter(value, 9)]]).tolist() == [0.0, 5.0]
    assert np.isclose(found["share"][0], 0.2)
    bounded = counterfactual(explainer, X[2], 2.0, bounds={"x0": (2.0, np.inf)})
    value = bounded["to"][0]
    assert tree.predict([[value], [np.nextafter(value, 0)]]).tolist() == [0.0, 5.0]
    nowhere = counterfactual(explainer, X[2], 2.0, bounds={"x0": (1.8, 3.2)})
    assert nowhere["note"][0] == "no value of this column does"
    unseen = counterfactual(MeasureExplainer(tree).fit(X[:2]), X[0], 2.0)
    assert unseen["share"][0] == 0.0 and "no background row" in unseen["note"][0]
    batches = MeasureExplainer(tree).partial_fit(X)
    assert np.isnan(counterfactual(batches, X[0], 2.0)["share"][0])


@pytest.mark.slow
def test_classes():
    explainer = MeasureExplainer(CLASSES, output="proba").fit(FRAME)
    rows = FRAME[:6]
    for klass in CLASSES.classes_:
        found = counterfactual(explainer, rows, klass, features=["a", "s"])
        assert set(found["column"]) == {"a", "s"}
        for _, line in found.iterrows():
            row = rows.loc[[line["row"]]]
            if line["note"] == "no value of this column does":
                values = FRAME[line["column"]].unique()
                assert all(at(CLASSES, row, line["column"], v) != klass for v in values)
            else:
                assert at(CLASSES, row, line["column"], line["to"]) == klass
            assert (line["note"] == "already there") == (CLASSES.predict(row)[0] == klass)


def test_two_classes_on_both_scales():
    model = MODELS["forest of classes"]
    boosting = HistGradientBoostingClassifier(max_iter=5).fit(NUMBERS, Y > 1)
    for estimator, output in ((model, "proba"), (boosting, "raw"), (boosting, "proba")):
        explainer = MeasureExplainer(estimator, output=output).fit(NUMBERS)
        for klass in (True, False):
            found = counterfactual(explainer, NUMBERS[:5], klass)
            for _, line in found[found["to"].notna()].iterrows():
                row = NUMBERS.loc[[line["row"]]]
                assert at(estimator, row, line["column"], line["to"]) == klass


@pytest.mark.slow
def test_networks_and_functions():
    network = MODELS["network"]
    explainer = MeasureExplainer(network).fit(NUMBERS)
    for target in (0.0, 2.0, 5.0):
        found = counterfactual(explainer, NUMBERS[:4], target)
        for _, line in found[found["to"].notna()].iterrows():
            row = NUMBERS.loc[[line["row"]]]
            assert np.isclose(at(network, row, line["column"], line["to"]), target, atol=1e-7)
    logistic = LogisticRegression().fit(NUMBERS, Y > 1)
    explainer = MeasureExplainer(logistic, output="proba").fit(NUMBERS)
    found = counterfactual(explainer, NUMBERS[:6], 0.5)
    assert found["to"].notna().any()
    for _, line in found[found["to"].notna()].iterrows():
        row = NUMBERS.loc[[line["row"]]]
        probability = at(logistic, row, line["column"], line["to"], "predict_proba")[1]
        assert np.isclose(probability, 0.5, atol=1e-7)
    classes = MLPClassifier((8, 8), max_iter=60, random_state=0)
    classes.fit(NUMBERS, np.digitize(Y, [1.0, 2.5]))
    explainer = MeasureExplainer(classes).fit(NUMBERS)
    found = counterfactual(explainer, NUMBERS[:6], 1)
    for _, line in found[found["to"].notna()].iterrows():
        row = NUMBERS.loc[[line["row"]]]
        nudged = [np.nextafter(line["to"], t) for t in (-np.inf, line["to"], np.inf)]
        assert 1 in [at(classes, row, line["column"], value) for value in nudged]


def test_columns_behind_a_pipeline():
    frame = FRAME[["a", "s"]].assign(s=FRAME["s"].astype(str))
    model = make_pipeline(skattr_encoder(), RandomForestRegressor(4, random_state=0)).fit(frame, Y)
    explainer = MeasureExplainer(model).fit(frame)
    found = counterfactual(explainer, frame[:4], 1.0)
    for _, line in found[found["to"].notna()].iterrows():
        row = frame.loc[[line["row"]]]
        after = at(model, row, line["column"], line["to"])
        assert np.isclose(after, line["after"]) and (after >= 1.0) != (line["before"] >= 1.0)


def skattr_encoder():
    from sklearn.compose import make_column_transformer

    return make_column_transformer((OrdinalEncoder(), ["s"]), remainder="passthrough")


def test_forms_of_a_row():
    explainer = MeasureExplainer(HIST).fit(FRAME)
    whole = counterfactual(explainer, FRAME[:1], 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in (FRAME.iloc[0], FRAME.iloc[0].to_dict()):
            pd.testing.assert_frame_equal(counterfactual(explainer, row, 1.0), whole)
    assert "row" not in whole and skattr.counterfactual is counterfactual


def test_levels_of_the_background_that_the_model_does_not_know():
    """They are alike to the model, and each has a line with its own share."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    X = pd.DataFrame({"s": ["u", "v", "w"] * 20}, dtype=object)
    model = make_pipeline(encoder, RandomForestRegressor(5, random_state=0))
    model.fit(X, 10.0 * (X["s"] == "u"))
    background = pd.DataFrame({"s": ["u"] * 5 + ["v"] * 3 + ["new"] * 2}, dtype=object)
    explainer = MeasureExplainer(model).fit(background)
    found = counterfactual(explainer, background[:1], 5.0)
    assert found["to"].tolist() == ["v", "new", "w"]
    np.testing.assert_allclose(found["share"], [0.3, 0.2, 0.0])
    assert "no background row" in found["note"][2]
    for to, after in zip(found["to"], found["after"], strict=True):
        assert np.isclose(model.predict(pd.DataFrame({"s": [to]}, dtype=object))[0], after)


@pytest.mark.parametrize("whole", [False, True])
def test_from_missing_where_every_number_does(whole):
    """The model asks only whether there is a number; the median of the background is one."""
    x = np.arange(60.0).round() if whole else np.linspace(0.5, 9.5, 60)
    X = pd.DataFrame({"a": np.where(np.arange(60) % 3 == 0, np.nan, x)})
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5)
    model.fit(X, 10.0 * X["a"].isna())
    explainer = MeasureExplainer(model).fit(X)
    found = counterfactual(explainer, X[:1], 5.0)
    assert found["to"][0] in X["a"].to_numpy() and np.isclose(found["share"][0], 2 / 3)
    assert abs(found["to"][0] - X["a"].median()) < 1.6
    assert np.isclose(at(model, X[:1], "a", found["to"][0]), found["after"][0])
    assert found["after"][0] < 5
    bounded = counterfactual(explainer, X[:1], 5.0, bounds={"a": (3.0, np.inf)})
    assert bounded["to"][0] == 3.0


def test_texts_and_dates_of_models_that_are_evaluated():
    days = pd.to_datetime(["2026-01-01", "2026-02-01", "2026-03-01", "2026-03-01"])
    rows = pd.DataFrame({"word": ["u", "v", "v", "w"], "day": days, "n": [0.0, 1.0, 2.0, 3.0]})
    rows["kind"] = pd.Categorical(["r", "s", "s", "r"])

    def f(X):
        words = X["word"].map({"u": 0.0, "v": 1.0, "w": 2.0}).to_numpy(float)
        late = (X["day"] > days[1]).to_numpy(float)
        return words + 4 * late + 0.5 * (X["kind"] == "s").to_numpy(float)

    found = counterfactual(MeasureExplainer(f).fit(rows), rows[:1], 1.0)
    lines = found[found["column"] == "word"]
    assert lines[["to", "after", "share"]].to_numpy().tolist() == [
        ["v", 1.0, 0.5],
        ["w", 2.0, 0.25],
    ]
    (day,) = found[found["column"] == "day"].to_dict("records")
    assert (day["to"], day["after"], day["share"]) == (days[2], 4.0, 0.5)
    notes = found[found["column"].isin(["n", "kind"])]["note"]
    assert notes.tolist() == ["no value of the background does"] * 2


def test_dates_for_which_the_model_is_evaluated():
    """The nearest date of the background that reaches the target; from missing, the commonest."""
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2024-01-01")
    X = pd.DataFrame(
        {"day": start + pd.to_timedelta(rng.integers(0, 300, 60), unit="D"), "a": rng.random(60)}
    )

    def model(Z):
        days = (Z["day"] - start).dt.days
        return np.asarray(days.fillna(-5) + 10.0 * Z["a"])

    explainer = MeasureExplainer(model).fit(X)
    rows = X[:8].copy()
    rows.loc[[2, 5], "day"] = pd.NaT
    rows["a"] = rows["a"] + 1
    found = counterfactual(explainer, rows, 150.0, ["day"])
    assert list(found["row"]) == list(range(8))
    for i, line in enumerate(found.itertuples()):
        now, before = rows["day"][i], model(rows[i : i + 1])[0]
        seen = X["day"].unique()
        there = np.array([model(rows[i : i + 1].assign(day=day))[0] for day in seen])
        does = (there >= 150) == (before < 150)
        if pd.isna(now):
            share = np.array([(X["day"] == day).mean() for day in seen])
            assert line.share == share[does].max()
        else:
            nearest = abs(seen[does] - now).min()
            assert abs(line.to - now) == nearest and line.change == line.to - now
        assert line.to in set(seen[does]) and line.share == (X["day"] == line.to).mean()
        assert line.after == model(rows[i : i + 1].assign(day=line.to))[0]


def test_bad_input_of_counterfactuals():
    explainer = MeasureExplainer(CLASSES, output="proba").fit(FRAME)
    with pytest.raises(ValueError, match=r"several outputs: choose output= from \['0'"):
        counterfactual(explainer, FRAME[:1], 0.4)
    assert len(counterfactual(explainer, FRAME[:1], 0.4, output="1")) >= 5
    for target, words in (
        (1.5, "no probability reaches 1.5"),
        (np.nan, "NaN"),
        ("x", r"a class of \[0, 1, 2\]"),
    ):
        with pytest.raises(ValueError, match=words):
            counterfactual(explainer, FRAME[:1], target, output="1")
    with pytest.raises(ValueError, match=r"the row has no value for \['b'"):
        counterfactual(explainer, {"a": 1.0}, 1)
    with pytest.raises(ValueError, match="'s' does not hold numbers"):
        counterfactual(explainer, FRAME[:1], 1, bounds={"s": (0, 1)})
    for pair in ((2, 1), 3, ("x", 3), (np.nan, 1), (1, 2, 3)):
        with pytest.raises(ValueError, match=r"bounds of column 'a' must be \(low, high\), got"):
            counterfactual(explainer, FRAME[:1], 1, bounds={"a": pair})
    with pytest.raises(TypeError, match="must be a fitted MeasureExplainer, got HistGradient"):
        counterfactual(CLASSES, FRAME[:1], 1)
    with pytest.raises(ValueError, match=r"^target must be a number, got 'x'"):
        counterfactual(MeasureExplainer(HIST).fit(FRAME), FRAME[:1], "x")
    with pytest.raises(ValueError, match="nothing"):
        counterfactual(explainer, FRAME[:1], 1, features=["nothing"])
