"""Learned families against slow, independent definitions."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import ndtr, ndtri
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from skattr.engines import laws
from skattr.measures.factors.laws import Normal
from skattr.measures.learned import mixture
from skattr.measures.learned.copula import learn_copula
from skattr.measures.learned.full_mixture import Fit as FullFit
from skattr.measures.learned.full_mixture import full_step, learn_full_mixture
from skattr.measures.learned.gaussian import learn_gaussian
from skattr.measures.learned.mixture import Fit, em_step, learn_mixture
from skattr.pieces import as_pieces, choose_output

pytestmark = pytest.mark.slow

LEARN = [learn_gaussian, learn_copula, learn_mixture, learn_full_mixture]
SEEDS = range(8)
OWNS = [[2], [0, 3], [3, 1], [0, 1, 2, 3], []]


def table(seed, n=200, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    return X, rng.uniform(0.5, 2.0, n)


def groups(seed, n=600, d=3, apart=8.0):
    """Three separated clusters."""
    rng = np.random.default_rng(seed)
    middles = apart * np.array([[0, 0, 0], [1, 1, 0], [-1, 1, 2]])[:, :d]
    return middles[rng.integers(0, 3, n)] + rng.normal(size=(n, d))


def sobol(m, p=4096):
    return stats.qmc.Sobol(m, seed=0).random(p)


def others_of(d, own):
    return [k for k in range(d) if k not in own]


# ------------------------------------------------------------------------------- all families


@pytest.mark.parametrize("learn", LEARN)
@pytest.mark.parametrize("own", OWNS)
def test_centers_are_means_of_points(learn, own):
    X, w = table(1)
    law = learn(X, w)
    u = sobol(law.n_uniforms)
    for t in [X[0, own], X[1, own]]:
        points = law.points(u, t, own)
        assert points.shape == (len(u), 4)
        assert_array_equal(points[:, own], np.tile(t, (len(u), 1)))
        assert_allclose(points.mean(axis=0), law.center(t[None], own)[0], atol=0.02 * X.std())


@pytest.mark.parametrize("learn", LEARN)
def test_missing_is_not_conditioned_on_and_stays(learn):
    X, w = table(2)
    law = learn(X, w)
    own, t = [0, 3], np.array([[1.0, np.nan], [np.nan, np.nan], [1.0, 2.0], [np.nan, 2.0]])
    center, support = law.center(t, own), law.support(t, own)
    assert_array_equal(center[:, own], t)
    first, last = law.center(t[:1, :1], [0]), law.center(t[3:, 1:], [3])
    assert_allclose(center[0, [1, 2]], first[0, [1, 2]], rtol=1e-12)
    assert_allclose(center[3, [1, 2]], last[0, [1, 2]], rtol=1e-12)
    assert_allclose(center[1, [1, 2]], (w @ X / w.sum())[[1, 2]], rtol=1e-9)
    assert_allclose(support[0], law.support(t[:1, :1], [0])[0], rtol=1e-12)
    assert_allclose(support[1], w.sum() ** 2 / (w**2).sum(), rtol=0.02)
    u = sobol(law.n_uniforms, 512)
    points = law.points(u, t[0], own)
    assert np.isnan(points[:, 3]).all()
    if learn is not learn_mixture:  # there uniform numbers move to other columns
        spread = law.points(u, t[0], own)[:, 1].std()
        assert_allclose(spread, law.points(u, t[0, :1], [0])[:, 1].std(), rtol=0.1)


@pytest.mark.parametrize("learn", LEARN)
def test_pickled_families_answer_the_same(learn):
    X, w = table(3)
    law = learn(X, w)
    u = sobol(law.n_uniforms, 64)
    wanted = law.points(u, X[0, [1]], [1])
    state = pickle.dumps(law)
    assert len(state) == len(pickle.dumps(learn(X, w)))  # nothing that was kept for speed
    assert_array_equal(pickle.loads(state).points(u, X[0, [1]], [1]), wanted)


@pytest.mark.parametrize("learn", LEARN)
def test_constant_columns_condition_on_nothing_and_stay(learn):
    X, w = table(4)
    X[:, 1] = 0.1  # whose weighted mean is not 0.1 to the last bit
    law = learn(X, w)
    mean = w @ X / w.sum()
    for t in ([[0.1]], [[7.0]], [[-1e9]]):
        assert_allclose(law.center(np.array(t), [1])[0, [0, 2, 3]], mean[[0, 2, 3]], rtol=1e-9)
    some = X[:5, [0, 1]]
    alone = law.center(some[:, :1], [0])
    assert_array_equal(alone[:, 1], 0.1)
    assert_allclose(law.center(some, [0, 1])[:, 2:], alone[:, 2:], rtol=1e-12)
    assert_array_equal(law.points(sobol(law.n_uniforms, 32), X[0, [0]], [0])[:, 1], 0.1)
    assert np.isfinite(law.support(some, [0, 1])).all()


@pytest.mark.parametrize("learn", LEARN)
def test_all_columns_constant_and_few_rows(learn):
    X = np.tile([1.0, 2.0], (5, 1))
    law = learn(X, np.ones(5))
    assert_array_equal(law.center(np.array([[1.0], [5.0]]), [0]), [[1, 2], [5, 2]])
    assert_allclose(law.support(np.array([[1.0]]), [0]), 5)
    X, w = table(0, n=5, d=8)  # fewer rows than columns
    law = learn(X, w)
    assert np.isfinite(law.center(X[:, [2, 3, 4, 5, 6]], [2, 3, 4, 5, 6])).all()
    assert np.isfinite(law.points(sobol(law.n_uniforms, 16), X[0, [2]], [2])).all()


@pytest.mark.parametrize("learn", LEARN)
def test_units_do_not_matter(learn):
    X, w = table(5)
    units = np.array([1e-6, 1e6, 1.0, 1e-3])
    law, scaled = learn(X, w), learn(X * units, w)
    for own in OWNS[:3]:
        wanted = law.center(X[:10, own], own) * units
        assert_allclose(scaled.center((X * units)[:10, own], own), wanted, rtol=1e-7)
        supports = [a.support(b[:10, own], own) for a, b in ((law, X), (scaled, X * units))]
        assert_allclose(*supports, rtol=1e-7)


@pytest.mark.parametrize("learn", [learn_gaussian, learn_copula])
def test_integer_weights_are_repeated_rows(learn):
    X, _ = table(6)
    X[:, 3] = X[:, 3].round()
    times = np.random.default_rng(0).integers(1, 5, len(X))
    law, repeated = learn(X, times * 0.1), learn(np.repeat(X, times, axis=0), np.ones(times.sum()))
    u = sobol(4, 256)
    for own in OWNS:
        assert_allclose(law.center(X[:, own], own), repeated.center(X[:, own], own), rtol=1e-9)
        pair = [one.points(u, X[0, own], own).mean(axis=0) for one in (law, repeated)]
        assert_allclose(*pair, rtol=1e-2, atol=1e-2)  # signs of eigenvectors are free


# ---------------------------------------------------------------------------------- gaussian


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("own", OWNS[:4])
def test_gaussian_is_conditional_by_the_formulas(seed, own):
    X, w = table(seed)
    law = learn_gaussian(X, w)
    others = others_of(4, own)
    mean, cov = np.average(X, axis=0, weights=w), np.cov(X.T, aweights=w, ddof=0)
    t = X[:7, own] + 0.3
    slopes = np.linalg.solve(cov[np.ix_(own, own)], cov[np.ix_(own, others)]).T
    wanted = mean[others] + (t - mean[own]) @ slopes.T
    assert_allclose(law.center(t, own)[:, others], wanted, rtol=1e-9, atol=1e-9)
    if others:
        line = LinearRegression().fit(X[:, own], X[:, others], sample_weight=w)
        assert_allclose(wanted, line.predict(t), rtol=1e-9, atol=1e-9)
        left = cov[np.ix_(others, others)] - slopes @ cov[np.ix_(own, others)]
        _, factor = law.conditional(own, np.arange(len(own)))
        root = factor * law.scale[others][:, None]
        assert_allclose(root @ root.T, left, atol=1e-9)
        assert (np.diff((factor**2).sum(axis=0)) <= 0).all()  # the first moves most
        points = law.points(sobol(4), t[0], own)[:, others]
        atol = 0.01 * np.abs(cov).max()
        assert_allclose(np.cov(points.T, ddof=0).reshape(left.shape), left, atol=atol)
    z = np.einsum("mi,ij,mj->m", t - mean[own], np.linalg.inv(cov[np.ix_(own, own)]), t - mean[own])
    n_eff = w.sum() ** 2 / (w**2).sum()
    assert_allclose(law.support(t, own), n_eff / (1 + z), rtol=1e-9)


def test_gaussian_with_columns_that_follow_from_others():
    X, w = table(7)
    X[:, 3] = 3 * X[:, 0] - X[:, 1] + 1e6
    law = learn_gaussian(X, w)
    t = X[:20, [0, 1]]
    assert_allclose(law.center(t, [0, 1])[:, 3], X[:20, 3], rtol=1e-12)
    u = sobol(4, 64)
    assert_allclose(law.points(u, t[0], [0, 1])[:, 3], X[0, 3], rtol=1e-12)
    both = X[:20, [0, 1, 3]]  # a singular matrix to invert
    without = law.center(t, [0, 1])
    assert_allclose(law.center(both, [0, 1, 3])[:, 2], without[:, 2], rtol=1e-6)
    assert_allclose(law.support(both, [0, 1, 3]), law.support(t, [0, 1]), rtol=1e-6)


def test_gaussian_refuses_infinite_values_and_takes_large_ones():
    X, w = table(8)
    law = learn_gaussian(X, w)
    for t in (np.inf, -np.inf):
        with pytest.raises(ValueError, match="infinite value has no Gaussian"):
            law.center(np.array([[0.0], [t]]), [1])
        with pytest.raises(ValueError, match="infinite value has no Gaussian"):
            law.points(sobol(4, 8), np.array([t]), [1])
    assert law.support(np.array([[1e300]]), [1])[0] < 1e-100
    assert np.isfinite(law.center(np.array([[1e300]]), [1])).all()
    ends = law.points(np.array([[0.0] * 4, [1.0] * 4]), X[0, [1]], [1])
    assert np.isfinite(ends).all()


def test_gaussian_makes_a_factor_once(monkeypatch):
    X, w = table(9)
    law = learn_gaussian(X, w)
    u = sobol(4, 8)
    law.points(u, X[0, [1]], [1])
    monkeypatch.setattr(np.linalg, "eigh", None)
    law.points(u, X[1, [1]], [1])
    with pytest.raises(TypeError):
        law.points(u, np.array([np.nan]), [1])


# ------------------------------------------------------------------------------------ copula


def scores_by_loop(column, w, t):
    rank = np.array([(w * ((column < s) + 0.5 * (column == s))).sum() / w.sum() for s in t])
    seen = [(w * ((column < s) + 0.5 * (column == s))).sum() / w.sum() for s in column]
    return ndtri(np.clip(rank, min(seen), max(seen)))


@pytest.mark.parametrize("own", OWNS[:3])
def test_copula_center_by_a_loop(own):
    X, w = table(10, n=60)
    X[:, 1], X[:, 3] = X[:, 1].round(), X[:, 3] > 0
    law = learn_copula(X, w)
    S = np.stack([scores_by_loop(X[:, k], w, X[:, k]) for k in range(4)], axis=1)
    mean, cov = np.average(S, axis=0, weights=w), np.cov(S.T, aweights=w, ddof=0)
    scale = np.sqrt(cov.diagonal())
    R = cov / np.outer(scale, scale)
    t = np.concatenate([X[:3], X[:1] + 0.01, [[-np.inf] * 4, [np.inf] * 4, [-99.0] * 4]])[:, own]
    z = np.stack([scores_by_loop(X[:, k], w, t[:, i]) for i, k in enumerate(own)], axis=1)
    z = (z - mean[own]) / scale[own]
    for k in others_of(4, own):
        slopes = np.linalg.solve(R[np.ix_(own, own)], R[own, k])
        s = np.sqrt(1 - R[k, own] @ slopes)
        for i in range(len(t)):
            total, before = 0.0, 0.0
            for v in np.unique(X[:, k]):
                share = min(w[X[:, k] <= v].sum() / w.sum(), 1.0)
                upto = 1.0 if v == X[:, k].max() else ndtr((ndtri(share) - z[i] @ slopes) / s)
                total, before = total + v * (upto - before), upto
            assert_allclose(law.center(t[[i]], own)[0, k], total, rtol=1e-9, atol=1e-9)
            assert_allclose(law.center(t, own)[i, k], total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rho", [0.3, 0.9, 0.995, 0.9999])
def test_copula_center_at_many_values(rho):
    """A polynomial replaces the sums: the same as value by value."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    X[:, 1] = rho * X[:, 0] + np.sqrt(1 - rho**2) * X[:, 1]
    law = learn_copula(np.exp(X), np.ones(len(X)))
    t = np.exp(rng.normal(size=(3000, 1)))
    some = law.center(t, [0])
    for i in range(0, 3000, 100):
        assert_allclose(some[i], law.center(t[[i]], [0])[0], rtol=1e-11)


def test_copula_points_are_values_of_the_data():
    X, w = table(11)
    law = learn_copula(X, w)
    points = law.points(sobol(4, 512), X[0, [1]], [1])
    for k in (0, 2, 3):
        assert np.isin(points[:, k], X[:, k]).all()
    independent = learn_copula(X, w)
    independent.scores.correlation[:] = np.eye(4)  # then the marginals are the data's, exactly
    assert_allclose(
        independent.center(X[:5, [0]], [0])[:, 1:], np.tile(w @ X / w.sum(), (5, 1))[:, 1:]
    )


def test_copula_knows_ranks_alone():
    X, w = table(12)
    X[:, 2] = X[:, 2].round()
    X /= 8  # so that exp and cubes stay one to one
    Y = np.stack([np.exp(X[:, 0]), X[:, 1] ** 3, 5 * X[:, 2], np.arctan(X[:, 3])], axis=1)
    assert all(len(np.unique(Y[:, k])) == len(np.unique(X[:, k])) for k in range(4))
    law, moved = learn_copula(X, w), learn_copula(Y, w)
    assert_array_equal(law.scores.correlation, moved.scores.correlation)
    u = sobol(4, 256)
    for own in OWNS[:3]:
        assert_array_equal(law.support(X[:, own], own), moved.support(Y[:, own], own))
        a, b = law.points(u, X[0, own], own), moved.points(u, Y[0, own], own)
        for k in others_of(4, own):
            at = np.searchsorted(law.values[k], a[:, k])
            assert_array_equal(at, np.searchsorted(moved.values[k], b[:, k]))


def test_copula_of_a_column_and_itself():
    X, w = table(13, d=2)
    X[:, 1] = -np.exp(X[:, 0])
    law = learn_copula(X, w)
    center = law.center(X[:, [0]], [0])
    assert np.isin(center[:, 1], X[:, 1]).all()  # no spread is left
    near = np.searchsorted(law.values[1], center[:, 1]) - np.searchsorted(law.values[1], X[:, 1])
    assert np.abs(near).max() <= 3
    assert_array_equal(law.points(sobol(2, 8), X[3, [0]], [0])[:, 1], center[3, 1])


def test_copula_with_a_row_of_no_weight_to_speak_of():
    X, w = table(14)
    w[X[:, 0].argmax()] = 1e-30
    law = learn_copula(X, w)
    t = np.array([[np.inf], [-np.inf], [X[:, 0].max()]])
    assert np.isfinite(law.center(t, [0])[:, 1:]).all()
    assert np.isfinite(law.support(t, [0])).all()


# ----------------------------------------------------------------------------------- mixture


def log_likelihood(law, X, w):
    logs = stats.norm.logpdf(X[:, None], law.means, law.scales).sum(axis=2) + np.log(law.weights)
    return w @ np.logaddexp.reduce(logs, axis=1) / w.sum()


@pytest.mark.parametrize("own", [[0], [2, 1], []])
def test_shares_by_densities(own):
    X = groups(0, apart=1.5)
    law = learn_mixture(X, np.ones(len(X)), 3)
    t = X[:50, own]
    dense = stats.norm.pdf(t[:, None], law.means[:, own], law.scales[:, own]).prod(axis=2)
    dense = dense * law.weights
    wanted = dense / dense.sum(axis=1, keepdims=True)
    assert_allclose(law.shares(t, own), wanted, rtol=1e-9, atol=1e-12)
    assert_allclose(law.center(t, own)[:, others_of(3, own)],
                    (wanted @ law.means)[:, others_of(3, own)], rtol=1e-9)  # fmt: skip
    assert_allclose(law.points(sobol(4, 64), np.full(1, np.nan), [0])[:, 1:].shape, (64, 2))


def test_shares_far_out_are_limits():
    law = learn_mixture(groups(1), np.ones(600), 3)
    law.scales[:, 0] = [1.0, 2.0, 2.0]
    law.means[:, 0] = [5.0, -1.0, 1.0]
    law.scales[:, 1] = 1.0
    law.means[:, 1] = [3.0, 3.0, 1.0]
    assert_array_equal(law.shares(np.array([[np.inf], [-np.inf]]), [0]), [[0, 0, 1], [0, 1, 0]])
    assert_allclose(law.shares(np.array([[1e300], [-1e30]]), [0]), [[0, 0, 1], [0, 1, 0]])
    two = law.weights[:2] / law.weights[:2].sum()
    assert_allclose(
        law.shares(np.array([[np.inf], [-np.inf]]), [1]), [[*two, 0], [0, 0, 1]], atol=1e-200
    )
    near, far = mixture._near, mixture._far
    t = np.random.default_rng(0).normal(size=(50, 2)) * 5
    t[3, 1], t[4, 0] = np.nan, np.nan
    args = law.weights, law.means[:, :2], law.scales[:, :2], t
    assert_allclose(near(*args), far(*args), rtol=1e-9, atol=1e-200)
    both = law.shares(np.array([[np.inf, np.nan], [np.nan, np.inf]]), [0, 1])
    assert_allclose(both, [[0, 0, 1], [*two, 0]], atol=1e-200)


def test_mixture_support_counts_rows():
    X, w = groups(2), np.random.default_rng(2).uniform(0.5, 2, 600)
    law = learn_mixture(X, w)
    t = np.array([[0.0], [3.7], [np.inf], [np.nan]])
    dense = stats.norm.pdf(X[:, None], law.means, law.scales).prod(axis=2) * law.weights
    belongs = dense / dense.sum(axis=1, keepdims=True)
    mass = w @ belongs
    rows = w[:, None] * belongs / mass @ law.shares(t, [0]).T  # (n, m) weights that add up to 1
    assert_allclose(rows.sum(axis=0), 1)
    assert_allclose(law.support(t, [0]), 1 / (rows**2).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_em_never_falls(seed):
    X, w = table(seed)
    scores = (X - X.mean(axis=0)) / X.std(axis=0)
    scores[:, 0] = scores[:, 0] > 0.5  # variances meet their floor
    data = np.concatenate([scores**2, scores], axis=1)
    rng = np.random.default_rng(seed)
    fit = Fit(np.full(4, 0.25), rng.normal(size=(4, 4)), np.ones((4, 4)))
    found = []
    for _ in range(60):
        fit = em_step(data, w / w.sum(), fit)
        found.append(fit.likelihood)
    assert (np.diff(found) >= -1e-12).all()
    logs = stats.norm.logpdf(scores[:, None], fit.means, np.sqrt(fit.variances)).sum(axis=2)
    after = em_step(data, w / w.sum(), fit).likelihood
    wanted = w @ np.logaddexp.reduce(logs + np.log(fit.weights), axis=1) / w.sum()
    assert_allclose(after, wanted, rtol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_bic_finds_the_number_of_components(seed):
    X = groups(seed)
    law = learn_mixture(X, np.ones(len(X)))
    assert len(law.weights) == 3
    assert (np.diff(law.weights) <= 0).all()
    assert_allclose(law.scales, 1.0, atol=0.25)
    one = np.random.default_rng(seed).normal(size=(600, 3)) * [1, 5, 0.01]
    law = learn_mixture(one, np.ones(600))
    assert len(law.weights) == 1
    assert_allclose(law.means[0], one.mean(axis=0), rtol=1e-9)
    assert_allclose(law.scales[0], one.std(axis=0), rtol=1e-9)


def test_mixture_weights_are_repeated_rows():
    X = groups(3, n=300)
    times = np.random.default_rng(3).integers(1, 4, len(X))
    law = learn_mixture(X, times * 2.5, 3)
    repeated = learn_mixture(np.repeat(X, times, axis=0), np.ones(times.sum()), 3)
    assert_allclose(log_likelihood(law, X, times), log_likelihood(repeated, X, times), rtol=1e-6)
    assert_allclose(law.means, repeated.means, rtol=1e-3, atol=1e-3)


def test_mixture_is_the_same_twice_and_of_any_number():
    X = groups(4, n=6000)
    for n_components in (None, 2, 5):
        a, b = (learn_mixture(X, np.ones(len(X)), n_components) for _ in range(2))
        assert_array_equal(a.means, b.means)
        assert n_components is None or len(a.weights) == n_components
    two = np.repeat([[0.0, 1.0], [1.0, 5.0]], 10, axis=0)
    assert len(learn_mixture(two, np.ones(20), 7).weights) == 2


# -------------------------------------------------------------------------------------- laws


def forest_grid():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).round(2)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1])
    return as_pieces(choose_output(model, "auto", X[:1]), X[:1]).grid


@pytest.mark.parametrize("mean, scale", [(0.2, 0.7), (9.0, 1.0), (-9.0, 1.0), (0.1, 1e-300)])
def test_normal_masses(mean, scale):
    grid = forest_grid()
    for k in range(2):
        law = Normal(mean, scale, k)
        masses = laws.masses(laws.as_masses(law, grid), grid, k)
        ends, codes = grid.partition(k)
        wanted = np.zeros(grid.cells[k].n_codes)
        for low, high, code in zip(ends[:-1], ends[1:], codes, strict=True):
            if low > mean:
                wanted[code] += stats.norm.sf(low, mean, scale) - stats.norm.sf(high, mean, scale)
            else:
                wanted[code] += stats.norm.cdf(high, mean, scale) - stats.norm.cdf(low, mean, scale)
        assert_allclose(masses, wanted, rtol=1e-12)
        assert_allclose(masses.sum(), 1.0)
        assert masses[0] == 0  # missing
        if abs(mean) > 8:  # far tails are not rounded away
            assert (masses[1:] > 0).all()


def test_a_normal_law_without_scale_is_a_point():
    grid = forest_grid()
    edge = grid.partition(0)[0][2]
    for value in (edge, np.nextafter(edge, np.inf), 0.0):
        masses = laws.masses(Normal(value, 0.0, "a"), grid, 0)
        assert masses[grid.encode_values(0, np.array([value]))[0]] == 1 == masses.sum()


def test_normal_laws_need_ranges():
    class NoRanges:
        cells = forest_grid().cells

        def __init__(self, partition):
            self.found = partition

        def partition(self, k):
            return self.found

    for partition in (None, (np.array([0.0, 1.0, np.inf]), np.array([1, 2]))):
        with pytest.raises(ValueError, match=r"column 'a'.*normal law on it is not known exactly"):
            laws.masses(Normal(0.0, 1.0, "a"), NoRanges(partition), 0)


# ------------------------------------------------------------------------------ full covariances


def test_a_full_em_step_is_that_of_scikit_learn():
    from sklearn.mixture import GaussianMixture

    X, w = table(1, n=300)
    shares = w / w.sum()
    scores = (X - shares @ X) / np.sqrt(shares @ (X - shares @ X) ** 2)
    rng = np.random.default_rng(0)
    covariances = np.stack([np.cov(rng.normal(size=(4, 20))) for _ in range(3)])
    fit = FullFit(np.array([0.2, 0.5, 0.3]), rng.normal(size=(3, 4)), covariances)
    found = full_step(scores, np.full(300, 1 / 300), fit)
    peer = GaussianMixture(
        3, max_iter=1, tol=1e9, reg_covar=0.0, weights_init=fit.weights, means_init=fit.means,
        precisions_init=np.linalg.inv(covariances),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(scores)
    assert_allclose(found.weights, peer.weights_, rtol=1e-9)
    assert_allclose(found.means, peer.means_, rtol=1e-8)
    assert_allclose(found.covariances, peer.covariances_, rtol=1e-8, atol=1e-10)


def test_equal_rows_count_as_weights_in_full_mixtures():
    X = groups(0, n=200)
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    one = learn_full_mixture(X, counts, 3)
    two = learn_full_mixture(np.repeat(X, counts, axis=0), np.ones(counts.sum()), 3)
    assert_allclose(one.marginals.weights, two.marginals.weights, rtol=1e-3)
    for a, b in zip(one.components, two.components, strict=True):
        assert_allclose(a.correlation, b.correlation, atol=1e-2)


def test_full_mixtures_find_clusters_that_lean():
    rng = np.random.default_rng(0)
    lean = np.linalg.cholesky([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    X = np.vstack([rng.normal(size=(500, 3)) @ lean.T,
                   10 + rng.normal(size=(300, 3)) @ (lean * [[1], [-1], [1]]).T])  # fmt: skip
    law = learn_full_mixture(X, np.ones(len(X)))
    assert_allclose(law.marginals.weights, [5 / 8, 3 / 8], atol=1e-3)
    assert_allclose([c.correlation[0, 1] for c in law.components], [0.9, -0.9], atol=0.03)
    assert learn_mixture(X, np.ones(len(X))).weights.size > 2  # it takes more without slopes


@pytest.mark.parametrize("own", [[1], [0, 2], [2, 0, 1]])
def test_full_shares_and_centers_are_those_of_densities(own):
    X = groups(0, apart=2.0) @ np.array([[1.0, 0.4, 0.0], [0.0, 1.0, -0.6], [0.3, 0.0, 1.0]])
    law = learn_full_mixture(X, np.ones(len(X)), 3)
    t = X[:6, own]
    others = others_of(3, own)
    pi, laws = law.marginals.weights, law.components
    covariances = [np.outer(c.scale, c.scale) * c.correlation for c in laws]
    wanted = np.array([
        p * stats.multivariate_normal(c.mean[own], S[np.ix_(own, own)]).pdf(t)
        for p, c, S in zip(pi, laws, covariances, strict=True)
    ]).T  # fmt: skip
    wanted /= wanted.sum(axis=1, keepdims=True)
    assert_allclose(law.shares(t, own), wanted, rtol=1e-8)
    center = np.zeros((6, len(others)))
    for c, S, share in zip(laws, covariances, wanted.T, strict=True):
        B = S[np.ix_(others, own)] @ np.linalg.inv(S[np.ix_(own, own)])
        center += share[:, None] * (c.mean[others] + (t - c.mean[own]) @ B.T)
    assert_allclose(law.center(t, own)[:, others], center, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("learn", [learn_gaussian, learn_mixture, learn_full_mixture])
@pytest.mark.parametrize("own", OWNS[:-1])
def test_sums_of_columns(learn, own):
    """`linear` says of weights · Y what the components' conditional laws say."""
    X, w = table(5)
    X[:, 1] = 3.0 if 1 not in own else X[:, 1]
    law = learn(X, w)
    weights = np.random.default_rng(0).normal(size=(5, 4))
    centers, slopes, scales = law.linear(weights, own)
    t = X[:7, own]
    shares = law.shares(t, own)
    means = np.einsum("md,cd->cm", weights, centers)[:, None] + np.einsum(
        "cmq,cnq->cnm", slopes, t - centers[:, None, own]
    )
    wanted = law.center(t, own) @ weights.T
    assert_allclose(np.einsum("nc,cnm->nm", shares, means), wanted, rtol=1e-9, atol=1e-9)
    second = np.einsum("nc,cnm->nm", shares, means**2 + scales[:, None] ** 2)
    u = sobol(law.n_uniforms, 2**13)
    for i in range(2):
        sums = law.points(u, t[i], own) @ weights.T
        assert_allclose((sums**2).mean(axis=0), second[i], rtol=0.02, atol=1e-9)
