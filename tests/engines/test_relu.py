"""ReLU networks: what is read of them, and curves along lines, against the definition."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

import skattr.engines.relu.lines
from skattr import MeasureExplainer
from skattr.measures import Conditional, Expectation, PartialDependence
from skattr.pieces import BlackBox, Linked, ReluNetwork, Sum
from tests.cases import MEASURES, NETWORKS, behind, combination
from tests.helpers.case import smooth_case
from tests.helpers.comparison import same
from tests.helpers.networks import perceptron, pinned_mean, random_perceptron
from tests.helpers.random_cases import groups_of
from tests.helpers.smooth import GAPS, TARGETS, X, behind_steps, one_hot

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Found unknown categories"),
]
few = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


# -- models --------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
N = 40
NUMBERS = rng.normal(size=(N, 3))
TARGET = NUMBERS[:, 0] * NUMBERS[:, 1] + np.abs(NUMBERS[:, 2])


def random_rows(seed, kind):
    """Seven rows to go with a network of three columns."""
    draw = np.random.default_rng(seed)
    return (draw.integers(-2, 3, (7, 3)) if kind == "integers" else draw.normal(size=(7, 3))) + 0.0


KINDS = ["random", "integers", "zero_bias", "twins", "dead", "near_zero"]


def same_curve(model, rows, j, explainer, weights=None, f=None):
    """A curve equals the definition at all of its knots, between and beyond them."""
    f = model.predict if f is None else f
    curve = explainer.curve(j)
    assert curve.kind == "linear"
    x = curve.to_frame()["x"].to_numpy()
    x = x[np.isfinite(x)]
    if len(x) > 150:  # those near the data, and some of the others
        near = np.argsort(np.abs(x - np.median(rows[:, j])))[:100]
        x = np.unique(np.concatenate([x[near], x[:: len(x) // 50]]))
    x = np.concatenate([x, (x[1:] + x[:-1]) / 2, rows[:, j]])
    got, wanted = curve(x).reshape(len(x), -1), pinned_mean(f, rows, j, x, weights)
    spread = np.std(f(rows).reshape(len(rows), -1), axis=0)
    data = np.ptp(rows[:, j]) + 1
    far = np.maximum(np.abs(x - rows[:, j].mean()) / data, 1.0)[:, None]
    # rounding of f itself grows with what it adds up
    size = np.where(spread > 0, spread, 1.0) + 1e-2 * np.abs(wanted).max(axis=0) + 0.3 * far
    worst = (np.abs(got - wanted) / size).max()
    assert worst <= 1e-12, f"column {j}: off by {worst:.1e}"


# -- lines ---------------------------------------------------------------------------------------


@few
@given(
    seed=st.integers(0, 10**6),
    hidden=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    outputs=st.integers(1, 2),
    kind=st.sampled_from(KINDS),
)
@example(seed=0, hidden=[1], outputs=1, kind="random")
@example(seed=1, hidden=[1, 1, 1, 1, 1], outputs=1, kind="integers")
@example(seed=2, hidden=[6, 6], outputs=2, kind="zero_bias")
@example(seed=3, hidden=[6, 6, 6], outputs=2, kind="twins")
@example(seed=4, hidden=[5, 5, 5, 5], outputs=1, kind="dead")
def test_curves_equal_the_definition(seed, hidden, outputs, kind):
    model, rows = random_perceptron(seed, 3, hidden, outputs, kind), random_rows(seed, kind)
    weights = np.random.default_rng(seed).integers(1, 4, len(rows))
    explainer = MeasureExplainer(model, "partial_dependence").fit(rows, sample_weight=weights)
    assert explainer.engine_ == ("lines",) and explainer.exact_
    for j in range(3):
        same_curve(model, rows, j, explainer, weights)


@pytest.mark.parametrize("hidden", [(30,), (20, 20), (70, 130), (16, 16, 16), (20, 66, 70)])
def test_wider_networks(hidden):
    model = MLPRegressor(hidden_layer_sizes=hidden, max_iter=200, random_state=0).fit(
        NUMBERS, TARGET
    )
    explainer = MeasureExplainer(model, "partial_dependence").fit(NUMBERS)
    for j in range(3):
        same_curve(model, NUMBERS, j, explainer)


@pytest.mark.parametrize("offset", [1e4, 1e6])
@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler])
def test_scalers_are_folded_and_data_far_from_0_lose_nothing(offset, scaler):
    rows = NUMBERS * [1, 100, 0.01] + offset
    model = make_pipeline(
        scaler(), MLPRegressor(hidden_layer_sizes=(8, 8), max_iter=300, random_state=0)
    )
    model.fit(rows, TARGET)
    explainer = MeasureExplainer(model, "partial_dependence").fit(rows)
    assert explainer.pieces_.is_plain and explainer.pieces_.layers[0].weight.shape == (8, 3)
    for j in range(3):
        wanted = pinned_mean(model.predict, rows, j, rows[:, j])
        off = np.abs(explainer.curve(j)(rows[:, j])[:, None] - wanted).max()
        # MinMaxScaler multiplies first, MaxAbsScaler does not shift: the model's own rounding
        own = 0.0
        if scaler in (MinMaxScaler, MaxAbsScaler):
            own = 1e-15 * offset / np.ptp(rows, axis=0).min()
        assert off <= 1e-12 * np.std(model.predict(rows)) + own


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e4, 1e-6])
def test_large_and_small_data(size, kind):
    """A scale of the columns that the first layer undoes changes nothing."""
    model, rows = random_perceptron(11, 3, [6, 5, 4], 1, kind), random_rows(11, kind)
    wanted = MeasureExplainer(model).fit(rows)
    moved = perceptron([model.coefs_[0] / size, *model.coefs_[1:]], model.intercepts_)
    explainer = MeasureExplainer(moved).fit(size * rows)
    for j in range(3):
        x = np.linspace(-3, 3, 50)
        got, scale = explainer.curve(j)(size * x), 1 + np.abs(wanted.curve(j)(x)).max()
        assert np.abs(got - wanted.curve(j)(x)).max() <= 1e-12 * scale


@pytest.mark.parametrize("kind", KINDS)
def test_far_data_without_a_scaler(kind):
    """As exact as the network itself, which adds up numbers of the size 1e6."""
    model, rows = random_perceptron(12, 3, [6, 5], 1, kind), random_rows(12, kind)
    weights, biases = model.coefs_, list(model.intercepts_)
    biases[0] = biases[0] - 1e6 * weights[0].sum(axis=0)
    moved = perceptron(weights, biases)
    explainer = MeasureExplainer(moved, "partial_dependence").fit(rows + 1e6)
    for j in range(3):
        x = 1e6 + np.linspace(-3, 3, 50)
        own = 2.0**-52 * 1e6 * np.prod([np.linalg.norm(weight, 2) for weight in weights])
        off = np.abs(explainer.curve(j)(x)[:, None] - pinned_mean(moved.predict, rows + 1e6, j, x))
        assert off.max() <= own


@pytest.mark.parametrize("kind", KINDS)
def test_columns_without_width(kind):
    model, rows = random_perceptron(13, 3, [5, 4], 1, kind), random_rows(13, kind)
    rows[:, 1] = 2.0
    rows[:, 2] = 0.0
    explainer = MeasureExplainer(model, PartialDependence() - Expectation()).fit(rows)
    assert np.abs(explainer.explain(rows).values[:, 1:]).max() <= 1e-13
    plain = MeasureExplainer(model, "partial_dependence").fit(rows)
    for j in range(3):
        same_curve(model, rows, j, plain)
    one = MeasureExplainer(model, "partial_dependence").fit(rows[:1])  # a single row
    for j in range(3):
        same_curve(model, rows[:1], j, one)


def test_a_network_without_kinks_is_linear():
    model = MLPRegressor(
        hidden_layer_sizes=(5, 4), activation="identity", max_iter=100, random_state=0
    )
    model.fit(NUMBERS, TARGET)
    explainer = MeasureExplainer(model).fit(NUMBERS)
    weights = np.linalg.multi_dot(model.coefs_)[:, 0]
    for j in range(3):
        curve = explainer.curve(j)
        low, high = curve(np.array([-10.0, 10.0]))
        assert (high - low) / 20 == pytest.approx(weights[j], rel=1e-12)
        assert len(curve.to_frame()) == 3  # one place in the middle, one beyond on either side


def test_a_column_that_is_ignored_gets_the_mean():
    model, rows = random_perceptron(5, 3, [4, 4]), random_rows(5, "random")
    model.coefs_[0][1] = 0.0
    explainer = MeasureExplainer(model, PartialDependence() - Expectation()).fit(rows)
    assert np.abs(explainer.explain(rows).values[:, 1]).max() <= 1e-15


BY_ROWS = [kind for kind, m in MEASURES.items() if m.over in ("rows", "neighbours") and m.own]
BINS = [
    Conditional(n_bins=8),
    Conditional("local_linear", n_bins=6),
    Conditional("knn", n_neighbors=5),
    Conditional(bandwidth=0.3, n_bins=10) - 0.5 * PartialDependence(),
]


def agrees(case, measure, weight=None, own=None, **settings):
    """The definition, by curves along lines; returns the explainer."""
    explainer, _ = same(case, measure, weight, own, tight=0.1, **settings)
    assert set(explainer.engine_) == {"lines"}
    return explainer


@pytest.mark.parametrize("steps", ["numbers", "gaps"])
@pytest.mark.parametrize(
    "name", [name for name, make in NETWORKS.items() if make.func is behind_steps]
)
def test_networks_behind_steps(name, steps):
    """Levels, missing values and their indicators; all measures at once, with groups."""
    case = behind(name, steps, 20, 4)
    weight = np.random.default_rng(1).integers(0, 3, 20)
    groups, own = groups_of(case, 1)
    explainer = agrees(case, combination(case, BY_ROWS), weight, own, groups=groups)
    assert isinstance(explainer.pieces_, ReluNetwork)
    with pytest.raises(ValueError, match="group"):
        explainer.curve("the group")


@pytest.mark.parametrize("measure", BINS, ids=str)
def test_measures_of_few_bins(measure):
    rows = NUMBERS.copy()
    rows[:, 2] = rows[:, 2].round()  # few numbers: a bin each
    model = MLPRegressor(hidden_layer_sizes=(8, 6), max_iter=100, random_state=0).fit(
        rows, np.c_[TARGET, rows]
    )
    weight = np.random.default_rng(1).integers(0, 3, N)
    T = np.vstack([rows[:8], rows[:8] + rng.normal(size=(8, 3)), rows[:1] + 50])
    agrees(smooth_case(model, rows, T), measure, weight)


def mixed_pipeline(indicator):
    numbers = make_pipeline(SimpleImputer(add_indicator=indicator), StandardScaler())
    return make_pipeline(
        make_column_transformer((numbers, ["age", "size"]), (one_hot(), ["city"]),
                                (StandardScaler(), ["code"])),
        MLPRegressor(hidden_layer_sizes=(8, 6), max_iter=200, random_state=0),
    )  # fmt: skip


@pytest.mark.parametrize("measure", [PartialDependence() - Expectation(), BINS[0]], ids=str)
@pytest.mark.parametrize("indicator", [False, True])
def test_levels_and_missing_values(indicator, measure):
    gaps = GAPS.assign(city=X["city"])
    model = mixed_pipeline(indicator).fit(gaps, TARGETS["number"])
    T = gaps.head(12).copy()
    T.loc[0, "city"] = "Paris"
    T.loc[1, "age"] = np.nan
    explainer = agrees(smooth_case(model, gaps, T), measure)
    assert isinstance(explainer.pieces_, ReluNetwork)
    assert {name: explainer.curve(name).kind for name in gaps} == {
        "age": "linear", "size": "linear", "city": "levels", "code": "linear",
    }  # fmt: skip
    ages = explainer.curve("age").to_frame()
    assert ages["x"].isna().sum() == 1 and ages["x"].isna().iloc[-1]  # missing
    assert ages["value"].iloc[-1] == explainer.curve("age")([np.nan])[0]


def test_imputers_alone_are_folded():
    numbers = GAPS[["age", "size", "code"]]
    model = make_pipeline(
        SimpleImputer(), StandardScaler(), MLPRegressor(hidden_layer_sizes=(6,), random_state=0)
    )
    model.fit(numbers, TARGETS["number"])
    explainer = agrees(smooth_case(model, numbers, numbers), PartialDependence())
    assert explainer.pieces_.is_plain
    mean = numbers["age"].mean()
    curve = explainer.curve("age")
    assert curve([np.nan])[0] == pytest.approx(curve([mean])[0], abs=1e-12)


@pytest.mark.parametrize("dtype", ["Int64", "Int8", "Float32", "boolean"])
def test_columns_of_nullable_types(dtype):
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame({"a": rng.integers(0, 2, 20), "b": rng.normal(size=20)})
    model = MLPRegressor(hidden_layer_sizes=(4, 3), random_state=0, max_iter=5)
    model.fit(numbers, rng.normal(size=20))
    plain = MeasureExplainer(model).fit(numbers).explain(numbers)
    nullable = numbers.astype({"a": dtype})
    explainer = MeasureExplainer(model).fit(nullable)
    assert isinstance(explainer.pieces_, ReluNetwork)
    np.testing.assert_allclose(explainer.explain(nullable).values, plain.values, atol=1e-12)


def test_curves_of_conditional_measures_jump_at_the_edges_of_bins():
    model = MLPRegressor(hidden_layer_sizes=(8, 6), max_iter=100, random_state=0).fit(
        NUMBERS, TARGET
    )
    explainer = MeasureExplainer(model, Conditional(bandwidth=0.2, n_bins=6)).fit(NUMBERS)
    curve = explainer.curve(0)
    frame = curve.to_frame()
    assert (np.diff(frame["x"]) > 0).all()
    next_to = np.nextafter(frame["x"][:-1], np.inf).to_numpy() == frame["x"][1:].to_numpy()
    jumps = np.abs(np.diff(frame["value"]))[next_to]
    assert len(jumps) == 5 and (jumps > 1e-6).any()
    # everything between two rows is straight
    x, value = frame["x"].to_numpy(), frame["value"].to_numpy()
    middle = (x[1:] + x[:-1]) / 2
    halves = (value[1:] + value[:-1]) / 2
    inside = ~next_to
    assert np.abs(curve(middle) - halves)[inside].max() <= 1e-11


def test_batches_add_up():
    model, rows = random_perceptron(3, 3, [6, 5], 2), random_rows(3, "random")
    whole = MeasureExplainer(model).fit(rows, sample_weight=np.arange(1, 8))
    parts = MeasureExplainer(model)
    for some in (slice(0, 2), slice(2, 3), slice(3, 7)):
        parts.partial_fit(rows[some], sample_weight=np.arange(1, 8)[some])
    assert np.allclose(parts.explain(rows).values, whole.explain(rows).values, atol=1e-14)
    assert np.allclose(parts.base_value_, whole.base_value_, atol=1e-14)


@pytest.mark.parametrize("measure", [PartialDependence(), Conditional(n_bins=20)], ids=str)
def test_bits_do_not_depend_on_rows_around_nor_on_workers(measure, monkeypatch):
    model = MLPRegressor(hidden_layer_sizes=(8, 6, 5), max_iter=50, random_state=0).fit(
        NUMBERS, TARGET
    )
    monkeypatch.setattr(skattr.engines.relu.lines, "LINES", 7)
    explainer = MeasureExplainer(model, measure).fit(NUMBERS)
    values = explainer.explain(NUMBERS).values
    assert (explainer.explain(NUMBERS[::-3]).values == values[::-3]).all()
    threads = MeasureExplainer(model, measure, n_jobs=3).fit(NUMBERS)
    assert (threads.explain(NUMBERS).values == values).all()
    again = pickle.loads(pickle.dumps(explainer))
    assert (again.explain(NUMBERS).values == values).all()
    # curves that are too large to keep are made when they are asked for
    monkeypatch.setattr(skattr.engines.relu.lines, "MAX_NUMBERS", 0)
    small = MeasureExplainer(model, measure).fit(NUMBERS)
    assert (small.explain(NUMBERS).values == values).all()
    assert small.curve(0).kind == "function"


def test_values_without_predict():
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=50, random_state=0).fit(NUMBERS, TARGET)
    explainer = MeasureExplainer(model).fit(NUMBERS)
    values = explainer.explain(NUMBERS).values
    explainer.estimator_.predict = None
    assert (explainer.explain(NUMBERS, predictions=False).values == values).all()


def test_values_that_the_model_refuses():
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=50, random_state=0).fit(NUMBERS, TARGET)
    curve = MeasureExplainer(model).fit(NUMBERS).curve(1)
    with pytest.raises(ValueError, match=r"x1.*no missing"):
        curve([np.nan])
    with pytest.raises(ValueError, match=r"x1.*no infinite"):
        curve([np.inf])
    with pytest.raises(ValueError, match=r"x1.*numbers"):
        curve(["a"])


# -- what is read --------------------------------------------------------------------------------


def reads(model, X, **settings):
    explainer = MeasureExplainer(model, "partial_dependence", **settings).fit(X)
    return explainer, explainer.pieces_


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_of_classifiers(classes):
    labels = np.digitize(TARGET, [0.5, 1.5][: classes - 1])
    model = MLPClassifier((6, 5), max_iter=50, random_state=0).fit(NUMBERS, labels)
    explainer, pieces = reads(model, NUMBERS)
    assert isinstance(pieces, ReluNetwork) and explainer.engine_ == ("lines",)
    logits = pieces.forward(pieces.numbers(NUMBERS))
    if classes == 2:
        assert explainer.output_names_ == ["1"]
        assert np.allclose(1 / (1 + np.exp(-logits[:, 0])), model.predict_proba(NUMBERS)[:, 1])
    else:
        assert explainer.output_names_ == ["0", "1", "2"]
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        assert np.allclose(shares, model.predict_proba(NUMBERS))
    same_curve(model, NUMBERS, 0, explainer, f=pieces.predict)
    linked, pieces = reads(model, NUMBERS, output="proba")
    assert isinstance(pieces, Linked) and linked.engine_ == ("linked_margins",)
    assert "exact, behind a link" in linked.describe()


def test_logits_of_several_labels():
    labels = np.column_stack([TARGET > 0.5, NUMBERS[:, 0] > 0]).astype(int)
    model = MLPClassifier((6, 5), max_iter=50, random_state=0).fit(NUMBERS, labels)
    assert model.out_activation_ == "logistic"
    explainer, pieces = reads(model, NUMBERS)
    assert isinstance(pieces, ReluNetwork) and explainer.engine_ == ("lines",)
    logits = pieces.forward(pieces.numbers(NUMBERS))
    assert np.allclose(1 / (1 + np.exp(-logits)), model.predict_proba(NUMBERS))


def test_a_link_of_a_regressor():
    model = MLPRegressor(hidden_layer_sizes=(6,), loss="poisson", max_iter=50, random_state=0)
    model.fit(NUMBERS, np.abs(TARGET))
    _, pieces = reads(model, NUMBERS)
    assert np.allclose(np.exp(pieces.forward(NUMBERS)[:, 0]), model.predict(NUMBERS))
    assert isinstance(reads(model, NUMBERS, output="predict")[1], Linked)


def test_other_activations_are_black_boxes_that_say_so():
    model = MLPRegressor(
        hidden_layer_sizes=(6,), activation="tanh", max_iter=20, random_state=0
    ).fit(NUMBERS, TARGET)
    explainer, pieces = reads(model, NUMBERS)
    assert isinstance(pieces, BlackBox) and "'tanh'" in explainer.describe()
    assert explainer.engine_ == ("finite_sum",)


def test_weights_that_are_no_numbers():
    model, rows = random_perceptron(0, 3, [4]), random_rows(0, "random")
    for wrong in (np.inf, np.nan):
        model.coefs_[1][:] = wrong
        for estimator in (model, make_pipeline(StandardScaler().fit(rows), model)):
            with pytest.raises(ValueError, match=r"MLPRegressor: coefs_\[1\] holds NaN or inf"):
                MeasureExplainer(estimator).fit(rows)


@pytest.mark.parametrize("large", [1e30, 1e140, 1e300])
def test_terms_so_large_that_their_rounding_errors_are_larger_than_f(large):
    """A unit that is below 0 or 0 wherever the model looks enters curves with its errors."""
    draw = np.random.default_rng(0)
    weights = [draw.normal(size=(3, 4)), draw.normal(size=(4, 2)), np.array([[0.7], [-0.1]])]
    weights[1][0, 0] = -large
    model = perceptron(weights, [draw.normal(size=4), np.zeros(2), np.array([-1.2])])
    vote = VotingRegressor([("a", model), ("b", RandomForestRegressor(2, random_state=0))])
    vote.fit(NUMBERS, TARGET).estimators_[0] = model
    link = MLPRegressor(loss="poisson", max_iter=1).fit(NUMBERS, np.abs(TARGET))
    link.hidden_layer_sizes, link.n_layers_ = model.hidden_layer_sizes, model.n_layers_
    link.coefs_, link.intercepts_ = model.coefs_, model.intercepts_
    for estimator in (model, vote, link):
        with pytest.warns(UserWarning, match="the network adds terms up to .* to results up to"):
            explainer = MeasureExplainer(estimator, "partial_dependence", output="predict")
            explainer.fit(NUMBERS)
        values = explainer.explain(NUMBERS[:6]).values
        for j in range(3):
            wanted = pinned_mean(estimator.predict, NUMBERS, j, NUMBERS[:6, j])[:, 0]
            assert np.allclose(values[:, j], wanted, rtol=1e-12)


def test_local_models():
    model, rows = random_perceptron(1, 3, [6, 5], 2), random_rows(1, "random")
    _, pieces = reads(model, rows)
    A, b = pieces.local(rows)
    assert A.shape == (7, 2, 3) and b.shape == (7, 2)
    value = model.predict(rows)
    assert np.allclose(np.einsum("nkp,np->nk", A, rows) + b, value, atol=1e-13)
    near = rows + 1e-7 * rng.normal(size=rows.shape)
    assert np.allclose(np.einsum("nkp,np->nk", A, near) + b, model.predict(near), atol=1e-13)


def test_networks_in_a_vote_are_one_network():
    members = [("a", MLPRegressor(hidden_layer_sizes=(5,), max_iter=30, random_state=0)),
               ("b", MLPRegressor(hidden_layer_sizes=(4, 3, 2), max_iter=30, random_state=1)),
               ("c", LinearRegression())]  # fmt: skip
    model = VotingRegressor(members[:2], weights=[1, 3]).fit(NUMBERS, TARGET)
    explainer = MeasureExplainer(model, "partial_dependence").fit(NUMBERS)
    assert [len(layer.bias) for layer in explainer.pieces_.layers] == [9, 8, 7]
    same_curve(model, NUMBERS, 0, explainer)
    both = VotingRegressor([*members, ("d", RandomForestRegressor(3, random_state=0))])
    case = smooth_case(both.fit(NUMBERS, TARGET), NUMBERS, NUMBERS[:5])
    explainer, _ = same(case, PartialDependence())
    assert isinstance(explainer.pieces_, Sum)
    same(case, Conditional(n_bins=5))


def test_lines_can_be_asked_for():
    model = MLPRegressor(hidden_layer_sizes=(5,), max_iter=30, random_state=0).fit(NUMBERS, TARGET)
    assert MeasureExplainer(model, "partial_dependence", engine="lines").fit(NUMBERS).engine_ == (
        "lines",
    )
    with pytest.raises(ValueError, match=r"lines.*ReluNetwork"):
        MeasureExplainer(
            LinearRegression().fit(NUMBERS, TARGET), "partial_dependence", engine="lines"
        ).fit(NUMBERS)


def test_plots_show_lines_near_the_data():
    pytest.importorskip("matplotlib").use("Agg")
    model = MLPRegressor(hidden_layer_sizes=(20, 20), max_iter=30, random_state=0).fit(
        NUMBERS, TARGET
    )
    curve = MeasureExplainer(model).fit(NUMBERS).curve(0)
    ax = skattr.plot.curve(curve)
    low, high = ax.get_xlim()
    assert low >= NUMBERS[:, 0].min() - 1 and high <= NUMBERS[:, 0].max() + 1
    x, y = ax.lines[0].get_data()
    assert np.allclose(y, curve(x) - curve.offset[0], atol=1e-2 * np.ptp(y))


# -- torch ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch


def modules(torch):
    """Modules that are read, by name, not in eval mode yet."""
    nn, F = torch.nn, torch.nn.functional

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.last = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)
            self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout(0.3)
            self.register_buffer("mean", torch.randn(3))

        def forward(self, x):
            x = (x - self.mean) / 2.0
            y = self.drop(torch.relu(self.first(x)))
            y = self.norm(F.hardtanh(self.second(y), -0.5, 0.7)) + x
            y += F.dropout(y, 0.5, self.training)
            return 0.5 - self.last(F.leaky_relu(y, 0.1)) * 2

    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])

        def forward(self, x):
            first = x
            for layer in self.layers:
                x = layer(x).relu() + first
            return x.sub(first).flatten(1)

    return {
        "plain": nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(),
                               nn.Linear(4, 1)),
        "layers": nn.Sequential(nn.Flatten(), nn.BatchNorm1d(3), nn.Linear(3, 6, bias=False),
                                nn.BatchNorm1d(6, affine=False), nn.ReLU6(), nn.Sequential(
                                    nn.Dropout(), nn.Linear(6, 5), nn.LeakyReLU(0.2), nn.Identity(),
                                    nn.Linear(5, 5), nn.Hardtanh(-0.3, 0.2)), nn.PReLU(5),
                                nn.Linear(5, 2)),
        "residual": Residual(),
        "skips": Skips(),
        "one map": nn.Linear(3, 2),
        "ends in a kink": nn.Sequential(nn.Linear(3, 2), nn.ReLU()),
        "one number": nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), nn.Flatten(0)),
    }  # fmt: skip


NAMES = ["plain", "layers", "residual", "skips", "one map", "ends in a kink", "one number"]


@pytest.mark.parametrize("name", NAMES)
def test_modules(torch, name):
    module = modules(torch)[name]
    module(2 * torch.randn(20, 3) + 1)  # what batch norm remembers
    module.eval().double()
    explainer, pieces = reads(module, NUMBERS)
    assert isinstance(pieces, ReluNetwork), pieces.describe()
    assert explainer.engine_ == ("lines",) and "float64" in explainer.describe()
    with torch.no_grad():
        wanted = module(torch.tensor(NUMBERS)).reshape(N, -1).numpy()
    assert np.allclose(pieces.forward(pieces.numbers(NUMBERS)), wanted, rtol=0, atol=1e-13)
    k = wanted.shape[1]
    assert explainer.output_names_ == (["prediction"] if k == 1 else [f"y{i}" for i in range(k)])
    for j in range(3):
        same_curve(module, NUMBERS, j, explainer, f=pieces.predict)


@pytest.mark.parametrize("name", ["layers", "residual"])
def test_modules_in_float32_are_computed_in_float64(torch, name):
    module = modules(torch)[name]
    module(2 * torch.randn(20, 3) + 1)
    module.eval()
    frame = pd.DataFrame({"a": np.arange(N), "b": NUMBERS[:, 1].astype("f4"), "c": NUMBERS[:, 2]})
    explainer, pieces = reads(module, frame)
    assert isinstance(pieces, ReluNetwork)
    explanation = explainer.explain(frame)
    single = pinned_mean(lambda Z: pieces.predict(Z), frame.to_numpy(), 1, frame["b"])
    assert np.allclose(explanation.values[:, 1], single, rtol=1e-4, atol=1e-5)
    module.double()
    double = pinned_mean(lambda Z: pieces.predict(Z), frame.to_numpy(), 1, frame["b"])
    assert np.allclose(explanation.values[:, 1], double, rtol=0, atol=1e-11)
    assert explanation.predictions.shape == (N, 2)


def test_modules_that_are_not_read_are_black_boxes(torch):
    nn = torch.nn

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.map = nn.Linear(3, 1)

        def forward(self, x):
            return self.map(x) if x.shape[1] > 2 else -self.map(x)  # whatever the other rows

    for module, words in (
        (nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1)), "'1' (GELU)"),
        (nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Tanh()), nn.Linear(4, 1)), "(Tanh)"),
        (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)), "(LayerNorm)"),
        (Branches(), "cannot trace Branches"),
    ):
        explainer, pieces = reads(module.eval().double(), NUMBERS)
        assert isinstance(pieces, BlackBox) and words in explainer.describe()
        assert explainer.engine_ == ("finite_sum",)
        got = explainer.explain(NUMBERS[:4]).values
        wanted = pinned_mean(pieces.predict, NUMBERS, 0, NUMBERS[:4, 0])
        assert np.allclose(got[:, :1], wanted, atol=1e-14)


@pytest.mark.parametrize("how", ["layer", "function", "method", "alias", "input"])
def test_modules_that_write_into_their_tensors(torch, how):
    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(2, 5), torch.nn.Linear(5, 1)
            self.relu, self.same = torch.nn.ReLU(inplace=True), torch.nn.Identity()

        def forward(self, x):
            y = self.first(torch.relu_(x) if how == "input" else x)
            if how == "layer":
                z = self.relu(y)
            elif how == "function":
                z = torch.nn.functional.hardtanh(y, -0.1, 0.2, True)
            elif how == "alias":
                z = self.relu(self.same(y))
            else:
                z = y.relu_()
            return self.last(y + z)  # y is what was written into it

    torch.manual_seed(0)
    module = Residual().double().eval()
    X = np.random.default_rng(0).normal(size=(10, 2))
    given = X.copy()
    explainer = MeasureExplainer(module, "partial_dependence").fit(X)
    assert explainer.engine_ == ("lines",)
    values = explainer.explain(X).values
    assert (X == given).all()
    for i, j in np.ndindex(*X.shape):
        Z = X.copy()
        Z[:, j] = X[i, j]
        mean = module(torch.tensor(Z)).mean().item()
        assert values[i, j] == pytest.approx(mean, abs=1e-12)


def test_modules_do_not_write_into_the_users_table(torch):
    layers = [torch.nn.ReLU(inplace=True), torch.nn.Linear(2, 1), torch.nn.Tanh()]
    module = torch.nn.Sequential(*layers).double().eval()
    X = np.random.default_rng(0).normal(size=(10, 2))
    given = X.copy()
    MeasureExplainer(module).fit(X).explain(X)
    assert (X == given).all()


def test_modules_in_training_mode(torch):
    nn = torch.nn
    for layer in (nn.Dropout(), nn.BatchNorm1d(4)):
        module = nn.Sequential(nn.Linear(3, 4), layer, nn.Linear(4, 1)).train()
        with pytest.raises(ValueError, match=r"training mode.*'1'.*\.eval\(\)"):
            MeasureExplainer(module, "partial_dependence").fit(NUMBERS)
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).train()  # all the same
    assert MeasureExplainer(module, "partial_dependence").fit(NUMBERS).engine_ == ("lines",)


def test_modules_with_wrong_numbers(torch):
    nn = torch.nn
    module = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1))
    with pytest.raises(ValueError, match="refuses a table of 3 columns"):
        MeasureExplainer(module).fit(NUMBERS)
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    with torch.no_grad():
        module[2].weight[0, 1] = np.nan
    with pytest.raises(ValueError, match=r"'2\.weight' holds NaN"):
        MeasureExplainer(module).fit(NUMBERS)
    module = nn.Sequential(nn.Linear(3, 4, device="meta"), nn.ReLU(), nn.Linear(4, 1))
    with pytest.raises(ValueError, match=r"'0\.weight' has no numbers .*'meta'"):
        MeasureExplainer(module).fit(NUMBERS)
    with pytest.raises(ValueError, match="'city' holds no numbers"):
        MeasureExplainer(nn.Linear(4, 1)).fit(X)


def test_modules_at_infinite_and_missing_values(torch):
    module = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()).double()
    with torch.no_grad():
        module[0].weight[:] = torch.tensor([[1.0, 1.0]])
    rows = NUMBERS[:, :2]
    curve = MeasureExplainer(module, "partial_dependence").fit(rows).curve(0)
    assert curve([-np.inf, np.inf]).tolist() == [0.0, np.inf]
    with pytest.raises(ValueError, match="no missing"):
        curve([np.nan])


def test_modules_pickle_and_clone(torch):
    from sklearn.base import clone

    module = modules(torch)["plain"].double()
    explainer = MeasureExplainer(module).fit(NUMBERS)
    values = explainer.explain(NUMBERS).values
    assert (pickle.loads(pickle.dumps(explainer)).explain(NUMBERS).values == values).all()
    assert (clone(explainer).fit(NUMBERS).explain(NUMBERS).values == values).all()
