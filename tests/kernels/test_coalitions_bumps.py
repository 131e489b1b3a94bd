"""Bumps and their sums, in more digits than those of 64 bits."""

from decimal import Decimal, localcontext
from itertools import combinations
from math import comb

import numpy as np
import pytest
from sklearn.svm import SVR

from skattr import MeasureExplainer
from skattr.kernels.coalitions.bumps import fill_factors
from skattr.measures import Shapley

EXTENDED = np.finfo(np.longdouble).eps < 1e-18


def bumps(inputs, supports, gammas):
    shape = (len(supports), 1, len(inputs))
    out, rests = np.empty((2, *shape))
    fill_factors(inputs, supports, gammas, np.array([0, inputs.shape[1]]), out, rests)
    return out[:, 0], rests[:, 0]


def test_bumps_have_twenty_digits_less_a_few():
    rng = np.random.default_rng(0)
    inputs, supports, gammas = rng.normal(size=(9, 2)), 6 * rng.normal(size=(7, 2)), rng.random(2)
    inputs[0] = supports[0]
    out, rests = bumps(inputs, supports, gammas)
    with localcontext(prec=60):
        for m, support in enumerate(supports.tolist()):
            for r, row in enumerate(inputs.tolist()):
                gaps = [Decimal(a) - Decimal(b) for a, b in zip(row, support, strict=True)]
                squares = [gap * gap for gap in gaps]
                exponent = sum(Decimal(g) * s for g, s in zip(gammas, squares, strict=True))
                wanted = (-exponent).exp()
                found = Decimal(out[m, r]) * (1 + Decimal(rests[m, r]))
                assert abs(found - wanted) <= Decimal("2e-17") * wanted


def test_bumps_far_away_and_at_missing_values():
    with np.errstate(all="ignore"):
        far = np.array([[0.0], [30.0], [1e200], [np.nan]])
        out, rests = bumps(far, np.zeros((1, 1)), np.ones(1))
    np.testing.assert_array_equal(out, [[1.0, 0.0, 0.0, np.nan]])
    np.testing.assert_array_equal(rests, 0.0)


def by_definition(f, background, x):
    d = len(x)
    worth = {}
    for size in range(d + 1):
        for members in combinations(range(d), size):
            rows = background.copy()
            rows[:, list(members)] = x[list(members)]
            worth[frozenset(members)] = f(rows).astype(np.longdouble).mean()
    values = np.zeros(d, np.longdouble)
    for members, value in worth.items():
        for j in set(range(d)) - members:
            share = np.longdouble(1) / (d * comb(d - 1, len(members)))
            values[j] += share * (worth[members | {j}] - value)
    return values


@pytest.mark.skipif(not EXTENDED, reason="long doubles have 64 bits here")
def test_values_are_more_accurate_than_all_coalitions_by_predict():
    ours, theirs = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 5))
        model = SVR(C=10, epsilon=1e-4).fit(X[:100], np.sin(X[:100]).sum(axis=1))
        background, x = X[100:119], X[119]
        supports = model.support_vectors_.astype(np.longdouble)

        def f(rows, supports=supports, model=model):
            gaps = rows.astype(np.longdouble)[:, None] - supports
            bumps = np.exp(-np.longdouble(model._gamma) * (gaps * gaps).sum(axis=2))
            return (bumps * model.dual_coef_[0]).sum(axis=1) + model.intercept_[0]

        truth = by_definition(f, background, x)
        found = MeasureExplainer(model, Shapley()).fit(background).explain(x[None]).values[0]
        ours.append(found - truth)
        theirs.append(by_definition(model.predict, background, x) - truth)
    assert np.square(ours).mean() < np.square(theirs).mean()
