"""Spark in local mode with two threads, on a real JVM."""

import os
import shutil
import signal
import sys
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from skattr import distributed
from tests.helpers.frames import assert_same_fit, cases, expected
from tests.helpers.processes import wait_until

pytest.importorskip("pyspark", reason="Spark frames need pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*attempted Arrow optimization:UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2, 2]")  # a task may fail once, as on a cluster
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def framed(spark, X, n_parts):
    return spark.createDataFrame(pa.Table.from_pandas(X, preserve_index=False)).repartition(n_parts)


def collected(result):
    return result.toArrow().to_pandas().sort_values("key").reset_index(drop=True)


def test_equal_to_one_process(spark):
    for name, (explainer, X) in cases().items():
        if name in ("forest", "groups"):  # explained by the same engine as a pipeline
            continue
        whole = clone(explainer).fit(X)
        keyed = X.assign(key=np.arange(len(X)))
        frame = framed(spark, keyed, 5)
        result = distributed.explain(whole, frame, keep=["key"])
        want = expected(whole, X)
        assert result.columns == ["key", *want], name
        rows = collected(result).drop(columns="key")
        pd.testing.assert_frame_equal(rows, want, check_exact=True)
        if name in ("pipeline of raw columns", "uniform"):
            assert_same_fit(distributed.fit(clone(explainer), frame.drop("key")), whole, X)


def test_partitions_and_weights(spark):
    explainer, X = cases()["forest"]
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    whole = clone(explainer).fit(X, sample_weight=weights)
    for n_parts in (1, 12):
        frame = framed(spark, X.assign(w=weights), n_parts)
        assert_same_fit(distributed.fit(clone(explainer), frame, "w"), whole, X)
    explainer = clone(explainer).set_params(measure="conditional_effect")
    whole = clone(explainer).fit(X, sample_weight=weights)
    assert_same_fit(distributed.fit(clone(explainer), frame, "w"), whole, X)
    explainer = clone(explainer).set_params(measure="main_effect")
    few = framed(spark, X[:5].assign(w=1.0), 9)  # most partitions are empty
    assert_same_fit(distributed.fit(clone(explainer), few, "w"), clone(explainer).fit(X[:5]), X)


def test_times_and_decimals(spark):
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    from skattr import MeasureExplainer

    _, X = cases()["forest"]
    X = X[:60].assign(day=pd.date_range("2024-01-01", periods=60, unit="us"))
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(encoder, RandomForestRegressor(3, random_state=0)).fit(X, X["area"])
    whole = MeasureExplainer(FrozenEstimator(model)).fit(X)
    frame = framed(spark, X.assign(key=range(60)), 3)
    frame = frame.withColumn("rooms", frame["rooms"].cast("decimal(10,0)"))
    result = collected(distributed.explain(whole, frame, keep=["key"]))
    np.testing.assert_array_equal(result.to_numpy()[:, 1:], expected(whole, X).to_numpy())


def test_bad_partitions_and_streams(spark, tmp_path):
    explainer, X = cases()["pipeline of raw columns"]
    whole = clone(explainer).fit(X)
    text = X.assign(rooms=["many" if i == 70 else "3" for i in range(len(X))])
    out = tmp_path / "values.parquet"
    with pytest.raises(Exception, match=r"partition \d+: column 'rooms' holds .*'3'"):
        distributed.explain(whole, framed(spark, text, 3)).write.parquet(str(out))
    assert not list(out.glob("*.parquet")) and not (out / "_SUCCESS").exists()
    stream = spark.readStream.format("rate").load()
    with pytest.raises(TypeError, match=r"streaming DataFrame has no end.*foreachBatch"):
        distributed.explain(whole, stream)


def killed_once(folder):
    """Return a function that kills the Python process of the first task that runs it."""

    def pass_on(batches):
        for batch in batches:
            try:
                with open(os.path.join(folder, "killed"), "x"):
                    pass
            except FileExistsError:
                yield batch
            else:
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_on


def test_a_killed_worker(spark, tmp_path):
    explainer, X = cases()["forest"]
    whole = clone(explainer).fit(X)
    frame = framed(spark, X.assign(key=np.arange(len(X))), 4)
    risky = frame.mapInArrow(killed_once(str(tmp_path)), frame.schema)
    result = collected(distributed.explain(whole, risky, keep=["key"])).drop(columns="key")
    assert (tmp_path / "killed").exists()
    pd.testing.assert_frame_equal(result, expected(whole, X), check_exact=True)
    (tmp_path / "killed").unlink()
    fitted = distributed.fit(clone(explainer), risky.drop("key"))
    assert (tmp_path / "killed").exists()
    assert_same_fit(fitted, whole, X)


def test_cancelling_leaves_no_files(spark, tmp_path):
    explainer, X = cases()["forest"]
    whole = clone(explainer).fit(X)
    started, out = tmp_path / "started", tmp_path / "values.parquet"

    def wait(batches, path=str(started)):
        for i, batch in enumerate(batches):
            if i:
                with open(path, "w"):
                    pass
                time.sleep(60)
            yield batch

    frame = framed(spark, X, 2)
    values = distributed.explain(whole, frame.mapInArrow(wait, frame.schema))
    errors = []

    def write():
        try:
            values.write.parquet(str(out))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    wait_until(started.exists, "the second batch", thread.is_alive)
    spark.sparkContext.cancelAllJobs()
    thread.join(60)
    assert errors and not thread.is_alive()
    assert not list(out.rglob("*.parquet")) and not (out / "_SUCCESS").exists()
