"""Pipelines on raw columns: the library equals the definition on the table of `pipelines.py`."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from skattr import MeasureExplainer
from skattr.measures import (
    Baseline,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Uniform,
)
from tests.cases import BY_EVALUATION, MEASURES, combination, exists
from tests.helpers.comparison import close, cube, flat, same
from tests.helpers.pipelines import (
    CASES,
    FLOATS,
    GRADES,
    MODELS,
    PREPARATIONS,
    RARE,
    TOWNS,
    RawOracle,
    fits,
    make_case,
    names_of,
    numbered,
    on_numbered,
    one_hot,
    parts,
)
from tests.helpers.random_cases import examples, groups_of, rows_as_given, weights_of
from tests.oracle import columns, described, table

# an encoder's own word about levels that it encodes as zeros
pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")


# -- what is drawn -------------------------------------------------------------------------------

seeds = st.integers(0, 10_000)
every_case = pytest.mark.parametrize("name", CASES, ids=" | ".join)
NOT_SUMS = ("black box", "linked")
EXACT = [(p, m) for p, m in CASES if not PREPARATIONS[p].step and MODELS[m].reads not in NOT_SUMS]
every_exact_case = pytest.mark.parametrize("name", EXACT, ids=" | ".join)
AFFINE = [(p, m) for p, m in EXACT if PREPARATIONS[p].affine]
ENGINES = {"boxes": ("one_violation", "box_products"), "additive": ("additive", "additive")}


@st.composite
def any_case(draw):
    """Any preparation with any model that can stand behind it, in any container."""
    preparation = draw(st.sampled_from(sorted(PREPARATIONS)))
    model = draw(st.sampled_from([m for m in sorted(MODELS) if fits(preparation, m)]))
    container = draw(st.sampled_from(PREPARATIONS[preparation].containers))
    try:
        return make_case(preparation, model, container, draw(st.integers(0, 7)))
    except UserWarning as warning:  # a fold of scikit-learn's own search lacks a level
        assert "Scoring failed" in str(warning)
        reject()


def few(case):
    """The case with so few background rows that the product of its marginals can be listed."""
    n = max(2, int(2000 ** (1 / case.n_columns)))
    chosen = np.arange(min(n, len(case.background)))
    return replace(case, background=rows_as_given(case.background, chosen))


BY_COLUMNS = [kind for kind, m in MEASURES.items() if m.over == "columns"]
ON_THE_BOX = [kind for kind, m in MEASURES.items() if m.over == "box"]
coefficients = st.sampled_from([1.0, -1.0, 0.5, -2.5, 3])


def measures_of(case, weight=None):
    """The measures that are exact for a case, and exist whatever its columns are."""
    if case.reads in NOT_SUMS:
        return BY_EVALUATION
    kinds = [kind for kind, m in MEASURES.items() if m.over != "corner"]
    return [kind for kind in kinds if exists(case, kind, weight)]


def oracle_of(case, weight=None):
    """The definition for one case."""
    return RawOracle(case.f, case.background, weight, case.breaks)


def agrees(case, measure, weight=None, own=None, **settings):
    """Values, base value, offset and centred values equal the definition."""
    oracle = oracle_of(case, weight)
    return same(case, measure, weight, own, oracle, **{**case.settings, **settings})


def explainer_of(case, measure="partial_dependence", **settings):
    """An explainer that is not fitted yet."""
    return MeasureExplainer(case.estimator, measure, **{**case.settings, **settings})


def fitted(case, measure="partial_dependence", **settings):
    """An explainer that knows the background."""
    return explainer_of(case, measure, **settings).fit(case.background)


# -- values --------------------------------------------------------------------------------------


@pytest.mark.slow
@every_case
def test_measures_by_rows(name):
    case = make_case(*name)
    weight = weights_of(case, len(name[0]))
    agrees(case, PartialDependence(), weight)
    agrees(case, combination(case, BY_EVALUATION), weight)


@pytest.mark.slow
@every_exact_case
def test_measures_by_products(name):
    case = few(make_case(*name))
    weight = weights_of(case, len(name[0]))
    agrees(case, combination(case, BY_COLUMNS), weight)
    agrees(case, ProductMarginal() - PartialDependence())


@pytest.mark.slow
@pytest.mark.parametrize("name", AFFINE, ids=" | ".join)
def test_uniform_laws(name):
    case = make_case(*name)
    assert case.breaks is not None
    agrees(case, Uniform())
    agrees(case, combination(case, [*ON_THE_BOX, "partial dependence"]))


@pytest.mark.slow
@settings(examples(60), phases=[Phase.generate])  # to shrink a case is to build it often
@given(any_case(), seeds, st.data())
def test_any_combination(case, seed, data):
    weight = weights_of(case, seed)
    kinds = st.sampled_from(measures_of(case, weight))
    drawn = data.draw(st.lists(st.tuples(coefficients, kinds), min_size=1, max_size=3))
    if any(MEASURES[kind].over == "columns" for _, kind in drawn):
        case = few(case)
        weight = weights_of(case, seed)
        drawn = [(c, kind) for c, kind in drawn if kind in measures_of(case, weight)]
    terms = [coefficient * MEASURES[kind].make(case) for coefficient, kind in drawn]
    groups, own = groups_of(case, seed)
    agrees(case, sum(terms[1:], start=terms[0]), weight, own, groups=groups)


@pytest.mark.slow
@pytest.mark.parametrize(
    "container, preparation",
    [(c, p) for p, made in PREPARATIONS.items() for c in made.containers if c != "pandas"],
)
def test_containers(container, preparation):
    models = [m for m in ("forest", "ridge", "hist") if fits(preparation, m)]
    case = make_case(preparation, models[len(preparation) % len(models)], container, 1)
    agrees(case, PartialDependence())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["forest", "ridge", "hist", "logistic", "tree multiclass"])
def test_one_background_row(model):
    case = make_case("mixed", model, "pandas", 3)
    assert len(case.background) == 1
    agrees(case, PartialDependence() - 3 * ProductMarginal())


@pytest.mark.parametrize("name", [("mixed", "forest"), ("nested", "hist"), ("everything", "ridge")])
def test_one_attribution_for_each_raw_column(name):
    """A whole raw column is pinned: its one-hot columns never part."""
    case = make_case(*name)
    explanation = fitted(case).explain(case.X)
    assert explanation.values.shape == (len(case.X), case.n_columns)
    assert list(explanation.feature_names) == list(case.X.columns)


@pytest.mark.slow
def test_columns_that_the_pipeline_drops_get_zero():
    for name in ("drop", "remainder drop"):
        for model in ("forest", "ridge", "hist"):
            case = make_case(name, model)
            for measure in (PartialDependence(), ProductMarginal()):
                values = fitted(few(case), measure).explain(case.X).centered().values
                assert np.all(values[:, 1] == 0.0)
                assert not np.all(values == 0.0)


# -- how it is read ------------------------------------------------------------------------------


@pytest.mark.slow
@every_case
def test_engines(name):
    case = make_case(*name)
    if case.reads == "black box":
        explainer = fitted(case)
        assert explainer.engine_ == ("finite_sum",)
        assert case.step is None or case.step in explainer.describe()
    elif case.reads == "linked":
        assert fitted(case).engine_ in (("linked_boxes",), ("linked_margins",))
    else:
        explainer = fitted(case, PartialDependence() - ProductMarginal())
        assert explainer.engine_ == ENGINES[case.reads], explainer.describe()


SILENT = ("mixed", "everything", "splines", "quantile", "frame", "one-hot refuses")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, word", [("calibrated", "Calibrated"), ("log target", "Transformed")]
)
def test_wrappers_that_are_no_sum(name, word):
    case = make_case("mixed", name)
    assert word in fitted(case).describe()


@pytest.mark.slow
@pytest.mark.parametrize("name", [(p, m) for p, m in EXACT if p in SILENT], ids=" | ".join)
def test_explain_without_predictions_never_predicts(name, monkeypatch):
    case = make_case(*name)
    explainer = fitted(case)
    wanted = explainer.explain(case.X).values

    def refuse(*args, **kwargs):
        raise AssertionError("the model was evaluated")

    for kind in {type(case.estimator), *(type(m) for m in last_steps(case.estimator))}:
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(kind, method):
                monkeypatch.setattr(kind, method, refuse)
    got = explainer.explain(case.X, predictions=False).values
    np.testing.assert_array_equal(got, wanted)


def last_steps(estimator):
    """The models at the ends of all pipelines inside an estimator."""
    if isinstance(estimator, Pipeline):
        return [estimator[-1]]
    inside = [getattr(estimator, a, None) for a in ("estimator", "best_estimator_", "regressor_")]
    inside += list(getattr(estimator, "estimators_", []))
    return [model for part in inside if part is not None for model in last_steps(part)]


# -- the contract --------------------------------------------------------------------------------

SOME = [
    ("mixed", "forest"),
    ("mixed", "ridge"),
    ("everything", "forest"),
    ("standard", "hist"),
    ("waves", "forest"),
    ("splines", "forest"),
    ("target", "tree multiclass"),
    ("mixed", "voting"),
    ("one-hot None and NaN", "forest"),
    ("pca", "forest"),
]
some_cases = pytest.mark.parametrize("name", SOME, ids=" | ".join)
CENTRED = PartialDependence() - Expectation()


@pytest.mark.slow
@some_cases
def test_order_subset_and_jobs_change_no_bit(name):
    case = make_case(*name)
    explainer = fitted(case, CENTRED)
    wanted = explainer.explain(case.X).values
    shuffled = np.array([3, 0, 5, 5, 1])
    got = explainer.explain(rows_as_given(case.X, shuffled)).values
    np.testing.assert_array_equal(got, wanted[shuffled])
    for i in range(2):
        one = explainer.explain(rows_as_given(case.X, [i])).values
        np.testing.assert_array_equal(one, wanted[[i]])
    several = fitted(case, CENTRED, n_jobs=2).explain(case.X).values
    np.testing.assert_array_equal(several, wanted)


@pytest.mark.slow
@some_cases
def test_pickle_and_clone_change_no_bit(name):
    case = make_case(*name)
    explainer = fitted(case, CENTRED)
    wanted = explainer.explain(case.X)
    again = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(again.explain(case.X).values, wanted.values)
    frozen = MeasureExplainer(FrozenEstimator(case.estimator), CENTRED)
    cloned = clone(frozen).fit(case.background)
    np.testing.assert_array_equal(cloned.explain(case.X).values, wanted.values)
    assert cloned.engine_ == explainer.engine_


@pytest.mark.slow
@some_cases
def test_columns_in_another_order(name):
    case = make_case(*name)
    explainer = fitted(case, CENTRED)
    turned = case.X[case.X.columns[::-1]]
    wanted = explainer.explain(case.X)
    got = explainer.explain(turned)
    np.testing.assert_array_equal(got.values, wanted.values)
    assert got.feature_names == wanted.feature_names
    assert got.to_frame().index.equals(case.X.index)


@pytest.mark.slow
@pytest.mark.parametrize("name", [("mixed", "forest"), ("mixed", "ridge"), ("everything", "hist")])
def test_a_background_in_another_order_than_training(name):
    """A ColumnTransformer finds its columns by name, so position k is another column here."""
    case = make_case(*name)
    order = case.X.columns[::-1]
    turned = replace(case, background=case.background[order], X=case.X[order])
    agrees(turned, PartialDependence())


@pytest.mark.slow
def test_an_unfitted_pipeline_is_fitted_with_y():
    case = make_case("mixed", "forest")
    explainer = MeasureExplainer(clone(case.estimator)).fit(case.train, case.y)
    wanted = MeasureExplainer(case.estimator).fit(case.train).explain(case.X).values
    np.testing.assert_array_equal(explainer.explain(case.X).values, wanted)


def in_batches(explainer, case, weight=None):
    """The explainer after three batches of the background."""
    part = np.arange(len(case.background)) % 3
    for p in range(3):
        chosen = np.flatnonzero(part == p)
        batch = rows_as_given(case.background, chosen)
        explainer.partial_fit(batch, sample_weight=None if weight is None else weight[chosen])
    return explainer


@pytest.mark.slow
@every_exact_case
def test_batches(name):
    case = make_case(*name)
    explainer = explainer_of(case)
    if case.open:
        named = "|".join(map(re.escape, case.open))
        with pytest.raises((AttributeError, ValueError), match=f"(?s)partial_fit.*({named})"):
            in_batches(explainer, case)
        return
    weight = np.arange(1.0, len(case.background) + 1)
    oracle = oracle_of(case, weight)
    own = [(k,) for k in range(case.n_columns)]
    wanted = oracle.values(described(PartialDependence()), case.X, own)
    in_batches(explainer, case, weight)
    close(cube(explainer.explain(case.X).values), wanted, oracle.tolerance(), "values")
    close(flat(explainer.base_value_), oracle.base_value(), oracle.tolerance(), "base_value_")


@pytest.mark.slow
@pytest.mark.parametrize("name", [("pca", "ridge"), ("mixed", "calibrated")], ids=" | ".join)
def test_batches_of_a_black_box(name):
    case = make_case(*name)
    values = in_batches(explainer_of(case), case).explain(case.X).values
    np.testing.assert_allclose(values, fitted(case).explain(case.X).values, rtol=1e-12)


# -- curves --------------------------------------------------------------------------------------


def curve_oracle(case, k, values):
    """phi_k by the definition at values of column k, (values, outputs), and the tolerance."""
    oracle = oracle_of(case)
    held = [column[np.zeros(len(values), int)] for column in columns(numbered(case.X))]
    held[k] = values
    X = table(numbered(case.X), held)
    phi = oracle.values(described(PartialDependence()), X, [(k,)])[:, 0]
    return phi, oracle.tolerance()


@pytest.mark.slow
@every_case
def test_explain_is_the_curve_at_each_value(name):
    case = make_case(*name)
    explainer = fitted(case)
    values = cube(explainer.explain(case.X).values)
    for k, column in enumerate(case.X.columns):
        got = np.asarray(explainer.curve(column)(case.X[column])).reshape(len(case.X), -1)
        np.testing.assert_array_equal(got, values[:, k], err_msg=column)


STEPS = {
    "standard": ("age", "size"),
    "standard, missing": ("age", "size"),
    "minmax": ("age", "size"),
    "minmax clip": ("age", "size"),
    "maxabs": ("age", "size"),
    "robust": ("age", "size"),
    "quantile": ("age", "size"),
    "quantile normal": ("age", "size"),
    "power": ("age", "size"),
    "imputer": ("age", "size"),
    "imputer indicator": ("age", "income"),
    "bins one-hot": ("age", "size"),
    "bins dense": ("age", "size"),
    "bins ordinal": ("age", "size"),
    "binarizer": ("age", "size"),
    "log1p": ("size",),
    "negative": ("age", "size"),
    "mixed": ("age", "income"),
    "a column twice": ("age", "size"),
    "union": ("age", "size"),
    "two transformers": ("age", "size"),
    "nested": ("age", "size"),
    "scaler after": ("age", "income"),
    "frame": ("age", "size"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        (p, m)
        for p in STEPS
        for m in ("forest", "hist", "boosting")
        if fits(p, m) and (m != "boosting" or p in ("negative", "mixed", "robust"))
    ],
    ids=" | ".join,
)
def test_steps_lie_on_the_raw_scale(name):
    case = make_case(*name)
    explainer = fitted(case)
    for column in STEPS[name[0]]:
        k = list(case.X.columns).index(column)
        curve = explainer.curve(column)
        assert curve.kind == "steps"
        frame = curve.to_frame()
        steps = frame[frame["closed"] == "right"].reset_index(drop=True)
        assert len(frame) - len(steps) == int((frame["closed"] == "missing").sum()) <= 1
        assert steps["lower"].iloc[0] == -np.inf and steps["upper"].iloc[-1] == np.inf
        assert (steps["upper"].to_numpy()[:-1] == steps["lower"].to_numpy()[1:]).all()
        assert (steps["lower"] < steps["upper"]).all()
        ends = np.concatenate([case.edges.get(column, []), steps["lower"][1:], [-1e5, 1e5]])
        if len(steps) < len(frame):
            ends = np.append(ends, np.nan)
        for values in (ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf)):
            wanted, tolerance = curve_oracle(case, k, values)
            read = np.array([read_step(frame, v) for v in values])[:, None]
            close(read, wanted, tolerance, f"table of {column}")
            close(curve(values)[:, None], wanted, tolerance, f"curve of {column}")


def read_step(frame, value):
    """The value that the table of a curve gives at one number."""
    if np.isnan(value):
        found = frame["closed"] == "missing"
    else:
        found = (frame["lower"] < value) & (value <= frame["upper"])
    assert found.sum() == 1, f"{value!r} is in {found.sum()} rows of\n{frame}"
    return float(frame.loc[found, "value"].iloc[0])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["forest", "hist"])
@pytest.mark.parametrize("preparation", STEPS)
def test_every_jump_of_f_is_a_step(preparation, model):
    """What bisection on f alone found stands in the table, to the last bit."""
    assume_fits(preparation, model)
    case = make_case(preparation, model)
    explainer = fitted(case)
    for column in set(STEPS[preparation]) & set(case.edges):
        frame = explainer.curve(column).to_frame()
        low = np.array(case.edges[column][::2])
        assert np.isin(low, frame["upper"]).all(), f"{low}\n{frame}"


def assume_fits(preparation, model):
    """Skip pairs that scikit-learn cannot fit."""
    if not fits(preparation, model):
        pytest.skip("scikit-learn cannot fit this pair")


# column, levels that its encoder knows, whether missing and any other level are allowed
LEVELS = {
    "one-hot": ("city", TOWNS, False, False),
    "one-hot dense": ("city", TOWNS, True, True),
    "one-hot None": ("street", TOWNS, True, True),
    "one-hot drop first": ("city", TOWNS, True, True),
    "one-hot drop if binary": ("city", TOWNS, True, True),
    "one-hot refuses": ("city", TOWNS, True, False),
    "one-hot category": ("grade", GRADES, True, True),
    "one-hot codes": ("code", [1, 2, 3, 4], True, True),
    "min frequency": ("city", TOWNS, True, True),
    "max categories": ("city", TOWNS, True, True),
    "infrequent, unknown ignored": ("city", TOWNS, True, True),
    "ordinal": ("city", TOWNS, None, True),
    "ordinal missing": ("city", TOWNS, True, True),
    "ordinal infrequent": ("city", TOWNS, None, True),
    "ordinal refuses": ("grade", GRADES, False, False),
    "target": ("city", TOWNS, True, True),
    "imputed levels": ("city", [*TOWNS, "none"], True, True),
    "mixed": ("city", TOWNS, True, True),
    "mixed pandas": ("grade", GRADES, True, True),
    "union": ("city", TOWNS, None, True),
    "scaler after": ("city", TOWNS, True, True),
    "select k best": ("city", TOWNS, True, True),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["forest", "ridge"])
@pytest.mark.parametrize("preparation", LEVELS)
def test_one_value_for_each_category(preparation, model):
    case = make_case(preparation, model)
    column, levels, missing, other = LEVELS[preparation]
    k = list(case.X.columns).index(column)
    curve = fitted(case).curve(column)
    assert curve.kind == "levels"
    frame = curve.to_frame()
    shown = frame["level"].tolist()
    assert len(set(shown)) == len(shown)
    gone = frame["level"][frame["kind"] == "missing"].tolist()
    if missing is not None:  # else it depends on what training showed the encoder
        assert bool(gone) == missing
    assert gone in ([], ["missing"], ["missing (None)", "missing (NaN)"])
    assert set(shown) == {*levels, *gone, *["any other"] * other}, frame
    special = {"missing": None, "missing (None)": None, "missing (NaN)": np.nan, "any other": RARE}
    raw = [special.get(level, level) for level in shown]
    if column == "code":
        raw = [{None: np.nan, RARE: 77}.get(value, value) for value in raw]
    values = columns(numbered(pd.DataFrame({"x": as_column(case.X[column], raw)})))[0]
    wanted, tolerance = curve_oracle(case, k, values)
    close(frame["value"].to_numpy()[:, None], wanted, tolerance, f"table of {column}")
    close(curve(as_column(case.X[column], raw))[:, None], wanted, tolerance, f"curve of {column}")


def as_column(like, values):
    """Values as a column of the same nature as another."""
    if like.dtype.kind == "i":
        return pd.Series(values, dtype=float)
    return pd.Series(values, dtype=like.dtype)


@pytest.mark.slow
def test_curves_of_several_outputs():
    case = make_case("mixed", "tree multiclass")
    explainer = fitted(case)
    frame = explainer.curve("city").to_frame()
    assert list(frame.columns) == ["level", "kind", *(f"value_{c}" for c in sorted(set(case.y)))]
    one = explainer.curve("city", output="yes").to_frame()
    np.testing.assert_array_equal(one["value"], frame["value_yes"])


# -- bad input -----------------------------------------------------------------------------------

rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": rng.normal(40, 10, size=40),
        "city": pd.Series(np.tile(TOWNS, 8), dtype="str"),
        "size": rng.normal(size=40),
    }
)
Y = X["age"] + X["size"] * (X["city"] == "Ulm")
FORESTS = {
    "forest": RandomForestRegressor(3, random_state=0),
    "hist": HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3),
    "ridge": Ridge(),
}
every_model = pytest.mark.parametrize("model", FORESTS)


def pipeline_of(model, encoder=None):
    """A fitted pipeline of scaler, encoder and model."""
    steps = parts((StandardScaler(), "age size"), (encoder or one_hot(), "city"))
    return make_pipeline(steps, clone(FORESTS[model])).fit(X, Y)


def refused(*words, kind=ValueError):
    """Expect an error whose message has all the words."""
    return pytest.raises(kind, match="(?s)" + "".join(f"(?=.*{re.escape(w)})" for w in words))


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("column", ["city", "age"])
def test_a_frame_without_a_column(model, column):
    pipeline = pipeline_of(model)
    bad = X.drop(columns=column)
    with refused(column):
        MeasureExplainer(pipeline).fit(bad)
    explainer = MeasureExplainer(pipeline).fit(X)
    for method in (explainer.explain, explainer.transform, explainer.partial_fit):
        for frame in (bad, pl.DataFrame({c: bad[c].tolist() for c in bad})):
            with refused(column):
                method(frame)


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("encoder", [OneHotEncoder(sparse_output=False), OrdinalEncoder()])
def test_a_category_that_the_encoder_refuses(model, encoder):
    explainer = MeasureExplainer(pipeline_of(model, encoder)).fit(X)
    bad = X.assign(city=X["city"].replace("Kiel", "Rome"))
    words = ["city", "Rome", "handle_unknown"]
    with refused(*words):
        explainer.explain(bad, predictions=False)
    with refused(*words):
        explainer.curve("city")(["Rome"])
    with refused(*words):
        explainer.partial_fit(bad)
    with refused(*words):
        MeasureExplainer(pipeline_of(model, encoder)).fit(bad)
    with refused("city"):
        explainer.explain(X.assign(city=pd.Series([None] * 40, dtype="str")), predictions=False)
    explainer.explain(X)  # nothing is half done


@pytest.mark.slow
def test_missing_numbers_where_the_model_takes_none():
    pipeline = pipeline_of("ridge")
    bad = X.assign(age=np.nan)
    explainer = MeasureExplainer(pipeline).fit(X)
    with refused("age"):
        explainer.explain(bad, predictions=False)
    with refused("age"):
        MeasureExplainer(pipeline).fit(bad)


@pytest.mark.slow
@every_model
def test_words_in_a_column_of_numbers(model):
    explainer = MeasureExplainer(pipeline_of(model)).fit(X)
    with refused("age"):
        explainer.explain(X.assign(age=pd.Series(["old"] * 40, dtype=object)), predictions=False)


@pytest.mark.slow
@pytest.mark.parametrize("last", [StandardScaler(), "passthrough", None])
def test_a_pipeline_that_ends_with_no_model(last):
    steps = [("first", SimpleImputer()), ("last", last)]
    pipeline = Pipeline(steps).fit(X[["age", "size"]], Y)
    word = type(last).__name__ if isinstance(last, StandardScaler) else "passthrough"
    with refused("Pipeline", "predict", word, kind=(TypeError, ValueError)):
        MeasureExplainer(pipeline).fit(X[["age", "size"]])


@pytest.mark.slow
@every_model
def test_an_unfitted_pipeline_without_y(model):
    with refused("Pipeline", "y", "FrozenEstimator", kind=NotFittedError):
        MeasureExplainer(clone(pipeline_of(model))).fit(X)


@pytest.mark.slow
def test_sparse_rows():
    numbers = X[["age", "size"]].to_numpy()
    pipeline = make_pipeline(StandardScaler(with_mean=False), LinearRegression()).fit(numbers, Y)
    for bad in (sparse.csr_matrix(numbers), sparse.csr_array(numbers)):
        with refused("parse", kind=(TypeError, ValueError)):
            MeasureExplainer(pipeline).fit(bad)
        with refused("parse", kind=(TypeError, ValueError)):
            MeasureExplainer(pipeline).fit(numbers).explain(bad)


@pytest.mark.slow
def test_an_unknown_category_in_a_baseline():
    pipeline = pipeline_of("forest", OneHotEncoder(sparse_output=False))
    with refused("city", "Rome"):
        MeasureExplainer(pipeline, Baseline({"age": 1.0, "city": "Rome", "size": 0.0})).fit(X)


# -- the table itself ----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_oracle_shows_the_model_the_same_rows():
    """Rows that the oracle takes apart and puts together get the same prediction."""
    for name in CASES:
        case = make_case(*name)
        for Z in (case.background, case.X):
            again = table(numbered(Z), columns(numbered(Z)))
            np.testing.assert_array_equal(on_numbered(case.f, Z)(again), case.f(Z), str(name))


@pytest.mark.slow
def test_the_table_reaches_the_corners():
    """The cases contain what the other tests claim to cover."""
    seen = set()
    for name in CASES:
        case = make_case(*name)
        for column in case.X.columns:
            known, behind = set(case.train[column].dropna()), set(case.background[column].dropna())
            now = set(case.X[column].dropna())
            if column in FLOATS:
                seen |= {"on an edge"} if now & set(case.edges.get(column, [])[::2]) else set()
                seen |= {"beside an edge"} if now & set(case.edges.get(column, [])[1::2]) else set()
                continue
            seen |= {f"unseen {column}"} if now - known else set()
            seen |= {f"{column} not in the background"} if (now & known) - behind else set()
            seen |= {f"missing {column}"} if case.X[column].isna().any() else set()
        seen |= {"duplicated index"} if case.X.index.has_duplicates else set()
    for column in ("city", "street", "grade", "code"):
        assert {f"unseen {column}", f"{column} not in the background"} <= seen
        assert f"missing {column}" in seen
    assert {"on an edge", "beside an edge", "duplicated index"} <= seen


@pytest.mark.slow
def test_every_line_of_the_tables_is_used():
    assert {p for p, _ in CASES} == set(PREPARATIONS)
    assert {m for _, m in CASES} == set(MODELS)
    assert all(names_of(p.text) for p in PREPARATIONS.values())


@pytest.mark.slow
@pytest.mark.parametrize("unknown", ["error", "ignore"])
@pytest.mark.parametrize("model", [RandomForestRegressor(3, max_depth=3, random_state=0), Ridge()])
def test_wide_tables_ask_the_steps_for_all_columns_at_once(model, unknown, monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"c{k}": rng.choice(["a", "b", "c"], 60) for k in range(40)})
    steps = make_column_transformer((OneHotEncoder(handle_unknown=unknown), list(X)))
    pipeline = make_pipeline(steps, clone(model)).fit(X, rng.normal(size=60))
    calls = []
    transform = OneHotEncoder.transform
    monkeypatch.setattr(
        OneHotEncoder, "transform", lambda self, X: calls.append(1) or transform(self, X)
    )
    explainer = MeasureExplainer(pipeline).fit(X)
    assert len(calls) < 20
    calls.clear()
    tables = [explainer.curve(name).to_frame() for name in X]
    # None, NaN and another level, of all columns at once
    assert len(calls) <= (3 if explainer.pieces_.grid is not None else len(tables))
    extra = ["missing", "any other"] if unknown == "ignore" else []
    assert all(table["level"].to_list() == ["a", "b", "c", *extra] for table in tables)
    calls.clear()
    if not extra:
        with pytest.raises(ValueError, match="column 'c7'"):
            explainer.explain(X.assign(c30="new", c7="new"))
        assert len(calls) < 20
