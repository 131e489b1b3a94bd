"""Parquet files with Dask
=======================

Learn from, and explain, Parquet files that do not fit in memory, with Dask.

Run it: python examples/dask_parquet.py

Needs the extra `dask` (pip install 'skattr[dask]') and pyarrow.
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/dask_parquet.png"

import tempfile
from pathlib import Path

import dask.dataframe as dd
import numpy as np
from distributed import Client, LocalCluster
from sklearn.ensemble import HistGradientBoostingRegressor

from skattr import MeasureExplainer, distributed
from skattr.datasets import make_flats

COLUMNS = ["area", "rooms", "built"]


def main(folder: Path) -> None:
    """Write rents as four Parquet files, explain them, and write the values."""
    X, y = make_flats(4_000)
    model = HistGradientBoostingRegressor(max_iter=50).fit(X[COLUMNS], y)
    (folder / "flats").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(X)), 4)):
        part = X[COLUMNS].iloc[rows].assign(flat=rows)
        part.to_parquet(folder / "flats" / f"part-{i}.parquet", index=False)

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster):
            frame = dd.read_parquet(folder / "flats")
            # each partition is summed up where it is; only small tables travel
            explainer = distributed.fit(MeasureExplainer(model), frame[COLUMNS])
            print(explainer.describe())
            # nothing is computed before the values are written
            values = distributed.explain(explainer, frame, keep=["flat"])
            values.to_parquet(folder / "values")
            importance = values[COLUMNS].abs().mean().compute()

    print(f"\n{len(frame.divisions) - 1} partitions, {explainer.n_background_:,} rows")
    print("mean |value| of each column over all rows:")
    print(importance.round(1).to_string())
    local = MeasureExplainer(model).fit(X[COLUMNS]).explain(X[COLUMNS]).to_frame()
    assert np.allclose(importance, local.abs().mean())  # the same as in memory


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
