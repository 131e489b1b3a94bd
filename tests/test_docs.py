"""The site names everything that is public, and its pictures are drawn by its scripts."""

import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path

import pytest

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


def test_thumbnail(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the pictures need matplotlib")
    path = tmp_path / "thumbnail.png"
    monkeypatch.setattr(sys, "argv", ["thumbnail.py", str(path)])
    runpy.run_path(str(ROOT / "docs" / "_pictures" / "thumbnail.py"), run_name="__main__")
    assert path.read_bytes().startswith(b"\x89PNG")
