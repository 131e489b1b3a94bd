"""Section 4.3: recall of ReLU networks
====================================

ReLU recall and precision [appendix to 4.3]: sums over the regions of a network.
"""

import numpy as np

from skattr.metrics import relu_precision, relu_recall, solution_set
from skattr.optimize import optimal_center

rng = np.random.default_rng(3)
W, b, v = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=5)
settings = {"alpha": 0.3, "beta": 0.1}

# the regions of [0, 1]² that a fine grid meets, each with its gradient a_P
grid = (np.stack(np.meshgrid(*[np.arange(400)] * 2), axis=-1).reshape(-1, 2) + 0.5) / 400
patterns = np.unique(grid @ W.T + b > 0, axis=0)
gradients = (patterns * v) @ W
print(f"{len(gradients)} regions, gradients a_P:\n{gradients.round(2)}\n")

print("Theorem: centres in the intersection over regions are optimal, if there are any.")
centers = []
for j in range(2):
    each = [solution_set(a, j, "recall", **settings) for a in gradients]
    S = each[0].intersect(*each[1:])
    found = optimal_center(gradients, j, "recall", **settings)
    centers.append(found.center)
    state = "empty, certified" if found.certified_empty else f"holds m = {found.center.round(2)}"
    print(f"  feature {j}: {S}: {state}")
    assert S.contains(grid).any() <= (not found.certified_empty)

for name, moments in (("optimal centres", centers), ("centre of the domain", [[0.5, 0.5]] * 2),
                      ("e_j", np.eye(2))):  # fmt: skip
    scores = [metric(moments, gradients, **settings) for metric in (relu_recall, relu_precision)]
    print(f"{name:21} RRecall {scores[0].total:.2f}, RPrecision {scores[1].total:.2f} "
          f"of {len(gradients)}")  # fmt: skip
print("δ_{e_j} - δ_0 has the moments e_j: on every region it gives a_P's own coefficient.")
