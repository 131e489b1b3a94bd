"""A Spark DataFrame
=================

Learn from, and explain, a Spark DataFrame, with a key column carried along.

Run it: python examples/spark.py

Needs Java and the extra `spark` (pip install 'skattr[spark]').
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/spark.png"

import os
import shutil
import sys

import numpy as np
from pyspark.sql import SparkSession
from sklearn.ensemble import HistGradientBoostingRegressor

from skattr import MeasureExplainer, distributed
from skattr.datasets import make_flats

COLUMNS = ["area", "rooms", "built"]

if shutil.which("java") is None:
    sys.exit("Spark needs Java, which is not on the PATH: install a JRE, version 17 or newer")

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")

X, y = make_flats(2_000)
model = HistGradientBoostingRegressor(max_iter=50).fit(X[COLUMNS], y)
rows = zip(range(len(X)), *(X[name].tolist() for name in COLUMNS), strict=True)
frame = spark.createDataFrame(list(rows), "flat long, area double, rooms long, built double")
frame = frame.repartition(4)

# partitions are summed up on the executors; only small tables travel
explainer = distributed.fit(MeasureExplainer(model), frame.select(*COLUMNS))
print(explainer.describe())

# lazy, with a declared schema: write it, or go on with Spark
values = distributed.explain(explainer, frame, keep=["flat"])
values.printSchema()
values.orderBy("flat").show(5)

means = values.selectExpr(*(f"avg({name}) as {name}" for name in COLUMNS)).collect()[0]
local = MeasureExplainer(model).fit(X[COLUMNS]).explain(X[COLUMNS]).to_frame().mean()
assert np.allclose([means[name] for name in COLUMNS], local, atol=1e-9)  # the same as in memory
print("the means of all values are those of one process")
spark.stop()
