"""The section on interactions: when it is there, and that it says what `decompose` says."""

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.neighbors import KNeighborsRegressor

import skattr
from skattr import MeasureExplainer, plot, write_report
from skattr.measures import ALE
from skattr.report import figures

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(80, 4)).round(2), columns=["a", "b", "c", "secret"])
Y = X["a"] * X["b"] + X["c"]
MODEL = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5).fit(X, Y)


def section(explainer, tmp_path, rows=X, **more):
    path = tmp_path / "report.html"
    write_report(explainer, rows, path, **more)
    found = re.search(r'<section id="interactions".*?</section>', path.read_text(), re.DOTALL)
    return None if found is None else found.group()


@pytest.mark.slow
def test_shares_pairs_and_surfaces(tmp_path):
    explainer = MeasureExplainer(MODEL).fit(X)
    text = section(explainer, tmp_path)
    parts = skattr.decompose(explainer, X)
    assert f"single columns explain {100 * parts.shares['single columns']:.1f} %" in text
    assert f"columns add {100 * parts.shares['pairs']:.1f} %" in text
    overlap = "Shares of single pairs overlap here" in text
    every = parts.strength.query("kind == 'pair'")["share"].sum()
    assert overlap == (every > parts.shares["pairs"] + 1e-3)
    (first,) = parts.strength.query("kind == 'pair'").nlargest(1, "share").itertuples()
    assert (
        f"{first.first} × {first.second}" in text and f"<td>{100 * first.share:.1f} %</td>" in text
    )
    assert 1 <= text.count("<img") <= 3


@pytest.mark.slow
def test_without_data_there_are_no_surfaces(tmp_path):
    text = section(MeasureExplainer(MODEL).fit(X), tmp_path, include_data=False)
    assert "a × b" in text and "<img" not in text


def test_a_colour_scale_keeps_its_colours():
    """The rare colours too: those of the colour bar are not those of shaded cells."""
    image = pytest.importorskip("PIL.Image")
    explainer = MeasureExplainer(MODEL).fit(X)
    drawn = []

    def paint(ax):
        drawn.append(ax)
        plot.surface(explainer.surface("a", "c"), data=X, ax=ax)

    picture = figures.draw(paint, "a surface", 3.8, shaded=True)
    png = base64.b64decode(picture.uri.partition(",")[2])
    found = np.asarray(image.open(io.BytesIO(png)).convert("RGB"), float)
    wanted = np.asarray(drawn[0].figure.canvas.buffer_rgba(), float)[..., :3]
    assert np.abs(found - wanted).max() < 25  # of 255


@pytest.mark.slow
def test_several_outputs_have_a_part_each(tmp_path):
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, np.digitize(Y, [-1, 1]))
    text = section(MeasureExplainer(model).fit(X), tmp_path)
    assert text.count("Over all rows, single columns explain") == 3


@pytest.mark.slow
def test_many_rows_are_stated(tmp_path, monkeypatch):
    monkeypatch.setattr("skattr.report.interactions.ROWS", 50)
    assert "Over 50 of the rows," in section(MeasureExplainer(MODEL).fit(X), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "explainer",
    [
        MeasureExplainer(MODEL, "shapley").fit(X),  # interactions are shared out among columns
        MeasureExplainer(MODEL, "partial_dependence").partial_fit(X),  # keeps no rows
        MeasureExplainer(KNeighborsRegressor(2).fit(X, Y)).fit(X[:5]),  # pairs would take long
        MeasureExplainer(MODEL, ALE()).fit(X),  # has no pairs
        MeasureExplainer(MODEL, "expectation").fit(X),  # pins no column
    ],
    ids=["shapley", "batches", "black box", "ale", "expectation"],
)
def test_left_out_where_it_does_not_apply(explainer, tmp_path):
    assert section(explainer, tmp_path, X[:10]) is None
