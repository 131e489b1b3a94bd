"""Pictures that answer: hover, keys, zoom, the row picked, and colours, in a real browser."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skattr import MeasureExplainer, write_report
from skattr._utils.numbers import fixed, small
from skattr.measures import Conditional
from tests.helpers.browser import Browser

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

N = 90
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "area": RNG.normal(size=N) * 30 + 90,
        "rooms": RNG.integers(1, 7, N),
        "town": RNG.choice(["Rome", "Oslo", "Bonn"], N),
        "lift": RNG.random(N) < 0.5,
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 500, N), unit="D"),
    }
)
X.loc[::9, "area"] = np.nan
Y = X["area"].fillna(0) * 2 + X["rooms"] * 9 + 20 * (X["town"] == "Oslo") + 30 * X["lift"]


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    yield found
    found.close()


def fitted(X=X, **options):
    numbers = ["area", "rooms", "lift"]
    columns = make_column_transformer((OneHotEncoder(), ["town"]), ("passthrough", numbers))
    model = make_pipeline(columns, HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5))
    return MeasureExplainer(model.fit(X, Y), **options).fit(X)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    explainer = fitted()
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(explainer, X, path, units={"area": "m²"}, output_unit="€")
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', source)
    return path, explainer, json.loads(found.group(1))


@pytest.fixture
def page(browser, written):
    """The page in a window that all pictures fit into."""
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=1000,
        height=5000,
        deviceScaleFactor=1,
        mobile=False,
    )
    browser.open(written[0])
    browser.run("document.querySelector('#tabs a[href=\"#columns\"]').click()")
    return browser


def chart(data, name):
    return f"document.querySelector('.chart[data-column=\"{data['features'].index(name)}\"]')"


def told(page, where):
    return page.run(f"{where}.querySelector('.told').textContent")


def hover(page, where, part):
    """Move the pointer to a part of the axis of a picture."""
    box = page.run(
        f"(r => [r.left, r.top, r.width, r.height])({where}.querySelector('svg')"
        ".getBoundingClientRect())"
    )
    x = box[0] + 60 + part * (box[2] - 74)
    page.run(
        f"{where}.querySelector('svg').dispatchEvent(new PointerEvent('pointermove',"
        f"{{clientX: {x}, clientY: {box[1] + 50}}}))"
    )


def press(page, where, key):
    page.run(
        f"{where}.querySelector('svg')"
        f".dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}))"
    )


def test_a_curve_tells_value_and_rows(page, written):
    _, explainer, data = written
    where, places = chart(data, "area"), data["outputs"][0]["decimals"]
    curve, area = explainer.curve("area"), X["area"].dropna()
    low, high = area.min(), area.max()
    for part in (0.0, 0.31, 0.77, 1.0):
        hover(page, where, part)
        text = told(page, where)
        t = low + part * (high - low)
        value = fixed(curve([t])[0], places, sign=True)
        bin_ = min(int(part * 30), 29)
        edges = low + (high - low) * np.array([bin_, bin_ + 1]) / 30
        rows = int(((area >= edges[0]) & ((area < edges[1]) | (bin_ == 29))).sum())
        assert text.startswith(f"{t:.1f} m²: {value} €") or text.startswith(
            f"{t:.0f} m²: {value} €"
        )
        assert f" {rows} row" in text
    page.run(f"{where}.querySelector('svg').dispatchEvent(new PointerEvent('pointerleave'))")
    assert told(page, where).startswith("Row 0: area = missing")


def test_a_step_that_ends_at_the_lowest_value_is_upright(browser, tmp_path):
    """A class that only the lowest row has: exact behind a link, the curve jumps at that row."""
    rows = pd.DataFrame({"a": [1.0, *np.linspace(2, 9, 39)], "b": RNG.random(40)})
    model = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(rows, rows["a"] < 2)
    curve = MeasureExplainer(model, output="proba").fit(rows).curve("a")
    edges = curve.to_frame()["upper"]
    rows.loc[0, "a"] = edges.iloc[0]  # the lowest row stands on the jump
    write_report(MeasureExplainer(model, output="proba").fit(rows), rows, tmp_path / "one.html")
    browser.open(tmp_path / "one.html")
    browser.run("document.querySelector('#tabs a[href=\"#columns\"]').click()")
    line = "document.querySelector('.chart[data-column=\"0\"] .curve')"
    press(browser, "document.querySelector('.chart[data-column=\"0\"]')", "Home")
    points = browser.run(f"{line}.getAttribute('points')").split()
    ends = [tuple(map(float, point.split(","))) for point in points]
    assert edges.iloc[0] == rows["a"].min() and len({y for _, y in ends}) > 1
    for (x, y), (next_x, next_y) in itertools.pairwise(ends):
        assert x == next_x or y == next_y, "a step is flat, a jump upright"


def test_keys_walk_along_and_zoom(page, written):
    where = chart(written[2], "area")
    press(page, where, "Home")
    first = told(page, where)
    assert first.startswith(f"{X['area'].min():.0f}")
    press(page, where, "ArrowRight")
    assert told(page, where) != first
    press(page, where, "End")
    assert told(page, where).startswith(f"{X['area'].max():.0f}")
    before = page.run(f"{where}.querySelector('polyline').getAttribute('points')")
    press(page, where, "+")
    zoomed = page.run(f"{where}.querySelector('polyline').getAttribute('points')")
    assert zoomed != before and len(zoomed) < len(before)
    press(page, where, "Home")  # the left end is now in the middle of the column
    assert float(told(page, where).split()[0]) == pytest.approx(
        (X["area"].min() + X["area"].max()) / 2, abs=1
    )
    press(page, where, "0")
    assert page.run(f"{where}.querySelector('polyline').getAttribute('points')") == before
    page.run(f"{where}.querySelectorAll('.zoom button')[0].click()")
    assert page.run(f"{where}.querySelector('polyline').getAttribute('points')") != before
    page.run(f"{where}.querySelectorAll('.zoom button')[2].click()")
    assert page.run(f"{where}.querySelector('polyline').getAttribute('points')") == before
    assert page.run(f"{where}.querySelector('svg').tabIndex") == 0
    assert page.problems() == []


def test_pictures_are_drawn_when_they_come_near(browser, written):
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=800, height=600, deviceScaleFactor=1,
        mobile=False,
    )  # fmt: skip
    browser.open(written[0])
    browser.run("document.querySelector('#tabs a[href=\"#columns\"]').click()")
    count = "[...document.querySelectorAll('.chart svg')].filter(s => s.childElementCount).length"
    first = browser.run(count)
    every = browser.run("document.querySelectorAll('.chart svg').length")
    assert 0 < first < every
    last = chart(written[2], written[2]["features"][-1])
    assert told(browser, last).startswith("Row 0: ")  # and can be reached by Tab
    for where in range(every):
        chart_there = f"document.querySelectorAll('.chart')[{where}]"
        browser.run(f"{chart_there}.scrollIntoView({{behavior: 'instant'}})")
        for _ in range(100):
            browser.run("new Promise(done => setTimeout(done, 50))", wait=True)
            if browser.run(f"{chart_there}.querySelector('svg').childElementCount"):
                break
    assert browser.run(count) == every
    assert browser.problems() == []


def test_dragging_zooms(page, written):
    where = chart(written[2], "area")
    before = page.run(f"{where}.querySelector('polyline').getAttribute('points')")
    box = page.run(f"(r => [r.left, r.top])({where}.querySelector('svg').getBoundingClientRect())")
    for kind, x in (("pointerdown", 150), ("pointermove", 250), ("pointerup", 250)):
        page.run(
            f"{where}.querySelector('svg').dispatchEvent(new PointerEvent('{kind}',"
            f"{{clientX: {box[0] + x}, clientY: {box[1] + 50}}}))"
        )
    assert page.run(f"{where}.querySelector('polyline').getAttribute('points')") != before


def test_levels_and_booleans_are_bars(page, written):
    _, explainer, data = written
    places = data["outputs"][0]["decimals"]
    for name, levels in {"town": 3, "lift": 2}.items():
        where = chart(data, name)
        bars = f"{where}.querySelectorAll('rect.up, rect.down').length"
        assert page.run(bars) == levels
        press(page, where, "ArrowRight")
        for _ in range(levels):
            text = told(page, where)
            level = text.partition(":")[0]
            value = level if name == "town" else level == "True"
            rows = int((X[name] == value).sum())
            wanted = fixed(explainer.curve(name)([value])[0], places, sign=True)
            error = explainer.curve(name).background_error([value], centered=True)[0]
            assert text == f"{level}: {wanted} € ± {small(2 * error)} (background), {rows} rows."
            press(page, where, "ArrowRight")
        assert page.run(f"{where}.querySelector('.zoom')") is None
    order = [data["what_if"]["columns"][data["features"].index("lift")]["levels"][k]
             for k in data["charts"][data["features"].index("lift")]["order"]]  # fmt: skip
    assert order == ["False", "True"]


def test_the_row_picked_is_marked_everywhere(page, written):
    _, explainer, data = written
    page.choose("mark", 5)
    values = explainer.explain(X).centered()
    for name in ("area", "rooms", "town", "lift"):
        where = chart(data, name)
        assert page.run(f"{where}.querySelectorAll('.picked').length") == 1
        wanted = fixed(values[5, name].values[0, 0], data["outputs"][0]["decimals"], sign=True)
        assert told(page, where).startswith("Row 5: ") and f", {wanted} €" in told(page, where)
    page.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    assert page.run("document.getElementById('pick').value") == "5"
    assert page.run("document.querySelector('tr.picked').cells[0].textContent") == "5"


def test_the_swarm(page, written):
    _, explainer, data = written
    page.run("document.querySelector('#tabs a[href=\"#overview\"]').click()")
    swarm = "document.querySelector('.swarm')"
    pixels = f"{swarm}.querySelector('canvas').toDataURL()"
    before = page.run(pixels)
    own = page.run(f"{swarm}.querySelector('.key').textContent")
    assert own.split() == ["low", "middle", "high", "missing", "or", "without", "order"]
    page.choose("colour", data["features"].index("lift"))  # levels with an order of their own
    assert page.run(f"{swarm}.querySelector('.key').textContent").split() == ["False", "True"]
    page.choose("colour", data["features"].index("town"))
    assert page.run(pixels) != before
    key = page.run(f"{swarm}.querySelector('.key').textContent")
    assert key.split() == ["Bonn", "Oslo", "Rome"]
    focus = f"{swarm}.querySelector('canvas')"
    page.run(f"{focus}.focus()")
    page.key("ArrowDown", 40)
    page.key("ArrowRight", 39)
    text = told(page, swarm)
    i, name = int(re.match(r"Row (\d+)", text)[1]), data["features"][1]
    value = explainer.explain(X).centered()[i, name].values[0, 0]
    assert f"{fixed(value, data['outputs'][0]['decimals'], sign=True)} €" in text
    assert f"town = {X['town'][i]}" in text
    page.key("Enter", 13, "\r")
    page.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    assert page.run("document.getElementById('pick').value") == str(i)
    page.run("document.querySelector('#tabs a[href=\"#overview\"]').click()")
    box = page.run(f"(r => [r.left, r.top])({focus}.getBoundingClientRect())")
    for j in range(len(data["features"])):
        page.run(
            f"{focus}.dispatchEvent(new PointerEvent('pointermove', "
            f"{{clientX: {box[0]} + 400, clientY: {box[1]} + {36 * j + 18}}}))"
        )
    assert page.problems() == [] and page.requests() == []


def test_dates_without_a_curve_are_points_with_dates(browser, tmp_path):
    rows = X[["rooms", "day"]]
    days = (rows["day"] - pd.Timestamp("2024-01-01")).dt.days.to_numpy()
    explainer = MeasureExplainer(
        lambda Z: (Z["day"] - pd.Timestamp("2024-01-01")).dt.days.to_numpy() * 1.0, "shapley"
    ).fit(rows)
    write_report(explainer, rows, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    browser.run("document.querySelector('#tabs a[href=\"#columns\"]').click()")
    where = "document.querySelector('.chart[data-column=\"0\"]')"
    assert browser.run(f"{where}.querySelectorAll('circle.dot').length") == N
    press(browser, where, "Home")
    first = int(np.argmin(days))
    assert f"day = {rows['day'][first]:%Y-%m-%d}" in told(browser, where)
    ticks = browser.run(f"[...{where}.querySelectorAll('text')].map(t => t.textContent)")
    assert any(re.fullmatch(r"202[45](-\d\d)?", text) for text in ticks)
    assert browser.problems() == []


def test_one_value_and_none(browser, tmp_path):
    """Columns of one value, and of missing values only, among the rows explained."""
    rows = X[["area", "rooms"]].assign(one=np.arange(N) // 45 * 1.0, none=RNG.normal(size=N))
    model = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5)
    model.fit(rows, Y + 50 * rows["one"] + rows["none"])
    explainer = MeasureExplainer(model).fit(rows)
    write_report(explainer, rows.assign(one=1.0, none=np.nan), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    browser.run("document.querySelector('#tabs a[href=\"#columns\"]').click()")
    names = browser.run("[...document.querySelectorAll('article h3')].map(h => h.textContent)")
    where = f"document.querySelector('.chart[data-column=\"{names.index('one')}\"]')"
    press(browser, where, "Home")
    assert told(browser, where).startswith("1.00: ") and f", {N} rows from" in told(browser, where)
    empty = f"document.querySelector('.chart[data-column=\"{names.index('none')}\"]')"
    assert browser.run(f"{empty}.childElementCount") == 0
    assert browser.problems() == []


def test_errors_are_told(browser, tmp_path):
    rows = X[["area", "rooms"]].fillna(0.0)
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(rows, rows["area"])
    explainer = MeasureExplainer(forest, Conditional("gaussian"), tol=0.05, random_state=0)
    write_report(explainer.fit(rows), rows, tmp_path / "report.html")
    assert not explainer.exact_
    browser.open(tmp_path / "report.html")
    browser.run("document.querySelector('#tabs a[href=\"#columns\"]').click()")
    assert "standard error" in told(browser, "document.querySelector('.chart')")


def test_without_data_there_are_no_curves_to_ask(browser, tmp_path):
    write_report(fitted(), X, tmp_path / "report.html", include_data=False)
    browser.open(tmp_path / "report.html")
    browser.run("document.querySelector('#tabs a[href=\"#columns\"]').click()")
    assert browser.run("document.querySelectorAll('.chart svg').length") == 0
    browser.run("document.querySelector('#tabs a[href=\"#overview\"]').click()")
    assert browser.run("document.querySelectorAll('.swarm canvas').length") == 1
    assert browser.run("document.getElementById('colour')") is None
    browser.run("document.querySelector('.swarm canvas').focus()")
    browser.key("ArrowRight", 39)
    assert "=" not in told(browser, "document.querySelector('.swarm')")
    assert browser.problems() == []
