"""The kernels behind curves of ReLU networks, each against numpy."""

from itertools import pairwise

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError
from sklearn.neural_network import MLPRegressor

from skattr import MeasureExplainer
from skattr.engines.relu import line_walks
from skattr.engines.relu.line_curves import _labelled, _put_in_order
from skattr.kernels.lines import vectors
from skattr.kernels.lines.buffers import Start
from skattr.kernels.lines.products import COLUMNS, multiply, tiles
from skattr.kernels.lines.starts import find_order, find_positions, find_sides
from tests.helpers.networks import perceptron, pinned_mean

pytestmark = pytest.mark.slow

A = np.array([1.5, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-300])
B = np.array([-1.0, -3.0, 2.0, 0.5, 1.0, 2.0, 3.0, -1e-300])


@njit
def product(A, n, p, B, begin, m, out, place, work):
    """Call what only kernels call."""
    multiply(A, n, p, B, begin, m, out, place, work)


@njit
def combined(a, b, out):
    """Fill rows of `out` with what vectors give; return words and a sum."""
    x, y = vectors.load(a, 0), vectors.load(b, 0)
    vectors.store(out, 0, vectors.times(x, y))
    vectors.store(out, 8, vectors.times_plus(x, y, vectors.spread(0.25)))
    vectors.store(out, 16, vectors.choose(x, y, vectors.spread(7.0)))
    vectors.store(out, 24, vectors.unless_zero(x, y))
    change = vectors.signs(vectors.differ(vectors.spread(0.0), x, y))
    both = vectors.signs(vectors.differ(y, x, x))
    return vectors.signs(x), vectors.nonzero(x), change, both, vectors.total(y)


def bits(flags):
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def test_vectors_are_eight_numbers():
    out = np.empty((4, 8))
    with np.errstate(invalid="ignore"):
        signs, nonzero, change, both, total = combined(A, B, out)
        np.testing.assert_array_equal(out[0], A * B)
        np.testing.assert_allclose(out[1], A * B + 0.25, rtol=1e-15)
        np.testing.assert_array_equal(out[2], np.where(A < 0, B, 7.0))
    np.testing.assert_array_equal(out[3], np.where(A == 0, B, A))
    assert signs == bits(np.signbit(A))
    assert nonzero == bits(A != 0)
    assert change == bits(np.signbit(A) != np.signbit(B))
    assert both == bits(np.signbit(B))
    assert total == pytest.approx(B.sum(), rel=1e-15)


@pytest.mark.parametrize("wrong", [np.empty((16, 16)).T, np.empty(16)[::2], np.empty(16, "f4")])
def test_vectors_of_arrays_that_are_not_contiguous(wrong):
    with pytest.raises(TypingError, match="vectors are parts of contiguous arrays of float64"):
        combined(wrong, B, np.empty((4, 8)))


@njit
def fused(a, b, c, out):
    """Return a · b + c of numbers, and fill in that of vectors."""
    for i in range(0, len(a), 8):
        x, y, z = vectors.load(a, i), vectors.load(b, i), vectors.load(c, i)
        vectors.store(out, i, vectors.times_plus(x, y, z))
    return np.array([vectors.times_plus(a[i], b[i], c[i]) for i in range(len(a))])


def test_numbers_and_vectors_are_rounded_alike():
    a, b, c = np.random.default_rng(0).normal(size=(3, 800))
    out = np.empty(800)
    np.testing.assert_array_equal(fused(a, b, c, out), out)


@njit
def common_bits(a, b, flip, out):
    """Fill in how many bits eight words have in common with others, counted twice."""
    x, y = vectors.load(a, 0), vectors.load(b, 0)
    counts = vectors.add_common(vectors.spread(0.0), x, y, flip)
    vectors.store(out, 0, vectors.counted(vectors.add_common(counts, x, y, flip)))


@pytest.mark.parametrize("flip", [0, 2**64 - 1])
def test_bits_in_common_are_counted(flip):
    a, b = np.random.default_rng(0).integers(0, 2**64, (2, 8), np.uint64, endpoint=False)
    a[0], b[0], b[1] = 2**64 - 1, 2**64 - 1, 0
    out, flip = np.empty(8), np.uint64(flip)
    common_bits(a.view(np.float64), b.view(np.float64), flip, out)
    expected = [2 * int(x & (y ^ flip)).bit_count() for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shape", [(0, 3), (1,), (17,), (5, 2, 8)])
def test_aligned_zeros(shape):
    room = vectors.aligned_zeros(*shape)
    assert room.shape == shape and room.flags.c_contiguous and not room.any()
    assert not room.size or room.ctypes.data % 64 == 0


@pytest.mark.parametrize("size", [0, 1, 17])
def test_aligned_room(size):
    room = vectors.aligned(size)
    assert room.shape == (size,)
    assert not size or room.ctypes.data % 64 == 0


@pytest.mark.parametrize("spread", [1.0, 1e-9, 1e-13, 0.0])
@pytest.mark.parametrize("k", [1, 3])
def test_knots_in_order(spread, k):
    rng = np.random.default_rng(0)
    place = 1 + spread * rng.standard_cauchy(3000)
    place[::7] = place[3]
    place[100:900] *= -1
    place[[5, 6, 8]] = -0.0, 5e-324, -1e300
    place[950:1000:2], place[951:1000:2] = 0.0, -0.0
    table = np.column_stack([place, rng.normal(size=(3000, k))])
    keys, split, n_bits = _labelled(table)
    assert split == np.signbit(place).sum()
    found, others = np.empty(3000), np.empty((3000, k))
    for part in (slice(split), slice(split, None)):
        _put_in_order(table, keys, n_bits, part, found[part], others[part])
    np.testing.assert_array_equal(np.sort(keys), np.arange(3000))
    np.testing.assert_array_equal(found, np.sort(place))
    assert np.signbit(found[:split]).all() and not np.signbit(found[split:]).any()
    np.testing.assert_array_equal(np.column_stack([found, others]), table[keys])


@pytest.mark.parametrize("size", [0, 1])
def test_few_knots_in_order(size):
    keys, split, _ = _labelled(np.full((size, 2), 2.0))
    assert len(keys) == size and split == 0


@pytest.mark.parametrize("m", [1, 2, 16, 100])
def test_units_in_the_order_of_their_places(m):
    rng = np.random.default_rng(m)
    z, ray, slope = rng.normal(size=(20, m)), rng.normal(size=m), rng.choice([0.0, 0.1], m)
    z[:5] = 0
    z[5:10] = np.round(z[5:10])
    z[10] *= 1e-300
    z[11] *= 1e300
    ray[rng.random(m) < 0.2] = 0
    ray[rng.random(m) < 0.1] = 1e-300
    slope[rng.random(m) < 0.1] = 1
    places, order = np.empty((20, m)), np.empty((20, m), np.int64)
    find_positions(z, ray, slope, places, order, m.bit_length())
    with np.errstate(all="ignore"):
        wanted = np.where((ray != 0) & (slope != 1), -z / ray, np.inf)
    np.testing.assert_array_equal(places, wanted)
    assert (np.signbit(places) | (places > 0) | (z != 0)).all()  # what is 0 flips to the left
    order.sort(axis=1)
    find_order(places, order, m.bit_length())
    np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(m), (20, 1)))
    np.testing.assert_array_equal(
        np.take_along_axis(places, order, axis=1), np.sort(places, axis=1)
    )


def test_sides_at_the_start():
    z, s = np.zeros((2, 32)), np.zeros((2, 32))
    z[1, 16:22] = 2.0, -2.0, 0.0, 0.0, 0.0, -1.0
    s[1, 16:22] = -1.0, 1.0, 1.0, -1.0, 0.0, 2.0
    slope = np.zeros(16)
    slope[:6] = 0.0, 0.1, 0.0, 0.1, 0.0, 1.0
    turns, passed, passed_slopes = np.empty((2, 32)), np.empty((2, 16)), np.empty((2, 16))
    find_sides(Start(z, s, turns, None, None, passed, passed_slopes), 16, slope)
    assert np.sign(turns[1, 16:22]).tolist() == [1, -1, 1, -1, -1, -1]
    np.testing.assert_allclose(passed[1, :6], [2, -0.2, 0, 0, 0, -1])
    np.testing.assert_allclose(passed_slopes[1, :6], [-1, 0.1, 1, -0.1, 0, 2])


@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("p", [16, 48, 80])
@pytest.mark.parametrize("m", [16, 32])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_products_without_zeros(n, p, m, share):
    assert not m % COLUMNS
    rng = np.random.default_rng(n + p)
    a, b = rng.normal(size=(n + 3, p)), rng.normal(size=(p, m))
    a[rng.random(a.shape) >= share] = -0.0
    out = np.full((n + 4, m), np.nan)
    padded = np.concatenate([np.full(5, np.nan), tiles(b)])
    product(a.ravel(), n, p, padded, 5, m, out.ravel(), m, np.empty(p, np.int64))
    np.testing.assert_allclose(out[1 : n + 1], a[:n] @ b, rtol=1e-13, atol=1e-13)
    assert np.isnan(out[0]).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("hidden", [(7,), (9, 5), (6, 8, 7), (4, 4, 4, 4)])
def test_buffers_grow(hidden, monkeypatch):
    """What does not fit is walked again, with larger buffers: all bits stay."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    model = MLPRegressor(hidden_layer_sizes=hidden, max_iter=5, random_state=0).fit(
        X, np.sin(3 * X).sum(axis=1)
    )
    wanted = MeasureExplainer(model).fit(X)
    asked = []
    start = line_walks.Workspace.__init__

    def small(self, units, lines):
        start(self, units, lines)
        self.events = 32
        self.allocate()
        self.knots = line_walks.buffers.knot_buffers(1, len(units.last), lines)
        asked.append(self)

    monkeypatch.setattr(line_walks.Workspace, "__init__", small)
    found = MeasureExplainer(model).fit(X)
    for j in range(3):
        assert found.curve(j).to_frame().equals(wanted.curve(j).to_frame())
    assert all(len(room.knots.table) > 1 for room in asked)
    assert len(hidden) < 3 or any(room.events > 32 for room in asked)


def same_curve(model, X, j, values):
    found = MeasureExplainer(model, "partial_dependence").fit(X).curve(j)(values)
    wanted = pinned_mean(model.predict, X, j, values)[:, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_column_whose_slopes_overflow_leaves_the_others_alone(order):
    first = np.zeros((2, 7))
    first[0, 0], first[1, 1:] = 1e200, [1, -1, 1, -1, 1, -1]
    second = np.array([[1e200, 1, -1, 2, -1, 1, 1], [-1e200, 1, 2, 1, 1, -2, 1]]).T
    biases = [0, 0.1, 0.2, 0.3, 0.4, -0.6, -0.8], [0.5, 1], [0]
    model = perceptron([first[order], second, np.ones((2, 1))], biases)
    X = np.array([[-1e-250, -0.5]])[:, order]
    with np.errstate(all="ignore"):
        same_curve(model, X, order.index(1), np.array([-3.0, -1, 0, 1, 4]))


@pytest.mark.parametrize("z", [-5e-324, 5e-324, 0.0])
@pytest.mark.parametrize("deep", [False, True])
def test_places_too_small_for_a_number_keep_their_side(z, deep):
    weights = [np.array([[4.0, 1, 1], [1, 0, 0]]), np.ones((3, 1))]
    biases = [np.array([0.0, -2, 2]), np.zeros(1)]
    if deep:
        weights, biases = [*weights, np.ones((1, 1))], [*biases, np.zeros(1)]
    same_curve(perceptron(weights, biases), np.array([[0.0, z]]), 0, np.array([-1.0, 0.0, 1.0]))


def test_machines_that_take_small_numbers_for_0():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    sizes = [2, 9, 8, 1]
    weights = [rng.integers(-2, 3, pair) for pair in pairwise(sizes)]
    model = perceptron(weights, [np.zeros(m) for m in sizes[1:]])
    X = np.round(2 * rng.normal(size=(20, 2)))
    if not torch.set_flush_denormal(True):
        pytest.skip("this machine cannot")
    try:
        for j in range(2):
            same_curve(model, X, j, np.linspace(-4, 4, 17))
    finally:
        torch.set_flush_denormal(False)
