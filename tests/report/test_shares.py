"""Rows that add up: Shapley values in the row panel where the measure's values do not add up."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, write_report

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 4)), columns=list("abcd"))
Y = X["a"] * X["b"] + X["c"]
TREE = DecisionTreeRegressor(max_depth=5).fit(X, Y)


def written(explainer, tmp_path, rows=X, **options):
    path = tmp_path / "report.html"
    write_report(explainer, rows, path, **options)
    source = path.read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', source).group(1)
    return source, json.loads(data)


@pytest.mark.slow
@pytest.mark.parametrize("include_data", [True, False])
def test_shapley_values_of_the_same_background(include_data, tmp_path):
    weights = RNG.random(len(X))
    explainer = MeasureExplainer(TREE).fit(X, sample_weight=weights)
    source, data = written(
        explainer, tmp_path, max_rows=20, max_features=3, include_data=include_data
    )
    (output,) = data["outputs"]
    found = output["shapley"]
    shapley = MeasureExplainer(TREE, "shapley").fit(X, sample_weight=weights)
    rows = X.iloc[np.unique(np.linspace(0, 59, 20).astype(int))]
    wanted = shapley.explain(rows)
    names = data["features"]
    np.testing.assert_allclose(found["values"], wanted[:, names].values, rtol=1e-5, atol=1e-5)
    ends = found["base"] + np.sum(found["values"], axis=1) + found["rest"]
    np.testing.assert_allclose(ends, output["prediction"], atol=1e-4)
    assert "Shapley values of one row" in source and 'id="kind"' in source


@pytest.mark.slow
def test_each_output_has_its_own(tmp_path):
    model = RandomForestClassifier(5, random_state=0).fit(X, np.digitize(Y, [-1, 1]))
    _, data = written(MeasureExplainer(model).fit(X), tmp_path)
    for output in data["outputs"]:
        found = output["shapley"]
        ends = found["base"] + np.sum(found["values"], axis=1) + found["rest"]
        np.testing.assert_allclose(ends, output["prediction"], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("explainer", "options"),
    [
        (MeasureExplainer(TREE, "shapley").fit(X), {}),  # adds up
        (MeasureExplainer(LinearRegression().fit(X, Y)).fit(X), {}),  # adds up
        (MeasureExplainer(TREE, "partial_dependence").partial_fit(X), {}),  # keeps no rows
        (MeasureExplainer(KNeighborsRegressor(2).fit(X, Y)).fit(X[:5]), {}),  # not exact and cheap
        (MeasureExplainer(TREE).fit(X), {"features": ["a", "b"]}),  # cannot add up
    ],
    ids=["shapley", "linear", "batches", "black box", "some columns"],
)
def test_where_it_does_not_apply(explainer, options, tmp_path):
    source, data = written(explainer, tmp_path, X[:10], **options)
    assert data["outputs"][0]["shapley"] is None
    assert 'id="kind"' not in source and "Centred values of one row" in source


@pytest.mark.slow
def test_too_many_rows_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("skattr.report.shares.MOST", 60 * 60 - 1)
    _, data = written(MeasureExplainer(TREE).fit(X), tmp_path)
    assert data["outputs"][0]["shapley"] is None


def test_with_measure_keeps_groups_weights_and_output():
    model = RandomForestClassifier(5, random_state=0).fit(X, Y > 0)
    settings = {"groups": {"ab": ["a", "b"]}, "output": "proba", "output_names": ["yes"]}
    weights = RNG.random(len(X))
    explainer = MeasureExplainer(model, engine="exact", **settings).fit(X, sample_weight=weights)
    other = explainer.with_measure("shapley")
    wanted = MeasureExplainer(model, "shapley", **settings).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(other.explain(X).values, wanted.explain(X).values)
    assert other.output_names_ == ["yes"] and other.engine == "auto"
    assert explainer.get_params()["measure"] == "main_effect"


def test_with_measure_needs_the_background():
    explainer = MeasureExplainer(TREE, "partial_dependence").partial_fit(X)
    with pytest.raises(ValueError, match="with_measure needs the background"):
        explainer.with_measure("shapley")
