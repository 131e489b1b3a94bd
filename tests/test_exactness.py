"""Every reader and every measure: the library equals `oracle.py` on the models of `cases.py`."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

from skattr import MeasureExplainer
from skattr.measures import PartialDependence, Shapley
from tests.cases import (
    BY_EVALUATION,
    CASES,
    COALITIONS,
    MASSLESS,
    MEASURES,
    TREES,
    combination,
    exists,
    is_small,
    make_case,
)
from tests.helpers.comparison import close, cube, explained, flat, oracle_of, read_frame, same
from tests.helpers.lanes import quickly
from tests.helpers.random_cases import (
    column_as_given,
    column_names,
    examples,
    groups_of,
    rows_as_given,
    weights_of,
)
from tests.helpers.trees import contained
from tests.oracle import columns, described, is_polars, rows

# an encoder's own word about levels that it encodes as zeros
pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories")

# -- what is drawn -------------------------------------------------------------------------------

names = st.sampled_from(sorted(CASES))
seeds = st.integers(0, 10_000)
coefficients = st.sampled_from([1.0, -1.0, 0.5, -2.5, 3])
kinds_of_measure = st.sampled_from(sorted(MEASURES))
SENSITIVE = [kind for kind, m in MEASURES.items() if m.own and m.over in ("rows", "columns", "box")]
BY_ROWS = [kind for kind, m in MEASURES.items() if m.over == "rows"]
ON_DOMAINS = [kind for kind, m in MEASURES.items() if m.over in ("box", "corner")]
IN_BATCHES = [kind for kind, m in MEASURES.items() if m.over not in ("corner", "neighbours")]


def case_of(name, seed, measures=()):
    """A case in which all these measures exist, and weights."""
    case = make_case(name, seed)
    weight = weights_of(case, seed)
    assume(all(exists(case, kind, weight) for kind in measures))
    return case, weight


# -- every reader, every measure -----------------------------------------------------------------


QUICK = ("SVR", "network")


def check_every_measure(name, seed):
    case = make_case(name, seed)
    weight = weights_of(case, seed)
    oracle = oracle_of(case, weight)
    for kind, measure in MEASURES.items():
        if exists(case, kind, weight):
            explainer, _ = same(case, measure.make(case), weight, oracle=oracle)
            assert "finite_sum" not in explainer.engine_, explainer.describe()


@pytest.mark.parametrize("name", quickly(TREES, ["hist categories"]))
@examples(4)
@given(seeds)
def test_every_measure(name, seed):
    check_every_measure(name, seed)


@pytest.mark.parametrize("name", quickly([name for name in CASES if name not in TREES], QUICK))
@examples(2)
@given(seeds)
def test_every_measure_of_what_is_no_tree(name, seed):
    check_every_measure(name, seed)


@pytest.mark.parametrize("name", quickly(CASES, ["hist categories", "SVR"]))
@examples(1)
@given(seeds)
def test_coalitions(name, seed):
    """Shapley and Banzhaf values against all coalitions, with groups; Shapley values add up."""
    case = make_case(name, seed)
    weight = weights_of(case, seed)
    groups, own = groups_of(case, seed)
    oracle = oracle_of(case, weight)
    for kind, measure in COALITIONS.items():
        if exists(case, kind, weight) and is_small(case, measure.over):
            made = measure.make(case)
            _, found = same(case, made, weight, oracle=oracle)
            if isinstance(made, Shapley):
                left = np.reshape(found.remainder().to_numpy(), (len(case.X), -1))
                close(left, 0 * left, 2 * oracle.tolerance(), f"remainder of {made}")
            if groups is not None:
                same(case, made, weight, own, oracle=oracle, groups=groups)


@pytest.mark.filterwarnings("ignore:ALE. the columns")
@pytest.mark.parametrize("name", quickly(CASES, ["hist categories", "network"]))
@examples(2)
@given(seeds)
def test_measures_of_mass_0(name, seed):
    case = make_case(name, seed)
    weight = weights_of(case, seed)
    oracle = oracle_of(case, weight)
    for kind, measure in MASSLESS.items():
        if exists(case, kind, weight):
            same(case, measure.make(case), weight, oracle=oracle)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_all_measures_at_once_and_groups(name):
    case = make_case(name, 1)
    measure = combination(case, [kind for kind in MEASURES if exists(case, kind)])
    groups, own = groups_of(case, 1)
    same(case, measure, own=own, groups=groups)


@pytest.mark.slow
@examples(60)
@given(names, seeds, st.lists(st.tuples(coefficients, kinds_of_measure), min_size=2, max_size=4))
def test_combinations(name, seed, drawn):
    case, weight = case_of(name, seed, [kind for _, kind in drawn])
    terms = [coefficient * MEASURES[kind].make(case) for coefficient, kind in drawn]
    measure = terms[0]
    for term in terms[1:]:
        measure = measure - term
    groups, own = groups_of(case, seed)
    same(case, measure, weight, own, groups=groups)


@pytest.mark.slow
@examples(60)
@given(names, seeds, kinds_of_measure)
def test_groups(name, seed, kind):
    case, weight = case_of(name, seed, [kind])
    groups, own = groups_of(case, seed)
    assume(groups is not None)
    measure = MEASURES[kind].make(case)
    _, explanation = same(case, measure, weight, own, groups=groups)
    labels = [[column_names(case)[k] for k in pinned] for pinned in own]
    labels = ["the group" if label == groups["the group"] else label[0] for label in labels]
    assert list(explanation.feature_names) == labels


@pytest.mark.slow
@examples(40)
@given(names, seeds, st.sampled_from(ON_DOMAINS), st.booleans())
def test_domain(name, seed, kind, as_array):
    case, _ = case_of(name, seed, [kind] if MEASURES[kind].over == "corner" else [])
    assume(case.breaks is not None and "box" in case.over)
    rng = np.random.default_rng(seed)
    sides = {}
    for k, column in enumerate(columns(case.background)):
        if isinstance(column, np.ndarray) and column.dtype == float and k not in case.levels:
            low = float(np.round(rng.normal(), 2))
            sides[k] = (low, low + float(rng.choice([0.0, 0.125, 3.0])))
    assume(case.finite or len(sides) == case.n_columns)
    if as_array and len(sides) == case.n_columns:
        domain = np.array([sides[k] for k in range(case.n_columns)])
    else:
        assume(case.finite)
        sides = dict(list(sides.items())[: int(rng.integers(1, 4))])
        domain = {column_names(case)[k]: side for k, side in sides.items()}
    oracle = oracle_of(case, domain=sides)
    same(case, MEASURES[kind].make(case), oracle=oracle, domain=domain)


# -- other ways to the same numbers --------------------------------------------------------------


@pytest.mark.slow
@examples(50)
@given(names, seeds, st.sampled_from(BY_ROWS))
def test_finite_sums(name, seed, kind):
    case = make_case(name, seed)
    groups, own = groups_of(case, seed)
    measure = MEASURES[kind].make(case)
    explainer, _ = same(
        case, measure, weights_of(case, seed), own, groups=groups, engine="finite_sum"
    )
    assert explainer.engine_ == ("finite_sum",)


@pytest.mark.slow
@examples(25)
@given(names, seeds, st.sampled_from(BY_EVALUATION))
def test_callables(name, seed, kind):
    case = make_case(name, seed)
    weight = weights_of(case, seed)
    measure = MEASURES[kind].make(case) - 0.5 * PartialDependence()
    explainer = MeasureExplainer(case.f, measure=measure).fit(case.background, sample_weight=weight)
    oracle = oracle_of(case, weight)
    own = [(k,) for k in range(case.n_columns)]
    wanted = oracle.values(described(measure), case.X, own)
    explanation = explainer.explain(case.X)
    assert explainer.exact_ is True
    close(cube(explanation.values), wanted, 2 * oracle.tolerance(), f"values of {measure}")


@pytest.mark.slow
@examples(50)
@given(names, seeds, st.lists(st.sampled_from(IN_BATCHES), min_size=1, max_size=2), seeds)
def test_batches(name, seed, kinds, cut):
    case, weight = case_of(name, seed, kinds)
    n = len(case.background)
    assume(n > 1)
    terms = [MEASURES[kind].make(case) for kind in kinds]
    measure = sum(terms[1:], start=terms[0])
    groups, own = groups_of(case, cut)
    part = np.random.default_rng(cut).integers(0, 3, n)
    explainer = MeasureExplainer(case.estimator, measure=measure, groups=groups)
    for p in np.unique(part):
        chosen = np.flatnonzero(part == p)
        if weight is not None and not np.any(weight[chosen] > 0):
            continue
        batch = rows_as_given(case.background, chosen)
        first = not hasattr(explainer, "base_value_")
        try:
            explainer.partial_fit(batch, sample_weight=None if weight is None else weight[chosen])
        except ValueError as error:  # a first batch on which Uniform has no range yet
            assert first and "in the background" in str(error)
            reject()
    oracle = oracle_of(case, weight)
    terms = described(measure)
    wanted = oracle.values(terms, case.X, own)
    explanation = explainer.explain(case.X)
    close(cube(explanation.values), wanted, 2 * oracle.tolerance(), f"values of {measure}")
    close(flat(explanation.offset), oracle.offset(terms), 2 * oracle.tolerance(), "offset")
    close(flat(explainer.base_value_), oracle.base_value(), oracle.tolerance(), "base_value_")


# -- curves --------------------------------------------------------------------------------------

CURVED = [kind for kind, m in MEASURES.items() if m.over != "nothing"]


@pytest.mark.slow
@examples(60)
@given(names, seeds, st.lists(st.sampled_from(CURVED), min_size=1, max_size=2))
def test_curves(name, seed, kinds):
    case, weight = case_of(name, seed, kinds)
    terms = [MEASURES[kind].make(case) for kind in kinds]
    measure = sum(terms[1:], start=terms[0])
    explainer, explanation = explained(case, measure, weight)
    values = cube(explanation.values)
    for k, column in enumerate(column_names(case)):
        curve = explainer.curve(column if seed % 2 else k)
        assert curve.feature == column
        got = np.asarray(curve(column_as_given(case.X, k)))
        assert got.ndim == (1 if values.shape[2] == 1 else 2)
        np.testing.assert_array_equal(got.reshape(len(case.X), -1), values[:, k])


@pytest.mark.slow
@examples(60)
@given(names, seeds, st.sampled_from(CURVED))
def test_curve_frames(name, seed, kind):
    case, weight = case_of(name, seed, [kind])
    explainer, _ = explained(case, MEASURES[kind].make(case), weight)
    for k, column in enumerate(column_names(case)):
        curve = explainer.curve(column)
        if name not in TREES and (curve.kind not in ("steps", "levels") or not MEASURES[kind].own):
            continue  # a constant of anything but boxes knows no levels
        frame = curve.to_frame()
        given_values = column_as_given(case.X, k)
        got = np.asarray(curve(given_values)).reshape(len(case.X), -1)
        outputs = [c for c in frame.columns if str(c).startswith("value")]
        assert len(outputs) == got.shape[1]
        held = [read_frame(curve.kind, frame, v) for v in columns(case.X)[k]]
        read = np.array([row[outputs] for row in held], float)
        np.testing.assert_array_equal(read, got, err_msg=f"{column}\n{frame}")


# -- properties ----------------------------------------------------------------------------------


IGNORANT = {
    "forest": RandomForestRegressor(3, max_leaf_nodes=5, random_state=0),
    "extra trees": ExtraTreesClassifier(3, max_leaf_nodes=5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, max_depth=2),
    "hist": HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2),
    "bagging": BaggingRegressor(n_estimators=3, max_features=0.6, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SENSITIVE)
@pytest.mark.parametrize("model", IGNORANT)
@examples(4)
@given(seeds)
def test_ignored_features_get_zero(model, kind, seed):
    rng = np.random.default_rng(seed)
    train = rng.normal(size=(40, 5))
    train[:, [1, 3]] = 0.5  # a column that never varies is never split
    estimator = clone(IGNORANT[model])
    number = train[:, 0] * train[:, 2] + train[:, 4]
    estimator.fit(train, np.digitize(number, [-0.5, 0.5]) if is_classifier(estimator) else number)
    X, background = rng.normal(size=(4, 5)), rng.normal(size=(20, 5))
    weight = rng.integers(0, 3, 20) + rng.random(20) * rng.integers(0, 2)
    for groups, ignored in ((None, [1, 3]), ({"both": ["x1", "x3"]}, [1])):
        explainer = MeasureExplainer(estimator, measure=MEASURES[kind].make(None), groups=groups)
        explanation = explainer.fit(background, sample_weight=weight).explain(X).centered()
        assert np.all(explanation.values[:, ignored] == 0.0)
        assert not np.all(explanation.values == 0.0)


@pytest.mark.slow
@examples(20)
@given(names, seeds, kinds_of_measure)
def test_rows_of_weight_zero_do_not_exist(name, seed, kind):
    case, _ = case_of(name, seed, [kind])
    measure = MEASURES[kind].make(case)
    n = len(case.background)
    more = rows(case.X, np.arange(len(case.X)))
    if isinstance(case.X, np.ndarray):
        more = more.astype(case.background.dtype)
    doubled = concatenated(rows(case.background, np.arange(n)), more)
    weight = np.r_[np.ones(n), np.zeros(len(case.X))]
    _, plain = explained(case, measure)
    explainer = MeasureExplainer(case.estimator, measure=measure).fit(doubled, sample_weight=weight)
    np.testing.assert_array_equal(explainer.explain(case.X).values, plain.values)


def concatenated(upper, lower):
    """Two tables under one another."""
    if isinstance(upper, np.ndarray):
        return np.concatenate([upper, lower])
    if is_polars(upper):
        return upper.vstack(lower)
    return pd.concat([upper, lower], ignore_index=True)


@pytest.mark.slow
def test_the_table_reaches_the_corners():
    """The random cases contain what the other tests claim to cover."""
    seen = set()
    for name in TREES:
        for seed in range(8):
            case = make_case(name, seed)
            seen.add(type(case.X).__module__.split(".")[0])
            seen.add(str(getattr(case.X, "dtype", "frame")))
            seen |= {"one background row"} if len(case.background) == 1 else set()
            seen |= {"one row"} if len(case.X) == 1 else set()
            for column, edges in zip(
                columns(case.X), case.breaks or [[]] * case.n_columns, strict=True
            ):
                if isinstance(column, np.ndarray) and column.dtype == float:
                    seen |= corners(column, np.array(edges))
    wanted = {"numpy", "pandas", "polars", "float32", "int64", "object", "one background row"}
    assert wanted | {"one row", "missing", "infinite", "on an edge", "beside an edge"} <= seen


def corners(column, edges):
    """What is hard in a column of numbers."""
    found = {
        "missing": np.isnan(column),
        "infinite": np.isinf(column),
        "on an edge": np.isin(column, edges),
        "beside an edge": np.isin(column, np.nextafter(edges, np.inf)),
    }
    return {corner for corner, where in found.items() if where.any()}


def test_containers_hold_what_they_are_given():
    """The cases' own helper: strings become categories, integers integers."""
    values = [np.array([1.0, 2.0]), np.array(["red", None], dtype=object)]
    frame = contained(values, "pandas")
    assert [str(t) for t in frame.dtypes] == ["int64", "category"]


def test_words_that_all_miss():
    """An array of words stays one where the rows explained have none of them."""
    words = np.array([["a", 1.0], ["b", 2.0], [None, 3.0], ["a", 4.0]] * 5, dtype=object)
    model = HistGradientBoostingRegressor(categorical_features=[0], min_samples_leaf=1)
    explainer = MeasureExplainer(model.fit(words, np.arange(20.0))).fit(words)
    whole = explainer.explain(words[:4])
    for i in range(4):
        part = explainer.explain(words[i : i + 1])
        np.testing.assert_array_equal(part.values, whole.values[i : i + 1])
