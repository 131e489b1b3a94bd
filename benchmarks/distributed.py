"""Frames in parts against the same rows in memory, by hand, and against peers.

All times are CPU times, the best of several: of this process, or of all processes of a cluster, so
that other work on the machine matters little. Two workers are compared with one by the CPU time of
the busiest process, which is the wall time on a machine that has nothing else to do. Rows are made
on the workers, and of the result only sums travel, so that compute is compared with compute.
"""

import argparse
import os
import shutil
import sys

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
from sklearn.ensemble import RandomForestRegressor

from benchmarks.timing import Table, at_least, best, summarize
from skattr import MeasureExplainer, distributed
from skattr.distributed.arrow_streams import to_pandas
from skattr.distributed.results import ResultColumns
from skattr.distributed.work import Explaining


def names(d):
    """Return the names of d columns."""
    return [f"c{k}" for k in range(d)]


def rows(seed, n, d):
    """Return n random rows of d columns as a pandas frame."""
    return pd.DataFrame(np.random.default_rng(seed).random((n, d)), columns=names(d))


def models(n_trees, depth, d):
    """Return a forest and, if it is installed, a booster."""
    X = rows(-1 % 2**32, 5_000, d)
    y = X["c0"] * X["c1"] + np.sin(6 * X["c2"]) + X["c3"]
    found = {"forest": RandomForestRegressor(n_trees, max_depth=depth, random_state=0).fit(X, y)}
    try:
        import xgboost

        booster = xgboost.XGBRegressor(n_estimators=n_trees, max_depth=6, n_jobs=1)
        found["booster"] = booster.fit(X, y)
    except ImportError:
        pass
    return found


def in_batches(explainer, n):
    """Compare batches in this process with rows in memory, in seconds per million rows."""
    X = rows(0, n, explainer.n_features_in_)
    arrow = pa.Table.from_pandas(X, preserve_index=False)
    per_million = 1e6 / n

    def read(predictions):
        for _ in distributed.explain(explainer, arrow, predictions=predictions):
            pass

    table = Table(
        "explain in one process, CPU seconds per million rows",
        ["in memory", "Arrow batches", "of it conversion", "rate in batches / in memory"],
    )
    for words, predictions in (("values", False), ("values and predictions", True)):
        memory = best(lambda p=predictions: explainer.explain(X, predictions=p), 5)
        batches = best(lambda p=predictions: read(p), 5)
        conversion = best(lambda: to_pandas(arrow), 5)
        numbers = [memory, batches, conversion]
        cells = [*(t * per_million for t in numbers), memory / batches]
        table.add(words, cells, [None, None, None, *at_least(0.8)])
    parts = [X[i : i + n // 20] for i in range(0, n, n // 20)]
    whole = best(lambda: clone(explainer).fit(X), 3)
    cut = best(lambda: distributed.fit(clone(explainer), parts), 3)
    checks = table.show()
    print(
        f"fit, CPU seconds per million rows: {whole * per_million:.3g} in memory, "
        f"{cut * per_million:.3g} in 20 batches, rate {whole / cut:.2f}\n"
    )
    return checks


def clone(explainer):
    """Return an explainer of the same fitted model, not fitted to a background."""
    return MeasureExplainer(explainer.estimator)


def by_hand(explainer, n_parts, n):
    """Make and explain all parts in this process; returns the sum of all values."""
    d = explainer.n_features_in_
    return sum(_total(explainer.explain(rows(seed, n, d))) for seed in range(n_parts))


def _total(explanation):
    return float(explanation.values.sum())


class Shares:
    """CPU seconds per million rows of what one partition takes, each on its own."""

    def __init__(self, explainer, n):
        d = explainer.n_features_in_
        X = rows(0, n, d)
        arrow = pa.Table.from_pandas(X, preserve_index=False)
        work = Explaining(explainer, _columns(explainer), "partition")
        per_million = 1e6 / n
        self.made = best(lambda: rows(0, n, d), 5) * per_million
        self.to_pandas = best(lambda: to_pandas(arrow), 5) * per_million
        result = work.of_rows(X, 0)
        self.to_arrow = best(lambda: pa.table(result), 5) * per_million
        self.computed = best(lambda: work.of_rows(X, 0), 5) * per_million


def _columns(explainer):
    names = list(explainer.column_names_)
    return ResultColumns.declared(names, explainer.output_names_, names)


def cpu_of_children():
    """Return process → CPU seconds, of all processes that this one has started."""
    seconds = {}
    for process in psutil.Process().children(recursive=True):
        try:
            seconds[process.pid] = sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return seconds


def cpu_of(run, repeat):
    """Return the CPU seconds of all children and of the busiest one, the best of several runs."""
    totals, busiest = [], []
    for _ in range(repeat):
        before = cpu_of_children()
        run()
        after = cpu_of_children()
        spent = [seconds - before.get(pid, 0.0) for pid, seconds in after.items()]
        totals.append(sum(spent))
        busiest.append(max(spent))
    return min(totals), min(busiest)


def total(frame):
    """Sum all values of an explained Dask frame, on the workers."""
    return float(frame.sum().sum().compute())


def on_dask(explainer, n_parts, n):
    """Compare one and two workers with the same work by hand."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    spent = {}
    for workers in (1, 2):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0
            ) as cluster,
            Client(cluster),
        ):
            d = explainer.n_features_in_
            frame = dd.from_map(rows, range(n_parts), n=n, d=d, meta=rows(0, 0, d))
            work = distributed.explain(explainer, frame)
            total(work)  # imports and compiled code are loaded
            spent[workers] = cpu_of(lambda w=work: total(w), 3)
    hand = best(lambda: by_hand(explainer, n_parts, n), 3)
    shares = Shares(explainer, n)
    return _show("Dask", hand, spent, n_parts * n, shares.made, 0.0, shares.computed)


def on_spark(explainer, found, n_parts, n):
    """Compare in the same way on Spark in local mode, if there is Java; and with peers there."""
    if shutil.which("java") is None:
        print("Spark needs Java, which is not installed: no numbers of Spark\n")
        return []
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spent = {}
    for workers in (1, 2):
        spark = (
            SparkSession.builder.master(f"local[{workers}]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        seeds = spark.range(0, n_parts, 1, n_parts)
        d = explainer.n_features_in_
        frame = seeds.mapInArrow(_made(n, d), _declared(d))

        def run(frame=frame):  # anew each time: Spark keeps what it has shuffled
            return distributed.explain(explainer, frame).groupBy().sum().collect()

        run()
        spent[workers] = cpu_of(run, 3)
        if workers == 1:
            peers = in_map_in_pandas(spark, found, n_parts, 250)
        spark.stop()
    hand = best(lambda: by_hand(explainer, n_parts, n), 3)
    shares = Shares(explainer, n)
    conversion = 2 * (shares.to_pandas + shares.to_arrow)  # rows are made in Python as well
    checks = _show("Spark", hand, spent, n_parts * n, shares.made, conversion, shares.computed)
    ours = spent[1][0] * 1e6 / (n_parts * n)
    table = Table(
        "one Spark worker, CPU seconds of all processes per million rows",
        ["skattr, with predictions", "peer in mapInPandas", "peer / skattr"],
    )
    for name, (seconds, least) in peers.items():
        table.add(name, [ours, seconds, seconds / ours], limit(least))
    return checks + table.show()


def in_map_in_pandas(spark, found, n_parts, n):
    """Return peer → (CPU seconds per million rows beyond those of an empty map, wanted ratio)."""
    d = found["forest"].n_features_in_
    declared = _declared(d)
    frame = spark.range(0, n_parts, 1, n_parts).mapInArrow(_made(n, d), declared)

    def seconds(contributions):
        def mapped(tables):
            for X in tables:
                yield pd.DataFrame(contributions(X)[:, : X.shape[1]], columns=X.columns)

        def run():
            return frame.mapInPandas(mapped, declared).groupBy().sum().collect()

        run()
        return cpu_of(run, 2)[0]

    nothing = seconds(lambda X: X.to_numpy())
    return {
        name: ((seconds(peer) - nothing) * 1e6 / (n_parts * n), least)
        for name, (peer, least) in peers_of(found).items()
    }


def peers_of(found):
    """Return name → (contributions of rows, wanted ratio) of the peers that are installed."""
    peers = {}
    try:
        import shap
    except ImportError:
        print("shap is not installed: no numbers of it")
    else:
        tree = shap.TreeExplainer(found["forest"])  # path-dependent, its fastest
        peers["shap.TreeExplainer, forest"] = tree.shap_values, 20
    if "booster" in found:
        import xgboost

        booster = found["booster"].get_booster()
        booster.set_param({"nthread": 1})

        def contributions(X):
            return booster.predict(xgboost.DMatrix(X, nthread=1), pred_contribs=True)

        peers["xgboost pred_contribs, booster"] = contributions, 2
    return peers


def _declared(d):
    return ", ".join(f"{name} double" for name in names(d))


def _made(n, d):
    columns = names(d)

    def make(batches):
        for batch in batches:
            for seed in batch.column("id").to_pylist():
                X = pd.DataFrame(np.random.default_rng(seed).random((n, d)), columns=columns)
                yield pa.RecordBatch.from_pandas(X, preserve_index=False)

    return make


def _show(name, hand, spent, n, made, conversion, computed):
    """Show CPU seconds of all processes of a cluster; what is not known apart is transfer."""
    per_million = 1e6 / n
    (one, alone), (_, busier) = spent[1], spent[2]
    hand, one = hand * per_million, one * per_million
    transfer = one - made - conversion - computed
    table = Table(
        f"{name}, CPU seconds of all processes per million rows",
        ["by hand", "one worker", "overhead", "rows made", "conversion", "computing",
         "transfer, scheduling", "busiest process: one / two workers"],
    )  # fmt: skip
    cells = [hand, one, one - hand, made, conversion, computed, transfer, alone / busier]
    table.add("explain with predictions", cells, [*[None] * 7, *at_least(1.7)])
    return table.show()


def limit(least):
    """Return the limits of a row of peers."""
    return [None, None, *at_least(least)]


def against_peers(found, n):
    """Compare with what people map over partitions today, in CPU seconds per million rows."""
    table = Table(
        "peers on the rows of one partition, CPU seconds per million rows",
        ["skattr", "peer", "peer / skattr"],
    )
    X = rows(3, n, found["forest"].n_features_in_)
    some = X[: max(200, n // 500)]
    for name, (peer, least) in peers_of(found).items():
        model = found[name.split()[-1]]
        ours = MeasureExplainer(model).fit(X[:5_000])
        mine = best(lambda e=ours: e.explain(X, predictions=False), 5) * 1e6 / len(X)
        theirs = best(lambda p=peer: p(some), 2) * 1e6 / len(some)
        table.add(name, [mine, theirs, theirs / mine], limit(least))
    return table.show()


def main(arguments):
    """Print all tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks distributed")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of one partition")
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--columns", type=int, default=20)
    parts = ("batches", "peers", "dask", "spark")
    parser.add_argument("--only", nargs="*", choices=parts, default=parts, help="tables to print")
    options = parser.parse_args(arguments)
    d = options.columns
    found = models(options.trees, options.depth, d)
    explainer = MeasureExplainer(found["forest"]).fit(rows(1, 10_000, d))
    print(f"a forest of {options.trees} trees of depth {options.depth}, {d} columns\n")
    each = options.rows // 4
    runs = {
        "batches": lambda: in_batches(explainer, 4 * options.rows),
        "peers": lambda: against_peers(found, options.rows),
        "dask": lambda: on_dask(explainer, options.partitions, each),
        "spark": lambda: on_spark(explainer, found, options.partitions, each),
    }
    summarize([check for name, run in runs.items() if name in options.only for check in run()])
