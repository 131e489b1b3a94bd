"""Pictures: what they show is read back from Axes."""

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise

import matplotlib

from tests.helpers.processes import run_code

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.collections import PathCollection
from matplotlib.dates import date2num, num2date
from matplotlib.patches import StepPatch
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skattr
from skattr import Curve, Explanation, MeasureExplainer, plot
from skattr._utils.numbers import raw
from skattr.curves.evaluated import Evaluated, EvaluatedLevels
from skattr.measures import Conditional, Expectation, PartialDependence, Uniform
from skattr.plot import drawing

pytestmark = pytest.mark.slow

ALL = {
    "bar": plot.bar,
    "beeswarm": plot.beeswarm,
    "waterfall": lambda explanation, **k: plot.waterfall(explanation, 0, **k),
    "heatmap": plot.heatmap,
    "compare": lambda explanation, **k: plot.compare(explanation, explanation, **k),
}
HOSTILE = [
    r"$\bad$", "$x_1$", "$", "a_b^c", r"\frac", "<script>alert(1)</script>", "%s {} {{x}}",
    "new\nline", "null\x00byte", "\u202eright to left", "\ud800", "", " ", "x" * 10_000, "_hidden",
]  # fmt: skip
ERROR = "± 1 standard error over rows"
each = pytest.mark.parametrize("draw", ALL.values(), ids=ALL.keys())


@pytest.fixture(autouse=True)
def settings_and_figures():
    """Whatever is drawn: settings stay, and one figure is made where no axes are given."""
    before = dict(matplotlib.rcParams)
    plt.close("all")
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


def made(values, data=None, *, names=None, offset=0.0, outputs=("prediction",), **more):
    values = np.asarray(values, float)
    data = np.asarray(values if values.ndim == 2 else values[:, :, 0]) if data is None else data
    columns = tuple((label,) for label in skattr._inputs.frames.labels(data))
    fields = {
        "values": values,
        "base_value": np.zeros(len(outputs)) if len(outputs) > 1 else 0.0,
        "offset": offset,
        "data": data,
        "columns": columns,
        "feature_names": tuple(c[0] for c in columns) if names is None else tuple(names),
        "output_names": outputs,
        "exact": "std_error" not in more,
        "engine": ("rows",),
        "measure": "PartialDependence()",
        "measure_name": "partial dependence",
    }
    return Explanation(**fields | more)


def random(n=50, g=4, **more):
    values = np.random.default_rng(0).normal(size=(n, g)) * np.arange(1, g + 1)
    return made(values, **more)


def y_names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def widths(ax):
    return [bar.get_width() for bar in ax.containers[0]]


def number_of_points(ax):
    parts = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert all(c.get_rasterized() for c in parts)
    return sum(len(c.get_offsets()) for c in parts)


def saved(ax):
    ax.figure.canvas.draw()  # warnings are errors


# -- bar -----------------------------------------------------------------------------------------


def test_bars_are_the_importance_in_order():
    explanation = random(offset=0.5)
    ax = plot.bar(explanation)
    importance = explanation.importance()
    assert y_names(ax) == list(importance.index)
    np.testing.assert_allclose(widths(ax), importance)
    assert ax.yaxis_inverted()  # the first is on top
    assert ax.get_xlabel() == "mean of |attribution, centred| · prediction"
    raw = plot.bar(explanation, centered=False)
    np.testing.assert_allclose(sorted(widths(raw)), sorted(np.abs(explanation.values).mean(axis=0)))
    assert raw.get_xlabel() == "mean of |attribution| · prediction"


def half_widths(ax):
    (bars,) = [c for c in ax.containers if isinstance(c, matplotlib.container.ErrorbarContainer)]
    (lines,) = bars.lines[2]
    return np.array([(s[1, 0] - s[0, 0]) / 2 for s in lines.get_segments()])


def test_error_bars():
    values = np.array([[1.0, -4.0], [3.0, 4.0], [2.0, 10.0]])
    sizes = np.abs(values)
    expected = (sizes.std(axis=0, ddof=1) / np.sqrt(3))[::-1]
    np.testing.assert_allclose(half_widths(plot.bar(made(values))), expected)
    error = np.full((3, 2), 0.5)
    with_error = half_widths(plot.bar(made(values, std_error=error)))
    np.testing.assert_allclose(with_error, np.hypot(expected, 0.5))


def test_other_columns_are_one_bar():
    explanation = random(g=20)
    ax = plot.bar(explanation, max_features=3)
    importance = explanation.importance()
    assert y_names(ax) == [*importance.index[:3], "17 other columns"]
    np.testing.assert_allclose(widths(ax), [*importance[:3], importance[3:].sum()])
    others = np.abs(explanation.to_frame()[importance.index[3:]]).sum(axis=1)
    assert half_widths(ax)[-1] == pytest.approx(others.std() / np.sqrt(50))
    assert y_names(plot.bar(explanation, max_features=19))[-1] == "1 other column"
    assert len(y_names(plot.bar(explanation, max_features=20))) == 20


# -- beeswarm ------------------------------------------------------------------------------------


def test_every_value_is_a_point_in_its_line():
    explanation = random()
    ax = plot.beeswarm(explanation)
    assert number_of_points(ax) == 200
    (points,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    where = points.get_offsets()
    order = [explanation.feature_names.index(name) for name in y_names(ax)]
    for line, j in enumerate(order):
        inside = np.abs(where[:, 1] - line) < 0.5
        np.testing.assert_allclose(np.sort(where[inside, 0]), np.sort(explanation.values[:, j]))
    assert "drawn" not in ax.get_xlabel()


def test_colours_are_ranks_in_the_column():
    data = pd.DataFrame({"a": [10.0, np.nan, 1000.0, 20.0]})
    rank, missing = skattr.plot.swarm.ranks(data, 0)
    np.testing.assert_array_equal(rank, [0, np.nan, 1, 0.5])
    np.testing.assert_array_equal(missing, [False, True, False, False])
    days = pd.to_datetime(["2024-03-01", None, "2020-01-01"])
    for column, expected in [
        (pd.Series(days), [1, np.nan, 0]),
        (pd.Series(days.tz_localize("Europe/Rome")), [1, np.nan, 0]),
        (pd.Series([True, False, True]), [1, 0, 1]),
        (pd.Series([True, None, False, True], dtype="boolean"), [1, np.nan, 0, 1]),
        (pd.Series([True, None, False], dtype=object), [1, np.nan, 0]),
        (pd.Series([3, None, 1], dtype="Int64"), [1, np.nan, 0]),
        (pd.Series(["b", None, "a"]), [np.nan] * 3),
        (pd.Series(list("bca"), dtype=pd.CategoricalDtype(list("cba"), True)), [0.5, 0, 1]),
        (pd.Series(list("bca"), dtype="category"), [np.nan] * 3),
        (pd.Series([7.0, 7.0, 7.0]), [0.5] * 3),
        (pd.Series([np.inf, -np.inf, 0.0]), [1, 0, 0.5]),
        (pd.Series([np.nan] * 3), [np.nan] * 3),
    ]:
        rank, missing = skattr.plot.swarm.ranks(column.to_frame("c"), 0)
        np.testing.assert_array_equal(rank, expected)
        np.testing.assert_array_equal(missing, column.isna())
    frame = pl.DataFrame(
        {
            "n": [3, None, 1],
            "t": [days[0].to_pydatetime(), None, days[2].to_pydatetime()],
            "s": ["b", None, "a"],
        }
    )
    for k, expected in enumerate([[1, np.nan, 0], [1, np.nan, 0], [np.nan] * 3]):
        rank, missing = skattr.plot.swarm.ranks(frame, k)
        np.testing.assert_array_equal(rank, expected)
        np.testing.assert_array_equal(missing, [False, True, False])


def test_categories_and_missing_values_are_neutral():
    data = pd.DataFrame({"n": [1.0, np.nan, 3.0], "c": ["a", "b", None]})
    ax = plot.beeswarm(made([[1, 2], [3, 4], [5, 6]], data))
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    sizes = [len(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)]
    assert words == ["no order", "missing"] and sizes == [2, 2, 2]


def test_some_of_many_rows():
    values = np.arange(20_000.0).reshape(-1, 2)
    ax = plot.beeswarm(made(values), max_points=2000)
    assert ax.get_xlabel().endswith("\n2,000 of 10,000 rows drawn")
    assert number_of_points(ax) == 4000
    (points,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    drawn = np.unique(points.get_offsets()[:, 0])
    assert drawn[0] == 0 and drawn[-1] == 19_999  # from the first row to the last


def test_stacked_points_stay_in_their_line():
    heights = skattr.plot.swarm.stack(np.zeros(5000), 0.0, 0.0)
    assert np.abs(heights).max() <= 0.4 and len(np.unique(heights)) == 5000
    assert skattr.plot.swarm.stack(np.arange(5.0), 0.0, 4.0).tolist() == [0] * 5


# -- waterfall -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True, scaled=False)


@pytest.mark.parametrize("measure", [PartialDependence(), PartialDependence() - Expectation()])
def test_values_that_add_up_lead_to_the_prediction(diabetes, measure):
    X, y = diabetes
    model = LinearRegression().fit(X, y)
    explainer = MeasureExplainer(model, measure).fit(X)
    ax = plot.waterfall(explainer.explain(X), 7, max_features=4)
    bars = list(ax.containers[0])
    assert bars[0].get_x() == pytest.approx(explainer.base_value_)
    for above, below in pairwise(bars):
        assert below.get_x() == pytest.approx(above.get_x() + above.get_width())
    end = bars[-1].get_x() + bars[-1].get_width()
    assert end == pytest.approx(model.predict(X)[7])
    assert y_names(ax)[-1] == "6 other columns"  # nothing is left
    sizes = np.abs(widths(ax)[:4])
    assert (np.diff(sizes) <= 0).all()
    assert f" = {raw(X['s1'].iloc[7])}" in y_names(ax)[0]


def test_values_that_do_not_add_up_begin_at_zero(diabetes):
    X, y = diabetes
    tree = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y)
    explanation = MeasureExplainer(tree, "partial_dependence").fit(X).explain(X)
    ax = plot.waterfall(explanation, 3)
    assert all(bar.get_x() == 0 for bar in ax.containers[0])
    gap = explanation.predictions[3] - explanation.offset - explanation.centered().values[3].sum()
    assert abs(gap) > 1
    assert y_names(ax)[-1] == "interactions"
    assert widths(ax)[-1] == pytest.approx(gap)
    assert "interactions" in ax.get_title()
    conditional = replace(explanation, measure="Conditional()")
    assert y_names(plot.waterfall(conditional, 3))[-1] == "not explained by single columns"
    one = explanation[3, ["bmi", "bp"]]
    assert y_names(plot.waterfall(one))[-1] == "not explained by these columns"
    values = explanation.centered().values[3]
    np.testing.assert_allclose(widths(ax)[:-1], values[np.argsort(-np.abs(values), kind="stable")])
    raw = plot.waterfall(explanation, 3, centered=False)
    gap = explanation.predictions[3] - explanation.values[3].sum()
    assert widths(raw)[-1] == pytest.approx(gap)
    assert raw.get_xlabel().startswith("attribution · ")


def test_a_row_without_prediction_claims_nothing(diabetes):
    X, y = diabetes
    explainer = MeasureExplainer(LinearRegression().fit(X, y)).fit(X)
    ax = plot.waterfall(explainer.explain(X, predictions=False), -1)
    assert all(bar.get_x() == 0 for bar in ax.containers[0])
    assert "interactions" not in y_names(ax) and ax.get_title() == ""


def test_a_uniform_measure_begins_at_its_own_mean(diabetes):
    X, y = diabetes
    explanation = MeasureExplainer(LinearRegression().fit(X, y), Uniform()).fit(X).explain(X)
    ax = plot.waterfall(explanation, 0)
    assert ax.containers[0][0].get_x() == pytest.approx(explanation.offset)
    assert explanation.offset != pytest.approx(explanation.base_value)


def test_raw_values_of_a_row():
    data = pd.DataFrame(
        {"n": [np.nan], "s": ["b"], "t": pd.to_datetime(["2024-02-01"]), "b": [True], "i": [-3]}
    )
    ax = plot.waterfall(made([[5, 4, 3, 2, 1.0]], data), 0)
    assert y_names(ax) == ["n = missing", "s = b", "t = 2024-02-01", "b = True", "i = −3"]


def test_rows_are_positions_or_labels(diabetes):
    explanation = random()
    for row in (True, "3", 1.0):
        with pytest.raises(KeyError, match="there is no row"):
            plot.waterfall(explanation, row)
    for row in (None, slice(2), [0, 1]):
        with pytest.raises(ValueError, match="one row, got"):
            plot.waterfall(explanation, row)
    X, y = diabetes
    X = X.set_axis([f"patient {i}" for i in range(len(X))])
    explanation = MeasureExplainer(LinearRegression().fit(X, y)).fit(X).explain(X)
    wanted = widths(plot.waterfall(explanation, 7))
    for ax in (
        plot.waterfall(explanation, "patient 7"),
        plot.waterfall(explanation[7]),
        plot.waterfall(explanation["patient 7"]),
    ):
        np.testing.assert_array_equal(widths(ax), wanted)
    pairs = pd.MultiIndex.from_product([["a", "b"], range(221)])
    explanation = replace(explanation, data=X.set_axis(pairs))
    np.testing.assert_array_equal(widths(plot.waterfall(explanation, ("a", 7))), wanted)


def test_waterfall_of_a_row_that_is_not_there():
    explanation = random()
    with pytest.raises(IndexError, match="50 rows"):
        plot.waterfall(explanation, 50)
    assert plt.get_fignums() == []


# -- heatmap -------------------------------------------------------------------------------------


def test_rows_are_ordered_by_prediction():
    predictions = np.random.default_rng(1).normal(size=50)
    explanation = random(predictions=predictions)
    ax = plot.heatmap(explanation, max_rows=50)
    colours = ax.images[0].get_array()
    order = [explanation.feature_names.index(name) for name in y_names(ax)]
    np.testing.assert_allclose(colours, explanation.values[np.argsort(predictions)][:, order].T)
    low, high = ax.images[0].get_clim()
    assert low == -high and high > 0
    assert ax.get_xlabel() == "50 rows, ordered by prediction"


def test_rows_without_predictions_and_rows_left_out():
    line = np.random.default_rng(0).normal(size=400)
    values = np.column_stack([line, -2 * line, 0.01 * line])
    ax = plot.heatmap(made(values), max_rows=100, max_features=1)
    assert ax.get_xlabel() == "100 of 400 rows drawn, ordered by the first principal axis"
    colours = ax.images[0].get_array()
    assert colours.shape == (2, 100) and y_names(ax) == ["x1", "2 other columns"]
    assert (np.diff(colours[0]) >= 0).all()
    assert colours[0].max() == values[:, 1].max() and colours[0].min() == values[:, 1].min()


# -- compare -------------------------------------------------------------------------------------


def test_pairs_of_bars():
    first = made([[1.0, -5.0], [2.0, 5.0]], pd.DataFrame({"a": [0, 1], "b": [0, 1]}))
    second = made([[3.0, 7.0]], pd.DataFrame({"b": [0], "a": [1]}), measure_name="uniform")
    ax = plot.compare(first, second)
    assert y_names(ax) == ["a", "b"]
    bars = [c for c in ax.containers if isinstance(c, matplotlib.container.BarContainer)]
    assert [[bar.get_width() for bar in side] for side in bars] == [[1.5, 5.0], [7.0, 3.0]]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["partial dependence", "uniform", ERROR]
    titles = plot.compare(first, second, names=["$x_1$", "b"]).get_legend().get_texts()
    assert [t.get_text() for t in titles] == ["$x_1$", "b", ERROR]
    assert not titles[0].get_parse_math()


def test_what_cannot_be_compared():
    first, other = random(g=2), random(g=3)
    with pytest.raises(ValueError, match=r"these differ: \['x2'\]"):
        plot.compare(first, other)
    with pytest.raises(ValueError, match="log-odds and probability"):
        plot.compare(random(scale="log-odds"), random(scale="probability"))
    with pytest.raises(ValueError, match="two names"):
        plot.compare(first, first, names=["a"])
    assert plt.get_fignums() == []


# -- curve ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(diabetes):
    X, y = diabetes
    return MeasureExplainer(
        DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y), "partial_dependence"
    ).fit(X)


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_a_curve_takes_its_column_from_the_data(diabetes, kind):
    X, y = diabetes
    table = {"pandas": X, "polars": pl.from_pandas(X), "array": X.to_numpy()}[kind]
    model = DecisionTreeRegressor(max_depth=5, random_state=0).fit(X.to_numpy(), y)
    explainer = MeasureExplainer(lambda Z: model.predict(np.asarray(Z))).fit(table[:30])
    curve = explainer.curve(2)
    drawn, wanted = (plot.curve(curve, data=data) for data in (table, X["bmi"]))
    for one, other in zip(strips_of(drawn), strips_of(wanted), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="data has no column"):
        plot.curve(curve, data=X.drop(columns="bmi"))


def strips_of(ax):
    return [np.r_[p.get_data().values, p.get_data().edges] for p in ax.patches
            if isinstance(p, StepPatch) and p.get_fill()]  # fmt: skip


def steps_of(ax):
    return [p.get_data() for p in ax.patches if isinstance(p, StepPatch) and not p.get_fill()]


def test_steps_jump_where_the_curve_does(tree, diabetes):
    X = diabetes[0]
    curve = tree.curve("bmi")
    ax = plot.curve(curve, data=X["bmi"])
    ((values, edges, baseline),) = steps_of(ax)
    table = curve.to_frame().query("closed == 'right'")
    assert baseline is None
    np.testing.assert_array_equal(edges[1:-1], table["upper"][:-1])
    np.testing.assert_allclose(values, table["value"] - tree.base_value_)
    middle = (edges[1:] + edges[:-1]) / 2
    np.testing.assert_allclose(values, curve(middle) - tree.base_value_)
    assert edges[0] == ax.get_xlim()[0] == X["bmi"].min()  # below 5 % beyond the first jump
    assert edges[-1] == ax.get_xlim()[1] == X["bmi"].max()
    assert ax.get_ylabel() == "attribution, centred · prediction"
    assert ax.get_xlabel() == "bmi\n442 rows"


def test_steps_without_data_end_a_little_beyond(tree):
    curve = tree.curve("bmi")
    ax = plot.curve(curve, centered=False)
    ((values, edges, _),) = steps_of(ax)
    inner = curve.to_frame()["upper"].replace(np.inf, np.nan).dropna()
    beyond = 0.05 * (inner.max() - inner.min())
    assert edges[0] == pytest.approx(inner.min() - beyond)
    assert edges[-1] == pytest.approx(inner.max() + beyond)
    assert ax.get_ylabel() == "attribution · prediction"
    np.testing.assert_allclose(values, curve.to_frame().query("closed == 'right'")["value"])


def test_steps_far_beyond_the_data_are_left_out(tree, diabetes):
    """Boosters may end at twice the largest value; whole numbers have their bars in full."""
    X = pd.DataFrame({"rooms": [1, 2, 3, 4, 5, 6] * 30, "area": np.linspace(20, 140, 180)})
    y = (X["area"] > 80) + X["rooms"] / 3
    model = DecisionTreeRegressor().fit([[1, 0], [1, 300], [1, 400]], [0, 1, 5])
    explainer = MeasureExplainer(model).fit([[1.0, 0.0], [2.0, 400.0]])
    low, high = plot.curve(explainer.curve(1), data=X["area"].to_numpy()).get_xlim()
    assert (low, high) == pytest.approx((20, 146))
    explainer = MeasureExplainer(DecisionTreeRegressor(max_depth=5).fit(X, y)).fit(X)
    assert plot.curve(explainer.curve("rooms"), data=X).get_xlim() == pytest.approx((0.5, 6.5))


def test_the_data_below(tree, diabetes):
    X = diabetes[0]
    column = X["bmi"].mask(X.index % 10 == 0)
    ax = plot.curve(tree.curve("bmi"), data=column)
    (strip,) = [p for p in ax.patches if isinstance(p, StepPatch) and p.get_fill()]
    heights, edges, _ = strip.get_data()
    expected = np.histogram(column.dropna(), edges)[0]
    np.testing.assert_allclose(heights / heights.max(), expected / expected.max())
    assert 0 < heights.max() < 0.2  # of the axes
    assert ax.get_xlabel() == "bmi\n442 rows, 10.2 % missing"
    # nothing of the curve is covered
    low, high = ax.get_ylim()
    assert steps_of(ax)[0][0].min() > low + heights.max() * (high - low)


def test_missing_values_have_a_line():
    X = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0] * 20})
    y = X["a"].fillna(9)
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(X, y)
    explainer = MeasureExplainer(model, PartialDependence() - Expectation()).fit(X)
    curve = explainer.curve("a")
    ax = plot.curve(curve, data=X["a"])
    (text,) = [t for t in ax.texts if t.get_text() == "missing"]
    assert text.xy[1] == curve([np.nan])[0]
    assert not plot.curve(curve, data=X["a"].dropna()).texts  # nothing is missing there


def test_thin_support_is_shaded(tree):
    data = np.array([1.0, 2.0, 3.0, 4.0, 4.0, np.nan])
    support = np.array([10.0, 50.0, 29.0, 12.0, 12.0, 1.0])
    curve = Curve("x", ("prediction",), Evaluated(lambda v: np.c_[v], np.array([0.0, 5.0])))
    ax = plot.curve(curve, data=data, support=support)
    (shade,) = ax.collections
    spans = [path.get_extents() for path in shade.get_paths()]
    assert [(s.x0, s.x1) for s in spans] == [(0.0, 1.5), (2.5, 5.0)]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["fewer than 30 rows behind"]
    assert plot.curve(curve, data=data, support=np.full(6, 30.0)).get_legend() is None
    with pytest.raises(ValueError, match="support has shape"):
        plot.curve(curve, data=data, support=support[:2])
    with pytest.raises(ValueError, match="support needs data"):
        plot.curve(curve, support=support)


def levels_curve(values, missing=None, other=None, **more):
    """The curve of a dict of levels; `missing` and `other` are the values of what is no level."""

    def function(asked):
        found = [missing if pd.isna(v) else values.get(v, other) for v in asked]
        return np.array(found, float)[:, None]

    gone = [] if missing is None else [None]
    rest = [] if other is None else ["not there"]
    return Curve("c", ("prediction",), EvaluatedLevels(function, list(values), gone, rest), **more)


def test_levels_are_bars():
    first = levels_curve({"a": 1.0, "$b$": -2.0}, missing=0.5, other=0.1)
    ax = plot.curve(first, data=["a", "a", "new", None, "$b$"], support=[50, 50, 3, 4, 50])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "$b$", "missing", "any other"]
    bars, strip = ax.containers
    assert [bar.get_height() for bar in bars] == [1.0, -2.0, 0.5, 0.1]
    heights = np.array([bar.get_height() for bar in strip])
    np.testing.assert_allclose(heights / heights.max(), [1, 0.5, 0.5, 0.5])
    (shade,) = ax.collections
    assert [path.get_extents().x0 for path in shade.get_paths()] == [1.5, 2.5]
    assert "20.0 % missing" in ax.get_xlabel()
    saved(ax)


def test_levels_stand_in_their_order_or_by_size():
    def names(curve, data=None):
        return [t.get_text() for t in plot.curve(curve, data=data).get_xticklabels()]

    sizes = {"good": 1.0, "fair": 3.0, "poor": 2.0}
    assert names(levels_curve(sizes, missing=9.0)) == ["fair", "poor", "good", "missing"]
    ordered = ["poor", "fair", "good"]
    assert names(levels_curve(sizes, missing=9.0, order=tuple(ordered))) == [*ordered, "missing"]
    column = pd.Series(["good", "poor"], dtype=pd.CategoricalDtype(ordered, ordered=True))
    assert names(levels_curve(sizes, missing=9.0), column) == ordered
    assert names(levels_curve({3: 1.0, 20: 2.0, 1: 9.0})) == ["1", "3", "20"]
    assert names(levels_curve({True: 1.0, False: 2.0}, order=(False, True))) == ["False", "True"]


def test_ordered_categories_keep_their_order_through_an_encoder():
    words = ["poor", "fair", "good", "excellent"]
    X = pd.DataFrame({"c": pd.Categorical(words * 10, words, ordered=True)})
    encoder = make_column_transformer((OrdinalEncoder(), ["c"]))  # in the order of the alphabet
    model = make_pipeline(encoder, DecisionTreeRegressor()).fit(X, X["c"].cat.codes % 3)
    for frame in (X, pl.DataFrame({"c": pl.Series(words * 10, dtype=pl.Enum(words))})):
        explainer = MeasureExplainer(model.fit(frame, X["c"].cat.codes % 3)).fit(frame)
        ax = plot.curve(explainer.curve("c"))
        assert [t.get_text() for t in ax.get_xticklabels()][:4] == words


def test_missing_and_any_other_are_drawn_where_they_are_known():
    def names(data, **more):
        curve = levels_curve({"a": 1.0}, missing=2.0, other=3.0, **more)
        return [t.get_text() for t in plot.curve(curve, data=data).get_xticklabels()]

    assert names(["a", "a"]) == ["a"]
    assert names(["a", None]) == ["a", "missing"]
    assert names(["a", "new"]) == ["a", "any other"]
    assert names(["new", None]) == ["a", "missing", "any other"]
    assert names(None) == ["a", "missing", "any other"]  # nobody knows
    assert names(None, missing_seen=False) == ["a", "any other"]
    assert names(None, missing_seen=True) == ["a", "missing", "any other"]


def test_curves_know_whether_the_background_misses_values():
    X = pd.DataFrame({"a": [1.0, np.nan] * 20, "b": np.arange(40.0), "c": [True, False] * 20})
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2).fit(X, X["b"])
    explainer = MeasureExplainer(model).fit(X)
    seen = {name: explainer.curve(name).missing_seen for name in X}
    assert seen == {"a": True, "b": False, "c": False}
    assert "missing" in {t.get_text() for t in plot.curve(explainer.curve("a")).texts}
    assert not plot.curve(explainer.curve("b")).texts  # though the model would take it
    batches = MeasureExplainer(model).partial_fit(X[["a", "b", "c"]].dropna()).partial_fit(X)
    assert batches.curve("a").missing_seen


BOOLEANS = {
    "bool": pd.Series([True, False, True, True] * 10),
    "object": pd.Series([True, False, True, True] * 10, dtype=object),
    "object with holes": pd.Series([True, False, None, True] * 10, dtype=object),
    "nullable": pd.Series([True, False, None, True] * 10, dtype="boolean"),
}


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("kind", BOOLEANS)
def test_booleans_are_two_levels(kind, encoded):
    X = pd.DataFrame({"b": BOOLEANS[kind], "n": np.arange(40.0)})
    trees = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2)
    encoder = make_column_transformer((OrdinalEncoder(), ["b"]), remainder="passthrough")
    model = (make_pipeline(encoder, trees) if encoded else trees).fit(X, np.arange(40.0) % 4)
    explainer = MeasureExplainer(model).fit(X)
    curve = explainer.curve("b")
    table = curve.to_frame().set_index("level")["value"]
    assert curve.kind == "levels" and list(table.index)[:2] == [False, True]
    values = explainer.explain(X).to_frame()["b"]
    missing = X["b"].isna()
    for level in (False, True):
        np.testing.assert_allclose(values[~missing & (X["b"] == level)], table[level])
    if missing.any():
        np.testing.assert_allclose(values[missing], table["missing"])
    for data in (X["b"], None):
        ax = plot.curve(curve, data=data)
        words = ["False", "True", "missing"][: 3 if missing.any() else 2]
        assert [t.get_text() for t in ax.get_xticklabels()] == words
    saved(plot.beeswarm(explainer.explain(X)))


def test_many_levels_that_are_dates_are_points_on_their_axis():
    days = list(pd.date_range("2022-01-01", periods=300))
    sizes = {day: float(i) for i, day in enumerate(days)}
    curve = levels_curve(sizes, missing=3.0, other=4.0)
    ax = plot.curve(curve, data=days[:50])
    (points,) = ax.lines[:1]
    np.testing.assert_allclose(points.get_xdata(), date2num(days))
    np.testing.assert_allclose(points.get_ydata(), np.arange(300.0))
    assert points.get_linestyle() == "None" and not ax.texts
    late = plot.curve(curve, data=[days[0] - pd.Timedelta(days=9), None])
    assert [t.get_text() for t in late.texts] == ["missing", "any other"]
    saved(ax)


def test_curves_together(tree, diabetes):
    X = diabetes[0]
    uniform = MeasureExplainer(tree.estimator, "uniform").fit(X)
    pair = {"joint": tree.curve("bmi"), "uniform": uniform.curve("bmi")}
    for ax in (plot.curve(pair), plot.curve(list(pair.values()), labels=list(pair))):
        assert [t.get_text() for t in ax.get_legend().get_texts()] == ["joint", "uniform"]
        assert len(steps_of(ax)) == 2
    two = plot.curve([levels_curve({"a": 1.0, "b": 2.0}), levels_curve({"b": 3.0, "c": 4.0})])
    assert [t.get_text() for t in two.get_xticklabels()] == ["c", "b", "a"]
    assert [[bar.get_height() for bar in side] for side in two.containers] == [[2, 1], [4, 3]]


def test_levels_called_missing_are_told_from_what_is_missing():
    names = {"missing": 1.0, "any other": 2.0}
    ax = plot.curve(levels_curve(names, missing=3.0, other=4.0), data=["missing", None, "x", "x"])
    shown = [t.get_text() for t in ax.get_xticklabels()]
    assert shown == ["'any other'", "'missing'", "missing", "any other"]  # by size
    bars, strip = ax.containers
    assert [bar.get_height() for bar in bars] == [2.0, 1.0, 3.0, 4.0]
    heights = np.array([bar.get_height() for bar in strip])
    np.testing.assert_allclose(heights / heights.max(), [0, 0.5, 0.5, 1])


def test_what_cannot_be_drawn_together(tree):
    plt.close("all")
    with pytest.raises(ValueError, match=r"of one column, got \['bmi', 'age'\]"):
        plot.curve([tree.curve("bmi"), tree.curve("age")])
    with pytest.raises(ValueError, match="2 curves, but labels"):
        plot.curve([tree.curve("bmi"), tree.curve("bmi")], labels=["a"])
    numbers = Curve("c", ("prediction",), Evaluated(lambda v: np.c_[v], np.array([0.0, 5.0])))
    with pytest.raises(ValueError, match="levels, line"):
        plot.curve([levels_curve({"a": 1.0}), numbers])
    with pytest.raises(ValueError, match="does not know its offset"):
        plot.curve(numbers, centered=True)
    with pytest.raises(ValueError, match="data of 'c' must be numbers"):
        plot.curve(numbers, data=["a", "b"])
    with pytest.raises(ValueError, match="holds dates, its curve numbers"):
        plot.curve(numbers, data=pd.to_datetime(["2024-01-01"]))
    with pytest.raises(TypeError, match=r"a Curve, such as explainer\.curve"):
        plot.curve([3])
    with pytest.raises(TypeError, match=r"a Curve, such as explainer\.curve"):
        plot.curve([])
    assert plt.get_fignums() == []


@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_dates_are_dates(zone):
    days = pd.Series(pd.date_range("2022-01-01", periods=700, tz=zone))
    numbers = np.arange(700.0)
    points = days.to_numpy() if zone is None else days
    curve = Curve("day", ("prediction",), Evaluated(lambda v: numbers[:, None], points))
    ax = plot.curve(curve, data=days.mask(days.index == 3))
    np.testing.assert_allclose(
        ax.lines[0].get_xdata(), date2num(days.dt.tz_localize(None).to_numpy())
    )
    assert num2date(ax.get_xlim()[0]).year == 2022
    saved(ax)
    assert "2023" in " ".join(t.get_text() for t in ax.get_xticklabels())
    assert "0.1 % missing" in ax.get_xlabel()


def test_functions_of_few_points_and_of_times():
    one = Curve("x", ("prediction",), Evaluated(lambda v: np.ones((len(v), 1)), np.array([3])))
    saved(plot.curve(one, data=[3, 3]))
    waits = pd.to_timedelta([1, 2], unit="D").to_numpy()
    late = Curve("x", ("prediction",), Evaluated(lambda v: np.ones((len(v), 1)), waits))
    ax = plot.curve(late, data=waits)
    assert ax.lines[0].get_xdata().tolist() == [1, 2] and ax.get_xlabel().startswith("x (days)")
    words = np.array(["a", "b"], dtype=object)
    named = Curve("x", ("prediction",), Evaluated(lambda v: np.ones((len(v), 1)), words))
    assert [t.get_text() for t in plot.curve(named).get_xticklabels()] == ["a", "b"]


def test_a_constant_curve_and_infinite_data(diabetes):
    X, y = diabetes
    constant = MeasureExplainer(LinearRegression().fit(X, y), "expectation").fit(X).curve("bmi")
    assert constant.kind == "steps"
    saved(plot.curve(constant))
    saved(plot.curve(constant, data=[np.inf, -np.inf, np.nan, 2.0]))
    saved(plot.curve(constant, data=[5.0]))
    saved(plot.curve(constant, data=[np.nan]))
    saved(plot.curve(constant, data=pl.Series([1, None, 3])))
    saved(plot.curve(constant, data=pd.Series([1, None, 3], dtype="Int64"), centered=False))


def test_names_of_many_levels_are_those_that_matter():
    values = {f"level {i}": float(i) for i in range(300)}
    for data in (None, ["level 7"] * 50 + ["level 150"] * 20 + ["level 299"]):
        ax = plot.curve(levels_curve(values), data=data)
        assert len(ax.containers[0]) == 300
        names = [label.get_text() for label in ax.get_xticklabels()]
        largest = ["level 299"] if data is None else ["level 7", "level 150", "level 299"]
        assert {*largest} < {*names} and 20 < len(names) < 150
        assert_names_apart(ax)
        plt.close(ax.figure)


def test_fifty_levels_all_have_names():
    values = {f"Municipality {i:02d}": float(i % 7) for i in range(50)}
    ax = plot.curve(levels_curve(values))
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert len(names) == 50 and {*names} == {*values}
    heights = [bar.get_height() for bar in ax.containers[0]]
    assert heights == sorted(values.values(), reverse=True)  # by size
    assert_names_apart(ax)


def assert_names_apart(ax):
    saved(ax)
    boxes = sorted((t.get_window_extent() for t in ax.get_xticklabels()), key=lambda box: box.x0)
    assert all(one.x1 <= two.x0 + 1 for one, two in pairwise(boxes))
    assert all(label.get_fontsize() >= 6 for label in ax.get_xticklabels())


# -- scales and outputs --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    return explainer, explainer.explain(X), X


@each
def test_an_output_can_be_chosen(draw, iris):
    plt.close("all")
    with pytest.raises(ValueError, match="no output 'nine'"):
        draw(iris[1], output="nine")
    assert plt.get_fignums() == []
    ax = draw(iris[1], output="2")
    labels = [ax.get_xlabel(), *(a.get_ylabel() for a in ax.figure.axes)]
    assert any("logit of 2" in label for label in labels)


@each
def test_all_outputs_are_drawn(draw, iris):
    """One Axes of stacked bars, or one panel for each output with the same columns."""
    explanation = iris[1]
    drawn = draw(explanation, max_features=3)
    if draw is ALL["bar"]:
        bars = [c for c in drawn.containers if isinstance(c, matplotlib.container.BarContainer)]
        order = list(explanation.importance().index)
        for own, name in zip(bars, ("0", "1", "2"), strict=True):
            wanted = explanation.importance()[name].loc[order]
            wanted = [*wanted[:3], wanted[3:].sum()]
            np.testing.assert_allclose([bar.get_width() for bar in own], wanted)
        ends = [bar.get_x() + bar.get_width() for bar in bars[1]]
        np.testing.assert_allclose([bar.get_x() for bar in bars[2]], ends)
        assert [t.get_text() for t in drawn.get_legend().get_texts()] == ["0", "1", "2", ERROR]
        assert drawn.get_xlabel() == "mean of |attribution, centred| · logit"
        return
    assert isinstance(drawn, np.ndarray) and len(drawn) == 3
    assert [ax.get_title().partition("\n")[0] for ax in drawn] == ["0", "1", "2"]
    assert len({ax.figure for ax in drawn}) == 1
    order = [str(name) for name in explanation.importance().index[:3]]
    if draw is not ALL["waterfall"]:  # which is of one row
        assert y_names(drawn[0]) == [*order, "1 other column"]
    assert set(y_names(drawn[1])) == {""}  # they stand on the left
    saved(drawn[0])
    _, given = plt.subplots(1, 3)
    again = draw(explanation, max_features=3, ax=given)
    assert list(again) == list(given) and y_names(given[2]) == y_names(drawn[0])
    with pytest.raises(ValueError, match=r"ax must be 3 Axes, one for each output.*output="):
        draw(explanation, ax=given[0])


def test_panels_show_their_own_output(iris):
    explanation = iris[1]
    for name, ax in zip("012", plot.beeswarm(explanation), strict=True):
        offsets = [c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)]
        drawn = np.sort(np.concatenate(offsets)[:, 0])
        one = explanation.select(name).centered().values
        np.testing.assert_allclose(drawn, np.sort(one.ravel()))
    for name, ax in zip("012", plot.waterfall(explanation, 4), strict=True):
        one = explanation.select(name).centered().values[4]
        np.testing.assert_allclose(np.sort(widths(ax)[:-1]), np.sort(one))
    axes = plot.heatmap(explanation)
    assert len({ax.images[0].get_clim() for ax in axes}) == 1  # one scale of colours
    for name, ax in zip("012", axes, strict=True):
        one = explanation.select(name)
        first = explanation.feature_names.index(y_names(axes[0])[0])
        wanted = one.centered().values[np.argsort(one.predictions, kind="stable"), first]
        np.testing.assert_allclose(ax.images[0].get_array()[0], wanted)


def test_many_outputs_have_rows_of_panels():
    values = np.random.default_rng(0).normal(size=(20, 3, 7))
    explanation = made(values, outputs=tuple("abcdefg"))
    axes = plot.beeswarm(explanation)
    assert len(axes) == 7 and axes[0].get_gridspec().get_geometry() == (3, 3)
    saved(axes[0])
    bars = plot.bar(explanation)
    assert len({tuple(c[0].get_facecolor()) for c in bars.containers[:7]}) == 7
    saved(bars)


def test_outputs_of_curves(iris):
    explainer, _, X = iris
    curve = explainer.curve(2)
    with pytest.raises(ValueError, match="no output 'nine'"):
        plot.curve(curve, output="nine")
    for output in ("1", 1):
        ((values, edges, _),) = steps_of(plot.curve(curve, output=output))
        middle = (edges[1:] + edges[:-1]) / 2
        np.testing.assert_allclose(values, curve(middle)[:, 1] - explainer.base_value_[1])
    single = explainer.curve(2, output="1")
    np.testing.assert_array_equal(steps_of(plot.curve(single))[0][0], values)
    axes = plot.curve(curve, data=X.iloc[:, 2])
    assert [ax.get_title() for ax in axes] == ["0", "1", "2"]
    assert len({ax.get_ylim() for ax in axes}) == 1
    for o, ax in enumerate(axes):
        ((values, edges, _),) = steps_of(ax)
        middle = (edges[1:] + edges[:-1]) / 2
        np.testing.assert_allclose(values, curve(middle)[:, o] - explainer.base_value_[o])
        assert ax.get_ylabel() == f"attribution, centred · logit of {o}"
    with pytest.raises(ValueError, match=r"same outputs, got \('0', '1', '2'\) and \('1',\)"):
        plot.curve([curve, single])


def test_explanations_of_other_outputs_are_not_compared(iris):
    with pytest.raises(ValueError, match="two explanations of the same outputs"):
        plot.compare(iris[1], iris[1].select("0"))


@pytest.mark.parametrize(
    ("model", "scale", "label"),
    [
        (DecisionTreeClassifier(max_depth=2), "probability", "P(yes)"),
        (GradientBoostingClassifier(n_estimators=2), "log-odds", "log-odds of yes"),
        (LogisticRegression(), "log-odds", "log-odds of yes"),
        # half the log-odds is none
        (GradientBoostingClassifier(n_estimators=2, loss="exponential"), "decision function",
         "decision function of yes"),
        (LinearSVC(), "decision function", "decision function of yes"),
        (PoissonRegressor(), "log of the prediction", "log of the prediction"),
        (DecisionTreeRegressor(max_depth=2), "prediction", "prediction"),
    ],
)  # fmt: skip
def test_the_scale_of_the_output(model, scale, label, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0.2) * 1.0
    if hasattr(model, "predict_proba") or isinstance(model, LinearSVC):
        y = np.where(y > 0, "yes", "no")
    explainer = MeasureExplainer(model.fit(X, y)).fit(X)
    explanation = explainer.explain(X)
    assert explanation.scale == explainer.curve(0).scale == scale
    explanation.save(tmp_path / "e.npz")
    assert Explanation.load(tmp_path / "e.npz").scale == scale
    assert plot.bar(explanation).get_xlabel() == f"mean of |attribution, centred| · {label}"
    assert plot.curve(explainer.curve(0)).get_ylabel() == f"attribution, centred · {label}"


def test_a_function_has_no_known_scale():
    explainer = MeasureExplainer(lambda X: X[:, 0]).fit(np.eye(3))
    assert explainer.explain(np.eye(3)).scale == ""


# -- everything that may happen ------------------------------------------------------------------


@each
@pytest.mark.parametrize("g", [1, 2, 60, 500])
def test_any_number_of_columns(draw, g):
    saved(draw(random(n=30, g=g)))


@each
def test_all_of_many_columns(draw):
    ax = draw(random(n=5, g=500), max_features=500)
    assert len(y_names(ax)) == 500
    assert max(ax.figure.get_size_inches() * 100) < 2**16


@each
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_few_rows_and_constant_values(draw, n, value):
    explanation = made(np.full((n, 3), value), predictions=np.zeros(n))
    saved(draw(explanation))
    saved(draw(explanation, centered=False, max_features=1))


@each
def test_hostile_names_are_drawn_as_they_are(draw):
    labels = pd.Index(HOSTILE, dtype=object)  # strings of pyarrow hold no surrogates
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(9, len(HOSTILE))), columns=labels)
    values = np.tile(-np.arange(len(HOSTILE)) - 1.0, (9, 1))[:, ::-1]
    explanation = made(values, data, outputs=(r"$\bad$",), scale="log-odds")
    ax = draw(explanation)
    names = [text.partition(" = ")[0] for text in y_names(ax)]
    assert names[:7] == HOSTILE[:7] or len(names) == 13  # the waterfall sums some up
    assert set(names[:7]) <= {*HOSTILE}
    assert not any(label.get_parse_math() for label in ax.get_yticklabels())
    texts = " ".join(a.get_xlabel() + a.get_ylabel() for a in ax.figure.axes)
    assert r"log-odds of $\bad$" in texts
    saved(ax)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_curves(name):
    one = Curve(name, (name,), Evaluated(lambda v: np.c_[v], np.array([0.0, 5.0])), scale="logit")
    ax = plot.curve([one, one], labels=[name, "b"], data=[1.0, 2.0])
    assert ax.get_xlabel() == drawing.shorten(name) + "\n2 rows"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [drawing.shorten(name, 60), "b"]
    saved(ax)
    saved(plot.curve(levels_curve({name: 1.0})))


def test_names_are_short():
    assert drawing.shorten("a" * 40 + "b" * 40) == "a" * 16 + "…" + "b" * 15
    assert drawing.shorten("a" * 32) == "a" * 32
    assert drawing.shorten("a\nb\x00") == r"a\nb\x00"
    assert drawing.shorten(("a", 1)) == "('a', 1)"


@each
def test_groups(draw, diabetes):
    X, y = diabetes
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    explainer = MeasureExplainer(model, groups={"blood": ["s1", "s2", "s5"]}).fit(X)
    ax = draw(explainer.explain(X))
    assert any(name.startswith("blood") for name in y_names(ax))
    if draw is ALL["waterfall"]:
        assert "blood (3 columns)" in y_names(ax)
    if draw is ALL["beeswarm"]:
        assert [t.get_text() for t in ax.get_legend().get_texts()] == ["no order"]
    saved(ax)


@each
def test_duplicated_and_unusual_labels(draw):
    data = pd.DataFrame(np.ones((4, 4)), columns=["a", "a", 3, ("b", 1)])
    names = y_names(draw(made(np.arange(16.0).reshape(4, 4), data)))
    assert sorted(name.partition(" = ")[0] for name in names) == ["('b', 1)", "3", "a", "a"]


@each
def test_polars_and_missing_data(draw):
    data = pl.DataFrame({"a": [1.0, None, 3.0], "b": ["x", None, "z"], "c": [True, False, None]})
    saved(draw(made(np.arange(9.0).reshape(3, 3), data)))


@each
def test_offsets_of_every_value(draw):
    offset = np.random.default_rng(1).normal(size=(50, 4))
    saved(draw(random(offset=offset, predictions=np.ones(50))))


def test_importance_is_that_of_an_offset_of_every_value():
    offset = np.random.default_rng(1).normal(size=(50, 4))
    explanation = random(offset=offset)
    np.testing.assert_allclose(widths(plot.bar(explanation)), explanation.importance())


@each
def test_axes_of_the_user(draw):
    figure, axes = plt.subplots(1, 2)
    assert draw(random(), ax=axes[1]) is axes[1]
    assert axes[1].figure is figure and len(plt.get_fignums()) == 1
    assert not axes[0].has_data()
    subfigure = plt.figure().subfigures(1, 2)[0]
    ax = subfigure.subplots()
    assert draw(random(), ax=ax) is ax
    saved(axes[1])


@each
def test_one_new_figure_and_never_shown(draw, monkeypatch):
    monkeypatch.setattr(plt, "show", partial(pytest.fail, "shown"))
    ax = draw(random())
    assert plt.get_fignums() == [ax.figure.number]


@each
def test_styles_of_the_user(draw):
    with plt.style.context(["dark_background", {"font.size": 7}]):
        ax = draw(random())
        saved(ax)
        assert ax.get_facecolor() == (0, 0, 0, 1)
        assert ax.get_yticklabels()[0].get_fontsize() == 7


@each
def test_what_is_refused(draw):
    for wrong in (0, -1, 2.5, True, None):
        with pytest.raises(ValueError, match="max_features"):
            draw(random(), max_features=wrong)
    with pytest.raises(TypeError, match=r"explain\(X\) returns; got <ndarray of shape \(3, 3\)>"):
        draw(np.ones((3, 3)))
    with pytest.raises(ValueError, match="no rows to draw"):
        draw(made(np.empty((0, 2))))
    assert plt.get_fignums() == []


def test_counts_are_refused():
    with pytest.raises(ValueError, match="max_points=0"):
        plot.beeswarm(random(), max_points=0)
    with pytest.raises(ValueError, match="max_rows=0"):
        plot.heatmap(random(), max_rows=0)


def test_matplotlib_is_imported_when_drawing_and_named_where_missing():
    program = """
import sys
import skattr, numpy as np
assert "matplotlib" not in sys.modules
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("blocked " + name, name=name)
sys.meta_path.insert(0, Blocked())
explanation = skattr.MeasureExplainer(lambda X: X[:, 0]).fit(np.eye(3)).explain(np.eye(3))
try:
    skattr.plot.bar(explanation)
except ImportError as error:
    assert "pip install 'skattr[plot]'" in str(error), error
else:
    raise SystemExit("no word about matplotlib")
"""
    done = run_code(program)
    assert done.returncode == 0, done.stderr


def test_values_of_single_numbers_are_points():
    X = np.column_stack([np.tile([1.0, 2.0, 4.0], 20), np.arange(60.0)])
    tree = DecisionTreeRegressor(max_depth=3).fit(X, X.sum(axis=1))
    explainer = MeasureExplainer(tree, Conditional()).fit(X)
    ax = plot.curve(explainer.curve("x0"), data=X[:, 0], centered=False)
    (points,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(points.get_xdata(), [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(points.get_ydata(), explainer.curve("x0")([1.0, 2.0, 4.0]))
    plt.close(ax.figure)


@pytest.mark.parametrize("width", [3.5, 7])
@pytest.mark.parametrize("size", [1.234e-4, 0.0137, 1, 123456.7])
@each
def test_labels_of_ticks_do_not_touch(draw, size, width):
    rng = np.random.default_rng(0)
    figure, ax = plt.subplots(figsize=(width, 3), layout="constrained")
    draw(made(size * rng.uniform(-1, 1, (20, 3)), names=["a", "b", "a rather long name"]), ax=ax)
    assert_apart(figure, ax)


@pytest.mark.parametrize("size", [1.234e-4, 123456.7])
def test_labels_of_a_curve_do_not_touch(size):
    x = size * np.arange(1.0, 20)
    curve = Curve("x", ("prediction",), Evaluated(lambda v: np.asarray(v)[:, None], x), None)
    figure, ax = plt.subplots(figsize=(3, 3), layout="constrained")
    plot.curve(curve, centered=False, ax=ax)
    assert_apart(figure, ax)


def assert_apart(figure, ax):
    figure.canvas.draw()
    low, high = sorted(ax.get_xlim())
    labels = [label for label in ax.get_xticklabels() if low <= label.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    assert boxes or not len(ax.get_xticks())
    assert all(one.x1 < two.x0 for one, two in pairwise(sorted(boxes, key=lambda box: box.x0)))


def test_ticks_of_the_user_stay():
    _, ax = plt.subplots()
    ax.xaxis.set_major_locator(matplotlib.ticker.MultipleLocator(0.5))
    plot.bar(made([[1.0, 2.0]]), ax=ax)
    assert isinstance(ax.xaxis.get_major_locator(), matplotlib.ticker.MultipleLocator)


@pytest.mark.parametrize("width", [5.4, 7.2])
@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_a_waterfall_is_not_cut_off(width, gap):
    values = np.array([[0.2, -0.006224, -0.0008349, 0.1, 1e-5]])
    explanation = made(values, base_value=0.1, predictions=np.array([0.1 + values.sum() + gap]))
    figure, ax = plt.subplots(figsize=(width, 4), layout="constrained")
    plot.waterfall(explanation, 0, ax=ax)
    figure.canvas.draw()
    whole, inside = figure.bbox, ax.get_window_extent()
    title = ax.title.get_window_extent()
    assert whole.x0 <= title.x0 and title.x1 <= whole.x1
    for text in ax.texts:
        box = text.get_window_extent()
        assert inside.x0 <= box.x0 and box.x1 <= whole.x1, text.get_text()


# -- explanations whose offset is approximate, or another for each value -------------------------


def test_errors_of_centred_values():
    values = np.array([[1.0, -4.0], [3.0, 4.0], [2.0, 10.0]])
    raw, centred = np.full((3, 2), 0.5), np.full((3, 2), 0.125)
    explanation = made(values, std_error=raw, centered_error=centred, offset=1.0)
    alone = made(values, offset=1.0)
    for is_centred, error in ((True, 0.125), (False, 0.5)):
        expected = np.hypot(half_widths(plot.bar(alone, centered=is_centred)), error)
        drawn = half_widths(plot.bar(explanation, centered=is_centred))
        np.testing.assert_allclose(drawn, expected)
        drawn = half_widths(plot.waterfall(explanation, 0, centered=is_centred))
        np.testing.assert_allclose(drawn, error)
        ax = plot.compare(explanation, alone, centered=is_centred)
        found = [c for c in ax.containers if isinstance(c, matplotlib.container.ErrorbarContainer)]
        sides = [np.ptp(s[:, 0]) / 2 for bars in found for s in bars.lines[2][0].get_segments()]
        np.testing.assert_allclose(sides[:2], np.hypot(sides[2:], error))
    centred_once = explanation.centered()
    np.testing.assert_allclose(half_widths(plot.waterfall(centred_once, 0)), 0.125)
    given = made(values, std_error=raw, offset=1.0).centered()  # nobody knows of others
    assert np.array_equal(given.std_error, raw)


def test_offsets_of_the_shape_of_values():
    offset = np.arange(6.0).reshape(3, 2)
    values = np.array([[1.0, -4.0], [3.0, 4.0], [2.0, 10.0]])
    explanation = made(values + offset, offset=offset, predictions=np.arange(3.0))
    plain = made(values, predictions=np.arange(3.0))
    assert np.array_equal(widths(plot.bar(explanation)), widths(plot.bar(plain)))
    for draw in (plot.beeswarm, plot.heatmap, partial(plot.waterfall, row=1),
                 partial(plot.compare, plain)):  # fmt: skip
        draw(explanation)


# -- nothing is cut off, and numbers can be read -------------------------------------------------


def texts_drawn(figure):
    """Return all texts that are drawn, without ticks beyond the limits of their axis."""
    figure.canvas.draw()
    hidden = set()
    for ax in figure.axes:
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            low, high = sorted(limits)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                    hidden |= {tick.label1, tick.label2}
    found = figure.findobj(matplotlib.text.Text)
    return [t for t in found if t.get_visible() and t.get_text().strip() and t not in hidden]


def assert_whole(ax):
    """Check that a plain savefig cuts nothing off."""
    figure = (ax.flat[0] if isinstance(ax, np.ndarray) else ax).figure
    texts = texts_drawn(figure)
    assert texts
    for text in texts:
        box = text.get_window_extent()
        inside = box.x0 >= -0.5 and box.y0 >= -0.5
        inside &= box.x1 <= figure.bbox.x1 + 0.5 and box.y1 <= figure.bbox.y1 + 0.5
        assert inside, (text.get_text(), box, figure.bbox)


LONG = [f"a column of a name that does not end so soon, number {i}" for i in range(4)]


@each
@pytest.mark.parametrize("size", [1.2345e-3, 7.1, 123_456.7, 9.87e8])
@pytest.mark.parametrize("k", [1, 3])
def test_nothing_is_cut_off(draw, size, k):
    rng = np.random.default_rng(0)
    values = size * rng.normal(size=(30, 4, k)) * [[[1.0]], [[0.5]], [[0.1]], [[0.01]]][0]
    values = values[:, :, 0] if k == 1 else values
    outputs = ("prediction",) if k == 1 else ("a class of a long name, too", "b", "c")
    data = pd.DataFrame(
        {LONG[0]: rng.normal(size=30), LONG[1]: rng.choice(["x" * 40, "y"], 30),
         LONG[2]: rng.random(30) < 0.5, LONG[3]: pd.date_range("2024-01-01", periods=30)}
    )  # fmt: skip
    for gap in (0.0, size):
        predictions = 12 * size + values.sum(axis=1) + gap
        base = 12 * size if k == 1 else np.full(k, 12 * size)
        more = {"base_value": base, "predictions": predictions, "outputs": outputs}
        assert_whole(draw(made(values, data, **more)))
    assert_whole(draw(made(values, data, std_error=np.abs(values), **more), max_features=2))


@pytest.mark.parametrize("size", [1.2345e-3, 123_456.7])
def test_no_curve_is_cut_off(size, tree, diabetes):
    names = {f"level of a long name {i}": size * np.sin(i) for i in range(60)}
    for n in (2, 8, 20, 60):
        curve = levels_curve(dict(list(names.items())[:n]) | {"missing": 2 * size})
        curve.feature = LONG[0]
        assert_whole(plot.curve(curve))
        assert_whole(plot.curve([curve, curve], data=[*[*names][:n], None]))
    days = pd.date_range("2022-01-01", periods=700).to_numpy()
    numbers = size * np.arange(700.0)[:, None]
    assert_whole(plot.curve(Curve("day", ("y",), Evaluated(lambda v: numbers, days))))
    assert_whole(plot.curve(tree.curve("bmi"), data=diabetes[0]["bmi"]))


def test_prices_have_separators_and_no_exponents(diabetes):
    X, y = diabetes
    X = X.assign(price=1e5 + 1e3 * X["s1"], built=1900 + X["age"].round())
    y = 136_500 + 900 * y + 0.5 * X["price"]
    explainer = MeasureExplainer(DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)).fit(
        X
    )
    explanation = explainer.explain(X)
    price = r"[+−]?\d{1,3}(,\d{3})*(\.\d+)?"
    for ax in (plot.bar(explanation), plot.waterfall(explanation, 0)):
        bars = [text.get_text() for text in ax.texts]
        assert bars and all(re.fullmatch(price, text) for text in bars)
    title = plot.waterfall(explanation, 0).get_title().replace("\n", " ")
    whole = rf"prediction {price} = {price} [+−] {price} attributed [+−] {price} interactions"
    assert re.fullmatch(whole, title)
    assert f"{round(explanation.predictions[0]):,}" in title
    assert f"price = {round(X['price'].iloc[0]):,}" in y_names(plot.waterfall(explanation, 0))
    for draw in ALL.values():
        ax = draw(explanation)
        assert not [t for t in texts_drawn(ax.figure) if re.search(r"\de[+−-]?\d", t.get_text())]
    years = plot.curve(explainer.curve("built"), data=X["built"])
    assert "1940" in [t.get_text() for t in texts_drawn(years.figure)]
    prices = plot.curve(explainer.curve("price"), data=X["price"])
    assert "300,000" in [t.get_text() for t in texts_drawn(prices.figure)]
    bmi = plot.curve(explainer.curve("bmi"))
    assert "20,000" in [t.get_text() for t in bmi.get_yticklabels()]


def test_a_waterfall_that_adds_up_names_both_ends(diabetes):
    X, y = diabetes
    explainer = MeasureExplainer(LinearRegression().fit(X, 1000 * y)).fit(X)
    explanation = explainer.explain(X)
    ax = plot.waterfall(explanation, 7)
    marks = {t.get_text(): t.xy[0] for t in ax.texts if "\n" in t.get_text()}
    mean, end = explainer.base_value_, explanation.predictions[7]
    assert marks == {
        f"mean prediction\n{mean:,.0f}": pytest.approx(mean),
        f"prediction\n{end:,.0f}": end,
    }
    saved(ax)
    above = max(t.get_window_extent().y1 for t in ax.texts if "\n" in t.get_text())
    assert ax.title.get_window_extent().y0 >= above
    uniform = MeasureExplainer(explainer.estimator, Uniform()).fit(X).explain(X)
    assert any(t.get_text().startswith("reference\n") for t in plot.waterfall(uniform, 7).texts)


def test_the_beeswarm_names_common_levels():
    rng = np.random.default_rng(0)
    kinds = np.array(["Old Town", "Mill", "Quarry"])[rng.choice(3, 200, p=[0.6, 0.3, 0.1])]
    place = {"Old Town": -1.0, "Mill": 1.0, "Quarry": 1.001}
    values = np.column_stack([[place[kind] for kind in kinds], rng.uniform(-1, 1, 200)])
    data = pd.DataFrame({"district": kinds, "n": rng.normal(size=200)})
    ax = plot.beeswarm(made(values, data))
    names = {t.get_text(): t.xy[0] for t in ax.texts}
    assert names == {"Old Town": -1.0, "Mill": 1.0}  # where Mill stands there is no room for Quarry


def test_legends_say_measures_in_words(diabetes):
    X, y = diabetes
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    measures = [PartialDependence() - Expectation(), "conditional_effect", Conditional("gaussian")]
    fitted = [MeasureExplainer(model, m, tol=0.5, random_state=0).fit(X) for m in measures]
    words = ["main effect", "conditional effect", "conditional (gaussian)"]
    explanations = [explainer.explain(X[:5]) for explainer in fitted]
    assert [e.measure_name for e in explanations] == words
    ax = plot.compare(*explanations[:2])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [*words[:2], ERROR]
    ax = plot.curve([explainer.curve("bmi") for explainer in fitted[:2]])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == words[:2]
    twice = plot.curve([fitted[0].curve("bmi")] * 2)
    assert [t.get_text() for t in twice.get_legend().get_texts()] == ["curve 1", "curve 2"]


def test_dates_that_the_model_ignores():
    """Such a curve has no jump, and takes the axis of the data."""
    X = pd.DataFrame({"a": np.arange(30.0), "day": pd.date_range("2024-01-01", periods=30)})
    numbers = make_column_transformer(("passthrough", ["a"]))
    model = make_pipeline(numbers, DecisionTreeRegressor(max_depth=2)).fit(X, X["a"])
    curve = MeasureExplainer(model).fit(X).curve("day")
    assert curve.kind == "steps"
    ax = plot.curve(curve, data=X)
    ax.figure.canvas.draw()
    assert "2024" in ax.xaxis.get_major_formatter().get_offset()


def test_levels_whose_curve_is_constant():
    """Such a curve has one step, and takes the levels of the data."""
    X = pd.DataFrame({"a": np.arange(30.0), "c": ["x", "y", None] * 10})
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough"),
        KNeighborsRegressor(),
    ).fit(X, X["a"])
    explainer = MeasureExplainer(model, "expectation", folds=5).fit(X)
    curve = explainer.curve("c")
    for band in (None, "background"):
        ax = plot.curve(curve, data=X, band=band, centered=False)
        names = [label.get_text() for label in ax.get_xticklabels()]
        assert names == ["x", "y", "missing"]
        heights = [bar.get_height() + bar.get_y() for bar in ax.patches[:3]]
        np.testing.assert_allclose(heights, explainer.base_value_)
