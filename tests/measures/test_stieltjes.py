"""The paper's section 3 and its appendices, computed: integrands, densities, coefficients, steps.

Integrands are written as the paper writes them. What they must give is a closed form, the oracle's
sum, or, on trees, what the exact engines say of the same measure.
"""

from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.engines import Riemann
from skattr.measures import (
    Coefficient,
    Conditional,
    Density,
    PartialDependence,
    ProductMarginal,
    ScaledCoefficient,
    Stieltjes,
    Uniform,
)
from tests.cases import TREES, make_case
from tests.oracle import Oracle, breaks, described

pytestmark = pytest.mark.slow

rng = np.random.default_rng(0)
seeds = st.integers(0, 10_000)


def cube(d):
    return np.array([[0.0, 1.0]] * d)


def explained(f, measure, rows, **settings):
    """The explanation of rows with the unit cube for a domain."""
    rows = np.asarray(rows, float)
    settings = {"domain": cube(rows.shape[1]), "random_state": 0, **settings}
    return MeasureExplainer(f, measure, **settings).fit(rows).explain(rows)


def near(found, truth, times=1.0, slack=1e-12):
    """Values as near as the errors say: those of grids are bounds, more or less."""
    error = 0.0 if found.std_error is None else times * found.std_error
    assert (np.abs(found.values - truth) <= error + slack).all()


# -- the warm-up, section 3.1 --------------------------------------------------------------------


def warm_up(y, x, j):
    """The mass of a rectangle is its other side, if x_j lies in it."""
    return (y[..., j] >= x[j]) * y[..., 1 - j]


def warm_up_factors(y, x, j):
    return np.stack([y[..., k] >= x[k] if k == j else y[..., k] for k in (0, 1)], axis=-1) + 0.0


WARM_UPS = {"general": Stieltjes(warm_up), "product": Stieltjes(warm_up_factors, product=True)}


@pytest.mark.parametrize("kind", WARM_UPS)
def test_warm_up_is_uniform_partial_dependence(kind):
    rows = rng.random((6, 2))
    tree = DecisionTreeRegressor(random_state=0).fit(rng.random((40, 2)), rng.random(40))
    found = explained(tree, WARM_UPS[kind], rows)
    assert found.exact
    assert_allclose(found.values, explained(tree, Uniform(), rows).values, atol=1e-13)
    line = LinearRegression().fit(rows, rows @ [1.0, 3.0] + 2)
    near(explained(line, WARM_UPS[kind], rows), explained(line, Uniform(), rows).values)

    def smooth(Z):
        return np.exp(Z[:, 0] - Z[:, 1]) * np.sin(3 * Z[:, 1])

    x = rows[:, 0]
    mean_of_sine = (np.exp(-1) * (-np.sin(3) - 3 * np.cos(3)) + 3) / 10
    mean_of_exp = np.e - 1
    truth = np.exp(x) * mean_of_sine, mean_of_exp * np.exp(-rows[:, 1]) * np.sin(3 * rows[:, 1])
    truth = np.stack(truth, axis=1)
    near(explained(smooth, WARM_UPS[kind], rows), truth)
    near(explained(smooth, Uniform(), rows), truth)


def test_warm_up_of_an_indicator():
    """The atomic attribution itself: (d - c) if a < x_0 <= b."""
    a, b, c, d = 0.25, 0.5, 0.125, 0.75

    def indicator(Z):
        return ((a < Z[:, 0]) & (Z[:, 0] <= b) & (c < Z[:, 1]) & (Z[:, 1] <= d)) * 1.0

    rows = np.array([[0.3, 0.9], [0.25, 0.5], [0.5, 0.125], [0.6, 0.75]])
    truth = np.stack(
        [(rows[:, 0] > a) & (rows[:, 0] <= b), (rows[:, 1] > c) & (rows[:, 1] <= d)], 1
    )
    truth = truth * [d - c, b - a]
    tree = DecisionTreeRegressor(random_state=0)
    steps = (np.arange(16) + 0.5) / 16
    train = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
    tree.fit(train, indicator(train))  # at sixteenths, but for its cast to float32
    for f, slack in ((tree, 1e-7), (indicator, 0.01)):
        near(explained(f, Stieltjes(warm_up), rows, tol=0.01), truth, slack=slack)


# -- the linear measures, appendix to 4.2 --------------------------------------------------------


def coefficient(y, x, j):
    """The paper's 2 y_j ∏ 1[y_i > 0]."""
    others = np.delete(y, j, axis=-1)
    return 2 * y[..., j] * (others > 0).all(axis=-1)


def coefficient_factors(y, x, j):
    factors = (y > 0) * 1.0
    factors[..., j] = 2 * y[..., j]
    return factors


def scaled(y, x, j):
    """The paper's 1[y_j >= x_j] ∏ 1[y_i > 0]."""
    others = np.delete(y, j, axis=-1)
    return (y[..., j] >= x[j]) * (others > 0).all(axis=-1) * 1.0


def scaled_factors(y, x, j):
    factors = (y > 0) * 1.0
    factors[..., j] = y[..., j] >= x[j]
    return factors


GLOBAL = {
    "paper": Stieltjes(coefficient),
    "product": Stieltjes(coefficient_factors, product=True),
    "built in": Coefficient(),
}
LOCAL = {
    "paper": Stieltjes(scaled),
    "product": Stieltjes(scaled_factors, product=True),
    "built in": ScaledCoefficient(),
}


@pytest.mark.parametrize("d", range(1, 7))
@pytest.mark.parametrize("kind", GLOBAL)
def test_coefficients_of_a_line(kind, d):
    """w_j and w_j x_j, with the right sign in odd dimensions too."""
    w = rng.normal(size=d)
    rows = rng.uniform(0.05, 0.95, size=(2, d))
    settings = {"tol": 10.0}
    if kind == "paper" and d > 4:
        settings["engine"] = Riemann(points=3)  # f is linear: any number will do

    def line(Z):
        return Z @ w

    near(explained(line, GLOBAL[kind], rows, **settings), np.tile(w, (2, 1)), times=0)
    near(explained(line, LOCAL[kind], rows, **settings), w * rows, times=0)
    model = LinearRegression(fit_intercept=False).fit(np.eye(d), w)
    near(explained(model, GLOBAL[kind], rows, **settings), np.tile(w, (2, 1)), times=0)
    near(explained(model, LOCAL[kind], rows, **settings), w * rows, times=0)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_constants(d):
    """A constant gets its mass: 2 and 1, and 0 where mass is taken off."""
    rows = rng.uniform(0.05, 0.95, size=(2, d))

    def constant(Z):
        return np.full(len(Z), 3.5)

    masses = {
        2: [*GLOBAL.values()], 1: [*LOCAL.values(), Uniform(), PartialDependence()],
        0: [Coefficient(True), ScaledCoefficient(True), Stieltjes(lambda y, x, j: y[..., j] * 0)],
    }  # fmt: skip
    for mass, measures in masses.items():
        for measure in measures:
            found = explained(constant, measure, rows)
            near(found, 3.5 * mass)
            near(found.centered(), 0.0)


def test_intercepts_do_not_leak_into_mass_zero():
    rows = rng.random((3, 3))
    w = np.array([1.0, -2.0, 0.5])
    for intercept in (0.0, 7.0):
        model = LinearRegression().fit(np.r_[np.eye(3), [[0, 0, 0]]], np.r_[w, 0] + intercept)
        near(explained(model, Coefficient(True), rows), np.tile(w, (3, 1)))
        near(explained(model, ScaledCoefficient(True), rows), w * rows)
        centred = explained(model, Coefficient(), rows).centered()
        near(centred, np.tile(w, (3, 1)))

    def slope(y, x, j):  # 12 (s - ½) ds ⊗ δ_l
        return np.where(np.arange(3) == j, 6 * (y**2 - y), y > 0)

    near(explained(model, Stieltjes(slope, product=True), rows, tol=1e-4), np.tile(w, (3, 1)))


# -- orders of convergence -----------------------------------------------------------------------


def smooth(Z):
    return np.exp(Z[:, 0]) * np.cos(2 * Z[:, 1])


SMOOTH_MEAN = (np.e - 1) * np.sin(2) / 2


def error_of(measure, rule, points, truth):
    engine = Riemann(rule=rule, points=points)
    found = explained(smooth, measure, np.array([[0.3, 0.6]]), engine=engine, tol=1e9)
    assert found.engine == ("riemann",)
    return np.abs(found.values - truth).max()


CONVERGING = {
    "density": (Density(lambda y, x, j: np.ones(y.shape[:-1])), SMOOTH_MEAN),
    "general": (Stieltjes(lambda y, x, j: y[..., 0] * y[..., 1]), SMOOTH_MEAN),
    "product": (Stieltjes(lambda y, x, j: y + 0.0, product=True), SMOOTH_MEAN),
    "uniform": (Uniform(), np.array([[np.exp(0.3) * np.sin(2) / 2, (np.e - 1) * np.cos(1.2)]])),
}


@pytest.mark.parametrize("kind", CONVERGING)
@pytest.mark.parametrize("rule, order", [("left", 1), ("midpoint", 2)])
def test_orders(kind, rule, order):
    measure, truth = CONVERGING[kind]
    errors = [error_of(measure, rule, points, truth) for points in (16, 32, 64)]
    for coarse, fine in pairwise(errors):
        assert coarse / fine == pytest.approx(2**order, rel=0.06)


@pytest.mark.parametrize("kind", ["density", "uniform"])
def test_gauss_is_exact_soon(kind):
    measure, truth = CONVERGING[kind]
    errors = [error_of(measure, "gauss", points, truth) for points in (2, 4, 8)]
    assert errors[1] < 1e-4 * errors[0] and errors[2] < 1e-13


@pytest.mark.parametrize("kind", ["general", "product"])
def test_increments_have_no_gauss_nodes(kind):
    """There "gauss" is "midpoint"."""
    measure, truth = CONVERGING[kind]
    assert error_of(measure, "gauss", 16, truth) == error_of(measure, "midpoint", 16, truth)


def test_left_is_the_papers_sum():
    """f at lower corners times the increments: the sum by loops."""
    n = 5
    x = np.array([0.37, 0.5])

    def g(y, x, j):
        return np.sin(y[..., 0] + x[0]) * y[..., 1] ** 2 + y[..., 0] * (j + 1)

    truth = np.zeros(2)
    for a in range(n):
        for b in range(n):
            corners = [np.array([a + s, b + t]) / n for s in (0, 1) for t in (0, 1)]
            for j in (0, 1):
                g00, g01, g10, g11 = (g(c, x, j) for c in corners)
                truth[j] += smooth(np.array([[a / n, b / n]]))[0] * (g11 - g10 - g01 + g00)
    engine = Riemann(rule="left", points=n)
    found = explained(smooth, Stieltjes(g), x[None], engine=engine, tol=1e9)
    assert_allclose(found.values[0], truth, rtol=1e-12)


# -- densities, appendix to 3.3 ------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_radon_nikodym(d):
    """A density and the integrand that is its primitive give one measure."""
    rows = np.array([[0.1] * d, [0.9] * d])

    def density(y, x, j):
        return np.prod(2 * y + np.cos(y), axis=-1) * (x[j] - 0.5)

    def primitive(y, x, j):
        return np.prod(y**2 + np.sin(y), axis=-1) * (x[j] - 0.5)

    def factors(y, x, j):
        return (y**2 + np.sin(y)) * np.where(np.arange(d) == j, x[j] - 0.5, 1.0)

    def f(Z):
        return Z.prod(axis=1)

    # ∫ y (2 y + cos y) dy on [0, 1], for each column
    truth = (2 / 3 + np.sin(1) + np.cos(1) - 1) ** d * (rows - 0.5)
    near(explained(f, Density(density), rows), truth)
    near(explained(f, Stieltjes(primitive), rows, tol=0.01), truth)
    near(explained(f, Stieltjes(factors, product=True), rows, tol=0.01), truth)
    tree = DecisionTreeRegressor(max_leaf_nodes=12, random_state=0)
    tree.fit(rng.random((50, d)), rng.random(50))
    exact = explained(tree, Stieltjes(factors, product=True), rows)
    assert exact.exact
    assert_allclose(explained(tree, Stieltjes(primitive), rows).values, exact.values, atol=1e-12)
    by_density = explained(tree, Density(density), rows, tol=0.1, max_evals=1e6)
    near(by_density, exact.values, times=6)


def test_densities_that_are_not_normalised():
    rows = np.array([[0.2, 0.4]])
    for mass in (1.0, -3.0, 1e-6, 1e6):
        found = explained(smooth, Density(lambda y, x, j, m=mass: np.full(y.shape[:-1], m)), rows,
                          tol=1e-3 * max(1, mass))  # fmt: skip
        assert_allclose(found.values, mass * SMOOTH_MEAN, rtol=1e-8)
        assert_allclose(found.offset, mass * smooth(rows).mean(), rtol=1e-8)


# -- step integrands, appendix to 3.3 ------------------------------------------------------------


def test_steps():
    """Σ_i f(t_i) (g(t_i+) - g(t_i-)), jumps on both ends of the domain and inside."""
    places = np.array([0.3, 0.625, 1.0])
    sizes = np.array([2.0, -1.0, 0.5])

    def g(y, x, j):
        return 4.0 * (y[..., 0] > 0) + (y[..., :1] >= places) @ sizes

    def f(Z):
        return np.exp(Z[:, 0])

    truth = 4 * 1.0 + np.exp(places) @ sizes
    for jumps in ({"x0": places}, {0: places}, lambda x, j: {"x0": places},
                  {"x0": [0.0, *places]}):  # fmt: skip
        found = explained(f, Stieltjes(g, jumps=jumps), [[0.5]])
        assert_allclose(found.values, truth, rtol=1e-12)
        assert_allclose(found.std_error, 0, atol=1e-12)
        factors = Stieltjes(lambda y, x, j: g(y, x, j)[..., None], product=True, jumps=jumps)
        assert_allclose(explained(f, factors, [[0.5]]).values, truth, rtol=1e-12)
    for rule in ("left", "midpoint", "gauss"):
        engine = Riemann(rule=rule, points=3)
        found = explained(f, Stieltjes(g, jumps={"x0": places}), [[0.5]], engine=engine)
        assert_allclose(found.values, truth, rtol=1e-12)


def test_steps_that_nobody_declared():
    """At a lower face and at x they are found; elsewhere the grid closes in on them."""

    def f(Z):
        return np.exp(Z).prod(axis=1)

    rows = np.array([[0.37, 0.71], [1.0, 0.25]])
    dirac = Stieltjes(lambda y, x, j: (y >= x).all(axis=-1) * 1.0)
    assert_allclose(explained(f, dirac, rows).values, np.tile(f(rows)[:, None], 2), rtol=1e-12)
    corner = Stieltjes(lambda y, x, j: (y > 0).all(axis=-1) * 1.0)
    assert_allclose(explained(f, corner, rows).values, 1.0, rtol=1e-12)
    mixed = Stieltjes(lambda y, x, j: (y[..., j] > 0) * (y[..., 1 - j] >= x[1 - j]) * 1.0)
    assert_allclose(explained(f, mixed, rows).values, np.exp(rows[:, ::-1]), rtol=1e-12)
    inside = Stieltjes(lambda y, x, j: (y >= 0.3).all(axis=-1) * 1.0)
    near(explained(f, inside, rows, tol=0.1), np.exp(0.6), times=3)
    # at the lower end 1[y >= l] has no increment: the atom is lost, as docs/mathematics.md says
    lost = Stieltjes(lambda y, x, j: (y >= 0).all(axis=-1) * 1.0)
    assert_allclose(explained(f, lost, rows).values, 0.0, atol=0)


@pytest.mark.parametrize("low", [0.0, -3.0, 1e-3, 1e8])
def test_lower_faces_anywhere(low):
    sides = np.array([[low, low + 1.0], [0.0, 2.0]])

    def g(y, x, j):
        return (y[..., 0] > low) * y[..., 1]

    def f(Z):
        return (Z[:, 0] - low + 1) * (Z[:, 1] + 1)

    rows = np.array([[low + 0.5, 0.5]])
    found = MeasureExplainer(f, Stieltjes(g), domain=sides).fit(rows).explain(rows)
    assert_allclose(found.values, 2 * 2, rtol=1e-12)


# -- trees: the exact engines --------------------------------------------------------------------

NUMERIC = [name for name in TREES if not any(
    word in name for word in ("categories", "codes", "strings", "booleans"))]  # fmt: skip


def numeric_case(name, seed):
    """A case of numbers, few columns, and its edges."""
    case = make_case(name, seed)
    assume(case.n_columns <= 3 and case.breaks is not None)
    return case, case.breaks


def hard_domain(rng, edges):
    """Sides that start and end at thresholds, or beside them."""
    sides = []
    for cuts in edges:
        pool = sorted({-1.5, 0.25, 2.0, *cuts, *np.nextafter(cuts, np.inf)})
        pairs = [(a, b) for a in pool for b in pool if b - a > 0.1]
        sides.append(pairs[rng.integers(len(pairs))])
    return np.array(sides)


def points_inside(rng, sides, edges, n):
    """Points of a box, on its upper faces, on thresholds, and beside them."""
    result = np.empty((n, len(sides)))
    for k, (low, high) in enumerate(sides):
        cuts = np.array([high, (low + high) / 2, *edges[k], *np.nextafter(edges[k], np.inf)])
        # 1[y >= the next number] is 1[y > low] on all numbers: an atom at low
        pool = cuts[(cuts > np.nextafter(low, np.inf)) & (cuts <= high)]
        result[:, k] = rng.choice(pool, n)
    return result


@pytest.mark.parametrize("product", [False, True])
@settings(max_examples=40)
@given(st.sampled_from(NUMERIC), seeds)
def test_points_of_trees(product, name, seed):
    """∫ f d1[y >= p] = f(p), wherever p and the domain lie; an atom at the lower corner too."""
    case, edges = numeric_case(name, seed)
    rng = np.random.default_rng(seed)
    sides = hard_domain(rng, edges)
    points = points_inside(rng, sides, edges, 5)
    low = sides[:, 0]
    at_low = rng.random(points.shape) < 0.3
    points = np.where(at_low, low, points)

    def factors(y, x, j):
        return np.where(x > low, y >= x, y > low) * 1.0

    g = factors if product else (lambda y, x, j: factors(y, x, j).prod(axis=-1))
    explainer = MeasureExplainer(case.estimator, Stieltjes(g, product=product), domain=sides)
    explainer.fit(in_double(case.background))
    assert explainer.engine_ == ("increments",)
    table = as_case(case, points)
    found = explainer.explain(table).values.reshape(len(points), len(low), -1)
    truth = case.f(as_case(case, points))
    assert_allclose(found, np.repeat(truth[:, None], len(low), 1), atol=1e-12 * scale(truth))


def in_double(X):
    """A background that holds every number: float32 behind steps rounds, and warns."""
    if isinstance(X, np.ndarray):
        return X.astype(np.float64)
    if isinstance(X, pd.DataFrame):
        return X.astype({name: "float64" for name in X.columns if X[name].dtype == "float32"})
    return X.cast({pl.Float32: pl.Float64})


def as_case(case, points):
    """Numbers in a container like the case's, which must not round them."""
    if isinstance(case.X, np.ndarray):
        return points
    values = {name: points[:, k] for k, name in enumerate(case.X.columns)}
    return type(case.X)(values)


def scale(values):
    return max(1.0, np.abs(values).max())


@pytest.mark.parametrize("product", [False, True])
@settings(max_examples=40)
@given(st.sampled_from(NUMERIC), seeds)
def test_signed_integrands_on_trees(product, name, seed):
    """Smooth, signed, of any mass, 0 among them: the sum over pieces by loops."""
    case, edges = numeric_case(name, seed)
    rng = np.random.default_rng(seed)
    sides = hard_domain(rng, edges)
    low, high = sides.T
    kinds = rng.integers(0, 3, len(low))

    def factors(y, x, j):
        s = (y - low) / (high - low)
        choices = [s**2 - s, 3 * s, np.cos(3 * s) * (1 + (np.arange(len(low)) == j))]
        return np.choose(kinds, choices)

    g = factors if product else (lambda y, x, j: factors(y, x, j).prod(axis=-1))
    explainer = MeasureExplainer(case.estimator, Stieltjes(g, product=product), domain=sides)
    explainer.fit(in_double(case.background))
    rows = as_case(case, points_inside(rng, sides, edges, 1))
    found = explainer.explain(rows)
    assert found.exact
    for j in range(len(low)):
        laws = []
        for k, (a, b) in enumerate(sides):
            ends = np.array([a, *(c for c in edges[k] if a < c < b), b])
            y = np.tile(low, (len(ends), 1))
            y[:, k] = ends
            weight = np.diff(factors(y, None, j)[:, k])
            inside = [max(p + (q - p) / 2, np.nextafter(p, q)) for p, q in pairwise(ends)]
            laws.append((np.array(inside), weight))
        grid = np.indices([len(w) for _, w in laws]).reshape(len(laws), -1)
        points = np.stack([v[at] for (v, _), at in zip(laws, grid, strict=True)], axis=1)
        weight = np.prod([w[at] for (_, w), at in zip(laws, grid, strict=True)], axis=0)
        values = case.f(as_case(case, points))
        truth = weight @ values
        got = found.values.reshape(len(low), -1)[j]
        assert_allclose(got, truth, atol=1e-12 * scale(values) * max(1, np.abs(weight).sum()))


def table_1(X, weight, sides, kind, oracle=None, parameters=None, rows=None):
    """The integrands of the paper's Table 1, data as distribution functions."""
    share = weight / weight.sum()
    d = X.shape[1]
    low, high = sides.T

    def joint(y, x, j, share=share):
        total = np.zeros(y.shape[:-1])
        for z, w in zip(X, share, strict=True):
            z = np.where(np.arange(d) == j, x, z)
            total += w * (y >= z).all(axis=-1)
        return total

    def conditional(y, x, j):
        i = int(np.flatnonzero((rows == x).all(axis=1))[0])
        return joint(y, x, j, oracle.given(parameters, rows, (j,))[i])

    def marginals(y, x, j):
        factors = (y[..., None, :] >= X).astype(float)  # (..., n, d)
        factors = np.einsum("...nd,n->...d", factors, share)
        factors[..., j] = y[..., j] >= x[j]
        return factors

    def uniform(y, x, j):
        factors = (y - low) / (high - low)
        factors[..., j] = y[..., j] >= x[j]
        return factors

    chosen = {"joint": joint, "conditional": conditional, "marginals": marginals,
              "uniform": uniform}[kind]  # fmt: skip
    return Stieltjes(chosen, product=kind in ("marginals", "uniform"))


@pytest.mark.parametrize("kind", ["joint", "marginals", "uniform", "conditional"])
@settings(max_examples=8)
@given(seeds)
def test_table_1_on_trees(kind, seed):
    """Rows of the table as integrands, against the engines that know the measures themselves."""
    rng = np.random.default_rng(seed)
    train = rng.normal(size=(40, 3)).round(1)
    tree = DecisionTreeRegressor(max_leaf_nodes=9, random_state=0)
    tree.fit(train, train[:, 0] * train[:, 1] + np.sin(3 * train[:, 2]))
    edges = breaks(tree)
    X = train[:8].copy()
    for k, cuts in enumerate(edges):
        if cuts:
            X[rng.integers(8), k] = rng.choice(cuts)  # values on thresholds
    rows = X[rng.permutation(8)[:3]]
    weight = rng.integers(0, 3, 8) + 0.5
    # an atom at a lower face would be lost by `>=`
    sides = np.stack([X.min(axis=0) - 0.5, X.max(axis=0)], axis=1)
    measure = {"joint": PartialDependence(), "marginals": ProductMarginal(),
               "uniform": Uniform(), "conditional": Conditional()}[kind]  # fmt: skip
    exact = MeasureExplainer(tree, measure, domain=sides).fit(X, sample_weight=weight)
    oracle = Oracle(lambda Z: tree.predict(Z)[:, None], X, weight)
    parameters = described(exact.measure_)[0][2] if kind == "conditional" else None
    written = table_1(X, weight, sides, kind, oracle, parameters, rows)
    explainer = MeasureExplainer(tree, written, domain=sides).fit(X, sample_weight=weight)
    found = explainer.explain(rows)
    assert found.exact and explainer.engine_ == ("increments",)
    assert_allclose(found.values, exact.explain(rows).values, atol=1e-12)
    black = MeasureExplainer(lambda Z: tree.predict(Z), written, domain=sides, tol=10.0)
    if kind == "marginals":  # the grid, jumps declared, finds all atoms
        declared = Stieltjes(written.integrand, product=True,
                             jumps={f"x{k}": X[:, k] for k in range(3)})  # fmt: skip
        black.set_params(measure=declared)
        near(black.fit(X, sample_weight=weight).explain(rows), found.values)


@pytest.mark.parametrize("step", ["negative", "imputer"])
@pytest.mark.parametrize("product", [False, True])
def test_steps_in_front_of_trees(step, product):
    """Cells whose codes fall along a column, and a number that is replaced."""
    X = rng.normal(size=(60, 2)).round(2)
    X[rng.random((60, 2)) < 0.2] = -1
    front = {"negative": FunctionTransformer(np.negative),
             "imputer": SimpleImputer(missing_values=-1)}[step]  # fmt: skip
    model = make_pipeline(front, DecisionTreeRegressor(max_leaf_nodes=9, random_state=0))
    model.fit(X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2)
    sides = np.array([[-3.0, 3.0]] * 2)

    def points(y, x, j):
        return (y >= x) * 1.0

    def flat(y, x, j):
        return np.where(np.arange(2) == j, y >= x, (y + 3) / 6)

    rows = np.r_[X[:6], [[-1, -1], [-1, 0.5], [np.nextafter(-1, 0), np.nextafter(-1, -2)]]]
    for factors in (points, flat):
        g = factors if product else (lambda y, x, j, f=factors: f(y, x, j).prod(axis=-1))
        explainer = MeasureExplainer(model, Stieltjes(g, product=product), domain=sides).fit(X)
        assert explainer.engine_ == ("increments",)
        found = explainer.explain(rows).values
        if factors is points:
            truth = np.tile(model.predict(rows)[:, None], 2)
        else:
            truth = MeasureExplainer(model, Uniform(), domain=sides).fit(X).explain(rows).values
        assert_allclose(found, truth, atol=1e-12)


def test_a_domain_that_the_model_does_not_take():
    """The logarithm knows no cells below 0: there is no exact engine, and no sum of a part."""
    X = rng.uniform(0.5, 3, size=(40, 1))
    model = make_pipeline(FunctionTransformer(np.log), DecisionTreeRegressor(max_depth=2))
    model.fit(X, X[:, 0])
    flat = Stieltjes(lambda y, x, j: y + 0.0, product=True)
    fine = MeasureExplainer(model, flat, domain=[[0.5, 3.0]]).fit(X)
    assert fine.exact_
    grid = MeasureExplainer(lambda Z: model.predict(Z), flat, domain=[[0.5, 3.0]], tol=0.01).fit(X)
    near(grid.explain(X[:1]), fine.explain(X[:1]).values, times=3)


def test_boxes_and_grids_agree():
    X = rng.random((60, 2))
    tree = DecisionTreeRegressor(max_leaf_nodes=10, random_state=0).fit(X, X[:, 0] * X[:, 1])
    for measure in (*WARM_UPS.values(), *GLOBAL.values(), *LOCAL.values()):
        exact = explained(tree, measure, X[:3])
        assert exact.exact
        found = explained(lambda Z: tree.predict(Z), measure, X[:3], tol=0.05)
        near(found, exact.values, times=2, slack=0.1 * tree.predict(X[:3]).std())


def test_lists_of_integrands():
    X = rng.random((20, 2))
    tree = DecisionTreeRegressor(max_leaf_nodes=10, random_state=0).fit(X, X[:, 0] * X[:, 1])
    several = Stieltjes([partial(warm_up, j=j) for j in (0, 1)])
    factors = Stieltjes([partial(warm_up_factors, j=j) for j in (0, 1)], product=True)
    truth = explained(tree, Uniform(), X).values
    for measure in (several, factors):
        assert_allclose(explained(tree, measure, X).values, truth, atol=1e-13)
        assert_allclose(explained(tree, measure, X).offset, tree.predict(X).mean(), atol=1e-13)
