"""Section 4.1: ReLU networks
==========================

Corollary of 4.1 on ReLU networks, b_P, and a formula that fails for signed measures.
"""

import numpy as np

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence

rng = np.random.default_rng(0)
W1, b1 = rng.normal(size=(8, 2)), rng.normal(size=8)
W2, b2 = rng.normal(size=(6, 8)), rng.normal(size=6)
v, c = rng.normal(size=6), 0.5


def f(Y):
    """Return a network with two hidden layers."""
    return np.maximum(np.maximum(Y @ W1.T + b1, 0) @ W2.T + b2, 0) @ v + c


def local(y):
    """Return the pattern of y's region P, a_P and b_P = c + v D2 W2 D1 b1 + v D2 b2."""
    on1 = W1 @ y + b1 > 0
    on2 = W2 @ np.maximum(W1 @ y + b1, 0) + b2 > 0
    a = ((v * on2) @ W2 * on1) @ W1
    return (*on1, *on2), a, c + ((v * on2) @ W2 * on1) @ b1 + (v * on2) @ b2


X, x = rng.random((300, 2)), np.array([0.4, 0.7])
errors = [abs(a @ y + b - f(y[None])[0]) for y in X for _, a, b in [local(y)]]
print(f"f = a_P·y + b_P on P: off by at most {max(errors):.1e}")
print("  (the paper's b_P has incompatible shapes; this is what it should be)\n")

measure = PartialDependence() - Expectation()  # signed
computed = MeasureExplainer(f, measure).fit(X).explain(x[None]).values[0]
print("Corollary: phi_j = Σ_P (a_P·n_P + b_P mu(P)), n_P = ∫_P y dmu, signed mu too.")
for j in range(2):
    pinned = X.copy()
    pinned[:, j] = x[j]
    regions = {}
    for points, weight in ((pinned, 1 / len(X)), (X, -1 / len(X))):
        for y in points:
            key, a, b = local(y)
            mass, n, *_ = regions.get(key, (0.0, np.zeros(2)))
            regions[key] = mass + weight, n + weight * y, a, b
    total = sum(a @ n + b * mass for mass, n, a, b in regions.values())
    print(f"  feature {j}: {len(regions)} regions, Σ = {total:.12f}, library = {computed[j]:.12f}")
    assert abs(total - computed[j]) < 1e-12

print("\nIts last formula, Σ mu(P) f(m_P), is wrong for signed measures: m_P can leave P.")
print("f = |y - ½|, mu = 2 δ_.4 - δ_.1, all of it in P = [0, ½], where f = ½ - y:")
center = (2 * 0.4 - 0.1) / (2 - 1)
print(
    f"  ∫ f dmu = {2 * 0.1 - 0.4:+.1f}, the formula: {1 * abs(center - 0.5):+.1f} (m_P = {center})"
)
