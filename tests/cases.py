"""The tables of models and of measures: every model is tested with every measure.

`CASES` maps a name to a builder ``rng -> Case``: a small random model, data that is hard for it,
and f. `make_case(name, seed)` calls it once. ``Case.f`` is what ``output="auto"`` explains, as
(n, k), by the model's own methods and nothing else. Where f jumps or bends is read from the fitted
steps; measures with a density are left out where it is not known.

`MEASURES` has one line for each measure, `COALITIONS` for those made of coalitions; `oracle.py` has
their definitions.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import cycle

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    ARDRegression,
    BayesianRidge,
    ElasticNetCV,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LassoLars,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskLasso,
    OrthogonalMatchingPursuit,
    Perceptron,
    PoissonRegressor,
    QuantileRegressor,
    RANSACRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TheilSenRegressor,
    TweedieRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from skattr.measures import (
    ALE,
    Banzhaf,
    Baseline,
    Coefficient,
    Conditional,
    Dirac,
    Expectation,
    MarginalEffect,
    PartialDependence,
    ProductMarginal,
    Removal,
    ScaledCoefficient,
    Shapley,
    Uniform,
)
from tests.helpers.case import log, logit, margin, predict, proba, raw
from tests.helpers.networks import given_weights
from tests.helpers.smooth import DENSE, behind_steps
from tests.helpers.trees import (
    bagged,
    bagging_without_a_class,
    boosting_settings,
    forest_missing_or_not,
    forest_settings,
    frame_with_booleans,
    hist_categories,
    hist_codes,
    hist_missing_or_not,
    hist_monotonic,
    hist_settings,
    hist_strings,
    of,
    plain,
    subspace,
    tree_settings,
    voting_regressor,
    voting_soft,
)
from tests.oracle import columns, is_polars, numeric

# -- models --------------------------------------------------------------------------------------

_tree, _forest, _boost, _hist = tree_settings, forest_settings, boosting_settings, hist_settings
_bag_hist = of(HistGradientBoostingRegressor, _hist)

TREES = {
    "tree": partial(plain, of(DecisionTreeRegressor, _tree), predict),
    "tree binary": partial(plain, of(DecisionTreeClassifier, _tree), proba, classes=2),
    "tree multiclass": partial(plain, of(DecisionTreeClassifier, _tree), proba, classes=3),
    "tree targets": partial(plain, of(DecisionTreeRegressor, _tree), predict, targets=2),
    "extra tree": partial(plain, of(ExtraTreeRegressor, _tree), predict),
    "extra tree class targets": partial(
        plain, of(ExtraTreeClassifier, _tree), proba, classes=2, targets=2
    ),
    "forest": partial(plain, of(RandomForestRegressor, _forest), predict),
    "forest binary": partial(plain, of(RandomForestClassifier, _forest), proba, classes=2),
    "forest multiclass": partial(plain, of(RandomForestClassifier, _forest), proba, classes=3),
    "forest targets": partial(plain, of(RandomForestRegressor, _forest), predict, targets=2),
    "forest class targets": partial(
        plain, of(RandomForestClassifier, _forest), proba, classes=2, targets=2
    ),
    "forest missing or not": forest_missing_or_not,
    "forest booleans": frame_with_booleans,
    "extra trees": partial(plain, of(ExtraTreesRegressor, _forest), predict),
    "extra trees binary": partial(plain, of(ExtraTreesClassifier, _forest), proba, classes=2),
    "boosting": partial(plain, of(GradientBoostingRegressor, _boost), predict, missing=False),
    "boosting from zero": partial(
        plain, of(GradientBoostingRegressor, _boost, init="zero"), predict, missing=False
    ),
    "boosting binary": partial(
        plain, of(GradientBoostingClassifier, _boost), margin, classes=2, missing=False
    ),
    "boosting multiclass": partial(
        plain, of(GradientBoostingClassifier, _boost), margin, classes=3, missing=False
    ),
    "boosting exponential": partial(
        plain,
        of(GradientBoostingClassifier, _boost, loss="exponential"),
        margin,
        classes=2,
        missing=False,
    ),
    "hist": partial(plain, of(HistGradientBoostingRegressor, _hist), predict, infinite=True),
    "hist binary": partial(
        plain, of(HistGradientBoostingClassifier, _hist), margin, classes=2, infinite=True
    ),
    "hist multiclass": partial(
        plain, of(HistGradientBoostingClassifier, _hist), margin, classes=3, infinite=True
    ),
    "hist poisson": partial(
        plain, of(HistGradientBoostingRegressor, _hist, loss="poisson"), raw, positive=True
    ),
    "hist monotonic": hist_monotonic,
    "hist missing or not": hist_missing_or_not,
    "hist categories": hist_categories,
    "hist categories multiclass": partial(hist_categories, classes=3),
    "hist categories polars": partial(hist_categories, kind="polars"),
    "hist categories in objects": partial(hist_categories, kind="object"),
    "hist strings": hist_strings,
    "hist codes": hist_codes,
    "hist codes binary": partial(hist_codes, classes=2),
    "bagging": partial(subspace, BaggingRegressor, of(DecisionTreeRegressor, _tree), predict),
    "bagging binary": partial(
        subspace, BaggingClassifier, of(ExtraTreeClassifier, _tree), proba, classes=2
    ),
    "bagging hist": partial(subspace, BaggingRegressor, _bag_hist, predict),
    "bagging codes": partial(hist_codes, wrap=bagged),
    "bagging without a class": bagging_without_a_class,
    "voting": partial(plain, voting_regressor, predict),
    "voting soft": partial(plain, voting_soft, proba, classes=3),
    "voting categories": partial(
        hist_categories,
        wrap=lambda model: VotingRegressor([("a", model), ("b", model)], weights=[1, 3]),
    ),
}


linear = behind_steps
LINEAR = {
    "linear": partial(linear, LinearRegression, predict, "number"),
    "ridge targets": partial(linear, Ridge, predict, "targets"),
    "ridge CV": partial(linear, RidgeCV, predict, "number"),
    "ridge binary": partial(linear, RidgeClassifier, margin, "binary"),
    "lasso": partial(linear, Lasso, predict, "number"),
    "lasso targets": partial(linear, MultiTaskLasso, predict, "targets"),
    "lasso by angles": partial(linear, LassoLars, predict, "number", steps=DENSE),
    "elastic net CV": partial(linear, ElasticNetCV, predict, "number"),
    "matching pursuit": partial(linear, OrthogonalMatchingPursuit, predict, "number", steps=DENSE),
    "bayesian ridge": partial(linear, BayesianRidge, predict, "number", steps=DENSE),
    "relevance": partial(linear, ARDRegression, predict, "number", steps=DENSE),
    "huber": partial(linear, HuberRegressor, predict, "number"),
    "quantile": partial(linear, QuantileRegressor, predict, "number"),
    "theil sen": partial(
        linear, partial(TheilSenRegressor, max_subpopulation=200), predict, "number", steps=DENSE
    ),
    "ransac": partial(linear, RANSACRegressor, predict, "number"),
    "sgd": partial(linear, SGDRegressor, predict, "number"),
    "sgd multiclass": partial(linear, SGDClassifier, margin, "classes"),
    "poisson": partial(linear, PoissonRegressor, log, "positive"),
    "gamma": partial(linear, GammaRegressor, log, "positive"),
    "tweedie": partial(linear, TweedieRegressor, predict, "number"),
    "logistic binary": partial(linear, LogisticRegression, margin, "binary"),
    "logistic CV": partial(linear, LogisticRegressionCV, margin, "classes"),
    "perceptron": partial(linear, Perceptron, margin, "classes"),
    "linear SVR": partial(linear, LinearSVR, predict, "number"),
    "linear SVC": partial(linear, LinearSVC, margin, "classes"),
    "discriminant": partial(linear, LinearDiscriminantAnalysis, margin, "classes", steps=DENSE),
}

kernels = partial(behind_steps, nodes=24)
process = partial(GaussianProcessRegressor, optimizer=None, alpha=1e-2)
SUM_OF_KERNELS = (
    ConstantKernel(2.0) * RBF(0.7)
    + ConstantKernel(0.5) * RBF(3.0) * RBF(2.0)
    + ConstantKernel(4.0)
    + WhiteKernel(0.1)
)
KERNELS = {
    "SVR": partial(kernels, SVR, predict, "number"),
    "NuSVR": partial(kernels, partial(NuSVR, gamma=0.3, C=5.0), predict, "number"),
    "SVC": partial(kernels, SVC, margin, "binary"),
    "SVC of pairs": partial(
        kernels, partial(SVC, decision_function_shape="ovo"), margin, "classes"
    ),
    "NuSVC of pairs": partial(
        kernels, partial(NuSVC, nu=0.3, decision_function_shape="ovo"), margin, "classes"
    ),
    "OneClassSVM": partial(kernels, OneClassSVM, margin, "number"),
    "kernel ridge": partial(
        kernels, partial(KernelRidge, kernel="rbf", gamma=0.2), predict, "number"
    ),
    "kernel ridge targets": partial(
        kernels, partial(KernelRidge, kernel="rbf"), predict, "targets"
    ),
    "process": partial(kernels, process, predict, "number", steps=DENSE),
    "process of a sum": partial(
        kernels,
        partial(process, SUM_OF_KERNELS, normalize_y=True),
        predict,
        "number",
        steps=DENSE,
    ),
    "process of targets": partial(
        kernels,
        partial(process, RBF(1.5) + WhiteKernel(0.2), normalize_y=True),
        predict,
        "targets",
        steps=DENSE,
    ),
    "smooth Matern": partial(
        kernels, partial(process, Matern(1.2, nu=np.inf)), predict, "number", steps=DENSE
    ),
}

BY_ROWS = ("rows", "neighbours", "nothing")  # what networks have exact integrals over
network = partial(behind_steps, over=BY_ROWS)
_layers = {"hidden_layer_sizes": (8, 6), "max_iter": 40}
NETWORKS = {
    "network": partial(network, partial(MLPRegressor, **_layers), predict, "number"),
    "network targets": partial(network, partial(MLPRegressor, **_layers), predict, "targets"),
    "network binary": partial(network, partial(MLPClassifier, **_layers), logit, "binary"),
    "network poisson": partial(
        network, partial(MLPRegressor, loss="poisson", **_layers), log, "positive"
    ),
    "network of integers": partial(given_weights, "integers", BY_ROWS),
    "network without biases": partial(given_weights, "zero_bias", BY_ROWS),
    "network of twins": partial(given_weights, "twins", BY_ROWS),
    "network of dead units": partial(given_weights, "dead", BY_ROWS),
}


def trees_and_lines():
    """A vote of unlike models, each with an engine of its own."""
    forest = RandomForestRegressor(3, max_leaf_nodes=6, random_state=0)
    return VotingRegressor([("ridge", Ridge()), ("forest", forest)], weights=[1, 3])


SUMS = {
    "vote of trees and lines": partial(
        behind_steps, trees_and_lines, predict, "number", over=("columns", *BY_ROWS)
    ),
}

CASES = {**TREES, **LINEAR, **KERNELS, **NETWORKS, **SUMS}


@lru_cache(maxsize=256)
def make_case(name, seed, **settings):
    """One case, the same for the same name and seed whatever else the table holds."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    return CASES[name](rng, **settings)


def behind(name, steps, n=40, m=20):
    """A model of `LINEAR`, `KERNELS`, `NETWORKS` behind given steps, with n background rows."""
    case = make_case(name, 0, steps=steps)
    rng = np.random.default_rng(0)
    return replace(case, background=case.draw(rng, n), X=case.draw(rng, m))


# -- measures ------------------------------------------------------------------------------------


@dataclass
class Tested:
    """A measure, and what it needs."""

    make: Callable  # case -> measure
    over: str  # what it integrates over: rows, columns, box, corner, neighbours or nothing
    own: bool = True  # whether it depends on the row explained


def point_of(case):
    """The last row to explain, as any of the forms that a baseline can have."""
    last = len(case.X) - 1
    if isinstance(case.X, np.ndarray):
        return case.X[last]
    if is_polars(case.X):
        return case.X.row(last, named=True)
    row = case.X.iloc[[last]]
    if any(pd.api.types.is_object_dtype(t) for t in row.dtypes):  # None is not NaN
        return row
    form = (len(case.X) + case.n_columns) % 3
    return [row, row.iloc[0].to_dict(), row.astype(object).iloc[0]][form]


MEASURES = {
    "partial dependence": Tested(lambda case: PartialDependence(), "rows"),
    "product marginal": Tested(lambda case: ProductMarginal(), "columns"),
    "uniform": Tested(lambda case: Uniform(), "box"),
    "joint expectation": Tested(lambda case: Expectation("joint"), "rows", own=False),
    "product expectation": Tested(lambda case: Expectation("product"), "columns", own=False),
    "uniform expectation": Tested(lambda case: Expectation("uniform"), "box", own=False),
    "conditional": Tested(lambda case: Conditional(), "neighbours"),
    "conditional by lines": Tested(lambda case: Conditional("local_linear"), "neighbours"),
    "conditional by neighbours": Tested(lambda case: Conditional("knn"), "neighbours"),
    "dirac": Tested(lambda case: Dirac(), "nothing"),
    "baseline": Tested(lambda case: Baseline(point_of(case)), "rows", own=False),
    "corner coefficient": Tested(lambda case: Coefficient(), "corner"),
    "corner coefficient of mass 0": Tested(lambda case: Coefficient(mass_zero=True), "corner"),
    "corner scaled": Tested(lambda case: ScaledCoefficient(), "corner"),
    "corner scaled of mass 0": Tested(lambda case: ScaledCoefficient(mass_zero=True), "corner"),
    "corner expectation": Tested(lambda case: Expectation("corner"), "corner", own=False),
}
COALITIONS = {  # measures of the whole row, which have no curves
    "Shapley": Tested(lambda case: Shapley(), "rows"),
    "Banzhaf": Tested(lambda case: Banzhaf(), "rows"),
    "Shapley of columns": Tested(lambda case: Shapley(ProductMarginal()), "columns"),
    "Banzhaf of columns": Tested(lambda case: Banzhaf(ProductMarginal()), "columns"),
    "Shapley of a box": Tested(lambda case: Shapley(Uniform()), "box"),
    "Shapley of neighbours": Tested(lambda case: Shapley(Conditional()), "neighbours"),
    "Banzhaf of lines": Tested(lambda case: Banzhaf(Conditional("local_linear")), "neighbours"),
    "Shapley of nearest": Tested(lambda case: Shapley(Conditional("knn")), "neighbours"),
}
# differences of probabilities, learned from the whole background; two of them refuse groups
MASSLESS = {
    "ale": Tested(lambda case: ALE(), "rows"),
    "ale of few bins": Tested(lambda case: ALE(n_bins=3), "rows"),
    "removal": Tested(lambda case: Removal(), "rows"),
    "marginal effect": Tested(lambda case: MarginalEffect(), "corner"),
    "marginal effect of a step": Tested(lambda case: MarginalEffect(step=0.5), "corner"),
}
BY_EVALUATION = [kind for kind, m in MEASURES.items() if m.over in ("rows", "nothing")]


def exists(case, kind, weight=None):
    """Whether a measure exists, and f has exact integrals over it.

    A box wants a finite range and f's jumps, a corner numbers too, and what is learned from
    neighbours five rows that count.
    """
    over = (MEASURES | COALITIONS | MASSLESS)[kind].over
    if over not in case.over:
        return False
    if over == "neighbours":
        return (len(case.background) if weight is None else np.count_nonzero(weight)) >= 5
    if over in ("rows", "columns", "nothing"):
        return True
    numbers = (numeric(c) and c.dtype == np.float64 for c in columns(case.background))
    plain = over == "box" or (not case.levels and all(numbers))
    return case.finite and case.breaks is not None and plain


def combination(case, kinds):
    """All of these measures, with coefficients that differ."""
    pairs = zip(cycle([1.0, -2.0, 0.5]), kinds)
    terms = [coefficient * MEASURES[kind].make(case) for coefficient, kind in pairs]
    return sum(terms[1:], start=terms[0])


def is_small(case, over):
    """Whether all coalitions of products of laws have few atoms in the definition."""
    if over == "columns":
        return (2 * len(case.background)) ** case.n_columns <= 10**5
    sides = [2 * (len(edges) + 2) * case.nodes for edges in case.breaks] if over == "box" else []
    return np.prod(sides) <= 10**5
