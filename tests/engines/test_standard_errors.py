"""Standard errors are honest: value ± t_{R-1} · std_error covers the truth as often as it says.

400 repetitions with one round of points each, so that nothing is stopped by its own error. f is a
function of one linear score: its means have closed forms under normal and uniform columns. (Means
of heavy tails are not normal at so few points: exp of a normal number of deviation 2 is covered in
83 %, as by any interval that is symmetric.)
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, t

from skattr import MeasureExplainer
from skattr.engines import QuasiMonteCarlo
from skattr.measures import Conditional, Expectation, Sampler, Uniform

pytestmark = pytest.mark.slow

REPETITIONS = 400
REPLICATES = 16
SLOPES = np.array([0.7, -1.1, 0.9])
MODELS = ["smooth", "kinked", "discontinuous"]
SCALES = np.array([1.0, 0.5, 2.0])

rng = np.random.default_rng(0)
BACKGROUND = rng.normal(size=(30, 3)) @ np.array(
    [[1.0, 0.4, 0.0], [0.0, 0.9, 0.3], [0.0, 0.0, 0.8]]
)
SIDES = np.array([[-1.0, 1.0]] * 3)
ROW = np.array([[0.3, -0.2, 0.45]])


def f(Z):
    """Three models of one score."""
    score = Z @ SLOPES
    return np.stack([np.exp(score / 2), np.maximum(score, 0.0), score > 0], axis=1)


def normal_means(mean, deviation):
    """E f for a score that is normal."""
    z = mean / deviation
    kinked = mean * norm.cdf(z) + deviation * norm.pdf(z)
    return np.array([np.exp(mean / 2 + deviation**2 / 8), kinked, norm.cdf(z)])


def uniform_means(fixed, slopes):
    """E f for fixed + Σ slopes · uniform numbers on (-1, 1), two of them.

    ∫∫ (c + a u + b v)_+^p over [0, 1]² is a second difference of (·)_+^{p+2}.
    """
    a, b = 2 * np.abs(slopes)
    c = fixed - np.abs(slopes).sum()
    ends = np.maximum([a + b + c, a + c, b + c, c], 0.0)
    signs = np.array([1, -1, -1, 1])
    smooth = np.exp(fixed / 2) * np.prod(np.sinh(slopes / 2) / (slopes / 2))
    return np.array([smooth, signs @ ends**3 / (6 * a * b), signs @ ends**2 / (2 * a * b)])


def noise(x, j, n, rng):
    """Independent normals about 0, the own column at x."""
    points = rng.normal(size=(n, 3)) * SCALES
    points[:, j] = x[j]
    return points


def truth_of(kind):
    """The three means for each own column, (3, 3)."""
    result = []
    for j in range(3):
        others = [k for k in range(3) if k != j]
        fixed = ROW[0, j] * SLOPES[j]
        if kind == "uniform":
            result.append(uniform_means(fixed, SLOPES[others]))
        elif kind == "sampler":
            result.append(normal_means(fixed, np.linalg.norm((SLOPES * SCALES)[others])))
        else:
            mean, cov = BACKGROUND.mean(axis=0), np.cov(BACKGROUND.T, ddof=0)
            slope = cov[others, j] / cov[j, j]
            center = mean[others] + slope * (ROW[0, j] - mean[j])
            rest = cov[np.ix_(others, others)] - np.outer(slope, cov[j, others])
            w = SLOPES[others]
            result.append(normal_means(fixed + w @ center, np.sqrt(w @ rest @ w)))
    return np.array(result)


MEASURES = {
    "uniform": Uniform(),
    "gaussian": Conditional("gaussian"),
    "sampler": Sampler(noise),
}


def repeated(measure, points):
    """Values and standard errors with many seeds, (400, 3 columns, 3 models)."""
    values, errors = [], []
    for seed in range(REPETITIONS):
        explainer = MeasureExplainer(
            f, measure, engine=QuasiMonteCarlo(REPLICATES), domain=SIDES, random_state=seed,
            tol=1e-12, max_evals=REPLICATES * points,
        ).fit(BACKGROUND)  # fmt: skip
        found = explainer.explain(ROW, predictions=False)
        values.append(found.values[0])
        errors.append(found.std_error[0])
    return np.array(values), np.array(errors)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", MEASURES)
def test_coverage(kind):
    values, errors = repeated(MEASURES[kind], 64)
    truth = truth_of(kind)
    assert (errors > 0).all()
    covered = np.abs(values - truth) <= t.ppf(0.975, REPLICATES - 1) * errors
    share = covered.mean(axis=0)  # (columns, models)
    assert ((share >= 0.9) & (share <= 0.98)).all(), dict(zip(MODELS, share.T, strict=True))
    # nor are they biased, or right for a wrong reason
    deviation = values.std(axis=0)
    assert (np.abs(values.mean(axis=0) - truth) < 4 * deviation / np.sqrt(REPETITIONS)).all()
    assert_allclose(np.sqrt((errors**2).mean(axis=0)), deviation, rtol=0.15)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_coverage_of_a_difference():
    """Terms share their points: the error is that of the difference."""
    values, errors = repeated(Uniform() - Expectation("uniform"), 32)
    low, high = -1.0, 1.0
    grid = (np.arange(400) + 0.5) / 400 * (high - low) + low  # E over the third column
    mean = np.mean([uniform_means(u * SLOPES[0], SLOPES[1:]) for u in grid], axis=0)
    truth = truth_of("uniform") - mean
    covered = np.abs(values - truth) <= t.ppf(0.975, REPLICATES - 1) * errors
    share = covered.mean(axis=0)
    assert ((share >= 0.9) & (share <= 0.98)).all(), dict(zip(MODELS, share.T, strict=True))


def test_truths():
    """The closed forms, against plain sums."""
    u = (np.arange(1000) + 0.5) / 500 - 1
    a, b = np.meshgrid(u, u)
    points = np.stack([np.full(a.size, 0.3), a.ravel(), b.ravel()], axis=1)
    assert_allclose(truth_of("uniform")[0], f(points).mean(axis=0), rtol=1e-3)
    drawn = noise(ROW[0], 1, 200_000, np.random.default_rng(1))
    assert_allclose(truth_of("sampler")[1], f(drawn).mean(axis=0), rtol=0.03)
