"""The bundled data: what the docstring says, and what the formula makes."""

from importlib import resources

import numpy as np
import pandas as pd
import pytest

from skattr.datasets import load_flats, make_flats

MISSING = ["area", "heating", "built"]


def test_file_is_what_the_formula_makes():
    X, y = load_flats()
    Z, z = make_flats()
    pd.testing.assert_frame_equal(X, Z)
    pd.testing.assert_series_equal(y, z)


def test_types():
    X, y = load_flats()
    assert X.shape == (600, 8) and len(y) == 600
    assert X.index.equals(y.index) and y.name == "rent"
    assert X["area"].dtype == X["built"].dtype == y.dtype == np.float64
    assert X["rooms"].dtype == np.int64
    assert X["balcony"].dtype == np.bool_
    assert X["listed"].dtype == np.dtype("datetime64[ns]")
    assert X["energy"].cat.ordered and X["energy"].cat.categories.tolist() == list("ABCDEFG")
    assert set(map(type, X["heating"])) == {str, type(None)}
    assert set(map(type, X["district"])) == {str}


def test_missing_and_rare_values():
    X, y = load_flats()
    assert X.columns[X.isna().any()].tolist() == MISSING
    assert (X[MISSING].isna().mean() < 0.2).all() and y.notna().all()
    counts = X["district"].value_counts()
    assert len(counts) == 12 and 0 < counts.min() < 5 < 50 < counts.max()
    assert set(X["energy"]) == set("ABCDEFG")


def test_every_call_reads_anew():
    X, _ = load_flats()
    X.loc[:, "area"] = 0.0
    assert load_flats()[0]["area"].max() > 0


def test_file_is_small():
    assert len(resources.files("skattr").joinpath("data", "flats.csv").read_bytes()) < 60_000


@pytest.mark.parametrize("n", [1, 50, 2000])
def test_other_sizes_and_seeds(n):
    X, y = make_flats(n, random_state=3)
    assert X.shape == (n, 8) and len(y) == n
    assert (X.dtypes == load_flats()[0].dtypes).all()
    assert (y > 0).all()
    assert not y.equals(make_flats(n, random_state=4)[1])
