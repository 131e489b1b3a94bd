"""Pairs of attributions: every engine equals the definition, by loops in `oracle.py`."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

from skattr import MeasureExplainer
from skattr.engines import ENGINES
from skattr.engines.table import is_of_pairs
from skattr.kernels.boxes import rectangles
from skattr.measures import (
    Banzhaf,
    Coefficient,
    Conditional,
    Density,
    Dirac,
    PartialDependence,
    ProductMarginal,
    Removal,
    Sampler,
    Uniform,
)
from tests.cases import CASES, MEASURES, exists, make_case
from tests.helpers.comparison import close, cube, flat, oracle_of
from tests.helpers.lanes import quickly
from tests.helpers.random_cases import column_as_given, examples, groups_of, weights_of
from tests.oracle import described

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

OWN = [kind for kind, measure in MEASURES.items() if measure.own]
seeds = st.integers(0, 10_000)


def same_pairs(case, measure, weight=None, own=None, oracle=None, **settings):
    """All pairs equal the definition, and add up with single values and the remainder."""
    own = own or [(k,) for k in range(case.n_columns)]
    assume(len(own) > 1)
    oracle = oracle or oracle_of(case, weight)
    explainer = MeasureExplainer(case.estimator, measure, **settings)
    explainer.fit(case.background, sample_weight=weight)
    pairs = explainer.explain_pairs(case.X)
    members = list(combinations(range(len(own)), 2))
    terms = described(explainer.measure_)
    wanted = oracle.pairs(terms, case.X, own, members)
    size = max(1.0, sum(abs(c) for c, _, _ in terms))
    tolerance = 4 * size * oracle.tolerance()
    assert pairs.exact is True and pairs.std_error is None
    names = explainer.explain(case.X, predictions=False).feature_names
    assert pairs.feature_names == tuple((names[a], names[b]) for a, b in members)
    close(cube(pairs.values), wanted, tolerance, f"pairs of {measure}")
    assert np.all(flat(pairs.offset) == 0)
    close(flat(pairs.base_value), oracle.base_value(), tolerance, "base_value")
    parts = cube(pairs.values).sum(axis=1) + cube(pairs.singles.centered().values).sum(axis=1)
    rest = pairs.remainder().to_numpy().reshape(len(case.X), -1)
    total = parts + rest + flat(pairs.start)
    close(total, oracle.evaluate(case.X), 8 * tolerance, "the sum of all parts")
    return explainer, pairs


@pytest.mark.parametrize("name", quickly(CASES, ["hist categories"]))
@examples(2)
@given(seeds)
def test_every_measure(name, seed):
    case = make_case(name, seed)
    assume(case.n_columns > 1)
    weight = weights_of(case, seed)
    oracle = oracle_of(case, weight)
    for kind in OWN:
        if exists(case, kind, weight):
            same_pairs(case, MEASURES[kind].make(case), weight, oracle=oracle)


@pytest.mark.slow
@examples(60)
@given(st.sampled_from(sorted(CASES)), seeds, st.sampled_from(OWN))
def test_groups(name, seed, kind):
    case, weight = make_case(name, seed), weights_of(make_case(name, seed), seed)
    assume(exists(case, kind, weight))
    groups, own = groups_of(case, seed)
    assume(groups is not None)
    same_pairs(case, MEASURES[kind].make(case), weight, own, groups=groups)


@pytest.mark.slow
@examples(30)
@given(
    st.sampled_from(sorted(CASES)),
    seeds,
    st.lists(st.sampled_from(sorted(MEASURES)), min_size=2, max_size=3),
)
def test_combinations(name, seed, kinds):
    case = make_case(name, seed)
    weight = weights_of(case, seed)
    assume(all(exists(case, kind, weight) for kind in kinds))
    assume(any(MEASURES[kind].own for kind in kinds))
    measure = MEASURES[kinds[0]].make(case)
    for coefficient, kind in zip((-0.5, 3), kinds[1:], strict=False):
        measure = measure + coefficient * MEASURES[kind].make(case)
    same_pairs(case, measure, weight)


@pytest.mark.parametrize("name", quickly(CASES, ["hist categories"]))
@examples(2)
@given(seeds)
def test_surfaces(name, seed):
    """A surface is the pair, both curves and the offset; at rows, at grids, in any order."""
    case = make_case(name, seed)
    assume(case.n_columns > 1)
    weight = weights_of(case, seed)
    measure = PartialDependence() if seed % 2 else PartialDependence() - 2 * ProductMarginal()
    assume("columns" in case.over or seed % 2)
    explainer = MeasureExplainer(case.estimator, measure).fit(case.background, sample_weight=weight)
    pairs = explainer.explain_pairs(case.X)
    singles = pairs.singles
    k = len(pairs.output_names)
    for p, (a, b) in enumerate(pairs.feature_names):
        first, second = (singles.feature_names.index(each) for each in (a, b))
        given_a, given_b = (column_as_given(case.X, each) for each in (first, second))
        surface = explainer.surface(a, b)
        alone = surface.interaction()(given_a, given_b).reshape(len(case.X), k)
        np.testing.assert_array_equal(alone, cube(pairs.values)[:, p])
        whole = surface(given_a, given_b).reshape(len(case.X), k)
        curves = cube(singles.values)[:, first] + cube(singles.values)[:, second]
        np.testing.assert_array_equal(whole, alone + (curves - flat(singles.offset)))
        grid = surface.grid(given_a, given_b)
        at = np.arange(len(case.X))
        np.testing.assert_array_equal(grid[at, at].reshape(len(case.X), k), whole)
        turned = explainer.surface(b, a).grid(given_b, given_a)
        np.testing.assert_array_equal(np.swapaxes(turned, 0, 1), grid)


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    X[:, 1] += 0.5 * X[:, 0]
    return X, X[:, 0] * X[:, 1] + np.where(X[:, 2] > 0, X[:, 3], 0.3)


def pinned_means(f, Z, X, columns):
    """The means of f over Z with some columns set to those of each row of X: no code shared."""
    result = []
    for x in X:
        at = Z.copy()
        at[:, columns] = x[columns]
        result.append(f(at).mean(axis=0))
    return np.array(result)


def by_hand(f, Z, X):
    """All pairs, (n, p) or (n, p, k)."""
    mean = f(Z).mean(axis=0)
    alone = [pinned_means(f, Z, X, [j]) for j in range(X.shape[1])]
    pairs = combinations(range(X.shape[1]), 2)
    return np.stack(
        [pinned_means(f, Z, X, [j, k]) - alone[j] - alone[k] + mean for j, k in pairs], axis=1
    )


def smooth(X):
    return np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2 * X[:, 3]


FOREST = RandomForestRegressor(6, random_state=0)
KERNEL = SVR(gamma=0.5)
NETWORK = MLPRegressor(hidden_layer_sizes=(5,), max_iter=3, random_state=0)
VOTE = VotingRegressor([("forest", FOREST), ("linear", LinearRegression())])
ENGINE_CASES = {
    "two_violations": (FOREST, PartialDependence()),
    "pair_products": (FOREST, ProductMarginal()),
    "additive_pairs": (LinearRegression(), PartialDependence()),
    "pair_differences": (KERNEL, PartialDependence()),
    "estimated_differences": (smooth, Uniform()),
}
DIFFERENCES = [
    (KNeighborsRegressor(), PartialDependence()),
    (NETWORK, PartialDependence()),
    (VOTE, PartialDependence()),
    (KERNEL, Conditional()),
    (FOREST, Coefficient()),
    (FOREST, Dirac()),
    (FOREST, Removal()),
]


def test_every_engine_of_pairs_has_a_case():
    # those of interaction indices have theirs in test_interactions.py
    known = {each.name for each in ENGINES if is_of_pairs(each)}
    of_games = {
        each.name for each in ENGINES if is_of_pairs(each) and "coalitions" in each.views[0]
    }
    assert set(ENGINE_CASES) == known - of_games


@pytest.mark.filterwarnings("ignore")  # of values that stop at max_evals, of MLPs
@pytest.mark.parametrize("name", ENGINE_CASES)
def test_engines_are_chosen(name):
    model, measure = ENGINE_CASES[name]
    X, y = data()
    model = model.fit(X, y) if hasattr(model, "fit") else model
    explainer = MeasureExplainer(model, measure, max_evals=2000, random_state=0).fit(X)
    pairs = explainer.explain_pairs(X[:3])
    assert pairs.engine == (name,)
    assert f"engine {name}" in explainer.describe()
    assert pairs.exact == (name != "estimated_differences")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, measure", DIFFERENCES, ids=lambda each: type(each).__name__)
def test_differences_of_values_of_groups(model, measure):
    """μ_jk is the value of a group of both columns."""
    X, y = data()
    model = model.fit(X, y)
    explainer = MeasureExplainer(model, measure, domain=[(-4.0, 4.0)] * 4).fit(X)
    pairs = explainer.explain_pairs(X[:5])
    assert pairs.engine == ("pair_differences",)
    single = pairs.singles.centered().values
    for p, (j, k) in enumerate(combinations(range(4), 2)):
        grouped = MeasureExplainer(
            model, measure, groups={"both": [j, k]}, domain=[(-4.0, 4.0)] * 4
        ).fit(X)
        if isinstance(measure, Conditional):  # bandwidths are learned from single columns
            continue
        both = grouped.explain(X[:5]).centered()[:, "both"].values[:, 0]
        wanted = both - single[:, j] - single[:, k]
        np.testing.assert_allclose(pairs.values[:, p], wanted, rtol=0, atol=1e-12 * np.ptp(y))


def test_brute_force():
    """Values on thresholds and beside them, against loops that share no code."""
    X, y = data(80)
    forest = RandomForestRegressor(5, random_state=1).fit(X, y)
    thresholds = np.concatenate([tree.tree_.threshold for tree in forest.estimators_])
    rng = np.random.default_rng(2)
    some = rng.choice(thresholds, (12, 4))
    rows = np.concatenate([some, np.nextafter(some, np.inf), X[:5]])
    values = MeasureExplainer(forest).fit(X).explain_pairs(rows).values
    np.testing.assert_allclose(values, by_hand(forest.predict, X, rows), rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dense", [0, 2**40])
def test_sweeps_and_tables_are_the_same_to_the_last_bit(dense, monkeypatch):
    X, y = data(300)
    y = pd.cut(y, [-np.inf, -0.2, 0.5, np.inf], labels=False)
    X[::7, 0] = np.nan
    forest = RandomForestClassifier(4, random_state=0).fit(X, y)
    explainer = MeasureExplainer(forest).fit(X)
    usual = explainer.explain_pairs(X).values
    monkeypatch.setattr(rectangles, "DENSE", dense)
    np.testing.assert_array_equal(explainer.explain_pairs(X).values, usual)
    half = np.concatenate(
        [explainer.explain_pairs(X[part]).values for part in (slice(37), slice(37, None))]
    )
    np.testing.assert_array_equal(half, usual)
    both = MeasureExplainer(forest, n_jobs=2).fit(X).explain_pairs(X).values
    np.testing.assert_array_equal(both, usual)


def test_many_background_rows(monkeypatch):
    """Rows go down the trees in blocks."""
    from skattr.engines.boxes import two_violations

    X, y = data(200)
    model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    weight = np.random.default_rng(0).random(200)
    whole = MeasureExplainer(model).fit(X, sample_weight=weight).explain_pairs(X[:20]).values
    monkeypatch.setattr(two_violations, "ROW_BLOCK", 64)
    parts = MeasureExplainer(model).fit(X, sample_weight=weight).explain_pairs(X[:20]).values
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-14)


def test_some_pairs_are_those_of_all():
    X, y = data(100)
    forest = FOREST.fit(X, y)
    all_pairs = MeasureExplainer(forest).fit(X).explain_pairs(X[:9])
    explainer = MeasureExplainer(forest).fit(X)
    some = explainer.explain_pairs(X[:9], pairs=[("x3", "x1"), ("x0", "x2")])
    assert some.feature_names == (("x1", "x3"), ("x0", "x2"))
    wanted = all_pairs[:, [("x1", "x3"), ("x0", "x2")]].values
    np.testing.assert_array_equal(some.values, wanted)
    with_one = explainer.explain_pairs(X[:9], pairs="x2")
    assert with_one.feature_names == (("x0", "x2"), ("x1", "x2"), ("x2", "x3"))
    np.testing.assert_array_equal(
        with_one.values, all_pairs[:, list(with_one.feature_names)].values
    )


@pytest.mark.parametrize("measure", ["main_effect", "shapley", Banzhaf(ProductMarginal())])
def test_pairs_that_never_meet_are_certified(measure):
    X, y = data(200)
    stumps = HistGradientBoostingRegressor(max_iter=30, max_depth=1).fit(X, y)
    explainer = MeasureExplainer(stumps, measure).fit(X)
    assert np.all(explainer.explain_pairs(X).values == 0.0)
    assert "6 of 6 pairs are certified to be 0" in explainer.describe()
    apart = HistGradientBoostingRegressor(max_iter=20, interaction_cst=[{0, 1}, {2, 3}]).fit(X, y)
    explainer = MeasureExplainer(apart, measure).fit(X)
    pairs = explainer.explain_pairs(X)
    zero = np.all(pairs.values == 0.0, axis=0)
    met = [("x0", "x1"), ("x2", "x3")]
    assert [
        name for name, is_zero in zip(pairs.feature_names, zero, strict=True) if not is_zero
    ] == met
    assert "4 of 6 pairs are certified to be 0" in explainer.describe()
    linear = MeasureExplainer(LinearRegression().fit(X, y), measure).fit(X)
    assert np.all(linear.explain_pairs(X).values == 0.0)
    assert "certified" in linear.describe()
    grouped = MeasureExplainer(apart, measure, groups={"ab": ["x0", "x1"]}).fit(X)
    grouped.explain_pairs(X[:5])
    assert "2 of 3 pairs are certified to be 0" in grouped.describe()


def test_one_background_row():
    X, y = data()
    forest = FOREST.fit(X, y)
    values = MeasureExplainer(forest).fit(X[:1]).explain_pairs(X[:6]).values
    np.testing.assert_allclose(values, by_hand(forest.predict, X[:1], X[:6]), rtol=0, atol=1e-13)


def test_multiclass_boosting():
    """One tree per class: a box adds to one output."""
    X, y = data(120)
    classes = pd.cut(y, [-np.inf, -0.3, 0.4, np.inf], labels=False)
    model = HistGradientBoostingClassifier(max_iter=6).fit(X, classes)
    pairs = MeasureExplainer(model).fit(X).explain_pairs(X[:8])
    wanted = by_hand(model.decision_function, X, X[:8])
    np.testing.assert_allclose(pairs.values, wanted, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["auto", "riemann"])
def test_errors_of_estimates(engine):
    """f = x0 x1 + x2 under uniform laws on [-1, 1]: the pair of x0 and x1 is x0 x1, others 0."""

    def product(X):
        return np.exp(X[:, 0]) * X[:, 1] + X[:, 2]

    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    explainer = MeasureExplainer(
        product, Uniform(), engine=engine, domain=[(-1.0, 1.0)] * 3, random_state=0, tol=1e-3
    ).fit(X)
    pairs = explainer.explain_pairs(X[:5])
    assert not pairs.exact
    wanted = np.zeros((5, 3))
    wanted[:, 0] = (np.exp(X[:5, 0]) - np.sinh(1.0)) * X[:5, 1]
    assert np.all(np.abs(pairs.values - wanted) <= 6 * pairs.std_error + 1e-9)
    assert pairs.std_error.max() < 0.1


@pytest.mark.filterwarnings("ignore")
def test_measures_that_are_written():
    """Mass that varies: centred values of both less those of each."""
    X, _ = data(30)
    X = X[:, :2].clip(-2, 2)

    def f(X):
        return X[:, 0] * X[:, 1] + X[:, 1]

    density = Density(lambda y, x, j: (1.0 + (np.abs(y - x) < 1).sum(axis=-1)) / 16)
    sampler = Sampler(lambda x, j, n, rng: np.where(np.isin([0, 1], j), x, rng.normal(size=(n, 2))))
    for measure in (density, sampler):
        settings = {"domain": [(-2.0, 2.0)] * 2, "random_state": 0, "max_evals": 4000}
        explainer = MeasureExplainer(f, measure, **settings).fit(X)
        pairs = explainer.explain_pairs(X[:3])
        both = MeasureExplainer(f, measure, groups={"both": [0, 1]}, **settings).fit(X)
        both = both.explain(X[:3]).centered()
        wanted = both.values[:, 0] - pairs.singles.centered().values.sum(axis=1)
        assert not pairs.exact
        error = pairs.std_error[:, 0] + both.std_error[:, 0]
        assert np.all(np.abs(pairs.values[:, 0] - wanted) <= 6 * error + 1e-9)
