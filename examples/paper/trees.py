"""Section 4.1: trees
==================

Corollary of 4.1 on a CART tree: phi = Σ over leaves of value · mu(leaf).
"""

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import PartialDependence

rng = np.random.default_rng(0)
X = rng.random((200, 3))
tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2] ** 2)
x = np.array([0.3, 0.6, 0.9])

computed = MeasureExplainer(tree, PartialDependence()).fit(X).explain(x[None]).values[0]
print("The paper: phi_j = Σ_R v_R mu_{j,x}(R), R the leaves; mu(R) by counting rows in R.")
for j in range(3):
    Z = X.copy()
    Z[:, j] = x[j]
    leaves, counts = np.unique(tree.apply(Z), return_counts=True)
    total = tree.tree_.value[leaves, 0, 0] @ counts / len(X)
    print(f"  feature {j}: {len(leaves)} leaves with mass, Σ = {total:.12f}, ", end="")
    print(f"library = {computed[j]:.12f}")
    assert abs(total - computed[j]) < 1e-12
