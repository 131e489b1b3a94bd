"""Shapley and Banzhaf values of additive models, sums of products, and sums of both."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skattr import MeasureExplainer
from skattr.engines.products import bump_coalitions, coalition_sums
from skattr.measures import (
    Banzhaf,
    PartialDependence,
    ProductMarginal,
    ScaledCoefficient,
    Shapley,
    Uniform,
)
from tests.helpers import additive_models as additive
from tests.helpers import kernel_machines as products
from tests.helpers.comparison import close, cube, flat
from tests.helpers.gauss_legendre import Smooth
from tests.helpers.random_cases import examples
from tests.oracle import described

pytestmark = [
    pytest.mark.filterwarnings("ignore:Found unknown categories"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def vote(name):
    """A linear model and a kernel machine in one estimator, behind one preprocessing."""
    build, data = products.PREPARATIONS[name]
    linear, kernel = (make_pipeline(build(), each) for each in (Ridge(), SVR(C=3.0, gamma=0.2)))
    model = VotingRegressor([("linear", linear), ("kernel", kernel)], weights=[1, 2])
    model.fit(data, products.SCORE)
    return model, data, lambda Z: model.predict(Z)[:, None]


NAMES = {
    "additive": [(additive, name) for name in ("Ridge", "LogisticRegressionCV", "Lasso")],
    "products": [
        (products, name)
        for name in ("SVR", "SVC of pairs", "KernelRidge of targets", "process of a sum")
    ],
}
ENGINE = {"additive": "additive_coalitions", "products": "bump_coalitions", "sum": "addends"}
INNER = [PartialDependence(), ProductMarginal()]
WAYS = ("auto", "moments", "nodes")


def model_of(kind, preparation, number):
    """A pipeline, its background and f."""
    if kind == "sum":
        return vote(preparation)
    module, name = NAMES[kind][number % len(NAMES[kind])]
    if preparation == "curved" and kind == "additive":
        preparation = "splines"
    return module.fitted_model(preparation, name)


def choose_way(patch, way):
    """Have all sums over coalitions computed in one way."""
    if way != "auto":
        patch.setattr(bump_coalitions, "prefers_moments", lambda *_: way == "moments")


def agrees(kind, estimator, f, background, rows, measure, weight=None, own=None, **settings):
    """Values, base value and offset equal the definition; returns the explainer."""
    oracle = Smooth(f, background, weight, levels=settings.pop("levels", ()))
    own = own or [(k,) for k in range(background.shape[1])]
    explainer = MeasureExplainer(estimator, measure, **settings)
    explainer.fit(background, sample_weight=weight)
    assert explainer.engine_ == (ENGINE[kind],), explainer.describe()
    assert explainer.exact_
    explanation = explainer.explain(rows)
    terms = described(measure)
    wanted = oracle.values(terms, rows, own)
    tolerance = oracle.tolerance()
    close(cube(explanation.values), wanted, tolerance, f"values of {measure}")
    close(flat(explainer.base_value_), oracle.base_value(), tolerance, "base_value_")
    assert (flat(explanation.offset) == 0).all()
    if isinstance(measure, Shapley):
        end = oracle.evaluate(rows)
        sums = cube(explanation.values).sum(axis=1)
        mean = flat(explainer.base_value_)
        if isinstance(measure.measure, PartialDependence):
            close(sums, end - mean, tolerance, "the sum of all values")
    return explainer


# -- the definition ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENGINE)
@examples(25)
@given(seed=st.integers(0, 10**6))
def test_random_models_equal_the_definition(kind, seed):
    """Missing values and categories behind pipelines, groups, weights with zeros, outputs."""
    rng = np.random.default_rng(seed)
    preparation = str(rng.choice(["scaled", "gaps", "curved"]))
    estimator, data, f = model_of(kind, preparation, int(rng.integers(12)))
    picked = rng.permutation(len(data))
    background = data.iloc[picked[: rng.integers(1, 6)]]
    rows = data.iloc[picked[-rng.integers(1, 5) :]]
    weight = rng.integers(0, 3, len(background)) * rng.random(len(background))
    if not weight.any():
        weight = None
    groups, own = (None, None) if rng.random() < 0.5 else ({"g": ["city", "age"]}, products.OWN)
    measure = [Shapley, Banzhaf][rng.integers(2)](INNER[rng.integers(2)])
    with pytest.MonkeyPatch.context() as patch:
        choose_way(patch, WAYS[rng.integers(3)])
        agrees(kind, estimator, f, background, rows, measure, weight, own, groups=groups)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [Shapley(), Banzhaf()], ids=repr)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ENGINE)
def test_equals_the_definition(kind, way, measure, monkeypatch):
    choose_way(monkeypatch, way)
    estimator, data, f = model_of(kind, "gaps", 1)
    weight = np.arange(12) % 3
    agrees(kind, estimator, f, data[:12], data[20:24], measure, weight)
    agrees(
        kind, estimator, f, data[:12], data[20:24], measure, weight, products.OWN,
        groups=products.GROUPS,
    )  # fmt: skip


@pytest.mark.parametrize("measure", [Shapley, Banzhaf])
@pytest.mark.parametrize("kind", ENGINE)
def test_uniform_laws(kind, measure):
    if kind == "sum":
        linear, kernel = Ridge(), SVR(gamma=0.4)
        estimator = VotingRegressor([("linear", linear), ("kernel", kernel)])
        estimator.fit(products.NUMBERS, products.SCORE)
    else:
        estimator = Ridge() if kind == "additive" else SVR(gamma=0.4)
        estimator.fit(products.NUMBERS, products.SCORE)
    rows = products.NUMBERS[20:23]

    def f(Z):
        return estimator.predict(Z)[:, None]

    agrees(kind, estimator, f, products.NUMBERS[:9], rows, measure(Uniform()))
    agrees(
        kind, estimator, f, products.NUMBERS[:9], rows, measure(Uniform()), None, [(0, 2), (1,)],
        groups={"g": ["x0", "x2"]},
    )  # fmt: skip


def test_the_lower_corner_as_the_only_row():
    estimator = SVR(gamma=0.4).fit(products.NUMBERS, products.SCORE)
    rows = products.NUMBERS[20:23]
    corner = products.NUMBERS.min(axis=0)
    values = [
        MeasureExplainer(estimator, Shapley(inner)).fit(background).explain(rows).values
        for inner, background in (
            (ScaledCoefficient(), products.NUMBERS),
            (PartialDependence(), corner[None]),
        )
    ]
    assert_array_equal(*values)


# -- many players, by sums over the sizes of coalitions in exact arithmetic ------------------------


def by_sizes(at_x, at_z, weight_of_size):
    """Values of ∏_a K_a for one explained and one background row, K given by players."""
    at_x, at_z = ([Fraction(float(v)) for v in each] for each in (at_x, at_z))
    values = []
    for own in range(len(at_x)):
        sizes = [Fraction(1)]  # Σ over coalitions of each size
        for a in (a for a in range(len(at_x)) if a != own):
            out, joined = [at_z[a] * c for c in sizes], [at_x[a] * c for c in sizes]
            sizes = [u + v for u, v in zip([*out, 0], [0, *joined], strict=True)]
        total = sum(weight_of_size(s, len(at_x) - 1) * c for s, c in enumerate(sizes))
        values.append(float((at_x[own] - at_z[own]) * total))
    return np.array(values)


def shapley_weight(s, n):
    result = Fraction(1, n + 1)
    for i in range(s):  # 1 / ((n + 1) · binomial(n, s))
        result *= Fraction(i + 1, n - i)
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    "measure, weight_of_size",
    [(Shapley(), shapley_weight), (Banzhaf(), lambda s, n: Fraction(1, 2**n))],
    ids=["Shapley", "Banzhaf"],
)
@pytest.mark.parametrize("g", [1, 2, 3, 9, 31])
def test_many_players(g, measure, weight_of_size):
    """An even and an odd number of nodes, and more players than coalitions could be enumerated."""
    rng = np.random.default_rng(g)
    X = rng.normal(size=(6, g))
    model = KernelRidge(kernel="rbf", gamma=0.5 / g, alpha=0.1).fit(X, rng.normal(size=6))
    explainer = MeasureExplainer(model, measure).fit(X[:1])
    values = explainer.explain(X[1:3]).values
    for x, found in zip(X[1:3], values, strict=True):
        wanted = np.zeros(g)
        for support, coefficient in zip(model.X_fit_, model.dual_coef_, strict=True):
            at_x, at_z = (np.exp(-model.gamma * (row - support) ** 2) for row in (x, X[0]))
            wanted += coefficient * by_sizes(at_x, at_z, weight_of_size)
        assert_allclose(found, wanted, rtol=0, atol=1e-14 * np.abs(model.dual_coef_).sum())


# -- bits, batches and rows far away ---------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    return {kind: model_of(kind, "gaps", 2) for kind in ENGINE}


@pytest.mark.slow
@pytest.mark.parametrize("inner", INNER, ids=repr)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ENGINE)
def test_order_chunks_features_jobs_and_pickles_change_no_bit(
    fitted, kind, way, inner, monkeypatch
):
    choose_way(monkeypatch, way)
    estimator, data, _ = fitted[kind]
    rows = data[20:40]
    explainer = MeasureExplainer(estimator, Shapley(inner)).fit(data[:19])
    values = explainer.explain(rows).values
    order = np.random.default_rng(0).permutation(len(rows))[:7]
    assert_array_equal(explainer.explain(rows.iloc[order]).values, values[order])
    assert_array_equal(explainer.explain(rows, features=["code", "age"]).values, values[:, [3, 0]])
    assert_array_equal(pickle.loads(pickle.dumps(explainer)).explain(rows).values, values)
    monkeypatch.setattr(bump_coalitions, "ROWS", 3)
    assert_array_equal(explainer.explain(rows).values, values)
    parallel = MeasureExplainer(estimator, Shapley(inner), n_jobs=2).fit(data[:19])
    assert_array_equal(parallel.explain(rows).values, values)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [Shapley(), Banzhaf(ProductMarginal())], ids=repr)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ENGINE)
def test_batches_are_one_fit(fitted, kind, way, measure, monkeypatch):
    choose_way(monkeypatch, way)
    estimator, data, _ = fitted[kind]
    weights = np.arange(1.0, 31.0)
    whole = MeasureExplainer(estimator, measure).fit(data[:30], sample_weight=weights)
    batches = MeasureExplainer(estimator, measure)
    for some in (slice(1), slice(1, 4), slice(4, 30)):  # rows first, then moments
        batches.partial_fit(data[some], sample_weight=weights[some])
    rows = data[40:45]
    wanted = whole.explain(rows).values
    assert_allclose(batches.explain(rows).values, wanted, rtol=0, atol=1e-12 * np.ptp(wanted))
    assert_allclose(batches.base_value_, whole.base_value_, rtol=1e-12)


def test_rows_become_moments_where_these_cost_less():
    model = SVR().fit(products.NUMBERS, products.SCORE)
    batches = MeasureExplainer(model, Shapley()).partial_fit(products.NUMBERS[:1])
    assert "1 background rows at 2 nodes" in batches.describe()
    batches.partial_fit(products.NUMBERS[1:40])
    assert "the moments of at most 8 coalitions" in batches.describe()


def test_small_blocks_change_rounding_only(monkeypatch):
    model = SVR().fit(products.NUMBERS, products.SCORE)

    def values(way):
        choose_way(monkeypatch, way)
        explainer = MeasureExplainer(model, Shapley()).fit(products.NUMBERS[:20])
        return explainer.explain(products.NUMBERS[20:30]).values

    wanted = values("nodes")
    assert_allclose(values("moments"), wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())
    monkeypatch.setattr(coalition_sums, "TERMS", 7)
    monkeypatch.setattr(coalition_sums, "ROWS", 3)
    monkeypatch.setattr(bump_coalitions, "WORTHS", 1)
    for way in WAYS:
        assert_allclose(values(way), wanted, rtol=0, atol=1e-13 * np.abs(wanted).max())


@pytest.mark.parametrize("inner", INNER, ids=repr)
@pytest.mark.parametrize("way", WAYS)
def test_factors_that_vanish(way, inner, monkeypatch):
    """Far from the support vectors all factors are 0, and values that add up are still right."""
    choose_way(monkeypatch, way)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    model = SVR().fit(X, X[:, 0] * X[:, 1])
    background = np.concatenate([X[:5], np.full((2, 4), 1e200)])
    explainer = MeasureExplainer(model, Shapley(inner)).fit(background)
    rows = np.array([[1e200, 0.1, 0.2, -1e250], [1e200] * 4, [0.3, 0.1, -0.2, 0.4]])
    explanation = explainer.explain(rows)
    assert np.isfinite(explanation.values).all()
    start = MeasureExplainer(model, inner).fit(background).explain(rows).offset
    assert_allclose(explanation.values.sum(axis=1), explanation.predictions - start, atol=1e-13)


@pytest.mark.parametrize("inner", [*INNER, Uniform()], ids=repr)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ENGINE)
def test_ignored_columns_get_exactly_0(kind, way, inner, monkeypatch):
    choose_way(monkeypatch, way)
    numbers = products.NUMBERS
    steps = make_column_transformer((StandardScaler(), [0, 2]))  # drops column 1
    linear = make_pipeline(steps, Ridge())
    kernel = make_pipeline(make_column_transformer((StandardScaler(), [0, 2])), SVR())
    vote = VotingRegressor([("linear", linear), ("kernel", kernel)])
    model = {"additive": linear, "products": kernel, "sum": vote}[kind]
    model.fit(numbers, products.SCORE)
    for measure in (Shapley(inner), Banzhaf(inner)):
        values = MeasureExplainer(model, measure).fit(numbers[:30]).explain(numbers[30:]).values
        assert (values[:, 1] == 0).all()
        assert (values[:, 0] != 0).all()
