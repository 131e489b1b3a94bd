"""Quasi-Monte Carlo: closed forms within the errors that it says, and bits that nobody moves."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from skattr import Explanation, MeasureExplainer
from skattr.engines import QuasiMonteCarlo
from skattr.measures import Coefficient, Dirac, Expectation, PartialDependence, Uniform
from tests.helpers.normals import Normals, closed_form

pytestmark = pytest.mark.slow

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal([1, 0, -2], [1, 2, 0.5], size=(40, 3)).round(1), columns=list("abc"))
WEIGHTS = np.arange(25) % 3
BACKGROUND, ROWS = X[:25], X[20:32]
SLOPES = np.array([1.0, -2.0, 0.5])
SINGLE = ((0,), (1,), (2,))


def line(X):
    """A linear function."""
    return np.asarray(X) @ SLOPES + 3


def line_mean(m, v):
    return m @ SLOPES + 3


def both(X):
    """A linear function, and one with an interaction and a square."""
    a, b, c = np.asarray(X).T
    return np.stack([line(X), a * b + c**2], axis=1)


def both_means(m, v):
    return np.array([line_mean(m, v), m[0] * m[1] + m[2] ** 2 + v[2]])


def wild(X):
    """A function that takes many points."""
    return np.sin(3 * np.asarray(X)).prod(axis=1)


def fitted(f, measure=None, data=BACKGROUND, **settings):
    """An explainer with a seed."""
    settings = {"random_state": 0, **settings}
    explainer = MeasureExplainer(f, Normals() if measure is None else measure, **settings)
    return explainer.fit(data, sample_weight=WEIGHTS)


def wanted(f, own=SINGLE, width=1.0):
    return closed_form(f, ROWS, BACKGROUND, WEIGHTS, own, width)


def spread_of(f):
    values = f(BACKGROUND).reshape(len(BACKGROUND), -1)
    share = (WEIGHTS / WEIGHTS.sum())[:, None]
    return np.sqrt((share * (values - (share * values).sum(axis=0)) ** 2).sum(axis=0))


def assert_same_bits(one, other):
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.std_error, other.std_error)


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_closed_form_of_a_line(tol):
    explainer = fitted(line, tol=tol)
    found = explainer.explain(ROWS)
    assert explainer.engine_ == ("quasi_monte_carlo",)
    assert not explainer.exact_ and not found.exact
    assert found.std_error.shape == found.values.shape == (12, 3)
    assert (found.std_error <= tol * spread_of(line)).all() and (found.std_error > 0).all()
    assert (np.abs(found.values - wanted(line_mean)[:, :, 0]) <= 5 * found.std_error).all()


@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_several_outputs_and_a_group(tol):
    explainer = fitted(both, tol=tol, groups={"g": ["c", "a"]})
    found = explainer.explain(ROWS)
    assert found.std_error.shape == found.values.shape == (12, 2, 2)
    assert (found.std_error <= tol * spread_of(both)).all()
    error = np.abs(found.values - wanted(both_means, ((0, 2), (1,))))
    assert (error <= 5 * found.std_error + 1e-12).all()
    assert np.array_equal(found.select(1).std_error, found.std_error[:, :, 1])
    table = explainer.transform(ROWS)
    assert np.array_equal(table, found.values.transpose(0, 2, 1).reshape(12, -1))


def test_offset_and_base_value_are_exact():
    explainer = fitted(both)
    mean = np.average(both(BACKGROUND), axis=0, weights=WEIGHTS)
    assert_allclose(explainer.base_value_, mean, rtol=1e-14)
    found = explainer.explain(ROWS)
    assert_allclose(found.offset, mean, rtol=1e-14)
    assert np.array_equal(found.centered().std_error, found.std_error)


def test_errors_are_what_they_say():
    z = []
    truth = wanted(both_means)
    for seed in range(30):
        explainer = fitted(both, tol=1e-12, max_evals=1024, random_state=seed)
        with pytest.warns(ConvergenceWarning):
            found = explainer.explain(ROWS)
        with np.errstate(divide="ignore", invalid="ignore"):
            z.append((found.values - truth) / found.std_error)
    z = np.array(z)[:, found.std_error > 1e-10]  # a pinned column may leave nothing to estimate
    assert z.shape[1] > 50
    assert np.abs(z).max() < 8
    assert 0.8 < np.sqrt((z**2).mean()) < 1.35  # 1.07 for a t law of 15 degrees of freedom
    assert (np.abs(z.mean(axis=0)) < 5 / np.sqrt(30)).all()


def test_more_points_come_nearer():
    coarse, fine = (fitted(wild, tol=tol).explain(ROWS) for tol in (3e-2, 3e-3))
    truth = fitted(wild, tol=3e-4, max_evals=1e7, random_state=1).explain(ROWS[:3])
    for found in (coarse, fine):
        assert (np.abs(found.values[:3] - truth.values) < 5 * found.std_error[:3] + 1e-12).all()
    assert fine.std_error.max() < coarse.std_error.max()


def test_constants_need_no_tolerance():
    found = fitted(lambda Z: np.full(len(Z), 0.1)).explain(ROWS)
    assert_allclose(found.values, 0.1, rtol=1e-14)
    assert (found.std_error < 1e-14).all()


def test_infinite_values_end_at_once():
    calls = []

    def steep(Z):
        calls.append(len(Z))
        return np.where(np.asarray(Z)[:, 0] > 1, np.inf, 0.0)

    explainer = fitted(steep, data=BACKGROUND.assign(a=0.5))
    calls.clear()
    with pytest.raises(ValueError, match="steep returned inf"):
        explainer.explain(ROWS.assign(a=2.0)[:1], features=["a"], predictions=False)
    assert calls == [1024]


# -- sums of terms -------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_terms_combine(tol):
    spread = spread_of(both)
    measure = 2 * Normals() - Normals(0.5) + 0.5 * PartialDependence() - Expectation()
    found = fitted(both, measure, tol=tol).explain(ROWS)
    exact = fitted(both, 0.5 * PartialDependence() - Expectation()).explain(ROWS)
    assert exact.exact and exact.std_error is None
    truth = 2 * wanted(both_means) - wanted(both_means, width=0.5) + exact.values
    assert found.engine == ("quasi_monte_carlo",) * 2 + ("finite_sum",) * 2
    assert (found.std_error <= tol * spread * (1 + 1e-9)).all()
    assert (np.abs(found.values - truth) <= 5 * found.std_error + 1e-12).all()


def test_replicates_are_shared():
    """What one term adds the other takes away again."""
    found = fitted(both, Normals() - Normals(1.0)).explain(ROWS)
    assert not found.values.any() and not found.std_error.any()


def test_a_term_that_does_not_count():
    found = fitted(line, 0 * Normals() + PartialDependence()).explain(ROWS)
    exact = fitted(line, PartialDependence()).explain(ROWS)
    assert np.array_equal(found.values, exact.values)
    assert found.exact and found.std_error is None


def test_expectation_moves_values_only():
    one, other = (fitted(both, m).explain(ROWS) for m in (Normals(), Normals() - Expectation()))
    assert_allclose(one.std_error, other.std_error, rtol=1e-12)
    assert_allclose(one.values - one.base_value, other.values, atol=1e-12)


def test_dirac_beside():
    one, other = (fitted(line, m).explain(ROWS) for m in (Normals(), Normals() + Dirac()))
    assert_allclose(one.values + line(ROWS)[:, None], other.values, rtol=1e-12)


# -- what changes no bit -------------------------------------------------------------------------

MEASURES = {"one": Normals(), "sum": Normals() - 0.5 * Normals(0.3) + PartialDependence()}
measures = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


@measures
@pytest.mark.parametrize("f", [both, wild])
def test_rows_do_not_matter_to_each_other(measure, f):
    explainer = fitted(f, measure, tol=3e-3)
    whole = explainer.explain(X)
    for rows in (np.arange(40)[::-1], [7], [3, 3, 12], np.arange(5, 25)):
        assert_same_bits(explainer.explain(X.iloc[rows]), whole[rows])
    some = explainer.explain(X, features=["c", "a"])
    assert np.array_equal(some.values, whole.values[:, [2, 0]])
    assert np.array_equal(some.std_error, whole.std_error[:, [2, 0]])
    assert_same_bits(explainer.explain(X), whole)


def test_blocks_do_not_matter(monkeypatch):
    y = wild(X)
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    explainer = fitted(forest, tol=1e-2)
    assert explainer.engine_ == ("quasi_monte_carlo",)
    many = pd.concat([X] * 10)
    whole = explainer.explain(many)
    monkeypatch.setattr("skattr.solution.read_model.BLOCK", 0)
    assert_same_bits(explainer.explain(many), whole)
    assert explainer.curve("a").kind == "function"


@measures
def test_jobs_do_not_matter(measure):
    one = fitted(both, measure).explain(ROWS)
    assert_same_bits(fitted(both, measure, n_jobs=2).explain(ROWS), one)


@measures
def test_pickle_and_clone_change_no_bit(measure):
    explainer = fitted(both, measure)
    found = explainer.explain(ROWS)
    assert_same_bits(pickle.loads(pickle.dumps(explainer)).explain(ROWS), found)
    again = clone(explainer).fit(BACKGROUND, sample_weight=WEIGHTS)
    assert_same_bits(again.explain(ROWS), found)


def test_seeds():
    same = [fitted(both, random_state=1).explain(ROWS).values for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(same[0], fitted(both, random_state=2).explain(ROWS).values)
    state = np.random.RandomState(1)
    drawn = [fitted(both, random_state=state).explain(ROWS).values for _ in range(2)]
    assert not np.array_equal(*drawn)
    explainer = fitted(both, random_state=None)
    assert_same_bits(explainer.explain(ROWS), explainer.explain(ROWS))


@pytest.mark.parametrize("container", [np.asarray, pl.DataFrame, None])
def test_containers(container):
    table = container or (lambda frame: frame.set_index(np.zeros(len(frame), int)))
    to = table if container is not pl.DataFrame else lambda f: pl.DataFrame(f.to_dict("list"))
    explainer = MeasureExplainer(lambda Z: both(np.asarray(Z)), Normals(), random_state=0)
    explainer.fit(to(BACKGROUND), sample_weight=WEIGHTS)
    assert_same_bits(explainer.explain(to(ROWS)), fitted(both).explain(ROWS))


# -- where it stops ------------------------------------------------------------------------------


def test_max_evals_warns_once():
    explainer = fitted(wild, tol=1e-6, max_evals=5000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = explainer.explain(ROWS)
    assert len(caught) == 1 and caught[0].filename == __file__
    text = str(caught[0].message)
    size = (found.std_error / spread_of(wild)).max()
    far = (found.std_error > 1e-6 * spread_of(wild)).sum()
    for words in (f"{far} of 36 values", "max_evals=5000", "tol=1e-06", f"{size:.2g}", "raise"):
        assert words in text
    with pytest.warns(ConvergenceWarning, match="max_evals"):
        explainer.transform(ROWS)
    with pytest.warns(ConvergenceWarning, match="1 of 1 values"):
        explainer.curve("a")([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer.set_params(tol=10).explain(ROWS)


@pytest.mark.parametrize("max_evals, most", [(32, 32), (100, 64), (1023, 512), (5000, 4096)])
def test_max_evals_is_never_exceeded(max_evals, most):
    seen = []

    def counted(Z):
        seen.append(len(Z))
        return wild(Z)

    explainer = fitted(counted, tol=1e-9, max_evals=max_evals)
    seen.clear()
    with pytest.warns(ConvergenceWarning):
        explainer.explain(ROWS[:1], features=["a"], predictions=False)
    assert sum(seen) == most


def test_points_are_used_again():
    seen = []

    def counted(Z):
        seen.append(np.asarray(Z))
        return wild(Z)

    explainer = fitted(counted, tol=1e-9, max_evals=4096)
    seen.clear()
    with pytest.warns(ConvergenceWarning):
        found = explainer.explain(ROWS[:1], features=["a"], predictions=False)
    assert [len(Z) for Z in seen] == [1024, 1024, 2048]
    points = np.concatenate(seen)
    assert len(np.unique(points, axis=0)) == 4096
    assert_allclose(found.values[0, 0], wild(points).mean(), rtol=1e-12)


def test_too_few_evaluations():
    with pytest.raises(ValueError, match=r"max_evals=31.*16 replicates.*32"):
        fitted(line, max_evals=31)
    explainer = fitted(line).set_params(max_evals=8)
    with pytest.raises(ValueError, match="max_evals=8"):
        explainer.explain(ROWS)


@pytest.mark.parametrize("replicates", [1, 0, -3, 2.5, "many", None])
def test_replicates_that_are_none(replicates):
    with pytest.raises(ValueError, match="replicates="):
        fitted(line, engine=QuasiMonteCarlo(replicates))


def test_an_engine_of_ones_own():
    explainer = fitted(line, engine=QuasiMonteCarlo(replicates=5))
    found = explainer.explain(ROWS)
    assert "5 replicates" in explainer.describe()
    assert (np.abs(found.values - wanted(line_mean)[:, :, 0]) <= 10 * found.std_error).all()
    assert fitted(Ridge().fit(X, line(X)), engine="quasi_monte_carlo").exact_ is False


# -- around it -----------------------------------------------------------------------------------


def test_engine_exact_refuses():
    with pytest.raises(ValueError, match="no exact engine"):
        fitted(line, engine="exact")
    with pytest.raises(ValueError, match=r"affine.*needs Additive"):
        fitted(line, engine="affine")


def test_describe():
    text = fitted(line, tol=0.01, max_evals=2048).describe()
    for words in ("quasi_monte_carlo", "approximate", "16 replicates", "tol=0.01",
                  "max_evals=2048"):  # fmt: skip
        assert words in text


def test_curves():
    explainer = fitted(both)
    found = explainer.explain(ROWS)
    curve = explainer.curve("b")
    assert curve.kind == "function"
    assert np.array_equal(curve(ROWS["b"]), found.values[:, 1])
    table = curve.to_frame()
    counted = BACKGROUND["b"][WEIGHTS > 0]
    assert table["x"].tolist() == sorted(set(counted))


def test_save_and_load(tmp_path):
    found = fitted(both).explain(ROWS)
    found.save(tmp_path / "found.npz")
    again = Explanation.load(tmp_path / "found.npz")
    assert_same_bits(again, found)
    assert not again.exact
    tidy = found.to_frame(tidy=True)
    assert (tidy["std_error"] >= 0).all()


def test_every_kind_of_pieces():
    y = wild(X)
    labels = np.digitize(y, [-0.1, 0.1])
    classes = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, labels)
    vote = VotingRegressor(
        [("a", RandomForestRegressor(2, max_depth=2, random_state=0)), ("b", Ridge())]
    ).fit(X, y)
    for model in (classes, vote):
        found = fitted(model, tol=1e-2).explain(ROWS)
        assert found.engine == ("quasi_monte_carlo",)
        f = classes.predict_proba if model is classes else vote.predict
        black = fitted(lambda Z, f=f: f(Z), tol=1e-2).explain(ROWS)
        assert_allclose(found.values, black.values, rtol=1e-12, atol=1e-14)
        assert_allclose(found.std_error, black.std_error, rtol=1e-6, atol=1e-12)


def test_the_spread_is_asked_for_once():
    seen = []

    def counted(Z):
        seen.append(len(Z))
        return line(Z)

    fitted(counted, PartialDependence())
    exact = len(seen)
    seen.clear()
    fitted(counted, Normals() + Normals(2.0) - PartialDependence())
    assert len(seen) == exact + 1


def test_progress(capsys):
    fitted(line, verbose=1).explain(ROWS[:2])
    shown = capsys.readouterr().err
    assert "values to estimate" in shown and "tol" in shown and "evaluations" in shown
    fitted(line, verbose=0).explain(ROWS[:2])
    assert capsys.readouterr().err == ""


def test_no_batches():
    assert not hasattr(MeasureExplainer(line, Normals()), "partial_fit")


# -- uniform laws behind steps that no exact engine follows --------------------------------------


def waves(X):
    """A function of one column of which nothing is known."""
    return np.sin(4 * np.asarray(X))


BEHIND = {
    "splines": SplineTransformer(n_knots=4),
    "polynomials": make_column_transformer(
        (PolynomialFeatures(3, include_bias=False), ["a"]), ("passthrough", ["b"])
    ),
    "a function": make_column_transformer(
        (FunctionTransformer(waves), ["a"]), ("passthrough", ["b"])
    ),
}
MODELS = {
    "trees": RandomForestRegressor(5, max_depth=3, random_state=0),
    "a line": LinearRegression(),
    "a kernel": SVR(gamma=0.3),
    "a sum": VotingRegressor([("trees", DecisionTreeRegressor(max_depth=2)), ("line", Ridge())]),
}


def midpoints(low, high, n=4000):
    return low + (high - low) * (np.arange(n) + 0.5) / n


@pytest.mark.parametrize("steps", BEHIND)
@pytest.mark.parametrize("kind", MODELS)
def test_uniform_laws_behind_any_step_are_estimated(steps, kind):
    plane = X[["a", "b"]]
    y = plane.a**2 * plane.b
    model = make_pipeline(clone(BEHIND[steps]), clone(MODELS[kind])).fit(plane, y)
    options = {"tol": 0.04, "max_evals": 2**15, "random_state": 0}
    known = (steps, kind) in {("splines", "a line"), ("splines", "a kernel")}  # smooth pieces

    low, high = plane.min().to_numpy(), plane.max().to_numpy()
    found = MeasureExplainer(model, Uniform(), **options).fit(plane)
    assert found.exact_ == known
    explanation = found.explain(plane[:4])
    for i in range(4):
        for j in range(2):
            rows = plane.iloc[np.full(4000, i)].reset_index(drop=True)
            rows.isetitem(1 - j, midpoints(low[1 - j], high[1 - j]))
            error = 0.0 if known else explanation.std_error[i, j]
            wanted = model.predict(rows).mean()
            assert abs(explanation.values[i, j] - wanted) <= 5 * error + 1e-3 * y.std()

    grid = pd.DataFrame(np.stack(np.meshgrid(*(midpoints(*ends, 300) for ends in zip(low, high,
                        strict=True))), -1).reshape(-1, 2), columns=["a", "b"])  # fmt: skip
    mean = MeasureExplainer(model, Expectation("uniform"), **options).fit(plane)
    assert mean.exact_ == known
    one = mean.explain(plane[:1])
    error = 0.0 if known else one.std_error[0, 0]
    assert abs(one.values[0, 0] - model.predict(grid).mean()) <= 5 * error + 1e-2 * y.std()

    sides = MeasureExplainer(model, Coefficient(), **options).fit(plane)
    assert sides.exact_ == known
    for j in range(2):
        rows = pd.DataFrame(np.tile(low, (4000, 1)), columns=["a", "b"])
        rows.isetitem(j, midpoints(low[j], high[j]))
        one = sides.explain(plane[:1])
        error = 0.0 if known else one.std_error[0, j]
        assert abs(one.values[0, j] - 2 * model.predict(rows).mean()) <= 5 * error + 2e-3 * y.std()

    if not known:
        with pytest.raises(ValueError, match="no exact engine"):
            MeasureExplainer(model, Uniform(), engine="exact").fit(plane)
