"""Metrics of measures: recall and its kin, regions, centres of mass, solution sets, curves."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import (
    Baseline,
    Conditional,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Uniform,
)
from skattr.metrics import (
    agreement,
    center_of_mass,
    deletion,
    f1,
    first_moments,
    insertion,
    precision,
    recall,
    relu_precision,
    relu_recall,
    solution_set,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) + RNG.normal(size=(40, 1))

numbers = st.floats(-2, 2).map(lambda v: round(v, 1))


def by_loops(values, weights, alpha, beta):
    """Recall, precision, F1 of one model by the definition; 0/0 is 1."""
    golden = {j for j, w in enumerate(weights) if abs(w) > beta}
    retrieved = {j for j, v in enumerate(values) if abs(v) >= alpha}
    hits = len(golden & retrieved)
    r = hits / len(golden) if golden else 1.0
    p = hits / len(retrieved) if retrieved else 1.0
    both = len(golden) + len(retrieved)
    return r, p, 2 * hits / both if both else 1.0


# -- recall, precision, F1 -----------------------------------------------------------------------


@given(arrays(float, (3, 4), elements=numbers), arrays(float, (3, 4), elements=numbers),
       st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 0.1, 1.0]))  # fmt: skip
def test_linear_metrics_are_their_definition(values, weights, alpha, beta):
    expected = np.array([by_loops(v, w, alpha, beta)
                         for v, w in zip(values, weights, strict=True)])  # fmt: skip
    for i, metric in enumerate((recall, precision, f1)):
        np.testing.assert_array_equal(
            metric(values, weights, alpha=alpha, beta=beta), expected[:, i]
        )
        one = metric(values[0], weights[0], alpha=alpha, beta=beta)
        assert isinstance(one, float) and one == expected[0, i]
        many = metric(values[0], weights, alpha=alpha, beta=beta)  # one row for all models
        assert many.shape == (3,) and many[0] == expected[0, i]


def test_empty_sets():
    nothing, all_three = [0, 0, 0], [1, 1, 1]
    assert recall(nothing, nothing, alpha=0.5, beta=0.1) == 1.0
    assert precision(nothing, all_three, alpha=0.5, beta=0.1) == 1.0
    assert f1(nothing, nothing, alpha=0.5, beta=0.1) == 1.0
    assert f1(nothing, all_three, alpha=0.5, beta=0.1) == 0.0
    assert f1(all_three, nothing, alpha=0.5, beta=0.1) == 0.0


@pytest.mark.parametrize("metric", [recall, precision, f1])
def test_bad_metrics(metric):
    good = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"alpha must be .*, got -0\.1"):
        metric(good, good, alpha=-0.1, beta=0.1)
    with pytest.raises(ValueError, match=r"beta must be .*, got -1"):
        metric(good, good, alpha=0.1, beta=-1)
    with pytest.raises(ValueError, match=r"alpha must be .*, got nan"):
        metric(good, good, alpha=np.nan, beta=1)
    with pytest.raises(ValueError, match="must have 4 features, as the models, got 3"):
        metric(good, np.ones((2, 4)), alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match="must be of 5 models, as the weights, got 2"):
        metric(good, np.ones((5, 3)), alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match="missing or infinite"):
        metric(good * np.nan, good, alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match="rows of one length"):
        metric(good, [[1, 2, 3], [1, 2]], alpha=0.1, beta=0.1)


# -- regions of a network ------------------------------------------------------------------------


class Ridge:
    """max(0, y·w - c) as something with regions: an activation pattern at random points."""

    def __init__(self, w, c):
        self.w, self.c = np.array(w, float), c

    def local(self, points):
        on = (points @ self.w > self.c)[:, None]
        return (on * self.w)[:, None, :], -self.c * on

    def regions(self, domain):
        yield self.w[None], np.array([-self.c]), None, 0.5
        yield 0 * self.w[None], np.zeros(1), None, 0.5
        yield 7 + self.w[None], np.zeros(1), None, 0.0  # a cell without volume is no region


@pytest.mark.parametrize("d, enumerated", [(2, True), (6, False)])
def test_relu_metrics_sum_over_regions(d, enumerated):
    w = np.linspace(-1, 1, d)
    centers = RNG.random((d, d))
    expected = np.zeros(2)
    for a in (w, 0 * w):
        expected += by_loops(centers @ a, a, 0.3, 0.1)[:2]
    for i, metric in enumerate((relu_recall, relu_precision)):
        result = metric(centers, Ridge(w, 0.1), alpha=0.3, beta=0.1)
        assert result.enumerated is enumerated and len(result.regions) == 2
        assert float(result) == result.total == expected[i] and result.mean == expected[i] / 2
        assert ("all" if enumerated else "sampled") in repr(result)
        given_gradients = metric(centers, [w, 0 * w], alpha=0.3, beta=0.1)
        assert given_gradients.total == expected[i]


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 5])
def test_relu_metrics_of_a_network_that_was_read(d):
    rng = np.random.default_rng(d)
    rows = rng.random((50, d))
    scaled = make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(4,), max_iter=1, random_state=0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scaled.fit(rows, rows @ np.arange(d))
    network = MeasureExplainer(scaled).fit(rows).pieces_
    centers = rng.random((d, d))
    points = rng.random((20_000, d))
    scale, mlp = scaled[0], scaled[1]
    on = scale.transform(points) @ mlp.coefs_[0] + mlp.intercepts_[0] > 0
    patterns = np.unique(on, axis=0)
    slopes = (patterns * mlp.coefs_[1][:, 0]) @ (mlp.coefs_[0].T / scale.scale_)
    expected = sum(by_loops(centers @ a, a, 0.05, 0.01)[0] for a in slopes)
    found = relu_recall(centers, network, alpha=0.05, beta=0.01)
    assert found.enumerated == (d == 2) and len(found.regions) == len(slopes)
    assert found.total == pytest.approx(expected)


def test_relu_bad_input():
    with pytest.raises(ValueError, match=r"moments must be \(d, d\)"):
        relu_recall([1.0, 2.0], [[1.0, 2.0]], alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match="regions must have 2 features, got 3"):
        relu_recall(np.eye(2), [[1.0, 2.0, 3.0]], alpha=0.1, beta=0.1)


# -- centres of mass -----------------------------------------------------------------------------


MEASURES = [
    PartialDependence(), ProductMarginal(), Uniform(), Expectation(), Expectation("uniform"),
    Dirac(), Baseline([1.0, 2.0, 3.0]), Conditional(), Conditional("gmm"),
    Conditional("gaussian"), 2 * PartialDependence() - 0.5 * Expectation(),
]  # fmt: skip


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_first_moments_are_attributions_of_coordinates(measure):
    weights = RNG.random(40)
    moments, mass = first_moments(measure, X, X[3], sample_weight=weights)
    for k in range(3):
        explainer = MeasureExplainer(coordinate(k), measure).fit(X, sample_weight=weights)
        np.testing.assert_allclose(moments[:, k], explainer.explain(X[3:4]).values[0], atol=1e-12)
    np.testing.assert_allclose(
        center_of_mass(measure, X, X[3], sample_weight=weights), moments / mass[:, None]
    )


def coordinate(k):
    return LinearRegression(fit_intercept=False).fit(np.eye(3), np.eye(3)[k])


def test_no_center_of_mass():
    with pytest.raises(ValueError, match=r"\['x0', 'x1', 'x2'\] have mass 0"):
        center_of_mass(PartialDependence() - Expectation(), X)
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})
    with pytest.raises(ValueError, match=r"columns \['b'\] have no first moments"):
        center_of_mass(PartialDependence(), frame)


def test_domain_of_center():
    center = center_of_mass(Uniform(), X, np.zeros(3), domain=[[0, 1], [0, 2], [0, 4]])
    np.testing.assert_array_equal(center, [[0, 1, 2], [0.5, 0, 2], [0.5, 1, 0]])


# -- solution sets -------------------------------------------------------------------------------


@settings(max_examples=30)
@given(arrays(int, (3, 2), elements=st.integers(-32, 32)),
       st.sampled_from(["recall", "precision", "f1"]), st.integers(0, 1))  # fmt: skip
def test_solution_sets_on_a_grid(weights, metric, j):
    alpha, beta = 0.5, 0.1
    weights = weights / 16  # products with the grid have no rounding, on the border too
    grid = np.array(list(itertools.product(np.linspace(0, 1, 9), repeat=2)))
    found = solution_set(weights, j, metric, alpha=alpha, beta=beta)
    one_by_one = [solution_set(w, j, metric, alpha=alpha, beta=beta) for w in weights]
    met = one_by_one[0].intersect(*one_by_one[1:])
    for m in grid:
        wanted = True
        for w in weights:
            if abs(w[j]) > beta:
                wanted &= abs(m @ w) >= alpha
            elif metric != "recall":
                wanted &= abs(m @ w) < alpha
        assert found.contains(m) == met.contains(m) == wanted
    np.testing.assert_array_equal(found.contains(grid), [found.contains(m) for m in grid])


@pytest.mark.slow
def test_recall_solutions_are_the_best_recall():
    # the theorem: for one model, all centres in their sets if and only if the recall is largest
    alpha, beta, w = 0.5, 0.1, np.array([0.8, -0.3, 0.05])
    grid = list(itertools.product([0.0, 0.5, 1.0], repeat=3))
    sets = [solution_set(w, j, "recall", alpha=alpha, beta=beta) for j in range(3)]
    for centers in itertools.product(grid, repeat=3):
        values = np.array(centers) @ w
        inside = all(s.contains(m) for s, m in zip(sets, centers, strict=True))
        assert inside == (recall(values, w, alpha=alpha, beta=beta) == 1.0)


def test_outside_the_domain():
    S = solution_set([1.0, 0.0], 0, alpha=0.5, beta=0.1)
    assert S.contains([1.0, 0.0]) and not S.contains([1.5, 0.0])
    wide = solution_set([1.0, 0.0], 0, alpha=0.5, beta=0.1, domain=[[0, 2], [0, 2]])
    assert wide.contains([1.5, 0.0])
    assert "1 conditions |w·m| ≥ α" in repr(S)


def test_bad_solution_sets():
    S = solution_set([1.0, 0.0], 0, alpha=0.5, beta=0.1)
    with pytest.raises(ValueError, match="same number of features, got"):
        S.intersect(solution_set([1.0, 0.0, 1.0], 0, alpha=0.5, beta=0.1))
    with pytest.raises(ValueError, match="same domain"):
        S.intersect(solution_set([1.0, 0.0], 0, alpha=0.5, beta=0.1, domain=[[0, 2], [0, 2]]))
    with pytest.raises(ValueError, match="m must have 2 coordinates, got 3"):
        S.contains([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"j must be the position .*, got 2"):
        solution_set([1.0, 0.0], 2, alpha=0.5, beta=0.1)
    with pytest.raises(ValueError, match=r"metric must be one of .*, got 'accuracy'"):
        solution_set([1.0, 0.0], 0, "accuracy", alpha=0.5, beta=0.1)
    with pytest.raises(ValueError, match=r"domain must have shape .*, got \(1, 2\)"):
        solution_set([1.0, 0.0], 0, alpha=0.5, beta=0.1, domain=[[0, 1]])
    with pytest.raises(ValueError, match="low <= high"):
        solution_set([1.0, 0.0], 0, alpha=0.5, beta=0.1, domain=[[0, 1], [1, 0]])


# -- deletion and insertion ----------------------------------------------------------------------


def test_deletion_and_insertion_by_loops():
    frame = pd.DataFrame(X, columns=list("abc"))
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(frame, X @ [1, -2, 0.5])
    explainer = MeasureExplainer(tree, groups={"ac": ["a", "c"]}).fit(frame)
    weights = RNG.random(40)
    explanation = explainer.explain(frame.iloc[:4])
    taken = [(0, 2), (1,)]
    for metric in (deletion, insertion):
        result = metric(explanation, explainer, frame[["c", "b", "a"]], sample_weight=weights)
        sizes = np.abs(explanation.centered().values)
        for i in range(4):
            order = sorted(range(2), key=lambda a: -sizes[i, a])
            assert order == result.order[i].tolist()
            for k in range(3):
                first = [c for a in order[:k] for c in taken[a]]
                Z = X.copy()
                moved = first if metric is insertion else [c for c in range(3) if c not in first]
                Z[:, moved] = X[i, moved]
                expected = np.average(
                    tree.predict(pd.DataFrame(Z, columns=list("abc"))), weights=weights
                )
                np.testing.assert_allclose(result.curves[i, k], expected, rtol=1e-12)
        areas = [(c[0] / 2 + c[1] + c[2] / 2) / 2 for c in result.curves]
        np.testing.assert_allclose(result.area, areas)
        assert result.mean == pytest.approx(np.mean(areas)) and metric.__name__ in repr(result)


def test_perturbation_order_and_bad_input():
    model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5])
    explainer = MeasureExplainer(model).fit(X)
    explanation = explainer.explain(X[:3])
    signed = deletion(explanation, explainer, X, order="value").order
    np.testing.assert_array_equal(signed, np.argsort(-explanation.centered().values, axis=1))
    with pytest.raises(ValueError, match=r"order must be one of .*, got 'best'"):
        deletion(explanation, explainer, X, order="best")
    with pytest.raises(TypeError, match="explanation must be an Explanation, got"):
        insertion(explanation.values, explainer, X)
    two = MeasureExplainer(LinearRegression().fit(X, X[:, :2])).fit(X)
    with pytest.raises(ValueError, match=r"must have one output; select one of"):
        insertion(two.explain(X[:2]), two, X)


# -- agreement with what is known ----------------------------------------------------------------


def test_agreement_by_hand():
    found = agreement(
        [[1.0, -2.0, 0.5], [3.0, 3.0, 3.0]], [[2.0, -4.0, 1.0], [1.0, 0.0, -1.0]], k=1
    )
    np.testing.assert_allclose(found.correlation, [1.0, np.nan])
    np.testing.assert_allclose(found.rank_correlation, [1.0, np.nan])
    np.testing.assert_allclose(found.sign, [1.0, 0.5])
    np.testing.assert_allclose(found.top, [1.0, 1.0])
    np.testing.assert_allclose(found.error, [np.sqrt(5.25 / 3), np.sqrt((4 + 9 + 16) / 3)])
    assert found.mean["sign"] == 0.75 and found.mean["correlation"] == pytest.approx(1.0)
    assert "k=1" in repr(found)


def test_agreement_of_a_linear_model_with_itself():
    slopes = np.array([1.0, -2.0, 0.5])
    explainer = MeasureExplainer(LinearRegression().fit(X, X @ slopes)).fit(X)
    found = agreement(explainer.explain(X[:10]), slopes * (X[:10] - X.mean(axis=0)))
    assert found.k == 1 and min(found.mean.values()) < 1e-12
    np.testing.assert_allclose(found.correlation, 1.0)


def test_bad_agreement():
    with pytest.raises(ValueError, match="truth must have 1 or 2 rows, as the values, got 3"):
        agreement(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="truth must have 3 features, as the values, got 2"):
        agreement(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match=r"k must be between 1 and .*, got 4"):
        agreement(np.ones(3), np.ones(3), k=4)
