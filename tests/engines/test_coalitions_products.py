"""Shapley and Banzhaf values of additive models, sums of products, and sums of both."""

import pickle
from dataclasses import replace
from fractions import Fraction
from functools import partial

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
from tests.cases import behind
from tests.helpers.case import predict, smooth_case
from tests.helpers.comparison import close, cube, flat, oracle_of, same
from tests.helpers.lanes import quickly
from tests.helpers.random_cases import examples
from tests.helpers.smooth import GAPS, STEPS, TARGETS, X

pytestmark = [
    pytest.mark.filterwarnings("ignore:Found unknown categories"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


NUMBERS = X[["size", "age", "code"]].to_numpy() / [1, 10, 2]
SCORE = TARGETS["number"]
GROUPS = {"g": ["city", "age"]}
OWN = [(0, 2), (1,), (3,)]


def vote(steps):
    """A linear model and a kernel machine in one estimator, behind one preprocessing."""
    members = [
        (name, make_pipeline(STEPS[steps].make(), model))
        for name, model in (("linear", Ridge()), ("kernel", SVR(C=3.0, gamma=0.2)))
    ]
    data = GAPS if STEPS[steps].gaps else X
    return VotingRegressor(members, weights=[1, 2]).fit(data, SCORE)


NAMES = {
    "additive": ["ridge targets", "logistic CV", "lasso"],
    "products": ["SVR", "SVC of pairs", "kernel ridge targets", "process of a sum"],
}
ENGINE = {"additive": "additive_coalitions", "products": "bump_coalitions", "sum": "addends"}
INNER = [PartialDependence(), ProductMarginal()]
WAYS = ("auto", "moments", "nodes")


def case_of(kind, steps, number, n=40, m=20):
    """A model of some kind behind given steps."""
    if kind != "sum":
        steps = "splines" if steps == "curved" and kind == "additive" else steps
        return behind(NAMES[kind][number % len(NAMES[kind])], steps, n, m)
    case, model = behind("SVR", steps, n, m), vote(steps)
    return replace(case, estimator=model, f=partial(predict, model))


def choose_way(patch, way):
    """Have all sums over coalitions computed in one way."""
    if way != "auto":
        patch.setattr(bump_coalitions, "prefers_moments", lambda *_: way == "moments")


def agrees(kind, case, measure, weight=None, own=None, **settings):
    """The definition, by the engine of this kind; Shapley values of rows add up."""
    explainer, explanation = same(case, measure, weight, own, **settings)
    assert explainer.engine_ == (ENGINE[kind],), explainer.describe()
    assert (flat(explanation.offset) == 0).all()
    if isinstance(measure, Shapley) and isinstance(measure.measure, PartialDependence):
        sums = cube(explanation.values).sum(axis=1)
        gain = case.f(case.X) - flat(explainer.base_value_)
        close(sums, gain, oracle_of(case, weight).tolerance(), "the sum of all values")


# -- the definition ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENGINE)
@examples(25)
@given(seed=st.integers(0, 10**6))
def test_random_models_equal_the_definition(kind, seed):
    """Missing values and categories behind pipelines, groups, weights with zeros, outputs."""
    rng = np.random.default_rng(seed)
    steps = str(rng.choice(["scaled", "gaps", "curved"]))
    n, m = rng.integers(1, 6), rng.integers(1, 5)
    case = case_of(kind, steps, int(rng.integers(12)), n, m)
    weight = rng.integers(0, 3, n) * rng.random(n)
    if not weight.any():
        weight = None
    groups, own = (None, None) if rng.random() < 0.5 else (GROUPS, OWN)
    measure = [Shapley, Banzhaf][rng.integers(2)](INNER[rng.integers(2)])
    with pytest.MonkeyPatch.context() as patch:
        choose_way(patch, WAYS[rng.integers(3)])
        agrees(kind, case, measure, weight, own, groups=groups)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [Shapley(), Banzhaf()], ids=repr)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ENGINE)
def test_equals_the_definition(kind, way, measure, monkeypatch):
    choose_way(monkeypatch, way)
    case = case_of(kind, "gaps", 1, 12, 4)
    weight = np.arange(12) % 3
    agrees(kind, case, measure, weight)
    agrees(kind, case, measure, weight, OWN, groups=GROUPS)


@pytest.mark.parametrize("measure", quickly([Shapley, Banzhaf], [Shapley]))
@pytest.mark.parametrize("kind", ENGINE)
def test_uniform_laws(kind, measure):
    if kind == "sum":
        linear, kernel = Ridge(), SVR(gamma=0.4)
        estimator = VotingRegressor([("linear", linear), ("kernel", kernel)])
        estimator.fit(NUMBERS, SCORE)
    else:
        estimator = Ridge() if kind == "additive" else SVR(gamma=0.4)
        estimator.fit(NUMBERS, SCORE)
    case = smooth_case(estimator, NUMBERS[:9], NUMBERS[20:23])
    agrees(kind, case, measure(Uniform()))
    agrees(kind, case, measure(Uniform()), own=[(0, 2), (1,)], groups={"g": ["x0", "x2"]})


def test_the_lower_corner_as_the_only_row():
    estimator = SVR(gamma=0.4).fit(NUMBERS, SCORE)
    rows = NUMBERS[20:23]
    corner = NUMBERS.min(axis=0)
    values = [
        MeasureExplainer(estimator, Shapley(inner)).fit(background).explain(rows).values
        for inner, background in (
            (ScaledCoefficient(), NUMBERS),
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
    return {kind: case_of(kind, "gaps", 2) for kind in ENGINE}


@pytest.mark.slow
@pytest.mark.parametrize("inner", INNER, ids=repr)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ENGINE)
def test_order_chunks_features_jobs_and_pickles_change_no_bit(
    fitted, kind, way, inner, monkeypatch
):
    choose_way(monkeypatch, way)
    estimator, rows, data = fitted[kind].estimator, fitted[kind].X, fitted[kind].background
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
    estimator, data = fitted[kind].estimator, fitted[kind].background
    weights = np.arange(1.0, 31.0)
    whole = MeasureExplainer(estimator, measure).fit(data[:30], sample_weight=weights)
    batches = MeasureExplainer(estimator, measure)
    for some in (slice(1), slice(1, 4), slice(4, 30)):  # rows first, then moments
        batches.partial_fit(data[some], sample_weight=weights[some])
    rows = fitted[kind].X[:5]
    wanted = whole.explain(rows).values
    assert_allclose(batches.explain(rows).values, wanted, rtol=0, atol=1e-12 * np.ptp(wanted))
    assert_allclose(batches.base_value_, whole.base_value_, rtol=1e-12)


def test_rows_become_moments_where_these_cost_less():
    model = SVR().fit(NUMBERS, SCORE)
    batches = MeasureExplainer(model, Shapley()).partial_fit(NUMBERS[:1])
    assert "1 background rows at 2 nodes" in batches.describe()
    batches.partial_fit(NUMBERS[1:40])
    assert "the moments of at most 8 coalitions" in batches.describe()


def test_small_blocks_change_rounding_only(monkeypatch):
    model = SVR().fit(NUMBERS, SCORE)

    def values(way):
        choose_way(monkeypatch, way)
        explainer = MeasureExplainer(model, Shapley()).fit(NUMBERS[:20])
        return explainer.explain(NUMBERS[20:30]).values

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
@pytest.mark.parametrize("way", quickly(WAYS, ["auto"]))
@pytest.mark.parametrize("kind", ENGINE)
def test_ignored_columns_get_exactly_0(kind, way, inner, monkeypatch):
    choose_way(monkeypatch, way)
    steps = make_column_transformer((StandardScaler(), [0, 2]))  # drops column 1
    linear = make_pipeline(steps, Ridge())
    kernel = make_pipeline(make_column_transformer((StandardScaler(), [0, 2])), SVR())
    vote = VotingRegressor([("linear", linear), ("kernel", kernel)])
    model = {"additive": linear, "products": kernel, "sum": vote}[kind]
    model.fit(NUMBERS, SCORE)
    for measure in (Shapley(inner), Banzhaf(inner)):
        values = MeasureExplainer(model, measure).fit(NUMBERS[:30]).explain(NUMBERS[30:]).values
        assert (values[:, 1] == 0).all()
        assert (values[:, 0] != 0).all()
