"""Table 1
=======

Table 1: three measures and the methods they recover.
"""

import itertools

import numpy as np

from skattr import MeasureExplainer
from skattr.measures import Conditional, PartialDependence, ProductMarginal

# a law that can be written down; the data are 1000 rows with exactly these shares, enough for the
# conditional measure to find that rows with another value tell nothing
X = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [2.0, 0.0, 2.0]])
weights = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
x, d = np.array([1.0, 0.0, 2.0]), 3
data = np.repeat(X, np.round(1000 * weights).astype(int), axis=0)


def f(Y):
    """Return a model with interactions."""
    return Y[:, 0] * Y[:, 1] + np.sin(Y[:, 2] * Y[:, 0]) + Y[:, 1] * Y[:, 2]


def conditional(j):
    """E[f(X) | X_j = x_j]."""
    same = X[:, j] == x[j]
    return np.average(f(X[same]), weights=weights[same])


def product(j):
    """E f(x_j, others independent)."""
    total = 0.0
    for rows in itertools.product(range(len(X)), repeat=d):
        y = np.array([x[k] if k == j else X[r, k] for k, r in enumerate(rows)])
        total += np.prod(weights[list(rows)]) * f(y[None])[0]
    return total


def partial_dependence(j):
    """E f(x_j, X_-j)."""
    Z = X.copy()
    Z[:, j] = x[j]
    return np.average(f(Z), weights=weights)


print("                    the paper's expectation          the library")
for definition, measure in (
    (conditional, Conditional()),
    (product, ProductMarginal()),
    (partial_dependence, PartialDependence()),
):
    explainer = MeasureExplainer(f, measure, random_state=0).fit(data)
    computed = explainer.explain(x[None]).values[0]
    paper = np.array([definition(j) for j in range(d)])
    name = definition.__name__
    print(f"{name:19} {np.round(paper, 8).tolist()}  {np.round(computed, 8).tolist()}")
    assert np.allclose(paper, computed, atol=1e-9)
