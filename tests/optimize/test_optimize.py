"""Optimal centres against enumeration, descent against a convex solver, searches against loops."""

import itertools
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import (
    Baseline,
    Conditional,
    Expectation,
    LinearCombination,
    PartialDependence,
    Uniform,
)
from skattr.metrics import agreement, deletion, f1, faithfulness, recall, solution_set
from skattr.optimize import (
    FrankWolfeMeasure,
    MeasureSearchCV,
    SquaredLoss,
    ThresholdLoss,
    mixture,
    optimal_center,
    scorer,
)

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) + RNG.normal(size=(60, 1))


# -- centres of mass -----------------------------------------------------------------------------


def enumerated(weights, j, metric, alpha, beta, box):
    """The largest weight of conditions that some m in the box meets, over all sign patterns."""
    conditions = []  # (price, the ways to meet it: rows A m <= limit)
    for w in weights:
        golden = np.abs(w) > beta
        if golden[j]:
            price = 1 / golden.sum() if metric == "recall" else 1.0
            conditions.append((price, [([-w], [-alpha]), ([w], [-alpha])]))
        elif metric != "recall":
            conditions.append((1.0, [([w, -w], [alpha, alpha])]))
    best = 0.0
    for ways in itertools.product(*([None, *each] for _, each in conditions)):
        value = sum(price for (price, _), way in zip(conditions, ways, strict=True) if way)
        if value <= best + 1e-9:
            continue
        rows = [row for way in ways if way for row in way[0]]
        limits = [limit for way in ways if way for limit in way[1]]
        if linprog(np.zeros(len(box)), A_ub=rows, b_ub=limits, bounds=box).status == 0:
            best = value
    return best, sum(price for price, _ in conditions)


# a grid that is coarse against α, so that no pattern is feasible only within a tolerance
tenths = st.integers(-10, 10).map(lambda n: n / 10 + 0.003)


@settings(max_examples=25, deadline=None)
@given(arrays(float, (4, 3), elements=tenths), st.sampled_from(["recall", "precision", "f1"]),
       st.sampled_from([[(0, 1)] * 3, [(-1, 1), (0, 0.5), (0.5, 2)]]))  # fmt: skip
def test_milp_against_all_sign_patterns(weights, metric, box):
    alpha, beta = 0.55, 0.1
    if not (np.abs(weights[:, 0]) > beta).any():
        return
    found = optimal_center(weights, 0, metric, alpha=alpha, beta=beta, domain=box)
    best, total = enumerated(weights, 0, metric, alpha, beta, box)
    assert found.bound == pytest.approx(best, abs=1e-6)
    assert found.total == pytest.approx(total)
    assert found.certified_empty == (best < total - 1e-6)
    assert ((found.center >= np.array(box)[:, 0]) & (found.center <= np.array(box)[:, 1])).all()
    # the centre does what it says
    golden = np.abs(weights[:, 0]) > beta
    size = np.abs(weights @ found.center)
    slack = np.where(golden, size - alpha, alpha - size)
    counts = golden if metric == "recall" else np.ones(4, bool)
    assert (slack[found.met & counts] >= found.margin - 1e-7).all()
    if not found.certified_empty and found.margin > 1e-6:
        S = solution_set(weights, 0, metric, alpha=alpha, beta=beta, domain=box)
        assert S.contains(found.center)


@given(arrays(float, 4, elements=tenths))
def test_one_model_is_empty_iff_no_corner_reaches_alpha(w):
    w[0] = 1e-3 + 0.2  # golden
    found = optimal_center(w, 0, alpha=0.777, beta=0.1)
    reach = max(w[w > 0].sum(), -w[w < 0].sum())
    assert found.certified_empty == (reach < 0.777)
    assert found.bound == (0.0 if reach < 0.777 else 1 / (np.abs(w) > 0.1).sum())


def test_margin_is_the_largest_in_one_dimension():
    # m - .2 and .2 - .1 m are equal at m = 4/11
    found = optimal_center([[1.0], [0.1]], 0, "precision", alpha=0.2, beta=0.1)
    assert not found.certified_empty and found.margin == pytest.approx(9 / 55, abs=1e-6)
    assert found.center == pytest.approx([4 / 11])
    tight = optimal_center([[1.0], [0.5]], 0, "precision", alpha=0.3, beta=0.5)
    # m - .3 and .3 - .5 m are equal at m = .4
    assert tight.center == pytest.approx([0.4]) and tight.margin == pytest.approx(0.1)


def test_a_strict_condition_that_only_the_boundary_meets():
    box = [[1.0, 1.0], [0.0, 1.0]]  # .1 m_0 = alpha for every m: not below it
    found = optimal_center([[0.2, 0.0], [0.1, 0.0]], 0, "f1", alpha=0.1, beta=0.1, domain=box)
    assert found.certified_empty and found.bound == found.total == 2.0
    S = solution_set([[0.2, 0.0], [0.1, 0.0]], 0, "f1", alpha=0.1, beta=0.1, domain=box)
    assert not S.contains(found.center)


def test_far_conditions_may_be_met_on_the_boundary():
    # m = 1 is the only centre with |m| >= 1, and strictly near for the other model
    found = optimal_center([[1.0], [0.1]], 0, "f1", alpha=1.0, beta=0.1)
    assert not found.certified_empty and found.center == pytest.approx([1.0])


def test_bad_centers():
    good = [[1.0, 0.05], [1.0, 0.0]]
    with pytest.raises(ValueError, match="feature 1 is in no model's golden set"):
        optimal_center(good, 1, alpha=0.3, beta=0.1)
    for name in ("alpha", "beta"):
        with pytest.raises(ValueError, match=f"{name} must be .*, got -1"):
            optimal_center(good, 0, **{"alpha": 0.3, "beta": 0.1} | {name: -1})
    with pytest.raises(ValueError, match="rows of one length"):
        optimal_center([[1.0, 0.0], [1.0]], 0, alpha=0.3, beta=0.1)
    with pytest.raises(ValueError, match=r"j must be the position .*, got 5"):
        optimal_center(good, 5, alpha=0.3, beta=0.1)


# -- Frank-Wolfe ---------------------------------------------------------------------------------


def quadratic(point):
    return partial(_quadratic, np.asarray(point))


def _quadratic(point, Y):
    return ((Y - point) ** 2).sum(axis=1)


MODELS = [quadratic(p) for p in RNG.random((7, 3))] + [np.prod, np.sum]
MODELS[-2:] = [partial(f, axis=1) for f in MODELS[-2:]]
ATOMS = RNG.random((9, 3))
BOX = np.array([[0.0, 1.0], [-1.0, 1.0], [0.0, 2.0]])


def matrix(constraint, j):
    """F by the definition."""
    if constraint == "sensitive":
        high, low = ATOMS.copy(), ATOMS.copy()
        high[:, j], low[:, j] = BOX[j, 1], BOX[j, 0]
        return np.array([f(high) - f(low) for f in MODELS])
    return np.array([f(ATOMS) for f in MODELS])


@pytest.mark.parametrize("loss", [SquaredLoss(), ThresholdLoss(0.3, 0.2)])
@pytest.mark.parametrize("constraint", ["sensitive", "probability", None])
def test_descent_against_a_convex_solver(constraint, loss):
    targets = RNG.integers(-1, 2, size=(len(MODELS), 3)).astype(float)
    learned = FrankWolfeMeasure(
        ATOMS, loss, constraint, mass=1.5, domain=BOX, tol=1e-7, max_iter=200_000
    ).fit(MODELS, targets)
    assert (learned.gap_ <= 1e-7).all()
    for j in range(3):
        F = matrix(constraint, j)
        c = learned.weights_[j]
        assert np.abs(c).sum() <= 1.5 + 1e-9
        if constraint is not None:
            assert (c >= 0).all() and c.sum() == pytest.approx(1.5)
        assert learned.loss_[j] == pytest.approx(loss(F @ c, targets[:, j])[0])
        columns = F if constraint is not None else np.hstack([F, -F])
        n = columns.shape[1]
        start = np.full(n, 1.5 / n)
        sense = "eq" if constraint is not None else "ineq"
        other = minimize(
            lambda c, A=columns, t=targets[:, j]: loss(A @ c, t)[0], start,
            jac=lambda c, A=columns, t=targets[:, j]: A.T @ loss(A @ c, t)[1],
            bounds=[(0, None)] * n, method="SLSQP", options={"ftol": 1e-14, "maxiter": 2000},
            constraints={"type": sense, "fun": lambda c: 1.5 - c.sum(),
                         "jac": lambda c: -np.ones(len(c))},
        )  # fmt: skip
        assert learned.loss_[j] <= other.fun + 1e-6
        assert other.fun >= learned.loss_[j] - learned.gap_[j] - 1e-8  # the certificate


@pytest.mark.parametrize("loss", [SquaredLoss(), ThresholdLoss(0.3, 0.1)])
def test_losses_have_the_slope_they_say(loss):
    target = np.array([1.0, -1.0, 0.0, 0.0, 1.0])
    phi = RNG.normal(size=5)
    for i in range(5):
        step = 1e-6 * np.eye(5)[i]
        slope = (loss(phi + step, target)[0] - loss(phi - step, target)[0]) / 2e-6
        assert slope == pytest.approx(loss(phi, target)[1][i], abs=1e-6)


def test_sensitive_by_construction_and_reproducible():
    ignores = [lambda Y: np.exp(Y[:, 0] * Y[:, 1])]
    learned = [
        FrankWolfeMeasure(ATOMS, constraint="sensitive", domain=BOX).fit(
            MODELS, np.ones((len(MODELS), 3))
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(learned[0].weights_, learned[1].weights_)
    assert abs(learned[0].attributions(ignores)[0, 2]) < 1e-12
    assert learned[0].attributions(ignores)[0, 0] != 0
    points, weights = learned[0].build()
    expected = np.array([[w @ f(points) for w in weights] for f in MODELS])
    np.testing.assert_allclose(learned[0].attributions(MODELS), expected)
    for f, values in zip(MODELS, expected, strict=True):
        explainer = MeasureExplainer(f, learned[0].measure_).fit(X)
        np.testing.assert_allclose(explainer.explain(X[:2]).values, [values, values])
    for j in range(3):  # the learned weights are those of the pairs
        np.testing.assert_allclose(
            expected[:, j], matrix("sensitive", j) @ learned[0].weights_[j], atol=1e-12
        )


def test_linear_models_and_estimators():
    weights = np.array([[1.0, -2.0, 0.0], [0.5, 0.0, 1.0]])
    estimators = [LinearRegression(fit_intercept=False).fit(np.eye(3), w) for w in weights]
    a = FrankWolfeMeasure(ATOMS).fit(weights, weights)
    b = FrankWolfeMeasure(ATOMS).fit(estimators, weights)
    np.testing.assert_allclose(a.attributions(weights), weights, atol=1e-12)
    np.testing.assert_allclose(b.attributions(weights), weights, atol=1e-12)
    assert (a.loss_ < 1e-20).all() and (clone(a).get_params()["constraint"] == "sensitive")


def test_frank_wolfe_warns_and_shows(capsys):
    with pytest.warns(ConvergenceWarning, match=r"gap is .* after 1 steps"):
        FrankWolfeMeasure(ATOMS, "squared", "probability", max_iter=1, verbose=1).fit(
            MODELS, np.ones((len(MODELS), 3))
        )
    assert "features" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change, words",
    [
        ({"atoms": ATOMS + 5}, "atoms must lie in the domain, got 9 outside"),
        ({"constraint": "none"}, "constraint must be one of .*, got 'none'"),
        ({"loss": "absolute"}, "loss must be .*, got 'absolute'"),
        ({"mass": 0.0}, "must be positive"),
    ],
)
def test_bad_frank_wolfe(change, words):
    with pytest.raises(ValueError, match=words):
        FrankWolfeMeasure(**{"atoms": ATOMS} | change).fit(np.ones((2, 3)), np.ones((2, 3)))


def test_bad_models_of_frank_wolfe():
    learner = FrankWolfeMeasure(ATOMS)
    with pytest.raises(ValueError, match="models must have 3 weights, got 2"):
        learner.fit(np.ones((2, 2)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="model 1 must have 3 features, as the atoms, got 2"):
        models = [LinearRegression().fit(np.eye(d), np.ones(d)) for d in (3, 2)]
        learner.fit(models, np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"targets must have shape .*, got \(1, 3\)"):
        learner.fit(np.ones((2, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="one output"):
        learner.fit([lambda Y: Y], np.ones((1, 3)))
    with pytest.raises(ValueError, match="alpha=-1"):
        ThresholdLoss(-1)


# -- mixtures and searches -----------------------------------------------------------------------


MODEL = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X @ [1.0, -2.0, 0.5])


def test_mixture_is_a_combination():
    mixed = mixture([PartialDependence(), PartialDependence() - Expectation()], [0.5, 2.0])
    assert isinstance(mixed, LinearCombination) and len(mixed.terms) == 3
    values = MeasureExplainer(MODEL, mixed).fit(X).explain(X[:5])
    plain = MeasureExplainer(MODEL, PartialDependence()).fit(X).explain(X[:5])
    np.testing.assert_allclose(values.values, 2.5 * plain.values - 2 * plain.base_value)
    assert isinstance(mixture(["conditional"], [1.0]), LinearCombination)
    for weights in ([1.0], [1.0, np.nan], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="weights"):
            mixture(["conditional", "uniform"], weights)


CANDIDATES = {
    "pd": PartialDependence(),
    "centred": PartialDependence() - Expectation(),
    "half": mixture(["partial_dependence", "conditional"], [0.5, 0.5]),
    "conditional": Conditional(),
    "point": PartialDependence() - Baseline(np.zeros(3)),
}


@pytest.mark.parametrize("frame", [False, True])
def test_search_against_loops(frame):
    data = pd.DataFrame(X, columns=list("abc")) if frame else X
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(data, X @ [1.0, -2.0, 0.5])
    weights = RNG.random(60)
    search = MeasureSearchCV(MeasureExplainer(model), CANDIDATES, cv=3)
    search.fit(data, sample_weight=weights)
    expected = np.empty((3, len(CANDIDATES)))
    for s, (train, test) in enumerate(KFold(3).split(X)):
        rows = (lambda i: data.iloc[i]) if frame else (lambda i: data[i])
        for i, measure in enumerate(CANDIDATES.values()):
            explainer = MeasureExplainer(model, measure).fit(
                rows(train), sample_weight=weights[train]
            )
            found = faithfulness(explainer.explain(rows(test)), explainer, rows(train))
            expected[s, i] = found.mean
    results = search.cv_results_
    for s in range(3):
        np.testing.assert_allclose(results[f"split{s}_test_score"], expected[s], rtol=1e-9)
    np.testing.assert_allclose(results["mean_test_score"], expected.mean(axis=0))
    best = int(np.argmax(expected.mean(axis=0)))
    assert search.best_index_ == best and results["rank_test_score"][best] == 1
    assert search.best_measure_ is list(CANDIDATES.values())[best]
    assert results["name"] == list(CANDIDATES)
    whole = MeasureExplainer(model, search.best_measure_).fit(data, sample_weight=weights)
    np.testing.assert_array_equal(search.explain(data).values, whole.explain(data).values)


def test_terms_are_explained_once(monkeypatch):
    fits = []
    fit = MeasureExplainer.fit
    monkeypatch.setattr(
        MeasureExplainer,
        "fit",
        lambda self, *a, **k: fits.append(self.measure) or fit(self, *a, **k),
    )
    grid = [mixture(["partial_dependence", "uniform"], [w, 1 - w]) for w in np.linspace(0, 1, 11)]
    score = scorer(recall, weights=[1.0, -2.0, 0.0], alpha=0.3, beta=0.1)
    MeasureSearchCV(MeasureExplainer(MODEL), grid, score, cv=2).fit(X)
    assert len(fits) == 2 * 2 + 1  # two terms a split, and the best


def test_scorers_are_their_metrics():
    explainer = MeasureExplainer(MODEL).fit(X)
    explanation = explainer.explain(X[:6])
    values, w = explanation.centered().values, np.array([1.0, -2.0, 0.5])
    assert scorer(f1, weights=w, alpha=0.3, beta=0.1)(explanation, explainer, X) == np.mean(
        f1(values, w, alpha=0.3, beta=0.1)
    )
    assert (
        scorer(agreement, truth=w * X[:6], which="sign")(explanation, explainer, X)
        == (agreement(explanation, w * X[:6]).mean["sign"])
    )
    assert scorer(deletion, greater_is_better=False)(explanation, explainer, X) == (
        -deletion(explanation, explainer, X).mean
    )
    with pytest.raises(ValueError, match=r"metric must be one of"):
        scorer(solution_set)


def test_search_fits_the_estimator_where_it_is_not():
    slopes = np.array([1.0, -2.0, 0.5])
    score = scorer(f1, weights=slopes, alpha=0.0, beta=0.1)
    search = MeasureSearchCV(MeasureExplainer(LinearRegression()), ["uniform"], score, cv=2)
    assert search.fit(X, X @ slopes).best_score_ == 1.0
    np.testing.assert_allclose(search.best_explainer_.estimator_.coef_, slopes)


def test_bad_search():
    with pytest.raises(ValueError, match="candidates must not be empty"):
        MeasureSearchCV(MeasureExplainer(MODEL), []).fit(X)
    with pytest.raises(ValueError, match=r"scoring must be .*, got 'accuracy'"):
        MeasureSearchCV(MeasureExplainer(MODEL), ["uniform"], "accuracy").fit(X)
    with pytest.raises(ValueError, match=r"measure must be .*, got 'nonsense'"):
        MeasureSearchCV(MeasureExplainer(MODEL), ["nonsense"]).fit(X)


@pytest.mark.parametrize("first", [True, False])
def test_nan_scores_do_not_win(first):
    names = ["uniform", "partial_dependence"]

    def score(explanation, explainer, background):
        is_first = "Uniform" in explanation.measure
        return np.nan if is_first is first else -1.0

    search = MeasureSearchCV(MeasureExplainer(MODEL), names, score, cv=2).fit(X)
    assert search.best_index_ == int(first) and search.best_score_ == -1.0
    with pytest.raises(ValueError, match="every candidate has a score that is NaN"):
        MeasureSearchCV(MeasureExplainer(MODEL), names, lambda *_: np.nan, cv=2).fit(X)


@pytest.mark.parametrize("score", [None, 1j, "0.5", [0.5], np.array([0.5])])
def test_scores_that_are_not_numbers(score):
    search = MeasureSearchCV(MeasureExplainer(MODEL), ["uniform"], lambda *_: score, cv=2)
    with pytest.raises(ValueError, match=r"scoring=<function .* must return a number, got"):
        search.fit(X)


def test_errors_of_mixtures_are_not_those_of_their_first_term():
    seen = {}

    def score(explanation, explainer, background):
        seen[explanation.measure] = explanation
        return np.float32(0.5)

    plain, twice = PartialDependence(), 2.0 * PartialDependence()
    mixed = PartialDependence() - 0.5 * Uniform()
    explainer = MeasureExplainer(
        lambda X: X[:, 0] ** 2 * X[:, 1], folds=4, max_evals=64, random_state=0
    )
    search = MeasureSearchCV(explainer, [plain, twice, mixed], score, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # max_evals is small
        search.fit(X)
    one, two, sum_of_two = (seen[repr(measure)] for measure in (plain, twice, mixed))
    assert one.background_error is not None and one.importance(error=True) is not None
    for each in (two, sum_of_two):
        assert each.background_error is each.centered_background_error is each.folds is None
    assert sum_of_two.centered_error.shape == sum_of_two.std_error.shape == sum_of_two.values.shape
    assert (sum_of_two.std_error > 0).any()
