"""Coalitions of `Conditional`: exact where weights of rows are learned, sampled else."""

import io
import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t

from skattr import MeasureExplainer
from skattr.engines import RunOptions
from skattr.measures import Banzhaf, Conditional, PartialDependence, Shapley
from skattr.measures.learned.coalition_weights import CoalitionWeights
from tests.helpers.lanes import quickly
from tests.helpers.random_cases import examples
from tests.oracle import COALITIONS, Oracle, described

KINDS = [Shapley, Banzhaf]
BY_ROWS = ["kernel", "local_linear", "knn"]
FAMILIES = [
    Conditional("gaussian"),
    Conditional("copula"),
    Conditional("gmm", n_components=2),
    Conditional("gmm", covariance="full"),
]
SAMPLED = "sampled_coalitions"


def wavy(X):
    """Two outputs, with interactions; the last column is ignored."""
    X = np.nan_to_num(np.asarray(X, float))
    return np.stack([np.sin(X[:, 0] * X[:, 1]) + X[:, 0] * X[:, 2], np.exp(X[:, :3].sum(1) / 3)], 1)


def rows(n, d=4, seed=0):
    """Correlated columns."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X + 0.7 * X[:, [0]]


def single(d):
    return [(k,) for k in range(d)]


# -- weights of rows: all coalitions -------------------------------------------------------------


def mixed_frame(rng, n):
    """Numbers with ties and missing values, few numbers, and levels."""
    a = rng.normal(size=n).round(1)
    return pd.DataFrame({
        "number": np.where(rng.random(n) < 0.15, np.nan, a),
        "other": a + rng.normal(size=n),
        "few": rng.integers(0, 3, n),
        "level": pd.Categorical(rng.choice(["x", "y", None], n), categories=["x", "y", "z"]),
    })  # fmt: skip


def of_frame(X):
    """A function of all columns, with interactions."""
    a = X["number"].fillna(3.0).to_numpy() * (X["level"] == "x").to_numpy()
    return np.stack([a + X["other"] * X["few"], np.cos(X["other"]) - a * X["few"]], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", BY_ROWS)
@examples(8)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_all_coalitions_are_the_definition(kind, estimator, seed, grouped, local):
    """Also where no row is near a combination of values, at values and levels never seen."""
    rng = np.random.default_rng(seed)
    X = mixed_frame(rng, int(rng.integers(6, 40)))
    weight = rng.integers(0, 3, len(X)) + (np.arange(len(X)) < 5)
    Q = mixed_frame(rng, 4)
    Q["level"] = pd.Categorical(["x", "z", None, "y"], categories=["x", "y", "z"])
    settings = {"n_neighbors": 1} if estimator == "knn" else {"bandwidth": 0.05}
    inner = Conditional(estimator, **settings) if local else Conditional(estimator)
    groups = {"pair": ["other", "level"]} if grouped else None
    explainer = MeasureExplainer(of_frame, kind(inner), groups=groups)
    explainer.fit(X, sample_weight=weight)
    assert explainer.engine_ == ("enumerated_coalitions",)
    found = explainer.explain(Q)
    oracle = Oracle(of_frame, X, weight, levels={3})
    wanted = oracle.values(described(explainer.measure_), Q, list(explainer._attributions))
    assert found.exact
    assert (np.abs(found.values - wanted) <= oracle.tolerance()).all()
    assert_allclose(found.offset, 0.0, atol=0)
    assert_allclose(found.base_value, oracle.base_value(), atol=1e-12)
    if kind is Shapley:
        assert_allclose(found.values.sum(axis=1), of_frame(Q) - oracle.base_value(), atol=1e-11)
        assert found.adds_up()


@pytest.mark.parametrize("kind", KINDS)
def test_infinite_bandwidth_is_partial_dependence(kind):
    X = rows(25)
    inner = Conditional(bandwidth=np.inf)
    found = MeasureExplainer(wavy, kind(inner)).fit(X).explain(X[:5] + 0.1).values
    wanted = MeasureExplainer(wavy, kind(PartialDependence())).fit(X).explain(X[:5] + 0.1).values
    assert_allclose(found, wanted, atol=1e-12)


def test_columns_that_say_the_same_share_a_value():
    """Of two equal columns the model uses one: conditional values share what it adds."""
    X = np.repeat(np.arange(30.0), 2).reshape(-1, 2)
    explainer = MeasureExplainer(lambda X: X[:, 0], Shapley(Conditional("knn", n_neighbors=1)))
    values = explainer.fit(X).explain(X[:4]).values
    assert_allclose(values, np.tile((np.arange(4.0) - 14.5)[:, None] / 2, (1, 2)), atol=1e-12)


@pytest.mark.parametrize("estimator", BY_ROWS)
def test_weights_are_those_of_one_group(estimator):
    """Coalitions have the weights that `Conditional` has for their columns as one group."""
    X = rows(40, 3)
    X[0, 2] = np.nan
    Q = np.array([[0.1, 0.2, np.nan], [4.0, -4.0, 4.0]])
    learned = Shapley(Conditional(estimator)).fit(X).measure_.rows_.of_coalitions().settled()
    sets = [s for size in (1, 2, 3) for s in combinations(range(3), size)]
    members = np.array([[k in s for k in range(3)] for s in sets])
    for x in (Q[:1], Q[1:]):
        found = CoalitionWeights.of(learned, single(3), x).given(members)
        for coalition, weights in zip(sets, found, strict=True):
            wanted = learned.given(coalition, learned.bins_of(x, coalition)[:, 0])
            assert_allclose(weights, wanted, atol=1e-14)


# -- sampled -------------------------------------------------------------------------------------


def normal_worths(X, weight, f):
    """The worth of a coalition of columns at x; f takes a mean and a covariance of all columns."""
    share = weight / weight.sum()
    mean = share @ X
    cov = (share[:, None] * (X - mean)).T @ (X - mean)

    def worth(x, S):
        O = [k for k in range(X.shape[1]) if k not in S]  # noqa: E741
        m, c = x.copy(), np.zeros_like(cov)
        slopes = cov[np.ix_(O, S)] @ np.linalg.inv(cov[np.ix_(S, S)])
        m[O] = mean[O] + slopes @ (x[S] - mean[S])
        c[np.ix_(O, O)] = cov[np.ix_(O, O)] - slopes @ cov[np.ix_(S, O)]
        return f(m, c)

    return worth


def from_worths(name, worth, nothing, x):
    """Values of all columns, (d, k), from the worths of all coalitions."""
    d = len(x)
    known = {(): nothing}
    for size in range(1, d + 1):
        known |= {S: worth(x, list(S)) for S in combinations(range(d), size)}
    return np.array([
        sum(
            COALITIONS[name](size, d - 1) * (known[tuple(sorted((*S, j)))] - known[S])
            for size in range(d)
            for S in combinations([k for k in range(d) if k != j], size)
        )
        for j in range(d)
    ])  # fmt: skip


def quadratic(X):
    """Two functions whose means under normal laws have closed forms."""
    X = np.asarray(X)
    return np.stack([X[:, 0] * X[:, 1] + 2 * X[:, 2], np.exp(X.sum(axis=1) / 3)], axis=1)


def quadratic_mean(m, c):
    return np.array([m[0] * m[1] + c[0, 1] + 2 * m[2], np.exp(m.sum() / 3 + c.sum() / 18)])


def gaussian_truth(kind, X, weight, x):
    share = weight / weight.sum()
    worth = normal_worths(X, weight, quadratic_mean)
    return from_worths(kind.__name__.lower(), worth, share @ quadratic(X), x)


@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_laws(kind):
    X, weight = rows(30, 3), np.arange(30) % 3 + 0.5
    explainer = MeasureExplainer(quadratic, kind(Conditional("gaussian")), random_state=0)
    explainer.set_params(tol=0.02).fit(X, sample_weight=weight)
    assert explainer.engine_ == (SAMPLED,) and not explainer.exact_
    found = explainer.explain(X[:3])
    wanted = np.array([gaussian_truth(kind, X, weight, x) for x in X[:3]])
    assert (found.std_error <= 0.02 * explainer.spread_).all()
    assert (np.abs(found.values - wanted) <= 5 * found.std_error + 1e-12).all()
    if kind is Shapley:  # to the mean over the background, although the law has another
        mean = weight @ quadratic(X) / weight.sum()
        assert_allclose(found.values.sum(axis=1), quadratic(X[:3]) - mean, atol=1e-12)


@pytest.mark.parametrize("inner", FAMILIES, ids=repr)
@pytest.mark.parametrize("kind", quickly(KINDS, [Shapley]))
def test_laws_that_make_points(kind, inner):
    """The definition, with many random points of the law for each coalition."""
    X = rows(40, 3)
    explainer = MeasureExplainer(wavy, kind(inner), random_state=0, tol=0.02).fit(X)
    found = explainer.explain(X[:2])
    law = explainer.measure_.measure_
    u = np.random.default_rng(1).random((40_000, law.n_uniforms))

    def worth(x, S):
        return wavy(law.transport(u, x[None], tuple(S))[0]).mean(axis=0)

    wanted = [from_worths(kind.__name__.lower(), worth, wavy(X).mean(axis=0), x) for x in X[:2]]
    noise = wavy(X).std() / np.sqrt(len(u))
    assert (np.abs(found.values - wanted) <= 5 * (found.std_error + noise)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_evals", [700, 5000])
@pytest.mark.parametrize("estimator", [*BY_ROWS, "gaussian"])
def test_coverage(kind, max_evals, estimator):
    """With a first round alone, and with a second."""
    X = rows(30, 3)
    weight, Q = np.arange(30) % 4 + 0.5, X[:1] + 0.3
    measure = kind(Conditional(estimator))
    if estimator == "gaussian":
        truth = gaussian_truth(kind, X, weight, Q[0])
    else:
        exact = MeasureExplainer(quadratic, measure).fit(X, sample_weight=weight)
        truth = exact.explain(Q).values[0]
    values, errors = [], []
    for seed in range(400):
        explainer = MeasureExplainer(
            quadratic, measure, engine=SAMPLED, random_state=seed, tol=1e-9, max_evals=max_evals
        ).fit(X, sample_weight=weight)
        found = explainer.explain(Q, predictions=False)
        values.append(found.values[0])
        errors.append(found.std_error[0])
    values, errors = np.array(values), np.array(errors)
    share = (np.abs(values - truth) <= t.ppf(0.975, 15) * errors).mean(axis=0)
    assert ((share >= 0.9) & (share <= 0.98)).all(), share
    assert (np.abs(values.mean(axis=0) - truth) < 4.5 * values.std(axis=0) / np.sqrt(400)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_evals", quickly([300, 5000], [300]))
@pytest.mark.parametrize("inner", [*map(Conditional, BY_ROWS), *FAMILIES], ids=repr)
def test_every_replicate_adds_up(inner, max_evals):
    X, weight = rows(20), np.arange(20) % 3 + 0.5
    explainer = MeasureExplainer(wavy, Shapley(inner), engine=SAMPLED, max_evals=max_evals)
    term = explainer.fit(X, sample_weight=weight)._solution.terms[0]
    options = RunOptions(max_evals=max_evals, error=np.full(2, 1e-9))
    values = term.engine._values(
        wavy, term.passes[0].state, term.passes[0].attributions, options, X[:1]
    )
    wanted = wavy(X[:1])[0] - weight @ wavy(X) / weight.sum()
    assert_allclose(values.sum(axis=1), np.tile(wanted, (16, 1)), atol=1e-11)


# -- promises ------------------------------------------------------------------------------------

WAYS = [
    ("enumerated_coalitions", Conditional("local_linear")),
    (SAMPLED, Conditional("local_linear")),
    (SAMPLED, Conditional("knn")),
    *((SAMPLED, inner) for inner in FAMILIES),
]


@pytest.mark.slow
@pytest.mark.parametrize("engine, inner", WAYS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_order_subsets_features_jobs_and_pickles_change_no_bit(kind, engine, inner):
    X = rows(20)
    explainer = MeasureExplainer(wavy, kind(inner), engine=engine, random_state=0, tol=0.3).fit(X)
    whole = explainer.explain(X[:8]).values
    order = np.random.default_rng(1).permutation(8)
    assert_array_equal(explainer.explain(X[order]).values, whole[order])
    assert_array_equal(explainer.explain(X[3:4]).values, whole[3:4])
    assert_array_equal(pickle.loads(pickle.dumps(explainer)).explain(X[:8]).values, whole)
    assert_array_equal(explainer.explain(X[:5], features=[2, 0]).values, whole[:5, [2, 0]])
    assert_array_equal(explainer.set_params(n_jobs=2).explain(X[:5]).values, whole[:5])


@pytest.mark.parametrize("engine, inner", WAYS[:4], ids=repr)
@pytest.mark.parametrize("kind", quickly(KINDS, [Shapley]))
def test_order_of_the_background(kind, engine, inner):
    X, weight = rows(20), np.arange(20) % 3 + 0.5
    explainer = MeasureExplainer(wavy, kind(inner), engine=engine, random_state=0, tol=0.3)
    whole = explainer.fit(X, sample_weight=weight).explain(X[:5]).values
    again = explainer.fit(X[::-1], sample_weight=weight[::-1]).explain(X[:5]).values
    assert_allclose(again, whole, atol=1e-9)


@pytest.mark.parametrize("engine, inner", WAYS[:3], ids=repr)
def test_one_player_gets_everything(engine, inner):
    X = rows(12, 2)
    groups = {"both": [0, 1]}
    explainer = MeasureExplainer(
        lambda X: X[:, 0] * X[:, 1], Shapley(inner), engine=engine, groups=groups
    ).fit(X)
    wanted = X.prod(axis=1) - X.prod(axis=1).mean()
    assert_allclose(explainer.explain(X).values[:, 0], wanted, atol=1e-12)


@pytest.mark.parametrize("inner", [Conditional(), Conditional("gaussian")], ids=repr)
def test_skops_round_trip(inner):
    sio = pytest.importorskip("skops.io")
    from sklearn.neighbors import KNeighborsRegressor

    X = rows(15)
    model = KNeighborsRegressor(3).fit(X, X[:, 0] * X[:, 1])
    explainer = MeasureExplainer(model, Shapley(inner), random_state=0, tol=0.2).fit(X)
    file = io.BytesIO(sio.dumps(explainer))
    types = sio.get_untrusted_types(file=file)
    again = sio.load(file, trusted=types)
    assert_array_equal(again.explain(X[:4]).values, explainer.explain(X[:4]).values)


def test_batches_are_refused():
    explainer = MeasureExplainer(wavy, Shapley(Conditional())).fit(rows(12))
    with pytest.raises(AttributeError) as caught:
        explainer.partial_fit(rows(12, seed=1))
    assert "learned from all rows together" in str(caught.value.__cause__)


def test_algebra_and_description():
    X = rows(20)
    measure = Shapley(Conditional()) - Shapley()
    explainer = MeasureExplainer(wavy, measure).fit(X)
    parts = [MeasureExplainer(wavy, m).fit(X).explain(X[:3]).values for _, m in measure.terms]
    assert_allclose(explainer.explain(X[:3]).values, parts[0] - parts[1], atol=1e-12)
    assert explainer.engine_ == ("enumerated_coalitions",) * 2
    text = explainer.describe()
    assert "Shapley(measure=Conditional())" in text and "14 evaluations of the background" in text
    assert Shapley(Conditional("knn")).in_words() == "Shapley values (conditional (knn))"


def test_what_would_make_it_exact():
    X = rows(100, 12)
    with pytest.raises(ValueError, match=r"at most 9 players or at most 24 background rows"):
        MeasureExplainer(wavy, Shapley(Conditional()), engine="exact").fit(X)
    with pytest.raises(ValueError, match=r"use Shapley\(PartialDependence\(\)\) or"):
        MeasureExplainer(wavy, Shapley(Conditional("gaussian")), engine="exact").fit(X[:, :3])
    with pytest.raises(ValueError, match=r"\(there 12 players have 4,094 .* at most 9 players"):
        MeasureExplainer(wavy, Shapley(Conditional("gaussian")), engine="exact").fit(X)
