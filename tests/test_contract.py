"""The contract: scikit-learn's, and the promises that change no bit."""

import ast
import copy
import io
import pathlib
import pickle
import threading
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import estimator_checks

import skattr
import skattr.solution.read_model
from skattr import MeasureExplainer
from skattr.distributed import kinds
from skattr.measures import (
    Banzhaf,
    Baseline,
    Conditional,
    Dirac,
    Expectation,
    LinearCombination,
    PartialDependence,
    ProductMarginal,
    Shapley,
    Uniform,
)
from tests.helpers.lanes import quickly
from tests.helpers.processes import SECONDS, run_code, run_threads
from tests.helpers.random_cases import examples

EXTRA_CHECKS = [
    "check_dataframe_column_names_consistency",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_get_feature_names_out_error",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
]
PACKAGE = pathlib.Path(skattr.__file__).parent


def data(n=40, seed=0):
    """A frame of four numeric columns and a target."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)).round(1), columns=list("abcd"))
    y = X["a"] * X["b"] + np.sin(3 * X["c"]) + 0.1 * rng.normal(size=n)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def models():
    """A model of each kind: boxes of both libraries and two black boxes."""
    X, y = data()
    return {
        "forest": RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, y),
        "hist": HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(X, y),
        "classes": RandomForestClassifier(4, max_depth=3, random_state=0).fit(
            X, np.digitize(y, [-0.5, 0.5])
        ),
        "mlp": _mlp(X, y),
        "pipeline": make_pipeline(StandardScaler(), Ridge()).fit(X, y),
        "svr": SVR().fit(X, y),
        "vote": VotingRegressor(
            [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
        ).fit(X, y),
    }


def _mlp(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MLPRegressor(hidden_layer_sizes=(16,), max_iter=30, random_state=0).fit(X, y)


KINDS = ["forest", "hist", "classes", "mlp", "pipeline"]
SETTINGS = {
    "forest": {"measure": PartialDependence() - 0.5 * ProductMarginal() + Uniform()},
    "forest, group": {
        "measure": PartialDependence() - Uniform() + Dirac(),
        "groups": {"g": ["d", "a"]},
    },
    "hist": {"measure": PartialDependence() - Expectation()},
    "hist, group": {"measure": ProductMarginal() + Dirac(), "groups": {"g": ["b", "c", "a"]}},
    "classes, group": {"measure": PartialDependence(), "groups": {"g": ["b", "c"]}},
    "mlp": {"measure": PartialDependence()},
    "pipeline": {"measure": PartialDependence() - Expectation()},
    "pipeline, group": {"measure": PartialDependence(), "groups": {"g": ["b", "c"]}},
    "pipeline, dirac": {"measure": Dirac() - Expectation()},
    "forest, coalitions": {"measure": Shapley() - Banzhaf()},
    "forest, coalitions of laws": {"measure": Shapley(ProductMarginal()) - Banzhaf(Uniform())},
    "hist, coalitions of a group": {"measure": Shapley(), "groups": {"g": ["b", "c"]}},
    "classes, coalitions": {"measure": Banzhaf()},
    "pipeline, coalitions": {"measure": Shapley() - Banzhaf(ProductMarginal())},
    "svr, coalitions": {"measure": Shapley() - Banzhaf(ProductMarginal())},
    "svr, coalitions of a group": {"measure": Shapley(Uniform()), "groups": {"g": ["b", "c"]}},
    "vote, coalitions": {"measure": Shapley()},
    "mlp, coalitions": {"measure": Shapley() - Banzhaf()},
    "mlp, coalitions of neighbours": {"measure": Shapley(Conditional())},
    "mlp, some coalitions": {
        "measure": Shapley() - Banzhaf(ProductMarginal()),
        "engine": "sampled_coalitions",
        "tol": 0.5,
        "random_state": 0,
    },
}
QUICK = [
    "forest, group",
    "hist",
    "mlp",
    "pipeline, dirac",
    "classes, coalitions",
    "svr, coalitions",
]
ways = pytest.mark.parametrize("way", quickly(SETTINGS, QUICK))
BOXES = [way for way in SETTINGS if way.split(",")[0] in ("forest", "hist", "classes")]


def explainer_of(models, way, **changes):
    """A fitted explainer, its background the first 25 rows."""
    X, _ = data()
    w = np.arange(25) % 3
    model = models[way.split(",")[0]]
    return MeasureExplainer(model, **SETTINGS[way], **changes).fit(X[:25], sample_weight=w)


def bits(explanation):
    """All numbers of an explanation."""
    return [
        explanation.values,
        explanation.predictions,
        np.asarray(explanation.base_value),
        np.asarray(explanation.offset),
    ]


def assert_same_bits(one, other):
    for a, b in zip(bits(one), bits(other), strict=True):
        assert (a is None and b is None) or np.array_equal(a, b)
    assert one.feature_names == other.feature_names
    assert one.output_names == other.output_names


# -- scikit-learn's own checks -------------------------------------------------------------------

sklearn_models = pytest.mark.parametrize(
    "estimator", [DecisionTreeRegressor(random_state=0), Ridge()], ids=lambda e: type(e).__name__
)


@sklearn_models
@pytest.mark.filterwarnings("default")  # scikit-learn raises SkipTestWarning for pandas and arrays
def test_check_estimator(estimator):
    results = estimator_checks.check_estimator(MeasureExplainer(estimator), on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    passed = [r for r in results if r["status"] == "passed"]
    assert len(passed) > 30


@sklearn_models
@pytest.mark.parametrize("check", EXTRA_CHECKS)
@pytest.mark.filterwarnings("default:X (has|does not have valid) feature names")  # on purpose there
def test_checks_that_check_estimator_does_not_call(check, estimator):
    getattr(estimator_checks, check)("MeasureExplainer", MeasureExplainer(estimator))


def test_init_only_stores():
    groups, domain = {"g": ["a"]}, {"a": (0, 1)}
    kept = {
        "estimator": object(),
        "measure": 3,
        "output": "?",
        "engine": None,
        "groups": groups,
        "domain": domain,
        "tol": -1,
        "max_evals": "x",
        "random_state": "x",
        "n_jobs": 0,
        "device": "moon",
        "verbose": -1,
    }
    explainer = MeasureExplainer(
        kept["estimator"],
        kept["measure"],
        **{k: v for k, v in kept.items() if k not in ("estimator", "measure")},
    )
    for name, value in kept.items():
        assert getattr(explainer, name) is value


def test_bases():
    names = [base.__name__ for base in MeasureExplainer.__bases__]
    assert names == ["TransformerMixin", "MetaEstimatorMixin", "BaseEstimator"]


# -- what changes no bit -------------------------------------------------------------------------


@ways
def test_pickle_changes_no_bit(models, way):
    X, _ = data()
    explainer = explainer_of(models, way)
    again = pickle.loads(pickle.dumps(explainer))
    assert_same_bits(explainer.explain(X), again.explain(X))
    assert_same_bits(explainer.explain(X), copy.deepcopy(explainer).explain(X))


@ways
def test_clone_changes_no_bit(models, way):
    X, _ = data()
    model = FrozenEstimator(models[way.split(",")[0]])
    explainer = MeasureExplainer(model, **SETTINGS[way])
    copied = clone(explainer)
    assert copied is not explainer and repr(copied.measure) == repr(explainer.measure)
    with pytest.raises(NotFittedError):
        clone(explainer.fit(X)).explain(X)
    assert_same_bits(explainer.explain(X), copied.fit(X).explain(X))


@pytest.mark.parametrize("way", quickly(SETTINGS, ["forest, group", "pipeline, coalitions"]))
def test_skops_round_trip(models, way):
    skops_io = pytest.importorskip("skops.io")
    X, _ = data()
    for wrap in (lambda model: model, FrozenEstimator):
        model = wrap(models[way.split(",")[0]])
        explainer = MeasureExplainer(model, **SETTINGS[way]).fit(X[:25])
        stored = skops_io.dumps(explainer)
        trusted = skops_io.get_untrusted_types(data=stored)
        assert all(
            name.split(".")[0] in ("skattr", "sklearn", "numpy", "pandas") for name in trusted
        )
        assert_same_bits(explainer.explain(X), skops_io.loads(stored, trusted=trusted).explain(X))


def test_skops_round_trip_of_an_unfitted_explainer():
    skops_io = pytest.importorskip("skops.io")
    measure = PartialDependence() - 2 * Expectation("product")
    stored = skops_io.dumps(MeasureExplainer(Ridge(), measure, groups={"g": ["a"]}))
    again = skops_io.loads(stored, trusted=skops_io.get_untrusted_types(data=stored))
    assert repr(again.measure) == repr(measure) and again.groups == {"g": ["a"]}


@ways
def test_two_jobs_change_no_bit(models, way, monkeypatch):
    X = data(n=300)[0].round(0)
    one = explainer_of(models, way)
    two = explainer_of(models, way, n_jobs=2)
    monkeypatch.setattr(skattr.solution.read_model, "BLOCK", 1)
    assert_same_bits(one.explain(X), two.explain(X))


@ways
def test_chunks_change_no_bit(models, way, monkeypatch):
    X = data(n=300, seed=1)[0].round(0)  # a block has 256 rows at least
    explainer = explainer_of(models, way)
    whole = explainer.explain(X)
    monkeypatch.setattr(skattr.solution.read_model, "BLOCK", 1)
    assert_same_bits(whole, explainer.explain(X))
    assert np.array_equal(whole.values, pickle.loads(pickle.dumps(explainer)).explain(X).values)


@pytest.mark.parametrize("block", quickly([1, 7], [7]))
def test_chunks_of_a_few_rows_change_no_bit(models, block, monkeypatch):
    X, _ = data(seed=1)
    for way in BOXES:
        explainer = explainer_of(models, way)
        whole = explainer.explain(X)
        with monkeypatch.context() as patch:
            patch.setattr(
                skattr.solution.read_model.ReadModel,
                "blocks",
                lambda self, X: [slice(i, i + block) for i in range(0, len(X), block)],
            )
            assert_same_bits(whole, explainer.explain(X))


@ways
@examples(4)
@given(rows=st.lists(st.integers(0, 39), min_size=1, max_size=20))
@example(rows=[1])
@example(rows=list(range(39, -1, -1)))
def test_order_and_subset_of_rows_change_no_bit(models, way, rows):
    X, _ = data()
    if (way, "explained") not in models:
        explainer = explainer_of(models, way)
        models[way, "explained"] = explainer, explainer.explain(X).values
    explainer, whole = models[way, "explained"]
    found = explainer.explain(X.iloc[rows], predictions=False).values
    if way == "pipeline, dirac":  # its own predict rounds as its matrix products do
        np.testing.assert_allclose(whole[rows], found, rtol=1e-13, atol=1e-13)
    else:
        assert np.array_equal(whole[rows], found)
    assert np.array_equal(
        found.reshape(len(rows), -1, order="F"), explainer.transform(X.iloc[rows])
    )


@pytest.mark.parametrize("way", BOXES)
def test_predictions_of_boxes_do_not_depend_on_other_rows(models, way):
    X, _ = data()
    explainer = explainer_of(models, way)
    whole = explainer.explain(X).predictions
    assert np.array_equal(whole[[3, 1]], explainer.explain(X.iloc[[3, 1]]).predictions)


@ways
def test_features_change_no_bit(models, way):
    X, _ = data()
    explainer = explainer_of(models, way)
    whole = explainer.explain(X)
    for name in whole.feature_names:
        part = explainer.explain(X, features=[name])
        place = whole.feature_names.index(name)
        assert part.feature_names == (name,)
        assert np.array_equal(part.values[:, 0], whole.values[:, place])
    swapped = explainer.explain(X, features=whole.feature_names[::-1])
    assert np.array_equal(swapped.values, whole.values[:, ::-1])


@ways
def test_reordered_columns_are_realigned(models, way):
    X, _ = data()
    explainer = explainer_of(models, way)
    other = X[["c", "a", "d", "b"]]
    explanation = explainer.explain(other)
    assert_same_bits(explainer.explain(X), explanation)
    assert explanation.data is other
    with pytest.raises(ValueError, match="order"):
        explainer.transform(other)


@ways
def test_threads(models, way):
    X, _ = data(n=60, seed=2)
    fitted = explainer_of(models, way)
    wanted = fitted.explain(X)
    explainer = pickle.loads(pickle.dumps(fitted))  # pieces are read by whoever comes first
    start = threading.Barrier(4, timeout=SECONDS)
    found = [None] * 4

    def run(i):
        start.wait()
        found[i] = explainer.explain(X)

    run_threads([partial(run, i) for i in range(4)])
    for explanation in found:
        assert_same_bits(wanted, explanation)


@pytest.mark.parametrize("way", BOXES)
def test_order_of_the_background_changes_rounding_only(models, way):
    X, _ = data()
    model = models[way.split(",")[0]]
    one = MeasureExplainer(model, **SETTINGS[way]).fit(X).explain(X)
    other = MeasureExplainer(model, **SETTINGS[way]).fit(X[::-1]).explain(X)
    assert_allclose(one.values, other.values, rtol=1e-12, atol=1e-13)


# -- state ---------------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("kind", quickly(["pandas", "numpy"], ["pandas"]))
def test_the_background_is_copied(models, way, kind):
    X, _ = data()
    model = models[way.split(",")[0]]
    keep = dict(SETTINGS[way])
    if kind == "numpy":
        model = _on_array(model)
        if "groups" in keep:
            keep["groups"] = {"g": ["abcd".index(c) for c in keep["groups"]["g"]]}
    rows = X.copy() if kind == "pandas" else X.to_numpy().copy()
    explained = X if kind == "pandas" else X.to_numpy()
    weights = np.arange(len(rows)) % 4 + 1.0
    explainer = MeasureExplainer(model, **keep).fit(rows, sample_weight=weights)
    before = explainer.explain(explained).values
    weights[:] = 1.0
    if kind == "pandas":
        rows.loc[:, :] = 7.0
        rows.columns = list("wxyz")
    else:
        rows[:] = 7.0
    assert np.array_equal(before, explainer.explain(explained).values)
    fresh = pickle.loads(pickle.dumps(explainer))
    assert np.array_equal(before, fresh.explain(explained).values)


def _on_array(model):
    """The same model, fitted on arrays."""
    X, y = data()
    if hasattr(model, "classes_"):
        y = np.digitize(y, [-0.5, 0.5])
    if isinstance(model, MLPRegressor):
        return _mlp(X.to_numpy(), y)
    return clone(model).fit(X.to_numpy(), y)


@pytest.mark.parametrize("point", ["dict", "array"])
def test_the_point_of_a_baseline_is_read_in_fit(models, point):
    X, _ = data()
    values = dict.fromkeys("abcd", 0.5) if point == "dict" else np.full(4, 0.5)
    explainer = MeasureExplainer(models["forest"], Baseline(values)).fit(X)
    before = explainer.explain(X).values
    values["a" if point == "dict" else 0] = -3.0
    assert np.array_equal(before, explainer.explain(X).values)


@ways
def test_parameters_stay_as_they_were_given(models, way):
    X, _ = data()
    explainer = MeasureExplainer(models[way.split(",")[0]], **SETTINGS[way])
    before = repr(explainer.get_params())
    explainer.fit(X).explain(X)
    assert repr(explainer.get_params()) == before
    assert explainer.estimator_ is explainer.estimator  # never refitted, never copied


class TypesMet(pickle.Pickler):
    """Remembers the types of what it pickles, apart from the estimator."""

    def __init__(self, estimator):
        super().__init__(io.BytesIO())
        self.estimator = estimator
        self.met = set()

    def persistent_id(self, obj):
        self.met.add(obj if isinstance(obj, type) else type(obj))  # a class is kept by name
        return "estimator" if obj is self.estimator else None


@pytest.mark.parametrize("way", BOXES)
def test_the_state_holds_no_frame(models, way):
    explainer = explainer_of(models, way)
    explainer.explain(data()[0])
    pickler = TypesMet(explainer.estimator)
    pickler.dump(explainer)
    modules = {kind.__module__.split(".")[0] for kind in pickler.met}
    assert modules <= {"builtins", "numpy", "skattr", "sklearn"}, modules
    assert MeasureExplainer in pickler.met and np.ndarray in pickler.met
    assert not any("pieces_" in name or name == "_pieces" for name in explainer.__getstate__())


def test_types_met_would_find_a_frame():
    pickler = TypesMet(None)
    pickler.dump({"deep": [data()[0]]})
    assert pd.DataFrame in pickler.met


def test_explain_never_predicts_where_there_are_curves(models, monkeypatch):
    X, _ = data()
    for way in ("forest", "hist", "classes, group"):
        explainer = explainer_of(models, way)
        wanted = explainer.explain(X)
        estimator = explainer.estimator

        def refuse(*args, **kwargs):
            raise AssertionError("the model was called")

        with monkeypatch.context() as patch:
            for name in ("predict", "predict_proba", "decision_function", "_raw_predict"):
                if hasattr(estimator, name):
                    patch.setattr(type(estimator), name, refuse)
            found = explainer.explain(X, predictions=False)
            assert found.predictions is None
            assert np.array_equal(found.values, wanted.values)
            assert np.array_equal(
                explainer.transform(X).shape, (40, explainer.transform(X).shape[1])
            )
            with pytest.raises(AssertionError, match="the model was called"):
                explainer.explain(X)


def test_predictions_are_those_of_the_model(models):
    X, _ = data()
    assert np.array_equal(
        explainer_of(models, "forest").explain(X).predictions, models["forest"].predict(X)
    )
    assert np.array_equal(
        explainer_of(models, "classes, group").explain(X).predictions,
        models["classes"].predict_proba(X),
    )


# -- fit, partial_fit ----------------------------------------------------------------------------


def test_an_unfitted_estimator_is_cloned_and_fitted():
    X, y = data()
    tree = DecisionTreeRegressor(random_state=0)
    explainer = MeasureExplainer(tree).fit(X, y)
    assert explainer.estimator is tree and not hasattr(tree, "tree_")
    assert np.array_equal(explainer.estimator_.predict(X), y)


def test_the_clone_gets_the_weights():
    X, y = data()
    weights = np.r_[np.ones(20), np.zeros(20)]
    explainer = MeasureExplainer(LinearRegression()).fit(X, y, sample_weight=weights)
    assert_allclose(explainer.estimator_.coef_, LinearRegression().fit(X[:20], y[:20]).coef_)


def test_partial_fit_is_hidden_while_the_estimator_is_not_fitted():
    X, y = data()
    explainer = MeasureExplainer(DecisionTreeRegressor())
    assert not hasattr(explainer, "partial_fit")
    with pytest.raises(AttributeError) as error:
        explainer.partial_fit(X)
    assert "needs a fitted estimator" in f"{error.value} {error.value.__cause__}"
    assert hasattr(MeasureExplainer(DecisionTreeRegressor().fit(X, y)), "partial_fit")


def test_partial_fit_is_hidden_where_a_term_does_not_add_up():
    X, y = data()

    class Stubborn(PartialDependence):
        adds_up = False

    explainer = MeasureExplainer(DecisionTreeRegressor().fit(X, y), Dirac() - Stubborn())
    assert not hasattr(explainer, "partial_fit")
    with pytest.raises(AttributeError) as error:
        explainer.partial_fit(X)
    assert "Stubborn" in f"{error.value} {error.value.__cause__}"


IN_BATCHES = [way for way in SETTINGS if "coalitions" in way and "neighbours" not in way]


@pytest.mark.parametrize(
    "way", quickly(["forest", "hist, group", "pipeline", *IN_BATCHES], ["hist, group", *QUICK])
)
def test_batches_are_one_fit(models, way):
    X, _ = data()
    model = models[way.split(",")[0]]
    one = MeasureExplainer(model, **SETTINGS[way]).fit(X)
    several = MeasureExplainer(model, **SETTINGS[way])
    for rows in (slice(1), slice(1, 20), slice(20, 40)):
        several.partial_fit(X[rows])
    assert_allclose(several.explain(X).values, one.explain(X).values, rtol=1e-11, atol=1e-12)
    assert_allclose(several.base_value_, one.base_value_, rtol=1e-12)


@pytest.mark.parametrize("unit", quickly(["s", "us", "ns"], ["us"]))
@pytest.mark.parametrize("measure", quickly(["partial_dependence", "main_effect"], ["main_effect"]))
def test_batches_of_dates(unit, measure):
    rng = np.random.default_rng(0)
    start = np.datetime64("2024-01-01", unit)
    days = start + rng.integers(0, 10**7, 60).astype("m8[s]").astype(f"m8[{unit}]")
    X = pd.DataFrame({"a": rng.normal(size=60), "day": pd.Series(days), "unused": pd.Series(days)})

    def model(X):
        return X["a"].to_numpy() * (X["day"].to_numpy() - start) / np.timedelta64(1, "D")

    whole = MeasureExplainer(model, measure).fit(X)
    batches = MeasureExplainer(model, measure)
    for begin in range(0, 60, 15):
        batches.partial_fit(X[begin : begin + 15])
        assert batches.curve("day").to_frame()["x"].dtype == X["day"].dtype
    pd.testing.assert_frame_equal(
        batches.curve("day").to_frame(), whole.curve("day").to_frame(), atol=1e-9
    )
    assert_allclose(batches.explain(X).values, whole.explain(X).values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["kernel", "knn"])
def test_the_conditional_curve_of_dates_that_the_model_does_not_read(kind):
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01", "s") + rng.integers(0, 10**7, 60).astype("m8[s]")
    X = pd.DataFrame({"a": rng.normal(size=60), "day": pd.Series(days)})
    columns = make_column_transformer(("passthrough", ["a"]))
    tree = make_pipeline(columns, DecisionTreeRegressor(max_depth=3)).fit(X, X["a"])
    explainer = MeasureExplainer(tree, Conditional(kind)).fit(X)
    frame = explainer.curve("day").to_frame()
    row = frame.set_index("x").loc[X["day"], "value"].to_numpy()
    np.testing.assert_allclose(row, explainer.explain(X).values[:, 1], rtol=1e-12)


def test_a_failed_batch_changes_nothing(models):
    X, _ = data()
    explainer = explainer_of(models, "forest")
    before = explainer.explain(X)
    for bad, weight in (
        (X[["b", "a", "c", "d"]], None),
        (X, np.zeros(40)),
        (X[:0], None),
        (X.assign(a="x"), None),
    ):
        with pytest.raises(ValueError):
            explainer.partial_fit(bad, sample_weight=weight)
        assert_same_bits(before, explainer.explain(X))


def test_a_failed_fit_leaves_nothing_half_done(models):
    X, _ = data()
    explainer = explainer_of(models, "forest")
    explainer.set_params(groups={"g": ["a", "nowhere"]})
    with pytest.raises(ValueError, match="nowhere"):
        explainer.fit(X)
    for use in (
        lambda: explainer.explain(X),
        lambda: explainer.transform(X),
        lambda: explainer.curve("a"),
        lambda: explainer.describe(),
        lambda: explainer.get_feature_names_out(),
    ):
        with pytest.raises(NotFittedError):
            use()
    explainer.set_params(groups=None).fit(X[:25], sample_weight=np.arange(25) % 3)
    assert_same_bits(explainer.explain(X), explainer_of(models, "forest").explain(X))


def test_a_second_fit_forgets_the_first(models):
    X, _ = data()
    other, _ = data(seed=5)
    explainer = MeasureExplainer(models["forest"]).fit(other)
    assert_same_bits(
        explainer.fit(X).explain(X), MeasureExplainer(models["forest"]).fit(X).explain(X)
    )


def test_attributes_after_fit(models):
    X, _ = data()
    explainer = explainer_of(models, "classes, group")
    assert explainer.n_features_in_ == 4
    assert list(explainer.feature_names_in_) == list("abcd")
    assert explainer.output_names_ == ["0", "1", "2"]
    assert explainer.exact_ is True and len(explainer.engine_) == 1
    weights = np.arange(25) % 3
    mean = np.average(models["classes"].predict_proba(X[:25]), axis=0, weights=weights)
    assert_allclose(explainer.base_value_, mean, rtol=1e-12)
    assert "RandomForestClassifier" in explainer.describe()


# -- containers ----------------------------------------------------------------------------------


def test_duplicated_index(models):
    X, _ = data()
    wanted = explainer_of(models, "forest").explain(X).values
    double = X.set_index(np.repeat([3, 7], 20))
    explainer = MeasureExplainer(models["forest"], **SETTINGS["forest"])
    explainer.fit(double[:25], sample_weight=np.arange(25) % 3)
    explanation = explainer.explain(double)
    assert np.array_equal(explanation.values, wanted)
    assert explanation.to_frame().index.equals(double.index)


def test_duplicated_index_on_a_black_box(models):
    X, _ = data()
    wanted = explainer_of(models, "pipeline").explain(X).values
    double = X.set_index(np.repeat([3, 7], 20))
    explainer = MeasureExplainer(models["pipeline"], **SETTINGS["pipeline"])
    explainer.fit(double[:25], sample_weight=np.arange(25) % 3)
    assert np.array_equal(explainer.explain(double).values, wanted)


@pytest.mark.parametrize("kind", ["forest", "pipeline"])
def test_integer_column_names(models, kind):
    X, y = data()
    integers = X.set_axis([2, 0, 3, 1], axis=1)
    model = clone(models[kind]).fit(integers, y)
    explainer = MeasureExplainer(model, groups={"g": [3, 1]}).fit(integers)
    explanation = explainer.explain(integers)
    assert explanation.feature_names == (2, 0, "g")
    assert list(explanation.to_frame().columns) == [2, 0, "g"]
    # a name comes before a position
    assert np.array_equal(
        explainer.explain(integers, features=[0]).values[:, 0], explanation.values[:, 1]
    )
    assert np.array_equal(explainer.curve(2)(X["a"]), explanation.values[:, 0])
    moved = explainer.explain(integers[[0, 1, 2, 3]])
    assert np.array_equal(moved.values, explanation.values)


def test_positions_where_no_column_has_the_name(models):
    X, _ = data()
    explainer = explainer_of(models, "forest")
    assert explainer.curve(2).feature == "c"
    assert explainer.explain(X, features=[3, "a"]).feature_names == ("d", "a")


@pytest.fixture
def no_pandas_for_polars(monkeypatch):
    """Polars frames cannot become pandas frames."""

    def refuse(*args, **kwargs):
        raise AssertionError("to_pandas was called")

    monkeypatch.setattr(pl.DataFrame, "to_pandas", refuse)
    monkeypatch.setattr(pl.Series, "to_pandas", refuse)


@ways
@pytest.mark.usefixtures("no_pandas_for_polars")
def test_polars_gives_what_pandas_gives(models, way):
    X, _ = data()
    polars = pl.DataFrame({name: X[name].to_numpy() for name in X})
    wanted = explainer_of(models, way).explain(X)
    explainer = MeasureExplainer(models[way.split(",")[0]], **SETTINGS[way])
    explainer.fit(polars[:25], sample_weight=np.arange(25) % 3)
    found = explainer.explain(polars)
    assert_same_bits(wanted, found)
    assert found.data is polars
    assert_same_bits(wanted, explainer.explain(polars.select("d", "b", "a", "c")))


@pytest.mark.usefixtures("no_pandas_for_polars")
def test_polars_categories():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"n": rng.normal(size=50), "c": rng.choice(["u", "v", "w"], 50)})
    X = X.with_columns(pl.col("c").cast(pl.Categorical))
    y = X["n"].to_numpy() + (X["c"] == "v").to_numpy()
    model = HistGradientBoostingRegressor(
        max_iter=5, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(X, y)
    for measure in (PartialDependence(), ProductMarginal(), Uniform(), Dirac()):
        assert MeasureExplainer(model, measure).fit(X).explain(X).values.shape == (50, 2)
    curve = MeasureExplainer(model).fit(X).curve("c")
    assert curve.kind == "levels"
    assert_allclose(curve(X["c"]), MeasureExplainer(model).fit(X).explain(X).values[:, 1])


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(models, container):
    X, _ = data()
    explainer = explainer_of(models, "forest, group").set_output(transform=container)
    table = explainer.transform(X)
    assert type(table).__module__.startswith(container)
    assert list(table.columns) == ["g", "b", "c"] == list(explainer.get_feature_names_out())
    assert np.array_equal(table.to_numpy(), explainer.explain(X).values)


@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
def test_transform_of_several_outputs(models, container):
    X, _ = data()
    explainer = explainer_of(models, "classes, group").set_output(transform=container)
    names = [f"{output}__{name}" for output in "012" for name in ("a", "g", "d")]
    assert list(explainer.get_feature_names_out()) == names
    table = explainer.transform(X)
    if container != "default":
        assert list(table.columns) == names
    values = explainer.explain(X).values
    for i, column in enumerate(np.asarray(table).T):
        assert np.array_equal(column, values[:, i % 3, i // 3])


def test_names_of_outputs():
    X, y = data()
    words = np.where(y > 0, "yes", "no")
    forest = RandomForestClassifier(2, random_state=0)

    def found(target, **more):
        return MeasureExplainer(forest, **more).fit(X, target).output_names_

    assert found(words) == ["yes"]
    assert found(np.digitize(y, [-1, 1])) == ["0", "1", "2"]
    assert found(np.c_[words, words]) == ["y0__yes", "y1__yes"]
    assert MeasureExplainer(DecisionTreeRegressor()).fit(X, y).output_names_ == ["prediction"]
    assert MeasureExplainer(DecisionTreeRegressor()).fit(X, np.c_[y, y]).output_names_ == [
        "y0",
        "y1",
    ]
    boosting = GradientBoostingClassifier(n_estimators=2)
    explainer = MeasureExplainer(boosting).fit(X, words)
    assert explainer.output_names_ == ["yes"]
    assert np.array_equal(
        explainer.explain(X).predictions, explainer.estimator_.decision_function(X)
    )


def test_wrappers_are_looked_through(models):
    X, y = data()
    wanted = MeasureExplainer(models["forest"], "partial_dependence").fit(X).explain(X)
    search = GridSearchCV(RandomForestRegressor(5, random_state=0), {"max_depth": [4]}, cv=2).fit(
        X, y
    )
    for wrapped in (search, FrozenEstimator(models["forest"]), FrozenEstimator(search)):
        explainer = MeasureExplainer(wrapped, "partial_dependence").fit(X)
        assert explainer.engine_ == ("one_violation",)
        assert_same_bits(wanted, explainer.explain(X))


def test_votes_of_two_libraries_are_boxes():
    X, y = data()
    vote = VotingRegressor(
        [
            ("forest", RandomForestRegressor(3, random_state=0)),
            ("hist", HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3)),
        ],
        weights=[1, 2],
    ).fit(X, y)
    exact = MeasureExplainer(vote, "partial_dependence").fit(X)
    brute = MeasureExplainer(vote, "partial_dependence", engine="finite_sum").fit(X)
    assert exact.engine_ == ("one_violation",) and brute.engine_ == ("finite_sum",)
    assert_allclose(exact.explain(X).values, brute.explain(X).values, rtol=1e-11, atol=1e-12)


# -- measures ------------------------------------------------------------------------------------

leaves = st.sampled_from(
    [
        PartialDependence(),
        ProductMarginal(),
        Uniform(),
        Dirac(),
        Expectation(),
        Expectation("product"),
        Expectation("uniform"),
        Baseline([0.0, 1.0]),
    ]
)
numbers = st.sampled_from([1.0, -1.0, 2.0, -0.5, 3.0])


@st.composite
def combinations(draw, depth=3):
    """A measure made by the algebra, and its terms by hand."""
    step = draw(st.sampled_from(["leaf", "+", "-", "*", "neg"])) if depth else "leaf"
    if step == "leaf":
        measure = draw(leaves)
        return measure, [(1.0, measure)]
    a, terms = draw(combinations(depth - 1))
    if step == "*":
        factor = draw(numbers)
        return factor * a, [(factor * c, m) for c, m in terms]
    if step == "neg":
        return -a, [(-c, m) for c, m in terms]
    b, others = draw(combinations(depth - 1))
    if step == "+":
        return a + b, terms + others
    return a - b, terms + [(-c, m) for c, m in others]


@examples(60)
@given(tree=combinations())
def test_the_algebra_is_flat_clonable_and_printable(tree):
    measure, terms = tree
    found = measure.terms if isinstance(measure, LinearCombination) else [(1.0, measure)]
    assert [c for c, _ in found] == [c for c, _ in terms]
    assert all(a is b for (_, a), (_, b) in zip(found, terms, strict=True))
    copied = clone(measure)
    assert repr(copied) == repr(measure)
    names = {
        "PartialDependence": PartialDependence,
        "ProductMarginal": ProductMarginal,
        "Uniform": Uniform,
        "Dirac": Dirac,
        "Expectation": Expectation,
        "Baseline": Baseline,
    }
    again = eval(repr(measure), names)
    assert repr(again) == repr(measure)
    assert repr(pickle.loads(pickle.dumps(measure))) == repr(measure)


def test_repr():
    measure = PartialDependence() - 0.5 * Expectation("product") + Dirac() * 2
    assert repr(measure) == "PartialDependence() - 0.5 * Expectation(law='product') + 2 * Dirac()"
    assert repr(-Dirac()) == "-Dirac()"
    assert repr(1 * Dirac()) == "Dirac()"


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), np.int8(2), 2, 2.0])
def test_numpy_scalars_multiply_from_both_sides(number):
    for measure in (number * Dirac(), Dirac() * number):
        assert isinstance(measure, LinearCombination)
        assert repr(measure) == "2 * Dirac()"
        assert type(measure.terms[0][0]) is float
    assert repr(Dirac() / number) == "0.5 * Dirac()"


def test_sums_of_lists():
    one, two, three = PartialDependence(), Uniform(), Dirac()
    total = sum([one, two, three])
    assert [m for _, m in total.terms] == [one, two, three]
    assert sum([one]) is one


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Dirac() * "2",
        lambda: Dirac() * Dirac(),
        lambda: Dirac() + 1,
        lambda: 1 + Dirac(),
        lambda: Dirac() - 1,
        lambda: np.ones(3) * Dirac(),
        lambda: Dirac() * np.ones(3),
        lambda: Dirac() / Dirac(),
        lambda: Dirac() * 1j,
        lambda: np.ones(3) + Dirac(),
    ],
)
def test_what_is_no_linear_combination_raises(wrong):
    with pytest.raises(TypeError):
        wrong()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_coefficients_are_finite(number):
    with pytest.raises(ValueError, match=str(number)):
        number * Dirac()
    X, y = data()
    tree = DecisionTreeRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"coefficient|multiplied"):
        MeasureExplainer(tree, LinearCombination([(number, Dirac())])).fit(X)


@pytest.mark.parametrize(
    "terms", [[], [Dirac()], [(1.0, "dirac")], [("x", Dirac())], None, [(1, 2, 3)]]
)
def test_terms_that_are_none(terms):
    X, y = data()
    explainer = MeasureExplainer(DecisionTreeRegressor().fit(X, y), LinearCombination(terms))
    with pytest.raises((TypeError, ValueError), match=r"term|coefficient"):
        explainer.fit(X)


def test_nested_parameters():
    X, y = data()
    explainer = MeasureExplainer(
        DecisionTreeRegressor(random_state=0).fit(X, y), Expectation() - PartialDependence()
    )
    params = explainer.get_params()
    assert params["measure__term0__law"] == "joint"
    assert params["measure__coefficient1"] == -1.0
    explainer.set_params(measure__term0__law="product", measure__coefficient1=-3.0)
    assert repr(explainer.measure) == "Expectation(law='product') - 3 * PartialDependence()"
    wanted = MeasureExplainer(explainer.estimator, Expectation("product") - 3 * PartialDependence())
    assert_same_bits(explainer.fit(X).explain(X), wanted.fit(X).explain(X))
    explainer.set_params(measure__term1=Dirac())
    assert repr(explainer.measure) == "Expectation(law='product') - 3 * Dirac()"
    explainer.set_params(measure__term1=Expectation(), measure__term1__law="uniform")
    assert repr(explainer.measure.terms[1][1]) == "Expectation(law='uniform')"


def test_set_params_of_a_copy_leaves_the_original():
    measure = PartialDependence() - Expectation()
    clone(measure).set_params(term1__law="uniform", coefficient0=4.0)
    assert repr(measure) == "PartialDependence() - Expectation()"


@pytest.mark.parametrize(
    "name", ["term7", "term0__law", "coefficient0__x", "nothing", "term7__law"]
)
def test_unknown_nested_parameters(name):
    with pytest.raises(ValueError, match=name.rpartition("__")[2]):
        (PartialDependence() - Expectation()).set_params(**{name: "joint"})


def test_nested_combinations_are_flattened(models):
    X, _ = data()
    inner = LinearCombination([(2.0, PartialDependence()), (-1.0, Expectation())])
    nested = LinearCombination([(3.0, inner), (1.0, Dirac())])
    flat = 6 * PartialDependence() - 3 * Expectation() + Dirac()
    one, other = (MeasureExplainer(models["forest"], m).fit(X).explain(X) for m in (nested, flat))
    assert_same_bits(one, other)


def test_measures_are_not_fitted_by_the_explainer(models):
    X, _ = data()
    measure = PartialDependence()
    explainer = MeasureExplainer(models["forest"], measure).fit(X)
    assert explainer.measure is measure and not vars(measure)
    assert explainer.measure_ is not measure


def test_names_of_measures(models):
    X, _ = data()
    for name, measure in (
        ("partial_dependence", PartialDependence()),
        ("uniform", Uniform()),
        ("product_marginal", ProductMarginal()),
        ("expectation", Expectation()),
    ):
        one = MeasureExplainer(models["forest"], name).fit(X).explain(X)
        assert_same_bits(one, MeasureExplainer(models["forest"], measure).fit(X).explain(X))


# -- imports -------------------------------------------------------------------------------------

OPTIONAL = [
    "torch",
    "xgboost",
    "lightgbm",
    "catboost",
    "matplotlib",
    "jinja2",
    "polars",
    "skops",
    "shap",
    "hypothesis",
]


@pytest.mark.slow
def test_import_without_what_is_optional():
    program = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError("blocked " + name, name=name)
sys.meta_path.insert(0, Blocked())
import skattr, skattr.measures, skattr.engines, skattr.pieces
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
X = [[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]]
tree = DecisionTreeRegressor().fit(X, [1.0, 2.0, 4.0])
explainer = skattr.MeasureExplainer(tree).fit(X)
explainer.explain(X).to_frame()
skattr.MeasureExplainer(tree.predict).fit(X).explain(X)
skattr.MeasureExplainer(tree.predict, verbose=1).fit(X).explain(X)
"""
    done = run_code(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_optional_libraries_are_imported_late():
    # an adapter of a kind of frame is itself imported when it meets such a frame
    adapters = {PACKAGE / "distributed" / f"{kind.module}.py" for kind in kinds.KINDS}
    for path in {*PACKAGE.rglob("*.py")} - adapters:
        for node in ast.parse(path.read_text()).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & set(OPTIONAL), path
