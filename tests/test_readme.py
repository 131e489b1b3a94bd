"""README's snippets run as they are pasted.

Blocks share one namespace, in the order of the page, and one folder, as a reader's session does; a
block that has its imports also runs alone.
"""

import re
import shlex
import warnings
from pathlib import Path

import pandas as pd
import pytest

from skattr import cli

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]


def test_every_block_is_of_a_language_that_is_tested_or_read():
    assert {language for language, _ in BLOCKS} == {"bash", "python", "bibtex"}
    assert len(PYTHON) >= 4


def test_commands_that_ci_runs():
    for number in (1, 2):
        assert re.search(rf"<!-- command {number} -->\n```bash\n.*\n```", README)


def test_the_list_of_trusted_types_is_where_readme_says():
    (path,) = re.findall(r"\]\((skattr/trusted\.py)\)", README)
    assert "TRUSTED = (" in (Path(__file__).parent.parent / path).read_text()


def test_blocks_in_order(tmp_path, monkeypatch, capsys):
    """All blocks of Python, and the commands `skattr …` between them, in one folder."""
    pytest.importorskip("skops")
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "readme"}
    commands = 0
    for language, text in BLOCKS:
        if language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(compile(text, "README.md", "exec"), namespace)
        elif language == "bash":
            for line in text.splitlines():
                if line.startswith("skattr "):
                    commands += 1
                    assert cli.main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert "warning" not in said.err and "exact" in said.out
    assert commands == 2
    found = pd.read_csv("values.csv")
    test = pd.read_csv("test.csv")
    assert list(found) == ["row", "prediction", "base_value", *test] and len(found) == len(test)
    assert "<title>Attributions of model.skops</title>" in Path("report.html").read_text("utf-8")


@pytest.mark.parametrize("k", range(len(PYTHON)))
def test_a_block_with_imports_runs_alone(k, tmp_path, monkeypatch, capsys):
    text = PYTHON[k]
    if "import MeasureExplainer" not in text:
        assert "import skops.io" in text  # follows the block above it
        return
    monkeypatch.chdir(tmp_path)
    exec(compile(text, "README.md", "exec"), {"__name__": "readme"})


def test_what_readme_says_of_the_quick_look():
    namespace = {}
    exec(PYTHON[0], namespace)
    explanation, explainer = namespace["explanation"], namespace["explainer"]
    X_test = namespace["X_test"]
    table = explanation.to_frame()
    assert list(table) == list(X_test) and table.index.equals(X_test.index)
    assert explanation.exact
    curve = explainer.curve("bmi")
    pd.testing.assert_series_equal(
        pd.Series(curve(X_test["bmi"]), index=X_test.index, name="bmi"), table["bmi"]
    )
