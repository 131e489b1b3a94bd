"""Errors from a finite background, against deleting the rows of each fold and fitting anew."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeClassifier

from skattr import Explanation, MeasureExplainer
from skattr.measures import (
    ALE,
    Banzhaf,
    Conditional,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Removal,
    Shapley,
    Uniform,
)
from skattr.solution.fold_tables import TableErrors
from skattr.solution.folds import folds_of_all, folds_of_batch
from tests.helpers.lanes import quickly

G = 6


def data(n=60, seed=0, missing=False):
    """Return X (n, 3) with dependent columns, and y."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(1)
    X[:, 1] += X[:, 0]
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    if missing:
        X[rng.random(n) < 0.2, 1] = np.nan
    return X, y


def jackknife(values):
    """Return the delete-a-group jackknife's standard error of statistics (G, …)."""
    values = np.asarray(values)
    n = len(values)
    return np.sqrt((n - 1) / n * ((values - values.mean(axis=0)) ** 2).sum(axis=0))


def slow(model, measure, X, weights, rows, n_folds=G, folds=None, **options):
    """Return the errors of values, centred values and importances, by deleting folds."""
    folds = folds_of_all(len(X), n_folds).of_rows if folds is None else folds
    found = []
    for g in np.unique(folds):
        kept = folds != g
        explainer = MeasureExplainer(model, measure, folds=0, **options)
        some = X[kept] if isinstance(X, np.ndarray) else X.iloc[np.flatnonzero(kept)]
        found.append(explainer.fit(some, sample_weight=weights[kept]).explain(rows))
    centered = [each.centered().values for each in found]
    importance = [np.abs(each).mean(axis=0) for each in centered]
    return (
        jackknife([each.values for each in found]), jackknife(centered), jackknife(importance)
    )  # fmt: skip


def check(model, measure, X, weights, rows, **options):
    """Compare with the slow loop, and the values with those without folds."""
    explainer = MeasureExplainer(model, measure, folds=G, **options).fit(X, sample_weight=weights)
    explanation = explainer.explain(rows)
    plain = MeasureExplainer(model, measure, folds=0, **options).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(explanation.values, plain.explain(rows).values)
    assert plain.explain(rows).background_error is None
    error, centered, importance = slow(model, measure, X, weights, rows, **options)
    size = np.abs(error).max()
    assert size > 0
    np.testing.assert_allclose(explanation.background_error, error, atol=1e-10 * size)
    rtol = 1e-7 if isinstance(explainer._solution.folds, TableErrors) else 1e-9  # float32
    np.testing.assert_allclose(
        explanation.centered().background_error, centered, rtol=rtol, atol=1e-10 * size
    )
    frame = explanation.importance(error=True)
    if explanation.values.ndim == 2:
        frame = frame.loc[list(explanation.feature_names)]
        np.testing.assert_allclose(frame["error"], importance, rtol=1e-9, atol=1e-10 * size)
    return explainer


def models():
    """Return models of all kinds of pieces."""
    X, y = data(missing=True)
    whole = data()[0]
    return {
        "forest": RandomForestRegressor(4, max_depth=4, random_state=0).fit(X, y),
        "boosting": HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(X, y),
        "linear": LinearRegression().fit(whole, y),
        "network": MLPRegressor(
            hidden_layer_sizes=(5,), tol=1e9, n_iter_no_change=1, random_state=0
        ).fit(whole, y),
        "bumps": GaussianProcessRegressor(random_state=0).fit(whole[:15], y[:15]),
        "black box": lambda X: np.tanh(X[:, 0] * X[:, 1]) + X[:, 2],
    }


MODELS = models()
MEASURES = {
    "main effect": PartialDependence() - Expectation(),
    "partial dependence": PartialDependence(),
    "other coefficients": 2 * PartialDependence() - 0.5 * Expectation(),
    "product": ProductMarginal(),
    "Shapley": Shapley(),
    "Banzhaf": Banzhaf(),
    "Shapley, product": Shapley(ProductMarginal()),
    "removal": Removal(),
    "mixed": PartialDependence() + Dirac() - Expectation("product"),
}


QUICK = ["main effect", "Shapley", "mixed"]


@pytest.mark.parametrize("measure", quickly(MEASURES, QUICK))
@pytest.mark.parametrize("model", quickly(MODELS, ["boosting", "linear", "black box"]))
@pytest.mark.parametrize("weighted", quickly([False, True], [True]))
def test_errors_are_those_of_deleting_folds(model, measure, weighted):
    X, _ = data(40, seed=1, missing=model in ("forest", "boosting"))
    weights = np.ones(len(X))
    if weighted:
        weights = np.random.default_rng(2).random(len(X)) + 0.1
    explainer = MeasureExplainer(MODELS[model], MEASURES[measure], folds=G).fit(X)
    if explainer.explain(X[:1]).background_error is None:
        assert "estimates" in explainer.describe()
        return
    check(MODELS[model], MEASURES[measure], X, weights, X[:9])


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_weights_of_zero_are_rows_that_are_not_there(model):
    X, _ = data(50, seed=3, missing=True)
    weights = np.random.default_rng(4).integers(0, 3, len(X)).astype(float)
    kept = weights > 0
    some = MeasureExplainer(MODELS[model]).fit(X, sample_weight=weights).explain(X)
    other = MeasureExplainer(MODELS[model]).fit(X[kept], sample_weight=weights[kept]).explain(X)
    np.testing.assert_array_equal(some.background_error, other.background_error)


def test_groups_and_several_outputs():
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    a, b, *_ = X.columns
    for groups in (None, {"both": [a, b]}):
        check(tree, PartialDependence(), X, np.ones(len(X)), X[::30], groups=groups)
    frame = MeasureExplainer(tree).fit(X).explain(X).importance(error=True)
    assert frame["0"].columns.tolist() == ["importance", "error", "low", "high"]


def test_categories_and_links():
    X, y = data(80, seed=5)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["b"] = pd.Categorical(np.array(list("pqrst"))[np.abs(X[:, 1]).astype(int) % 5])
    model = HistGradientBoostingRegressor(
        max_iter=5, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(frame, y)
    check(model, PartialDependence(), frame, np.ones(len(X)), frame[:9])


@pytest.mark.slow
def test_conditional_errors_hold_the_law():
    """π_r ∝ ω_r κ[bin of t, bin of r], with κ of all rows, over the rows that are left."""
    X, _ = data(60, seed=6)
    model = MODELS["forest"]
    measure = Conditional()
    law = Conditional().fit(X).rows_
    folds = folds_of_all(len(X), G).of_rows
    for explained in (MODELS["forest"], MODELS["network"], MODELS["black box"]):
        explainer = MeasureExplainer(explained, measure, folds=G).fit(X)
        found = explainer.explain(X[:5])
        predict = explained if callable(explained) else explained.predict
        values = np.empty((G, 5, 3))
        for g in range(G):
            rest = folds != g
            for i, x in enumerate(X[:5]):
                for j in range(3):
                    at = law.columns[j].bins.of(X[i : i + 1, j])[0]
                    weight = law.weight * law.columns[j].table[at][law.rows[j]] * rest
                    Z = X.copy()
                    Z[:, j] = x[j]
                    values[g, i, j] = weight @ predict(Z) / weight.sum()
        np.testing.assert_allclose(found.background_error, jackknife(values), rtol=1e-9)
        assert "held fixed" in explainer.describe()
    groups = {"both": ["x0", "x1"]}
    explainer = MeasureExplainer(model, Conditional(), folds=G, groups=groups).fit(X)
    assert (explainer.explain(X[:5]).background_error > 0).all()


@pytest.mark.parametrize("measure", [PartialDependence(), Shapley(), ProductMarginal()])
def test_pairs(measure):
    X, _ = data(40, seed=7)
    folds = folds_of_all(len(X), G).of_rows
    explainer = MeasureExplainer(MODELS["forest"], measure, folds=G).fit(X)
    found = explainer.explain_pairs(X[:6])
    rest = [
        MeasureExplainer(MODELS["forest"], measure, folds=0).fit(X[folds != g]) for g in range(G)
    ]
    error = jackknife([each.explain_pairs(X[:6]).values for each in rest])
    np.testing.assert_allclose(found.background_error, error, atol=1e-12)


@pytest.mark.parametrize(
    "model", quickly(["forest", "linear", "network", "black box"], ["forest", "black box"])
)
def test_batches_have_the_folds_of_their_positions(model):
    X, _ = data(70, seed=8)
    explainer = MeasureExplainer(MODELS[model], folds=G)
    for batch in (X[:3], X[3:30], X[30:]):
        explainer.partial_fit(batch)
    found = explainer.explain(X[:9])
    folds = folds_of_batch(0, len(X), G).of_rows
    error, _, importance = slow(
        MODELS[model], "main_effect", X, np.ones(len(X)), X[:9], folds=folds
    )
    np.testing.assert_allclose(found.background_error, error, atol=1e-12)
    frame = found.importance(error=True).loc[list(found.feature_names)]
    np.testing.assert_allclose(frame["error"], importance, atol=1e-12)
    after_fit = MeasureExplainer(MODELS[model], folds=G).fit(X[:30]).partial_fit(X[30:])
    np.testing.assert_allclose(after_fit.explain(X[:9]).background_error, error, atol=1e-12)


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_a_later_batch_does_not_change_an_explanation(first):
    """Errors of importances are computed when they are asked for, which may be later."""
    X, _ = data(70, seed=8)
    explainer, other = (MeasureExplainer(MODELS["forest"], folds=G) for _ in range(2))
    explanation = getattr(explainer, first)(X[:30]).explain(X[:9])
    explainer.partial_fit(X[30:])
    wanted = getattr(other, first)(X[:30]).explain(X[:9]).importance(error=True)
    pd.testing.assert_frame_equal(explanation.importance(error=True), wanted)


@pytest.mark.slow
def test_another_fit_does_not_change_an_explanation():
    X, _ = data(60, seed=8)
    X = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(X.to_numpy(), X["a"])
    explainer = MeasureExplainer(lambda X: model.predict(np.asarray(X)), folds=G).fit(X[:30])
    wanted = explainer.explain(X[:9]).importance(error=True)
    explanation = explainer.explain(X[:9])
    explainer.fit(X[["b", "c", "a"]])
    pd.testing.assert_frame_equal(explanation.importance(error=True), wanted)


def test_few_rows_have_one_fold_each():
    X, _ = data(5, seed=9)
    explainer = MeasureExplainer(MODELS["forest"]).fit(X)
    assert explainer.explain(X).n_folds == 5
    assert "jackknife over 5 folds" in explainer.describe()
    one = MeasureExplainer(MODELS["forest"]).fit(X[:1])
    assert one.explain(X).background_error is None
    assert "one row" in one.describe()
    later = MeasureExplainer(MODELS["forest"]).partial_fit(X[:1]).partial_fit(X[1:])
    assert later.explain(X).n_folds == 5


def test_folds_do_not_depend_on_the_order_of_rows():
    """Equally large folds of sorted rows have the spread of folds of rows in any order."""
    x = np.sort(np.random.default_rng(0).normal(size=3200))
    for folds in (folds_of_all(len(x), 32), folds_of_batch(0, len(x), 32)):
        means = [x[folds.of_rows == g].mean() for g in range(32)]
        assert 0.6 < np.std(means) * 10 < 1.5
    assert np.ptp(np.bincount(folds_of_all(3205, 32).of_rows)) == 1


def test_many_rows_and_workers_give_the_same_bits():
    X, y = data(400, seed=10)
    forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    one = MeasureExplainer(forest).fit(X)
    two = MeasureExplainer(forest, n_jobs=2).fit(X)
    np.testing.assert_array_equal(one.explain(X).background_error, two.explain(X).background_error)


def test_blocks_of_rows(monkeypatch):
    from skattr.engines.boxes import one_violation

    monkeypatch.setattr(one_violation, "ROW_BLOCK", 16)
    X, _ = data(60, seed=11, missing=True)
    check(MODELS["forest"], PartialDependence(), X, np.ones(60), X[:9])
    check(MODELS["forest"], PartialDependence(), X, np.arange(1.0, 61.0), X[:9])


def test_splits_that_send_no_code_to_one_side():
    """A side of a split may have an empty interval, or only the missing code."""
    X, y = data(60, seed=15, missing=True)
    grown = RandomForestRegressor(6, random_state=0).fit(X, y)
    for tree in grown.estimators_:
        inner = np.flatnonzero(tree.tree_.children_left >= 0)
        rng = np.random.default_rng(0)
        for node in inner[rng.random(len(inner)) < 0.5]:  # below and above its own parents
            tree.tree_.threshold[node] = rng.choice([-9.0, -0.5, 0.0, 0.5, 9.0])
    rows = np.vstack([X[:20], np.full((1, 3), np.nan), np.full((1, 3), -10.0)])
    weights = np.random.default_rng(1).random(60)
    for w in (np.ones(60), weights):
        check(grown, PartialDependence() - Expectation(), X, w, rows)


@pytest.mark.parametrize("n_folds", quickly([2, 7, 8, 9, 33], [7]))
def test_any_number_of_folds(n_folds):
    X, _ = data(50, seed=16, missing=True)
    model = MODELS["forest"]
    found = MeasureExplainer(model, PartialDependence(), folds=n_folds).fit(X).explain(X[:9])
    error, *_ = slow(model, PartialDependence(), X, np.ones(50), X[:9], n_folds=n_folds)
    assert found.n_folds == n_folds
    np.testing.assert_allclose(found.background_error, error, rtol=1e-7)  # float32


def test_curves_have_the_errors_of_values():
    X, _ = data(40, seed=12)
    for model in MODELS.values():
        explainer = MeasureExplainer(model, PartialDependence(), folds=G).fit(X)
        found = explainer.explain(X[:9])
        curve = explainer.curve("x1")
        np.testing.assert_allclose(
            curve.background_error(X[:9, 1]), found.background_error[:, 1], rtol=1e-12
        )
        np.testing.assert_allclose(
            curve.background_error(X[:9, 1], centered=True),
            found.centered().background_error[:, 1],
            rtol=1e-10, atol=1e-15,
        )  # fmt: skip
    assert MeasureExplainer(MODELS["forest"], folds=0).fit(X).curve(0).background_error([1]) is None


def test_intervals():
    X, _ = data(40, seed=13)
    found = MeasureExplainer(MODELS["forest"], folds=G).fit(X).explain(X)
    low, high = found.interval(0.9)
    width = t.ppf(0.95, G - 1) * found.background_error
    np.testing.assert_allclose(high - found.values, width)
    np.testing.assert_allclose(found.values - low, width)
    both = Explanation(
        values=np.zeros((1, 2)), base_value=0.0, offset=0.0, data=np.zeros((1, 2)),
        feature_names=("x0", "x1"), columns=(("x0",), ("x1",)), output_names=("y",), exact=False,
        engine=("any",), measure="any", std_error=np.array([[4.0, 0.0]]), n_folds=5,
        background_error=np.full((1, 2), 3.0), centered_background_error=np.full((1, 2), 3.0),
    )  # fmt: skip
    low, high = both.interval()
    expected = [5 * t.ppf(0.975, 4 / 0.6**4), 3 * t.ppf(0.975, 4)]
    np.testing.assert_allclose(high[0], expected)
    frame = found.importance(error=True, level=0.5)
    width = t.ppf(0.75, G - 1) * frame["error"]
    np.testing.assert_allclose(frame["high"], frame["importance"] + width)
    np.testing.assert_allclose(frame["low"], np.maximum(frame["importance"] - width, 0))


@pytest.mark.parametrize("level", [0, 1, -1, 2.0, "0.95", True, None, np.nan])
def test_levels_outside_0_and_1_are_refused(level):
    X, _ = data(20)
    found = MeasureExplainer(MODELS["forest"]).fit(X).explain(X)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        found.interval(level)
    with pytest.raises(ValueError, match="level must be"):
        found.importance(error=True, level=level)


@pytest.mark.parametrize(
    ("folds", "words"),
    [(1, "at least 2"), (-2, "got -2"), (2.5, "got 2.5"), ("all", "'all'"), (True, "got True"),
     (None, "got None"), (21, "which is 20, got 21")],
)  # fmt: skip
def test_bad_folds_are_refused(folds, words):
    X, _ = data(20)
    with pytest.raises(ValueError, match=words):
        MeasureExplainer(MODELS["forest"], folds=folds).fit(X)


@pytest.mark.parametrize(
    ("measure", "words"),
    [(Uniform(), "does not depend on the rows"), (ALE(), "quantiles"),
     (Conditional("gaussian"), "learned from all rows together")],
)  # fmt: skip
def test_measures_without_an_error_say_so(measure, words):
    X, _ = data(60)
    explainer = MeasureExplainer(MODELS["linear"], measure, folds=G).fit(X)
    found = explainer.explain(X[:3])
    assert found.background_error is None
    assert found.centered().background_error is None
    assert words in explainer.describe()
    with pytest.raises(ValueError, match="no error from the background"):
        found.importance(error=True)
    with pytest.raises(ValueError, match="no error from the background"):
        found.interval()


def test_the_default_is_off_where_it_takes_long():
    X, _ = data(40)
    explainer = MeasureExplainer(MODELS["forest"], Shapley()).fit(X)
    assert explainer.explain(X[:3]).background_error is None
    assert "pass folds=32" in explainer.describe()
    assert "folds=0" in MeasureExplainer(MODELS["forest"], folds=0).fit(X).describe()


def test_parts_files_and_pickles(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(tree, PartialDependence()).fit(X)
    found = explainer.explain(X)
    assert "errors from the background by 32 folds" in repr(found)
    assert "errors from the background" in found._repr_html_()
    part = found[3:20, list(found.feature_names[1:3])].select(1)
    np.testing.assert_array_equal(part.background_error, found.background_error[3:20, 1:3, 1])
    tidy = part.to_frame(tidy=True)
    np.testing.assert_array_equal(tidy["background_error"], part.background_error.ravel())
    whole = explainer.explain(X[3:20]).importance(error=True)
    some = part.importance(error=True)
    name = found.feature_names[2]
    np.testing.assert_allclose(some.loc[name, "error"], whole.loc[name, ("1", "error")])
    kept = found.importance(error=True)
    found.save(tmp_path / "file.npz")
    for copy in (Explanation.load(tmp_path / "file.npz"), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(copy.background_error, found.background_error)
        np.testing.assert_array_equal(
            copy.centered().background_error, found.centered().background_error
        )
        pd.testing.assert_frame_equal(copy.importance(error=True), kept)
        with pytest.raises(ValueError, match="call explain again"):
            copy[:5].importance(error=True)
    again = pickle.loads(pickle.dumps(explainer)).explain(X)
    np.testing.assert_array_equal(again.background_error, found.background_error)
    pd.testing.assert_frame_equal(again.importance(error=True), kept)


@pytest.mark.parametrize("model", ["forest", "linear"])
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
@pytest.mark.parametrize("then", ["fit", "partial_fit"])
def test_a_later_fit_leaves_earlier_explanations_as_they_are(model, first, then):
    X, _ = data(60, seed=17)

    def explained():
        explainer = MeasureExplainer(MODELS[model], folds=G)
        getattr(explainer, first)(X[:30])
        return explainer, explainer.explain(X[:9])

    explainer, before = explained()
    getattr(explainer, then)(2 * X[30:])
    pd.testing.assert_frame_equal(
        before.importance(error=True), explained()[1].importance(error=True)
    )


@pytest.mark.parametrize("heavy", [1e12, 1e300])
@pytest.mark.parametrize("model", ["forest", "linear"])
def test_a_fold_with_all_the_weight_gives_no_error(model, heavy):
    """The weight of the others is a difference of weights that are equal but for rounding."""
    X, _ = data(40, seed=18)
    weights = np.ones(40)
    weights[7] = heavy
    explainer = MeasureExplainer(MODELS[model], folds=G).fit(X, sample_weight=weights)
    assert explainer.explain(X[:3]).background_error is None
    assert "nearly all the weight" in explainer.describe()
    weights[7] = 1e4
    check(MODELS[model], PartialDependence(), X, weights, X[:9])


@pytest.mark.parametrize(
    "measure", [Conditional(bandwidth=1e-3), Conditional("knn", n_neighbors=2)]
)
def test_a_law_without_rows_beyond_a_fold_gives_no_error(measure):
    X = np.random.default_rng(19).normal(size=(60, 3))
    explainer = MeasureExplainer(MODELS["linear"], measure, folds=2).fit(X)
    plain = MeasureExplainer(MODELS["linear"], measure, folds=0).fit(X)
    found = explainer.explain(X[:5])
    np.testing.assert_array_equal(found.values, plain.explain(X[:5]).values)
    assert found.background_error is None
    assert "without one of its 2 folds, no rows of positive weight" in explainer.describe()


def test_pairs_say_whether_they_have_errors():
    X, _ = data(40, seed=20)
    for folds, words in ((G, f"jackknife over {G} folds"), ("auto", "none: it would take longer")):
        explainer = MeasureExplainer(MODELS["forest"], folds=folds).fit(X)
        explainer.explain_pairs(X[:3])
        assert f"3 pairs: error from the background: {words}" in explainer.describe()


def test_frames_in_parts():
    from skattr import distributed

    X, _ = data(90, seed=14)
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    model = RandomForestRegressor(4, max_depth=4, random_state=0).fit(frame, X[:, 0])
    parts = [frame[:40], frame[40:]]
    explainer = distributed.fit(MeasureExplainer(model), parts)
    found = explainer.explain(frame)
    assert found.n_folds == 32 and (found.background_error[:, 0] > 0).all()
    columns = pd.concat(distributed.explain(explainer, parts, background_errors=True))
    np.testing.assert_array_equal(columns["x0__background_error"], found.background_error[:, 0])
    with pytest.raises(ValueError, match="keeps no rows"):
        found.importance(error=True)
