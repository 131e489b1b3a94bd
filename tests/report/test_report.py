"""The report: one file, complete, safe, small, and right."""

import base64
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skattr import MeasureExplainer, write_report
from skattr._utils.numbers import small as two_digits
from skattr.engines import QuasiMonteCarlo
from skattr.measures import (
    Atoms,
    Baseline,
    Coefficient,
    Conditional,
    Density,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Sampler,
    ScaledCoefficient,
    Shapley,
    Stieltjes,
    Uniform,
)
from skattr.report.figures import keep_inside
from tests.helpers.hostile import HOSTILE
from tests.helpers.lanes import quickly
from tests.helpers.reports import SECTIONS, hostile_explainer

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, text by element."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.source = path.read_text(encoding="utf-8")
        self.elements, self.texts, self.open = [], [], []
        self.in_rows = False  # in the table of rows, which leaves out the tags that HTML implies
        self.feed(self.source)

    def imply_end(self, *tags):
        if self.in_rows and self.open[-1] in tags:
            self.open.pop()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.in_rows |= tag == "table" and dict(attrs).get("class") == "rows"
        if tag in ("td", "th", "tr"):
            self.imply_end("td", "th")
        if tag == "tr":
            self.imply_end("tr")
        if tag not in ("meta", "img", "br", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag == "tbody":
            self.imply_end("td", "th")
            self.imply_end("tr")
        self.in_rows &= tag != "table"
        assert self.open and self.open[-1] == tag, (tag, self.open[-5:])
        self.open.pop()

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def ids(self):
        return [attrs["id"] for _, attrs in self.elements if "id" in attrs]

    def data(self):
        return json.loads(next(text for tag, text in self.texts if text.startswith('{"rows"')))

    def words(self):
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))


def small(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return X, X["a"] * 2 + X["b"] ** 2


def fitted(measure=None, n=60):
    X, y = small(n)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    return MeasureExplainer(forest, measure or PartialDependence()).fit(X), X


def check_page(page):
    """Everything that must hold for every report."""
    assert page.open == []
    assert [each for each in page.ids() if each in SECTIONS] == SECTIONS
    assert len({*page.ids()}) == len(page.ids())
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"iframe", "object", "embed", "link", "form", "base", "svg", "video"}
    allowed = {
        "src",
        "alt",
        "width",
        "height",
        "id",
        "class",
        "href",
        "for",
        "type",
        "value",
        "scope",
        "tabindex",
        "role",
        "lang",
        "charset",
        "content",
        "name",
        "http-equiv",
        "autocomplete",
        "data-output",
        "data-column",
    }
    for tag, attrs in page.elements:
        extra = {name for name in attrs if name not in allowed and not name.startswith("aria-")}
        assert not extra, (tag, extra)
        assert not attrs.get("href", "#").strip("#").startswith(("java", "http"))
        assert attrs.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
        assert tag != "img" or attrs["alt"]
    scripts = [attrs for tag, attrs in page.elements if tag == "script"]
    assert scripts == [{}, {"type": "application/json", "id": "data"}, {}]
    return page


def report(explainer, X, tmp_path, **options):
    path = tmp_path / "report.html"
    assert write_report(explainer, X, path, **options) == str(path)
    return check_page(Page(path))


def kinds(kind, n, rng):
    """Return X of n rows: numbers, levels, or numbers with gaps."""
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    if kind == "categorical":
        X["w"] = rng.choice(["red", "green", "blue"], n)
    if kind == "missing":
        X.loc[::3, "u"] = np.nan
    return X


TARGETS = {"regression": None, "binary": ["no", "yes"], "multiclass": ["x", "y", "z"]}


@pytest.mark.parametrize("target", quickly(TARGETS, ["binary"]))
@pytest.mark.parametrize("kind", quickly(["numeric", "categorical", "missing"], ["missing"]))
@pytest.mark.parametrize("rows", quickly([1, 40], [40]))
def test_exact_reports(target, kind, rows, tmp_path):
    rng = np.random.default_rng(1)
    X = kinds(kind, 60, rng)
    y = rng.normal(size=60) if target == "regression" else rng.choice(TARGETS[target], 60)
    model = (RandomForestRegressor if target == "regression" else RandomForestClassifier)(
        4, max_depth=3, random_state=0
    )
    words = (OneHotEncoder(handle_unknown="ignore"), [c for c in X if c == "w"])
    pipeline = make_pipeline(make_column_transformer(words, remainder="passthrough"), model)
    explainer = MeasureExplainer(pipeline.fit(X, y)).fit(X)
    page = report(explainer, X[:rows], tmp_path)
    outputs = {"regression": 1, "binary": 1, "multiclass": 3}[target]
    data = page.data()
    assert len(data["outputs"]) == outputs and len(data["rows"]) == rows
    centred = explainer.explain(X[:rows]).centered()
    for output, name in zip(data["outputs"], centred.output_names, strict=True):
        frame = centred.select(name).to_frame()[data["features"]]
        np.testing.assert_allclose(output["values"], frame, rtol=1e-5, atol=1e-9)
    assert ("Missing values" in page.words()) == (kind == "missing")
    assert "exact" in page.words()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 12])
def test_approximate_reports(target, rows, tmp_path):
    rng = np.random.default_rng(1)
    X = kinds("numeric", 60, rng)
    y = rng.normal(size=60) if target == "regression" else rng.choice(TARGETS[target], 60)
    kind = RandomForestRegressor if target == "regression" else RandomForestClassifier
    model = kind(3, max_depth=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(model, Conditional("gaussian"), tol=0.05, random_state=0).fit(X)
    page = report(explainer, X[:rows], tmp_path)
    assert not explainer.exact_ and "Approximate values" in page.words()
    assert page.data()["outputs"][0]["error"] is not None
    assert "random_state=0" in page.words() and "standard error" in page.words()


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [1, 300])
@pytest.mark.parametrize("rows", [1, 30])
def test_few_and_many_features(n_features, rows, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, n_features))
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X[:, 0])
    page = report(MeasureExplainer(tree).fit(X), X[:rows], tmp_path)
    data = page.data()
    assert len(data["features"]) == min(n_features, 20) and data["more"] == max(0, n_features - 20)
    assert ("write_report(explainer, X, path, max_features=300)" in page.words()) == (
        n_features == 300
    )


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["numeric", "categorical", "missing"])
def test_any_target_and_kind_of_many_features(target, kind, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 300)), columns=[f"c{k}" for k in range(300)])
    if kind == "missing":
        X = X.mask(X < -1)
    if kind == "categorical":
        X = (X > 0).astype(str)
    y = rng.normal(size=30) if target == "regression" else np.resize(TARGETS[target], 30)
    tree = (DecisionTreeRegressor if target == "regression" else DecisionTreeClassifier)(
        random_state=0
    )
    words = (OneHotEncoder(), list(X) if kind == "categorical" else [])
    pipeline = make_pipeline(make_column_transformer(words, remainder="passthrough"), tree)
    explainer = MeasureExplainer(pipeline.fit(X, y)).fit(X)
    page = report(explainer, X[:2], tmp_path, max_features=1, max_outputs=2)
    data = page.data()
    assert data["more"] == 299 and len(data["outputs"]) == (2 if target == "multiclass" else 1)
    assert ("Missing values" in page.words()) == (kind == "missing")
    sums = explainer.explain(X[:2]).centered().values.reshape(2, 300, -1).sum(axis=1)
    for o, output in enumerate(data["outputs"]):
        total = np.array(output["values"])[:, 0] + output["rest"]
        np.testing.assert_allclose(total, sums[:, o], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*stopped at max_evals")
@pytest.mark.parametrize("k", [1, 3])
def test_approximate_values_of_many_features(k, tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 300))
    explainer = MeasureExplainer(
        lambda X: np.abs(X[:, :k]),
        Conditional("gmm", n_components=1),
        engine=QuasiMonteCarlo(replicates=2),
        max_evals=8,
        random_state=0,
    ).fit(X)
    page = report(explainer, X[:1], tmp_path, max_features=2)
    assert not explainer.exact_ and "Approximate values" in page.words()
    assert "1 row explained once more in the 2 columns shown" in page.words()


@pytest.mark.slow
def test_many_rows_are_stated(tmp_path):
    explainer, X = fitted()
    page = report(explainer, pd.concat([X] * 20), tmp_path, max_rows=100)
    assert "100 of 1,200 rows are shown" in page.words()
    assert "write_report(explainer, X, path, max_rows=1200)" in page.words()
    assert len(page.data()["rows"]) == 100
    assert "max_rows=100" in page.words()  # how to make it again


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("include_data", [True, False])
def test_more_rows_than_fit_are_explained_in_blocks(k, include_data, tmp_path, monkeypatch):
    X, y = small(300)
    model = DecisionTreeRegressor(max_depth=4).fit(X, np.c_[y, -(y**2)][:, :k])
    explainer = MeasureExplainer(model).fit(X)
    whole = report(explainer, X, tmp_path, include_data=include_data)
    monkeypatch.setattr("skattr.report.rows.NUMBERS", 1)
    monkeypatch.setattr("skattr.report.rows.LEAST", 40)
    most, explain = [], MeasureExplainer.explain

    def counted(self, X, **options):
        most.append(len(X))
        return explain(self, X, **options)

    monkeypatch.setattr(MeasureExplainer, "explain", counted)
    page = report(explainer, X, tmp_path, include_data=include_data)
    assert max(most) == 40
    assert "40 of 300 rows are shown" in page.words() and "300 rows explained" in page.words()
    assert "40 of 300" not in whole.words()
    ranking = [[text for tag, text in each.texts if tag == "td"][: 2 * 3] for each in (page, whole)]
    assert ranking[0] == ranking[1]  # importance is that of all rows
    labels = [int(label) for label in page.data()["rows"]]
    assert labels[0] == 0 and labels[-1] == 299 and len(labels) == 40
    shown = explainer.explain(X.iloc[labels]).centered().to_frame().to_numpy()
    names = page.data()["features"]
    order = [list(X.columns).index(name) for name in names]
    np.testing.assert_allclose(
        page.data()["outputs"][0]["values"], shown[:, order], rtol=1e-5, atol=1e-9
    )


@pytest.mark.slow
def test_many_outputs_are_stated(tmp_path):
    X, _ = small()
    y = np.arange(60) % 7
    explainer = MeasureExplainer(LogisticRegression().fit(X, y)).fit(X)
    page = report(explainer, X, tmp_path, max_outputs=2, max_features=2)
    assert "2 of 7 outputs are shown" in page.words() and len(page.data()["outputs"]) == 2


@pytest.mark.slow
def test_the_table_of_importance_has_the_columns_of_its_figure(tmp_path):
    """Also where an output has other important columns than all outputs together."""
    X, _ = small()
    Y = np.column_stack([10 * X["a"] + 5 * X["b"], 8 * X["b"] + X["c"], 20 * X["b"] + 2 * X["c"]])
    explainer = MeasureExplainer(LinearRegression().fit(X, Y)).fit(X)
    page = report(explainer, X, tmp_path, max_features=2)
    importance = explainer.explain(X).importance()
    tables = page.source.split("<caption>Importance, largest first</caption>")[1:]
    assert len(tables) == 3
    for output, table in zip(importance, tables, strict=True):
        names = re.findall(r"<th scope=\"row\"><bdi>(.*?)</bdi>", table.partition("</table>")[0])
        assert names == list(importance[output].sort_values(ascending=False).index[:2])


@pytest.mark.slow
def test_size(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    forest = RandomForestRegressor(20, max_depth=8, random_state=0)
    forest.fit(X, X @ rng.normal(size=20))
    page = report(MeasureExplainer(forest).fit(X), X, tmp_path)
    assert len(page.source.encode()) <= 1_000_000
    assert len(page.data()["rows"]) == 500 and len(page.data()["features"]) == 20


@pytest.mark.slow
def test_scripts_are_small_and_hashed(tmp_path):
    explainer, X = fitted()
    page = report(explainer, X, tmp_path)
    policy = next(a["content"] for t, a in page.elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; img-src data:;") and "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", page.source, re.DOTALL)
    assert len(scripts) == 2
    inline = "".join(scripts)
    style = page.source.partition("<style>")[2].partition("</style>")[0]
    for text in (*scripts, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(inline) <= 40_000
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.source)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", inline)


# Hostile input ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hostile_strings(part, tmp_path, monkeypatch):
    # fifty curves take long to draw; those of four columns are in test_browser
    monkeypatch.setattr("skattr.report.figures.panel", lambda *_: None)
    some = list(dict.fromkeys(HOSTILE[50 * part : 50 * (part + 1)]))
    explainer, X = hostile_explainer(some, some, some[:3], some)
    page = report(explainer, X, tmp_path, title=some[part], max_features=60, max_outputs=2)
    data = page.data()
    assert len(data["features"]) == X.shape[1] and len(data["rows"]) == len(some)
    assert all(len(name) <= 130 for name in data["features"] + data["rows"])
    clean = re.sub(r"\s+", " ", page.words())
    for name in X.columns:  # what is plain text is there as it was
        if name.isprintable() and 0 < len(name) < 100 and name == name.strip():
            assert re.sub(r"\s+", " ", name) in clean, name
    assert "\0" not in page.source and "\u2028" not in page.source


@pytest.mark.slow
def test_null_bytes_in_names(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a\0b", "\0"])
    tree = DecisionTreeRegressor(max_depth=2).fit(X.to_numpy(), X.iloc[:, 0])
    explainer = MeasureExplainer(lambda X: tree.predict(X.to_numpy())).fit(X)
    page = report(explainer, X, tmp_path, title="a\0b")
    assert page.data()["features"] == ["a␀b", "␀"]
    assert "\0" not in page.source


# What is said ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_unseen_categories_and_missing(tmp_path):
    X = pd.DataFrame({"colour": ["red", "green"] * 20, "size": np.arange(40.0)})
    words = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((words, ["colour"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeRegressor(random_state=0)).fit(X, np.arange(40.0))
    explainer = MeasureExplainer(model).fit(X)
    new = X.copy()
    new.loc[[0, 1, 2], "colour"] = "violet"
    new.loc[5, "size"] = np.nan
    page = report(explainer, new, tmp_path)
    assert "colour: 1 levels that the model does not know, in 3 rows: violet" in page.words()
    assert "size (1 rows)" in page.words()
    assert "violet" not in report(explainer, new, tmp_path, include_data=False).words()
    assert "Unseen" not in report(explainer, X, tmp_path).words()


@pytest.mark.slow
def test_thin_support(tmp_path):
    X, _ = small(200)
    X.loc[0, "a"] = 50.0
    tree = DecisionTreeRegressor(max_depth=3).fit(X, X["a"])
    explainer = MeasureExplainer(tree, Conditional("knn", n_neighbors=5)).fit(X)
    assert "Thin support" in report(explainer, X, tmp_path).words()


@pytest.mark.slow
def test_groups_and_whole_rows_have_no_curve(tmp_path):
    X, y = small()
    tree = DecisionTreeRegressor(max_depth=3).fit(X, y)
    explainer = MeasureExplainer(tree, groups={"both": ["a", "b"]}).fit(X)
    page = report(explainer, X, tmp_path)
    assert "A group of columns has no curve" in page.words() and "both" in page.words()
    row = MeasureExplainer(tree, Dirac() - Expectation()).fit(X)
    assert "depends on the whole row" in report(row, X, tmp_path).words()


@pytest.mark.slow
def test_completeness(tmp_path):
    X, y = small()
    linear = MeasureExplainer(LinearRegression().fit(X, y)).fit(X)
    assert "The values add up to the prediction" in report(linear, X, tmp_path).words()
    explainer, X = fitted()
    page = report(explainer, X, tmp_path)
    explanation = explainer.explain(X).centered()
    gap = explanation.values.sum(axis=1) + explanation.base_value - explanation.predictions
    assert f"{np.sqrt(np.mean(gap**2)):.3f}"[:4] in page.words()


def large(page):
    """The notes in large print, as their number."""
    return sum("large" in attrs.get("class", "").split() for _, attrs in page.elements)


@pytest.mark.slow
def test_what_is_left_is_named_and_large_if_it_is(tmp_path):
    X, _ = small()
    linear = MeasureExplainer(LinearRegression().fit(X, X["a"])).fit(X)
    page = report(linear, X, tmp_path)
    assert large(page) == 0 and "do not add up" not in page.words()
    product = MeasureExplainer(lambda Z: np.asarray(Z)[:, 0] * np.asarray(Z)[:, 1]).fit(X)
    page = report(product, X, tmp_path)
    explanation = product.explain(X)
    share = np.sqrt(np.mean(explanation.remainder() ** 2)) / explanation.predictions.std()
    assert share > 0.1 and large(page) == 1
    assert (
        f"nteractions are as large as {100 * share:.0f} % of the spread of the predictions"
        in page.words()
    )
    assert "groups=" in page.words() and "do not add up" in page.words()
    assert "MeasureExplainer(model, 'shapley')" in page.words()
    assert page.data()["remainder"] == "interactions"
    few = product.explain(X, features=["a"])
    page = report(product, X, tmp_path, explanation=few)
    assert "hat is not explained by these columns is as large as" in page.words()
    assert page.data()["remainder"] == "not explained by these columns"
    weak = MeasureExplainer(lambda Z: np.asarray(Z) @ [1.0, 1.0, 0.0]
                            + 0.05 * np.asarray(Z)[:, 0] * np.asarray(Z)[:, 1]).fit(X)  # fmt: skip
    page = report(weak, X, tmp_path)
    assert large(page) == 0 and "prediction: interactions" in page.words()


@pytest.mark.slow
def test_shapley_values(tmp_path):
    """They add up, say so, and are made again by the code of the report."""
    X, _ = small()

    def product(Z):
        return np.asarray(Z)[:, 0] * np.asarray(Z)[:, 1]

    words = report(MeasureExplainer(product).fit(X), X, tmp_path).words()
    assert "Shapley values share it out" in words and "MeasureExplainer(model, 'shapley')" in words
    explainer = MeasureExplainer(product, "shapley").fit(X)
    page = report(explainer, X, tmp_path)
    assert large(page) == 0 and "The values add up to the prediction" in page.words()
    assert "The measure depends on the whole row, so there is no curve" in page.words()
    assert "the mean difference that the row's own value makes" in page.words()
    output = page.data()["outputs"][0]
    ends = output["base"] + np.sum(output["values"], axis=1) + np.array(output["rest"])
    np.testing.assert_allclose(ends, output["prediction"], atol=1e-5)
    for include_data in (True, False):
        explainer = MeasureExplainer(product, Shapley(Conditional("knn"))).fit(X)
        page = report(explainer, X, tmp_path, include_data=include_data)
        assert "from skattr.measures import Conditional, Shapley" in page.words()
        assert "measure=Shapley(measure=Conditional(estimator='knn'))" in page.words()
        assert "a set of values is worth the mean of f over rows like those" in page.words()
    uniform = MeasureExplainer(DecisionTreeRegressor(max_depth=3).fit(X, product(X)),
                               Shapley(Uniform())).fit(X)  # fmt: skip
    page = report(uniform, X, tmp_path)
    assert large(page) == 0 and "The values add up to the prediction" in page.words()


@pytest.mark.slow
def test_dependent_columns_are_a_warning(tmp_path):
    X, y = small()
    X = X.assign(b=2 * X["a"] + 0.01 * X["b"])
    model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    page = report(MeasureExplainer(model, "conditional_effect").fit(X), X, tmp_path)
    assert "Dependent columns" in page.words() and "groups=" in page.words()
    page = report(MeasureExplainer(model).fit(X), X, tmp_path)
    assert "Dependent columns" not in page.words()


@pytest.mark.slow
def test_without_data(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"n": rng.normal(size=40) + 1234.5, "word": rng.choice(["SECRETA", "SECRETB"], 40)},
        index=[f"PERSON{i}" for i in range(40)],
    )
    columns = make_column_transformer((OneHotEncoder(), ["word"]), remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeRegressor(max_depth=3)).fit(X, rng.normal(size=40))
    measure = PartialDependence() - Baseline({"n": 77123.0, "word": "SECRETA"})
    explainer = MeasureExplainer(model, measure, domain={"n": (0.0, 88123.0)}).fit(X)
    page = report(explainer, X, tmp_path, include_data=False)
    assert page.data()["data"] is None
    for secret in ("SECRET", "PERSON", "77123", "88123", *(f"{v:.6g}" for v in X["n"][:20])):
        assert secret not in page.source.split("</style>")[1], secret
    assert "SECRETA" in report(explainer, X, tmp_path).source


@pytest.mark.slow
def test_explanation_given(tmp_path):
    explainer, X = fitted()
    explanation = explainer.explain(X, features=["b", "a"], predictions=False)
    page = report(explainer, X, tmp_path, explanation=explanation)
    assert set(page.data()["features"]) == {"a", "b"}
    assert page.data()["outputs"][0]["prediction"] is None
    with pytest.raises(ValueError, match="60 rows, X has 3"):
        write_report(explainer, X[:3], tmp_path / "x.html", explanation=explanation)


@pytest.mark.slow
def test_columns_in_another_order(tmp_path):
    explainer, X = fitted()
    page = report(explainer, X[["c", "a", "b"]], tmp_path)
    data = page.data()
    frame = explainer.explain(X).centered().to_frame()[data["features"]]
    np.testing.assert_allclose(data["outputs"][0]["values"], frame, rtol=1e-5, atol=1e-9)
    assert [float(v) for v in data["data"][0]] == pytest.approx(
        [X[name].iloc[0] for name in data["features"]], rel=1e-5
    )


@pytest.mark.slow
def test_code_runs_again(tmp_path):
    explainer, X = fitted(0.5 * PartialDependence() - Expectation())
    page = report(explainer, X, tmp_path, max_rows=7)
    code = next(text for tag, text in page.texts if tag == "code" and "explainer.fit" in text)
    scope = {"model": explainer.estimator, "X_background": X, "X": X}
    code = code.replace("'report.html'", repr(str(tmp_path / "again.html")))
    exec(code, scope)
    assert Page(tmp_path / "again.html").data() == page.data()


@pytest.mark.slow
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    explainer, X = fitted()
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", lambda fd: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(explainer, X, path)
    assert path.read_text() == "old" and [each.name for each in tmp_path.iterdir()] == [
        "report.html"
    ]


@pytest.mark.parametrize("option", ["max_rows", "max_features", "max_outputs"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many"])
def test_wrong_limits(option, value, tmp_path):
    explainer, X = fitted()
    with pytest.raises(ValueError, match=option):
        write_report(explainer, X, tmp_path / "x.html", **{option: value})


@pytest.mark.slow
def test_polars_and_dates(tmp_path):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"n": rng.normal(size=30), "m": rng.integers(0, 5, 30)})
    tree = DecisionTreeRegressor(max_depth=3).fit(X, X["n"])
    page = report(MeasureExplainer(tree).fit(X), X, tmp_path)
    assert page.data()["rows"] == [str(i) for i in range(30)]
    dates = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=30), "n": np.arange(30.0)})
    explainer = MeasureExplainer(lambda X: X["n"].to_numpy() + X["day"].dt.day.to_numpy()).fit(
        dates
    )
    assert "2024-01-01" in report(explainer, dates, tmp_path).words()


@pytest.mark.slow
def test_prices_are_written_as_prices(tmp_path):
    X, y = small_prices()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(tree).fit(X)
    page = report(explainer, X, tmp_path)
    explanation = explainer.explain(X)
    cells = [text for tag, text in page.texts if tag == "td"]
    assert f"{explanation.predictions[0]:,.0f}" in cells  # the table without scripts
    assert f"{explainer.base_value_:,.0f}" in page.words()
    importance = explanation.importance()
    assert f"{importance.iloc[0]:,.0f}" in cells
    data = page.data()["data"][0]
    assert f"{X['price'].iloc[0]:,.0f}" in data and f"{X['built'].iloc[0]}" in data
    assert {"False", "True"} & {*data}
    outputs = page.data()["outputs"][0]
    assert outputs["decimals"] == 0
    np.testing.assert_allclose(outputs["prediction"], explanation.predictions, atol=0.5)
    assert not re.search(r"\d\.\d+e\+\d", page.words())


def small_prices(n=60):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"price": rng.integers(100_000, 900_000, n), "built": rng.integers(1900, 2020, n),
         "sold": rng.random(n) < 0.5}
    )  # fmt: skip
    return X, 3.137 * X["price"] + 1000.1 * X["built"] + 50_000 * X["sold"]


@pytest.mark.slow
def test_columns_of_many_levels_are_drawn(tmp_path):
    levels = [f"level {i}" for i in range(60)]
    X = pd.DataFrame({"c": levels * 2})
    encoder = OneHotEncoder(handle_unknown="ignore")  # so that the curve has "any other", too
    model = make_pipeline(encoder, LinearRegression()).fit(X, np.arange(120) % 60)
    page = report(MeasureExplainer(model).fit(X), X, tmp_path)
    assert "too many levels" not in page.words()
    assert "60 levels" in page.words()


@pytest.mark.parametrize("size", [(5.4, 2.0), (5.4, 4.0)])
def test_labels_of_axes_are_not_cut(size):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    ax.barh(["a name of a column that is long" * 2], [1.0])
    ax.set_xlabel("mean of |attribution, centred| · log-odds of a class")
    ax.set_ylabel("attribution, centred · log-odds of a class")
    canvas.draw()
    cut = ax.xaxis.label.get_window_extent().x1 > figure.bbox.x1
    assert cut
    assert keep_inside(ax)
    canvas.draw()
    for label in (ax.xaxis.label, ax.yaxis.label):
        box = label.get_window_extent()
        assert box.x1 <= figure.bbox.x1 + 1 and box.y0 >= -1 and box.y1 <= figure.bbox.y1 + 1


@pytest.mark.slow
def test_figures_are_small_pictures(tmp_path):
    from PIL import Image

    explainer, X = fitted()
    page = report(explainer, X, tmp_path)
    pictures = [attrs for tag, attrs in page.elements if tag == "img"]
    # importance, beeswarm; curves; surfaces of pairs; waterfalls
    assert len(pictures) == 2 + 3 + 2 + 3
    for attrs in pictures:
        image = Image.open(io.BytesIO(base64.b64decode(attrs["src"].partition(",")[2])))
        assert (str(image.width), str(image.height)) == (attrs["width"], attrs["height"])
        assert len(np.unique(np.asarray(image.convert("L")))) > 5  # something is drawn


WRITTEN = {
    "∫ f hⱼ,ₓ dy": Density(lambda y, x, j: x[j] + y[..., j]),
    "∫ f dgⱼ,ₓ": Stieltjes(lambda y, x, j: y.prod(axis=-1)),
    "Σₐ wⱼₐ f(pₐ)": Atoms(lambda x: (np.vstack([x, 0 * x]), np.ones((2, 2)))),
    "E f(Yⱼ,ₓ)": Sampler(lambda x, j, n, rng: rng.random((n, 2))),
    "2 E f(Uⱼ, l₋ⱼ) − 2 · f(l)": Coefficient(mass_zero=True),
    "f(xⱼ, l₋ⱼ) − f(l)": ScaledCoefficient(mass_zero=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("formula", WRITTEN)
def test_measures_of_ones_own(formula, tmp_path):
    """The formula, and the errors of the values that are shown: the centred ones."""
    X = pd.DataFrame(np.random.default_rng(0).random((12, 2)), columns=["a", "b"])
    measure = WRITTEN[formula] + Uniform() * 0.5

    def f(Z):
        return np.exp(np.asarray(Z)).sum(axis=1)

    explainer = MeasureExplainer(f, measure, random_state=0, tol=0.2).fit(X)
    write_report(explainer, X, tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    assert formula in page.words()
    error = explainer.explain(X).centered_error
    assert f"largest standard error {two_digits(error.max())}" in page.words()
    assert (
        f"median {two_digits(np.median(error))}, largest {two_digits(error.max())}" in page.words()
    )


@pytest.mark.slow
@pytest.mark.parametrize("measure", [Uniform(), ProductMarginal()])
def test_approximate_values_of_categories_and_missing_values(measure, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=40), "kind": rng.choice(["x", "y"], 40)})
    table["c"] = np.where(np.arange(40) % 7, rng.normal(size=40), np.nan)

    def f(Z):
        return np.sin(Z["a"]) * (Z["kind"] == "x") + Z["c"].fillna(2.0)

    settings = {"engine": QuasiMonteCarlo(4), "tol": 0.5, "random_state": 0}
    explainer = MeasureExplainer(f, measure, **settings).fit(table)
    path = tmp_path / "report.html"
    write_report(explainer, table[:8], path)
    page = path.read_text()
    assert "quasi_monte_carlo" in page and "approximate" in page and "missing" in page


def test_a_target_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    explainer, X = fitted()

    def work(*_, **__):
        raise AssertionError("rows were explained first")

    monkeypatch.setattr(MeasureExplainer, "explain", work)
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        write_report(explainer, X, tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(explainer, X, tmp_path / "no" / "report.html")
