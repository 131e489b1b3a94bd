"""What a new user runs: the examples as they are, and the command."""

import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

from skattr import cli
from tests.helpers.processes import run

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parent.parent / "examples"


def draw(name, folder, monkeypatch):
    """Run an example that is told where to put its picture; it is a PNG."""
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    path = folder / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, str(path)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_quickstart(capsys):
    runpy.run_path(str(EXAMPLES / "quickstart.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "exact" in printed and "step function" in printed


def test_pipeline_dataframe(capsys):
    runpy.run_path(str(EXAMPLES / "pipeline_dataframe.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Curve of area" in printed and "any other" in printed and "boxes" in printed


def test_picture(tmp_path, monkeypatch):
    draw("picture.py", tmp_path, monkeypatch)


def test_relu_regions(tmp_path, monkeypatch, capsys):
    draw("relu_regions.py", tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert "polytopes, exact" in printed and "4.000000000000, of 4" in printed


def test_paper_warmup(tmp_path, monkeypatch, capsys):
    draw("paper_warmup.py", tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert "increments, exact" in printed and "riemann, error" in printed


def test_how_sure(tmp_path, monkeypatch, capsys):
    draw("how_sure.py", tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert "smallest to largest of 20 models" in printed and "the curve of bmi" in printed
    assert "± one standard error over the rows of the slice" in printed


def test_interactions(tmp_path, monkeypatch, capsys):
    draw("interactions.py", tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert "single columns explain" in printed and "Shapley interactions" in printed


def test_custom_measure(capsys):
    runpy.run_path(str(EXAMPLES / "custom_measure.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Atoms(build=up_and_down): evaluation, exact" in printed
    assert "Density(density=window): riemann, error" in printed


def test_correlated_features(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["correlated_features.py"])
    runpy.run_path(str(EXAMPLES / "correlated_features.py"), run_name="__main__")
    assert (tmp_path / "correlated_features.png").read_bytes().startswith(b"\x89PNG")
    found = re.findall(r"PartialDependence ([\d.]+)  Conditional ([\d.]+)", capsys.readouterr().out)
    assert len(found) == 2 and all(float(far) > 5 * float(near) for far, near in found)


def test_report(tmp_path, monkeypatch, capsys):
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    monkeypatch.setattr(sys, "argv", ["report.py", str(tmp_path / "flats.html")])
    runpy.run_path(str(EXAMPLES / "report.py"), run_name="__main__")
    assert "flats-conditional.html" in capsys.readouterr().out
    assert "Rents: what a column tells" in (tmp_path / "flats-conditional.html").read_text("utf-8")
    assert "What changed from" in (tmp_path / "flats-compared.html").read_text("utf-8")


def test_probabilities(capsys):
    runpy.run_path(str(EXAMPLES / "probabilities.py"), run_name="__main__")
    assert "exact, behind a link" in capsys.readouterr().out


def test_one_row(tmp_path, monkeypatch, capsys):
    draw("one_row.py", tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert "steps" in printed and "smallest changes" in printed and "Shapley" in printed


def test_which_measure(capsys):
    runpy.run_path(str(EXAMPLES / "which_measure.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "sensitivity" in printed and "insertion is off" in printed
    assert "conditional, centred. Only" in printed  # the recommendation
    (complete,) = re.findall(r"^completeness +(.*)$", printed, flags=re.MULTILINE)
    assert complete.split() == ["no"] * 5 + ["yes", "?"]


def test_from_shap(capsys):
    runpy.run_path(str(EXAMPLES / "from_shap.py"), run_name="__main__")
    printed = capsys.readouterr().out
    ours = re.findall(r"skattr: .* at most (\S+)", printed)
    assert len(ours) == 2 and all(float(off) < 1e-9 for off in ours)
    theirs = re.findall(r"^shap: .* at most", printed, flags=re.MULTILINE)
    assert len(theirs) == 2 or "shap is not installed" in printed


def run_apart(name):
    """Run an example in a process of its own: clusters start processes."""
    done = run([sys.executable, EXAMPLES / name])
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_dask_parquet():
    pytest.importorskip("distributed", reason="the example needs dask and distributed")
    printed = run_apart("dask_parquet.py")
    assert "4 partitions, 4,000 rows" in printed and "one_violation, exact" in printed


def test_spark():
    pytest.importorskip("pyspark", reason="the example needs pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    printed = run_apart("spark.py")
    assert "base_value: double" in printed and "those of one process" in printed


PAPER = sorted((EXAMPLES / "paper").glob("*.py"))


@pytest.mark.parametrize("script", PAPER, ids=lambda path: path.stem)
def test_paper(script, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [script.name])
    runpy.run_path(str(script), run_name="__main__")  # each compares what it computes
    assert len(capsys.readouterr().out.splitlines()) > 3
    assert f"`{script.name}`" in (script.parent / "README.md").read_text()


def test_figure_of_the_paper(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib")
    monkeypatch.setattr(sys, "argv", ["recall.py", str(tmp_path / "recall.png")])
    runpy.run_path(str(EXAMPLES / "paper" / "recall.py"), run_name="__main__")
    assert (tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments", [[], ["demo", "--rows", "0"], ["nothing"]])
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert "skattr" in capsys.readouterr().out
