"""A measure of your own
=====================

A measure of your own in ten lines, on a kernel machine and on a torch network.

By how much does a prediction change if one column moves up and down by a standard deviation, and
the others stay as they are? This difference of two predictions is linear in f, so it is given by a
measure: two points per column, with the weights ½ and -½. `Atoms` takes a function that builds
them. Averaged over all neighbours, weighted by a Gaussian window, the measure has a density, which
`Density` takes.

Run it: python examples/custom_measure.py (the network needs torch)
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/custom_measure.png"

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skattr import MeasureExplainer
from skattr.measures import Atoms, Density

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["bmi", "bp", "s5"]]
STEP = X.std().to_numpy()


def up_and_down(x):
    """½ f(x + a step in column j) - ½ f(x - a step in column j)."""
    steps = np.diag(STEP)
    points = np.vstack([x + steps, x - steps])
    return points, np.hstack([np.eye(3), -np.eye(3)]) / 2


def window(y, x, j):
    """Return the derivative of a Gaussian window of one step around x, times that step."""
    u = (y - x) / STEP
    return u[..., j] * np.exp(-(u**2).sum(axis=-1) / 2) / np.prod(STEP * np.sqrt(2 * np.pi))


def network():
    """Return a small torch network that learned the data, or None without torch."""
    try:
        import torch
    except ImportError:
        return None
    torch.manual_seed(0)
    inputs = torch.tensor(X.to_numpy() / STEP, dtype=torch.float32)
    targets = torch.tensor((y.to_numpy() - y.mean()) / y.std(), dtype=torch.float32)[:, None]
    module = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    learner = torch.optim.Adam(module.parameters(), 0.02)
    for _ in range(200):
        learner.zero_grad()
        torch.nn.functional.mse_loss(module(inputs), targets).backward()
        learner.step()
    with torch.no_grad():
        module[0].weight /= torch.tensor(STEP, dtype=torch.float32)
    return module.eval()


def main():
    """Print the attributions of a few patients under each measure."""
    models = {
        "SVR": make_pipeline(StandardScaler(), SVR(C=100)).fit(X, y),
        "torch network": network(),
    }
    for name, model in models.items():
        if model is None:
            print("\ntorch is not installed: no network")
            continue
        for measure in (Atoms(up_and_down), Density(window)):
            explainer = MeasureExplainer(model, measure, tol=0.02, random_state=0).fit(X)
            explanation = explainer.explain(X[:4])
            how = "exact" if explanation.exact else f"error {explanation.std_error.max():.2g}"
            print(f"\n{name}, {measure!r}: {explainer.engine_[0]}, {how}")
            print(explanation.to_frame().round(2))


if __name__ == "__main__":
    main()
