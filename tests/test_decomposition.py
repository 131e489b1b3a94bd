"""Shares and H² against loops over predictions."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

import skattr
from skattr import MeasureExplainer
from skattr.measures import ALE, PartialDependence, Shapley

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).round(1)
X[:, 1] += 0.5 * X[:, 0]
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3] * (X[:, 2] > 0)


def pinned_mean(f, background, weight, x, columns):
    """The weighted mean of f over the background with some columns set to those of x."""
    rows = background.copy()
    rows[:, list(columns)] = x[list(columns)]
    return weight @ f(rows)


def by_loops(f, background, weight, rows, players):
    """Shares, H² of pairs, of players and of all, each (…, k), by the definition."""
    weight = weight / weight.sum()
    everyone = [k for player in players for k in player]

    def function(columns):
        if not columns:
            return np.tile(weight @ f(background), (len(rows), 1))
        return np.array([pinned_mean(f, background, weight, x, columns) for x in rows])

    def square(values):
        return ((values - values.mean(axis=0)) ** 2).sum(axis=0)

    whole, mean = f(rows), function(())
    single = [function(player) - mean for player in players]
    pairs, joints = [], []
    for a, b in combinations(range(len(players)), 2):
        joints.append(function((*players[a], *players[b])) - mean)
        pairs.append(joints[-1] - single[a] - single[b])
    others = [function([k for k in everyone if k not in player]) for player in players]
    total = square(whole)
    without = square(whole - sum(single)) / total
    rest = square(whole - sum(single) - sum(pairs)) / total
    h_pairs = [square(pair) / square(joint) for pair, joint in zip(pairs, joints, strict=True)]
    h_players = [
        square(whole - one - other) / total for one, other in zip(single, others, strict=True)
    ]
    return np.array([1 - without, without - rest, rest]), h_pairs, h_players, without


def as_columns(f):
    return lambda X: np.asarray(f(X)).reshape(len(X), -1)


MODELS = {
    "forest": RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, Y),
    "neighbours": KNeighborsRegressor(3).fit(X, Y),
    "classes": HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0).fit(
        X, np.digitize(Y, [-0.5, 0.5])
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, {"both": ["x1", "x3"]}], ids=["columns", "groups"])
@pytest.mark.parametrize("name", MODELS)
def test_against_loops(name, groups):
    model = MODELS[name]
    f = as_columns(model.decision_function if name == "classes" else model.predict)
    weight = RNG.integers(1, 4, 25).astype(float)
    explainer = MeasureExplainer(model, groups=groups).fit(X[:25], sample_weight=weight)
    found = skattr.decompose(explainer, X[20:])
    names = list(explainer.get_feature_names_out())
    players = [(1, 3) if n.endswith("both") else (int(n[-1]),) for n in names[: len(names)]]
    players = players[: len(players) // len(explainer.output_names_)]
    labels = explainer.explain(X[:1]).feature_names
    shares, h_pairs, h_players, h_all = by_loops(f, X[:25], weight, X[20:], players)
    assert found.exact and found.n_rows == 40
    np.testing.assert_allclose(np.asarray(found.shares).reshape(3, -1), shares, atol=1e-12)
    columns = [c for c in found.strength if c.startswith("H2")]
    table = found.strength.set_index(["kind", "first", "second"])[columns]
    for (a, b), wanted in zip(combinations(labels, 2), h_pairs, strict=True):
        np.testing.assert_allclose(table.loc["pair", a, b], wanted, atol=1e-12)
    single = found.strength[found.strength["kind"] == "column"].set_index("first")[columns]
    for label, wanted in zip(labels, h_players, strict=True):
        np.testing.assert_allclose(single.loc[label].astype(float), wanted, atol=1e-12)
    whole = found.strength[found.strength["kind"] == "all"][columns].to_numpy(float)[0]
    np.testing.assert_allclose(whole, h_all, atol=1e-12)


def test_blocks_of_rows_add_up(monkeypatch):
    explainer = MeasureExplainer(MODELS["forest"]).fit(X)
    whole = skattr.decompose(explainer, X)
    monkeypatch.setattr("skattr.decomposition.BLOCK", 16 * 7)  # seven rows at a time
    parts = skattr.decompose(explainer, X)
    np.testing.assert_allclose(parts.shares, whole.shares, atol=1e-13)
    pd.testing.assert_frame_equal(parts.strength, whole.strength, atol=1e-13)


def test_an_additive_model_has_no_interactions():
    explainer = MeasureExplainer(LinearRegression().fit(X, Y)).fit(X)
    found = skattr.decompose(explainer, X)
    np.testing.assert_allclose(found.shares, [1, 0, 0], atol=1e-12)
    assert (found.pairs() == 0).all()
    np.testing.assert_allclose(found.strength["H2"].astype(float), 0, atol=1e-12)
    assert "single columns explain 100 %" in str(found) and "strongest" not in str(found)


def test_tables():
    found = skattr.decompose(MeasureExplainer(MODELS["forest"]).fit(X), X)
    frame = found.to_frame()
    assert list(frame["kind"]) == ["share"] * 3 + ["pair"] * 6 + ["column"] * 4 + ["all"]
    assert frame["share"][:3].sum() == pytest.approx(1)
    strongest = found.pairs()
    assert strongest.is_monotonic_decreasing
    assert strongest.index[0] == tuple(found.strength.loc[0, ["first", "second"]])
    several = skattr.decompose(MeasureExplainer(MODELS["classes"]).fit(X), X)
    assert list(several.shares) == list(several.output_names)
    assert set(several.to_frame()) >= {"H2_0", "share_2"}
    name = several.output_names[1]
    assert several.pairs(name).sort_index().equals(several.pairs(1).sort_index())
    with pytest.raises(ValueError, match="no output"):
        several.pairs("nothing")


@pytest.mark.parametrize(
    ("explainer", "rows", "words"),
    [
        (MeasureExplainer(MODELS["forest"]), X[:1], "at least two rows"),
        (MeasureExplainer(MODELS["forest"], Shapley()), X, "own columns only"),
        (MeasureExplainer(MODELS["forest"], ALE()), X, r"no pairs of ALE\(\): effects are acc"),
        (MeasureExplainer(lambda X: np.ones(len(X))), X, "the same for all rows"),
        (MeasureExplainer(lambda X: X[:, 0]), X[:, :1], "pair needs two"),
        (MeasureExplainer(DecisionTreeRegressor().fit(X[:, :1], X[:, 0])), X[:, :1], "only one"),
        (
            MeasureExplainer(MODELS["forest"], groups={"all": ["x0", "x1", "x2", "x3"]}),
            X,
            "only one",
        ),
    ],
)
def test_what_is_refused(explainer, rows, words):
    explainer.fit(rows if len(rows) > 1 else X)
    with pytest.raises(ValueError, match=words):
        skattr.decompose(explainer, rows)


def test_batches_keep_no_rows():
    explainer = MeasureExplainer(MODELS["forest"], PartialDependence()).partial_fit(X)
    with pytest.raises(ValueError, match="use fit"):
        skattr.decompose(explainer, X)


def test_what_is_not_an_explainer():
    with pytest.raises(TypeError, match="fitted MeasureExplainer"):
        skattr.decompose(MODELS["forest"], X)
