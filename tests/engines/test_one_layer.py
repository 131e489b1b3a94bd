"""Networks with one hidden layer: closed forms against rational numbers, quadrature and cells."""

import math
import pickle
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.attributions import Attributions
from skattr.engines import Request, Rows, RunOptions
from skattr.engines.relu.first_layer import UniformLaws
from skattr.engines.relu.one_layer_uniform import OneLayerUniform, _values
from skattr.engines.relu.polytopes import Cells
from skattr.kernels.cells import relu_means
from skattr.measures import Conditional, Expectation, Uniform
from skattr.measures.factors.laws import Interval
from tests.helpers.networks import KINDS, perceptron, random_network, random_perceptron, read

pytestmark = pytest.mark.slow

GAUSSIAN = Conditional("gaussian")
DIAGONAL = Conditional("gmm", n_components=3)
FULL = Conditional("gmm", n_components=3, covariance="full")


@njit
def mean_of_relu(m, s, taylor):
    """Call what only kernels call."""
    return relu_means.normal_mean(m, s, taylor)


def normal_mean(m, s):
    """Return E max(0, N(m, s²))."""
    return mean_of_relu(m, s, relu_means.TAYLOR)


def table(d=4, n=200, seed=0):
    """Return correlated columns in two clusters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return X + 3.0 * (rng.random(n) < 0.4)[:, None] * rng.normal(size=d)


# -- normal units --------------------------------------------------------------------------------


@given(st.floats(-60, 60), st.floats(1e-6, 1e3))
@settings(deadline=None)
def test_the_relu_of_a_normal_number(z, s):
    m = z * s
    low = max(-m / s, -40.0)
    wanted = s * quad(lambda u: (u + z) * norm.pdf(u), low, 40.0, points=[0.0, low], limit=200)[0]
    wanted = wanted if z > -40 else 0.0
    assert_allclose(normal_mean(m, s), wanted, rtol=1e-7, atol=1e-12 * s)


@pytest.mark.parametrize("m, wanted", [(2.0, 2.0), (-2.0, 0.0), (0.0, 0.0), (np.inf, np.inf)])
def test_units_without_variance(m, wanted):
    assert normal_mean(m, 0.0) == wanted
    assert np.isnan(normal_mean(np.nan, 0.0))
    assert np.isnan(normal_mean(np.nan, 1.0))


def components(family):
    """Return (π_c, mean, covariance) of a learned law."""
    if hasattr(family, "components"):
        laws = zip(family.marginals.weights, family.components, strict=True)
        return [(p, c.mean, np.outer(c.scale, c.scale) * c.correlation) for p, c in laws]
    if hasattr(family, "correlation"):
        return [(1.0, family.mean, np.outer(family.scale, family.scale) * family.correlation)]
    laws = zip(family.weights, family.means, family.scales, strict=True)
    return [(p, m, np.diag(s**2)) for p, m, s in laws]


def by_definition(model, family, x, own):
    """Return E[f | own], each unit integrated over its conditional normal law."""
    d = len(x)
    others = [k for k in range(d) if k not in own]
    W, b = model.coefs_[0].T, model.intercepts_[0]
    t, total, weight = x[own], 0.0, 0.0
    for share, m, S in components(family):
        inverse = np.linalg.inv(S[np.ix_(own, own)])
        density = share * multivariate_normal(m[own], S[np.ix_(own, own)]).pdf(t)
        B = S[np.ix_(others, own)] @ inverse
        mean = m[others] + B @ (t - m[own])
        C = S[np.ix_(others, others)] - B @ S[np.ix_(own, others)]
        z = W[:, own] @ t + W[:, others] @ mean + b
        s = np.sqrt(np.maximum(np.einsum("ui,ij,uj->u", W[:, others], C, W[:, others]), 0.0))
        active = [
            quad(lambda u, z=z, s=s, i=i: max(0, z[i] + s[i] * u) * norm.pdf(u), -12, 12,
                 points=[np.clip(-z[i] / s[i], -12, 12)], limit=200)[0]
            for i in range(len(b))
        ]  # fmt: skip
        total += density * (np.array(active) @ model.coefs_[1] + model.intercepts_[1])
        weight += density
    return total / weight


@pytest.mark.parametrize("measure", [GAUSSIAN, DIAGONAL, FULL])
def test_conditional_means_are_those_of_the_definition(measure):
    X = table()
    model = random_perceptron(0, 4, [6], k=2)
    explainer = MeasureExplainer(model, measure, engine="exact").fit(X)
    assert explainer.engine_ == ("one_layer_normal",)
    values = explainer.explain(X[:3]).values
    for i in range(3):
        for j in range(4):
            wanted = by_definition(model, explainer.measure_.family_, X[i], [j])
            assert_allclose(values[i, j], wanted, rtol=1e-7, atol=1e-8)
    curve = explainer.curve("x2")
    assert_array_equal(curve(X[:3, 2]), values[:, 2])


@pytest.mark.parametrize("measure", [GAUSSIAN, DIAGONAL, FULL])
def test_groups_are_pinned_together(measure):
    X = table()
    model = random_perceptron(1, 4, [6])
    explainer = MeasureExplainer(model, measure, groups={"g": ["x3", "x1"]}).fit(X)
    assert explainer.engine_ == ("one_layer_normal",)
    values = explainer.explain(X[:3]).values
    place = list(explainer.explain(X[:1]).feature_names).index("g")
    for i in range(3):
        wanted = by_definition(model, explainer.measure_.family_, X[i], [3, 1])
        assert_allclose(values[i, place], wanted[0], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("measure", [GAUSSIAN, FULL])
def test_quasi_random_points_agree(measure):
    X = table(6)
    model = make_pipeline(StandardScaler().fit(X), random_perceptron(2, 6, [8]))
    exact = MeasureExplainer(model, measure).fit(X)
    assert exact.exact_ and exact.engine_ == ("one_layer_normal",)
    sampled = MeasureExplainer(
        model, measure, engine="quasi_monte_carlo", tol=3e-3, random_state=0
    ).fit(X)
    wanted, found = exact.explain(X[:3]), sampled.explain(X[:3])
    assert (np.abs(found.values - wanted.values) <= 6 * found.std_error + 1e-12).all()
    assert_allclose(found.offset, wanted.offset, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_units_under_normal_laws(kind):
    """Slopes enter as s · z + (1 - s) · relu(z): against many points of the law."""
    X = table(3)
    network = random_network(3, 3, [5], kind=kind)
    explainer = MeasureExplainer(random_perceptron(3, 3, [5], kind=kind), GAUSSIAN).fit(X)
    term = explainer._solution.terms[0]
    request = Request(Rows(X[:2]), Attributions.single(range(3)), [1], RunOptions())
    found = term.engine.integrate(network, term.passes[0].state, request).values.value
    u = np.random.default_rng(0).random((100_000, 3))
    for i in range(2):
        f = network.forward(explainer.measure_.family_.points(u, X[i, [1]], [1]))
        assert_allclose(found[i, 0], f.mean(axis=0), atol=6 * f.std() / math.sqrt(len(u)) + 1e-12)


def test_bits_of_normal_units_depend_on_no_other_row():
    X = table()
    model = random_perceptron(0, 4, [6], k=2)
    for measure in (GAUSSIAN, DIAGONAL, FULL):
        one = MeasureExplainer(model, measure).fit(X)
        two = MeasureExplainer(model, measure, n_jobs=2).fit(X)
        values = one.explain(X).values
        assert_array_equal(two.explain(X).values, values)
        assert_array_equal(one.explain(X[::-1]).values, values[::-1])
        assert_array_equal(one.explain(X[3:4]).values, values[3:4])


def test_columns_that_do_not_vary_and_far_data():
    X = table()
    X[:, 2] = 7.0
    model = random_perceptron(0, 4, [6])
    for measure in (GAUSSIAN, DIAGONAL, FULL):
        explainer = MeasureExplainer(model, measure).fit(X)
        values = explainer.explain(X[:5]).values
        assert np.isfinite(values).all()
        assert_allclose(values[:, 2], values[0, 2], rtol=1e-12)
        shift = 1e6
        biases = [model.intercepts_[0] - shift * model.coefs_[0].sum(axis=0), model.intercepts_[1]]
        moved = perceptron(model.coefs_, biases)
        far = MeasureExplainer(moved, measure).fit(X + shift).explain(X[:5] + shift).values
        assert_allclose(far, values, atol=1e-9)
        for size in (1e4, 1e-6):
            scaled = perceptron([model.coefs_[0] / size, model.coefs_[1]], model.intercepts_)
            found = MeasureExplainer(scaled, measure).fit(size * X).explain(size * X[:5]).values
            assert_allclose(found, values, atol=1e-13)


def test_deeper_networks_are_not_served():
    X = table()
    with pytest.raises(ValueError, match="at most one hidden layer, the network has 2"):
        MeasureExplainer(random_perceptron(0, 4, [5, 5]), GAUSSIAN, engine="one_layer_normal").fit(
            X
        )
    with pytest.raises(ValueError, match="no exact engine"):
        MeasureExplainer(random_perceptron(0, 4, [5]), Conditional("copula"), engine="exact").fit(X)


def test_a_network_without_hidden_layers_is_evaluated_at_the_center():
    X = table()
    w = np.array([[1.0, -1.0], [2.0, 0.0], [-0.5, 3.0], [0.1, 1.0]])
    model = perceptron([w], [[1.0, 2.0]])
    for measure in (GAUSSIAN, FULL):
        explainer = MeasureExplainer(model, measure, engine="exact").fit(X)
        values = explainer.explain(X[:4]).values
        for j in range(4):
            center = explainer.measure_.family_.center(X[:4, [j]], [j])
            assert_allclose(values[:, j], center @ w + [1.0, 2.0], rtol=1e-9, atol=1e-9)


# -- the option ----------------------------------------------------------------------------------


def test_full_covariances_are_an_option_of_mixtures():
    assert Conditional("gmm").covariance == "diagonal"
    assert "mixture" in Conditional("gmm").views and "mixture" not in FULL.views
    with pytest.raises(ValueError, match="covariance must be one of"):
        MeasureExplainer(random_perceptron(0, 4, [5]), Conditional("gmm", covariance="tied")).fit(
            table()
        )
    with pytest.raises(ValueError, match="covariance must be 'diagonal' for"):
        Conditional("gaussian", covariance="full").fit(table())


def test_full_mixtures_serve_other_models():
    X = table()
    linear = MeasureExplainer(LinearRegression().fit(X, X[:, 0] * 2 - X[:, 1]), FULL).fit(X)
    assert linear.engine_ == ("affine",) and linear.exact_
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X[:, 0])
    explainer = MeasureExplainer(tree, FULL, tol=0.1, random_state=0).fit(X)
    assert explainer.engine_ == ("quasi_monte_carlo",)
    assert np.isfinite(explainer.explain(X[:2]).values).all()


# -- sums of uniform numbers ---------------------------------------------------------------------


def in_rationals(c, sides):
    """Return E max(0, c + Σ a_k U_k): the signed sum over corners, without rounding."""
    a = [Fraction(float(abs(side))) for side in sides if side != 0]
    c, n = Fraction(float(c)), len(a)
    total = Fraction(0)
    for signs in product((1, -1), repeat=n):
        corner = c + sum(s * side for s, side in zip(signs, a, strict=True))
        if corner > 0:
            total += math.prod(signs) * corner ** (n + 1)
    return float(total / math.prod([2 * side for side in a]) / math.factorial(n + 1))


@given(
    st.lists(
        st.builds(lambda x, p: x * 10.0**-p, st.floats(0.05, 1), st.integers(0, 9)),
        min_size=1, max_size=7,
    ),
    st.lists(st.floats(-1.2, 1.2), min_size=1, max_size=4),
)  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_the_relu_of_a_sum_of_uniform_numbers(sides, places):
    sides = np.array(sides) * np.array([(-1) ** k for k in range(len(sides))])
    whole = np.abs(sides).sum()
    c = np.array([*places, 0.0, 1.0, -1.0]) * whole
    out = np.empty(len(c))
    error = relu_means.uniform_means(c, sides, out)
    assert error <= 3e-12 * whole
    wanted = [in_rationals(each, sides) for each in c]
    assert_allclose(out, wanted, rtol=0, atol=error + 2e-13 * whole)


def test_equal_sides_and_none():
    for n in (1, 2, 3, 4, 6, 9):
        c = np.linspace(-1.1, 1.1, 9) * n
        out = np.empty(9)
        relu_means.uniform_means(c, np.ones(n), out)
        assert_allclose(out, [in_rationals(each, np.ones(n)) for each in c], atol=2e-12 * n)
    out = np.empty(3)
    assert relu_means.uniform_means(np.array([1.0, -1.0, np.nan]), np.zeros(4), out) == 0.0
    assert_array_equal(out, [1.0, 0.0, np.nan])


def test_many_sides_are_nearly_normal():
    sides = np.random.default_rng(0).normal(size=400)
    s = math.sqrt((sides**2).sum() / 3)
    c = np.linspace(-3, 3, 7) * s
    out = np.empty(7)
    relu_means.uniform_means(c, sides, out)
    assert_allclose(out, [normal_mean(m, s) for m in c], atol=2e-3 * s)


# -- uniform measures ----------------------------------------------------------------------------


def both(network, sides, added=None):
    """Return the mean over a box by series and by cells."""
    laws = [Interval(low, high, k) for k, (low, high) in enumerate(sides)]
    cells = Cells(network, 1e9)
    (box,) = cells.first.uniforms(laws, ())
    series, error = _values(
        cells.first,
        UniformLaws((), [(1.0, laws)]),
        (),
        np.zeros((1, len(box.constant))),
        RunOptions(),
    )
    return series[0], cells.integral([box])[0], error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_series_and_cells_agree(kind, d):
    network = random_network(d, d, [6], k=2, kind=kind)
    for sides in ([[-1.0, 1.0]] * d, [[-1e4, 1e4]] * d, [[1e6, 1e6 + 1]] * d,
                  [[0.5, 0.5]] * (d - 1) + [[-1.0, 2.0]], [[0.5, 0.5]] * d):  # fmt: skip
        series, cells, error = both(network, np.array(sides))
        scale = np.abs(np.array(sides)).max() * 10
        assert_allclose(series, cells, atol=1e-11 * scale)
        assert error < 1e-11


def test_uniform_measures_take_the_series():
    X = table(4)
    model = random_perceptron(0, 4, [6], k=2)
    explainer = MeasureExplainer(model, Uniform() - Expectation("uniform")).fit(X)
    assert explainer.engine_ == ("one_layer_uniform",) * 2 and explainer.exact_
    cells = MeasureExplainer(model, Uniform(), engine="polytopes").fit(X)
    explanation = explainer.explain(X[:6])
    wanted = cells.explain(X[:6])
    assert_allclose(explanation.values, wanted.values - wanted.offset, atol=1e-11)
    assert 0 < explanation.certificate["quadrature_error"] < 1e-11
    assert "series are cut at" in explainer.describe()
    assert_array_equal(explainer.curve("x1")(X[:6, 1]), explanation.values[:, 1])


def test_uniform_measures_in_many_columns():
    X = table(40)
    model = random_perceptron(0, 40, [10])
    explainer = MeasureExplainer(model, Uniform(), groups={"g": ["x0", "x7", "x9"]}).fit(X)
    assert explainer.engine_ == ("one_layer_uniform",)
    sampled = MeasureExplainer(
        model, Uniform(), engine="quasi_monte_carlo", groups=explainer.groups, tol=1e-2,
        random_state=0,
    ).fit(X)  # fmt: skip
    wanted, found = explainer.explain(X[:2]), sampled.explain(X[:2])
    assert (np.abs(wanted.values - found.values) <= 6 * found.std_error).all()


def test_bits_of_uniform_units_and_batches():
    X = table()
    model = random_perceptron(0, 4, [6], k=2)
    model.coefs_[0][3] = 0.0
    whole = MeasureExplainer(model, Uniform()).fit(X)
    values = whole.explain(X).values
    assert_array_equal(values[:, 3], np.tile(whole.explain(X).offset, (len(X), 1)))
    assert_array_equal(
        MeasureExplainer(model, Uniform(), n_jobs=2).fit(X).explain(X).values, values
    )
    assert_array_equal(whole.explain(X[::-1]).values, values[::-1])
    assert_array_equal(whole.explain(X[9:10]).values, values[9:10])
    parts = MeasureExplainer(model, Uniform()).partial_fit(X[:50]).partial_fit(X[50:])
    assert_array_equal(parts.explain(X).values, values)


def test_the_engine_says_why_not():
    network = read(random_perceptron(0, 2, [3, 3]), 2)
    assert "one hidden layer" in OneLayerUniform().refuses(network, Uniform())


@pytest.mark.parametrize("measure", [GAUSSIAN, DIAGONAL, FULL, Uniform()])
def test_pickles_answer_the_same(measure):
    X = table()
    explainer = MeasureExplainer(random_perceptron(0, 4, [6]), measure).fit(X)
    values = explainer.explain(X[:5]).values
    assert_array_equal(pickle.loads(pickle.dumps(explainer)).explain(X[:5]).values, values)


@pytest.mark.parametrize("measure", [GAUSSIAN, DIAGONAL, FULL])
def test_missing_own_values_stay_and_are_not_conditioned_on(measure):
    X = table(3)
    model = make_pipeline(SimpleImputer().fit(X), random_perceptron(0, 3, [6]))
    explainer = MeasureExplainer(model, measure, groups={"g": ["x0", "x2"]}).fit(X)
    assert explainer.engine_ == ("one_layer_normal",)
    rows = np.array([[np.nan, 1.0, 0.5], [np.nan, np.nan, np.nan], [0.3, 1.0, 0.5]])
    found = explainer.explain(rows).values
    sampled = MeasureExplainer(
        model, measure, engine="quasi_monte_carlo", groups=explainer.groups, tol=3e-3,
        random_state=0,
    ).fit(X)  # fmt: skip
    other = sampled.explain(rows)
    assert (np.abs(found - other.values) <= 6 * other.std_error + 1e-12).all()


# -- weights at the ends of float64 --------------------------------------------------------------


@pytest.mark.parametrize("measure", ["uniform", "partial_dependence", Conditional("gaussian")])
@pytest.mark.parametrize("power", [-1000, -700, -300, 300, 700, 1000])
def test_units_of_any_size_are_the_same_units(power, measure):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = MLPRegressor(hidden_layer_sizes=(6,), max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X[:, 0] * X[:, 1])
    wanted = MeasureExplainer(model, measure).fit(X).explain(X)
    powers = np.array([power, 0, power // 2, 5, -power // 3, power])
    model.coefs_[0] = np.ldexp(model.coefs_[0], powers)
    model.intercepts_[0] = np.ldexp(model.intercepts_[0], powers)
    model.coefs_[1] = np.ldexp(model.coefs_[1], -powers[:, None])
    explainer = MeasureExplainer(model, measure).fit(X)
    found = explainer.explain(X)
    assert found.exact and explainer.refuted_ is None
    assert_allclose(found.values, wanted.values, rtol=1e-12, atol=1e-12)
