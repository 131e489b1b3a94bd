"""Cells of ReLU networks: against Qhull, quasi-random points and plain loops."""

import contextlib
import pickle
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import Delaunay
from scipy.stats import qmc
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from skattr import Explanation, MeasureExplainer, write_report
from skattr.engines.relu.cell_counts import estimated_cells
from skattr.engines.relu.first_layer import Uniforms
from skattr.engines.relu.polytopes import Cells
from skattr.kernels.cells import simplices
from skattr.measures import (
    Coefficient,
    Expectation,
    PartialDependence,
    ProductMarginal,
    ScaledCoefficient,
    Uniform,
)
from skattr.measures.base import Measure
from skattr.measures.factors.laws import Interval
from skattr.measures.views import FactorsView
from skattr.pieces import Additive, ReluNetwork
from tests.helpers.networks import (
    KINDS,
    moments,
    perceptron,
    random_network,
    random_perceptron,
    read,
)

pytestmark = pytest.mark.slow

SHAPES = [(1, [3]), (1, [4, 3, 2]), (2, [5]), (2, [4, 4]), (3, [4, 3]), (3, [3, 3, 3]),
          (4, [3, 3]), (5, [3, 2]), (2, [2, 2, 2, 2, 2]), (3, [1, 1, 1])]  # fmt: skip


def integral(network, sides, share=1.0):
    """Return the mean of f over a box by the engine's cells, and its certificate."""
    cells = Cells(network, 1e9)
    laws = [Interval(low, high, k) for k, (low, high) in enumerate(sides)]
    (box,) = cells.first.uniforms(laws, ())
    return cells.integral([box._replace(share=share)])


def by_regions(network, sides):
    """Return Σ_P a_P · n_P + b_P μ(P), the volumes and moments by Qhull, and the volume."""
    total, whole = np.zeros(len(network.bias)), 0.0
    size = np.prod(np.diff(sides, axis=1))
    for a, b, vertices, volume in network.regions(sides):
        if volume < 1e-11 * size:  # Qhull takes them for flat
            continue
        found = moments(vertices)
        assert_allclose(found.volume, volume, rtol=1e-6, atol=1e-13 * size)
        total += a @ found.first + b * found.volume
        whole += found.volume
    return total / size, whole / size


def spread(network, sides):
    """Return the largest |f| on a box, or so."""
    u = np.random.default_rng(0).random((256, len(sides)))
    points = sides[:, 0] + u * (sides[:, 1] - sides[:, 0])
    return np.abs(network.forward(points - network.origin)).max() + 1e-300


# -- one simplex ---------------------------------------------------------------------------------


@njit
def positive_sum(z, order, room):
    """Call what only kernels call."""
    return simplices.positive_sum(z, 0, order, 0, room)


def mean_positive(z, order):
    """Return the mean of max(0, z) over a simplex, its vertices in some order."""
    room = np.empty((2, len(z)))
    return positive_sum(z[:, None], order[None].astype(np.int32), room) / len(z)


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=7), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_the_mean_of_a_relu_on_a_simplex(values, seed):
    """Σ_i max(0, v_i)^n / (n ∏_{k≠i} (v_i - v_k)), the divided difference, where it is stable."""
    n = len(values)
    v = np.round(np.array(values), 1) + 0.013 * np.arange(n)
    gaps = np.array([np.delete(v[i] - v, i) for i in range(n)])
    wanted = sum(max(v[i], 0) ** n / (n * np.prod(gaps[i])) for i in range(n))
    order = np.random.default_rng(seed).permutation(n)
    found = mean_positive(v, order)
    noise = sum(max(v[i], 0) ** n / abs(n * np.prod(gaps[i])) for i in range(n))
    assert_allclose(found, wanted, rtol=1e-12, atol=1e-14 * (noise + 1))


def test_the_mean_of_a_relu_on_equal_values_and_zeros():
    order = np.arange(4)
    assert mean_positive(np.array([2.0, 2.0, 2.0, 2.0]), order) == 2.0
    assert mean_positive(np.zeros(4), order) == 0.0
    assert mean_positive(np.array([0.0, -1.0, -1.0, 0.0]), order) == 0.0
    # -1, 0, 0, 1: half of the symmetric law's mean of |z|
    z = np.array([-1.0, 0.0, 0.0, 1.0])
    u = np.random.default_rng(0).dirichlet(np.ones(4), 200_000) @ z
    assert_allclose(mean_positive(z, order), np.maximum(u, 0).mean(), atol=1e-3)


# -- the corollary of section 4.1 ----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d, widths", SHAPES)
def test_integrals_are_sums_over_regions(kind, d, widths):
    network = random_network(len(widths) + 10 * d, d, widths, k=2, kind=kind)
    sides = np.array([[-1.0, 1.5], [-2.0, 0.5], [0.0, 1.0], [-1.0, 1.0], [-0.5, 0.5]])[:d]
    found, certificate = integral(network, sides)
    wanted, volume = by_regions(network, sides)
    scale = spread(network, sides)
    assert_allclose(volume, 1.0, atol=1e-10)  # Qhull's own rounding on thin regions
    assert_allclose(found, wanted, atol=1e-10 * scale)
    assert certificate["volume_error"] < 1e-13
    u = qmc.Sobol(d, seed=0).random(2**12)
    points = sides[:, 0] + u * (sides[:, 1] - sides[:, 0])
    assert_allclose(found, network.forward(points).mean(axis=0), atol=4e-3 * scale)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_positive_and_signed_atoms(d):
    """Any measure: f(y) summed over atoms is a_P · n_P + b_P μ(P) summed over regions."""
    network = random_network(d, d, [4, 3], k=2)
    sides = np.array([[-1.0, 1.0]] * d)
    rng = np.random.default_rng(d)
    points = rng.uniform(-1, 1, (300, d))
    weights = np.stack([rng.random(300), rng.normal(size=300)])  # positive, signed
    home = np.full(len(points), -1)
    total = np.zeros((2, 2))
    for number, (a, b, vertices, volume) in enumerate(network.regions(sides)):
        if volume < 1e-9:
            continue
        if d == 1:
            inside = (points[:, 0] >= vertices.min()) & (points[:, 0] <= vertices.max())
        else:
            inside = Delaunay(vertices).find_simplex(points) >= 0
        inside &= home < 0
        home[inside] = number
        n, mass = weights[:, inside] @ points[inside], weights[:, inside].sum(axis=1)
        total += n @ a.T + mass[:, None] * b
    assert (home >= 0).all()
    assert_allclose(total, weights @ network.forward(points), atol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_signed_mixtures_of_boxes(d):
    network = random_network(4, d, [5, 4] if d < 5 else [4, 3], k=2)
    small, large = np.array([[-0.5, 0.7]] * d), np.array([[-1.0, 1.5]] * d)
    boxes = []
    cells = Cells(network, 1e9)
    for share, sides in [(2.0, large), (-3.0, small)]:
        laws = [Interval(low, high, k) for k, (low, high) in enumerate(sides)]
        boxes += [box._replace(share=share * box.share) for box in cells.first.uniforms(laws, ())]
    wanted = 2 * by_regions(network, large)[0] - 3 * by_regions(network, small)[0]
    assert_allclose(cells.integral(boxes)[0], wanted, atol=1e-11)


@pytest.mark.parametrize("kind", ["random", "zero_bias", "integers"])
@pytest.mark.parametrize("d, widths", [(2, [12, 10, 8]), (3, [10, 8]), (4, [8, 6]), (5, [6, 5])])
def test_dense_quasi_random_points_agree_within_their_error(kind, d, widths):
    network = random_network(d, d, widths, k=2, kind=kind)
    sides = np.array([[-1.0, 1.5]] * d)
    found, _ = integral(network, sides)
    means = []
    for seed in range(16):
        u = qmc.Sobol(d, seed=seed).random(2**11)
        means.append(network.forward(sides[:, 0] + u * (sides[:, 1] - sides[:, 0])).mean(axis=0))
    error = np.std(means, axis=0, ddof=1) / 4
    assert (error < 1e-3 * spread(network, sides)).all()
    assert (np.abs(np.mean(means, axis=0) - found) <= 5 * error + 1e-13).all()


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.sampled_from(KINDS))
@settings(deadline=None, max_examples=40)
def test_random_networks(seed, d, depth, kind):
    widths = np.random.default_rng(seed).integers(1, 5, depth).tolist()
    network = random_network(seed, d, widths, kind=kind)
    sides = np.array([[-1.0, 1.0]] * d)
    found, certificate = integral(network, sides)
    wanted, _ = by_regions(network, sides)
    assert_allclose(found, wanted, atol=1e-9 * spread(network, sides))
    assert certificate["volume_error"] < 1e-13


# -- hard boxes ----------------------------------------------------------------------------------


def one_dimensional(network, sides, k):
    """Return the mean along one side, exactly: knots by bisection of the slope's changes."""
    line = np.tile(sides.mean(axis=1), (20_001, 1))
    line[:, k] = np.linspace(*sides[k], 20_001)
    f = network.forward(line - network.origin)
    return sum((a + b) / 2 for a, b in pairwise(f)) / 20_000


@pytest.mark.parametrize("kind", KINDS)
def test_sides_without_width_drop_out(kind):
    network = random_network(3, 4, [5, 5], kind=kind)
    sides = np.array([[0.3, 0.3], [-1.0, 1.0], [-0.2, -0.2], [0.5, 0.5]])
    wanted = one_dimensional(network, sides, 1)
    assert_allclose(integral(network, sides)[0], wanted, atol=1e-6 * spread(network, sides))
    points = np.column_stack([sides[:, 0], sides[:, 0]])
    found, certificate = integral(network, points)
    assert_allclose(found, network.forward(sides[None, :, 0])[0], rtol=1e-13)
    assert certificate == {"cells": 1, "volume_error": 0.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_large_and_far_boxes(kind, d):
    """f(y) = g((y - shift) / size) has the integral of g over the unit box."""
    model = random_perceptron(d, d, [5, 4], kind=kind)
    unit = np.array([[-1.0, 1.0]] * d)
    wanted, scale = integral(read(model, d), unit)[0], spread(read(model, d), unit)
    for size, shift in [(1e4, 0.0), (1.0, 1e6), (1e4, -1e6), (1e-6, 0.0)]:
        weights, biases = list(model.coefs_), list(model.intercepts_)
        weights[0] = weights[0] / size
        biases[0] = biases[0] - shift * weights[0].sum(axis=0)
        moved = read(perceptron(weights, biases), d)
        found, certificate = integral(moved, shift + size * unit)
        rounding = 1e-15 * (1 + abs(shift) / size) * np.abs(weights[0] * size).sum()
        assert_allclose(found, wanted, atol=(1e-13 + 50 * rounding) * scale)
        assert certificate["volume_error"] < 1e-13


def test_many_facets_of_one_cell():
    """100 tangents of a circle: the cell inside has 100 facets."""
    angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    first = np.stack([np.cos(angle), np.sin(angle)])
    network = read(
        perceptron(
            [first, -np.ones((100, 1)), np.ones((1, 1))], [np.full(100, -0.5), [1.0], [0.0]]
        ),
        2,
    )
    sides = np.array([[-1.0, 1.0]] * 2)
    found, certificate = integral(network, sides)
    assert_allclose(found, by_regions(network, sides)[0], atol=1e-12)
    assert max(len(vertices) for _, _, vertices, _ in network.regions(sides)) >= 100
    assert certificate["volume_error"] < 1e-13


def test_all_planes_through_one_point():
    for d in (2, 3, 4):
        network = random_network(1, d, [8, 3], kind="zero_bias")
        sides = np.array([[-1.0, 1.0]] * d)
        found, certificate = integral(network, sides)
        assert_allclose(found, by_regions(network, sides)[0], atol=1e-10)
        assert certificate["volume_error"] < 1e-13


def test_memory_does_not_grow_with_the_cells():
    """Depth first: what waits on the stack is a branch, not a list of all cells."""
    network = random_network(0, 4, [14, 12, 2])
    sides = np.array([[-2.0, 2.0]] * 4)
    integral(network, sides)  # compiled
    tracemalloc.start()
    cells = integral(network, sides)[1]["cells"]
    n_regions = sum(1 for _ in network.regions(sides))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cells > 5000 and n_regions > cells
    # a vertex has 4 coordinates, facets, twins and backs, and a cell at least 5 vertices
    assert peak < cells * 5 * 16 * 8 / 2


def test_deep_and_narrow():
    for widths in ([1], [1] * 5, [2] * 5, [3, 1, 3, 1, 3]):
        network = random_network(7, 2, widths, kind="leaky")
        sides = np.array([[-3.0, 3.0]] * 2)
        wanted = by_regions(network, sides)[0]
        assert_allclose(integral(network, sides)[0], wanted, atol=1e-12 * spread(network, sides))


# -- regions -------------------------------------------------------------------------------------


def test_regions_are_affine_and_local():
    rng = np.random.default_rng(0)
    X = 100 + 5 * rng.normal(size=(100, 3))
    model = make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=[5, 4], max_iter=20, random_state=0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(pd.DataFrame(X, columns=list("abc")), X[:, 0])
    explainer = MeasureExplainer(model, "uniform").fit(pd.DataFrame(X, columns=list("abc")))
    sides = dict.fromkeys("abc", (80.0, 120.0))
    network = explainer.pieces_
    total = 0.0
    for a, b, vertices, volume in network.regions(sides):
        frame = pd.DataFrame(vertices, columns=list("abc"))
        assert_allclose(vertices @ a[0] + b[0], model.predict(frame), atol=1e-9)
        A, _ = network.local(vertices.mean(axis=0)[None] - network.origin)
        assert_allclose(A[0], a, atol=1e-12)
        total += volume
    assert_allclose(total, 40.0**3, rtol=1e-12)


def test_regions_without_hidden_layers_and_without_width():
    network = read(perceptron([np.array([[2.0], [3.0]])], [[1.0]]), 2)
    ((a, b, vertices, volume),) = network.regions([(0, 1), (2, 4)])
    assert_array_equal(a, [[2.0, 3.0]])
    assert_array_equal(b, [1.0])
    assert_array_equal(vertices, [[0, 2], [0, 4], [1, 2], [1, 4]])
    assert volume == 2.0
    network = random_network(0, 2, [4, 4])
    ((a, b, vertices, volume),) = network.regions([(0.5, 0.5), (1, 1)])
    assert volume == 1.0  # of no dimension
    assert_allclose(vertices @ a[0] + b[0], network.forward(vertices)[:, 0])
    flat = list(network.regions([(0.5, 0.5), (-1, 1)]))
    assert_allclose(sum(region.volume for region in flat), 2.0)


@pytest.mark.parametrize(
    "domain, words",
    [
        ([(0, 1)], "2 columns"),
        ([(0, 1), (0, np.inf)], "finite"),
        ([(0, 1), (3, 2)], "low <= high"),
        ({"x0": (0, 1)}, "x1"),
        ({"x0": (0, 1), "x1": (0, 1), "x2": (0, 1)}, "x2"),
    ],
)
def test_bad_domains(domain, words):
    with pytest.raises(ValueError, match=words):
        random_network(0, 2, [3]).regions(domain)


# -- the engine ----------------------------------------------------------------------------------


def table(d=3, n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def fitted(widths=(5, 4), d=3, k=1, kind="random", measure=None, **settings):
    model = random_perceptron(1, d, list(widths), k, kind)
    return MeasureExplainer(model, measure or Uniform(), **settings).fit(table(d))


def test_values_are_integrals_over_slices():
    explainer = fitted(k=2)
    assert explainer.engine_ == ("polytopes",) and explainer.exact_
    X = table()
    low, high = X.min(axis=0), X.max(axis=0)
    rows = np.vstack([X[:3], X[:1] + 50])  # outside the domain too
    explanation = explainer.explain(rows)
    network = explainer.pieces_
    for i, x in enumerate(rows):
        for j in range(3):
            sides = np.column_stack([low, high])
            sides[j] = x[j]
            free = np.delete(np.arange(3), j)
            wanted = np.zeros(2)
            for a, b, vertices, _ in network.regions(sides):
                found = moments(vertices[:, free])
                wanted += a[:, free] @ found.first + (b + a[:, j] * x[j]) * found.volume
            wanted /= np.prod((high - low)[free])
            assert_allclose(explanation.values[i, j], wanted, atol=1e-10)
    whole = np.column_stack([low, high])
    assert_allclose(explanation.offset, by_regions(network, whole)[0], atol=1e-11)
    curve = explainer.curve("x1")
    assert curve.kind == "function"
    assert_array_equal(curve(rows[:, 1]), explanation.values[:, 1])


def test_bits_depend_on_no_other_row():
    X = table()
    one, two = fitted(), fitted(n_jobs=2)
    values = one.explain(X).values
    assert_array_equal(two.explain(X).values, values)
    order = np.random.default_rng(0).permutation(len(X))
    assert_array_equal(one.explain(X[order]).values, values[order])
    assert_array_equal(one.explain(X[7:8]).values, values[7:8])
    assert_array_equal(one.explain(X[5:], features=["x2"]).values, values[5:, 2:])


def test_an_ignored_column_gets_nothing():
    model = random_perceptron(1, 3, [5, 4])
    model.coefs_[0][1] = 0.0
    explainer = MeasureExplainer(model, Uniform() - Expectation("uniform")).fit(table())
    assert_array_equal(explainer.explain(table()).values[:, 1], 0.0)


def test_groups_and_batches():
    X = table()
    model = random_perceptron(1, 3, [5, 4])
    explainer = MeasureExplainer(model, Uniform(), groups={"both": ["x0", "x2"]}).fit(X)
    values = explainer.explain(X[:4]).values
    line = np.tile(X[:4, None], (1, 20_001, 1))
    line[:, :, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), 20_001)
    f = np.array([model.predict(rows) for rows in line])
    wanted = ((f[:, 1:] + f[:, :-1]) / 2).mean(axis=1)
    assert_allclose(values[:, 0], wanted, atol=1e-7)
    parts = MeasureExplainer(model, Uniform()).partial_fit(X[:20]).partial_fit(X[20:])
    whole = MeasureExplainer(model, Uniform()).fit(X)
    assert_array_equal(parts.explain(X).values, whole.explain(X).values)
    assert parts.explain(X).offset == whole.explain(X).offset


def test_a_domain_that_is_given():
    explainer = fitted(d=2, domain={"x0": (0.0, 1.0), "x1": (2.0, 2.0)}, measure=Uniform())
    f = explainer.estimator_.predict
    values = explainer.explain(np.array([[0.5, 0.25]])).values[0]
    assert_allclose(values[0], f([[0.5, 2.0]])[0], rtol=1e-12)
    x = np.linspace(0, 1, 100_001)
    line = f(np.column_stack([x, np.full(len(x), 0.25)]))
    assert_allclose(values[1], ((line[1:] + line[:-1]) / 2).mean(), atol=1e-8)


class Histogram(Measure):
    """δ_t ⊗ a density that is constant on each of two boxes that overlap."""

    views = ("factors",)
    flat = True
    boxes = ((0.3, -1.0, 0.5), (0.7, 0.0, 2.0))

    def factors(self):
        names = self.background_.names
        return FactorsView(
            [(share, [Interval(low, high, name) for name in names])
             for share, low, high in self.boxes], True,
        )  # fmt: skip

    def reference(self):
        return Expectation("uniform")  # whose mean is not looked at here


def test_densities_that_are_constant_on_boxes():
    X = table()
    explainer = fitted(k=2, measure=Histogram())
    assert explainer.engine_ == ("polytopes",) and explainer.exact_
    found = explainer.explain(X[:3]).values
    for i, j in np.ndindex(3, 3):
        wanted = 0.0
        for share, low, high in Histogram.boxes:
            sides = np.array([[low, high]] * 3)
            sides[j] = X[i, j]
            wanted = wanted + share * integral(explainer.pieces_, sides)[0]
        assert_allclose(found[i, j], wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="more than max_evals=6 cells"):
        fitted(k=2, measure=Histogram(), max_evals=6, engine="exact")


def test_levels_are_enumerated():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(list("xyz"), 60),
                      "c": rng.random(60) < 0.5})  # fmt: skip
    steps = make_column_transformer((OneHotEncoder(), ["b"]), (StandardScaler(), ["a"]),
                                    remainder="passthrough")  # fmt: skip
    net = MLPRegressor(hidden_layer_sizes=[6, 5], max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(steps, net).fit(X, X.a * (X.b == "x") + X.c)
    explainer = MeasureExplainer(model, Uniform()).fit(X)
    assert explainer.engine_ == ("polytopes",)
    found = explainer.explain(X[:3]).values
    x = np.linspace(X.a.min(), X.a.max(), 20_001)
    for i, row in X[:3].iterrows():
        for j, name in enumerate(X.columns):
            choices = {"b": ["x", "y", "z"], "c": [False, True]} | {name: [row[name]]}
            parts = []
            for b in choices["b"]:
                for c in choices["c"]:
                    grid = np.array([row.a]) if name == "a" else x
                    f = model.predict(pd.DataFrame({"a": grid, "b": b, "c": c}))
                    parts.append(f[0] if name == "a" else ((f[1:] + f[:-1]) / 2).mean())
            assert_allclose(found[i, j], np.mean(parts), atol=1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("hidden", [(4,), (4, 3)])
@pytest.mark.parametrize(
    "step", [PowerTransformer(), MinMaxScaler(clip=True), KBinsDiscretizer(3), SplineTransformer()]
)
def test_steps_that_are_not_affine(step, hidden):
    """No exact engine knows what happens between the ends of a side, so auto samples."""
    X = table()
    net = MLPRegressor(hidden_layer_sizes=hidden, max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(step, net).fit(X, X[:, 0] * X[:, 1])
    for measure in (Uniform(), Coefficient(), Uniform() - Expectation("uniform")):
        explainer = MeasureExplainer(model, measure, tol=0.1, random_state=0).fit(X)
        assert set(explainer.engine_) <= {"quasi_monte_carlo", "riemann"} and not explainer.exact_
        assert (explainer.explain(X[:2]).std_error >= 0).all()
    name = "polytopes" if len(hidden) > 1 else "one_layer_uniform"
    with pytest.raises(ValueError, match="'x0' is not known to enter the network by an affine"):
        MeasureExplainer(model, Uniform(), engine=name).fit(X)
    with pytest.raises(ValueError, match="no exact engine"):
        MeasureExplainer(model, Uniform(), engine="exact").fit(X)
    explainer = MeasureExplainer(model, Uniform(), random_state=0).partial_fit(X[:1])
    assert explainer.engine_ == (name,)  # a single row has no sides
    with pytest.raises(ValueError, match="partial_fit: column 'x0' is not known to enter"):
        explainer.partial_fit(X[1:2])


def test_empirical_products_are_sampled():
    X = table(6, 60)
    model = random_perceptron(0, 6, [6, 5])
    explainer = MeasureExplainer(model, ProductMarginal(), tol=0.02, random_state=0).fit(X)
    assert explainer.engine_ == ("quasi_monte_carlo",) and not explainer.exact_
    explanation = explainer.explain(X[:2])
    assert (explanation.std_error > 0).all()
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.choice(X[:, k], 200_000) for k in range(6)])
    Z[:, 3] = X[0, 3]
    f = model.predict(Z)
    error = np.hypot(f.std() / np.sqrt(len(f)), explanation.std_error[0, 3])
    assert abs(explanation.values[0, 3] - f.mean()) <= 5 * error


def test_classifiers_are_explained_as_logits():
    X = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier(hidden_layer_sizes=[4, 4], max_iter=20, random_state=0)
        model.fit(X, (X[:, 0] > 0) + 1 * (X[:, 1] > 0))
    explainer = MeasureExplainer(model, Uniform()).fit(X)
    assert explainer.engine_ == ("polytopes",)
    u = qmc.Sobol(3, seed=0).random(2**12)
    points = X.min(axis=0) + u * np.ptp(X, axis=0)
    points[:, 0] = X[0, 0]
    logits = np.log(model.predict_proba(points))
    found = explainer.explain(X[:1]).values[0, 0]
    assert_allclose(found - found[0], (logits - logits[:, :1]).mean(axis=0), atol=1e-3)


# -- linear models -------------------------------------------------------------------------------


def test_coefficients_of_a_network_without_hidden_layers():
    """The paper's appendix to 4.2, on [0, 1]^d and on another box."""
    w = np.array([[2.0], [-3.0], [0.5]])
    X = table()
    for domain, b in [(np.array([[0.0, 1.0]] * 3), 0.0), (np.array([[-1.0, 3.0]] * 3), 0.7)]:
        model = perceptron([w], [[b]])
        low, width = domain[:, 0], domain[:, 1] - domain[:, 0]
        at_low = float(low @ w[:, 0] + b)
        settings = {"domain": domain, "engine": "exact"}
        explainer = MeasureExplainer(model, Coefficient(), **settings).fit(X)
        assert_allclose(explainer.explain(X[:2]).values, [w[:, 0] * width + 2 * at_low] * 2)
        explainer = MeasureExplainer(model, Coefficient(mass_zero=True), **settings).fit(X)
        assert_allclose(explainer.explain(X[:1]).values[0], w[:, 0] * width)
        explainer = MeasureExplainer(model, ScaledCoefficient(), **settings).fit(X)
        wanted = w[:, 0] * (X[:5] - low) + at_low
        assert_allclose(explainer.explain(X[:5]).values, wanted)


def linear_models():
    """Linear functions of three columns, by name: the model, its coefficients, its intercept."""
    X = table(n=60)
    y = X @ [2.0, -3.0, 0.5] + 0.7 + 0.1 * np.random.default_rng(1).normal(size=60)
    line = LinearRegression().fit(X, y)
    net = MLPRegressor(hidden_layer_sizes=(), solver="lbfgs", max_iter=300, random_state=0)
    models = {"LinearRegression": line, "MLPRegressor": clone(net).fit(X, y)}
    for scaler in (StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler()):
        models[type(scaler).__name__] = make_pipeline(scaler, clone(net)).fit(X, y)
    for name, model in models.items():
        b = model.predict(np.zeros((1, 3)))[0]
        yield name, model, model.predict(np.eye(3)) - b, b
    with contextlib.suppress(ImportError):
        import torch

        module = torch.nn.Linear(3, 1).double()
        with torch.no_grad():
            module.weight[:] = torch.tensor(line.coef_)
            module.bias[:] = float(line.intercept_)
        yield "Linear", module, line.coef_, line.intercept_


@pytest.mark.parametrize(("name", "model", "w", "b"), list(linear_models()))
def test_linear_measures_give_coefficients(name, model, w, b):
    """The paper's appendix to 4.2 and its section 3, with measures that are learned from data."""
    X = table(n=60)
    low, high = X.min(axis=0), X.max(axis=0)
    at_low = w @ low + b

    def values(measure, **settings):
        explainer = MeasureExplainer(model, measure, engine="exact", **settings).fit(X)
        kind = Additive if name == "LinearRegression" else ReluNetwork
        assert isinstance(explainer.pieces_, kind) and explainer.exact_
        return explainer.explain(X).values

    close = {"rtol": 1e-9, "atol": 1e-9}
    each = np.ones((60, 1))
    assert_allclose(values(Coefficient()), each * (w * (high - low) + 2 * at_low), **close)
    assert_allclose(values(Coefficient(mass_zero=True)), each * (w * (high - low)), **close)
    assert_allclose(values(ScaledCoefficient()), w * (X - low) + at_low, **close)
    assert_allclose(values(ScaledCoefficient(mass_zero=True)), w * (X - low), **close)
    unit = {"domain": [(0.0, 1.0)] * 3}
    assert_allclose(values(Coefficient(mass_zero=True), **unit), each * w, **close)
    assert_allclose(values(ScaledCoefficient(mass_zero=True), **unit), w * X, **close)
    mean = X.mean(axis=0)
    assert_allclose(values(PartialDependence() - Expectation()), w * (X - mean), **close)
    middle = (low + high) / 2
    assert_allclose(values(Uniform() - Expectation("uniform")), w * (X - middle), **close)


def test_coefficients_of_a_network_with_hidden_layers():
    """One side of the box: the mean along an edge."""
    model = random_perceptron(1, 3, [5, 4])
    X = table()
    explainer = MeasureExplainer(model, Coefficient(), engine="polytopes").fit(X)
    for j in range(3):
        line = np.tile(X.min(axis=0), (20_001, 1))
        line[:, j] = np.linspace(X[:, j].min(), X[:, j].max(), 20_001)
        f = model.predict(line)
        wanted = 2 * ((f[1:] + f[:-1]) / 2).mean()
        assert_allclose(explainer.explain(X[:1]).values[0, j], wanted, atol=1e-7)


# -- budget and certificate ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["exact", "polytopes"])
def test_too_many_cells_are_refused(engine):
    with pytest.raises(ValueError, match=r"more than max_evals=40 cells.*quasi_monte_carlo"):
        fitted([16, 16], max_evals=40, engine=engine)


def test_auto_falls_back_and_says_so():
    with pytest.warns(UserWarning, match="more than max_evals=2000 cells.*takes over") as record:
        explainer = fitted([40, 16], max_evals=2000, tol=0.1, random_state=0)
    assert record[0].filename == __file__  # the line that called fit, not one of the package
    assert explainer.engine_ == ("quasi_monte_carlo",) and not explainer.exact_
    explanation = explainer.explain(table()[:2])
    exact = fitted([40, 16])
    assert exact.exact_
    wanted = exact.explain(table()[:2])
    assert (np.abs(explanation.values - wanted.values) <= 6 * explanation.std_error).all()
    assert explanation.certificate is None


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 3), st.sampled_from(KINDS))
@settings(deadline=None, max_examples=30)
def test_a_slice_of_a_box_has_no_more_cells_than_the_box(seed, d, depth, kind):
    """So that the budget, checked on the domain, holds for all values inside it."""
    rng = np.random.default_rng(seed)
    network = random_network(seed, d, rng.integers(1, 6, depth).tolist(), kind=kind)
    sides = np.array([[-1.0, 1.0]] * d)
    most = integral(network, sides)[1]["cells"]
    for t in (-1.0, 0.0, 1.0, *rng.uniform(-1, 1, 3)):
        sides[seed % d] = t
        assert integral(network, sides)[1]["cells"] <= most


def crowded(**settings):
    """Explain a network that has a single cell on the domain, and hundreds where x2 is near 0."""
    angle = np.linspace(0, np.pi, 40)
    first = np.stack([np.cos(angle), np.sin(angle), np.ones(40)])
    weights = [first, np.ones((40, 2)), np.ones((2, 1))]
    model = perceptron(weights, [np.linspace(-0.3, 0.3, 40), [-1.0, 1.0], [0.0]])
    domain = [(-1.0, 1.0), (-1.0, 1.0), (8.0, 8.5)]
    return MeasureExplainer(model, domain=domain, random_state=0, **settings).fit(table())


@pytest.mark.parametrize("engine", ["exact", "polytopes"])
def test_a_slice_beyond_the_budget_is_refused(engine):
    explainer = crowded(measure=Uniform(), max_evals=200, engine=engine)
    assert explainer.engine_ == ("polytopes",)
    with pytest.raises(ValueError, match="more than max_evals=200 cells"):
        explainer.explain(np.zeros((1, 3)), features=["x2"])


def test_auto_estimates_slices_beyond_the_budget():
    measure = 2 * Uniform() - Expectation("uniform")
    rows = np.column_stack([table()[:4, :2], [0.1, 8.2, 0.0, 0.1]])
    exact = crowded(measure=measure).explain(rows)
    assert exact.exact and exact.std_error is None
    explainer = crowded(measure=measure, max_evals=200, tol=0.05)
    assert explainer.engine_ == ("polytopes",) * 2 and explainer.exact_
    with pytest.warns(UserWarning, match="3 of 12 values, at numbers outside the domain"):
        found = explainer.explain(rows)
    assert not found.exact and found.certificate["cells"] > 0
    far = np.zeros((4, 3), bool)
    far[[0, 2, 3], 2] = True
    assert_array_equal(found.std_error > 0, far)
    assert_array_equal(found.values[~far], exact.values[~far])
    off = np.abs(found.values - exact.values)[far]
    assert (0 < off).all() and (off <= 6 * found.std_error[far]).all()
    assert_allclose(found.centered().values, found.values - found.offset)
    inside = explainer.explain(rows[[1]])  # bits do not depend on the other rows
    assert inside.exact and inside.std_error is None
    assert_array_equal(inside.values[0], found.values[1])
    with pytest.warns(UserWarning, match="1 of 1 values"):
        one = explainer.explain(rows[2:3], features=["x2"])
    assert one.values[0, 0] == found.values[2, 2] and one.std_error[0, 0] == found.std_error[2, 2]
    with pytest.warns(UserWarning, match="2 of 3 values"):
        curve = explainer.curve("x2")([0.1, 8.2, 0.0])
    assert_array_equal(curve, found.values[:3, 2])


def test_the_certificate(tmp_path):
    explainer = fitted()
    explanation = explainer.explain(table())
    certificate = explanation.certificate
    assert certificate["cells"] > 100 and 0 <= certificate["volume_error"] < 1e-13
    assert "cells in the domain" in explainer.describe()
    explanation.save(tmp_path / "e.npz")
    assert Explanation.load(tmp_path / "e.npz").certificate == certificate
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    write_report(explainer, table(), tmp_path / "report.html")
    assert "no region is lost" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_is_not_uniform_is_refused():
    with pytest.raises(ValueError, match="uniform laws"):
        fitted(measure=ProductMarginal(), engine="polytopes")


def test_no_box_at_all():
    cells = Cells(random_network(0, 2, [3, 3]), 10)
    box = Uniforms(1.0, np.full(3, np.nan), np.zeros((3, 0)))
    assert np.isnan(cells.integral([box])[0]).all()


def test_pickles_answer_the_same():
    explainer = fitted()
    values = explainer.explain(table()[:5]).values
    again = pickle.loads(pickle.dumps(explainer))
    assert_array_equal(again.explain(table()[:5]).values, values)


# -- the number of cells, before they are enumerated ---------------------------------------------


@pytest.mark.parametrize("d, widths", [(2, [6, 4]), (3, [8, 8]), (3, [16, 4]), (4, [12, 6, 3])])
def test_the_estimate_of_the_number_of_cells_is_below_it(d, widths):
    for seed in range(5):
        network = random_network(seed, d, widths, k=1, kind="random")
        cells = Cells(network, 1e9)
        (box,) = cells.first.uniforms([Interval(-1.0, 1.5, k) for k in range(d)], ())
        _, certificate = cells.integral([box])
        estimate = estimated_cells(network, box.constant, box.slopes)
        assert 0.25 * certificate["cells"] <= estimate <= 1.1 * certificate["cells"]


def test_far_too_many_cells_are_not_enumerated(monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr("skattr.kernels.cells.simplices.add_cells", never)
    with pytest.warns(UserWarning, match="more than max_evals=100000 cells.*takes over"):
        explainer = fitted([64, 64], d=6, tol=1, random_state=0)
    assert explainer.engine_ == ("quasi_monte_carlo",)
