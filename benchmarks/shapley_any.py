"""Shapley values of a black box: our error against shap's at the same number of evaluations.

k-NN, 10 columns, 100 background rows. The truth is the enumeration of all 1022 coalitions, 102,200
evaluations. Errors are root mean squares over rows, columns and seeds, relative to the spread of f.
Coverage is the share of 400 repetitions in which value ± t · standard error covers the truth.
"""

import sys

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


class Counted:
    """A model that counts the rows it is asked for."""

    def __init__(self, model):
        self.model, self.count = model, 0

    def __call__(self, X):
        """Return predictions."""
        self.count += len(X)
        return self.model.predict(np.asarray(X))


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
    from skattr import MeasureExplainer

    X, y = friedman(2000)
    f = Counted(KNeighborsRegressor().fit(X, y))
    Z, Q = X[:BACKGROUND], X[BACKGROUND : BACKGROUND + EXPLAINED]
    exact = MeasureExplainer(f, "shapley", engine="exact", max_evals=10**6, verbose=0).fit(Z)
    return f, Z, Q, exact.explain(Q).values


def show_errors():
    """Print errors at the same number of evaluations."""
    f, Z, Q, truth = problem()
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
            print(f"{budget:20,} {name:>18} {f.count // len(Q):8,} {error:15.5f}")


def show_coverage():
    """Print how often the standard error covers the truth, for the columns of one row."""
    f, Z, Q, truth = problem()
    hits = []
    for seed in range(REPETITIONS):
        values, errors = ours(f, Z, Q[:1], BUDGETS[0], seed)
        hits.append(np.abs(values - truth[:1]) <= t.ppf(0.975, REPLICATES - 1) * errors)
    share = np.mean(hits, axis=0)
    print(
        f"coverage of 95 % intervals in {REPETITIONS} repetitions, at {BUDGETS[0]:,} evaluations:"
    )
    print(f"least {share.min():.3f}, mean {share.mean():.3f}, most {share.max():.3f}")


METHODS = {"skattr": ours, "shap permutation": shap_permutation, "shap kernel": shap_kernel}


def main(arguments=()):
    """Print errors and coverage."""
    import warnings

    warnings.simplefilter("ignore")  # of values that stop at max_evals
    show_errors()
    if "--no-coverage" not in arguments:
        show_coverage()


if __name__ == "__main__":
    main(sys.argv[1:])
