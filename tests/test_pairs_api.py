"""explain_pairs and surface: what users ask for, what they get, and what they may not ask for."""

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression

from skattr import Explanation, MeasureExplainer, Surface
from skattr.attributions import Attributions, Pairs
from skattr.measures import Atoms, Dirac, Expectation, PartialDependence, Shapley
from skattr.measures.pairs import Interaction
from tests.helpers.processes import run_threads


def table(n=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(1),
            "age": rng.integers(0, 9, n),
            "city": pd.Categorical(rng.choice(["Rome", "Oslo", "Bern"], n)),
            "new": rng.random(n) < 0.5,
        },
        index=[f"r{i}" for i in range(n)],
    )
    X.loc["r3", "size"] = np.nan
    y = (
        X["size"].fillna(0) * X["age"]
        + (X["city"] == "Rome") * X["age"]
        + X["new"] * X["size"].fillna(1)
    )
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    model = HistGradientBoostingRegressor(
        max_iter=30, min_samples_leaf=3, categorical_features="from_dtype"
    )
    return MeasureExplainer(model.fit(X, y)).fit(X), X


@pytest.fixture(scope="module")
def classes():
    X, y = table()
    X = X[["age", "new"]].assign(third=np.arange(len(X)) % 5)
    model = RandomForestClassifier(3, random_state=0).fit(X, pd.qcut(y, 3, labels=["a", "b", "c"]))
    return MeasureExplainer(model, "partial_dependence").fit(X), X


# -- explanations --------------------------------------------------------------------------------


def test_frames_have_tuples(fitted):
    explainer, X = fitted
    pairs = explainer.explain_pairs(X)
    frame = pairs.to_frame()
    assert list(frame.columns) == list(combinations(X.columns, 2))
    assert frame.columns.nlevels == 1
    assert frame.index.equals(X.index)
    tidy = pairs.to_frame(tidy=True)
    assert tidy["feature"][0] == ("size", "age")
    assert tidy["data"][0] == (X["size"].iloc[0], X["age"].iloc[0])
    assert len(tidy) == len(X) * 6


def test_rows_and_columns_are_selected_with_their_singles(fitted):
    explainer, X = fitted
    pairs = explainer.explain_pairs(X)
    part = pairs[["r5", "r7"], [("size", "age"), ("age", "city")]]
    assert part.values.shape == (2, 2)
    assert part.feature_names == (("size", "age"), ("age", "city"))
    np.testing.assert_array_equal(part.singles.values, pairs.singles.values[[5, 7]])
    one = pairs[:, ("size", "new")]
    np.testing.assert_array_equal(one.values[:, 0], pairs.to_frame()[("size", "new")])
    with pytest.raises(KeyError, match="no column"):
        pairs[:, ("size", "nothing")]
    importance = pairs.importance()
    assert importance.index[0] in pairs.feature_names
    assert importance.is_monotonic_decreasing


def test_files_keep_singles(fitted, classes, tmp_path):
    for explainer, X in (fitted, classes):
        pairs = explainer.explain_pairs(X[:9])
        pairs.save(tmp_path / "pairs.npz")
        again = Explanation.load(tmp_path / "pairs.npz")
        assert again.feature_names == pairs.feature_names
        np.testing.assert_array_equal(again.values, pairs.values)
        np.testing.assert_array_equal(again.to_matrix(), pairs.to_matrix())
        pd.testing.assert_frame_equal(again.singles.to_frame(), pairs.singles.to_frame())
        assert again.shared is pairs.shared


def test_matrices(fitted, classes):
    explainer, X = fitted
    pairs = explainer.explain_pairs(X)
    matrix = pairs.to_matrix()
    assert matrix.shape == (len(X), 4, 4)
    np.testing.assert_array_equal(matrix, matrix.transpose(0, 2, 1))
    np.testing.assert_array_equal(2 * matrix[:, 0, 1], pairs.to_frame()[("size", "age")])
    diagonal = matrix[:, range(4), range(4)]
    np.testing.assert_array_equal(diagonal, pairs.singles.centered().values)
    explained = pairs.start + matrix.sum(axis=(1, 2)) + pairs.remainder()
    np.testing.assert_allclose(explained, pairs.predictions, rtol=1e-12)
    several, rows = classes
    assert several.explain_pairs(rows).to_matrix().shape == (len(rows), 3, 3, 3)
    one = several.explain_pairs(rows).select("b")
    np.testing.assert_array_equal(one.to_matrix(), several.explain_pairs(rows).to_matrix()[..., 1])
    with pytest.raises(ValueError, match="needs all pairs of 4 attributions, 6, got 1"):
        pairs[:, [("size", "age")]].to_matrix()
    with pytest.raises(ValueError, match="to_matrix needs pairs"):
        explainer.explain(X).to_matrix()


def test_shared_matrices_add_up_to_single_values():
    """Shapley's convention: rows of the matrix are the single values."""
    rng = np.random.default_rng(0)
    singles = Explanation(
        values=rng.normal(size=(4, 3)), base_value=1.0, offset=0.0, data=rng.normal(size=(4, 3)),
        feature_names=("x0", "x1", "x2"), columns=(("x0",), ("x1",), ("x2",)),
        output_names=("y",), exact=True, engine=("any",), measure="Shapley()",
    )  # fmt: skip
    pairs = Explanation(
        values=rng.normal(size=(4, 3)), base_value=1.0, offset=0.0, data=singles.data,
        feature_names=(("x0", "x1"), ("x0", "x2"), ("x1", "x2")),
        columns=(("x0", "x1"), ("x0", "x2"), ("x1", "x2")),
        output_names=("y",), exact=True, engine=("any",), measure="Shapley()",
        predictions=1.0 + singles.values.sum(axis=1), singles=singles, shared=True,
    )  # fmt: skip
    np.testing.assert_allclose(pairs.to_matrix().sum(axis=2), singles.values, rtol=1e-13)
    assert pairs.adds_up()  # the pairs are parts of the single values


def test_shap_has_no_pairs(fitted):
    pytest.importorskip("shap")
    explainer, X = fitted
    with pytest.raises(ValueError, match="to_matrix"):
        explainer.explain_pairs(X).to_shap()


def test_remainder(fitted):
    explainer, X = fitted
    pairs = explainer.explain_pairs(X)
    assert pairs.remainder_name == "not explained by single columns and pairs"
    some = explainer.explain_pairs(X, pairs=[("size", "age"), ("city", "new")])
    assert some.remainder_name == "not explained by single columns and these pairs"
    only = explainer.explain_pairs(X, pairs=[("size", "age")])  # the others have single values
    assert only.remainder_name == "not explained by single columns and these pairs"
    one = explainer.explain_pairs(X, predictions=False)
    assert one.predictions is None
    np.testing.assert_array_equal(pairs.centered().values, pairs.values)


def test_interactions_of_combinations():
    measure = Interaction(PartialDependence() - 2 * Expectation())
    ((coefficient, term),) = measure.expanded()
    assert coefficient == 1.0 and repr(term) == "Interaction(measure=PartialDependence())"
    assert term.mass == 0.0 and term.in_words() == "pairs of partial dependence"
    assert Interaction(Dirac()).depends == "row"
    assert not term.shared and Interaction(Shapley()).shared


# -- surfaces ------------------------------------------------------------------------------------


def test_tables_of_surfaces(fitted):
    explainer, _ = fitted
    surface = explainer.surface("city", "new")
    assert (
        isinstance(surface, Surface) and repr(surface) == "<Surface of 'city' and 'new': surface>"
    )
    frame = surface.to_frame()
    known = frame[(frame["a_kind"] == "level") & (frame["b_kind"] == "level")]
    assert len(known) == 6
    np.testing.assert_array_equal(
        known["value"], surface(list(known["a_level"]), list(known["b_level"]))
    )
    steps = explainer.surface("size", "age").to_frame()
    assert [*steps.columns] == [
        "a_lower", "a_upper", "a_closed", "b_lower", "b_upper", "b_closed", "value",
    ]  # fmt: skip
    inside = steps[np.isfinite(steps["a_upper"]) & np.isfinite(steps["b_upper"])]
    np.testing.assert_array_equal(
        inside["value"], explainer.surface("size", "age")(inside["a_upper"], inside["b_upper"])
    )
    missing = steps[(steps["a_closed"] == "missing") & np.isfinite(steps["b_upper"])]
    np.testing.assert_array_equal(
        missing["value"],
        explainer.surface("size", "age")([np.nan] * len(missing), missing["b_upper"]),
    )
    given = surface.to_frame(["Rome", "Oslo"], [True, False])
    assert list(given["a"]) == ["Rome", "Rome", "Oslo", "Oslo"]
    np.testing.assert_array_equal(
        given["value"].to_numpy().reshape(2, 2), surface.grid(["Rome", "Oslo"], [True, False])
    )
    assert surface.to_frame([], [True, False]).shape == (0, 3)


def test_outputs_of_surfaces(classes):
    explainer, _ = classes
    surface = explainer.surface("age", "third")
    assert surface.grid([1, 2], [0, 3, 4]).shape == (2, 3, 3)
    one = explainer.surface("age", "third", output="b")
    np.testing.assert_array_equal(one.grid([1, 2], [0, 3]), surface.grid([1, 2], [0, 3])[..., 1])
    assert "value_c" in surface.to_frame()
    assert one.interaction().select("b").to_frame()["value"].shape == (len(one.to_frame()),)


def test_many_cells_ask_for_values():
    rng = np.random.default_rng(0)
    X = rng.random((1500, 2))
    y = X[:, 0] * X[:, 1] + rng.random(1500)
    forest = MeasureExplainer(RandomForestRegressor(2, random_state=0).fit(X, y)).fit(X)
    with pytest.raises(ValueError, match=r"cells, more than 100,000; give the values"):
        forest.surface(0, 1).to_frame()
    linear = MeasureExplainer(LinearRegression().fit(X, y)).fit(X)
    with pytest.raises(ValueError, match=r"has no cells; give the values .* to_frame\(a, b\)"):
        linear.surface(0, 1).to_frame()
    assert len(linear.surface(0, 1).to_frame([0.1], [0.2, 0.3])) == 2


# -- state ---------------------------------------------------------------------------------------


def test_pickles_and_threads(fitted):
    explainer, X = fitted
    wanted = explainer.explain_pairs(X).values
    again = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(again.explain_pairs(X).values, wanted)
    found = []
    fresh = pickle.loads(pickle.dumps(explainer))
    run_threads([lambda: found.append(fresh.explain_pairs(X).values)] * 4)
    assert len(found) == 4
    for values in found:
        np.testing.assert_array_equal(values, wanted)


def test_skops(fitted, tmp_path):
    skops = pytest.importorskip("skops.io")
    explainer, X = fitted
    wanted = explainer.explain_pairs(X).values
    skops.dump(explainer, tmp_path / "explainer.skops")
    types = skops.get_untrusted_types(file=tmp_path / "explainer.skops")
    again = skops.load(tmp_path / "explainer.skops", trusted=types)
    np.testing.assert_array_equal(again.explain_pairs(X).values, wanted)


def test_the_background_is_copied_and_refitted():
    X, y = table()
    X = X[["size", "age"]].fillna(0.0)
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(X, y)
    background = X.copy()
    explainer = MeasureExplainer(model).fit(background)
    background.iloc[:, :] = 0
    wanted = MeasureExplainer(model).fit(X).explain_pairs(X).values
    np.testing.assert_array_equal(explainer.explain_pairs(X).values, wanted)
    refitted = explainer.fit(X[:20]).explain_pairs(X).values
    assert not np.array_equal(refitted, wanted)
    np.testing.assert_array_equal(
        refitted, clone(explainer).set_params(estimator=model).fit(X[:20]).explain_pairs(X).values
    )


def test_batches_have_no_pairs():
    X, y = table()
    X = X[["size", "age"]].fillna(0.0)
    model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
    explainer = MeasureExplainer(model).partial_fit(X[:40])
    for call in (lambda: explainer.explain_pairs(X), lambda: explainer.surface("size", "age")):
        with pytest.raises(ValueError, match=r"distributed\.fit keep no rows; use fit"):
            call()
    explainer.partial_fit(X[40:])
    with pytest.raises(ValueError, match="use fit"):
        explainer.explain_pairs(X)
    assert explainer.fit(X).explain_pairs(X).values.shape == (80, 1)


def test_attributions_of_pairs():
    singles = Attributions(("g", "c"), ((0, 2), (1,)), 3)
    pairs = Pairs.every(singles)
    assert pairs.names == (("g", "c"),) and pairs.columns == ((0, 1, 2),)
    assert pairs.members == ((0, 1),) and pairs.singles is singles
    assert Pairs.of(singles, [(1, 0)]).names == (("g", "c"),)


# -- bad input -----------------------------------------------------------------------------------

BAD = {
    "itself": ([("size", "size")], "'size' is paired with itself"),
    "unknown": ([("size", "sise")], "no attribution 'sise'; there are"),
    "unknown with all": ("sise", "no attribution 'sise'"),
    "one pair": (("size", "age"), r"must be a list of pairs, got .*: write \[\('size', 'age'\)\]"),
    "three": ([("size", "age", "city")], r"a pair must be \(name, name\)"),
    "name in a list": (["size"], r"a pair must be \(name, name\)"),
    "empty": ([], "at least one pair"),
    "twice": ([("size", "age"), ("age", "size")], "more than once"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pairs(name, fitted):
    explainer, X = fitted
    pairs, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        explainer.explain_pairs(X, pairs=pairs)


def test_bad_groups():
    X, y = table()
    X = X[["size", "age", "new"]].fillna(0.0)
    model = HistGradientBoostingRegressor(max_iter=3).fit(X, y)
    explainer = MeasureExplainer(model, groups={"both": ["size", "age"]}).fit(X)
    assert explainer.explain_pairs(X).feature_names == (("both", "new"),)
    with pytest.raises(ValueError, match="column 'age' is in the group 'both', so that"):
        explainer.explain_pairs(X, pairs=[("both", "age")])
    with pytest.raises(ValueError, match="'age' belongs to the group 'both'; pair the group"):
        explainer.explain_pairs(X, pairs=[("age", "new")])
    with pytest.raises(ValueError, match="'both' is a group, and only single columns"):
        explainer.surface("both", "new")
    with pytest.raises(ValueError, match="is in the group"):
        explainer.surface("both", "age")
    with pytest.raises(ValueError, match="a pair needs two attributions"):
        MeasureExplainer(model, groups={"all": ["size", "age", "new"]}).fit(X).explain_pairs(X)


def test_bad_surfaces(fitted):
    explainer, _ = fitted
    surface = explainer.surface("size", "age")
    with pytest.raises(ValueError, match="as many values, got 2 and 1; grid"):
        surface([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="'size' must hold numbers, got 'big'"):
        surface(["big"], [1.0])
    with pytest.raises(ValueError, match="values of both columns, or of none"):
        surface.to_frame([1.0])
    with pytest.raises(ValueError, match="paired with itself"):
        explainer.surface("size", "size")
    with pytest.raises(ValueError, match="no attribution 'nothing'"):
        explainer.surface("size", "nothing")
    with pytest.raises(ValueError, match="no output 'other'"):
        explainer.surface("size", "age", output="other")


def test_measures_without_pairs():
    X, y = table()
    X = X[["size", "age"]].fillna(0.0)
    model = HistGradientBoostingRegressor(max_iter=3).fit(X, y)

    def occlusion(x):
        points = np.vstack([x, np.where(np.eye(2), 0.0, x)])
        return points, np.column_stack([np.ones(2), -np.eye(2)])

    explainer = MeasureExplainer(model, Atoms(occlusion)).fit(X)
    with pytest.raises(ValueError, match=r"no pairs of Atoms.*none for pairs of them"):
        explainer.explain_pairs(X[:2])
    explainer = MeasureExplainer(model, Expectation()).fit(X)
    with pytest.raises(ValueError, match="same for all attributions"):
        explainer.explain_pairs(X[:2])
    explainer = MeasureExplainer(model, Shapley()).fit(X)
    with pytest.raises(ValueError, match="depends on the whole row: there is no surface"):
        explainer.surface("size", "age")
