"""The axes of surfaces, column by column."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, plot
from skattr.plot.surface_axes import surface_axis


@pytest.mark.slow
def test_dates_that_are_levels_are_asked_for_as_they_are():
    days = pd.date_range("2024-01-01", periods=120, freq="5D")
    X = pd.DataFrame({"day": days, "a": range(120)})
    columns = make_column_transformer((OrdinalEncoder(), ["day"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeRegressor()).fit(X, range(120))
    explainer = MeasureExplainer(model).fit(X)  # the encoder refuses any other date
    axis = surface_axis(explainer.curve("day"), X["day"])
    assert set(pd.to_datetime(pd.Series(axis.raw).dropna())) <= set(days)
    values = explainer.surface("day", "a").grid(axis.raw, X["a"])
    assert values.shape == (len(axis.raw), 120)


def test_whole_numbers_have_cells_of_one_width_and_whole_ticks():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rooms": rng.integers(1, 6, 80), "area": rng.normal(70, 20, 80)})
    X.loc[:5, "area"] = np.nan
    model = DecisionTreeRegressor(random_state=0).fit(X, X["rooms"] * X["area"].fillna(0))
    explainer = MeasureExplainer(model).fit(X)
    axis = surface_axis(explainer.curve("rooms"), X["rooms"])
    assert axis.whole and axis.ends == (0.5, 5.5)
    area = surface_axis(explainer.curve("area"), X["area"])
    assert not area.whole and area.missing[0] > area.edges[-1]
    ax = plot.surface(explainer.surface("area", "rooms"), data=X, interaction=True)
    ax.figure.canvas.draw()
    shown = [tick for tick in ax.get_yticks() if 0.5 <= tick <= 5.5]
    assert shown == [1, 2, 3, 4, 5]
    labels = {axes.get_ylabel() for axes in ax.figure.axes}
    assert "interaction · prediction" in labels
    plt.close("all")
