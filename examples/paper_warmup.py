"""The paper's warm-up
===================

The paper's section 3.1: attributions of indicators determine those of any f.

On the unit square, let the attribution of the indicator of a rectangle at a point x be, for the
first column, the length of its second side if x_1 lies in the first side, and 0 otherwise; and the
same for the second column with the sides exchanged. This is the increment over the rectangle of
g_j(y) = 1[y_j ≥ x_j] y_i, i being the other column. It determines the attribution of any f: the
mean of f along a line through x. The picture shows a rectangle, a function, and the attribution of
its first column: computed from the integrand, by the measure `Uniform`, and for a tree, where
increments are exact.

Run it: python examples/paper_warmup.py [picture.png] (needs matplotlib)
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import Stieltjes, Uniform

SQUARE = np.array([[0.0, 1.0], [0.0, 1.0]])
POINT = np.array([0.35, 0.6])
RECTANGLE = (0.2, 0.25, 0.4, 0.5)  # left, bottom, width, height


def integrand(y, x, j):
    """g_j: a step at x_j, uniform in the other column."""
    return (y[..., j] >= x[j]) * y[..., 1 - j]


def f(X):
    """Return a smooth function with an interaction."""
    return np.sin(4 * X[:, 0]) * (1 + X[:, 1]) + X[:, 1] ** 2


def attribution(model, measure, X, x, tol=1e-3):
    """Return the attributions of rows, and the engine that computed them."""
    explainer = MeasureExplainer(model, measure, domain=SQUARE, tol=tol).fit(X)
    return explainer.explain(x), explainer.engine_[0]


def indicator(X):
    """1 on the rectangle, else 0."""
    left, bottom, width, height = RECTANGLE
    inside = (left < X[:, 0]) & (X[:, 0] <= left + width)
    return (inside & (bottom < X[:, 1]) & (X[:, 1] <= bottom + height)).astype(float)


def draw(X, rows, found, path):
    """Draw the rectangle, the function and its attribution."""
    _, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    axes[0].add_patch(plt.Rectangle(RECTANGLE[:2], *RECTANGLE[2:], color="#56B4E9", alpha=0.5))
    axes[0].axvline(POINT[0], color="#D55E00", label=r"$\mu_{1,x}$: length 0.5 inside")
    axes[0].axhline(POINT[1], color="#009E73", label=r"$\mu_{2,x}$: length 0.4 inside")
    axes[0].plot(*POINT, "ko")
    axes[0].set(xlim=(0, 1), ylim=(0, 1), title="attributions of an indicator at x")
    axes[0].legend(loc="upper right", fontsize=8)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2, indexing="ij"), axis=-1)
    image = axes[1].imshow(f(grid.reshape(-1, 2)).reshape(101, 101).T, origin="lower",
                           extent=(0, 1, 0, 1), cmap="cividis")  # fmt: skip
    plt.colorbar(image, ax=axes[1])
    axes[1].set(title="f", xlabel="first column", ylabel="second column")
    for (name, values), style in zip(found.items(), ("-", ":", "-"), strict=True):
        axes[2].plot(rows[:, 0], values[:, 0], style, label=name, linewidth=2)
    axes[2].set(title="attribution of the first column", xlabel="its value")
    axes[2].legend(fontsize=8)
    plt.savefig(path, dpi=120)


def main(path="paper_warmup.png"):
    """Compute the attributions and draw the picture."""
    X = np.random.default_rng(0).random((400, 2))
    tree = DecisionTreeRegressor(max_leaf_nodes=12, random_state=0).fit(X, f(X))
    one, _ = attribution(tree, Stieltjes(integrand), X, POINT[None])
    box, engine = attribution(indicator, Stieltjes(integrand), X, POINT[None], tol=0.03)
    print(f"The rectangle should get 0.5 and 0.4: {box.values[0].round(3)} by {engine}")
    rows = np.column_stack([np.linspace(0.01, 1, 100), np.full(100, 0.5)])
    found = {}
    for model, measure, name in (
        (f, Stieltjes(integrand), "f, by its integrand"),
        (f, Uniform(), "f, Uniform()"),
        (tree, Stieltjes(integrand), "a tree that learned f"),
    ):
        explanation, engine = attribution(model, measure, X, rows)
        found[name] = explanation.values
        how = "exact" if explanation.exact else f"error {explanation.std_error.max():.1e}"
        print(f"{name}: {engine}, {how}")
    exact, _ = attribution(tree, Uniform(), X, POINT[None])
    print(
        f"On the tree both are exact, and differ by {np.abs(one.values - exact.values).max():.1e}"
    )
    draw(X, rows, found, path)
    print(f"The picture is {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
