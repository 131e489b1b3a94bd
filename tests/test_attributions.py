"""Overlapping attributions: every engine gives what it gives for each of them alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

import skattr.explainer
from skattr import MeasureExplainer
from skattr.attributions import Attributions
from skattr.engines import ENGINES
from skattr.engines.table import is_of_pairs
from skattr.measures import (
    ALE,
    Baseline,
    Coefficient,
    Conditional,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Removal,
    Shapley,
    Stieltjes,
    Uniform,
)

pytestmark = pytest.mark.slow

COLUMNS = ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0,), (0, 1, 2))


def above(y, x, j):
    """Product of 1[y >= x] on the pinned columns and the uniform law on the others."""
    pinned = np.isin(np.arange(3), j)
    return np.where(pinned, y >= x, (y + 3) / 6)


def smooth(X):
    return np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2


def few(X):
    return X[:, 0] * X[:, 1] - X[:, 2]


FOREST = RandomForestRegressor(6, max_depth=5, random_state=0)
LINEAR = LinearRegression()
SHALLOW = MLPRegressor(hidden_layer_sizes=(5,), max_iter=3, random_state=0)
DEEP = MLPRegressor(hidden_layer_sizes=(4, 3), max_iter=3, random_state=0)
KERNEL = SVR(gamma=0.5)
VOTE = VotingRegressor([("forest", FOREST), ("linear", LINEAR)])
LINK = {"func": np.arcsinh, "inverse_func": np.sinh, "check_inverse": False}
DOMAIN = [(-3.0, 3.0)] * 3
CASES = {
    "one_violation": (FOREST, PartialDependence()),
    "binned_rows": (FOREST, Conditional()),
    "box_products": (FOREST, ProductMarginal()),
    "box_mixture": (FOREST, Conditional("gmm")),
    "increments": (FOREST, Stieltjes(above, product=True)),
    "additive": (LINEAR, PartialDependence()),
    "binned_additive": (LINEAR, Conditional()),
    "affine": (LINEAR, Conditional("gaussian")),
    "products": (KERNEL, PartialDependence()),
    "binned_products": (KERNEL, Conditional()),
    "mixed_products": (KERNEL, Conditional("gmm")),
    "box_coalitions": (FOREST, Shapley()),
    "product_coalitions": (FOREST, Shapley(ProductMarginal())),
    "additive_coalitions": (LINEAR, Shapley()),
    "bump_coalitions": (KERNEL, Shapley()),
    "linked_boxes": (TransformedTargetRegressor(FOREST, **LINK), PartialDependence()),
    "linked_margins": (TransformedTargetRegressor(LINEAR, **LINK), PartialDependence()),
    "removal_of_boxes": (FOREST, Removal()),
    "linked_removal": (TransformedTargetRegressor(FOREST, **LINK), Removal()),
    "one_layer_normal": (SHALLOW, Conditional("gaussian")),
    "one_layer_uniform": (SHALLOW, Uniform()),
    "polytopes": (DEEP, Uniform()),
    "lines": (DEEP, PartialDependence()),
    "addends": (VOTE, PartialDependence()),
    "finite_sum": (KNeighborsRegressor(), PartialDependence()),
    "evaluation": (smooth, Dirac()),
    "finite_grid": (few, ProductMarginal()),
    "riemann": (smooth, Uniform()),
    "quasi_monte_carlo": (smooth, Uniform()),
    "enumerated_coalitions": (smooth, Shapley()),
    "sampled_coalitions": (smooth, Shapley()),  # pairs have no error
}
MORE = [
    (FOREST, Conditional("knn") - Expectation()),
    (FOREST, PartialDependence() - Expectation("product")),
    (FOREST, Coefficient()),
    (FOREST, Uniform()),
    (KERNEL, ProductMarginal()),
    (DEEP, Conditional()),
    (VOTE, ProductMarginal()),
    (VOTE, Conditional()),
    (KNeighborsRegressor(), Conditional()),
]
UNPINNED = [
    (KERNEL, Expectation()),
    (KERNEL, Expectation("product")),
    (KERNEL, Baseline(np.zeros(3)) + Dirac()),
    (KERNEL, Coefficient()),
    (FOREST, Coefficient(mass_zero=True)),
    (VotingRegressor([("kernel", KERNEL), ("linear", LINEAR)]), Expectation()),
]


def data(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).clip(-3, 3)
    X[:, 1] += 0.5 * X[:, 0]
    X = X.clip(-3, 3).round(1)
    return X.round() if name == "finite_grid" else X


def fitted(model, X):
    return model.fit(X, smooth(X)) if hasattr(model, "fit") else model


def explained(model, measure, X, engine, columns=None, **more):
    """Explain some rows; attributions are those of all single columns, or some of any kind."""
    explainer = MeasureExplainer(
        model, measure, engine=engine, domain=DOMAIN, random_state=0, max_evals=4000, tol=0.05,
        **more,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        if columns is not None:
            some = Attributions(tuple(f"a{i}" for i in range(len(columns))), columns, 3)
            patch.setattr(skattr.explainer, "attributions", lambda groups, names: some)
        explainer.fit(X)
    return explainer, explainer.explain(X[:7]).values


def check(model, measure, engine, name=None):
    X = data(name)
    model = fitted(model, X)
    explainer, values = explained(model, measure, X, engine, COLUMNS)
    if name is not None:
        assert explainer.engine_ == (name,)
    for j, columns in enumerate(COLUMNS):
        groups = {"group": [int(k) for k in columns]} if len(columns) > 1 else None
        _, alone = explained(model, measure, X, engine, groups=groups)
        wanted = alone[:, 0] if groups and 0 in columns else alone[:, columns[0]]
        spread = max(float(np.ptp(alone)), 1.0)
        assert_allclose(values[:, j], wanted, atol=1e-12 * spread, rtol=0, err_msg=f"{columns}")


def test_every_engine_has_a_case():
    # those of pairs have their cases in engines/test_pairs.py; ALE has single columns only
    other = {"accumulated_effects"}
    assert set(CASES) == {each.name for each in ENGINES if not is_of_pairs(each)} - other


def test_accumulated_effects_refuse_what_is_not_a_column():
    X = data(None)
    with pytest.raises(ValueError, match="ALE"):
        explained(fitted(KERNEL, X), ALE(), X, "accumulated_effects", COLUMNS)


@pytest.mark.filterwarnings("ignore")  # of values that stop at max_evals, of MLPs
@pytest.mark.parametrize("name", CASES)
def test_overlapping_attributions(name):
    check(*CASES[name], name, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, measure", MORE, ids=lambda each: type(each).__name__)
def test_overlapping_attributions_of_more_measures(model, measure):
    check(model, measure, "auto")


@pytest.mark.parametrize("columns", [COLUMNS, ((2,),), ((0, 1), (1,))])
@pytest.mark.parametrize("model, measure", UNPINNED)
def test_measures_that_pin_nothing(model, measure, columns):
    X = data(None)
    model = fitted(model, X)
    explainer, values = explained(model, measure, X, "auto", columns)
    alone, _ = explained(model, measure, X, "auto")
    assert_allclose(explainer.base_value_, model.predict(X).mean(), rtol=1e-12)
    offset, wanted = (each.explain(X[:7]).offset for each in (explainer, alone))
    assert_allclose(offset, wanted, rtol=1e-12)
    for j, own in enumerate(columns):
        groups = {"group": [int(k) for k in own]} if len(own) > 1 else None
        _, other = explained(model, measure, X, "auto", groups=groups)
        place = 0 if groups and 0 in own else own[0]
        assert_allclose(values[:, j], other[:, place], rtol=1e-12, err_msg=f"{own}")


@pytest.mark.parametrize("columns", [((2,),), ((0, 1), (1,)), ((0, 2), (0,), (0, 2))])
@pytest.mark.parametrize("model", [FOREST, LINEAR, KERNEL, KNeighborsRegressor()])
@pytest.mark.parametrize("estimator", ["kernel", "knn", "gmm"])
def test_conditional_measures_of_some_columns(estimator, model, columns):
    if estimator == "gmm" and isinstance(model, KNeighborsRegressor):
        pytest.skip("the values are estimates")
    X = data(None)
    model = fitted(model, X)
    explainer, values = explained(model, Conditional(estimator), X, "auto", columns)
    assert explainer.notes_ == []
    for j, own in enumerate(columns):
        groups = {"group": [int(k) for k in own]} if len(own) > 1 else None
        _, other = explained(model, Conditional(estimator), X, "auto", groups=groups)
        place = 0 if groups and 0 in own else own[0]
        assert_allclose(values[:, j], other[:, place], rtol=1e-12, atol=1e-12)


def test_curve_of_a_column_that_is_also_part_of_a_pair():
    X = data(None)
    model = fitted(FOREST, X)
    explainer, values = explained(model, PartialDependence(), X, "auto", ((0, 1), (0,), (1, 2)))
    assert_allclose(explainer.curve(0)(X[:7, 0]), values[:, 1], rtol=1e-15)
    with pytest.raises(ValueError, match="column 2 belongs to the group 'a2'"):
        explainer.curve(2)


def test_partitions():
    some = Attributions(("a", "b", "ab", "c"), ((0,), (1,), (0, 1), (2,)), 4)
    assert not some.disjoint and not some.is_partition
    (first, one), (second, two) = some.partitions()
    assert first == [0, 1, 3] and one.columns == ((0,), (1,), (2,), (3,))
    assert second == [2] and two.columns == ((0, 1), (2,), (3,))
    assert one.is_partition and two.is_partition
    ((positions, same),) = one.partitions()
    assert positions == [0, 1, 2, 3] and same is one
