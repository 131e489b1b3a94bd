"""The command `skattr`."""

from __future__ import annotations

import argparse

from skattr._version import __version__


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="skattr", description=__doc__)
    parser.add_argument("--version", action="version", version=f"skattr {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="explain a forest on bundled data, print the table")
    demo.add_argument("--rows", type=int, default=5, help="rows to print (default: 5)")
    options = parser.parse_args(arguments)
    if options.rows < 1:
        parser.error("--rows must be at least 1")
    print_demo(options.rows)
    return 0


def print_demo(n_rows: int) -> None:
    """Fit a forest on scikit-learn's diabetes data, and print what moved its predictions."""
    import pandas as pd
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    from skattr import MeasureExplainer
    from skattr.measures import Expectation, PartialDependence

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    forest = RandomForestRegressor(n_estimators=200, min_samples_leaf=3, random_state=0).fit(X, y)
    explainer = MeasureExplainer(forest, PartialDependence() - Expectation()).fit(X)
    explanation = explainer.explain(X)
    curve = explainer.curve("bmi").to_frame()
    with pd.option_context("display.width", 100, "display.max_columns", 20):
        print("A forest of 200 trees on 442 patients; disease progression one year later.\n")
        print(explainer.describe())
        print(f"\nMean prediction: {explanation.base_value:.1f}. What each column adds to it:\n")
        print(explanation.to_frame().head(n_rows).round(1))
        print("\nImportance (mean of |value|):\n")
        print(explanation.importance().round(2).to_string())
        print(f"\nThe exact curve of bmi has {len(curve)} steps; a few of them:\n")
        print(curve.iloc[:: max(1, len(curve) // 6)].round(2).to_string(index=False))
