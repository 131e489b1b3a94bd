"""Axioms: signed measures against dictionaries of atoms, known tables, witnesses that show it."""

import itertools
import warnings
from math import factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import skattr
from skattr import MeasureExplainer
from skattr.axioms import bound, check
from skattr.measures import (
    Atoms,
    Baseline,
    Coefficient,
    Conditional,
    Density,
    Dirac,
    Expectation,
    PartialDependence,
    ProductMarginal,
    Sampler,
    ScaledCoefficient,
    Stieltjes,
    Uniform,
)
from skattr.measures.signed.laws import Law, Part, atom, combined, discrete
from skattr.measures.signed.measure import signed, total

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) + RNG.normal(size=(40, 1))
POINT = np.array([0.5, -1.0, 2.0])


def coalitions(x):
    """The one-baseline Shapley measure: 2^d points, one weight a feature and coalition."""
    d = len(x)
    sets = [set(s) for r in range(d + 1) for s in itertools.combinations(range(d), r)]
    points = np.array([[x[k] if k in s else POINT[k] for k in range(d)] for s in sets])
    weights = np.zeros((d, len(sets)))
    for j in range(d):
        for a, s in enumerate(sets):
            others = len(s - {j})
            share = factorial(others) * factorial(d - 1 - others) / factorial(d)
            weights[j, a] = share if j in s else -share
    return points, weights


def occluded(x):
    d = len(x)
    points = np.vstack([x, np.where(np.eye(d), POINT[:d], x)])
    return points, np.column_stack([np.ones(d), -np.eye(d)])


def banzhaf(x):
    points, weights = coalitions(x)
    return points, np.sign(weights) / 2 ** (len(x) - 1)


SHAPLEY, OCCLUSION = Atoms(coalitions), Atoms(occluded)


def holds(measure, data=X, **options):
    return check(measure, data, **options).to_frame().holds.to_dict()


# -- signed measures -----------------------------------------------------------------------------

grid = st.integers(0, 2).map(float)
shares = st.integers(-3, 3).map(lambda n: n / 4)
some_atoms = st.lists(st.tuples(st.tuples(grid, grid, grid), shares), max_size=8)
one_law = st.lists(st.tuples(grid, shares), min_size=1, max_size=3).map(
    lambda pairs: discrete(np.array([p for p, _ in pairs]), np.array([w for _, w in pairs]))
)
some_products = st.lists(st.tuples(shares, st.tuples(one_law, one_law, one_law)), max_size=3)


def written(atoms, products):
    points = np.array([p for p, _ in atoms]).reshape(-1, 3)
    return signed(points, np.array([w for _, w in atoms], float), products)


def as_dict(atoms, products):
    """The masses of all points, by loops."""
    masses = {}
    for p, w in atoms:
        masses[p] = masses.get(p, 0.0) + w
    for weight, laws in products:
        for places in itertools.product(*(range(len(law.points)) for law in laws)):
            point = tuple(law.points[i] for law, i in zip(laws, places, strict=True))
            mass = weight * np.prod([law.masses[i] for law, i in zip(laws, places, strict=True)])
            masses[point] = masses.get(point, 0.0) + mass
    return masses


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(some_atoms, some_products)
def test_signed_measures_are_their_atoms(atoms, products):
    mu, masses = written(atoms, products), as_dict(atoms, products)
    values = np.array([*masses.values()])
    assert mu.mass == pytest.approx(values.sum(), abs=1e-12)
    assert mu.variation.value == pytest.approx(np.abs(values).sum(), abs=1e-12)
    assert mu.variation.exact and mu.size == mu.variation.value
    assert mu.is_zero == bool(np.all(np.abs(values) < 1e-12))
    assert mu.negative == pytest.approx(-np.minimum(values, 0).sum(), abs=1e-12)
    points = np.array([*masses]).reshape(-1, 3)
    np.testing.assert_allclose(mu.moments, values @ points, atol=1e-12)
    for k in range(3):
        law = mu.marginal(k)
        for v in range(3):
            expected = sum(m for p, m in masses.items() if p[k] == v)
            assert law.at(np.array([float(v)]))[0] == pytest.approx(expected, abs=1e-12)
            assert law.above(v) == pytest.approx(
                sum(m for p, m in masses.items() if p[k] > v), abs=1e-12
            )
    images = {}
    for p, m in masses.items():
        images[p[0], p[2]] = images.get((p[0], p[2]), 0.0) + m
    size = sum(abs(m) for m in images.values())
    assert mu.without((1,)).variation.value == pytest.approx(size, abs=1e-12)
    swapped = {(p[1], p[0], p[2]): m for p, m in masses.items()}
    off = total([(1.0, mu.swapped(0, 1)), (-1.0, written(list(swapped.items()), []))])
    assert off.variation.value < 1e-12


def big(n, seed):
    """A law of many atoms, so that products of three are not multiplied out."""
    rng = np.random.default_rng(seed)
    masses = rng.random(n)
    return discrete(np.arange(float(n)), masses / masses.sum())


def test_a_product_of_many_atoms_against_rows():
    laws = tuple(big(60, seed) for seed in range(3))
    rows = np.stack([RNG.integers(0, 60, 50) for _ in range(3)], axis=1).astype(float)
    weights = RNG.normal(size=50)
    mu = signed(rows, weights, [(2.0, laws)])
    cube = 2 * np.einsum("i,j,k->ijk", *(law.masses for law in laws))
    np.add.at(cube, tuple(rows.astype(int).T), weights)
    assert mu.variation.exact and mu.products
    assert mu.variation.value == pytest.approx(np.abs(cube).sum(), rel=1e-12)
    assert mu.negative == pytest.approx(-np.minimum(cube, 0).sum(), rel=1e-12)
    assert mu.is_zero is False


def test_products_that_differ_in_one_column_are_one():
    a, b, c = (big(60, seed) for seed in range(3))
    mu = signed(np.empty((0, 3)), np.empty(0), [(1.0, (atom(7.0), b, c)), (-1.0, (a, b, c))])
    own = combined([(1.0, atom(7.0)), (-1.0, a)])
    assert len(mu.products) == 1 and mu.variation.exact
    assert mu.variation.value == pytest.approx(own.variation[0])
    assert mu.without((0,)).is_zero is True and mu.mass == 0
    both = total([(1.0, mu), (-1.0, mu)])
    assert both.is_empty and both.is_zero is True


def test_two_products_of_many_atoms_are_not_decided_unless_something_shows():
    a, b, c, d = (big(60, seed) for seed in range(4))
    mu = signed(np.empty((0, 3)), np.empty(0), [(1.0, (a, b, c)), (-1.0, (b, a, d))])
    assert not mu.variation.exact and np.isnan(mu.size) and mu.is_zero is False  # its moments
    same = [(sign, (big(600, 0), big(600, 1))) for sign in (1.0, -1.0)]
    assert signed(np.empty((0, 2)), np.empty(0), same).is_zero is True


def test_continuous_parts():
    uniform = Law(np.empty(0), np.empty(0), ((1.0, Part("uniform", 0.0, 2.0)),))
    normal = Law(np.empty(0), np.empty(0), ((1.0, Part("normal", 1.0, 3.0)),))
    mu = signed(np.array([[1.0, 1.0]]), np.ones(1), [(-2.0, (uniform, normal))])
    assert mu.mass == -1.0 and mu.variation == (3.0, True) and mu.negative == 2.0
    np.testing.assert_allclose(mu.moments, [-1.0, -1.0])
    assert mu.marginal(0).above(0.5) == pytest.approx(1 - 2 * 0.75)
    apart = signed(np.empty((0, 2)), np.empty(0), [(1.0, (uniform, atom(0.0))),
                                                   (-1.0, (atom(0.0), normal))])  # fmt: skip
    assert apart.variation == (2.0, True)
    other = Law(np.empty(0), np.empty(0), ((1.0, Part("normal", 0.0, 1.0)),))
    two = signed(np.empty((0, 1)), np.empty(0), [(1.0, (normal,)), (-1.0, (other,))])
    assert not two.variation.exact and two.is_zero is False  # means differ
    assert np.isnan(discrete(np.array([np.nan, np.nan]), np.ones(2)).moment)


# -- known methods -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "measure, baseline, yes, no",
    [
        (PartialDependence(), None, "positivity model_invariance robustness",
         "completeness sensitivity constants additive_recovery linear_recovery monotonicity "
         "weak_symmetry strong_symmetry"),
        (PartialDependence() - Expectation(), None,
         "sensitivity constants additive_recovery robustness", "completeness positivity"),
        (Conditional() - Expectation(), None, "constants",
         "completeness sensitivity additive_recovery robustness"),
        (ProductMarginal() - Expectation("product"), None, "sensitivity additive_recovery",
         "completeness positivity"),
        (ProductMarginal() - Expectation("joint"), None, "constants additive_recovery",
         "sensitivity completeness"),
        (Uniform() - Expectation("uniform"), None, "sensitivity additive_recovery robustness",
         "completeness positivity"),
        (Uniform(), None, "positivity", "sensitivity constants"),
        (SHAPLEY, POINT, "completeness sensitivity constants additive_recovery",
         "positivity weak_symmetry strong_symmetry linear_recovery"),
        (SHAPLEY, None, "completeness sensitivity", "positivity"),
        (SHAPLEY, POINT + 1, "sensitivity", "completeness additive_recovery"),
        (OCCLUSION, POINT, "sensitivity constants additive_recovery", "completeness"),
        (Atoms(banzhaf), POINT, "sensitivity additive_recovery", "completeness"),
        (Expectation(), None, "positivity strong_symmetry weak_symmetry robustness",
         "sensitivity completeness constants"),
        (Dirac(), None, "positivity strong_symmetry robustness", "completeness sensitivity"),
        (Baseline(POINT), None, "positivity strong_symmetry", "completeness sensitivity"),
        (Coefficient(), None, "positivity robustness", "sensitivity constants"),
        (Coefficient(mass_zero=True), None, "sensitivity constants monotonicity", "positivity"),
        (ScaledCoefficient(mass_zero=True), None, "sensitivity additive_recovery monotonicity",
         "positivity"),
        (Conditional("gmm"), None, "positivity robustness", "sensitivity"),
        (Conditional("gaussian"), None, "positivity", "sensitivity constants"),
        (0.0 * PartialDependence(), None, "sensitivity positivity monotonicity", "completeness"),
    ],
    ids=lambda v: repr(v)[:40] if not isinstance(v, str | np.ndarray) else "",
)  # fmt: skip
def test_table_of_known_methods(measure, baseline, yes, no):
    found = holds(measure, baseline=baseline)
    assert {name: found[name] for name in yes.split()} == dict.fromkeys(yes.split(), True)
    assert {name: found[name] for name in no.split()} == dict.fromkeys(no.split(), False)


def test_shapley_of_the_background_is_complete_with_respect_to_it():
    def build(x):
        points, weights = [], []
        for z in X[:5]:
            sets = [set(s) for r in range(4) for s in itertools.combinations(range(3), r)]
            for s in sets:
                points.append([x[k] if k in s else z[k] for k in range(3)])
                shares = [
                    factorial(len(s - {j})) * factorial(2 - len(s - {j})) / 30 for j in range(3)
                ]
                weights.append([w if j in s else -w for j, w in enumerate(shares)])
        return np.array(points), np.array(weights).T

    table = check(Atoms(build), X[:5], points=X[10:12])
    assert table["completeness"].holds is True and table["sensitivity"].holds is True
    assert "the background" in repr(table)
    assert check(Atoms(build), X[:5], baseline=X[0], points=X[10:12])["completeness"].holds is False


def test_conditional_of_independent_columns_is_sensitive():
    # every combination of levels: given one column, the others are as they were
    data = np.array(list(itertools.product([0.0, 1.0, 2.0], repeat=3)))
    table = check(Conditional() - Expectation(), data)
    assert table["sensitivity"].holds is True
    product = check(ProductMarginal() - Expectation("joint"), data)
    assert product["sensitivity"].holds is True  # the product is the joint law


def test_shapley_is_as_symmetric_as_its_baseline():
    def build(x):
        points, weights = coalitions(x)
        return np.where(points == POINT, 0.0, points), weights

    found = holds(Atoms(build), baseline=np.zeros(3))
    assert found["weak_symmetry"] is True and found["strong_symmetry"] is False
    assert found["completeness"] is True


def test_linear_recovery():
    box = [[0.0, 1.0]] * 3
    data = RNG.random((20, 3))
    assert holds(Coefficient(), data, domain=box)["linear_recovery"] is True
    slope = Atoms(
        lambda x: (np.vstack([np.eye(3), np.zeros(3)]), np.hstack([np.eye(3), -np.ones((3, 1))]))
    )
    found = holds(slope, data)
    assert found["linear_recovery"] is True and found["constants"] is True
    assert found["sensitivity"] is True and found["monotonicity"] is True


def test_exchangeable_data_are_symmetric():
    rows = np.array(list(itertools.permutations([0.0, 1.0, 5.0])))
    found = holds(PartialDependence() - Expectation(), rows)
    assert found["weak_symmetry"] is True and found["strong_symmetry"] is False


# -- witnesses -----------------------------------------------------------------------------------


WITNESSED = [
    PartialDependence(), PartialDependence() - Expectation(), Conditional() - Expectation(),
    ProductMarginal() - Expectation("joint"), Uniform() - Expectation("uniform"),
    Uniform() - Expectation(), SHAPLEY, OCCLUSION, Coefficient(), Coefficient(mass_zero=True),
    Conditional("gmm") - Expectation(),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("measure", WITNESSED, ids=lambda m: repr(m)[:50])
def test_witnesses_show_what_they_say(measure):
    table = check(measure, X, baseline=POINT + 1)
    frame = table.to_frame()
    assert list(frame.columns) == ["holds", "value", "witness"]
    shown = 0
    for name in ("sensitivity", "constants", "positivity", "linear_recovery", "monotonicity"):
        found = table[name]
        if found.holds is not False or found.witness is None:
            continue
        j = int(found.witness.feature[1:])
        values, error = explained(measure, found.witness, table.points)
        assert values[j] == pytest.approx(found.witness.value, abs=error), name
        shown += 1
        f = found.witness.function
        if name == "sensitivity":
            moved = X.copy()
            moved[:, j] = RNG.normal(size=len(X))
            np.testing.assert_array_equal(f(moved), f(X))
        if name in ("positivity", "monotonicity"):
            assert found.witness.value < 0 or name == "monotonicity"
            assert name == "monotonicity" or f(X).min() >= 0
    found = table["completeness"]
    assert found.holds is False
    f, row = found.witness.function, found.witness.row
    values, error = explained(measure, found.witness, table.points)
    ends = f(table.points[row : row + 1])[0] - f(POINT[None] + 1)[0]
    assert values.sum() - ends == pytest.approx(found.witness.value, abs=3 * error)
    assert shown >= 2


def explained(measure, witness, points):
    """The attributions of a witness, and how far they may be off: products are sampled."""
    explainer = MeasureExplainer(witness.function, measure, random_state=0).fit(X)
    if not explainer.exact_:
        explainer.set_params(engine="quasi_monte_carlo").fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = explainer.explain(points[witness.row : witness.row + 1], predictions=False)
    return found.values[0], 1e-9 if found.std_error is None else 5e-3


@pytest.mark.parametrize("measure", [PartialDependence(), SHAPLEY], ids=repr)
def test_symmetry_witnesses(measure):
    table = check(measure, X)
    found = table["strong_symmetry"]
    values, _ = explained(measure, found.witness, table.points)
    j, k = (int(name[1:]) for name in found.witness.feature)
    assert values[j] - values[k] == pytest.approx(found.witness.value, abs=1e-12)
    swapped = X.copy()
    swapped[:, [j, k]] = X[:, [k, j]]
    np.testing.assert_allclose(found.witness.function(swapped), found.witness.function(X))


def test_robustness_witness_jumps():
    table = check(Conditional(), X)
    witness = table["robustness"].witness
    explainer = MeasureExplainer(witness.function, Conditional()).fit(X)
    place = float(str(witness).rsplit("=", 1)[1])
    j = int(witness.feature[1:])
    column = X[:, j]
    edge = column[np.argmin(np.abs(column - place))]
    rows = np.tile(table.points[0], (2, 1))
    rows[:, j] = edge, np.nextafter(edge, np.inf)
    low, high = explainer.explain(rows).values[:, j]
    assert high - low == pytest.approx(witness.value, abs=1e-12)


def test_total_variation_is_sharp():
    table = check(PartialDependence() - Expectation(), X)
    mu = PartialDependence() - Expectation()
    for row in range(len(table.points)):
        for j in range(3):
            x = table.points[row]
            new = X.copy()
            new[:, j] = x[j]
            plus = {tuple(r) for r in new}
            sign = lambda Y, plus=plus: np.array([1.0 if tuple(y) in plus else -1.0 for y in Y])  # noqa: E731
            value = MeasureExplainer(sign, mu).fit(X).explain(x[None]).values[0, j]
            assert value == pytest.approx(table.total_variation[row, j])


# -- what is not decided, frames, missing values -------------------------------------------------


def test_what_cannot_be_decided_is_none():
    def normal(x, j, n, rng):
        return rng.normal(size=(n, 3))

    found = holds(Sampler(normal))
    assert found["positivity"] is True and found["constants"] is False
    assert found["sensitivity"] is False  # of mass 1
    found = holds(Sampler(normal) - Sampler(lambda x, j, n, rng: normal(x, j, n, rng)))
    assert found["constants"] is True and found["sensitivity"] is None
    assert found["positivity"] is None and found["off_support"] is None
    found = holds(Density(lambda y, x, j: y[..., 0]))
    assert found["constants"] is None and found["positivity"] is None
    assert found["model_invariance"] is True


def test_stieltjes_integrands():
    increasing = Stieltjes(lambda y, x, j: np.prod(y - X.min(axis=0), axis=-1))
    assert holds(increasing)["completely_monotone"] is None  # boxes prove nothing
    factors = Stieltjes(lambda y, x, j: y - X.min(axis=0) - (np.arange(3) == 1), product=True)
    assert holds(factors)["completely_monotone"] is False
    table = check(Stieltjes(lambda y, x, j: -y[..., 0] * y[..., 1]), X)
    assert table["completely_monotone"].holds is False
    assert "increment over columns" in str(table["completely_monotone"].witness)
    assert holds(PartialDependence())["completely_monotone"] is True


def test_frames_with_levels_and_missing_values():
    frame = pd.DataFrame(
        {"a": [1.0, np.nan, 3.0, 4.0, 2.0, 7.0], "b": list("uvuvwu"), "c": [1, 2, 3, 4, 5, 6]}
    )
    table = check(PartialDependence() - Expectation(), frame, sample_weight=[1, 1, 2, 1, 0, 1])
    found = table.to_frame().holds
    assert found["sensitivity"] is True and found["additive_recovery"] is True
    assert found["linear_recovery"] is None and found["monotonicity"] is False
    assert len(table.points) == 3
    raw = check(PartialDependence() - Baseline({"a": 1.0, "b": "u", "c": 2}), frame)
    witness = raw["sensitivity"].witness
    values = (
        MeasureExplainer(
            witness.function, PartialDependence() - Baseline(frame.iloc[0].to_dict() | {"c": 2})
        )
        .fit(frame)
        .explain(raw.points.iloc[witness.row : witness.row + 1])
    )
    j = list(frame.columns).index(witness.feature)
    assert values.values[0, j] == pytest.approx(witness.value)


def test_one_row_and_one_column():
    found = holds(PartialDependence() - Expectation(), X[:1])
    assert found["sensitivity"] is True and found["positivity"] is True  # it is 0
    one = check(PartialDependence() - Expectation(), X[:, :1])
    assert one["completeness"].holds is True and one["sensitivity"].holds is True
    assert one["weak_symmetry"].holds is None


def test_off_support_tells_partial_dependence_from_conditional():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 1))
    data = z + 0.05 * rng.normal(size=(300, 3))
    shares = {m: check(m, data)["off_support"].value for m in ("partial_dependence", "conditional")}
    assert shares["partial_dependence"] > 0.8 and shares["conditional"] < 0.3
    assert check("expectation", data)["off_support"].value == 0


def test_printed_table():
    text = repr(check(SHAPLEY, X, baseline=POINT))
    assert "completeness" in text and "with respect to the baseline" in text and " no " in text
    assert skattr.axioms.check is check


def test_bad_input():
    with pytest.raises(ValueError, match="2 values, X has 3 columns"):
        check(SHAPLEY, X, baseline=[1.0, 2.0])
    with pytest.raises(ValueError, match="nonsense"):
        check("nonsense", X)
    with pytest.raises(ValueError, match="domain must be a dict"):
        check("uniform", X, domain=[[0, 1]])
    with pytest.raises(ValueError, match=r"points must have 3 columns, got shape \(1, 2\)"):
        check("partial_dependence", X, points=[[1.0, 2.0]])


# -- Theorem 2.1 ---------------------------------------------------------------------------------


def test_bound_on_the_distance_to_gradient_times_input():
    rng = np.random.default_rng(2)
    data, base = rng.random((10, 3)), np.full(3, 0.25)
    H = rng.normal(size=(3, 3))
    H = H + H.T
    x = np.array([0.9, 0.1, 0.6])

    def f(Y):
        return np.einsum("ni,ij,nj->n", Y, H, Y) / 2

    def build(x):
        points, weights = coalitions(x)
        return np.where(points == POINT, base, points), weights

    found = bound(
        Atoms(build), data, x, hessian=lambda Y: np.tile(H, (len(Y), 1, 1)), baseline=base,
        gradient=lambda Y: Y @ H,
    )  # fmt: skip
    size = np.abs(np.linalg.eigvalsh(H)).max()
    assert found.applies is True and found.curvature == pytest.approx(size)
    assert found.lipschitz == pytest.approx(np.sqrt(3 * 2.0**2))  # two laws of mass 1 a feature
    assert found.paper == pytest.approx(found.lipschitz * 3 * size / 2)
    assert found.radius == pytest.approx(np.sqrt((0.9**2) * 2 + 0.6**2))
    values = MeasureExplainer(f, Atoms(build)).fit(data).explain(x[None]).values[0]
    off = np.linalg.norm(values - found.gradient_input)
    assert 0 < off <= found.value <= found.paper
    given_number = bound(Atoms(build), data, x, hessian=size, baseline=base)
    assert given_number.value == pytest.approx(found.value) and given_number.curvature_is_exact
    assert bound("partial_dependence", data, x, hessian=1.0, baseline=base).applies is False


def test_bad_bounds():
    data = np.random.default_rng(0).random((5, 2))
    good = {"hessian": 1.0, "baseline": [0, 0]}
    with pytest.raises(ValueError, match=r"x must be a point of the domain.*got \[2.0, 0.0\]"):
        bound("uniform", data, [2.0, 0.0], **good)
    with pytest.raises(ValueError, match="number of at least 0"):
        bound("uniform", data, [0.5, 0.0], **good | {"hessian": -1.0})
    with pytest.raises(TypeError, match="a number or a function"):
        bound("uniform", data, [0.5, 0.0], **good | {"hessian": "large"})
    with pytest.raises(ValueError, match="hessian must return"):
        bound("uniform", data, [0.5, 0.0], **good | {"hessian": lambda Y: np.ones(len(Y))})
