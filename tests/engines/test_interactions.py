"""Shapley and Banzhaf interaction indices: every reader and inner measure equals the definition."""

import pickle
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.engines.evaluation.sampled_coalitions import SampledCoalitions
from skattr.engines.evaluation.sampled_interactions import SampledInteractions
from skattr.engines.products import bump_coalitions
from skattr.kernels.coalitions.walk import most_players
from skattr.measures import (
    Banzhaf,
    Conditional,
    PartialDependence,
    ProductMarginal,
    Shapley,
    Uniform,
)
from tests.cases import CASES, exists, make_case
from tests.helpers.comparison import close, cube, oracle_of
from tests.helpers.random_cases import examples, groups_of, rows_as_given, weights_of
from tests.oracle import Oracle, described

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

INNER = {
    "partial dependence": PartialDependence(),
    "product marginal": ProductMarginal(),
    "uniform": Uniform(),
    "conditional": Conditional(),
}
MOST = 5  # players, of which the oracle enumerates all coalitions


def engine_of(explainer):
    """The name of the engine of the pairs that were explained."""
    (solution,) = explainer._fitting.pairs.solutions
    (term,) = [term for term in solution.all_terms if term.coefficient]
    return term.engine.name


def by_definition(oracle, measure, X, own, pairs=None):
    """The indices of pairs, (n, pairs, k)."""
    ((coefficient, name, parameters),) = described(measure)
    assert coefficient == 1
    return oracle.interactions(name, **parameters, X=X, players=own, pairs=pairs)


def same(case, measure, weight=None, groups=None, own=None, **settings):
    """Pairs equal the definition, the matrix is shap's; returns explainer and explanation."""
    own = own or [(k,) for k in range(case.n_columns)]
    X = rows_as_given(case.X, np.arange(min(len(case.X), 4)))
    explainer = MeasureExplainer(
        case.estimator, measure, groups=groups, max_evals=10**7, **settings
    )
    explainer.fit(case.background, sample_weight=weight)
    explanation = explainer.explain_pairs(X)
    oracle = oracle_of(case, weight)
    wanted = by_definition(oracle, explainer.measure_, X, own)
    assert explanation.exact and explanation.std_error is None
    close(cube(explanation.values), wanted, 4 * oracle.tolerance(), f"pairs of {measure}")
    singles = explainer.explain(X).values
    matrix = explanation.to_matrix()
    assert_allclose(matrix.sum(axis=2), singles, atol=1e-9 * max(1.0, np.abs(singles).max()))
    for i, (j, k) in enumerate(combinations(range(len(own)), 2)):
        assert_array_equal(matrix[:, j, k], explanation.values[:, i] / 2)
        assert_array_equal(matrix[:, k, j], explanation.values[:, i] / 2)
    return explainer, explanation


# -- every reader and inner measure --------------------------------------------------------------


def drawn(name, seed, inner):
    """A case, weights, groups and the players; few enough for the oracle."""
    case = make_case(name, seed)
    weight = weights_of(case, seed)
    assume(exists(case, inner, weight))
    groups, own = groups_of(case, seed)
    if seed % 2 or len(own) < 2:
        groups, own = None, [(k,) for k in range(case.n_columns)]
    assume(2 <= len(own) <= MOST)
    return case, weight, groups, own


@pytest.mark.slow
@pytest.mark.parametrize("inner", INNER)
@examples(60)
@given(st.sampled_from(sorted(CASES)), st.integers(0, 10_000), st.booleans())
def test_every_reader_equals_the_definition(inner, name, seed, banzhaf):
    case, weight, groups, own = drawn(name, seed, inner)
    measure = (Banzhaf if banzhaf else Shapley)(INNER[inner])
    same(case, measure, weight, groups, own)


QUICK = {
    "tree": "box_interactions",
    "hist categories": "box_interactions",
    "forest multiclass": "box_interactions",
    "hist multiclass": "box_interactions",
    "ridge targets": "additive_pairs",
    "SVR": "bump_interactions",
    "process of targets": "bump_interactions",
    "network": "enumerated_interactions",
    "vote of trees and lines": "addends",
}


@pytest.mark.slow
@pytest.mark.parametrize("measure", [Shapley(), Banzhaf()], ids=repr)
@pytest.mark.parametrize("name", QUICK)
def test_rows_equal_the_definition(name, measure):
    case = next(case for case in (make_case(name, s) for s in range(99)) if case.n_columns <= MOST)
    explainer, explanation = same(case, measure, weights_of(case, 3))
    assert engine_of(explainer) == QUICK[name]
    if name == "ridge targets":
        assert (explanation.values == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tree", "hist categories", "SVR", "vote of trees and lines"])
def test_products_of_laws_equal_the_definition(name):
    case = next(case for case in (make_case(name, s) for s in range(99)) if case.n_columns <= MOST)
    explainer, _ = same(case, Shapley(ProductMarginal()))
    names = {"SVR": "bump_interactions", "vote of trees and lines": "addends"}
    assert engine_of(explainer) == names.get(name, "product_interactions")


@pytest.mark.parametrize("way", ["moments", "nodes"])
@pytest.mark.parametrize("measure", [Shapley(), Banzhaf()], ids=repr)
def test_sums_of_products_in_both_ways(way, measure, monkeypatch):
    monkeypatch.setattr(bump_coalitions, "prefers_moments", lambda *_: way == "moments")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    for model in (SVR(), GaussianProcessRegressor(random_state=0)):
        explainer = MeasureExplainer(model.fit(X, y), measure).fit(X[:9])
        values = explainer.explain_pairs(X[20:]).values
        oracle = Oracle(lambda Z, m=model: m.predict(Z)[:, None], X[:9])
        wanted = by_definition(oracle, measure, X[20:], [(k,) for k in range(4)])
        assert_allclose(values, wanted[..., 0], atol=1e-11 * np.abs(y).max())
        assert engine_of(explainer) == "bump_interactions"


# -- boxes ---------------------------------------------------------------------------------------


def forest_data(d, n=300, seed=0):
    """Rows with ties that float32 holds exactly, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(2).astype(np.float32).astype(float)
    return X, X[:, 0] * X[:, 1] * X[:, -1] + np.abs(X).sum(axis=1) + rng.normal(size=n)


def pair_by_pair(model, background, X, weight):
    """Indices of a forest of any depth, box by box and row by row, for p uniform on [0, 1].

    The condition of a column in a leaf is an interval; players outside the leaf's path drop out.
    """
    total = np.zeros((len(X), X.shape[1], X.shape[1]))
    for tree in model.estimators_:
        t = tree.tree_
        todo = [(0, {})]
        while todo:
            node, box = todo.pop()
            if t.children_left[node] >= 0:
                k, c = t.feature[node], t.threshold[node]
                low, high = box.get(k, (-np.inf, np.inf))
                todo.append((t.children_left[node], {**box, k: (low, min(high, c))}))
                todo.append((t.children_right[node], {**box, k: (max(low, c), high)}))
                continue
            columns = list(box)
            low, high = np.array([box[k] for k in columns]).T
            inside, met = ((low < Z[:, columns]) & (Z[:, columns] <= high) for Z in (X, background))
            for i, e in enumerate(inside):
                for c, w in zip(met, weight, strict=True):
                    if not (e | c).all():
                        continue
                    A, B = np.flatnonzero(e & ~c), np.flatnonzero(c & ~e)
                    a, b, v = len(A), len(B), w * t.value[node, 0, 0]
                    if a + b < 2:
                        continue
                    u = factorial(a + b - 1)
                    for p, q in combinations([*A, *B], 2):
                        n_in = (p in A) + (q in A)
                        s, r = a - n_in, b - (2 - n_in)
                        sign = -1 if n_in == 1 else 1
                        value = sign * v * factorial(s) * factorial(r) / u
                        total[i, columns[p], columns[q]] += value
                        total[i, columns[q], columns[p]] += value
    return total / len(model.estimators_) / weight.sum()


@pytest.mark.slow
@pytest.mark.parametrize("d, depth", [(24, None), (12, None), (9, 6)])
def test_boxes_of_many_players(d, depth):
    """Deep trees on many columns: more players in a box than any table of sets has room for."""
    X, y = forest_data(d)
    model = RandomForestRegressor(2, max_depth=depth, max_features=1, random_state=0).fit(X, y)
    rng = np.random.default_rng(1)
    background, rows, weight = X[:12], X[12:18], rng.random(12)
    explainer = MeasureExplainer(model, "shapley").fit(background, sample_weight=weight)
    explanation = explainer.explain_pairs(rows)
    wanted = pair_by_pair(model, background, rows, weight)
    pairs = list(combinations(range(d), 2))
    got = np.array([explanation.values[:, i] for i in range(len(pairs))])
    assert_allclose(got, [wanted[:, j, k] for j, k in pairs], atol=1e-12 * y.std())
    assert engine_of(explainer) == "box_interactions"


def test_more_than_sixteen_players_in_a_box():
    X, y = forest_data(24)
    model = RandomForestRegressor(2, max_features=1, random_state=0).fit(X, y)
    table = MeasureExplainer(model).fit(X[:9]).pieces_.table
    assert most_players(table, np.arange(24, dtype=np.int32)) > 16


@pytest.mark.slow
def test_columns_that_never_meet_do_not_interact():
    X, _ = forest_data(4)
    stumps = HistGradientBoostingRegressor(max_leaf_nodes=2, max_iter=30).fit(X, X[:, 0] * X[:, 1])
    for inner in (PartialDependence(), ProductMarginal()):
        values = MeasureExplainer(stumps, Shapley(inner)).fit(X).explain_pairs(X[:5]).values
        assert_array_equal(values, 0)
    tree = DecisionTreeRegressor(max_depth=3).fit(X[:, :2], X[:, 0] * X[:, 1])

    def f(Z):
        return tree.predict(Z[:, :2])

    explanation = MeasureExplainer(f, "shapley").fit(X[:20]).explain_pairs(X[:5])
    assert_allclose(explanation.values[:, 1:], 0, atol=1e-15 * np.abs(X).max() * 100)


def test_bits_do_not_depend_on_other_rows_workers_or_pairs():
    X, y = forest_data(8)
    for model in (
        RandomForestRegressor(5, random_state=0),
        RandomForestClassifier(4, random_state=0),
    ):
        model.fit(X, y if isinstance(model, RandomForestRegressor) else np.digitize(y, [5, 7]))
        for inner in (PartialDependence(), ProductMarginal()):
            explainer = MeasureExplainer(model, Shapley(inner)).fit(X[:100])
            whole = explainer.explain_pairs(X[100:150]).values
            order = np.random.default_rng(0).permutation(50)
            assert_array_equal(explainer.explain_pairs(X[100:150][order]).values, whole[order])
            assert_array_equal(explainer.explain_pairs(X[107:109]).values, whole[7:9])
            two = MeasureExplainer(model, Shapley(inner), n_jobs=2).fit(X[:100])
            assert_array_equal(two.explain_pairs(X[100:150]).values, whole)
            copy = pickle.loads(pickle.dumps(explainer))
            assert_array_equal(copy.explain_pairs(X[100:103]).values, whole[:3])
            some = MeasureExplainer(model, Shapley(inner)).fit(X[:100])
            part = some.explain_pairs(X[100:150], pairs=[("x2", "x5"), ("x0", "x1")])
            names = list(explainer.explain_pairs(X[:1]).feature_names)
            for i, name in enumerate(part.feature_names):
                assert_array_equal(part.values[:, i], whole[:, names.index(name)])


@pytest.mark.slow
def test_many_outputs_and_pairs_that_are_not_added_as_vectors():
    """More values of a row than fit in a few vectors: pairs are added one by one."""
    X, y = forest_data(9)
    model = RandomForestRegressor(3, max_depth=5, random_state=0)
    targets = np.stack([y, *(y * X[:, k] for k in range(6))], axis=1)
    model.fit(X, targets)
    explainer = MeasureExplainer(model, "shapley").fit(X[:60])
    values = explainer.explain_pairs(X[60:80]).values
    assert values.shape == (20, 36, 7)
    enumerated = MeasureExplainer(
        model, "shapley", engine="enumerated_coalitions", max_evals=10**7
    ).fit(X[:60])
    wanted = enumerated.explain_pairs(X[60:80]).values
    assert engine_of(enumerated) == "enumerated_interactions"
    assert_allclose(values, wanted, atol=1e-12 * np.abs(targets).max())


# -- relations -----------------------------------------------------------------------------------


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 1000))
def test_two_players(seed):
    """With two players: v(both) - v(first) - v(second) + v(none), and half of it in each value."""
    X, y = forest_data(2, 60, seed)
    model = RandomForestRegressor(3, random_state=seed).fit(X, y)
    for measure in (Shapley(), Banzhaf()):
        explainer = MeasureExplainer(model, measure).fit(X[:20])
        pair = explainer.explain_pairs(X[20:30]).values[:, 0]
        alone = MeasureExplainer(model, "partial_dependence").fit(X[:20]).explain(X[20:30]).values
        wanted = model.predict(X[20:30]) - alone.sum(axis=1) + explainer.base_value_
        assert_allclose(pair, wanted, atol=1e-11 * y.std())


def test_pairs_of_a_game_of_pairs_give_the_prediction_back():
    """If columns interact two at a time, single parts and pairs add up to f: no remainder."""
    X, _ = forest_data(5)

    def f(Z):
        return Z[:, 0] * Z[:, 1] + 3 * Z[:, 2] * np.sin(Z[:, 3]) + Z[:, 4] ** 2

    explainer = MeasureExplainer(f, "shapley", max_evals=10**7).fit(X[:30])
    explanation = explainer.explain_pairs(X[30:40])
    matrix = explanation.to_matrix()
    assert_allclose(matrix.sum(axis=(1, 2)) + explainer.base_value_, f(X[30:40]), atol=1e-10)
    z, x = X[:30], X[30:40]
    wanted = (x[:, 0] - z[:, 0].mean()) * x[:, 1] - x[:, 0] * z[:, 1].mean()
    wanted = wanted + (z[:, 0] * z[:, 1]).mean()
    names = list(explanation.feature_names)
    assert_allclose(explanation.values[:, names.index(("x0", "x1"))], wanted, atol=1e-10)
    assert_allclose(explanation.values[:, names.index(("x0", "x4"))], 0, atol=1e-10)


# -- any model -----------------------------------------------------------------------------------


def tangled(Z):
    Z = np.asarray(Z, float)
    return Z[:, 0] * Z[:, 1] * Z[:, 2] + 3 * np.tanh(
        Z[:, 0] - Z[:, 1] + Z[:, 3] * Z[:, 4] + Z[:, 5]
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Shapley, Banzhaf])
@pytest.mark.parametrize("inner", [PartialDependence(), ProductMarginal(), Conditional()], ids=repr)
def test_sampled_pairs_are_within_their_errors(kind, inner):
    X, _ = forest_data(6, 40)
    model = KNeighborsRegressor(3).fit(X, tangled(X))
    f = tangled if not isinstance(inner, ProductMarginal) else model
    exact = MeasureExplainer(f, kind(inner), max_evals=10**7).fit(X)
    wanted = exact.explain_pairs(X[:6])
    sampled = MeasureExplainer(
        f, kind(inner), engine="sampled_coalitions", tol=0.02, random_state=0
    ).fit(X)
    explanation = sampled.explain_pairs(X[:6])
    assert engine_of(sampled) == "sampled_interactions"
    assert not explanation.exact
    spread = np.std(f(X) if callable(f) else f.predict(X))
    assert explanation.std_error.max() <= 0.02 * spread * (1 + 1e-9)
    errors = explanation.values - wanted.values
    size = np.hypot(explanation.std_error, 0 if wanted.exact else wanted.std_error)
    random = size > 1e-12 * spread  # pairs that never interact have rounding errors only
    scores = errors[random] / size[random]
    assert len(scores) > 20
    assert np.abs(scores).max() < 6
    assert np.mean(np.abs(scores) < 2.2) > 0.8
    assert_allclose(errors[~random], 0, atol=1e-11 * spread)


def test_sampled_pairs_of_few_players_at_a_time_have_no_error():
    """Complements cancel what three players do together, if all rows are used."""
    X, _ = forest_data(6, 25)

    def f(Z):
        return Z[:, 0] * Z[:, 1] * Z[:, 2] + Z[:, 3] * Z[:, 4] - Z[:, 5]

    for measure in (Shapley(), Banzhaf()):
        wanted = MeasureExplainer(f, measure, max_evals=10**7).fit(X).explain_pairs(X[:3])
        sampled = MeasureExplainer(
            f, measure, engine="sampled_coalitions", tol=0.5, random_state=1
        ).fit(X)
        explanation = sampled.explain_pairs(X[:3])
        assert_allclose(explanation.values, wanted.values, atol=1e-12 * np.abs(f(X)).max())
        assert_allclose(explanation.std_error, 0, atol=1e-12 * np.abs(f(X)).max())


def test_sampled_values_do_not_depend_on_other_rows():
    X, _ = forest_data(6, 40)
    explainer = MeasureExplainer(
        tangled, "shapley", engine=SampledCoalitions(8), tol=0.1, random_state=0
    ).fit(X)
    whole = explainer.explain_pairs(X[:8])
    assert_array_equal(explainer.explain_pairs(X[3:5]).values, whole.values[3:5])
    (solution,) = explainer._fitting.pairs.solutions
    assert solution.all_terms[0].engine.get_params() == {"replicates": 8}


def test_bad_input():
    X, _ = forest_data(6, 40)
    with pytest.raises(ValueError, match="replicates must be an integer of at least 2"):
        SampledInteractions(1).prepare(None, None, None, None)
    explainer = MeasureExplainer(
        tangled, "shapley", engine="sampled_coalitions", max_evals=300, tol=9
    )
    explainer.fit(X)
    with pytest.raises(ValueError, match="max_evals=300 is too small for sampled_interactions"):
        explainer.explain_pairs(X[:2])
    few = MeasureExplainer(tangled, "shapley", engine="enumerated_coalitions", max_evals=10**6).fit(
        X
    )
    few.max_evals = 100
    with pytest.raises(ValueError, match="6 players have 62 coalitions"):
        few.explain_pairs(X[:2])


def test_columns_of_levels_and_missing_values():
    """Levels that only explained or background rows have, on columns whose cells are open."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "city": pd.Categorical(rng.choice(["a", "b", "c"], 80)),
            "size": rng.normal(size=80).round(1),
            "age": np.where(rng.random(80) < 0.3, np.nan, rng.normal(size=80)),
        }
    )
    y = (X["city"] == "a") * X["size"] + X["age"].isna() * X["size"] ** 2
    model = HistGradientBoostingRegressor(
        max_iter=20, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(X, y)
    oracle = Oracle(lambda Z: model.predict(Z)[:, None], X[:25], levels=[{"a", "b", "c"}, (), ()])
    values = MeasureExplainer(model, "shapley").fit(X[:25]).explain_pairs(X[40:50]).values
    wanted = by_definition(oracle, Shapley(), X[40:50], [(0,), (1,), (2,)])
    assert_allclose(values, wanted[..., 0], atol=1e-12 * y.std())


def test_linear_models_have_no_pairs():
    X, y = forest_data(4)
    model = LinearRegression().fit(X, y)
    for measure in (Shapley(), Shapley(ProductMarginal()), Banzhaf()):
        explanation = MeasureExplainer(model, measure).fit(X).explain_pairs(X[:3])
        assert_array_equal(explanation.values, 0)
        assert explanation.exact
