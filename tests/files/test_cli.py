"""The command `skattr`: files in, files out, errors of one line."""

import importlib
import io
import json
import os
import pickle
import runpy
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skattr import MeasureExplainer, cli
from skattr._commands import demo_pipeline
from skattr._files.csv_files import PRECISION
from skattr._files.results import values_table
from skattr.datasets import load_flats
from skattr.measures import BY_NAME
from tests.helpers.processes import Process, run_code

COLUMNS = ["row", "prediction", "base_value", "n", "word"]


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
    wanted = MeasureExplainer(model, "main_effect").fit(X).explain(X[:5]).to_frame()
    assert run(folder, "explain", "-o", folder / "values.csv") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "ignored columns target, code" in said.err and "a pickle runs whatever code" in said.err
    found = pd.read_csv(folder / "values.csv", **PRECISION)
    assert list(found) == COLUMNS and found["row"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found[["n", "word"]], wanted[["n", "word"]])
    np.testing.assert_array_equal(found["prediction"], model.predict(X[:5]))
    np.testing.assert_allclose(found["base_value"], model.predict(X).mean())
    assert "wrote" in said.err and "values of 2 columns for 5 rows" in said.err
    assert said.err.splitlines()[-1].endswith("in units of the prediction; exact")
    assert run(folder, "explain", "--index", "code", "-o", folder / "values.json") == 0
    lines = json.loads((folder / "values.json").read_text())
    assert lines[0]["code"] == "r0" and lines[3]["word"] == wanted["word"].iloc[3]


def test_explain_to_the_terminal(files, capsys):
    folder, _, _ = files
    assert run(folder, "explain", "--measure", "conditional") == 0
    assert capsys.readouterr().out.startswith("row,prediction,base_value,n,word\n0,")


def test_several_outputs(files, capsys):
    folder, _, X = files
    out = folder / "values.csv"
    assert run(folder, "explain", "--output", "proba", "-o", out, model="classes.pkl") == 0
    found = pd.read_csv(out, index_col="row")
    parts = ("prediction", "base_value", "n")
    assert list(found) == [f"{c}__{part}" for c in range(3) for part in parts]
    with open(folder / "classes.pkl", "rb") as file:
        classes = pickle.load(file)
    shares = classes.predict_proba(X[["n"]])
    assert "in units of the probability of 0, 1, 2; exact" in capsys.readouterr().err
    names = [f"{c}__prediction" for c in range(3)]
    np.testing.assert_allclose(found[names], shares[:5])
    np.testing.assert_allclose(
        found[[f"{c}__base_value" for c in range(3)]].iloc[0], shares.mean(0)
    )


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
    wanted = MeasureExplainer(model, "main_effect").fit(X).explain(X[:5]).to_frame()
    assert list(found) == COLUMNS and found["row"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found[["n", "word"]], wanted[["n", "word"]])
    assert run(folder, "explain", *tables, "-o", out, model="classes.pkl") == 0
    assert list(pd.read_parquet(out))[:3] == ["row", "0__prediction", "0__base_value"]


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
    assert run(folder, "explain", model="model.skops", pickles=False) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out), **PRECISION)
    wanted = MeasureExplainer(model, "main_effect").fit(X).explain(X[:5]).to_frame()
    np.testing.assert_array_equal(found[["n", "word"]], wanted[["n", "word"]])
    step = FunctionTransformer(_double)
    odd = make_pipeline(step, RandomForestRegressor(2, random_state=0)).fit(X[["n"]], X["n"])
    skops.dump(odd, folder / "odd.skops")
    assert run(folder, "explain", model="odd.skops", pickles=False) == 1
    said = capsys.readouterr().err
    name = f"{_double.__module__}.{_double.__name__}"
    assert f"add --trust {name}" in said and "Tree" not in said and "Traceback" not in said
    assert run(folder, "explain", "--trust", name, model="odd.skops", pickles=False) == 0


def _double(X):
    return X * 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--model": "absent.joblib"}, "there is no file"),
        ({"--model": "train.csv"}, "a model is a .skops, .joblib or .pkl file"),
        ({"--model": "."}, "is a folder, and a model is"),
        ({"--background": "absent.csv"}, "absent.csv"),
        ({"--data": "absent.csv"}, "there is no file"),
        ({"--data": "folder.csv"}, "is a folder, and a table is"),
        ({"--data": "model.joblib"}, "a table is a .csv or .parquet file"),
        ({"--data": "http://localhost:1/test.csv"}, "is an address: nothing is fetched"),
        ({"--background": "file:///etc/test.csv"}, "is an address: nothing is fetched"),
        ({"--background": "s3://there/test.parquet"}, "is an address: nothing is fetched"),
        ({"--data": "pipe.csv"}, "is a device, a pipe or a socket: a table is"),
        ({"-o": "pipe.csv"}, "is a device, a pipe or a socket: name a regular file"),
        ({"-o": "values.txt"}, "values are written as"),
        ({"-o": "no/such/values.csv"}, "there is no folder"),
        ({"-o": "folder.csv"}, "is a folder: name a file in it"),
        ({"-o": "test.csv"}, "is read and would be written"),
        ({"-o": "link.csv"}, "is read and would be written"),
    ],
)
def test_file_names_are_checked_before_the_model_is_loaded(files, change, words, capsys):
    folder, _, _ = files
    (folder / "folder.csv").mkdir()
    (folder / "link.csv").symlink_to(folder / "train.csv")
    os.mkfifo(folder / "pipe.csv")
    (folder / "model.joblib").write_bytes(b"not a model: loading it would be another error")
    last = failed(folder, change, capsys)
    assert words in last


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--data": "empty.csv"}, "has no rows"),
        ({"--data": "nothing.csv"}, "the file is empty"),
        ({"--data": "short.csv"}, "lacks the columns ['word']"),
        ({"--output": "proba"}, "needs a classifier"),
        ({"--index": "nothing"}, "no column 'nothing'"),
    ],
)
def test_errors_are_one_line(files, change, words, capsys):
    folder, _, _ = files
    (folder / "empty.csv").write_text("n,word\n")
    (folder / "nothing.csv").write_text("")
    (folder / "short.csv").write_text("n\n1\n")
    assert words in failed(folder, change, capsys)


def test_a_model_that_is_not_fitted_is_named(files, capsys):
    folder, _, _ = files
    models = [RandomForestRegressor()]
    if find_spec("catboost"):
        models.append(importlib.import_module("catboost").CatBoostRegressor())
    for model in models:
        joblib.dump(model, folder / "new.joblib")
        said = failed(folder, {"--model": "new.joblib"}, capsys)
        assert f"new.joblib holds a {type(model).__name__} that is not fitted" in said


def failed(folder, change, capsys):
    """Run `skattr explain` on files, one of them another; return its last line, an error."""
    names = {"--model": "model.joblib", "--background": "train.csv", "--data": "test.csv", **change}
    paths = ("--model", "--background", "--data", "-o")
    arguments = [
        text
        for name, value in names.items()
        for text in (name, str(folder / value) if name in paths and ":" not in value else value)
    ]
    assert cli.main(["explain", "--allow-pickle", *arguments]) == 1
    said = capsys.readouterr()
    last = said.err.splitlines()[-1]
    assert last.startswith("skattr: error: ") and said.out == "" and "Traceback" not in said.err
    with pytest.raises((ValueError, OSError, ImportError)):
        cli.main(["explain", "--allow-pickle", "--debug", *arguments])
    return last


def test_a_report_does_not_replace_what_it_reads(files, capsys):
    folder, _, _ = files
    assert run(folder, "report", "-o", folder / "train.csv") == 1
    assert "is read and would be written" in capsys.readouterr().err
    assert cli.main(["demo", "-o", str(folder)]) == 1
    assert "is a folder: name a file in it" in capsys.readouterr().err


DAMAGED = {
    "empty.joblib": b"",
    "text.pkl": b"hello",
    "short.joblib": pickle.dumps(np.arange(1000))[:100],
    "text.skops": b"hello",
    "no_library.pkl": b"cno_such_library\nModel\n.",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_model_that_cannot_be_loaded_is_named(files, name, capsys):
    if name.endswith(".skops"):
        pytest.importorskip("skops.io")
    folder, _, _ = files
    (folder / name).write_bytes(DAMAGED[name])
    last = failed(folder, {"--model": name}, capsys)
    assert f"{folder / name} cannot be loaded as a model: " in last


@pytest.mark.parametrize("option", ["--data", "--background"])
def test_tables_that_cannot_be_read_are_named(files, option, capsys):
    folder, _, _ = files
    (folder / "quotes.csv").write_bytes(b'n,word\n"1,2\n3,4\n')
    assert f"{folder / 'quotes.csv'}: " in failed(folder, {option: "quotes.csv"}, capsys)
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    (folder / "text.parquet").write_bytes(b"hello")
    last = failed(folder, {option: "text.parquet"}, capsys)
    assert f"{folder / 'text.parquet'} cannot be read as a Parquet file" in last


def test_skops_is_asked_for_before_anything_is_read(files, capsys, monkeypatch):
    folder, _, _ = files
    (folder / "model.skops").write_bytes(b"")
    monkeypatch.setattr("skattr._files.paths.find_spec", lambda name: None)
    last = failed(folder, {"--model": "model.skops"}, capsys)
    assert last.endswith("a .skops model needs skops: pip install skops")


def test_a_damaged_run_leaves_the_old_values(files, monkeypatch):
    folder, _, _ = files
    out = folder / "values.csv"
    assert run(folder, "explain", "-o", out) == 0
    before, names = out.read_bytes(), sorted(os.listdir(folder))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run(folder, "explain", "--measure", "conditional", "-o", out) == 1
    assert out.read_bytes() == before and sorted(os.listdir(folder)) == names


def test_safe_csv(files, capsys):
    folder, _, X = files
    names = ["=1+1", "@n"]
    raw = pd.DataFrame({"=1+1": X["n"], "@n": -X["n"], "word": X["n"] ** 2})
    model = RandomForestRegressor(2, random_state=0).fit(raw, X["n"])
    joblib.dump(model, folder / "model.joblib")
    labels = ["=cmd", "+1", "-x", "@y", "plain"]
    raw[:5].assign(code=labels).to_csv(folder / "test.csv", index=False)
    raw.assign(code="c").to_csv(folder / "train.csv", index=False)
    as_they_are, safe = folder / "values.csv", folder / "safe.csv"
    assert run(folder, "explain", "--index", "code", "-o", as_they_are) == 0
    assert run(folder, "explain", "--index", "code", "--safe-csv", "-o", safe) == 0
    found, wanted = pd.read_csv(safe), pd.read_csv(as_they_are)
    assert wanted["code"].tolist() == labels
    assert found["code"].tolist() == ["'=cmd", "'+1", "'-x", "'@y", "plain"]
    assert [name for name in found if name[:1] == "'"] == [f"'{name}" for name in names]
    np.testing.assert_array_equal(found.iloc[:, 1:], wanted.iloc[:, 1:])
    assert (found.iloc[:, 3:] < 0).any(axis=None)  # numbers stay numbers
    assert run(folder, "explain", "--safe-csv", "-o", folder / "values.json") == 1
    assert "--safe-csv is for .csv files" in capsys.readouterr().err


def test_measures(files):
    folder, model, X = files
    assert tuple(BY_NAME) == cli.MEASURES
    for name in ("main_effect", "conditional_effect", "partial_dependence", "shapley", "banzhaf"):
        out = folder / "values.csv"
        assert run(folder, "explain", "--measure", name, "-o", out) == 0
        wanted = MeasureExplainer(model, name).fit(X).explain(X[:5]).to_frame()
        np.testing.assert_allclose(pd.read_csv(out)[["n", "word"]], wanted[["n", "word"]])


def test_shapley_values_add_up(files):
    folder, _, _ = files
    out = folder / "values.csv"
    assert run(folder, "explain", "--measure", "shapley", "-o", out) == 0
    found = pd.read_csv(out)
    columns = found.drop(columns=["row", "prediction", "base_value"])
    np.testing.assert_allclose(found["base_value"] + columns.sum(axis=1), found["prediction"])


def test_centered_and_raw(files, capsys):
    folder, model, X = files
    dependence = MeasureExplainer(model, "partial_dependence").fit(X).explain(X[:5])
    for flag, wanted in [
        ([], dependence),
        (["--raw"], dependence),
        (["--centered"], dependence.centered()),
    ]:
        capsys.readouterr()
        assert run(folder, "explain", "--measure", "partial_dependence", *flag) == 0
        found = pd.read_csv(io.StringIO(capsys.readouterr().out))
        np.testing.assert_allclose(found[["n", "word"]], wanted.to_frame()[["n", "word"]])
        np.testing.assert_allclose(found["base_value"], dependence.base_value)
    with pytest.raises(SystemExit):
        run(folder, "explain", "--raw", "--centered")


def test_names_of_columns_that_are_names_of_the_output():
    X = pd.DataFrame(np.eye(3), columns=["prediction", "base_value", "row"])
    model = RandomForestRegressor(1, random_state=0).fit(X, np.arange(3.0))
    explanation = MeasureExplainer(model).fit(X).explain(X)
    table = values_table(explanation)
    assert list(table) == ["row_", "prediction_", "base_value_", "prediction", "base_value", "row"]
    np.testing.assert_array_equal(table["prediction_"], model.predict(X))
    np.testing.assert_array_equal(table["prediction"], explanation.values[:, 0])


def test_approximate_values_say_so(files, capsys):
    folder, _, _ = files
    joblib.dump(_product, folder / "model.joblib")
    columns = [f"x{k}" for k in range(8)]
    table = pd.DataFrame(np.random.default_rng(0).uniform(size=(30, 8)), columns=columns)
    table.to_csv(folder / "train.csv", index=False)
    table[:2].to_csv(folder / "test.csv", index=False)
    assert run(folder, "explain", "--measure", "uniform", "--random-state", 0) == 0
    said = capsys.readouterr().err.splitlines()[-1]
    explainer = MeasureExplainer(_product, "uniform", tol=1e-2, random_state=0).fit(table)
    error = explainer.explain(table[:2]).std_error.max()
    assert said.endswith(f"; approximate, standard error up to {error:.2g}")


def _product(X):
    return np.sin(np.asarray(X, dtype=float)).prod(axis=1)


def test_the_tolerance_is_that_of_the_explainer():
    options = cli._parser().parse_args("explain --model m --background b --data d".split())
    assert options.tol == 1e-2 and options.measure == "main_effect" and not options.centered


def test_interrupted(files, capsys, monkeypatch):
    folder, _, _ = files

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("skattr._files.results.load_model", stop)
    assert run(folder, "explain") == 130
    said = capsys.readouterr().err
    assert said.endswith("skattr: interrupted\n") and "Traceback" not in said


class Slow:
    """A pickle that takes its time to load."""

    def __reduce__(self):
        return time.sleep, (60,)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="about signals of POSIX systems")
def test_interrupted_from_outside(files):
    folder, _, _ = files
    with open(folder / "slow.pkl", "wb") as file:
        pickle.dump(Slow(), file)
    program = "import sys; from skattr.cli import main; sys.exit(main(sys.argv[1:]))"
    inputs = ["--model", "slow.pkl", "--background", "train.csv", "--data", "test.csv"]
    command = [sys.executable, "-c", program, "explain", "--allow-pickle", *inputs]
    pipe = subprocess.PIPE
    with Process(command, cwd=folder, stderr=pipe, interruptible=True) as process:
        said = process.stderr.readline() + process.stderr.readline()
        assert "a pickle runs whatever code" in said
        process.send_signal(signal.SIGINT)
        _, said = process.finish()
    assert process.returncode == 130 and said == "skattr: interrupted\n"


IMPORTING = """
import sys

class Stop:
    def find_spec(self, name, *_):
        if name == "skattr._commands":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
from skattr.__main__ import main
sys.exit(main())
"""


def test_interrupted_while_modules_are_imported():
    done = run_code(IMPORTING)
    assert done.returncode == 130 and done.stderr == "skattr: interrupted\n"


@pytest.mark.skipif(os.name == "nt", reason="about signals of POSIX systems")
def test_what_libraries_make_of_an_interrupt(files, capsys, monkeypatch):
    folder, _, _ = files

    def stop(*_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise ImportError("a library could not be imported") from error

    monkeypatch.setattr("skattr._files.results.load_model", stop)
    # a shell that started the tests in the background had SIGINT ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(folder, "explain") == 130
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # a second one ends at once
    finally:
        signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().err
    assert said.endswith("skattr: interrupted\n") and "could not" not in said


def test_a_run_leaves_signals_as_they_were(files):
    folder, _, _ = files
    before = signal.getsignal(signal.SIGINT)
    assert run(folder, "explain", "-o", folder / "values.csv") == 0
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_a_reader_that_goes_away(files):
    folder, _, _ = files
    program = "import sys; from skattr.cli import main; sys.exit(main(sys.argv[1:]))"
    inputs = ["--model", "model.joblib", "--background", "train.csv", "--data", "train.csv"]
    command = [sys.executable, "-c", program, "explain", "--allow-pickle", *inputs]
    with Process(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        process.stdout = None  # `communicate` would read it
        _, said = process.finish()
    assert process.returncode == 141 and "Traceback" not in said and "error" not in said


def test_pickles_are_refused_by_default(files, capsys):
    folder, _, _ = files
    assert run(folder, "explain", pickles=False) == 1
    assert "--allow-pickle" in capsys.readouterr().err


def test_models_without_names(files, capsys):
    folder, _, X = files
    joblib.dump(RandomForestRegressor(1).fit(X[["n"]].to_numpy(), X["n"]), folder / "model.joblib")
    assert run(folder, "explain") == 1
    assert "has 4 columns, the model takes 1 and does not know" in capsys.readouterr().err
    for name in ("train", "test"):
        pd.read_csv(folder / f"{name}.csv")[["n"]].to_csv(folder / f"{name}.csv", index=False)
    assert run(folder, "explain") == 0
    assert capsys.readouterr().out.startswith("row,prediction,base_value,n\n")


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
    if command == ["explain"]:
        assert "for a formula: import the file as text, or add --safe-csv" in printed


@pytest.mark.slow
def test_demo(tmp_path, capsys):
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    assert cli.main(["demo", "--rows", "3", "-o", str(tmp_path / "demo.html")]) == 0
    said = capsys.readouterr()
    assert "district" in said.out and "Importance" in said.out and "wrote" in said.err
    assert "in the first 3 rows\n" in said.out
    X, y = load_flats()
    rents = demo_pipeline().fit(X, y).predict(X)
    assert f"a rent of {rents.mean():,.0f}." in said.out
    table = said.out[said.out.index("  prediction") :].splitlines()[:4]
    for row, rent in zip(table[1:], rents, strict=False):
        cells = [float(cell.replace(",", "")) for cell in row.split()[1:]]
        assert abs(cells[0] - rent) <= 0.051  # rounded to one decimal
        assert abs(rents.mean() + sum(cells[1:]) - rent) < 0.5  # nine rounded numbers
    assert "Rents of 600 flats" in (tmp_path / "demo.html").read_text()


@pytest.mark.slow
def test_missing_extra_is_named(tmp_path):
    program = f"""
import sys
import time
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "jinja2":
            raise ModuleNotFoundError("blocked " + name, name=name)
sys.meta_path.insert(0, Blocked())
from skattr.cli import main
sys.exit(main(["demo", "-o", {str(tmp_path / "demo.html")!r}]))
"""
    done = run_code(program)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "skattr[report]" in done.stderr.splitlines()[-1]
    assert "Importance" in done.stdout


def test_python_m_skattr(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["skattr", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("skattr", run_name="__main__")
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("skattr ")
