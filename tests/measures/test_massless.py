"""ALE, Removal and MarginalEffect: known values, curves, bad input."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from skattr import MeasureExplainer, axioms
from skattr.measures import ALE, Expectation, MarginalEffect, PartialDependence, Removal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)).round(2)
FRAME = pd.DataFrame(
    {"a": X[:, 0], "s": pd.Categorical(np.array(["u", "v", "w"])[RNG.integers(3, size=80)])}
)


def additive(Z):
    """A sum of functions of one column each."""
    return np.sin(Z[:, 0]) + Z[:, 1] ** 2 - 3 * Z[:, 2]


def test_of_additive_functions():
    """ALE is the function itself up to a constant at the ends of bins; removal is centred."""
    ale = MeasureExplainer(additive, ALE(n_bins=7)).fit(X)
    dependence = MeasureExplainer(additive, PartialDependence() - Expectation()).fit(X)
    for k in range(3):
        curve = ale.curve(k)
        assert curve.kind == "linear"
        ends = curve.to_frame()["x"][1:-2].to_numpy()
        difference = curve(ends) - dependence.curve(k)(ends)
        np.testing.assert_allclose(difference, difference[0], atol=1e-12)
        beyond = [ends[0] - 5, ends[0], ends[-1], ends[-1] + 5]
        low, first, last, high = curve(beyond)
        np.testing.assert_allclose([low, high], [first, last], atol=1e-12)
    removal = MeasureExplainer(additive, Removal()).fit(X).explain(X[:5]).values
    np.testing.assert_allclose(removal, dependence.explain(X[:5]).values, atol=1e-12)


def test_of_linear_models():
    model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5])
    for step in (None, 0.1, {"x1": 3.0}):
        values = MeasureExplainer(model, MarginalEffect(step)).fit(X).explain(X[:4]).values
        np.testing.assert_allclose(values, np.tile([1.0, -2.0, 0.5], (4, 1)), atol=1e-9)


def test_the_step_of_a_column_that_does_not_vary_is_1():
    """Also where the mean of its values differs from them by rounding."""
    X = np.column_stack([np.arange(7.0), np.full(7, 0.1)])
    weights = [1.0, 0.8, 0.6, 0.3, 0.4, 0.1, 0.1]
    assert np.average(X[:, 1], weights=weights) != 0.1
    explainer = MeasureExplainer(lambda X: 3 * X[:, 1], MarginalEffect())
    explainer.fit(X, sample_weight=weights)
    assert explainer.measure_.steps_[1] == 1.0
    np.testing.assert_allclose(explainer.explain(X).values[:, 1], 3.0)


def test_ale_is_centred_over_the_background():
    """Over the bins, with the value in the middle of each, its weighted mean is 0."""
    weight = RNG.random(80)
    ale = MeasureExplainer(additive, ALE(n_bins=4)).fit(X, sample_weight=weight)
    for k in range(3):
        curve = ale.curve(k)
        ends = curve.to_frame()["x"][1:-2].to_numpy()
        bins = np.maximum(np.searchsorted(ends, X[:, k]) - 1, 0)
        middle = (curve(ends[:-1]) + curve(ends[1:])) / 2
        assert abs(np.average(middle[bins], weights=weight)) < 1e-12


def test_levels_and_unknown_values():
    y = FRAME["a"] + 2 * (FRAME["s"] == "w")
    model = HistGradientBoostingRegressor(
        max_iter=5, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(FRAME, y)
    explainer = MeasureExplainer(model, ALE()).fit(FRAME)
    curve = explainer.curve("s")
    shares = FRAME["s"].value_counts(normalize=True).sort_index()
    assert abs(curve(["u", "v", "w"]) @ shares.to_numpy()) < 1e-12
    assert curve([None])[0] == 0.0 and explainer.curve("a")([np.nan])[0] == 0.0


def test_axioms():
    table = {kind: axioms.check(mu, X[:20]).to_frame() for kind, mu in {
        "ale": ALE(n_bins=3), "removal": Removal(), "effect": MarginalEffect(step=0.5),
    }.items()}  # fmt: skip
    for frame in table.values():
        assert frame["holds"]["sensitivity"] and frame["holds"]["constants"]
        assert not frame["holds"]["positivity"]
    assert table["removal"]["holds"]["additive_recovery"]
    assert table["effect"]["holds"]["linear_recovery"]


def test_bad_input():
    groups = {"both": ["x0", "x1"]}
    for measure in (ALE(), MarginalEffect()):
        with pytest.raises(ValueError, match=r"single columns, not for the group \['x0', 'x1'\]"):
            MeasureExplainer(additive, measure, groups=groups).fit(X)
    for n_bins in (2.5, 0, True, "many"):
        with pytest.raises(ValueError, match="n_bins must be a whole number"):
            MeasureExplainer(additive, ALE(n_bins)).fit(X)
    for step in (0, -1.0, np.inf, "far"):
        with pytest.raises(ValueError, match="step must be a positive number"):
            MeasureExplainer(additive, MarginalEffect(step)).fit(X)
    with pytest.raises(ValueError, match="unknown columns"):
        MeasureExplainer(additive, MarginalEffect({"y": 1.0})).fit(X)
    with pytest.raises(ValueError, match="column 's' holds levels"):
        MeasureExplainer(lambda Z: Z["a"].to_numpy(), MarginalEffect()).fit(FRAME)
    few = np.round(X)
    with pytest.warns(UserWarning, match="too few distinct values for 50 bins"):
        explainer = MeasureExplainer(additive, ALE(50)).fit(few)
    assert all(n < 50 for n in explainer.measure_.n_bins_.values())
    for measure in (ALE(), Removal(), MarginalEffect()):
        explainer = MeasureExplainer(LinearRegression().fit(X, X[:, 0]), measure)
        assert not hasattr(explainer, "partial_fit")  # bins and steps need the whole background


@pytest.mark.parametrize("output", ["raw", "proba"])
def test_ale_of_trees_in_blocks_and_threads(output, monkeypatch):
    """Differences of predictions over the rows of each bin, whatever the blocks and threads."""
    frame = FRAME.assign(b=np.where(X[:, 1] > 1, np.nan, X[:, 1]))
    model = HistGradientBoostingClassifier(
        max_iter=6, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(frame, np.digitize(X[:, 0] + (frame["s"] == "v"), [-0.5, 0.5]))
    function = model.decision_function if output == "raw" else model.predict_proba
    weight = RNG.random(80) * (RNG.random(80) < 0.8)
    fitted = {}
    for n_jobs in (1, 2):
        monkeypatch.setattr("skattr.engines.boxes.moved_rows.MAX_NUMBERS", 2**16 // n_jobs**12)
        explainer = MeasureExplainer(model, ALE(n_bins=5), output=output, n_jobs=n_jobs)
        fitted[n_jobs] = explainer.fit(frame, sample_weight=weight)
    np.testing.assert_allclose(fitted[1].base_value_, weight @ function(frame) / weight.sum())
    ends = fitted[1].curve("a").to_frame().groupby("x").first().index[1:-1]
    for explainer in fitted.values():
        values = explainer.curve("a")(ends)
        for m, (low, high) in enumerate(pairwise(ends)):
            inside = (frame["a"] > low) & (frame["a"] <= high) | (m == 0) & (frame["a"] == low)
            rows, share = frame[inside], weight[inside]
            moved = function(rows.assign(a=high)) - function(rows.assign(a=low))
            np.testing.assert_allclose(
                values[m + 1] - values[m], share @ moved / share.sum(), atol=1e-12
            )


@pytest.mark.slow
@pytest.mark.parametrize("output", ["raw", "proba"])
def test_removal_of_trees(output):
    """Columns go down the trees once, groups are evaluated: both are means of predictions."""
    frame = FRAME.assign(b=np.where(X[:, 1] > 1, np.nan, X[:, 1]))
    model = HistGradientBoostingClassifier(
        max_iter=6, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(frame, np.digitize(X[:, 0] + (frame["s"] == "v"), [-0.5, 0.5]))
    function = model.decision_function if output == "raw" else model.predict_proba
    weight = RNG.random(80) * (RNG.random(80) < 0.8)
    engine = "removal_of_boxes" if output == "raw" else "linked_removal"
    for groups in (None, {"both": ["a", "s"]}):
        explainer = MeasureExplainer(model, Removal(), output=output, groups=groups, n_jobs=2)
        explainer.fit(frame, sample_weight=weight)
        assert explainer.engine_ == (engine,)
        found = explainer.explain(frame[:5])
        single = [explainer.explain(frame[i : i + 1]).values for i in range(5)]
        np.testing.assert_array_equal(found.values, np.concatenate(single))
        for j, name in enumerate(found.feature_names):
            columns = groups[name] if groups and name in groups else [name]
            for i in range(5):
                points = frame.iloc[[i] * 80].reset_index(drop=True)
                points[columns] = frame[columns]
                wanted = function(frame[i : i + 1])[0] - weight @ function(points) / weight.sum()
                np.testing.assert_allclose(found.values[i, j], wanted, atol=1e-12)


def test_a_column_that_no_tree_has_is_removed_without_a_trace():
    model = HistGradientBoostingRegressor(max_iter=4).fit(np.c_[X[:, :2], 0 * X[:, 2]], X[:, 0])
    values = MeasureExplainer(model, Removal()).fit(X).explain(X).values
    assert (values[:, 2] == 0).all() and values[:, 0].any()
