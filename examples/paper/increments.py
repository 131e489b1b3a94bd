"""Section 3.3: increments
=======================

Riemann-Stieltjes sums [appendix to 3.3]: the increment's sign is wrong for odd d.
"""

from itertools import product

import numpy as np

from skattr import MeasureExplainer
from skattr.measures import Stieltjes

w = np.array([2.0, -3.0, 5.0])


def g(y, j):
    """Return the paper's integrand of the coefficient: 2 y_j ∏_{i≠j} 1[y_i > 0]."""
    others = np.delete(y, j, axis=-1)
    return 2 * y[..., j] * np.all(others > 0, axis=-1)


def sums(d, j, n, sign_of_upper):
    """Return Σ f(lower corner) Δ(g; box) on a grid, with a sign for each vertex."""
    ends = np.arange(n) / n
    corners = np.stack(np.meshgrid(*[ends] * d, indexing="ij"), axis=-1).reshape(-1, d)
    increments = 0.0
    for upper in product((0, 1), repeat=d):
        sign = (-1) ** (sum(upper) if sign_of_upper == "paper" else d - sum(upper))
        increments = increments + sign * g(corners + np.array(upper) / n, j)
    return float((corners @ w[:d]) @ increments)


print("The theorem writes Δ with (-1)^|ε|, ε = 1 at upper ends; the definition has + at the upper")
print("corner, (-1)^(d - |ε|). For f = w·y the attribution should be w_1 = 2.")
for d in (1, 2, 3):
    wrong, right = (sums(d, 0, 40, kind) for kind in ("paper", "definition"))
    print(f"  d = {d}: as written {wrong:+.3f}, by the definition {right:+.3f}")
    assert (wrong < 0) == (d % 2 == 1) and right > 0
print("The rest is the bias of lower corners, O(1/n). On each box's own atoms and means:")
corners = np.array([[0.0] * 3, [1.0] * 3])
measure = Stieltjes(lambda y, x, j: g(y, j))
explainer = MeasureExplainer(lambda Y: Y @ w, measure, tol=1e-4).fit(corners)
print("  computed by the library:", explainer.explain(corners[:1]).values[0].round(4).tolist())
