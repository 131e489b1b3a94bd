"""Draw the picture of the README: python examples/picture.py docs/curves.png (needs matplotlib)."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

from skattr import MeasureExplainer
from skattr.measures import Expectation, PartialDependence, ProductMarginal

INTERVAL = "95 % interval\n(background)"

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
forest = RandomForestRegressor(200, min_samples_leaf=3, random_state=0).fit(X, y)
joint = MeasureExplainer(forest, PartialDependence() - Expectation()).fit(X)
independent = MeasureExplainer(forest, ProductMarginal() - Expectation("product")).fit(X)
importance = joint.explain(X).importance(error=True)[::-1]

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), constrained_layout=True)
size = importance["importance"]
ends = [size - importance["low"], importance["high"] - size]
left.barh(importance.index, size, xerr=ends, capsize=2, color="#0072B2")
left.set(title="importance", xlabel="mean of |value|, with its 95 % interval")
for ax, column in ((middle, "bmi"), (right, "s5")):
    for explainer, name, colour in (
        (joint, "partial dependence", "#0072B2"),
        (independent, "product marginal", "#D55E00"),
    ):
        curve = explainer.curve(column)
        steps = curve.to_frame().query("closed == 'right'")
        edges = np.r_[steps["lower"], steps["upper"].iloc[-1]]
        edges = np.clip(edges, X[column].min(), X[column].max())
        ax.stairs(steps["value"], edges, baseline=None, color=colour, label=name)
        if explainer is joint:
            low, high = curve.interval(edges[1:])
            ax.stairs(
                high, edges, baseline=low, color=colour, fill=True, alpha=0.25, label=INTERVAL
            )
    ax.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    ax.plot(X[column], np.full(len(X), ax.get_ylim()[0]), "|", color="0.5", alpha=0.4)
    ax.set(title=f"exact curve of {column}: {len(steps)} steps", xlabel=column)
middle.set_ylabel("attribution (centred)")
right.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1.02, 0.05))
for ax in (left, middle, right):
    ax.spines[["top", "right"]].set_visible(False)
fig.savefig(sys.argv[1], dpi=110)
