"""The command `skattr`: files in, files out, errors of one line."""

import json
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skattr import MeasureExplainer, cli
from skattr.files import own_columns


@pytest.fixture
def files(tmp_path):
    """A folder with a table that has a target, and models of it."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": rng.normal(size=40), "word": rng.choice(["x", "y"], 40)})
    table = X.assign(target=X["n"] * 2, code=[f"r{i}" for i in range(40)])
    table[["target", "word", "n", "code"]].to_csv(tmp_path / "train.csv", index=False)
    table[:5].to_csv(tmp_path / "test.csv", index=False)
    columns = make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")
    model = make_pipeline(columns, RandomForestRegressor(3, max_depth=3, random_state=0))
    model.fit(X, table["target"])
    joblib.dump(model, tmp_path / "model.joblib")
    classes = RandomForestClassifier(3, random_state=0).fit(X[["n"]], np.arange(40) % 3)
    with open(tmp_path / "classes.pkl", "wb") as file:
        pickle.dump(classes, file)
    return tmp_path, model, X


def run(folder, command, *more, model="model.joblib", pickles=True):
    allow = ["--allow-pickle"] if pickles else []
    return cli.main(
        [
            command,
            "--model",
            str(folder / model),
            "--background",
            str(folder / "train.csv"),
            "--data",
            str(folder / "test.csv"),
            *allow,
            *map(str, more),
        ]
    )


def test_explain_to_files(files, capsys):
    folder, model, X = files
    wanted = MeasureExplainer(model).fit(X).explain(X[:5]).to_frame()
    assert run(folder, "explain", "-o", folder / "values.csv") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "ignored columns target, code" in said.err and "a pickle runs whatever code" in said.err
    found = pd.read_csv(folder / "values.csv")
    assert list(found) == ["row", "n", "word"] and found["row"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found[["n", "word"]], wanted[["n", "word"]])
    assert run(folder, "explain", "--index", "code", "-o", folder / "values.json") == 0
    lines = json.loads((folder / "values.json").read_text())
    assert lines[0]["code"] == "r0" and lines[3]["word"] == wanted["word"].iloc[3]


def test_explain_to_the_terminal(files, capsys):
    folder, _, _ = files
    assert run(folder, "explain", "--measure", "conditional") == 0
    assert capsys.readouterr().out.startswith("row,n,word\n0,")


def test_several_outputs(files):
    folder, _, _ = files
    out = folder / "values.csv"
    assert run(folder, "explain", "--output", "proba", "-o", out, model="classes.pkl") == 0
    assert list(pd.read_csv(out)) == ["row", "0__n", "1__n", "2__n"]


def test_parquet(files, capsys):
    folder, _, _ = files
    code = run(folder, "explain", "-o", folder / "values.parquet")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        said = capsys.readouterr().err
        assert code == 1 and "pip install pyarrow" in said and "explaining" not in said
        assert not (folder / "values.parquet").exists()
    else:
        assert code == 0 and len(pd.read_parquet(folder / "values.parquet")) == 5


def test_parquet_in_and_out(files):
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    folder, model, X = files
    for name in ("train", "test"):
        pd.read_csv(folder / f"{name}.csv").to_parquet(folder / f"{name}.parquet")
    tables = ["--background", folder / "train.parquet", "--data", folder / "test.parquet"]
    out = folder / "values.parquet"
    assert run(folder, "explain", *tables, "-o", out) == 0
    found = pd.read_parquet(out)
    wanted = MeasureExplainer(model).fit(X).explain(X[:5]).to_frame()
    assert list(found) == ["row", "n", "word"] and found["row"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found[["n", "word"]], wanted[["n", "word"]])
    assert run(folder, "explain", *tables, "-o", out, model="classes.pkl") == 0
    assert list(pd.read_parquet(out)) == ["row", "0__n", "1__n", "2__n"]


def test_report(files, capsys):
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    folder, _, _ = files
    out = folder / "report.html"
    assert run(folder, "report", "-o", out, "--title", "Mine", "--no-data", "--max-rows", 3) == 0
    page = out.read_text()
    assert "<title>Mine</title>" in page and "3 of 5 rows are shown" in page
    assert "wrote" in capsys.readouterr().err


def test_skops(files, capsys):
    skops = pytest.importorskip("skops.io")
    folder, model, X = files
    skops.dump(model, folder / "model.skops")
    assert run(folder, "explain", model="model.skops", pickles=False) == 1
    tree = "sklearn.tree._tree.Tree"
    assert f"--trust {tree}" in capsys.readouterr().err
    assert run(folder, "explain", "--trust", tree, model="model.skops", pickles=False) == 0
    plain = capsys.readouterr().out
    step = FunctionTransformer(_double)
    odd = make_pipeline(step, RandomForestRegressor(2, random_state=0)).fit(X[["n"]], X["n"])
    skops.dump(odd, folder / "odd.skops")
    assert run(folder, "explain", "--trust", tree, model="odd.skops", pickles=False) == 1
    said = capsys.readouterr().err
    name = f"{_double.__module__}.{_double.__name__}"
    assert f"--trust {name}" in said and "Traceback" not in said
    both = ["--trust", name, "--trust", tree]
    assert run(folder, "explain", *both, model="odd.skops", pickles=False) == 0
    assert plain.startswith("row,n,word")


def _double(X):
    return X * 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--model": "absent.joblib"}, "absent.joblib"),
        ({"--model": "train.csv"}, "a model is a .skops, .joblib or .pkl file"),
        ({"--data": "absent.csv"}, "absent.csv"),
        ({"--data": "model.joblib"}, "a table is a .csv or .parquet file"),
        ({"--data": "empty.csv"}, "has no rows"),
        ({"--data": "short.csv"}, "lacks the columns ['word']"),
        ({"-o": "values.txt"}, "values are written as"),
        ({"-o": "no/such/values.csv"}, "there is no folder"),
        ({"--output": "proba"}, "no classifier"),
        ({"--index": "nothing"}, "no column 'nothing'"),
        ({"--tol": "-1"}, "tol"),
    ],
)
def test_user_errors(files, capsys, change, words):
    folder, _, _ = files
    (folder / "empty.csv").write_text("n,word\n")
    (folder / "short.csv").write_text("n\n1.0\n")
    given = {"--model": "model.joblib", "--background": "train.csv", "--data": "test.csv", **change}
    paths = ("--model", "--background", "--data", "-o")
    arguments = [
        text
        for name, value in given.items()
        for text in (name, str(folder / value) if name in paths else value)
    ]
    assert cli.main(["explain", "--allow-pickle", *arguments]) == 1
    said = capsys.readouterr()
    last = said.err.splitlines()[-1]
    assert last.startswith("skattr: error: ") and words in last and said.out == ""
    with pytest.raises((ValueError, OSError)):
        cli.main(["explain", "--allow-pickle", "--debug", *arguments])


def test_pickles_are_refused_by_default(files, capsys):
    folder, _, _ = files
    assert run(folder, "explain", pickles=False) == 1
    assert "--allow-pickle" in capsys.readouterr().err


def test_models_without_names():
    table = pd.DataFrame(np.zeros((3, 2)), columns=["a", "b"])
    model = RandomForestRegressor(1).fit(np.zeros((3, 2)), np.zeros(3))
    assert own_columns(model, table, "t.csv")[1] == []
    with pytest.raises(ValueError, match="takes 2 and does not know"):
        own_columns(model, table.assign(y=1.0), "t.csv")


@pytest.mark.parametrize(
    "arguments", [[], ["explain"], ["report", "--model", "x"], ["explain", "--measure", "none"]]
)
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2 and "usage" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["demo"], ["explain"], ["report"]])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*command, "--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert "example" in printed and f"skattr {' '.join(command)}" in printed


def test_demo(tmp_path, capsys):
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    assert cli.main(["demo", "--rows", "3", "-o", str(tmp_path / "demo.html")]) == 0
    said = capsys.readouterr()
    assert "district" in said.out and "Importance" in said.out and "wrote" in said.err
    assert "Rents of 600 flats" in (tmp_path / "demo.html").read_text()


def test_missing_extra_is_named(tmp_path):
    program = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "jinja2":
            raise ModuleNotFoundError("blocked " + name, name=name)
sys.meta_path.insert(0, Blocked())
from skattr.cli import main
sys.exit(main(["demo", "-o", {str(tmp_path / "demo.html")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "skattr[report]" in done.stderr.splitlines()[-1]
    assert "Importance" in done.stdout
