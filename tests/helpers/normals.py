"""A small measure with the views `centers` and `transport`, and what it gives in closed form."""

import numpy as np
from scipy.stats import norm

from skattr._inputs import frames
from skattr.measures import Expectation, Measure


class Normals(Measure):
    """Independent normals with the background's means and `width` times its deviations."""

    views = ("centers", "transport")
    adds_up = False

    def __init__(self, width=1.0):
        self.width = width

    def _learn(self, background, attributions):
        self.means_, self.deviations_ = moments(background.X, background.weights)

    @property
    def n_uniforms(self):
        """One per column."""
        return len(self.means_)

    def reference(self):
        """Return P."""
        return Expectation()

    def centers(self, X, columns):
        """Return the means, but for the own columns."""
        others = {k: np.full(len(X), m) for k, m in enumerate(self.means_)}
        return _table(X, {**others, **{k: frames.to_float(frames.column(X, k)) for k in columns}})

    def transport(self, u, x, columns):
        """Return quantiles."""
        z = norm.ppf(np.clip(u, 1e-15, 1 - 1e-15))
        drawn = self.means_ + self.width * self.deviations_ * z
        own = {k: np.full(len(u), frames.to_float(frames.column(x, k))[0]) for k in columns}
        return _table(x, {**dict(enumerate(drawn.T)), **own}), None


def _table(like, columns):
    return frames.with_columns(frames.take_rows(like, slice(1)), columns)


def moments(X, weights):
    """Weighted means and standard deviations of the columns."""
    columns = [frames.to_float(frames.column(X, k)) for k in range(len(frames.labels(X)))]
    numbers = np.stack(columns, axis=1)
    share = weights / weights.sum()
    means = share @ numbers
    return means, np.sqrt(share @ (numbers - means) ** 2)


def closed_form(f, X, Z, weights, own, width=1.0):
    """The integrals of f, given as a function of means and variances of independent columns.

    `X` holds the rows explained, `Z` the background; returns (n, g, k).
    """
    means, deviations = moments(Z, weights)
    numbers = np.asarray(X, float)
    result = []
    for row in numbers:
        for columns in own:
            m, v = means.copy(), (width * deviations) ** 2
            m[list(columns)], v[list(columns)] = row[list(columns)], 0.0
            result.append(np.atleast_1d(f(m, v)))
    return np.array(result).reshape(len(numbers), len(own), -1)
