"""`plot.ice`: one line per row drawn, the mean of all rows, colours, bad input."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neural_network import MLPRegressor

import skattr
from tests.helpers.lanes import quickly

plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": RNG.normal(size=150),
        "b": RNG.normal(size=150),
        "s": pd.Categorical(np.array(["u", "v"])[RNG.integers(2, size=150)]),
    }
)
MODEL = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(
    X, np.digitize(X["a"] * X["b"], [-0.3, 0.3])
)


@pytest.fixture
def curves():
    yield skattr.MeasureExplainer(MODEL, output="proba").fit(X)
    plt.close("all")


@pytest.mark.parametrize("centered", quickly([False, True], [True]))
@pytest.mark.parametrize("color", quickly([None, "b", "s"], ["b"]))
@pytest.mark.parametrize("feature", ["a", "s"])
def test_lines_and_mean(curves, feature, color, centered):
    family = curves.ice(X, feature).select("1")
    ax = skattr.plot.ice(family, color=color, centered=centered, max_rows=40)
    *rows, mean = ax.get_lines()
    assert len(rows) == 40 and "40 of 150 rows drawn" in ax.get_xlabel()
    at = (
        [label.get_text() for label in ax.get_xticklabels()] if feature == "s" else mean.get_xdata()
    )
    values = family(at)
    values = values - values[:, :1] if centered else values
    np.testing.assert_allclose(mean.get_ydata(), values.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(rows[0].get_ydata(), values[0], atol=1e-12)
    assert "P(1)" in ax.get_ylabel()


def test_levels_stand_by_size_with_names_that_do_not_touch():
    rng = np.random.default_rng(1)
    names = np.array([f"a long name of level {i:02d}" for i in range(40)])
    codes = rng.permutation(np.arange(400) % 40)
    rows = pd.DataFrame({"town": pd.Categorical(names[codes]), "flag": rng.random(400) < 0.5})
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=20)
    explainer = skattr.MeasureExplainer(model.fit(rows, codes + rows["flag"])).fit(rows)
    ax = skattr.plot.ice(explainer.ice(rows[:30], "town"), color="flag")
    means = ax.get_lines()[-1].get_ydata()
    assert len(means) == 40 and (np.diff(means) <= 0).all()
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert boxes and not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["flag = False", "flag = True", "mean of all rows"]
    ax = skattr.plot.ice(explainer.ice(rows[:30], "flag"))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["False", "True"]
    plt.close("all")


def test_networks():
    network = MLPRegressor(hidden_layer_sizes=(5,), tol=1e9, n_iter_no_change=1, random_state=0)
    numbers = X[["a", "b"]]
    explainer = skattr.MeasureExplainer(network.fit(numbers, X["a"])).fit(numbers)
    family = explainer.ice(numbers[:7], "a")
    ax = skattr.plot.ice(family)
    mean = ax.get_lines()[-1]
    np.testing.assert_allclose(mean.get_ydata(), family(mean.get_xdata()).mean(axis=0))
    assert "7 rows" in ax.get_xlabel() and ax.get_ylabel() == "prediction"
    plt.close("all")


def test_bad_input(curves):
    family = curves.ice(X, "a")
    with pytest.raises(ValueError, match="choose output= from"):
        skattr.plot.ice(family)
    assert skattr.plot.ice(family, output="2") is not None
    with pytest.raises(TypeError, match="ice draws Curves"):
        skattr.plot.ice(X)
    with pytest.raises(ValueError, match="nothing"):
        skattr.plot.ice(family, output=0, color="nothing")
