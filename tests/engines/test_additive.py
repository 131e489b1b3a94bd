"""Linear and additive models: the library equals the definition, which only asks the model."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import linear_model
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, StandardScaler

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence, ProductMarginal, Uniform
from skattr.measures.factors.quadrature import mean_on
from skattr.pieces import Additive, Linked
from tests.cases import LINEAR, MEASURES, behind, combination, exists
from tests.helpers.case import smooth_case
from tests.helpers.comparison import same
from tests.helpers.lanes import quickly
from tests.helpers.promises import batches_equal_one_fit, no_bit_changes
from tests.helpers.random_cases import groups_of
from tests.helpers.smooth import DENSE, GAPS, NUMBERS, STEPS, TARGETS, X, fit
from tests.helpers.uniform_laws import CURVED, integrates_behind

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

NUMBERS = X[NUMBERS]
SCORE = TARGETS["number"]
WEIGHT = np.arange(5) % 3 + 0.5
BEHIND = ["scaled", "gaps", "sparse", "splines"]


def agrees(case, measure, weight=None, own=None, **settings):
    """The definition, by engines of additive models; returns the explainer."""
    explainer, _ = same(case, measure, weight, own, **settings)
    assert set(explainer.engine_) <= {"additive", "evaluation"}, explainer.describe()
    return explainer


@pytest.mark.slow
@pytest.mark.parametrize("steps", BEHIND)
@pytest.mark.parametrize("name", LINEAR)
def test_every_linear_model(name, steps):
    """All measures of one engine at once, with groups."""
    if steps == "sparse" and LINEAR[name].keywords.get("steps") == DENSE:
        pytest.skip("it takes no sparse table")
    case = behind(name, steps, len(WEIGHT), 3)
    kinds = [kind for kind, m in MEASURES.items() if m.over != "neighbours"]
    measure = combination(case, [kind for kind in kinds if exists(case, kind, WEIGHT)])
    groups, own = groups_of(case, len(name))
    agrees(case, measure, WEIGHT, own, groups=groups)


@pytest.mark.parametrize("kind", [kind for kind, m in MEASURES.items() if m.over == "corner"])
@pytest.mark.parametrize("name", quickly(["ridge targets", "logistic binary"], ["logistic binary"]))
def test_corners(name, kind):
    case = behind(name, "numbers", 9, 3)
    measure = MEASURES[kind].make(case)
    agrees(case, measure, np.arange(9) % 3 + 0.5)
    agrees(case, measure, own=[(0, 2), (1,)], groups={"g": ["age", "code"]})


@pytest.mark.slow
@pytest.mark.parametrize("steps", CURVED)
def test_uniform_laws_behind_curved_steps(steps):
    integrates_behind(steps, linear_model.Ridge(), SCORE, n_rows=3, n_points=200_000, atol=2e-5)


def test_uniform_laws_behind_jumps_at_unknown_places_are_refused():
    """A narrow bin behind a scaler might be missed: better an estimate than a wrong number."""
    bins = KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")
    model = make_pipeline(StandardScaler(), bins, linear_model.Ridge()).fit(NUMBERS, SCORE)
    with pytest.raises(ValueError, match="not known exactly"):
        MeasureExplainer(model, Uniform(), engine="exact").fit(NUMBERS)
    assert not MeasureExplainer(model, Uniform(), tol=0.1).fit(NUMBERS).exact_


@pytest.mark.parametrize(
    "function, low, high, cuts, wanted",
    [
        (lambda t: 3 * t - 1, -2.0, 5.0, [], 3.5),
        (np.exp, 0.0, 1.0, [], np.e - 1),
        (lambda t: (t > 1 / 3) * 1.0, 0.0, 1.0, [], 2 / 3),
        (lambda t: np.abs(t - np.pi), 0.0, 10.0, [], (np.pi**2 + (10 - np.pi) ** 2) / 20),
        (lambda t: 1.0 * (t > 0.5) * (t <= 0.5 + 1e-7), 0.0, 1.0, [0.5, 0.5 + 1e-7], 1e-7),
        (lambda t: t / 1e308, -1e308, 1.5e308, [], 0.25),
        (np.sqrt, 0.0, 1.0, [], 2 / 3),
    ],
)
def test_quadrature(function, low, high, cuts, wanted):
    found = mean_on(lambda t: np.stack([function(t), -function(t)], 1), low, high, np.array(cuts))
    np.testing.assert_allclose(found, [wanted, -wanted], rtol=1e-11, atol=1e-15)


def test_quadrature_that_does_not_settle():
    noise = np.random.default_rng(0)
    with pytest.raises(ArithmeticError):
        mean_on(lambda t: noise.normal(size=(len(t), 1)), 0.0, 1.0, np.empty(0))
    with pytest.raises(ArithmeticError):
        mean_on(lambda t: np.full((len(t), 1), np.inf), 0.0, 1.0, np.empty(0))


def test_a_uniform_law_on_what_the_steps_refuse():
    steps = make_column_transformer(
        (FunctionTransformer(np.log), ["age"]), ("passthrough", ["size"])
    )
    model = make_pipeline(steps, linear_model.Ridge()).fit(X[["age", "size"]], SCORE)
    explainer = MeasureExplainer(model, Uniform(), domain={"age": (-1.0, 3.0)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"'age'.*not known exactly"):
            explainer.fit(X[["age", "size"]])


# -- the promises --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("steps", BEHIND)
@pytest.mark.parametrize(
    "measure", [PartialDependence() - Expectation(), ProductMarginal(), Uniform()], ids=repr
)
def test_batches_equal_one_fit(steps, measure):
    batches_equal_one_fit(behind("ridge targets", steps), measure)


@pytest.mark.slow
@pytest.mark.parametrize("steps", BEHIND)
@pytest.mark.parametrize("name", ["ridge targets", "logistic binary"])
def test_company_order_blocks_jobs_and_pickle_change_no_bit(steps, name, monkeypatch):
    measure = PartialDependence() - ProductMarginal() + 0.3 * Uniform()
    no_bit_changes(behind(name, steps), measure, monkeypatch)


@pytest.mark.parametrize("steps", quickly(["scaled", "sparse"], ["sparse"]))
def test_skops_round_trip(steps):
    skops_io = pytest.importorskip("skops.io")
    case = behind("ridge targets", steps)
    data = case.background
    explainer = MeasureExplainer(case.estimator, PartialDependence() - Uniform()).fit(data)
    stored = skops_io.dumps(explainer)
    again = skops_io.loads(stored, trusted=skops_io.get_untrusted_types(data=stored))
    np.testing.assert_array_equal(again.explain(data).values, explainer.explain(data).values)


@pytest.mark.parametrize("measure", [PartialDependence(), ProductMarginal(), Uniform()], ids=repr)
def test_what_the_model_ignores_gets_the_mean_to_the_last_bit(measure):
    estimator = fit("scaled", linear_model.LinearRegression(), X, SCORE)
    estimator[-1].coef_[[0, 2, 3, 4]] = 0.0  # age and city
    explanation = MeasureExplainer(estimator, measure).fit(X).explain(X)
    centred = explanation.centered().values
    assert (centred[:, [0, 2]] == 0.0).all()
    assert (centred[:, 1] != 0.0).any()


def test_many_outputs_take_little_more_memory_than_the_result(monkeypatch):
    monkeypatch.setattr("skattr.solution.read_model.BLOCK", 2**17)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 5))
    model = linear_model.LinearRegression().fit(X, X @ rng.normal(size=(5, 100)))
    explainer = MeasureExplainer(model).fit(X[:100])
    tracemalloc.start()
    values = explainer.explain(X, predictions=False).values
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * values.nbytes
    assert "(100 outputs)" in explainer.describe()


def test_describe():
    estimator = fit("gaps", linear_model.Ridge(), GAPS, SCORE)
    text = MeasureExplainer(estimator).fit(GAPS).describe()
    assert "an additive model of 4 columns" in text and "engine additive, exact" in text


# -- curves --------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["scaled", "gaps", "splines"])
def test_curves(steps):
    data = GAPS if STEPS[steps].gaps else X
    estimator = fit(steps, linear_model.LogisticRegression(), data, TARGETS["binary"])
    f = estimator.decision_function
    explainer = MeasureExplainer(estimator, "partial_dependence").fit(data)
    values = explainer.explain(data).values
    for k, name in enumerate(data.columns):
        curve = explainer.curve(name)
        np.testing.assert_array_equal(curve(data[name]), values[:, k])
    numbers = explainer.curve("size").to_frame()
    assert explainer.curve("size").kind == "function"
    np.testing.assert_array_equal(numbers["x"], np.sort(data["size"]))
    levels = explainer.curve("city").to_frame()
    assert explainer.curve("city").kind == "levels"
    # before pandas 3 words are objects, among which None is a level if it is there
    both = data["city"].dtype == object and data["city"].isna().any()
    missing = ["missing (None)", "missing (NaN)"] if both else ["missing"]
    assert levels["level"].dropna().tolist() == ["Bonn", "Kiel", "Ulm", *missing, "any other"]
    raw = ["Bonn", "Kiel", "Ulm", *([None, np.nan] if both else [None]), "Rome"]
    wanted = [f(data.assign(city=pd.Series([v] * len(data), dtype="str"))).mean() for v in raw]
    np.testing.assert_allclose(levels["value"], wanted, rtol=1e-12)
    if steps != "scaled":
        shown = explainer.curve("code").to_frame()["level"].tolist()
        assert shown[:4] == [1, 2, 3, 4] and "any other" in shown


def test_curves_of_several_outputs():
    model = linear_model.LogisticRegressionCV()
    explainer = MeasureExplainer(fit("gaps", model, GAPS, TARGETS["classes"])).fit(GAPS)
    frame = explainer.curve("city").to_frame()
    assert list(frame) == ["level", "kind", "value_high", "value_low", "value_mid"]
    one = explainer.curve("city", output="low").to_frame()
    np.testing.assert_array_equal(one["value"], frame["value_low"])


# -- readers -------------------------------------------------------------------------------------


def test_members_of_ensembles():
    ridge, lasso = linear_model.Ridge(), linear_model.Lasso(alpha=0.1)
    for model in (
        VotingRegressor(
            [("a", ridge), ("b", make_pipeline(StandardScaler(), lasso))], weights=[1, 3]
        ),
        BaggingRegressor(ridge, 4, max_features=2, random_state=0),
    ):
        case = smooth_case(model.fit(NUMBERS, SCORE), NUMBERS[:9], NUMBERS[20:])
        agrees(case, PartialDependence() - ProductMarginal())


def test_steps_that_mix_columns_are_a_black_box():
    model = make_pipeline(PCA(2), linear_model.Ridge()).fit(NUMBERS, SCORE)
    explainer = MeasureExplainer(model, "partial_dependence").fit(NUMBERS)
    assert "PCA" in explainer.describe() and explainer.engine_ == ("finite_sum",)


def test_scales_of_generalised_linear_models():
    y = TARGETS["positive"]
    model = linear_model.TweedieRegressor(power=0, link="log").fit(NUMBERS, y)
    explainer = MeasureExplainer(model).fit(NUMBERS)
    assert isinstance(explainer.pieces_, Additive)
    np.testing.assert_allclose(
        explainer.explain(NUMBERS).predictions, np.log(model.predict(NUMBERS))
    )
    assert isinstance(MeasureExplainer(model, output="predict").fit(NUMBERS).pieces_, Linked)
    identity = linear_model.TweedieRegressor(power=0).fit(NUMBERS, y)
    for output in ("auto", "predict", "raw"):
        explainer = MeasureExplainer(identity, output=output).fit(NUMBERS)
        assert isinstance(explainer.pieces_, Additive)
        np.testing.assert_allclose(
            explainer.explain(NUMBERS).predictions, identity.predict(NUMBERS)
        )


def test_probabilities_of_a_logistic_regression_are_behind_a_link():
    model = linear_model.LogisticRegression(max_iter=500).fit(NUMBERS, TARGETS["binary"])
    assert MeasureExplainer(model, "partial_dependence", output="proba").fit(NUMBERS).engine_ == (
        "linked_margins",
    )


def test_sparse_coefficients_and_single_precision():
    model = linear_model.LogisticRegression(max_iter=500).fit(NUMBERS, TARGETS["classes"])
    dense = MeasureExplainer(model, "partial_dependence").fit(NUMBERS).explain(NUMBERS).values
    model.sparsify()
    assert sparse.issparse(model.coef_)
    np.testing.assert_array_equal(
        MeasureExplainer(model, "partial_dependence").fit(NUMBERS).explain(NUMBERS).values, dense
    )
    single = NUMBERS.to_numpy(np.float32)
    model = linear_model.Ridge().fit(single, SCORE.astype(np.float32))
    assert model.coef_.dtype == np.float32
    explainer = MeasureExplainer(model, "partial_dependence").fit(single)
    assert explainer.engine_ == ("additive",)


def test_a_model_that_says_something_else_is_a_black_box():
    class Clipped(linear_model.LinearRegression):
        def predict(self, X):
            return np.maximum(super().predict(X), 4.0)

    with pytest.warns(UserWarning, match="Clipped does not add up to what its predict returns"):
        explainer = MeasureExplainer(Clipped().fit(NUMBERS, SCORE), "partial_dependence").fit(
            NUMBERS
        )
    assert explainer.engine_ == ("finite_sum",)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_the_model_refuses(bad):
    explainer = MeasureExplainer(linear_model.Ridge().fit(NUMBERS, SCORE)).fit(NUMBERS)
    frame = NUMBERS.assign(size=bad)
    for call in (explainer.partial_fit, explainer.explain, explainer.transform):
        with pytest.raises(ValueError, match=r"(?s)the model refuses X.*'size'"):
            call(frame)
    with pytest.raises(ValueError, match="the model refuses X"):
        explainer.curve("size")([bad])


# -- interpret's EBM -----------------------------------------------------------------------------


def boosting_machine(kind, y, data=GAPS, **settings):
    """A small EBM."""
    glassbox = pytest.importorskip("interpret.glassbox")
    small = {"interactions": 0, "outer_bags": 1, "max_rounds": 30, "n_jobs": 1, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of missing values, which its pictures do not show
        return getattr(glassbox, f"ExplainableBoosting{kind}")(**small).fit(data, TARGETS[y])


@pytest.mark.parametrize(
    "kind, y, settings",
    [
        ("Regressor", "number", {}),
        ("Regressor", "positive", {"objective": "poisson_deviance"}),
        ("Classifier", "binary", {}),
        ("Classifier", "classes", {}),
    ],
)
def test_explainable_boosting_machines(kind, y, settings):
    model = boosting_machine(kind, y, **settings)
    method = model.predict if kind == "Regressor" else model.decision_function

    def f(Z):
        values = method(Z).reshape(len(Z), -1)
        return np.log(values) if settings else values

    rows = GAPS[20:26]
    case = smooth_case(model, GAPS[:9], rows, f)
    agrees(case, PartialDependence() - 0.5 * Expectation())
    explainer = agrees(smooth_case(model, GAPS[:4], rows, f), ProductMarginal())
    curve = explainer.curve("city")
    assert curve.kind == "levels"
    assert set(curve.to_frame()["level"]) == {"Ulm", "Bonn", "Kiel", "missing", "any other"}


def test_the_uniform_law_on_a_boosting_machine():
    data = X[["size", "age"]]
    model = boosting_machine("Regressor", "number", data)
    got = MeasureExplainer(model, Uniform()).fit(data).explain(data[:3]).values[:, 0]
    low, high = data["age"].min(), data["age"].max()
    cuts = model.bins_[1][0]
    ends = np.r_[low, cuts[(low < cuts) & (cuts < high)], high]
    middle = ends[:-1] + np.diff(ends) / 2
    for i in range(3):
        rows = pd.DataFrame({"size": data["size"].iloc[i], "age": middle})
        wanted = np.diff(ends) @ model.predict(rows) / (high - low)
        np.testing.assert_allclose(got[i], wanted, rtol=1e-10)


def test_interactions_are_named():
    model = boosting_machine("Regressor", "number", interactions=[("age", "size")])
    explainer = MeasureExplainer(model, "partial_dependence").fit(GAPS[:5])
    assert explainer.engine_ == ("finite_sum",)
    assert "age & size" in explainer.describe()
