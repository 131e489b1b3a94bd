"""Bands around curves and intervals of bars: what is drawn, and that it says which error it is."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from scipy.stats import t
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skattr import MeasureExplainer, plot
from skattr.metrics import refit, stability
from tests.helpers.hostile import HOSTILE
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
N = 90
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        "word": pd.Categorical(np.array(["u", "v", "w"])[RNG.integers(3, size=N)]),
    },
    index=np.zeros(N, int),
)
Y = X["a"] * 2 + (X["word"] == "u") + X["b"].fillna(3) + 0.3 * RNG.normal(size=N)
MODEL = HistGradientBoostingRegressor(max_iter=20, categorical_features="from_dtype")
WHOLE = MeasureExplainer(MODEL.fit(X, Y)).fit(X)
FOUND = stability(refit(WHOLE, X, Y, n_refits=4, random_state=0), X)
CLASSES = np.digitize(Y, [0, 2])
FOREST = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X[["a", "b"]], CLASSES)
FOREST = MeasureExplainer(FOREST, "partial_dependence").fit(X[["a", "b"]])
OF_CLASSES = stability(
    refit(FOREST, X[["a", "b"]], CLASSES, n_refits=3, random_state=0), X[["a", "b"]], ratio=0.58
)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def area(ax):
    """Return the outline of the band."""
    (band,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    return band.get_paths()[0].vertices


def ends_at(outline, x):
    """Return the lowest and the highest point of an outline above x, between its corners."""
    inside = []
    for (x0, y0), (x1, y1) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        if min(x0, x1) < x < max(x0, x1):
            inside.append(y0 + (y1 - y0) * (x - x0) / (x1 - x0))
    return min(inside), max(inside)


@pytest.mark.parametrize("feature", quickly(["a", "b"], ["b"]))
@pytest.mark.parametrize("centered", quickly([True, False], [True]))
def test_the_band_of_steps_is_that_of_the_models(feature, centered):
    ax = plot.curve(WHOLE.curve(feature), band=FOUND, data=X, centered=centered)
    outline = area(ax)
    for x in RNG.uniform(*np.quantile(X[feature].dropna(), [0.02, 0.98]), size=40):
        values = [explainer.curve(feature)([x])[0] for explainer in FOUND.explainers]
        low, high = ends_at(outline, x)
        assert (low, high) == pytest.approx((min(values), max(values)), abs=1e-9)
    assert words(ax) == ["smallest to largest of 4 models"]
    bottom, top = ax.get_ylim()
    assert bottom < outline[:, 1].min() and outline[:, 1].max() < top
    # the bar at the right end is that of missing values
    bars = [line for line in ax.get_lines() if list(line.get_xdata()) == [0.995, 0.995]]
    assert len(bars) == (feature == "b")
    if bars:
        values = [explainer.curve("b")([np.nan])[0] for explainer in FOUND.explainers]
        np.testing.assert_allclose(bars[0].get_ydata(), [min(values), max(values)])
    ax.figure.canvas.draw()


def test_a_band_of_very_many_steps_is_never_too_narrow(monkeypatch):
    monkeypatch.setattr("skattr.plot.curve_bands.MANY", 7)
    outline = area(plot.curve(WHOLE.curve("a"), band=FOUND, data=X))
    band = FOUND.curve("a")
    for x in RNG.uniform(-1, 1, size=30):
        at = band([x])
        low, high = ends_at(outline, x)
        assert low <= at["low"][0] + 1e-12 and high >= at["high"][0] - 1e-12


def test_levels_have_error_bars():
    ax = plot.curve(WHOLE.curve("word"), band=FOUND, data=X)
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    names = [label.get_text() for label in ax.get_xticklabels()]
    for segment in bars.get_segments():
        level = names[round(segment[0, 0])]
        values = [explainer.curve("word")([level])[0] for explainer in FOUND.explainers]
        np.testing.assert_allclose(segment[:, 1], [min(values), max(values)], atol=1e-12)
    assert len(bars.get_segments()) == 3
    assert words(ax) == ["smallest to largest of 4 models"]


def test_each_output_has_its_band():
    axes = plot.curve(FOREST.curve("a"), band=OF_CLASSES)
    for ax, output in zip(axes, OF_CLASSES.output_names, strict=True):
        at = OF_CLASSES.curve("a", output)([0.1])
        assert ends_at(area(ax), 0.1) == pytest.approx((at["low"][0], at["high"][0]))
    assert words(axes[-1]) == ["95 % interval of the mean of 3 models"]
    ax = plot.curve(FOREST.curve("a"), band=OF_CLASSES.curve("a"), output="1")
    assert ends_at(area(ax), 0.1) == pytest.approx(ends_at(area(axes[1]), 0.1))
    ax = plot.curve(FOREST.curve("a", "1"), band=OF_CLASSES.curve("a", "1"))
    assert ends_at(area(ax), 0.1) == pytest.approx(ends_at(area(axes[1]), 0.1))


def test_networks_and_functions():
    data = X[["a"]].assign(c=X["a"] ** 2)
    network = MLPRegressor(hidden_layer_sizes=(4,), tol=1e9, n_iter_no_change=1, random_state=0)
    found = refit(MeasureExplainer(network), data, Y, n_refits=3, random_state=0)
    band = stability(found, data).curve("a")
    ax = plot.curve(found[0].curve("a"), band=band)
    for x in (-1.0, 0.013, 0.7):
        at = band([x])
        wanted = (at["low"][0], at["high"][0])
        assert ends_at(area(ax), x) == pytest.approx(wanted, abs=0.02 * np.ptp(area(ax)[:, 1]))
    functions = [MeasureExplainer(lambda Z, s=s: s * Z["a"] ** 2).fit(data[:9]) for s in (1, 2)]
    ax = plot.curve(functions[0].curve("a"), band=stability(functions, data[:9]))
    assert words(ax) == ["smallest to largest of 2 models"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["frame", "array"])
def test_ends_of_the_users_own(kind):
    curve = MeasureExplainer(MODEL, "partial_dependence").fit(X).curve("a")
    value = curve.to_frame()["value"]
    table = pd.DataFrame({"low": value - 0.5, "high": value + 1.0})
    table = table if kind == "frame" else table.to_numpy()
    for centered in (True, False):
        ax = plot.curve(curve, band={"half to one": table}, centered=centered)
        at = curve([0.2])[0] - centered * curve.offset[0]
        assert ends_at(area(ax), 0.2) == pytest.approx((at - 0.5, at + 1.0))
        assert words(ax) == ["half to one"]
    levels = WHOLE.curve("word")
    value = levels.to_frame()["value"].to_numpy()
    ax = plot.curve(levels, band={"one": np.column_stack([value - 1, value + 1])})
    assert any(isinstance(c, LineCollection) for c in ax.collections)
    three = FOREST.curve("a")
    values = three.to_frame().filter(like="value_").to_numpy()
    axes = plot.curve(three, band={"one": np.stack([values - 1, values + 1], axis=1)})
    wanted = three([0.1])[0] - three.offset
    for o, ax in enumerate(axes):
        assert ends_at(area(ax), 0.1) == pytest.approx((wanted[o] - 1, wanted[o] + 1))


def test_several_curves_have_a_list():
    curve = WHOLE.curve("a")
    ax = plot.curve({"first": curve, "second": curve}, band=[None, FOUND])
    assert words(ax) == ["first", "second", "second: smallest to largest of 4 models"]
    with pytest.raises(ValueError, match="one entry per curve, a band or None, got 2 curves"):
        plot.curve([curve, curve], band=FOUND)


@pytest.mark.slow
def test_names_of_bands_are_drawn_as_they_are():
    curve = WHOLE.curve("a")
    value = curve.to_frame()["value"].to_numpy()
    for name in ("$\\bad$", "_hidden", "", *HOSTILE[:20]):
        ax = plot.curve(curve, band={name: np.column_stack([value, value])})
        ax.figure.canvas.draw()
        plt.close("all")


@pytest.mark.parametrize(
    ("band", "error", "match"),
    [
        (X, TypeError, "has to say which error it shows"),
        (np.zeros((3, 2)), TypeError, "has to say which error"),
        ({}, TypeError, "dict of one table"),
        ("foreground", TypeError, "must be 'background', a Stability, a Band, or a dict"),
        ({"one": np.zeros((3, 2))}, ValueError, r"each of the \d+ lines of curve.to_frame\(\)"),
        ({"one": X}, ValueError, "columns low and high, got"),
        (FOUND.curve("b"), ValueError, "got a band of 'b'.* for a curve of 'a'"),
        (OF_CLASSES, ValueError, "same column and outputs"),
    ],
)
def test_what_is_not_a_band(band, error, match):
    with pytest.raises(error, match=match):
        plot.curve(WHOLE.curve("a"), band=band)


def test_ends_in_the_wrong_order():
    curve = WHOLE.curve("a")
    value = curve.to_frame()["value"].to_numpy()
    for ends in ([value + 1, value], [value, np.full_like(value, np.nan)]):
        with pytest.raises(ValueError, match="low <= high and no missing"):
            plot.curve(curve, band={"one": np.column_stack(ends)})


# -- the rows of the background ------------------------------------------------------------------

BACKGROUND = "95 % interval (rows of the background)"
NO_FOLDS = MeasureExplainer(MODEL, folds=0).fit(X)


def background_ends(curve, values, centered):
    """Return the ends by their definition."""
    value = np.asarray(curve(values)) - centered * curve.offset[0]
    half = t.ppf(0.975, 31) * curve.background_error(values, centered)
    return np.array([value - half, value + half])


@pytest.mark.parametrize("measure", quickly(["main_effect", "partial_dependence"], ["main_effect"]))
@pytest.mark.parametrize("feature", quickly(["a", "b"], ["b"]))
@pytest.mark.parametrize("centered", quickly([True, False], [True]))
def test_the_band_of_the_background_is_its_interval(measure, feature, centered):
    curve = MeasureExplainer(MODEL, measure).fit(X).curve(feature)
    ax = plot.curve(curve, band="background", data=X, centered=centered)
    inside = RNG.uniform(*np.quantile(X[feature].dropna(), [0.02, 0.98]), size=40)
    last = X[feature].max() - 1e-6  # its step has no upper end
    for x in [*inside, last]:
        wanted = background_ends(curve, [x], centered)[:, 0]
        assert ends_at(area(ax), x) == pytest.approx(tuple(wanted), abs=1e-9)
        np.testing.assert_array_equal(np.ravel(curve.interval([x], centered=centered)), wanted)
    assert words(ax) == [BACKGROUND]
    bars = [line for line in ax.get_lines() if list(line.get_xdata()) == [0.995, 0.995]]
    assert len(bars) == (feature == "b")
    if bars:
        wanted = background_ends(curve, [np.nan], centered)[:, 0]
        np.testing.assert_allclose(bars[0].get_ydata(), wanted)


def test_levels_of_the_background():
    curve = WHOLE.curve("word")
    ax = plot.curve(curve, band="background")
    (bars,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    names = [label.get_text() for label in ax.get_xticklabels()]
    known = [names[round(segment[0, 0])] for segment in bars.get_segments()]
    assert {*known} == {"u", "v", "w"}
    for level, segment in zip(known, bars.get_segments(), strict=True):
        np.testing.assert_allclose(segment[:, 1], background_ends(curve, [level], True)[:, 0])
    assert words(ax) == [BACKGROUND]


def test_each_output_and_each_curve_has_the_band_of_its_background():
    axes = plot.curve(FOREST.curve("a"), band="background")
    for ax, output in zip(axes, FOREST.output_names_, strict=True):
        wanted = background_ends(FOREST.curve("a", output), [0.1], True)[:, 0]
        assert ends_at(area(ax), 0.1) == pytest.approx(tuple(wanted))
    curve = WHOLE.curve("a")
    ax = plot.curve({"first": curve, "second": curve}, band="background")
    assert words(ax)[2:] == [f"first: {BACKGROUND}", f"second: {BACKGROUND}"]


@pytest.mark.slow
def test_columns_of_any_kind_have_a_band_of_the_background():
    data = pd.DataFrame(
        {
            "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N), "D"),
            "unused": pd.Timestamp("2024-01-01"),
            "whole": np.arange(N) % 7,
            "single": X["a"].astype(np.float32),
            "constant": 0.0,
        }
    )

    def days(frame):
        return (frame - pd.Timestamp("2024-01-01")) / pd.Timedelta(days=1)

    dates = FunctionTransformer(days, feature_names_out="one-to-one")
    prepared = make_column_transformer(
        (dates, ["date"]), (dates, ["unused"]), remainder="passthrough"
    )
    model = make_pipeline(prepared, RandomForestRegressor(5, max_depth=4, random_state=0))
    explainer = MeasureExplainer(model.fit(data, np.arange(N) + data["whole"])).fit(data)
    for name in data:
        curve = explainer.curve(name)
        plot.curve(curve, band="background", data=data).figure.canvas.draw()
        frame, errors = curve.to_frame(), curve.table_errors(False)[:, 0]
        own = data[name].iloc[[0, 40, -1]]
        wanted = curve.background_error(own)
        if "x" in frame:
            lines = [frame.index[frame["x"] == value] for value in own]
        else:
            steps = frame[frame["closed"] == "right"]
            lines = [steps.index[:1] if name == "unused" else
                     steps.index[steps["upper"] >= value][:1] for value in own]  # fmt: skip
        assert len(frame) > 2 or name in ("unused", "constant")
        np.testing.assert_allclose(errors[np.concatenate(lines)], wanted, rtol=1e-12)


def test_lines_have_a_band_of_the_background():
    data = X[["a"]].assign(c=X["a"] ** 2)
    network = MLPRegressor(hidden_layer_sizes=(4,), tol=1e9, n_iter_no_change=1, random_state=0)
    curve = MeasureExplainer(network.fit(data, Y), "partial_dependence", folds=32)
    curve = curve.fit(data).curve("a")
    ax = plot.curve(curve, band="background")
    for x in (-1.0, 0.013, 0.7):
        wanted = background_ends(curve, [x], True)[:, 0]
        close = 1e-3 * np.ptp(area(ax)[:, 1])
        assert ends_at(area(ax), x) == pytest.approx(tuple(wanted), abs=close)


@pytest.mark.parametrize("most", [20, 1])
def test_bars_with_the_interval_of_the_background(most):
    explanation = WHOLE.explain(X)
    ax = plot.bar(explanation, interval="background", max_features=most)
    found = explanation.importance(error=True)
    ends = error_bars(ax)
    rows = len(found) if most > 1 else 1
    np.testing.assert_allclose(ends[:rows], found[["low", "high"]][:rows])
    assert words(ax) == [BACKGROUND]
    if most == 1:  # the others are one bar, whose error is that of their sum
        sums = np.delete(explanation.importance_by_fold, _place(explanation), axis=1).sum(axis=1)
        error = np.sqrt(31 / 32 * ((sums - sums.mean()) ** 2).sum())
        total = found["importance"].iloc[1:].sum()
        half = t.ppf(0.975, 31) * error
        np.testing.assert_allclose(ends[1], [max(total - half, 0), total + half])


def _place(explanation):
    return explanation.feature_names.index(explanation.importance().index[0])


def test_bars_of_classes_with_the_interval_of_the_background():
    explanation = FOREST.explain(X[["a", "b"]])
    assert words(plot.bar(explanation, interval="background")) == ["0", "1", "2", BACKGROUND]
    ax = plot.bar(explanation, interval="background", output="1")
    found = explanation.select("1").importance(error=True)
    np.testing.assert_allclose(error_bars(ax), found[["low", "high"]])


def test_where_there_is_no_error_of_the_background():
    match = r"no error from the background: explainer.describe\(\) says why"
    with pytest.raises(ValueError, match=match):
        plot.curve(NO_FOLDS.curve("a"), band="background")
    with pytest.raises(ValueError, match=match):
        NO_FOLDS.curve("a").interval([0.0])
    with pytest.raises(ValueError, match=match):
        plot.bar(NO_FOLDS.explain(X), interval="background")
    with pytest.raises(ValueError, match="draw it with centered=True"):
        plot.bar(WHOLE.explain(X), interval="background", centered=False)
    assert NO_FOLDS.curve("a").n_folds == 0 and WHOLE.curve("a").n_folds == 32


def test_refits_have_no_folds():
    assert all(each.explain(X[:2]).background_error is None for each in FOUND.explainers)


# -- bars ----------------------------------------------------------------------------------------


def error_bars(ax):
    """Return the ends of the error bars, from top to bottom."""
    (container,) = [c for c in ax.containers if not hasattr(c, "patches")]
    return np.array([segment[:, 0] for segment in container[2][0].get_segments()])


@pytest.mark.parametrize("most", [20, 1])
def test_bars_with_the_interval_over_models(most):
    explanation = WHOLE.explain(X)
    ax = plot.bar(explanation, interval=FOUND, max_features=most)
    order = list(explanation.importance().index)
    sizes = pd.DataFrame(FOUND.importances, columns=FOUND.feature_names)[order]
    if most == 1:
        sizes = pd.DataFrame({0: sizes[order[0]], 1: sizes[order[1:]].sum(axis=1)})
    np.testing.assert_allclose(error_bars(ax), np.column_stack([sizes.min(), sizes.max()]))
    assert words(ax) == ["smallest to largest of 4 models"]
    np.testing.assert_allclose(ax.containers[0][0].get_width(), explanation.importance().iloc[0])


def test_bars_of_classes_with_the_interval_of_their_sum():
    ax = plot.bar(FOREST.explain(X[["a", "b"]]), interval=OF_CLASSES)
    assert words(ax) == ["0", "1", "2", "95 % interval of the mean of 3 models"]
    sums = OF_CLASSES.importances.sum(axis=2)
    ends = error_bars(ax)
    np.testing.assert_allclose(sorted(ends.mean(axis=1)), sorted(sums.mean(axis=0)))
    ax = plot.bar(FOREST.explain(X[["a", "b"]]), interval=OF_CLASSES, output="1")
    np.testing.assert_allclose(
        sorted(error_bars(ax).mean(axis=1)), sorted(OF_CLASSES.importances[:, :, 1].mean(axis=0))
    )


def test_bars_say_which_error_they_have():
    explanation = WHOLE.explain(X)
    assert words(plot.bar(explanation)) == ["± 1 standard error over rows"]
    assert plot.bar(explanation[:1]).get_legend() is None  # one row has no error bars
    approximate = MeasureExplainer(lambda Z: np.sin(Z["a"] * Z["b"]), "uniform", random_state=0)
    approximate = approximate.fit(X[["a", "b"]].fillna(0.0)).explain(X[["a", "b"]].fillna(0.0)[:5])
    if approximate.std_error is not None:
        text = "± 1 standard error over rows, and of the approximation"
        assert words(plot.bar(approximate)) == [text]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"interval": X}, TypeError, "interval must be 'background' or a Stability"),
        ({"interval": FOUND, "centered": False}, ValueError, "draw it with centered=True"),
        ({"interval": OF_CLASSES}, ValueError, "must have the feature_names of the explanation"),
    ],
)
def test_what_is_not_an_interval(options, error, match):
    with pytest.raises(error, match=match):
        plot.bar(WHOLE.explain(X), **options)
