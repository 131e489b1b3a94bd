"""Measures of coalitions: what they are made of, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from skattr import MeasureExplainer
from skattr.measures import (
    Banzhaf,
    Baseline,
    Coefficient,
    Conditional,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Sampler,
    Shapley,
    Uniform,
)

X = np.random.default_rng(0).normal(size=(12, 3))
KINDS = [Shapley, Banzhaf]


def product(X):
    return X[:, 0] * X[:, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "inner, words",
    [
        (PartialDependence() - Expectation(), ["combination", "PartialDependence() - Expectation"]),
        (0.5 * Uniform(), ["combination", "0.5 * Uniform()"]),
        (Coefficient(mass_zero=True), ["combination", "Coefficient"]),
        (Shapley(), ["made of coalitions", "Shapley()"]),
        (Banzhaf(Uniform()), ["made of coalitions", "Banzhaf"]),
        (Dirac(), ["probability", "Dirac()", "PartialDependence()"]),
        (Expectation(), ["probability", "Expectation()"]),
        (Baseline([0.0, 0.0, 0.0]), ["one baseline row", "fit PartialDependence() on that row"]),
        (Sampler(lambda x, j, n, rng: x), ["probability", "Sampler"]),
    ],
)
def test_inner_measures_that_are_refused(kind, inner, words):
    with pytest.raises(ValueError) as caught:
        MeasureExplainer(product, kind(inner)).fit(X)
    for word in [kind.__name__, *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_inner_measures_that_are_none(kind):
    name = kind.__name__
    with pytest.raises(TypeError, match=rf"write {name}\(Uniform\(\)\)"):
        MeasureExplainer(product, kind(Uniform)).fit(X)
    for wrong in ("uniform", None, 3, X):
        with pytest.raises(TypeError, match=f"{name}: measure must be a Measure, got"):
            MeasureExplainer(product, kind(wrong)).fit(X)


def test_parameters_of_the_inner_measure():
    measure = clone(Shapley(Conditional()).set_params(measure__estimator="knn"))
    assert measure.measure.estimator == "knn"
    with pytest.raises(ValueError, match="estimator must be one of"):
        MeasureExplainer(product, Shapley(Conditional("kernl"))).fit(X)


def test_only_sampling_serves():
    """What would be exact, with its numbers if it takes too many evaluations."""
    wide = np.random.default_rng(0).normal(size=(50, 20))
    with pytest.raises(ValueError, match=r"use Shapley\(PartialDependence\(\)\) or .*Conditional"):
        MeasureExplainer(product, Shapley(ProductMarginal()), engine="exact").fit(X)
    with pytest.raises(ValueError, match=r"20 players have 1,048,574 coal.* at most 10 players"):
        MeasureExplainer(product, Banzhaf(Uniform()), engine="exact").fit(wide)
    with pytest.raises(ValueError, match=r"at most 10 players or max_evals=52_428_700"):
        MeasureExplainer(product, Shapley(), engine="exact").fit(wide)


def test_in_words():
    assert Shapley().in_words() == "Shapley values"
    assert Banzhaf(ProductMarginal()).in_words() == "Banzhaf values (product marginal)"
    assert (Shapley() - Banzhaf()).in_words() == "Shapley values − Banzhaf values"


@pytest.mark.parametrize("kind", KINDS)
def test_moments_and_nodes_are_the_law_of_p(kind):
    """∫ p^a (1 - p)^b dP(p), by the nodes of that degree."""
    law = kind.semivalue
    for a in range(6):
        for b in range(6):
            p, weights = law.nodes(a + b)
            assert_allclose(law.moments(6)[a, b], weights @ (p**a * (1 - p) ** b), rtol=1e-13)


@pytest.mark.parametrize("inner", [ProductMarginal(), Uniform()], ids=repr)
def test_values_start_at_the_mean_of_the_measure(inner, tmp_path):
    """Not at the mean over the background; also from a file, and for one of several outputs."""
    from sklearn.tree import DecisionTreeRegressor

    from skattr import Explanation

    y = np.stack([product(X), X.sum(axis=1)], axis=1)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    found = MeasureExplainer(tree, Shapley(inner)).fit(X).explain(X)
    law = {ProductMarginal: "product", Uniform: "uniform"}[type(inner)]
    mean = MeasureExplainer(tree, Expectation(law)).fit(X).explain(X[:1]).values[0, 0]
    assert found.adds_up()
    assert_allclose(found.start, mean, atol=1e-12)
    assert np.abs(found.start - found.base_value).max() > 1e-3
    assert_allclose(found.select(1).start, mean[1], atol=1e-12)
    found.save(tmp_path / "values.npz")
    assert_allclose(Explanation.load(tmp_path / "values.npz").start, mean, atol=1e-12)
    assert MeasureExplainer(tree, Shapley()).fit(X).explain(X).reference is None
