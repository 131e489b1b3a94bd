"""Bad input gets an error that names the column, the parameter or the option."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skattr import MeasureExplainer, axioms, metrics, write_report
from skattr.measures import (
    Baseline,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Uniform,
)
from tests.helpers.lanes import quickly

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(30, 3)), columns=["age", "height", "weight"])
Y = (X["age"] * X["height"] - X["weight"]).to_numpy()
LABELS = np.where(Y > 0, "yes", "no")
TREE = DecisionTreeRegressor(random_state=0, max_depth=4).fit(X, Y)
RIDGE = Ridge().fit(X, Y)
NEAREST = KNeighborsRegressor(3).fit(X, Y)  # a black box
MODELS = {
    "tree": TREE,
    "forest": RandomForestRegressor(3, random_state=0).fit(X, Y),
    "boosting": GradientBoostingRegressor(n_estimators=3).fit(X, Y),
    "hist": HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3).fit(X, Y),
    "bagging": BaggingRegressor(n_estimators=2, random_state=0).fit(X, Y),
    "ridge": RIDGE,
}
READ = ["tree", "forest", "boosting", "hist", "bagging"]
every_model = pytest.mark.parametrize("name", MODELS)


def refused(*words, kind=ValueError):
    """Expect an error whose message has all the words."""
    return pytest.raises(kind, match="(?s)" + "".join(f"(?=.*{re.escape(w)})" for w in words))


def levels_model(dtype="category"):
    """A model with a column of levels, and its data."""
    frame = pd.DataFrame(
        {
            "age": X["age"],
            "town": pd.Series(np.tile(["ulm", "bonn", "kiel"], 10)).astype(dtype),
        }
    )
    model = HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=3, categorical_features=["town"]
    )
    return model.fit(frame, Y), frame


# -- the model -----------------------------------------------------------------------------------


def test_unfitted_without_y():
    with refused("DecisionTreeRegressor", "y", "FrozenEstimator", kind=NotFittedError):
        MeasureExplainer(DecisionTreeRegressor()).fit(X)


def test_not_fitted_explainer():
    explainer = MeasureExplainer(TREE)
    for use in (
        lambda: explainer.explain(X),
        lambda: explainer.transform(X),
        explainer.describe,
        lambda: explainer.curve("age"),
        explainer.get_feature_names_out,
        lambda: explainer.pieces_,
    ):
        with refused("MeasureExplainer", kind=NotFittedError):
            use()


@pytest.mark.parametrize("thing", [3, "model", None, object(), {}, [TREE]])
def test_an_object_that_is_no_model(thing):
    with refused(type(thing).__name__, "model", kind=TypeError):
        MeasureExplainer(thing).fit(X)


def test_a_transformer_is_no_model():
    with refused("StandardScaler", kind=TypeError) as error:
        MeasureExplainer(StandardScaler().fit(X)).fit(X)
    assert "predict" in str(error.value)


def test_a_class_is_no_model():
    with refused("RandomForestRegressor", "instance", kind=TypeError):
        MeasureExplainer(RandomForestRegressor).fit(X, Y)


@pytest.mark.parametrize(
    "answer",
    [
        lambda Z: 1.0,
        lambda Z: None,
        lambda Z: np.repeat("a", len(Z)),
        lambda Z: np.ones(1),
    ],
    ids=["scalar", "none", "strings", "too few"],
)
def test_functions_that_return_no_numbers_for_the_rows(answer):
    def my_function(Z):
        return answer(Z)

    with refused("my_function", kind=(TypeError, ValueError)):
        MeasureExplainer(my_function).fit(X)


# -- columns -------------------------------------------------------------------------------------


def frames_of(bad):
    """The same columns in pandas and polars."""
    return [bad, pl.DataFrame({c: bad[c].to_numpy() for c in bad})]


@every_model
def test_missing_extra_and_renamed_columns(name):
    explainer = MeasureExplainer(MODELS[name]).fit(X)
    for bad in frames_of(X.drop(columns="height")):
        for method in (explainer.explain, explainer.transform, explainer.partial_fit):
            with refused("height"):
                method(bad)
    for bad in frames_of(X.assign(shoe=1.0)):
        for method in (explainer.explain, explainer.transform, explainer.partial_fit):
            with refused("shoe"):
                method(bad)
    for bad in frames_of(X.rename(columns={"height": "Height"})):
        for method in (explainer.explain, explainer.transform, explainer.partial_fit):
            with refused("height", "Height"):
                method(bad)


@every_model
def test_reordered_columns_are_refused_by_transform_and_partial_fit(name):
    explainer = MeasureExplainer(MODELS[name]).fit(X)
    for bad in frames_of(X[["weight", "age", "height"]]):
        for method in (explainer.transform, explainer.partial_fit):
            with refused("order"):
                method(bad)


@every_model
def test_a_background_with_other_columns_than_the_model_knows(name):
    with refused("height"):
        MeasureExplainer(MODELS[name]).fit(X.rename(columns={"height": "Height"}))
    with refused("order"):
        MeasureExplainer(MODELS[name]).fit(X[["weight", "age", "height"]])


def test_wrong_number_of_columns_in_an_array():
    tree = DecisionTreeRegressor().fit(X.to_numpy(), Y)
    explainer = MeasureExplainer(tree).fit(X.to_numpy())
    for method in (explainer.explain, explainer.transform, explainer.partial_fit):
        with refused("2 features", "3 features"):
            method(X.to_numpy()[:, :2])


def test_columns_that_stand_twice():
    with refused("age"):
        MeasureExplainer(len).fit(pd.concat([X, X[["age"]]], axis=1))


@pytest.mark.parametrize("name", READ)
def test_wrong_dtype_names_the_column(name):
    explainer = MeasureExplainer(MODELS[name]).fit(X)
    bad = X.assign(height="tall")
    for use in (
        lambda: explainer.explain(bad, predictions=False),
        lambda: explainer.transform(bad),
        lambda: MeasureExplainer(MODELS[name]).fit(bad),
    ):
        with refused("height"):
            use()
    with refused("height"):
        explainer.curve("height")(["tall"])


@every_model
@pytest.mark.parametrize(
    "bad",
    [
        np.array(1.0),
        X["age"],
        X["age"].to_numpy(),
        X["age"].tolist(),
        pl.Series([1.0, 2.0]),
    ],
    ids=["scalar", "Series", "array", "list", "polars"],
)
def test_one_dimensional(name, bad):
    model = clone(MODELS[name]).fit(X.to_numpy(), Y)
    wanted = "rows and columns" if np.ndim(bad) else "2D"
    with refused(wanted, "Reshape your data"):
        MeasureExplainer(model).fit(bad)
    with refused(wanted, "Reshape your data"):
        MeasureExplainer(model).fit(X.to_numpy()).explain(bad)


@pytest.mark.parametrize("model", [TREE, RIDGE, lambda Z: np.ones(len(Z))])
def test_no_rows_or_no_columns(model):
    polars = pl.DataFrame({c: X[c].to_numpy() for c in X})
    for bad in (X[:0], polars[:0]):
        with refused("0 sample"):
            MeasureExplainer(model).fit(bad)
        with refused("0 sample"):
            MeasureExplainer(model).fit(X).explain(bad)
    with refused("0 sample"):
        MeasureExplainer(model).fit(X.to_numpy()[:0])
    for bad in (X[[]], X.to_numpy()[:, :0]):
        with refused("0 feature"):
            MeasureExplainer(model).fit(bad)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_sparse(kind):
    tree = DecisionTreeRegressor().fit(X.to_numpy(), Y)
    explainer = MeasureExplainer(tree)
    bad = kind(X.to_numpy())
    for use in (lambda: explainer.fit(bad), lambda: explainer.fit(X.to_numpy()).explain(bad)):
        with refused("parse", kind=(TypeError, ValueError)):
            use()


def test_lazy_frames_are_refused_by_name():
    with refused("LazyFrame", kind=(TypeError, ValueError)):
        MeasureExplainer(TREE).fit(pl.LazyFrame({c: X[c].to_numpy() for c in X}))


# -- values that predict refuses -----------------------------------------------------------------


def other_values(value, column="height"):
    bad = X.copy()
    bad.loc[3, column] = value
    return bad


REFUSING = {
    "forest": MODELS["forest"],
    "tree": TREE,
    "boosting": MODELS["boosting"],
    "extra": ExtraTreesRegressor(2, random_state=0).fit(X, Y),
    "bagging": MODELS["bagging"],
    "voting": VotingRegressor([("f", MODELS["forest"]), ("h", MODELS["hist"])]).fit(X, Y),
}


overflow = pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # scikit-learn's cast


@overflow
@pytest.mark.parametrize("value", quickly([np.inf, -np.inf, 1e39, -1e300], [np.inf, 1e39]))
@pytest.mark.parametrize("name", REFUSING)
def test_lookups_refuse_what_is_infinite_for_predict(name, value):
    model = REFUSING[name]
    bad = other_values(value)
    with pytest.raises(ValueError):
        model.predict(bad)
    explainer = MeasureExplainer(model).fit(X)
    for use in (
        lambda: explainer.explain(bad, predictions=False),
        lambda: explainer.transform(bad),
        lambda: explainer.explain(bad, features=["age"], predictions=False),
        lambda: MeasureExplainer(model).fit(bad),
        lambda: explainer.partial_fit(bad),
    ):
        with refused("infin"):
            use()


@pytest.mark.parametrize("value", quickly([np.inf, -np.inf, 1e39, -1e300], [np.inf, 1e39]))
@pytest.mark.parametrize("name", REFUSING)
def test_curves_refuse_what_is_infinite_for_predict(name, value):
    curve = MeasureExplainer(REFUSING[name]).fit(X).curve("height")
    with refused("height"):
        curve([0.0, value])


@pytest.mark.parametrize("model", [MODELS["boosting"], RIDGE])
def test_missing_values_where_the_model_takes_none(model):
    bad = other_values(np.nan)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(bad)
    explainer = MeasureExplainer(model).fit(X)
    for use in (
        lambda: explainer.explain(bad, predictions=False),
        lambda: explainer.transform(bad),
        lambda: explainer.partial_fit(bad),
        lambda: MeasureExplainer(model).fit(bad),
    ):
        with refused("NaN", type(model).__name__):
            use()
    with pytest.raises(ValueError, match=r"height|NaN"):
        explainer.curve("height")([np.nan])


def test_missing_values_where_the_model_takes_none_in_arrays():
    for model in (MODELS["boosting"], RIDGE):
        fitted = clone(model).fit(X.to_numpy(), Y)
        explainer = MeasureExplainer(fitted).fit(X.to_numpy())
        with refused("NaN"):
            explainer.explain(other_values(np.nan).to_numpy(), predictions=False)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_what_predict_takes_is_taken(value):
    bad = other_values(value)
    MODELS["hist"].predict(bad)
    explanation = MeasureExplainer(MODELS["hist"]).fit(X).explain(bad, predictions=False)
    assert np.isfinite(explanation.values).all()


def test_unseen_category_where_the_model_has_no_place_for_it():
    _, frame = levels_model("str")
    model = make_pipeline(OneHotEncoder(), Ridge()).fit(frame[["town"]], Y)
    bad = frame[["town"]].replace("kiel", "rome")
    with pytest.raises(ValueError, match="rome"):
        model.predict(bad)
    explainer = MeasureExplainer(model).fit(frame[["town"]])
    with refused("rome"):
        explainer.explain(bad, predictions=False)
    with refused("rome"):
        explainer.curve("town")(["rome"])


def test_unseen_category_where_it_has_a_place():
    model, frame = levels_model()
    explainer = MeasureExplainer(model).fit(frame)
    bad = frame.assign(town=pd.Series(["rome"] * 30).astype("category"))
    found = explainer.explain(bad, predictions=False).values[:, 1]
    assert np.array_equal(found, explainer.curve("town")(bad["town"]))
    table = explainer.curve("town").to_frame().set_index("level")["value"]
    assert (found == table["any other"]).all()


@pytest.mark.parametrize("as_boxes", [True, False])
def test_a_category_that_the_background_does_not_declare(as_boxes):
    model, frame = levels_model()
    estimator = model if as_boxes else model.predict
    background = frame[frame["town"] != "kiel"]
    background = background.assign(town=background["town"].cat.remove_unused_categories())
    explainer = MeasureExplainer(estimator).fit(background)
    rows = frame[frame["town"] == "kiel"]
    wanted = explainer.explain(rows, predictions=False).values[:, 1]
    assert np.array_equal(explainer.curve("town")(rows["town"]), wanted)


# -- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights, word",
    [
        (np.zeros(30), "zero"),
        (-np.ones(30), "negative"),
        (np.r_[-1.0, np.ones(29)], "negative"),
        (np.r_[np.nan, np.ones(29)], "NaN"),
        (np.r_[np.inf, np.ones(29)], "infin"),
        (np.ones(29), "(30,)"),
        (np.ones((30, 2)), "1D"),
    ],
)
@pytest.mark.parametrize("model", [TREE, RIDGE])
def test_weights(model, weights, word):
    explainer = MeasureExplainer(model)
    with pytest.raises(ValueError, match=rf"(?i)(?=.*weight)(?=.*{re.escape(word)})"):
        explainer.fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match=r"(?i)weight"):
        explainer.fit(X).partial_fit(X, sample_weight=weights)


# -- options -------------------------------------------------------------------------------------

MEASURE_NAMES = ["partial_dependence", "product_marginal", "uniform", "expectation", "shapley"]


@pytest.mark.parametrize("measure", ["shap", None, 3, ["uniform"], np.ones(2)])
def test_unknown_measure(measure):
    with refused("measure", *MEASURE_NAMES):
        MeasureExplainer(TREE, measure).fit(X)


@pytest.mark.parametrize("law", ["jiont", None, 3])
def test_unknown_law(law):
    with refused("law", repr(law), "joint", "product", "uniform"):
        MeasureExplainer(TREE, Expectation(law)).fit(X)


@pytest.mark.parametrize("engine", ["magic", None, 3])
@pytest.mark.parametrize("model", [TREE, RIDGE])
def test_unknown_engine(model, engine):
    with refused("engine", repr(engine), "auto", "exact", "one_violation", "finite_sum"):
        MeasureExplainer(model, engine=engine).fit(X)


def test_an_engine_that_serves_no_term():
    with refused("one_violation", "Dirac"):
        MeasureExplainer(TREE, Dirac(), engine="one_violation").fit(X)
    with refused("one_violation", "KNeighborsRegressor"):
        MeasureExplainer(NEAREST, engine="one_violation").fit(X)
    with refused("one_violation", "additive model"):
        MeasureExplainer(RIDGE, engine="one_violation").fit(X)
    with refused("additive", "1 tree"):
        MeasureExplainer(TREE, engine="additive").fit(X)


@pytest.mark.parametrize("measure", [Uniform(), Uniform() - Expectation("uniform")])
def test_no_exact_engine_prints_the_table(measure):
    with refused("engine", "KNeighbors", "| pieces", "one_violation", "additive", "finite_sum"):
        MeasureExplainer(NEAREST, measure, engine="exact").fit(X)


def test_auto_approximates_where_no_engine_is_exact():
    for measure in (Uniform(), Expectation("uniform")):
        assert not MeasureExplainer(NEAREST, measure, tol=0.5).fit(X).exact_
    for measure in (ProductMarginal(), Expectation("product")):  # too many combinations
        assert not MeasureExplainer(NEAREST, measure, tol=0.5, max_evals=500).fit(X).exact_


@pytest.mark.parametrize("output", ["logit", None, 3])
@pytest.mark.parametrize("model", [TREE, RIDGE, lambda Z: np.ones(len(Z))])
def test_unknown_output(model, output):
    with refused("output", repr(output), "auto", "raw", "proba", "predict"):
        MeasureExplainer(model, output=output).fit(X)


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_of_a_regressor(name):
    with refused("output='proba'", type(MODELS[name]).__name__, "predict"):
        MeasureExplainer(MODELS[name], output="proba").fit(X)


def test_labels_of_a_classifier():
    for model in (DecisionTreeClassifier(), RandomForestClassifier(2)):
        with refused("output='predict'", "proba"):
            MeasureExplainer(model.fit(X, LABELS), output="predict").fit(X)


def test_a_margin_that_is_not_there():
    with refused("output='raw'", "RandomForestClassifier", "decision_function"):
        MeasureExplainer(RandomForestClassifier(2).fit(X, LABELS), output="raw").fit(X)


@pytest.mark.parametrize("output", ["raw", "proba"])
def test_outputs_of_a_function(output):
    with refused(f"output='{output}'", "function"):
        MeasureExplainer(lambda Z: np.ones(len(Z)), output=output).fit(X)


@pytest.mark.parametrize("name", ["tol", "max_evals"])
@pytest.mark.parametrize("value", [0, -1, np.nan, "many", None, -np.inf])
def test_tol_and_max_evals(name, value):
    with refused(name, repr(value), "positive"):
        MeasureExplainer(TREE, **{name: value}).fit(X)


def test_random_state_and_device():
    with refused("random_state must be"):
        MeasureExplainer(TREE, random_state="x").fit(X)
    with refused("device", "cuda"):
        MeasureExplainer(TREE, device="cuda").fit(X)
    with refused("n_jobs"):
        MeasureExplainer(TREE, n_jobs=0).fit(X)


# -- groups, features, curves --------------------------------------------------------------------


@pytest.mark.parametrize(
    "groups, words, kind",
    [
        ({"g": ["age", "shoe"]}, ["groups", "'g'", "shoe", "height"], ValueError),
        ({"g": ["age", 7]}, ["groups", "'g'", "7"], ValueError),
        ({"g": ["age", "height"], "h": ["height"]}, ["groups", "height", "'g'", "'h'"], ValueError),
        ({"g": ["age", "age"]}, ["groups", "age"], ValueError),
        ({"g": ["age", 0]}, ["groups", "age"], ValueError),
        ({"g": []}, ["groups", "'g'"], ValueError),
        ({"g": "age"}, ["groups", "'g'", "list"], ValueError),
        ({"g": 3}, ["groups", "'g'"], (TypeError, ValueError)),
        ({"weight": ["age", "height"]}, ["groups", "weight"], ValueError),
        ([["age", "height"]], ["groups", "dict"], TypeError),
        ("age", ["groups", "dict"], TypeError),
    ],
)
@pytest.mark.parametrize("model", [TREE, RIDGE])
def test_groups(model, groups, words, kind):
    with refused(*words, kind=kind):
        MeasureExplainer(model, groups=groups).fit(X)


@pytest.mark.parametrize(
    "features, words",
    [
        (["shoe"], ["features", "shoe", "age"]),
        (["age", 7], ["features", "7"]),
        ("age", ["features", "age", "list"]),
        ([], ["features"]),
        (0, ["features", "0", "list"]),
        ([-1], ["features", "-1"]),
        ([None], ["features", "None"]),
        ([True], ["features", "True"]),
        ([0.5], ["features", "0.5"]),
    ],
)
@pytest.mark.parametrize("model", [TREE, RIDGE])
def test_features(model, features, words):
    explainer = MeasureExplainer(model).fit(X)
    with refused(*words, kind=(TypeError, ValueError)):
        explainer.explain(X, features=features)


def test_a_member_of_a_group_has_no_value_of_its_own():
    explainer = MeasureExplainer(TREE, groups={"g": ["age", "height"]}).fit(X)
    with refused("features", "age", "g"):
        explainer.explain(X, features=["age"])


def test_features_take_any_iterable():
    explainer = MeasureExplainer(TREE).fit(X)
    for features in (("age",), pd.Index(["age"]), np.array(["age"]), {"age"}, (c for c in ["age"])):
        assert explainer.explain(X, features=features).feature_names == ("age",)


@pytest.mark.parametrize("model", [TREE, RIDGE])
def test_curves(model):
    explainer = MeasureExplainer(model, groups={"g": ["age", "height"]}).fit(X)
    with refused("curve", "shoe", "weight"):
        explainer.curve("shoe")
    with refused("7"):
        explainer.curve(7)
    with refused("'g'", "group"):
        explainer.curve("g")
    with refused("'age'", "'g'"):
        explainer.curve("age")
    with refused("output", "shoe", "prediction"):
        explainer.curve("weight", output="shoe")
    for measure in (Dirac(), PartialDependence() - 2 * Dirac()):
        with refused("Dirac", "row"):
            MeasureExplainer(model, measure).fit(X).curve("age")


def test_curve_of_an_unknown_output_is_not_a_word_about_columns():
    explainer = MeasureExplainer(RandomForestClassifier(2, random_state=0)).fit(X, LABELS)
    with refused("output", "maybe", "yes") as error:
        explainer.curve("age", output="maybe")
    assert "no column" not in str(error.value)


@pytest.mark.parametrize("model", [TREE, RIDGE])
def test_curves_take_one_dimension(model):
    curve = MeasureExplainer(model).fit(X).curve("age")
    with refused("age", kind=(TypeError, ValueError)):
        curve(np.ones((2, 2)))


def test_curves_of_constant_measures_take_what_the_column_holds():
    _, frame = levels_model("str")
    model = make_pipeline(OneHotEncoder(), Ridge()).fit(frame[["town"]], Y)
    explainer = MeasureExplainer(model, Expectation()).fit(frame[["town"]])
    assert np.allclose(explainer.curve("town")(["ulm", "bonn"]), explainer.base_value_)


def test_none_is_a_level_of_its_own_in_the_table_of_a_curve():
    frame = pd.DataFrame(
        {"age": X["age"], "town": pd.Series(["ulm", None, "kiel"] * 10, dtype=object)}
    )
    model = HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=3, categorical_features=["town"]
    ).fit(frame, Y)
    curve = MeasureExplainer(model).fit(frame).curve("town")
    shown = curve.to_frame()["level"].tolist()
    assert not any(isinstance(level, float) for level in shown), shown


# -- domain --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "domain, words",
    [
        ({"shoe": (0, 1)}, ["domain", "shoe", "age"]),
        ({"age": (1, 0)}, ["domain", "age"]),
        ({"age": (0, np.nan)}, ["domain", "age"]),
        ({"age": (0, np.inf)}, ["domain", "age"]),
        ({"age": (0, 1, 2)}, ["domain", "age"]),
        ({"age": 3}, ["domain", "age"]),
        ({"age": ("low", "high")}, ["domain", "age"]),
        ({"age": None}, ["domain", "age"]),
        (np.zeros((2, 2)), ["domain", "(2, 2)", "(3, 2)"]),
        ([], ["domain"]),
        ([[0, 1], [1, 0], [0, 1]], ["domain", "height"]),
        ("age", ["domain"]),
        (3.0, ["domain"]),
    ],
)
@pytest.mark.parametrize("measure", [Uniform(), PartialDependence()])
def test_domain(domain, words, measure):
    with refused(*words, kind=(TypeError, ValueError)):
        MeasureExplainer(TREE, measure, domain=domain).fit(X)


def test_domain_of_a_column_of_levels():
    model, frame = levels_model()
    with refused("domain", "town"):
        MeasureExplainer(model, Uniform(), domain={"town": (0, 1)}).fit(frame)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_nothing_is_uniform_on_an_infinite_range(value):
    with refused("height", "infinite", "domain"):
        MeasureExplainer(MODELS["hist"], Uniform()).fit(other_values(value))
    MeasureExplainer(MODELS["hist"], Uniform(), domain={"height": (0, 1)}).fit(other_values(value))


def test_nothing_is_uniform_on_a_column_without_values():
    with refused("height", "no value", "domain"):
        MeasureExplainer(MODELS["hist"], Uniform()).fit(X.assign(height=np.nan))


# -- Baseline ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point, words",
    [
        ({"age": 0.0, "height": 1.0}, ["Baseline", "weight"]),
        ({"age": 0.0, "height": 1.0, "weight": 0.0, "shoe": 1.0}, ["Baseline", "shoe"]),
        (pd.Series({"age": 0.0, "height": 1.0}), ["Baseline", "weight"]),
        (X[["age", "weight"]][:1], ["Baseline", "height"]),
        (pl.DataFrame({"age": [0.0], "weight": [0.0]}), ["Baseline", "height"]),
        (X[:2], ["Baseline", "2 rows"]),
        (X[:0], ["Baseline", "0 rows"]),
        ([0.0, 1.0], ["Baseline", "2 values", "3 columns"]),
        (np.zeros((1, 4)), ["Baseline", "4 values", "3 columns"]),
        (np.zeros((2, 3)), ["Baseline", "2 rows"]),
        (0.0, ["Baseline"]),
        (None, ["Baseline"]),
        ("age", ["Baseline"]),
        (np.zeros((1, 1, 3)), ["Baseline", "(1, 1, 3)"]),
    ],
)
@pytest.mark.parametrize("model", [TREE, RIDGE])
def test_baseline(model, point, words):
    with refused(*words):
        MeasureExplainer(model, PartialDependence() - Baseline(point)).fit(X)


def test_unknown_category_in_a_baseline():
    model, frame = levels_model()
    with refused("Baseline", "rome", "town"):
        MeasureExplainer(model, Baseline({"age": 0.0, "town": "rome"})).fit(frame)


@pytest.mark.parametrize("value", ["tall", None])
def test_a_baseline_that_is_no_number(value):
    with pytest.raises(ValueError, match=r"height|NaN|missing"):
        MeasureExplainer(
            MODELS["boosting"], Baseline({"age": 0, "height": value, "weight": 0})
        ).fit(X)


@overflow
@pytest.mark.parametrize("value", [np.inf, 1e39])
def test_a_baseline_that_predict_refuses(value):
    with refused("infin"):
        MeasureExplainer(TREE, Baseline([0.0, value, 0.0])).fit(X)


def test_what_does_not_exist():
    import skattr

    assert not hasattr(skattr, "nonsense") and not hasattr(skattr.measures, "nonsense")


NO_TABLES = {
    "None": None,
    "text": "text",
    "one-dimensional": np.zeros(3),
    "empty": np.zeros((0, 3)),
}


@pytest.mark.parametrize("what", NO_TABLES)
def test_axioms_and_metrics_given_no_table(what):
    bad = NO_TABLES[what]
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    explainer = MeasureExplainer(model).fit(X)
    explanation = explainer.explain(X[:2])
    zero, one = np.zeros(3), np.ones(3)
    calls = [
        lambda: axioms.check("partial_dependence", bad),
        lambda: axioms.check("partial_dependence", X, points=np.array(bad)),
        lambda: axioms.bound("partial_dependence", bad, one, hessian=1.0, baseline=zero),
        lambda: metrics.center_of_mass("partial_dependence", bad),
        lambda: metrics.first_moments("partial_dependence", bad),
        lambda: metrics.deletion(explanation, explainer, bad),
        lambda: metrics.insertion(explanation, explainer, bad),
        lambda: metrics.faithfulness(explanation, explainer, bad),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"must be a DataFrame or an array \(n, d\)|needs X_b"):
            call()
    if what in ("None", "text", "empty"):
        for call in (
            lambda: metrics.agreement(bad, one),
            lambda: metrics.agreement(one, bad),
            lambda: metrics.recall(bad, one, alpha=0.1, beta=0.1),
            lambda: metrics.precision(one, bad, alpha=0.1, beta=0.1),
            lambda: metrics.f1(bad, bad, alpha=0.1, beta=0.1),
        ):
            with pytest.raises(ValueError, match=r"values|truth|weights"):
                call()
    if what in ("None", "text"):
        with pytest.raises(ValueError, match="x must be"):
            axioms.bound("partial_dependence", X, bad, hessian=1.0, baseline=zero)


def test_models_that_return_no_column_or_complex_numbers():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"nothing_at_all returned no column.*\(1, 0\)"):

        def nothing_at_all(X):
            return np.empty((len(X), 0))

        MeasureExplainer(nothing_at_all).fit(X)
    with pytest.raises(ValueError, match="returned complex numbers"):
        MeasureExplainer(lambda X: X[:, 0] + 1j * X[:, 1]).fit(X)


def test_a_report_of_infinite_values(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    explainer = MeasureExplainer(lambda X: X[:, 1]).fit(X)
    explanation = explainer.explain(X)
    values = explanation.values.copy()
    values[2, 0] = np.inf
    with pytest.raises(ValueError, match="'x0' in row 2 of the explanation is not finite"):
        write_report(
            explainer, X, tmp_path / "report.html", explanation=replace(explanation, values=values)
        )
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("measure", ["main_effect", "uniform", "shapley", "conditional"])
def test_models_that_return_infinity(measure):
    X = np.random.default_rng(0).normal(size=(20, 3))

    def far(X):
        return np.where(X[:, 0] > 5, -np.inf, X[:, 1])

    explainer = MeasureExplainer(far, measure, max_evals=500, tol=1).fit(X)
    X[2, 0] = 6.0
    words = r"far returned -inf for row \d+ of \d+: infinite values have no mean; explain another"
    with pytest.raises(ValueError, match=words):
        explainer.explain(X)
    with pytest.raises(ValueError, match=words):
        MeasureExplainer(far, measure, max_evals=500, tol=1).fit(X)


@pytest.mark.parametrize(
    "measure", ["main_effect", "uniform", "shapley", "conditional", "product_marginal"]
)
@pytest.mark.parametrize("size", [(1.7e308, 1.7e308), (1.7e308, -1.7e308), (1e200, -1e200)])
def test_sums_that_overflow(measure, size):
    X = np.random.default_rng(0).normal(size=(20, 3))
    explainer = MeasureExplainer(lambda X: np.where(X[:, 0] > 0, *size), measure, max_evals=500)
    try:
        values = explainer.fit(X).explain(X)
    except ValueError as error:
        assert "is not finite: sums of predictions overflow" in str(error)
        assert not explainer.__sklearn_is_fitted__()
    else:  # only the spread of f overflows, which exact values do not need
        assert size[0] == 1e200 and values.exact and np.isfinite(values.values).all()


@pytest.mark.parametrize("n_jobs", [0, "2", 1.5, True, [2]])
def test_n_jobs(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0, got"):
        MeasureExplainer(TREE, n_jobs=n_jobs).fit(X)
    explainer = MeasureExplainer(TREE).fit(X)
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0, got"):
        explainer.set_params(n_jobs=n_jobs).explain(X)


@pytest.mark.parametrize("measure", ["product_marginal", "shapley", "uniform"])
def test_many_evaluations_are_allowed_but_taken_only_at_need(measure):
    calls = []

    def additive(X):
        calls.append(len(X))
        return X.sum(axis=1)

    X = np.random.default_rng(0).normal(size=(12, 22))
    explainer = MeasureExplainer(additive, measure, max_evals=1e12, tol=0.1).fit(X)
    assert not explainer.explain(X[:1]).exact
    assert sum(calls) < 10**6


@pytest.mark.parametrize("wrap", [TransformedTargetRegressor, FrozenEstimator, BaggingRegressor])
def test_missing_values_in_arrays_for_a_pipeline_inside(wrap):
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, np.nan], [5.0, 6.0]] * 5)
    y = np.nansum(X, axis=1)
    steps = make_pipeline(SimpleImputer(), DecisionTreeRegressor(random_state=0)).fit(X, y)
    model = wrap(steps).fit(X, y)
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    Z = X.copy()
    Z[:, 0] = np.nan
    assert_allclose(explainer.explain(X[1:2]).values[0, 0], model.predict(Z).mean())


@pytest.mark.parametrize("kind", ["category", object])
def test_lists_in_a_column_are_named(kind):
    words = pd.DataFrame({"word": pd.Series(["a", "b"] * 15, dtype=kind), "age": X["age"]})
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["word"])),
        DecisionTreeRegressor(max_depth=2),
    ).fit(words, Y)
    explainer = MeasureExplainer(model).fit(words)
    lists = words.assign(word=pd.Series([["a"]] * 30))
    with pytest.raises(ValueError, match=r"the model refuses X: .*column 'word'"):
        explainer.explain(lists)
    with pytest.raises(ValueError, match=r"the model refuses X: .*column 'word'"):
        explainer.curve("word")(lists["word"])


@pytest.mark.parametrize("value", [[1], {}, pd.Timestamp("2024-01-01")])
def test_a_column_that_cannot_be_numbers_is_named(value):
    other = X.assign(age=pd.Series([value] * 30))
    what = "dates or durations" if isinstance(value, pd.Timestamp) else "values that are not"
    for use in (MeasureExplainer(TREE).fit, MeasureExplainer(TREE).fit(X).explain):
        with pytest.raises(ValueError, match=rf"the model refuses X: .*column 'age' holds {what}"):
            use(other)
