"""A link of pieces: probabilities and predictions equal sums over predict and predict_proba."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from skattr import MeasureExplainer
from skattr.engines.boxes import row_steps
from skattr.measures import Conditional, Dirac, Expectation, PartialDependence, Shapley
from tests.cases import MASSLESS, MEASURES, exists, make_case
from tests.helpers.case import predict, proba
from tests.helpers.comparison import by_definition, oracle_of, same
from tests.helpers.random_cases import examples, groups_of, weights_of

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

BOXES = {
    "boosting binary": "proba",
    "boosting multiclass": "proba",
    "boosting exponential": "proba",
    "hist binary": "proba",
    "hist multiclass": "proba",
    "hist categories multiclass": "proba",
    "hist codes binary": "proba",
    "hist poisson": "predict",
}
MARGINS = {
    "logistic binary": "proba",
    "logistic CV": "proba",
    "discriminant": "proba",
    "poisson": "predict",
    "gamma": "predict",
    "network binary": "proba",
    "network poisson": "predict",
}
LINKED = {**BOXES, **MARGINS}
KINDS = [kind for kind, m in MEASURES.items() if m.over in ("rows", "neighbours", "nothing")]
seeds = st.integers(0, 10_000)


def linked_case(name, seed):
    """A case explained behind its link."""
    case = make_case(name, seed)
    f = proba if LINKED[name] == "proba" else predict
    return replace(case, f=lambda X: f(case.estimator, X))


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKED)
@examples(3)
@given(seeds)
def test_every_measure_made_of_rows(name, seed):
    case = linked_case(name, seed)
    weight = weights_of(case, seed)
    oracle = oracle_of(case, weight)
    engine = "linked_boxes" if name in BOXES else "linked_margins"
    for kind in KINDS:
        if exists(case, kind, weight):
            explainer, _ = same(
                case, MEASURES[kind].make(case), weight, oracle=oracle, output=LINKED[name]
            )
            wanted = "evaluation" if kind == "dirac" else engine
            assert explainer.engine_ == (wanted,), explainer.describe()


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKED)
@examples(1)
@given(seeds)
def test_measures_of_mass_0(name, seed):
    case = linked_case(name, seed)
    weight = weights_of(case, seed)
    oracle = oracle_of(case, weight)
    for kind in ("ale", "removal"):
        measure = MASSLESS[kind].make(case)
        same(case, measure, weight, oracle=oracle, output=LINKED[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKED)
@examples(2)
@given(seeds, st.sampled_from(["partial dependence", "conditional"]))
def test_groups(name, seed, kind):
    case = linked_case(name, seed)
    if exists(case, kind):
        groups, own = groups_of(case, seed)
        same(case, MEASURES[kind].make(case), own=own, groups=groups, output=LINKED[name])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [GradientBoostingClassifier, HistGradientBoostingClassifier])
def test_curves_have_all_jumps(kind, classes):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(80, 3)).round(1)
    number = {"n_estimators": 6} if kind is GradientBoostingClassifier else {"max_iter": 6}
    score = X @ [1.0, -2.0, 1.5] + X[:, 0] * X[:, 1]
    model = kind(**number, random_state=0).fit(X, np.digitize(score, [0.0, 2.0][: classes - 1]))
    weight = rng.random(80)
    explainer = MeasureExplainer(model, PartialDependence(), output="proba")
    explainer.fit(X, sample_weight=weight)
    for k in range(3):
        curve = explainer.curve(k)
        assert curve.kind == "steps"
        frame = curve.to_frame()
        edges = frame["upper"][np.isfinite(frame["upper"])].to_numpy()
        assert len(edges)
        values = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
        wanted = []
        for value in values:
            Z = X.copy()
            Z[:, k] = value
            wanted.append(np.average(model.predict_proba(Z), axis=0, weights=weight))
        wanted = np.array(wanted)[:, 1] if classes == 2 else np.array(wanted)
        np.testing.assert_allclose(curve(values), wanted, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKED)
def test_batches_workers_and_pickles(name):
    cases = (linked_case(name, seed) for seed in range(100))
    case = next(case for case in cases if len(case.background) > 4)
    settings = {"measure": PartialDependence() - Expectation(), "output": LINKED[name]}
    whole = MeasureExplainer(case.estimator, **settings).fit(case.background)
    values = whole.explain(case.X).values
    workers = MeasureExplainer(case.estimator, **settings, n_jobs=2).fit(case.background)
    np.testing.assert_array_equal(workers.explain(case.X).values, values)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)).explain(case.X).values, values)
    half = len(case.background) // 2
    batches = MeasureExplainer(case.estimator, **settings)
    batches.partial_fit(case.background[:half]).partial_fit(case.background[half:])
    np.testing.assert_allclose(batches.explain(case.X).values, values, rtol=1e-9, atol=1e-12)
    first = whole.explain(case.X[:1]).values
    np.testing.assert_array_equal(first, values[:1])


def test_columns_that_do_not_fit_in_memory_are_computed_in_several_passes(monkeypatch):
    case = linked_case("hist multiclass", 5)
    settings = {"measure": PartialDependence(), "output": "proba"}
    whole = MeasureExplainer(case.estimator, **settings).fit(case.background)
    monkeypatch.setattr(row_steps, "MAX_NUMBERS", 64)
    parts = MeasureExplainer(case.estimator, **settings).fit(case.background)
    np.testing.assert_allclose(
        parts.explain(case.X).values, whole.explain(case.X).values, rtol=1e-12, atol=1e-14
    )


def test_a_column_that_the_model_ignores_gets_the_mean_to_the_last_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    X[:, 2] = 1.0
    model = HistGradientBoostingClassifier(max_iter=5).fit(X, X[:, 0] + X[:, 1] > 0)
    explainer = MeasureExplainer(model, output="proba").fit(X)
    assert (explainer.explain(X[:5]).values[:, 2] == 0).all()


@pytest.mark.parametrize("model", [
    HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3), LogisticRegression(),
])  # fmt: skip
def test_shapley_values_add_up_on_the_scale_of_probabilities(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    model = model.fit(X, rng.integers(0, 3, 40))
    explainer = MeasureExplainer(model, Shapley(), output="proba").fit(X)
    values = explainer.explain(X[:4]).values
    wanted = by_definition(model.predict_proba, X, X[:4], Shapley())
    np.testing.assert_allclose(values, wanted, atol=1e-12)
    difference = model.predict_proba(X[:4]) - model.predict_proba(X).mean(axis=0)
    np.testing.assert_allclose(values.sum(axis=1), difference, atol=1e-12)


def test_describe_says_that_values_are_exact_behind_a_link():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = X["a"] > 0
    for model in (
        GradientBoostingClassifier(n_estimators=3), LogisticRegression(),
        MLPClassifier((3,), tol=1e9, n_iter_no_change=1, random_state=0),
    ):  # fmt: skip
        explainer = MeasureExplainer(model.fit(X, y), output="proba").fit(X)
        text = explainer.describe()
        assert "exact, behind a link" in text and "the logistic function" in text
        assert explainer.curve("a").kind == ("steps" if "boxes" in text else "function")
    explainer = MeasureExplainer(model, Dirac() - Conditional(), output="proba").fit(X)
    assert explainer.exact_
