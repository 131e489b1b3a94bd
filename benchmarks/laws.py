"""Four laws of six dependent columns, a model on each, and E[f(X) | X_j = t] by simulation.

A law draws rows, and rows given X_j = t: `given(j, t, u)` maps points u of the unit cube to rows of
the conditional law. With scrambled Sobol points the truth is a mean of f over exact draws. Nothing
here uses skattr.
"""

import numpy as np
import pandas as pd
from scipy.special import expit, ndtri
from scipy.stats import norm, qmc
from sklearn.ensemble import HistGradientBoostingRegressor

D = 6
N_LEVELS = {3: 3, 4: 5, 5: 8}  # column of `Mixed` -> how many
TRAIN = 20_000  # rows the model is trained on
NODES = 201  # of each latent variable, from -5 to 5; steps are far finer than any column's noise


def normal(u):
    """Return normal quantiles; a Sobol point may be 0."""
    return ndtri(np.clip(u, 2.0**-40, 1 - 2.0**-40))


def smooth_target(X):
    """Return (n,): a kink, a step, a wave and interactions of six columns of about unit size.

    y = x0 + |x1| + x2 1[x3 > 0] + x4 sin(2 x5) + x0 x3 / 2.
    """
    x = X.T
    wave = x[4] * np.sin(2 * x[5])
    return x[0] + np.abs(x[1]) + x[2] * (x[3] > 0) + wave + x[0] * x[3] / 2


class Gaussian:
    """Standard normal columns, each pair with correlation ρ.

    Given X_j = t the others are ρ t + √(ρ(1 − ρ)) W + √(1 − ρ) ε_k, W and ε standard normal.
    """

    n_uniforms = D

    def __init__(self, rho=0.7):
        self.rho = rho

    def draw(self, n, rng):
        """Return n rows."""
        common, own = rng.standard_normal((n, 1)), rng.standard_normal((n, D))
        return np.sqrt(self.rho) * common + np.sqrt(1 - self.rho) * own

    def given(self, j, t, u):
        """Return a row of the law given X_j = t for each point of u (p, 6)."""
        z = normal(u)
        common = self.rho * t + np.sqrt(self.rho * (1 - self.rho)) * z[:, :1]
        others = common + np.sqrt(1 - self.rho) * z[:, 1:]
        return np.insert(others, j, t, axis=1)

    target = staticmethod(smooth_target)


class Mixture:
    """Three Gaussians, with shares .5, .3, .2 and different means and correlations.

    The first has pairwise correlation .5, the second ±.6 (the sign changes from column to column)
    and standard deviation .7, the third is round with standard deviation .5. Given X_j = t the
    shares are ∝ π_c N(t; m_cj, s_cj²), and each component is the Gaussian given its coordinate.
    """

    n_uniforms = D
    shares = np.array([0.5, 0.3, 0.2])
    means = np.array(
        [[-1.0, -1, 0, 0, 1, 1], [1.5, 0, 1.5, -1.5, 0, -1], [0, 1.5, -1.5, 1.5, -1, 0]]
    )

    def __init__(self):
        signs = np.array([1, -1, 1, -1, 1, -1])
        alternate = 0.6 * np.outer(signs, signs) + 0.4 * np.eye(D)
        self.covariances = [
            0.5 * np.ones((D, D)) + 0.5 * np.eye(D), 0.49 * alternate, 0.25 * np.eye(D)
        ]  # fmt: skip

    def draw(self, n, rng):
        """Return n rows."""
        component = rng.choice(3, n, p=self.shares)
        X, z = np.empty((n, D)), rng.standard_normal((n, D))
        for c, covariance in enumerate(self.covariances):
            rows = component == c
            X[rows] = self.means[c] + z[rows] @ np.linalg.cholesky(covariance).T
        return X

    def given(self, j, t, u):
        """Return a row of the law given X_j = t for each point of u (p, 6)."""
        scales = np.sqrt([covariance[j, j] for covariance in self.covariances])
        shares = self.shares * norm.pdf(t, self.means[:, j], scales)
        component = np.searchsorted(np.cumsum(shares / shares.sum())[:-1], u[:, 0], side="right")
        others = [k for k in range(D) if k != j]
        X, z = np.full((len(u), D), float(t)), normal(u[:, 1:])
        for c, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            rows = component == c
            slope = covariance[others, j] / covariance[j, j]
            rest = covariance[np.ix_(others, others)] - np.outer(slope, covariance[j, others])
            centre = mean[others] + slope * (t - mean[j])
            X[np.ix_(rows, others)] = centre + z[rows] @ np.linalg.cholesky(rest).T
        return X

    target = staticmethod(smooth_target)


class Latent:
    """Columns that are independent given two standard normal latent variables Z = (a, b).

    A subclass says what column k is given Z: `likelihood(k, t, a, b)`, its density or probability
    at t, and `column(k, a, b, u)`, its quantile at u. Given X_j = t, Z has density ∝ the normal one
    times the likelihood, on a grid of 201 × 201 nodes: a is drawn from its marginal by the first
    coordinate of u, b given a by the second, then the other columns given Z.
    """

    n_uniforms = D + 2

    def __init__(self):
        nodes = np.linspace(-5, 5, NODES)
        self._a, self._b = np.repeat(nodes, NODES), np.tile(nodes, NODES)
        self._prior = np.exp(-0.5 * (self._a**2 + self._b**2))

    def draw(self, n, rng):
        """Return n rows; Z is not on the grid."""
        a, b = rng.standard_normal((2, n))
        return self._table([self.column(k, a, b, rng.random(n)) for k in range(D)])

    def given(self, j, t, u):
        """Return a row of the law given X_j = t for each point of u (p, 8)."""
        weights = self._prior * self.likelihood(j, t, self._a, self._b)
        total = np.cumsum(weights)  # over b, then over a
        ends = total[NODES - 1 :: NODES]
        strip = np.searchsorted(ends[:-1], u[:, 0] * ends[-1], side="right")
        start = np.append(0.0, ends)[strip]
        place = start + u[:, 1] * (ends[strip] - start)
        node = np.searchsorted(total, place, side="right").clip(strip * NODES, None)
        node = node.clip(None, strip * NODES + NODES - 1)  # rounding stays in the strip
        a, b = self._a[node], self._b[node]
        columns = [
            np.full(len(u), t) if k == j else self.column(k, a, b, u[:, k + 2]) for k in range(D)
        ]
        return self._table(columns)

    def _table(self, columns):
        return np.column_stack(columns)


class Heteroscedastic(Latent):
    """Curves of two latent variables, with noise whose size depends on them.

    X_k = g_k(a, b) + s_k(a, b) ε_k:

    ==  ==========================  =======================
    k   g_k                         s_k
    ==  ==========================  =======================
    0   a                           0.3
    1   a² / 1.4 − 0.7              0.1 + 0.3 expit(2 b)
    2   sin(2 a)                    0.1 + 0.2 |a|
    3   b                           0.1 + 0.5 expit(2 a)
    4   a b                         0.3
    5   exp(b / 2) − 1              0.1 + 0.3 expit(−2 b)
    ==  ==========================  =======================
    """

    target = staticmethod(smooth_target)

    def _moments(self, k, a, b):
        means = (
            lambda: a, lambda: a**2 / 1.4 - 0.7, lambda: np.sin(2 * a),
            lambda: b, lambda: a * b, lambda: np.exp(b / 2) - 1,
        )  # fmt: skip
        scales = (
            lambda: 0.3, lambda: 0.1 + 0.3 * expit(2 * b), lambda: 0.1 + 0.2 * np.abs(a),
            lambda: 0.1 + 0.5 * expit(2 * a), lambda: 0.3, lambda: 0.1 + 0.3 * expit(-2 * b),
        )  # fmt: skip
        return means[k](), scales[k]()

    def likelihood(self, k, t, a, b):
        """Return the density of X_k at t given the latent variables, up to a constant."""
        mean, scale = self._moments(k, a, b)
        return np.exp(-0.5 * ((t - mean) / scale) ** 2) / scale

    def column(self, k, a, b, u):
        """Return the quantile u of X_k given the latent variables."""
        mean, scale = self._moments(k, a, b)
        return mean + scale * normal(u)


class Mixed(Latent):
    """Two numbers, a count and three categories, all tied by two latent variables.

    ``size`` = a + 0.4 ε, ``speed`` = a b + b + (0.2 + 0.3 expit(2 a)) ε, ``count`` binomial of 5
    trials with probability expit(1.5 b), and the categories ``kind``, ``place`` and ``shade`` with
    3, 5 and 8 levels: P(level l | Z) ∝ exp(2 cos θ_l a + 2 sin θ_l b), θ_l evenly spread over the
    circle. They are a pandas frame, the categories of dtype category.
    """

    names = ("size", "speed", "count", "kind", "place", "shade")
    trials = 5

    def _moments(self, k, a, b):
        return (a, 0.4) if k == 0 else (a * b + b, 0.2 + 0.3 * expit(2 * a))

    def _probabilities(self, k, a, b):
        """Return (n, levels) of the count or of a category given the latent variables."""
        if k == 2:
            share, m = expit(1.5 * b)[:, None], np.arange(self.trials + 1)
            choose = np.array([1, 5, 10, 10, 5, 1])
            return choose * share**m * (1 - share) ** (self.trials - m)
        angles = 2 * np.pi * np.arange(N_LEVELS[k]) / N_LEVELS[k]
        score = np.exp(2 * np.outer(a, np.cos(angles)) + 2 * np.outer(b, np.sin(angles)))
        return score / score.sum(axis=1, keepdims=True)

    def likelihood(self, k, t, a, b):
        """Return the density or probability of X_k = t given the latent variables."""
        if k >= 2:
            return self._probabilities(k, a, b)[:, int(t)]
        mean, scale = self._moments(k, a, b)
        return np.exp(-0.5 * ((t - mean) / scale) ** 2) / scale

    def column(self, k, a, b, u):
        """Return the quantile u of X_k given the latent variables; of a category its code."""
        if k >= 2:
            below = np.cumsum(self._probabilities(k, a, b), axis=1)[:, :-1]
            return (u[:, None] >= below).sum(axis=1)
        mean, scale = self._moments(k, a, b)
        return mean + scale * normal(u)

    def levels(self, k):
        """Return the levels of a category."""
        return [f"{self.names[k]} {code}" for code in range(N_LEVELS[k])]

    def _table(self, columns):
        table = {}
        for k, (name, column) in enumerate(zip(self.names, columns, strict=True)):
            if k in N_LEVELS:
                codes = np.asarray(column, np.int8)
                column = pd.Categorical.from_codes(codes, categories=self.levels(k))
            table[name] = np.asarray(column, float) if k < 3 else column
        return pd.DataFrame(table)

    def target(self, X):
        """Return (n,): size, and what the levels and the count do to it and to speed.

        y = size · w(kind) + |speed| + count/2 · 1[place in {0, 2}] + v(shade) + speed · w(place).
        """
        codes = {name: X[name].cat.codes.to_numpy() for name in self.names[3:]}
        size, speed, count = (X[name].to_numpy() for name in self.names[:3])
        kind = np.array([1.5, -0.5, 0.5])[codes["kind"]]
        place = np.array([0.5, -0.5, 1, -1, 0])[codes["place"]]
        shade = np.array([0, 1, -1, 2, 0, -1, 1, -2])[codes["shade"]]
        steps = count / 2 * np.isin(codes["place"], (0, 2))
        return size * kind + np.abs(speed) + steps + shade + speed * place


LAWS = {
    "Gaussian": Gaussian,
    "mixture": Mixture,
    "heteroscedastic": Heteroscedastic,
    "mixed": Mixed,
}


def train(law, seed=0):
    """Return f: boosting on 20 000 rows of the law, with noise of standard deviation 0.3."""
    rng = np.random.default_rng(seed)
    X = law.draw(TRAIN, rng)
    y = law.target(X) + 0.3 * rng.standard_normal(TRAIN)
    model = HistGradientBoostingRegressor(
        max_iter=100, max_leaf_nodes=16, early_stopping=False, random_state=0
    )
    return model.fit(X, y)


def codes_of(X):
    """Return a table as floats, categories as their codes."""
    if isinstance(X, np.ndarray):
        return X
    columns = [X[name] for name in X]
    is_level = [isinstance(column.dtype, pd.CategoricalDtype) for column in columns]
    return np.column_stack(
        [
            column.cat.codes if level else column
            for column, level in zip(columns, is_level, strict=True)
        ]
    ).astype(float)


def concatenate(tables):
    """Return tables of one law below each other."""
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    return pd.concat(tables, ignore_index=True)


def mean_given(law, model, j, values, u):
    """Return E[f(X) | X_j = t] for each t, a mean over the points u."""
    out = np.empty(len(values))
    step = max(1, 200_000 // len(u))
    for start in range(0, len(values), step):
        block = values[start : start + step]
        rows = concatenate([law.given(j, t, u) for t in block])
        out[start : start + step] = model.predict(rows).reshape(len(block), -1).mean(axis=1)
    return out


def truth(law, model, X, n_points, seed=0):
    """Return E[f(X) | X_j = x_ij] of rows, (n, 6), and the mean square of its simulation error.

    Each is the mean over two independent scramblings of the Sobol sequence, n_points each; half
    their difference has the variance of the mean. Equal values are computed once, so a column with
    few of them gets 16 times the points.
    """
    numbers = codes_of(X)
    halves = np.empty((2, *numbers.shape))
    for half in range(2):
        sobol = qmc.Sobol(law.n_uniforms, rng=np.random.default_rng((seed, half)))
        u = sobol.random(16 * n_points)
        for j in range(D):
            values, back = np.unique(numbers[:, j], return_inverse=True)
            points = u if len(values) <= 16 else u[:n_points]
            halves[half, :, j] = mean_given(law, model, j, values, points)[back]
    return halves.mean(axis=0), np.mean((halves[0] - halves[1]) ** 2) / 4
