"""How answers are compared with the definition."""

import numpy as np
import pandas as pd

from skattr import MeasureExplainer
from skattr.measures import PartialDependence
from tests.oracle import Oracle, described


def oracle_of(case, weight=None, domain=None):
    """The definition for one case."""
    return Oracle(case.f, case.background, weight, case.breaks, domain, case.levels, case.nodes)


def by_definition(f, background, X, measure=None, weight=None, own=None):
    """phi of any function of raw rows, (n, g), or (n, g, k) if f has several outputs.

    Partial dependence of each column alone, unless a measure or the columns of each attribution
    are given.
    """
    oracle = Oracle(lambda Z: np.reshape(f(Z), (len(Z), -1)), background, weight)
    own = own or [(k,) for k in range(background.shape[1])]
    values = oracle.values(described(measure or PartialDependence()), X, own)
    return values[..., 0] if values.shape[2] == 1 else values


def flat(value):
    """A number or (k,) as (k,)."""
    return np.atleast_1d(np.asarray(value, dtype=float))


def cube(values):
    """(n, g) or (n, g, k) as (n, g, k); one output never has a third axis."""
    assert values.ndim == 2 or values.shape[2] > 1
    return values.reshape(*values.shape[:2], -1)


def close(got, wanted, tolerance, what):
    """Equality to the tolerance, (k,), with the place that is worst."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{what}: shape {got.shape}, not {wanted.shape}"
    excess = np.abs(got - wanted) - tolerance
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert not np.isnan(got).any(), f"{what} has NaN"
    assert excess[worst] <= 0, f"{what} at {worst}: {got[worst]!r}, not {wanted[worst]!r}"


def explained(case, measure, weight=None, **settings):
    """The explainer and its explanation."""
    explainer = MeasureExplainer(case.estimator, measure=measure, **settings)
    explainer.fit(case.background, sample_weight=weight)
    return explainer, explainer.explain(case.X)


def same(case, measure, weight=None, own=None, oracle=None, loose=0.0, tight=1.0, **settings):
    """Values, base value, offset, centred values and support equal the definition.

    `loose` is added to the tolerance: the rounding of f itself where that is large; `tight` is a
    factor of the oracle's own.
    """
    own = own or [(k,) for k in range(case.n_columns)]
    oracle = oracle or oracle_of(case, weight)
    explainer, explanation = explained(case, measure, weight, **settings)
    terms = described(explainer.measure_)
    wanted, offset = oracle.values(terms, case.X, own), oracle.offset(terms)
    tolerance = max(1.0, sum(abs(c) for c, _, _ in terms)) * (tight * oracle.tolerance() + loose)
    assert explainer.exact_ is True
    assert explanation.exact is True
    assert explanation.std_error is None
    close(cube(explanation.values), wanted, tolerance, f"values of {measure}")
    close(flat(explainer.base_value_), oracle.base_value(), tolerance, "base_value_")
    close(flat(explanation.base_value), oracle.base_value(), tolerance, "base_value")
    close(flat(explanation.offset), offset, tolerance, f"offset of {measure}")
    centered = explanation.centered()
    close(cube(centered.values), wanted - offset, 2 * tolerance, f"centred {measure}")
    assert np.all(flat(centered.offset) == 0)
    predictions = explanation.predictions.reshape(len(case.X), -1)
    close(predictions, oracle.evaluate(case.X), tolerance, "predictions")
    learned = [parameters for _, name, parameters in terms if name == "conditional"]
    for place, pinned in enumerate(own if learned else ()):
        rows = [oracle.support(parameters, case.X, pinned) for parameters in learned]
        np.testing.assert_allclose(explanation.support[:, place], np.min(rows, axis=0), rtol=1e-8)
    return explainer, explanation


def read_frame(kind, frame, value):
    """The row of a curve's frame that holds a value, found by reading its cells."""
    holding = []
    alone = kind == "steps" and bool((frame["closed"] == "both").any())  # -inf has its own row
    for _, row in frame.iterrows():
        if kind == "levels":
            found = row["level"] == ("missing" if pd.isna(value) else value)
        elif row["closed"] == "missing":
            found = pd.isna(value)
        else:
            assert row["closed"] == ("both" if row["upper"] == -np.inf else "right")
            own = row["upper"] == -np.inf or not alone
            unbounded = row["lower"] == -np.inf and own  # holds -inf too
            found = (row["lower"] < value or unbounded) and value <= row["upper"]
        if found:
            holding.append(row)
    if kind == "levels" and not holding:
        holding = [row for _, row in frame.iterrows() if row["level"] == "any other"]
    assert len(holding) == 1, f"{value!r} is in {len(holding)} rows of\n{frame}"
    return holding[0]
