"""The snippets of README and of the pages in docs run as they are pasted.

Blocks of a page share one namespace, in the order of the page, and one folder, as a reader's
session does; the first block of a page has its imports.
"""

import re
import shlex
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from skattr import cli

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "auto_examples" not in path.parts
}
BLOCKS = {
    page: re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    for page, text in PAGES.items()
}
PYTHON = [
    (page, text) for page, blocks in BLOCKS.items() for language, text in blocks
    if language == "python"
]  # fmt: skip
README = PAGES["README.md"]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_every_block_is_of_a_language_that_is_tested_or_read():
    languages = {language for blocks in BLOCKS.values() for language, _ in blocks}
    assert languages == {"bash", "python", "bibtex"}
    pages = [page for page, _ in PYTHON]
    guides = {page for page in PAGES if page.startswith(("docs/guide/", "docs/extending/"))}
    assert {page for page in guides if not page.endswith("index.md")} <= set(pages)


def test_readme_is_a_front_door():
    assert len(README.split()) <= 600


def test_commands_that_ci_runs():
    for number in (1, 2):
        assert re.search(rf"<!-- command {number} -->\n```bash\n.*\n```", README)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]*)(?:#[^)\s]*)?\)", PAGES[page]):
        assert "://" in link or ((ROOT / page).parent / link).exists(), link
    headings = re.findall(r"^#+ (.*)$", PAGES[page], flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)\s]*)\)", PAGES[page])) <= anchors


def test_the_list_of_trusted_types_is_where_the_guide_says():
    page = PAGES["docs/guide/reports.md"]
    (path,) = re.findall(r"\]\(\.\./\.\./(skattr/_files/trusted\.py)\)", page)
    assert "TRUSTED = {" in (ROOT / path).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_blocks_in_order(page, tmp_path, monkeypatch, capsys):
    """All blocks of Python, and the commands `skattr …` between them, in one folder."""
    pytest.importorskip("skops")
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    commands = 0
    for language, text in BLOCKS[page]:
        if language == "python":
            with warnings.catch_warnings():  # they are errors, as in all tests
                exec(compile(text, page, "exec"), namespace)
        elif language == "bash":
            for line in text.splitlines():
                if line.startswith("skattr "):
                    commands += 1
                    assert cli.main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert "warning" not in said.err
    if page == "README.md":
        assert "exact" in said.out
        assert "<title>" in Path("report.html").read_text("utf-8")
    if page == "docs/guide/reports.md":
        assert commands == 2
        found, test = pd.read_csv("values.csv"), pd.read_csv("test.csv")
        assert list(found) == ["row", "prediction", "base_value", *test] and len(found) == len(test)
        report = Path("report.html").read_text("utf-8")
        assert "<title>Attributions of model.skops</title>" in report


def test_what_readme_says_of_the_quick_look(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    exec(PYTHON[0][1], namespace)
    explanation, explainer = namespace["explanation"], namespace["explainer"]
    X_test = namespace["X_test"]
    table = explanation.to_frame()
    assert list(table) == list(X_test) and table.index.equals(X_test.index)
    assert explanation.exact
    curve = explainer.curve("bmi")
    pd.testing.assert_series_equal(
        pd.Series(curve(X_test["bmi"]), index=X_test.index, name="bmi"), table["bmi"]
    )
