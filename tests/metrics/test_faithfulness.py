"""Faithfulness: correlations worked out by hand, and expectations that are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import skattr
from skattr import Explanation, MeasureExplainer
from skattr.measures import Conditional, PartialDependence
from skattr.metrics import Faithfulness, faithfulness

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) + RNG.normal(size=(60, 1))
SLOPES = np.array([1.0, -2.0, 0.5])
MODEL = LinearRegression().fit(X, X @ SLOPES + 3)
EXPLAINER = MeasureExplainer(MODEL, PartialDependence()).fit(X)


def explained(values, offset=0.0):
    """An explanation with these values, one output, of as many rows of X."""
    explanation = EXPLAINER.explain(X[: len(values)])
    return replace(explanation, values=np.array(values, float), offset=offset)


def given(values, truth, offset=0.0):
    return faithfulness(explained(values, offset), EXPLAINER, truth=truth)


# -- the correlation -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values, truth, correlation",
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3], [1, 3, 2], 0.5),
        ([-1, 2, -3], [1, -2, 3], 1.0),  # signs do not matter
        ([0, 0, 1], [0, 1, 0], -0.5),
        ([1, 2, 3], [2, 0, 2], 0.0),
    ],
)
def test_by_hand(values, truth, correlation):
    result = given([values], [truth])
    assert result.rows == pytest.approx(np.array([correlation]), abs=1e-15)
    assert result.mean == pytest.approx(correlation, abs=1e-15) and result.undefined == 0


def test_values_are_centred():
    result = given([[6, 3, 2]], [[1, 2, 3]], offset=5.0)  # |1|, |-2|, |-3|
    assert result.mean == pytest.approx(1.0)


def test_mean_over_rows_and_undefined_rows():
    values = [[1, 2, 3], [1, 2, 3], [2, 2, -2], [1, 2, 3]]
    truth = [[1, 2, 3], [1, 3, 2], [1, 2, 3], [4, 4, 4]]
    result = given(values, truth)
    np.testing.assert_allclose(result.rows, [1.0, 0.5, np.nan, np.nan])
    assert result.undefined == 2 and result.mean == pytest.approx(0.75)
    assert "undefined: 2" in repr(result) and "4 rows" in repr(result) and "truth" in repr(result)


def test_all_undefined():
    result = given([[1, 1, 1]], [[1, 2, 3]])
    assert np.isnan(result.mean) and result.undefined == 1


def test_rounding_is_no_difference():
    result = given([[0.1, 0.1 + 1e-16, 0.1 - 1e-16]], [[1, 2, 3]])
    assert result.undefined == 1


def test_tiny_and_huge_numbers():
    explanation = replace(explained([[1e-200, 2e-200, 3e-200]]), base_value=0.0)
    assert faithfulness(explanation, EXPLAINER, truth=[[1e200, 2e200, 3e200]]).mean == (
        pytest.approx(1.0)
    )


# -- what is learned -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["inc", "dec"])
def test_additive_model_with_independent_redraws(kind):
    # with partial dependence in place of the conditional law, both changes are b_j (x_j - mean_j)
    rows = X[:20]
    explanation = EXPLAINER.explain(rows)
    result = faithfulness(explanation, EXPLAINER, X, kind=kind, measure=PartialDependence())
    np.testing.assert_allclose(result.changes, SLOPES * (rows - X.mean(axis=0)), atol=1e-10)
    np.testing.assert_allclose(result.rows, 1.0)
    assert result.kind == kind and "PartialDependence() learned on 60 rows" in result.source


@pytest.mark.parametrize("kind", ["inc", "dec"])
def test_weights_of_the_background(kind):
    weights = np.arange(60.0)
    explanation = EXPLAINER.explain(X[:5])
    result = faithfulness(explanation, EXPLAINER, X, kind=kind,
                          measure=PartialDependence(), sample_weight=weights)  # fmt: skip
    mean = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(result.changes, SLOPES * (X[:5] - mean), atol=1e-10)


def test_a_conditional_measure_is_faithful_to_itself():
    explainer = MeasureExplainer(MODEL, Conditional()).fit(X)
    result = faithfulness(explainer.explain(X[:7]), explainer, X)
    np.testing.assert_allclose(result.rows, 1.0)
    assert "Conditional()" in result.source and result.support.shape == (7, 3)


def test_dec_conditions_on_all_other_columns():
    # x1 is a copy of x0, and each is a level: given the other, it is known
    levels = np.repeat([0.0, 1.0], 50)
    noise = np.tile([0.0, 1.0], 50)
    both = np.column_stack([levels, levels, noise])
    model = LinearRegression().fit(both, noise)
    model.coef_, model.intercept_ = np.array([2.0, 4.0, 1.0]), 0.0
    explainer = MeasureExplainer(model, Conditional()).fit(both)
    explanation = explainer.explain(both[[0, 99]])
    result = faithfulness(explanation, explainer, both, kind="dec")
    np.testing.assert_allclose(result.changes, [[0, 0, -0.5], [0, 0, 0.5]], atol=0.05)
    inc = faithfulness(explanation, explainer, both, kind="inc")
    np.testing.assert_allclose(inc.changes, [[-3, -3, -0.5], [3, 3, 0.5]], atol=0.05)


def test_groups_and_chosen_features():
    frame = pd.DataFrame(X, columns=["a", "b", "others"])
    model = LinearRegression().fit(frame, X @ SLOPES)
    explainer = MeasureExplainer(model, groups={"pair": ["a", "b"]}).fit(frame)
    explanation = explainer.explain(frame[:4])
    centred = SLOPES * (X[:4] - X.mean(axis=0))
    expected = np.column_stack([centred[:, :2].sum(axis=1), centred[:, 2]])
    for kind in ("inc", "dec"):
        result = faithfulness(explanation, explainer, frame, kind=kind, measure=PartialDependence())
        np.testing.assert_allclose(result.changes, expected, atol=1e-10)
    plain = MeasureExplainer(model).fit(frame)
    explanation = plain.explain(frame[:4], features=["others", "a"])
    result = faithfulness(explanation, plain, frame, kind="dec", measure="partial_dependence")
    np.testing.assert_allclose(result.changes, centred[:, [2, 0]], atol=1e-10)


def test_several_outputs():
    y = np.digitize(X[:, 0], [0, 1])
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(forest).fit(X)
    explanation = explainer.explain(X[:6])
    for kind in ("inc", "dec"):
        every = faithfulness(explanation, explainer, X, kind=kind, measure=PartialDependence())
        assert every.rows.shape == (6, 3) and every.mean.shape == every.undefined.shape == (3,)
        one = faithfulness(explanation.select("1"), explainer, X, kind=kind,
                           measure=PartialDependence())  # fmt: skip
        np.testing.assert_array_equal(one.rows, every.rows[:, 1])
    np.testing.assert_array_equal(every.changes.shape, explanation.values.shape)


# -- the rest ------------------------------------------------------------------------------------


def test_the_module_is_there_after_import():
    assert skattr.metrics.faithfulness is faithfulness and skattr.metrics.Faithfulness is (
        Faithfulness
    )


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"kind": "both"}, "kind must be one of .*, got 'both'"),
        ({"X_background": None}, "X_background"),
        ({"truth": np.zeros((4, 3))}, "not both"),
        ({"truth": np.zeros((4, 2)), "X_background": None}, r"shape \(4, 2\)"),
        ({"truth": np.full((4, 3), np.nan), "X_background": None}, "NaN"),
    ],
)
def test_bad_input(changed, words):
    arguments = {"X_background": X} | changed
    with pytest.raises(ValueError, match=words):
        faithfulness(EXPLAINER.explain(X[:4]), EXPLAINER, **arguments)


def test_wrong_types_and_one_attribution():
    explanation = EXPLAINER.explain(X[:4])
    with pytest.raises(TypeError, match="Explanation"):
        faithfulness(explanation.values, EXPLAINER, X)
    with pytest.raises(TypeError, match="MeasureExplainer"):
        faithfulness(explanation, MODEL, X)
    with pytest.raises(ValueError, match="only 'x1'"):
        faithfulness(EXPLAINER.explain(X[:4], features=[1]), EXPLAINER, X)
    other = replace(explanation, output_names=("another",))
    with pytest.raises(ValueError, match="another"):
        faithfulness(other, EXPLAINER, X)
    assert isinstance(other, Explanation)


def test_nothing_to_redraw_given():
    both = MeasureExplainer(MODEL, groups={"all": ["x0", "x1", "x2"]}).fit(X).explain(X[:4])
    two = replace(
        both,
        values=np.ones((4, 2)),
        feature_names=("all", "x0"),
        columns=(("x0", "x1", "x2"), ("x0",)),
    )
    with pytest.raises(ValueError, match="there are none"):
        faithfulness(two, EXPLAINER, X, kind="dec", measure=PartialDependence())
