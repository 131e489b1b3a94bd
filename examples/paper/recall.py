"""Section 4.3: recall
===================

Theorem of 4.3: optimal centres of mass for Recall, and its figure: recall.py [picture.png].
"""

import sys

import numpy as np

from skattr.measures import Dirac, PartialDependence
from skattr.metrics import center_of_mass, recall, solution_set
from skattr.optimize import optimal_center

w, alpha, beta = np.array([-1.0, 1.0]), 0.5, 0.1
S = solution_set(w, 0, "recall", alpha=alpha, beta=beta)
grid = np.linspace(0, 1, 41)
points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
inside = S.contains(points)

best = recall(points @ w[:, None] * np.ones(2), w, alpha=alpha, beta=beta) == 1.0
print("The paper: m is optimal iff |w·m| ≥ α. On a grid of centres, the same m for both features:")
print(f"  in the solution set: {inside.sum()} of {len(points)}; recall is 1: {best.sum()}")
assert (inside == best).all()

found = optimal_center(w, 0, "recall", alpha=alpha, beta=beta)
print(f"  the centre with the largest margin: {found.center.tolist()}, margin {found.margin:.2f}")
weak = optimal_center(0.3 * w, 0, "recall", alpha=alpha, beta=beta)
print(f"  w = ±.3 cannot reach α = .5: certified empty = {weak.certified_empty}\n")

X = np.random.default_rng(0).random((200, 2))
print("The sanity check for measures, at x = (.9, .1):")
for measure in (PartialDependence(), Dirac()):
    centers = center_of_mass(measure, X, [0.9, 0.1])
    print(f"  {measure!r:20} centres {centers.round(2).tolist()}: optimal {S.contains(centers)}")

print("\nThe figure: # is in the solution set, . is not (up: the second feature).")
for second in grid[::-5]:
    print("  " + "".join("#" if S.contains([first, second]) else "." for first in grid[::2]))

if len(sys.argv) > 1:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(4, 4))
    ax.contourf(grid, grid, inside.reshape(41, 41).T, levels=[0.5, 1.5], colors=["#56B4E9"])
    ax.annotate("w", 0.5 + 0.2 * w, (0.5, 0.5), arrowprops={"arrowstyle": "<-"})
    ax.set(xlabel="first coordinate of m", ylabel="second", title="|w·m| ≥ α")
    figure.savefig(sys.argv[1])
