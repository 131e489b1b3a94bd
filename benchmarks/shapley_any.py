"""Shapley values of a black box: our error against shap's at the same number of evaluations.

k-NN, 10 columns, 100 background rows. The truth is the enumeration of all 1024 coalitions, whose
102,400 predictions per explained row are made once: what explainers ask for is looked up among
them, so that repetitions cost what the explainers themselves cost. Errors are root mean squares
over rows, columns and seeds, relative to the spread of f. Coverage is the share of 400 repetitions
in which value ± t · standard error covers the truth.
"""

import sys
from math import comb

import numpy as np
from scipy.stats import t
from sklearn.neighbors import KNeighborsRegressor

from benchmarks.trees import friedman

COLUMNS, BACKGROUND, EXPLAINED = 10, 100, 3
SEEDS = 10
REPETITIONS = 400
REPLICATES = 16
PASS = 2 * (COLUMNS - 1) * BACKGROUND  # evaluations of a replicate that uses every row once
BUDGETS = (REPLICATES * PASS, 2 * REPLICATES * PASS, 3 * REPLICATES * PASS)


class Remembered:
    """Predictions of all rows that coalitions mix, and a count of the rows that were asked for.

    A row has the columns of a coalition from one explained row and the others from one background
    row. All values of a column are different, so that a value tells the row it comes from.
    """

    def __init__(self, predict, Z, X):
        m, d = Z.shape
        self.members = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1  # (coalitions, d)
        self.worths = np.empty((len(X), 2**d, m))
        for i, x in enumerate(X):
            for s, members in enumerate(self.members):
                self.worths[i, s] = predict(np.where(members, x, Z))
        both = np.concatenate([Z, X])
        self.order = both.argsort(axis=0)
        self.sorted = np.take_along_axis(both, self.order, axis=0)
        self.m, self.count = m, 0

    def __call__(self, X):
        """Return predictions."""
        X = np.asarray(X)
        self.count += len(X)
        origin = np.empty(X.shape, np.int64)  # the row that each value comes from
        for j, values in enumerate(self.sorted.T):
            at = np.searchsorted(values, X[:, j])
            assert np.array_equal(values[at], X[:, j])
            origin[:, j] = self.order[at, j]
        explained = origin >= self.m
        i = np.maximum(origin.max(axis=1) - self.m, 0)  # any row, if the coalition has no column
        r = np.where(explained, self.m - 1, origin).min(axis=1)
        return self.worths[i, explained @ (1 << np.arange(X.shape[1])), r]

    def values(self):
        """Return the Shapley values of the explained rows, by the definition."""
        worths, d = self.worths.mean(axis=2), self.members.shape[1]
        sizes = self.members.sum(axis=1)
        values = np.empty((len(worths), d))
        for j in range(d):
            without = np.flatnonzero(~self.members[:, j])
            weights = np.array([1 / (d * comb(d - 1, size)) for size in sizes[without]])
            values[:, j] = (worths[:, without + 2**j] - worths[:, without]) @ weights
        return values


def ours(f, Z, X, budget, seed):
    """Return values and standard errors of sampled coalitions."""
    from skattr import MeasureExplainer

    explainer = MeasureExplainer(
        f, "shapley", engine="sampled_coalitions", max_evals=budget, tol=1e-9, random_state=seed,
        verbose=0,
    ).fit(Z)  # fmt: skip
    f.count = 0
    found = explainer.explain(X, predictions=False)
    return found.values, found.std_error


def shap_permutation(f, Z, X, budget, seed):
    """Return the values of shap's permutation explainer."""
    import shap

    explainer = shap.explainers.Permutation(f, shap.maskers.Independent(Z, len(Z)), seed=seed)
    f.count = 0
    # its `max_evals` counts coalitions: 2 d + 1 for each permutation and its reverse
    return explainer(X, max_evals=budget // len(Z), silent=True).values


def shap_kernel(f, Z, X, budget, seed):
    """Return the values of shap's kernel explainer."""
    import shap

    explainer = shap.KernelExplainer(f, Z)
    np.random.seed(seed)  # noqa: NPY002 (it has no other)
    f.count = 0
    options = {"nsamples": budget // len(Z), "l1_reg": False, "silent": True}
    return explainer.shap_values(X, **options)


def problem():
    """Return the model, the background, the explained rows, and the exact values."""
    X, y = friedman(2000)
    model = KNeighborsRegressor().fit(X, y)
    Z, Q = X[:BACKGROUND], X[BACKGROUND : BACKGROUND + EXPLAINED]
    f = Remembered(model.predict, Z, Q)
    return f, Z, Q, f.values()


def show_errors(problem):
    """Print errors at the same number of evaluations."""
    f, Z, Q, truth = problem
    spread = f(Z).std()
    print(f"{'evaluations per row':>20} {'':>18} {'used':>8} {'error / spread':>15}")
    for budget in BUDGETS:
        for name, method in METHODS.items():
            errors = []
            for seed in range(SEEDS):
                found = method(f, Z, Q, budget, seed)
                values = found[0] if isinstance(found, tuple) else found
                errors.append(values - truth)
            error = np.sqrt(np.mean(np.square(errors))) / spread
            used = f.count // len(Q)
            print(f"{budget:20,} {name:>18} {used:8,} {error:15.5f}", flush=True)
            if method is ours:  # it evaluates nothing twice, and may stop before the budget
                budget = used


def show_coverage(problem):
    """Print how often the standard error covers the truth, for each column of each row."""
    f, Z, Q, truth = problem
    hits = []
    for seed in range(REPETITIONS):
        values, errors = ours(f, Z, Q, BUDGETS[0], seed)
        hits.append(np.abs(values - truth) <= t.ppf(0.975, REPLICATES - 1) * errors)
    print(
        f"coverage of 95 % intervals in {REPETITIONS} repetitions, at {BUDGETS[0]:,} evaluations:"
    )
    for row, share in enumerate(np.mean(hits, axis=0)):
        least, most = share.min(), share.max()
        print(f"row {row}: least {least:.3f}, mean {share.mean():.3f}, most {most:.3f}")


METHODS = {"skattr": ours, "shap permutation": shap_permutation, "shap kernel": shap_kernel}


def main(arguments=()):
    """Print errors and coverage."""
    import warnings

    warnings.simplefilter("ignore")  # of values that stop at max_evals
    asked = problem()
    show_errors(asked)
    if "--no-coverage" not in arguments:
        show_coverage(asked)


if __name__ == "__main__":
    main(sys.argv[1:])
