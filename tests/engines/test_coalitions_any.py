"""Shapley and Banzhaf values on any model: all coalitions, or sampled ones with honest errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor

from skattr import MeasureExplainer
from skattr.engines import RunOptions
from skattr.engines.evaluation.coalition_designs import chains, flips, latin_positions
from skattr.engines.evaluation.sampled_coalitions import SampledCoalitions
from skattr.measures import Banzhaf, Conditional, Expectation, ProductMarginal, Shapley, Uniform
from tests.oracle import Oracle, described

MEASURES = [Shapley(), Banzhaf()]
SAMPLED = "sampled_coalitions"


def wavy(X):
    """Two outputs, with interactions of up to four columns; the last column is ignored."""
    X = np.asarray(X, float)
    return np.stack(
        [np.sin(X[:, :4].prod(axis=1)) + X[:, 0] * X[:, 2], np.exp(X[:, :3].sum(1) / 2)], 1
    )


def rows(n, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).round(2)


def single(d):
    return [(k,) for k in range(d)]


def sampled(measure, X, *, weight=None, model=wavy, **more):
    return MeasureExplainer(model, measure, engine=SAMPLED, **more).fit(X, sample_weight=weight)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from(MEASURES))
def test_enumeration_is_the_definition(seed, d, measure):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(1, 12), d)).round(1)
    weight = rng.integers(0, 3, len(X)) + (np.arange(len(X)) == 0)
    slopes = rng.normal(size=(d, 2))

    def f(X):
        return np.tanh(np.asarray(X) @ slopes) * 3 + np.asarray(X)[:, :1] ** 2

    Q = np.concatenate([rng.normal(size=(3, d)), X[:1]])
    explainer = MeasureExplainer(f, measure).fit(X, sample_weight=weight)
    assert explainer.engine_ == ("enumerated_coalitions",)
    found = explainer.explain(Q)
    oracle = Oracle(f, X, weight)
    wanted = oracle.values(described(explainer.measure_), Q, single(d))
    assert found.exact
    assert (np.abs(found.values - wanted) <= oracle.tolerance()).all()
    if isinstance(measure, Shapley):
        assert_allclose(found.values.sum(axis=1), f(Q) - oracle.base_value(), atol=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_groups_are_players(measure):
    X = rows(15)
    explainer = MeasureExplainer(wavy, measure, groups={"pair": [1, 3]}).fit(X)
    players = list(explainer._attributions)
    assert len(players) == 4
    wanted = Oracle(wavy, X).values(described(explainer.measure_), X[:3], players)
    assert_allclose(explainer.explain(X[:3]).values, wanted, atol=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_frames_with_levels(measure):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({
        "a": rng.normal(size=12),
        "b": pd.Categorical(rng.choice(["x", "y"], 12)),
        "c": rng.integers(0, 3, 12),
    })  # fmt: skip

    def f(X):
        y = X["a"].to_numpy() * (X["b"].to_numpy() == "x") + X["c"].to_numpy() ** 2
        return y.reshape(-1, 1)

    wanted_terms = MeasureExplainer(f, measure).fit(X)
    found = wanted_terms.explain(X[:4]).values
    wanted = Oracle(f, X).values(described(wanted_terms.measure_), X[:4], single(3))
    assert_allclose(found, wanted[..., 0], atol=1e-12)


@pytest.mark.parametrize("engine", ["enumerated_coalitions", SAMPLED])
@pytest.mark.parametrize("measure", MEASURES)
def test_values_do_not_depend_on_other_rows_or_workers(engine, measure):
    X = rows(20)
    explainer = MeasureExplainer(wavy, measure, engine=engine, random_state=0, tol=0.2).fit(X)
    whole = explainer.explain(X).values
    order = np.random.default_rng(1).permutation(20)
    assert_array_equal(explainer.explain(X[order]).values, whole[order])
    assert_array_equal(explainer.explain(X[3:4]).values, whole[3:4])
    assert_array_equal(pickle.loads(pickle.dumps(explainer)).explain(X).values, whole)
    assert_array_equal(explainer.set_params(n_jobs=2).explain(X[:5]).values, whole[:5])
    assert_array_equal(explainer.explain(X[:5], features=[2, 0]).values, whole[:5, [2, 0]])


@pytest.mark.parametrize("engine", ["enumerated_coalitions", SAMPLED])
@pytest.mark.parametrize("measure", MEASURES)
def test_batches_and_order_of_the_background(engine, measure):
    X, weight = rows(24), np.arange(24) % 3 + 0.5
    settings = {"engine": engine, "random_state": 0, "tol": 0.2}
    one = MeasureExplainer(wavy, measure, **settings).fit(X, sample_weight=weight)
    many = MeasureExplainer(wavy, measure, **settings)
    for some in np.array_split(np.arange(24)[::-1], 3):
        many.partial_fit(X[some], sample_weight=weight[some])
    assert_allclose(many.explain(X[:4]).values, one.explain(X[:4]).values, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_evals", [200, 2000, 20_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_replicate_adds_up(max_evals, weighted):
    """With some of the rows, with all rows, and with all rows several times."""
    X = rows(30)
    weight = np.arange(30) % 4 + 0.5 if weighted else np.ones(30)
    explainer = sampled(Shapley(), X, weight=weight, tol=1e-9, max_evals=max_evals)
    term = explainer._solution.terms[0]
    options = RunOptions(max_evals=max_evals, error=np.full(2, 1e-9))
    values = term.engine._values(
        wavy, term.passes[0].state, term.passes[0].attributions, options, X[:1]
    )
    assert values.shape == (16, 5, 2)
    wanted = wavy(X[:1])[0] - weight @ wavy(X) / weight.sum()
    assert_allclose(values.sum(axis=1), np.tile(wanted, (16, 1)), atol=1e-12)


def test_games_of_pairs_have_no_error():
    """Permutations and their reverses share pairs equally; a column that is ignored gets 0."""

    def f(X):
        X = np.asarray(X)
        return X[:, :1] * X[:, 1:2] + X[:, 2:3] * X[:, :1] + X[:, 3:4]

    X = rows(10)
    found = sampled(Shapley(), X, model=f, random_state=0).explain(X[:3])
    wanted = MeasureExplainer(f, Shapley()).fit(X).explain(X[:3]).values
    assert_allclose(found.values, wanted, atol=1e-12)
    assert found.std_error.max() < 1e-12
    assert not found.exact


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_evals", [300, 3000])
@pytest.mark.parametrize("measure", MEASURES)
def test_ignored_columns_get_nothing(measure, max_evals):
    """Whether a replicate uses all rows, or some."""
    X = rows(15)
    found = sampled(measure, X, random_state=0, max_evals=max_evals, tol=1e-9).explain(X[:3])
    assert_array_equal(found.values[:, 4], 0.0)
    assert_array_equal(found.std_error[:, 4], 0.0)
    assert (found.std_error[:, :3] > 0).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("max_evals", [600, 6000, 14_000])
def test_coverage(measure, max_evals):
    """With some of the rows, with all rows, and with all rows several times."""
    X = rows(30)
    weight = np.arange(30) % 4 + 0.5
    Q = X[:1] + 0.3
    truth = MeasureExplainer(wavy, measure).fit(X, sample_weight=weight).explain(Q).values[0, :4]
    values, errors = [], []
    for seed in range(400):
        found = sampled(
            measure, X, weight=weight, random_state=seed, tol=1e-9, max_evals=max_evals
        ).explain(Q, predictions=False)
        values.append(found.values[0, :4])
        errors.append(found.std_error[0, :4])
    values, errors = np.array(values), np.array(errors)
    counts = errors.mean(axis=0) > 1e-12  # a column of one output is ignored
    assert counts.sum() >= 7
    covered = np.abs(values - truth) <= t.ppf(0.975, 15) * errors
    share = covered.mean(axis=0)[counts]
    assert ((share >= 0.9) & (share <= 0.98)).all(), share
    bias = np.abs(values.mean(axis=0) - truth)[counts]
    assert (bias < 4.5 * values.std(axis=0)[counts] / np.sqrt(400)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_evals", [800, 6000])
@pytest.mark.parametrize("kind", [Shapley, Banzhaf])
def test_coverage_of_products_of_laws(kind, max_evals):
    X = rows(5, 3).round()
    weight = np.array([1.0, 2.0, 0.5, 0.0, 1.0])

    def f(X):
        X = np.asarray(X)
        return np.stack([np.sin(X.prod(axis=1)) + X[:, 0], np.exp(X.sum(axis=1) / 2)], axis=1)

    Q, values, errors = X[:1] + 0.5, [], []
    for seed in range(400):
        explainer = sampled(
            kind(ProductMarginal()), X, weight=weight, model=f, random_state=seed, tol=1e-9,
            max_evals=max_evals,
        )  # fmt: skip
        found = explainer.explain(Q, predictions=False)
        values.append(found.values[0])
        errors.append(found.std_error[0])
    values, errors = np.array(values), np.array(errors)
    truth = Oracle(f, X, weight).values(described(explainer.measure_), Q, single(3))[0]
    share = (np.abs(values - truth) <= t.ppf(0.975, 15) * errors).mean(axis=0)
    assert ((share >= 0.9) & (share <= 0.98)).all(), share
    assert (np.abs(values.mean(axis=0) - truth) < 4.5 * values.std(axis=0) / np.sqrt(400)).all()


@pytest.mark.parametrize("inner", [ProductMarginal(), Uniform()])
def test_products_of_laws_are_sampled_where_nothing_is_exact(inner):
    X = rows(20)
    explainer = MeasureExplainer(wavy, Shapley(inner), random_state=0, tol=0.05).fit(X)
    assert explainer.engine_ == (SAMPLED,)
    found = explainer.explain(X[:4])
    assert (found.std_error <= 0.05 * explainer.spread_).all()
    assert_array_equal(found.values[:, 4], 0.0)
    assert_array_equal(explainer.explain(X[2:3]).values, found.values[2:3])
    again = pickle.loads(pickle.dumps(explainer)).explain(X[:4])
    assert_array_equal(again.values, found.values)


def test_stops_at_tol_or_at_max_evals():
    X, calls = rows(20), []

    def f(X):
        calls.append(len(X))
        return wavy(X)

    explainer = sampled(Shapley(), X, model=f, random_state=0, tol=0.05, max_evals=100_000)
    calls.clear()
    found = explainer.explain(X[:1] + 0.2, predictions=False)
    assert (found.std_error <= 0.05 * explainer.spread_).all()
    assert sum(calls) < 100_000
    X = rows(400)  # of which few hybrids are asked for twice
    explainer = sampled(Shapley(), X, model=f, random_state=0, tol=1e-9, max_evals=7000)
    calls.clear()
    with pytest.warns(ConvergenceWarning, match="max_evals=7000"):
        explainer.explain(X[:1] + 0.2, predictions=False)
    assert 3000 < sum(calls) <= 7000 + 1  # and f(x)


@pytest.mark.parametrize("measure", [Shapley(), Banzhaf(), Shapley(Conditional())])
def test_no_hybrid_is_evaluated_twice(measure):
    X, calls = rows(20), []

    def f(X):
        calls.append(len(X))
        return wavy(X)

    explainer = sampled(measure, X, model=f, random_state=0, tol=1e-9, max_evals=10_000)
    calls.clear()
    with pytest.warns(ConvergenceWarning):
        explainer.explain(X[:1] + 0.2, predictions=False)
    assert sum(calls) <= 20 * 2**5 + 1  # and f(x)


def test_what_is_known_makes_room_for_more():
    """With 3 players, 600 evaluations are all there are: means over permutations approach them."""
    X = rows(100, 3)
    exact = MeasureExplainer(wavy, Shapley()).fit(X).explain(X[:2]).values
    with pytest.warns(ConvergenceWarning):
        found = sampled(Shapley(), X, random_state=0, tol=1e-9, max_evals=20_000).explain(X[:2])
    asked = 16 * 4 * 100  # per round
    assert (np.abs(found.values - exact) <= 6 * found.std_error + 1e-12).all()
    once = sampled(Shapley(), X, random_state=0, tol=1e-9, max_evals=asked)
    with pytest.warns(ConvergenceWarning):
        few = once.explain(X[:2])
    assert found.std_error.mean() < 0.5 * few.std_error.mean()


def test_many_columns_are_sampled():
    X = rows(30, 14)
    model = KNeighborsRegressor().fit(X, X[:, 0] * X[:, 1])
    explainer = MeasureExplainer(model, Shapley() - 0.5 * Expectation(), random_state=0, tol=0.1)
    explainer.fit(X)
    assert explainer.engine_[0] == SAMPLED and not explainer.exact_
    assert "evaluations per row" in explainer.describe()


def test_what_would_make_it_exact():
    X = rows(30, 14)
    model = KNeighborsRegressor().fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"at most 11 players.*at most 6 background rows"):
        MeasureExplainer(model, Shapley(), engine="exact").fit(X)
    assert MeasureExplainer(model, Shapley(), engine="exact").fit(X[:6]).exact_


def test_too_few_evaluations():
    X = rows(30, 14)
    with pytest.raises(ValueError, match="need 416"):
        sampled(Shapley(), X, model=lambda X: X[:, 0], max_evals=415)
    with pytest.raises(ValueError, match="at least 2"):
        MeasureExplainer(wavy, Shapley(), engine=SampledCoalitions(1)).fit(X)


def test_there_is_no_curve():
    explainer = MeasureExplainer(wavy, Shapley()).fit(rows(5))
    with pytest.raises(ValueError, match=r"the whole row.*explain.*skattr\.plot\.scatter"):
        explainer.curve(0)


def test_designs():
    rng = np.random.default_rng(0)
    positions = latin_positions(12, 4, rng)
    assert_array_equal(np.sort(positions, axis=1), np.tile(np.arange(4), (12, 1)))
    for block in np.split(positions, 3):  # every player has every position once
        assert_array_equal(np.sort(block, axis=0), np.tile(np.arange(4)[:, None], (1, 4)))
    for design in (chains(positions), flips(rng.random((12, 4)) < 0.5)):
        for i in range(12):
            for j in range(4):
                joined, alone = (
                    design.members[i, at[i, j]] for at in (design.joined, design.alone)
                )
                assert joined[j] and not alone[j]
                assert_array_equal(np.delete(joined, j), np.delete(alone, j))
                assert alone.sum() == design.step[i, j]
