"""`plot.slices`: points are the numbers of `by_slice`, and the legend says which error it is."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, plot
from skattr.metrics import by_slice
from tests.helpers.hostile import HOSTILE
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
N = 60
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "b": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        "c": RNG.integers(0, 3, N),
    },
    index=np.zeros(N, int),
)
TREE = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X["a"] - X["c"])
EXPLANATION = MeasureExplainer(TREE).fit(X).explain(X)
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0)
CLASSES = MeasureExplainer(FOREST.fit(X, np.digitize(X["a"], [-0.5, 0.5]))).fit(X).explain(X)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def points(ax):
    """Return places, numbers and ends of error bars of each slice."""
    result = []
    for container in ax.containers:
        line, _, (bars,) = container
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        result.append((line.get_xdata(), ends))
    return result


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("by", ["b", "c"])
@pytest.mark.parametrize("what", quickly(["mean", "importance"], ["mean"]))
@pytest.mark.parametrize("explanation", [EXPLANATION, CLASSES], ids=["one", "classes"])
def test_points_and_bars_are_those_of_the_table(explanation, what, by):
    axes = np.atleast_1d(plot.slices(explanation, by, what=what))
    value, error = ("mean_value", "mean_row_error") if what == "mean" else (
        "importance", "importance_row_error")  # fmt: skip
    for ax, output in zip(axes, explanation.output_names, strict=True):
        frame = by_slice(explanation, by)
        frame = frame[frame["output"] == output]
        for (x, ends), (_, part) in zip(
            points(ax), frame.groupby("slice", sort=False), strict=True
        ):
            np.testing.assert_allclose(x, part[value])
            np.testing.assert_allclose(ends[:, 0], part[value] - part[error], atol=1e-12)
            np.testing.assert_allclose(ends[:, 1], part[value] + part[error], atol=1e-12)
        # the order of columns is that of all outputs
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert names == list(explanation.importance().index)
    legend = words(axes[-1])
    assert "± 1 standard error over the rows of a slice" in legend
    assert axes[-1].get_legend().get_title().get_text() == by
    rows = by_slice(explanation, by).drop_duplicates("slice")["rows"]
    for text, n in zip(legend, rows, strict=False):
        assert text.endswith(f", {n} rows")
    assert ("missing, " in "".join(legend)) == (by == "b")
    assert f"mean of {'|' * (what == 'importance')}attribution" in axes[0].get_xlabel()


def test_only_the_largest_are_drawn_and_it_is_said():
    labels = np.repeat(list("abcdef"), [3, 30, 2, 20, 4, 1])
    ax = plot.slices(EXPLANATION, labels, max_slices=2)
    assert words(ax) == [
        "b, 30 rows", "d, 20 rows", "± 1 standard error over the rows of a slice",
        "4 smaller slices are not drawn",
    ]  # fmt: skip
    assert "1 smaller slice is not drawn" in words(plot.slices(EXPLANATION, labels, max_slices=5))
    assert ax.get_legend().get_title().get_text() == ""
    assert len(plot.slices(EXPLANATION, labels, max_features=1).get_yticks()) == 1


def test_a_slice_of_one_row_has_no_bar():
    ax = plot.slices(EXPLANATION[:1], "a")
    ((x, ends),) = points(ax)
    np.testing.assert_array_equal(ends, np.column_stack([x, x]))
    ax.figure.canvas.draw()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph")  # the font lacks some
def test_hostile_names():
    names = list(dict.fromkeys(HOSTILE))[40 : 40 + N]
    frame = pd.DataFrame(RNG.normal(size=(N, len(names))), columns=pd.Index(names, dtype=object))
    explanation = MeasureExplainer(lambda Z: np.asarray(Z, float).sum(axis=1)).fit(frame[:3])
    explanation = explanation.explain(frame)
    for by in ("$x_1$", names, pd.Series(names, frame.index, object, "$\\bad$")):
        ax = plot.slices(explanation, by, max_slices=N, max_features=3)
        ax.figure.canvas.draw()


def test_axes_of_the_user_and_one_output():
    _, given = plt.subplots()
    assert plot.slices(CLASSES, "c", output="1", ax=given) is given
    assert "P(1)" in given.get_xlabel()
    with pytest.raises(ValueError, match="ax must be 3 Axes"):
        plot.slices(CLASSES, "c", ax=given)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"what": "median"}, r"what must be one of \['mean', 'importance'\], got 'median'"),
        ({"max_slices": 0}, "max_slices=0 must be"),
        ({"max_features": 1.5}, "max_features=1.5 must be"),
        ({"output": "x"}, "there is no output 'x'"),
        ({"bins": 1, "by": "a"}, "bins must be at least 2"),
        ({"by": "z"}, "there is no column 'z'"),
    ],
)
def test_bad_input(options, match):
    with pytest.raises(ValueError, match=match):
        plot.slices(EXPLANATION, **{"by": "c"} | options)
    with pytest.raises(TypeError, match="must be an Explanation"):
        plot.slices(X, "a")
