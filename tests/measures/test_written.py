"""Measures of the user's own: what they are asked, what they give, and what is refused.

What they give is held against closed forms and sums by hand.
"""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numba import njit
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from skattr import Explanation, MeasureExplainer
from skattr.engines import QuasiMonteCarlo, Riemann
from skattr.measures import (
    Atoms,
    Baseline,
    Coefficient,
    Density,
    Expectation,
    PartialDependence,
    Sampler,
    ScaledCoefficient,
    Stieltjes,
    Uniform,
)
from tests.helpers.lanes import quickly

rng = np.random.default_rng(0)
X = rng.random((30, 3)).round(2)
WEIGHTS = np.arange(30) % 4
ROWS = X[4:8]
UNIT = np.array([[0.0, 1.0]] * 3)
TREE = DecisionTreeRegressor(max_leaf_nodes=8, random_state=0).fit(X, X[:, 0] * X[:, 1] - X[:, 2])
SLOPES = np.array([1.0, -2.0, 0.5])


def line(Z):
    return np.asarray(Z) @ SLOPES + 3


def both(Z):
    a, b, c = np.asarray(Z, float).T
    return np.stack([a - 2 * b + c / 2 + 3, a * b + c**2], axis=1)


def occlusion(x):
    """f(x) less f(x with a column set to 0)."""
    d = len(x)
    return np.vstack([x, np.where(np.eye(d), 0.0, x)]), np.column_stack([np.ones(d), -np.eye(d)])


def noise(x, j, n, rng):
    """The own column at x, the others uniform."""
    points = rng.random((n, len(x)))
    points[:, j] = x[j] if isinstance(j, int) else x[list(j)]
    return points


def slope(y, x, j):
    """A density of mass 0 that gives the slope along j on the unit cube."""
    return 12 * (y[..., j] - 0.5)


def bump(y, x, j):
    """A density of mass x_j + 1, on the unit cube."""
    return (x[j] + 1) * 2 * y[..., j]


def bump_below(y, x, j):
    """The integrand of `bump`."""
    return (x[j] + 1) * y[..., j] ** 2 * np.prod(np.delete(y, j, axis=-1), axis=-1)


def bump_factors(y, x, j):
    """The same as factors."""
    factors = np.array(y)
    factors[..., j] = (x[j] + 1) * y[..., j] ** 2
    return factors


def bump_of(y, x, j):
    return bump_below(y, x, j)


MEASURES = {
    "atoms": Atoms(occlusion),
    "sampler": Sampler(noise),
    "density": Density(bump),
    "stieltjes": Stieltjes(bump_below),
    "list": Stieltjes([partial(bump_of, j=j) for j in range(3)]),
    "product": Stieltjes(bump_factors, product=True),
    "coefficient": Coefficient(),
    "coefficient of mass 0": Coefficient(mass_zero=True),
    "scaled": ScaledCoefficient(),
    "scaled of mass 0": ScaledCoefficient(mass_zero=True),
}
measures = pytest.mark.parametrize("name", MEASURES)
ADDED = [PartialDependence(), Uniform()]


def fitted(f, measure, data=X, weight=None, **settings):
    settings = {"random_state": 0, "tol": 0.05, "domain": UNIT, **settings}
    return MeasureExplainer(f, measure, **settings).fit(data, sample_weight=weight)


def wanted(name, rows):
    """The values of `both` on the unit cube in closed form, (n, 3, 2)."""
    return np.array([[value_of(name, x, j) for j in range(3)] for x in rows])


def value_of(name, x, j):
    own = np.arange(3) == j
    if name == "atoms":
        return (both(x[None]) - both(np.where(own, 0.0, x)[None]))[0]
    kind = name.split()[0]
    mean, square, others = {
        "sampler": (x[j], x[j] ** 2, (1 / 2, 1 / 3)),
        "scaled": (x[j], x[j] ** 2, (0, 0)),
        "coefficient": (1 / 2, 1 / 3, (0, 0)),
    }.get(kind, (2 / 3, 1 / 2, (1 / 2, 1 / 3)))  # y_j has the density 2 y_j
    m, second = np.where(own, mean, others[0]), np.where(own, square, others[1])
    value = np.array([m @ SLOPES + 3, m[0] * m[1] + second[2]])
    if name.endswith("mass 0"):
        value = value - both(np.zeros((1, 3)))[0]
    return value * {"coefficient": 2, "scaled": 1, "sampler": 1}.get(kind, x[j] + 1)


def mass_of(name, rows):
    """The masses, (n, 3)."""
    if name in ("density", "stieltjes", "list", "product"):
        return rows + 1
    fixed = {"coefficient": 2.0, "scaled": 1.0, "sampler": 1.0}
    return np.full(rows.shape, fixed.get(name, 0.0))


def reference_of(name, weight=None):
    """What centring takes off for each unit of mass, (2,)."""
    if name.startswith(("coefficient", "scaled")):
        return both(np.zeros((1, 3)))[0]
    return np.average(both(X), axis=0, weights=weight)


def near(found, truth, times=6):
    """Values as near as their standard errors say."""
    error = 0.0 if found.std_error is None else found.std_error
    assert (np.abs(found.values - truth) <= times * error + 1e-12).all()


# -- values --------------------------------------------------------------------------------------


@measures
def test_closed_forms(name):
    explainer = fitted(both, MEASURES[name])
    found = explainer.explain(ROWS)
    near(found, wanted(name, ROWS))
    exact = {"atoms", "scaled", "scaled of mass 0"}
    assert explainer.exact_ is found.exact is (name in exact)
    assert (found.std_error is None) is (name in exact)


@measures
def test_centred(name):
    explainer = fitted(both, MEASURES[name], weight=WEIGHTS)
    found = explainer.explain(ROWS)
    off = mass_of(name, ROWS)[:, :, None] * reference_of(name, WEIGHTS)
    varies = name in ("atoms", "density", "stieltjes", "list", "product")
    assert found.offset.shape == ((4, 3, 2) if varies else (2,))
    # the mass of a density is integrated as the value is
    slack = 0.0 if name != "density" else 1e-6
    assert_allclose(np.broadcast_to(found.offset, off.shape), off, atol=1e-12 + slack)
    centred = found.centered()
    near(centred, wanted(name, ROWS) - off)
    assert not np.any(centred.offset)
    assert_allclose(centred.values, found.values - found.offset, rtol=0, atol=0)
    assert_allclose(found.importance()["y0"].sort_index(),
                    np.abs(centred.values[:, :, 0]).mean(axis=0))  # fmt: skip


@pytest.mark.slow
@measures
def test_containers(name):
    plain = fitted(both, MEASURES[name]).explain(ROWS)
    domain = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
    frames = [
        (pd.DataFrame(X, columns=list("abc")), pd.DataFrame(ROWS, columns=list("abc"))),
        (pl.DataFrame(X, schema=list("abc")), pl.DataFrame(ROWS, schema=list("abc"))),
    ]
    for data, rows in frames:
        found = fitted(both, MEASURES[name], data, domain=domain).explain(rows)
        assert_allclose(found.values, plain.values, rtol=1e-12)
        assert list(found.feature_names) == ["a", "b", "c"]
    single = fitted(both, MEASURES[name], X.astype(np.float32)).explain(ROWS)
    near(single, wanted(name, ROWS))


@pytest.mark.slow
@measures
def test_containers_of_integers(name):
    """Nothing is rounded to the integers that a column holds."""
    data = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1]])
    for table in (data, pd.DataFrame(data, columns=list("abc")),
                  pl.DataFrame(data, schema=list("abc")),
                  pd.DataFrame(data, columns=list("abc")).astype("Int64")):  # fmt: skip
        found = fitted(both, MEASURES[name], table, domain=None).explain(table[:2])
        near(found, wanted(name, data[:2].astype(float)))


@measures
def test_trees(name):
    """Trees that are read, against the same trees as functions."""
    read = fitted(TREE, MEASURES[name], tol=0.05)
    black = fitted(lambda Z: TREE.predict(Z), MEASURES[name], tol=0.2, max_evals=1e6)
    exact = name not in ("sampler", "density")
    assert read.exact_ is exact
    found, other = read.explain(ROWS[:3]), black.explain(ROWS[:3])
    error = sum(0.0 if e.std_error is None else e.std_error for e in (found, other))
    assert (np.abs(found.values - other.values) <= 6 * error + 1e-12).all()


@pytest.mark.parametrize("name", quickly(MEASURES, ["sampler", "product"]))
@pytest.mark.parametrize("other", quickly(ADDED, ADDED[:1]))
def test_sums(name, other):
    measure = 2 * MEASURES[name] - other * 0.5
    found, one, two = (fitted(both, m).explain(ROWS) for m in (measure, MEASURES[name], other))
    errors = [0.0 if e.std_error is None else e.std_error for e in (one, two)]
    gap = np.abs(found.values - 2 * one.values + 0.5 * two.values)
    slack = 0.0 if found.std_error is None else 6 * found.std_error
    assert (gap <= slack + 12 * errors[0] + 3 * errors[1] + 1e-12).all()
    off = 2 * np.broadcast_to(one.offset, (4, 3, 2)) - 0.5 * np.broadcast_to(two.offset, (4, 3, 2))
    assert_allclose(np.broadcast_to(found.offset, (4, 3, 2)), off, atol=0.05)
    assert len(found.engine) == len(explainer_terms(measure))


def explainer_terms(measure):
    return [term for c, part in measure.terms for term in part.expanded()]


def test_measures_of_ones_own_together():
    """Slope by a density, by atoms and by an integrand: any sum of shares is the slope."""
    step = Atoms(lambda x: (np.vstack([np.zeros(3), np.eye(3)]), np.c_[-np.ones(3), np.eye(3)]))
    below = Stieltjes(lambda y, x, j: 6 * (y[..., j] ** 2 - y[..., j]) *
                      np.prod(np.delete(y, j, axis=-1), axis=-1))  # fmt: skip
    measure = 0.25 * Density(slope) + 0.25 * step + 0.5 * below + 0 * Sampler(noise)
    found = fitted(line, measure).explain(ROWS)
    near(found, np.tile(SLOPES, (4, 1)))
    assert found.engine == ("riemann", "evaluation", "riemann", "quasi_monte_carlo")
    assert_allclose(found.offset, 0, atol=1e-9)
    sensitive = Coefficient() - 2 * Baseline(np.zeros(3))
    assert_allclose(fitted(line, sensitive).explain(ROWS).values, np.tile(SLOPES, (4, 1)))


@pytest.mark.parametrize("name", ["atoms", "sampler", "density", "stieltjes", "product",
                                  "coefficient", "scaled"])  # fmt: skip
def test_groups(name):
    """Functions get the positions of a group as a tuple."""
    seen = set()

    def lists(x):
        points, weights = occlusion(x)
        points[1, 2], points[3, 0] = 0.0, 0.0
        return points, weights[:2]

    def below(y, x, j):
        seen.add(j)
        return np.prod(y, axis=-1) * (2.0 if isinstance(j, tuple) else 1.0)

    def factors(y, x, j):
        seen.add(j)
        return np.array(y) * (2 ** (1 / 3) if isinstance(j, tuple) else 1.0)

    measure = {
        "atoms": Atoms(lists), "sampler": Sampler(noise),
        "density": Density(lambda y, x, j: (2.0 if j == (0, 2) else 1.0) + 0 * y[..., 0]),
        "stieltjes": Stieltjes(below), "product": Stieltjes(factors, product=True),
        "coefficient": Coefficient(), "scaled": ScaledCoefficient(),
    }[name]  # fmt: skip
    explainer = fitted(both, measure, groups={"g": ["x0", "x2"]})
    found = explainer.explain(ROWS)
    assert found.feature_names == ("g", "x1") and found.values.shape == (4, 2, 2)
    a, _, c = ROWS.T
    mean = np.array([0.5 * SLOPES.sum() + 3, 0.25 + 1 / 3])
    if name == "atoms":
        truth = both(ROWS) - both(ROWS * [0, 1, 0])
    elif name == "sampler":
        truth = np.stack([a - 1 + c / 2 + 3, a / 2 + c**2], axis=1)
    elif name == "coefficient":
        truth = np.broadcast_to([2 * (0.5 + 0.25 + 3), 2 / 3], (4, 2))
    elif name == "scaled":
        truth = np.stack([a + c / 2 + 3, c**2], axis=1)
    else:
        truth = np.broadcast_to(2 * mean, (4, 2))
    error = 0.0 if found.std_error is None else found.std_error[:, 0]
    assert (np.abs(found.values[:, 0] - truth) <= 6 * error + 1e-12).all()
    if name in ("stieltjes", "product"):
        assert seen == {(0, 2), 1}


def test_jumps_of_groups_get_the_tuple():
    seen = []

    def places(x, j):
        seen.append(j)
        return {"x1": 0.5}

    def step(y, x, j):
        return (y[..., 1] >= 0.5) * y[..., 0] * y[..., 2]

    measure = Stieltjes(step, jumps=places)
    found = fitted(both, measure, groups={"g": ["x0", "x2"]}).explain(ROWS[:2])
    assert {*seen} == {(0, 2), 1}
    near(found, np.broadcast_to([0.5 - 1 + 0.25 + 3, 0.25 + 1 / 3], (2, 2, 2)))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, "objects"])
@pytest.mark.parametrize(
    "measure", quickly(["atoms", "atoms as frames", "sampler"], ["atoms as frames"])
)
def test_categories(kind, measure):
    """Points of numbers and words, some of them missing."""
    words = ["red", None, "blue", "red"]
    columns = {"word": words, "size": [1.0, 2.0, 3.0, 4.0]}
    if kind is pd.DataFrame:
        data = pd.DataFrame(columns).astype({"word": "category"})
    elif kind is pl.DataFrame:
        data = pl.DataFrame(columns)
    else:
        data = np.column_stack([np.array(words, object), np.array(columns["size"], object)])

    def f(Z):
        if isinstance(Z, np.ndarray):
            word, size = Z.T
        else:
            word, size = list(Z["word"]), np.asarray(Z["size"], float)
        value = [{"red": 1.0, "blue": 10.0}.get(w, 100.0) for w in word]
        return np.array(value) + np.asarray(size, float)

    def build(x):
        assert x.shape == (2,) and isinstance(x[1], float)
        assert x[0] in ("red", "blue") or x[0] is None or x[0] != x[0]
        points = np.array([[x[0], x[1]], ["red", x[1]], [x[0], 0.0]], dtype=object)
        if measure == "atoms as frames" and not isinstance(data, np.ndarray):
            table = {"size": points[:, 1].astype(float), "word": points[:, 0].tolist()}
            frame = pd.DataFrame(table) if kind is pd.DataFrame else pl.DataFrame(table)
            return frame, np.array([[1, -1, 0], [1, 0, -1.0]])
        return points, np.array([[1, -1, 0], [1, 0, -1.0]])

    def draw(x, j, n, rng):
        points = np.empty((n, 2), object)
        points[:, 0] = "blue" if j else x[0]
        points[:, 1] = x[1] if j else rng.random(n)
        return points

    value = np.array([1.0, 100.0, 10.0, 1.0])
    size = np.array(columns["size"])
    if measure == "sampler":
        truth = np.stack([value + 0.5, size + 10], axis=1)
        explainer = MeasureExplainer(f, Sampler(draw), random_state=0)
    else:
        truth = np.stack([value - 1, size], axis=1)
        explainer = MeasureExplainer(f, Atoms(build))
    near(explainer.fit(data).explain(data), truth)


def test_levels_are_named():
    frame = pd.DataFrame({"a": [1.0, 2.0], "flag": [True, False]})
    word = pd.DataFrame({"a": [1.0, 2.0], "flag": ["u", "v"]})
    for data in (frame, word, pl.DataFrame({"a": [1.0, 2.0], "flag": [True, False]})):
        for measure in (Density(slope), Stieltjes(bump_below)):
            with pytest.raises(ValueError, match=r"'flag' holds levels; Atoms and Sampler"):
                MeasureExplainer(lambda Z: np.zeros(len(Z)), measure).fit(data)
        for measure in (Coefficient(), ScaledCoefficient(), Coefficient(mass_zero=True)):
            with pytest.raises(ValueError, match=r"'flag' holds levels"):
                MeasureExplainer(lambda Z: np.zeros(len(Z)), measure).fit(data)


# -- what they are asked -------------------------------------------------------------------------


def test_what_functions_are_asked():
    asked = []

    def density(y, x, j):
        asked.append((y.shape, x.copy(), j))
        return np.ones(y.shape[:-1])

    frame = pd.DataFrame(ROWS, columns=list("abc"))
    fitted(line, Density(density), frame).explain(frame[:2])
    assert {j for _, _, j in asked} == {0, 1, 2}
    assert all(type(j) is int and shape[-1] == 3 for shape, _, j in asked)
    assert {tuple(x) for _, x, _ in asked} == {tuple(x) for x in ROWS[:2]}


def test_rows_outside_of_the_domain():
    """The own coordinate is pinned where it is."""
    x = np.array([[-2.0, 0.5, 7.0]])
    for name in ("coefficient", "scaled", "density", "product", "sampler", "atoms"):
        near(fitted(both, MEASURES[name]).explain(x), wanted(name, x))


def test_domains():
    sides = np.array([[-1.0, 2.0], [1.0, 5.0], [0.0, 0.5]])
    low, width = sides[:, 0], np.diff(sides)[:, 0]
    at_low = line(low[None])[0]
    found = fitted(line, Coefficient(), domain=sides).explain(ROWS)
    near(found, np.tile(SLOPES * width + 2 * at_low, (4, 1)))
    scaled = fitted(line, ScaledCoefficient(), domain=sides).explain(ROWS)
    near(scaled, SLOPES * (ROWS - low) + at_low)
    near(
        fitted(line, Coefficient(True), domain=sides).explain(ROWS), np.tile(SLOPES * width, (4, 1))
    )
    near(fitted(line, ScaledCoefficient(True), domain=sides).explain(ROWS), SLOPES * (ROWS - low))
    near(found.centered(), np.tile(SLOPES * width, (4, 1)))
    near(scaled.centered(), SLOPES * (ROWS - low))
    flat = fitted(line, Density(lambda y, x, j: np.ones(y.shape[:-1])), domain=sides)
    near(flat.explain(ROWS), np.full((4, 3), width.prod() * line(sides.mean(axis=1)[None])[0]))
    ranges = fitted(line, Coefficient(True), domain=None).explain(ROWS)
    near(ranges, np.tile(SLOPES * np.ptp(X, axis=0), (4, 1)))


def test_constant_columns():
    """A side that is one number is a point: nothing is integrated along it."""
    data = np.column_stack([X[:, :2], np.full(30, 0.25)])
    sides = {0: (0, 1), 1: (0, 1)}
    rows = data[:4]
    flat = np.full((4, 3), 0.5 - 1 + 0.125 + 3)
    for measure in (
        Density(lambda y, x, j: np.ones(y.shape[:-1])),
        Stieltjes(lambda y, x, j: y[..., 0] * y[..., 1]),
        Stieltjes(lambda y, x, j: np.where(np.arange(3) == 2, 1.0, y), product=True),
    ):
        for f in (line, LinearRegression().fit(X, line(X))):
            near(fitted(f, measure, data, domain=sides).explain(rows), flat)
        tree = fitted(TREE, measure, data, domain=sides, tol=0.05)
        expected = fitted(TREE, Expectation("uniform"), data, domain=sides).explain(rows).values
        near(tree.explain(rows), expected)
    found = fitted(line, Coefficient(), data, domain=sides).explain(rows)
    at_low = 0.125 + 3
    near(found, np.tile(SLOPES * [1, 1, 0] + 2 * at_low, (4, 1)))
    off = rows.copy()
    off[:, 2] = 1.25
    near(fitted(line, ScaledCoefficient(True), data, domain=sides).explain(off),
         SLOPES * (off - [0, 0, 0.25]))  # fmt: skip


@measures
def test_one_row(name):
    """The domain of one row is a point."""
    one = X[:1]
    found = fitted(both, MEASURES[name], one, domain=None).explain(one)
    assert np.isfinite(found.values).all() and found.values.shape == (1, 3, 2)
    at = both(one)[0]
    truth = {"coefficient": 2 * at, "scaled": at, "scaled of mass 0": 0 * at,
             "coefficient of mass 0": 0 * at}  # fmt: skip
    if name in truth:
        assert_allclose(found.values[0], np.tile(truth[name], (3, 1)), atol=1e-14)


@pytest.mark.slow
def test_compiled_functions():
    """Compiled by numba, lazily or for given types, they give what plain ones do."""

    @njit
    def lazy(y, x, j):
        out = np.empty(y.shape[0])
        for i in range(y.shape[0]):
            out[i] = (x[j] + 1) * 2 * y[i, j]
        return out

    @njit("float64[:](float64[:,::1], float64[::1], int64)")
    def eager(y, x, j):
        return (x[j] + 1) * 2 * y[:, j]

    plain = fitted(both, Density(bump)).explain(ROWS)
    for function in (lazy, eager):
        assert_allclose(fitted(both, Density(function)).explain(ROWS).values, plain.values)

    @njit
    def below(y, x, j):
        out = np.ones(y.shape[0])
        for i in range(y.shape[0]):
            for k in range(y.shape[1]):
                out[i] *= (x[j] + 1) * y[i, k] ** 2 if k == j else y[i, k]
        return out

    for f in (both, TREE):
        plain = fitted(f, Stieltjes(bump_below)).explain(ROWS)
        assert_allclose(fitted(f, Stieltjes(below)).explain(ROWS).values, plain.values, rtol=1e-12)


def test_draws():
    """The generator is made anew for each row, from seed, attribution and replicate."""
    drawn = []

    def draw(x, j, n, rng):
        points = rng.random((n, 3))
        drawn.append((j, n, tuple(x), points[0, 0]))
        return points

    fitted(line, Sampler(draw), tol=10.0, engine=QuasiMonteCarlo(5)).explain(ROWS[:2])
    assert len(drawn) == 2 * 3 * 5 * 2 and {n for _, n, _, _ in drawn} == {64}  # two rounds
    firsts = {}
    for j, _, x, first in drawn:
        firsts.setdefault(x, []).append((j, first))
    one, two = firsts.values()
    assert one == two and len({first for _, first in one}) == 30


# -- around them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", quickly(MEASURES, ["atoms", "density", "scaled"]))
def test_bits(name):
    measure = MEASURES[name]
    explainer = fitted(both, measure)
    whole = explainer.explain(ROWS)
    for rows in ([3], [2, 1, 1], np.arange(4)[::-1]):
        part = explainer.explain(ROWS[rows])
        assert np.array_equal(part.values, whole.values[rows])
    some = explainer.explain(ROWS, features=["x2", "x0"])
    assert np.array_equal(some.values, whole.values[:, [2, 0]])
    again = pickle.loads(pickle.dumps(explainer)).explain(ROWS)
    assert np.array_equal(again.values, whole.values)
    copied = clone(explainer).fit(X).explain(ROWS)
    assert np.array_equal(copied.values, whole.values)
    table = explainer.transform(ROWS)
    assert np.array_equal(table, whole.values.transpose(0, 2, 1).reshape(4, -1))


@measures
def test_clone_and_words(name):
    measure = MEASURES[name]
    copy = clone(measure)
    assert type(copy) is type(measure) and copy.get_params().keys() == measure.get_params().keys()
    assert repr(measure).startswith(type(measure).__name__ + "(")
    whole = 2 * measure - PartialDependence()
    assert type(measure).__name__ in repr(whole) and "- PartialDependence()" in repr(whole)
    text = fitted(both, measure).describe()
    assert type(measure).__name__ in text


def test_repr_of_coefficients():
    assert repr(Coefficient()) == "Coefficient()"
    assert repr(ScaledCoefficient(mass_zero=True)) == "ScaledCoefficient(mass_zero=True)"
    assert (Coefficient() * 2).set_params(term0__mass_zero=True).terms[0][1].mass_zero is True


@measures
def test_curves(name):
    explainer = fitted(both, MEASURES[name])
    if isinstance(MEASURES[name], Coefficient | ScaledCoefficient):
        found = explainer.explain(ROWS)
        assert np.array_equal(explainer.curve("x1")(ROWS[:, 1]), found.values[:, 1])
        if isinstance(MEASURES[name], Coefficient):
            assert len(np.unique(explainer.curve("x1")([-3.0, 0.2, 9.0]), axis=0)) == 1
        return
    with pytest.raises(ValueError, match=rf"(?s){type(MEASURES[name]).__name__}.*whole row.*no c"):
        explainer.curve("x1")
    with pytest.raises(ValueError, match="whole row"):
        fitted(both, MEASURES[name] + PartialDependence()).curve("x1")


@measures
def test_batches(name):
    measure = MEASURES[name]
    explainer = MeasureExplainer(both, measure, random_state=0, tol=0.05)
    if name in ("atoms", "sampler"):
        explainer.partial_fit(X[:10], sample_weight=WEIGHTS[:10])
        explainer.partial_fit(X[10:], sample_weight=WEIGHTS[10:])
        one = fitted(both, measure, weight=WEIGHTS).explain(ROWS)
        found = explainer.explain(ROWS)
        assert_allclose(found.values, one.values, rtol=1e-12)
        assert_allclose(found.offset, one.offset, rtol=1e-12)
        return
    assert not hasattr(explainer, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        explainer.partial_fit(X)
    assert "moves with the range" in str(caught.value.__cause__)


def test_several_outputs_of_a_classifier():
    labels = np.digitize(X[:, 0] + X[:, 1], [0.7, 1.2])
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, labels)
    for name in ("atoms", "stieltjes", "product", "coefficient", "scaled"):
        found = fitted(forest, MEASURES[name]).explain(ROWS)
        assert found.values.shape == (4, 3, 3) and found.exact
        masses = np.broadcast_to(mass_of(name, ROWS), (4, 3))
        assert_allclose(found.values.sum(axis=2), masses, atol=1e-12)  # probabilities sum to 1


def test_saved(tmp_path):
    found = fitted(both, Density(bump) + Uniform()).explain(ROWS)
    assert found.offset.shape == found.values.shape
    found.save(tmp_path / "found.npz")
    again = Explanation.load(tmp_path / "found.npz")
    assert np.array_equal(again.offset, found.offset)
    assert np.array_equal(again.centered_error, found.centered_error)
    assert np.array_equal(again[2:4].centered().values, found.centered().values[2:4])
    assert np.array_equal(again.select(1).offset, found.offset[:, :, 1])


def test_kernel_machines():
    """The coefficient measures are exact where a model is a sum of products."""
    machine = SVR().fit(X, both(X)[:, 1])
    for measure in (Coefficient(), ScaledCoefficient(), Coefficient(True), ScaledCoefficient(True)):
        read = fitted(machine, measure)
        assert read.exact_
        black = fitted(lambda Z: machine.predict(Z), measure, tol=1e-6)
        assert_allclose(read.explain(ROWS).values, black.explain(ROWS).values, atol=1e-8)


# -- bad input -----------------------------------------------------------------------------------


def refused(measure, *words, f=line, kind=ValueError, data=X, **settings):
    """What is said when something is wrong, in fit or in explain."""
    with pytest.raises(kind) as caught:
        fitted(f, measure, data, **settings).explain(ROWS[:2])
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"


def test_wrong_shapes():
    refused(Density(lambda y, x, j: y), "density must return numbers", "shape (64,)",
            "got", "of shape (64, 3)")  # fmt: skip
    refused(Density(lambda y, x, j: 1.0), "density must return", "got float64 of shape ()")
    refused(Stieltjes(lambda y, x, j: y[..., :1]), "integrand must return numbers")
    refused(Stieltjes(lambda y, x, j: y[..., 0], product=True), "integrand must return", "3)")
    refused(
        Density(lambda y, x, j: np.full(len(y), "word")), "density must return numbers", "got <U4"
    )
    refused(Density(lambda y, x, j: None), "density must return numbers", "got object")
    refused(Atoms(lambda x: x), "build must return two things")
    refused(Atoms(lambda x: (x, np.ones((3, 1)))), "points of shape (m, 3), got (3,)")
    refused(
        Atoms(lambda x: (np.ones((2, 3)), np.ones((2, 3)))), "weights of shape (3, 2)", "got (2, 3)"
    )
    refused(
        Atoms(lambda x: (np.ones((0, 3)), np.ones((3, 0)))), "points of shape (m, 3), got (0, 3)"
    )
    refused(Sampler(lambda x, j, n, rng: np.ones((n, 2))), "draw must return points", "(m, 3)")
    refused(Sampler(lambda x, j, n, rng: np.ones((7, 3))), "draw must return 64 points, got 7")
    frame = pd.DataFrame(X, columns=list("abc"))
    measure = Atoms(lambda x: (frame[["a", "b"]], np.ones((3, 30))))
    with pytest.raises(ValueError, match=r"without the columns \['c'\]"):
        fitted(line, measure, frame).explain(frame[:1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers(bad):
    def here(y, x, j):
        return np.where((y[..., 0] > 0.5) & (j == 1), bad, 1.0)

    def factors(y, x, j):
        return np.where(y > 0.5, bad, y)

    refused(
        Density(here), f"density must return finite numbers, got {bad} at y = [", "x = [", "j = 1"
    )
    refused(
        Stieltjes(here),
        f"integrand must return finite numbers, got {bad} at y = [",
        "x = [",
        "j = 1",
    )
    refused(Stieltjes(here), f"integrand must return finite numbers, got {bad} at y = [", f=TREE)
    for f in (line, TREE):
        refused(
            Stieltjes(factors, product=True),
            f"integrand must return finite numbers, got {bad} at y = [",
            f=f,
        )
    refused(Atoms(lambda x: (x[None], np.full((3, 1), bad))), "build must return finite weights",
            f"{ROWS[0, 0]}")  # fmt: skip


def test_the_place_is_the_first_bad_one():
    def density(y, x, j):
        return np.where(np.abs(y - 0.5).max(axis=-1) < 0.2, np.nan, 1.0)

    with pytest.raises(ValueError) as caught:
        fitted(line, Density(density)).explain(ROWS[:1])
    text = str(caught.value)
    place = text[text.index("y = [") + 5 :]
    y = np.array([float(part) for part in place[: place.index("]")].split(",")])
    assert np.isnan(density(y, None, 0))


@pytest.mark.slow
@pytest.mark.parametrize("f", [line, TREE])
def test_functions_that_write_to_their_input(f):
    def shifts(y, x, j):
        y[..., 0] += 1
        return y[..., 0]

    def sorts(y, x, j):
        x.sort()
        return y[..., 0]

    @njit
    def compiled(y, x, j):
        for i in range(y.shape[0]):
            y[i, 0] = 0.0
        return y[:, 0].copy()

    def factors(y, x, j):
        y *= 2
        return y

    for function in (shifts, sorts, compiled):
        for measure in (Density(function), Stieltjes(function)):
            what = "density" if isinstance(measure, Density) else "integrand"
            refused(measure, f"{what} must not change y and x", "at y = [", "x = [", "copy()", f=f)
    refused(Stieltjes(factors, product=True), "integrand must not change y and x", "at y = [", f=f)

    def build(x):
        x[0] = 7.0
        return x[None], np.ones((3, 1))

    refused(Atoms(build), "build must not change its input", str(ROWS[0, 0]), f=f)
    explained = ROWS.copy()
    with pytest.raises(ValueError, match="must not change y and x"):
        fitted(f, Density(shifts)).explain(explained)
    assert np.array_equal(explained, ROWS)


def test_a_sampler_may_write_to_its_own_copy():
    def draw(x, j, n, rng):
        x[:] = 0.0
        return rng.random((n, 3))

    rows = ROWS.copy()
    fitted(line, Sampler(draw)).explain(rows)
    assert np.array_equal(rows, ROWS)


def test_errors_of_functions_come_through():
    def fails(*arguments):
        raise ZeroDivisionError("of his own")

    for measure in (Density(fails), Stieltjes(fails), Atoms(fails), Sampler(fails)):
        refused(measure, "of his own", kind=ZeroDivisionError)


def test_domains_that_are_none():
    for name in ("density", "stieltjes", "coefficient", "scaled"):
        for pair in ((2.0, 1.0), (0.0, np.inf), (np.nan, 1.0)):
            refused(MEASURES[name], "domain['x1'] must be", "finite", domain={"x1": pair})
        refused(MEASURES[name], "domain must be a dict", "(3, 2)", domain=np.zeros((2, 2)))
        infinite = X.copy()
        infinite[0, 1] = np.inf
        refused(MEASURES[name], "x1", "infinite", "domain=", data=infinite, domain=None)


def test_parameters_that_are_none():
    refused(Density(3), "Density: density must be a function, got 3", kind=TypeError)
    refused(Sampler("no"), "Sampler: draw must be a function, got 'no'", kind=TypeError)
    refused(Atoms(None), "Atoms: build must be a function, got None", kind=TypeError)
    refused(Stieltjes(None), "integrand must be a function g(y, x, j)", "got None", kind=TypeError)
    refused(Stieltjes([slope, 3, slope]), "function", kind=TypeError)
    refused(Stieltjes([slope]), "one integrand per column", "got 1 for 3 columns")
    refused(Stieltjes([slope] * 3), "groups", groups={"g": ["x0", "x1"]})
    refused(Stieltjes(slope, product="yes"), "product must be True or False, got 'yes'")
    refused(Stieltjes(slope, jumps=[0.5]), "jumps must be a dict", kind=TypeError)
    refused(Stieltjes(slope, jumps={"nobody": 0.5}), "got 'nobody'", "['x0', 'x1', 'x2']")
    refused(Stieltjes(slope, jumps={"x0": np.nan}), "jumps of column 'x0'")
    refused(Stieltjes(slope, jumps=lambda x, j: [0.5]), "jumps must be a dict", kind=TypeError)
    refused(Coefficient(mass_zero="yes"), "mass_zero must be True or False, got 'yes'")
    refused(ScaledCoefficient(mass_zero=1), "mass_zero must be True or False, got 1")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["atoms", "sampler", "density", "stieltjes", "coefficient"])
def test_models_that_fail(name):
    calls = []

    def sometimes(Z, bad):
        calls.append(len(Z))
        return bad(line(Z)) if len(calls) > 6 else line(Z)

    def late(bad):
        calls.clear()
        return partial(sometimes, bad=bad)

    def nan(y):
        return np.where(np.arange(len(y)) == 2, np.nan, y)

    rows = ROWS[:2] if name != "coefficient" else ROWS

    def run(bad):
        explainer = fitted(late(bad), MEASURES[name], tol=1e-9, max_evals=5000)
        for _ in range(9):
            explainer.explain(rows)

    with pytest.raises(ValueError, match="returned NaN for row 2"):
        run(nan)
    with pytest.raises(ValueError, match=r"returned an array of shape \(\d+,\) for \d+ rows"):
        run(lambda y: y[:-1])
    with pytest.raises(ValueError, match="returned 2 values per row, but 1 before"):
        run(lambda y: np.stack([y, y], axis=1))


def test_grids_that_are_too_large():
    wide = np.random.default_rng(0).random((5, 6))
    f = partial(np.sum, axis=1)

    def below(y, x, j):
        return np.prod(y, axis=-1)

    with pytest.raises(ValueError) as caught:
        MeasureExplainer(f, Stieltjes(below)).fit(wide)
    for words in ("531441 cells", "9 points", "100000", "raise max_evals", "Riemann(points=",
                  "product"):  # fmt: skip
        assert words in str(caught.value)
    # a density has points instead, and says so
    dense = MeasureExplainer(f, Density(lambda y, x, j: np.ones(y.shape[:-1])), random_state=0)
    assert dense.fit(wide).engine_ == ("quasi_monte_carlo",)
    with pytest.raises(ValueError, match=r"1000000 cells.*max_evals"):
        MeasureExplainer(f, dense.measure, engine=Riemann(points=10)).fit(wide)
    # a product that has few cells is none too large, one that has many is
    few = Stieltjes(lambda y, x, j: np.where(np.arange(6) == j, y, y > 0), product=True)
    unit = np.array([[0.0, 1.0]] * 6)
    found = MeasureExplainer(f, few, domain=unit).fit(wide).explain(wide)
    assert_allclose(found.values, 0.5, atol=1e-12)
    many = MeasureExplainer(f, Stieltjes(lambda y, x, j: np.array(y), product=True)).fit(wide)
    with pytest.raises(ValueError, match=r"531441 cells.*raise max_evals"):
        many.explain(wide[:1])


def test_boxes_that_are_too_many():
    small = {"max_evals": 60, "tol": 10.0}
    with pytest.raises(ValueError, match=r"8 boxes have 64 corners.*max_evals is 60.*product"):
        fitted(TREE, Stieltjes(bump_below), engine="increments", **small)
    named = fitted(TREE, Stieltjes(bump_factors, product=True), engine="increments", **small)
    assert named.exact_
    with pytest.raises(ValueError, match="increments"):
        fitted(line, Stieltjes(bump_below), engine="increments")
    assert fitted(TREE, Stieltjes(bump_below), max_evals=600).exact_


def test_no_cuda():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    for name in ("density", "coefficient"):
        refused(MEASURES[name], "device='cuda'", device="cuda")
