"""A measure of your own in ten lines, on a kernel machine and on a torch network.

The question: what would this prediction gain or lose, if a column moved by one standard deviation,
up and down, the others as they are? That is a difference of two predictions, so it is linear in f,
so it is a measure: two points with the weights ½ and -½ for each column. `Atoms` takes a function
that builds them. The same question asked of all neighbours at once, weighted by a Gaussian window,
has a density instead: `Density` takes that.

Run it as it is: python examples/custom_measure.py (the network needs torch)
"""

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
    """Print what each measure says of a few patients."""
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
