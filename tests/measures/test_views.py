"""Measures have what the views that they name promise, and engines ask for no other views."""

import re
from inspect import signature

import numpy as np
import pytest

import skattr.measures
from skattr.engines import ENGINES
from skattr.measures import (
    ALE,
    Atoms,
    Banzhaf,
    Baseline,
    Coefficient,
    Conditional,
    Density,
    Dirac,
    Expectation,
    LinearCombination,
    MarginalEffect,
    Measure,
    PartialDependence,
    ProductMarginal,
    Removal,
    Sampler,
    ScaledCoefficient,
    Shapley,
    Stieltjes,
    Uniform,
)
from skattr.measures.pairs import Interaction
from skattr.measures.views import COALITIONS, PAIRS, VIEWS

X = np.random.default_rng(0).normal(size=(40, 3))
ESTIMATORS = ("kernel", "local_linear", "knn", "gaussian", "copula", "gmm")
INNER = (PartialDependence(), ProductMarginal(), Uniform(), Conditional())
MEASURES = [
    PartialDependence(),
    *(Expectation(law) for law in ("joint", "product", "uniform", "corner")),
    Dirac(),
    Baseline(X[0]),
    ProductMarginal(),
    Uniform(),
    ScaledCoefficient(),
    *(Conditional(estimator) for estimator in ESTIMATORS),
    Conditional("gmm", covariance="full"),
    Density(lambda y, x, j: y[..., 0]),
    Stieltjes(lambda y, x, j: y[..., 0]),
    Atoms(lambda x: (x[None], np.ones((3, 1)))),
    Sampler(lambda x, j, n, rng: rng.random((n, 3))),
    *(values(inner) for values in (Shapley, Banzhaf) for inner in INNER),
    ALE(),
    Removal(),
    MarginalEffect(),
]
ARGUMENTS = {"atoms": (X[:2], ((0,), (1,), (2,)))}
METHODS = dict.fromkeys(COALITIONS, "coalitions") | dict.fromkeys(PAIRS, "pairs")
OF_PAIRS = [Interaction(each) for each in MEASURES if each.depends != "nothing"]


def named(measure):
    """The measure as text, the same in every process."""
    return re.sub(r"<function .*? at \w+>", "function", repr(measure))


def members(protocol):
    """The attributes and methods of a protocol and those that it inherits from."""
    classes = [each for each in protocol.__mro__ if each.__module__ == protocol.__module__]
    names = [name for each in classes for name in {**vars(each), **each.__annotations__}]
    return {name: getattr(protocol, name, None) for name in names if not name.startswith("_")}


def check(measure):
    assert measure.views
    for view in measure.views:
        if issubclass(VIEWS[view], tuple):  # what a method returns, else a protocol
            method = getattr(measure, METHODS.get(view, view))
            assert type(method(*ARGUMENTS.get(view, ()))) is VIEWS[view]
            continue
        for name, promised in members(VIEWS[view]).items():
            assert hasattr(measure, name), (view, name)
            if callable(promised):
                arguments = list(signature(promised).parameters)[1:]
                assert list(signature(getattr(measure, name)).parameters) == arguments


@pytest.mark.parametrize("measure", [*MEASURES, *OF_PAIRS], ids=named)
def test_measures_have_their_views(measure):
    check(measure.fit(X))


def test_members_have_their_views():
    for member in Coefficient().fit(X).members(((0,), (1, 2))):
        assert member.depends == "nothing"
        check(member)


def test_every_public_measure_is_tried():
    public = {getattr(skattr.measures, name) for name in skattr.measures.__all__}
    assert public == {*map(type, MEASURES), Coefficient, LinearCombination, Measure}


def test_engines_ask_for_views_that_are_written_down():
    # coalitions and pairs have a view for each view of inner measures, some of which no engine asks
    # for
    for users in (ENGINES, MEASURES, [*MEASURES, *OF_PAIRS]):
        named = {view for user in users for view in user.views}
        assert set(VIEWS) - {*COALITIONS, *PAIRS} <= named <= set(VIEWS)
