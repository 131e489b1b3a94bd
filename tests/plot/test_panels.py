"""Several outputs and several lines in one picture; names that stand between lines."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer, plot

rng = np.random.default_rng(0)
X = pd.DataFrame({"size": rng.normal(size=60), "age": rng.normal(size=60)})
PRICE_AND_SHARE = np.column_stack([200_000 + 50_000 * X["size"], 0.5 + 0.1 * X["age"]])
CLASSES = np.where(X["size"] > 1.5, "rare", np.where(X["age"] > 0, "old", "new"))


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def regressor():
    model = DecisionTreeRegressor(random_state=0).fit(X, PRICE_AND_SHARE)
    return MeasureExplainer(model, output_names=["price", "share"]).fit(X)


@pytest.fixture(scope="module")
def classifier():
    forest = RandomForestClassifier(5, random_state=0).fit(X, CLASSES)
    return MeasureExplainer(forest).fit(X)


def pictures(explainer):
    explanation = explainer.explain(X)
    return {
        "beeswarm": (plot.beeswarm(explanation), "x"),
        "waterfall": (plot.waterfall(explanation, 0), "x"),
        "compare": (plot.compare(explanation, explanation), "x"),
        "curve": (plot.curve(explainer.curve("size"), data=X), "y"),
    }


def spans(axes, axis):
    return [np.ptp(getattr(ax, f"get_{axis}lim")()) for ax in axes]


def test_classes_share_an_axis(classifier):
    for name, (axes, axis) in pictures(classifier).items():
        limits = {getattr(ax, f"get_{axis}lim")() for ax in axes}
        assert len(limits) == 1, name


def test_outputs_without_a_common_unit_have_axes_of_their_own(regressor):
    for name, (axes, axis) in pictures(regressor).items():
        price, share = spans(axes, axis)
        assert price > 1000 and share < 10, name
    axes = plot.bar(regressor.explain(X))
    assert [ax.get_title() for ax in axes] == ["price", "share"]
    assert spans(axes, "x")[0] > 1000 and spans(axes, "x")[1] < 1
    axes = plot.heatmap(regressor.explain(X))
    tops = [ax.images[0].norm.vmax for ax in axes]
    assert tops[0] > 1000 and tops[1] < 1
    assert len(axes[0].figure.axes) == 4  # each has its own scale of colours


def test_columns_of_outputs_without_a_common_unit_count_alike(regressor):
    explanation = regressor.explain(X)
    share = np.abs(explanation.values).mean(axis=0)
    share = share / share.sum(axis=0)
    wanted = [explanation.feature_names[j] for j in np.argsort(-share.mean(axis=1))]
    axes = plot.bar(explanation)
    assert [label.get_text() for label in axes[0].get_yticklabels()] == wanted


def test_numbers_of_a_waterfall_of_classes_have_the_same_decimals(classifier):
    axes = plot.waterfall(classifier.explain(X), 1)
    texts = [text.get_text() for ax in axes for text in ax.texts]
    assert len({len(text.split(".")[-1]) for text in texts}) == 1


def test_numbers_of_a_waterfall_stay_beside_the_names(classifier):
    axes = plot.waterfall(classifier.explain(X), 1)
    axes[0].figure.draw_without_rendering()
    for ax in axes:
        inside = ax.get_window_extent()
        for text in ax.texts:
            box = text.get_window_extent()
            assert box.x0 >= inside.x0 - 1 and box.x1 <= inside.x1 + 1


def test_a_line_below_another_one_is_seen(regressor):
    curve = regressor.curve("size", "price")
    steps = plot.curve({"first": curve, "second": curve}).patches
    assert steps[0].get_linewidth() > steps[1].get_linewidth() + 1


def test_which_kind_of_missing_rows_have():
    column = pd.Series(["gas", "oil", None, "gas"] * 15, dtype=object)
    frame = X.assign(heating=column)
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["heating"]), remainder="passthrough"
        ),
        DecisionTreeRegressor(random_state=0),
    ).fit(frame, column.isna() * 2.0 + X["size"])
    curve = MeasureExplainer(model).fit(frame).curve("heating")
    table = curve.to_frame().set_index("level")["value"]
    assert table["missing (None)"] != table["missing (NaN)"]  # the encoder tells them apart

    def drawn(data):
        ax = plot.curve(curve, data=data)
        labels = [label.get_text() for label in ax.get_xticklabels()]
        return dict(zip(labels, [bar.get_height() for bar in ax.patches], strict=False))

    for data in (frame, frame["heating"], column.to_list(), column.to_numpy()):
        bars = drawn(data)
        assert "missing (NaN)" not in bars
        assert bars["missing (None)"] == table["missing (None)"]
    holes = drawn(column.where(column.notna(), np.nan))
    assert "missing (None)" not in holes and holes["missing (NaN)"] == table["missing (NaN)"]


def test_names_of_levels_lie_between_lines_and_apart():
    levels = rng.choice(["flat", "house"], 60)
    frame = X.assign(kind=levels, other=rng.choice(["u", "v"], 60))
    y = X["size"] + 1.2 * (levels == "house") + 2.0 * (frame["other"] == "u")
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind", "other"]), remainder="passthrough"),
        DecisionTreeRegressor(random_state=0),
    ).fit(frame, y)
    ax = plot.beeswarm(MeasureExplainer(model).fit(frame).explain(frame))
    ax.figure.draw_without_rendering()
    texts = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert {"flat", "house", "u", "v"} <= set(texts)
    boxes = [*texts.values()]
    for i, a in enumerate(boxes):
        assert not any(a.overlaps(b) for b in boxes[:i])
        assert a.y0 >= ax.get_window_extent().y0  # those of the last line too
    dots = np.concatenate([
        ax.transData.transform(points.get_offsets()) for points in ax.collections
        if len(points.get_offsets()) > 1
    ])  # fmt: skip
    for box in boxes:
        x, y = dots.T
        covered = (box.x0 < x) & (x < box.x1) & (box.y0 < y) & (y < box.y1)
        assert not covered.any()


def test_levels_are_not_named_where_lines_are_too_close():
    frame = X.assign(kind=rng.choice(["flat", "house"], 60))
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeRegressor(random_state=0))
    model.fit(frame, (frame["kind"] == "flat") + X["size"])
    explanation = MeasureExplainer(model).fit(frame).explain(frame)
    for height, named in ((6.0, True), (1.2, False)):
        ax = plot.beeswarm(explanation, ax=plt.figure(figsize=(6, height)).add_subplot())
        assert bool(ax.texts) is named


def test_what_is_not_a_curve_is_named(regressor):
    for wrong in ("bmi", regressor, [3], []):
        with pytest.raises(TypeError, match=r"explainer\.curve\('name'\)"):
            plot.curve(wrong)
    with pytest.raises(ValueError, match=r"no output 'risk'; there are \['price', 'share'\]"):
        plot.curve(regressor.curve("size"), output="risk")
