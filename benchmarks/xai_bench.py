"""Faithfulness on correlated data: ``python -m benchmarks conditional --faithfulness``.

Six standard normal columns with pairwise correlation .9, gradient boosting on them. The changes of
the expected prediction come from the true law, not from what any method has learned: E[f | X_j] by
quasi-random points of the exact conditional law, E[f | X_−j] by 256 quantiles of X_j given the
others, which is normal.
"""

import importlib.util
from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from sklearn.ensemble import GradientBoostingRegressor

from benchmarks.laws import D, Gaussian, truth
from benchmarks.timing import Table, at_least

RHO = 0.9
BACKGROUND, TRAIN = 1000, 10_000
LIMIT = 0.9  # of inc, for the conditional measure


def redrawn(model, X, n_points=256):
    """Return E[f(X) | X_−j = x_−j] of rows, (n, 6), for the equicorrelated normal law."""
    share = RHO / (1 + (D - 2) * RHO)  # of each other column in the mean of X_j
    scale = np.sqrt(1 - (D - 1) * RHO * share)
    quantiles = ndtri((np.arange(n_points) + 0.5) / n_points)
    out = np.empty(X.shape)
    for j in range(D):
        mean = share * (X.sum(axis=1) - X[:, j])
        points = np.repeat(X, n_points, axis=0)
        points[:, j] = (mean[:, None] + scale * quantiles).ravel()
        out[:, j] = model.predict(points).reshape(len(X), -1).mean(axis=1)
    return out


def shap_explanations(model, X, explanation):
    """Return {name: explanation} of shap's values, where shap is installed."""
    if importlib.util.find_spec("shap") is None:
        return {"shap, interventional": None, "shap, path-dependent": None}
    import shap

    rows = explanation.data
    found = {
        "shap, interventional": shap.TreeExplainer(
            model, shap.maskers.Independent(X, max_samples=len(X))
        ),
        "shap, path-dependent": shap.TreeExplainer(model),
    }
    return {
        name: replace(
            explanation, values=each.shap_values(rows), offset=0.0, engine=("shap",), measure=name
        )
        for name, each in found.items()
    }


def our_explanations(model, X, rows):
    """Return {name: (explanation, explainer)} of our measures."""
    from skattr import MeasureExplainer
    from skattr.measures import Conditional, PartialDependence

    found = {}
    for name, measure in {
        "conditional": Conditional(),
        "partial dependence": PartialDependence(),
    }.items():
        explainer = MeasureExplainer(model, measure=measure).fit(X)
        found[f"{name}, centred"] = explainer.explain(rows), explainer
    return found


def show_faithfulness(options):
    """Print inc and dec of each method; return the checks."""
    from skattr.metrics import faithfulness

    law, rng = Gaussian(RHO), np.random.default_rng(0)
    train = law.draw(TRAIN, rng)
    y = law.target(train) + 0.3 * rng.standard_normal(TRAIN)
    model = GradientBoostingRegressor(n_estimators=100, max_depth=4, random_state=0).fit(train, y)
    X = law.draw(BACKGROUND, rng)
    rows = law.draw(50 if options.quick else 200, rng)
    known, noise = truth(law, model, rows, 256 if options.quick else 1024)
    everywhere = model.predict(law.draw(200_000, rng))
    print(f"simulation error of E[f | X_j] ÷ spread: {np.sqrt(noise) / everywhere.std():.1e}")
    changes = {
        "inc": known - everywhere.mean(),
        "dec": model.predict(rows)[:, None] - redrawn(model, rows),
    }
    ours = our_explanations(model, X, rows)
    explanation, explainer = next(iter(ours.values()))
    judged = {name: each for name, (each, _) in ours.items()}
    judged |= shap_explanations(model, X, explanation)
    title = f"faithfulness, {len(rows)} rows, ρ = {RHO}"
    table = Table(title, ["inc", "dec", "inc, learned", "undefined"])
    for name, each in judged.items():
        if each is None:
            table.add(f"{name} (not installed)", [None] * 4)
            continue
        results = [
            faithfulness(each, explainer, kind=kind, truth=changes[kind]) for kind in changes
        ]
        # as a user computes it, from the background alone
        results.append(faithfulness(each, explainer, X))
        values = [result.mean for result in results]
        undefined = sum(result.undefined for result in results)
        limits = [*at_least(LIMIT), None, None, None] if name.startswith("conditional") else None
        table.add(name, [*values, undefined], limits)
    return table.show()
