"""Which axioms a measure satisfies, decided on the measure itself.

See docs/mathematics.md, section 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._inputs.checks import read_domain
from skattr._inputs.points import one_row
from skattr.axioms import single, together
from skattr.axioms.integrands import completely_monotone
from skattr.axioms.support import off_support
from skattr.axioms.table import AxiomTable, Finding, worst
from skattr.measures import Measure, as_measure
from skattr.measures.signed.decomposition import Decomposition

POINTS = 3  # rows of the background that are checked by default


def check(
    measure: Measure | str,
    X: Any,
    *,
    sample_weight: Any = None,
    baseline: Any = None,
    domain: Any = None,
    points: Any = None,
) -> AxiomTable:
    """Decide which axioms an attribution satisfies, whatever the model.

    The measure is fitted on the background, and μ_{j,x} is written out as atoms and products at a
    few points x. An axiom that is violated at one of them is violated, with a witness; one that
    holds, holds at these points, up to rounding. Of measures that can only be sampled, the mass and
    the means are checked, and the rest is not decided.

    Axioms, for f of any kind and phi_j = ∫ f dμ_{j,x}:

    - completeness: attributions add up to f(x) minus f(baseline) or, without a baseline, minus the
      mean of f under one law for all x (the background for Shapley values);
    - sensitivity: a feature that f ignores gets 0;
    - constants: constants get 0;
    - positivity: f ≥ 0 gets at least 0;
    - additive_recovery: f = Σ f_k(y_k) gets f_j(x_j) minus a mean of f_j, the same for all x;
    - linear_recovery: f = w·y gets w_j (with an intercept too if `constants` holds);
    - monotonicity: f that increases in y_j gets at least 0;
    - weak_symmetry: features in which f is symmetric get the same where x has equal values;
      strong_symmetry: and everywhere. Pairs of columns of numbers are exchanged;
    - model_invariance: equal functions get the same, which every integral satisfies;
    - robustness: attributions are continuous in x;
    - completely_monotone: the distribution function, or the integrand of `Stieltjes`, is;
    - total_variation: the largest one, the smallest L with |phi_j(f) - phi_j(g)| ≤ L sup|f - g|;
    - off_support: the share of |μ| that is farther from all rows than rows are from each other.

    Parameters
    ----------
    measure : Measure or str
        The measure to check.
    X : DataFrame or array (n, d)
        The background.
    sample_weight : array (n,), optional
        Weights of its rows.
    baseline : array (d,), dict, Series or one-row frame, optional
        The baseline of completeness and additive recovery.
    domain : array (d, 2) or dict, optional
        The domain of measures that have one, as uniform measures.
    points : DataFrame or array (m, d), optional
        The explained points to check; three rows of the background by default.

    Returns
    -------
    AxiomTable
        It prints as a table; `to_frame()` has the columns `holds`, `value`, `witness`.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.measures import Expectation, PartialDependence
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> table = check(PartialDependence() - Expectation(), X).to_frame()
    >>> bool(table.holds["sensitivity"]), bool(table.holds["completeness"])
    (True, False)
    """
    X = frames.as_table(X)
    names = frames.labels(X)
    written = Decomposition(as_measure(measure), X, sample_weight, read_domain(domain, names))
    checked = frames.as_table(points, "points") if points is not None else _some_rows(written)
    rows = [frames.take_rows(checked, slice(i, i + 1)) for i in range(len(checked))]
    base = None if baseline is None else one_row(baseline, X)
    cases = [
        [
            single.Case(mu, j, row, written.numbers.of(x)[0], written.numbers)
            for j, mu in enumerate(written.at(x))
        ]
        for row, x in enumerate(rows)
    ]
    findings, notes = _findings(written, cases, rows, base)
    variation = np.array([[_variation(case) for case in each] for each in cases])  # (n_points, g)
    return AxiomTable(repr(as_measure(measure)), findings, checked, variation, notes)


def _findings(
    written: Decomposition, cases: list[list[single.Case]], rows: list, baseline: Any
) -> tuple[dict[str, Finding], dict[str, str]]:
    flat = [case for each in cases for case in each]
    complete, respect = together.completeness(written, rows, baseline)
    sensitive = [single.sensitivity(case) for case in flat]
    positive = worst(single.positivity(case) for case in flat)
    support, note = off_support(written, cases)
    point = None if baseline is None else written.numbers.of(baseline)[0]
    variation = [_variation(case) for case in flat]
    largest = float(np.max(variation)) if not np.isnan(variation).any() else np.nan
    findings = {
        "completeness": complete,
        "sensitivity": worst(sensitive),
        "constants": worst(single.constants(case) for case in flat),
        "positivity": positive,
        "additive_recovery": together.additive_recovery(cases, point),
        "linear_recovery": worst(single.linear_recovery(case) for case in flat),
        "monotonicity": worst(
            single.monotonicity(case, finding)
            for case, finding in zip(flat, sensitive, strict=True)
        ),
        "weak_symmetry": together.symmetry(written, rows, weak=True),
        "strong_symmetry": together.symmetry(written, rows, weak=False),
        "model_invariance": Finding(True, 0.0),
        "robustness": together.robustness(written, rows[0]),
        "completely_monotone": completely_monotone(written, rows, positive),
        "total_variation": Finding(None if np.isnan(largest) else True, largest),
        "off_support": support,
    }
    exact = all(case.mu.variation.exact for case in flat)
    notes = {
        "completeness": respect,
        "model_invariance": "an integral depends on the function only",
        "total_variation": "the Lipschitz constant in f" if exact else "an upper bound",
        "off_support": note,
    }
    return findings, notes


def _variation(case: single.Case) -> float:
    return case.mu.variation.value


def _some_rows(written: Decomposition) -> Any:
    X = written.background.X
    rows = np.unique(np.linspace(0, len(X) - 1, min(POINTS, len(X))).astype(int))
    return frames.take_rows(X, rows)
