"""`Conditional` on frames in parts: the law is learned from a sample, sums run over all rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

from skattr import MeasureExplainer, distributed
from skattr.distributed import fitting
from skattr.distributed.kinds import source_of
from skattr.measures import Conditional, Expectation, Shapley
from skattr.measures.background import Background
from tests.helpers.frames import assert_same_fit, cut
from tests.helpers.lanes import quickly
from tests.helpers.networks import random_perceptron

BY_ROWS = ("kernel", "local_linear", "knn")
NUMBERS = ["area", "late", "steps"]
SAMPLE = 120
N = 400


def data():
    """Return rows with dependent numbers, few numbers, and levels."""
    rng = np.random.default_rng(3)
    area = np.sort(rng.gamma(3.0, 20.0, N))
    X = pd.DataFrame({"area": area, "late": rng.normal(size=N) + area / 20})
    X["steps"] = rng.integers(0, 4, N).astype(float)
    X["district"] = pd.Series(rng.choice(["north", "east", "west"], N), dtype="str")
    return X, area + 9 * X["late"] * (X["district"] == "east") - X["steps"] ** 2


X, Y = data()


def models():
    """Return name → (model, output): one for each engine that has weights of rows."""
    numbers, classes = X[NUMBERS], Y > np.median(Y)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["district"]),
        remainder="passthrough",
    )
    forest = RandomForestRegressor(4, max_depth=4, random_state=0)
    thirds = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    scaler = StandardScaler().fit(numbers)
    boosted = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    scaled = make_pipeline(StandardScaler(), SVR(C=9))
    return {
        "binned_rows": (make_pipeline(columns, forest).fit(X, Y), "auto"),
        "classes": (RandomForestClassifier(3, max_depth=3, random_state=0).fit(numbers, thirds),
                    "auto"),
        "binned_additive": (make_pipeline(columns, LinearRegression()).fit(X, Y), "auto"),
        "binned_products": (scaled.fit(numbers, Y), "auto"),
        "lines": (make_pipeline(scaler, random_perceptron(0, 3, (5, 4))), "auto"),
        "linked_boxes": (boosted.fit(numbers, classes), "proba"),
        "linked_margins": (make_pipeline(columns, LogisticRegression()).fit(X, classes), "proba"),
        "addends": (VotingRegressor([("a", forest), ("b", scaled)]).fit(numbers, Y), "auto"),
        "finite_sum": (scaled.predict, "auto"),
    }  # fmt: skip


MODELS = models()
QUICK = ("binned_rows", "binned_additive", "linked_boxes", "finite_sum")


def case(name, measure, **parameters):
    """Return an explainer of a fitted model, and the rows that it takes."""
    model, output = MODELS[name]
    frozen = FrozenEstimator(model) if hasattr(model, "predict") else model
    columns = [c for c in X if c in getattr(model, "feature_names_in_", NUMBERS)]
    return MeasureExplainer(frozen, measure, output=output, **parameters), X[columns]


def with_rare_values(Z, sample, missing):
    """Return rows of which some have values that no row of the sample has, and these rows."""
    out = np.setdiff1d(np.arange(N), sample)[[0, 40, 80, 120]]
    Z = Z.copy()
    Z.loc[out[2:], "steps"] = 7.0
    if missing:
        Z.loc[out[1:3], "late"] = np.nan
    if "district" in Z:
        Z.loc[out[:2], "district"] = "nowhere else"
    return Z, out


def split(Z, seed):
    """Cut rows into uneven parts."""
    return cut(Z, 6, np.random.default_rng(seed))


def sample_of(parts, weight):
    """Return the rows from which the law is learned, with their places in X."""
    rows = fitting._sketch(source_of(parts), weight, []).sample.X
    return rows.set_axis(np.searchsorted(X["area"], rows["area"]))


# -- the definition ------------------------------------------------------------------------------


def weights_of_rows(measure, sample, sample_weight, Z, ω, k):
    """Return t ↦ the weights of all rows, by the definition, with bins of the sample's law."""
    column = measure.rows_.columns[k]
    bins, local = column.bins, column.local
    own = bins.of(sample.iloc[:, k])
    mass = np.array([sample_weight[own == b].sum() for b in range(bins.n)], float)
    rank = (np.cumsum(mass) - mass / 2) / mass.sum()
    scores = np.append(ndtri(0.02 + 0.96 * rank), [np.nan, np.nan])
    at = bins.of(Z.iloc[:, k])

    def kernel(b, s):
        if bins.ordered:
            return max(1 - ((scores[b] - scores[s]) / local) ** 2, 0.0) if s < bins.n else 0.0
        return 1.0 if b == s else (0.0 if s == bins.n else local)

    def weights(t):
        b = int(bins.of(np.array([t]) if bins.levels is None else pd.Series([t]))[0])
        if b == bins.n and (at == b).any():
            result = ω * (at == b)
        elif b >= bins.n:
            result = ω.copy()
        else:
            result = ω * np.array([kernel(b, s) for s in at])
        return result / result.sum()

    return weights


@pytest.mark.parametrize("name", quickly(MODELS, QUICK[:2]))
@pytest.mark.parametrize("weighted", quickly([False, True], [True]))
def test_sums_run_over_all_rows(monkeypatch, name, weighted):
    monkeypatch.setattr(fitting, "SAMPLE", SAMPLE)
    explainer, Z = case(name, Conditional())
    ω = np.random.default_rng(1).integers(1, 4, N) if weighted else np.ones(N)
    chosen = sample_of(split(Z.assign(ω=ω), 2), "ω").index
    Z, out = with_rare_values(Z, chosen, missing=name in ("linked_boxes", "classes"))
    parts = split(Z.assign(ω=ω), 2)
    sample = sample_of(parts, "ω")
    assert sorted(sample.index) == sorted(chosen)
    fitted = distributed.fit(clone(explainer), parts, "ω")
    assert {"classes": "binned_rows"}.get(name, name) in fitted.engine_
    assert out.min() not in sample.index
    assert f"a seeded sample of {SAMPLE} of {N} rows, summed over all rows" in fitted.describe()
    f = fitted.pieces_.predict
    np.testing.assert_allclose(fitted.base_value_, np.squeeze(ω @ f(Z) / ω.sum()), rtol=1e-10)
    rows = Z.iloc[[0, 100, 399, *out]]
    values = fitted.explain(rows).values.reshape(len(rows), Z.shape[1], -1)
    for k, column in enumerate(Z):
        weights = weights_of_rows(fitted.measure_, sample, ω[sample.index], Z, ω, k)
        for i, t in enumerate(rows[column]):
            shares = weights(t)
            want = shares @ f(Z.assign(**{column: t}))
            np.testing.assert_allclose(values[i, k], want, rtol=1e-8, atol=1e-8)
            support = fitted.measure_.support(rows.iloc[[i]], (k,))
            np.testing.assert_allclose(support, 1 / (shares**2).sum(), rtol=1e-8)


@pytest.mark.parametrize("estimator", quickly(BY_ROWS, ["kernel"]))
@pytest.mark.parametrize("name", quickly(MODELS, QUICK[2:]))
def test_a_sample_of_all_rows_gives_the_fit_on_all_rows(name, estimator):
    explainer, Z = case(name, Conditional(estimator) - Expectation())
    fitted, whole = distributed.fit(clone(explainer), split(Z, 0)), clone(explainer).fit(Z)
    assert_same_fit(fitted, whole, Z[::9])
    assert "sample" not in fitted.describe()
    a, b = (each._solution.terms[0].measure for each in (fitted, whole))
    for one, other in zip(a.support_, b.support_, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


GAMES = {
    "groups": ("kernel", {"groups": {"both": ["area", "steps"]}}, lambda c: c),
    "local linear groups": ("local_linear", {"groups": {"both": ["area", "steps"]}}, lambda c: c),
    "Shapley": ("kernel", {}, Shapley),
    "sampled Shapley": ("knn", {"max_evals": 3000, "tol": 0.3, "random_state": 0}, Shapley),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [SAMPLE, N])
@pytest.mark.parametrize("name", ["binned_rows", "binned_additive", "binned_products", "lines"])
@pytest.mark.parametrize("kind", GAMES)
def test_groups_and_coalitions(monkeypatch, name, kind, n_rows):
    """The parts do not matter, given the law; and a law from all rows is that of `fit`."""
    estimator, parameters, measure = GAMES[kind]
    explainer, Z = case(name, measure(Conditional(estimator)), **parameters)
    parts = split(Z, 4)
    sketch = fitting._sketch(source_of(parts), None, [])
    monkeypatch.setattr(fitting, "SAMPLE", n_rows)
    if n_rows < N:
        sketch = fitting._sketch(source_of(parts), None, [])
    monkeypatch.setattr(fitting, "_sketch", lambda *_: sketch)
    fitted = distributed.fit(clone(explainer), parts)
    once = distributed.fit(clone(explainer), [Z]) if n_rows < N else clone(explainer).fit(Z)
    assert_same_fit(fitted, once, Z[::50])
    columns = (0, list(Z).index("steps"))
    given = [each._solution.terms[0].measure for each in (fitted, once)]
    if kind.endswith("groups"):
        a, b = (measure.support(Z[:20], columns) for measure in given)
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("estimator", BY_ROWS)
def test_weights_of_a_group_are_normalised_over_all_rows(estimator):
    law = Conditional(estimator).fit(X[::3], attributions=[(0, 2), (1,), (3,)])
    batch = law.on_batch(Background(X, np.ones(N)))
    batch.rows_ = batch.rows_.settled()
    whole = law.rows_.on(Background(X[:100], np.ones(100)))
    whole = whole.merge(law.rows_.on(Background(X[100:], np.ones(N - 100)))).settled()
    for columns in [(0,), (3,), (0, 2)]:
        for at in batch.rows_.bins_of(X[::60], columns).T:
            weights = batch.rows_.given(columns, at)
            np.testing.assert_allclose(weights.sum(), 1.0)
            np.testing.assert_allclose(whole.given(columns, at), weights, rtol=1e-9)


def test_a_law_that_does_not_serve_all_rows():
    """Negative weights of a local linear fit may outweigh the others, if all rows are unlike."""
    rng = np.random.default_rng(0)
    Z = pd.DataFrame({"a": np.arange(60.0), "b": rng.normal(size=60)})
    law = Conditional("local_linear", bandwidth=1.0).fit(Z)
    heavy = np.where(Z["a"] == 20.0, 1e9, 1.0)
    rows = law.rows_.on(Background(Z, heavy))
    with pytest.raises(ValueError, match=r"given 'a', the weights of all rows.*use Conditional"):
        rows.settled()
