"""RBF kernel machines: the library equals the definition, which only asks the model."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic
from sklearn.gaussian_process.kernels import WhiteKernel as White
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, OneClassSVM

import skattr.engines.products.product_sums
import skattr.pieces.preprocessing.pipeline
from skattr import MeasureExplainer
from skattr.measures import (
    Conditional,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Uniform,
)
from skattr.measures.factors import bumps
from skattr.pieces import BlackBox, Products, Sum
from tests.cases import (
    KERNELS,
    MEASURES,
    SUM_OF_KERNELS,
    behind,
    combination,
    exists,
    process,
)
from tests.helpers.case import margin, smooth_case
from tests.helpers.comparison import same
from tests.helpers.promises import batches_equal_one_fit, no_bit_changes
from tests.helpers.random_cases import groups_of
from tests.helpers.smooth import DENSE, TARGETS, X, fit, one_hot
from tests.helpers.uniform_laws import CURVED, integrates_behind
from tests.oracle import Oracle, described

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Found unknown categories"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


NUMBERS = X[["size", "age", "code"]].to_numpy() / [1, 10, 2]
SCORE = TARGETS["number"]
WEIGHT = np.arange(5) % 3 + 0.5
GROUPS = {"g": ["city", "age"]}
BEHIND = ["scaled", "gaps", "sparse", "curved"]


def agrees(case, measure, weight=None, own=None, **settings):
    """The definition, by engines of sums of products."""
    explainer, _ = same(case, measure, weight, own, **settings)
    assert set(explainer.engine_) <= {"products", "evaluation"}, explainer.describe()


def nodes_on(low, high, panels):
    """Gauss-Legendre nodes and weights on panels of [low, high]."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    ends = np.linspace(low, high, panels + 1)
    half = (ends[1:] - ends[:-1])[:, None] / 2
    return (ends[:-1, None] + half * (nodes + 1)).ravel(), (half * weights).ravel()


# -- rows and products ---------------------------------------------------------------------------


@pytest.mark.parametrize("steps", BEHIND)
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_machine(name, steps):
    """All measures of one engine at once, with groups."""
    if steps == "sparse" and KERNELS[name].keywords.get("steps") == DENSE:
        pytest.skip("it takes no sparse table")
    case = behind(name, steps, len(WEIGHT), 3)
    kinds = [kind for kind, m in MEASURES.items() if m.over != "neighbours"]
    measure = combination(case, [kind for kind in kinds if exists(case, kind, WEIGHT)])
    groups, own = groups_of(case, len(name))
    agrees(case, measure, WEIGHT, own, groups=groups)


@pytest.mark.parametrize("kind", [kind for kind, m in MEASURES.items() if m.over == "corner"])
def test_corners(kind):
    case = behind("SVR", "numbers", 9, 3)
    measure = MEASURES[kind].make(case)
    agrees(case, measure, np.arange(9) % 3 + 0.5)
    agrees(case, measure, own=[(0, 2), (1,)], groups={"g": ["age", "code"]})


@pytest.mark.parametrize("steps", CURVED)
def test_uniform_laws_behind_curved_steps(steps):
    integrates_behind(steps, SVR(), SCORE, n_rows=2, n_points=50_000, atol=5e-5)


def test_uniform_laws_behind_curved_steps_that_quadrature_might_miss_are_refused():
    """Better an estimate than a wrong number; behind a line there is a closed form."""
    curved = make_pipeline(FunctionTransformer(np.exp), SVR(gamma=1e8)).fit(NUMBERS, SCORE)
    with pytest.raises(ValueError, match=r"x0.*not known exactly"):
        MeasureExplainer(curved, Uniform(), engine="exact").fit(NUMBERS)
    bins = KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform")
    unknown = make_pipeline(StandardScaler(), bins, SVR()).fit(NUMBERS, SCORE)
    with pytest.raises(ValueError, match="not known exactly"):
        MeasureExplainer(unknown, Uniform(), engine="exact").fit(NUMBERS)
    assert not MeasureExplainer(unknown, Uniform(), tol=0.1).fit(NUMBERS).exact_


@pytest.mark.parametrize("square", [0.0, 1e-20, 1e-6, 0.1, 0.249, 0.2501, 1.0, 30.0, 1e6, 1e12])
@pytest.mark.parametrize("far", [0.0, 0.3, 1.0, 2.5, 20.0])
def test_means_of_bumps(square, far):
    """Against panels of many nodes around the bump."""
    center = far / np.sqrt(square) if square else 0.0
    reach = 30 / np.sqrt(square) if square else np.inf
    low, high = max(-1.0, center - reach), min(1.0, center + reach)
    wanted = 0.0
    if low < high:
        u, weights = nodes_on(low, high, 40)
        wanted = weights @ np.exp(-square * (u - center) ** 2) / 2
    got = bumps.uniform(np.array([square, square]), np.array([center, -center]))
    np.testing.assert_allclose(got, wanted, rtol=2e-12, atol=1e-100)
    peak, reach = 2 * square * center / (1 + 2 * square), 12 / np.sqrt(1 + 2 * square)
    u, weights = nodes_on(peak - reach, peak + reach, 40)
    wanted = weights @ (np.exp(-square * (u - center) ** 2) * stats.norm.pdf(u))
    got = bumps.normal(np.array([square]), np.array([center]))
    np.testing.assert_allclose(got, wanted, rtol=2e-12, atol=1e-100)


# -- conditional measures ------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["kernel", "local_linear", "knn"])
@pytest.mark.parametrize("steps, name", [("gaps", "SVR"), ("curved", "SVC of pairs")])
def test_conditional_by_rows(steps, name, estimator):
    case = behind(name, steps)
    weight = np.arange(40) % 3 + 0.0
    for groups in (None, GROUPS):
        values = []
        for engine in ("binned_products", "finite_sum"):
            measure = Conditional(estimator) - Expectation()
            explainer = MeasureExplainer(case.estimator, measure, engine=engine, groups=groups)
            explainer.fit(case.background, sample_weight=weight)
            assert explainer.engine_[0] == engine
            values.append(explainer.explain(case.X))
        spread = np.std(case.f(case.background), axis=0).max()
        np.testing.assert_allclose(values[0].values, values[1].values, atol=1e-10 * spread)
        np.testing.assert_allclose(values[0].offset, values[1].offset, atol=1e-10 * spread)


CLUSTERS = np.concatenate([NUMBERS, NUMBERS - [-4, 0, 0], NUMBERS * [1, 0.5, 1] - [0, 0, 6]])
HEIGHT = np.sin(CLUSTERS[:, 0]) * CLUSTERS[:, 1] + 0.1 * CLUSTERS[:, 2] ** 2


MIXED = {
    "SVR": (SVR(), HEIGHT),
    "kernel ridge": (KernelRidge(kernel="rbf"), np.stack([HEIGHT] * 3, axis=1) * [1, 2, 3]),
    "process of a sum": (process(SUM_OF_KERNELS, normalize_y=True), HEIGHT),
}


@pytest.mark.parametrize("name", MIXED)
def test_diagonal_mixtures(name):
    model, y = MIXED[name]
    estimator = make_pipeline(StandardScaler(), model).fit(CLUSTERS, y)
    for groups in (None, {"g": ["x2", "x0"]}):
        ours = MeasureExplainer(estimator, Conditional("gmm", n_components=4), groups=groups)
        ours.fit(CLUSTERS)
        assert ours.engine_ == ("mixed_products",) and ours.exact_
        got = ours.explain(CLUSTERS[::30])
        assert got.std_error is None
        other = MeasureExplainer(
            estimator, ours.measure, engine="quasi_monte_carlo", groups=groups, random_state=0
        ).fit(CLUSTERS)
        wanted = other.explain(CLUSTERS[::30])
        assert (np.abs(got.values - wanted.values) <= 5 * wanted.std_error + 1e-9).all()
        np.testing.assert_allclose(got.base_value, np.mean(estimator.predict(CLUSTERS), axis=0))


def test_a_mixture_by_the_formula():
    """Two columns: Σ_c π_c(t) ∫ f(t, y) N(y; m_c, s_c²) dy, by many nodes of predict."""
    Z = CLUSTERS[:, [0, 1]]
    model = SVR(gamma=0.5).fit(Z, HEIGHT)
    explainer = MeasureExplainer(model, Conditional("gmm", n_components=3)).fit(Z)
    law = explainer.measure_.family_
    u = np.linspace(-9, 9, 4001)
    density = stats.norm.pdf(u) * (u[1] - u[0])
    for x in Z[::25]:
        got = explainer.explain(x[None]).values[0]
        for j, k in ((0, 1), (1, 0)):
            shares = law.weights * stats.norm.pdf(x[j], law.means[:, j], law.scales[:, j])
            wanted = 0.0
            for c, share in enumerate(shares / shares.sum()):
                rows = np.tile(x, (len(u), 1))
                rows[:, k] = law.means[c, k] + law.scales[c, k] * u
                wanted += share * density @ model.predict(rows)
            np.testing.assert_allclose(got[j], wanted, rtol=1e-9, atol=1e-10)


def test_a_mixture_behind_a_curve_is_estimated():
    model = make_pipeline(FunctionTransformer(np.exp), StandardScaler(), SVR())
    model.fit(NUMBERS, SCORE)
    explainer = MeasureExplainer(model, Conditional("gmm"), tol=0.1).fit(NUMBERS)
    assert explainer.engine_ == ("quasi_monte_carlo",)
    with pytest.raises(ValueError, match="affine"):
        MeasureExplainer(model, Conditional("gmm"), engine="mixed_products").fit(NUMBERS)


# -- corners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1e-3, 30.0, 1e6, 1e300])
@pytest.mark.parametrize("measure", [PartialDependence(), ProductMarginal()], ids=repr)
def test_wide_and_narrow_kernels(gamma, measure):
    model = SVR(gamma=gamma, C=10.0).fit(NUMBERS, SCORE)
    rounding = 1e-15 * np.abs(model.dual_coef_).sum()
    agrees(smooth_case(model, NUMBERS[:8], NUMBERS[:8]), measure, loose=rounding)


@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1e-3, 0.5, 1e3, 1e10])
def test_uniform_laws_of_wide_and_narrow_kernels(gamma):
    """One column is free: many nodes, or what is left of bumps that are narrow."""
    Z = NUMBERS[:, :2]
    model = SVR(gamma=gamma, C=10.0).fit(Z, SCORE)
    got = MeasureExplainer(model, Uniform()).fit(Z).explain(Z[:4]).values
    low, high = Z[:, 1].min(), Z[:, 1].max()
    nodes, weights = nodes_on(low, high, 200)
    for i in range(4):
        rows = np.tile(Z[i], (len(nodes), 1))
        rows[:, 1] = nodes
        wanted = weights @ model.predict(rows) / (high - low)
        if gamma > 1e6:  # whole bumps, but for those at the ends
            own = np.exp(-gamma * (model.support_vectors_[:, 0] - Z[i, 0]) ** 2)
            at = model.support_vectors_[:, 1]
            inside = np.where((at == low) | (at == high), 0.5, 1.0)
            bump = np.sqrt(np.pi / gamma) / (high - low) * inside
            wanted = model.intercept_[0] + model.dual_coef_[0] @ (own * bump)
        np.testing.assert_allclose(got[i, 0], wanted, rtol=1e-11)


def test_one_support_vector_and_none():
    Z = np.array([[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    for y, n in (([0.0, 0.0, 5.0], None), ([0.0, 0.0, 0.0], 0)):
        model = SVR(epsilon=1.0).fit(Z, y)
        assert n is None or len(model.support_) == n
        for measure in (PartialDependence(), ProductMarginal(), Uniform()):
            agrees(smooth_case(model, Z, Z + 0.5), measure)
    one = OneClassSVM(nu=0.5).fit(Z[:1])
    assert len(one.support_) == 1
    agrees(smooth_case(one, Z, Z, partial(margin, one)), PartialDependence())


def test_constant_columns():
    Z = np.column_stack([NUMBERS, np.full(len(X), 3.0)])
    model = SVR().fit(Z, SCORE)
    for measure in (PartialDependence(), ProductMarginal(), Uniform(), Conditional("gmm")):
        explanation = MeasureExplainer(model, measure).fit(Z).explain(Z[:5])
        if measure.reference().law != "joint" or isinstance(measure, PartialDependence):
            np.testing.assert_allclose(explanation.centered().values[:, 3], 0, atol=1e-12)


@pytest.mark.parametrize("measure", [PartialDependence(), ProductMarginal(), Uniform()], ids=repr)
def test_what_the_model_ignores_gets_the_mean_to_the_last_bit(measure):
    steps = make_column_transformer((StandardScaler(), ["age"]), (one_hot(), ["city"]))
    model = make_pipeline(steps, SVR()).fit(X, SCORE)
    weight = np.random.default_rng(1).random(len(X))
    explainer = MeasureExplainer(model, measure).fit(X, sample_weight=weight)
    centred = explainer.explain(X).centered().values
    assert (centred[:, [1, 3]] == 0.0).all()
    assert (centred[:, [0, 2]] != 0.0).any()


def test_noise_has_no_part_in_the_mean_even_at_training_points():
    kernel = ConstantKernel(1.5) * RBF([1.0, 2.0, 0.5]) + White(0.7) + White(0.2) * RBF(1.0)
    model = process(kernel).fit(NUMBERS, SCORE)
    pieces = MeasureExplainer(model, "partial_dependence").fit(NUMBERS).pieces_
    assert isinstance(pieces, Products)
    np.testing.assert_allclose(pieces.reading(NUMBERS)[0][:, 0], model.predict(NUMBERS), rtol=1e-10)
    model = process(kernel).fit(NUMBERS, SCORE)
    agrees(smooth_case(model, NUMBERS[:9], NUMBERS[:9]), PartialDependence())
    noise = process(White(1.0) * RBF(1.0), normalize_y=True).fit(NUMBERS, SCORE)
    explainer = MeasureExplainer(noise, "partial_dependence").fit(NUMBERS)
    assert explainer.engine_ == ("products",)
    np.testing.assert_allclose(explainer.explain(NUMBERS[:3]).values, SCORE.mean())


def test_a_process_that_learned_its_kernel():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        kernel = ConstantKernel() * RBF([1.0, 1.0, 1.0]) + White()
        model = GaussianProcessRegressor(kernel, random_state=0).fit(NUMBERS, SCORE)
    agrees(smooth_case(model, NUMBERS[:9], NUMBERS[:9]), PartialDependence() - Expectation())


@pytest.mark.parametrize(
    "model",
    [SVR(), KernelRidge(kernel="rbf", gamma=0.2), process()],
    ids=lambda model: type(model).__name__,
)
def test_single_precision(model):
    Z = NUMBERS.astype(np.float32)
    model.fit(Z, SCORE)
    explainer = MeasureExplainer(model, "partial_dependence").fit(Z)
    assert explainer.engine_ == ("products",)
    wanted = (
        MeasureExplainer(model, "partial_dependence", engine="finite_sum")
        .fit(Z)
        .explain(Z[:3])
        .values
    )
    np.testing.assert_allclose(explainer.explain(Z[:3]).values, wanted, rtol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_what_predict_refuses_is_refused(name):
    make, _, target = KERNELS[name].args
    model = make().fit(NUMBERS, TARGETS[target])
    gaps = NUMBERS.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"x1.*missing"):
        MeasureExplainer(model).fit(NUMBERS).explain(gaps, predictions=False)
    with pytest.raises(ValueError, match=r"NaN|missing"):
        MeasureExplainer(model).fit(gaps)
    gaps[3, 1] = np.inf
    with pytest.raises(ValueError, match="infin"):
        MeasureExplainer(model).fit(NUMBERS).explain(gaps)


# -- what is read --------------------------------------------------------------------------------


def test_describe_and_curves():
    estimator = fit("scaled", SVR(), X, SCORE)
    explainer = MeasureExplainer(estimator, PartialDependence()).fit(X)
    assert "a sum of products" in explainer.describe()
    assert "engine products, exact" in explainer.describe()
    curve = explainer.curve("city")
    assert curve.kind == "levels"
    wanted = [estimator.predict(X.assign(city=c)).mean() for c in ("Bonn", "Kiel", "Ulm", "Rom")]
    frame = curve.to_frame()
    assert frame["level"].to_list()[:3] == ["Bonn", "Kiel", "Ulm"]
    np.testing.assert_allclose(frame["value"].iloc[[0, 1, 2, -1]], wanted, rtol=1e-10)
    curve = explainer.curve("age")
    assert curve.kind == "function"
    ages = [20.0, 51.3]
    np.testing.assert_allclose(
        curve(ages), [estimator.predict(X.assign(age=a)).mean() for a in ages]
    )


BLACK_BOXES = {
    "votes": (lambda: SVC(), "classes", "'ovo'"),
    "poly": (lambda: SVR(kernel="poly"), "number", "'poly'"),
    "ridge": (lambda: KernelRidge(kernel="laplacian"), "number", "'laplacian'"),
    "callable": (lambda: SVR(kernel=lambda A, B: A @ B.T), "number", "kernel"),
    "Matern": (lambda: process(Matern()), "number", "Matern"),
    "rational": (lambda: process(RBF() + RationalQuadratic()), "number", "RationalQuadratic"),
    "no column": (lambda: process(White(1.0)), "number", "kernel without columns"),
    "classes": (GaussianProcessClassifier, "binary", "link"),
    "mixed columns": (lambda: make_pipeline(PCA(2), SVR()), "number", "PCA"),
}


@pytest.mark.parametrize("name", BLACK_BOXES)
def test_black_boxes_say_why(name):
    build, target, why = BLACK_BOXES[name]
    model = build().fit(NUMBERS, TARGETS[target])
    explainer = MeasureExplainer(model, "partial_dependence").fit(NUMBERS[:10])
    assert isinstance(explainer.pieces_, BlackBox)
    assert why in explainer.describe()
    assert explainer.engine_ == ("finite_sum",)


def test_scales():
    machine = SVC().fit(NUMBERS, TARGETS["binary"])
    explainer = MeasureExplainer(machine).fit(NUMBERS)
    assert explainer.output_names_ == ["yes"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probable = SVC(probability=True, random_state=0).fit(NUMBERS, TARGETS["binary"])
    text = MeasureExplainer(probable).fit(NUMBERS).describe()
    assert "explains: decision function of yes" in text
    proba = MeasureExplainer(probable, output="proba").fit(NUMBERS)
    assert "a black box" in proba.describe() and "'raw'" in proba.describe()
    pairs = SVC(decision_function_shape="ovo").fit(NUMBERS, TARGETS["classes"])
    assert MeasureExplainer(pairs).fit(NUMBERS).output_names_ == ["0", "1", "2"]


COMPOSITES = {
    "search": lambda: GridSearchCV(SVR(), {"C": [1.0, 2.0]}, cv=2),
    "scaled target": lambda: TransformedTargetRegressor(SVR(), transformer=StandardScaler()),
    "bag": lambda: BaggingRegressor(SVR(), 3, max_features=2, random_state=0),
    "targets": lambda: MultiOutputRegressor(SVR()),
    "vote": lambda: VotingRegressor([("a", SVR()), ("b", KernelRidge(kernel="rbf"))]),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_composites(name):
    target = TARGETS["targets" if name == "targets" else "number"]
    model = COMPOSITES[name]().fit(NUMBERS, target)
    agrees(smooth_case(model, NUMBERS[:9], NUMBERS[:9]), PartialDependence() - Expectation())


SUMS = {
    "vote": lambda: VotingRegressor(
        [("a", make_pipeline(StandardScaler(), SVR())), ("b", Ridge()),
         ("c", RandomForestRegressor(3, max_depth=3, random_state=0))]),
    "stack": lambda: StackingRegressor([("a", SVR()), ("b", Ridge())], Ridge(), cv=2),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("kind", [PartialDependence, ProductMarginal, Conditional])
def test_sums_with_other_pieces(name, kind):
    model = SUMS[name]().fit(NUMBERS, SCORE)
    explainer = MeasureExplainer(model, kind()).fit(NUMBERS[:30])
    assert explainer.engine_ == ("addends",)
    assert isinstance(explainer.pieces_, Sum) and "a sum of products" in explainer.describe()
    got = explainer.explain(NUMBERS[:4]).values
    if kind is ProductMarginal:
        oracle = Oracle(lambda Z: model.predict(Z)[:, None], NUMBERS[:30])
        wanted = oracle.values(described(kind()), NUMBERS[:4], [(0,), (1,), (2,)])[:, :, 0]
    else:
        brute = MeasureExplainer(model, kind(), engine="finite_sum").fit(NUMBERS[:30])
        wanted = brute.explain(NUMBERS[:4]).values
    np.testing.assert_allclose(got, wanted, atol=1e-10 * SCORE.std())


# -- the promises --------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", BEHIND)
@pytest.mark.parametrize(
    "measure", [PartialDependence() - Expectation(), ProductMarginal(), Uniform()], ids=repr
)
def test_batches_equal_one_fit(steps, measure):
    batches_equal_one_fit(behind("SVR", steps), measure)


@pytest.mark.parametrize(
    "steps, name, measure",
    [
        ("scaled", "SVC of pairs", PartialDependence() - ProductMarginal() + 0.3 * Uniform()),
        ("gaps", "SVR", Conditional() - Expectation()),
        ("numbers", "process of a sum", Conditional("gmm", n_components=2)),
    ],
)
def test_company_order_blocks_jobs_and_pickle_change_no_bit(steps, name, measure, monkeypatch):
    blocks = [(skattr.engines.products.product_sums, name) for name in ("ROWS", "TERMS")]
    no_bit_changes(behind(name, steps), measure, monkeypatch, blocks)


def test_blocks_of_the_background_change_nothing_but_rounding(monkeypatch):
    case = behind("SVR", "gaps")
    estimator, data = case.estimator, case.X
    large = pd.concat([case.background] * 3, ignore_index=True)
    for measure in (PartialDependence(), ProductMarginal(), Conditional("knn", n_neighbors=9)):
        for groups in (None, GROUPS):
            one = MeasureExplainer(estimator, measure, groups=groups).fit(large).explain(data[:9])
            with monkeypatch.context() as small:
                small.setattr(skattr.pieces.preprocessing.pipeline, "CHUNK", 1)
                two = MeasureExplainer(estimator, measure, groups=groups).fit(large)
                np.testing.assert_allclose(
                    two.explain(data[:9]).values, one.values, rtol=1e-12, atol=1e-12
                )


def test_skops_round_trip():
    skops_io = pytest.importorskip("skops.io")
    model = SVR().fit(NUMBERS, SCORE)
    explainer = MeasureExplainer(model, PartialDependence() - Uniform() + Conditional()).fit(
        NUMBERS
    )
    stored = skops_io.dumps(explainer)
    again = skops_io.loads(stored, trusted=skops_io.get_untrusted_types(data=stored))
    np.testing.assert_array_equal(again.explain(NUMBERS).values, explainer.explain(NUMBERS).values)
