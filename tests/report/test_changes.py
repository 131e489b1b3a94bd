"""Counterfactuals in the report: what `counterfactual` finds, for the rows shown."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor

import skattr
from skattr import MeasureExplainer, write_report

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60), "c": RNG.integers(0, 5, 60)})
X.index = ["same"] * 60  # labels are not unique
Y = 3 * X["a"] + X["b"] + X["c"]


def stored(explainer, tmp_path, **options):
    path = tmp_path / "report.html"
    write_report(explainer, X, path, **options)
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', source)
    return json.loads(found.group(1))["changes"], source


def test_changes_are_counterfactuals(tmp_path):
    forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, Y)
    explainer = MeasureExplainer(forest).fit(X)
    found, source = stored(explainer, tmp_path, target=4.0, output_unit="€", units={"a": "m"})
    assert len(found["rows"]) == 60 and found["all"]
    some = 0
    for i in range(0, 60, 7):
        row = found["rows"][str(i)]
        wanted = skattr.counterfactual(explainer, X.iloc[i], 4.0)
        does = wanted[wanted["after"].notna()].set_index("column")
        assert [line[0] for line in row["lines"]] == list(
            does.sort_values("share", ascending=False, kind="stable").index
        )
        way = "to reach" if wanted["before"].iloc[0] < 4 else "to fall below"
        assert f"{way} 4.00" in row["text"]
        for name, now, to, after, _ in row["lines"]:
            unit = " m" if name == "a" else ""
            assert now.endswith(unit)
            assert float(now.removesuffix(unit)) == pytest.approx(X[name].iloc[i], rel=1e-5)
            assert float(to.removesuffix(unit)) == pytest.approx(does["to"][name], rel=1e-5)
            assert float(after.removesuffix(" €")) == pytest.approx(does["after"][name], abs=1e-2)
            some += 1
    assert some > 10
    assert "What would bring it to the target" in source


def test_the_class_changes_by_default(tmp_path):
    y = np.where(Y > Y.median(), "yes", "no")
    model = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(model).fit(X)
    found, source = stored(explainer, tmp_path)
    assert found["middle"] and "where the predicted class changes" in source
    lines = [(int(i), line) for i, row in found["rows"].items() for line in row["lines"]]
    assert len(lines) > 20
    for i, (name, _, to, _, _) in lines[::5]:
        other = X.iloc[[i]].astype(float)
        before = model.predict(X.iloc[[i]])[0]
        other[name] = float(to) + np.sign(float(to) - other[name]) * 1e-4  # it is printed rounded
        assert model.predict(other)[0] != before
    found, _ = stored(explainer, tmp_path, target="yes")
    assert any("already" in row["text"] for row in found["rows"].values())


def test_left_out_where_it_does_not_apply(tmp_path):
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, Y)
    explainer = MeasureExplainer(forest).fit(X)
    assert stored(explainer, tmp_path)[0] is None  # no target
    found, source = stored(explainer, tmp_path, target=4.0, include_data=False)
    assert found is None and "Changes that bring rows to the target are left out" in source
    box = MeasureExplainer(KNeighborsRegressor(3).fit(X, Y)).fit(X)
    found, source = stored(box, tmp_path, target=4.0)
    assert found is None and "What would bring it" not in source


def test_targets_are_checked(tmp_path):
    explainer = MeasureExplainer(RandomForestRegressor(2).fit(X, Y)).fit(X)
    with pytest.raises(ValueError, match="target must be a number, got 'high'"):
        write_report(explainer, X, tmp_path / "report.html", target="high")
    model = RandomForestClassifier(2).fit(X, np.arange(60) % 3)
    explainer = MeasureExplainer(model).fit(X)
    with pytest.raises(ValueError, match="target must be one of the classes"):
        write_report(explainer, X, tmp_path / "report.html", target=0.5)
    assert not (tmp_path / "report.html").exists()
    found, _ = stored(explainer, tmp_path, target=2)
    assert any("for the class 2" in row["text"] for row in found["rows"].values())
