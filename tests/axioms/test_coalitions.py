"""Axioms of Shapley and Banzhaf values, against coalitions written out by loops."""

import itertools
from math import factorial

import numpy as np
import pytest

from skattr.axioms import check
from skattr.measures import (
    Banzhaf,
    Conditional,
    PartialDependence,
    ProductMarginal,
    Shapley,
    Uniform,
)
from skattr.measures.signed.decomposition import Decomposition
from tests.helpers.lanes import quickly

RNG = np.random.default_rng(0)
GRID = RNG.integers(0, 3, size=(6, 3)).astype(float)  # with ties
WEIGHTS = np.array([1.0, 2.0, 0.0, 1.0, 0.5, 1.0])


def enumerated(kind, background, shares, x, j):
    """The atoms of μ_{j,x} by the definition."""
    d, masses = len(x), {}
    others = [k for k in range(d) if k != j]
    for size in range(d):
        weight = factorial(size) * factorial(d - 1 - size) / factorial(d)
        weight = weight if kind is Shapley else 0.5 ** (d - 1)
        for s in itertools.combinations(others, size):
            for sign, inside in ((1, {*s, j}), (-1, {*s})):
                for z, share in zip(background, shares, strict=True):
                    point = tuple(x[k] if k in inside else z[k] for k in range(d))
                    masses[point] = masses.get(point, 0.0) + sign * weight * share
    return {point: mass for point, mass in masses.items() if abs(mass) > 1e-14}


def rows_of(inner):
    """The law of the background under the inner measure, as rows and shares."""
    shares = WEIGHTS / WEIGHTS.sum()
    if isinstance(inner, PartialDependence):
        return GRID, shares
    cells = list(itertools.product(range(6), repeat=3))
    rows = np.array([[GRID[r, k] for k, r in enumerate(cell)] for cell in cells])
    return rows, np.array([np.prod(shares[list(cell)]) for cell in cells])


@pytest.mark.parametrize("inner", [PartialDependence(), ProductMarginal()], ids=repr)
@pytest.mark.parametrize("kind", [Shapley, Banzhaf])
def test_measures_are_sums_over_coalitions(kind, inner):
    written = Decomposition(kind(inner), GRID, WEIGHTS)
    for x in (GRID[0], np.array([1.0, 7.0, 0.0])):
        for j, mu in enumerate(written.at(x[None])):
            masses = enumerated(kind, *rows_of(inner), x, j)
            found = {tuple(p): w for p, w in zip(mu.points, mu.weights, strict=True)}
            for weight, laws in mu.products:
                for atoms in itertools.product(*(zip(v.points, v.masses) for v in laws)):  # noqa: B905
                    point = tuple(v for v, _ in atoms)
                    mass = weight * np.prod([m for _, m in atoms])
                    found[point] = found.get(point, 0.0) + mass
            assert not mu.hidden and found.keys() == masses.keys()
            assert found == pytest.approx(masses, abs=1e-14)


@pytest.mark.parametrize("inner", [PartialDependence(), ProductMarginal(), Uniform()], ids=repr)
@pytest.mark.parametrize("d, n", [(1, 8), (2, 8), (3, 8), (4, 20), (12, 30)])
@pytest.mark.parametrize("kind", quickly([Shapley, Banzhaf], [Shapley]))
def test_known_axioms(kind, inner, d, n):
    found = check(kind(inner), np.random.default_rng(d).normal(size=(n, d))).to_frame().holds
    for name in ("sensitivity", "constants", "additive_recovery", "robustness"):
        assert found[name] is True, name
    assert found["positivity"] is False and found["linear_recovery"] is False
    if kind is Shapley or d <= 2:
        assert found["completeness"] is True
    elif d <= 4:
        assert found["completeness"] is False
    else:
        assert found["completeness"] is not True


def test_complete_to_a_point_if_the_background_is_one_row():
    X = RNG.normal(size=(5, 3))
    points = RNG.normal(size=(2, 3))
    assert check(Shapley(), X, baseline=X[0], points=points)["completeness"].holds is False
    one = check(Shapley(), X[:1], baseline=X[0], points=points)
    assert one["completeness"].holds is True
    assert "the background" in repr(check(Shapley(), X))


def test_as_symmetric_as_the_background():
    rows = np.array(list(itertools.permutations([0.0, 1.0, 5.0])))
    found = check(Shapley(), rows).to_frame().holds
    assert found["weak_symmetry"] is True and found["strong_symmetry"] is False
    found = check(Shapley(), RNG.normal(size=(6, 3))).to_frame().holds
    assert found["weak_symmetry"] is False
    box = [[0.0, 1.0]] * 3
    assert check(Shapley(Uniform()), RNG.random((6, 3)), domain=box)["weak_symmetry"].holds is True


def test_what_is_not_written_out_agrees_with_what_is(monkeypatch):
    X = RNG.normal(size=(9, 3))
    X[:4, 0] = 0.5  # ties
    points = np.vstack([X[:3], X.max(axis=0)])
    whole = check(Shapley(), X, points=points)
    monkeypatch.setattr("skattr.measures.signed.decomposition.MANY", 0)
    short = check(Shapley(), X, points=points)
    np.testing.assert_allclose(short.total_variation, whole.total_variation, atol=1e-12)
    for name, finding in short.findings.items():
        if name != "off_support":
            assert finding.holds is whole[name].holds, name
    highest = check(Shapley(), X, points=X.max(axis=0)[None])
    assert highest["monotonicity"].holds is True  # no row is above the point


def test_conditional_coalitions_are_complete_and_the_rest_is_not_known():
    found = check(Shapley(Conditional()), RNG.normal(size=(30, 3))).to_frame().holds
    assert found["completeness"] is True and found["constants"] is True
    for name in ("sensitivity", "positivity", "additive_recovery", "robustness"):
        assert found[name] is None, name
    found = check(Banzhaf(Conditional()), RNG.normal(size=(30, 3))).to_frame().holds
    assert found["completeness"] is None
