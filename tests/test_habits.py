"""What people type first: wrong orders, wrong kinds and short ways; each has an answer."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.tree import DecisionTreeRegressor

import skattr
from skattr import MeasureExplainer, write_report
from skattr.measures import (
    Baseline,
    Conditional,
    Dirac,
    Expectation,
    LinearCombination,
    PartialDependence,
    Uniform,
)
from skattr.measures.background import Background
from skattr.measures.base import as_terms
from skattr.measures.learned.dependence import dependent_columns

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(30, 3)), columns=["age", "height", "weight"])
Y = (X["age"] * X["height"] - X["weight"]).to_numpy()
TREE = DecisionTreeRegressor(random_state=0, max_depth=4).fit(X, Y)


def refused(*words, kind=ValueError):
    """Expect an error whose message has all the words."""
    return pytest.raises(kind, match="(?s)" + "".join(f"(?=.*{re.escape(w)})" for w in words))


# -- habits: what people type first --------------------------------------------------------------

LONG = pd.DataFrame(np.arange(4000.0).reshape(1000, 4), columns=list("abcd"))


@pytest.mark.parametrize("table", [X, X.to_numpy(), pl.from_pandas(X), pl.LazyFrame({"a": [1]})])
def test_the_background_goes_to_fit(table):
    with refused("background", "fit", kind=TypeError):
        MeasureExplainer(TREE, table).fit(X)


def test_model_and_table_in_the_wrong_order():
    with refused("model", "DataFrame", "fit", kind=TypeError):
        MeasureExplainer(X, TREE).fit(X)
    with refused("table", "DecisionTreeRegressor", kind=TypeError):
        MeasureExplainer(TREE).fit(TREE)
    with refused("table", "'data.csv'", "read", kind=TypeError):
        MeasureExplainer(TREE).fit("data.csv")


def test_a_measures_class_is_no_measure():
    with refused("PartialDependence()", "class", kind=TypeError):
        MeasureExplainer(TREE, PartialDependence).fit(X)


@pytest.mark.parametrize(
    "flat", [X["age"], pl.Series("age", [1.0, 2.0]), X["age"].to_numpy(), X["age"].tolist()]
)
def test_a_series_is_no_table(flat):
    explainer = MeasureExplainer(TREE).fit(X)
    for call in (MeasureExplainer(TREE).fit, explainer.explain, explainer.transform):
        with refused("X[['name']]", f"length {len(flat)}", type(flat).__name__):
            call(flat)


def test_lazy_frames_name_the_way_out():
    lazy = pl.LazyFrame({c: X[c].to_numpy() for c in X})
    explainer = MeasureExplainer(TREE).fit(X)
    for call in (MeasureExplainer(TREE).fit, explainer.explain):
        with refused("LazyFrame", ".collect()", kind=TypeError):
            call(lazy)


def test_columns_named_like_methods_are_columns():
    frame = X.set_axis(["predict", "collect", "explain"], axis=1)
    model = DecisionTreeRegressor(random_state=0).fit(frame, Y)
    assert MeasureExplainer(model).fit(frame).explain(frame).values.shape == X.shape


def test_arguments_of_write_report_in_another_order(tmp_path):
    explainer = MeasureExplainer(TREE).fit(X)
    path = str(tmp_path / "report.html")
    for arguments, word in [
        ((X, explainer, path), "explainer must be"),
        ((path, explainer, X), "explainer must be"),
        ((explainer, path, X), "X must be"),
        ((explainer, explainer.explain(X), path), "explanation="),
        ((explainer, X, X), "path must be"),
    ]:
        with refused(word, kind=TypeError):
            write_report(*arguments)
    assert not list(tmp_path.iterdir())


def test_folders_that_are_missing_are_named_before_anything_is_computed(tmp_path):
    def never(Z):
        raise AssertionError("the model was called")

    explainer = MeasureExplainer(TREE).fit(X)
    explanation = explainer.explain(X)
    explainer.estimator_ = explainer.explain = never
    for path in (tmp_path / "none" / "file", str(tmp_path / "none" / "file")):
        for write in (lambda path: write_report(explainer, X, path), explanation.save):
            with refused("no folder", str(tmp_path / "none"), kind=FileNotFoundError):
                write(path)
    for write in (lambda path: write_report(explainer, X, path), explanation.save):
        with refused("is a folder", str(tmp_path), kind=IsADirectoryError):
            write(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("table", [None, X.to_dict(), {1, 2}])
def test_what_is_not_a_table_is_named(table):
    explainer = MeasureExplainer(TREE).fit(X)
    for call in (MeasureExplainer(TREE).fit, explainer.explain, explainer.transform):
        with refused("X must be a table", kind=TypeError) as caught:
            call(table)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "module", ["axioms", "compat", "datasets", "engines", "measures", "metrics", "optimize", "plot"]
)
def test_tab_completion_shows_public_names_alone(module):
    found = getattr(skattr, module)
    assert dir(found) == sorted(found.__all__)
    for name in found.__all__:
        assert not isinstance(getattr(found, name), type(skattr)), name


@pytest.mark.parametrize(
    "name",
    ["measure", "output", "engine", "groups", "domain", "tol", "max_evals", "random_state",
     "device", "output_names", "verbose"],
)  # fmt: skip
@pytest.mark.parametrize("table", [LONG, LONG.to_numpy(), LONG["a"], {"a": LONG}, [LONG]])
def test_errors_never_print_a_whole_table(name, table):
    model = DecisionTreeRegressor(max_depth=2).fit(LONG, LONG["a"])
    with pytest.raises((TypeError, ValueError)) as caught:
        MeasureExplainer(model, **{name: table}).fit(LONG)
    assert len(str(caught.value)) < 500 and "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_errors_of_calls_never_print_a_whole_table():
    wide = pd.DataFrame(np.eye(300), columns=[f"a_long_name_of_column_{k}" for k in range(300)])
    model = DecisionTreeRegressor(max_depth=2).fit(wide, wide.iloc[:, 0])
    explainer = MeasureExplainer(model).fit(wide)
    explanation = explainer.explain(wide)
    for call in (
        lambda: explainer.explain(wide, features=["x"]),
        lambda: explainer.explain(wide, features=[wide]),
        lambda: explainer.curve("x"),
        lambda: explainer.curve(wide),
        lambda: explanation[wide],
        lambda: explanation[:, wide],
        lambda: explanation[:, "x"],
        lambda: explanation["x"],
        lambda: explanation.select(wide),
        lambda: skattr.plot.waterfall(explanation, wide),
        lambda: skattr.plot.waterfall(wide),
    ):
        with pytest.raises((KeyError, TypeError, ValueError)) as caught:
            call()
        assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


# -- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "score"),
    [
        (IsolationForest(n_estimators=5, random_state=0), "decision_function"),
        (EllipticEnvelope(random_state=0), "decision_function"),
        (OneClassSVM(), "decision_function"),
        (GaussianMixture(2, random_state=0), "score_samples"),
        (make_pipeline(StandardScaler(), GaussianMixture(2, random_state=0)), "score_samples"),
    ],
)
def test_what_predicts_labels_is_explained_by_its_score(model, score):
    model.fit(X)
    explainer = MeasureExplainer(model).fit(X)
    explanation = explainer.explain(X[:4])
    f = getattr(model, score)
    np.testing.assert_allclose(explanation.predictions, f(X[:4]), rtol=1e-10)
    for i in range(4):
        for j in range(3):
            Z = X.copy()
            Z.iloc[:, j] = X.iloc[i, j]
            wanted = f(Z).mean() - f(X).mean()
            np.testing.assert_allclose(explanation.values[i, j], wanted, atol=1e-10)
    assert explainer.output_names_ == ["score"]
    assert explanation.scale == score.replace("_", " ")
    for output in ("predict", "proba"):
        with refused("labels", score):
            MeasureExplainer(model, output=output).fit(X)


@pytest.mark.parametrize(
    "model",
    [KMeans(2, n_init=1, random_state=0), make_pipeline(StandardScaler(), KMeans(2, n_init=1))],
)
def test_labels_without_a_score_are_refused(model):
    model.fit(X)
    with refused("labels", "cannot be integrated", "a function of it"):
        MeasureExplainer(model).fit(X)
    distance = MeasureExplainer(lambda Z: model.transform(Z)[:, 0]).fit(X)
    assert distance.explain(X).values.shape == X.shape


def two(Z):
    Z = np.asarray(Z)
    return np.column_stack([Z[:, 0], Z[:, 1] * Z[:, 2]])


def test_names_of_outputs():
    explainer = MeasureExplainer(two, output_names=["price", "risk"]).fit(X)
    assert explainer.output_names_ == ["price", "risk"]
    explanation = explainer.explain(X)
    assert explanation.output_names == ("price", "risk")
    plain = MeasureExplainer(two).fit(X).explain(X)
    assert plain.output_names == ("y0", "y1")
    np.testing.assert_array_equal(explanation.select("risk").values, plain.values[..., 1])
    assert list(explainer.curve("age", "price").to_frame()) == ["x", "value"]
    names = explainer.get_feature_names_out()
    assert names[0] == "price__age" and names[-1] == "risk__weight"
    assert "price, risk" in explainer.describe()
    assert clone(explainer).output_names == ["price", "risk"]
    one = MeasureExplainer(TREE, output_names=("price",)).fit(X)
    assert one.explain(X).output_names == ("price",)


def test_names_of_a_modules_outputs():
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 2).eval()
    explainer = MeasureExplainer(module, output_names=["left", "right"]).fit(X.to_numpy())
    assert explainer.explain(X.to_numpy()).output_names == ("left", "right")


@pytest.mark.parametrize(
    ("names", "kind", "words"),
    [
        (["price"], ValueError, "names 1 outputs, but the model has 2: ['y0', 'y1']"),
        (["a", "b", "c"], ValueError, "names 3 outputs"),
        (["a", "a"], ValueError, "different"),
        (["a", 1], TypeError, "list of str"),
        ("ab", TypeError, "list of str, got 'ab'"),
        ([], ValueError, "names 0 outputs"),
    ],
)
def test_wrong_names_of_outputs(names, kind, words):
    with refused(words, kind=kind):
        MeasureExplainer(two, output_names=names).fit(X)


# -- defaults ------------------------------------------------------------------------------------


def test_the_default_measure_is_the_main_effect():
    explainer = MeasureExplainer(TREE)
    assert explainer.measure == "main_effect" and explainer.tol == 1e-2
    assert explainer.verbose is None and explainer.output_names is None
    explanation = explainer.fit(X).explain(X)
    assert repr(explainer.measure_) == "PartialDependence() - Expectation()"
    for j, name in enumerate(X):
        for i in range(5):
            Z = X.assign(**{name: X[name].iloc[i]})
            wanted = TREE.predict(Z).mean() - TREE.predict(X).mean()
            assert explanation.values[i, j] == pytest.approx(wanted, abs=1e-12)
    assert explanation.offset == 0.0
    assert explanation.base_value == pytest.approx(TREE.predict(X).mean())
    raw = MeasureExplainer(TREE, "partial_dependence").fit(X).explain(X)
    np.testing.assert_allclose(raw.centered().values, explanation.values, atol=1e-12)
    assert raw.offset == pytest.approx(explanation.base_value)
    curve = explainer.curve("age")
    np.testing.assert_allclose(curve(X["age"]), explanation.values[:, 0], atol=1e-12)
    np.testing.assert_array_equal(explanation.to_frame().to_numpy(), explanation.values)
    assert "PartialDependence() - Expectation()" in explanation._repr_html_()


def test_the_conditional_effect_is_the_conditional_around_0():
    effect = MeasureExplainer(TREE, "conditional_effect").fit(X).explain(X)
    raw = MeasureExplainer(TREE, "conditional").fit(X).explain(X)
    np.testing.assert_allclose(effect.values, raw.values - raw.base_value, atol=1e-12)
    assert effect.offset == 0.0


def test_describe_reads_well():
    Z = pd.DataFrame(rng.normal(size=(3000, 2)), columns=["a", "b"])
    tree = DecisionTreeRegressor(random_state=0).fit(Z, Z["a"] * Z["b"])
    pipeline = make_pipeline(StandardScaler(), tree)
    text = MeasureExplainer(pipeline.fit(Z, Z["a"] * Z["b"])).fit(Z).describe()
    assert text.splitlines()[:4] == [
        "model: Pipeline: StandardScaler → DecisionTreeRegressor",
        "explains: prediction",
        "read as: 3,000 boxes, the leaves of 1 tree",
        "measure: main effect, PartialDependence() - Expectation()",
    ]
    forest = RandomForestClassifier(2, random_state=0).fit(Z, np.where(Z["a"] > 0, "yes", "no"))
    assert "explains: probability of yes" in MeasureExplainer(forest).fit(Z).describe()


@pytest.mark.parametrize(
    "measure",
    [
        PartialDependence(),
        PartialDependence() - Expectation(),
        Expectation("product") / 3 - 2 * PartialDependence() + 1e-7 * Dirac(),
        -Conditional("knn", n_neighbors=3),
        LinearCombination([(-1.0, PartialDependence() - Expectation()), (2.0, Dirac())]),
        LinearCombination([(1.0, Dirac() - Expectation())]),
        LinearCombination([]),
        Baseline({"age": 1.0, "height": 0.0, "weight": 2.5}) - Uniform(),
    ],
)
def test_repr_is_valid_python(measure):
    names = vars(skattr.measures) | {"MeasureExplainer": MeasureExplainer, "Ridge": Ridge}
    again = eval(repr(measure), names)
    assert repr(again) == repr(measure)
    if measure.get_params().get("terms", True):
        assert [c for c, _ in as_terms(again)] == [c for c, _ in as_terms(measure)]
    explainer = MeasureExplainer(Ridge(alpha=2.0), measure, groups={"g": ["a", "b"]}, tol=0.5)
    assert repr(eval(repr(explainer), names)) == repr(explainer)


# -- dependent columns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator", ["kernel", "local_linear", "knn", "gaussian", "copula", "gmm"]
)
def test_dependent_columns_are_named_with_groups(estimator):
    Z = X.assign(height=np.exp(X["age"]) + 1e-3 * X["height"], weight=-X["weight"])
    model = Ridge().fit(Z, Y)
    explainer = MeasureExplainer(model, Conditional(estimator) - Expectation()).fit(Z)
    text = explainer.describe()
    rho = spearmanr(Z["age"], Z["height"]).statistic
    assert f"'age' and 'height' ({rho:.2f})" in text and "'weight'" not in text
    assert "groups={'together': ['age', 'height']}" in text
    grouped = MeasureExplainer(
        model, Conditional(estimator), groups={"together": ["age", "height"]}
    ).fit(Z)
    assert "strongly dependent" not in grouped.describe()
    assert "strongly dependent" not in MeasureExplainer(model).fit(Z).describe()


def test_dependence_by_ranks():
    frame = pd.DataFrame({
        "a": rng.normal(size=200), "level": rng.choice(["u", "v"], 200), "same": 1.0,
    })  # fmt: skip
    frame["b"] = -(frame["a"] ** 3)
    frame["gaps"] = frame["a"].where(frame["a"] > -1.0)
    frame["c"] = rng.normal(size=200)
    background = Background(frame, np.ones(200))
    own = tuple((k,) for k in range(6))
    found = {(k, m): r for k, m, r in dependent_columns(background, own)}
    names = list(frame)
    wanted = {("a", "b"), ("a", "gaps"), ("b", "gaps")}
    assert {(names[k], names[m]) for k, m in found} == wanted
    assert found[0, 3] == pytest.approx(-1.0)
    filled = frame["gaps"].fillna(-9.0)
    assert found[0, 4] == pytest.approx(spearmanr(frame["a"], filled).statistic)
    sizes = [abs(r) for _, _, r in dependent_columns(background, own)]
    assert sizes == sorted(sizes, reverse=True)
    assert dependent_columns(background, ((0, 3, 4), (1,), (2,), (5,))) == ()
