"""Numbers as people write them."""

import numpy as np
import pandas as pd
import pytest

from skattr import measures
from skattr._utils.numbers import count, decimals, fixed, formatter, number, raw, small, ticks
from skattr.measures import (
    ALE,
    Baseline,
    Conditional,
    Expectation,
    LinearCombination,
    PartialDependence,
    Uniform,
)
from skattr.report.words import EXPECTATIONS, MEASURES


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([136_500.0, 98_000.0], ["136,500", "98,000"]),
        ([136_500.25, -98_000.5, 0.2], ["136,500", "-98,000", "0"]),
        ([584.91, -12.3, 0.04], ["584.9", "-12.3", "0.0"]),
        ([0.0936, 0.0003], ["0.0936", "0.0003"]),
        ([1116.21, 1116.48], ["1,116.210", "1,116.480"]),
        ([0.0, 0.0], ["0", "0"]),
        ([3e-9, -1e-9], ["3.000e-09", "-1.000e-09"]),
        ([2.5e15], ["2.500e+15"]),
        ([np.nan, 12.5, np.inf], ["–", "12.50", "–"]),
    ],
)
def test_numbers_of_a_column(values, texts):
    assert [*map(formatter(values), values)] == texts


def test_rounding_does_not_add_decimals():
    assert decimals([1e5 + 0.5, 1e5 + 0.5 + 1e-7]) == 0
    assert fixed(-1e-9, 2) == "0.00" and fixed(3.0, 1, sign=True) == "+3.0"


def test_single_numbers_and_counts():
    assert number(136_512.3) == "136,512" and number(-0.5) == "−0.500"
    assert count(np.int64(1_234_567)) == "1,234,567"
    assert [small(v) for v in (0.0, 0.0123, 9.96, 1.2e-9)] == ["0", "0.012", "10", "1.2e-09"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1996, "1996"), (1996.0, "1996"), (12_345, "12,345"), (153_712.4, "153,712"), (-3, "−3"),
        (92.9, "92.9"), (0.0, "0"), (np.float32(0.1), "0.1"), (10**20, "1.000e+20"),
        (np.inf, "inf"), (1e-9, "1.000e-09"), (np.True_, "True"), (pd.NA, "missing"),
        (pd.NaT, "missing"), ("a", "a"), (np.datetime64("2024-02-01"), "2024-02-01"),
        (pd.Timestamp("2024-02-01 12:30:05"), "2024-02-01 12:30:05"), (("a", 1), "('a', 1)"),
    ],
)  # fmt: skip
def test_raw_values(value, text):
    assert raw(value) == text


def test_ticks_are_alike():
    assert ticks([-0.5, 0.0, 0.5]) == ["−0.5", "0.0", "0.5"]
    assert ticks([0, 5000, 10_000], years=True) == ["0", "5,000", "10,000"]
    assert ticks([1000, 1500]) == ["1,000", "1,500"] and ticks([]) == []
    assert ticks([1e-9, 2e-9]) == ["1e−09", "2e−09"]


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (PartialDependence(), "partial dependence"),
        (PartialDependence() - Expectation(), "main effect"),
        (Conditional() - Expectation(), "conditional effect"),
        (Conditional("knn", n_neighbors=5) - Expectation(),
         "conditional effect (knn, n neighbors 5)"),
        (PartialDependence() - Expectation("product"),
         "partial dependence − expectation (product)"),
        (-0.5 * Uniform() + Baseline({"a": 1}), "−0.5 · uniform + baseline"),
        (LinearCombination([]), ""),
        (ALE(), "ALE"),
        (ALE(n_bins=7), "ALE (n bins 7)"),
    ],
)  # fmt: skip
def test_measures_in_words(measure, words):
    assert measure.in_words() == words


@pytest.mark.parametrize("name", sorted({*measures.__all__} - {"Measure", "LinearCombination"}))
def test_a_report_describes_every_measure_in_a_sentence(name):
    assert name in MEASURES or name == "Expectation"
    for words, formula in [*MEASURES.values(), *EXPECTATIONS.values()]:
        assert words[0].islower() and not words.endswith(".") and formula
