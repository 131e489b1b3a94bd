"""Draw the attribution of one column under each measure, in a light and a dark version.

Run it: python docs/_pictures/measures.py docs/_static
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from skattr import MeasureExplainer
from skattr.measures import (
    Banzhaf,
    Conditional,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Shapley,
    Uniform,
)

MEASURES = {
    "main effect": PartialDependence() - Expectation(),
    "conditional effect": Conditional() - Expectation(),
    "product of marginals": ProductMarginal() - Expectation("product"),
    "uniform": Uniform() - Expectation("uniform"),
    "Shapley": Shapley(),
    "Banzhaf": Banzhaf(),
}
COLOURS = {"light": ("#1b2a38", "#0072b2"), "dark": ("#dfe6ec", "#56b4e9")}


def data(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Return three columns, of which the first two are correlated, and x1 + x0 x2."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 1] = 0.9 * X[:, 0] + np.sqrt(1 - 0.81) * X[:, 1]
    X[:, 2] += 0.5
    return X, X[:, 1] + X[:, 0] * X[:, 2]


def main(folder: Path) -> None:
    """Compute once, and draw twice."""
    X, y = data()
    model = HistGradientBoostingRegressor(max_iter=150).fit(X, y)
    points = np.linspace(*np.quantile(X[:, 0], [0.02, 0.98]), 200)
    drawn = {}
    for name, measure in MEASURES.items():
        explainer = MeasureExplainer(model, measure).fit(X)
        if name in ("Shapley", "Banzhaf"):
            drawn[name] = X[:200, 0], explainer.explain(X[:200], features=[0]).values[:, 0], "."
        else:
            drawn[name] = points, explainer.curve("x0")(points), "-"
    for mode, (ink, line) in COLOURS.items():
        colours = dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink
        )
        with plt.rc_context({**colours, "svg.hashsalt": "skattr", "font.size": 9}):
            figure, axes = plt.subplots(
                2, 3, figsize=(8, 4.6), sharex=True, sharey=True, constrained_layout=True
            )
            for ax, (name, (at, values, style)) in zip(axes.flat, drawn.items(), strict=True):
                ax.axhline(0, color=ink, linewidth=0.5)
                ax.plot(at, values, style, color=line, markersize=3)
                ax.set_title(name, fontsize=10)
                ax.spines[["top", "right"]].set_visible(False)
                ax.patch.set_alpha(0)
            figure.supxlabel("x0", fontsize=9)
            figure.supylabel("attribution of x0", fontsize=9)
            figure.savefig(
                folder / f"measures-{mode}.svg", transparent=True, metadata={"Date": None}
            )
            plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
