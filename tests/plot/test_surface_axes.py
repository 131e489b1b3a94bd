"""The axes of surfaces, column by column."""

import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
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
