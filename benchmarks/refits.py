"""``python -m benchmarks refits``: what intervals over bootstrap refits cover.

Data: three independent normal columns, y = x0 + x0 x1 + noise of standard deviation 0.5, 200 rows.
The curve of x0 at five values, over 20 refits of `skattr.metrics.refit`. The truth is the mean
over 400 models fitted on new data of the same size, with their rows as background: what the
learner says on average. Coverage is that of 95 % intervals, mean ± t √(1/m + ratio) · sd. The last
column is the spread of the refits relative to that of models fitted on new data, which it
estimates.
"""

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from benchmarks.timing import Table
from skattr import MeasureExplainer
from skattr.metrics import refit
from skattr.metrics.spread import Spread

AT = np.array([-1.0, -0.5, 0.25, 0.5, 1.0])
ROWS, REFITS, TRUTHS = 200, 20, 400
RATIOS = (0.0, 0.58, 1.0)
LEARNERS = {
    "linear regression": LinearRegression(),
    "tree of depth 4": DecisionTreeRegressor(max_depth=4),
    "forest of 10 trees": RandomForestRegressor(10, min_samples_leaf=5),
}


def draw(rng):
    """Return rows and a target."""
    X = rng.normal(size=(ROWS, 3))
    return X, X[:, 0] + X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=ROWS)


def coverage(model, repetitions, rng):
    """Return the coverage for each ratio, and the spread of refits relative to the truth."""
    fits = []
    for _ in range(TRUTHS):
        X, y = draw(rng)
        fits.append(MeasureExplainer(clone(model).fit(X, y)).fit(X).curve("x0")(AT))
    truth, spread = np.mean(fits, axis=0), np.std(fits, axis=0)
    covered, spreads = [], []
    for seed in range(repetitions):
        X, y = draw(rng)
        explainers = refit(
            MeasureExplainer(model), X, y, n_refits=REFITS, random_state=seed, verbose=0
        )
        values = [explainer.curve("x0")(AT) for explainer in explainers]
        found = [Spread(ratio).of(values) for ratio in RATIOS]
        covered.append([((one.low <= truth) & (truth <= one.high)).mean() for one in found])
        spreads.append(found[0].spread)
    return [*np.mean(covered, axis=0), float(np.mean(np.mean(spreads, axis=0) / spread))]


def main(arguments):
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks refits", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=100, help="data sets per learner")
    repetitions = parser.parse_args(arguments).repetitions
    columns = [*(f"ratio {ratio:g}" for ratio in RATIOS), "spread"]
    table = Table(f"coverage of 95 % intervals, {repetitions} data sets", columns)
    for name, model in LEARNERS.items():
        table.add(name, coverage(model, repetitions, np.random.default_rng(1)))
    table.show()
