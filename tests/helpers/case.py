"""A case: a fitted estimator with rows to learn from and to explain, and f by its own methods."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from tests.oracle import columns

EVERYTHING = ("rows", "columns", "box", "corner", "neighbours", "nothing")


@dataclass
class Case:
    """A fitted estimator with background rows, rows to explain and f."""

    estimator: object
    f: Callable
    background: object
    X: object
    levels: set = field(default_factory=set)  # columns that the model declares categorical
    finite: bool = True  # no ±inf in the background
    draw: Callable | None = None  # (rng, n) -> more rows of the same kind
    breaks: list | None = None  # for each column where f jumps or bends, if that is known
    nodes: int = 1  # with which Gauss-Legendre sums of f between breaks are exact
    over: tuple = EVERYTHING  # what f has exact integrals over: see `cases.MEASURES`

    @property
    def n_columns(self):
        """Number of raw columns."""
        return len(columns(self.X))


def smooth_case(estimator, background, X, f=None, levels=()):
    """A case of a model without bends; f is what its own `predict` says if it is not given."""
    bends = [[]] * background.shape[1]
    f = f or partial(predict, estimator)
    return Case(estimator, f, background, X, set(levels), breaks=bends, nodes=32)


def seed_of(rng):
    """A random_state for scikit-learn."""
    return int(rng.integers(2**31))


# -- f: what output="auto" explains --------------------------------------------------------------


def predict(model, X):
    """The prediction of a regressor, (n, k)."""
    return model.predict(X).reshape(len(X), -1)


def log(model, X):
    """The logarithm of the prediction, (n, 1)."""
    return np.log(predict(model, X))


def logit(model, X):
    """The logit of the positive class of two, (n, 1)."""
    absent, present = model.predict_proba(X).T
    return np.log(present / absent)[:, None]


def raw(model, X):
    """The prediction of HistGradientBoosting on the scale of its link, (n, 1)."""
    return model._raw_predict(X)


def margin(model, X):
    """The decision function, (n, 1) for two classes."""
    return model.decision_function(X).reshape(len(X), -1)


def proba(model, X):
    """Probabilities: the positive class of two, else all; targets side by side."""
    answer = model.predict_proba(X)
    targets = answer if isinstance(answer, list) else [answer]
    return np.hstack([p[:, 1:] if p.shape[1] == 2 else p for p in targets])
