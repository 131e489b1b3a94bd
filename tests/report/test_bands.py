"""Errors from the background in the report: bands on curves, bars, and intervals of importances."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, write_report
from skattr._utils.numbers import small
from skattr.curves.rounded import rounded
from skattr.report.rows import ExplainedRows
from skattr.report.tables import spread_rows
from skattr.report.words import shown
from tests.helpers.hostile import HOSTILE
from tests.helpers.reports import unpacked

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")

RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": RNG.normal(size=200),
        "rooms": RNG.integers(1, 6, 200),
        "town": pd.Categorical(RNG.choice(["Rome", "Oslo", "Bonn"], 200)),
    }
)
Y = 2 * X["a"] * (X["rooms"] > 2) + X["town"].cat.codes
MODEL = HistGradientBoostingRegressor(
    max_iter=20, min_samples_leaf=5, categorical_features="from_dtype"
).fit(X, Y)


def written(explainer, tmp_path, **options):
    path = tmp_path / "report.html"
    write_report(explainer, X, path, **options)
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', source)
    return json.loads(found.group(1)), source


@pytest.mark.slow
def test_bands_are_the_errors_of_curves(tmp_path):
    explainer = MeasureExplainer(MODEL).fit(X)
    data, source = written(explainer, tmp_path)
    about = dict(zip(data["features"], data["charts"], strict=True))
    for name in ("a", "rooms"):
        table = data["what_if"]["columns"][data["features"].index(name)]
        x, _, errors = unpacked(table)
        middle = (x[1:] + x[:-1]) / 2
        values = np.unique(np.concatenate([X[name], x, middle]).astype(X[name].dtype))
        wanted = explainer.curve(name).background_error(values, centered=True)
        told = errors[0][np.searchsorted(x, values, side="left")]
        assert [small(e) for e in told] == [small(2 * e) for e in wanted]
    stored = data["what_if"]["columns"][data["features"].index("town")]["levels"]
    order = [stored[k] for k in about["town"]["order"]]
    errors = explainer.curve("town").background_error(
        pd.Series(order, dtype=X["town"].dtype), centered=True
    )
    told = [e for _, e in about["town"]["band"]]
    assert [small(e) for e in told] == [small(2 * e) for e in errors]
    assert "The band is two standard errors" in source
    assert "other background rows, they would move by" in source


@pytest.mark.slow
def test_intervals_of_importances(tmp_path):
    explainer = MeasureExplainer(MODEL).fit(X)
    _, source = written(explainer, tmp_path)
    table = source.partition("Importance, largest first")[2].partition("</table>")[0]
    lines = re.findall(
        r"<bdi>(.*?)</bdi></th><td>.*?</td><td>.*?</td><td>(.*?) to (.*?)</td>", table
    )
    frame = explainer.explain(X).importance(error=True)
    assert [name for name, *_ in lines] == list(frame.index)
    for name, low, high in lines:
        assert float(low) == pytest.approx(frame.loc[name, "low"], abs=1e-3)
        assert float(high) == pytest.approx(frame.loc[name, "high"], abs=1e-3)


@pytest.mark.slow
def test_left_out_where_there_are_none(tmp_path):
    explainer = MeasureExplainer(KNeighborsRegressor(3).fit(X[["a", "rooms"]], Y))
    path = tmp_path / "report.html"
    rows = X[["a", "rooms"]][:20]
    assert explainer.fit(rows).explain(rows).background_error is None
    write_report(explainer, rows, path)
    source = path.read_text(encoding="utf-8")
    assert "95 % interval" not in source and "The band is" not in source
    assert '"band"' not in source.partition('id="data">')[2].partition("</script>")[0]


def section(source):
    """Return the words of the section "How sure", "" if there is none."""
    return html.unescape(
        re.sub(
            r"<[^>]+>",
            "",
            source.partition('<section id="how-sure"')[2].partition("</section>")[0],
        )
    )


@pytest.mark.slow
def test_how_sure_in_words(tmp_path):
    rows = X.assign(noise=RNG.normal(size=200), flat=1.0)
    few = rows[:40]
    model = HistGradientBoostingRegressor(max_iter=3, categorical_features="from_dtype")
    target = 5 * rows["a"] + 1e-3 * rows["noise"] * RNG.normal(size=200)
    explainer = MeasureExplainer(model.fit(rows, target)).fit(few)
    path = tmp_path / "report.html"
    write_report(explainer, rows, path)
    text = section(path.read_text(encoding="utf-8"))
    assert "The background has 40 rows." in text and "over 32 folds" in text
    assert "skattr.metrics.refit and skattr.metrics.stability" in text
    centred = explainer.explain(rows).centered()
    low, high = centred.interval()
    ends = centred.importance(error=True)
    for j, name in enumerate(rows):
        nothing = not (high - low)[:, j].any()
        zero = ((low <= 0) & (high >= 0))[:, j].all() or ends.loc[name, "low"] == 0
        told = text.partition("The interval of ")[2].partition(" includes 0")[0].split(", ")
        assert (name in told) == (zero and not nothing)
        none = text.partition("The effect of ")[2].partition(" is 0, whatever")[0].split(", ")
        assert (name in none) == nothing
    assert "flat" in none


@pytest.mark.slow
def test_a_column_that_cannot_be_told_from_none(tmp_path):
    # the effect of b is the mean sign of a, which the rows of the background do not tell from 0
    signs = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    rows = pd.DataFrame(np.tile(signs, (15, 1)) * RNG.random((60, 2)), columns=["a", "b"])
    corners = pd.DataFrame(signs, columns=["a", "b"])
    model = DecisionTreeRegressor(random_state=0).fit(corners, [1, -1, -1, 1])
    explainer = MeasureExplainer(model).fit(rows)
    write_report(explainer, rows, tmp_path / "report.html")
    source = (tmp_path / "report.html").read_text(encoding="utf-8")
    low, high = explainer.explain(rows).centered().interval()
    unsure = [name for j, name in enumerate(rows) if ((low <= 0) & (high >= 0))[:, j].all()]
    assert unsure == ["a", "b"]
    assert source.count("includes 0 at every row explained") == len(unsure)
    assert f"The interval of {', '.join(unsure)} includes 0" in section(source)


@pytest.mark.slow
def test_no_section_without_errors(tmp_path):
    _, source = written(MeasureExplainer(MODEL, folds=0).fit(X), tmp_path)
    assert section(source) == "" and "how-sure" not in source and "95 % interval" not in source


@pytest.mark.slow
def test_how_sure_tells_no_data(tmp_path):
    explainer = MeasureExplainer(MODEL).fit(X)
    data, source = written(explainer, tmp_path, include_data=False)
    assert data["charts"] is None
    assert "The background has 200 rows." in section(source)
    for value in (*X["a"], *explainer.curve("a").to_frame()["lower"][1:-1]):
        assert f"{value:.9f}" not in source and str(value) not in source
    curve = rounded(explainer.curve("a"))
    frame = curve.to_frame()
    inside = frame["closed"] == "right"
    middle = (frame["lower"] + frame["upper"])[inside][1:-1] / 2
    original = explainer.curve("a")
    errors = curve.background_error(middle, centered=True)
    assert {*errors} <= {*original.table_errors(True)[:, 0]}  # at round numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE[:6])
def test_hostile_names_stay_text(tmp_path, name):
    rows = X[["a", "rooms"]].rename(columns={"a": name})
    model = HistGradientBoostingRegressor(max_iter=5).fit(rows, Y)
    explainer = MeasureExplainer(model).fit(rows)
    write_report(explainer, rows, tmp_path / "report.html")
    source = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert shown(name) in section(source)
    part = source.partition('<section id="how-sure"')[2].partition("</section>")[0]
    tags = {*re.findall(r"<(/?\w+)", part)}
    assert tags <= {"h2", "/h2", "div", "/div", "ul", "/ul", "li", "/li", "bdi", "/bdi"}


def test_bars_have_the_interval_in_a_sample_too(monkeypatch):
    explanation = MeasureExplainer(MODEL).fit(X).explain(X)
    monkeypatch.setattr("skattr.report.rows.FOLDED", 50)
    found = ExplainedRows.of(explanation)
    again = explanation[spread_rows(200, 50)]
    again.importance(error=True)
    np.testing.assert_array_equal(found.by_fold, again.importance_by_fold)
    np.testing.assert_array_equal(found.importance().importance_by_fold, found.by_fold)


@pytest.mark.slow
def test_bars_tell_their_own_errors(tmp_path):
    """Missing has an error of its own, and a level that the model does not know has none."""
    rows = X.assign(town=X["town"].where(np.arange(200) % 6 > 0))
    model = HistGradientBoostingRegressor(
        max_iter=20, min_samples_leaf=5, categorical_features="from_dtype"
    ).fit(rows, Y + 3 * rows["town"].isna())
    explainer = MeasureExplainer(model).fit(rows)
    path = tmp_path / "report.html"
    write_report(explainer, rows, path)
    found = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"))
    data = json.loads(found.group(1))
    j = data["features"].index("town")
    about, table = data["charts"][j], data["what_if"]["columns"][j]
    names = [table["levels"][k] for k in about["order"]]
    assert names[-1] == "missing" and len(names) == 4
    told = {names[place]: error for place, error in about["band"]}
    curve = explainer.curve("town")
    errors = curve.background_error(pd.Series([*names[:-1], None], dtype=rows["town"].dtype), True)
    assert {name: small(error) for name, error in told.items()} == {
        name: small(2 * error) for name, error in zip(names, errors, strict=True)
    }
