"""Two explainers in one report: what changed, column by column."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, write_report
from tests.helpers.hostile import HOSTILE

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=["a", "b", "c"])


def linear(slopes, rows=X):
    model = LinearRegression().fit(rows, rows.to_numpy() @ np.array(slopes))
    return MeasureExplainer(model).fit(rows)


def section(explainers, tables, tmp_path, **options):
    path = tmp_path / "report.html"
    write_report(explainers, tables, path, **options)
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<section id="comparison".*?</section>', source, re.DOTALL)
    return None if found is None else found.group(), source


def lines(text):
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body)
    return {cells[0]: cells[1:] for cells in (re.findall(r">([^<>]+)</", row) for row in rows)}


@pytest.mark.slow
def test_a_changed_slope_is_told(tmp_path):
    first, second = linear([1.0, 2.0, 3.0]), linear([1.0, 5.0, 3.0])
    text, source = section([first, second], X, tmp_path, labels=("May", "June"), output_unit="€")
    assert "What changed from “<bdi>May</bdi>” to “<bdi>June</bdi>”" in text
    size = np.abs(X["b"] - X["b"].mean()).mean()
    found = lines(text)
    assert next(iter(found)) == "b"
    for place, wanted in enumerate([2 * size, 5 * size, 3 * size, 3 * size]):
        assert float(found["b"][place]) == pytest.approx(wanted, abs=2e-3)
    assert float(found["a"][3]) == 0 and float(found["c"][3]) == 0
    assert "effect of b differs most" in text and "b has gained most importance" in text
    assert "[first_explainer, explainer]" in source
    assert section(second, X, tmp_path)[0] is None


@pytest.mark.slow
def test_two_periods_of_one_model(tmp_path):
    """The rows change, the model does not: effects at the same rows stay."""
    explainer = linear([1.0, 2.0, 3.0])
    later = X.assign(a=X["a"] * 4)
    text, _ = section([explainer, explainer], [X, later], tmp_path)
    assert "effects of all columns are the same (difference 0)" in text
    assert "a has gained most importance" in text and "<img" not in text
    found = lines(text)
    sizes = [np.abs(rows["a"] - X["a"].mean()).mean() for rows in (X, later)]
    for place, wanted in enumerate(sizes):
        assert float(found["a"][place]) == pytest.approx(wanted, abs=2e-3)


@pytest.mark.slow
def test_curves_of_both_are_drawn(tmp_path):
    trees = [DecisionTreeRegressor(max_depth=d, random_state=0).fit(X, X["a"]) for d in (1, 4)]
    explainers = [MeasureExplainer(tree).fit(X) for tree in trees]
    assert section(explainers, X, tmp_path)[0].count("<img") >= 1
    private, source = section(explainers, X, tmp_path, include_data=False)
    assert private.count("<img") >= 1 and "read at round numbers" in source


@pytest.mark.slow
def test_columns_of_one_only(tmp_path):
    Z = X.assign(d=X["a"] ** 2)
    first = linear([1.0, 2.0, 3.0, 0.5], Z)
    model = LinearRegression().fit(Z[["b", "c"]], Z["b"])
    second = MeasureExplainer(model).fit(Z[["b", "c"]])
    text, _ = section([second, first], [Z[["b", "c"]], Z], tmp_path)
    assert "2 columns are not in first: " in text and "not there" in text


@pytest.mark.slow
def test_several_outputs(tmp_path):
    models = [RandomForestClassifier(3, random_state=s).fit(X, np.arange(80) % 3) for s in (0, 1)]
    explainers = [MeasureExplainer(model).fit(X) for model in models]
    text, _ = section(explainers, X, tmp_path)
    assert text.count("<table>") == 3


def test_arguments_are_checked(tmp_path):
    path = tmp_path / "report.html"
    explainer = linear([1.0, 2.0, 3.0])
    for change, match in [
        ({"explainer": [explainer] * 3}, "one explainer or two can be reported, got 3"),
        ({"labels": ("a",)}, "labels must be two names"),
        ({"explanation": explainer.explain(X)}, "explanation= is for one explainer"),
    ]:
        arguments = {"explainer": [explainer] * 2, **change}
        with pytest.raises(ValueError, match=match):
            write_report(arguments.pop("explainer"), X, path, **arguments)
    model = RandomForestClassifier(2).fit(X, np.arange(80) % 3)
    with pytest.raises(ValueError, match="both explainers must have the same outputs"):
        write_report([explainer, MeasureExplainer(model).fit(X)], X, path)
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hostile_labels(part, tmp_path, monkeypatch):
    monkeypatch.setattr("skattr.report.figures.panel", lambda *_: None)
    explainers = [linear([1.0, 2.0, 3.0]), linear([1.0, 4.0, 3.0])]
    for label in HOSTILE[50 * part : 50 * part + 50 : 25]:
        text, source = section(explainers, X, tmp_path, labels=(label, label))
        assert source.count("<script") == 3 and source.count("<h1") == 1
        assert text.count("<section") == 1 and not re.search(r"<[a-z]+[^>]*\son\w+=", text)


def test_a_measure_that_pins_no_column_has_flat_panels(tmp_path):
    """`Expectation` of a black box is one step, on columns of levels too."""
    rows = pd.DataFrame({"town": pd.Categorical(["Rome", "Oslo"] * 20), "area": np.arange(40.0)})
    explainer = MeasureExplainer(lambda table: table["area"] * 1.0, "expectation").fit(rows)
    for include_data in (True, False):
        path = tmp_path / "report.html"
        write_report([explainer, explainer], rows, path, include_data=include_data)
        assert "The value is the same for all levels." in path.read_text(encoding="utf-8")
