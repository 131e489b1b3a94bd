"""One hidden layer, Gaussian mixture given X_j: closed forms against Monte Carlo.

d = 100 columns, 100 units, 5 components with full covariances. Monte Carlo draws from the learned
law given X_j = t (the Cholesky factors of the conditional covariances are computed beforehand) and
averages f in batches, until its standard error is 1e-3 of the spread of f; both on one thread.
The number of draws is the variance of f given t over (1e-3 · spread)².
"""

import warnings

import numpy as np
from sklearn.neural_network import MLPRegressor

from benchmarks.timing import Limit, Table, best, summarize
from skattr import MeasureExplainer
from skattr.measures import Conditional

D, UNITS, COMPONENTS = 100, 100, 5
ROWS, EXPLAINED = 4000, 200
BATCH = 8192
ERROR = 1e-3


def data(seed=0):
    """Return rows of five correlated clusters."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, COMPONENTS, ROWS)
    X = np.empty((ROWS, D))
    for c in range(COMPONENTS):
        rows = which == c
        factor = np.eye(D) + 0.5 * rng.normal(size=(D, D)) / np.sqrt(D)
        X[rows] = 2 * rng.normal(size=D) + rng.normal(size=(rows.sum(), D)) @ factor.T
    return X


def network(X, seed=0):
    """Return a perceptron with random weights."""
    rng = np.random.default_rng(seed)
    model = MLPRegressor(hidden_layer_sizes=(UNITS,), max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:64], X[:64, 0])
    model.coefs_ = [rng.normal(size=(D, UNITS)) / np.sqrt(D), rng.normal(size=(UNITS, 1)) / 10]
    model.intercepts_ = [rng.normal(size=UNITS), np.zeros(1)]
    return model


class MonteCarlo:
    """Draws of the learned law given X_j."""

    def __init__(self, model, family, j):
        self.W, self.b = model.coefs_[0], model.intercepts_[0]
        self.v, self.c = model.coefs_[1][:, 0], model.intercepts_[1][0]
        self.family, self.j = family, j
        self.others = np.delete(np.arange(D), j)
        self.laws = []
        for law in family.components:
            S = np.outer(law.scale, law.scale) * law.correlation
            slope = S[self.others, j] / S[j, j]
            left = S[np.ix_(self.others, self.others)] - np.outer(slope, S[j, self.others])
            self.laws.append((law.mean, slope, np.linalg.cholesky(left).T))

    def draw(self, t, rng, n=BATCH):
        """Return f at n draws."""
        shares = self.family.shares(np.array([[t]]), [self.j])[0]
        counts = rng.multinomial(n, shares)
        values = []
        for (mean, slope, factor), count in zip(self.laws, counts, strict=True):
            others = mean[self.others] + slope * (t - mean[self.j])
            z = (others + rng.standard_normal((count, D - 1)) @ factor) @ self.W[self.others]
            z += t * self.W[self.j] + self.b
            values.append(np.maximum(z, 0, out=z) @ self.v + self.c)
        return np.concatenate(values)


def show(options=None):
    """Print the time of an attribution both ways, and how far they are apart."""
    X = data()
    model = network(X)
    measure = Conditional("gmm", n_components=COMPONENTS, covariance="full")
    explainer = MeasureExplainer(model, measure, engine="exact").fit(X)
    rows = X[:EXPLAINED]
    values = explainer.explain(rows, predictions=False).values
    ours = best(lambda: explainer.explain(rows, predictions=False), repeat=5) / values.size
    spread = model.predict(X).std()
    family, rng = explainer.measure_.family_, np.random.default_rng(1)
    times, needed, gaps = [], [], []
    for i in range(3):
        t, peer = rows[i, i], MonteCarlo(model, family, i)
        draws = np.concatenate([peer.draw(t, rng) for _ in range(20)])
        needed.append(draws.var() / (ERROR * spread) ** 2)
        gaps.append(abs(draws.mean() - values[i, i]) / (draws.std() / np.sqrt(len(draws))))
        times.append(best(lambda t=t, peer=peer: peer.draw(t, rng), repeat=5) / BATCH * needed[-1])
    table = Table("one attribution", ["closed form", "Monte Carlo", "ratio"])
    ratio = float(np.mean(times) / ours)
    table.add("seconds", [ours, float(np.mean(times)), ratio], [None, None, Limit("≥", 1e5)])
    checks = table.show()
    table = Table("Monte Carlo", ["draws", "its distance from the closed form, standard errors"])
    table.add("mean of 3 values", [float(np.mean(needed)), float(np.max(gaps))],
              [None, Limit("≤", 4)])  # fmt: skip
    return [*checks, *table.show()]


if __name__ == "__main__":
    summarize(show())
