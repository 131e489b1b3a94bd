"""Dask on a real cluster of two worker processes."""

import os
import signal
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skattr import MeasureExplainer, distributed
from skattr.distributed import fitting
from tests.helpers.frames import assert_same_fit, cases, cut, expected
from tests.helpers.processes import SECONDS, wait_until

pytest.importorskip("distributed", reason="Dask frames need dask and distributed")
import dask
import dask.dataframe as dd
from dask.delayed import delayed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    settings = {
        "dataframe.convert-string": False,  # strings stay those of pandas
        "distributed.comm.timeouts.connect": "60s",
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def framed(parts):
    """Return parts as a Dask frame, empty ones included."""
    parts_of = [delayed(part) for part in parts]
    return dd.from_delayed(parts_of, meta=parts[0].iloc[:0], verify_meta=False)


@pytest.mark.parametrize("name", cases())
def test_equal_to_one_process(client, name):
    explainer, X = cases()[name]
    rng = np.random.default_rng(0)
    whole = clone(explainer).fit(X)
    frame = framed(cut(X, 9, rng))
    assert_same_fit(distributed.fit(clone(explainer), frame), whole, X)
    result = distributed.explain(whole, frame)
    want = expected(whole, X)
    assert isinstance(result, dd.DataFrame) and result.npartitions == 9
    pd.testing.assert_frame_equal(result._meta, want[:0])  # declared, before anything is computed
    pd.testing.assert_frame_equal(result.compute(), want, check_exact=True)


def test_conditional_sums_over_all_rows(client, monkeypatch):
    """The law is learned from the same sample as from a list of the same parts."""
    monkeypatch.setattr(fitting, "SAMPLE", 150)
    explainer, X = cases()["pipeline of raw columns"]
    explainer = clone(explainer).set_params(measure="conditional_effect")
    parts = cut(X, 9, np.random.default_rng(0))
    fitted = distributed.fit(clone(explainer), framed(parts))
    assert "a seeded sample of 150 of 400 rows, summed over all rows" in fitted.describe()
    assert_same_fit(fitted, distributed.fit(clone(explainer), parts), X)


@pytest.mark.parametrize("n_parts", [1, 50])
def test_index_keys_and_weights(client, n_parts):
    explainer, X = cases()["forest"]
    weights = np.random.default_rng(0).random(len(X))
    keyed = X.assign(key="k", w=weights).set_axis(pd.Index(np.arange(len(X)) * 2, name="id"))
    frame = dd.from_pandas(keyed, npartitions=n_parts)
    fitted = distributed.fit(clone(explainer), frame.drop(columns="key"), sample_weight="w")
    whole = clone(explainer).fit(X, sample_weight=weights)
    assert_same_fit(fitted, whole, X)
    result = distributed.explain(whole, frame, keep=["key", "w"])
    assert result.divisions == frame.divisions
    want = pd.concat([keyed[["key", "w"]], expected(whole, keyed[list(X)])], axis=1)
    pd.testing.assert_frame_equal(result.compute(), want, check_exact=True)


class Counted:
    """A model that notes in a folder which processes have unpickled it."""

    def __init__(self, folder):
        self.folder = folder

    def __setstate__(self, state):
        self.__dict__ = state
        with open(os.path.join(self.folder, str(os.getpid())), "a") as file:
            file.write("x")

    def __call__(self, rows):
        return rows.iloc[:, 0].to_numpy() * 2.0


def test_the_model_is_read_once_per_worker(client, tmp_path):
    _, X = cases()["forest"]
    explainer = MeasureExplainer(Counted(str(tmp_path))).fit(X[:20])
    for file in tmp_path.iterdir():
        file.unlink()
    frame = dd.from_pandas(X[:60], npartitions=20)
    distributed.explain(explainer, frame, predictions=False).compute()
    counts = {file.name: len(file.read_text()) for file in tmp_path.iterdir()}
    counts.pop(str(os.getpid()), None)
    assert counts and set(counts.values()) == {1}


def slow(part, folder):
    with open(os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}"), "w"):
        pass
    time.sleep(0.2)
    return part


def test_a_killed_worker(client, tmp_path):
    explainer, X = cases()["forest"]
    whole = clone(explainer).fit(X)
    frame = framed(cut(X, 12, np.random.default_rng(1)))
    frame = frame.map_partitions(slow, str(tmp_path), meta=frame._meta)
    future = client.compute(distributed.explain(whole, frame))
    wait_until(
        lambda: len(list(tmp_path.iterdir())) >= 3,
        "both workers in the middle of it",
        lambda: future.status == "pending",
    )
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
    pd.testing.assert_frame_equal(future.result(SECONDS), expected(whole, X), check_exact=True)
    assert_same_fit(distributed.fit(clone(explainer), frame), whole, X)


def test_a_bad_partition_is_named_and_nothing_is_written(client, tmp_path):
    explainer, X = cases()["forest"]
    whole = clone(explainer).fit(X)
    frame = framed([X[:100], X[100:200].assign(rooms="many"), X[200:]])
    with pytest.raises(ValueError, match=r"partition 1: column 'rooms' holds .*'many'"):
        distributed.explain(whole, frame).compute()
    with pytest.raises(ValueError, match=r"partition 1: column 'rooms' holds .*'many'"):
        distributed.fit(clone(explainer), frame)


def test_what_does_not_pickle_is_named_before_anything_starts(client):
    import threading

    _, X = cases()["forest"]
    lock = threading.Lock()

    def model(rows):
        return np.zeros(len(rows)) + lock.locked()

    with pytest.raises(TypeError, match="estimator=function must pickle to reach the workers"):
        distributed.fit(MeasureExplainer(model), dd.from_pandas(X, npartitions=2))
