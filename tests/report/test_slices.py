"""The section on slices: it says what `by_slice` says."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skattr import MeasureExplainer, write_report
from skattr.metrics import by_slice
from tests.helpers.hostile import HOSTILE
from tests.helpers.reports import hostile_explainer

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {"a": RNG.normal(size=90), "town": np.resize(["Rome", "Oslo", "Bonn"], 90)},
)
X.loc[X["town"] == "Rome", "a"] += 5
MODEL = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough"),
    LinearRegression(),
).fit(X, 2 * X["a"] + (X["town"] == "Oslo"))
EXPLAINER = MeasureExplainer(MODEL).fit(X)


def section(tmp_path, explainer=EXPLAINER, rows=X, **options):
    path = tmp_path / "report.html"
    write_report(explainer, rows, path, **options)
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<section id="slices".*?</section>', source, re.DOTALL)
    return None if found is None else found.group()


@pytest.mark.slow
def test_levels(tmp_path):
    text = section(tmp_path, slices="town")
    frame = by_slice(EXPLAINER.explain(X), "town")
    tables = text.split("<table>")[1:]
    assert len(tables) == 2
    for table, what in zip(tables, ("mean_value", "importance"), strict=True):
        names = re.findall(r'class="n"><bdi>(.*?)</bdi>', table)
        lines = re.findall(r"<tr><th scope=\"row\"><bdi>(.*?)</bdi></th>(.*?)</tr>", table)
        assert [name for name, _ in lines] == list(dict.fromkeys(frame["slice"]))
        for town, cells in lines:
            rows, *values = re.findall(r"<td>(.*?)</td>", cells)
            assert rows == "30"
            part = frame[frame["slice"] == town].set_index("feature")
            for name, value in zip(names, values, strict=True):
                number = float(value.partition(" ±")[0])
                assert number == pytest.approx(part.loc[name, what], abs=1e-3)
    assert "Apart from town itself, a differs most" in text


@pytest.mark.slow
def test_the_sentence_has_the_errors_the_rows_and_the_unit(tmp_path):
    text = section(tmp_path, slices="town", output_unit="€")
    ends = re.search(r"its mean effect goes from (.*) to (.*)\.</bdi>", text)
    frame = by_slice(EXPLAINER.explain(X), "town")
    of_a = frame[frame["feature"] == "a"].set_index("slice")
    for told, which in zip(ends.groups(), ("idxmin", "idxmax"), strict=True):
        town = getattr(of_a["mean_value"], which)()
        value, error = re.match(rf"(\S+) ± (\S+) € \({town}, 30 rows\)$", told).groups()
        assert float(value) == pytest.approx(of_a.loc[town, "mean_value"], abs=1e-2)
        assert float(error) == pytest.approx(2 * of_a.loc[town, "mean_row_error"], abs=1e-2)


@pytest.mark.slow
def test_numbers_are_cut(tmp_path):
    text = section(tmp_path, slices="a")
    assert len(re.findall(r'<tr><th scope="row">', text)) == 2 * 5 and " to " in text


@pytest.mark.slow
def test_only_if_asked_for_and_not_without_data(tmp_path):
    assert section(tmp_path) is None
    text = section(tmp_path, slices="town", include_data=False)
    assert "Left out" in text and "Rome" not in text and "<table" not in text


def test_an_unknown_column_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere"):
        section(tmp_path, slices="nowhere")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hostile_strings(part, tmp_path, monkeypatch):
    monkeypatch.setattr("skattr.report.figures.panel", lambda *_: None)
    some = list(dict.fromkeys(HOSTILE[50 * part : 50 * (part + 1)]))
    explainer, rows = hostile_explainer(some, some, some[:3], some)
    text = section(tmp_path, explainer, rows, slices=rows.columns[0], max_features=4)
    assert "<script" not in text and "<img" not in text and text.count("<section") == 1
