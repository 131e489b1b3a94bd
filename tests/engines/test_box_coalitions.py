"""Shapley and Banzhaf values on boxes against the definition: all coalitions, and pairs of rows."""

from itertools import combinations, product
from math import comb, fsum

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

from skattr import MeasureExplainer
from skattr.measures import Banzhaf, ProductMarginal, Shapley
from tests.helpers.random_cases import examples

seeds = st.integers(0, 2**32 - 1)


# -- the definition ------------------------------------------------------------------------------


def chance(n, size, banzhaf):
    """The probability that a coalition of a size meets a player who joins n - 1 others."""
    return 0.5 ** (n - 1) if banzhaf else 1 / (n * comb(n - 1, size))


def by_coalitions(worth, n, banzhaf=False):
    """The values of n players, (n, k), given the worth of each coalition."""
    values = [0.0] * n
    for j in range(n):
        others = [i for i in range(n) if i != j]
        for size in range(n):
            for members in combinations(others, size):
                gain = worth(frozenset(members) | {j}) - worth(frozenset(members))
                values[j] = values[j] + chance(n, size, banzhaf) * gain
    return np.array(values)


def definition(f, Z, weights, x, players, banzhaf=False):
    """The values at x against the rows Z: all coalitions of players, sets of columns."""
    n = len(players)
    coalitions = [frozenset(c) for size in range(n + 1) for c in combinations(range(n), size)]
    rows = np.tile(Z, (len(coalitions), 1, 1))
    for coalition, copies in zip(coalitions, rows, strict=True):
        for player in coalition:
            copies[:, players[player]] = x[players[player]]
    results = f(rows.reshape(-1, Z.shape[1])).reshape(*rows.shape[:2], -1)
    averages = [np.average(y, axis=0, weights=weights) for y in results]
    worth = dict(zip(coalitions, averages, strict=True))
    return by_coalitions(worth.get, n, banzhaf)


def of_independent_columns(f, Z, weights, x, players):
    """The same if the columns of Z are independent: all combinations of their values."""
    known = {}
    d = Z.shape[1]

    def worth(members):
        if members not in known:
            pinned = {k for player in members for k in players[player]}
            places = product(*([[-1] if k in pinned else range(len(Z)) for k in range(d)]))
            rows, shares = [], []
            for place in places:
                rows.append([x[k] if r < 0 else Z[r, k] for k, r in enumerate(place)])
                shares.append(np.prod([weights[r] for r in place if r >= 0]))
            known[members] = np.average(f(np.array(rows)), axis=0, weights=shares)
        return known[members]

    return by_coalitions(worth, len(players))


def by_pairs(f, Z, weights, x):
    """The values of columns where few of them differ between x and each row of Z."""
    total = np.zeros((len(x), f(Z).shape[1]))
    for z, weight in zip(Z, weights / weights.sum(), strict=True):
        differ = np.flatnonzero(x != z)  # the other columns make no difference to z
        values = definition(f, z[None], np.ones(1), x, [[k] for k in differ])
        for k, value in zip(differ, values, strict=True):
            total[k] += weight * value
    return total


# -- models --------------------------------------------------------------------------------------


def predict(model):
    """f as (n, k)."""
    scores = [getattr(model, name, None) for name in ("decision_function", "predict_proba")]
    score = next((each for each in scores if each is not None), model.predict)
    return lambda X: np.asarray(score(X)).reshape(len(X), -1)


def numbers(rng, n, d, missing):
    """Rows on a coarse grid, so that values meet thresholds, some of them missing."""
    X = rng.integers(-3, 4, (n, d)) / 2
    if missing:
        X[rng.random((n, d)) < 0.15] = np.nan
    return X


def forest(rng, d):
    X = numbers(rng, 60, d, missing=True)
    y = np.nan_to_num(X).prod(axis=1) + rng.normal(size=60)
    model = RandomForestRegressor(5, max_depth=6, random_state=int(rng.integers(99)))
    return model.fit(X, y), X


def forest_of_classes(rng, d):
    X = numbers(rng, 60, d, missing=False)
    y = rng.integers(0, 3, 60)
    model = RandomForestClassifier(4, max_leaf_nodes=12, random_state=int(rng.integers(99)))
    return model.fit(X, y), X


def boosting(rng, d):
    """Categories, missing values and infinities."""
    X = numbers(rng, 80, d, missing=True)
    X[:, 0] = rng.integers(0, 5, 80)
    X[rng.random(80) < 0.1, 0] = np.nan
    X[rng.random(80) < 0.1, 1] = np.inf
    X[rng.random(80) < 0.1, 1] = -np.inf
    y = np.isin(X[:, 0], [1, 3]) * 2.0 + np.nan_to_num(X[:, 1:], posinf=3, neginf=-3).sum(axis=1)
    model = HistGradientBoostingRegressor(
        max_iter=6, max_leaf_nodes=8, min_samples_leaf=2, categorical_features=[0]
    )
    return model.fit(X, y), X


def boosting_of_classes(rng, d):
    X = numbers(rng, 80, d, missing=True)
    model = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=6, min_samples_leaf=2)
    return model.fit(X, rng.integers(0, 3, 80)), X


MODELS = [forest, forest_of_classes, boosting, boosting_of_classes]


def with_thresholds(rng, model, rows):
    """Rows, some of whose values are exactly thresholds of the model."""
    rows = rows.copy()
    for tree in getattr(model, "estimators_", []):
        for k, threshold in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if k >= 0 and np.isfinite(threshold) and rng.random() < 0.3:
                rows[rng.integers(len(rows)), k] = threshold
    return rows


def grown(rng, d, depth, chain):
    """A scikit-learn tree with splits as they come: a new column at each of the first levels."""
    model = DecisionTreeRegressor(max_depth=1).fit(np.arange(2.0 * d).reshape(2, d), [0.0, 1.0])
    nodes, values = [], []

    def grow(level, column):
        here = len(nodes)
        nodes.append(None)
        values.append(rng.normal())
        is_leaf = level == depth or (chain and level and column is None)
        if is_leaf:
            nodes[here] = (-1, -1, -2, -2.0)
            return here
        k = order[level] if level < d else int(rng.integers(d))
        left = grow(level + 1, None if chain and rng.random() < 0.5 else k)
        short = nodes[left][0] < 0
        right = grow(level + 1, k if short or not chain else None)
        nodes[here] = (left, right, k, float(rng.integers(0, 2)) + 0.5)
        return here

    order = rng.permutation(d)
    grow(0, 0)
    state = model.tree_.__getstate__()
    table = np.zeros(len(nodes), state["nodes"].dtype)
    for i, (left, right, column, threshold) in enumerate(nodes):
        table[i]["left_child"], table[i]["right_child"] = left, right
        table[i]["feature"], table[i]["threshold"] = column, threshold
        table[i]["n_node_samples"], table[i]["weighted_n_node_samples"] = 1, 1.0
    tree = Tree(d, np.array([1], np.intp), 1)
    state |= {
        "nodes": table,
        "values": np.array(values).reshape(-1, 1, 1),
        "node_count": len(nodes),
        "max_depth": depth,
    }
    tree.__setstate__(state)
    model.tree_ = tree
    return model


def chained(rng, d):
    """A tree that has one box with a condition on each of d columns."""
    return grown(rng, d, d, chain=True)


def close(values, truth, f, rows):
    """Assert that values are the definition up to rounding."""
    scale = max(np.abs(f(rows)).max(), 1.0)
    truth = np.asarray(truth)
    shape = values if values.ndim == truth.ndim else values[..., None]
    assert_allclose(shape, truth, rtol=0, atol=1e-12 * scale)


# -- all coalitions ------------------------------------------------------------------------------


@pytest.mark.slow
@examples(20)
@given(seed=seeds, which=st.integers(0, 3), banzhaf=st.booleans(), grouped=st.booleans(),
       m=st.sampled_from([1, 2, 7, 20]), n=st.sampled_from([1, 2, 6]))  # fmt: skip
def test_rows_against_enumeration(seed, which, banzhaf, grouped, m, n):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    model, X = MODELS[which](rng, d)
    f = predict(model)
    Z = with_thresholds(rng, model, X[rng.integers(0, len(X), m)])
    Q = with_thresholds(rng, model, X[rng.integers(0, len(X), n)])
    weights = rng.integers(0, 4, m) * rng.random(m)
    weights[rng.integers(m)] = 1.0
    players = [[k] for k in range(d)]
    groups = None
    if grouped and d > 2:
        players = [[0, d - 1], *([k] for k in range(1, d - 1))]
        groups = {"both": [0, d - 1]}
    measure = Banzhaf() if banzhaf else Shapley()
    explainer = MeasureExplainer(model, measure, groups=groups, engine="box_coalitions")
    values = explainer.fit(Z, sample_weight=weights).explain(Q).values
    truth = [definition(f, Z, weights, x, players, banzhaf) for x in Q]
    names = explainer.explain(Q[:1]).feature_names
    order = np.argsort([players.index(p) for p in map(players_of(d, groups), names)])
    close(np.asarray(values)[:, order], truth, f, X)


def players_of(d, groups):
    """The columns of an attribution, by its name."""
    return lambda name: groups[name] if groups and name in groups else [int(str(name).strip("x"))]


@pytest.mark.slow
@examples(15)
@given(seed=seeds, which=st.integers(0, 3), n=st.sampled_from([1, 4]))
def test_products_against_enumeration(seed, which, n):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 4))
    model, X = MODELS[which](rng, d)
    f = predict(model)
    Z = with_thresholds(rng, model, X[rng.integers(0, len(X), 4)])
    Q = with_thresholds(rng, model, X[rng.integers(0, len(X), n)])
    weights = rng.random(4) * rng.integers(0, 2, 4)
    weights[0] = 0.5
    explainer = MeasureExplainer(model, Shapley(ProductMarginal()), engine="product_coalitions")
    values = explainer.fit(Z, sample_weight=weights).explain(Q).values
    players = [[k] for k in range(d)]
    close(values, [of_independent_columns(f, Z, weights, x, players) for x in Q], f, X)


# -- many players --------------------------------------------------------------------------------


@pytest.mark.slow
@examples(12)
@given(seed=seeds, d=st.sampled_from([16, 17, 32, 33, 40, 64]),
       m=st.sampled_from([1, 5, 20]), n=st.sampled_from([1, 7]))  # fmt: skip
def test_boxes_of_many_players(seed, d, m, n):
    rng = np.random.default_rng(seed)
    model = chained(rng, d)
    f = predict(model)
    base = rng.integers(0, 3, d).astype(float)
    rows = np.tile(base, (m + n, 1))
    for row in rows:
        some = rng.choice(d, 3, replace=False)
        row[some] = rng.integers(0, 3, 3)
    Z, Q = rows[:m], rows[m:]
    weights = rng.random(m) + 0.1
    explainer = MeasureExplainer(model, Shapley(), engine="box_coalitions")
    explanation = explainer.fit(Z, sample_weight=weights).explain(Q)
    close(explanation.values, [by_pairs(f, Z, weights, x) for x in Q], f, rows)


@pytest.mark.slow
@examples(12)
@given(seed=seeds, d=st.sampled_from([17, 40, 64]), chain=st.booleans())
def test_values_of_deep_trees_add_up(seed, d, chain):
    rng = np.random.default_rng(seed)
    model = chained(rng, d) if chain else grown(rng, d, 9, chain=False)
    Z, Q = rng.integers(0, 3, (25, d)).astype(float), rng.integers(0, 3, (13, d)).astype(float)
    explainer = MeasureExplainer(model, Shapley(), engine="box_coalitions").fit(Z)
    explanation = explainer.explain(Q)
    gain = model.predict(Q) - model.predict(Z).mean()
    assert_allclose(explanation.values.sum(axis=1), gain, rtol=0, atol=1e-12)


def test_more_than_64_players_are_refused_and_enumerated():
    rng = np.random.default_rng(5)
    d = 66
    model = chained(rng, d)
    Z, Q = rng.integers(0, 3, (4, d)).astype(float), rng.integers(0, 3, (3, d)).astype(float)
    with pytest.raises(ValueError, match="66 columns, more than 64"):
        MeasureExplainer(model, Shapley(), engine="box_coalitions").fit(Z)
    groups = {f"g{i}": list(range(11 * i, 11 * i + 11)) for i in range(6)}
    explanation = MeasureExplainer(model, Shapley(), groups=groups).fit(Z).explain(Q)
    assert explanation.engine != ("box_coalitions",)
    f = predict(model)
    players = list(groups.values())
    truth = [definition(f, Z, np.ones(4), x, players) for x in Q]
    close(explanation.values, truth, f, Z)


# -- the same bits -------------------------------------------------------------------------------


@pytest.mark.slow
@examples(8)
@given(seed=seeds, inner=st.sampled_from(["rows", "products"]), wide=st.booleans(),
       m=st.sampled_from([1, 3, 40, 200]))  # fmt: skip
def test_rows_and_jobs_do_not_change_a_bit(seed, inner, wide, m):
    rng = np.random.default_rng(seed)
    d = 20 if wide else 6
    if wide:
        X = rng.integers(0, 3, (400, d)).astype(float)
        model = grown(rng, d, 9, chain=False) if seed % 2 else chained(rng, d)
    else:
        model, X = forest(rng, d)
    Z, Q = X[rng.integers(0, len(X), m)], X[rng.integers(0, len(X), 70)]
    measure = Shapley() if inner == "rows" else Shapley(ProductMarginal())
    weights = rng.random(m) + 0.1
    explainer = MeasureExplainer(model, measure).fit(Z, sample_weight=weights)
    values = explainer.explain(Q).values
    order = rng.permutation(70)
    assert_array_equal(explainer.explain(Q[order]).values, values[order])
    for size in (1, 2, 5, 17):
        assert_array_equal(explainer.explain(Q[order[:size]]).values, values[order[:size]])
    two = MeasureExplainer(model, measure, n_jobs=2).fit(Z, sample_weight=weights)
    assert_array_equal(two.explain(Q).values, values)
    assert_array_equal(two.explain(Q[:5]).values, values[:5])  # one call of the kernel or several


# -- where shap compares in float32 or does not know categories ----------------------------------


def test_boosting_compares_in_float64():
    """Values between a threshold and its float32 neighbour go the side that the model sends them.

    shap rounds both to float32, so that its values of such rows do not add up.
    """
    rng = np.random.default_rng(0)
    X = 1.0 + rng.integers(0, 40, (300, 3)) * 2.0**-30  # float32 has one number for all
    assert len(np.unique(X.astype(np.float32))) == 1
    y = (X - 1) @ [1e8, 2e8, -1e8] + ((X - 1) * 2.0**30).prod(axis=1) * 1e-3
    model = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5).fit(X, y)
    Z, Q = X[:30], X[30:36]
    explanation = MeasureExplainer(model, Shapley()).fit(Z).explain(Q)
    f = predict(model)
    players = [[0], [1], [2]]
    close(explanation.values, [definition(f, Z, np.ones(30), x, players) for x in Q], f, X)
    assert np.ptp(explanation.values) > 0.1 * f(X).std()


@pytest.mark.slow
@examples(6)
@given(seed=seeds)
def test_boosting_with_categories_and_missing_values_adds_up(seed):
    rng = np.random.default_rng(seed)
    model, X = boosting(rng, 4)
    Z, Q = X[:40], X[40:]
    explanation = MeasureExplainer(model, Shapley()).fit(Z).explain(Q)
    gain = model.predict(Q) - model.predict(Z).mean()
    assert_allclose(explanation.values.sum(axis=1), gain, rtol=0, atol=1e-11)


# -- raw columns ---------------------------------------------------------------------------------


@pytest.mark.slow
@examples(6)
@given(seed=seeds)
def test_raw_columns_of_a_pipeline(seed):
    rng = np.random.default_rng(seed)
    n = 80
    frame = pd.DataFrame({
        "town": rng.choice(["a", "b", "c"], n),
        "rooms": rng.integers(1, 6, n).astype(float),
        "age": rng.integers(0, 5, n) / 2,
    })  # fmt: skip
    y = frame["rooms"] * (frame["town"] == "a") + frame["age"] + rng.normal(size=n)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, ["town"]), remainder="passthrough")
    model = make_pipeline(columns, RandomForestRegressor(5, max_depth=5, random_state=0))
    model.fit(frame, y)
    Z, Q = frame[:12], frame[70:73]
    explanation = MeasureExplainer(model, Shapley()).fit(Z).explain(Q)
    assert explanation.engine == ("box_coalitions",)
    for i in range(len(Q)):

        def worth(members, i=i):
            rows = Z.copy()
            for j in members:
                rows[frame.columns[j]] = Q[frame.columns[j]].iloc[i]
            return fsum(model.predict(rows)) / len(rows)

        truth = by_coalitions(worth, 3)
        assert_allclose(explanation.values[i], truth, rtol=0, atol=1e-12 * np.abs(y).max())


@pytest.mark.parametrize("n_rows", [30, 300])
def test_a_shallow_tree_has_more_players_than_levels(n_rows):
    """Splits of one level may be on different columns, all of which the keys of a twig have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 9))
    up = X > 0
    right = 100 + np.where(up[:, 1], 10 + up[:, 3], up[:, 4])
    left = np.where(up[:, 2], 10 + up[:, 5], up[:, 6])
    y = np.where(up[:, 0], right, left)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    used = set(model.tree_.feature[model.tree_.feature >= 0])
    assert len(used) > model.get_depth() + 2
    Z, Q = X[:n_rows], rng.normal(size=(3, 9))
    values = MeasureExplainer(model, Shapley()).fit(Z).explain(Q).values
    for x, found in zip(Q, values, strict=True):
        expected = definition(model.predict, Z, None, x, [[k] for k in range(9)])[:, 0]
        assert_allclose(found, expected, atol=1e-12)
