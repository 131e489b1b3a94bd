"""Large files, which the command reads in chunks: the same values, in bounded memory."""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import skops.io
from sklearn.ensemble import RandomForestRegressor

from skattr import cli
from skattr._files import samples, streams
from tests.helpers.frames import flats, pipeline
from tests.helpers.processes import Process, run_code, wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and rows as CSV and Parquet files."""
    folder = tmp_path_factory.mktemp("streams")
    X, y = flats(300)
    skops.io.dump(pipeline().fit(X, y), folder / "model.skops")
    rows = X.assign(name=[f"{i:03}" if i == 250 else str(i) for i in range(300)], more=1.5)
    rows.loc[:99, "built"] = np.nan  # the first chunks have no value
    rows["rooms"] = rows["rooms"].where(rows.index != 280, 2.5)  # a fraction among integers
    rows.to_csv(folder / "rows.csv", index=False)
    rows.to_parquet(folder / "rows.parquet", index=False)
    rows.set_index("name").to_parquet(folder / "named.parquet")
    rows.to_parquet(folder / "background.parquet", index=False)
    rows.to_csv(folder / "semicolons.csv", index=False, sep=";", decimal=",")
    return folder


def run(folder, data, out, *more, background="background.parquet"):
    model = str(folder / "model.skops")
    arguments = ["--model", model, "--background", str(folder / background)]
    return cli.main(["explain", *arguments, "--data", str(folder / data), "-o", str(out), *more])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    ("data", "more"),
    [
        ("rows.csv", []),
        ("rows.csv", ["--index", "name"]),
        ("rows.parquet", ["--centered"]),
        ("rows.parquet", ["--index", "name"]),
        ("named.parquet", []),
        ("semicolons.csv", []),
    ],
)
def test_chunks_give_the_same_values(folder, tmp_path, monkeypatch, kind, data, more):
    whole, chunks = (tmp_path / f"{name}.{kind}" for name in ("whole", "chunks"))
    assert run(folder, data, whole, *more) == 0
    monkeypatch.setattr(streams, "is_large", lambda path: path == str(folder / data))
    monkeypatch.setattr(streams, "ROWS", 37)
    assert run(folder, data, chunks, *more) == 0
    if kind == "parquet":
        pd.testing.assert_frame_equal(*map(pd.read_parquet, (whole, chunks)), check_exact=True)
    else:
        assert chunks.read_bytes() == whole.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("background", ["rows.csv", "rows.parquet", "semicolons.csv"])
def test_backgrounds_in_chunks(folder, tmp_path, monkeypatch, background):
    files = [tmp_path / f"{name}.csv" for name in ("whole", "chunks")]
    assert run(folder, "named.parquet", files[0], background=background) == 0
    monkeypatch.setattr(streams, "is_large", lambda path: True)
    monkeypatch.setattr(streams, "ROWS", 37)
    assert run(folder, "named.parquet", files[1], background=background) == 0
    a, b = map(pd.read_csv, files)
    pd.testing.assert_frame_equal(a, b, check_exact=False, rtol=1e-10, atol=1e-9)


def test_types_of_all_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "ROWS", 2)
    path = tmp_path / "background.csv"
    path.write_text("a,b,c,d\n1,x,,True\n2,y,,\n1.5,3,5,False\n,4,6,x\n")
    table = streams.LargeTable(str(path), None, list("abcd"), {}).typed()
    rows = pd.concat(table)
    assert rows["a"].tolist()[:3] == [1.0, 2.0, 1.5] and rows["a"].dtype == np.float64
    assert rows["b"].tolist() == ["x", "y", "3", "4"]
    assert rows["c"].tolist()[2:] == [5.0, 6.0]
    assert rows["d"].tolist()[0] == "True" and rows["d"].tolist()[3] == "x"


@pytest.mark.slow
def test_reports_show_a_sample(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("jinja2", reason="the report needs jinja2")
    monkeypatch.setattr(streams, "is_large", lambda path: path.endswith(".csv"))
    monkeypatch.setattr(streams, "ROWS", 37)
    monkeypatch.setattr(samples, "MOST", 100)
    out = tmp_path / "report.html"
    arguments = ["--model", str(folder / "model.skops"), "--data", str(folder / "rows.csv")]
    arguments += ["--background", str(folder / "rows.parquet"), "-o", str(out)]
    assert cli.main(["report", *arguments]) == 0
    assert "a seeded sample of 100 of 300 rows" in capsys.readouterr().err
    assert "a sample of 100 of 300 rows" in out.read_text()


def test_a_sample_is_uniform_and_in_order(monkeypatch):
    monkeypatch.setattr(samples, "MOST", 50)
    X = pd.DataFrame({"a": np.arange(1000)})
    rows, n = samples.sample_rows(X[start : start + 30] for start in range(0, 1000, 30))
    assert n == 1000 and len(rows) == 50 and rows["a"].is_monotonic_increasing
    assert 300 < rows["a"].mean() < 700
    rows, n = samples.sample_rows([X[:20], X[20:40]])
    assert rows.equals(X[:40]) and n == 40


def test_a_bad_row_of_a_late_chunk_leaves_nothing(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(streams, "is_large", lambda path: path.endswith("bad.csv"))
    monkeypatch.setattr(streams, "ROWS", 37)
    rows = pd.read_csv(folder / "rows.csv", dtype=str)
    rows.loc[222, "area"] = "wide"
    rows.to_csv(tmp_path / "bad.csv", index=False)
    out = tmp_path / "values.csv"
    assert run(folder, tmp_path / "bad.csv", out) == 1
    assert "row 222, column 'area': 'wide' is not a number" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["bad.csv"]


COMMAND = [sys.executable, "-c", "import sys; from skattr.cli import main; sys.exit(main())"]


def large_files(folder, n_rows):
    """Write a model of numbers and a Parquet file of many rows, in row groups."""
    rng = np.random.default_rng(0)
    names = [f"c{k}" for k in range(20)]
    X = pd.DataFrame(rng.random((2000, 20)), columns=names)
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X, X["c0"] * X["c1"])
    skops.io.dump(model, folder / "model.skops")
    X.to_parquet(folder / "background.parquet")
    schema = pa.schema([(name, pa.float64()) for name in names])
    # without dictionaries the size is that of the numbers, whatever the version of pyarrow
    with pq.ParquetWriter(folder / "data.parquet", schema, use_dictionary=False) as writer:
        for _ in range(n_rows // 100_000):
            rows = rng.random((100_000, 20))
            writer.write_table(pa.table(list(rows.T), schema=schema))
    return [
        "explain", "--model", str(folder / "model.skops"),
        "--background", str(folder / "background.parquet"),
        "--data", str(folder / "data.parquet"), "-o", str(folder / "values.parquet"),
    ]  # fmt: skip


# the peak of getrusage begins with that of the process that started this one
PEAK = """
import re, sys
from skattr.cli import main
code = main(sys.argv[1:])
with open("/proc/self/status") as file:
    print("peak", int(re.search(r"VmHWM:\\s+(\\d+)", file.read()).group(1)) // 1024)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("size", "n_rows"), [(200, 1_300_000), pytest.param(2000, 13_000_000, marks=pytest.mark.large)]
)
def test_memory_does_not_grow_with_the_file(tmp_path, size, n_rows):
    """Explain 200 MB or 2 GB of Parquet, with as many values again, in less than 1 GB."""
    arguments = large_files(tmp_path, n_rows)
    assert os.path.getsize(tmp_path / "data.parquet") > size * 1e6
    done = run_code(PEAK, *arguments, seconds=1100)
    assert done.returncode == 0, done.stderr
    assert f"for {n_rows:,} rows" in done.stderr
    assert int(done.stdout.split()[-1]) * 2**20 < 1e9, done.stdout
    values = pq.ParquetFile(tmp_path / "values.parquet").metadata
    assert values.num_rows == n_rows and values.num_columns >= 22


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for other processes")
def test_cancelling_leaves_no_files(tmp_path):
    arguments = large_files(tmp_path, 600_000)
    before = {file.name for file in tmp_path.iterdir()}
    command, pipe = [*COMMAND, *arguments], subprocess.PIPE
    with Process(command, stderr=pipe, interruptible=True) as process:
        for line in process.stderr:
            if "explaining" in line:
                break
        wait_until(
            lambda: any("unfinished" in file.name for file in tmp_path.iterdir()),
            "an unfinished file",
            lambda: process.poll() is None,
        )
        process.send_signal(signal.SIGINT)
        assert "interrupted" in process.finish()[1]
    assert process.returncode == 130
    assert {file.name for file in tmp_path.iterdir()} == before
