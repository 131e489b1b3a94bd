"""A report without data: no raw value in the text, in the pictures' shapes, or in their files."""

import base64
import json
import re
import struct
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skattr import MeasureExplainer, write_report
from skattr.curves.rounded import round_width, rounded
from skattr.measures import Baseline, Conditional, PartialDependence, Uniform

pytest.importorskip("jinja2", reason="the report needs jinja2")
pytest.importorskip("matplotlib", reason="the report needs matplotlib")
pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge|Stochastic Optimizer")

DIGITS = 6  # of a raw value that nothing else has by chance


def secrets(n=60, seed=0):
    """Numbers, levels, dates and an index that can be recognised wherever they appear."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.normal(size=n) * 1e4 + 5e6,
            "share": rng.random(n) * 1e-5 + 7.3e-3,
            "word": rng.choice(["SECRETA", "SECRETB", "SECRETC"], n),
            "mixed": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n) * 3e8),
        },
        index=[f"PERSON{i}" for i in range(n)],
    )


def numbers_of(X):
    values = X.select_dtypes("number").to_numpy().ravel()
    return values[np.isfinite(values)]


def trees(model):
    def make(X, y):
        words = make_column_transformer(
            (OneHotEncoder(), ["word"]), (StandardScaler(), ["share"]), remainder="passthrough"
        )
        return make_pipeline(words, model).fit(X, y)

    return make


def linear(X, y):
    return make_pipeline(
        make_column_transformer((StandardScaler(), ["income", "share"])), LinearRegression()
    ).fit(X, y)


def network(X, y):
    scaled = make_column_transformer((StandardScaler(), ["income", "share"]))
    return make_pipeline(
        scaled, MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0)
    ).fit(X, y)


def function(X, y):
    tree = RandomForestRegressor(3, random_state=0).fit(X[["income"]].to_numpy(), y)
    return lambda X: tree.predict(X[["income"]].to_numpy())


def xgboost(X, y):
    """Its thresholds are values of the data."""
    booster = pytest.importorskip("xgboost")
    numbers = make_column_transformer(("passthrough", ["income", "share", "mixed"]))
    return make_pipeline(numbers, booster.XGBRegressor(n_estimators=5)).fit(X, y)


MODELS = {
    "forest": trees(RandomForestRegressor(5, random_state=0)),
    "boosting": trees(HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2)),
    "xgboost": xgboost,
    "linear": linear,
    "network": network,
    "function": function,
}
MEASURES = {
    "main_effect": lambda X: "main_effect",
    "kernel": lambda X: Conditional("kernel"),
    "knn": lambda X: Conditional("knn"),
    "local_linear": lambda X: Conditional("local_linear"),
    "baseline": lambda X: PartialDependence() - Baseline(X.iloc[0].to_dict()),
    "uniform": lambda X: Uniform(),
    "shapley": lambda X: "shapley",
}
PAIRS = [
    *(("forest", kind) for kind in MEASURES if kind != "shapley"),
    *(("xgboost", kind) for kind in ("main_effect", "kernel", "baseline")),
    *((kind, "main_effect") for kind in ("boosting", "linear", "network", "function")),
    ("function", "kernel"),
    ("forest", "shapley"),
]


def forms(value):
    """The ways to write a number with six digits or more; round numbers have fewer."""
    six = f"{value:.{DIGITS}g}"
    written = {six, f"{float(six):.0f}", f"{value:.0f}", f"{value:.3f}", f"{value:.9f}"}
    return {each for each in written if len(re.sub(r"e.*|\D", "", each).strip("0")) >= DIGITS}


def found_in(text, values):
    """The raw values, or labels of the index or of levels, that are in a text."""
    text += re.sub(r"(?<=\d)[,\u202f\u2009](?=\d)", "", text)  # separators of thousands
    written = set().union(*map(forms, values))
    return [form for form in written if form in text] + re.findall(r"SECRET.|PERSON\d+", text)


def drawn_numbers(figure):
    """All coordinates of lines, areas, collections, texts and ticks of a figure, as numbers."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    numbers = []
    for artist in figure.findobj():
        if isinstance(artist, Line2D):
            numbers += [np.ravel(artist.get_xydata())]
        elif isinstance(artist, Collection):
            numbers += [np.ravel(artist.get_offsets()), np.ravel(artist.get_array())]
            numbers += [np.ravel(path.vertices) for path in artist.get_paths()]
        elif isinstance(artist, Patch):
            numbers += [np.ravel(artist.get_path().vertices)]
        elif isinstance(artist, Text):
            numbers += [np.ravel(artist.get_position())]
        elif hasattr(artist, "get_xlim"):
            numbers += [artist.get_xlim(), artist.get_ylim()]
    plain = [np.asarray(some, object) for some in numbers]
    flat = [v for some in plain for v in some if isinstance(v, float | int | np.number)]
    return np.array(flat, float)


@pytest.fixture
def figures(monkeypatch):
    """All figures that are drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    seen = []
    draw = FigureCanvasAgg.draw
    monkeypatch.setattr(
        FigureCanvasAgg, "draw", lambda self: (seen.append(self.figure), draw(self))
    )
    return seen


def chunks(png):
    """The names of the parts of a PNG file."""
    names, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        names.append(png[at + 4 : at + 8].decode())
        at += 12 + length
    return names


@pytest.mark.slow
@pytest.mark.parametrize(("model", "kind"), PAIRS)
def test_no_raw_value_is_in_the_file(model, kind, tmp_path, figures):
    X = secrets()
    y = X["income"] / 1e6 + 1e5 * X["share"] + X["word"].str.len()
    estimator = MODELS[model](X, y + np.random.default_rng(1).normal(size=len(X)))
    rows = X.drop(columns=["word", "mixed"]) if kind == "uniform" else X
    if kind == "uniform":
        estimator = make_pipeline(RandomForestRegressor(5, random_state=0)).fit(rows, y)
    settings = {"domain": {"income": (1234567.0, 7654321.0)}} if kind == "uniform" else {}
    explainer = MeasureExplainer(estimator, MEASURES[kind](X), max_evals=500, tol=1, **settings)
    path = tmp_path / "report.html"
    slices = rows.columns[len(model) % rows.shape[1]]  # numbers and levels
    write_report(
        explainer.fit(rows), rows, path, include_data=False, max_rows=7, target=6.25, slices=slices
    )
    check_file(path, X, figures)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [(0, 1), (0, 2), (5, 6)])
@pytest.mark.parametrize("model", ["forest", "xgboost", "linear"])
def test_no_raw_value_is_in_a_comparison(model, seeds, tmp_path, figures):
    X, later = (secrets(seed=seed) for seed in seeds)
    y = X["income"] / 1e6 + 1e5 * X["share"] + X["word"].str.len()
    explainers = [
        MeasureExplainer(MODELS[model](rows, y)).fit(rows) for rows in (X, later.set_axis(X.index))
    ]
    path = tmp_path / "report.html"
    for tables in (X, [X, later]):
        write_report(explainers, tables, path, include_data=False, max_rows=7, target=6.25)
        assert "What changed from" in path.read_text(encoding="utf-8")
        check_file(path, pd.concat([X, later]), figures)


def test_what_is_left_out_is_said(tmp_path):
    """Nothing that the page could compute from data is in it, and it says so."""
    X = secrets()
    explainer = MeasureExplainer(MODELS["forest"](X, X["income"])).fit(X)
    path = tmp_path / "report.html"
    write_report(explainer, X, path, include_data=False, target=5e6, slices="word")
    html = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', html).group(1))
    assert [data[name] for name in ("data", "what_if", "charts", "changes")] == [None] * 4
    for words in (
        "Values of columns, levels and slopes are left out: include_data=False.",
        "Left out: curves tell values of the data, and include_data=False.",
        "Left out: the names of slices are values of the data, and include_data=False.",
        "they tell values of the data, and include_data=False.",
        "it is left out: include_data=False.",
    ):
        assert words in html, words


def check_file(path, X, figures):
    """No raw value is in the text, in the pictures' shapes, or in their files."""
    html = path.read_text(encoding="utf-8")
    images = re.findall(r"data:image/png;base64,([A-Za-z0-9+/=]+)", html)
    text = unescape(re.sub(r"base64,[A-Za-z0-9+/=]+", "", html)).encode().decode("utf-8")
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    raw = np.append(numbers_of(X), [1234567.0, 7654321.0])
    assert found_in(text, raw) == []
    assert images and figures
    for image in images:
        assert {*chunks(base64.b64decode(image))} <= {"IHDR", "PLTE", "IDAT", "IEND", "tRNS"}
    for figure in figures:
        drawn = drawn_numbers(figure)
        round_numbers = [float(f"{v:.{DIGITS - 1}g}") for v in drawn]  # of axes and grids
        drawn = drawn[~np.isclose(drawn, round_numbers, rtol=1e-12, atol=0)]
        same = np.isclose(drawn[:, None], raw, rtol=1e-7, atol=0).any(axis=1)
        assert not same.any(), drawn[same]
        words = " ".join(
            text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text"))
        )
        assert found_in(words, raw) == []


@pytest.mark.slow
def test_the_search_finds_what_is_there(tmp_path, figures):
    X = secrets()
    forest = MODELS["forest"](X, X["income"])
    path = tmp_path / "report.html"
    write_report(MeasureExplainer(forest, Conditional("kernel")).fit(X), X, path)
    found = found_in(path.read_text(encoding="utf-8"), numbers_of(X))
    assert any(each.startswith("SECRET") for each in found)
    assert any(each.startswith("PERSON") for each in found)
    assert any(each.startswith(("50", "49")) for each in found)
    drawn = np.concatenate([drawn_numbers(figure) for figure in figures])
    assert np.isclose(drawn[:, None], numbers_of(X), rtol=1e-7, atol=0).any(axis=0).sum() > 50


@pytest.mark.parametrize("flag", ["no", "False", 0, 1, None, "yes"])
def test_a_flag_is_true_or_false(flag, tmp_path):
    X = secrets()[["income", "share"]]
    explainer = MeasureExplainer(LinearRegression().fit(X, X["income"])).fit(X)
    explanation = explainer.explain(X)
    path = tmp_path / "report.html"
    for name, call in {
        "include_data": lambda: write_report(explainer, X, path, include_data=flag),
        "predictions": lambda: explainer.explain(X, predictions=flag),
        "tidy": lambda: explanation.to_frame(tidy=flag),
    }.items():
        with pytest.raises(ValueError, match=f"{name} must be True or False, got {flag!r}"):
            call()
    assert not path.exists()


@pytest.mark.parametrize("seed", range(5))
def test_rounded_steps_are_the_curve_at_round_numbers(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=80) * 10.0 ** rng.integers(-6, 7) + rng.normal()})
    y = rng.normal(size=80)
    model = RandomForestRegressor(4, max_depth=rng.integers(1, 5), random_state=0).fit(X, y)
    curve = MeasureExplainer(model, Conditional("kernel") if seed % 2 else "main_effect").fit(X)
    curve = curve.curve("a")
    jumps = curve.to_frame()["lower"].to_numpy()
    jumps = jumps[np.isfinite(jumps)]
    low, high = jumps[0], jumps[-1]
    width, _ = round_width(low, high)
    round_curve = rounded(curve)
    centres = (np.arange(np.floor(low / width), np.ceil(high / width)) + 0.5) * width
    np.testing.assert_array_equal(round_curve(centres), curve(centres))
    beyond = np.array([low - 2 * width, high + 2 * width])
    np.testing.assert_array_equal(round_curve(beyond), curve(beyond))
    frame = round_curve.to_frame()
    ends = frame["lower"].to_numpy()[1:]
    ends = ends[np.isfinite(ends)]
    np.testing.assert_allclose(ends / width, np.round(ends / width), atol=1e-6)
    assert len(frame) <= 60
