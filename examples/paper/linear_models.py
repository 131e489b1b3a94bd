"""Section 4.2: linear models
==========================

The linear corollaries [appendix to 4.2]: w_j and w_j x_j from measures, and what leaks.
"""

import numpy as np
from sklearn.linear_model import LinearRegression

from skattr import MeasureExplainer
from skattr.measures import Coefficient, ScaledCoefficient
from skattr.metrics import first_moments

rng = np.random.default_rng(0)
X, w = rng.random((50, 3)), np.array([2.0, -1.0, 0.5])
x, box = np.array([[0.2, 0.4, 0.9]]), [[0, 1]] * 3


def phi(measure, intercept, domain=box):
    """Return the attributions of w·y + intercept."""
    model = LinearRegression().fit(X, X @ w + intercept)
    explainer = MeasureExplainer(model, measure, domain=domain).fit(X)
    return explainer.explain(x).values[0].round(10).tolist()


moments, mass = first_moments(Coefficient(), X, x[0], domain=box)
print("Corollary (general): phi_j = w·n^(j). Coefficient's n^(j) are the unit vectors:")
print(f"  n = {moments.round(12).tolist()}, mass {mass.tolist()}: no probability\n")
print(
    "Corollary (global): phi_j = w_j.      paper:", w.tolist(), " computed:", phi(Coefficient(), 0)
)
print("Corollary (local):  phi_j = w_j x_j.  paper:", (w * x[0]).round(10).tolist(),
      " computed:", phi(ScaledCoefficient(), 0))  # fmt: skip
print("\nWith an intercept of 10, mass 2 and 1 leak 20 and 10 in; without mass nothing does:")
for measure in (Coefficient(), Coefficient(mass_zero=True),
                ScaledCoefficient(), ScaledCoefficient(mass_zero=True)):  # fmt: skip
    print(f"  {measure!r:36} {phi(measure, 10.0)}")
print('\n"Agreeing with linear models" asks for w_j²: phi of 2 f would be 4 w_j², not 2 phi of f.')
