"""The report in a real browser: it opens from disk, asks nobody, and works by keyboard."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skattr import MeasureExplainer, write_report
from tests.helpers.browser import Browser
from tests.helpers.hostile import HOSTILE
from tests.helpers.reports import SECTIONS, hostile_explainer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    yield found
    found.close()


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(30, 3)), columns=["a", "b", "c"], index=[f"row {i}" for i in range(30)]
    )
    X["word"] = rng.choice([1, 2, 3], 30)
    forest = RandomForestRegressor(5, random_state=0).fit(X, X["a"] * 3 + X["b"])
    explainer = MeasureExplainer(forest).fit(X)
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(explainer, X, path)
    return path, explainer.explain(X).centered()


@pytest.fixture
def page(browser, explained):
    browser.open(explained[0])
    return browser


def labels(page):
    shown = "[...document.querySelectorAll('table.rows tbody tr')].filter(r => !r.hidden)"
    return page.run(f"{shown}.map(r => r.cells[0].textContent)")


def column(page, place):
    rows = "[...document.querySelectorAll('table.rows tbody tr')]"
    return page.run(f"{rows}.map(r => Number(r.cells[{place}].textContent))")


def test_no_request_and_no_error(page):
    page.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    assert page.requests() == [] and page.problems() == []


def test_policy_stops_scripts(page):
    page.run(
        "document.body.append(Object.assign(document.createElement('script'),"
        "{textContent: 'window.pwned = 1'}))"
    )
    assert page.run("typeof window.pwned") == "undefined"


def visible(page):
    return page.run(
        "[...document.querySelectorAll('.panel')].filter(p => !p.hidden).map(p => p.id)"
    )


def test_tabs_by_mouse_and_keyboard(page):
    assert visible(page) == ["overview"]
    page.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    assert visible(page) == ["rows"]
    page.run("document.querySelector('#tabs a[href=\"#rows\"]').focus()")
    page.key("ArrowRight", 39)
    assert visible(page) == ["trust"]
    page.key("ArrowRight", 39)
    assert visible(page) == ["overview"]
    assert page.run("document.activeElement.getAttribute('aria-selected')") == "true"


def test_sort(page):
    page.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    head = "document.querySelector('table.rows thead th:nth-child(3)')"
    page.run(f"{head}.querySelector('button').focus()")
    page.key("Enter", 13, "\r")
    assert page.run(f"{head}.getAttribute('aria-sort')") == "ascending"
    assert column(page, 2) == sorted(column(page, 2))
    page.run(f"{head}.querySelector('button').click()")
    assert column(page, 2) == sorted(column(page, 2), reverse=True)
    page.run("document.querySelector('table.rows thead button').click()")
    assert labels(page) == [f"row {i}" for i in range(30)]


def test_search(page):
    page.choose("find-row", "ROW 12")
    assert labels(page) == ["row 12"]
    assert page.run("document.getElementById('count').textContent") == "1 of 30 rows"
    page.choose("find-row", "nowhere")
    assert labels(page) == []
    page.choose("find-row", "")
    assert len(labels(page)) == 30


def test_row_picker(page, explained):
    explanation = explained[1]
    page.run("document.querySelector('#tabs a[href=\"#rows\"]').click()")
    assert page.run("document.getElementById('kind').value") == "shapley"
    page.choose("kind", "values")
    for i in (0, 7, 29):
        page.choose("pick", i)
        texts = page.run(
            "[...document.querySelectorAll('#waterfall svg text')].map(t => t.textContent)"
        )
        lines = "[...document.querySelectorAll('#numbers tbody tr')]"
        rows = page.run(f"{lines}.map(r => [...r.cells].map(c => c.textContent))")
        found = {name: (raw, float(value)) for name, raw, value in rows}
        for j, name in enumerate(explanation.feature_names):
            raw, value = found[name]
            assert value == pytest.approx(explanation.values[i, j], abs=6e-4)
            assert f"{name} = {raw}" in "".join(texts) and rows[0][2] in texts
        assert page.run("document.querySelector('tr.picked').cells[0].textContent") == f"row {i}"
    page.run("document.getElementById('next').click()")
    assert page.run("document.getElementById('pick').value") == "0"
    page.run("document.querySelectorAll('table.rows tbody th button')[4].click()")
    assert page.run("document.getElementById('pick').value") == "4"


def test_data_in_the_table(page, explained):
    page.choose("cells", "data")
    names = page.run(
        "[...document.querySelectorAll('table.rows thead th')].map(h => h.textContent)"
    )
    wanted = explained[1].data["a"].to_numpy()
    np.testing.assert_allclose(column(page, names.index("a")), wanted, rtol=1e-5)


def test_column_search(page):
    page.choose("find-column", "wor")
    shown = "[...document.querySelectorAll('article.column')].filter(a => !a.hidden)"
    assert page.run(f"{shown}.map(a => a.querySelector('h3').textContent)") == ["word"]


def test_without_javascript(browser, explained):
    browser.open(explained[0], scripts=False)
    tree = browser.call("DOM.getDocument", depth=1)["root"]["nodeId"]
    for name in SECTIONS:
        node = browser.call("DOM.querySelector", nodeId=tree, selector=f"#{name}")["nodeId"]
        box = browser.call("DOM.getBoxModel", nodeId=node)["model"]
        assert box["height"] > 40 and box["width"] > 300, name
    images = browser.call("DOM.querySelectorAll", nodeId=tree, selector="img")["nodeIds"]
    assert len(images) == 2 + 4 + 3 + 3
    for node in images:
        assert browser.call("DOM.getBoxModel", nodeId=node)["model"]["height"] > 50
    assert browser.problems() == [] and browser.requests() == []


def test_narrow_and_dark(browser, explained):
    media = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", features=media)
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=400,
        height=800,
        deviceScaleFactor=1,
        mobile=False,
    )
    browser.open(explained[0])
    for tab in ("overview", "columns", "rows", "trust"):
        browser.run(f"document.querySelector('#tabs a[href=\"#{tab}\"]').click()")
        assert browser.run("document.documentElement.scrollWidth") <= 400, tab
    dark = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.call("Emulation.setEmulatedMedia", features=[])
    browser.call("Emulation.clearDeviceMetricsOverride")
    assert max(int(part) for part in dark[4:-1].split(",")) < 60


def test_class_picker(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    forest = RandomForestClassifier(3, random_state=0).fit(X, np.arange(30) % 3)
    write_report(MeasureExplainer(forest).fit(X), X, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    shown = "[...document.querySelectorAll('.output')].filter(o => !o.hidden)"
    for place in (0, 2):
        browser.choose("output", place)
        assert set(browser.run(f"{shown}.map(o => o.dataset.output)")) == {str(place)}
    assert browser.problems() == []


@pytest.mark.parametrize("part", range(4))
def test_hostile_strings(browser, part, tmp_path):
    some = list(dict.fromkeys(HOSTILE[50 * part : 50 * (part + 1)]))
    explainer, X = hostile_explainer(some, some, some[:3], some)
    path = tmp_path / "report.html"
    write_report(
        [explainer, explainer], X, path, title=some[part], max_features=4, max_outputs=2,
        labels=some[:2], slices=X.columns[0], target=explainer.output_names_[0],
        units={X.columns[0]: some[1]}, output_unit=some[2], descriptions={X.columns[0]: some[3]},
    )  # fmt: skip
    browser.open(path)
    for tab in ("columns", "rows", "trust", "overview"):
        browser.run(f"document.querySelector('#tabs a[href=\"#{tab}\"]').click()")
        browser.run(
            "document.querySelectorAll('.chart svg, .swarm canvas').forEach(e => "
            "e.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'})))"
        )
    for place in range(4):
        browser.choose("colour", place)
    browser.run("document.getElementById('next').click()")
    assert browser.run("typeof window.pwned") == "undefined"
    assert browser.requests() == [] and browser.problems() == []
    assert len(labels(browser)) == len(some) * 2
    assert browser.run("document.querySelectorAll('h1').length") == 1
    assert browser.run("document.querySelectorAll('script').length") == 3  # data, and two of ours


def test_print(browser, explained):
    browser.open(explained[0])
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call("Emulation.setDeviceMetricsOverride", width=718, height=1000,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip
    try:
        hidden = browser.run(
            "[...document.querySelectorAll('section,article')].filter(e => !e.offsetHeight).length"
        )
        wide = browser.run("document.documentElement.scrollWidth")
        controls = browser.run(
            "[...document.querySelectorAll('input,select,#tabs')]"
            ".filter(e => e.offsetHeight).length"
        )
        beside = browser.run(
            "(([a, b]) => a.getBoundingClientRect().right <= b.getBoundingClientRect().left)"
            "([...document.querySelector('article .pair').children])"
        )
        # a button is not repeated with the heading of a table on each page
        heading = browser.run("getComputedStyle(document.querySelector('thead button')).display")
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
        browser.call("Emulation.clearDeviceMetricsOverride")
    assert hidden == 0 and wide <= 718 and controls == 0 and beside and heading == "contents"
