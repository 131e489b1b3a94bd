"""Affine models: which terms are known to be, and the exact values at the centres of a measure."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence
from tests.helpers.lanes import quickly
from tests.helpers.normals import Normals, closed_form

rng = np.random.default_rng(0)
NAMES = list("abcd")
X = pd.DataFrame(rng.normal(2, 1, size=(60, 4)).clip(0.1).round(1), columns=NAMES)
y = (X["a"] - 2 * X["b"] + X["c"] ** 2 + np.sin(X["d"])).to_numpy()
ROWS = X[:10]
ALONE = tuple((k,) for k in range(4))

# -- the flag ------------------------------------------------------------------------------------

STRAIGHT = {
    "standard": StandardScaler,
    "centred only": lambda: StandardScaler(with_std=False),
    "max abs": MaxAbsScaler,
    "min max": MinMaxScaler,
    "robust": lambda: RobustScaler(quantile_range=(10, 90), unit_variance=True),
    "imputed": SimpleImputer,
    "nothing": lambda: "passthrough",
    "identity": FunctionTransformer,
    "selected": lambda: VarianceThreshold(0.0),
    "weighted": lambda: FeatureUnion([("a", StandardScaler())], transformer_weights={"a": -2.5}),
    "two of them": lambda: FeatureUnion([("a", MaxAbsScaler()), ("b", RobustScaler())]),
}
BENT = {
    "clipped": lambda: MinMaxScaler(clip=True),
    "replaced": lambda: SimpleImputer(missing_values=2.0),
    "indicated": lambda: SimpleImputer(add_indicator=True),  # straight: nothing is missing
    "quantiles": lambda: QuantileTransformer(n_quantiles=5),
    "power": PowerTransformer,
    "binary": lambda: Binarizer(threshold=0.7),
    "bins": lambda: KBinsDiscretizer(
        3, encode="ordinal", quantile_method="averaged_inverted_cdf", dtype=np.float32
    ),
    "splines": lambda: SplineTransformer(4),
    "function": lambda: FunctionTransformer(np.square),
    "arctan": lambda: FunctionTransformer(np.arctan),
    "bent in a union": lambda: FeatureUnion(
        [("a", MaxAbsScaler()), ("b", FunctionTransformer(np.cbrt))]
    ),
}
STEPS = {**STRAIGHT, **BENT}


def bend(pieces, k):
    """How far the term of a column is from a line, relative to its size."""
    values = X.iloc[:, k].to_numpy()
    draws = np.random.default_rng(k)
    ends = draws.choice([*values, 2.0, 0.7, -3.0, 40.0, 0.0], size=(200, 2))
    between = draws.random(200)
    points = between * ends[:, 0] + (1 - between) * ends[:, 1]
    low, high, middle = (pieces.at_values(k, v) for v in (ends[:, 0], ends[:, 1], points))
    line = between[:, None] * low + (1 - between[:, None]) * high
    size = max(np.abs(line).max(), 1e-300)
    return np.abs(middle - line).max() / size


def random_pipeline(seed):
    """Chains of steps for each column, and whether each chain is made of straight steps."""
    draws = np.random.default_rng(seed)
    parts, straight = [], []
    for name in NAMES:
        some = STRAIGHT if draws.random() < 0.5 else STEPS
        chain = draws.choice(list(some), size=draws.integers(1, 4)).tolist()
        parts.append((name, make_pipeline(*(STEPS[step]() for step in chain)), [name]))
        straight.append(all(step in STRAIGHT for step in chain))
    front = ColumnTransformer(parts)
    after = [StandardScaler()] if draws.random() < 0.5 else []
    return make_pipeline(front, *after, Ridge()).fit(X, y), straight


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*in KBins.*", "ignore:.*Bins whose width.*")
def test_what_is_called_affine_is_a_line():
    affine = bent = 0
    for seed in range(60):
        model, straight = random_pipeline(seed)
        pieces = MeasureExplainer(model).fit(X).pieces_
        for k in range(4):
            if straight[k]:
                assert pieces.is_affine(k), model
            if pieces.is_affine(k):
                assert bend(pieces, k) < 1e-9, model
                affine += 1
            else:
                bent += 1
    assert affine > 80 and bent > 30


@pytest.mark.parametrize("name", quickly(STEPS, ["standard", *BENT]))
def test_single_steps(name):
    model = make_pipeline(make_column_transformer((STEPS[name](), ["a"])), Ridge()).fit(X, y)
    pieces = MeasureExplainer(model).fit(X).pieces_
    assert pieces.is_affine(0) == (name in STRAIGHT or name == "indicated")
    assert (bend(pieces, 0) < 1e-9) == pieces.is_affine(0)
    assert pieces.is_affine(1)  # there is no term of it


def test_levels_are_not_affine():
    data = X.assign(d=np.where(X["d"] > 2, "u", "v"))
    front = make_column_transformer((OneHotEncoder(), ["d"]), remainder="passthrough")
    pieces = MeasureExplainer(make_pipeline(front, Ridge()).fit(data, y)).fit(data).pieces_
    assert [pieces.is_affine(k) for k in range(4)] == [True, True, True, False]


def test_terms_without_weight_do_not_count():
    front = make_column_transformer(
        (SplineTransformer(), ["c"]), (StandardScaler(), ["a", "b"]), remainder="drop"
    )
    model = make_pipeline(front, Lasso(alpha=1e6)).fit(X, y)
    assert MeasureExplainer(model).fit(X).pieces_.is_affine(2)


def test_terms_of_an_ebm_are_not_affine():
    interpret = pytest.importorskip("interpret.glassbox")
    ebm = interpret.ExplainableBoostingRegressor(
        interactions=0, max_rounds=20, outer_bags=1, n_jobs=1
    ).fit(X, y)
    explainer = MeasureExplainer(ebm, Normals(), tol=0.05, random_state=0).fit(X)
    assert not any(explainer.pieces_.is_affine(k) for k in range(4))
    assert explainer.engine_ == ("quasi_monte_carlo",)


# -- the engine ----------------------------------------------------------------------------------


def affine_cases():
    scaled = make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    imputed = make_pipeline(SimpleImputer(), MinMaxScaler(), LinearRegression()).fit(X, y)
    chosen = make_pipeline(SelectKBest(f_regression, k=2), RobustScaler(), Ridge()).fit(X, y)
    columns = make_pipeline(
        make_column_transformer((MaxAbsScaler(), ["d", "a"]), remainder="passthrough"), Ridge()
    ).fit(X, y)
    targets = make_pipeline(StandardScaler(), Ridge()).fit(X, np.stack([y, -(y**2)], axis=1))
    vote = VotingRegressor([("a", scaled), ("b", LinearRegression())]).fit(X, y)
    bag = BaggingRegressor(Ridge(), 4, max_features=0.6, random_state=0).fit(X, y)
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y > 0)
    return {
        "LinearRegression": (LinearRegression().fit(X, y), None),
        "scaled": (scaled, None),
        "imputed": (imputed, None),
        "selected": (chosen, None),
        "columns": (columns, None),
        "targets": (targets, None),
        "vote": (vote, None),
        "bag": (bag, None),
        "logistic": (logistic, logistic.decision_function),
    }


CASES = affine_cases()
cases = pytest.mark.parametrize("name", CASES)
WEIGHTS = np.arange(60) % 4


def line_of(f):
    """The affine function f, found by asking it, as a function of means and variances."""

    def at(m, v):
        return f(pd.DataFrame([m], columns=NAMES))[0]

    return at


@pytest.mark.slow
@cases
@pytest.mark.parametrize("groups", [None, {"g": ["d", "b"]}])
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_closed_form(name, groups):
    model, f = CASES[name]
    f = f or model.predict
    explainer = MeasureExplainer(model, Normals(), groups=groups).fit(X, sample_weight=WEIGHTS)
    found = explainer.explain(ROWS)
    assert explainer.engine_ == ("affine",) and explainer.exact_
    assert found.exact and found.std_error is None
    own = ALONE if groups is None else ((0,), (1, 3), (2,))
    truth = closed_form(line_of(f), ROWS, X, WEIGHTS, own)
    assert_allclose(found.values.reshape(truth.shape), truth, rtol=1e-12, atol=1e-12)
    assert MeasureExplainer(model, Normals(), engine="exact").fit(X).exact_


@pytest.mark.slow
@cases
def test_quasi_monte_carlo_agrees(name):
    model, _ = CASES[name]
    exact = MeasureExplainer(model, Normals()).fit(X).explain(ROWS[:3])
    explainer = MeasureExplainer(model, Normals(), engine="quasi_monte_carlo", random_state=0)
    found = explainer.fit(X).explain(ROWS[:3])
    assert found.engine == ("quasi_monte_carlo",)
    assert (np.abs(found.values - exact.values) <= 5 * found.std_error + 1e-12).all()


@pytest.mark.parametrize("name", quickly(CASES, ["LinearRegression"]))
def test_rows_do_not_matter_to_each_other(name, monkeypatch):
    explainer = MeasureExplainer(CASES[name][0], Normals() - Expectation()).fit(X)
    whole = explainer.explain(X).values
    for rows in (np.arange(60)[::-1], [7], [3, 3, 12]):
        assert np.array_equal(explainer.explain(X.iloc[rows]).values, whole[rows])
    monkeypatch.setattr("skattr.engines.additive.affine.ROW_BLOCK", 7)
    assert np.array_equal(explainer.explain(X).values, whole)


def test_a_missing_own_value_is_imputed():
    model = make_pipeline(SimpleImputer(strategy="median"), Ridge()).fit(X, y)
    explainer = MeasureExplainer(model, Normals()).fit(X)
    gaps = ROWS.assign(a=np.nan)
    filled = ROWS.assign(a=X["a"].median())
    assert np.array_equal(explainer.explain(gaps).values, explainer.explain(filled).values)


def test_refusal_names_the_column():
    front = make_column_transformer((SplineTransformer(), ["c"]), remainder="passthrough")
    model = make_pipeline(front, Ridge()).fit(X, y)
    with pytest.raises(ValueError, match=r"term of column 'c' is not known to be affine"):
        MeasureExplainer(model, Normals(), engine="affine").fit(X)
    with pytest.raises(ValueError, match="no exact engine"):
        MeasureExplainer(model, Normals(), engine="exact").fit(X)
    with pytest.raises(ValueError, match="needs the view 'centers'"):
        MeasureExplainer(LinearRegression().fit(X, y), engine="affine").fit(X)


def test_curve_and_sum():
    model, _ = CASES["scaled"]
    explainer = MeasureExplainer(model, Normals() - PartialDependence()).fit(X)
    assert explainer.engine_ == ("affine", "additive")
    # both put the others at their means
    assert_allclose(explainer.explain(ROWS).values, 0, atol=1e-12)
    curve = MeasureExplainer(model, Normals()).fit(X).curve("b")
    assert curve.kind == "function"
    found = MeasureExplainer(model, Normals()).fit(X).explain(ROWS)
    assert np.array_equal(curve(ROWS["b"]), found.values[:, 1])
