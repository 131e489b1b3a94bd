"""Values against their column: what is drawn, and which column colours it."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, plot
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
N = 300
X = pd.DataFrame({
    "own": RNG.normal(size=N),
    "number": RNG.normal(size=N),
    "level": pd.Series(RNG.choice(["red", "green", "blue"], N), dtype=object),
    "noise": RNG.normal(size=N),
    "many": pd.Series(RNG.choice([f"l{i}" for i in range(40)], N), dtype=object),
})  # fmt: skip


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def shapley(f, **more):
    return MeasureExplainer(f, "shapley", verbose=0, **more).fit(X[:30]).explain(X)


def times_number(X):
    return X["own"].to_numpy(float) * X["number"].to_numpy(float)


def times_level(X):
    return X["own"].to_numpy(float) * (X["level"] == "red").to_numpy(float)


def points(ax):
    drawn = [c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)]
    return np.concatenate([part for part in drawn if len(part)])


def colours(ax):
    """The label of the colour bar, and the texts of the legend."""
    bars = [each.get_ylabel() for each in ax.figure.axes if each is not ax]
    legend = ax.get_legend()
    return bars, [] if legend is None else [text.get_text() for text in legend.get_texts()]


def test_points_are_the_values():
    explanation = shapley(times_number)
    ax = plot.scatter(explanation, "own", color=None)
    drawn = points(ax)
    order, wanted = np.argsort(drawn[:, 0]), np.argsort(X["own"])
    np.testing.assert_allclose(drawn[order, 0], X["own"].to_numpy()[wanted])
    np.testing.assert_allclose(drawn[order, 1], explanation.values[wanted, 0])
    assert colours(ax) == ([], [])


@pytest.mark.slow
def test_the_partner_colours_the_points():
    assert colours(plot.scatter(shapley(times_number), "own"))[0] == ["number"]
    assert colours(plot.scatter(shapley(times_number), "number"))[0] == ["own"]
    _, names = colours(plot.scatter(shapley(times_level), "own"))
    assert set(names) == {"level = red", "level = green", "level = blue"}


@pytest.mark.slow
def test_levels_are_places_with_names():
    ax = plot.scatter(shapley(times_level), "level", color="own")
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert set(names) == {"red", "green", "blue"}
    where = np.rint(points(ax)[:, 0]).astype(int)
    assert [np.sum(where == p) for p, _ in enumerate(names)] == [
        (X["level"] == name).sum() for name in names
    ]


def test_booleans_stand_in_their_order():
    X = pd.DataFrame({"flag": [True] * 30 + [False] * 10, "b": RNG.random(40)})
    model = DecisionTreeRegressor(max_depth=3).fit(X, X["flag"] + X["b"])
    ax = plot.scatter(MeasureExplainer(model).fit(X).explain(X), "flag")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["False", "True"]


@pytest.mark.slow
def test_many_levels_do_not_win_by_chance():
    explanation = shapley(lambda X: np.sin(3 * X["own"].to_numpy(float)) * X["number"].to_numpy())
    assert colours(plot.scatter(explanation, "own"))[0] == ["number"]


@pytest.mark.slow
def test_missing_values_stand_beside_the_numbers():
    holes = X.copy()
    holes.loc[:49, "own"] = np.nan
    explanation = MeasureExplainer(
        lambda X: X["own"].fillna(3.0).to_numpy(float) * X["number"].to_numpy(), "shapley"
    ).fit(holes[:30]).explain(holes)  # fmt: skip
    ax = plot.scatter(explanation, "own", color=None)
    at = points(ax)[:, 0]
    assert np.isfinite(at).all() and (at > holes["own"].max()).sum() == 50
    assert "16.7 % missing" in ax.get_xlabel()


@pytest.mark.slow
def test_groups_and_unknown_columns_are_refused():
    explanation = shapley(times_number, groups={"both": ["own", "number"]})
    with pytest.raises(ValueError, match="one axis"):
        plot.scatter(explanation, "both")
    with pytest.raises(ValueError, match="there is no attribution 'nothing'"):
        plot.scatter(explanation, "nothing")
    with pytest.raises(ValueError, match="there is no column 'nothing'"):
        plot.scatter(explanation, "noise", color="nothing")


@pytest.mark.slow
def test_values_of_one_column_alone_have_no_partner():
    explanation = shapley(lambda X: X["own"].to_numpy(float) > 0)
    ignored = plot.scatter(explanation, "noise")  # all values are 0
    assert colours(ignored) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2])
def test_few_rows(n):
    explanation = shapley(times_number)
    for feature in X:
        ax = plot.scatter(explanation[:n], feature)
        assert len(points(ax)) == n


@pytest.mark.parametrize(
    "name", quickly([r"$\bad$", "<b>", "new\nline", "", "x" * 500], [r"$\bad$"])
)
def test_names_are_drawn_as_they_are(name):
    named = X.rename(columns={"own": name, "level": f"{name} level"})
    explanation = MeasureExplainer(lambda X: X.iloc[:, 0].to_numpy(float), "shapley")
    explanation = explanation.fit(named[:10]).explain(named[:20])
    for feature in (name, f"{name} level"):
        ax = plot.scatter(explanation, feature, color=f"{name} level")
        ax.figure.canvas.draw()


@pytest.mark.slow
def test_several_outputs_have_panels():
    explanation = shapley(lambda X: np.column_stack([times_number(X), times_level(X)]))
    axes = plot.scatter(explanation, "own")
    assert len(axes) == 2
    assert len(points(plot.scatter(explanation, "own", output=1))) == N


@pytest.mark.slow
def test_names_of_many_levels_do_not_touch():
    """Of 40 levels as many are named as fit, those of the most rows first."""
    ax = plot.scatter(shapley(times_number), "many")
    ax.figure.draw_without_rendering()
    names = [label for label in ax.get_xticklabels() if label.get_text()]
    boxes = [name.get_window_extent() for name in names]
    assert 10 <= len(names) <= X["many"].nunique()
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert X["many"].value_counts().index[0] in [name.get_text() for name in names]
