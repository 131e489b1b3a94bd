"""``python -m benchmarks report``: the time and the size of a report, and how fast its page is.

A forest of 100 trees of depth 10 on 20 columns is explained at 100 000 rows. Times are CPU seconds
of one thread after `fit`, the best of several warm calls; explaining the rows is part of it. The
pages of that report and of one of 500 rows are opened in a headless Chromium, if there is one:
seconds until the script has run, and the longest of many answers to a moved slider, with layout.
"""

import argparse
import os
import tempfile

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from benchmarks.timing import Table, at_most, best, summarize
from skattr import MeasureExplainer, write_report

BACKGROUND, COLUMNS, FEW = 10_000, 20, 500
LIMITS = {
    "report": at_most(10),
    "size": at_most(2, 1),
    "open": at_most(1, 1),
    "answer": at_most(50, 50),
}
SLIDE = """(() => {
  document.querySelector('#tabs a[href="#rows"]').click();
  const times = [];
  for (let j = 0; j < 20; j++) {
    const list = document.getElementById('if-column');
    list.value = String(j);
    list.dispatchEvent(new Event('change'));
    const range = document.getElementById('if-range');
    if (!range) continue;
    for (let k = 0; k <= 10; k++) {
      const start = performance.now();
      range.value = String(Number(range.min) + (k / 10) * (range.max - range.min));
      range.dispatchEvent(new Event('input'));
      document.getElementById('if-curve').getBoundingClientRect();
      times.push(performance.now() - start);
    }
  }
  return Math.max(...times);
})()"""
OPENED = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000"


def in_browser(paths):
    """Return the seconds to open each page, and the milliseconds of its slowest answer."""
    from tests.helpers.browser import NAMES, Browser, shutil

    if not any(map(shutil.which, NAMES)):
        return None
    browser = Browser()
    try:
        opened, answers = [], []
        for path in paths:
            times = []
            for _ in range(3):
                browser.open(path)
                times.append(browser.run(OPENED))
            opened.append(min(times))
            answers.append(browser.run(SLIDE))
    finally:
        browser.close()
    return opened, answers


def main(arguments):
    """Print the table, and say which limits hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 000 rows")
    n = 10_000 if parser.parse_args(arguments).quick else 100_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X @ rng.normal(size=COLUMNS)
    forest = RandomForestRegressor(100, max_depth=10, random_state=0, max_samples=0.1)
    forest.fit(X[:BACKGROUND], y[:BACKGROUND])
    explainer = MeasureExplainer(forest).fit(X[:BACKGROUND])
    small = MeasureExplainer(forest).fit(X[:FEW])
    columns = [f"{n:,} rows", f"{FEW} rows"]
    table = Table(f"report of a forest on {COLUMNS} columns", columns)
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"report-{name}.html") for name in ("many", "few")]
        seconds = [
            best(lambda: write_report(explainer, X, paths[0]), repeat=3),
            best(lambda: write_report(small, X[:FEW], paths[1]), repeat=3),
        ]
        sizes = [os.path.getsize(path) / 1e6 for path in paths]
        pages = in_browser(paths)
    explain = [best(lambda: explainer.explain(X), repeat=3), best(lambda: small.explain(X[:FEW]))]
    table.add("write_report, CPU seconds", seconds, [*LIMITS["report"], None])
    table.add("of which explain and predict", explain)
    table.add("size of the file, MB", sizes, LIMITS["size"])
    if pages is not None:
        table.add("page usable, seconds", pages[0], LIMITS["open"])
        table.add("what if, milliseconds", pages[1], LIMITS["answer"])
    summarize(table.show())
