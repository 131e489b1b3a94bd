"""Spark Connect: a client without a JVM of its own, and a server that the test starts."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.processes import run_code

pytest.importorskip("pyspark", reason="Spark frames need pyspark")
NEEDED = ("grpc", "grpc_status", "google", "zstandard")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in NEEDED),
        reason="Spark Connect needs pip install 'pyspark[connect]'",
    ),
]

SCRIPT = """
import warnings

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from sklearn.base import clone

from skattr import distributed
from tests.helpers.frames import assert_same_fit, cases, expected

warnings.simplefilter("ignore")
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
    .getOrCreate()
)
assert "connect" in type(spark).__module__


def framed(X, n):
    return spark.createDataFrame(pa.Table.from_pandas(X, preserve_index=False)).repartition(n)


for name in ("pipeline of raw columns", "classes"):
    explainer, X = cases()[name]
    whole = clone(explainer).fit(X)
    frame = framed(X.assign(key=np.arange(len(X)), w=1.0), 4)
    result = distributed.explain(whole, frame.drop("w"), keep=["key"]).toArrow().to_pandas()
    values = result.sort_values("key").drop(columns="key").to_numpy()
    np.testing.assert_array_equal(values, expected(whole, X).to_numpy())
    assert_same_fit(distributed.fit(clone(explainer), frame.drop("key"), "w"), whole, X)
try:
    distributed.explain(whole, framed(X.assign(rooms="many"), 2)).collect()
except Exception as error:
    assert "column 'rooms' holds" in str(error) and "partition" in str(error), error
else:
    raise AssertionError("text among numbers was taken")
try:
    distributed.explain(whole, spark.readStream.format("rate").load())
except TypeError as error:
    assert "streaming DataFrame has no end" in str(error)
spark.stop()
print("all equal")
"""


def test_equal_to_one_process():
    folder = Path(__file__).parents[2]
    paths = os.pathsep.join([str(folder), *sys.path])  # with what this process finds
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    done = run_code(SCRIPT, seconds=1100, env=environment, cwd=folder)
    assert "all equal" in done.stdout, done.stderr[-3000:]
