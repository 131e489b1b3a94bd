"""Regions of a ReLU network
=========================

A network of two columns, the polygons on which it is affine, and exact curves of its columns.

The network has learned a narrow ridge. The exact curves integrate every polygon; a Riemann sum on a
grid misses parts of the ridge, and its curve oscillates.

Run it: python examples/relu_regions.py [picture.png]
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neural_network import MLPRegressor

import skattr
from skattr import MeasureExplainer
from skattr.measures import Uniform

GRID = 10  # points of the Riemann sum on each side

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(2000, 2))
ridge = np.maximum(0, 1 - 8 * np.abs(X[:, 1] - 0.4 * X[:, 0]))
y = ridge + 0.2 * np.sin(3 * X[:, 0]) * np.cos(3 * X[:, 1])
network = MLPRegressor(
    hidden_layer_sizes=(16, 16), learning_rate_init=0.01, max_iter=1000, n_iter_no_change=30,
    tol=1e-5, random_state=0,
)  # fmt: skip
network.fit(X, y)

box = [(-1.0, 1.0), (-1.0, 1.0)]
explainer = MeasureExplainer(network, Uniform(), domain=box).fit(X)
print(explainer.describe(), end="\n\n")

regions = list(explainer.pieces_.regions(box))
print(f"{len(regions)} regions, the largest has the area {max(r.volume for r in regions):.3f}")
print(f"their areas add up to {sum(r.volume for r in regions):.12f}, of 4", end="\n\n")


def riemann(k, values):
    """Return the sum over lower corners in place of the integral over the other column."""
    rows = np.empty((len(values), GRID, 2))
    rows[:, :, k] = values[:, None]
    rows[:, :, 1 - k] = 2 * np.arange(GRID) / GRID - 1
    return network.predict(rows.reshape(-1, 2)).reshape(len(values), GRID).mean(axis=1)


t = np.linspace(-1, 1, 201)
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", width_ratios=(5, 4, 4))
skattr.plot.regions(explainer, box, ax=axes[0])
axes[0].set_title("where the network is affine")
for k, ax in enumerate(axes[1:]):
    exact, rough = explainer.curve(k)(t), riemann(k, t)
    print(
        f"x{k}: a Riemann sum of {GRID} points misses the curve by up to "
        f"{np.abs(exact - rough).max():.3f}; it goes from {exact.min():.3f} to {exact.max():.3f}"
    )
    ax.plot(t, exact, label="exact")
    ax.plot(t, rough, "--", label=f"Riemann sum, {GRID} points")
    ax.set(xlabel=f"x{k}", ylabel="attribution · prediction", title=f"Uniform() of x{k}")
axes[1].legend()
path = sys.argv[1] if len(sys.argv) > 1 else "relu_regions.png"
figure.savefig(path, dpi=120)
print(f"wrote {path}")
