"""The plain words of a report, on models whose truth is known."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, decompose, write_report
from skattr.engines import QuasiMonteCarlo
from skattr.measures import Uniform
from skattr.report.rows import ExplainedRows
from skattr.report.sentences import Facts, plain_words
from skattr.report.settings import Settings
from skattr.report.tables import Column

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")

N = 400
RNG = np.random.default_rng(0)
AREA = RNG.permutation(np.linspace(20, 200, N))
X = pd.DataFrame({"area": AREA, "noise": RNG.normal(size=N)})


def plain(explainer, rows, tmp_path, **options):
    """The sentences of the first output, with their links."""
    path = tmp_path / "report.html"
    write_report(explainer, rows, path, **options)
    source = path.read_text(encoding="utf-8")
    found = re.search(r'<ul class="sentences">(.*?)</ul>', source, re.DOTALL).group(1)
    items = re.findall(r'<li><bdi>(.*?)</bdi> <a href="#(.*?)">', found)
    ids = set(re.findall(r' id="(.*?)"', source))
    assert 5 <= len(items) <= 8
    for text, anchor in items:
        assert anchor in ids and re.search(r"\d", text) and text.endswith("."), text
    return [unescape(text) for text, _ in items]


def sentences(explainer, rows, **options):
    """The sentences of the first output, without a page."""
    explained = ExplainedRows.of(explainer.explain(rows))
    explanation = explained.explanation
    columns = [Column(explanation, j) for j in range(len(explanation.feature_names))]
    settings = Settings("", "", "", **options)
    top = np.arange(len(columns))
    found = plain_words(Facts(explainer, explained, 0, columns, top, None, [], settings))
    return [sentence.text for sentence in found]


def about(function, **options):
    """What is said of `area`, for a function of it."""
    explainer = MeasureExplainer(lambda Z: function(Z["area"].to_numpy())).fit(X)
    said = sentences(explainer, X, **options)
    (found,) = [sentence for sentence in said if sentence.startswith("The effect of area")]
    return found


SHAPES = {  # amounts are those of the middle 98 % of the rows
    "rising": (lambda x: 5.1 * x, "rises by 5.1 per unit."),
    "falling": (lambda x: 40 - 0.25 * x, "falls by 0.25 per unit."),
    "then flat": (
        lambda x: 5.1 * np.minimum(x, 120),
        "rises by 5.1 per unit up to 120, then is flat.",
    ),
    "flat, then": (lambda x: -2 * np.maximum(x, 80), "is flat up to 80, then falls by 2 per unit."),
    "two slopes": (
        lambda x: 5 * np.minimum(x, 100) + np.maximum(x, 100),
        "rises by 5 per unit up to 100, then by 1 per unit.",
    ),
    "humped": (lambda x: -((x - 110) ** 2) / 100, "rises by 77.8 up to 110, then falls by 77.8."),
    "valley": (lambda x: (x - 65) ** 2 / 100, "falls by 18.7 up to 65, then rises by 177."),
    "one step": (
        lambda x: 7.0 * (x > 100),
        "is 7 higher above 100 than below, and flat otherwise.",
    ),
    "one step that matters": (
        lambda x: 7.0 * (x > 100) + 0.1 * (x > 120) - 0.1 * (x > 140),
        "is 7 higher above 100 than below, and nearly flat otherwise.",
    ),
    "steps": (
        lambda x: 7.0 * (x > 60) - 3.0 * (x > 150),
        "is constant but for 2 jumps: +7 at 60 and −3 at 150.",
    ),
    "waves": (lambda x: np.sin(x / 9), "goes up and down"),
    "curved": (lambda x: np.exp(x / 20), "in all, from 22 to 198."),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    function, said = SHAPES[shape]
    assert said in about(function)


@pytest.mark.slow
def test_few_values():
    """Whole numbers have whole places, and each of few numbers may have its own value."""
    rows = X.assign(area=np.arange(N) % 6)

    def said(function, rows=rows):
        explainer = MeasureExplainer(lambda Z: function(Z["area"].to_numpy())).fit(X.assign(area=1))
        (found,) = [s for s in sentences(explainer, rows) if s.startswith("The effect of area")]
        return found.removeprefix("The effect of area ")

    assert said(lambda x: 4.0 * x) == "rises by 4 per unit."
    assert said(lambda x: 4.0 * (x > 3)) == "is 4 higher above 3 than below, and flat otherwise."
    assert said(lambda x: 4.0 * x, rows[3:4]) == "goes from +8 to +8."


@pytest.mark.slow
def test_a_deep_tree_has_the_shape_of_what_it_learned(tmp_path):
    tree = DecisionTreeRegressor().fit(X[["area"]], 5.1 * X["area"].clip(upper=120))
    said = plain(MeasureExplainer(tree).fit(X[["area"]]), X[["area"]], tmp_path)
    (found,) = [s for s in said if s.startswith("The effect of area")]
    match = re.search(r"rises by (\S+) per unit up to (\d+), then is flat\.", found)
    assert abs(float(match[1]) - 5.1) < 0.1 and abs(int(match[2]) - 120) <= 2


def test_drivers_units_and_descriptions(tmp_path):
    rows = X.assign(rooms=RNG.integers(1, 6, N))
    model = LinearRegression().fit(rows, 5.1 * rows["area"] + 10 * rows["rooms"])
    explainer = MeasureExplainer(model).fit(rows)
    said = plain(
        explainer, rows, tmp_path,
        units={"area": "m²"}, output_unit="€", descriptions={"area": "living area"},
    )  # fmt: skip
    size = explainer.explain(rows).importance()
    share = size["area"] / size.sum()
    driver = said[1]
    assert driver.startswith("area (living area) drives the model most")
    area, rooms = (f"{size[name]:.3g} €" for name in ("area", "rooms"))
    assert f"{area} on average, {100 * share:.0f} % of all effects" in driver
    assert f"then rooms ({rooms})" in driver
    assert "The effect of area rises by 5.1 € per m²." in said
    html = (tmp_path / "report.html").read_text()
    assert "living area" in html and "in m²" in html
    assert "units={&#39;area&#39;: &#39;m²&#39;}" in html  # the code makes the report again


@pytest.mark.slow
def test_levels_and_booleans(tmp_path):
    rows = pd.DataFrame(
        {"city": np.array(["Rome", "Oslo", "Bonn", "missing"])[np.arange(N) % 4],
         "lift": RNG.random(N) < 0.5}
    )  # fmt: skip
    y = (
        rows["city"].map({"Rome": 9.0, "Oslo": -2.0, "Bonn": 0.0, "missing": 1.0})
        - 3 * rows["lift"]
    )
    words = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    explainer = MeasureExplainer(make_pipeline(words, LinearRegression()).fit(rows, y)).fit(rows)
    said = plain(explainer, rows, tmp_path)
    assert "The effect of city is highest at Rome (+7) and lowest at Oslo (−4)." in said
    assert "The effect of lift is 3 lower where it is True than where it is not." in said
    private = " ".join(plain(explainer, rows, tmp_path, include_data=False))
    assert "differs by 11 between its 4 levels" in private
    assert not re.search("Rome|Oslo|Bonn|True", private)


@pytest.mark.slow
def test_missing_matters(tmp_path):
    rows = X.copy()
    rows.loc[::4, "area"] = np.nan
    y = np.where(rows["area"].isna(), 10.0, 0.0)
    model = HistGradientBoostingRegressor(max_iter=60, learning_rate=0.5).fit(rows, y)
    said = plain(MeasureExplainer(model).fit(rows), rows, tmp_path)
    assert "Where area is missing (100 rows), its effect is 10 higher than elsewhere." in said
    assert any(s.startswith("The effect of area is flat") for s in said)
    full = plain(MeasureExplainer(model).fit(X), X, tmp_path)
    assert not any("is missing" in s for s in full)


@pytest.mark.slow
def test_interactions_and_what_to_be_careful_about(tmp_path):
    rows = pd.DataFrame(RNG.normal(size=(200, 3)).round(1), columns=["a", "b", "c"])
    model = DecisionTreeRegressor(max_depth=7).fit(rows, rows["a"] * rows["b"] + rows["c"])
    explainer = MeasureExplainer(model).fit(rows)
    said = plain(explainer, rows, tmp_path)
    parts = decompose(explainer, rows)
    (pair,) = parts.strength.query("kind == 'pair'").nlargest(1, "share").itertuples()
    single = parts.shares["single columns"]
    assert f"Single columns explain {100 * single:.0f} % of the variance" in said[-3]
    part = f"{100 * pair.share:.1f} %"
    assert f"the strongest pair, {pair.first} × {pair.second}, has {part}" in said[-3]
    assert said[-2].startswith("All 600 effects are exact: nothing was sampled; with other")
    left = explainer.explain(rows)
    size = np.sqrt(np.mean(left.remainder() ** 2)) / left.predictions.std()
    assert said[-1] == (
        f"Be careful, there is 1 warning: interactions are as large as {100 * size:.0f} % of the "
        "spread of the predictions."
    )
    shapley = plain(MeasureExplainer(model, "shapley").fit(rows), rows, tmp_path)
    assert "The effects of a row add up to its prediction: they explain 100 % of it." in shapley
    assert shapley[-1] == "There are 0 warnings."
    (of_c,) = [s for s in shapley if s.startswith("The effect of c")]
    assert "and mostly rises with its value (rank correlation" in of_c


@pytest.mark.slow
def test_approximate_values_say_so(tmp_path):
    few = X[:40]
    model = KNeighborsRegressor(2).fit(few, few["area"])
    explainer = MeasureExplainer(
        model, Uniform(), engine=QuasiMonteCarlo(), tol=0.5, random_state=0
    )
    said = plain(explainer.fit(few), few, tmp_path)
    explanation = explainer.explain(few).centered()
    share = explanation.std_error.max() / explanation.predictions.std()
    assert "The effects are approximate: the largest standard error is" in said[-2]
    assert f"{100 * share:.1f} % of the spread of the predictions" in said[-2]


@pytest.mark.slow
def test_a_constant_model(tmp_path):
    said = plain(MeasureExplainer(lambda Z: np.full(len(Z), 3.0)).fit(X), X, tmp_path)
    assert "No column moves the prediction: the effects of all 2 are 0." in said
    assert "3" in said[0]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_without_data_neither_places_nor_slopes_are_told(shape):
    said = about(SHAPES[shape][0], include_data=False)
    assert not re.search(r"per unit|up to|above| at \d|from 2\d to", said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"units": {"height": "m"}}, ValueError, "units has 'height', which is not explained"),
        ({"units": ["m"]}, TypeError, "units must be a dict"),
        ({"descriptions": {"area": 3}}, TypeError, r"descriptions\['area'\] must be a str"),
        ({"output_unit": 3}, TypeError, "output_unit must be a str, got 3"),
    ],
)
def test_wrong_units(options, error, match, tmp_path):
    explainer = MeasureExplainer(lambda Z: Z["area"].to_numpy()).fit(X)
    with pytest.raises(error, match=match):
        write_report(explainer, X, tmp_path / "report.html", **options)
