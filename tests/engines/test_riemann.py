"""Grids on any model: closed forms, sums by loops, which engine is chosen, what changes no bit."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor

from skattr import MeasureExplainer
from skattr.engines import QuasiMonteCarlo, Riemann
from skattr.measures import (
    Coefficient,
    Density,
    Expectation,
    ProductMarginal,
    Sampler,
    Stieltjes,
    Uniform,
)
from tests.helpers.lanes import quickly
from tests.oracle import Oracle, described

rng = np.random.default_rng(0)
X = rng.random((12, 3)).round(1)
WEIGHTS = np.arange(12) % 3 + 0.5
UNIT = np.array([[0.0, 1.0]] * 3)
ROWS = np.array([[0.2, 0.9, 0.4], [0.5, 0.1, 0.7]])


def smooth(Z):
    a, b, c = np.asarray(Z).T
    return np.exp(a) * np.cos(2 * b) + c**3


def pair(Z):
    a, b, c = np.asarray(Z, float).T
    return np.stack([a * b - c, np.exp(a) * np.cos(2 * b) + c**3], axis=1)


def fitted(f, measure, data=X, weight=None, **settings):
    settings = {"random_state": 0, "domain": UNIT, **settings}
    return MeasureExplainer(f, measure, **settings).fit(data, sample_weight=weight)


def counted(f):
    """A function that keeps how many rows it was asked about, and at which points."""
    calls = []

    def g(Z):
        calls.append(np.array(Z))
        return f(Z)

    return g, calls


def same_bits(one, other):
    assert np.array_equal(one.values, other.values)
    if one.std_error is not None or other.std_error is not None:
        assert np.array_equal(one.std_error, other.std_error)
    assert np.array_equal(one.offset, other.offset)


# -- values --------------------------------------------------------------------------------------


def test_uniform_in_closed_form():
    explainer = fitted(smooth, Uniform())
    assert explainer.engine_ == ("riemann",) and not explainer.exact_
    a, b, c = ROWS.T
    half, mean, cube = np.sin(2) / 2, np.e - 1, 1 / 4
    truth = np.stack([np.exp(a) * half + cube, mean * np.cos(2 * b) + cube, mean * half + c**3], 1)
    found = explainer.explain(ROWS)
    assert_allclose(found.values, truth, rtol=1e-12)
    assert (found.std_error < 1e-3).all()
    assert_allclose(found.offset, mean * half + cube, rtol=1e-12)
    assert_allclose(found.base_value, smooth(X).mean())
    assert_allclose(fitted(smooth, Expectation("uniform")).explain(ROWS).values, found.offset)


@pytest.mark.parametrize("rule", ["left", "midpoint", "gauss"])
@pytest.mark.parametrize("points", [2, 3, 7])
def test_uniform_is_the_sum_over_nodes(rule, points):
    engine = Riemann(rule=rule, points=points)
    found = fitted(pair, Uniform(), engine=engine, tol=1e9).explain(ROWS)
    if rule == "gauss":
        nodes, weights = np.polynomial.legendre.leggauss(points)
        nodes, weights = (nodes + 1) / 2, weights / 2
    else:
        nodes = (np.arange(points) + (rule == "midpoint") / 2) / points
        weights = np.full(points, 1 / points)
    for i, x in enumerate(ROWS):
        for j in range(3):
            total = 0.0
            for p, q in product(range(points), repeat=2):
                y = np.insert([nodes[p], nodes[q]], j, x[j])
                total = total + weights[p] * weights[q] * pair(y[None])[0]
            assert_allclose(found.values[i, j], total, rtol=1e-12)


def mixed(Z):
    """A function of a number, a word and a flag, missing ones too."""
    size = [v if v is not None and v == v else -3.0 for v in Z["size"]]
    word = np.array([{"a": 1.0, "b": 5.0}.get(v, 11.0) for v in Z["word"]])
    return np.array(size, float) * word + np.asarray([*Z["flag"]], float) * np.sqrt(word)


TABLE = pd.DataFrame({
    "size": [1.0, 2.0, np.nan, 4.0, 1.0],
    "word": ["a", "b", None, "a", "b"],
    "flag": [True, False, True, True, True],
})  # fmt: skip


@pytest.mark.parametrize("kind", ["pandas", "categories", "polars"])
@pytest.mark.parametrize("groups", [None, {"g": ["size", "flag"]}])
def test_finite_grid_is_the_sum_over_combinations(kind, groups):
    weight = np.array([1, 2, 0.5, 0, 3])
    table = TABLE
    if kind == "categories":
        table = TABLE.astype({"word": "category"})
    if kind == "polars":
        table = pl.DataFrame({k: [None if v != v else v for v in TABLE[k]] for k in TABLE})
    own = [(0,), (1,), (2,)] if groups is None else [(0, 2), (1,)]
    explainer = MeasureExplainer(mixed, ProductMarginal(), groups=groups)
    explainer.fit(table, sample_weight=weight)
    assert explainer.engine_ == ("finite_grid",) and explainer.exact_
    found = explainer.explain(table)
    plain = TABLE.to_dict("list")
    oracle = Oracle(lambda Z: mixed(Z)[:, None], TABLE, weight)
    terms = described(ProductMarginal())
    truth = oracle.values(terms, TABLE, own)[..., 0]
    assert_allclose(found.values, truth, rtol=1e-12)
    assert found.exact and found.std_error is None
    (offset,) = oracle.offset(terms)
    assert_allclose(found.offset, offset, rtol=1e-12)
    assert_allclose(found.base_value, weight @ mixed(plain) / weight.sum(), rtol=1e-12)
    expected = MeasureExplainer(mixed, Expectation("product")).fit(table, sample_weight=weight)
    assert expected.engine_ == ("finite_grid",)
    assert_allclose(expected.explain(table).values, offset, rtol=1e-12)


def test_finite_grid_of_an_array():
    found = fitted(pair, ProductMarginal(), X[:5], WEIGHTS[:5]).explain(ROWS)
    share = WEIGHTS[:5] / WEIGHTS[:5].sum()
    for i, x in enumerate(ROWS):
        for j in range(3):
            total = 0.0
            for r, s in product(range(5), repeat=2):
                y = np.insert([X[r, int(j == 0)], X[s, 2 - int(j == 2)]], j, x[j])
                total = total + share[r] * share[s] * pair(y[None])[0]
            assert_allclose(found.values[i, j], total, rtol=1e-12)


def test_uniform_on_levels_and_numbers():
    """Equal weight on levels, a rule on numbers; missing has no mass."""
    explainer = MeasureExplainer(mixed, Uniform(), tol=1e-6).fit(TABLE)
    assert explainer.engine_ == ("riemann",)
    found = explainer.explain(TABLE[:2])
    # words a and b, flags true and false, sizes from 1 to 4
    root, mean = (1 + np.sqrt(5)) / 2, 2.5
    truth = [[1 * 3 + root / 2, mean * 1 + 0.5, mean * 3 + root],
             [2 * 3 + root / 2, mean * 5 + np.sqrt(5) / 2, mean * 3]]  # fmt: skip
    assert_allclose(found.values, truth, rtol=1e-12)


@pytest.mark.slow
def test_grids_equal_finite_sums():
    """An integrand whose jumps are all declared is a finite sum."""
    places = [np.unique(X[:6, k]) for k in range(3)]

    def below(y, x, j):  # of the product of the marginals
        factors = np.stack([(y[..., k, None] >= X[:6, k]).mean(axis=-1) for k in range(3)], -1)
        factors[..., j] = y[..., j] >= x[j]
        return factors

    def whole(y, x, j):
        return below(y, x, j).prod(axis=-1)

    sides = np.array([[-0.5, 1.0]] * 3)
    jumps = {f"x{k}": places[k] for k in range(3)}
    truth = fitted(pair, ProductMarginal(), X[:6]).explain(ROWS)
    assert truth.exact
    for measure in (Stieltjes(below, product=True, jumps=jumps), Stieltjes(whole, jumps=jumps)):
        found = fitted(pair, measure, X[:6], domain=sides, tol=10.0).explain(ROWS)
        assert_allclose(found.values, truth.values, rtol=1e-10)
        assert_allclose(found.std_error, 0, atol=1e-10)


def test_missing_values_of_numbers():
    data = X.copy()
    data[2, 1] = np.nan

    def f(Z):
        return np.nan_to_num(np.asarray(Z), nan=9.0) @ [1.0, 2.0, 3.0]

    found = fitted(f, ProductMarginal(), data[:5]).explain(data[:3])
    means = np.nan_to_num(data[:5], nan=9.0).mean(axis=0)
    filled = np.nan_to_num(data[:3], nan=9.0)
    truth = means @ [1, 2, 3] + (filled - means) * [1, 2, 3]
    assert_allclose(found.values, truth, rtol=1e-12)


# -- the choice ----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure, d, settings, engine", [
    (Uniform(), 3, {}, "riemann"),
    (Uniform(), 4, {}, "riemann"),  # one is pinned
    (Uniform(), 5, {}, "quasi_monte_carlo"),
    (Uniform(), 4, {"max_evals": 1000}, "quasi_monte_carlo"),
    (Expectation("uniform"), 3, {}, "riemann"),
    (Expectation("uniform"), 4, {}, "quasi_monte_carlo"),
    (ProductMarginal(), 3, {}, "finite_grid"),
    (ProductMarginal(), 5, {}, "quasi_monte_carlo"),  # 20^5 combinations
    (ProductMarginal(), 3, {"max_evals": 500}, "quasi_monte_carlo"),
    (Density(lambda y, x, j: y[..., j]), 3, {}, "riemann"),
    (Density(lambda y, x, j: y[..., j]), 4, {}, "quasi_monte_carlo"),
    (Density(lambda y, x, j: y[..., j]), 3, {"max_evals": 500}, "quasi_monte_carlo"),
    (Coefficient(), 12, {}, "riemann"),
    (Stieltjes(lambda y, x, j: y[..., j]), 4, {}, "riemann"),
])  # fmt: skip
def test_choice_by_cost(measure, d, settings, engine):
    data = np.random.default_rng(1).random((20, d))
    explainer = MeasureExplainer(lambda Z: Z @ np.arange(d), measure, random_state=0, **settings)
    assert explainer.fit(data).engine_ == (engine,)
    text = explainer.describe()
    assert engine in text and "explain: " in text
    assert ("approximate" in text) is (engine != "finite_grid")


def test_constant_columns_cost_nothing():
    data = np.zeros((20, 9))
    data[:, :3] = np.random.default_rng(1).random((20, 3))
    explainer = MeasureExplainer(lambda Z: Z.sum(axis=1), Uniform()).fit(data)
    assert explainer.engine_ == ("riemann",)


def test_named_engines():
    for name, kind in (("riemann", Riemann), ("quasi_monte_carlo", QuasiMonteCarlo)):
        for engine in (name, kind()):
            explainer = fitted(smooth, Uniform(), engine=engine, tol=0.05)
            assert explainer.engine_ == (name,)
    one, two = (fitted(smooth, Uniform(), engine=e, tol=0.01).explain(ROWS)
                for e in ("riemann", "quasi_monte_carlo"))  # fmt: skip
    assert (np.abs(one.values - two.values) <= one.std_error + 6 * two.std_error).all()
    with pytest.raises(ValueError, match=r"riemann.*cannot integrate any term"):
        fitted(smooth, Sampler(lambda x, j, n, rng: rng.random((n, 3))), engine="riemann")
    with pytest.raises(ValueError, match=r"finite_grid.*cannot integrate any term"):
        fitted(smooth, Uniform(), engine="finite_grid")
    with pytest.raises(ValueError, match="no exact engine"):
        fitted(smooth, Uniform(), engine="exact")
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, smooth(X))
    exact = fitted(forest, ProductMarginal())
    grid = fitted(forest, ProductMarginal(), engine="finite_grid")
    assert grid.engine_ == ("finite_grid",) and exact.engine_ == ("box_products",)
    assert_allclose(grid.explain(ROWS).values, exact.explain(ROWS).values, rtol=1e-12)


@pytest.mark.parametrize("bad", [1, 0, -4, 2.5, "many", True])
def test_points_that_are_none(bad):
    with pytest.raises(ValueError, match="Riemann"):
        fitted(smooth, Uniform(), engine=Riemann(points=bad))
    with pytest.raises(ValueError, match=r"rule='trapezoid'.*left.*midpoint.*gauss"):
        fitted(smooth, Uniform(), engine=Riemann(rule="trapezoid"))


# -- evaluations ---------------------------------------------------------------------------------


def test_cells_without_weight_cost_no_call():
    """δ on two sides of a cube: f is asked along one side only, at the lower faces."""

    def coefficient(y, x, j):
        return 2 * y[..., j] * (np.delete(y, j, axis=-1) > 0).all(axis=-1)

    def factors(y, x, j):
        return np.where(np.arange(3) == j, 2 * y, y > 0)

    for measure in (Stieltjes(coefficient), Stieltjes(factors, product=True)):
        f, calls = counted(smooth)
        explainer = fitted(f, measure, engine=Riemann(points=8), tol=1e9)
        calls.clear()
        explainer.explain(ROWS[:1], features=["x1"], predictions=False)
        points = np.concatenate(calls)
        assert len(points) == 8 + 3 + 2  # the levels that the error is made of
        assert not points[:, [0, 2]].any()

    def half(y, x, j):  # a density that is 0 on one half
        return (y[..., 0] > 0.5) * 1.0

    f, calls = counted(smooth)
    explainer = fitted(f, Density(half), engine=Riemann("midpoint", points=4), tol=1e9)
    calls.clear()
    explainer.explain(ROWS[:1], features=["x1"], predictions=False)
    assert (np.concatenate(calls)[:, 0] > 0.5).all()


def test_diracs_cost_nothing():
    """Pinned columns are no dimensions of the grid."""
    f, calls = counted(smooth)
    explainer = fitted(f, Uniform(), engine=Riemann(points=8))
    calls.clear()
    explainer.explain(ROWS[:1], features=["x1"], predictions=False)
    assert sum(map(len, calls)) == 8**2 + 3**2 + 2**2


@pytest.mark.parametrize("measure", [
    Uniform(), Density(lambda y, x, j: 1 + y[..., j]), Stieltjes(lambda y, x, j: y.prod(axis=-1)),
    Stieltjes(lambda y, x, j: y + 0.0, product=True),
])  # fmt: skip
@pytest.mark.parametrize("max_evals", [800, 5000, 30_000])
def test_max_evals_is_never_exceeded(measure, max_evals):
    def rough(Z):
        return np.floor(7.3 * np.asarray(Z)).sum(axis=1) % 2

    f, calls = counted(rough)
    explainer = fitted(f, measure, tol=1e-9, max_evals=max_evals, engine="riemann")
    calls.clear()
    with pytest.warns(ConvergenceWarning, match=f"max_evals={max_evals}"):
        found = explainer.explain(ROWS[:1], features=["x1"], predictions=False)
    assert 0 < sum(map(len, calls)) <= max_evals * (1 + 1e-9) + 4**3  # the first level is small
    assert (found.std_error > 0).all()


def test_max_evals_that_is_too_small():
    for engine in ("riemann", Riemann(points=10)):
        cells = 729 if engine == "riemann" else 1000
        with pytest.raises(ValueError) as caught:
            fitted(smooth, Uniform(), engine=engine, max_evals=500)
        for words in (f"{cells} cells", "max_evals is 500", "raise max_evals", "Riemann(points="):
            assert words in str(caught.value)
    with pytest.raises(ValueError, match=r"finite_grid.*combinations.*max_evals is 50"):
        fitted(smooth, ProductMarginal(), engine="finite_grid", max_evals=50)


def test_it_stops_when_levels_agree():
    f, calls = counted(smooth)
    explainer = fitted(f, Uniform())
    calls.clear()
    explainer.explain(ROWS[:1], features=["x0"], predictions=False)
    assert sum(map(len, calls)) == 4**2 + 9**2 + 19**2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer.explain(ROWS)


# -- what changes no bit -------------------------------------------------------------------------

MEASURES = {
    "uniform": Uniform(),
    "marginal": ProductMarginal(),
    "density": Density(lambda y, x, j: x[j] + y[..., j]),
    "general": Stieltjes(lambda y, x, j: (y[..., j] >= x[j]) * y.sum(axis=-1) ** 2),
    "product": Stieltjes(lambda y, x, j: y**2, product=True),
}
measures = pytest.mark.parametrize("name", MEASURES)


@measures
def test_rows_do_not_matter_to_each_other(name):
    explainer = fitted(pair, MEASURES[name], tol=0.02)
    whole = explainer.explain(X)
    for rows in (np.arange(12)[::-1], [7], [3, 3, 11]):
        same_bits(explainer.explain(X[rows]), whole[rows])
    some = explainer.explain(X, features=["x2", "x0"])
    assert np.array_equal(some.values, whole.values[:, [2, 0]])


@pytest.mark.parametrize("name", ["uniform", "marginal", "density", "general"])
@pytest.mark.parametrize("engine", ["auto", "quasi_monte_carlo"])
def test_jobs_do_not_matter(name, engine):
    if name == "general" and engine != "auto":
        return
    settings = {"tol": 0.05, "engine": engine}
    one = fitted(pair, MEASURES[name], **settings).explain(ROWS)
    same_bits(fitted(pair, MEASURES[name], n_jobs=2, **settings).explain(ROWS), one)


@pytest.mark.parametrize("name", quickly(MEASURES, ["uniform", "general"]))
@pytest.mark.parametrize("block", quickly([2**4, 2**9], [2**4]))
def test_blocks_bound_the_memory(name, block, monkeypatch):
    """The same values to rounding, and never more points at a time."""
    f, calls = counted(pair)
    measure = MEASURES[name]
    engine = "auto" if name == "marginal" else Riemann(points=12)
    whole = fitted(f, measure, engine=engine, tol=1e9).explain(ROWS)
    for name in ("blocks.BLOCK", "blocks.ROW_BLOCK", "backends.ROW_BLOCK"):
        monkeypatch.setattr(f"skattr.engines.evaluation.{name}", block)
    explainer = fitted(f, measure, engine=engine, tol=1e9)
    calls.clear()
    found = explainer.explain(ROWS, predictions=False)
    assert_allclose(found.values, whole.values, rtol=1e-10, atol=1e-12)
    assert max(map(len, calls)) <= block
    monkeypatch.setattr("skattr.engines.evaluation.backends.ROW_BLOCK", 7)
    calls.clear()
    found = explainer.explain(ROWS, predictions=False)
    assert_allclose(found.values, whole.values, rtol=1e-10, atol=1e-12)
    assert max(map(len, calls)) <= 7


@pytest.mark.parametrize("measure", [Uniform(), ProductMarginal(), Uniform() - ProductMarginal()])
@pytest.mark.parametrize("engine, max_evals", [
    ("quasi_monte_carlo", 600), ("quasi_monte_carlo", 50_000), ("riemann", 50_000),
])  # fmt: skip
def test_ignored_columns_get_the_offset(measure, engine, max_evals):
    """To the last bit: nothing is left after centring."""

    def f(Z):
        return np.exp(Z[:, 0] - Z[:, 2])

    explainer = fitted(f, measure, tol=0.03, max_evals=max_evals, engine=engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = explainer.explain(X).centered()
    if engine == "quasi_monte_carlo":
        assert not found.values[:, 1].any() and not found.std_error[:, 1].any()
    else:  # grids of different sizes sum in another order
        assert_allclose(found.values[:, 1], 0, atol=1e-12)
    assert found.values[:, [0, 2]].all()


# -- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "measure",
    [
        ProductMarginal(),
        Uniform(),
        Expectation("uniform"),
        Expectation("product"),
        ProductMarginal() - Uniform(),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"max_evals": 600}])
def test_batches_are_one_fit(measure, settings):
    settings = {"random_state": 0, "tol": 0.3, **settings}
    one = MeasureExplainer(pair, measure, **settings).fit(X, sample_weight=WEIGHTS)
    several = MeasureExplainer(pair, measure, **settings)
    for rows in (slice(0, 5), slice(5, 6), slice(6, 12)):
        several.partial_fit(X[rows], sample_weight=WEIGHTS[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found, truth = several.explain(ROWS), one.explain(ROWS)
    if several.engine_ == one.engine_:
        assert_allclose(found.values, truth.values, rtol=1e-10)
        assert_allclose(found.offset, truth.offset, rtol=1e-10)
    else:  # the first batch had few values: it chose another engine
        assert (np.abs(found.values - truth.values) <= 6 * sum_of_errors(found, truth)).all()
    assert_allclose(found.base_value, truth.base_value, rtol=1e-12)


def sum_of_errors(*explanations):
    return sum(0.0 if e.std_error is None else e.std_error for e in explanations) + 1e-12


def test_batches_of_words():
    one = MeasureExplainer(mixed, ProductMarginal()).fit(TABLE)
    several = MeasureExplainer(mixed, ProductMarginal())
    several.partial_fit(TABLE[:2]).partial_fit(TABLE[2:])
    assert one.engine_ == several.engine_ == ("finite_grid",)
    assert_allclose(several.explain(TABLE).values, one.explain(TABLE).values, rtol=1e-12)


# -- around it -----------------------------------------------------------------------------------


def test_curves():
    explainer = fitted(pair, Uniform())
    found = explainer.explain(X)
    curve = explainer.curve("x1")
    assert curve.kind == "function"
    assert np.array_equal(curve(X[:, 1]), found.values[:, 1])


def test_neighbours():
    """A model that is only evaluated, in a frame."""
    frame = pd.DataFrame(X, columns=list("abc"))
    model = KNeighborsRegressor(3).fit(frame, smooth(X))
    found = MeasureExplainer(model, ProductMarginal()).fit(frame[:5]).explain(frame[:2])
    assert found.exact
    black = MeasureExplainer(lambda Z: model.predict(pd.DataFrame(Z, columns=list("abc"))),
                             ProductMarginal()).fit(X[:5]).explain(X[:2])  # fmt: skip
    assert_allclose(found.values, black.values, rtol=1e-12)


def test_groups():
    found = fitted(smooth, Uniform(), groups={"g": ["x0", "x1"]}).explain(ROWS)
    a, b, c = ROWS.T
    truth = [np.exp(a) * np.cos(2 * b) + 1 / 4, (np.e - 1) * np.sin(2) / 2 + c**3]
    assert_allclose(found.values, np.transpose(truth), rtol=1e-10)
