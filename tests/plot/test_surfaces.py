"""Surfaces and interactions: what is drawn is what the surface says."""

import itertools

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.patches import StepPatch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

import skattr
from skattr import MeasureExplainer, plot
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
N = 200
X = pd.DataFrame({
    "number": RNG.normal(size=N).round(2),
    "other": RNG.normal(size=N),
    "level": pd.Categorical(RNG.choice([f"l{i}" for i in range(9)], N)),
    "few": pd.Categorical(RNG.choice(["a", "b"], N)),
    "flag": RNG.random(N) < 0.5,
})  # fmt: skip
X.loc[:19, "number"] = np.nan
Y = X["number"].fillna(2.0) * X["other"] * (1 + X["flag"]) + (X["few"] == "a") * X["other"]
SETTINGS = {"max_iter": 8, "categorical_features": "from_dtype", "min_samples_leaf": 5}
MODEL = HistGradientBoostingRegressor(**SETTINGS).fit(X, Y)
EXPLAINER = MeasureExplainer(MODEL).fit(X)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def meshes(ax):
    """The cells of heat maps: corners and values, without the shades."""
    drawn = [each for each in ax.collections if isinstance(each, QuadMesh)]
    return [each for each in drawn if each.get_cmap().name == "signed"]


@pytest.mark.parametrize("interaction", [False, True])
def test_cells_have_the_values_of_the_surface(interaction):
    surface = EXPLAINER.surface("other", "number")
    ax = plot.surface(surface, data=X, interaction=interaction)
    drawn = surface.interaction() if interaction else surface
    mesh = max(meshes(ax), key=lambda each: each.get_array().size)
    corners, values = mesh.get_coordinates(), mesh.get_array()
    x = (corners[0, :-1, 0] + corners[0, 1:, 0]) / 2
    y = (corners[:-1, 0, 1] + corners[1:, 0, 1]) / 2
    wanted = drawn.grid(x, y) - drawn.offset
    np.testing.assert_allclose(np.reshape(values, wanted.T.shape), wanted.T)
    missing = [each for each in meshes(ax) if each is not mesh]
    assert len(missing) == 1  # a strip of missing numbers
    at = drawn.grid(x, [np.nan])[:, 0] - drawn.offset
    np.testing.assert_allclose(np.ravel(missing[0].get_array()), at)


def test_rows_and_shades():
    ax = plot.surface(EXPLAINER.surface("other", "number"), data=X)
    points = ax.collections[-1].get_offsets()
    assert len(points) == N
    inside = X["number"].notna()
    np.testing.assert_allclose(points[inside, 0], X["other"][inside])
    np.testing.assert_allclose(points[inside, 1], X["number"][inside])
    assert ax.get_xlabel() == "other\n200 rows; shaded: no rows near"
    assert "missing" in [text.get_text() for text in ax.texts]
    lowest, highest = X["other"].min(), X["other"].max()
    assert ax.get_xlim()[0] < lowest and highest < ax.get_xlim()[1]  # whole points


@pytest.mark.parametrize("few", ["few", "flag"])
@pytest.mark.parametrize("first", [True, False])
def test_few_levels_are_lines(few, first):
    both = (few, "other") if first else ("other", few)
    surface = EXPLAINER.surface(*both)
    ax = plot.surface(surface, data=X)
    steps = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(steps) == len(names) == 2 and ax.get_xlabel() == "other"
    for patch, name in zip(steps, names, strict=True):
        data = patch.get_data()
        middle = (data.edges[:-1] + data.edges[1:]) / 2
        text = name.removeprefix(f"{few} = ")
        level = [text == "True" if few == "flag" else text] * len(middle)
        at = surface(level, middle) if first else surface(middle, level)
        np.testing.assert_allclose(data.values, at - surface.offset)


def test_functions_that_are_evaluated_are_lines_without_steps():
    background = X[["few", "other"]][:20]
    explainer = MeasureExplainer(lambda X: X["other"].to_numpy() * (X["few"] == "a")).fit(
        background
    )
    surface = explainer.surface("few", "other")
    ax = plot.surface(surface, data=background)
    assert not ax.patches
    lines = [line for line in ax.lines if len(line.get_xdata()) > 2]
    names = [text.get_text().removeprefix("few = ") for text in ax.get_legend().get_texts()]
    assert len(lines) == len(names) == 2
    for line, name in zip(lines, names, strict=True):
        at = line.get_xdata()
        np.testing.assert_allclose(line.get_ydata(), surface([name] * len(at), at) - surface.offset)


def test_levels_have_names_and_lines_can_be_refused():
    ax = plot.surface(EXPLAINER.surface("level", "few"), data=X)
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert set(names) == {f"l{i}" for i in range(9)}
    heat = plot.surface(EXPLAINER.surface("other", "few"), data=X, lines=False)
    assert meshes(heat)
    with pytest.raises(ValueError, match="needs a column of levels"):
        plot.surface(EXPLAINER.surface("other", "number"), lines=True)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("town", "other"), ("other", "town"), ("few", "town")])
def test_names_of_many_levels_do_not_touch(pair):
    rows = X.assign(town=pd.Categorical([f"Town number {i % 50:02d}" for i in range(N)]))
    model = HistGradientBoostingRegressor(**SETTINGS).fit(rows, Y + rows["town"].cat.codes % 7)
    surface = MeasureExplainer(model).fit(rows).surface(*pair)
    _, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    plot.surface(surface, data=rows, ax=ax)
    ax.figure.canvas.draw()
    axis = ax.xaxis if ax.get_xlabel().startswith("town") else ax.yaxis
    names = [label for label in axis.get_ticklabels() if label.get_text()]
    assert 10 <= len(names) < 50
    assert {name.get_text() for name in names} <= set(rows["town"])
    boxes = sorted(
        (getattr(box, f"{axis.axis_name}0"), getattr(box, f"{axis.axis_name}1"))
        for box in (name.get_window_extent() for name in names)
    )
    assert all(one[1] <= two[0] + 2 for one, two in itertools.pairwise(boxes))


def test_without_data_and_with_other_data():
    ax = plot.surface(EXPLAINER.surface("other", "number"))
    assert meshes(ax) and not [t for t in ax.texts if "rows" in t.get_text()]
    with pytest.raises(ValueError, match="the column 'number'"):
        plot.surface(EXPLAINER.surface("other", "number"), data=X[["other"]])
    with pytest.raises(TypeError, match="must be a Surface"):
        plot.surface(EXPLAINER.curve("other"))


@pytest.mark.slow
def test_dates_and_several_outputs():
    dated = X.assign(day=pd.Timestamp("2026-01-01") + pd.to_timedelta(RNG.integers(0, 90, N), "D"))

    def f(frame):
        days = (frame["day"] - pd.Timestamp("2026-01-01")).dt.days.to_numpy(float)
        other = frame["other"].to_numpy(float)
        return np.column_stack([days * other, other])

    explainer = MeasureExplainer(f).fit(dated[:20])
    axes = plot.surface(explainer.surface("day", "other"), data=dated[:20])
    assert len(axes) == 2
    axes[0].figure.canvas.draw()
    assert len(plot.surface(explainer.surface("other", "day"), output=0).figure.axes) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", [r"$\bad$", "<b>", "new\nline", "x" * 300])
def test_hostile_names(name):
    named = X[["other", "number"]].rename(columns={"other": name})[20:35]
    explainer = MeasureExplainer(lambda X: X.iloc[:, 0].to_numpy() * X.iloc[:, 1].to_numpy())
    explainer.fit(named)
    ax = plot.surface(explainer.surface(0, 1), data=named)
    ax.figure.canvas.draw()
    drawn = plot.interactions(skattr.decompose(explainer, named))
    drawn.figure.canvas.draw()


def test_interactions_as_bars_and_matrix():
    parts = skattr.decompose(EXPLAINER, X)
    strongest = parts.pairs()
    ax = plot.interactions(parts, max_pairs=4)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(list(strongest[:4]))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [f"{a} × {b}" for a, b in strongest.index[:4]]
    drawn, shares = ax.get_xlabel().splitlines()
    assert drawn == "H², 4 of 10 pairs drawn"
    sizes = [text.get_text() for text in ax.texts[:4]]
    assert [float(size) for size in sizes] == pytest.approx(list(strongest[:4]), rel=0.06)
    share = parts.shares["single columns"]
    assert f"single columns {100 * share:.0f} %" in shares
    matrix = plot.interactions(parts, kind="matrix", max_pairs=10)
    values = np.asarray(matrix.images[0].get_array(), float)
    labels = [label.get_text() for label in matrix.get_yticklabels()]
    for (a, b), size in strongest.items():
        assert values[labels.index(a), labels.index(b)] == pytest.approx(size)
        assert values[labels.index(b), labels.index(a)] == pytest.approx(size)


@pytest.mark.parametrize(
    "measure", quickly(["main_effect", "partial_dependence", "shapley"], ["main_effect", "shapley"])
)
@pytest.mark.parametrize("pairs", [None, [("number", "other"), ("few", "flag")]])
@pytest.mark.parametrize("centered", quickly([True, False], [True]))
def test_a_waterfall_of_pairs_begins_with_single_columns(measure, pairs, centered):
    explainer = MeasureExplainer(MODEL, measure).fit(X)
    found = explainer.explain_pairs(X[30:31], pairs=pairs)
    ax = plot.waterfall(found, max_features=3, centered=centered)
    names = [label.get_text() for label in ax.get_yticklabels()]
    sizes = dict(zip(names, [bar.get_width() for bar in ax.patches], strict=True))
    assert "few × flag" in names or pairs is None
    singles = (found.singles.values - found.singles.offset).sum()
    left = found.remainder().iloc[0]
    start = explainer.base_value_
    if measure == "shapley":  # pairs are parts of the values, which add up
        alone = "single columns" if pairs is None else "single columns and other pairs"
        assert left == pytest.approx(0, abs=1e-9) and "not explained" not in ax.get_title()
        assert sizes[alone] == pytest.approx(singles - found.values.sum())
    else:
        assert sizes["single columns"] == pytest.approx(singles)
        assert sizes[found.remainder_name] == pytest.approx(left)
    assert start + sum(sizes.values()) == pytest.approx(found.predictions[0])
    bars = plot.bar(found, max_features=1)
    others = "1 other pair" if pairs else "9 other pairs"
    assert [label.get_text() for label in bars.get_yticklabels()][1] == others


@pytest.mark.slow
def test_interactions_of_classes_and_what_is_refused():
    model = HistGradientBoostingClassifier(**SETTINGS).fit(X, np.digitize(Y, [-0.5, 0.5]))
    explainer = MeasureExplainer(model).fit(X)
    parts = skattr.decompose(explainer, X)
    for panels in (plot.interactions(parts), plot.surface(explainer.surface(0, 1), data=X)):
        assert len(panels) == 3
        panels[0].figure.canvas.draw()
        for ax in panels:  # nothing is written over the name of the class
            title = ax.title.get_window_extent()
            assert ax.get_title() and title.y0 >= ax.bbox.y1
            assert not any(title.overlaps(text.get_window_extent()) for text in ax.texts)
    assert plot.interactions(parts, output=1).get_title() == ""
    with pytest.raises(TypeError, match="must be a Decomposition"):
        plot.interactions(EXPLAINER)
    with pytest.raises(ValueError, match="kind must be one of"):
        plot.interactions(parts, kind="pie")


def test_numbers_of_the_x_axis_do_not_touch():
    prices = pd.DataFrame({"price": RNG.uniform(5e4, 4.5e5, N), "other": X["other"]})
    tree = DecisionTreeRegressor(max_depth=4).fit(prices, prices["price"] * prices["other"])
    surface = MeasureExplainer(tree).fit(prices).surface("price", "other")
    ax = plt.figure(figsize=(6, 4), layout="constrained").add_subplot()
    plot.surface(surface, data=prices, ax=ax)
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    shown = [t for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in shown]
    assert len(boxes) >= 2
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
