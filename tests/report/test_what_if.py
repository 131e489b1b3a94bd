"""What if: the page computes what `explain` returns, to the last printed digit."""

import base64
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skattr import MeasureExplainer, write_report
from skattr._utils.numbers import fixed
from skattr.measures import Conditional
from skattr.report.what_if import as_bytes, needed_knots
from tests.helpers.browser import Browser
from tests.helpers.reports import unpacked

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")
pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge|Stochastic Optimizer")

RNG = np.random.default_rng(0)
N = 120
X = pd.DataFrame(
    {
        "area": RNG.normal(size=N) * 30 + 90,
        "rooms": RNG.integers(1, 7, N),
        "noise": RNG.normal(size=N).astype(np.float32),
    }
)
Y = 3 * X["area"].clip(upper=110) + 20 * X["rooms"] * (X["noise"] > 0)


def with_words():
    rows = X.assign(
        city=pd.Categorical(RNG.choice(["Rome", "Oslo", "Bonn"], N)), lift=RNG.random(N) < 0.5
    )
    rows.loc[::5, "area"] = np.nan
    return rows


def forest():
    return MeasureExplainer(RandomForestRegressor(10, random_state=0).fit(X, Y)).fit(X), X


def conditional():
    model = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, Y)
    return MeasureExplainer(model, Conditional("knn")).fit(X), X


def booster():
    rows = with_words()
    y = rows["area"].fillna(500) + rows["city"].cat.codes * 30 + 10 * rows["lift"]
    model = HistGradientBoostingRegressor(
        max_iter=30, categorical_features="from_dtype", min_samples_leaf=5
    )
    return MeasureExplainer(model.fit(rows, y)).fit(rows), rows


def network():
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=300, random_state=0).fit(X, Y / 100)
    return MeasureExplainer(model).fit(X), X


def linear():
    rows = with_words().drop(columns="area")
    words = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    y = 20 * rows["rooms"] + 5 * rows["lift"] + rows["city"].cat.codes * 3.3
    return MeasureExplainer(make_pipeline(words, LinearRegression()).fit(rows, y)).fit(rows), rows


MODELS = {f.__name__: f for f in (forest, conditional, booster, network, linear)}


def stored(path):
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', source)
    return json.loads(found.group(1))


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    yield found
    found.close()


def random_value(column, table, rng):
    """Another value of a column and what the control of the page is set to; None is missing."""
    if table["kind"] == "levels":
        values = column.cat.categories if column.dtype == "category" else [False, True]
        value = values[rng.integers(len(values))]
        return value, table["levels"].index(str(value))
    if "missing" in table and rng.random() < 0.2:
        return None, None
    if table["whole"]:
        value = int(rng.integers(column.min() - 1, column.max() + 2))
    else:
        value = float(rng.uniform(column.min() - 5, column.max() + 5))
    return value, value


def move(browser, table, value, setting):
    if table["kind"] == "levels":
        browser.choose("if-level", setting)
    elif value is None:
        browser.run("document.getElementById('if-missing').checked = true")
        browser.run("document.getElementById('if-missing').dispatchEvent(new Event('input'))")
    else:
        browser.choose("if-number", repr(value))


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("name", MODELS)
def test_the_page_says_what_explain_returns(name, browser, tmp_path):
    explainer, rows = MODELS[name]()
    path = tmp_path / "report.html"
    write_report(explainer, rows, path)
    data = stored(path)
    tables = dict(zip(data["features"], data["what_if"]["columns"], strict=True))
    places = data["outputs"][0]["decimals"]
    rng = np.random.default_rng(1)
    browser.open(path)
    browser.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    for _ in range(50):
        i, column = int(rng.integers(N)), data["features"][rng.integers(len(data["features"]))]
        assert "why" not in tables[column]
        value, setting = random_value(rows[column], tables[column], rng)
        other = rows.iloc[[i]].copy()
        kept = float if value is None else rows[column].dtype  # integers cannot be missing
        other[column] = pd.Series([value], index=other.index).astype(kept)
        browser.choose("pick", i)
        browser.choose("if-column", data["features"].index(column))
        move(browser, tables[column], value, setting)
        told = browser.run("document.getElementById('if-value').textContent")
        wanted = explainer.explain(other).centered()
        assert told == fixed(wanted[:, column].values[0, 0], places, sign=True), (column, value)
        prediction = browser.run("document.getElementById('if-prediction')?.textContent")
        if name == "linear":
            assert prediction == fixed(wanted.predictions[0], places)
        else:
            assert prediction is None
    assert browser.problems() == [] and browser.requests() == []


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_shapley_values_say_what_cannot_be_done_and_add_up(browser, tmp_path):
    explainer, rows = forest()
    write_report(explainer.with_measure("shapley"), rows, tmp_path / "shapley.html")
    browser.open(tmp_path / "shapley.html")
    browser.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    told = browser.run("document.getElementById('if-result').textContent")
    assert told.startswith("Not shown: the attribution of this column depends on other columns")
    write_report(explainer, rows, tmp_path / "both.html")
    browser.open(tmp_path / "both.html")
    browser.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    browser.choose("pick", 7)
    said = "document.querySelector('#waterfall p').textContent"
    assert "interactions" not in browser.run(said)
    heading = "document.querySelector('#numbers thead th:last-child').textContent"
    assert browser.run(heading) == "Shapley value"
    browser.choose("kind", "values")
    assert "interactions" in browser.run(said) and browser.run(heading) == "centred value"
    assert browser.problems() == []


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_answer_comes_at_once(browser, tmp_path):
    """The slider moves the number, the number the slider, and a picked row starts anew."""
    explainer, rows = forest()
    write_report(explainer, rows, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    browser.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    browser.choose("if-column", 0)
    browser.choose("if-range", 100)
    number = float(browser.run("document.getElementById('if-number').value"))
    assert abs(number - 100) < 2
    browser.run("document.getElementById('if-range').focus()")
    browser.key("ArrowRight", 39)
    assert float(browser.run("document.getElementById('if-number').value")) > number
    browser.run(
        "document.querySelector('#if-curve svg').dispatchEvent("
        "new PointerEvent('pointermove', {clientX: 1e4, clientY: 0}))"
    )  # right of the curve: its last value
    told = browser.run("document.querySelector('#if-curve .told').textContent")
    value = explainer.curve("area")([rows["area"].max()])[0]
    data = stored(tmp_path / "report.html")
    assert data["features"][0] == "area"
    assert f": {fixed(value, data['outputs'][0]['decimals'], sign=True)} ± " in told
    assert "(background), " in told
    before = browser.run("document.getElementById('if-result').textContent")
    browser.run("dispatchEvent(new Event('resize'))")  # keeps what was moved
    assert browser.run("document.getElementById('if-result').textContent") == before
    browser.run("document.getElementById('next').click()")
    assert browser.run("document.getElementById('if-result').textContent") != before
    assert browser.run("document.querySelectorAll('#if-curve polyline').length") == 1


@pytest.mark.slow
def test_tables_give_the_values_of_the_rows(tmp_path):
    explainer, rows = forest()
    write_report(explainer, rows, tmp_path / "report.html")
    data = stored(tmp_path / "report.html")
    values = explainer.explain(rows).centered()
    for name, table in zip(data["features"], data["what_if"]["columns"], strict=True):
        x, stored_values, _ = unpacked(table)
        at = rows[name].to_numpy(np.float32 if table["single"] else float).astype(float)
        got = stored_values[0][np.searchsorted(x, at, side="left")]
        wanted = values[:, name].values[:, 0]
        places = data["outputs"][0]["decimals"]
        assert [fixed(v, places) for v in got] == [fixed(v, places) for v in wanted]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=0.51 * 10.0 ** -(places + 2) * 2)


@pytest.mark.slow
def test_what_a_page_cannot_hold_is_said(tmp_path, monkeypatch):
    explainer, rows = forest()
    path = tmp_path / "report.html"
    monkeypatch.setattr("skattr.report.what_if.BYTES", 700)
    write_report(explainer, rows, path)
    tables = stored(path)["what_if"]["columns"]
    assert any("does not fit" in table.get("why", "") for table in tables)
    assert len(json.dumps([table for table in tables if "kind" in table])) < 900
    model = KNeighborsRegressor(2).fit(X, Y)
    write_report(MeasureExplainer(model).fit(X[:5]), X[:5], path)
    assert all("evaluated" in table["why"] for table in stored(path)["what_if"]["columns"])


EDGES = [0.1, 1 / 3, 2.5, 7.25, 1e-40, 3e38]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_ends_in_single_precision_compare_as_doubles_do(kind):
    """Ends at which single numbers change are stored as these; all others in full."""
    with np.errstate(over="ignore"):
        low = np.array(EDGES, np.float32)
        high = np.nextafter(low, np.float32(np.inf))
    changes = (low.astype(float) + high.astype(float)) / 2
    changes = np.where(changes.astype(np.float32) == low, changes, np.nextafter(changes, -np.inf))
    near = np.concatenate([np.nextafter(changes, -np.inf), changes, np.nextafter(changes, np.inf)])
    for ends, single in ((np.sort(changes), True), (np.sort(EDGES), False)):
        text, is_single = as_bytes(ends, kind == np.float32)
        assert is_single == (single or kind == np.float32)
        x = np.frombuffer(base64.b64decode(text), "<f4" if is_single else "<f8")
        t = near.astype(kind)  # what the page is asked
        asked = t.astype(np.float32) if is_single else t
        np.testing.assert_array_equal(
            np.searchsorted(x.astype(float), asked.astype(float)), np.searchsorted(ends, t)
        )


def knots_of(table):
    return np.asarray(table["x"]), np.asarray(table["values"], float)


@pytest.mark.slow
def test_knots_of_a_network_are_thinned_if_they_do_not_fit(tmp_path):
    """Networks of a usual size have more knots than a page can hold."""
    model = MLPRegressor(hidden_layer_sizes=(20, 10), max_iter=300, random_state=0)
    explainer = MeasureExplainer(model.fit(X, Y / 100)).fit(X)
    path = tmp_path / "report.html"
    write_report(explainer, X, path)
    data = stored(path)
    columns = data["what_if"]["columns"]
    assert [table["kind"] for table in columns] == ["linear"] * 3
    assert len(json.dumps(columns)) < 160_000
    within = data["what_if"]["within"][0]
    assert f"returns to within {within}: curves are thinned" in path.read_text()
    for name, table in zip(data["features"], columns, strict=True):
        curve = explainer.curve(name)
        x, values = knots_of(table)
        assert len(x) < len(curve.to_frame()) // 2
        at = np.linspace(X[name].min() - 1, X[name].max() + 1, 1001).astype(X[name].dtype)
        off = np.interp(at.astype(float), x, values[0]) - (curve(at) - curve.offset[0])
        assert np.abs(off).max() <= float(within)


def test_needed_knots_are_enough_and_few():
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=2000))
    values = np.stack([np.sin(3 * x), np.abs(x)], axis=1)
    off = np.array([1e-3, 1e-2])
    kept = needed_knots(x, values, off)
    assert {0, 1, 1998, 1999} <= set(kept.tolist()) and len(kept) < 200
    for values_of, most in zip(values.T, off, strict=True):
        assert np.abs(np.interp(x, x[kept], values_of[kept]) - values_of).max() <= most
    assert needed_knots(x[:2], values[:2], off).tolist() == [0, 1]


@pytest.mark.slow
def test_missing_levels_are_called_as_rows_are(tmp_path):
    """None and NaN are levels of their own to an encoder; rows say "missing"."""
    words = np.array(["gas", "oil", None], object)[RNG.integers(3, size=N)]
    rows = pd.DataFrame({"heating": pd.Series(words, dtype=object), "rooms": X["rooms"]})
    words = OneHotEncoder(handle_unknown="ignore")
    encoder = make_column_transformer((words, ["heating"]), remainder="passthrough")
    y = 10.0 * X["rooms"] + 50 * rows["heating"].isna()
    model = make_pipeline(encoder, RandomForestRegressor(5, random_state=0)).fit(rows, y)
    explainer = MeasureExplainer(model).fit(rows)
    assert "missing (None)" in set(explainer.curve("heating").to_frame()["level"])
    write_report(explainer, rows, tmp_path / "report.html")
    data = stored(tmp_path / "report.html")
    j = data["features"].index("heating")
    levels, chart = data["what_if"]["columns"][j]["levels"], data["charts"][j]
    bars = dict(zip([levels[k] for k in chart["order"]], chart["counts"], strict=True))
    assert bars["missing"] == rows["heating"].isna().sum() and sum(bars.values()) == N
    value = data["what_if"]["columns"][j]["values"][0][levels.index("missing")]
    wanted = explainer.curve("heating")([None])[0] - explainer.curve("heating").offset[0]
    assert value == pytest.approx(wanted, rel=1e-6)


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_level_that_the_model_does_not_know_is_any_other(browser, tmp_path):
    rows = with_words()[["rooms", "city"]].astype({"city": object})
    encoder = OneHotEncoder(handle_unknown="ignore")
    words = make_column_transformer((encoder, ["city"]), remainder="passthrough")
    y = 20 * rows["rooms"] + 30 * (rows["city"] == "Bonn")
    explainer = MeasureExplainer(make_pipeline(words, LinearRegression()).fit(rows, y)).fit(rows)
    new = rows.copy()
    new.loc[0, "city"] = "Lima"
    write_report(explainer, new, tmp_path / "report.html")
    data = stored(tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    browser.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    browser.choose("pick", 0)
    browser.choose("if-column", data["features"].index("city"))
    chosen = "document.getElementById('if-level').selectedOptions[0].textContent"
    assert browser.run(chosen) == "any other"
    assert "city: Lima → Lima." in browser.run("document.getElementById('if-result').textContent")
    levels = data["what_if"]["columns"][data["features"].index("city")]["levels"]
    browser.choose("if-level", levels.index("Bonn"))
    other = new.iloc[[0]].assign(city="Bonn")
    told = browser.run("document.getElementById('if-prediction').textContent")
    assert told == fixed(explainer.explain(other).predictions[0], data["outputs"][0]["decimals"])
    assert browser.problems() == []


@pytest.mark.slow
def test_curves_that_do_not_fit_are_rounded_and_say_so(tmp_path, monkeypatch):
    explainer, rows = forest()
    path = tmp_path / "report.html"
    write_report(explainer, rows, path)
    whole = stored(path)["what_if"]
    assert whole["within"] is None and "exactly what <code>explain" in path.read_text()
    monkeypatch.setattr("skattr.report.what_if.BYTES", len(json.dumps(whole["columns"])) // 2)
    write_report(explainer, rows, path)
    data = stored(path)
    within = data["what_if"]["within"][0]
    assert f"returns to within {within}: curves are thinned" in path.read_text()
    values = explainer.explain(rows).centered()
    for name, table in zip(data["features"], data["what_if"]["columns"], strict=True):
        x, stored_values, _ = unpacked(table)
        at = rows[name].to_numpy(np.float32 if table["single"] else float).astype(float)
        got = stored_values[0][np.searchsorted(x, at, side="left")]
        times, places = table["units"][0]
        unit = times * 10.0**-places
        np.testing.assert_allclose(got / unit, np.rint(got / unit), atol=1e-6)
        off = np.abs(got - values[:, name].values[:, 0]).max()
        assert off <= float(within)


@pytest.mark.slow
def test_left_out_without_data(tmp_path):
    explainer, rows = forest()
    path = tmp_path / "report.html"
    write_report(explainer, rows, path, include_data=False)
    assert stored(path)["what_if"] is None
    assert "Left out: curves tell values of the data" in path.read_text(encoding="utf-8")
