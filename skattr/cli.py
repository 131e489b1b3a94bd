"""The command `skattr`: feature attributions as integrals, from files to files."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from typing import Any

from skattr._version import __version__

MEASURES = ("partial_dependence", "product_marginal", "conditional", "uniform", "expectation")
EXAMPLES = """examples:
  skattr demo
      fits a forest on bundled data, prints a table, writes report.html
  skattr explain --model model.skops --background train.csv --data test.csv -o values.csv
      one attribution a row and column; to the terminal without -o
  skattr report --model model.skops --background train.csv --data test.csv -o report.html
      the same as one HTML file
  skattr warm-up
      compiles all kernels ahead, for images of containers

exit code: 0 done, 1 something is wrong with what was given, 2 wrong usage
"""
INPUT_EXAMPLES = """examples:
  skattr {0} --model model.skops --background train.csv --data test.csv -o {1}
  skattr {0} --model model.skops --trust my_package.MyStep --background train.parquet \\
      --data test.parquet --measure conditional -o {1}
  skattr {0} --model model.joblib --allow-pickle --background train.csv --data test.csv -o {1}
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)  # between libraries, not for who runs a command
        # a model that was fitted on an array takes a table whose columns have names
        warnings.filterwarnings("ignore", message="X has feature names")
        warnings.showwarning = _show_warning
        try:
            options.run(options)
            return 0
        except KeyboardInterrupt:
            _say("interrupted")
            return 130
        except Exception as error:
            if options.debug:
                raise
            _say(f"error: {_one_line(error)}")
            return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="skattr",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skattr {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_files(commands, "explain", "values.csv", "write the attributions of rows as a table")
    _add_files(commands, "report", "report.html", "write one HTML file about a model and its rows")
    _command(commands, "warm-up", "compile all kernels ahead").set_defaults(run=run_warm_up)
    return parser


def _command(commands: Any, name: str, about: str, **more: Any) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer of at least 1")
    return int(text)


def _add_demo(commands: Any) -> None:
    demo = _command(
        commands,
        "demo",
        "explain a forest on bundled data: a table and a report",
        epilog="example:\n  skattr demo --out flats.html",
    )
    demo.add_argument(
        "-o",
        "--out",
        default="report.html",
        metavar="FILE",
        help="the report (default: report.html)",
    )
    demo.add_argument("--rows", type=_positive, default=5, help="rows to print (default: 5)")
    demo.set_defaults(run=run_demo)


def _add_files(commands: Any, name: str, out: str, about: str) -> None:
    parser = _command(commands, name, about, epilog=INPUT_EXAMPLES.format(name, out))
    inputs = parser.add_argument_group("what goes in")
    inputs.add_argument(
        "--model",
        required=True,
        metavar="FILE",
        help="a fitted model: .skops, or .joblib and .pkl with --allow-pickle",
    )
    inputs.add_argument(
        "--background",
        required=True,
        metavar="FILE",
        help="rows that the measure is learned from: .csv or .parquet",
    )
    inputs.add_argument("--data", required=True, metavar="FILE", help="rows to explain")
    inputs.add_argument("--index", metavar="COLUMN", help="column with the names of the rows")
    inputs.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="TYPE",
        help="a type that a .skops file may hold; may be repeated",
    )
    inputs.add_argument(
        "--allow-pickle",
        action="store_true",
        help="load a pickle, which runs whatever code is in it",
    )
    how = parser.add_argument_group("what is computed")
    how.add_argument(
        "--measure",
        choices=MEASURES,
        default="partial_dependence",
        help="default: partial_dependence",
    )
    how.add_argument(
        "--output",
        choices=("auto", "raw", "proba", "predict"),
        default="auto",
        help="scale that is explained (default: auto, where the model is a sum)",
    )
    how.add_argument("--tol", type=float, default=1e-3, help="of approximate values")
    how.add_argument("--random-state", type=int, help="seed of approximate values")
    how.add_argument("--n-jobs", type=int, help="workers, as in joblib")
    if name == "report":
        parser.add_argument("-o", "--out", default=out, metavar="FILE", help=f"default: {out}")
        parser.add_argument("--title", help="heading of the report")
        parser.add_argument("--max-rows", type=_positive, default=500, help="default: 500")
        parser.add_argument("--max-features", type=_positive, default=20, help="default: 20")
        parser.add_argument("--no-data", action="store_true", help="leave raw values out")
        parser.set_defaults(run=run_report)
    else:
        parser.add_argument(
            "-o",
            "--out",
            metavar="FILE",
            help=".csv, .json or .parquet; without it CSV goes to the terminal",
        )
        parser.set_defaults(run=run_explain)


def run_explain(options: argparse.Namespace) -> None:
    """Explain rows, and write the values."""
    from skattr.files import check_result, values_table, write_table

    if options.out is not None:
        check_result(options.out)
    explainer, X = _fitted(options)
    table = values_table(explainer.explain(X, predictions=False))
    if options.out is None:
        table.to_csv(sys.stdout, index=False)
        return
    write_table(table, options.out)
    _say(f"wrote {options.out}: {len(table)} rows, {table.shape[1] - 1} columns of values")


def run_report(options: argparse.Namespace) -> None:
    """Explain rows, and write the report."""
    from skattr import write_report

    _check_folder(options.out)
    explainer, X = _fitted(options)
    title = options.title or f"Attributions of {os.path.basename(options.model)}"
    path = write_report(
        explainer,
        X,
        options.out,
        title=title,
        max_rows=options.max_rows,
        max_features=options.max_features,
        include_data=not options.no_data,
    )
    _say(f"wrote {path} ({os.path.getsize(path) / 1e3:.0f} kB)")


def _fitted(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return an explainer that is fitted on the background, and the rows to explain."""
    from skattr import MeasureExplainer
    from skattr.files import PICKLES, load_model, own_columns, read_table

    _say(f"reading {options.model}")
    if options.allow_pickle and options.model.lower().endswith(PICKLES):
        _say("warning: a pickle runs whatever code is in it; load only files that you trust")
    model = load_model(options.model, options.trust, options.allow_pickle)
    background = read_table(options.background, options.index)
    data = read_table(options.data, options.index, background)
    tables = []
    for path, table in ((options.background, background), (options.data, data)):
        own, ignored = own_columns(model, table, path)
        if ignored:
            _say(f"{path}: ignored columns {', '.join(map(str, ignored))}")
        tables.append(own)
    _say(f"learning from {len(tables[0])} rows")
    explainer = MeasureExplainer(
        model,
        options.measure,
        output=options.output,
        tol=options.tol,
        random_state=options.random_state,
        n_jobs=options.n_jobs,
    ).fit(tables[0])
    _say(f"explaining {len(tables[1])} rows")
    return explainer, tables[1]


def run_warm_up(options: argparse.Namespace) -> None:
    """Compile all kernels, so that nobody waits for them later."""
    from skattr._warm_up import warm_up

    warm_up()
    _say("all kernels are compiled")


def run_demo(options: argparse.Namespace) -> None:
    """Fit a forest on the bundled flats, print what moved its predictions, write the report."""
    _check_folder(options.out)
    start = time.perf_counter()
    _say("fitting a forest behind a column transformer, on 600 flats for rent")
    import pandas as pd

    from skattr import MeasureExplainer, write_report
    from skattr.datasets import load_flats
    from skattr.measures import Expectation, PartialDependence

    X, y = load_flats()
    pipeline = demo_pipeline().fit(X, y)
    explainer = MeasureExplainer(pipeline, PartialDependence() - Expectation()).fit(X)
    explanation = explainer.explain(X)
    with pd.option_context("display.width", 100, "display.max_columns", 20):
        print(explainer.describe())
        print(f"\nMean prediction: {explanation.base_value:.1f}. What each column adds to it:\n")
        print(explanation.to_frame().head(options.rows).round(1))
        print("\nImportance (mean of |value|):\n")
        print(explanation.importance().round(2).to_string(), flush=True)
    _say("writing the report")
    path = write_report(
        explainer, X, options.out, title="Rents of 600 flats", explanation=explanation
    )
    size, seconds = os.path.getsize(path) / 1e3, time.perf_counter() - start
    _say(f"wrote {path} ({size:.0f} kB) in {seconds:.0f} s; open it in a browser")


def demo_pipeline() -> Any:
    """Return the pipeline of the demo, not fitted."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    words = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    columns = make_column_transformer(
        (SimpleImputer(), ["area", "built"]),
        (words, ["district", "heating"]),
        (OrdinalEncoder(), ["energy", "listed"]),
        ("passthrough", ["rooms", "balcony"]),
    )
    forest = RandomForestRegressor(n_estimators=200, min_samples_leaf=3, random_state=0)
    return make_pipeline(columns, forest)


def _check_folder(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"there is no folder {folder}")


def _say(text: str) -> None:
    print(f"skattr: {text}", file=sys.stderr, flush=True)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError)
    return text if expected else f"{type(error).__name__}: {text}"


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    _say(f"warning: {' '.join(str(message).split())}")
