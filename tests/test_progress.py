"""The bar: silent for short work, one for long work, with names, totals and how to make it less."""

import re
import time

import numpy as np
import pandas as pd
import pytest

from skattr import MeasureExplainer
from skattr._utils import progress
from skattr._utils.progress import Progress
from skattr.measures import Atoms, PartialDependence, ProductMarginal

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(20, 3)), columns=["age", "height", "weight"])


def f(Z):
    return np.asarray(Z) @ [1.0, 2.0, 3.0]


class Clock:
    """A clock that moves by as much as the work says it took."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def run(clock, seconds, verbose, steps=4):
    with Progress(verbose, steps, "values", "4 values to compute") as bar:
        for i in range(steps):
            clock.now += seconds
            bar.step(f"column {i}")


def test_short_work_is_silent_and_long_work_is_not(clock, capsys):
    run(clock, 0.7, None)
    assert capsys.readouterr().err == ""
    run(clock, 2.0, None)
    shown = capsys.readouterr().err
    assert shown.count("4 values to compute") == 1 and "/4" in shown
    assert shown.endswith("\r")  # it is cleared


def test_time_left_counts_what_was_done_before_the_bar_was_shown(clock, capsys):
    with Progress(None, 8, "values") as bar:
        for _ in range(2):
            clock.now += 2.0
            bar.step("age")
        assert bar._bar.n == 2 and bar._bar.total == 8 and bar._bar.desc == "age"
        assert time.time() - bar._bar.start_t == pytest.approx(4.0, abs=0.5)
        assert bar._bar.format_dict["rate"] == pytest.approx(0.5, rel=0.2)  # two in four seconds


def test_work_that_ends_late_in_its_last_step_shows_nothing(clock, capsys):
    run(clock, 10.0, None, steps=1)
    assert capsys.readouterr().err == ""


def test_asked_for_and_refused(clock, capsys):
    run(clock, 100.0, 0)
    assert capsys.readouterr().err == ""
    run(clock, 0.0, 1)
    assert "4/4" in capsys.readouterr().err


def slow(Z):
    time.sleep(0.12)  # a bar is drawn anew ten times a second
    return f(Z)


@pytest.mark.parametrize("measure", [PartialDependence(), ProductMarginal(), "main_effect"])
def test_one_bar_for_all_columns(capsys, measure):
    settings = {"random_state": 0, "max_evals": 50, "tol": 10.0}
    MeasureExplainer(slow, measure, verbose=1, **settings).fit(X).explain(X[:1])
    shown = capsys.readouterr().err
    for name in X:
        assert f"{name}: " in shown
    assert shown.count("\n") == 2  # the line above, and one bar
    left = re.findall(r"\[(\d\d:\d\d)<(\d\d:\d\d)", shown)  # time spent and time left
    assert left and left[-1][1] == "00:00"
    for verbose in (0, None):
        MeasureExplainer(f, measure, verbose=verbose, **settings).fit(X).explain(X[:3])
        assert capsys.readouterr().err == ""


def test_the_bar_and_describe_say_how_many_calls_and_how_to_make_it_fewer(capsys):
    explainer = MeasureExplainer(f, verbose=1).fit(X)
    explainer.explain(X[:4])
    shown = capsys.readouterr().err
    assert "12 values to compute, each one call of the model on 20 background rows" in shown
    assert "a smaller background" in shown and "features=" in shown
    text = explainer.describe()
    assert "explaining the background takes 60 calls of the model on 20 background rows" in text
    assert "features=" not in text  # that is quick
    calls = []

    def counted(Z):
        calls.append(len(Z))
        return f(Z)

    explainer = MeasureExplainer(counted).fit(X)
    calls.clear()
    explainer.explain(X, predictions=False)
    assert calls == [20] * 60


def test_describe_says_how_to_make_long_work_shorter():
    wide = pd.DataFrame(rng.normal(size=(700, 3)), columns=list("abc"))
    text = MeasureExplainer(f).fit(wide).describe()
    assert "2,100 calls of the model on 700 background rows" in text
    assert "a smaller background" in text and "features=" in text


@pytest.mark.slow
def test_atoms_and_workers(capsys):
    def build(x):
        return np.vstack([x, 2 * x]), np.ones((3, 2))

    MeasureExplainer(f, Atoms(build), verbose=1).fit(X).explain(X)
    assert "20/20" in capsys.readouterr().err
    explainer = MeasureExplainer(f, verbose=1, n_jobs=2).fit(X)
    explainer.explain(X[:2])
    assert "6/6" in capsys.readouterr().err
