"""Section 2: completeness and sensitivity
=======================================

Section 2 and its appendix: what completeness and sensitivity force, and what they forbid.
"""

from itertools import combinations
from math import factorial

import numpy as np

from skattr import MeasureExplainer
from skattr.axioms import check
from skattr.measures import Atoms

BASELINE = np.array([-1.0, -2.0])
X = np.random.default_rng(0).normal(size=(20, 2))


def shapley(x):
    """Return the one-baseline Shapley measure: sensitive, and complete."""
    d = len(x)
    sets = [s for size in range(d + 1) for s in combinations(range(d), size)]
    points = np.array([[x[k] if k in s else BASELINE[k] for k in range(d)] for s in sets])
    weights = np.zeros((d, len(sets)))
    for j in range(d):
        for a, s in enumerate(sets):
            n = len(set(s) - {j})
            share = factorial(n) * factorial(d - 1 - n) / factorial(d)
            weights[j, a] = share if j in s else -share
    return points, weights


def phi(f, x):
    """Return the attributions of f at x."""
    return MeasureExplainer(f, Atoms(shapley)).fit(X).explain(np.array([x])).values[0]


table = check(Atoms(shapley), X, baseline=BASELINE)
print("A measure that is complete:", table["completeness"].holds,
      "and sensitive:", table["sensitivity"].holds)  # fmt: skip

x = np.array([2.0, 0.5])
print("\nProposition: phi(x, g∘π_1) = (g(x_1) - g(x'_1), 0), whatever g.")
print("  paper:   ", [float(np.exp(2.0) - np.exp(-1.0)), 0.0])
print("  computed:", phi(lambda Y: np.exp(Y[:, 0]), x).tolist())

print("\nProposition: completeness without a baseline contradicts sensitivity.")
print("  paper:    a constant c would get Σ phi = c and phi = 0")
print("  computed: Σ_j phi_j of f = 7 is", float(phi(lambda Y: np.full(len(Y), 7.0), x).sum()))

print("\nProposition: local sensitivity contradicts completeness.")
f, far = (lambda Y: (Y[:, 0] >= 0).astype(float)), np.array([5.0, 5.0])
print("  paper:    f = 1[y_1 ≥ 0] is constant near (5, 5): phi would be 0, f(x) - f(x') is 1")
print("  computed: phi at (5, 5) is", phi(f, far).tolist())

print("\nProposition: strong symmetry contradicts the rest.")
f, mixed = (lambda Y: (Y >= 0).sum(axis=1).astype(float)), np.array([1.0, -0.5])
print("  paper:    1[y_1 ≥ 0] + 1[y_2 ≥ 0] is symmetric, so phi_1 = phi_2 = ½ at (1, -.5)")
print("  computed:", phi(f, mixed).tolist(), "as completeness and sensitivity want it")
print("  table:    strong symmetry holds:", table["strong_symmetry"].holds)
