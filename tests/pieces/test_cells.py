"""Edges, codes and box tables: comparing as the model compares."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

from skattr.kernels import lookup
from skattr.pieces import as_pieces, choose_output
from skattr.pieces.cells.bisection import last_rounded
from skattr.pieces.cells.cells import Cells
from skattr.pieces.preprocessing.routes import Input
from skattr.pieces.preprocessing.tracks import Track
from skattr.pieces.readers.sklearn_trees import last_left

LIMIT = float(np.finfo(np.float32).max)
thresholds = st.floats(-LIMIT, LIMIT, allow_subnormal=True)


@given(thresholds)
def test_last_left_is_the_largest_float64_that_goes_left(threshold):
    edge = last_left(np.array([threshold]))[0]
    assert float(np.float32(edge)) <= threshold
    beyond = np.nextafter(edge, np.inf)
    if beyond < LIMIT:
        assert float(np.float32(beyond)) > threshold


@given(thresholds, st.sampled_from(["f4", "f2"]))
def test_last_rounded_is_the_largest_float64_that_is_rounded_down(cut, kind):
    kind = np.dtype(kind)
    limit = float(np.finfo(kind).max)
    if abs(cut) >= limit:
        return
    edge = last_rounded(np.array([cut]), kind)[0]
    assert float(kind.type(edge)) <= cut
    assert float(kind.type(np.nextafter(edge, np.inf))) > cut


@given(st.lists(thresholds | st.floats(allow_nan=False), max_size=9))
def test_edges_are_pickled_to_the_last_bit(numbers):
    """Edges of float32, of float64, infinite ones and a mixture of them."""
    for edges in (np.array(numbers, float), last_left(np.array(numbers, float))):
        source = Input(0, 0, Track(0), edges)
        cells = Cells([source], np.arange(len(edges) + 2, dtype=np.int32)[:, None], edges=edges)
        again = pickle.loads(pickle.dumps(cells))
        assert again.edges is again.inputs[0].edges
        assert_array_equal(again.edges.view(np.int64), edges.view(np.int64))
        assert cells.inputs[0] is source


def test_edges_of_float32_take_half_the_bytes():
    edges = last_left(np.sort(np.random.default_rng(0).normal(size=10_000)))
    cells = Cells([Input(0, 0, Track(0), edges)], np.arange(10_002)[:, None], edges=edges)
    assert len(pickle.dumps(cells)) < 4 * len(edges) + 2000


def test_a_threshold_at_infinity_stays_there():
    assert_array_equal(last_left(np.array([np.inf, 0.5])), [np.inf, last_left(np.array([0.5]))[0]])


@given(
    st.lists(st.floats(allow_nan=False), max_size=20, unique=True),
    st.lists(st.floats() | st.just(np.nan), min_size=1, max_size=20),
)
def test_ranks_count_the_edges_below(edges, values):
    edges = np.sort(np.array(edges, float))
    values = np.array([*values, *edges])
    codes = np.empty(len(values), np.int32)
    lookup.rank(values, edges, codes)
    wanted = [0 if np.isnan(v) else 1 + int((edges < v).sum()) for v in values]
    assert_array_equal(codes, wanted)


@pytest.mark.parametrize("n_edges", [0, 1, 2, 3, 255, 256, 5000])
def test_ranks_of_many_values(n_edges):
    rng = np.random.default_rng(n_edges)
    edges = np.unique(rng.normal(size=n_edges))
    values = np.concatenate([rng.normal(size=2 * lookup.TILE), edges, [np.inf, -np.inf, np.nan]])
    codes = np.full(len(values), -1, np.int32)
    lookup.rank(values, edges, codes)
    wanted = 1 + np.searchsorted(edges, values)
    assert_array_equal(codes, np.where(np.isnan(values), 0, wanted))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_boxes_add_up_to_the_model(offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).round(1)
    y = X[:, 0] * X[:, 1] + offset
    for model in (RandomForestRegressor(5, random_state=0), GradientBoostingRegressor()):
        model.fit(X, y)
        boxes = as_pieces(choose_output(model, "auto", X[:1]), X[:1])
        found = boxes.evaluate(boxes.grid.encode(X))[:, 0]
        assert_allclose(found, model.predict(X), rtol=1e-14, atol=1e-12)


def test_a_tree_that_is_one_box():
    X = np.zeros((5, 2))
    model = RandomForestRegressor(2, random_state=0).fit(X, np.full(5, 3.0))
    boxes = as_pieces(choose_output(model, "auto", X[:1]), X[:1])
    assert boxes.n_boxes == 2
    assert_array_equal(boxes.evaluate(boxes.grid.encode(X)), np.full((5, 1), 3.0))
