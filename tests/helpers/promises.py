"""What every explainer promises: batches, and the rows explained together, change nothing."""

import pickle

import numpy as np
import pandas as pd

import skattr.pieces.preprocessing.pipeline
from skattr import MeasureExplainer


def batches_equal_one_fit(case, measure):
    """Three batches of 30 weighted rows equal one fit, up to rounding."""
    estimator, data = case.estimator, case.background
    weight = np.arange(1.0, 31.0)
    whole = MeasureExplainer(estimator, measure).fit(data[:30], sample_weight=weight)
    parts = MeasureExplainer(estimator, measure)
    for some in (slice(0, 4), slice(4, 11), slice(11, 30)):
        parts.partial_fit(data[some], sample_weight=weight[some])
    np.testing.assert_allclose(
        parts.explain(data).values, whole.explain(data).values, rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(parts.base_value_, whole.base_value_, rtol=1e-12)


def no_bit_changes(case, measure, monkeypatch, small=()):
    """Order, company, blocks, jobs and pickling change no bit of values of exact engines.

    Blocks are made small by `small`, pairs of a module and the name of its block size.
    """
    estimator, data = case.estimator, case.background
    explainer = MeasureExplainer(estimator, measure).fit(data[:20])
    assert explainer.exact_
    wanted = explainer.explain(data, predictions=False).values
    order = np.random.default_rng(0).permutation(len(data))[:17]
    np.testing.assert_array_equal(explainer.explain(data.iloc[order]).values, wanted[order])
    for i in range(3):
        np.testing.assert_array_equal(explainer.explain(data[i : i + 1]).values, wanted[[i]])
    places = [len(data.columns) - 2, 0]
    chosen = explainer.explain(data, features=[data.columns[k] for k in places]).values
    np.testing.assert_array_equal(chosen, wanted[:, places])
    for number, (module, name) in enumerate(small):
        monkeypatch.setattr(module, name, 3 + 4 * number)
    jobs = MeasureExplainer(estimator, measure, n_jobs=2).fit(data[:20])
    np.testing.assert_array_equal(jobs.explain(data).values, wanted)
    again = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(again.explain(data).values, wanted)
    monkeypatch.setattr(skattr.pieces.preprocessing.pipeline, "CHUNK", 1)
    large = pd.concat([data] * 3, ignore_index=True)
    np.testing.assert_array_equal(explainer.explain(large).values, np.concatenate([wanted] * 3))
