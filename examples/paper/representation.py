"""Section 3: the representation
=============================

Theorem of 3.3: attributions of indicators give those of continuous models, as an integral.
"""

import numpy as np

from skattr import MeasureExplainer
from skattr.measures import Uniform

x = np.array([[0.3, 0.8]])
corners = np.array([[0.0, 0.0], [1.0, 1.0]])


def f(Y):
    """Return a continuous model on [0, 1]²."""
    return np.exp(Y[:, 0]) * np.cos(2 * Y[:, 1])


def step(Y, n):
    """Return f's approximation by indicators of n² boxes (a, b], f at the lower corner."""
    return f(np.maximum(np.ceil(Y * n) - 1, 0) / n)


expected = np.exp(0.3) * np.sin(2.0) / 2, (np.e - 1) * np.cos(1.6)
print("The warm-up of 3.1: mu_1 = δ_{x_1} ⊗ uniform, mu_2 = uniform ⊗ δ_{x_2}.")
print("  paper, ∫ f dmu:     ", [float(v) for v in expected])
for n in (4, 16, 64, 256):
    cells = (np.arange(n) + 0.5) / n  # Σ over boxes of f(corner) · mu(box): one point for each
    first = step(np.column_stack([np.full(n, x[0, 0]), cells]), n).mean()
    second = step(np.column_stack([cells, np.full(n, x[0, 1])]), n).mean()
    print(f"  Σ f(corner) mu(R), {n:3}² boxes: [{first:.6f}, {second:.6f}]")
explainer = MeasureExplainer(f, Uniform(), tol=1e-5, random_state=0).fit(corners)
print("  computed by the library:", explainer.explain(x).values[0].round(5).tolist())
assert abs(first - expected[0]) < 0.02 and abs(second - expected[1]) < 0.02
