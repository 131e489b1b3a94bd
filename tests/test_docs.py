"""The site names everything that is public, and its pictures are drawn by its scripts."""

import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path

import pytest

from tests.helpers.browser import find_browser

ROOT = Path(__file__).parent.parent
API = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
MODULES = (
    "skattr", "skattr.axioms", "skattr.compat", "skattr.datasets", "skattr.distributed",
    "skattr.engines", "skattr.measures", "skattr.metrics", "skattr.optimize", "skattr.plot",
)  # fmt: skip


def listed():
    """Return the pairs (module, name) that the API lists."""
    module, names = None, set()
    for line in API.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   (\w+)$", line):
            names.add((module, found[1]))
    return names


def public():
    """Return the pairs (module, name) of all public functions and classes."""
    names = set()
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) or inspect.isfunction(value):
                names.add((module, name))
    return names


def test_the_api_lists_what_is_public():
    assert listed() == public()


@pytest.mark.parametrize(("module", "name"), sorted(public()))
def test_public_names_have_an_example(module, name):
    assert ">>>" in inspect.getdoc(getattr(importlib.import_module(module), name))


def shown_in_pages():
    """Return the Python of all pages and of the gallery."""
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "auto_examples" not in page.parts]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    scripts = [path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")]
    return "".join([*blocks, *scripts])


def methods():
    """Return (class, method) for all that users call; engines and measures have protocols."""
    found = set()
    for module, name in public():
        value = getattr(importlib.import_module(module), name)
        if inspect.isclass(value) and module not in ("skattr.engines", "skattr.measures"):
            for each, member in vars(value).items():
                function = getattr(member, "__func__", member)
                if not each.startswith("_") and inspect.isfunction(function):
                    found.add((value, each))
    return found


def test_methods_are_shown_in_an_example():
    """In a docstring of their own, in that of the class, or on a page."""
    pages, missing = shown_in_pages(), []
    for kind, name in methods():
        examples = [line for line in inspect.getdoc(kind).splitlines() if line.startswith(">>> ")]
        if ">>>" in (inspect.getdoc(getattr(kind, name)) or ""):
            continue
        if not re.search(rf"\.{name}\(", pages + "".join(examples)):
            missing.append(f"{kind.__name__}.{name}")
    assert len(methods()) > 40 and missing == []


def test_docstrings_cite_sections_that_exist():
    page = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (\d+)\. ", page, flags=re.MULTILINE))
    cited = set()
    for path in (ROOT / "skattr").rglob("*.py"):
        text = " ".join(path.read_text(encoding="utf-8").split())
        for numbers in re.findall(r"docs/mathematics\.md, sections? (\d+(?: and \d+)?)", text):
            cited.update(numbers.split(" and "))
    assert cited and cited <= sections


@pytest.mark.slow
def test_pictures_of_the_measures(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the pictures need matplotlib")
    monkeypatch.setattr(sys, "argv", ["measures.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "_pictures" / "measures.py"), run_name="__main__")
    assert {path.name for path in tmp_path.iterdir()} == {
        "measures-dark.svg", "measures-light.svg",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_pictures_of_the_report(tmp_path, monkeypatch):
    find_browser()
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    monkeypatch.setattr(sys, "argv", ["report.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "_pictures" / "report.py"), run_name="__main__")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in (ROOT / "docs").glob("report*.png")}


def test_every_page_of_the_gallery_has_a_picture_of_its_own(tmp_path, monkeypatch):
    """Scripts draw one, or name a sketch, which the script of the sketches draws."""
    pytest.importorskip("matplotlib", reason="the pictures need matplotlib")
    monkeypatch.setattr(sys, "argv", ["thumbnails.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "_pictures" / "thumbnails.py"), run_name="__main__")
    sketches = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(set(sketches.values())) == len(sketches)
    assert all(picture.startswith(b"\x89PNG") for picture in sketches.values())
    folder = ROOT / "docs" / "_static" / "thumbnails"
    assert {path.name for path in folder.iterdir()} == set(sketches)
    named = {"paper.png"}  # all pages on the paper have this one
    for script in (ROOT / "examples").glob("*.py"):
        text = script.read_text(encoding="utf-8")
        found = re.findall(
            r"^# sphinx_gallery_thumbnail_path = \"(.*)\"$", text, flags=re.MULTILINE
        )
        if not found:
            assert "savefig" in text, f"{script.name} draws nothing and has no sketch"
        for path in found:
            assert (ROOT / "docs" / path).parent == folder
            named.add(Path(path).name)
    assert named == set(sketches)
