"""shap's interface: its shapes and scales, and the values of the definition."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skattr
from skattr.compat import TreeExplainer
from skattr.measures import Shapley
from tests.oracle import Oracle, described


def data(classes):
    """Rows that float32 holds exactly, and a target."""
    if classes:
        X, y = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=classes,
                                   random_state=classes)  # fmt: skip
    else:
        X, y = make_regression(90, 5, random_state=0)
    return X.astype(np.float32).astype(np.float64), y


def definition(f, background, rows):
    """Shapley values by enumeration of coalitions, (n, d, k)."""
    oracle = Oracle(f, background)
    return oracle.values(described(Shapley()), rows, [(k,) for k in range(rows.shape[1])])


FORESTS = [
    RandomForestClassifier(5, max_depth=4, random_state=0),
    ExtraTreesClassifier(5, max_depth=4, random_state=0),
    DecisionTreeClassifier(max_depth=4, random_state=0),
]
BOOSTING = [
    GradientBoostingClassifier(n_estimators=5, random_state=0),
    HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, random_state=0),
]
REGRESSORS = [
    RandomForestRegressor(5, max_depth=4, random_state=0),
    DecisionTreeRegressor(max_depth=4, random_state=0),
    GradientBoostingRegressor(n_estimators=5, random_state=0),
    HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, random_state=0),
]
MODELS = [
    *((model, 2) for model in FORESTS + BOOSTING),
    *((model, 3) for model in [*FORESTS, BOOSTING[1]]),  # shap has GradientBoosting of two classes
    *((model, 0) for model in REGRESSORS),
]


def name(value):
    return value if isinstance(value, int) else type(value).__name__


@pytest.mark.parametrize(("model", "classes"), MODELS, ids=name)
def test_shapes_scales_and_values_are_those_of_shap(model, classes):
    shap = pytest.importorskip("shap", reason="shap is in the extra bench")
    X, y = data(classes)
    model.fit(X, y)
    theirs = shap.TreeExplainer(model, data=X[:30], feature_perturbation="interventional")
    ours = TreeExplainer(model, data=X[:30])
    wanted, values = theirs.shap_values(X[30:50]), ours.shap_values(X[30:50])
    assert values.shape == wanted.shape
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    np.testing.assert_allclose(ours.expected_value, theirs.expected_value, rtol=1e-5, atol=1e-6)
    assert np.shape(ours.expected_value) == np.shape(theirs.expected_value)
    one, other = ours.shap_values(X[30]), theirs.shap_values(X[30])
    assert one.shape == other.shape
    np.testing.assert_array_equal(one, values[0])


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
@pytest.mark.filterwarnings("ignore")  # woodelf's own
def test_values_are_those_of_woodelf(model, capsys):
    woodelf = pytest.importorskip("woodelf", reason="woodelf-explainer is in the extra bench")
    X, y = data(0)
    X = pd.DataFrame(X, columns=list("abcde"))
    model.fit(X, y)
    theirs = woodelf.WoodelfExplainer(model, X[:30]).shap_values(X[30:50], verbose=False)
    values = TreeExplainer(model, data=X[:30]).shap_values(X[30:50])
    np.testing.assert_allclose(values, theirs, rtol=0, atol=1e-6 * np.abs(values).max())


@pytest.mark.parametrize("model", FORESTS, ids=name)
def test_a_forest_has_both_classes(model):
    X, y = data(2)
    model.fit(X, np.array(["no", "yes"])[y])
    for model_output in ("raw", "probability"):
        explainer = TreeExplainer(model, X[:10], model_output=model_output)
        wanted = definition(model.predict_proba, X[:10], X[10:14])
        np.testing.assert_allclose(explainer.shap_values(X[10:14]), wanted, rtol=0, atol=1e-12)
        mean = model.predict_proba(X[:10]).mean(axis=0)
        np.testing.assert_allclose(explainer.expected_value, mean, rtol=0, atol=1e-12)


def test_hist_gradient_boosting_in_float64_with_categories_and_missing_values():
    """Where shap rounds thresholds to float32, or refuses: the definition."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "large": 1e9 + rng.normal(size=80),  # neighbours in float32 are 64 apart
            "number": np.where(rng.random(80) < 0.2, np.nan, rng.normal(size=80)),
            "level": pd.Categorical(rng.choice(["a", "b", "c", None], 80)),
        }
    )
    y = X["large"] - 1e9 + 2 * (X["level"] == "a") + X["number"].fillna(3)
    model = HistGradientBoostingRegressor(
        max_iter=30, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(X, y)
    explainer = TreeExplainer(model, data=X[:12])
    values = explainer.shap_values(X[12:24])
    wanted = definition(lambda rows: model.predict(rows)[:, None], X[:12], X[12:24])[..., 0]
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-12)
    assert (np.abs(wanted).max(axis=0) > 0.1).all()  # every column counts
    assert explainer.feature_names == ["large", "number", "level"]


def test_margins_of_boosting_equal_the_definition():
    X, y = data(2)
    for model in BOOSTING:
        model.fit(X, y)
        values = TreeExplainer(model, X[:10]).shap_values(X[10:14])
        f = model.decision_function
        wanted = definition(lambda rows, f=f: f(rows)[:, None], X[:10], X[10:14])[..., 0]
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-12)


def test_probabilities_of_boosting_equal_the_definition():
    """Where shap rescales the values of the margin."""
    X, y = data(2)
    model = BOOSTING[0].fit(X, y)
    explainer = TreeExplainer(model, X[:10], model_output="probability")
    wanted = definition(lambda rows: model.predict_proba(rows)[:, 1:], X[:10], X[10:14])[..., 0]
    np.testing.assert_allclose(explainer.shap_values(X[10:14]), wanted, rtol=0, atol=1e-12)
    mean = model.predict_proba(X[:10])[:, 1].mean()
    np.testing.assert_allclose(explainer.expected_value, mean, rtol=1e-12)


def test_raw_columns_of_a_pipeline():
    X, y = skattr.datasets.load_flats()
    X = X[["district", "balcony"]]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(encoder, RandomForestRegressor(5, random_state=0)).fit(X, y)
    values = TreeExplainer(model, data=X[:20]).shap_values(X[20:30])
    wanted = definition(lambda rows: model.predict(rows)[:, None], X[:20], X[20:30])[..., 0]
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-9)


def test_one_row_of_a_frame():
    X, y = data(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    explainer = TreeExplainer(REGRESSORS[0].fit(frame, y), frame[:20])
    np.testing.assert_array_equal(
        explainer.shap_values(frame.iloc[30]), explainer.shap_values(frame[30:31])[0]
    )


@pytest.mark.parametrize(("model", "classes"), [(FORESTS[0], 2), (BOOSTING[1], 2),
                                                (REGRESSORS[2], 0)], ids=name)  # fmt: skip
def test_what_shap_plots(model, classes):
    """The explanation of all rows is complete, without a column for what is left."""
    shap = pytest.importorskip("shap", reason="shap is in the extra bench")
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = data(classes)
    frame = pd.DataFrame(X, columns=list("abcde"))
    explainer = TreeExplainer(model.fit(frame, y), frame[:20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = explainer(frame[20:40])
        single = explainer(frame.iloc[20])
    assert isinstance(result, shap.Explanation)
    assert result.feature_names == list("abcde")
    np.testing.assert_array_equal(result.values, explainer.shap_values(frame[20:40]))
    if model is FORESTS[0]:
        end = model.predict_proba(frame[20:40])
        assert result.output_names == ["0", "1"]
    else:
        end = (model.decision_function if classes else model.predict)(frame[20:40])
    np.testing.assert_allclose(
        result.base_values + result.values.sum(axis=1), end, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(single.values, result.values[0])
    one = result[..., 1] if result.values.ndim == 3 else result
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap's own
        shap.plots.waterfall(one[0], show=False)
        shap.plots.beeswarm(one, show=False)
    plt.close("all")


def test_without_a_background():
    X, y = data(0)
    model = REGRESSORS[0].fit(X, y)
    with pytest.raises(ValueError, match=r"TreeExplainer\(model, data=X_background\)") as error:
        TreeExplainer(model)
    assert "path-dependent" in str(error.value) and "shape of the trees" in str(error.value)


def test_unknown_scales():
    X, y = data(0)
    model = REGRESSORS[0].fit(X, y)
    with pytest.raises(ValueError, match="needs a model with predict_proba, got RandomForest"):
        TreeExplainer(model, X, model_output="probability")
    with pytest.raises(ValueError, match=r"one of \['raw', 'probability'\], got 'log_loss'"):
        TreeExplainer(model, X, model_output="log_loss")


def test_additivity_is_checked(monkeypatch):
    X, y = data(0)
    explainer = TreeExplainer(REGRESSORS[0].fit(X, y), X[:20])
    values = explainer.shap_values(X)
    monkeypatch.setattr(RandomForestRegressor, "predict", lambda self, X: np.full(len(X), 1e6))
    with pytest.raises(RuntimeError, match="do not add up to the predictions: they differ by up"):
        explainer.shap_values(X)
    np.testing.assert_array_equal(explainer.shap_values(X, check_additivity=False), values)


def test_scaled_columns():
    X, y = data(2)
    model = make_pipeline(StandardScaler(), FORESTS[0]).fit(X, y)
    values = TreeExplainer(model, X[:10]).shap_values(X[10:14])
    wanted = definition(model.predict_proba, X[:10], X[10:14])
    np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-12)


def matrices(f, background, rows):
    """Interaction indices by enumeration, as shap lays them out, (n, d, d, k)."""
    oracle, d = Oracle(f, background), rows.shape[1]
    ((_, measure, parameters),) = described(Shapley())
    players = [(k,) for k in range(d)]
    indices = oracle.interactions(measure, **parameters, X=rows, players=players)
    result = np.zeros((len(rows), d, d, indices.shape[2]))
    for i, (j, k) in enumerate(combinations(range(d), 2)):
        result[:, j, k] = result[:, k, j] = indices[:, i] / 2
    at = np.arange(d)
    result[:, at, at] = definition(f, background, rows) - result.sum(axis=2)
    return result


@pytest.mark.parametrize(("model", "classes"), MODELS, ids=name)
def test_interaction_values_are_those_of_the_definition(model, classes):
    """All classes of a forest, both of two; margins of boosting."""
    X, y = data(classes)
    model.fit(X, y)
    explainer = TreeExplainer(model, data=X[:20])
    matrix = explainer.shap_interaction_values(X[30:34])
    if isinstance(model, (GradientBoostingClassifier, HistGradientBoostingClassifier)):
        f = model.decision_function
    else:
        f = model.predict_proba if classes else model.predict
    wanted = matrices(lambda Z: f(Z).reshape(len(Z), -1), X[:20], X[30:34])
    assert matrix.shape == (wanted.shape if wanted.shape[3] > 1 else wanted.shape[:3])
    scale = max(1.0, np.abs(f(X)).max())
    np.testing.assert_allclose(matrix.reshape(wanted.shape), wanted, atol=1e-12 * scale)
    values = explainer.shap_values(X[30:34])
    np.testing.assert_allclose(matrix.sum(axis=2), values, atol=1e-12 * scale)
    one = explainer.shap_interaction_values(X[31])
    np.testing.assert_array_equal(one, matrix[1])


def test_interaction_values_of_one_row_of_a_frame():
    X, y = data(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(frame, y)
    explainer = TreeExplainer(model, data=frame[:20])
    matrix = explainer.shap_interaction_values(frame[40:43])
    assert matrix.shape == (3, 5, 5)
    np.testing.assert_array_equal(explainer.shap_interaction_values(frame.iloc[41]), matrix[1])
