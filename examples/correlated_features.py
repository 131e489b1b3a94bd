"""Correlated columns
==================

Height and weight: partial dependence averages over people who do not exist.

Risk depends on the body mass index, which has the same distribution for short and tall people, so
that the height alone says next to nothing about the risk. Partial dependence combines every height
with all weights, also 150 cm with 110 kg, and finds a strong effect. The conditional measure
averages over weights that occur with a height. The truth is known, because the data are simulated.

Run it: python examples/correlated_features.py [picture.png] (needs matplotlib)
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor

from skattr import MeasureExplainer
from skattr.measures import Conditional, PartialDependence

HEIGHT, INDEX = norm(172, 10), norm(25, 2.5)  # cm, kg / m²; independent
RANGES = {"height": (152, 192), "weight": (54, 98)}  # 95 % of the people
COLOURS = {"PartialDependence": "#D55E00", "Conditional": "#0072B2"}


def people(n, seed):
    """Return heights in cm and weights in kg."""
    rng = np.random.default_rng(seed)
    height = HEIGHT.rvs(n, random_state=rng)
    weight = INDEX.rvs(n, random_state=rng) * (height / 100) ** 2
    return pd.DataFrame({"height": height, "weight": weight})


def true_expectation(model, column, value):
    """Return E[f | column = value] under the true law, by quadrature."""
    if column == "height":  # the weight is the index, spread by quantiles, times height²
        index = INDEX.ppf((np.arange(2000) + 0.5) / 2000)
        X = pd.DataFrame({"height": value, "weight": index * (value / 100) ** 2})
        return model.predict(X).mean()
    height = np.linspace(120, 225, 2101)  # density ∝ that of the height and of the index it implies
    share = HEIGHT.pdf(height) * INDEX.pdf(value / (height / 100) ** 2) / height**2
    X = pd.DataFrame({"height": height, "weight": value})
    return np.average(model.predict(X), weights=share)


def draw_people(ax, X, height):
    """Draw people, and the weights that each measure combines with a height."""
    near = X["weight"][(X["height"] - height).abs() < 2]
    ax.plot(X["height"], X["weight"], ".", color="0.65", markersize=3)
    for name, weights, width, words in (
        ("PartialDependence", X["weight"], 2, "all weights"),
        ("Conditional", near, 5, f"weights at {height} cm"),
    ):
        ax.vlines(height, weights.min(), weights.max(), color=COLOURS[name], linewidth=width)
        ax.text(height - 2, weights.max(), f"{name}:\n{words}", color=COLOURS[name], ha="right",
                va="top", fontsize=9)  # fmt: skip
    ax.set(title=f"who has a height of {height} cm?", xlabel="height, cm", ylabel="weight, kg")
    ax.set_xlim(118, None)


def draw_curve(ax, explainer, model, column, values):
    """Draw both curves of a column and the truth; return them as a table."""
    table = {name: each.curve(column)(values) for name, each in explainer.items()}
    table["truth"] = [true_expectation(model, column, t) for t in values]
    ax.plot(values, table["truth"], color="0.15", linestyle=(0, (4, 2)), label="truth", zorder=3)
    for name in explainer:
        ax.plot(values, table[name], color=COLOURS[name], drawstyle="steps-mid", label=name)
    return pd.DataFrame(table, index=pd.Index(values, name=column))


def main(path):
    """Fit the model, draw the curves, and print the errors."""
    X = people(3000, seed=0)
    index = X["weight"] / (X["height"] / 100) ** 2
    noise = np.random.default_rng(1).normal(0, 1, len(X))
    y = 10 + 3 * np.clip(np.abs(index - 24) - 1, 0, None) + noise
    model = HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(X, y)
    explainer = {
        "PartialDependence": MeasureExplainer(model, PartialDependence()).fit(X),
        "Conditional": MeasureExplainer(model, Conditional()).fit(X),
    }

    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.8), constrained_layout=True)
    draw_people(left, X[:600], 157)
    for ax, column, unit in ((middle, "height", "cm"), (right, "weight", "kg")):
        values = np.linspace(*RANGES[column], 161)
        table = draw_curve(ax, explainer, model, column, values)
        print(table.iloc[::20].round(1).to_string(), end="\n\n")
        error = table.sub(table["truth"], axis=0)[list(explainer)].pow(2).mean().pow(0.5)
        print(f"Root mean square error, {column}:", *(f"{n} {e:.2f}" for n, e in error.items()),
              sep="  ", end="\n\n")  # fmt: skip
        ax.set(title=f"expected risk given the {column}", xlabel=f"{column}, {unit}")
    middle.set(ylabel="risk", ylim=right.get_ylim())
    middle.legend(frameon=False)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, dpi=110)
    print(f"The picture is {path}.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "correlated_features.png")
